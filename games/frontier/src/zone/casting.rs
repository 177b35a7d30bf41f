//! Casting: how a spell begins, and whether it reaches its target when it is done.

use super::Zone;
use crate::{
    actors::{Casting, Who},
    components::Gesture,
    deeds::Done,
    events::Cast,
    landscape::distance_m2,
    protocol::Ability,
    spell_book::Spell,
};

impl Zone<'_> {
    /// Begins a spell, if it is ready and nothing is in the way. False if not.
    pub fn begin_cast(&mut self, index: u32, ability: Ability, target: Option<Who>) -> bool {
        let now = self.now();
        let spell = Spell::of(ability);
        let row = &self.actors[index];
        let ready = row.alive
            && ability != Ability::None
            && row.casting.is_none()
            && row.ready_tick[ability as usize] <= now
            && !row.is_stunned(now);
        if !ready {
            return false;
        }
        let (cast, cool) = (self.ticks(spell.cast_ms), self.ticks(spell.cool_ms));
        let row = &mut self.actors[index];
        row.casting = Some(Casting { ability, target, ends_tick: now + cast });
        row.ready_tick[ability as usize] = now + cast + cool;
        self.actors.casting.insert(index);
        self.actors.play(index, Gesture::Cast);
        throng::count!("casts");
        self.tell(index, |caster| Cast { caster, ability }, "spell.cast");
        true
    }

    /// The target of a spell that is done, if it lives, is in reach and in line of sight, where its caster sees it.
    pub fn reachable(&mut self, done: &Done) -> Option<u32> {
        let target = self.actors.resolve(done.target?)?;
        let place = self.place_for(done.caster, target);
        let reach_m = f32::from(Spell::of(done.ability).reach_m);
        let in_reach = distance_m2(self.actors[done.caster].place, place) <= reach_m * reach_m;
        (in_reach && self.sees_at(done.caster, target, place)).then_some(target)
    }
}
