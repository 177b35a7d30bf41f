//! Shape: what a field is made of, as a value that can be shown and exported.
//!
//! Codecs are compiled, so that nobody looks at a description while a message is read. This is the same once more for
//! those who are not compiled with it: a client in another language reads by it (`throng-typescript`).
//!
//! ```
//! use throng_replication::{FieldShape, Replicate};
//!
//! #[derive(Clone, Replicate)]
//! struct Pose {
//!     #[replicate(angle, bits = 7)]
//!     heading: f32,
//! }
//! let heading = ("heading", FieldShape::Angle { bits: 7 });
//! assert_eq!(Pose::shape(), FieldShape::Struct { name: "Pose", fields: vec![heading] });
//! ```
//!
//! Made anew by each call, and allocates; asked for at an export only.

/// What a field, a component or an event is made of. The bits of each are drawn in `docs/spec/replication.md`, "Fields".
#[derive(Debug, Clone, PartialEq)]
pub enum FieldShape {
    /// An f32 in a range, in steps.
    Range {
        min: f64,
        max: f64,
        step: f64,
    },
    /// An f32 that wraps at a whole turn, in `2^bits` directions.
    Angle {
        bits: u32,
    },
    /// An f32 in all its bits.
    Exact,
    /// So many f32 of one sort.
    Numbers {
        count: usize,
        of: Box<FieldShape>,
    },
    /// `bits` are sent, and 1 in an audit sample.
    Bool {
        bits: u32,
    },
    /// An integer without sign: `bits` are sent, and `full` in an audit sample.
    Unsigned {
        bits: u32,
        full: u32,
    },
    /// The same, with sign: zigzag.
    Signed {
        bits: u32,
        full: u32,
    },
    /// An integer as its distance from `min`; in an audit sample as the two above.
    Integer {
        min: i64,
        max: i64,
        is_signed: bool,
        full: u32,
    },
    /// An enum without fields.
    Choice {
        name: &'static str,
        bits: u32,
        variants: &'static [&'static str],
    },
    /// An [`EntityLink`](crate::EntityLink).
    Link,
    /// A [`NetId`](crate::NetId).
    Id,
    Text {
        bytes_max: usize,
    },
    Option(Box<FieldShape>),
    List {
        count_max: u32,
        of: Box<FieldShape>,
    },
    /// Fields in order; those of tuples are named `0`, `1`, ..
    Struct {
        name: &'static str,
        fields: Vec<(&'static str, FieldShape)>,
    },
    /// An enum of which some variants have fields.
    Enum {
        name: &'static str,
        variants: Vec<(&'static str, Vec<(&'static str, FieldShape)>)>,
    },
    /// A codec that was written by hand and does not say what it is.
    Unsaid,
}
