//! Buffs: a blessing for the caster's party, as far as it is around.
//!
//! Cost: 100 ns per blessing and 20 ns per member.

use crate::{
    deeds::Done,
    neighbours::{Question, groups},
    protocol::Ability,
    zone::Zone,
};

const BLESSED_MS: u32 = 60_000;

/// Blesses the parties of those who have said the words, and themselves.
pub fn bless(mut zone: Zone) {
    let mut next = 0;
    while let Some((after, Done { caster, .. })) = zone.deeds.done_of(next, &[Ability::Bless]) {
        next = after;
        let party = zone.actors[caster].party;
        zone.afflict(caster, BLESSED_MS, |clocks| &mut clocks.blessed);
        zone.tell_landed(caster, Ability::Bless);
        throng::count!("buffs");
        if party == 0 {
            continue;
        }
        let near = zone.asked(Question::GroupBuff, caster, groups::PLAYERS);
        for &member in near.iter() {
            if zone.actors[member].party == party {
                zone.afflict(member, BLESSED_MS, |clocks| &mut clocks.blessed);
                throng::count!("buffs");
            }
        }
        zone.scratch.give_back(near);
    }
}
