//! Values of every shape that can be packed, and how they are made up.

use proptest::{collection::vec, option, prelude::*};
use throng_pack::{List, Pack, Text};

pub const HEALTH_MAX: u8 = 100;

/// A field of every kind, in the second version of its type.
#[derive(Clone, Debug, PartialEq, Pack)]
#[pack(name = "test.everything", version = 2)]
pub struct Everything {
    pub flag: bool,
    pub small: Smalls,
    pub numbers: Numbers,
    pub place: Place,
    pub name: Text<24>,
    pub path: List<Place, 8>,
    pub names: List<Text<5>, 3>,
    pub nested: List<List<u8, 3>, 300>,
    pub item: Option<Item>,
    pub items: List<Item, 16>,
    #[pack(via = [f32; 2], min = -1.0)]
    pub facing: Facing,
    #[pack(since = 2, default = Item::Letter(Text::new("old").unwrap()))]
    pub newest: Item,
}

#[derive(Clone, Debug, PartialEq, Pack)]
pub struct Numbers {
    #[pack(max = HEALTH_MAX)]
    pub ranged: u8,
    pub a: i8,
    pub b: u16,
    pub c: i16,
    pub d: u32,
    #[pack(min = -1_000, max = 1_000)]
    pub e: i32,
    pub f: u64,
    pub g: i64,
    #[pack(fixed)]
    pub seed: u64,
    #[pack(fixed, max = 1_000)]
    pub key: [i16; 2],
    #[pack(min = 3)]
    pub rolls: List<Option<u32>, 4>,
    pub exact: f64,
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Pack)]
pub struct Place(#[pack(min = -500.0, max = 500.0)] pub [f32; 3]);

#[derive(Copy, Clone, Debug, PartialEq, Pack)]
pub struct Small;

/// No bytes at all.
#[derive(Copy, Clone, Debug, PartialEq, Pack)]
pub struct Smalls(pub Small, pub [Small; 2]);

#[derive(Clone, Debug, PartialEq, Pack)]
#[pack(version = 3)]
pub enum Item {
    Medkit,
    Weapon {
        #[pack(max = 7)]
        kind: u8,
        rounds: Option<u16>,
        #[pack(since = 2, default)]
        seed: u32,
    },
    Letter(Text<200>),
    #[pack(since = 3)]
    Coins(u64),
}

/// A type that knows nothing of packing, and takes only what has a length.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Facing {
    pub x: f32,
    pub z: f32,
}

impl From<Facing> for [f32; 2] {
    fn from(facing: Facing) -> Self {
        [facing.x, facing.z]
    }
}

impl TryFrom<[f32; 2]> for Facing {
    type Error = &'static str;

    fn try_from([x, z]: [f32; 2]) -> Result<Self, Self::Error> {
        if [x, z] == [0.0, 0.0] { Err("it faces nowhere") } else { Ok(Self { x, z }) }
    }
}

/// One value with something in every field.
pub fn example() -> Everything {
    Everything {
        flag: true,
        small: Smalls(Small, [Small; 2]),
        numbers: Numbers {
            ranged: 100,
            a: -1,
            b: 300,
            c: -300,
            d: 70_000,
            e: -1_000,
            f: u64::MAX,
            g: i64::MIN,
            seed: 0x0123_4567_89AB_CDEF,
            key: [-2, 1_000],
            rolls: list(vec![Some(3), None]),
            exact: 0.1,
        },
        place: Place([1.0, -2.5, 500.0]),
        name: Text::new("Ada").unwrap(),
        path: list(vec![Place([0.0; 3]), Place([-500.0; 3])]),
        names: list(vec![Text::new("").unwrap(), Text::new("Fluß").unwrap()]),
        nested: list(vec![list(vec![]), list(vec![1, 2, 3])]),
        item: Some(Item::Medkit),
        items: list(vec![Item::Weapon { kind: 7, rounds: Some(1), seed: 9 }, Item::Letter(Text::new("x").unwrap())]),
        facing: Facing { x: 0.6, z: -0.8 },
        newest: Item::Coins(1_000),
    }
}

/// # Panics
/// If they are too many.
pub fn list<T: std::fmt::Debug, const N: usize>(values: Vec<T>) -> List<T, N> {
    List::try_from(values).expect("a list within its maximum")
}

pub fn everything() -> impl Strategy<Value = Everything> {
    let simple = (any::<bool>(), numbers(), place(), text::<24>());
    let lists = (
        vec(place(), 0..=8),
        vec(text::<5>(), 0..=3),
        vec(vec(any::<u8>(), 0..=3).prop_map(list::<u8, 3>), 0..=300),
        vec(item(), 0..=16),
    );
    let rest = (option::of(item()), (-1.0_f32..9.0, 0.01_f32..9.0), item());
    (simple, lists, rest).prop_map(
        |((flag, numbers, place, name), (path, names, nested, items), (item, facing, newest))| Everything {
            flag,
            small: Smalls(Small, [Small; 2]),
            numbers,
            place,
            name,
            path: list(path),
            names: list(names),
            nested: list(nested),
            item,
            items: list(items),
            facing: Facing { x: facing.0, z: facing.1 },
            newest,
        },
    )
}

fn numbers() -> impl Strategy<Value = Numbers> {
    let small = (0..=HEALTH_MAX, any::<i8>(), any::<u16>(), any::<i16>());
    let large = (any::<u32>(), -1_000..=1_000, any::<u64>(), any::<i64>(), any::<u64>());
    let rest = (
        [i16::MIN..=1_000, -1_i16..=1_000],
        vec(option::of(3_u32..), 0..=4),
        any::<f64>().prop_filter("finite", |number| number.is_finite()),
    );
    (small, large, rest).prop_map(|((ranged, a, b, c), (d, e, f, g, seed), (key, rolls, exact))| Numbers {
        ranged,
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        seed,
        key,
        rolls: list(rolls),
        exact,
    })
}

fn place() -> impl Strategy<Value = Place> {
    [-500.0..=500.0_f32, -500.0..=500.0, -500.0..=500.0].prop_map(Place)
}

fn text<const N: usize>() -> impl Strategy<Value = Text<N>> {
    vec(any::<char>(), 0..=N).prop_map(|characters| {
        let mut text = String::new();
        for character in characters {
            if text.len() + character.len_utf8() <= N {
                text.push(character);
            }
        }
        Text::new(&text).expect("it fits")
    })
}

fn item() -> impl Strategy<Value = Item> {
    prop_oneof![
        Just(Item::Medkit),
        (0..=7_u8, option::of(any::<u16>()), any::<u32>()).prop_map(|(kind, rounds, seed)| Item::Weapon {
            kind,
            rounds,
            seed
        }),
        text().prop_map(Item::Letter),
        any::<u64>().prop_map(Item::Coins),
    ]
}
