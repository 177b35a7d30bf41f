//! Cookies: how a stranger proves that the address it writes from is its own.
//!
//! A cookie is a keyed hash of the address, the client's own number and the epoch. The server keeps
//! nothing: it makes the hash again when the cookie comes back. Whoever forges a source address never sees
//! the cookie, and so never reaches the cipher.
//!
//! ```text
//! hello (7)   | 7 | version 13 | protocol id 8 | client's number 8 | zeros |             1,102 B
//! cookie (8)  | 8 | client's number 8 | cookie 16 |                                         25 B
//! request (9) | 9 | cookie 16 | client's number 8 | body of a netcode request 1,077 |    1,102 B
//! ```
//!
//! Cost: one SipHash-2-4 of 35 bytes, about 40 ns, two when the cookie is checked. No state, no cipher.

use std::hash::Hasher;
use std::net::{IpAddr, SocketAddr};

use rand::RngCore;
use siphasher::sip128::{Hasher128, SipHasher24};
use throng_platform::time::Nanos;

use super::ProtocolId;
use super::cipher::secrets_equal;
use super::packet::{
    COOKIE_BYTES, COOKIE_REPLY_BYTES, COOKIE_REQUEST_BYTES, HELLO_BYTES, Kind, REQUEST_BODY_BYTES, VERSION,
};

/// A cookie is good for the epoch it was made in and the next: 4 to 8 s. Shorter, and a slow path cannot
/// answer in time; longer, and a cookie seen once by somebody who moved on stays useful.
const EPOCH: Nanos = Nanos::from_secs(4);

/// How long a client may count on a cookie: the shortest life it can have, less a round trip.
pub(super) const COOKIE_LIFE: Nanos = Nanos::from_secs(3);

pub(super) type Cookie = [u8; COOKIE_BYTES];

/// Makes and checks cookies. The key lives as long as the handshake.
pub(super) struct CookieJar {
    key: [u8; 16],
}

impl CookieJar {
    pub(super) fn new(rng: &mut impl RngCore) -> Self {
        let mut key = [0; 16];
        rng.fill_bytes(&mut key);
        Self { key }
    }

    pub(super) fn bake(&self, from: SocketAddr, client_number: u64, now: Nanos) -> Cookie {
        self.bake_for_epoch(from, client_number, epoch_of(now))
    }

    pub(super) fn is_good(&self, cookie: &Cookie, from: SocketAddr, client_number: u64, now: Nanos) -> bool {
        let epoch = epoch_of(now);
        let made_now = self.bake_for_epoch(from, client_number, epoch);
        let made_before = self.bake_for_epoch(from, client_number, epoch.wrapping_sub(1));
        secrets_equal(cookie, &made_now) | secrets_equal(cookie, &made_before)
    }

    fn bake_for_epoch(&self, from: SocketAddr, client_number: u64, epoch: u64) -> Cookie {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        match from.ip() {
            IpAddr::V4(ip) => hasher.write(&ip.to_ipv6_mapped().octets()),
            IpAddr::V6(ip) => hasher.write(&ip.octets()),
        }
        hasher.write(&from.port().to_le_bytes());
        hasher.write(&client_number.to_le_bytes());
        hasher.write(&epoch.to_le_bytes());
        hasher.finish128().as_bytes()
    }
}

fn epoch_of(now: Nanos) -> u64 {
    now.0 / EPOCH.0
}

/// Writes a hello; gives its length.
pub(super) fn write_hello(protocol_id: ProtocolId, client_number: u64, out: &mut [u8]) -> usize {
    let hello = &mut out[..HELLO_BYTES];
    hello.fill(0);
    hello[0] = Kind::Hello as u8;
    hello[1..14].copy_from_slice(&VERSION);
    hello[14..22].copy_from_slice(&protocol_id.0.to_le_bytes());
    hello[22..30].copy_from_slice(&client_number.to_le_bytes());
    HELLO_BYTES
}

/// Reads a hello and gives the client's number. The zeros are not looked at, nor is the protocol: a client that holds a
/// token for another one is told so when its address is proven.
pub(super) fn read_hello(datagram: &[u8]) -> Option<u64> {
    let hello: &[u8; HELLO_BYTES] = datagram.try_into().ok()?;
    let ours = hello[0] == Kind::Hello as u8 && hello[1..14] == VERSION;
    ours.then(|| u64::from_le_bytes(*hello[22..].first_chunk().expect("eight bytes of a number")))
}

/// Writes the answer to a hello; gives its length.
pub(super) fn write_cookie(cookie: &Cookie, client_number: u64, out: &mut [u8]) -> usize {
    out[0] = Kind::Cookie as u8;
    out[1..9].copy_from_slice(&client_number.to_le_bytes());
    out[9..COOKIE_REPLY_BYTES].copy_from_slice(cookie);
    COOKIE_REPLY_BYTES
}

/// Reads the answer to a hello that carried this number.
pub(super) fn read_cookie(datagram: &[u8], client_number: u64) -> Option<Cookie> {
    let reply: &[u8; COOKIE_REPLY_BYTES] = datagram.try_into().ok()?;
    let answers = reply[0] == Kind::Cookie as u8 && reply[1..9] == client_number.to_le_bytes();
    answers.then(|| *reply[9..].first_chunk().expect("sixteen bytes of a cookie"))
}

/// Writes the head of a request with a cookie; its body follows at the returned place.
pub(super) fn write_cookie_request(cookie: &Cookie, client_number: u64, out: &mut [u8]) -> usize {
    out[0] = Kind::CookieRequest as u8;
    out[1..17].copy_from_slice(cookie);
    out[17..25].copy_from_slice(&client_number.to_le_bytes());
    COOKIE_REQUEST_BYTES - REQUEST_BODY_BYTES
}

/// Splits a request with a cookie into cookie, client's number and body.
pub(super) fn read_cookie_request(datagram: &mut [u8]) -> Option<(Cookie, u64, &mut [u8; REQUEST_BODY_BYTES])> {
    let request: &mut [u8; COOKIE_REQUEST_BYTES] = datagram.try_into().ok()?;
    let cookie = *request[1..].first_chunk()?;
    let client_number = u64::from_le_bytes(*request[17..].first_chunk()?);
    Some((cookie, client_number, request.last_chunk_mut()?))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    #[test]
    fn a_cookie_is_good_for_its_address_number_and_time_only() {
        let jar = CookieJar::new(&mut ChaCha20Rng::seed_from_u64(1));
        let home = SocketAddr::from(([10, 1, 2, 3], 5_000));
        let now = Nanos::from_millis(5_500);
        let cookie = jar.bake(home, 77, now);
        let check = |from: SocketAddr, number: u64, at: Nanos, expect: bool| {
            assert_eq!(jar.is_good(&cookie, from, number, at), expect, "{from} {number} {at:?}");
        };
        check(home, 77, now, true);
        check(home, 77, Nanos::from_millis(11_999), true);
        check(home, 77, Nanos::from_millis(12_000), false);
        check(home, 77, Nanos::from_millis(3_999), false);
        check(home, 78, now, false);
        check(SocketAddr::from(([10, 1, 2, 3], 5_001)), 77, now, false);
        check(SocketAddr::from(([10, 1, 2, 4], 5_000)), 77, now, false);
        check(SocketAddr::from(([0x2001, 0, 0, 0, 0, 0, 0, 1], 5_000)), 77, now, false);
        let other_jar = CookieJar::new(&mut ChaCha20Rng::seed_from_u64(2));
        assert!(!other_jar.is_good(&cookie, home, 77, now), "another server's key");
        for bit in 0..COOKIE_BYTES * 8 {
            let mut changed = cookie;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!jar.is_good(&changed, home, 77, now), "bit {bit}");
        }
    }

    #[test]
    fn hello_and_cookie_are_read_as_they_were_written() {
        let mut out = [0xEE; 1400];
        let len = write_hello(ProtocolId(5), 77, &mut out);
        assert_eq!(read_hello(&out[..len]), Some(77));
        assert_eq!(read_hello(&out[..len - 1]), None, "a short hello would amplify");
        out[13] ^= 1;
        assert_eq!(read_hello(&out[..len]), None, "another version");
        let len = write_cookie(&[3; COOKIE_BYTES], 77, &mut out);
        assert_eq!(read_cookie(&out[..len], 77), Some([3; COOKIE_BYTES]));
        assert_eq!(read_cookie(&out[..len], 78), None, "answers another hello");
    }
}
