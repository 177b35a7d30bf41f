//! What packing and unpacking a traveller costs, for the sketch in the crate's documentation.
//!
//! ```sh
//! cargo run --release -p throng-pack --example cost
//! ```

use std::{hint::black_box, time::Instant};

use throng_pack::{List, Pack, PackError, Text, envelope};

const ROUNDS: u32 = 200_000;

#[derive(Clone, Pack)]
struct Traveller {
    name: Text<24>,
    #[pack(max = 100)]
    health: u8,
    #[pack(min = -512.0, max = 512.0)]
    place: [f32; 3],
    items: List<Item, 64>,
    ammunition: u16,
    #[pack(fixed)]
    passport: u64,
}

#[derive(Clone, Debug, Pack)]
enum Item {
    Medkit { uses: u8 },
    Weapon { kind: u16, rounds: Option<u16>, seed: u32 },
}

fn main() -> Result<(), PackError> {
    let items = (0..24).map(|number| match number % 3 {
        0 => Item::Medkit { uses: 2 },
        _ => Item::Weapon { kind: number * 10, rounds: Some(30), seed: 70_000 },
    });
    let traveller = Traveller {
        name: Text::new("a traveller").expect("short"),
        health: 80,
        place: [1.0, 2.0, 3.0],
        items: List::try_from(items.collect::<Vec<_>>()).expect("below 64"),
        ammunition: 120,
        passport: u64::MAX,
    };
    let mut out = Vec::new();
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        out.clear();
        envelope::write(black_box(&traveller), &mut out)?;
    }
    let pack_ns = begin.elapsed().as_nanos() / u128::from(ROUNDS);
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        black_box(envelope::read::<Traveller>(black_box(&out))?);
    }
    let unpack_ns = begin.elapsed().as_nanos() / u128::from(ROUNDS);
    println!("{} bytes, 24 items: pack {pack_ns} ns, unpack {unpack_ns} ns", out.len());
    Ok(())
}
