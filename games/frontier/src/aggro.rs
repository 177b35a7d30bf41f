//! Aggro: monsters notice players and townsfolk, and players who walk are noticed by monsters: the question from both
//! sides.
//!
//! A monster, or a guard, without an enemy asks at its thoughts who is near; a player that has walked some metres asks
//! which monsters are, which is sooner than the next thought of any. One rule decides both ([`notices`]), so it makes
//! no difference who asks but when. Whoever sneaks is noticed only by who sees it ([`crate::visibility`]).
//!
//! Cost: 40 ns where nobody is near, which neighbour lists know without looking.

use crate::{
    actors::Side,
    components::Kind,
    landscape::distance_m2,
    neighbours::{Question, groups},
    npc::minds::{Errand, THOUGHT_MS},
    traits::{NOTICE_M_MAX, Traits},
    zone::Zone,
};

/// A player asks again after so much walking. (m)
const PLAYER_ASKS_AFTER_M: f32 = 3.0;

/// NPCs that think this tick and have no enemy look for one.
pub fn notice_enemies(mut zone: Zone) {
    let (now, period) = (zone.now(), zone.ticks(THOUGHT_MS));
    let npcs = zone.minds.rows.len() as u32;
    let first = (period - now % period) % period;
    for index in (first..npcs).step_by(period as usize) {
        let row = &zone.actors[index];
        let mind = &zone.minds.rows[index as usize];
        let looks = row.alive
            && row.target.is_none()
            && mind.errand != Errand::Return
            && row.kind() != Kind::Banker
            && zone.minds.is_awake(index, now);
        if !looks {
            continue;
        }
        let enemies = match row.side {
            Side::Monsters => groups::FOLK,
            _ => groups::MONSTERS,
        };
        let notice_m = Traits::of(row.kind()).notice_m;
        let mut near = zone.scratch.take();
        near.extend_from_slice(zone.neighbours.ask_within(Question::NoticeEnemy, notice_m, index, enemies));
        // The nearest that it sees; of equally near ones the lowest.
        let mut nearest: Option<(u32, f32)> = None;
        for &enemy in &near {
            let away_m2 = zone.distance_m2(index, enemy);
            if nearest.is_none_or(|(_, nearest_m2)| away_m2 < nearest_m2) && notices(&mut zone, index, enemy) {
                nearest = Some((enemy, away_m2));
            }
        }
        zone.scratch.give_back(near);
        if let Some((enemy, _)) = nearest {
            rouse(&mut zone, index, enemy);
        }
    }
}

/// Players that have walked are noticed by the monsters around them.
pub fn notice_monsters(mut zone: Zone) {
    let mut players = zone.scratch.take();
    players.extend(zone.roster.actors());
    for &player in &players {
        let place = zone.actors[player].place;
        let row = zone.actors[player].player;
        let asked_at = zone.roster.asked_at(row);
        let walked = distance_m2(*asked_at, place) > PLAYER_ASKS_AFTER_M * PLAYER_ASKS_AFTER_M;
        if !walked || !zone.actors[player].alive {
            continue;
        }
        *asked_at = place;
        let near = zone.asked(Question::NoticeMonster, player, groups::MONSTERS);
        for &monster in &near {
            let idle = zone.actors[monster].target.is_none()
                && zone.minds.rows[monster as usize].errand != Errand::Return
                && !zone.minds.rows[monster as usize].hates_anybody();
            if idle && notices(&mut zone, monster, player) {
                rouse(&mut zone, monster, player);
            }
        }
        zone.scratch.give_back(near);
    }
    zone.scratch.give_back(players);
}

/// Whether an NPC notices an enemy: near enough for its kind, and seen.
fn notices(zone: &mut Zone, npc: u32, enemy: u32) -> bool {
    let notice_m = Traits::of(zone.actors[npc].kind()).notice_m;
    debug_assert!(notice_m <= NOTICE_M_MAX);
    zone.distance_m2(npc, enemy) <= notice_m * notice_m && zone.sees(npc, enemy)
}

fn rouse(zone: &mut Zone, npc: u32, enemy: u32) {
    let who = zone.actors.who(enemy);
    zone.minds.rows[npc as usize].hate(who, 1);
    throng::count!("aggros");
}
