//! The hopper: runs all over the map and jumps as it likes, onto crates and beside them. Bots keep to the ground, and what
//! one sees by a jump is to be judged, too.

use std::sync::Arc;

use duel::{
    BotGuide,
    components::Pose,
    protocol::{Input, MATCH},
};
use glam::Vec3;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_bots::Behaviour;
use throng_client::Client;
use throng_platform::time::Nanos;

/// So near a waypoint counts as passed (m).
const PASSED_M: f32 = 0.6;
/// One input in so many jumps, and at one in so many it goes elsewhere.
const JUMPS_ONE_IN: u32 = 60;
const TURNS_ONE_IN: u32 = 500;

pub struct Hopper {
    guide: Arc<BotGuide>,
    way: Vec<Vec3>,
}

impl Hopper {
    pub fn new(guide: Arc<BotGuide>) -> Self {
        Self { guide, way: Vec::new() }
    }

    /// Where it runs to from here.
    fn next(&mut self, feet: Vec3, rng: &mut Xoshiro256PlusPlus) -> Vec3 {
        let is_passed = |place: &Vec3| place.with_y(0.0).distance(feet.with_y(0.0)) < PASSED_M;
        while self.way.first().is_some_and(is_passed) {
            self.way.remove(0);
        }
        if self.way.is_empty() || rng.random_ratio(1, TURNS_ONE_IN) {
            let sites = &self.guide.map.sites;
            let waypoints = &sites[rng.random_range(0..sites.len())].ways[rng.random_range(0..3)].waypoints;
            let to = waypoints[rng.random_range(0..waypoints.len())];
            self.guide.find_way(feet, to, &mut self.way);
        }
        self.way.first().copied().unwrap_or(feet)
    }
}

impl Behaviour for Hopper {
    fn think(&mut self, now: Nanos, client: &mut Client, rng: &mut Xoshiro256PlusPlus) {
        let due = client.due_inputs(now);
        if client.world().is_none_or(|world| world.name != MATCH) {
            return;
        }
        let Some(feet) = client.own_state::<Pose>().map(|pose| pose.state.feet()) else { return };
        for _ in 0..due {
            let way = self.next(feet, rng) - feet;
            let input = Input::new([way.x, way.z], way.x.atan2(way.z), 0.0);
            let input = if rng.random_ratio(1, JUMPS_ONE_IN) { input.and_jump() } else { input };
            // Refused between two worlds.
            let _ = client.send_input(now, &input);
        }
    }
}
