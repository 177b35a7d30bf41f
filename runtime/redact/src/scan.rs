//! Finding what must not leave the host in one text.

use std::net::Ipv6Addr;

const ADDRESS: &str = "<address>";
const KEY: &str = "<key>";
const TEXT: &str = "<text>";

/// A run of letters and digits this long may be a key. 16 hexadecimal digits are 64 bits.
const KEY_CHARACTERS: usize = 16;

/// Names in the code have few digits. More than so many, and a long one may be a key.
const NAME_DIGITS: usize = 3;

/// What a text should be, which says what a long run in it may be other than a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Words of small letters.
    FreeText,
    /// Also words of capitals and `CapitalizedWords`, with a number here and there.
    Name,
}

/// What opens quoted text, and what closes it.
const QUOTES: [(char, char); 10] = [
    ('"', '"'),
    ('\'', '\''),
    ('`', '`'),
    ('“', '”'),
    ('„', '“'),
    ('‘', '’'),
    ('«', '»'),
    ('‹', '›'),
    ('「', '」'),
    ('＂', '＂'),
];

/// Quoted text is replaced, up to the end of all where nothing closes it. A backslash takes the meaning of what
/// follows, as in Rust's `{:?}`. An apostrophe inside a word is none.
pub(crate) fn without_quotes(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut before = ' ';
    while let Some(character) = rest.next() {
        let closing = QUOTES.iter().find(|(opening, _)| *opening == character).map(|(_, closing)| *closing);
        let is_apostrophe = character == '\'' && before.is_alphanumeric();
        before = character;
        let Some(closing) = closing.filter(|_| !is_apostrophe) else {
            clean.push(character);
            continue;
        };
        clean.push_str(TEXT);
        while let Some(quoted) = rest.next() {
            if quoted == '\\' {
                rest.next();
            } else if quoted == closing {
                // `'it's'`: one inside a word does not close.
                if closing != '\'' || rest.peek().is_none_or(|next| !next.is_alphanumeric()) {
                    break;
                }
            }
        }
    }
    clean
}

/// Addresses and keys are replaced.
pub(crate) fn without_runs(text: &str, kind: Kind) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = ' ';
    // How much of `rest` is a run that was judged to stay: judging it again at each of its words would take ever
    // longer.
    let mut judged = 0_usize;
    while let Some(character) = rest.chars().next() {
        // After letters only what has dots: `ip192.0.2.1` tells an address, `add::fee` is a path.
        let address = match before {
            'a'..='z' | 'A'..='Z' => v4_and_port_len(rest),
            '0'..='9' => 0,
            _ => address_len(rest),
        };
        let key = if judged > 0 { 0 } else { key_len(rest, kind) };
        if judged == 0 && key == 0 {
            judged = run_len(rest);
        }
        let (len, replacement) = if address > 0 {
            (address, Some(ADDRESS))
        } else if key > 0 {
            (key, Some(KEY))
        } else {
            (part_len(rest).max(character.len_utf8()), None)
        };
        judged = judged.saturating_sub(len);
        let (taken, after) = rest.split_at(len);
        clean.push_str(replacement.unwrap_or(taken));
        before = taken.chars().next_back().unwrap_or(' ');
        rest = after;
    }
    clean
}

/// Length of the letters, or of the digits, that the text begins with. (bytes)
fn part_len(text: &str) -> usize {
    let letters = text.bytes().take_while(u8::is_ascii_alphabetic).count();
    if letters > 0 { letters } else { digits_len(text) }
}

/// Length of the letters and digits that the text begins with. (bytes)
fn word_len(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_alphanumeric).count()
}

/// Length of the address, with its brackets, zone and port, that the text begins with; 0 if it begins with none.
/// (bytes)
fn address_len(text: &str) -> usize {
    if let Some(inside) = text.strip_prefix('[') {
        let address = v6_len(inside);
        return match inside[address..].strip_prefix(']') {
            Some(after) if address > 0 => 1 + address + 1 + port_len(after),
            _ => 0,
        };
    }
    match v4_and_port_len(text) {
        0 => v6_len(text),
        len => len,
    }
}

fn v4_and_port_len(text: &str) -> usize {
    match v4_len(text) {
        0 => 0,
        address => address + port_len(&text[address..]),
    }
}

/// `:` and digits, or `/` and digits for a net.
fn port_len(text: &str) -> usize {
    let digits = text.strip_prefix([':', '/']).map_or(0, digits_len);
    if digits == 0 { 0 } else { 1 + digits }
}

fn digits_len(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Four groups of one to three digits, whatever their value: `010.1.1.1` and `300.1.1.1` tell as much.
fn v4_len(text: &str) -> usize {
    let mut len = 0;
    for group in 0..4 {
        if group > 0 {
            if !text[len..].starts_with('.') {
                return 0;
            }
            len += 1;
        }
        let digits = digits_len(&text[len..]);
        if !(1..=3).contains(&digits) {
            return 0;
        }
        len += digits;
    }
    len
}

/// The longest beginning that is an IPv6 address, or that has six groups or more between colons, as hardware addresses
/// and fingerprints do; then a zone. Times of day have three.
fn v6_len(text: &str) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b':' || *byte == b'.';
    // No longer than the longest form of an address, so that the search stays short.
    let run = text.bytes().take(64).take_while(is_part).count();
    let colons = |len: usize| text[..len].bytes().filter(|byte| *byte == b':').count();
    let is_address = |len: &usize| colons(*len) >= 5 || (colons(*len) >= 2 && text[..*len].parse::<Ipv6Addr>().is_ok());
    let Some(address) = (2..=run).rev().find(is_address) else { return 0 };
    // A word that goes on is another word: `dead::beefy`.
    let goes_on = text[address..].starts_with(|next: char| next.is_ascii_alphanumeric());
    if goes_on && colons(address) < 5 {
        return 0;
    }
    let zone = text[address..].strip_prefix('%').map_or(0, |zone| 1 + word_len(zone));
    address + zone
}

/// Length of the run that may be a key: 16 or more of base64's characters, and not words. (bytes)
fn key_len(text: &str, kind: Kind) -> usize {
    let run = run_len(text);
    if run < KEY_CHARACTERS {
        return 0;
    }
    let mut words = text[..run].split(['/', '_', '-']);
    let is_words = match kind {
        Kind::FreeText => words.all(is_word),
        Kind::Name => {
            text[..run].bytes().filter(u8::is_ascii_digit).count() <= NAME_DIGITS && words.all(is_word_of_a_name)
        }
    };
    if is_words {
        return 0;
    }
    run + text[run..].bytes().take_while(|byte| *byte == b'=').count()
}

/// `replication/src/interest`: words of small letters are a path or a name; a key of 16 characters has one such shape
/// in 500,000.
fn is_word(word: &str) -> bool {
    word.len() < KEY_CHARACTERS && word.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// `interest`, `CharacterController`, `CELLS`, each with a number behind it or without. In base64 a random key of 16
/// characters looks like such words once in 300, one of 128 bits once in 3,500; where names are expected, that is less
/// than the names are worth.
fn is_word_of_a_name(word: &str) -> bool {
    let word = word.trim_end_matches(|character: char| character.is_ascii_digit());
    if word.len() < KEY_CHARACTERS && word.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return true;
    }
    let mut parts = word.split(|character: char| character.is_ascii_uppercase());
    parts.next().is_none_or(is_word) && parts.all(|part| !part.is_empty() && is_word(part))
}

/// Length of the characters of base64 that the text begins with. (bytes)
fn run_len(text: &str) -> usize {
    text.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || b"+/_-".contains(byte)).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::{free_text, name};

    fn check(text: &str, expected: &str) {
        assert_eq!(free_text(text), expected);
    }

    #[test]
    fn plain_sentences_stay() {
        for text in [
            "",
            "world 12 took 34.5 ms, 1.2x its budget; client's queue is full",
            "2026-01-02T03:04:05.678Z warn",
            "runtime/replication/src/interest.rs:123 in throng::front_door",
            "a rate of 1.5.2 or 10:20",
            "größe ist 12 µs",
            "std::fs::read",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn addresses_go() {
        check("from 203.0.113.9:4000.", "from <address>.");
        check("from 203.0.113.9, 10.0.0.0/8", "from <address>, <address>");
        check("(010.001.001.001)", "(<address>)");
        check("[2001:db8::7]:4000 left", "<address> left");
        check("::1 and fe80::1%eth0 and ::ffff:192.0.2.1", "<address> and <address> and <address>");
        check("2001:0db8:0000:0000:0000:ff00:0042:8329", "<address>");
        check("address=192.0.2.1", "address=<address>");
        check("02:42:ac:11:00:02", "<address>");
        check("ip192.0.2.1x", "ip<address>x");
        check("ip192.0.2.1:80", "ip<address>");
        check("1.2.3.4.5.6.7.8", "<address>.<address>");
    }

    #[test]
    fn keys_go() {
        check("token 0123456789abcdef!", "token <key>!");
        check("key AAAAAAAAAAAAAAAA==", "key <key>");
        check("id 550e8400-e29b-41d4-a716-446655440000", "id <key>");
        check("Zm9vYmFy+/Zm9vYmFyZm9vYmFy", "<key>");
        check("0123456789abcde", "0123456789abcde");
        check("abcdefghijklmnop CharacterController", "<key> <key>");
        check("a_name_of_many_words_in_small_letters", "a_name_of_many_words_in_small_letters");
    }

    #[test]
    fn quoted_text_goes() {
        check("\"Mallory\" said \"a \\\" b\" twice", "<text> said <text> twice");
        check("player 'it's me' can't", "player <text> can't");
        check("«a» “b” `c` 「d」", "<text> <text> <text> <text>");
        check("name=\"never closed 1.2.3.4 and on", "name=<text>");
        check("\"\\", "<text>");
    }

    #[test]
    fn terminals_and_readers_are_not_deceived() {
        check("a\u{1b}]0;title\u{7}b\r\nc", "a\\u{1b}]0;title\\u{7}b\\r\\nc");
        check("\u{202e}gnp.exe\u{2066}", "\\u{202e}gnp.exe\\u{2066}");
        check("203.0.113.9\u{0}:4000", "<address>\\u{0}:4000");
    }

    #[test]
    fn long_texts_take_no_longer_by_the_byte() {
        // A hang here is the failure: each of these would take the square of its length if runs were judged at every
        // word.
        for part in ["a/", "1", "1.", "a:", ":", "[", "'a", "\\", "aA"] {
            free_text(&part.repeat(500_000));
            name(&part.repeat(500_000));
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_it_or_keeps_a_quote(text in any::<String>(), parts in prop::collection::vec(
            prop::sample::select(vec!["\"", "'", "1.2.3.4", "::", ":", "[", "]", "\\", "%", "a", "é", "0123456789abcdef", "\u{1b}", "/"]), 0..12,
        )) {
            let texts = [text, parts.concat()];
            for clean in texts.iter().flat_map(|text| [free_text(text), name(text)]) {
                prop_assert!(!clean.contains(char::is_control));
                prop_assert!(!clean.contains(['"', '`', '“', '«']));
            }
        }

        #[test]
        fn an_address_between_words_always_goes(v4 in any::<std::net::SocketAddrV4>(), v6 in any::<std::net::SocketAddrV6>()) {
            let text = format!("from {v4} to {v6}, {} {}", v4.ip(), v6.ip());
            let clean = "from <address> to <address>, <address> <address>";
            prop_assert_eq!((free_text(&text), name(&text)), (clean.to_owned(), clean.to_owned()));
        }
    }
}
