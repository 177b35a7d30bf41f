//! Rings: what an entity's distance means for what a client is told of it, and how often.
//!
//! The rules' tiers and the components' ranges together cut the surroundings of a client into rings. In each, a
//! component is *near*, and its changes are told once in the tier's period; or *far*, beyond its range, and is
//! brought up to date once in the keepalive's. An entity's turn comes when `slot + tick` is a multiple of the
//! period: turns are spread evenly over the ticks, and all clients in whose ring the entity is tell it in the
//! same tick, so that its record is put together once for all of them (`bulk`).
//!
//! At its turn everything that changed within the last period is told. So nothing that waits needs to be
//! remembered per client: a turn later it is in, whoever changed it when.
//!
//! Thinned rings have a period that is longer by [`THINNING`], but for those that are told at once. When that ends, turns
//! look back as far as before until everybody had one: what waited for a far turn is told by a near one.

use throng_platform::never;

use crate::{
    source::rules::{ResolvedRules, TIERS_MAX},
    wire::schema::KINDS_MAX,
};

/// Rings at most: every tier and every component's range may end one.
pub(crate) const RINGS_MAX: usize = TIERS_MAX + KINDS_MAX;

/// Turns of thinned rings come so many times more seldom. What may be told 1 s late is then told within 2 s, which is
/// what audit samples wait for.
const THINNING: u32 = 2;

#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Ring {
    /// Squared distance up to which it goes; infinite for the last one. (m²)
    pub to_m2: f32,
    /// Ticks between two turns of an entity.
    pub period: u32,
    /// A turn tells what changed less than so many ticks ago: the period, or more while what waits is of a longer one.
    pub reach: u32,
    /// Kinds that are told every turn.
    pub near: u16,
    /// Kinds that are told once in the keepalive's period.
    pub far: u16,
}

#[derive(Clone, Debug)]
pub(crate) struct Rings {
    rings: Vec<Ring>,
    pub keepalive: u32,
    /// Squared distance after which a client gets all it is owed at once. (m²)
    pub catch_up_m2: f32,
    /// Components that may reach a client later than this are left out of audit samples. (ticks)
    pub audited_delay_ticks_max: u32,
    /// Longest period of all, now and of those that packets in flight were written by.
    pub period_max: u32,
    is_thinned: bool,
    /// The tick from which no turn need look back farther than its period; none if none does.
    reach_ends_at: Option<u32>,
    /// The tick in which a reach was last made shorter: packets of before may hold what changed earlier than it.
    pub reach_since: u32,
}

/// Whether `period` ends in this tick for a slot.
#[inline]
pub(crate) fn is_turn(slot: u32, tick: u32, period: u32) -> bool {
    period <= 1 || slot.wrapping_add(tick).is_multiple_of(period)
}

impl Rings {
    /// `audited_delay_ticks_max`: see `Rings`.
    pub fn new(rules: &ResolvedRules, every_kind: u16, audited_delay_ticks_max: u32) -> Self {
        let mut ends: Vec<f32> = rules.tier_to_m2[..rules.tiers_count].to_vec();
        let ranged = (0..KINDS_MAX).filter(|kind| rules.ranged_kinds & every_kind & 1 << kind != 0);
        ends.extend(ranged.map(|kind| rules.kind_range_m2[kind]));
        ends.push(f32::INFINITY);
        ends.sort_by(f32::total_cmp);
        ends.dedup();
        let mut rings: Vec<Ring> = Vec::new();
        for to_m2 in ends {
            let near = rules.heard_at(every_kind, to_m2);
            let period = rules.period_at(to_m2).max(1);
            let ring = Ring { to_m2, period, reach: period, near, far: every_kind & !near };
            match rings.last_mut() {
                Some(last) if last.period == ring.period && last.near == near => last.to_m2 = to_m2,
                _ => rings.push(ring),
            }
        }
        if never!(rings.len() > RINGS_MAX, "more rings than tiers and components can make") {
            rings.truncate(RINGS_MAX);
            rings[RINGS_MAX - 1].to_m2 = f32::INFINITY;
        }
        let keepalive = rules.keepalive_ticks.max(1);
        let of_ring = |ring: &Ring| if ring.far == 0 { ring.period } else { ring.period.max(keepalive) };
        Self {
            period_max: rings.iter().map(of_ring).max().unwrap_or(1),
            rings,
            keepalive,
            catch_up_m2: rules.catch_up_m2,
            audited_delay_ticks_max,
            is_thinned: false,
            reach_ends_at: None,
            reach_since: 0,
        }
    }

    pub fn is_thinned(&self) -> bool {
        self.is_thinned
    }

    /// Turns of all but those who are told at once come more seldom from this tick on, or as usual again.
    pub fn set_thinned(&mut self, is_thinned: bool, tick: u32) {
        if std::mem::replace(&mut self.is_thinned, is_thinned) == is_thinned {
            return;
        }
        let mut reach_max = 0;
        for ring in self.rings.iter_mut().filter(|ring| ring.period > 1) {
            ring.period = if is_thinned { ring.period.saturating_mul(THINNING) } else { ring.period / THINNING };
            ring.reach = ring.reach.max(ring.period);
            reach_max = reach_max.max(ring.reach);
        }
        self.period_max = self.period_max.max(reach_max);
        self.reach_ends_at = (!is_thinned).then(|| tick.saturating_add(reach_max));
    }

    /// A tick begins.
    pub fn begin_tick(&mut self, tick: u32) {
        if self.reach_ends_at.take_if(|ends_at| *ends_at <= tick).is_some() {
            self.rings.iter_mut().for_each(|ring| ring.reach = ring.period);
            self.reach_since = tick;
        }
    }

    pub fn all(&self) -> &[Ring] {
        &self.rings
    }

    pub fn count(&self) -> usize {
        self.rings.len()
    }

    /// Everything is told everywhere and at once.
    #[inline]
    pub fn is_trivial(&self) -> bool {
        self.rings.len() == 1 && self.rings[0].period == 1 && self.rings[0].far == 0
    }

    /// The ring at a squared distance. (m²)
    #[inline]
    pub fn at(&self, distance_m2: f32) -> usize {
        let inner = &self.rings[..self.rings.len() - 1];
        inner.iter().filter(|ring| ring.to_m2 < distance_m2).count()
    }

    /// Kinds that an audit sample may tell of an entity in a ring.
    pub fn in_audit_samples(&self, ring: usize) -> u16 {
        let Ring { reach, near, far, .. } = self.rings[ring];
        let near = if reach <= self.audited_delay_ticks_max { near } else { 0 };
        let far = if self.keepalive <= self.audited_delay_ticks_max { far } else { 0 };
        near | far
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::rules::{KindRule, ReplicationRules, Tier};

    #[test]
    fn tiers_and_ranges_cut_rings() {
        let rules = ReplicationRules {
            tiers: vec![Tier { to_m: 40.0, updates_per_s: 20.0 }, Tier { to_m: 80.0, updates_per_s: 5.0 }],
            components: vec![KindRule::default(), KindRule { range_m: Some(60.0), updates_per_s_max: None }],
            ..ReplicationRules::default()
        };
        let rings = Rings::new(&rules.resolved(20.0), 0b11, 20);
        let ring =
            |to_m: f32, period, near| Ring { to_m2: to_m * to_m, period, reach: period, near, far: 0b11 & !near };
        assert_eq!(rings.all(), [ring(40.0, 1, 0b11), ring(60.0, 4, 0b11), ring(f32::INFINITY, 4, 0b01)]);
        assert_eq!([39.0_f32, 40.0, 41.0, 60.5, 1e9].map(|m| rings.at(m * m)), [0, 0, 1, 2, 2]);
        assert_eq!((rings.in_audit_samples(1), rings.in_audit_samples(2)), (0b11, 0b01));
        assert_eq!(rings.period_max, 200);
        assert!(Rings::new(&ResolvedRules::default(), 0b11, 20).is_trivial());
    }
}
