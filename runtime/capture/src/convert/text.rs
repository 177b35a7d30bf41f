//! Text for eyes and terminals.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with everything that is not shown, or that rearranges what is, as an escape: `\n`, `\u{1b}`, `\u{202e}`.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
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

/// Control characters; line and paragraph ends; zero-width, directional and other formatting characters, tags among them.
fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// At most `bytes_max` bytes of it, cut between characters.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut len = text.len().min(bytes_max);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    &text[..len]
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
        check("\u{e0041}", "\\u{e0041}");
    }

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!((cut("aé", 2), cut("aé", 3), cut("aé", 9), cut("é", 1)), ("a", "aé", "aé", ""));
    }
}
