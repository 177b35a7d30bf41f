//! Saved: all actors as a value that is packed, for a world that is made again.

use throng_pack::{List, Pack};
use throng_query::neighbour_lists::NOBODY;

use super::{Actor, Actors};
use crate::index_set::IndexSet;

/// Actors of a world at most, of all that it has had at the same time: NPCs, players, traps and totems.
const ACTORS_MAX: usize = 1 << 17;

type Indices = List<u32, ACTORS_MAX>;

/// All of [`Actors`] that does not follow from the rows.
#[derive(Debug, Clone, Pack)]
#[pack(name = "frontier.actors")]
pub struct SavedActors {
    rows: List<Actor, ACTORS_MAX>,
    free: Indices,
    unnamed: Indices,
    changed: Indices,
    /// In the order of [`Actors::sets_mut`].
    sets: [Indices; SETS],
}

const SETS: usize = 12;

fn indices(of: &[u32]) -> Indices {
    of.to_vec().try_into().expect("there are no more actors than that")
}

impl Actors {
    /// Who is busy with what.
    fn sets_mut(&mut self) -> [&mut IndexSet; SETS] {
        [
            &mut self.moving,
            &mut self.fighting,
            &mut self.casting,
            &mut self.mending,
            &mut self.afflicted,
            &mut self.diseased,
            &mut self.singing,
            &mut self.dead,
            &mut self.traps,
            &mut self.totems,
            &mut self.open_doors,
            &mut self.sneaking,
        ]
    }

    /// As it is packed.
    pub fn save(&self) -> SavedActors {
        let Self {
            rows,
            free,
            by_id: _,
            unnamed,
            changed,
            moving,
            fighting,
            casting,
            mending,
            afflicted,
            diseased,
            ..
        } = self;
        let Self { singing, dead, traps, totems, open_doors, sneaking, .. } = self;
        let sets = [
            moving, fighting, casting, mending, afflicted, diseased, singing, dead, traps, totems, open_doors, sneaking,
        ];
        SavedActors {
            rows: rows.clone().try_into().expect("there are no more actors than that"),
            free: indices(free),
            unnamed: indices(unnamed),
            changed: indices(changed),
            sets: sets.map(|set| indices(set.list())),
        }
    }

    /// As it was packed. What names nobody, in bytes that were never ours, is left out.
    pub fn load(saved: SavedActors) -> Self {
        let SavedActors { rows, free, unnamed, changed, sets } = saved;
        let mut actors = Self { rows: rows.into_vec(), ..Self::default() };
        let count = actors.rows.len();
        let known = |indices: Indices| {
            let mut indices = indices.into_vec();
            indices.retain(|index| (*index as usize) < count);
            indices
        };
        let sets = sets.map(known);
        (actors.free, actors.unnamed, actors.changed) = (known(free), known(unnamed), known(changed));
        for (set, indices) in actors.sets_mut().into_iter().zip(sets) {
            indices.into_iter().for_each(|index| _ = set.insert(index));
        }
        for index in 0..count {
            if let Some(id) = actors.rows[index].id {
                let slots = actors.by_id.len().max(id.slot as usize + 1);
                actors.by_id.resize(slots, NOBODY);
                actors.by_id[id.slot as usize] = index as u32;
            }
        }
        actors
    }
}
