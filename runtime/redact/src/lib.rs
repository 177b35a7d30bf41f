//! Redaction: what looks as if it must not leave the host is taken out of a text.
//!
//! Names in the code come from the game's makers; log texts, notes and facts may hold what a player wrote, where they
//! play from, and keys. Addresses, long runs that may be keys, and everything in quotes, which is how texts show what
//! came from outside, are replaced. Rather too much than too little: a date in a log may go, an address may not stay.
//! What a text says of a player without quotes cannot be known, so texts quote. Crash reports and captures share this
//! one filter, since they make the same promise.
//!
//! Pure functions. Any thread; time grows with the length of the text; allocates.

mod scan;

use std::borrow::Cow;
use std::fmt::Write;

use scan::Kind;

/// Free text without quoted text, addresses and keys, and [`visible`].
pub fn free_text(text: &str) -> String {
    cleaned(text, Kind::FreeText)
}

/// The same for what should be a name in the code, and might be filled with something else: a long name is no key.
pub fn name(text: &str) -> String {
    cleaned(text, Kind::Name)
}

fn cleaned(text: &str, kind: Kind) -> String {
    // In this order: an address in quotes goes with them, and an escape cannot complete a key.
    visible(&scan::without_runs(&scan::without_quotes(text), kind)).into_owned()
}

/// The text with everything that is not shown, or that rearranges what is, as an escape: `\n`, `\u{1b}`, `\u{202e}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_invisible) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_invisible(character) {
            // A string takes whatever is written to it.
            let _ = write!(escaped, "{}", character.escape_default());
        } else {
            escaped.push(character);
        }
    }
    Cow::Owned(escaped)
}

/// Control characters; line and paragraph ends; fillers and joiners; zero-width, directional and other formatting
/// characters; selectors of variants, and tags.
pub fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
                | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_shown_as_an_escape() {
        let check = |text, expected: &str| assert_eq!(visible(text), expected);
        check("replication.interest", "replication.interest");
        check("é😀 \"\\;", "é😀 \"\\;");
        check("a\u{1b}[2Jb\r\n\t\0", "a\\u{1b}[2Jb\\r\\n\\t\\u{0}");
        check("\u{202e}txt\u{2066}\u{200b}\u{9b}m", "\\u{202e}txt\\u{2066}\\u{200b}\\u{9b}m");
        check("\u{e0041}\u{3164}\u{fe0f}", "\\u{e0041}\\u{3164}\\u{fe0f}");
    }

    #[test]
    fn names_in_the_code_stay() {
        for text in [
            "ai.perception",
            "<precinct::worlds::Hideout as throng::Game>::tick",
            "world 12 of kind dark_zone, tick 184467",
            "replication.interest.grid_rebuild_after_spawn",
            "replication.interest.level_2_grid_rebuild",
            "toolbox/cli/tests/command/lifecycle.rs",
            "CharacterControllerRequest and SpawnProjectile2",
            "MOST_ENTITIES_PER_CELL",
            "Shoot { entity: 184467, angle: 0.25 }",
            "frame, short-task, worker-1",
            "12:30:05",
            "version 1.2.3",
        ] {
            assert_eq!(name(text), text);
        }
    }

    #[test]
    fn a_name_that_is_filled_with_something_else_does_not_keep_it() {
        let check = |text, expected: &str| assert_eq!(name(text), expected);
        check("peer 192.168.7.9:4000 left", "peer <address> left");
        check("peer:10.0.0.1:80 of 10.0.0.0/8", "peer:<address> of <address>");
        check("[2001:db8::1]:443, ::1, fe80::1%eth0", "<address>, <address>, <address>");
        check("ip192.0.2.1 02:42:ac:11:00:02", "ip<address> <address>");
        check("key MDEyMzQ1Njc4OWFiY2RlZg==", "key <key>");
        check("key=00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", "key=<key>");
        check("token (TkVUQ09ERSAxLjAyAH-_x9)", "token (<key>)");
        check("0123456789abcdef AAAAAAAAAAAAAAAA abcdefghijklmnop", "<key> <key> <key>");
        check("Zm9vYmFyZm9vYmFyZm9v 123-456-789-012-345", "<key> <key>");
        check("Say(\"hello\\\" you\")\u{1b}[31m", "Say(<text>)\\u{1b}[31m");
    }
}
