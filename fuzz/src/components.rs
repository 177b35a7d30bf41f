//! Components of every shape that can be replicated, and schemas with one and with two bytes of mask.

use std::{fmt::Debug, sync::Arc};

use throng_replication::{Reader, Replicas, Replicate, Schema, SchemaBuilder, Writer};

#[derive(Clone, Debug, PartialEq, Replicate)]
pub struct Pose {
    #[replicate(min = -150.0, max = 150.0, step = 0.02)]
    pub place: [f32; 3],
    #[replicate(angle, bits = 7)]
    pub heading: f32,
}

#[derive(Clone, Debug, PartialEq, Replicate)]
pub struct Health {
    #[replicate(bits = 10)]
    pub points: u16,
    pub shielded: bool,
}

#[derive(Copy, Clone, Debug, PartialEq, Replicate)]
pub enum Mood {
    Calm,
    Wary,
    Angry,
}

#[derive(Clone, Debug, PartialEq, Replicate)]
pub struct Temper {
    pub mood: Mood,
    #[replicate(min = 0.0, max = 1.0, step = 0.001)]
    pub patience: f32,
}

#[derive(Clone, Debug, PartialEq, Replicate)]
pub struct Purse {
    pub coins: u32,
    pub slots: u8,
}

macro_rules! small_components {
    ($($name:ident)*) => {$(
        #[derive(Clone, Debug, PartialEq, Replicate)]
        pub struct $name {
            #[replicate(bits = 5)]
            pub value: u8,
        }
    )*};
}
small_components!(A B C D E F);

/// Four kinds: masks of one byte.
pub fn small_schema() -> Arc<Schema> {
    four_kinds().build()
}

/// Ten kinds: masks of two bytes.
pub fn large_schema() -> Arc<Schema> {
    let kinds = four_kinds().component::<A>().component::<B>().component::<C>();
    kinds.component::<D>().component::<E>().component::<F>().build()
}

fn four_kinds() -> SchemaBuilder {
    SchemaBuilder::new().component::<Pose>().component::<Health>().component::<Temper>().component::<Purse>()
}

/// Asserts that whatever a client holds could have been sent: finite, in range, and the same when said again.
pub fn check_copies(replicas: &Replicas) {
    for (_, pose) in replicas.iter::<Pose>() {
        check_pose(pose);
        check_said_again(pose);
    }
    for (_, temper) in replicas.iter::<Temper>() {
        assert!((0.0..=1.0).contains(&temper.patience), "{temper:?}");
        check_said_again(temper);
    }
    for (_, health) in replicas.iter::<Health>() {
        assert!(health.points < 1 << 10, "{health:?}");
        check_said_again(health);
    }
    replicas.iter::<Purse>().for_each(|(_, purse)| check_said_again(purse));
    replicas.iter::<F>().for_each(|(_, small)| check_said_again(small));
}

/// Asserts that the exact encoding, too, gives no number that a game could not hold.
pub fn check_exact(bytes: &[u8]) {
    if let Ok(pose) = Pose::decode_exact(&mut Reader::new(bytes)) {
        assert!(pose.place.iter().chain([&pose.heading]).all(|number| number.is_finite()), "{pose:?}");
    }
    if let Ok(temper) = Temper::decode_exact(&mut Reader::new(bytes)) {
        assert!(temper.patience.is_finite(), "{temper:?}");
    }
}

fn check_pose(pose: &Pose) {
    // The ends of a range are reached to within half a step.
    assert!(pose.place.iter().all(|number| number.abs() <= 150.02), "{pose:?}");
    assert!(pose.heading.is_finite(), "{pose:?}");
}

fn check_said_again<T: Replicate + Debug + PartialEq>(value: &T) {
    let mut bytes = vec![0; T::BYTES_MAX];
    value.encode(&mut Writer::new(&mut bytes));
    let again = T::decode(&mut Reader::new(&bytes));
    assert_eq!(again.as_ref(), Ok(value));
}
