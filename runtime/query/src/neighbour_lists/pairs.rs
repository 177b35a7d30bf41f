//! The lists themselves: for each entity, who is near its reference place, nearest first by bands.
//!
//! ```text
//! heads:    | ends: 5 9 14 ... | groups: of 0..5, of 0..9, of 0..14, ... | pairs |
//! members:  | band 0: 7 3 12 40 8 | band 1: 5 6 33 2 | band 2: 9 1 ... |   unused   |     list_max entries each
//! ```
//!
//! [`BANDS`] bands of equal width cut the reach of a list, so a question with a short radius reads the beginning only.
//! With each band goes the union of its members' groups and of all bands before it: most questions ("is an enemy within
//! 70 m?") find there that nobody will do, and end. The union may hold groups whose members have left or changed, never
//! lacks one.
//!
//! A list of more than `list_max` is dropped: only its pairs are counted, until enough have left.

#![allow(clippy::needless_range_loop, reason = "lanes and bands index several columns at once")]

/// Bands of a list. More → short radii read less, and more pairs change their band as entities move.
pub(super) const BANDS: usize = 4;

/// The band of those who are not near at all.
pub(super) const OUTSIDE: u8 = BANDS as u8;

/// What a list needs besides its members: one cache line.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Head {
    /// Members in bands up to and including this one.
    ends: [u16; BANDS],
    /// Groups of members in bands up to and including this one, and perhaps more. All of them in a dropped list.
    groups: [u32; BANDS],
    /// Entities near the reference place. More than in the list if that is dropped.
    pairs: u32,
    dropped: bool,
}

const EMPTY: Head = Head { ends: [0; BANDS], groups: [0; BANDS], pairs: 0, dropped: false };

/// What became of a list by one change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Kept,
    /// Too long now; it holds nothing any more.
    Dropped,
    /// Dropped earlier, and short enough to be made anew.
    Short,
}

pub(super) struct Lists {
    heads: Vec<Head>,
    members: Vec<u32>,
    list_max: usize,
}

impl Lists {
    pub fn new(list_max: u16) -> Self {
        Self { heads: Vec::new(), members: Vec::new(), list_max: list_max.into() }
    }

    pub fn resize(&mut self, rows: usize) {
        self.heads.resize(rows, EMPTY);
        self.members.resize(rows * self.list_max, 0);
    }

    /// Who may be in bands up to `band`, unordered. Empty at once if none is in `groups`; `None` if the list is
    /// dropped.
    #[inline]
    pub fn read(&self, index: u32, band: usize, groups: u32) -> Option<&[u32]> {
        let head = &self.heads[index as usize];
        if head.groups[band] & groups == 0 {
            return Some(&[]);
        }
        let begin = index as usize * self.list_max;
        (!head.dropped).then(|| &self.members[begin..begin + usize::from(head.ends[band])])
    }

    /// Whether there may be somebody of `groups` in bands up to `band`. Nobody near those who are not there.
    #[inline]
    pub fn may_hold(&self, index: u32, band: usize, groups: u32) -> bool {
        self.heads.get(index as usize).is_some_and(|head| head.groups[band] & groups != 0)
    }

    /// Fetches the memory that [`Lists::read`] will return; what comes back means nothing.
    #[inline]
    pub fn touch(&self, index: u32, band: usize) -> u32 {
        let begin = index as usize * self.list_max;
        let last = usize::from(self.heads[index as usize].ends[band]).saturating_sub(1);
        self.members[begin] ^ self.members[begin + last]
    }

    /// Entities near the reference place.
    pub fn pairs(&self, index: u32) -> u32 {
        self.heads[index as usize].pairs
    }

    pub fn dropped(&self, index: u32) -> bool {
        self.heads[index as usize].dropped
    }

    /// Makes a list anew of members and their bands. `true` if it is too long, and therefore dropped.
    pub fn make(&mut self, index: u32, found: &[(u32, u8)], groups: &[u32]) -> bool {
        let head = &mut self.heads[index as usize];
        *head = Head { pairs: found.len() as u32, ..EMPTY };
        if found.len() > self.list_max {
            (head.dropped, head.groups) = (true, [u32::MAX; BANDS]);
            return true;
        }
        for (member, band) in found {
            head.ends[usize::from(*band)] += 1;
            head.groups[usize::from(*band)] |= groups[*member as usize];
        }
        let mut next = [0; BANDS];
        let (mut end, mut union) = (0, 0);
        for band in 0..BANDS {
            next[band] = usize::from(end);
            end += head.ends[band];
            union |= head.groups[band];
            (head.ends[band], head.groups[band]) = (end, union);
        }
        let list = &mut self.members[index as usize * self.list_max..][..self.list_max];
        for (member, band) in found {
            let at = &mut next[usize::from(*band)];
            list[*at] = *member;
            *at += 1;
        }
        false
    }

    /// A member comes, goes or changes its band.
    pub fn change(&mut self, index: u32, member: u32, old: u8, new: u8, groups: u32) -> Outcome {
        let head = &mut self.heads[index as usize];
        head.pairs = head.pairs + u32::from(old == OUTSIDE) - u32::from(new == OUTSIDE);
        if head.dropped {
            let short = head.pairs as usize <= self.list_max - self.list_max / 4;
            return if short { Outcome::Short } else { Outcome::Kept };
        }
        if head.pairs as usize > self.list_max {
            (head.dropped, head.groups, head.ends) = (true, [u32::MAX; BANDS], [0; BANDS]);
            return Outcome::Dropped;
        }
        let list = &mut self.members[index as usize * self.list_max..][..self.list_max];
        if old != OUTSIDE {
            let band = usize::from(old);
            let begin = if band == 0 { 0 } else { head.ends[band - 1] };
            let segment = &list[usize::from(begin)..usize::from(head.ends[band])];
            let Some(offset) = segment.iter().position(|one| *one == member) else {
                unreachable!("a pair is in both lists");
            };
            // Each band fills the hole with its last member, which leaves a hole at the beginning of the next one.
            let mut hole = usize::from(begin) + offset;
            for end in &mut head.ends[band..] {
                *end -= 1;
                list[hole] = list[usize::from(*end)];
                hole = usize::from(*end);
            }
        }
        if new != OUTSIDE {
            let band = usize::from(new);
            // Each later band moves its first member behind its last, from the end on.
            for later in (band + 1..BANDS).rev() {
                let begin = head.ends[later - 1];
                list[usize::from(head.ends[later])] = list[usize::from(begin)];
                head.ends[later] += 1;
            }
            list[usize::from(head.ends[band])] = member;
            head.ends[band] += 1;
            head.groups[band..].iter_mut().for_each(|union| *union |= groups);
        }
        Outcome::Kept
    }

    /// All who have an entity in their list learn that it has joined groups; `false` if its own list, which names them,
    /// is dropped.
    pub fn tell_groups(&mut self, index: u32, joined: u32) -> bool {
        let Head { ends, dropped, .. } = self.heads[index as usize];
        let mut at = 0;
        for (band, end) in ends.into_iter().enumerate() {
            for at in at..usize::from(end) {
                let other = self.members[index as usize * self.list_max + at];
                self.add_groups(other, band as u8, joined);
            }
            at = end.into();
        }
        !dropped
    }

    /// A member in this band has new groups.
    pub fn add_groups(&mut self, index: u32, band: u8, groups: u32) {
        let unions = &mut self.heads[index as usize].groups[usize::from(band)..];
        // What the nearest of these bands has, the others have too.
        if unions[0] & groups != groups {
            unions.iter_mut().for_each(|union| *union |= groups);
        }
    }

    /// Forgets groups that no member has any more.
    pub fn refresh(&mut self, index: u32, groups: &[u32]) {
        let head = &mut self.heads[index as usize];
        if head.dropped {
            return;
        }
        let list = &self.members[index as usize * self.list_max..];
        let (mut begin, mut union) = (0, 0);
        for band in 0..BANDS {
            let end = usize::from(head.ends[band]);
            for member in &list[begin..end] {
                union |= groups[*member as usize];
            }
            head.groups[band] = union;
            begin = end;
        }
    }

    /// Members with their bands and the union of groups that is kept for it, for checks.
    pub fn each(&self, index: u32, mut visit: impl FnMut(u32, u8, u32)) {
        let head = &self.heads[index as usize];
        let mut begin = 0;
        for band in 0..BANDS {
            for member in &self.members[index as usize * self.list_max..][begin..usize::from(head.ends[band])] {
                visit(*member, band as u8, head.groups[band]);
            }
            begin = head.ends[band].into();
        }
    }

    pub fn bytes(&self) -> usize {
        self.heads.capacity() * size_of::<Head>() + self.members.capacity() * 4
    }
}
