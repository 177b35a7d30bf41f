//! Cipher: AES-128-GCM, a key per client, the tick and the packet's index as nonce.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

pub const TAG_BYTES: usize = 16;

/// One client's key.
pub struct Cipher(LessSafeKey);

impl Cipher {
    pub fn new(client: u32) -> Self {
        let mut key = [7; 16];
        key[..4].copy_from_slice(&client.to_le_bytes());
        Self(LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).expect("a key of 16 bytes")))
    }

    /// Encrypts `packet` but for its tick and its last 16 bytes, which become the tag.
    pub fn seal(&self, index: u32, packet: &mut [u8]) {
        let (tick, rest) = packet.split_first_chunk_mut::<4>().expect("a packet begins with its tick");
        let (body, tag) = rest.split_last_chunk_mut::<TAG_BYTES>().expect("a packet ends with its tag");
        let sealed = self.0.seal_in_place_separate_tag(nonce(*tick, index), Aad::from(&*tick), body);
        tag.copy_from_slice(sealed.expect("a packet is short").as_ref());
    }

    /// The records of a packet.
    pub fn open<'a>(&self, index: u32, packet: &'a mut [u8]) -> &'a mut [u8] {
        let (tick, rest) = packet.split_first_chunk_mut::<4>().expect("a packet begins with its tick");
        self.0.open_in_place(nonce(*tick, index), Aad::from(&*tick), rest).expect("packets are ours and in order")
    }
}

fn nonce(tick: [u8; 4], index: u32) -> Nonce {
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&tick);
    nonce[4..8].copy_from_slice(&index.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}
