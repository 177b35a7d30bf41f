//! Which bots a thread drives, and how many threads there are.
//!
//! Bots go to threads by their number modulo the number of threads: of three threads the second one has bots 1, 4, 7 and so on. All
//! have as many, but for one; each sends its bots in, and lets them think, when one thread would have done it. So nothing that a bot does
//! depends on how many threads there are.

/// Thoughts a second for which it takes another thread: those of 400 bots at 20 Hz. A thread needs 0.12 to 0.2 of a core
/// for so many, so it keeps up where it gets what others leave over. Fewer: threads that wake for nothing. More: a thread
/// of low priority falls behind when the server's workers are busy for half of the time, and drives them all alone.
const THOUGHTS_PER_S_AND_THREAD: usize = 8_000;

/// How many threads drive `players` bots of this rate on a host with so many cores, unless somebody says otherwise.
pub(crate) fn usual_threads(players: usize, tick_hz: u32, cores: usize) -> usize {
    let thoughts_per_s = players.saturating_mul(tick_hz as usize);
    thoughts_per_s.div_ceil(THOUGHTS_PER_S_AND_THREAD).clamp(1, cores.max(1))
}

/// The bots that one thread drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BotBatch {
    /// The thread's number; its first bot has the same.
    pub thread: usize,
    /// How many threads there are; so far apart are the numbers of its bots.
    pub threads: usize,
    /// How many bots there are in all.
    pub players: usize,
}

impl BotBatch {
    /// A batch for each of so many threads, or for as many as there are bots.
    pub fn of_threads(players: usize, threads: usize) -> impl ExactSizeIterator<Item = Self> {
        let threads = threads.clamp(1, players.max(1));
        (0..threads).map(move |thread| Self { thread, threads, players })
    }

    /// Bots in it.
    pub fn count(&self) -> usize {
        (self.players - self.thread).div_ceil(self.threads)
    }

    /// The number, in the whole swarm, of the bot at this place in the batch.
    pub fn bot(&self, place: usize) -> usize {
        self.thread + place * self.threads
    }

    /// The numbers of all of them.
    pub fn bots(&self) -> impl Iterator<Item = usize> {
        (self.thread..self.players).step_by(self.threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise: every bot is driven by one thread, and no thread has more than one bot more than another.
    #[test]
    fn every_bot_has_one_thread_and_threads_have_as_many() {
        let check = |players: usize, threads: usize, expect_counts: &[usize]| {
            let batches: Vec<_> = BotBatch::of_threads(players, threads).collect();
            assert_eq!(batches.iter().map(BotBatch::count).collect::<Vec<_>>(), expect_counts);
            let mut bots: Vec<usize> =
                batches.iter().flat_map(|batch| (0..batch.count()).map(|place| batch.bot(place))).collect();
            assert_eq!(bots, batches.iter().flat_map(BotBatch::bots).collect::<Vec<_>>());
            bots.sort_unstable();
            assert_eq!(bots, (0..players).collect::<Vec<_>>());
        };
        check(10, 1, &[10]);
        check(10, 3, &[4, 3, 3]);
        check(11, 3, &[4, 4, 3]);
        check(12, 3, &[4, 4, 4]);
        check(2, 3, &[1, 1]);
        check(1, 0, &[1]);
        check(3_000, 8, &[375; 8]);
    }

    #[test]
    fn many_bots_have_many_threads_but_no_more_than_there_are_cores() {
        let check = |players, tick_hz, cores, expect| {
            assert_eq!(usual_threads(players, tick_hz, cores), expect, "{players} at {tick_hz} Hz, {cores}");
        };
        check(1, 20, 64, 1);
        check(400, 20, 64, 1);
        check(401, 20, 64, 2);
        check(3_000, 20, 64, 8);
        check(3_000, 20, 2, 2);
        check(16_384, 20, 1, 1);
        check(300, 128, 64, 5);
    }
}
