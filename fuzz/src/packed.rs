//! Packed: a type with a field of every kind that can be packed, as a save or a transfer would be.

use throng_pack::{List, Pack, Text};

/// A traveller and an item: what they had at first, and what each has had since.
macro_rules! versions {
    (
        Traveller = $traveller:tt, since: { $($field:tt)* };
        Item = $item:tt, since: { $($variant:tt)* }, in Weapon: { $($of_weapon:tt)* };
    ) => {
        #[derive(Clone, Debug, PartialEq, Pack)]
        #[pack(name = "fuzz.traveller", version = $traveller)]
        pub struct Traveller {
            pub name: Text<24>,
            #[pack(max = 100)]
            pub health: u8,
            #[pack(min = -512.0, max = 512.0)]
            pub place: [f32; 3],
            pub exact: Option<f64>,
            pub items: List<Item, 64>,
            pub notes: List<Text<12>, 4>,
            #[pack(min = -7)]
            pub scores: List<Option<i32>, 5>,
            pub bags: List<List<u16, 9>, 300>,
            pub known: bool,
            #[pack(fixed)]
            pub seeds: [u64; 2],
            #[pack(via = u32)]
            pub even: Even,
            $($field)*
        }

        #[derive(Clone, Debug, PartialEq, Pack)]
        #[pack(name = "fuzz.item", version = $item)]
        pub enum Item {
            Medkit,
            Weapon {
                #[pack(min = 1, max = 7)]
                kind: u16,
                rounds: Option<i16>,
                $($of_weapon)*
            },
            $($variant)*
        }
    };
}

versions! {
    Traveller = 2, since: { #[pack(since = 2, default = i64::MIN)] pub since: i64 };
    Item = 3, since: { #[pack(since = 2)] Coins(u32, i8) }, in Weapon: { #[pack(since = 3, default)] seed: u64 };
}

/// What a program may refuse on its own.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Even(u32);

impl From<Even> for u32 {
    fn from(even: Even) -> Self {
        even.0
    }
}

impl TryFrom<u32> for Even {
    type Error = u32;

    fn try_from(number: u32) -> Result<Self, u32> {
        if number.is_multiple_of(2) { Ok(Self(number)) } else { Err(number) }
    }
}

/// The same types as they were at first, to make bytes of that version.
pub mod first {
    use super::{Even, List, Pack, Text};

    versions! {
        Traveller = 1, since: {};
        Item = 1, since: {}, in Weapon: {};
    }
}

/// A list of `values`.
///
/// # Panics
/// If they are too many.
pub fn list<T: std::fmt::Debug, const N: usize>(values: Vec<T>) -> List<T, N> {
    List::try_from(values).expect("a list within its maximum")
}
