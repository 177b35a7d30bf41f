//! The rules of actions on a page: what comes of what players ask, told from where they stand and from what they have.
//!
//! Written beside the server's code and without it, as plainly as can be: one seat after the other, one rule after the
//! other, with the numbers of the game's tables in ms. What no action decides it is told after each tick: who was shot,
//! how the round stands, who has the spike at its beginning.

use super::*;

/// Each can be left out, to see that it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    TheDeadDoNothing,
    CooldownsLast,
    LoadingTakesItsTime,
    MagazinesEnd,
    ShotsAreOfARound,
    OneBuysInItsPhase,
    OnePays,
    OneCarriesSoMuch,
    ThrowsAreOfARound,
    ThrowsAreApart,
    OneThrowsWhatOneHas,
    WorkTakesBothHands,
    LoadingTakesBothHands,
    OneStandsAtWork,
    WorkTakesItsTime,
    HalfOfItIsKept,
    TheCarrierPlants,
    OnePlantsOnASite,
    DefendersDefuse,
    ArmsAreSoLong,
    AttackersTakeItUp,
    InputsHaveTheirTurnOnce,
}

impl Rule {
    pub const ALL: [Self; 22] = [
        Self::TheDeadDoNothing,
        Self::CooldownsLast,
        Self::LoadingTakesItsTime,
        Self::MagazinesEnd,
        Self::ShotsAreOfARound,
        Self::OneBuysInItsPhase,
        Self::OnePays,
        Self::OneCarriesSoMuch,
        Self::ThrowsAreOfARound,
        Self::ThrowsAreApart,
        Self::OneThrowsWhatOneHas,
        Self::WorkTakesBothHands,
        Self::LoadingTakesBothHands,
        Self::OneStandsAtWork,
        Self::WorkTakesItsTime,
        Self::HalfOfItIsKept,
        Self::TheCarrierPlants,
        Self::OnePlantsOnASite,
        Self::DefendersDefuse,
        Self::ArmsAreSoLong,
        Self::AttackersTakeItUp,
        Self::InputsHaveTheirTurnOnce,
    ];
}

/// What somebody asks for beside its input.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asked {
    Item(Item),
    Grenade(Grenade),
}

/// A player.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hands {
    pub is_alive: bool,
    pub kind: WeaponKind,
    pub rounds: u8,
    /// The weapon does nothing before this tick, and is being loaded until that one.
    ready_tick: u32,
    pub loaded_tick: u32,
    pub credits: u16,
    pub smokes: u8,
    pub flashes: u8,
    pub armour: u8,
    throws_tick: u32,
}

/// What a tick has brought about that no action decides.
pub(super) struct News {
    pub phase: Phase,
    pub end: Option<RoundEnd>,
    pub attackers: TeamId,
    /// Who has the spike, where a round begins.
    pub carrier: Option<u8>,
    /// Enemies shot dead, by seat.
    pub kills: [u32; SEATS],
    pub is_alive: [bool; SEATS],
}

#[derive(Debug, Clone)]
pub(super) struct Model {
    pub hands: [Hands; SEATS],
    pub spike: Spike,
    pub phase: Phase,
    pub worker: Option<u8>,
    /// Fired by all of them, since the first round began.
    pub shots: u64,
    done_ticks: u32,
    kept_ticks: u32,
    is_defused: bool,
    attackers: TeamId,
    lost_in_a_row: [u8; 2],
    without: Option<Rule>,
}

/// Cooldown (ms), rounds, loading (ms), price.
fn table(kind: WeaponKind) -> (u32, u8, u32, u16) {
    match kind {
        WeaponKind::Pistol => (150, 12, 1_750, 0),
        WeaponKind::Submachine => (75, 30, 2_250, 1_600),
        WeaponKind::Rifle => (103, 25, 2_500, 2_900),
        WeaponKind::Marksman => (1_330, 5, 3_700, 4_700),
    }
}

/// Whole ticks of 1/128 s that last at least so long.
fn ticks(ms: u32) -> u32 {
    (ms * 128).div_ceil(1_000)
}

fn far_m(body: &Motion, x: f32, z: f32) -> f32 {
    (body.at.x - x).hypot(body.at.z - z)
}

/// The sites are squares of 10 m in the east, one in the north and one in the south.
fn is_on_site(body: &Motion) -> bool {
    (12.0..=22.0).contains(&body.at.x) && (16.0..=26.0).contains(&body.at.z.abs())
}

impl Hands {
    const NOTHING: Self = Self {
        is_alive: false,
        kind: WeaponKind::Pistol,
        rounds: 12,
        ready_tick: 0,
        loaded_tick: 0,
        credits: 800,
        smokes: 0,
        flashes: 0,
        armour: 0,
        throws_tick: 0,
    };

    fn take(&mut self, kind: WeaponKind) {
        (self.kind, self.rounds) = (kind, table(kind).1);
        (self.ready_tick, self.loaded_tick) = (0, 0);
    }

    fn earn(&mut self, credits: u16) {
        self.credits = (self.credits + credits).min(9_000);
    }
}

impl Model {
    /// Of a match whose first round begins.
    pub fn new(attackers: TeamId, carrier: Option<u8>, without: Option<Rule>) -> Self {
        let spike = carrier.map_or(Spike::Gone, |seat| Spike::Carried { seat });
        Self {
            hands: [Hands { is_alive: true, ..Hands::NOTHING }; SEATS],
            spike,
            phase: Phase::Buy,
            worker: None,
            shots: 0,
            done_ticks: 0,
            kept_ticks: 0,
            is_defused: false,
            attackers,
            lost_in_a_row: [0; 2],
            without,
        }
    }

    /// Whether what a rule demands is so, or is not asked for.
    pub fn demands(&self, rule: Rule, is_kept: bool) -> bool {
        is_kept || self.without == Some(rule)
    }

    fn is_attacker(&self, seat: u8) -> bool {
        TeamId::of_seat(seat) == self.attackers
    }

    fn is_played(&self) -> bool {
        matches!(self.phase, Phase::Live | Phase::Planted)
    }

    /// A tick of the match: `held` is what everybody's input says, `asked` what they ask for, `bodies` where they are after
    /// their steps.
    pub fn tick(&mut self, tick: u32, held: &[Input; SEATS], asked: &[(u8, Asked)], bodies: &[Motion; SEATS]) {
        for seat in ALL.into_iter().filter(|seat| held[usize::from(*seat)].load()) {
            let Hands { ready_tick, rounds, kind, .. } = self.hands[usize::from(seat)];
            let is_ready = self.demands(Rule::CooldownsLast, tick >= ready_tick);
            if self.has_a_hand_free(seat) && is_ready && rounds < table(kind).1 {
                self.load(seat, tick);
            }
        }
        for (seat, asked) in asked {
            if let Asked::Item(item) = asked {
                self.buy(*seat, *item);
            }
        }
        self.carry(bodies);
        self.plant(tick, held, bodies);
        self.defuse(tick, held, bodies);
        for (seat, asked) in asked {
            if let Asked::Grenade(grenade) = asked {
                self.throw(*seat, *grenade, tick);
            }
        }
        let is_played = self.demands(Rule::ShotsAreOfARound, self.is_played());
        for seat in ALL.into_iter().filter(|seat| is_played && held[usize::from(*seat)].fire()) {
            if self.has_a_hand_free(seat) {
                self.fire(seat, tick);
            }
        }
    }

    /// Who lives and does not work at the spike.
    fn has_a_hand_free(&self, seat: u8) -> bool {
        let is_alive = self.demands(Rule::TheDeadDoNothing, self.hands[usize::from(seat)].is_alive);
        is_alive && self.demands(Rule::WorkTakesBothHands, self.worker != Some(seat))
    }

    fn load(&mut self, seat: u8, tick: u32) {
        let is_at_once = self.without == Some(Rule::LoadingTakesItsTime);
        let hands = &mut self.hands[usize::from(seat)];
        let (_, rounds, ms, _) = table(hands.kind);
        let loaded_tick = tick + if is_at_once { 0 } else { ticks(ms) };
        (hands.rounds, hands.ready_tick, hands.loaded_tick) = (rounds, loaded_tick, loaded_tick);
    }

    fn fire(&mut self, seat: u8, tick: u32) {
        let hands = self.hands[usize::from(seat)];
        if !self.demands(Rule::CooldownsLast, tick >= hands.ready_tick) {
            return;
        }
        if !self.demands(Rule::MagazinesEnd, hands.rounds > 0) {
            return self.load(seat, tick);
        }
        let hands = &mut self.hands[usize::from(seat)];
        hands.rounds = hands.rounds.saturating_sub(1);
        hands.ready_tick = tick + ticks(table(hands.kind).0);
        self.shots += 1;
    }

    fn buy(&mut self, seat: u8, item: Item) {
        let hands = self.hands[usize::from(seat)];
        let (price, is_missing) = match item {
            Item::Weapon(kind) => (table(kind).3, hands.kind != kind),
            Item::Armour => (1_000, hands.armour < 50),
            Item::Smoke => (300, hands.smokes < 2),
            Item::Flash => (250, hands.flashes < 2),
        };
        let may = self.demands(Rule::TheDeadDoNothing, hands.is_alive)
            && self.demands(Rule::OneBuysInItsPhase, self.phase == Phase::Buy)
            && self.demands(Rule::OnePays, hands.credits >= price)
            && self.demands(Rule::OneCarriesSoMuch, is_missing);
        if !may {
            return;
        }
        let hands = &mut self.hands[usize::from(seat)];
        hands.credits = hands.credits.saturating_sub(price);
        match item {
            Item::Weapon(kind) => hands.take(kind),
            Item::Armour => hands.armour = 50,
            Item::Smoke => hands.smokes += 1,
            Item::Flash => hands.flashes += 1,
        }
    }

    fn throw(&mut self, seat: u8, grenade: Grenade, tick: u32) {
        let hands = self.hands[usize::from(seat)];
        let left = if grenade == Grenade::Smoke { hands.smokes } else { hands.flashes };
        let may = self.has_a_hand_free(seat)
            && self.demands(Rule::ThrowsAreOfARound, self.is_played())
            && self.demands(Rule::LoadingTakesBothHands, tick >= hands.loaded_tick)
            && self.demands(Rule::ThrowsAreApart, tick >= hands.throws_tick)
            && self.demands(Rule::OneThrowsWhatOneHas, left > 0);
        if !may {
            return;
        }
        let hands = &mut self.hands[usize::from(seat)];
        let of_sort = if grenade == Grenade::Smoke { &mut hands.smokes } else { &mut hands.flashes };
        *of_sort = of_sort.saturating_sub(1);
        hands.throws_tick = tick + ticks(700);
    }

    fn carry(&mut self, bodies: &[Motion; SEATS]) {
        match self.spike {
            Spike::Carried { seat } if !self.hands[usize::from(seat)].is_alive => {
                let Vec3 { x, z, .. } = bodies[usize::from(seat)].at;
                self.spike = Spike::Dropped { x, z };
                self.let_go();
            }
            Spike::Dropped { x, z } if self.phase == Phase::Live => {
                let takes = |seat: &u8| {
                    self.hands[usize::from(*seat)].is_alive
                        && self.demands(Rule::AttackersTakeItUp, self.is_attacker(*seat))
                        && far_m(&bodies[usize::from(*seat)], x, z) <= 1.5
                };
                if let Some(seat) = ALL.into_iter().find(takes) {
                    self.spike = Spike::Carried { seat };
                }
            }
            _ => {}
        }
    }

    fn is_at_work(&self, seat: u8, tick: u32, held: &[Input; SEATS], bodies: &[Motion; SEATS]) -> bool {
        let (hands, body) = (&self.hands[usize::from(seat)], &bodies[usize::from(seat)]);
        held[usize::from(seat)].uses()
            && self.demands(Rule::TheDeadDoNothing, hands.is_alive)
            && self.demands(Rule::LoadingTakesBothHands, tick >= hands.loaded_tick)
            && self.demands(Rule::OneStandsAtWork, body.is_on_ground && body.speed_m_per_s() < 0.5)
    }

    /// A tick of work; whether all of it is done.
    fn work(&mut self, seat: u8, of_ticks: u32) -> bool {
        (self.worker, self.done_ticks) = (Some(seat), self.done_ticks + 1);
        self.done_ticks >= if self.without == Some(Rule::WorkTakesItsTime) { of_ticks / 2 } else { of_ticks }
    }

    fn let_go(&mut self) {
        (self.worker, self.done_ticks) = (None, self.kept_ticks);
    }

    fn plant(&mut self, tick: u32, held: &[Input; SEATS], bodies: &[Motion; SEATS]) {
        let Spike::Carried { seat: carrier } = self.spike else { return };
        if self.phase != Phase::Live {
            return;
        }
        let able = |seat: &u8| {
            self.is_attacker(*seat)
                && self.demands(Rule::TheCarrierPlants, *seat == carrier)
                && self.demands(Rule::OnePlantsOnASite, is_on_site(&bodies[usize::from(*seat)]))
                && self.is_at_work(*seat, tick, held, bodies)
        };
        let Some(seat) = ALL.into_iter().find(able) else { return self.let_go() };
        if self.work(seat, FUZZED.plant_ticks) {
            let Vec3 { x, z, .. } = bodies[usize::from(seat)].at;
            self.phase = Phase::Planted;
            self.spike = Spike::Planted { x, z, explodes_tick: tick + FUZZED.spike_ticks };
            (self.worker, self.done_ticks, self.kept_ticks) = (None, 0, 0);
            let attackers = ALL.into_iter().filter(|seat| TeamId::of_seat(*seat) == self.attackers);
            attackers.for_each(|seat| self.hands[usize::from(seat)].earn(300));
        }
    }

    fn defuse(&mut self, tick: u32, held: &[Input; SEATS], bodies: &[Motion; SEATS]) {
        let Spike::Planted { x, z, .. } = self.spike else { return };
        let able = |seat: &u8| {
            self.demands(Rule::DefendersDefuse, !self.is_attacker(*seat))
                && self.demands(Rule::ArmsAreSoLong, far_m(&bodies[usize::from(*seat)], x, z) <= 1.6)
                && self.is_at_work(*seat, tick, held, bodies)
        };
        let next = self.worker.filter(able).or_else(|| ALL.into_iter().find(able));
        if self.worker.is_some() && next != self.worker {
            self.let_go();
        }
        let Some(seat) = next else { return };
        self.is_defused = self.work(seat, FUZZED.defuse_ticks);
        let half = FUZZED.defuse_ticks / 2;
        if self.done_ticks >= half && self.without != Some(Rule::HalfOfItIsKept) {
            self.kept_ticks = half;
        }
    }

    /// Takes in what the rest of the tick has brought about. What of it contradicts the actions is told.
    pub fn learn(&mut self, news: &News, bodies: &[Motion; SEATS]) -> Result<(), String> {
        let is_over = self.is_played() && news.phase == Phase::Over;
        if self.is_defused != (is_over && news.end == Some(RoundEnd::SpikeDefused)) {
            return Err(format!("defused: {}, and the round: {:?}, {:?}", self.is_defused, news.phase, news.end));
        }
        let mut killed = 0;
        for (seat, body) in bodies.iter().enumerate() {
            self.hands[seat].earn(200 * news.kills[seat] as u16);
            let is_blown_up = match self.spike {
                Spike::Planted { x, z, .. } if is_over && news.end == Some(RoundEnd::SpikeExploded) => {
                    far_m(body, x, z) <= 15.0
                }
                _ => false,
            };
            let is_shot = !is_blown_up && self.hands[seat].is_alive && !news.is_alive[seat];
            killed += u32::from(is_shot);
            self.hands[seat].is_alive &= !is_blown_up && !is_shot;
        }
        // Who is shot and blown up in one tick is a kill.
        let kills: u32 = news.kills.iter().sum();
        let is_blast = is_over && news.end == Some(RoundEnd::SpikeExploded);
        if kills != killed && !(is_blast && kills > killed) {
            return Err(format!("{kills} kills, and {killed} were shot"));
        }
        if is_over {
            self.end_round(news.end);
        }
        let begins = self.phase != Phase::Buy && news.phase == Phase::Buy;
        self.phase = news.phase;
        if begins {
            self.begin_round(news);
        }
        Ok(())
    }

    fn end_round(&mut self, end: Option<RoundEnd>) {
        let is_won = matches!(end, Some(RoundEnd::DefendersEliminated | RoundEnd::SpikeExploded));
        let winner = if is_won { self.attackers } else { self.attackers.other() };
        let lost = &mut self.lost_in_a_row;
        (lost[winner.index()], lost[winner.other().index()]) = (0, lost[winner.other().index()] + 1);
        for seat in ALL {
            let credits = match self.lost_in_a_row[TeamId::of_seat(seat).index()] {
                0 => 3_000,
                1 => 1_900,
                2 => 2_400,
                _ => 2_900,
            };
            self.hands[usize::from(seat)].earn(credits);
        }
        (self.spike, self.is_defused) = (Spike::Gone, false);
        self.let_go();
    }

    fn begin_round(&mut self, news: &News) {
        let is_new_half = news.attackers != self.attackers;
        if is_new_half {
            (self.attackers, self.lost_in_a_row) = (news.attackers, [0; 2]);
        }
        for hands in &mut self.hands {
            let before = *hands;
            *hands = Hands { is_alive: true, throws_tick: before.throws_tick, ..Hands::NOTHING };
            if is_new_half {
                continue;
            }
            hands.credits = before.credits;
            if before.is_alive {
                (hands.smokes, hands.flashes, hands.armour) = (before.smokes, before.flashes, before.armour);
                hands.take(before.kind);
            }
        }
        self.spike = news.carrier.map_or(Spike::Gone, |seat| Spike::Carried { seat });
        (self.worker, self.done_ticks, self.kept_ticks) = (None, 0, 0);
    }
}
