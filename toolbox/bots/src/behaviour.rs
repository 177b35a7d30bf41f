//! What a bot does with its client: the part that a game writes.
//!
//! A behaviour sees what a player's program sees: the replicas, the own entity, the messages. It
//! answers with inputs and messages of its own. It stays on the thread that made it, which drives hundreds of
//! bots, so a slow `think` delays all of these; 400 bots at 20 Hz leave 125 µs for each, of which
//! the network takes about ten. What bots of several threads share is locked for as short as it can be.

use rand_xoshiro::Xoshiro256PlusPlus;
use throng_client::Client;
use throng_platform::time::Nanos;

/// One bot's mind.
pub trait Behaviour {
    /// Looks at the world and acts, once per thinking period, as long as the client is connected.
    ///
    /// Before the first world, and for a moment between two, `client.world()` is `None` and inputs
    /// are refused. Game messages in `client.messages()` are those since the last call; the swarm
    /// clears them afterwards. `rng` is the bot's own, seeded from the swarm's seed and its index.
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus);

    /// What the game wants counted, such as travels, shots and hits, as totals since the start.
    /// Asked once a second and at the end; equal names are summed over all bots, or the largest is taken
    /// ([`BehaviourCounters::with`]).
    fn counters(&self) -> BehaviourCounters {
        BehaviourCounters::default()
    }
}

/// A few named totals of one bot.
///
/// ```
/// use throng_bots::BehaviourCounters;
/// let counters = BehaviourCounters::new().with("shots", 12).with("hits", 3);
/// assert_eq!(counters.iter().map(|(_, total)| total).sum::<u64>(), 15);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BehaviourCounters(Vec<(&'static str, u64)>);

impl BehaviourCounters {
    /// No counters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a counter. A name used twice is summed in the report; of one that ends in `_max` the report has the largest.
    #[must_use]
    pub fn with(mut self, name: &'static str, total: u64) -> Self {
        self.0.push((name, total));
        self
    }

    /// What two totals of one name come to.
    pub fn joined(name: &str, one: u64, other: u64) -> u64 {
        if name.ends_with("_max") { one.max(other) } else { one + other }
    }

    /// Name and total of each, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().copied()
    }
}
