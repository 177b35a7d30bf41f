//! Minds: what NPCs remember, one row each, in the order of the actors.

use bevy_ecs::resource::Resource;
use throng_pack::{List, Pack};

use super::presence::Presence;
use crate::{
    actors::Who,
    mailboxes::{Mailboxes, SavedMailboxes},
};

/// Between two thoughts of an NPC that is awake. (ms)
pub const THOUGHT_MS: u32 = 250;
/// Enemies that an NPC remembers; a fifth takes the place of the least hated.
pub const HATE_MAX: usize = 4;

/// What an NPC is up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pack)]
#[pack(name = "frontier.errand")]
pub enum Errand {
    #[default]
    Stand,
    /// On the way to a place near home, without haste.
    Stroll,
    /// After whom it fights.
    Chase,
    /// On the way home, and not to be stopped.
    Return,
}

/// One NPC's.
#[derive(Debug, Clone, Copy, Pack)]
#[pack(name = "frontier.mind")]
pub struct Mind {
    pub home: [f32; 2],
    /// Its camp, or its town behind the camps.
    pub camp: u16,
    pub errand: Errand,
    /// Where a stroll or the way back leads.
    pub goal: [f32; 2],
    hate: [Hatred; HATE_MAX],
    /// When it may yell, rampage, or look for help again.
    pub yell_tick: u32,
    pub rampage_tick: u32,
    /// Its target is where it cannot see it since.
    pub sees_target: bool,
}

/// How much somebody is hated; 0: nobody is.
#[derive(Debug, Clone, Copy, Default, Pack)]
#[pack(name = "frontier.hatred")]
struct Hatred {
    who: Who,
    amount: u32,
}

impl Mind {
    pub fn new(home: [f32; 2], camp: u16) -> Self {
        Self {
            home,
            camp,
            errand: Errand::Stand,
            goal: home,
            hate: Default::default(),
            yell_tick: 0,
            rampage_tick: 0,
            sees_target: true,
        }
    }

    /// Hates somebody more. Of more than [`HATE_MAX`] the least hated is forgotten.
    pub fn hate(&mut self, who: Who, amount: u32) {
        let known = self.hate.iter_mut().find(|hatred| hatred.who == who && hatred.amount > 0);
        if let Some(hatred) = known {
            hatred.amount = hatred.amount.saturating_add(amount);
            return;
        }
        let least = self.hate.iter_mut().min_by_key(|hatred| hatred.amount).expect("there are four");
        *least = Hatred { who, amount: amount.max(least.amount) };
    }

    /// Hates somebody more than anybody else.
    pub fn hate_most(&mut self, who: Who) {
        let most = self.hate.iter().map(|hatred| hatred.amount).max().unwrap_or_default();
        self.hate.iter_mut().filter(|hatred| hatred.who == who).for_each(|hatred| hatred.amount = 0);
        self.hate(who, most.saturating_add(10));
    }

    pub fn hates_anybody(&self) -> bool {
        self.hate.iter().any(|hatred| hatred.amount > 0)
    }

    /// Forgets those of whom `keep` says no, and answers who is hated most of the others.
    pub fn most_hated(&mut self, keep: impl Fn(Who) -> bool) -> Option<Who> {
        let mut most: Option<(Who, u32)> = None;
        for Hatred { who, amount: hate } in &mut self.hate {
            if *hate > 0 && !keep(*who) {
                *hate = 0;
            }
            // The first of equals, so that the answer does not swing.
            if *hate > most.map_or(0, |(_, most)| most) {
                most = Some((*who, *hate));
            }
        }
        most.map(|(who, _)| who)
    }

    pub fn forget_all(&mut self) {
        self.hate = Default::default();
    }
}

/// All NPCs' minds; index = actor.
#[derive(Resource, Default)]
pub struct Minds {
    pub rows: Vec<Mind>,
    /// Until which tick each camp is awake.
    pub awake_until: Vec<u32>,
    /// Middle of each camp.
    pub camps: Vec<[f32; 2]>,
    pub mailboxes: Mailboxes,
    pub presence: Presence,
}

/// NPCs at most.
const NPCS_MAX: usize = 1 << 16;
/// Camps and towns at most.
const CAMPS_MAX: usize = 1 << 16;

/// Minds as they are packed. Where camps are follows from the landscape, and where players are is looked up anew.
#[derive(Debug, Clone, Pack)]
#[pack(name = "frontier.minds")]
pub struct SavedMinds {
    rows: List<Mind, NPCS_MAX>,
    awake_until: List<u32, CAMPS_MAX>,
    mailboxes: SavedMailboxes,
}

impl Minds {
    pub fn save(&self) -> SavedMinds {
        SavedMinds {
            rows: self.rows.clone().try_into().expect("no more NPCs are made"),
            awake_until: self.awake_until.clone().try_into().expect("the landscape has fewer camps"),
            mailboxes: self.mailboxes.save(),
        }
    }

    /// As it was packed, in a world with the same camps.
    pub fn load(&mut self, saved: SavedMinds) {
        self.rows = saved.rows.into_vec();
        self.awake_until = saved.awake_until.into_vec();
        self.mailboxes = Mailboxes::load(saved.mailboxes);
    }

    pub fn get(&mut self, index: u32) -> Option<&mut Mind> {
        self.rows.get_mut(index as usize)
    }

    /// Whether a player is near enough to its home that it is worth thinking.
    pub fn is_awake(&self, index: u32, tick: u32) -> bool {
        self.rows.get(index as usize).is_some_and(|mind| self.awake_until[usize::from(mind.camp)] > tick)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actors::Actors;
    use crate::components::{Kind, Look};

    #[test]
    fn the_most_hated_comes_first_and_the_least_is_forgotten() {
        let mut actors = Actors::default();
        let look = Look { kind: Kind::Player, level: 1, variety: 0 };
        let who: Vec<Who> = (0..6)
            .map(|_| actors.add(look, [0.0; 2], 0.0))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|index| actors.who(index))
            .collect();
        let mut mind = Mind::new([0.0; 2], 0);
        assert!(!mind.hates_anybody());
        for (amount, &who) in (1..).zip(&who[..4]) {
            mind.hate(who, amount);
        }
        assert_eq!(mind.most_hated(|_| true), Some(who[3]));
        mind.hate(who[4], 1);
        mind.hate_most(who[1]);
        assert_eq!(mind.most_hated(|_| true), Some(who[1]));
        assert_eq!(mind.most_hated(|other| other != who[1]), Some(who[3]));
        mind.forget_all();
        assert_eq!(mind.most_hated(|_| true), None);
    }
}
