//! Effects: stuns, diseases and other clocks on an actor, and what follows from a change of its health.

use super::Zone;
use crate::{
    actors::{Clocks, dirty},
    events::Stun,
};

const DISEASE_MS: u32 = 12_000;
const IMMUNE_MS: u32 = 60_000;

impl Zone<'_> {
    /// Starts a clock on somebody, or lets it run longer.
    pub fn afflict(&mut self, index: u32, ms: u32, clock: impl Fn(&mut Clocks) -> &mut u32) {
        let until = self.now() + self.ticks(ms);
        let clock = clock(&mut self.actors[index].clocks);
        *clock = until.max(*clock);
        self.actors.afflicted.insert(index);
        self.actors.mark(index, dirty::EFFECTS);
    }

    pub fn stun(&mut self, index: u32, ms: u32) {
        self.afflict(index, ms, |clocks| &mut clocks.stunned);
        self.actors[index].casting = None;
        self.actors.casting.remove(index);
        throng::count!("stuns");
        self.tell(index, |target| Stun { target, tenths: (ms / 100).min(255) as u8 }, "spell.stun");
    }

    /// Gives somebody a disease, unless it is immune.
    pub fn infect(&mut self, index: u32) {
        let now = self.now();
        if self.actors[index].clocks.immune > now {
            return;
        }
        let (until, immune) = (now + self.ticks(DISEASE_MS), now + self.ticks(IMMUNE_MS));
        let clocks = &mut self.actors[index].clocks;
        (clocks.diseased, clocks.immune) = (until, immune);
        self.actors.diseased.insert(index);
        self.actors.afflicted.insert(index);
        self.actors.mark(index, dirty::EFFECTS);
    }

    /// After any change of somebody's health: bounds it, notes what clients are told, and who is to be healed.
    pub fn health_changed(&mut self, index: u32) {
        let row = &mut self.actors[index];
        row.health = row.health.min(row.health_max);
        let lacks = row.alive && row.health < row.health_max;
        self.actors.mending.set(index, lacks);
        self.actors.mark(index, dirty::VITALS);
        self.regroup(index);
    }
}
