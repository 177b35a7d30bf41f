//! Render: one cell as text, and as JSON.
//!
//! Numbers are written by hand: a figure with fixed digits through `format!` takes most of a table's time.

use std::fmt::Write;

use super::{Cell, Kind};

/// Digits after the point of a float, at most: with nine, whole parts up to nine millions are exact.
pub const FLOAT_DIGITS_MAX: u8 = 9;

const POWERS: [u64; FLOAT_DIGITS_MAX as usize + 1] =
    [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
/// Up to here a float holds every whole number.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// What the text says where there is no figure.
const NO_FIGURE: &str = "-";

/// Adds a cell as the aligned text has it; returns its width in characters.
pub(super) fn text(cell: Cell<'_>, kind: Kind, out: &mut String) -> usize {
    match (cell, kind) {
        (Cell::Text(text), Kind::Text { characters_max }) => return escaped(text, characters_max as usize, out),
        (Cell::Integer(value), _) => integer(value, out),
        (Cell::Float(value), Kind::Float { digits }) if value.is_finite() => fixed(value, digits, out),
        (Cell::Float(_), _) => out.push_str(NO_FIGURE),
        (Cell::Duration(ns), _) => with_unit(ns, 1_000.0, &["ns", "us", "ms", "s"], out),
        (Cell::Bytes(bytes), _) => with_unit(bytes, 1_024.0, &["B", "KiB", "MiB", "GiB", "TiB"], out),
        (Cell::Empty | Cell::Text(_), _) => {}
    }
    // All of these are ASCII.
    out.len()
}

/// Adds a cell as JSON.
pub(super) fn json(cell: Cell<'_>, kind: Kind, out: &mut String) {
    match (cell, kind) {
        (Cell::Text(text), _) => json_text(text, out),
        (Cell::Integer(value), _) => integer(value, out),
        (Cell::Float(value), Kind::Float { digits }) if value.is_finite() => fixed(value, digits, out),
        (Cell::Duration(value) | Cell::Bytes(value), _) => digits_of(value, 1, out),
        (Cell::Float(_) | Cell::Empty, _) => out.push_str("null"),
    }
}

/// Adds so many characters of a text, with escapes for what a row cannot hold; returns the width.
fn escaped(text: &str, characters_max: usize, out: &mut String) -> usize {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && *byte != b'\\';
    if text.len() <= characters_max && text.as_bytes().iter().all(is_plain) {
        out.push_str(text);
        return text.len();
    }
    let mut last = ' ';
    for character in text.chars().take(characters_max) {
        match character {
            '\\' => out.push_str("\\\\"),
            // Two spaces are the gap between columns.
            ' ' if last == ' ' => out.push_str("\\u{20}"),
            _ if character.is_control() || is_unseen(character) => out.extend(character.escape_default()),
            _ => out.push(character),
        }
        last = character;
    }
    out.chars().count()
}

/// Whether a character turns the direction of writing, ends a line or has no width, so that a row would not be what it
/// looks like.
fn is_unseen(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}'
        | '\u{202f}' | '\u{205f}' | '\u{3000}')
}

fn json_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // What ends a line for some readers, or is a command to a terminal.
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

fn integer(value: i64, out: &mut String) {
    if value < 0 {
        out.push('-');
    }
    digits_of(value.unsigned_abs(), 1, out);
}

/// A number with so many digits after the point, halves away from zero; nothing is less than zero that is shown as zero.
fn fixed(value: f64, digits: u8, out: &mut String) {
    let power = POWERS[usize::from(digits)];
    let scaled = (value.abs() * power as f64).round();
    if scaled >= EXACT_MAX {
        let _ = write!(out, "{value:.*}", usize::from(digits));
        return;
    }
    let scaled = scaled as u64;
    if value < 0.0 && scaled > 0 {
        out.push('-');
    }
    digits_of(scaled / power, 1, out);
    if digits > 0 {
        out.push('.');
        digits_of(scaled % power, usize::from(digits), out);
    }
}

/// A number in the largest unit of which it has one.
fn with_unit(value: u64, step: f64, units: &[&str], out: &mut String) {
    let (mut scaled, mut unit) = (value as f64, 0);
    while scaled >= step && unit + 1 < units.len() {
        scaled /= step;
        unit += 1;
    }
    if unit == 0 {
        digits_of(value, 1, out)
    } else {
        fixed(scaled, 1, out)
    }
    out.push(' ');
    out.push_str(units[unit]);
}

/// A number with so many digits at least.
#[inline]
fn digits_of(mut value: u64, count_min: usize, out: &mut String) {
    // 20 digits hold the largest number.
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    while value > 0 || digits.len() - start < count_min {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.push_str(str::from_utf8(&digits[start..]).unwrap_or_default());
}
