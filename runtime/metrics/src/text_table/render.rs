//! Render: one cell as text, and as JSON.
//!
//! Numbers are written by hand: a figure with fixed digits through `format!` takes most of a table's time. All of it is
//! bytes, which are looked at once as text when a table is whole.

use std::io::Write;

use super::{Cell, Kind};

/// Digits after the point of a float, at most: with nine, whole parts up to nine millions are exact.
pub const FLOAT_DIGITS_MAX: u8 = 9;

const POWERS: [f64; FLOAT_DIGITS_MAX as usize + 1] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/// Up to here a float holds every whole number.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// What the text says where there is no figure.
const NO_FIGURE: &[u8] = b"-";

/// A cell as the aligned text has it, and its width in characters; `scratch` is where it is put together, if it must be.
#[inline]
pub(super) fn text<'c>(cell: Cell<'c>, kind: Kind, scratch: &'c mut Vec<u8>) -> (&'c [u8], usize) {
    scratch.clear();
    match (cell, kind) {
        (Cell::Text(text), Kind::Text { characters_max }) => {
            let characters_max = characters_max as usize;
            if text.len() <= characters_max && is_shown_as_it_is(text.as_bytes()) {
                return (text.as_bytes(), text.len());
            }
            let width = escape(text, characters_max, scratch);
            return (scratch, width);
        }
        (Cell::Integer(value), _) => integer(value, scratch),
        (Cell::Float(value), Kind::Float { digits }) if value.is_finite() => fixed(value, digits, scratch),
        (Cell::Float(_), _) => scratch.extend_from_slice(NO_FIGURE),
        (Cell::Duration(ns), _) => with_unit(ns, 1_000.0, &["ns", "us", "ms", "s"], scratch),
        (Cell::Bytes(bytes), _) => with_unit(bytes, 1_024.0, &["B", "KiB", "MiB", "GiB", "TiB"], scratch),
        (Cell::Empty | Cell::Text(_), _) => {}
    }
    // All of these are ASCII.
    (scratch, scratch.len())
}

/// Adds a cell as JSON.
pub(super) fn json(cell: Cell<'_>, kind: Kind, out: &mut Vec<u8>) {
    match (cell, kind) {
        (Cell::Text(text), _) => json_text(text, out),
        (Cell::Integer(value), _) => integer(value, out),
        (Cell::Float(value), Kind::Float { digits }) if value.is_finite() => fixed(value, digits, out),
        (Cell::Duration(value) | Cell::Bytes(value), _) => number(value, 0, false, out),
        (Cell::Float(_) | Cell::Empty, _) => out.extend_from_slice(b"null"),
    }
}

/// Whether every byte is a character that a row can hold, and no space looks like a part of the gap between columns: as
/// all names are that nobody made on purpose. One pass without a branch for each kind of byte.
#[inline]
fn is_shown_as_it_is(text: &[u8]) -> bool {
    let mut last = b' ';
    for &byte in text {
        if !(b' '..=b'~').contains(&byte) || byte == b'\\' || (byte == b' ' && last == b' ') {
            return false;
        }
        last = byte;
    }
    true
}

/// Adds so many characters of a text, with escapes for what a row cannot hold; returns the width.
#[cold]
fn escape(text: &str, characters_max: usize, out: &mut Vec<u8>) -> usize {
    let mut width = 0;
    let mut push = |character: char| {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        width += 1;
    };
    let mut last = ' ';
    for character in text.chars().take(characters_max) {
        match character {
            '\\' => "\\\\".chars().for_each(&mut push),
            // Two spaces are the gap between columns.
            ' ' if last == ' ' => "\\u{20}".chars().for_each(&mut push),
            _ if character.is_control() || is_unseen(character) => character.escape_default().for_each(&mut push),
            _ => push(character),
        }
        last = character;
    }
    width
}

/// Whether a character turns the direction of writing, ends a line or has no width, so that a row would not be what it
/// looks like.
fn is_unseen(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}'
        | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

fn json_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'"' && *byte != b'\\';
    if text.as_bytes().iter().all(is_plain) {
        out.extend_from_slice(text.as_bytes());
    } else {
        text.chars().for_each(|character| json_character(character, out));
    }
    out.push(b'"');
}

fn json_character(character: char, out: &mut Vec<u8>) {
    match character {
        '"' => out.extend_from_slice(b"\\\""),
        '\\' => out.extend_from_slice(b"\\\\"),
        '\n' => out.extend_from_slice(b"\\n"),
        // What ends a line for some readers, or is a command to a terminal.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        }
        _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn integer(value: i64, out: &mut Vec<u8>) {
    number(value.unsigned_abs(), 0, value < 0, out);
}

/// A number with so many digits after the point, halves away from zero; nothing is less than zero that is shown as zero.
#[inline]
fn fixed(value: f64, digits: u8, out: &mut Vec<u8>) {
    let scaled = value.abs() * POWERS[usize::from(digits)];
    if scaled >= EXACT_MAX {
        let _ = write!(out, "{value:.*}", usize::from(digits));
        return;
    }
    // As `round` does, which is a call where the processor may lack the instruction. Whole parts below `EXACT_MAX` and
    // what is left of them are exact.
    let whole = scaled as i64;
    let rounded = whole as u64 + u64::from(scaled - whole as f64 >= 0.5);
    number(rounded, usize::from(digits), value < 0.0 && rounded > 0, out);
}

/// A number in the largest unit of which it has one.
fn with_unit(value: u64, step: f64, units: &[&str], out: &mut Vec<u8>) {
    let (mut scaled, mut unit) = (value as f64, 0);
    while scaled >= step && unit + 1 < units.len() {
        scaled /= step;
        unit += 1;
    }
    if unit == 0 {
        number(value, 0, false, out);
    } else {
        fixed(scaled, 1, out);
    }
    out.push(b' ');
    out.extend_from_slice(units[unit].as_bytes());
}

/// A number whose last digits, so many, stand behind a point. Put together from its end, and added at once.
#[inline]
fn number(mut value: u64, digits_after: usize, is_negative: bool, out: &mut Vec<u8>) {
    let mut bytes = [b'0'; NUMBER_BYTES_MAX];
    let mut start = bytes.len();
    let mut put = |byte: u8| {
        start -= 1;
        bytes[start] = byte;
    };
    if digits_after > 0 {
        for _ in 0..digits_after {
            put(b'0' + (value % 10) as u8);
            value /= 10;
        }
        put(b'.');
    }
    loop {
        put(b'0' + (value % 10) as u8);
        value /= 10;
        if value == 0 {
            break;
        }
    }
    if is_negative {
        put(b'-');
    }
    out.extend_from_slice(&bytes[start..]);
}

/// 20 digits hold the largest number; a point, a sign, and a zero before the point.
const NUMBER_BYTES_MAX: usize = 23;
