//! Records: a saved value as it lies in the store, with a checksum.
//!
//! ```text
//! byte   0        1             5
//!        +--------+-------------+------------------------------+
//!        | format | checksum    | value: an envelope of        |
//!        | 1      | u32, little | throng-pack                  |
//!        +--------+-------------+------------------------------+
//! ```
//!
//! The checksum is a CRC-32 of the key, the format and the value: it finds every damage of up to 32 bits in a row, all
//! but one in four thousand million others, and a record that lies under a key which is not its own.

use crate::key::Key;

/// The only format so far.
const FORMAT: u8 = 1;
const HEADER_BYTES: usize = 5;

/// What is written for a value.
pub(crate) fn seal(key: Key, value: &[u8]) -> Vec<u8> {
    let mut record = Vec::with_capacity(HEADER_BYTES + value.len());
    record.push(FORMAT);
    record.extend(checksum(key, FORMAT, value).to_le_bytes());
    record.extend(value);
    record
}

/// The value of a record that is as it was written; `None` if it is damaged.
pub(crate) fn open(key: Key, record: &[u8]) -> Option<&[u8]> {
    let (header, value) = record.split_at_checked(HEADER_BYTES)?;
    let written = u32::from_le_bytes(header[1..].try_into().ok()?);
    (header[0] == FORMAT && checksum(key, FORMAT, value) == written).then_some(value)
}

fn checksum(key: Key, format: u8, value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&key.to_bytes());
    hasher.update(&[format]);
    hasher.update(value);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_turned_bit_any_cut_and_any_other_key_is_found() {
        let (key, value) = (Key::player(3), b"three swords and a shield");
        let record = seal(key, value);
        assert_eq!(open(key, &record), Some(&value[..]));
        for bit in 0..record.len() * 8 {
            let mut damaged = record.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(key, &damaged), None, "bit {bit}");
        }
        for length in 0..record.len() {
            assert_eq!(open(key, &record[..length]), None, "{length} bytes");
        }
        assert_eq!(open(Key::player(4), &record), None);
    }
}
