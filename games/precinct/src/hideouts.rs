//! Hideouts: which player gets which.
//!
//! A player that connects again gets its own hideout back, since its assignment outlives its connection. A new player gets the first one
//! that was never taken; when there is none, the one whose owner has been away longest. When every owner is
//! connected, nobody more is let in.
//!
//! Asked by the frame thread once per connection. Cost: a hash look-up; a queue operation for newcomers. Memory: about 80
//! bytes per hideout.

use std::collections::{HashMap, VecDeque};

use throng::directory::{Directory, Placement};
use throng::prelude::*;
use throng_net::protocol::{ClientId, UserData};

pub struct Hideouts {
    worlds: Vec<WorldId>,
    owners: Vec<Option<Owner>>,
    /// Which hideout a player owns.
    owned: HashMap<u64, usize>,
    /// Hideouts that were never taken come first, then those whose owners left, longest away first. May name hideouts that have been
    /// taken again since; those are passed over.
    vacant: VecDeque<(usize, u32)>,
}

struct Owner {
    client_id: u64,
    connected: bool,
    /// Counts comings and goings, to tell a vacancy from an older one.
    stay: u32,
}

impl Hideouts {
    pub fn new(worlds: Vec<WorldId>) -> Self {
        let owners = worlds.iter().map(|_| None).collect();
        let vacant = (0..worlds.len()).map(|index| (index, 0)).collect();
        Self { worlds, owners, owned: HashMap::new(), vacant }
    }

    fn claim(&mut self) -> Option<usize> {
        while let Some((index, stay)) = self.vacant.pop_front() {
            match &self.owners[index] {
                None => return Some(index),
                Some(owner) if !owner.connected && owner.stay == stay => {
                    self.owned.remove(&owner.client_id);
                    return Some(index);
                }
                Some(_) => {}
            }
        }
        None
    }

    /// Those who come and go again and again leave vacancies behind that no longer are.
    fn forget_old_vacancies(&mut self) {
        if self.vacant.len() > 2 * self.worlds.len() {
            let owners = &self.owners;
            self.vacant.retain(|&(index, stay)| {
                owners[index].as_ref().is_none_or(|owner| !owner.connected && owner.stay == stay)
            });
        }
    }
}

impl Directory for Hideouts {
    fn place(&mut self, client_id: ClientId, _: &UserData) -> Placement {
        if let Some(&index) = self.owned.get(&client_id.0) {
            if let Some(owner) = &mut self.owners[index] {
                owner.connected = true;
                owner.stay += 1;
            }
            return Placement::World(self.worlds[index]);
        }
        let Some(index) = self.claim() else {
            return Placement::Refuse("every hideout's owner is connected");
        };
        let stay = self.owners[index].as_ref().map_or(1, |owner| owner.stay + 1);
        self.owners[index] = Some(Owner { client_id: client_id.0, connected: true, stay });
        self.owned.insert(client_id.0, index);
        Placement::World(self.worlds[index])
    }

    fn left(&mut self, client_id: ClientId) {
        let Some(&index) = self.owned.get(&client_id.0) else { return };
        let Some(owner) = &mut self.owners[index] else { return };
        if std::mem::take(&mut owner.connected) {
            self.vacant.push_back((index, owner.stay));
            self.forget_old_vacancies();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(hideouts: &mut Hideouts, client_id: u64) -> Option<u32> {
        match hideouts.place(ClientId(client_id), &[0; 256]) {
            Placement::World(world) => Some(world.index() as u32),
            Placement::Pending | Placement::Refuse(_) => None,
        }
    }

    #[test]
    fn everybody_has_a_hideout_of_its_own_and_gets_it_back() {
        let mut hideouts = Hideouts::new((10..13).map(|index| WorldId::new(index, 0)).collect());
        assert_eq!(place(&mut hideouts, 1), Some(10));
        assert_eq!(place(&mut hideouts, 2), Some(11));
        hideouts.left(ClientId(1));
        assert_eq!(place(&mut hideouts, 3), Some(12), "one never taken goes first");
        assert_eq!(place(&mut hideouts, 1), Some(10), "back home");
        assert_eq!(place(&mut hideouts, 4), None);
    }

    #[test]
    fn the_one_longest_away_loses_its_hideout() {
        let mut hideouts = Hideouts::new((0..2).map(|index| WorldId::new(index, 0)).collect());
        place(&mut hideouts, 1);
        place(&mut hideouts, 2);
        hideouts.left(ClientId(1));
        place(&mut hideouts, 1);
        hideouts.left(ClientId(2));
        hideouts.left(ClientId(1));
        assert_eq!(place(&mut hideouts, 3), Some(1));
        assert_eq!(place(&mut hideouts, 2), Some(0));
        assert_eq!(place(&mut hideouts, 1), None);
    }

    #[test]
    fn comings_and_goings_without_end_keep_the_queue_short() {
        let mut hideouts = Hideouts::new(vec![WorldId::new(0, 0), WorldId::new(1, 0)]);
        for round in 0..1_000 {
            assert!(place(&mut hideouts, round % 3).is_some());
            hideouts.left(ClientId(round % 3));
        }
        assert!(hideouts.vacant.len() <= 4);
    }
}
