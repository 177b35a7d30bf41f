//! What happens once and is told to those near enough: the events of Frontier, with their ranges.
//!
//! | event             | range (m) | reliable | says                                              |
//! |-------------------|-----------|----------|---------------------------------------------------|
//! | `chat.say`        | 15        | yes      | who says what; the server, to everybody           |
//! | `combat.damage`   | 50        | no       | whom, by whom, how much, by what                  |
//! | `combat.critical` | 80        | no       | the same, for blows worth telling from afar       |
//! | `spell.cast`      | 200       | no       | somebody begins a spell                           |
//! | `spell.landed`    | 75        | no       | a spell takes effect                              |
//! | `spell.stun`      | 75        | no       | somebody is stunned                               |
//! | `song`            | 75        | no       | somebody begins to sing                           |
//! | `door.open`       | 100       | no       | a door opens or shuts                             |
//! | `emote`           | 135       | no       | somebody waves                                    |
//! | `particles`       | 135       | no       | a burst of something at somebody                  |
//! | `teleport`        | world     | yes      | a player is suddenly somewhere else               |
//! | `purse`           | one client| yes      | what it carries and what lies in the bank         |
//! | `land.changed`    | one client| yes      | a cell near it is not as it was                   |
//!
//! Ranges are defaults of the rules file. All but `teleport` and what the server says go to those to whom the entity that
//! they happen to is relevant ([`Audience::Around`](throng::prelude::Audience)), and a source that not everybody may see is
//! left out, so that no event gives away who is visibility-filtered.

use throng_replication::{NetId, Protocol, Replicate, ReplicatedEvent, Text};

use crate::{
    components::{Gesture, NAME_BYTES_MAX},
    land::{Growth, PieceKind},
    protocol::{Ability, SAY_BYTES_MAX, Whose},
};

/// Adds all of them to a protocol, in wire order.
pub fn add_to(protocol: Protocol) -> Protocol {
    protocol
        .event::<Say>()
        .event::<Damage>()
        .event::<Critical>()
        .event::<Cast>()
        .event::<Landed>()
        .event::<Stun>()
        .event::<Song>()
        .event::<DoorMoved>()
        .event::<Emote>()
        .event::<Particles>()
        .event::<Teleport>()
        .event::<Purse>()
        .event::<CellChanged>()
}

/// What hurts or mends.
#[derive(Replicate, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    Melee,
    Rampage,
    Bolt,
    Blast,
    Trap,
    Totem,
    Disease,
    Heal,
}

/// What goes up in a burst.
#[derive(Replicate, Debug, Clone, Copy, PartialEq, Eq)]
pub enum Burst {
    Blood,
    Dust,
    Sparks,
    Leaves,
}

/// Somebody says something.
#[derive(Replicate, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "chat.say")]
pub struct Say {
    /// `None`: the server.
    pub speaker: Option<NetId>,
    /// The speaker's name; empty for NPCs.
    pub name: Text<NAME_BYTES_MAX>,
    pub words: Text<SAY_BYTES_MAX>,
}

/// Somebody loses or gains health.
#[derive(Replicate, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "combat.damage")]
pub struct Damage {
    pub target: NetId,
    /// Who did it; `None` if it is visibility-filtered, or no longer there.
    pub source: Option<NetId>,
    /// Points.
    pub amount: u16,
    pub means: Means,
}

/// A blow that is worth telling from afar.
#[derive(Replicate, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "combat.critical")]
pub struct Critical {
    pub target: NetId,
    /// As for [`Damage`].
    pub source: Option<NetId>,
    pub amount: u16,
}

/// Somebody begins to cast.
#[derive(Replicate, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "spell.cast")]
pub struct Cast {
    pub caster: NetId,
    pub ability: Ability,
}

/// A spell takes effect on somebody.
#[derive(Replicate, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "spell.landed")]
pub struct Landed {
    pub target: NetId,
    pub ability: Ability,
}

/// Somebody is stunned.
#[derive(Replicate, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "spell.stun")]
pub struct Stun {
    pub target: NetId,
    /// Tenths of a second.
    pub tenths: u8,
}

/// Somebody begins to sing.
#[derive(Replicate, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "song")]
pub struct Song {
    pub singer: NetId,
    #[replicate(bits = 4)]
    pub tune: u8,
}

/// A door has been opened or has shut.
#[derive(Replicate, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "door.open")]
pub struct DoorMoved {
    pub door: NetId,
    pub open: bool,
}

/// Somebody makes itself understood without words.
#[derive(Replicate, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "emote")]
pub struct Emote {
    pub who: NetId,
    pub gesture: Gesture,
}

/// Something goes up around somebody.
#[derive(Replicate, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "particles")]
pub struct Particles {
    pub at: NetId,
    pub burst: Burst,
}

/// A player is suddenly somewhere else. Everybody hears of it.
#[derive(Replicate, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "teleport")]
pub struct Teleport {
    pub who: NetId,
    #[replicate(min = -crate::landscape::HALF_SIDE_M, max = crate::landscape::HALF_SIDE_M, step = 0.25)]
    pub to: [f32; 2],
}

/// What the client's own player has. Told to it alone.
#[derive(Replicate, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "purse")]
pub struct Purse {
    /// In hand.
    pub carried: u16,
    /// In the bank.
    pub banked: u32,
}

/// A cell in a sector around the player's is not as it was. Told to each client that it concerns.
#[derive(Replicate, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "land.changed")]
pub struct CellChanged {
    /// Its number.
    #[replicate(bits = 24)]
    pub cell: u32,
    pub growth: Growth,
    pub depth: u8,
    pub piece: Option<PieceKind>,
    /// Of the piece; 0 without one.
    pub health: u8,
    pub whose: Whose,
}

/// Says whether a kind of events is sent again when it is lost, and how far it is heard.
macro_rules! event {
    ($kind:ident, reliable, $range_m:expr) => {
        event!($kind, true, $range_m);
    };
    ($kind:ident, unreliable, $range_m:expr) => {
        event!($kind, false, $range_m);
    };
    ($kind:ident, $reliable:literal, $range_m:expr) => {
        impl ReplicatedEvent for $kind {
            const RELIABLE: bool = $reliable;
            const RANGE_M: Option<f32> = $range_m;
        }
    };
}

event!(Say, reliable, Some(15.0));
event!(Damage, unreliable, Some(50.0));
event!(Critical, unreliable, Some(80.0));
event!(Cast, unreliable, Some(200.0));
event!(Landed, unreliable, Some(75.0));
event!(Stun, unreliable, Some(75.0));
event!(Song, unreliable, Some(75.0));
event!(DoorMoved, unreliable, Some(100.0));
event!(Emote, unreliable, Some(135.0));
event!(Particles, unreliable, Some(135.0));
event!(Teleport, reliable, None);
event!(Purse, reliable, None);
event!(CellChanged, reliable, None);

#[cfg(test)]
mod tests {
    use super::*;
    use throng_replication::{Reader, Writer};

    /// By nobody, which is what those hear who may not see the source, it is smaller yet.
    #[test]
    fn a_blow_is_as_small_as_it_can_be() {
        let [target, other] = [7, 12_345].map(|slot| NetId { slot, generation: 1 });
        for (source, bytes_expected) in [(Some(other), 10), (None, 6)] {
            let damage = Damage { target, source, amount: 42, means: Means::Melee };
            let mut bytes = [0; Damage::BYTES_MAX];
            let mut writer = Writer::new(&mut bytes);
            damage.encode(&mut writer);
            assert_eq!(writer.len(), bytes_expected);
            assert_eq!(Damage::decode(&mut Reader::new(&bytes)), Ok(damage));
        }
    }
}
