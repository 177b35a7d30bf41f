//! Quantise: numbers to codes of a few bits and back. The derived codecs are made of these.
//!
//! A range is cut into steps and a value is rounded to the nearest, so the copy is at most half a step off.
//! Arithmetic is in f64: an f32 has 24 bits of mantissa, and a 1 km range at 1 mm needs 20 of them for the
//! code alone. Everything is total: NaN and infinities become the lower end and are marked as poison,
//! values outside the range become its nearer end and are marked as clamped.
//!
//! Runs once per changed component and tick, never per client. About 2 ns per number.

use std::f64::consts::TAU;

use crate::wire::{
    bytes::{DecodeError, Reader, Writer},
    replicate::{ReplicateBits, ReplicateInteger},
    shape::FieldShape,
};

/// A range of numbers and how finely it is cut. Made by the derive, as a constant.
#[derive(Copy, Clone, Debug)]
pub struct Range {
    min: f64,
    max: f64,
    step: f64,
    code_max: u32,
    bits: u32,
}

impl Range {
    /// `min < max`, `step > 0`, at most 2^32 - 1 steps; anything else does not compile.
    pub const fn new(min: f64, max: f64, step: f64) -> Self {
        assert!(min < max, "min must be below max");
        assert!(step > 0.0, "step must be above 0");
        let steps = (max - min) / step;
        assert!(steps <= 4_000_000_000.0, "more than 4e9 steps: widen the step or narrow the range");
        // Rounded up so that `max` itself is within half a step of a code; the small term forgives
        // 512 / 0.01 being 51,200.000000000001.
        let whole = steps as u32;
        let code_max = if steps - whole as f64 > 1e-6 { whole + 1 } else { whole };
        Self { min, max, step, code_max, bits: u32::BITS - code_max.leading_zeros() }
    }

    /// Bits of one code.
    pub const fn bits(&self) -> u32 {
        self.bits
    }

    /// A number that differs for another range or step.
    pub const fn fingerprint(&self) -> u64 {
        mix(mix(mix(1, self.min.to_bits()), self.max.to_bits()), self.step.to_bits())
    }

    /// What a number in it is made of.
    pub fn shape(&self) -> FieldShape {
        FieldShape::Range { min: self.min, max: self.max, step: self.step }
    }

    #[inline]
    pub fn encode(&self, value: f32, out: &mut Writer<'_>) {
        let value = self.hold(value, out);
        let code = ((value - self.min) / self.step + 0.5) as u32;
        out.bits(code.min(self.code_max), self.bits);
    }

    #[inline]
    pub fn decode(&self, from: &mut Reader<'_>) -> Result<f32, DecodeError> {
        let code = from.bits(self.bits)?;
        if code > self.code_max {
            return Err(DecodeError::OutOfRange);
        }
        Ok((self.min + f64::from(code) * self.step).min(self.max) as f32)
    }

    /// The exact number, poison apart.
    #[inline]
    pub fn encode_exact(&self, value: f32, out: &mut Writer<'_>) {
        if value.is_finite() {
            out.f32(value);
        } else {
            out.mark_poisoned();
            out.f32(self.min as f32);
        }
    }

    /// Whether `copy`, which was decoded, is what `exact` rounds to. The margin is what f32 itself loses.
    #[inline]
    pub fn agrees(&self, copy: f32, exact: f32) -> bool {
        let exact = f64::from(exact).clamp(self.min, self.max);
        let margin = self.min.abs().max(self.max.abs()) * f64::from(f32::EPSILON);
        (f64::from(copy) - exact).abs() <= self.step * 0.5 + margin
    }

    #[inline]
    fn hold(&self, value: f32, out: &mut Writer<'_>) -> f64 {
        if !value.is_finite() {
            out.mark_poisoned();
            return self.min;
        }
        let value = f64::from(value);
        if value < self.min || value > self.max {
            out.mark_clamped();
        }
        value.clamp(self.min, self.max)
    }
}

/// An angle in radians that wraps, in `2^bits` directions. Decoded angles are in [0, 2 pi).
#[derive(Copy, Clone, Debug)]
pub struct Angle {
    bits: u32,
}

impl Angle {
    /// [bits: 1 to 24]
    pub const fn new(bits: u32) -> Self {
        assert!(bits >= 1 && bits <= 24, "an angle takes 1 to 24 bits");
        Self { bits }
    }

    pub const fn bits(&self) -> u32 {
        self.bits
    }

    pub const fn fingerprint(&self) -> u64 {
        mix(2, self.bits as u64)
    }

    pub fn shape(&self) -> FieldShape {
        FieldShape::Angle { bits: self.bits }
    }

    #[inline]
    pub fn encode(&self, value: f32, out: &mut Writer<'_>) {
        if !value.is_finite() {
            out.mark_poisoned();
        }
        let turns = if value.is_finite() { f64::from(value) / TAU } else { 0.0 };
        let code = ((turns - turns.floor()) * f64::from(1_u32 << self.bits) + 0.5) as u32;
        out.bits(code & ((1 << self.bits) - 1), self.bits);
    }

    #[inline]
    pub fn decode(&self, from: &mut Reader<'_>) -> Result<f32, DecodeError> {
        Ok((f64::from(from.bits(self.bits)?) * TAU / f64::from(1_u32 << self.bits)) as f32)
    }

    #[inline]
    pub fn encode_exact(&self, value: f32, out: &mut Writer<'_>) {
        out.f32(value);
    }

    #[inline]
    pub fn agrees(&self, copy: f32, exact: f32) -> bool {
        let turns = (f64::from(copy) - f64::from(exact)) / TAU;
        let apart = (turns - turns.round()).abs();
        let margin = f64::from(f32::EPSILON) * (1.0 + f64::from(exact).abs() / TAU);
        apart <= 0.5 / f64::from(1_u32 << self.bits) + margin
    }
}

/// A number in all its 32 bits.
#[derive(Copy, Clone, Debug)]
pub struct Exact;

impl Exact {
    pub const fn bits(&self) -> u32 {
        32
    }

    pub const fn fingerprint(&self) -> u64 {
        mix(4, 32)
    }

    pub fn shape(&self) -> FieldShape {
        FieldShape::Exact
    }

    #[inline]
    pub fn encode(&self, value: f32, out: &mut Writer<'_>) {
        out.f32(value);
    }

    #[inline]
    pub fn decode(&self, from: &mut Reader<'_>) -> Result<f32, DecodeError> {
        from.f32()
    }

    #[inline]
    pub fn encode_exact(&self, value: f32, out: &mut Writer<'_>) {
        out.f32(value);
    }

    #[inline]
    pub fn agrees(&self, copy: f32, exact: f32) -> bool {
        copy == exact
    }
}

/// A range of whole numbers, each sent as its distance from the lower end. What is outside becomes the nearer end.
#[derive(Copy, Clone, Debug)]
pub struct Whole {
    min: i64,
    max: i64,
    bits: u32,
}

impl Whole {
    /// `min < max`, both of which are values of `T`; anything else does not compile.
    pub const fn new<T: ReplicateInteger>(min: i64, max: i64) -> Self {
        assert!(min < max, "min must be below max");
        assert!(T::MIN <= min && max <= T::MAX, "the range is wider than the field's type");
        Self { min, max, bits: u64::BITS - ((max - min) as u64).leading_zeros() }
    }

    pub const fn bits(&self) -> u32 {
        self.bits
    }

    pub const fn fingerprint(&self) -> u64 {
        mix(mix(9, self.min as u64), self.max as u64)
    }

    pub fn shape<T: ReplicateInteger>(&self) -> FieldShape {
        FieldShape::Integer { min: self.min, max: self.max, is_signed: T::MIN < 0, full: T::BITS }
    }

    #[inline]
    pub fn encode<T: ReplicateInteger>(&self, value: T, out: &mut Writer<'_>) {
        let value: i64 = value.into();
        let held = value.clamp(self.min, self.max);
        if held != value {
            out.mark_clamped();
        }
        out.bits((held - self.min) as u32, self.bits);
    }

    #[inline]
    pub fn decode<T: ReplicateInteger>(&self, from: &mut Reader<'_>) -> Result<T, DecodeError> {
        let value = self.min + i64::from(from.bits(self.bits)?);
        if value > self.max {
            return Err(DecodeError::OutOfRange);
        }
        T::try_from(value).map_err(|_| DecodeError::OutOfRange)
    }

    #[inline]
    pub fn agrees<T: ReplicateInteger>(&self, copy: T, exact: T) -> bool {
        let (copy, exact): (i64, i64) = (copy.into(), exact.into());
        copy == exact.clamp(self.min, self.max)
    }
}

/// A `bool`, an integer or an enum in `bits` bits. What does not fit becomes the nearest that does.
#[derive(Copy, Clone, Debug)]
pub struct Bits {
    bits: u32,
}

impl Bits {
    /// [bits: 1 to 32]
    pub const fn new(bits: u32) -> Self {
        assert!(bits >= 1 && bits <= 32, "an integer takes 1 to 32 bits");
        Self { bits }
    }

    pub const fn bits(&self) -> u32 {
        self.bits
    }

    pub const fn fingerprint(&self) -> u64 {
        mix(3, self.bits as u64)
    }

    #[inline]
    pub fn encode<T: ReplicateBits>(&self, value: &T, out: &mut Writer<'_>) {
        let held = value.code_within(self.bits);
        if held != value.to_code() {
            out.mark_clamped();
        }
        out.bits(held, self.bits);
    }

    #[inline]
    pub fn decode<T: ReplicateBits>(&self, from: &mut Reader<'_>) -> Result<T, DecodeError> {
        T::from_code(from.bits(self.bits)?)
    }

    #[inline]
    pub fn agrees<T: ReplicateBits>(&self, copy: &T, exact: &T) -> bool {
        copy.to_code() == exact.code_within(self.bits)
    }
}

/// Folds `value` into a hash: FNV-1a over 64-bit words, usable in constants.
pub const fn mix(hash: u64, value: u64) -> u64 {
    let folded = (hash ^ 0xCBF2_9CE4_8422_2325 ^ value).wrapping_mul(0x0000_0100_0000_01B3);
    folded ^ (folded >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRES: Range = Range::new(-256.0, 256.0, 0.01);

    fn through(range: &Range, value: f32) -> (f32, bool, bool) {
        let mut bytes = [0; 8];
        let mut out = Writer::new(&mut bytes);
        range.encode(value, &mut out);
        out.align();
        let (poisoned, clamped) = (out.poisoned(), out.clamped());
        (range.decode(&mut Reader::new(&bytes)).unwrap(), poisoned, clamped)
    }

    #[test]
    fn bits_follow_from_range_and_step() {
        assert_eq!(METRES.bits(), 16);
        assert_eq!(Range::new(0.0, 1.0, 1.0).bits(), 1);
        assert_eq!(Range::new(0.0, 100.0, 0.5).bits(), 8);
    }

    #[test]
    fn a_copy_is_within_half_a_step() {
        let mut value = -256.0_f32;
        while value < 256.0 {
            let (copy, poisoned, clamped) = through(&METRES, value);
            assert!((copy - value).abs() <= 0.00502, "{value} became {copy}");
            assert!(METRES.agrees(copy, value));
            assert!(!METRES.agrees(copy + 0.02, value));
            assert!(!poisoned && !clamped);
            value += 0.0371;
        }
    }

    #[test]
    fn the_ends_are_reached_and_never_passed() {
        let odd = Range::new(0.0, 1.0, 0.3);
        assert_eq!(through(&odd, 7.0), (0.9, false, true));
        assert_eq!(odd.decode(&mut Reader::new(&[4])), Ok(1.0));
        assert_eq!(through(&METRES, -1e30), (-256.0, false, true));
    }

    #[test]
    fn r12_poison_becomes_the_lower_end_and_is_told() {
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert_eq!(through(&METRES, value), (-256.0, true, false));
        }
        assert_eq!(through(&METRES, f32::MIN_POSITIVE / 2.0).0, through(&METRES, 0.0).0);
    }

    #[test]
    fn codes_above_the_range_are_refused() {
        let range = Range::new(0.0, 2.0, 1.0);
        assert_eq!(range.decode(&mut Reader::new(&[3])), Err(DecodeError::OutOfRange));
    }

    #[test]
    fn angles_wrap() {
        let angle = Angle::new(8);
        let mut value = -20.0_f32;
        while value < 20.0 {
            let mut bytes = [0; 1];
            let mut out = Writer::new(&mut bytes);
            angle.encode(value, &mut out);
            let copy = angle.decode(&mut Reader::new(&bytes)).unwrap();
            assert!((0.0..std::f32::consts::TAU).contains(&copy));
            assert!(angle.agrees(copy, value), "{value} became {copy}");
            assert!(!angle.agrees(copy + 0.03, value));
            value += 0.011;
        }
    }

    #[test]
    fn integers_saturate() {
        let bits = Bits::new(7);
        let mut bytes = [0; 1];
        let mut out = Writer::new(&mut bytes);
        bits.encode(&200_u16, &mut out);
        assert!(out.clamped());
        out.align();
        assert_eq!(bits.decode::<u16>(&mut Reader::new(&bytes)), Ok(127));
        assert!(bits.agrees(&127_u16, &200));
    }

    /// Every i8 through every number of bits, and every range of a few, against plain arithmetic.
    #[test]
    fn signed_integers_saturate_at_both_ends() {
        for value in i8::MIN..=i8::MAX {
            for count in 1..=8 {
                let (end, bits) = (1_i16 << (count - 1), Bits::new(count));
                let expect = i16::from(value).clamp(-end, end - 1) as i8;
                let mut bytes = [0; 1];
                let mut out = Writer::new(&mut bytes);
                bits.encode(&value, &mut out);
                assert_eq!(out.clamped(), expect != value);
                out.align();
                assert_eq!(bits.decode::<i8>(&mut Reader::new(&bytes)), Ok(expect), "{value} in {count} bits");
                assert!(bits.agrees(&expect, &value));
            }
            for (min, max) in [(-128, 127), (-1, 0), (5, 12), (-100, -3)] {
                let range = Whole::new::<i8>(min, max);
                let expect = i64::from(value).clamp(min, max) as i8;
                let mut bytes = [0; 1];
                let mut out = Writer::new(&mut bytes);
                range.encode(value, &mut out);
                assert_eq!(out.clamped(), expect != value);
                out.align();
                assert_eq!(range.decode::<i8>(&mut Reader::new(&bytes)), Ok(expect), "{value} in {min}..={max}");
                assert!(range.agrees(expect, value) && !range.agrees(expect ^ 1, value));
            }
        }
    }

    #[test]
    fn whole_ranges_take_the_bits_they_need_and_refuse_codes_above() {
        let bits = |range: Whole| range.bits();
        assert_eq!(bits(Whole::new::<i32>(i32::MIN.into(), i32::MAX.into())), 32);
        assert_eq!(bits(Whole::new::<u32>(0, u32::MAX.into())), 32);
        assert_eq!(bits(Whole::new::<i16>(-1000, 1000)), 11);
        let range = Whole::new::<i16>(-2, 2);
        assert_eq!(range.bits(), 3);
        assert_eq!(range.decode::<i16>(&mut Reader::new(&[4])), Ok(2));
        assert_eq!(range.decode::<i16>(&mut Reader::new(&[5])), Err(DecodeError::OutOfRange));
        assert_eq!(Bits::new(32).decode::<i16>(&mut Reader::new(&[0xFF; 4])), Err(DecodeError::OutOfRange));
        for value in [i32::MIN, -1, 0, 1, i32::MAX] {
            assert_eq!(i32::from_code(value.to_code()), Ok(value));
            assert_eq!(value.code_within(32), value.to_code());
        }
    }
}
