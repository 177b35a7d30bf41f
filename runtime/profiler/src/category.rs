//! Categories: the handful of headings under which a frame's time is told, the same for every game.
//!
//! Ten are VALORANT's (Riot, "VALORANT's 128-Tick Servers"); a game adds its own with [`Category::new`]. A scope's
//! category follows from its name unless it says otherwise. A capture tells each scope under its own heading; metrics and
//! reports add up whole subsystems, each under the heading of its first scope ([`crate::site::subsystem_categories`]), so
//! the scopes of a subsystem should agree.

/// A heading. Two with the same name are the same.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Category {
    name: &'static str,
}

impl Category {
    pub const REPLICATION: Category = Category::new("replication");
    pub const FOG_OF_WAR: Category = Category::new("fog-of-war");
    pub const NETWORK: Category = Category::new("network");
    pub const ANIMATION: Category = Category::new("animation");
    pub const GAMEPLAY: Category = Category::new("gameplay");
    pub const MOVEMENT: Category = Category::new("movement");
    pub const EQUIPMENT: Category = Category::new("equipment");
    pub const CHARACTER: Category = Category::new("character");
    pub const PHYSICS: Category = Category::new("physics");
    pub const OTHER: Category = Category::new("other");
    /// Nothing to do: waiting for work or for the next frame.
    pub const IDLE: Category = Category::new("idle");

    pub const fn new(name: &'static str) -> Category {
        Category { name }
    }

    pub fn name(self) -> &'static str {
        self.name
    }

    /// The heading of a scope that does not name one, from the first part of its name.
    pub(crate) fn of(scope: &str) -> Category {
        match scope.split('.').next().unwrap_or_default() {
            "replication" => Category::REPLICATION,
            "occlusion" => Category::FOG_OF_WAR,
            "net" => Category::NETWORK,
            "animation" => Category::ANIMATION,
            "ai" | "game" | "world" => Category::GAMEPLAY,
            "movement" => Category::MOVEMENT,
            "combat" | "rewind" => Category::EQUIPMENT,
            "character" => Category::CHARACTER,
            "physics" | "query" => Category::PHYSICS,
            "idle" => Category::IDLE,
            _ => Category::OTHER,
        }
    }
}
