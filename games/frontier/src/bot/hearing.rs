//! Hearing: events, read by their kind, as far as a bot has a use for them.
//!
//! A table with a row for each kind, in wire order; an event is one look into it. Allocates nothing.

use throng_replication::{DecodeError, EventIn, NetId, ReplicatedEvent, Schema, Text};

use crate::{
    components::NAME_BYTES_MAX,
    events::{
        Cast, CellChanged, Critical, Damage, DoorMoved, Emote, Landed, Particles, Purse, Say, Song, Stun, Teleport,
    },
    protocol::SAY_BYTES_MAX,
};

/// What an event tells a bot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Told {
    /// Something that a bot only listens to, at or by somebody.
    Happened(Option<NetId>),
    Said {
        speaker: Option<NetId>,
        name: Text<NAME_BYTES_MAX>,
        words: Text<SAY_BYTES_MAX>,
    },
    Teleported {
        who: NetId,
        to: [f32; 2],
    },
    Purse {
        carried: u16,
        banked: u32,
    },
    Land(CellChanged),
}

impl Told {
    /// Whose place the event's range is measured from.
    pub fn about(&self) -> Option<NetId> {
        match *self {
            Self::Happened(who) | Self::Said { speaker: who, .. } => who,
            Self::Teleported { who, .. } => Some(who),
            Self::Purse { .. } | Self::Land(_) => None,
        }
    }
}

macro_rules! happened {
    ($($kind:ident at $field:ident),+) => {$(
        impl From<$kind> for Told {
            fn from(event: $kind) -> Self {
                Self::Happened(Some(event.$field))
            }
        }
    )+};
}

happened!(
    Damage at target,
    Critical at target,
    Cast at caster,
    Landed at target,
    Stun at target,
    Song at singer,
    DoorMoved at door,
    Emote at who,
    Particles at at
);

impl From<Say> for Told {
    fn from(Say { speaker, name, words }: Say) -> Self {
        Self::Said { speaker, name, words }
    }
}

impl From<Teleport> for Told {
    fn from(Teleport { who, to }: Teleport) -> Self {
        Self::Teleported { who, to }
    }
}

impl From<CellChanged> for Told {
    fn from(changed: CellChanged) -> Self {
        Self::Land(changed)
    }
}

impl From<Purse> for Told {
    fn from(Purse { carried, banked }: Purse) -> Self {
        Self::Purse { carried, banked }
    }
}

/// How one kind is read, and how far it is heard. (m)
#[derive(Clone, Copy)]
struct Row {
    range_m: Option<f32>,
    read: fn(&EventIn<'_>) -> Result<Told, DecodeError>,
}

/// All kinds of events, by their place in the schema.
pub struct Hearing {
    rows: Vec<Option<Row>>,
}

impl Hearing {
    pub fn new(schema: &Schema) -> Self {
        let mut hearing = Self { rows: vec![None; schema.events().len()] };
        hearing.add::<Say>(schema);
        hearing.add::<Damage>(schema);
        hearing.add::<Critical>(schema);
        hearing.add::<Cast>(schema);
        hearing.add::<Landed>(schema);
        hearing.add::<Stun>(schema);
        hearing.add::<Song>(schema);
        hearing.add::<DoorMoved>(schema);
        hearing.add::<Emote>(schema);
        hearing.add::<Particles>(schema);
        hearing.add::<Teleport>(schema);
        hearing.add::<Purse>(schema);
        hearing.add::<CellChanged>(schema);
        hearing
    }

    fn add<T: ReplicatedEvent + Into<Told>>(&mut self, schema: &Schema) {
        let id = schema.event_of::<T>().expect("the schema has all events of the game");
        self.rows[id.index()] = Some(Row { range_m: T::RANGE_M, read: |event| event.decode::<T>().map(Into::into) });
    }

    /// What an event tells, and how far it is heard (m; `None` = everywhere). `None` if it cannot be read.
    pub fn understand(&self, event: &EventIn<'_>) -> Option<(Told, Option<f32>)> {
        let row = (*self.rows.get(event.id.index())?)?;
        Some(((row.read)(event).ok()?, row.range_m))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use throng_replication::{EVENT_BYTES_MAX, write_event};

    const SOMEBODY: NetId = NetId { slot: 4_321, generation: 7 };

    #[track_caller]
    fn check<T: ReplicatedEvent>(event: T, expect: Told, about: Option<NetId>, range_m: Option<f32>) {
        let schema = schema();
        let mut bytes = [0; EVENT_BYTES_MAX];
        let len = write_event(schema.event_of::<T>().unwrap(), &event, &mut bytes);
        let event = EventIn::split(&bytes[..len]).unwrap();
        let hearing = Hearing::new(&schema);
        assert_eq!(hearing.understand(&event), Some((expect, range_m)));
        assert_eq!(expect.about(), about);
        let cut = EventIn::split(&bytes[..len - 1]).unwrap();
        assert_eq!(hearing.understand(&cut), None, "half an event is none");
    }

    #[test]
    fn every_kind_of_event_is_understood() {
        let schema = schema();
        let hearing = Hearing::new(&schema);
        for (row, kind) in hearing.rows.iter().zip(schema.events()) {
            assert!(row.is_some(), "{}", kind.name);
        }
        let words = Text::new("well met").unwrap();
        let say = Say { speaker: Some(SOMEBODY), name: Text::default(), words };
        check(say, Told::Said { speaker: Some(SOMEBODY), name: Text::default(), words }, Some(SOMEBODY), Some(15.0));
        check(Purse { carried: 3, banked: 70_000 }, Told::Purse { carried: 3, banked: 70_000 }, None, None);
        let to = [25.0, -50.0];
        check(Teleport { who: SOMEBODY, to }, Told::Teleported { who: SOMEBODY, to }, Some(SOMEBODY), None);
        let stun = Stun { target: SOMEBODY, tenths: 20 };
        check(stun, Told::Happened(Some(SOMEBODY)), Some(SOMEBODY), Some(75.0));
    }
}
