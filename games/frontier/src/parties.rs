//! Parties: up to six players who always hear of each other, wherever they are.
//!
//! A player joins the party of one that stands near it, until six are in; the first one to be joined brings its party
//! into being. A party of one is none. Membership is a number on the row, a team for replication, and a list of six
//! here.
//!
//! Runs when somebody joins or leaves. Allocates when there are more parties than ever before.

use bevy_ecs::resource::Resource;
use throng_pack::{List, Pack};

/// Players in a party.
pub const MEMBERS_MAX: usize = 6;

/// All parties. Number 0 is none.
#[derive(Resource, Default)]
pub struct Parties {
    /// Members of party `index + 1`.
    members: Vec<Members>,
    free: Vec<u16>,
}

#[derive(Debug, Clone, Copy, Default, Pack)]
#[pack(name = "frontier.party")]
struct Members {
    actors: [u32; MEMBERS_MAX],
    #[pack(max = MEMBERS_MAX as u8)]
    count: u8,
}

/// All parties as they are packed.
#[derive(Debug, Clone, Pack)]
#[pack(name = "frontier.parties")]
pub struct SavedParties {
    members: List<Members, { 1 << 17 }>,
    free: List<u16, { 1 << 17 }>,
}

impl Parties {
    pub fn save(&self) -> SavedParties {
        SavedParties {
            members: self.members.clone().try_into().expect("there are fewer numbers"),
            free: self.free.clone().try_into().expect("there are fewer numbers"),
        }
    }

    pub fn load(saved: SavedParties) -> Self {
        Self { members: saved.members.into_vec(), free: saved.free.into_vec() }
    }

    /// A new party of one; `None` if there are as many as numbers.
    pub fn found(&mut self, actor: u32) -> Option<u16> {
        let party = self.free.pop().or_else(|| {
            self.members.push(Members::default());
            u16::try_from(self.members.len()).ok()
        })?;
        self.join(party, actor);
        Some(party)
    }

    /// False if it is full.
    pub fn join(&mut self, party: u16, actor: u32) -> bool {
        let members = &mut self.members[usize::from(party) - 1];
        let Some(place) = members.actors.get_mut(usize::from(members.count)) else { return false };
        *place = actor;
        members.count += 1;
        true
    }

    /// Takes somebody out. Party 0 is left by nobody.
    pub fn leave(&mut self, party: u16, actor: u32) {
        if party == 0 {
            return;
        }
        let members = &mut self.members[usize::from(party) - 1];
        let count = usize::from(members.count);
        let Some(place) = members.actors[..count].iter().position(|member| *member == actor) else { return };
        members.actors[place] = members.actors[count - 1];
        members.count -= 1;
        if members.count == 0 {
            self.free.push(party);
        }
    }

    pub fn members(&self, party: u16) -> &[u32] {
        let members = usize::from(party).checked_sub(1).and_then(|index| self.members.get(index));
        members.map_or(&[], |members| &members.actors[..usize::from(members.count)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_may_join_and_numbers_are_used_again() {
        let mut parties = Parties::default();
        let party = parties.found(1).unwrap();
        let joined = (2..10).filter(|&actor| parties.join(party, actor)).count();
        assert_eq!((party, joined, parties.members(party).len()), (1, 5, MEMBERS_MAX));
        (1..10).for_each(|actor| parties.leave(party, actor));
        assert_eq!(parties.members(party), &[] as &[u32]);
        assert_eq!(parties.found(7), Some(1));
        assert_eq!(parties.members(0), &[] as &[u32]);
    }
}
