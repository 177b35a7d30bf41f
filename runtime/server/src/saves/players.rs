//! Players: who may be written by this process, and what is loaded of those who log in.
//!
//! ```text
//! log-in --> lease asked --> (held by another process: again later) --> record read --> placed, plays
//!                                                                                          |
//! forgotten <-- lease given up <-- all of them is on disk <-- the game has seen them go <--'
//! ```
//!
//! Until somebody is placed the address table asks again in every frame, as for one whose world is being made, so a
//! log-in that waits for the disk costs nobody a tick. What of a player is not on disk yet is newer than the record, and
//! is loaded instead: who comes back while the disk is dead has what they left with. A client whose world failed is
//! loaded in the same way, under the lease that it has.
//!
//! A lease that somebody else has taken is lost: the player is sent away, and nothing of them is saved, nor of what they gave
//! to others since their last save ([`Commits::undo`]).
//!
//! One who cannot be packed is left out of a save in which others have what they gave away. That is said on disk in the same commit
//! ([`Kind::LeftOut`](throng_persistence::Kind::LeftOut)), and until a later save has them again nobody is let in with their old record,
//! in this process or another, unless the operator says so.
//!
//! A read that does not come, or panics, costs its own player's log-in alone.
//!
//! Frame thread. Cost: for who comes or goes; a look at everybody once a second.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use throng_net::protocol::ClientId;
use throng_persistence::{Done, Key, Lease, LeaseRequest, Outcome, Reads, Refusal, StoreError};
use throng_platform::time::Nanos;
use throng_profiler::{log_error, log_info, log_warn};
use throng_world::{ids::WorldId, transfer::Transfer};

use super::{
    commits::Commits,
    counts::SAVES,
    held_lease::{Answer, Doubted, HeldLease, LeaseTerms},
    loading::{PlayerFound, PlayerLoad, PlayerRecord},
    reader::{Asked, PlayerReader},
    record,
};

/// Who was called from the line and has not been asked for in so long is gone.
const FORGOTTEN_AFTER: Nanos = Nanos::from_secs(10);
/// A player whom another process has is asked for again so often.
const HELD_AGAIN_AFTER: Nanos = Nanos::from_secs(1);
/// So often everybody is looked at.
const LOOK_EVERY: Nanos = Nanos::from_secs(1);

/// To whom nothing was read in time.
const NOT_READ: &str = "what is saved of them could not be read in time";
/// To whom what is saved is not to be read.
const UNREADABLE: &str = "what is saved of them cannot be read";
/// To whom a save was made without.
const LEFT_OUT: &str = "what they had could not be saved; the operator can let them in with what was saved before";

/// What is saved of one who logs in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// The number of the world that they were in.
    pub world: Option<u64>,
    pub has: Option<Transfer>,
}

#[derive(Debug)]
enum Stage {
    /// The lease is to be asked for, from then on.
    Wants {
        from: Nanos,
    },
    /// It was asked for.
    Leasing,
    /// The reader was asked, as its so manieth read: an answer to an earlier one may be older than the lease.
    Reading {
        read: u64,
    },
    /// May be placed.
    Loaded(Loaded),
    Failed(&'static str),
    /// In a world, or on the way to one.
    Plays,
    /// Its connection has ended; the game of this world has not seen it yet.
    Leaves(WorldId),
    /// The lease is to be given up once all is on disk.
    Left,
    /// That was asked for.
    Releasing,
}

struct Player {
    lease: HeldLease,
    stage: Stage,
    asked_at: Nanos,
    /// The game's directory was asked where it is to be.
    is_known_to_game: bool,
    /// What is saved of it, or on its way there, is older than what others have from it.
    is_left_out: bool,
}

/// A read of a player.
struct UnderWay {
    asked: Asked,
    since: Nanos,
}

/// What is to become of a log-in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LogIn {
    Wait,
    Ready { world: Option<u64>, is_new: bool },
    Refuse(&'static str),
}

/// Everybody who is here, comes or goes.
pub(crate) struct Players {
    players: BTreeMap<u64, Player>,
    terms: LeaseTerms,
    reads: Arc<dyn Reads>,
    /// The newest read of each player, until it has ended.
    under_way: BTreeMap<u64, UnderWay>,
    /// Those whom the operator lets in with a record that is too old, until they are there.
    admitted: BTreeSet<u64>,
    look_at: Nanos,
    /// Somebody wants a lease, or has one to give up.
    is_restless: bool,
    /// It was said that records cannot be read.
    is_read_failing: bool,
    doubted: Doubted,
    /// Whose lease somebody else has now, to be sent away.
    lost: Vec<ClientId>,
    pub not_read: u64,
    pub records_unreadable: u64,
    pub leases_held: u64,
    pub leases_lost: u64,
}

impl Players {
    pub fn new(terms: LeaseTerms, reads: Arc<dyn Reads>) -> Players {
        Players {
            players: BTreeMap::new(),
            terms,
            reads,
            under_way: BTreeMap::new(),
            admitted: BTreeSet::new(),
            look_at: Nanos::ZERO,
            is_restless: false,
            is_read_failing: false,
            doubted: Doubted::default(),
            lost: Vec::new(),
            not_read: 0,
            records_unreadable: 0,
            leases_held: 0,
            leases_lost: 0,
        }
    }

    /// Asks for all leases anew, before anything is done with whom they are of.
    pub fn doubt(&mut self, now: Nanos) {
        let leased = self.players.iter_mut().filter(|(_, player)| player.lease.get().is_some());
        let of_here = leased.filter(|(_, player)| !matches!(player.stage, Stage::Releasing));
        let ids = of_here.map(|(id, player)| {
            player.lease.doubt(now);
            *id
        });
        self.doubted.begin(ids.collect(), now);
        self.look_at = now;
    }

    /// Somebody's lease may be over, and the store has not said.
    pub fn is_in_doubt(&self, now: Nanos) -> bool {
        self.doubted.is_on(now)
    }

    /// The lease under which a player is written.
    pub fn lease(&self, player: u64) -> Option<Lease> {
        self.players.get(&player)?.lease.get()
    }

    /// Asked in every frame until it is another answer than `Wait`, and the player is placed.
    pub fn log_in(&mut self, client: ClientId, now: Nanos) -> LogIn {
        self.is_restless = true;
        let player = self.players.entry(client.0).or_insert_with(|| Player {
            lease: HeldLease::default(),
            stage: Stage::Wants { from: now },
            asked_at: now,
            is_known_to_game: false,
            is_left_out: false,
        });
        player.asked_at = now;
        match &player.stage {
            Stage::Loaded(Loaded { world, has }) => {
                player.is_known_to_game = true;
                LogIn::Ready { world: *world, is_new: has.is_none() }
            }
            Stage::Failed(why) => LogIn::Refuse(why),
            // Who comes back before the lease is given up has it still.
            Stage::Left => {
                player.stage = Stage::Wants { from: now };
                LogIn::Wait
            }
            // A client whose world failed.
            Stage::Plays => {
                player.stage = Stage::Wants { from: now };
                LogIn::Wait
            }
            Stage::Wants { .. } | Stage::Leasing | Stage::Reading { .. } | Stage::Leaves(_) | Stage::Releasing => {
                LogIn::Wait
            }
        }
    }

    /// It is placed: what it has is taken along.
    pub fn take_loaded(&mut self, client: ClientId) -> Option<Transfer> {
        let player = self.players.get_mut(&client.0)?;
        match std::mem::replace(&mut player.stage, Stage::Plays) {
            Stage::Loaded(loaded) => {
                self.admitted.remove(&client.0);
                loaded.has
            }
            stage => {
                player.stage = stage;
                None
            }
        }
    }

    /// It is not placed after all. True: the game's directory was asked about it.
    pub fn gave_up(&mut self, client: ClientId) -> bool {
        self.is_restless = true;
        let Some(player) = self.players.get_mut(&client.0) else { return false };
        let was_asked = std::mem::take(&mut player.is_known_to_game);
        let goes_on = matches!(player.stage, Stage::Leaves(_) | Stage::Releasing | Stage::Leasing | Stage::Plays);
        if !goes_on {
            player.stage = Stage::Left;
        }
        was_asked
    }

    /// Its connection has ended, in a world whose game sees it in the next tick; in none: nothing more follows.
    pub fn left(&mut self, client: ClientId, world: Option<WorldId>) {
        self.is_restless = true;
        if let Some(player) = self.players.get_mut(&client.0) {
            player.stage = world.map_or(Stage::Left, Stage::Leaves);
        }
    }

    /// The game of its world has seen it go.
    pub fn departed(&mut self, client: ClientId) {
        self.is_restless = true;
        if let Some(player) = self.players.get_mut(&client.0)
            && matches!(player.stage, Stage::Leaves(_))
        {
            player.stage = Stage::Left;
        }
    }

    /// A save is made without this player. Some: it is to say so, under this lease.
    pub fn note_left_out(&mut self, client: ClientId) -> Option<Lease> {
        let player = self.players.get_mut(&client.0)?;
        let lease = player.lease.get()?;
        (!std::mem::replace(&mut player.is_left_out, true)).then_some(lease)
    }

    /// A save has this player. True: one before was made without, and it is to say that this is over.
    pub fn is_whole_again(&mut self, client: ClientId) -> bool {
        self.players.get_mut(&client.0).is_some_and(|player| std::mem::take(&mut player.is_left_out))
    }

    /// The operator lets this player in with what is saved, though it is older than what others have from them.
    pub fn admit(&mut self, player: u64) {
        self.admitted.insert(player);
    }

    /// This world does not tick any more.
    pub fn world_ended(&mut self, world: WorldId) {
        self.is_restless = true;
        for player in self.players.values_mut() {
            if matches!(player.stage, Stage::Leaves(left) if left == world) {
                player.stage = Stage::Left;
            }
        }
    }

    /// Something was refused because somebody else has had this player since the lease with this fence.
    pub fn lost_lease(&mut self, player: u64, fence: u64, now: Nanos) {
        if let Some(entry) = self.players.get_mut(&player)
            && entry.lease.lost(fence)
        {
            self.leases_lost += 1;
            if matches!(entry.stage, Stage::Reading { .. } | Stage::Loaded(_) | Stage::Failed(_)) {
                // Not placed yet: what was read of them is old.
                entry.stage = Stage::Wants { from: now };
                self.is_restless = true;
            }
            self.doubted.settle(player);
            log_error!(
                SAVES,
                client = player,
                "another process has taken this player over, since the lease was not prolonged in time: they are sent away, and what \
                 they did here since the last save is not kept; is the store slow, or did this process stand still?"
            );
            self.lost.push(ClientId(player));
        }
    }

    /// What was loaded of these, if they are not placed yet, was never saved.
    pub fn load_again(&mut self, players: &BTreeSet<ClientId>, now: Nanos) {
        for client in players {
            let Some(player) = self.players.get_mut(&client.0) else { continue };
            if matches!(player.stage, Stage::Reading { .. } | Stage::Loaded(_) | Stage::Failed(_)) {
                (player.stage, self.is_restless) = (Stage::Wants { from: now }, true);
            }
        }
    }

    /// Another process has this player, who was here.
    pub fn is_lost(&self, client: ClientId) -> bool {
        let player = self.players.get(&client.0);
        player.is_some_and(|player| player.lease.get().is_none() && matches!(player.stage, Stage::Plays))
    }

    /// Those who are to be sent away, since this was last asked.
    pub fn take_lost(&mut self) -> Vec<ClientId> {
        std::mem::take(&mut self.lost)
    }

    /// What the writer says of a lease.
    pub fn take_answer(
        &mut self,
        id: u64,
        is_release: bool,
        outcome: Outcome,
        now: Nanos,
        commits: &mut Commits,
        reader: &mut PlayerReader,
    ) {
        let Some(player) = self.players.get_mut(&id) else { return };
        self.is_restless = true;
        let Answer { is_sure, has_failed } = player.lease.take_answer(&outcome, &self.terms, now);
        if is_sure || is_release {
            self.doubted.settle(id);
        }
        if has_failed {
            self.look_at = now;
        }
        match outcome {
            Ok(Done::Leased(_)) => {
                if matches!(player.stage, Stage::Leasing) {
                    self.read(id, now, commits, reader);
                }
            }
            Ok(_) if is_release => {
                let came_back = !matches!(player.stage, Stage::Releasing);
                player.lease.given_up();
                if !came_back {
                    self.players.remove(&id);
                }
            }
            Ok(_) => {}
            Err(Refusal::Held { owner, until_ms, .. }) => {
                if !matches!(player.stage, Stage::Leasing) {
                    return;
                }
                self.leases_held += 1;
                log_info!(
                    SAVES,
                    client = id,
                    owner,
                    until_ms,
                    "a player who logs in is with another process; they wait"
                );
                player.stage = Stage::Wants { from: now + HELD_AGAIN_AFTER };
            }
            Err(Refusal::Stale { .. } | Refusal::Unleased { .. }) if is_release => {
                self.players.remove(&id);
            }
            Err(Refusal::Stale { ours, .. }) => self.lost_lease(id, ours, now),
            // The disk failed; it is asked again.
            Err(_) => match player.stage {
                Stage::Leasing => player.stage = Stage::Wants { from: now },
                Stage::Releasing => player.stage = Stage::Left,
                _ => {}
            },
        }
    }

    /// Asks for leases, and gives them up.
    pub fn step(&mut self, now: Nanos, unix_ms: u64, commits: &mut Commits, reader: &mut PlayerReader) {
        reader.step(now);
        while let Some((number, record)) = reader.take() {
            self.take_read(number, record, now);
        }
        if now >= self.look_at {
            self.look_at = now + LOOK_EVERY;
            self.look_at_everybody(now, unix_ms, commits);
            self.give_up_reads(now, reader);
        }
        if !std::mem::take(&mut self.is_restless) {
            return;
        }
        let mut to_read = Vec::new();
        for (&id, player) in &mut self.players {
            let key = Key::player(id);
            match player.stage {
                Stage::Wants { from } if from <= now => {
                    if player.lease.get().is_some() {
                        to_read.push(id);
                        continue;
                    }
                    if commits.lease(self.terms.take(key, unix_ms), now) {
                        player.stage = Stage::Leasing;
                    }
                }
                Stage::Left if [key, Key::left_out(id)].iter().all(|key| commits.newest(*key).is_none()) => {
                    match player.lease.get() {
                        Some(lease) if commits.lease(LeaseRequest::Release { lease }, now) => {
                            player.stage = Stage::Releasing
                        }
                        Some(_) => {}
                        None => player.stage = Stage::Releasing,
                    }
                }
                _ => {}
            }
        }
        to_read.into_iter().for_each(|id| self.read(id, now, commits, reader));
        let is_restless = |player: &Player| matches!(player.stage, Stage::Wants { .. } | Stage::Left);
        self.is_restless = self.players.values().any(is_restless);
        // Those who have nothing to give up.
        self.players.retain(|_, player| !matches!(player.stage, Stage::Releasing) || player.lease.get().is_some());
    }

    fn look_at_everybody(&mut self, now: Nanos, unix_ms: u64, commits: &mut Commits) {
        for player in self.players.values_mut() {
            let is_waited_for = matches!(
                player.stage,
                Stage::Wants { .. } | Stage::Reading { .. } | Stage::Loaded(_) | Stage::Failed(_)
            );
            if is_waited_for && now.saturating_sub(player.asked_at) > FORGOTTEN_AFTER {
                player.stage = Stage::Left;
                self.is_restless = true;
            }
            if !matches!(player.stage, Stage::Releasing) {
                player.lease.prolong_if_due(&self.terms, now, unix_ms, commits);
            }
        }
    }

    /// Gives up what is not read in time: that player is refused, and others are read.
    fn give_up_reads(&mut self, now: Nanos, reader: &mut PlayerReader) {
        self.under_way.retain(|_, read| !read.asked.is_over());
        for (id, UnderWay { asked, since }) in &self.under_way {
            if now.saturating_sub(*since) < reader.within() {
                continue;
            }
            let waits = |player: &&mut Player| matches!(player.stage, Stage::Reading { read } if read == asked.number);
            if let Some(player) = self.players.get_mut(id).filter(waits)
                && reader.give_up(asked)
            {
                player.stage = refuse_unread(*id, &mut self.not_read);
            }
        }
    }

    /// This process did not run for so long: in that time nobody could have been read.
    pub fn stood_still(&mut self, length: Nanos) {
        self.under_way.values_mut().for_each(|read| read.since += length);
    }

    /// Loads what is newest of a player.
    fn read(&mut self, id: u64, now: Nanos, commits: &Commits, reader: &mut PlayerReader) {
        let Some(player) = self.players.get_mut(&id) else { return };
        if let Some(newest) = commits.newest(Key::player(id)) {
            let is_refused = player.is_left_out && !self.admitted.contains(&id);
            player.stage =
                stage_of(id, newest.as_ref().map(|bytes| &bytes[..]), is_refused, &mut self.records_unreadable);
            return;
        }
        if let Some(UnderWay { asked, since }) = self.under_way.get(&id) {
            reader.give_up(asked);
            if asked.is_under_way() {
                // Each read that hangs keeps a thread: there is one for a player, however often they log in.
                player.stage = match now.saturating_sub(*since) < reader.within() {
                    true => Stage::Wants { from: now + HELD_AGAIN_AFTER },
                    false => refuse_unread(id, &mut self.not_read),
                };
                return;
            }
        }
        let is_left_out = commits.newest(Key::left_out(id)).map(|said| said.is_some());
        let asked = reader.ask(PlayerLoad { player: id, is_left_out, reads: self.reads.clone() });
        player.stage = Stage::Reading { read: asked.number };
        self.under_way.insert(id, UnderWay { asked, since: now });
    }

    fn take_read(&mut self, number: u64, record: PlayerRecord, now: Nanos) {
        let PlayerRecord { player: id, found } = record;
        let is_waited_for = |player: &&mut Player| matches!(player.stage, Stage::Reading { read } if read == number);
        let Some(player) = self.players.get_mut(&id).filter(is_waited_for) else { return };
        self.is_read_failing &= found.is_err();
        player.stage = match found {
            Ok(PlayerFound { saved, is_left_out }) => {
                if saved.as_ref().is_some_and(|saved| saved.is_previous) {
                    log_warn!(SAVES, client = id, "the record of a player is damaged, and the one before it is loaded");
                }
                player.is_left_out = is_left_out;
                let is_refused = is_left_out && !self.admitted.contains(&id);
                let saved = saved.as_ref().map(|saved| &saved.value[..]);
                stage_of(id, saved, is_refused, &mut self.records_unreadable)
            }
            Err(error) if error.is_final() || matches!(error, StoreError::Panicked) => {
                refuse_unreadable(id, &error, &mut self.records_unreadable)
            }
            Err(error) => {
                // Once for a store that is away, and not for each who waits for it.
                if !std::mem::replace(&mut self.is_read_failing, true) {
                    log_warn!(SAVES, client = id, %error, "what is saved of a player cannot be read now; who logs in waits");
                }
                self.is_restless = true;
                Stage::Wants { from: now + HELD_AGAIN_AFTER }
            }
        };
    }

    /// Nobody is let in any more.
    pub fn close(&mut self) {
        self.is_restless = true;
        for player in self.players.values_mut() {
            if matches!(player.stage, Stage::Wants { .. } | Stage::Reading { .. } | Stage::Loaded(_) | Stage::Failed(_))
            {
                player.stage = Stage::Left;
            }
        }
    }

    /// Nobody comes or goes.
    pub fn is_quiet(&self) -> bool {
        self.players.values().all(|player| matches!(player.stage, Stage::Plays))
    }

    pub fn leases_count(&self) -> usize {
        self.players.values().filter(|player| player.lease.get().is_some()).count()
    }
}

/// What becomes of one of whom this is saved. `is_refused`: it is too old, and the operator has not said that they may come in.
fn stage_of(id: u64, saved: Option<&[u8]>, is_refused: bool, unreadable: &mut u64) -> Stage {
    if is_refused {
        log_error!(
            SAVES,
            client = id,
            "a player is not let in: a save was made without them, so what is saved of them is older than what others have from them; \
             the console's `player.admit` lets them in with it"
        );
        return Stage::Failed(LEFT_OUT);
    }
    let Some(saved) = saved else { return Stage::Loaded(Loaded::default()) };
    match record::read_player(saved) {
        Ok((world, has)) => Stage::Loaded(Loaded { world, has: Some(has) }),
        Err(error) => refuse_unreadable(id, &error, unreadable),
    }
}

fn refuse_unreadable(id: u64, error: &dyn std::fmt::Display, unreadable: &mut u64) -> Stage {
    *unreadable += 1;
    log_error!(SAVES, client = id, %error, "the record of a player cannot be read; it is left as it is, and they are not let in");
    Stage::Failed(UNREADABLE)
}

fn refuse_unread(id: u64, not_read: &mut u64) -> Stage {
    *not_read += 1;
    log_error!(
        SAVES,
        client = id,
        "what is saved of a player was not read within `load_within_s`: they are not let in for now"
    );
    Stage::Failed(NOT_READ)
}
