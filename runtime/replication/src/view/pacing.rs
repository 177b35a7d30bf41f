//! Pacing (AIMD): how many bytes one client's line takes, found out from what arrives and what is lost.
//!
//! The settings say what a client may be sent at most. A line that takes less shows it by losing packets; sending on at
//! the same rate then loses a share of everything, the urgent with the rest. So the rate goes down to what came
//! through, and from there up again in small steps: additive increase, multiplicative decrease, judged once in a window
//! of about a second.
//!
//! Loss is not always of our making: a bad radio link loses a tenth of whatever it is given, and to send less there
//! gains nothing. Each decrease is therefore a probe. If the share of losses does not fall by half with the rate, it is
//! the line's own: it is taken as usual from then on, and the rate from before comes back.
//!
//! ```text
//! window's loss              then
//! ----------------------     ---------------------------------------------------------------
//! no more than usual         up by a 32nd of the maximum, if the budget was needed at all
//! more                       down to what came through, less 15 %; this is a probe
//! after a probe: as before   the loss is usual on this line [up to 30 %]; back to the rate before
//! no answer for 0.5 s        an outage, and no sign of narrowness: its losses do not count; a
//!                            quarter while it lasts, three at the first answer
//! ```
//!
//! The rate never falls below [`RATE_MIN_BYTES_PER_S`], two full packets a second: enough for a player's own
//! surroundings to move, and little enough for any line that carries a game at all. It never rises above the maximum.
//!
//! What came into view does not wait until a packet is saved up ([`Pacing::overdraw`]): it goes at once, on credit of
//! [`CREDIT_S`] at most, and all else waits for as much longer. So the rate stays what it is.
//!
//! It does not see queues that grow without loss, and cannot tell whose traffic crowds a line. Sans-IO: ticks and
//! counts come in. Made of additions and products of `f32` in a fixed order, so a replay of the same answers gives the
//! same budgets. 64 B per client; 5 ns per tick.

/// Least rate: two full packets a second. (bytes/s)
pub const RATE_MIN_BYTES_PER_S: f32 = 2.0 * 1200.0;

/// Less than this is saved up for a later tick: the headers and the seal of a packet take some 60 B. (bytes)
pub const PACKET_BYTES_WORTHWHILE: f32 = 300.0;

/// What came into view may overdraw the allowance by what the rate gives in so long. (s)
const CREDIT_S: f32 = 0.5;

/// A window is judged after so long at the earliest, and when it is without hope of enough answers. (s)
const WINDOW_S: f32 = 1.0;
const WINDOW_S_MAX: f32 = 4.0;

/// Answers that a window needs before its share of losses means something; and after `WINDOW_S_MAX`. (packets)
const ANSWERS_MIN: u32 = 32;
const ANSWERS_AT_LAST_MIN: u32 = 8;

/// Answers are not counted for so long after the rate was cut or an outage ended: they are about packets from before.
/// (s)
const SETTLE_S: f32 = 0.5;

/// No answer for so long, to at least so many packets, is an outage. (s, packets)
const OUTAGE_S: f32 = 0.5;
const OUTAGE_PACKETS: u32 = 8;

/// Losses up to this share above the usual, beside what chance explains, are let pass.
const LOSS_MARGIN: f32 = 0.02;

/// The largest share of losses that is put down to the line. Above it, whatever the cause, sending less is right.
const USUAL_LOSS_MAX: f32 = 0.3;

/// Usual loss that is learnt without a probe stops here; else a bottleneck's own losses would become usual, little by
/// little.
const DRIFT_MAX: f32 = 0.05;

/// Part of what came through that is sent after a cut: less than the line takes, so that the queue in front of it
/// empties.
const CUT: f32 = 0.85;

/// What the rate gains in a good window: a part of the maximum, but no more than a part of itself, or a slow line would
/// be flooded by one step.
const STEP: f32 = 1.0 / 32.0;
const STEP_OF_RATE_MAX: f32 = 1.0 / 8.0;

/// The budget counts as needed when so much of it was sent.
const NEEDED: f32 = 0.7;

/// What one client is sent per tick. One per client.
#[derive(Clone, Debug)]
pub struct Pacing {
    ticks_per_s: f32,
    max_bytes_per_s: f32,
    rate_bytes_per_s: f32,
    /// What may be sent now; below 0 when more was sent than allowed, as what is reliable does. (bytes)
    allowance_bytes: f32,
    /// The rate when the outage began. (bytes/s)
    before_outage_bytes_per_s: f32,
    /// Share of packets that this line loses whatever is sent. [0 to `USUAL_LOSS_MAX`]
    usual_loss: f32,
    /// The share of losses, and the rate, that made us cut it.
    probe: Option<Probe>,
    window: Window,
    /// Ticks since the last answer, and packets sent since then.
    silent_ticks: u32,
    silent_packets: u32,
    is_out: bool,
}

#[derive(Copy, Clone, Debug)]
struct Probe {
    loss: f32,
    rate_bytes_per_s: f32,
}

/// What is being counted. Runs for `ticks`; negative ones are to settle.
#[derive(Copy, Clone, Debug, Default)]
struct Window {
    ticks: i32,
    acked: u32,
    lost: u32,
    sent_bytes: f32,
}

impl Pacing {
    /// Begins with the maximum: most lines take it, and what a newcomer needs most is its first sight of the world.
    /// `ticks_per_s` > 0; `max_bytes_per_tick` as in the settings.
    pub fn new(ticks_per_s: f32, max_bytes_per_tick: u32) -> Self {
        let max_bytes_per_s = max_bytes_per_tick as f32 * ticks_per_s;
        Self {
            ticks_per_s,
            max_bytes_per_s,
            rate_bytes_per_s: max_bytes_per_s,
            allowance_bytes: 0.0,
            before_outage_bytes_per_s: 0.0,
            usual_loss: 0.0,
            probe: None,
            window: Window::default(),
            silent_ticks: 0,
            silent_packets: 0,
            is_out: false,
        }
    }

    /// Another maximum or tick rate, as when the client travels; what is known of the line stays.
    pub fn set_max(&mut self, ticks_per_s: f32, max_bytes_per_tick: u32) {
        let was_at_max = self.rate_bytes_per_s >= self.max_bytes_per_s;
        self.ticks_per_s = ticks_per_s;
        self.max_bytes_per_s = max_bytes_per_tick as f32 * ticks_per_s;
        let wanted = if was_at_max { self.max_bytes_per_s } else { self.rate_bytes_per_s };
        self.set_rate(wanted);
    }

    /// Begins a tick, with the packets that were found to have arrived or to be lost since the last one, and returns
    /// what may be sent in it (bytes). 0: nothing that can wait should be sent in this tick.
    pub fn begin_tick(&mut self, acked: u32, lost: u32) -> u32 {
        self.hear(acked, lost);
        self.window.ticks += 1;
        if self.is_judged_now() {
            self.judge();
        }
        let per_tick = self.rate_bytes_per_s / self.ticks_per_s;
        // Nothing is saved up beyond the maximum of a tick: the line would get in one what it did not take in many.
        let most = (self.max_bytes_per_s / self.ticks_per_s).max(PACKET_BYTES_WORTHWHILE);
        self.allowance_bytes = (self.allowance_bytes + per_tick).min(most);
        if self.allowance_bytes >= self.worthwhile_bytes() { self.allowance_bytes as u32 } else { 0 }
    }

    /// So many ticks went by before the one that begins next in which there was nothing to send.
    pub fn skip_ticks(&mut self, ticks: u32) {
        self.window.ticks = self.window.ticks.saturating_add_unsigned(ticks);
        self.silent_ticks = self.silent_ticks.saturating_add(ticks);
        let saved_up = ticks as f32 * self.rate_bytes_per_s / self.ticks_per_s;
        let most = (self.max_bytes_per_s / self.ticks_per_s).max(PACKET_BYTES_WORTHWHILE);
        self.allowance_bytes = (self.allowance_bytes + saved_up).min(most);
    }

    /// What may be sent in a tick for which `begin_tick` gave nothing, for what must not wait (bytes); 0 when the credit is
    /// used up.
    pub fn overdraw(&self) -> u32 {
        let has_credit = self.allowance_bytes > -CREDIT_S * self.rate_bytes_per_s;
        if has_credit { self.worthwhile_bytes() as u32 } else { 0 }
    }

    /// Less is saved up. The maximum of a tick is the operator's word, and counts.
    fn worthwhile_bytes(&self) -> f32 {
        PACKET_BYTES_WORTHWHILE.min(self.max_bytes_per_s / self.ticks_per_s)
    }

    /// Notes what went out in this tick, with all headers, whether it asked for a budget or not. (packets, bytes)
    pub fn sent(&mut self, packets: u32, bytes: u32) {
        self.silent_packets = self.silent_packets.saturating_add(packets);
        self.window.sent_bytes += bytes as f32;
        // Overdrawn by no more than a second, or a long reliable message would silence all else for long.
        self.allowance_bytes = (self.allowance_bytes - bytes as f32).max(-self.rate_bytes_per_s);
    }

    /// [bytes/s, `RATE_MIN_BYTES_PER_S` to the maximum]
    pub fn rate_bytes_per_s(&self) -> f32 {
        self.rate_bytes_per_s
    }

    /// Share of packets that this line seems to lose whatever is sent.
    pub fn usual_loss(&self) -> f32 {
        self.usual_loss
    }

    fn hear(&mut self, acked: u32, lost: u32) {
        if acked == 0 {
            self.silent_ticks = self.silent_ticks.saturating_add(1);
            let is_silent = self.silent_ticks as f32 >= OUTAGE_S * self.ticks_per_s;
            if !self.is_out && is_silent && self.silent_packets >= OUTAGE_PACKETS {
                self.is_out = true;
                self.before_outage_bytes_per_s = self.rate_bytes_per_s;
                self.probe = None;
                self.set_rate(self.rate_bytes_per_s / 4.0);
            }
        } else {
            (self.silent_ticks, self.silent_packets) = (0, 0);
            if std::mem::take(&mut self.is_out) {
                // Not all of it: a line so narrow that answers are rare looks dead time and again.
                self.set_rate(self.before_outage_bytes_per_s * 0.75);
                self.restart_window();
            }
        }
        if !self.is_out && self.window.ticks >= 0 {
            self.window.acked += acked;
            self.window.lost += lost;
        }
    }

    /// A new window, after what is under way has been answered.
    fn restart_window(&mut self) {
        self.window = Window { ticks: -((SETTLE_S * self.ticks_per_s) as i32), ..Window::default() };
    }

    fn is_judged_now(&self) -> bool {
        if self.is_out {
            return false;
        }
        let seconds = self.window.ticks as f32 / self.ticks_per_s;
        let answers = self.window.acked + self.window.lost;
        (seconds >= WINDOW_S && answers >= ANSWERS_MIN) || seconds >= WINDOW_S_MAX
    }

    fn judge(&mut self) {
        let Window { ticks, acked, lost, sent_bytes } = std::mem::take(&mut self.window);
        let answers = acked + lost;
        if answers < ANSWERS_AT_LAST_MIN {
            return;
        }
        let loss = lost as f32 / answers as f32;
        // Three standard deviations of the losses that chance brings.
        let usual = self.usual_loss.max(0.01);
        let chance = 3.0 * (usual * (1.0 - usual) / answers as f32).sqrt();
        let probe = self.probe.take();
        if loss > self.usual_loss + LOSS_MARGIN + chance {
            if let Some(probe) = probe.filter(|probe| lost >= 2 && loss > probe.loss / 2.0) {
                self.usual_loss = loss.min(probe.loss).clamp(self.usual_loss, USUAL_LOSS_MAX);
                self.set_rate(probe.rate_bytes_per_s);
            } else {
                self.probe = Some(Probe { loss, rate_bytes_per_s: self.rate_bytes_per_s });
                let sent_bytes_per_s = sent_bytes * self.ticks_per_s / ticks as f32;
                let arrived_bytes_per_s = sent_bytes_per_s.min(self.rate_bytes_per_s) * (1.0 - loss);
                self.set_rate(arrived_bytes_per_s * CUT);
            }
            self.restart_window();
            return;
        }
        let towards = if loss < self.usual_loss { loss } else { loss.min(DRIFT_MAX).max(self.usual_loss) };
        self.usual_loss += (towards - self.usual_loss) / 8.0;
        let was_needed = sent_bytes * self.ticks_per_s >= NEEDED * self.rate_bytes_per_s * ticks as f32;
        if was_needed {
            let step = (self.max_bytes_per_s * STEP).min(self.rate_bytes_per_s * STEP_OF_RATE_MAX);
            self.set_rate(self.rate_bytes_per_s + step);
        }
    }

    fn set_rate(&mut self, bytes_per_s: f32) {
        // A maximum below the least rate is the operator's word, and counts.
        self.rate_bytes_per_s = bytes_per_s.max(RATE_MIN_BYTES_PER_S).min(self.max_bytes_per_s);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    const TICKS_PER_S: u32 = 20;
    const MAX_BYTES_PER_TICK: u32 = 2400;
    const MAX_BYTES_PER_S: f32 = (MAX_BYTES_PER_TICK * TICKS_PER_S) as f32;

    /// A line with a bottleneck, a queue in front of it, random loss, and a way back.
    struct Line {
        rng: Xoshiro256PlusPlus,
        capacity_bytes_per_s: f32,
        queue_bytes_max: f32,
        queue_bytes: f32,
        random_loss: f64,
        is_dead: bool,
        /// Tick in which each packet's fate will be known, and whether it arrived.
        answers: VecDeque<(u32, bool)>,
    }

    struct Trip {
        line: Line,
        pacing: Pacing,
        tick: u32,
        /// What the game has to say. (bytes/tick)
        wanted_bytes: u32,
    }

    impl Trip {
        fn new(seed: u64, capacity_bytes_per_s: f32, random_loss: f64) -> Self {
            let line = Line {
                rng: Xoshiro256PlusPlus::seed_from_u64(seed),
                capacity_bytes_per_s,
                queue_bytes_max: 6000.0,
                queue_bytes: 0.0,
                random_loss,
                is_dead: false,
                answers: VecDeque::new(),
            };
            let pacing = Pacing::new(TICKS_PER_S as f32, MAX_BYTES_PER_TICK);
            Self { line, pacing, tick: 0, wanted_bytes: 10_000 }
        }

        /// Runs for so long; returns the mean rate of what arrived (bytes/s) and the share of packets that were lost.
        fn run(&mut self, seconds: u32) -> (f32, f32) {
            let (mut arrived_bytes, mut packets, mut lost_packets) = (0.0, 0, 0);
            for _ in 0..seconds * TICKS_PER_S {
                self.tick += 1;
                let line = &mut self.line;
                let (mut acked, mut lost) = (0, 0);
                // Nothing comes back over a dead line; what it lost shows with the first answer after.
                while let Some((at, arrived)) = line.answers.front().copied()
                    && at <= self.tick
                    && !line.is_dead
                {
                    line.answers.pop_front();
                    *(if arrived { &mut acked } else { &mut lost }) += 1;
                }
                let mut left = self.pacing.begin_tick(acked, lost).min(self.wanted_bytes);
                line.queue_bytes = (line.queue_bytes - line.capacity_bytes_per_s / TICKS_PER_S as f32).max(0.0);
                while left > 0 {
                    let bytes = left.min(1200);
                    left -= bytes;
                    self.pacing.sent(1, bytes);
                    let fits = line.queue_bytes + bytes as f32 <= line.queue_bytes_max;
                    let survives = fits && !line.is_dead && !line.rng.random_bool(line.random_loss);
                    if fits {
                        line.queue_bytes += bytes as f32;
                    }
                    line.answers.push_back((self.tick + 3, survives));
                    packets += 1;
                    lost_packets += u32::from(!survives);
                    arrived_bytes += if survives { bytes as f32 } else { 0.0 };
                }
                let rate = self.pacing.rate_bytes_per_s();
                assert!((RATE_MIN_BYTES_PER_S..=MAX_BYTES_PER_S).contains(&rate), "{rate}");
            }
            (arrived_bytes / seconds as f32, lost_packets as f32 / packets as f32)
        }
    }

    #[test]
    fn a_bottleneck_is_found_and_filled() {
        for seed in 0..10 {
            for capacity in [4_000.0, 8_000.0, 16_000.0, 30_000.0] {
                let mut trip = Trip::new(seed, capacity, 0.0);
                trip.run(20);
                let (arrived, loss) = trip.run(60);
                assert!(arrived >= 0.9 * capacity, "{arrived} of {capacity}");
                // Three packets a second are few to judge by.
                let loss_max = if capacity < 5_000.0 { 0.15 } else { 0.06 };
                assert!(loss <= loss_max, "{loss} at {capacity}");
                assert!(trip.pacing.usual_loss() <= 0.1, "{}", trip.pacing.usual_loss());
            }
        }
    }

    #[test]
    fn loss_that_is_not_of_our_making_costs_no_more_than_itself() {
        for seed in 0..10 {
            for loss in [0.05, 0.1, 0.2] {
                let mut trip = Trip::new(seed, 1e9, loss);
                trip.run(20);
                let (arrived, _) = trip.run(60);
                assert!(arrived >= 0.65 * (1.0 - loss as f32) * MAX_BYTES_PER_S, "{arrived} at {loss}");
            }
        }
    }

    #[test]
    fn a_bad_link_behind_a_bottleneck_is_still_of_use() {
        for seed in 0..10 {
            let mut trip = Trip::new(seed, 16_000.0, 0.1);
            trip.run(20);
            let (arrived, loss) = trip.run(60);
            assert!(arrived >= 0.6 * 16_000.0, "{arrived}");
            assert!(loss <= 0.2, "{loss}");
        }
    }

    #[test]
    fn after_a_blackout_the_rate_is_soon_what_it_was() {
        for (seed, loss) in [(0, 0.0), (1, 0.0), (2, 0.1), (3, 0.2)] {
            let mut trip = Trip::new(seed, 1e9, loss);
            trip.run(30);
            let (before, _) = trip.run(5);
            for blackout_s in [1, 5] {
                trip.line.is_dead = true;
                trip.run(blackout_s);
                trip.line.is_dead = false;
                let (after, _) = trip.run(2);
                assert!(after >= 0.6 * before, "{after} at once, {before} before");
                let (after, _) = trip.run(10);
                assert!(after >= 0.8 * before, "{after} later, {before} before");
            }
        }
    }

    #[test]
    fn a_line_that_gets_wider_is_used() {
        let mut trip = Trip::new(1, 8_000.0, 0.0);
        trip.run(20);
        trip.line.capacity_bytes_per_s = 1e9;
        trip.run(40);
        assert_eq!(trip.pacing.rate_bytes_per_s(), MAX_BYTES_PER_S);
    }

    #[test]
    fn a_rate_that_nobody_needs_does_not_grow() {
        let mut trip = Trip::new(1, 8_000.0, 0.0);
        trip.run(20);
        trip.wanted_bytes = 100;
        trip.run(5);
        let before = trip.pacing.rate_bytes_per_s();
        trip.run(40);
        assert_eq!(trip.pacing.rate_bytes_per_s(), before);
    }

    #[test]
    fn little_is_saved_up_until_it_is_worth_a_packet() {
        let mut pacing = Pacing::new(20.0, MAX_BYTES_PER_TICK);
        pacing.set_rate(0.0);
        let budgets = [(); 6].map(|()| {
            let budget = pacing.begin_tick(1, 0);
            pacing.sent(u32::from(budget > 0), budget);
            budget
        });
        assert_eq!(budgets, [0, 0, 360, 0, 0, 360]);
    }

    /// Promise: what must not wait goes at once while there is credit, and however much of it there is, no more goes out in
    /// the end than the rate and the credit.
    #[test]
    fn what_must_not_wait_goes_on_credit_and_the_rate_stays_what_it_is() {
        let mut pacing = Pacing::new(128.0, MAX_BYTES_PER_TICK);
        pacing.set_rate(0.0);
        let (mut sent_bytes, mut at_once) = (0, 0);
        let seconds = 20;
        for tick in 0..seconds * 128 {
            // Without answers the rate stays at its least.
            let budget = pacing.begin_tick(0, 0).max(pacing.overdraw());
            let bytes = budget.min(100);
            pacing.sent(u32::from(bytes > 0), bytes);
            sent_bytes += bytes;
            at_once += u32::from(bytes > 0 && at_once == tick);
        }
        assert!(at_once >= 10, "{at_once} ticks in a row from the first on");
        let most = RATE_MIN_BYTES_PER_S * (seconds as f32 + CREDIT_S) + 100.0;
        assert!((0.99 * RATE_MIN_BYTES_PER_S * seconds as f32..=most).contains(&(sent_bytes as f32)), "{sent_bytes}");
    }

    #[test]
    fn a_maximum_below_the_least_rate_counts() {
        let mut pacing = Pacing::new(20.0, 50);
        assert_eq!((pacing.begin_tick(0, 0), pacing.overdraw()), (50, 50));
        pacing.set_max(20.0, 400);
        assert_eq!(pacing.rate_bytes_per_s(), 8000.0);
    }
}
