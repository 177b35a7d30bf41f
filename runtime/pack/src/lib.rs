//! Pack: typed values as bytes, with a schema and a version.
//!
//! What leaves a world (a player on the way to another world, a message between worlds, a save) must outlive the
//! process and the build that wrote it. So it is bytes that say what they are, and a reader that believes none of them.
//! `#[derive(Pack)]` turns a plain struct or enum into such a value:
//!
//! ```
//! use throng_pack::{Fault, List, Pack, Text, envelope};
//!
//! #[derive(Clone, Debug, PartialEq, Pack)]
//! #[pack(name = "example.traveller", version = 2)]
//! struct Traveller {
//!     name: Text<24>,
//!     #[pack(max = 100)]
//!     health: u8,
//!     #[pack(min = -3.2, max = 3.2)]
//!     facing: f32,
//!     items: List<Item, 32>,
//!     /// Bytes of version 1 do not have it.
//!     #[pack(since = 2, default = 30)]
//!     ammunition: u16,
//! }
//!
//! #[derive(Clone, Debug, PartialEq, Pack)]
//! enum Item {
//!     Medkit,
//!     Weapon { kind: u8, rounds: Option<u16> },
//! }
//!
//! let mut traveller = Traveller {
//!     name: Text::new("Ada").unwrap(),
//!     health: 80,
//!     facing: 1.5,
//!     items: List::try_from(vec![Item::Medkit, Item::Weapon { kind: 3, rounds: Some(12) }]).unwrap(),
//!     ammunition: 60,
//! };
//! let mut bytes = Vec::new();
//! envelope::write(&traveller, &mut bytes)?;
//! assert_eq!(envelope::read::<Traveller>(&bytes)?, traveller);
//!
//! traveller.health = 101;
//! let error = envelope::write(&traveller, &mut bytes).unwrap_err();
//! assert_eq!((error.type_name, error.field), ("example.traveller", "health"));
//! assert_eq!(error.fault, Fault::OutOfRange);
//! # Ok::<(), throng_pack::PackError>(())
//! ```
//!
//! ## What a field may be, and its bytes
//!
//! | type | bytes | |
//! | --- | --- | --- |
//! | `bool` | 1 | 0 or 1 |
//! | `u8`, `i8` | 1 | |
//! | `u16`, `u32`, `u64` | 1 to 3, 5, 10 | varint: 7 bits a byte, lowest first |
//! | `i16`, `i32`, `i64` | 1 to 3, 5, 10 | zigzag (0, -1, 1, -2, ..), then varint |
//! | the same with `#[pack(fixed)]` | 2, 4, 8 | little endian; for numbers that are large as a rule: hashes, seeds |
//! | `f32`, `f64` | 4, 8 | little endian; NaN and infinities are refused |
//! | `Text<N>` | 1 and the text's | at most `N` bytes of UTF-8 |
//! | `List<T, N>` | 1 or more and the values' | varint count, at most `N` values |
//! | `ArrayVec<T, N>` | the same | a list that is held in place and never allocates |
//! | `[T; N]` | the values' | |
//! | `Option<T>` | 1 and the value's | 0 or 1 |
//! | struct with `derive(Pack)` | the fields', in order | |
//! | enum with `derive(Pack)` | 1 and the variant's fields' | the variant's place in the enum |
//!
//! | attribute of a field | |
//! | --- | --- |
//! | `min = a`, `max = b` | every number in the field lies in `a..=b`; either may be left out |
//! | `fixed` | an integer, or an array of them, without varint |
//! | `since = v`, with `default` or `default = x` | not in bytes of versions before `v`; then it is `x` |
//! | `via = T` | goes as a `T`: `T: From<Field>` and `Field: TryFrom<T>`, whose refusal is the reader's |
//! | `name = ".."` | its name in the schema, so that it can be renamed in the program |
//!
//! A type takes `name = ".."` (its own name unless given) and `version = v` (1 unless given). A variant takes `name`
//! and `since`; newer variants stand after older ones.
//!
//! ## Promises
//!
//! - **Bounded.** Every packed type has a known largest size, [`Pack::BYTES_MAX`]: `String` and `Vec` are not packed,
//!   and a type that contains itself does not compile. So a queue of packed values has a known largest size too, and
//!   reading never recurses deeper than the types do.
//! - **Checked at both ends.** A value that breaks its limits is refused where it is packed, while its owner still has
//!   it, and again where it is unpacked.
//! - **Hostile bytes** give an error that names type and field. They never panic, and reserve no memory that they do
//!   not fill: a list's count is held against its maximum and against the bytes that are left.
//! - **One way to write a value.** What is unpacked and packed again at the same version gives the same bytes, so bytes
//!   can be compared and hashed in place of values.
//! - **Versions.** A new version adds fields and variants; bytes of older ones are read, and newer ones are refused by
//!   name. Limits may be changed without a new version, since they do not change how bytes are read: a value that is
//!   now outside is refused. Any other change under the same version is found out by the envelope ([`envelope`]). What
//!   needs more than a default (a field split in two, say) keeps the old type under its name and is read by
//!   [`envelope::Heading::version`].
//!
//! ## Envelope or not
//!
//! [`envelope`] puts 23 bytes in front that say type and version: for transfers and saves. Where both ends have
//! compared [`Schema::hash`] before, as a client and its server do when they meet, [`pack_body`] and [`unpack_body`] do
//! without.
//!
//! ## Cost
//!
//! Sans-IO: no clock, no socket, no thread. Packing into a reused buffer allocates nothing; unpacking allocates for
//! lists with something in them. Ids and hashes are computed by the compiler. A field costs a compare or two and a
//! copy of its bytes, so a traveller of 150 bytes in 40 fields is a sketch of 0.2 µs each way, and a thousand moves a
//! second are 0.04 % of a core. `cargo run --release -p throng-pack --example cost` says what it is.

mod bytes;
mod compile_fail;
mod compound;
#[doc(hidden)]
pub mod derived;
pub mod envelope;
mod error;
mod list;
mod number;
pub mod schema;
mod text;

pub use arrayvec::ArrayVec;
pub use bytes::{Reader, Writer};
pub use error::{Fault, PackError};
pub use list::List;
pub use number::{Number, Numbers, PackFixed};
pub use schema::{Kind, Schema};
pub use text::Text;
pub use throng_pack_derive::Pack;

/// A value that goes to bytes and back. Usually derived.
///
/// An implementation keeps these promises: `pack` appends `BYTES_MIN` to `BYTES_MAX` bytes or refuses the value;
/// `unpack` takes exactly the bytes that `pack` wrote, gives an equal value, and refuses bytes that `pack` never
/// writes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be packed",
    label = "not a type that goes to bytes and back",
    note = "add `#[derive(Pack)]` to your own types; use `Text<N>` for `String`, `List<T, N>` for `Vec<T>`, u64 for \
            usize; `#[pack(via = T)]` packs a field of another crate's type as a `T`"
)]
pub trait Pack: Sized {
    /// What it is made of, for schemas.
    const KIND: Kind;
    /// Fewest bytes of a value, in any version.
    const BYTES_MIN: usize;
    /// Most bytes of a value.
    const BYTES_MAX: usize;

    /// Appends the value. After an error, what was appended is of no use.
    fn pack(&self, out: &mut Writer<'_>) -> Result<(), PackError>;

    /// Reads a value; `from` stands behind it afterwards, or anywhere after an error.
    fn unpack(from: &mut Reader<'_>) -> Result<Self, PackError>;
}

/// A named, versioned type: what `#[derive(Pack)]` makes of a struct or an enum.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no name and version of its own",
    label = "only structs and enums with `#[derive(Pack)]` have a schema",
    note = "put the value into a struct that derives `Pack`"
)]
pub trait HasSchema: Pack {
    const SCHEMA: &'static Schema;

    /// Name, version, fields, kinds and limits, to print, compare and export.
    fn schema() -> &'static Schema {
        Self::SCHEMA
    }
}

/// Appends the value alone, for a reader that is known to have the same [`Schema::hash`].
///
/// After an error `out` is as it was.
pub fn pack_body<T: Pack>(value: &T, out: &mut Vec<u8>) -> Result<(), PackError> {
    let start = out.len();
    let packed = value.pack(&mut Writer::new(out));
    if packed.is_err() {
        out.truncate(start);
    }
    packed
}

/// The value that [`pack_body`] wrote; bytes after it are refused.
pub fn unpack_body<T: Pack>(bytes: &[u8]) -> Result<T, PackError> {
    let mut from = Reader::new(bytes);
    let value = T::unpack(&mut from)?;
    from.end()?;
    Ok(value)
}
