//! Saves: what players own and worlds became, kept in a store while the game goes on.
//!
//! Everything begins with a cut (`throng_world::saving`): a world and everybody in it between two ticks. Worlds are asked
//! for one every `period_s`, each in its turn; whoever leaves or travels brings one about. All cuts of a frame are one
//! commit, handed to the writer at its end, so a player who crosses from one world to another is saved in the frame in
//! which they cross, with the world that they left, and in the record it says where they are from then on.
//!
//! ```text
//! worlds' ticks -- cuts --> commits -- writer's thread --> store
//!      ^                       |
//!      '-- wishes answered ----'--> leases given up, once all of a player is on disk
//!
//! log-in --> players: lease, record --> directory --> arrival with what was saved
//! world ordered --> its record is read --> the maker has it taken up --> world
//! ```
//!
//! | file | what it has |
//! | --- | --- |
//! | `commits.rs` | what is on its way to the disk, and what becomes of it when the disk refuses |
//! | `going_back.rs` | worlds that return to their last save, since somebody in them is another process's |
//! | `players.rs` | who may be written by this process, and who is loaded |
//! | `world_leases.rs` | the same for worlds, where several processes share the store |
//! | `held_lease.rs` | a lease, prolonged as long as it is wanted |
//! | `record.rs` | the bytes |
//! | `reader.rs` | records, read beside the frames and within a time |
//! | `loading.rs` | what is read of a player, and a world's record when it is made |
//! | `load_journal.rs` | which of them ended a server when it was loaded |
//! | `placing.rs` | the log-in's way to the directory |
//! | `of_server.rs` | what the frame does |
//! | `counts.rs` | what is counted |
//! | `status.rs` | what is told |
//! | `store.rs` | which store the settings mean |
//! | `offline.rs` | the saves of a server that does not run |
//!
//! A disk that is slow, full or dead costs saves and log-ins, and no tick. What is not on disk stays in memory, the newest of
//! each record, and is handed in when the disk is back.
//!
//! Frame thread, but for reading, writing and packing. Cost: some microseconds for each cut that comes; nothing in a frame
//! without one.

mod commits;
mod counts;
mod going_back;
mod held_lease;
mod load_journal;
mod loading;
mod of_server;
pub mod offline;
mod placing;
mod players;
mod reader;
mod record;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod world_leases;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
};

use throng_net::protocol::ClientId;
use throng_persistence::{Commit, Key, Kind, Reads, Refusal, Store, Writer, WriterSettings, writer::Full};
use throng_platform::{clock::Clock, time::Nanos};
use throng_profiler::{log_error, log_info, log_warn};
use throng_world::{
    ids::WorldId,
    saving::{Cut, SaveAnswer},
};

use counts::SAVES;
pub(crate) use counts::SaveCounts;
pub(crate) use load_journal::LoadJournal;
pub(crate) use loading::{Load, Record};
pub(crate) use placing::{Placing, WithSaves};
pub(crate) use reader::{Asked, WorldReader};
pub use status::{SavedNow, SavesStatus, WORLDS_MISSING_MAX};
pub use store::StoreOpenError;
pub(crate) use store::{StoreToOpen, open_as_set};

use crate::{
    lifecycle::{Answer, NewWorld},
    settings::SavesSettings,
};
use commits::{Answered, Answers, Commits, Parcel, Told};
use held_lease::LeaseTerms;
use players::Players;
use reader::{PlayerReader, Reader};
pub(crate) use world_leases::Claim;
use world_leases::WorldLeases;

/// Worlds are looked at so often for whether their time has come.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);

/// Of two frames that are farther apart this process stood still between them.
const FRAME_MAX: Nanos = Nanos::from_millis(500);

/// Test switch: what saving can get wrong, to show that it does not go unseen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveFault {
    /// The world that a traveller leaves is not saved with them.
    MovesLeftOut,
    /// What a player has is not saved with the world that they leave.
    LeaversLeftOut,
    /// What was refused is not handed in again.
    RefusalsForgotten,
}

/// Somebody who wants everything saved.
struct SaveNow {
    answer: Answer<SavedNow>,
    /// Worlds are waited for until then.
    until: Nanos,
    /// Worlds that could not be saved since.
    missing: Vec<u32>,
}

/// A world's saves, as the frame knows them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SlotSaves {
    /// Cuts are taken of it.
    pub is_on: bool,
    /// The number that it is saved under.
    pub id: Option<u64>,
    /// It has ticked since its last cut.
    pub is_dirty: bool,
    /// It was asked for one.
    pub is_asked: bool,
    /// The server ends, and its last one is taken: it ticks no more.
    pub is_final: bool,
    /// The last one failed, which was told.
    pub is_failing: bool,
    /// When it is to be asked next.
    pub due: Nanos,
}

/// A request for a world that waits for another of the same number to end, or for a store that can be read.
struct Waiting {
    new: NewWorld,
    answer: Answer<WorldId>,
    /// It is ordered from then on.
    from: Nanos,
}

/// A world whose record cannot be read now is ordered again so often.
const LOAD_AGAIN_AFTER: Nanos = Nanos::from_secs(1);

/// A world that is there, and whose load is suspected.
struct OnTrial {
    world: WorldId,
    /// The number that it is saved under.
    id: u64,
    /// How often it had ticked then.
    loaded_at: u32,
}

/// Whether a world goes back to its last save.
enum GoesBack {
    Surely,
    /// If one of these is in it, which is not known while it is away.
    IfHere(BTreeSet<ClientId>),
}

/// The server's saves.
pub(crate) struct Saves {
    commits: Commits,
    players: Players,
    /// `None`: nobody else writes in this store.
    world_leases: Option<WorldLeases>,
    terms: LeaseTerms,
    /// The server saves for the last time.
    is_ending: bool,
    /// Worlds that are no more since the server was told to stop, and of which the last ticks are in no save.
    ended_unsaved: usize,
    reads: Arc<dyn Reads>,
    player_reader: PlayerReader,
    world_reader: WorldReader,
    clock: Arc<dyn Clock>,
    period: Nanos,
    look_at: Nanos,
    /// When the frame before this one was.
    stepped_at: Option<Nanos>,
    /// Where each number's world is.
    worlds: BTreeMap<u64, WorldId>,
    /// Numbers of worlds that are ordered and not there yet.
    being_made: BTreeSet<u64>,
    waiting: VecDeque<Waiting>,
    /// Which loads ended a server.
    loads: Option<Arc<LoadJournal>>,
    /// Worlds that were among them and are there now.
    on_trial: Vec<OnTrial>,
    /// Of whom and of what others are the owners by now, since this was last looked at.
    stale: BTreeSet<Key>,
    /// Worlds that go back to their last save as soon as they are home.
    going_back: BTreeMap<WorldId, GoesBack>,
    /// Numbers of worlds that are being made of what is not saved after all.
    made_in_vain: BTreeSet<u64>,
    /// Operators who wait for the worlds that were asked, and then for the disk.
    save_now: Vec<SaveNow>,
    /// Wishes of games that are on disk now, by world.
    answers: Vec<(WorldId, SaveAnswer)>,
    /// Cuts whose cells are on disk now, by world and tick.
    cells_saved: Vec<(WorldId, u32)>,
    counts: SaveCounts,
    /// As the writer's counters were last looked at.
    errors_before: u64,
    damaged_before: u64,
    bytes_before: u64,
    batches_before: u64,
    cpu_before: Nanos,
    /// It was said that the store is away.
    is_away_told: bool,
    fault: Option<SaveFault>,
}

impl Saves {
    pub fn new(
        store: Box<dyn Store>,
        settings: &SavesSettings,
        clock: Arc<dyn Clock>,
        is_inline: bool,
    ) -> std::io::Result<Saves> {
        let is_shared = store.is_shared();
        let writer_settings = WriterSettings { queue_bytes_max: settings.queue_bytes_max, ..WriterSettings::default() };
        let writer = if is_inline {
            Writer::inline(store, writer_settings, clock.clone())
        } else {
            Writer::start(store, writer_settings)?
        };
        let reads = writer.reads();
        let within = Nanos::from_secs(settings.load_within_s.into());
        let (player_reader, world_reader) = if is_inline {
            (Reader::inline(within), Reader::inline(within))
        } else {
            (Reader::with_threads(within)?, Reader::with_threads(within)?)
        };
        let terms =
            LeaseTerms { owner: u64::from(settings.process), length: Nanos::from_secs(settings.lease_s.into()) };
        Ok(Saves {
            commits: Commits::new(writer),
            players: Players::new(terms, reads.clone()),
            world_leases: is_shared.then(|| WorldLeases::new(terms)),
            terms,
            reads,
            is_ending: false,
            ended_unsaved: 0,
            player_reader,
            world_reader,
            clock,
            period: Nanos::from_secs(settings.period_s.into()),
            look_at: Nanos::ZERO,
            stepped_at: None,
            worlds: BTreeMap::new(),
            being_made: BTreeSet::new(),
            waiting: VecDeque::new(),
            loads: None,
            on_trial: Vec::new(),
            stale: BTreeSet::new(),
            going_back: BTreeMap::new(),
            made_in_vain: BTreeSet::new(),
            save_now: Vec::new(),
            answers: Vec::new(),
            cells_saved: Vec::new(),
            counts: SaveCounts::default(),
            errors_before: 0,
            damaged_before: 0,
            bytes_before: 0,
            batches_before: 0,
            cpu_before: Nanos::ZERO,
            is_away_told: false,
            fault: None,
        })
    }

    /// A cut of a world: it is to be saved. `place_of` says where a traveller is from now on. False: the world goes back to the
    /// last one, and this one is nothing.
    pub fn take_cut(
        &mut self,
        (world, kind, id): (WorldId, &str, Option<u64>),
        cut: Cut,
        place_of: impl Fn(ClientId) -> Option<u64>,
    ) -> bool {
        let Cut { tick, world: state, cells, players, travellers, left_out, items, requests } = cut;
        let all = || players.iter().map(|(client, _)| client).chain(&left_out);
        let is_ours = |client: &ClientId| self.players.lease(client.0).is_some();
        let goes_back = match self.going_back.get(&world) {
            Some(GoesBack::Surely) => true,
            Some(GoesBack::IfHere(those)) => all().any(|client| those.contains(client)),
            None => false,
        };
        // Somebody whom another process has came here all the same, or it is another process's world.
        let is_all_ours = all().all(is_ours) && id.is_none_or(|id| self.may_write_world(id));
        if goes_back || !is_all_ours {
            self.going_back.insert(world, GoesBack::Surely);
            return false;
        }
        let mut commit = Commit::new();
        if let (Some(id), Some(state)) = (id, state) {
            commit.put_bytes(Key::world(id), record::of_world(kind, &state));
        }
        if let Some(lease) = id.and_then(|id| self.world_leases.as_ref()?.lease(id)) {
            commit.under(&lease);
        }
        let cells =
            id.map_or(Vec::new(), |id| cells.into_iter().map(|cell| (Key::cell(id, cell.cell), cell.value)).collect());
        let has_cells = !cells.is_empty();
        for (key, value) in cells {
            match value {
                Some(value) => commit.put_bytes(key, value),
                None => commit.delete(key),
            };
        }
        for (client, has) in players {
            let place = if travellers.contains(&client) { place_of(client) } else { id };
            if let Some(lease) = self.players.lease(client.0) {
                commit.put_bytes(Key::player(client.0), record::of_player(place, &has)).under(&lease);
                if self.players.is_whole_again(client) {
                    commit.delete(Key::left_out(client.0));
                }
            }
        }
        // What others have of these since is in this cut, and their own records stay as they were.
        for client in left_out {
            if let Some(lease) = self.players.note_left_out(client) {
                commit.put_bytes(Key::left_out(client.0), record::of_left_out()).under(&lease);
            }
        }
        for (kind, count) in items {
            commit.items_created(kind, count);
        }
        self.counts.cuts += 1;
        match self.fault {
            Some(SaveFault::MovesLeftOut) if !travellers.is_empty() => return true,
            Some(SaveFault::LeaversLeftOut) => travellers.iter().for_each(|it| _ = commit.withdraw(Key::player(it.0))),
            _ => {}
        }
        self.commits.add(Parcel::of_cut(world, commit, requests, has_cells.then_some(tick)));
        true
    }

    /// Somebody has left with what could not be saved. What others have from them is in a later cut of this world, so what is saved
    /// of them is too old from now on.
    fn departed_unsaved(&mut self, world: WorldId, client: ClientId) {
        if self.players.lease(client.0).is_some() {
            self.counts.players_quarantined += 1;
            log_error!(
                SAVES,
                client = client.0,
                "a player has left with what could not be saved: they are not let in before the console's `player.admit` says so, and \
                 then with what was saved before"
            );
        }
        if let Some(lease) = self.players.note_left_out(client) {
            let mut commit = Commit::new();
            commit.put_bytes(Key::left_out(client.0), record::of_left_out()).under(&lease);
            self.commits.add(Parcel::of_cut(world, commit, Vec::new(), None));
        }
        self.players.departed(client);
    }

    /// What this world had is not on disk, and will not be: whoever waits for everything is told so.
    fn could_not_save(&mut self, world: WorldId) {
        for asker in &mut self.save_now {
            if asker.missing.len() < WORLDS_MISSING_MAX && !asker.missing.contains(&world.number()) {
                asker.missing.push(world.number());
            }
        }
    }

    /// What is to be done in every frame, before clients are placed.
    fn step(&mut self, now: Nanos) {
        let stood_still = self.stepped_at.replace(now).map_or(Nanos::ZERO, |before| now.saturating_sub(before));
        if self.terms.may_be_over(stood_still) {
            log_warn!(
                SAVES,
                stood_still_s = stood_still.as_secs_f64(),
                "this process stood still: worlds that are saved wait until the store has said what is still this process's"
            );
            self.players.doubt(now);
            if let Some(leases) = &mut self.world_leases {
                leases.doubt(now);
            }
        }
        if stood_still > FRAME_MAX {
            self.commits.stood_still(stood_still);
            self.players.stood_still(stood_still);
        }
        while let Some(answer) = self.commits.take_answer() {
            match answer {
                Answered::Saved(parcel) => {
                    self.counts.commits += 1;
                    let Answers { requests, cells, told } = parcel.into_answers();
                    let saved = |(world, request)| (world, SaveAnswer { request, is_on_disk: true });
                    self.answers.extend(requests.into_iter().map(saved));
                    self.cells_saved.extend(cells);
                    for Told { answer, worlds_missing } in told {
                        let commits = self.commits.counters().commits;
                        answer.give(Ok(SavedNow { commits, worlds_missing }));
                    }
                }
                Answered::Refused(refusal) => {
                    self.counts.refused += 1;
                    match refusal {
                        Refusal::Stale { key, ours, .. } => self.lost_lease(key, ours, now),
                        Refusal::Unleased { key } => _ = self.stale.insert(key),
                        _ => {}
                    }
                }
                Answered::Lease { key, is_release, outcome } => {
                    let is_stale = matches!(outcome, Err(Refusal::Stale { .. })) && !is_release;
                    match key.kind {
                        Kind::Player | Kind::LeftOut => {
                            let Self { players, commits, player_reader, .. } = self;
                            players.take_answer(key.id as u64, is_release, outcome, now, commits, player_reader);
                        }
                        Kind::World | Kind::Cell => {
                            if let Some(leases) = &mut self.world_leases {
                                leases.take_answer(key.id as u64, is_release, &outcome, now);
                            }
                        }
                    }
                    if is_stale {
                        self.stale.insert(key);
                    }
                }
            }
        }
        let unix_ms = self.clock.unix_seconds() * 1_000;
        let Self { players, world_leases, commits, player_reader, worlds, being_made, .. } = self;
        players.step(now, unix_ms, commits, player_reader);
        if let Some(leases) = world_leases {
            let is_used = |id: &u64| worlds.contains_key(id) || being_made.contains(id);
            leases.step(now, unix_ms, commits, is_used);
        }
    }

    /// A commit was refused, since somebody else has had this player or world since the lease with this fence.
    fn lost_lease(&mut self, key: Key, fence: u64, now: Nanos) {
        self.stale.insert(key);
        match (key.kind, &mut self.world_leases) {
            (Kind::Player, _) => self.players.lost_lease(key.id as u64, fence, now),
            (_, Some(leases)) => leases.lost_lease(key.id as u64, fence),
            (_, None) => {}
        }
    }

    /// Whose this number is, before a world is made that is saved under it.
    fn claim(&mut self, id: u64, now: Nanos) -> Claim {
        self.world_leases.as_mut().map_or(Claim::Ours, |leases| leases.claim(id, now))
    }

    fn lease_length(&self) -> Nanos {
        self.terms.length
    }

    /// Everything is on disk, and the server ends.
    fn give_worlds_up(&mut self, now: Nanos) {
        let Self { world_leases, commits, .. } = self;
        if let Some(leases) = world_leases {
            leases.give_all_up(now, commits);
        }
    }

    /// What is saved under this number is this process's to write.
    fn may_write_world(&self, id: u64) -> bool {
        self.world_leases.as_ref().is_none_or(|leases| leases.lease(id).is_some())
    }

    /// No world is saved under this number any more.
    fn world_gave_up(&mut self, id: u64) {
        if let Some(leases) = &mut self.world_leases {
            leases.left(id);
        }
    }

    /// Hands in what the frame's worlds have brought.
    fn submit(&mut self, now: Nanos) {
        self.commits.submit(now);
        self.counts.put_off += u64::from(self.commits.full.is_some());
        self.tell_if_store_is_away(now);
    }

    fn tell_if_store_is_away(&mut self, now: Nanos) {
        let is_away = self.commits.is_away(now);
        self.counts.away += u64::from(is_away);
        if is_away == self.is_away_told {
            return;
        }
        self.is_away_told = is_away;
        match self.commits.full {
            _ if !is_away => log_info!(SAVES, "the store takes saves again: what waited is on disk"),
            Some(Full::Ended) => log_error!(
                SAVES,
                "the thread that saves has died; nothing is saved from now on, and only a restart helps"
            ),
            Some(full) => {
                log_warn!(SAVES, %full, "nothing is saved for now; play goes on, and what is there is kept in memory")
            }
            None if self.commits.stands_still(now) => log_warn!(
                SAVES,
                after_s = commits::STANDS_STILL_AFTER.as_secs_f64(),
                "the store does not come back from what it was given: the disk, or PostgreSQL, stands still; play goes on, and \
                 what is there is kept in memory"
            ),
            None => log_warn!(
                SAVES,
                "the store has failed and is being opened anew; play goes on, and what is there is kept in memory"
            ),
        }
    }

    /// What was counted since this was last asked.
    pub fn take_counts(&mut self) -> SaveCounts {
        let of_writer = self.commits.counters();
        let mut counts = std::mem::take(&mut self.counts);
        counts.store_errors += of_writer.errors - std::mem::replace(&mut self.errors_before, of_writer.errors);
        counts.records_damaged += of_writer.damaged - std::mem::replace(&mut self.damaged_before, of_writer.damaged);
        counts.bytes += of_writer.bytes - std::mem::replace(&mut self.bytes_before, of_writer.bytes);
        counts.transactions += of_writer.batches - std::mem::replace(&mut self.batches_before, of_writer.batches);
        counts.transaction_us = self.commits.take_longest_batch().as_micros();
        // Whole microseconds: what is less is counted the next time.
        let cpu_us = of_writer.thread_cpu.saturating_sub(self.cpu_before).as_micros();
        self.cpu_before += Nanos::from_micros(cpu_us);
        counts.thread_cpu_us += cpu_us;
        counts.players_not_read += std::mem::take(&mut self.players.not_read);
        counts.records_unreadable += std::mem::take(&mut self.players.records_unreadable);
        counts.leases_held += std::mem::take(&mut self.players.leases_held);
        counts.leases_lost += std::mem::take(&mut self.players.leases_lost);
        counts
    }

    /// Worlds that are saved are not to tick: players in them may be another process's by now.
    pub fn holds_worlds(&self, now: Nanos) -> bool {
        self.players.is_in_doubt(now) || self.world_leases.as_ref().is_some_and(|leases| leases.is_in_doubt(now))
    }

    /// Nothing reaches the disk now.
    pub fn is_away(&self) -> bool {
        self.is_away_told
    }

    /// Everything is on disk, and nobody comes or goes.
    pub fn is_settled(&self) -> bool {
        self.commits.is_all_saved() && self.players.is_quiet()
    }

    fn status(&self, worlds_unsaved: usize) -> SavesStatus {
        let writer = self.commits.counters();
        SavesStatus {
            is_down: self.is_away_told,
            worlds_unsaved,
            waiting_bytes: self.commits.waiting_bytes() as u64,
            queued_bytes: writer.queued_bytes,
            leases: self.players.leases_count(),
            commits: writer.commits,
            newest_batch_ms: writer.newest_batch.as_micros() / 1_000,
            longest_batch_ms: writer.longest_batch.as_micros() / 1_000,
        }
    }
}
