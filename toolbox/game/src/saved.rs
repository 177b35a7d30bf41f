//! Saved: which types a game keeps in its saves, and which items are in a value of each.
//!
//! An executable that knows this tells an operator what a record is by name, whether this build can read it, and whether
//! there are as many items in all records as were created and not destroyed.

use throng::{
    pack::{HasSchema, PackError, Schema, envelope::Envelope},
    saves::offline::ItemKind,
};

/// What is done with each kind of item and how many there are.
pub type Items<'a> = &'a mut dyn FnMut(ItemKind, i64);

type Read = dyn Fn(&Envelope<'_>, Items<'_>) -> Result<(), PackError>;

/// A type that a game saves.
pub struct SavedType {
    schema: &'static Schema,
    read: Box<Read>,
}

/// What a value turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    /// This build reads it.
    Read,
    /// It is of an older version, which this build reads by a function of its own, if at all: it was not looked into.
    Older,
    /// This build refuses it, for this reason.
    Refused(String),
}

impl SavedType {
    /// `items` says what is in a value, by the kinds that [`Outbox::items_created`](throng::prelude::Outbox) counts.
    pub(crate) fn of<T: HasSchema>(items: impl Fn(&T, Items<'_>) + 'static) -> Self {
        let read =
            move |envelope: &Envelope<'_>, each: Items<'_>| envelope.unpack::<T>().map(|value| items(&value, each));
        Self { schema: T::SCHEMA, read: Box::new(read) }
    }

    pub fn name(&self) -> &'static str {
        self.schema.name
    }

    /// Whether the envelope is of this type.
    pub fn holds(&self, envelope: &Envelope<'_>) -> bool {
        self.schema.id == envelope.type_id
    }

    /// Reads the value in it, and counts its items.
    pub fn judge(&self, envelope: &Envelope<'_>, items: Items<'_>) -> Judged {
        match (self.read)(envelope, items) {
            Ok(()) => Judged::Read,
            Err(_) if envelope.version < self.schema.version => Judged::Older,
            Err(error) => Judged::Refused(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use throng::{pack::envelope, prelude::*};

    use super::*;

    #[derive(Pack)]
    #[pack(name = "test.purse", version = 2)]
    struct Purse {
        #[pack(max = 100)]
        coins: u32,
    }

    #[derive(Pack)]
    #[pack(name = "test.purse", version = 1)]
    struct OldPurse {
        gold: u8,
        silver: u8,
    }

    #[derive(Pack)]
    #[pack(name = "test.purse", version = 3)]
    struct NewPurse {
        pounds: u8,
    }

    #[test]
    fn values_are_read_counted_and_refused() {
        let purses = SavedType::of(|purse: &Purse, items| items(1, purse.coins.into()));
        let judge = |bytes: &[u8]| {
            let (envelope, _) = Envelope::parse(bytes).unwrap();
            assert!(purses.holds(&envelope));
            let mut found = Vec::new();
            let judged = purses.judge(&envelope, &mut |kind, count| found.push((kind, count)));
            (judged, found)
        };
        let packed = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = Vec::new();
            write(&mut bytes);
            bytes
        };
        let fine = packed(&|out| envelope::write(&Purse { coins: 7 }, out).unwrap());
        assert_eq!(judge(&fine), (Judged::Read, vec![(1, 7)]));
        let old = packed(&|out| envelope::write(&OldPurse { gold: 1, silver: 2 }, out).unwrap());
        assert_eq!(judge(&old), (Judged::Older, vec![]));
        let newer = packed(&|out| envelope::write(&NewPurse { pounds: 1 }, out).unwrap());
        assert!(matches!(judge(&newer).0, Judged::Refused(why) if why.contains('3')));
        let mut poisoned = fine;
        *poisoned.last_mut().unwrap() = 101;
        assert!(matches!(judge(&poisoned), (Judged::Refused(_), found) if found.is_empty()));
    }
}
