//! Field: what a type must offer to be a field of a replicated component or event.
//!
//! A component is whole bytes, a field is bits: a struct that derives `Replicate` offers both, so it can be a component
//! and a field of one. What stands here is for fields that need no attribute; numbers with a range are packed by
//! `quantise`, as the derive writes it.

use crate::wire::{
    bytes::{DecodeError, Reader, Writer},
    link::EntityLink,
    quantise::{Bits, mix},
    replicate::ReplicateBits,
    shape::FieldShape,
};

/// A value that can be a field of a replicated component. Derived with `Replicate`; also of integers, `bool`,
/// [`Text`](crate::Text), [`NetId`](crate::NetId) and [`EntityLink`]; `Option`s and lists are the derive's part.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a replicated component",
    label = "not a type that `#[derive(Replicate)]` knows how to pack",
    note = "fields may be f32, [f32; N], Vec2, Vec3 (with min, max and step, or angle and bits, or exact), bool, u8, u16, \
            u32, i8, i16, i32, Text<N>, NetId, EntityLink, a type that derives Replicate, and Option<T>, List<T, N> and \
            ArrayVec<T, N> of these"
)]
pub trait ReplicateField: Sized {
    /// Most bits of the quantised encoding.
    const BITS_MAX: u32;
    /// Most bits of the exact encoding.
    const EXACT_BITS_MAX: u32;
    /// Its part in the layout of what it is a field of.
    const LAYOUT: u64;
    /// Whether it may hold an [`EntityLink`].
    const LINKS: bool = false;

    fn encode_field(&self, out: &mut Writer<'_>);
    fn decode_field(from: &mut Reader<'_>) -> Result<Self, DecodeError>;
    fn encode_field_exact(&self, out: &mut Writer<'_>);
    fn decode_field_exact(from: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// Whether `self`, which came through the quantised encoding, is what `exact` rounds to.
    fn field_agrees(&self, exact: &Self) -> bool;

    /// Shows every link in it.
    fn visit_links(&mut self, _visit: &mut dyn FnMut(&mut EntityLink)) {}

    /// What it is made of.
    fn shape() -> FieldShape {
        FieldShape::Unsaid
    }
}

impl<T: ReplicateBits> ReplicateField for T {
    const BITS_MAX: u32 = T::BITS;
    const EXACT_BITS_MAX: u32 = T::BITS;
    const LAYOUT: u64 = <T as ReplicateBits>::LAYOUT;

    #[inline]
    fn encode_field(&self, out: &mut Writer<'_>) {
        const { Bits::new(T::BITS) }.encode(self, out);
    }

    #[inline]
    fn decode_field(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        const { Bits::new(T::BITS) }.decode(from)
    }

    #[inline]
    fn encode_field_exact(&self, out: &mut Writer<'_>) {
        self.encode_field(out);
    }

    #[inline]
    fn decode_field_exact(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode_field(from)
    }

    #[inline]
    fn field_agrees(&self, exact: &Self) -> bool {
        self.to_code() == exact.to_code()
    }

    fn shape() -> FieldShape {
        T::shape_in(T::BITS)
    }
}

/// The largest of some numbers of bits.
pub const fn most(bits: &[u32]) -> u32 {
    let (mut most, mut index) = (0, 0);
    while index < bits.len() {
        if bits[index] > most {
            most = bits[index];
        }
        index += 1;
    }
    most
}

/// Folds names, and where each ends, into a layout.
pub const fn mix_names(layout: u64, names: &[&str]) -> u64 {
    let (mut layout, mut index) = (layout, 0);
    while index < names.len() {
        let (name, mut at) = (names[index].as_bytes(), 0);
        while at < name.len() {
            layout = mix(layout, name[at] as u64);
            at += 1;
        }
        layout = mix(layout, u64::MAX);
        index += 1;
    }
    layout
}
