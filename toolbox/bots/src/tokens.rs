//! Where bots get their connect tokens: from the caller, or signed here with the server's key.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;
use throng_net::protocol::{ClientId, ConnectToken, PrivateKey, ProtocolId, TokenError, TokenRequest, user_data};

/// How long a token made here may be shown (s): a bot shows it at once, and a server at most a few
/// seconds later.
const TOKEN_LIFE_S: u64 = 120;

/// Who makes the connect tokens of a swarm.
pub enum Tokens {
    /// The caller: given a bot's index, a token that is good now and was never given before. Called when that bot
    /// is sent in, and each time it tries again, on any thread. An error ends the run.
    Made(Box<MakeToken>),
    /// The swarm, with the key that the server has.
    Signed(TokenSigner),
}

/// Makes the connect token of the bot with this index.
pub type MakeToken = dyn Fn(usize) -> Result<ConnectToken, TokenError> + Send + Sync;

/// What it takes to make tokens for a server.
#[derive(Clone)]
pub struct TokenSigner {
    pub protocol_id: ProtocolId,
    pub private_key: PrivateKey,
    /// Bot `i` is client `client_id_first + i`. Two swarms on one server need ranges apart.
    pub client_id_first: u64,
    /// How long either side bears silence (s, > 0). Too short: a busy machine loses bots. Too long: a
    /// dead server goes unnoticed. 10 is a good start.
    pub timeout_s: i32,
    /// One bot in so many asks for audit samples (> 0). 1: all do, and every value is checked; more: less of the
    /// server's time is spent on what players do not cost.
    pub audited_one_in: usize,
}

impl TokenSigner {
    /// Every `audited_one_in`th; not those of a multiple, which one of several threads would have all of.
    fn is_audited(&self, bot: usize) -> bool {
        let one_in = self.audited_one_in.max(1);
        (bot + bot / one_in).is_multiple_of(one_in)
    }
}

impl Tokens {
    /// Whether this bot is sent audit samples, if the server allows it.
    pub(crate) fn is_audited(&self, bot: usize) -> bool {
        match self {
            // Only the caller knows.
            Self::Made(_) => true,
            Self::Signed(signer) => signer.is_audited(bot),
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Made(_) => "Tokens::Made",
            Self::Signed(_) => "Tokens::Signed",
        })
    }
}

/// Makes tokens for the bots of one thread.
pub(crate) struct TokenSource {
    tokens: Arc<Tokens>,
    address: SocketAddr,
    /// Seeded by the operating system, not by the swarm: a key and nonce of an earlier run with the
    /// same seed must not come back, and a server refuses a token that it has seen.
    rng: ChaCha20Rng,
}

impl TokenSource {
    pub fn new(tokens: Arc<Tokens>, address: SocketAddr, seed: [u8; 32]) -> Self {
        Self { tokens, address, rng: ChaCha20Rng::from_seed(seed) }
    }

    pub fn next(&mut self, bot: usize, unix_s: u64) -> Result<ConnectToken, TokenError> {
        match &*self.tokens {
            Tokens::Made(make) => make(bot),
            Tokens::Signed(signer) => {
                let request = TokenRequest {
                    protocol_id: signer.protocol_id,
                    client_id: ClientId(signer.client_id_first + bot as u64),
                    server_addresses: vec![self.address],
                    created_unix_s: unix_s,
                    expires_unix_s: unix_s + TOKEN_LIFE_S,
                    timeout_s: signer.timeout_s,
                    user_data: user_data(&[], signer.is_audited(bot)).expect("nothing always fits"),
                };
                ConnectToken::generate(&request, &signer.private_key, &mut self.rng)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bot_in_so_many_is_audited_on_every_thread() {
        let (protocol_id, private_key) = (ProtocolId(1), PrivateKey::new([7; 32]));
        let signer = TokenSigner { protocol_id, private_key, client_id_first: 1, timeout_s: 10, audited_one_in: 10 };
        let audited: Vec<usize> = (0..1_000).filter(|&bot| signer.is_audited(bot)).collect();
        assert_eq!((audited.len(), audited[0]), (100, 0));
        for threads in 2..5 {
            let of_first = audited.iter().filter(|&bot| bot % threads == 0).count();
            assert!((80 / threads..=120 / threads + 1).contains(&of_first), "{of_first} of {threads} threads' first");
        }
        assert!((0..100).all(|bot| TokenSigner { audited_one_in: 1, ..signer.clone() }.is_audited(bot)));
    }
}
