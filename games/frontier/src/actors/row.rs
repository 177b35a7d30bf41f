//! Rows: all that is known of one actor.

use bevy_ecs::{component::Component, entity::Entity};
use throng_pack::Pack;
use throng_query::neighbour_lists::NOBODY;
use throng_replication::{EntityLink, NetId};

use super::side::Side;
use crate::{
    components::{Animation, Effects, HEALTH_MAX, Kind, Look, Vitals},
    neighbours::groups,
    protocol::Ability,
};

/// Who has less than this part of its health is worth healing.
pub const HURT_BELOW: f32 = 0.7;

/// An actor's index, on its entity.
#[derive(Component, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.slot")]
pub struct Slot(pub u32);

/// One life of one actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pack)]
#[pack(name = "frontier.who")]
pub struct Who {
    pub index: u32,
    pub(super) life: u32,
}

/// Components that are to be written. Bits.
pub mod dirty {
    pub const POSE: u8 = 1 << 0;
    pub const VITALS: u8 = 1 << 1;
    pub const ANIMATION: u8 = 1 << 2;
    pub const EFFECTS: u8 = 1 << 3;
    pub const NAME: u8 = 1 << 4;
}

/// What lies on somebody, each until a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pack)]
#[pack(name = "frontier.clocks")]
pub struct Clocks {
    pub stunned: u32,
    pub snared: u32,
    pub diseased: u32,
    pub blessed: u32,
    pub soothed: u32,
    /// Cannot catch a disease before this.
    pub immune: u32,
}

/// A spell in the making.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.casting")]
pub struct Casting {
    pub ability: Ability,
    pub target: Option<Who>,
    pub ends_tick: u32,
}

/// A row.
#[derive(Debug, Clone, Pack)]
#[pack(name = "frontier.actor")]
pub struct Actor {
    #[pack(via = EntityLink)]
    pub entity: Entity,
    /// What clients call it; known from the end of its first tick on.
    pub id: Option<NetId>,
    pub look: Look,
    pub(super) life: u32,
    pub alive: bool,
    /// Sneaks, so that only those see it whom [`crate::visibility`] lets.
    pub filtered: bool,
    pub singing: bool,
    /// Doors alone.
    pub open: bool,
    pub place: [f32; 2],
    pub heading: f32,
    pub health: i32,
    pub health_max: i32,
    pub animation: Animation,
    /// Whom it fights.
    pub target: Option<Who>,
    /// When it may strike again.
    pub swing_tick: u32,
    /// When it last struck or was struck, and 1; 0 if never.
    pub fought_tick: u32,
    /// When guards may be called for it again.
    pub help_tick: u32,
    pub casting: Option<Casting>,
    /// When it may cast each ability again, by code.
    pub ready_tick: [u32; ABILITIES],
    pub clocks: Clocks,
    /// 0: in none.
    pub party: u16,
    pub side: Side,
    /// Who made it: traps and totems.
    pub owner: Option<Who>,
    /// When it goes or shuts: traps, totems and doors.
    pub expires_tick: u32,
    /// What is left to gather: nodes.
    pub stock: u16,
    /// Row of the player in [`crate::roster::Roster`].
    pub player: u32,
    pub weight: f32,
    pub dirty: u8,
}

/// Abilities and the lack of one.
pub const ABILITIES: usize = Ability::ALL.len() + 1;

impl Actor {
    /// Nobody.
    pub fn empty() -> Self {
        Self {
            entity: Entity::PLACEHOLDER,
            id: None,
            look: Look { kind: Kind::Node, level: 1, variety: 0 },
            life: 0,
            alive: false,
            filtered: false,
            singing: false,
            open: false,
            place: [0.0; 2],
            heading: 0.0,
            health: 0,
            health_max: 1,
            animation: Animation::NONE,
            target: None,
            swing_tick: 0,
            fought_tick: 0,
            help_tick: 0,
            casting: None,
            ready_tick: [0; ABILITIES],
            clocks: Clocks::default(),
            party: 0,
            side: Side::None,
            owner: None,
            expires_tick: 0,
            stock: 0,
            player: NOBODY,
            weight: 1.0,
            dirty: 0,
        }
    }

    pub fn kind(&self) -> Kind {
        self.look.kind
    }

    pub fn is_player(&self) -> bool {
        self.look.kind == Kind::Player
    }

    pub fn is_monster(&self) -> bool {
        self.look.kind.is_monster()
    }

    pub fn vitals(&self) -> Vitals {
        let percent = (self.health.max(0) * i32::from(HEALTH_MAX) + self.health_max - 1) / self.health_max;
        Vitals { health: percent.min(i32::from(HEALTH_MAX)) as u8, alive: self.alive }
    }

    pub fn effects(&self, tick: u32) -> Effects {
        let on = |until: u32| until > tick && self.alive;
        Effects {
            stunned: on(self.clocks.stunned),
            snared: on(self.clocks.snared),
            diseased: on(self.clocks.diseased),
            blessed: on(self.clocks.blessed),
            soothed: on(self.clocks.soothed),
            singing: self.singing,
            sneaking: self.filtered,
            open: self.open,
        }
    }

    pub fn is_stunned(&self, tick: u32) -> bool {
        self.clocks.stunned > tick
    }

    pub fn is_hurt(&self) -> bool {
        (self.health as f32) < self.health_max as f32 * HURT_BELOW
    }

    /// Whether it struck or was struck within so many ticks.
    pub fn fought_within(&self, tick: u32, ticks: u32) -> bool {
        self.fought_tick > 0 && tick + 1 - self.fought_tick < ticks
    }

    /// The groups that questions find it in.
    pub fn groups(&self) -> u32 {
        let hurt = self.is_hurt();
        let of_hurt = |bit: u32| if hurt { bit } else { 0 };
        match self.look.kind {
            Kind::Player => groups::PLAYERS | of_hurt(groups::HURT_FOLK),
            Kind::Guard => groups::TOWNSFOLK | groups::GUARDS | of_hurt(groups::HURT_FOLK),
            Kind::Banker => groups::TOWNSFOLK | groups::BANKERS | of_hurt(groups::HURT_FOLK),
            Kind::Door => groups::DOORS,
            Kind::Node => groups::NODES,
            Kind::Trap | Kind::Totem => 0,
            _ => groups::MONSTERS | of_hurt(groups::HURT_MONSTERS),
        }
    }
}
