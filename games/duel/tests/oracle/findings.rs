//! Findings: what came of judging, in numbers that can be added up, and the first leaks in words.

use duel::protocol::TICK_HZ;

const LEAKS_TOLD_MAX: usize = 8;

/// In what way something is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Of enemies, by snapshots and audit samples.
    Update,
    Spawn,
    Despawn,
    Presence,
    Absence,
    /// Of a team, and of the spike, by any of these.
    Vitals,
    Spike,
    /// Of an enemy's shot.
    Shot,
    /// Of one's own: that it hit, what one has, that one is blind.
    Hit,
    Kit,
    Blinded,
}

pub const WAYS: [Way; 11] = [
    Way::Update,
    Way::Spawn,
    Way::Despawn,
    Way::Presence,
    Way::Absence,
    Way::Vitals,
    Way::Spike,
    Way::Shot,
    Way::Hit,
    Way::Kit,
    Way::Blinded,
];

/// How long before an enemy was seen its first byte left, in ticks; the last place is for all that are longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Notices([u64; Notices::LONGEST + 1]);

impl Notices {
    const LONGEST: usize = 40;
    const NONE: Self = Self([0; Self::LONGEST + 1]);

    pub fn count(&mut self, ticks: u32) {
        self.0[(ticks as usize).min(Self::LONGEST)] += 1;
    }

    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The share with at least so much notice (ms).
    pub fn share_with(&self, ms: u32) -> f64 {
        let from = (ms * u32::from(TICK_HZ)).div_ceil(1_000) as usize;
        self.0[from..].iter().sum::<u64>() as f64 / self.all().max(1) as f64
    }
}

/// What a judge has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    pub rounds: u64,
    pub ticks: u64,
    pub packets: u64,
    /// By way.
    told: [u64; WAYS.len()],
    leaks: [u64; WAYS.len()],
    /// Pairs of living enemies and ticks, and those of them in which the one held the other.
    pub pairs: u64,
    pub held: u64,
    /// Enemies who were seen for more than a tick before their first byte, and for how long at most (ticks).
    pub late: u64,
    pub late_ticks_max: u32,
    /// Of enemies who came into view: on a perfect network, and on one on which bodies leap.
    pub notices: [Notices; 2],
    pub smoke_ticks: u64,
    /// The first leaks, in words.
    pub leaks_told: Vec<String>,
}

impl Default for Findings {
    fn default() -> Self {
        Self {
            rounds: 0,
            ticks: 0,
            packets: 0,
            told: [0; WAYS.len()],
            leaks: [0; WAYS.len()],
            pairs: 0,
            held: 0,
            late: 0,
            late_ticks_max: 0,
            notices: [Notices::NONE; 2],
            smoke_ticks: 0,
            leaks_told: Vec::new(),
        }
    }
}

impl Findings {
    pub fn told(&self, way: Way) -> u64 {
        self.told[way as usize]
    }

    pub fn leaks(&self, way: Way) -> u64 {
        self.leaks[way as usize]
    }

    pub fn leaks_in_all(&self) -> u64 {
        self.leaks.iter().sum()
    }

    pub fn add(&mut self, other: &Self) {
        self.rounds += other.rounds;
        self.ticks += other.ticks;
        self.packets += other.packets;
        self.pairs += other.pairs;
        self.held += other.held;
        self.late += other.late;
        self.late_ticks_max = self.late_ticks_max.max(other.late_ticks_max);
        self.smoke_ticks += other.smoke_ticks;
        let add = |sums: &mut [u64], more: &[u64]| sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        add(&mut self.told, &other.told);
        add(&mut self.leaks, &other.leaks);
        for (sums, more) in self.notices.iter_mut().zip(&other.notices) {
            add(&mut sums.0, &more.0);
        }
        self.leaks_told.extend(other.leaks_told.iter().take(LEAKS_TOLD_MAX).cloned());
    }

    /// Something was told, and rightly or not.
    pub fn settle(&mut self, way: Way, is_right: bool, tell: impl FnOnce() -> String) {
        self.told[way as usize] += 1;
        if is_right {
            return;
        }
        self.leaks[way as usize] += 1;
        if self.leaks_told.len() < LEAKS_TOLD_MAX {
            self.leaks_told.push(format!("{way:?}: {}", tell()));
        }
    }
}
