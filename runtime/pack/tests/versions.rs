//! Promise: bytes of older versions are read by newer programs, with their defaults; changes that would be read wrongly
//! are refused.

use throng_pack::{Fault, HasSchema, PackError, envelope};

/// The program as it was first shipped.
mod first {
    use throng_pack::{List, Pack};

    #[derive(Clone, Debug, PartialEq, Pack)]
    #[pack(name = "test.player")]
    pub struct Player {
        #[pack(max = 100)]
        pub health: u8,
        pub items: List<Item, 4>,
        pub coins: u32,
    }

    #[derive(Clone, Debug, PartialEq, Pack)]
    pub enum Item {
        Medkit { uses: u8 },
        Rope,
    }
}

/// Two releases later: fields between others, limits raised, an item that changed twice on its own.
mod third {
    use throng_pack::{List, Pack, Text};

    #[derive(Clone, Debug, PartialEq, Pack)]
    #[pack(name = "test.player", version = 3)]
    pub struct Player {
        #[pack(since = 2, default = Text::new("nobody").unwrap())]
        pub name: Text<12>,
        #[pack(max = 200)]
        pub health: u8,
        #[pack(since = 3, default)]
        pub pet: Option<Pet>,
        pub items: List<Item, 8>,
        #[pack(name = "coins")]
        pub gold: u32,
        #[pack(since = 2, default = 20, min = 5)]
        pub stamina: i16,
    }

    #[derive(Clone, Debug, PartialEq, Pack)]
    #[pack(version = 3)]
    pub enum Item {
        Medkit {
            uses: u8,
            #[pack(since = 3, default = true)]
            sterile: bool,
        },
        Rope,
        #[pack(since = 2)]
        Lamp {
            oil: u16,
        },
    }

    #[derive(Clone, Debug, PartialEq, Pack)]
    #[pack(version = 2)]
    pub struct Pet(#[pack(since = 2, default = 9)] pub u8);
}

/// Between the two: only the items have changed.
mod second {
    use throng_pack::{List, Pack};

    #[derive(Clone, Debug, PartialEq, Pack)]
    #[pack(name = "test.player")]
    pub struct Player {
        #[pack(max = 100)]
        pub health: u8,
        pub items: List<Item, 4>,
        pub coins: u32,
    }

    #[derive(Clone, Debug, PartialEq, Pack)]
    #[pack(version = 2)]
    pub enum Item {
        Medkit {
            uses: u8,
        },
        Rope,
        #[pack(since = 2)]
        Lamp {
            oil: u16,
        },
    }
}

/// A list that is held in place now.
mod in_place {
    use throng_pack::{ArrayVec, Pack};

    #[derive(Clone, Debug, PartialEq, Pack)]
    #[pack(name = "test.player")]
    pub struct Player {
        #[pack(max = 100)]
        pub health: u8,
        pub items: ArrayVec<super::first::Item, 4>,
        pub coins: u32,
    }
}

/// What happens to those who forget the version.
mod careless {
    use throng_pack::{List, Pack};

    #[derive(Clone, Debug, PartialEq, Pack)]
    #[pack(name = "test.player")]
    pub struct Player {
        #[pack(max = 100)]
        pub health: u8,
        pub items: List<super::first::Item, 4>,
        pub gold: u32,
    }
}

fn bytes_of<T: HasSchema>(value: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    envelope::write(value, &mut bytes).unwrap();
    bytes
}

fn first_player() -> first::Player {
    let items = vec![first::Item::Medkit { uses: 2 }, first::Item::Rope];
    first::Player { health: 77, items: items.try_into().unwrap(), coins: 1_000 }
}

fn third_player() -> third::Player {
    let items = vec![third::Item::Medkit { uses: 2, sterile: true }, third::Item::Rope];
    third::Player {
        name: throng_pack::Text::new("nobody").unwrap(),
        health: 77,
        pet: None,
        items: items.try_into().unwrap(),
        gold: 1_000,
        stamina: 20,
    }
}

#[track_caller]
fn check_refused<T: HasSchema + std::fmt::Debug>(bytes: &[u8], type_name: &'static str, fault: Fault) {
    assert_eq!(envelope::read::<T>(bytes).unwrap_err(), PackError::from(fault).at(type_name, ""));
}

#[test]
fn older_bytes_are_read_with_what_their_missing_fields_stand_for() {
    assert_eq!(envelope::read::<third::Player>(&bytes_of(&first_player())).unwrap(), third_player());
    let items = vec![second::Item::Lamp { oil: 7 }, second::Item::Medkit { uses: 1 }];
    let player = second::Player { health: 1, items: items.try_into().unwrap(), coins: 2 };
    let read = envelope::read::<third::Player>(&bytes_of(&player)).unwrap();
    assert_eq!(*read.items, [third::Item::Lamp { oil: 7 }, third::Item::Medkit { uses: 1, sterile: true }]);
    assert_eq!((read.gold, read.stamina), (2, 20));
}

#[test]
fn an_older_program_refuses_newer_bytes_by_name() {
    let bytes = bytes_of(&third_player());
    check_refused::<first::Player>(&bytes, "test.player", Fault::NewerVersion { got: 3, known: 1 });
    let items = second::Player { health: 1, items: vec![second::Item::Rope].try_into().unwrap(), coins: 2 };
    check_refused::<first::Player>(&bytes_of(&items), "Item", Fault::NewerVersion { got: 2, known: 1 });
}

#[test]
fn a_change_without_a_new_version_is_found_out() {
    let bytes = bytes_of(&first_player());
    check_refused::<careless::Player>(&bytes, "test.player", Fault::LayoutChanged { version: 1 });
}

#[test]
fn a_variant_newer_than_the_bytes_is_none_of_theirs() {
    let mut bytes = bytes_of(&first_player());
    // The rope, before the two bytes of 1,000 coins, becomes a lamp.
    let rope = bytes.len() - 3;
    assert_eq!(bytes[rope], 1);
    bytes[rope] = 2;
    check_refused::<third::Player>(&bytes, "Item", Fault::UnknownVariant { got: 2 });
}

#[test]
fn limits_may_change_without_a_new_version() {
    let full = first::Player { health: 100, ..first_player() };
    assert_eq!(envelope::read::<third::Player>(&bytes_of(&full)).unwrap().health, 100);
    assert_ne!(first::Player::SCHEMA.hash(), second::Player::SCHEMA.hash());
}

#[test]
fn a_list_may_be_held_in_place_without_a_new_version() {
    let read = envelope::read::<in_place::Player>(&bytes_of(&first_player())).unwrap();
    assert_eq!(*read.items, *first_player().items);
    assert_eq!(
        (bytes_of(&read), in_place::Player::SCHEMA.hash()),
        (bytes_of(&first_player()), first::Player::SCHEMA.hash())
    );
}

#[test]
fn schemas_are_printed_and_list_their_parts() {
    let printed: Vec<String> = third::Player::schema().parts().iter().map(ToString::to_string).collect();
    let expect = [
        "test.player 3\n  name: text 12 since 2\n  health: u8 0..=200\n  pet: option of Pet since 3\n  \
         items: list 8 of Item\n  coins: u32\n  stamina: i16 5..=32767 since 2",
        "Pet 2\n  0: u8 since 2",
        "Item 3\n  0 Medkit\n    uses: u8\n    sterile: bool since 3\n  1 Rope\n  2 Lamp since 2\n    oil: u16",
    ];
    assert_eq!(printed, expect);
}
