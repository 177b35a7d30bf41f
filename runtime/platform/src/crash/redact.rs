//! Takes out of a text what must not leave the host: network addresses, and what looks like a key or a token.
//!
//! Reports are made of names and numbers, so as a rule there is nothing to take out. This is the second line: a fact or the name of a
//! message that somebody filled with what a client sent.

use std::net::{IpAddr, SocketAddr};

/// Shortest run of characters of base64 or hexadecimal that is taken for a secret: 128 bits of base64.
const SECRET_CHARS: usize = 22;

/// The text with addresses and secrets replaced by what they were.
pub(super) fn without_secrets(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(is_inner) {
        let (before, tail) = rest.split_at(begin);
        clean.push_str(before);
        let end = tail.find(|c| !is_inner(c)).unwrap_or(tail.len());
        let (run, after) = tail.split_at(end);
        clean.push_str(replacement(run).unwrap_or(run));
        rest = after;
    }
    clean.push_str(rest);
    clean
}

/// Characters of addresses, of base64 in both alphabets, and of hexadecimal.
fn is_inner(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+/=_-.:[]%".contains(c)
}

fn replacement(run: &str) -> Option<&'static str> {
    if is_address(run) {
        return Some("(address)");
    }
    let mut pieces = run.split(|c: char| !(c.is_ascii_alphanumeric() || "+/=_-".contains(c)));
    pieces.any(is_secret).then_some("(secret)")
}

fn is_address(run: &str) -> bool {
    let run = run.trim_end_matches(['.', ':', '-', '=', '/']).trim_start_matches(['.', '-', '=', '/']);
    let bare = run.trim_start_matches('[').trim_end_matches(']');
    let is_one = |text: &str| text.parse::<IpAddr>().is_ok() || text.parse::<SocketAddr>().is_ok();
    // `peer=1.2.3.4:5` and `peer:1.2.3.4` are runs of their own. Names have colons too, but no dots with them.
    let mut tails = run.match_indices(['=', ':']).map(|(at, _)| &run[at + 1..]);
    is_one(run) || is_one(bare) || tails.any(|tail| tail.contains('.') && is_one(tail))
}

/// Long, and mixed as no word is: names of scopes and functions have few digits, and paths are made of words.
fn is_secret(piece: &str) -> bool {
    let count_of = |is: fn(&char) -> bool| piece.chars().filter(is).count();
    let digits = count_of(char::is_ascii_digit);
    let is_mixed = digits >= 4 || (digits >= 1 && count_of(char::is_ascii_uppercase) >= 4);
    piece.len() >= SECRET_CHARS && is_mixed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(without_secrets(text), expected);
    }

    #[test]
    fn addresses_are_taken_out() {
        check("peer 192.168.7.9:4000 left", "peer (address) left");
        check("peer=10.0.0.1", "(address)");
        check("peer:10.0.0.1:80", "(address)");
        check("[2001:db8::1]:443, ::1", "(address), (address)");
        check("from 8.8.8.8.", "from (address)");
    }

    #[test]
    fn keys_and_tokens_are_taken_out() {
        check("key MDEyMzQ1Njc4OWFiY2RlZg==", "key (secret)");
        check("key=00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", "(secret)");
        check("token (TkVUQ09ERSAxLjAyAH-_x9)", "token ((secret))");
    }

    #[test]
    fn names_and_numbers_stay() {
        for text in [
            "ai.perception",
            "<precinct::worlds::Hideout as throng::Game>::tick",
            "world 12 of kind dark_zone, tick 184467",
            "replication.interest.grid_rebuild_after_spawn",
            "toolbox/cli/tests/command/lifecycle.rs",
            "12:30:05",
            "version 1.2.3",
        ] {
            check(text, text);
        }
    }
}
