//! Senses: whom and what a bot notices around itself.
//!
//! One pass over what its client shows, a few times a second; remembered in between. Cost: some 3 µs for fifty
//! entities.

use throng_client::Client;
use throng_replication::NetId;

use crate::{
    components::{Kind, Look, Pose, Vitals},
    landscape::{Landscape, distance_m2},
};

/// A place in the landscape, x and z. (m)
pub type Place = [f32; 2];

/// How far it notices anything. (m)
const NOTICE_M: f32 = 45.0;
/// How far it walks for something to gather. (m)
const NODE_M: f32 = 35.0;
/// How near others must be to be joined. (m)
const JOIN_M: f32 = 15.0;
/// How near a door must be to be opened. (m)
const DOOR_M: f32 = 4.0;
/// Enemies this near count as around it. (m)
const AROUND_M: f32 = 8.0;
/// How far its spells reach friends. (m)
const FRIEND_M: f32 = 25.0;
/// Others under this health are hurt. (percent)
const HURT: u8 = 40;

/// Somebody or something, as it was seen last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noticed {
    pub id: NetId,
    pub place: Place,
}

/// What is around: the nearest of each.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Senses {
    /// A living monster in sight.
    pub enemy: Option<Noticed>,
    /// Monsters right around it.
    pub enemies_count: u32,
    pub node: Option<Noticed>,
    pub banker: Option<Noticed>,
    pub door: Option<Noticed>,
    pub player: Option<Noticed>,
    /// Whether a player near is badly hurt.
    pub hurt_friend: bool,
}

/// The nearest so far. (m²)
struct Nearest(f32, Option<Noticed>);

impl Nearest {
    fn within(range_m: f32) -> Self {
        Self(range_m * range_m, None)
    }

    fn offer(&mut self, distance_m2: f32, noticed: Noticed) {
        if distance_m2 < self.0 {
            *self = Self(distance_m2, Some(noticed));
        }
    }
}

impl Senses {
    /// Looks around from `at`.
    pub fn look_around(&mut self, client: &Client, own: NetId, at: Place, landscape: &Landscape) {
        let replicas = client.replicas();
        let mut enemy = Nearest::within(NOTICE_M);
        let mut node = Nearest::within(NODE_M);
        let mut banker = Nearest::within(NOTICE_M);
        let mut door = Nearest::within(DOOR_M);
        let mut player = Nearest::within(JOIN_M);
        (self.enemies_count, self.hurt_friend) = (0, false);
        for (id, pose) in replicas.iter::<Pose>() {
            let place = [pose.x, pose.z];
            let distance_m2 = distance_m2(place, at);
            if id == own || distance_m2 >= NOTICE_M * NOTICE_M {
                continue;
            }
            let Some(&Look { kind, .. }) = replicas.get::<Look>(id) else { continue };
            let noticed = Noticed { id, place };
            match kind {
                Kind::Node => node.offer(distance_m2, noticed),
                Kind::Banker => banker.offer(distance_m2, noticed),
                Kind::Door => door.offer(distance_m2, noticed),
                Kind::Player => {
                    let health = replicas.get::<Vitals>(id).filter(|vitals| vitals.alive).map(|vitals| vitals.health);
                    self.hurt_friend |= distance_m2 < FRIEND_M * FRIEND_M && health.is_some_and(|health| health < HURT);
                    player.offer(distance_m2, noticed);
                }
                kind if kind.is_monster() && replicas.get::<Vitals>(id).is_some_and(|vitals| vitals.alive) => {
                    self.enemies_count += u32::from(distance_m2 < AROUND_M * AROUND_M);
                    enemy.offer(distance_m2, noticed);
                }
                _ => {}
            }
        }
        // One line of sight: to the nearest, and not to those behind it.
        self.enemy = enemy.1.filter(|enemy| landscape.is_line_clear(at, enemy.place));
        (self.node, self.banker, self.door, self.player) = (node.1, banker.1, door.1, player.1);
    }
}
