//! Challenge tokens: what the server asks a client to echo, so that it need not remember it.
//!
//! Sealed with a key that lives as long as the handshake and never leaves it; each is counted, so no nonce
//! repeats. To the client it is 300 bytes of noise.
//!
//! ```text
//! | client id 8 | user data 256 | tag of the connect token 16 | zeros 4 | tag 16 |
//! ```
//!
//! Cost: 0.4 us, once per connection each way.

use rand::RngCore;

use super::super::cipher::{KEY_BYTES, PacketCipher, TAG_BYTES};
use super::super::packet::{CHALLENGE_BODY_BYTES, CHALLENGE_TOKEN_BYTES};
use super::super::{ClientId, UserData};

const _: () = assert!(8 + 256 + TAG_BYTES + 4 + TAG_BYTES == CHALLENGE_TOKEN_BYTES);

pub(super) struct Challenges {
    cipher: PacketCipher,
    next_number: u64,
}

/// The number of a challenge, or of the one that a response echoes. Later ones have greater numbers.
pub(super) fn challenge_number(body: &[u8; CHALLENGE_BODY_BYTES]) -> u64 {
    u64::from_le_bytes(*body.first_chunk().expect("a body has its fixed size"))
}

/// What a challenge says to the server that made it.
pub(super) struct Challenge {
    pub client_id: ClientId,
    pub user_data: UserData,
    pub token_mac: [u8; TAG_BYTES],
}

impl Challenges {
    pub(super) fn new(rng: &mut impl RngCore) -> Self {
        let mut key = [0; KEY_BYTES];
        rng.fill_bytes(&mut key);
        Self { cipher: PacketCipher::new(&key), next_number: 0 }
    }

    /// The body of a challenge packet: its number and the sealed token.
    pub(super) fn seal(&mut self, challenge: &Challenge) -> [u8; CHALLENGE_BODY_BYTES] {
        let number = self.next_number;
        self.next_number += 1;
        let mut body = [0; CHALLENGE_BODY_BYTES];
        body[..8].copy_from_slice(&number.to_le_bytes());
        body[8..16].copy_from_slice(&challenge.client_id.0.to_le_bytes());
        body[16..272].copy_from_slice(&challenge.user_data);
        body[272..288].copy_from_slice(&challenge.token_mac);
        self.cipher.seal(number, &[], &mut body[8..]);
        body
    }

    /// Opens the body of a response. `None` unless this handshake made the challenge it echoes.
    pub(super) fn open(&self, response: &[u8; CHALLENGE_BODY_BYTES]) -> Option<Challenge> {
        let (number, sealed) = response.split_first_chunk::<8>()?;
        let mut token: [u8; CHALLENGE_TOKEN_BYTES] = *sealed.first_chunk()?;
        let plain = self.cipher.open(u64::from_le_bytes(*number), &[], &mut token).ok()?;
        let (client_id, rest) = plain.split_first_chunk::<8>()?;
        let (user_data, rest) = rest.split_first_chunk::<256>()?;
        let (token_mac, _) = rest.split_first_chunk::<TAG_BYTES>()?;
        Some(Challenge {
            client_id: ClientId(u64::from_le_bytes(*client_id)),
            user_data: *user_data,
            token_mac: *token_mac,
        })
    }
}
