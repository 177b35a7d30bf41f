//! Connect tokens: how a back end that clients trust lets them into a server that trusts the back end.
//!
//! The public part goes to the client (over HTTPS or the like: it holds the keys of the link in the clear).
//! The private part inside it is sealed with the key that only back end and servers know; the client hands
//! it on unread. Layout, numbers little-endian:
//!
//! ```text
//! public, 2,048 B                          private, 1,024 B, XChaCha20-Poly1305
//!    0  version "NETCODE 1.02\0"   13         0  client id                  8
//!   13  protocol id                 8         8  timeout (s), signed        4
//!   21  created [unix s]            8        12  addresses, counted         4 + 7 or 19 each
//!   29  expires [unix s]            8         .  client-to-server key      32
//!   37  nonce                      24         .  server-to-client key      32
//!   61  private part            1,024         .  user data                256
//! 1085  timeout (s), signed         4         .  zeros up to            1,008
//! 1089  addresses, counted          4 + ..  1008  tag                      16
//!    .  client-to-server key       32
//!    .  server-to-client key       32       address: 1, four bytes, port (2)
//!    .  zeros up to             2,048            or: 2, eight segments of two bytes, port (2)
//! ```
//!
//! Authenticated beside the private part: version, protocol id and expiry, not the creation time.
//!
//! The cipher is RustCrypto's: aws-lc-rs has no XChaCha20 in its safe interface. It runs once per
//! connection, about 3 us, and only the handshake opens tokens. Nothing here allocates but the address list of a
//! client's own token, 32 at most.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use chacha20poly1305::{AeadInPlace, KeyInit, XChaCha20Poly1305};
use rand::CryptoRng;
use thiserror::Error;

use super::cipher::{KEY_BYTES, TAG_BYTES};
use super::packet::{PRIVATE_TOKEN_BYTES, REQUEST_BODY_BYTES, TOKEN_NONCE_BYTES, VERSION};
use super::{ClientId, PrivateKey, ProtocolId, USER_DATA_BYTES, UserData};

/// Size of a token that is handed to a client (bytes).
pub const TOKEN_BYTES: usize = 2048;

/// Most servers that one token may name.
const ADDRESSES_MAX: usize = 32;
const ADDRESS_BYTES_MAX: usize = 1 + 16 + 2;
const _: () = assert!(
    8 + 4 + 4 + ADDRESSES_MAX * ADDRESS_BYTES_MAX + 2 * KEY_BYTES + USER_DATA_BYTES + TAG_BYTES <= PRIVATE_TOKEN_BYTES,
    "the fullest private part fits"
);

const IPV4: u8 = 1;
const IPV6: u8 = 2;

/// What a back end says about a client when it makes a token.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    pub protocol_id: ProtocolId,
    pub client_id: ClientId,
    /// Servers to try, in order [1 to 32]. Each server knows itself by one of these.
    pub server_addresses: Vec<SocketAddr>,
    pub created_unix_s: u64,
    /// Last moment to begin a connection. Keep it near, 30 to 300 s: until then a server must remember
    /// the token. Too near, and clients with slow disks or long queues come too late.
    pub expires_unix_s: u64,
    /// How long either side bears silence (s). 0 or less: for ever, for debugging only. A server has a limit of its own,
    /// which counts if it is shorter.
    pub timeout_s: i32,
    pub user_data: UserData,
}

/// A token as its client holds it.
#[derive(Clone)]
pub struct ConnectToken {
    pub(super) protocol_id: ProtocolId,
    created_unix_s: u64,
    expires_unix_s: u64,
    nonce: [u8; TOKEN_NONCE_BYTES],
    private_part: [u8; PRIVATE_TOKEN_BYTES],
    timeout_s: i32,
    server_addresses: Vec<SocketAddr>,
    pub(super) client_to_server_key: [u8; KEY_BYTES],
    pub(super) server_to_client_key: [u8; KEY_BYTES],
}

/// Why bytes are no token, or a token cannot be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum TokenError {
    #[error("not a netcode 1.02 token")]
    Version,
    #[error("a token names 1 to 32 servers")]
    AddressCount,
    #[error("an address is neither IPv4 nor IPv6")]
    AddressKind,
    #[error("a token cannot expire before it is created")]
    Lifetime,
    #[error("the private part does not authenticate")]
    Forged,
}

impl ConnectToken {
    /// Makes a token. Its two link keys and its nonce come from `rng`.
    pub fn generate(
        request: &TokenRequest,
        private_key: &PrivateKey,
        rng: &mut impl CryptoRng,
    ) -> Result<Self, TokenError> {
        if request.expires_unix_s < request.created_unix_s {
            return Err(TokenError::Lifetime);
        }
        let mut token = Self {
            protocol_id: request.protocol_id,
            created_unix_s: request.created_unix_s,
            expires_unix_s: request.expires_unix_s,
            nonce: [0; TOKEN_NONCE_BYTES],
            private_part: [0; PRIVATE_TOKEN_BYTES],
            timeout_s: request.timeout_s,
            server_addresses: request.server_addresses.clone(),
            client_to_server_key: [0; KEY_BYTES],
            server_to_client_key: [0; KEY_BYTES],
        };
        rng.fill_bytes(&mut token.nonce);
        rng.fill_bytes(&mut token.client_to_server_key);
        rng.fill_bytes(&mut token.server_to_client_key);
        let private = PrivateToken {
            client_id: request.client_id,
            timeout_s: request.timeout_s,
            server_addresses: ServerAddresses::from_slice(&request.server_addresses)?,
            client_to_server_key: token.client_to_server_key,
            server_to_client_key: token.server_to_client_key,
            user_data: request.user_data,
        };
        private.seal(&token.context(), private_key, &mut token.private_part);
        Ok(token)
    }

    /// The 2,048 bytes that a client is given.
    pub fn to_bytes(&self) -> [u8; TOKEN_BYTES] {
        let mut bytes = [0; TOKEN_BYTES];
        let mut out = Put { bytes: &mut bytes };
        out.bytes(&VERSION);
        out.bytes(&self.protocol_id.0.to_le_bytes());
        out.bytes(&self.created_unix_s.to_le_bytes());
        out.bytes(&self.expires_unix_s.to_le_bytes());
        out.bytes(&self.nonce);
        out.bytes(&self.private_part);
        out.bytes(&self.timeout_s.to_le_bytes());
        out.addresses(self.server_addresses.iter());
        out.bytes(&self.client_to_server_key);
        out.bytes(&self.server_to_client_key);
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote. Whether a server will accept it is not known here.
    pub fn from_bytes(bytes: &[u8; TOKEN_BYTES]) -> Result<Self, TokenError> {
        let mut from = Take { bytes };
        if from.array::<13>() != VERSION {
            return Err(TokenError::Version);
        }
        let token = Self {
            protocol_id: ProtocolId(from.u64()),
            created_unix_s: from.u64(),
            expires_unix_s: from.u64(),
            nonce: from.array(),
            private_part: from.array(),
            timeout_s: i32::from_le_bytes(from.array()),
            server_addresses: from.addresses()?.iter().collect(),
            client_to_server_key: from.array(),
            server_to_client_key: from.array(),
        };
        if token.expires_unix_s < token.created_unix_s {
            return Err(TokenError::Lifetime);
        }
        Ok(token)
    }

    /// The servers to try, in order; at least one.
    pub fn server_addresses(&self) -> &[SocketAddr] {
        &self.server_addresses
    }

    pub fn protocol_id(&self) -> ProtocolId {
        self.protocol_id
    }

    pub fn created_unix_s(&self) -> u64 {
        self.created_unix_s
    }

    pub fn expires_unix_s(&self) -> u64 {
        self.expires_unix_s
    }

    /// How long either side bears silence (s), a server no longer than its own limit; 0 or less = for ever.
    pub fn timeout_s(&self) -> i32 {
        self.timeout_s
    }

    /// The body of the request that shows this token to a server.
    pub(super) fn request_body(&self) -> [u8; REQUEST_BODY_BYTES] {
        let mut body = [0; REQUEST_BODY_BYTES];
        let mut out = Put { bytes: &mut body };
        out.bytes(&VERSION);
        out.bytes(&self.protocol_id.0.to_le_bytes());
        out.bytes(&self.expires_unix_s.to_le_bytes());
        out.bytes(&self.nonce);
        out.bytes(&self.private_part);
        body
    }

    fn context(&self) -> SealContext {
        SealContext { protocol_id: self.protocol_id, expires_unix_s: self.expires_unix_s, nonce: self.nonce }
    }
}

/// Never prints a key.
impl fmt::Debug for ConnectToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectToken")
            .field("protocol_id", &self.protocol_id)
            .field("expires_unix_s", &self.expires_unix_s)
            .field("server_addresses", &self.server_addresses)
            .finish_non_exhaustive()
    }
}

/// What the seal of a private part depends on beside the private key.
pub(super) struct SealContext {
    pub protocol_id: ProtocolId,
    pub expires_unix_s: u64,
    pub nonce: [u8; TOKEN_NONCE_BYTES],
}

impl SealContext {
    fn additional(&self) -> [u8; 29] {
        let mut additional = [0; 29];
        let mut out = Put { bytes: &mut additional };
        out.bytes(&VERSION);
        out.bytes(&self.protocol_id.0.to_le_bytes());
        out.bytes(&self.expires_unix_s.to_le_bytes());
        additional
    }
}

/// What only back end and servers read.
pub(super) struct PrivateToken {
    pub client_id: ClientId,
    pub timeout_s: i32,
    pub server_addresses: ServerAddresses,
    pub client_to_server_key: [u8; KEY_BYTES],
    pub server_to_client_key: [u8; KEY_BYTES],
    pub user_data: UserData,
}

impl PrivateToken {
    fn seal(&self, context: &SealContext, private_key: &PrivateKey, part: &mut [u8; PRIVATE_TOKEN_BYTES]) {
        part.fill(0);
        let mut out = Put { bytes: part };
        out.bytes(&self.client_id.0.to_le_bytes());
        out.bytes(&self.timeout_s.to_le_bytes());
        out.addresses(self.server_addresses.listed().iter());
        out.bytes(&self.client_to_server_key);
        out.bytes(&self.server_to_client_key);
        out.bytes(&self.user_data);
        let (plain, tag) = part.split_last_chunk_mut::<TAG_BYTES>().expect("the part is longer than its tag");
        let made = XChaCha20Poly1305::new(private_key.bytes().into())
            .encrypt_in_place_detached(&context.nonce.into(), &context.additional(), plain)
            .expect("a private part is far below the cipher's limit");
        tag.copy_from_slice(&made);
    }

    /// Opens a private part in place. On an error its bytes are lost.
    pub(super) fn open(
        part: &mut [u8; PRIVATE_TOKEN_BYTES],
        context: &SealContext,
        private_key: &PrivateKey,
    ) -> Result<Self, TokenError> {
        let (plain, tag) = part.split_last_chunk_mut::<TAG_BYTES>().expect("the part is longer than its tag");
        XChaCha20Poly1305::new(private_key.bytes().into())
            .decrypt_in_place_detached(&context.nonce.into(), &context.additional(), plain, (&*tag).into())
            .map_err(|_| TokenError::Forged)?;
        let mut from = Take { bytes: plain };
        Ok(Self {
            client_id: ClientId(from.u64()),
            timeout_s: i32::from_le_bytes(from.array()),
            server_addresses: from.addresses()?,
            client_to_server_key: from.array(),
            server_to_client_key: from.array(),
            user_data: from.array(),
        })
    }
}

/// 1 to 32 addresses, held in place.
pub(super) struct ServerAddresses {
    list: [SocketAddr; ADDRESSES_MAX],
    count: usize,
}

impl ServerAddresses {
    fn from_slice(addresses: &[SocketAddr]) -> Result<Self, TokenError> {
        if addresses.is_empty() || addresses.len() > ADDRESSES_MAX {
            return Err(TokenError::AddressCount);
        }
        let mut list = [SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0); ADDRESSES_MAX];
        list[..addresses.len()].copy_from_slice(addresses);
        Ok(Self { list, count: addresses.len() })
    }

    fn listed(&self) -> &[SocketAddr] {
        &self.list[..self.count]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.listed().iter().copied()
    }
}

/// Writes fields one after another; the layouts above fit by the assertions beside them.
struct Put<'a> {
    bytes: &'a mut [u8],
}

impl Put<'_> {
    fn bytes(&mut self, field: &[u8]) {
        let (place, rest) = std::mem::take(&mut self.bytes).split_at_mut(field.len());
        place.copy_from_slice(field);
        self.bytes = rest;
    }

    fn addresses<'a>(&mut self, addresses: impl ExactSizeIterator<Item = &'a SocketAddr>) {
        self.bytes(&(addresses.len() as u32).to_le_bytes());
        for address in addresses {
            match address.ip() {
                IpAddr::V4(ip) => {
                    self.bytes(&[IPV4]);
                    self.bytes(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    self.bytes(&[IPV6]);
                    for segment in ip.segments() {
                        self.bytes(&segment.to_le_bytes());
                    }
                }
            }
            self.bytes(&address.port().to_le_bytes());
        }
    }
}

/// Reads fields one after another. Every layout read here has room for the longest list of addresses, so a
/// field is always there.
struct Take<'a> {
    bytes: &'a [u8],
}

impl Take<'_> {
    fn array<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.bytes.split_first_chunk::<N>().expect("the fullest layout fits");
        self.bytes = rest;
        *field
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    fn addresses(&mut self) -> Result<ServerAddresses, TokenError> {
        let count = u32::from_le_bytes(self.array()) as usize;
        let mut list = [SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0); ADDRESSES_MAX];
        let listed = list.get_mut(..count).filter(|listed| !listed.is_empty()).ok_or(TokenError::AddressCount)?;
        for address in listed {
            let ip = match self.array::<1>()[0] {
                IPV4 => IpAddr::V4(Ipv4Addr::from(self.array::<4>())),
                IPV6 => {
                    IpAddr::V6(Ipv6Addr::from(std::array::from_fn::<u16, 8, _>(|_| u16::from_le_bytes(self.array()))))
                }
                _ => return Err(TokenError::AddressKind),
            };
            *address = SocketAddr::new(ip, u16::from_le_bytes(self.array()));
        }
        Ok(ServerAddresses { list, count })
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha20Rng;

    use super::*;

    const KEY: PrivateKey = PrivateKey::new([9; 32]);

    fn request(addresses: usize) -> TokenRequest {
        TokenRequest {
            protocol_id: ProtocolId(0x1122_3344_5566_7788),
            client_id: ClientId(42),
            server_addresses: (0..addresses)
                .map(|i| match i % 2 {
                    0 => SocketAddr::from(([10, 0, 0, i as u8], 40_000 + i as u16)),
                    _ => SocketAddr::from(([0x2001, 0xDB8, 0, 0, 0, 0, 0xABCD, i as u16], 50_000 + i as u16)),
                })
                .collect(),
            created_unix_s: 1_000,
            expires_unix_s: 1_030,
            timeout_s: 10,
            user_data: [0xA5; 256],
        }
    }

    fn token(addresses: usize) -> ConnectToken {
        ConnectToken::generate(&request(addresses), &KEY, &mut ChaCha20Rng::seed_from_u64(1)).unwrap()
    }

    #[test]
    fn a_token_survives_the_way_through_its_bytes() {
        for addresses in 1..=ADDRESSES_MAX {
            let token = token(addresses);
            let bytes = token.to_bytes();
            let back = ConnectToken::from_bytes(&bytes).unwrap();
            assert_eq!(back.to_bytes(), bytes);
            assert_eq!(back.server_addresses(), request(addresses).server_addresses);
            let mut part = token.private_part;
            let private = PrivateToken::open(&mut part, &token.context(), &KEY).unwrap();
            assert_eq!(private.client_id, ClientId(42));
            assert_eq!(private.timeout_s, 10);
            assert_eq!(private.user_data, [0xA5; 256]);
            assert_eq!(private.client_to_server_key, back.client_to_server_key);
            assert_eq!(private.server_to_client_key, back.server_to_client_key);
            assert_eq!(private.server_addresses.listed(), back.server_addresses());
        }
    }

    #[test]
    fn an_ipv6_address_is_eight_little_endian_segments() {
        let bytes = token(2).to_bytes();
        let second = &bytes[1089 + 4 + 7..][..ADDRESS_BYTES_MAX];
        let expect = [2, 0x01, 0x20, 0xB8, 0x0D, 0, 0, 0, 0, 0, 0, 0, 0, 0xCD, 0xAB, 1, 0, 0x51, 0xC3];
        assert_eq!(second, expect);
    }

    #[test]
    fn what_no_token_may_say_is_refused() {
        fn check(change: impl FnOnce(&mut [u8; TOKEN_BYTES]), expect: TokenError) {
            let mut bytes = token(3).to_bytes();
            change(&mut bytes);
            assert_eq!(ConnectToken::from_bytes(&bytes).unwrap_err(), expect);
        }
        check(|bytes| bytes[11] = b'1', TokenError::Version);
        check(|bytes| bytes[29..37].fill(0), TokenError::Lifetime);
        check(|bytes| bytes[1089..1093].fill(0), TokenError::AddressCount);
        check(|bytes| bytes[1089] = 33, TokenError::AddressCount);
        check(|bytes| bytes[1089..1093].fill(0xFF), TokenError::AddressCount);
        check(|bytes| bytes[1093] = 0, TokenError::AddressKind);
        check(|bytes| bytes[1093] = 3, TokenError::AddressKind);
    }

    #[test]
    fn tokens_for_no_server_or_too_many_are_not_made() {
        for addresses in [0, 33] {
            let made = ConnectToken::generate(&request(addresses), &KEY, &mut ChaCha20Rng::seed_from_u64(1));
            assert_eq!(made.unwrap_err(), TokenError::AddressCount);
        }
    }

    #[test]
    fn the_private_part_opens_in_its_own_context_only() {
        fn check(change: impl FnOnce(&mut SealContext, &mut PrivateKey)) {
            let token = token(1);
            let (mut context, mut key) = (token.context(), KEY);
            change(&mut context, &mut key);
            let mut part = token.private_part;
            assert_eq!(PrivateToken::open(&mut part, &context, &key).err(), Some(TokenError::Forged));
        }
        check(|context, _| context.protocol_id = ProtocolId(1));
        check(|context, _| context.expires_unix_s += 1);
        check(|context, _| context.nonce[0] ^= 1);
        check(|_, key| *key = PrivateKey::new([8; 32]));
    }

    #[test]
    fn printing_a_token_shows_no_key() {
        let token = token(1);
        let shown = format!("{token:?} {KEY:?}");
        assert!(!shown.contains("key:") && !shown.contains("[9,"), "{shown}");
    }
}
