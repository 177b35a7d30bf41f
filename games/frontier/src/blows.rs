//! Blows: everything that hurts or mends in a tick lands here, in the order in which it was dealt, so that the same
//! deeds leave the same world.
//!
//! A blow lowers its victim's health, is told to those around, makes the victim hate its attacker, and ends a life when
//! no health is left.
//!
//! Cost: 150 ns a blow, most of it for what is told.

use crate::{
    actors::Side,
    components::Gesture,
    deeds::Blow,
    events::{Critical, Damage, Means},
    zone::Zone,
};

/// What blows of the blessed are worth more.
const BLESSED_PART: i32 = 4;
/// What a kill brings.
const KILL_LOOT: u16 = 3;
/// The dead stay dead for so long. (ms)
pub const DEATH_MS: u32 = 8_000;

/// Lands this tick's blows.
pub fn land(mut zone: Zone) {
    let mut blows = std::mem::take(&mut zone.deeds.blows);
    for blow in blows.drain(..) {
        // Killed by an earlier blow of this tick, or gone.
        let Some(target) = zone.actors.resolve(blow.target) else { continue };
        if matches!(blow.means, Means::Heal | Means::Totem) {
            mend(&mut zone, target, blow);
        } else {
            hurt(&mut zone, target, blow);
        }
    }
    zone.deeds.blows = blows;
}

fn mend(zone: &mut Zone, target: u32, blow: Blow) {
    let row = &mut zone.actors[target];
    let before = row.health;
    row.health = row.health_max.min(before + blow.amount);
    let amount = row.health - before;
    zone.health_changed(target);
    if amount > 0 {
        tell(zone, target, Blow { amount, ..blow });
    }
}

fn hurt(zone: &mut Zone, target: u32, blow: Blow) {
    let now = zone.now();
    let source = blow.source.and_then(|who| zone.actors.resolve(who));
    let blessed = source.is_some_and(|source| zone.actors[source].clocks.blessed > now);
    let amount = if blessed { blow.amount + blow.amount / BLESSED_PART } else { blow.amount };
    throng::count!("hits");
    zone.actors[target].health -= amount;
    zone.health_changed(target);
    zone.actors.play(target, Gesture::Flinch);
    tell(zone, target, Blow { amount, ..blow });
    if let Some(source) = source {
        zone.actors[target].fought_tick = now + 1;
        zone.actors[source].fought_tick = now + 1;
        zone.set_filtered(source, false);
        zone.set_filtered(target, false);
        let who = zone.actors.who(source);
        if zone.actors.are_enemies(target, source) {
            if let Some(mind) = zone.minds.get(target) {
                mind.hate(who, amount.max(1) as u32);
            }
            if zone.actors[target].side == Side::Folk {
                zone.deeds.struck.push((blow.target, who));
            }
        }
    }
    if zone.actors[target].health <= 0 {
        die(zone, target, source);
    }
}

fn tell(zone: &mut Zone, target: u32, blow: Blow) {
    let source = zone.actors.source(blow.source, target);
    let amount = blow.amount.clamp(0, i32::from(u16::MAX)) as u16;
    let cause = match blow.means {
        Means::Melee => "combat.melee",
        Means::Rampage => "combat.rampage",
        Means::Bolt | Means::Blast => "combat.spell",
        Means::Trap => "combat.trap",
        Means::Disease => "combat.disease",
        Means::Heal | Means::Totem => "combat.heal",
    };
    let means = blow.means;
    zone.tell(target, |target| Damage { target, source, amount, means }, cause);
    if blow.critical {
        throng::count!("criticals");
        zone.tell(target, |target| Critical { target, source, amount }, cause);
    }
}

fn die(zone: &mut Zone, target: u32, killer: Option<u32>) {
    throng::count!("deaths");
    let (now, death) = (zone.now(), zone.ticks(DEATH_MS));
    zone.set_filtered(target, false);
    zone.actors.play(target, Gesture::Die);
    zone.actors.end_life(target);
    zone.actors.mark(target, u8::MAX);
    zone.actors[target].health = 0;
    zone.actors[target].expires_tick = now + death;
    zone.weigh(target, 1.0);
    zone.neighbours.remove(target);
    if let Some(mind) = zone.minds.get(target) {
        mind.forget_all();
        mind.errand = crate::npc::minds::Errand::Stand;
    }
    if let Some(killer) = killer.filter(|&killer| zone.actors[killer].is_player()) {
        let row = zone.actors[killer].player;
        zone.earn(row, KILL_LOOT);
    }
}
