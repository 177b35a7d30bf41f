//! Script: what the game and its players do in a wild tick.

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::{
    source::rules::{KindRule, ReplicationRules, ResolvedRules, Tier},
    testing::{Flag, Health, Mood, Pose},
    wire::{ids::NetId, schema::ComponentIndex},
};

use super::ModelTest;

const POSE: ComponentIndex = ComponentIndex(0);
const HEALTH: ComponentIndex = ComponentIndex(1);
const FLAG: ComponentIndex = ComponentIndex(2);

#[derive(Copy, Clone, Debug, Default)]
pub enum Relevance {
    #[default]
    Everywhere,
    OwnerOnly,
    At([f32; 2]),
}

/// What the server knows of an entity.
#[derive(Clone, Debug, Default)]
pub struct Original {
    pub relevance: Relevance,
    pub pose: Option<Pose>,
    pub health: Option<Health>,
    pub flag: Option<Flag>,
    pub team: Option<u16>,
    pub filtered: bool,
}

/// Rules of a small world, with waits of up to 40 ticks.
pub fn some_rules(rng: &mut Xoshiro256PlusPlus) -> ResolvedRules {
    let rate = |rng: &mut Xoshiro256PlusPlus| [20.0, 10.0, 7.0, 4.0][rng.random_range(0..4)];
    let tier = |rng: &mut Xoshiro256PlusPlus, to_m| Tier { to_m, updates_per_s: rate(rng) };
    let tiers = [8.0, 20.0, 45.0].map(|to_m| tier(rng, to_m));
    let ranged = |rng: &mut Xoshiro256PlusPlus| KindRule {
        range_m: [None, Some(15.0), Some(30.0)][rng.random_range(0..3)],
        updates_per_s_max: [None, Some(4.0)][rng.random_range(0..2)],
    };
    let rules = ReplicationRules {
        tiers: tiers[..rng.random_range(0..=3)].to_vec(),
        catch_up_m: 30.0,
        keepalive_s: 2.0,
        components: (0..3).map(|_| ranged(rng)).collect(),
        ..ReplicationRules::default()
    };
    rules.resolved(20.0)
}

impl ModelTest {
    pub(super) fn play(&mut self) {
        let busy = self.rng.random_range(0..4);
        for _ in 0..busy {
            match self.rng.random_range(0..15) {
                0..=2 => self.spawn(),
                3 => {
                    if let Some(id) = self.anyone() {
                        self.originals.remove(&id);
                        assert!(self.world.despawn(id));
                    }
                }
                4 => {
                    if let Some(id) = self.anyone() {
                        self.world.remove(FLAG, id);
                        self.originals.get_mut(&id).unwrap().flag = None;
                    }
                }
                5 | 6 => {
                    let flag = self.any_flag();
                    if let Some(id) = self.anyone() {
                        self.world.update(FLAG, id, &flag);
                        self.originals.get_mut(&id).unwrap().flag = Some(flag);
                    }
                }
                7 | 8 => {
                    let health = Health { points: self.rng.random_range(0..1000) };
                    if let Some(id) = self.anyone() {
                        self.world.update(HEALTH, id, &health);
                        self.originals.get_mut(&id).unwrap().health = Some(health);
                    }
                }
                9 => {
                    if let Some(id) = self.anyone() {
                        self.world.set_owner_only(id);
                        self.originals.get_mut(&id).unwrap().relevance = Relevance::OwnerOnly;
                    }
                }
                10 => {
                    if let Some(id) = self.anyone() {
                        self.world.clear_place(id);
                        self.originals.get_mut(&id).unwrap().relevance = Relevance::Everywhere;
                    }
                }
                11 => {
                    let team = self.any_team();
                    if let Some(id) = self.anyone() {
                        self.world.set_team(id, team);
                        self.originals.get_mut(&id).unwrap().team = team;
                    }
                }
                12 if self.terms.secretive => {
                    if let Some(id) = self.anyone() {
                        let filtered = self.rng.random_bool(0.7);
                        self.world.set_visibility_filtered(id, filtered);
                        self.originals.get_mut(&id).unwrap().filtered = filtered;
                    }
                }
                13 => {
                    let weight = self.rng.random_range(0.05..20.0);
                    if let Some(id) = self.anyone() {
                        self.world.set_weight(id, weight);
                    }
                }
                _ => {
                    let pose = self.any_pose();
                    if let Some(id) = self.anyone() {
                        self.place(id, pose);
                        if self.rng.random_bool(0.5) {
                            self.world.set_urgent(id);
                        }
                    }
                }
            }
        }
        self.move_some();
    }

    pub(super) fn move_some(&mut self) {
        let share = [0.0, 0.1, 1.0][self.rng.random_range(0..3)];
        let ids: Vec<NetId> = self.originals.keys().copied().collect();
        for id in ids {
            if let Some(mut pose) = self.originals[&id].pose.clone()
                && self.rng.random_bool(share)
            {
                for axis in 0..2 {
                    pose.place[axis] = (pose.place[axis] + self.rng.random_range(-2.0..2.0)).clamp(-90.0, 90.0);
                }
                self.place(id, pose);
            }
        }
    }

    pub(super) fn spawn(&mut self) {
        let Ok(id) = self.world.spawn() else { return };
        self.originals.insert(id, Original::default());
        if self.rng.random_bool(0.9) {
            let pose = self.any_pose();
            self.place(id, pose);
        }
    }

    pub(super) fn place(&mut self, id: NetId, pose: Pose) {
        self.world.update(POSE, id, &pose);
        self.world.set_place(id, [pose.place[0], pose.place[1]]);
        let original = self.originals.get_mut(&id).unwrap();
        original.relevance = Relevance::At([pose.place[0], pose.place[1]]);
        original.pose = Some(pose);
    }

    pub(super) fn anyone(&mut self) -> Option<NetId> {
        let count = self.originals.len();
        let index = if count == 0 {
            return None;
        } else {
            self.rng.random_range(0..count)
        };
        self.originals.keys().nth(index).copied()
    }

    pub(super) fn any_pose(&mut self) -> Pose {
        let place = [(); 3].map(|()| self.rng.random_range(-90.0..90.0));
        Pose { place, heading: self.rng.random_range(-10.0..10.0) }
    }

    pub(super) fn any_flag(&mut self) -> Flag {
        let mood = [Mood::Calm, Mood::Wary, Mood::Angry][self.rng.random_range(0..3)];
        Flag { raised: self.rng.random_bool(0.5), mood }
    }

    pub(super) fn any_team(&mut self) -> Option<u16> {
        [None, Some(1), Some(2)][self.rng.random_range(0..3)]
    }

    /// Clients look around, own something else, or come back as new ones.
    pub(super) fn move_clients(&mut self) {
        for index in 0..self.clients.len() {
            let view = self.clients[index].view;
            match self.rng.random_range(0..60) {
                0 => {
                    let centre = [(); 2].map(|()| self.rng.random_range(-90.0..90.0));
                    self.world.set_view(view, centre);
                    self.clients[index].centre = centre;
                }
                1 => {
                    let own = self.anyone();
                    self.world.set_own(view, own);
                    self.clients[index].own = own;
                }
                3 => {
                    let team = self.any_team();
                    self.world.set_view_team(view, team);
                    self.clients[index].team = team;
                }
                2 if self.rng.random_bool(0.1) => {
                    self.world.remove_client(view);
                    let client = &mut self.clients[index];
                    client.epoch = client.epoch.wrapping_add(1);
                    client.view = self.world.add_client(client.epoch);
                    self.world.set_view(client.view, [0.0; 2]);
                    (client.centre, client.own, client.team) = ([0.0; 2], None, None);
                    client.told.clear();
                    // The connection is the same: its answers to packets of the former view come here, too.
                }
                _ => {}
            }
        }
    }
}
