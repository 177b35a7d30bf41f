//! User data: what the back end wants the server to know about a client, in its token.
//!
//! ```text
//! | the game's own 248 | what the client is to have 8 |
//! ```
//!
//! The last eight bytes ask the server for something. So far there is one thing to ask for: audit samples, with which a
//! client holds its copy of the world against the exact state (`throng-replication`). They cost the server time and
//! tell more than a player may know, so a token asks for them, which no client can make, and the server's settings allow
//! them. Anything else in these bytes asks for nothing.

/// What the back end wants the server to know about a client. Sealed in the token: the client cannot read it.
pub type UserData = [u8; USER_DATA_BYTES];

/// Size of [`UserData`] (bytes).
pub const USER_DATA_BYTES: usize = 256;

/// How much of [`UserData`] is the game's own, from the first byte on (bytes).
pub const GAME_DATA_BYTES: usize = USER_DATA_BYTES - AUDITED.len();

/// Asks for audit samples. No text or small number of a game's ends like this by accident.
const AUDITED: [u8; 8] = *b"\0audit\0\x01";

/// User data for a client: the game's own, of at most [`GAME_DATA_BYTES`], with zeros after it. `None` when it is longer.
pub fn user_data(of_game: &[u8], is_audited: bool) -> Option<UserData> {
    let mut bytes = [0; USER_DATA_BYTES];
    bytes[..GAME_DATA_BYTES].get_mut(..of_game.len())?.copy_from_slice(of_game);
    if is_audited {
        bytes[GAME_DATA_BYTES..].copy_from_slice(&AUDITED);
    }
    Some(bytes)
}

/// Whether the token asks for audit samples.
pub fn asks_for_audit(user_data: &UserData) -> bool {
    user_data.ends_with(&AUDITED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_asks_for_audit_samples_or_does_not() {
        for is_audited in [false, true] {
            let bytes = user_data(b"a game's own", is_audited).expect("it is short");
            assert_eq!((asks_for_audit(&bytes), &bytes[..13]), (is_audited, &b"a game's own\0"[..]));
        }
        assert!(!asks_for_audit(&[0; USER_DATA_BYTES]) && !asks_for_audit(&[0xFF; USER_DATA_BYTES]));
    }

    #[test]
    fn a_game_has_so_much_for_itself_and_no_more() {
        let whole = [7; GAME_DATA_BYTES];
        assert_eq!(user_data(&whole, true).expect("it fits")[..GAME_DATA_BYTES], whole);
        assert_eq!(user_data(&[7; GAME_DATA_BYTES + 1], false), None);
    }
}
