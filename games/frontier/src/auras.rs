//! Auras: songs that soothe those of the singer's side around it, for as long as it sings.
//!
//! Cost: 100 ns per singer and second.

use crate::{
    actors::dirty, components::Gesture, deeds::Done, events::Song, neighbours::Question, protocol::Ability, zone::Zone,
};

const PULSE_MS: u32 = 1_000;
/// Somewhat longer than a pulse, so that it does not flicker.
const SOOTHED_MS: u32 = 2_500;

/// Songs begin and end.
pub fn begin(mut zone: Zone) {
    let mut next = 0;
    while let Some((after, Done { caster, .. })) = zone.deeds.done_of(next, &[Ability::Sing]) {
        next = after;
        let sings = !zone.actors[caster].singing;
        zone.actors[caster].singing = sings;
        zone.actors.singing.set(caster, sings);
        zone.actors.mark(caster, dirty::EFFECTS);
        if sings {
            zone.actors.play(caster, Gesture::Sing);
            let tune = zone.actors[caster].look.variety & 15;
            zone.tell(caster, |singer| Song { singer, tune }, "spell.song");
        }
    }
}

/// Songs are heard.
pub fn pulse(mut zone: Zone) {
    let singers = zone.batch(|actors| actors.singing.list());
    let now = zone.now();
    for &singer in &singers {
        // A song nobody is there to hear is not worth the question.
        let asleep = zone.minds.rows.len() > singer as usize && !zone.minds.is_awake(singer, now);
        if asleep || !zone.is_due(singer, PULSE_MS) {
            continue;
        }
        let side = zone.actors[singer].side;
        throng::count!("pulses");
        let near = zone.asked(Question::Aura, singer, side.groups());
        for &listener in &near {
            // Only those who are hurt, or fight, are the better for it.
            let row = &zone.actors[listener];
            if row.health < row.health_max || row.target.is_some() {
                zone.soothe(listener, SOOTHED_MS);
            }
        }
        zone.scratch.give_back(near);
    }
    zone.scratch.give_back(singers);
}

impl Zone<'_> {
    /// Somebody heals faster for a while. Told only when it begins.
    fn soothe(&mut self, index: u32, ms: u32) {
        let now = self.now();
        let until = now + self.ticks(ms);
        let soothed = &mut self.actors[index].clocks.soothed;
        let begins = *soothed <= now;
        *soothed = until.max(*soothed);
        if begins {
            self.actors.afflicted.insert(index);
            self.actors.mark(index, dirty::EFFECTS);
        }
    }
}
