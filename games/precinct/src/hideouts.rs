//! Hideouts: which player gets which, and when its world is there.
//!
//! A hideout is a place in the game with an ordinal, from which its seed and its NPCs follow, and a world only while
//! somebody needs it: its world is made when its owner comes, and retired
//! [`PrecinctSettings::hideout_linger_s`](crate::PrecinctSettings) after the owner has left the server. Who comes back
//! sooner finds it as it was. A world that ended by itself while its owner was in the hub or the dark zone is made
//! again, so that the owner can go home.
//!
//! A player that connects again gets its own hideout back, since its assignment outlives its connection and its world.
//! A new player gets the first one that was never taken; when there is none, the one whose owner has been away longest:
//! with a world of its own, since what is in there is saved as the owner's ([`hideout_number`]) and follows that to
//! whichever hideout is next. When every owner is connected, nobody more is let in.
//!
//! Worlds are made on demand and none is kept in store. To build a hideout with 19 NPCs takes the maker's thread some
//! 0.1 ms (`bench/worlds`), and it costs its owner the one frame that any answer of the server takes; a store would
//! save neither, and each world in it would hold memory and a seed that belongs to somebody else.
//!
//! Asked by the frame thread once per connection, and once more for each frame that its world is being made. Cost: a
//! hash look-up; a queue operation for newcomers; nothing in a frame in which nobody's time is over. Memory: about 150
//! bytes per hideout.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use throng::{
    directory::{Directory, Placement},
    lifecycle::{NewWorld, Pending, WorldError},
    prelude::*,
    server::ServerControl,
};
use throng_net::protocol::{ClientId, UserData};
use throng_platform::time::Nanos;
use throng_profiler::{log_category, log_error};

use crate::saves::hideout_number;

log_category!(HIDEOUTS = "precinct.hideouts");

/// How long after its end a world is made again whose owner is elsewhere: one that ends whenever it is made costs
/// little.
const REMAKE_AFTER: Nanos = Nanos::from_secs(5);

/// Who makes hideouts' worlds: the server, or a test.
pub trait Maker: Send {
    /// A request that has been made.
    type Request: Send;

    /// Asks for the world of a hideout, which is saved as its owner's.
    fn ask(&mut self, ordinal: usize, owner: ClientId) -> Self::Request;

    /// The answer, once. `None`: not yet.
    fn answer(&mut self, request: &Self::Request) -> Option<Result<WorldId, WorldError>>;

    fn retire(&mut self, world: WorldId);
}

/// Has a server make them.
pub struct ServerMaker {
    pub control: ServerControl,
    /// Of each hideout, by ordinal.
    pub plans: Vec<NewWorld>,
}

impl Maker for ServerMaker {
    type Request = Pending<WorldId>;

    fn ask(&mut self, ordinal: usize, owner: ClientId) -> Pending<WorldId> {
        let plan = self.plans[ordinal].clone();
        self.control.create_world(match hideout_number(owner) {
            Some(number) => plan.saved_as(number),
            None => plan,
        })
    }

    fn answer(&mut self, request: &Pending<WorldId>) -> Option<Result<WorldId, WorldError>> {
        request.try_take()
    }

    fn retire(&mut self, world: WorldId) {
        // Nobody waits for the end: the directory is told of it.
        drop(self.control.retire_world(world));
    }
}

/// The worlds of hideouts that are there, by ordinal. Written by the directory, read by tests and tools.
#[derive(Debug, Clone, Default)]
pub struct HideoutWorlds(Arc<Mutex<Vec<Option<WorldId>>>>);

impl HideoutWorlds {
    /// Those that are there, by ordinal.
    pub fn alive(&self) -> Vec<WorldId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().copied().collect()
    }

    fn set(&self, ordinal: usize, world: Option<WorldId>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[ordinal] = world;
    }
}

/// Hideouts and their owners.
pub struct Hideouts<M: Maker = ServerMaker> {
    maker: M,
    hideouts: Vec<Hideout<M::Request>>,
    /// Which hideout a player owns.
    owned: HashMap<u64, usize>,
    /// Whose world it is.
    ordinal_of: HashMap<WorldId, usize>,
    /// Hideouts that were never taken come first, then those whose owners left, longest away first. May name hideouts
    /// that have been taken again since; those are passed over.
    vacant: VecDeque<(usize, u32)>,
    /// Hideouts whose owners left a short while ago, and when their worlds are retired. May name some whose owners are
    /// back.
    lingering: VecDeque<(Nanos, usize, u32)>,
    /// Hideouts whose worlds ended while their owners were connected, and when they are made again.
    ended: Vec<(Nanos, usize)>,
    /// Worlds that were asked for and are nobody's any more: they go as soon as they have come.
    orphans: Vec<M::Request>,
    linger: Nanos,
    /// The beginning of this frame.
    now: Nanos,
    /// The worlds, for those who look on.
    worlds: HideoutWorlds,
}

struct Hideout<R> {
    owner: Option<u64>,
    is_owner_connected: bool,
    /// Counts comings and goings, to tell a vacancy from an older one.
    stay: u32,
    world: HideoutWorld<R>,
}

enum HideoutWorld<R> {
    None,
    Asked(R),
    There(WorldId),
}

impl<M: Maker> Hideouts<M> {
    /// So many hideouts, all without a world. Those whose owners have left keep theirs for `linger`.
    pub fn new(maker: M, count: usize, linger: Nanos) -> Self {
        let hideout = |_| Hideout { owner: None, is_owner_connected: false, stay: 0, world: HideoutWorld::None };
        Self {
            maker,
            hideouts: (0..count).map(hideout).collect(),
            owned: HashMap::new(),
            ordinal_of: HashMap::new(),
            vacant: (0..count).map(|ordinal| (ordinal, 0)).collect(),
            lingering: VecDeque::new(),
            ended: Vec::new(),
            orphans: Vec::new(),
            linger,
            now: Nanos::ZERO,
            worlds: HideoutWorlds(Arc::new(Mutex::new(vec![None; count]))),
        }
    }

    /// A hideout whose world was made before anybody asked for it.
    pub fn settle(&mut self, ordinal: usize, world: WorldId) {
        self.ordinal_of.insert(world, ordinal);
        self.worlds.set(ordinal, Some(world));
        self.hideouts[ordinal].world = HideoutWorld::There(world);
    }

    /// The worlds that are there, also later on.
    pub fn worlds(&self) -> HideoutWorlds {
        self.worlds.clone()
    }

    fn claim(&mut self, client_id: u64) -> Option<usize> {
        while let Some((ordinal, stay)) = self.vacant.pop_front() {
            let hideout = &mut self.hideouts[ordinal];
            if hideout.is_owner_connected || hideout.stay != stay {
                continue;
            }
            if let Some(former) = hideout.owner.replace(client_id) {
                self.owned.remove(&former);
                self.clear_out(ordinal);
            }
            self.owned.insert(client_id, ordinal);
            return Some(ordinal);
        }
        None
    }

    /// Its former owner's world, with what is in the chest there, is not the next one's.
    fn clear_out(&mut self, ordinal: usize) {
        match std::mem::replace(&mut self.hideouts[ordinal].world, HideoutWorld::None) {
            HideoutWorld::None => {}
            HideoutWorld::Asked(request) => self.orphans.push(request),
            HideoutWorld::There(world) => {
                self.maker.retire(world);
                self.forget_world(world);
            }
        }
    }

    /// Worlds that nobody waits for go.
    fn retire_orphans(&mut self) {
        let Self { orphans, maker, .. } = self;
        orphans.retain(|request| match maker.answer(request) {
            None => true,
            Some(answer) => {
                answer.into_iter().for_each(|world| maker.retire(world));
                false
            }
        });
    }

    /// The hideout's world; asks for one if there is none.
    fn world(&mut self, ordinal: usize) -> Option<Result<WorldId, WorldError>> {
        let hideout = &mut self.hideouts[ordinal];
        let answer = match &hideout.world {
            HideoutWorld::There(world) => return Some(Ok(*world)),
            HideoutWorld::Asked(request) => self.maker.answer(request)?,
            HideoutWorld::None => {
                let owner = ClientId(hideout.owner.expect("it is asked for by its owner"));
                hideout.world = HideoutWorld::Asked(self.maker.ask(ordinal, owner));
                return None;
            }
        };
        hideout.world = HideoutWorld::None;
        if let Ok(world) = answer {
            self.settle(ordinal, world);
        }
        Some(answer)
    }

    /// Retires the worlds of those who have been away for long enough.
    fn retire_abandoned(&mut self) {
        while let Some((_, ordinal, stay)) = self.lingering.pop_front_if(|(until, ..)| *until <= self.now) {
            let hideout = &self.hideouts[ordinal];
            if hideout.is_owner_connected || hideout.stay != stay {
                continue;
            }
            // Its owner did not wait for it: it goes as soon as it has come.
            let is_being_made = matches!(hideout.world, HideoutWorld::Asked(_)) && self.world(ordinal).is_none();
            if is_being_made {
                self.lingering.push_back((self.linger_from(self.now), ordinal, stay));
            } else {
                self.retire(ordinal);
            }
        }
    }

    /// Makes worlds again that ended while their owners were elsewhere.
    fn remake_ended(&mut self) {
        let mut ended = std::mem::take(&mut self.ended);
        ended.retain(|&(at, ordinal)| self.now < at || self.is_being_remade(ordinal));
        self.ended = ended;
    }

    /// Asks for the hideout's world, unless its owner has left meanwhile, and looks whether it has come.
    fn is_being_remade(&mut self, ordinal: usize) -> bool {
        let hideout = &self.hideouts[ordinal];
        if !hideout.is_owner_connected && !matches!(hideout.world, HideoutWorld::Asked(_)) {
            return false;
        }
        let answer = self.world(ordinal);
        if let Some(Err(error)) = &answer {
            log_error!(HIDEOUTS, hideout = ordinal, %error, "a hideout cannot be made again");
        }
        answer.is_none()
    }

    /// Until when a hideout stays whose owner left now: not in the same frame.
    fn linger_from(&self, now: Nanos) -> Nanos {
        now.saturating_add(self.linger.max(Nanos(1)))
    }

    fn retire(&mut self, ordinal: usize) {
        if let HideoutWorld::There(world) = self.hideouts[ordinal].world {
            self.maker.retire(world);
            self.forget_world(world);
        }
    }

    /// Returns whose it was.
    fn forget_world(&mut self, world: WorldId) -> Option<usize> {
        let ordinal = self.ordinal_of.remove(&world)?;
        self.hideouts[ordinal].world = HideoutWorld::None;
        self.worlds.set(ordinal, None);
        Some(ordinal)
    }

    /// Those who come and go again and again leave vacancies behind that no longer are.
    fn forget_old_vacancies(&mut self) {
        let (hideouts, count_max) = (&self.hideouts, 2 * self.hideouts.len());
        let is_current = |ordinal: usize, stay: u32| {
            let hideout = &hideouts[ordinal];
            !hideout.is_owner_connected && hideout.stay == stay
        };
        if self.vacant.len() > count_max {
            self.vacant.retain(|&(ordinal, stay)| is_current(ordinal, stay));
        }
        if self.lingering.len() > count_max {
            self.lingering.retain(|&(_, ordinal, stay)| is_current(ordinal, stay));
        }
    }
}

impl<M: Maker> Directory for Hideouts<M> {
    /// At home, wherever it was when it was saved: nobody is sent back to where he was in danger, or gets out of it sooner.
    fn place(&mut self, client_id: ClientId, _: &UserData) -> Placement {
        if hideout_number(client_id).is_none() {
            return Placement::Refuse("no hideout is kept for so large a client id");
        }
        let owned = self.owned.get(&client_id.0).copied();
        let Some(ordinal) = owned.or_else(|| self.claim(client_id.0)) else {
            return Placement::Refuse("every hideout's owner is connected");
        };
        let hideout = &mut self.hideouts[ordinal];
        // The first question of this stay; the others ask whether its world is there.
        if !hideout.is_owner_connected {
            hideout.is_owner_connected = true;
            hideout.stay += 1;
        }
        match self.world(ordinal) {
            Some(Ok(world)) => Placement::World(world),
            None => Placement::Pending,
            Some(Err(error)) => {
                log_error!(HIDEOUTS, client = client_id.0, %error, "a hideout cannot be made");
                // After a refusal nobody says that the client has left.
                self.left(client_id);
                Placement::Refuse("its hideout cannot be made")
            }
        }
    }

    fn left(&mut self, client_id: ClientId) {
        let Some(&ordinal) = self.owned.get(&client_id.0) else { return };
        let hideout = &mut self.hideouts[ordinal];
        if std::mem::take(&mut hideout.is_owner_connected) {
            let stay = hideout.stay;
            self.vacant.push_back((ordinal, stay));
            self.lingering.push_back((self.linger_from(self.now), ordinal, stay));
            self.forget_old_vacancies();
        }
    }

    fn frame(&mut self, now: Nanos) {
        self.now = now;
        self.retire_orphans();
        self.retire_abandoned();
        self.remake_ended();
    }

    fn world_ended(&mut self, world: WorldId) {
        // One that was retired here is forgotten already.
        let Some(ordinal) = self.forget_world(world) else { return };
        if self.hideouts[ordinal].is_owner_connected {
            self.ended.push((self.now.saturating_add(REMAKE_AFTER), ordinal));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    const LINGER: Nanos = Nanos::from_secs(30);

    /// Worlds that are ready when they are asked about for the second time.
    #[derive(Default)]
    struct Workshop {
        asked: BTreeMap<u32, bool>,
        asked_count: u32,
        made: BTreeSet<WorldId>,
        retired: usize,
        is_broken: bool,
    }

    impl Maker for Workshop {
        type Request = u32;

        fn ask(&mut self, _: usize, _: ClientId) -> u32 {
            self.asked_count += 1;
            self.asked.insert(self.asked_count, false);
            self.asked_count
        }

        fn answer(&mut self, request: &u32) -> Option<Result<WorldId, WorldError>> {
            if !std::mem::replace(self.asked.get_mut(request)?, true) {
                return None;
            }
            self.asked.remove(request);
            if self.is_broken {
                return Some(Err(WorldError::Closing));
            }
            let world = WorldId::new(*request, 0);
            self.made.insert(world);
            Some(Ok(world))
        }

        fn retire(&mut self, world: WorldId) {
            assert!(self.made.remove(&world), "{world} is not there");
            self.retired += 1;
        }
    }

    fn hideouts(count: usize) -> Hideouts<Workshop> {
        Hideouts::new(Workshop::default(), count, LINGER)
    }

    /// Asks until there is an answer, as the door does; which hideout it is.
    fn place(hideouts: &mut Hideouts<Workshop>, client_id: u64) -> Option<usize> {
        for _ in 0..4 {
            match hideouts.place(ClientId(client_id), &[0; 256]) {
                Placement::World(world) => return Some(hideouts.ordinal_of[&world]),
                Placement::Refuse(_) => return None,
                Placement::Pending => {}
            }
        }
        panic!("its world is not made in time")
    }

    fn at(hideouts: &mut Hideouts<Workshop>, seconds: u64) {
        hideouts.frame(Nanos::from_secs(seconds));
    }

    /// What must hold between two calls.
    fn check(hideouts: &Hideouts<Workshop>) {
        for (client_id, ordinal) in &hideouts.owned {
            assert_eq!(hideouts.hideouts[*ordinal].owner, Some(*client_id));
        }
        let there: BTreeSet<WorldId> = hideouts.ordinal_of.keys().copied().collect();
        assert_eq!(there, hideouts.maker.made, "every world is somebody's");
        assert_eq!(there, hideouts.worlds.alive().into_iter().collect());
        for (world, ordinal) in &hideouts.ordinal_of {
            assert!(matches!(hideouts.hideouts[*ordinal].world, HideoutWorld::There(own) if own == *world));
        }
        assert!(hideouts.vacant.len().max(hideouts.lingering.len()) <= 2 * hideouts.hideouts.len() + 1);
    }

    #[test]
    fn everybody_has_a_hideout_of_its_own_and_gets_it_back() {
        let mut hideouts = hideouts(3);
        assert_eq!(place(&mut hideouts, 1), Some(0));
        assert_eq!(place(&mut hideouts, 2), Some(1));
        hideouts.left(ClientId(1));
        assert_eq!(place(&mut hideouts, 3), Some(2), "one never taken goes first");
        assert_eq!(place(&mut hideouts, 1), Some(0), "back home");
        assert_eq!(place(&mut hideouts, 4), None);
        check(&hideouts);
    }

    #[test]
    fn the_one_longest_away_loses_its_hideout() {
        let mut hideouts = hideouts(2);
        place(&mut hideouts, 1);
        place(&mut hideouts, 2);
        hideouts.left(ClientId(1));
        place(&mut hideouts, 1);
        hideouts.left(ClientId(2));
        hideouts.left(ClientId(1));
        assert_eq!(place(&mut hideouts, 3), Some(1));
        assert_eq!(place(&mut hideouts, 2), Some(0));
        assert_eq!(place(&mut hideouts, 1), None);
        check(&hideouts);
    }

    /// What is in a chest is its owner's, in whatever world.
    #[test]
    fn who_takes_over_a_hideout_gets_a_world_of_its_own() {
        let mut hideouts = hideouts(1);
        place(&mut hideouts, 1);
        let of_first = hideouts.worlds.alive();
        hideouts.left(ClientId(1));
        assert_eq!(place(&mut hideouts, 2), Some(0));
        assert_ne!(hideouts.worlds.alive(), of_first);
        assert_eq!(hideouts.maker.retired, 1, "with what is saved of it");
        check(&hideouts);
        // The same while it is being made.
        hideouts.left(ClientId(2));
        assert_eq!(hideouts.place(ClientId(3), &[0; 256]), Placement::Pending);
        hideouts.left(ClientId(3));
        assert_eq!(place(&mut hideouts, 4), Some(0));
        (0..200).for_each(|second| at(&mut hideouts, second));
        assert_eq!((hideouts.orphans.len(), hideouts.maker.retired, hideouts.maker.made.len()), (0, 3, 1));
        check(&hideouts);
    }

    #[test]
    fn a_world_is_made_when_its_owner_comes_and_retired_a_while_after_it_left() {
        let mut hideouts = hideouts(3);
        assert_eq!(hideouts.place(ClientId(1), &[0; 256]), Placement::Pending);
        assert_eq!(hideouts.worlds.alive(), []);
        place(&mut hideouts, 1);
        let first = hideouts.worlds.alive();
        at(&mut hideouts, 10);
        hideouts.left(ClientId(1));
        at(&mut hideouts, 39);
        assert_eq!(hideouts.worlds.alive(), first);
        place(&mut hideouts, 1);
        at(&mut hideouts, 1_000);
        assert_eq!(hideouts.worlds.alive(), first, "it came back in time and stays for as long as it likes");
        hideouts.left(ClientId(1));
        at(&mut hideouts, 1_030);
        assert_eq!((hideouts.worlds.alive().len(), hideouts.maker.retired), (0, 1));
        assert_eq!(place(&mut hideouts, 1), Some(0), "the same hideout");
        assert_ne!(hideouts.worlds.alive(), first, "in another world");
        check(&hideouts);
    }

    #[test]
    fn the_world_of_an_owner_who_did_not_wait_is_retired_too() {
        let mut hideouts = hideouts(1);
        assert_eq!(hideouts.place(ClientId(1), &[0; 256]), Placement::Pending);
        hideouts.left(ClientId(1));
        (0..200).for_each(|second| at(&mut hideouts, second));
        assert_eq!((hideouts.maker.asked.len(), hideouts.maker.retired), (0, 1));
        check(&hideouts);
    }

    #[test]
    fn a_world_that_ended_by_itself_is_made_again_for_the_next_visit() {
        let mut hideouts = hideouts(1);
        place(&mut hideouts, 1);
        let world = hideouts.worlds.alive()[0];
        hideouts.maker.made.clear();
        hideouts.world_ended(world);
        check(&hideouts);
        hideouts.left(ClientId(1));
        assert_eq!(place(&mut hideouts, 1), Some(0));
        assert_ne!(hideouts.worlds.alive(), [world]);
    }

    /// Its owner could not go home until the next log-in, since nobody asked for another world.
    #[test]
    fn a_world_that_ended_while_its_owner_was_elsewhere_is_made_again() {
        let mut hideouts = hideouts(2);
        place(&mut hideouts, 1);
        place(&mut hideouts, 2);
        let worlds = hideouts.worlds.alive();
        hideouts.maker.made.clear();
        worlds.iter().for_each(|world| hideouts.world_ended(*world));
        hideouts.left(ClientId(2));
        at(&mut hideouts, 4);
        assert_eq!(hideouts.maker.asked_count, 2, "not at once");
        (5..8).for_each(|second| at(&mut hideouts, second));
        assert_eq!((hideouts.maker.asked_count, hideouts.worlds.alive().len()), (3, 1), "nobody waits for the other");
        assert!(!worlds.contains(&hideouts.worlds.alive()[0]));
        assert!(hideouts.ended.is_empty());
        assert_eq!(place(&mut hideouts, 1), Some(0));
        check(&hideouts);
    }

    #[test]
    fn who_is_refused_since_its_world_cannot_be_made_may_come_again() {
        let mut hideouts = hideouts(1);
        hideouts.maker.is_broken = true;
        assert_eq!(place(&mut hideouts, 1), None);
        assert!(!hideouts.hideouts[0].is_owner_connected);
        hideouts.maker.is_broken = false;
        assert_eq!(place(&mut hideouts, 1), Some(0));
        check(&hideouts);
    }

    /// By chance, for a long time: worlds are there for those who are connected, gone for those who have been away, and
    /// nobody gets another's.
    #[test]
    fn comings_and_goings_without_end_keep_everything_in_order() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(17);
        let mut hideouts = Hideouts::new(Workshop::default(), 5, Nanos::from_secs(5));
        let mut connected = BTreeMap::new();
        for second in 0..20_000 {
            at(&mut hideouts, second);
            let client_id = rng.random_range(0..9);
            match rng.random_range(0..3) {
                0 if !connected.contains_key(&client_id) => {
                    let ordinal = place(&mut hideouts, client_id);
                    assert_eq!(ordinal.is_none(), connected.len() == 5);
                    if let Some(ordinal) = ordinal {
                        assert!(connected.values().all(|other| *other != ordinal), "it is another's");
                        connected.insert(client_id, ordinal);
                    }
                }
                1 if connected.remove(&client_id).is_some() => hideouts.left(ClientId(client_id)),
                _ => {}
            }
            check(&hideouts);
            assert!(hideouts.worlds.alive().len() >= connected.len());
        }
        connected.keys().for_each(|client_id| hideouts.left(ClientId(*client_id)));
        at(&mut hideouts, 30_000);
        check(&hideouts);
        assert_eq!(hideouts.worlds.alive(), []);
        assert!(hideouts.maker.retired > 200, "{}", hideouts.maker.retired);
    }
}
