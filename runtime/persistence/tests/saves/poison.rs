//! R12, saves: a number that is none, or out of its range, is refused where it is saved, and nothing of its commit is stored;
//! and where it is loaded, in any field, whatever the checksum says.

use std::sync::Arc;

use throng_pack::{List, Pack, envelope};
use throng_persistence::{Commit, Embedded, Key, Writer, WriterSettings, disk::MemoryDisk, versions::Versions};
use throng_platform::clock::ManualClock;

/// Every kind of number that a record may have, whole ones of full size, so that each can be written over in its place.
#[derive(Clone, Debug, PartialEq, Pack)]
#[pack(name = "test.pose")]
struct Pose {
    x: f32,
    #[pack(min = -100.0, max = 100.0)]
    y: f32,
    far: f64,
    #[pack(min = 0.0, max = 1.0)]
    share: f64,
    #[pack(fixed, max = 1_000)]
    health: u32,
    #[pack(fixed, min = -5, max = 5)]
    mood: i16,
    path: List<f32, 4>,
}

fn sound() -> Pose {
    let path = vec![1.0, 2.0].try_into().expect("two of four");
    Pose { x: 1.5, y: -7.25, far: 1e9, share: 0.5, health: 77, mood: -3, path }
}

const SINGLES: [f32; 14] = [
    f32::NAN,
    -f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::MAX,
    f32::MIN,
    f32::MIN_POSITIVE / 2.0,
    -f32::MIN_POSITIVE / 2.0,
    -0.0,
    2_147_483_648.0,
    -2_147_483_649.0,
    9_007_199_254_740_992.0,
    1e30,
    -1e30,
];

/// Where each field lies in the packed value: offset, and how many bytes.
const FIELDS: [(&str, usize, usize); 8] = [
    ("x", 0, 4),
    ("y", 4, 4),
    ("far", 8, 8),
    ("share", 16, 8),
    ("health", 24, 4),
    ("mood", 28, 2),
    // After the list's count.
    ("path.0", 31, 4),
    ("path.1", 35, 4),
];

fn poisons(width: usize) -> Vec<Vec<u8>> {
    match width {
        2 => [i16::MIN, i16::MAX, 6, -6].map(|number| number.to_le_bytes().to_vec()).into(),
        // As whole numbers they are far out of any range here.
        4 => {
            let patterns = [0x7f80_0001_u32, 0xffff_ffff, u32::MAX / 2, 0x8000_0000];
            let singles = SINGLES.iter().map(|number| number.to_le_bytes().to_vec());
            singles.chain(patterns.map(|bits| bits.to_le_bytes().to_vec())).collect()
        }
        _ => SINGLES
            .iter()
            .map(|number| f64::from(*number))
            .chain([f64::MAX, f64::MIN, 5e-324])
            .map(|number| number.to_le_bytes().to_vec())
            .collect(),
    }
}

#[test]
fn r12_poison_in_any_field_is_refused_where_a_record_is_loaded() {
    let mut bytes = Vec::new();
    envelope::write(&sound(), &mut bytes).unwrap();
    let value_at = bytes.len() - 39;
    let poses = Versions::<Pose>::new();
    assert_eq!(poses.read(&bytes), Ok(sound()));
    let (mut refused, mut harmless) = (0, 0);
    for (field, at, width) in FIELDS {
        for poison in poisons(width) {
            let mut poisoned = bytes.clone();
            poisoned[value_at + at..value_at + at + width].copy_from_slice(&poison);
            match poses.read(&poisoned) {
                Err(_) => refused += 1,
                Ok(pose) => {
                    harmless += 1;
                    let numbers = [f64::from(pose.x), f64::from(pose.y), pose.far, pose.share];
                    let path = pose.path.iter().map(|number| f64::from(*number));
                    assert!(numbers.into_iter().chain(path).all(f64::is_finite), "{field}: {pose:?}");
                    assert!(
                        (-100.0..=100.0).contains(&pose.y) && (0.0..=1.0).contains(&pose.share),
                        "{field}: {pose:?}"
                    );
                    assert!(pose.health <= 1_000 && (-5..=5).contains(&pose.mood), "{field}: {pose:?}");
                }
            }
        }
    }
    println!("{refused} refused, {harmless} in range");
    // Of each field at least what is no number at all, or far out of its range.
    assert!(refused >= 8 * 4, "{refused}");
}

#[test]
fn r12_poison_is_refused_where_it_is_saved_and_nothing_of_it_is_stored() {
    let disk = MemoryDisk::default();
    let store = Box::new(Embedded::on(Box::new(disk)).unwrap());
    let mut writer = Writer::inline(store, WriterSettings::default(), Arc::new(ManualClock::new()));
    let mut refused = 0;
    for number in SINGLES.into_iter().filter(|number| !number.is_finite()) {
        let path = vec![number].try_into().expect("one of four");
        let doubles = f64::from(number);
        let poses = [
            Pose { x: number, ..sound() },
            Pose { y: number, ..sound() },
            Pose { far: doubles, ..sound() },
            Pose { share: doubles, ..sound() },
            Pose { path, ..sound() },
        ];
        for pose in poses {
            let mut commit = Commit::new();
            assert!(commit.put(Key::player(1), &pose).is_err(), "{pose:?}");
            writer.submit(commit).unwrap();
            refused += 1;
        }
    }
    for pose in [
        Pose { y: 100.5, ..sound() },
        Pose { share: -0.1, ..sound() },
        Pose { health: 1_001, ..sound() },
        Pose { mood: 6, ..sound() },
    ] {
        assert!(Commit::new().put(Key::player(1), &pose).is_err(), "{pose:?}");
    }
    let mut commit = Commit::new();
    commit.put(Key::player(2), &sound()).unwrap();
    writer.submit(commit).unwrap();
    while writer.take_ack().is_some() {}
    let mut stored = Vec::new();
    writer.reads().visit(&mut |key, _| stored.push(key)).unwrap();
    assert_eq!((stored, refused), (vec![Key::player(2)], 20));
}
