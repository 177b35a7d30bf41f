//! The recorder's own thread: saves captures, and looks once a second at what grows slowly.
//!
//! It has low priority and may take as long as it likes: it pins the blocks that it wants, so nobody waits for it and
//! it waits for nobody. A full disk costs captures and one line in the log, nothing else.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use throng_capture::format;
use throng_capture::model::{
    About, Capture, HostStall, OF_KIND, PER_TICK, ProcessShare, ThreadClass, Trigger, TriggerKind, Unit, World,
};
use throng_platform::allocator;
use throng_platform::cores;
use throng_platform::heartbeat::Stall;
use throng_platform::sched::{self, HostLook};
use throng_platform::ticks::{self, Calibration};

use crate::capture_builder::{self, Clock, Window};
use crate::captures::{CapturesFolder, DiskBudgets, NewCapture, folder_of};
use crate::hand_off::HandOff;
use crate::kept::KeptCapture;
use crate::memory_growth::MemoryGrowth;
use crate::pace::{Pace, PacedWriter};
use crate::record::recorded_world;
use crate::save_request::{Asked, AskedSave, SaveError, Saved};
use crate::triggers::{Cause, Fired};
use crate::world_kind::KindNumber;
use crate::{log, log_category, log_error, log_warn, pool, scope, site, sync, thread};

log_category!(CAPTURE = "profiler.capture");

/// How often it looks for work: what a trigger's post-roll is rounded up to.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// And so often while the recorder rests and no capture waits.
const LOOK_EVERY_AT_REST: Duration = Duration::from_secs(1);

/// Captures that may wait for their post-roll, each with a look at the host's processes.
const WAITING_MAX: usize = 16;

/// How often the host's processes are looked at (ns): 0.35 ms each time, on a host with a hundred of them.
const LOOK_AT_HOST_EVERY_NS: u64 = 1_000_000_000;

/// Other processes that a capture names.
const PROCESSES_MAX: usize = 32;

/// Causes of failures that are remembered as told. Beyond them the oldest may be told again.
const CAUSES_TOLD_MAX: usize = 16;

/// The thread's life.
pub(crate) fn work(hand_off: &HandOff) {
    thread::register(ThreadClass::LongTask);
    let mut saver = Saver::new(hand_off);
    while !hand_off.is_stopping() {
        // What goes wrong with one capture must not be the end of all of them.
        if catch_unwind(AssertUnwindSafe(|| saver.turn())).is_err() {
            hand_off.counts.failed.fetch_add(1, Ordering::Relaxed);
            log_error!(CAPTURE, "the recorder's thread panicked over a capture, which is lost; it goes on");
        }
        let is_idle = hand_off.is_resting() && saver.waiting.is_empty();
        hand_off.sleep(if is_idle { LOOK_EVERY_AT_REST } else { LOOK_EVERY });
    }
    // What has fired is saved, even if its post-roll is cut short.
    saver.save_due(u64::MAX);
    saver.take_requests();
    saver.save_due(u64::MAX);
    hand_off.close();
}

struct Saver<'a> {
    hand_off: &'a HandOff,
    folder: Option<CapturesFolder>,
    memory_growth: MemoryGrowth,
    clock: Clock,
    /// Fired, and waiting for their post-roll.
    waiting: Vec<Waiting>,
    /// The host's processes, one and two seconds ago: what they used meanwhile is known when something was bad.
    host_looks: [HostLook; 2],
    /// They are from before the recorder's rest, and what was used since is an average of hours.
    are_looks_old: bool,
    looked_at_ticks: u64,
    told_failures: ToldFailures,
}

struct Waiting {
    fired: Fired,
    due_ticks: u64,
    /// What other processes used in the seconds before, to this moment.
    processes: Vec<ProcessShare>,
}

impl<'a> Saver<'a> {
    fn new(hand_off: &'a HandOff) -> Saver<'a> {
        let calibration = Calibration::get();
        Saver {
            hand_off,
            folder: hand_off.settings.captures.clone().map(CapturesFolder::new),
            memory_growth: MemoryGrowth::default(),
            clock: Clock { calibration, start_ns: hand_off.start_ns },
            waiting: Vec::new(),
            host_looks: [HostLook::now(), HostLook::now()],
            are_looks_old: false,
            looked_at_ticks: ticks::now(),
            told_failures: ToldFailures::default(),
        }
    }

    fn turn(&mut self) {
        self.take_requests();
        self.save_due(ticks::now());
        for AskedSave { note, at_ticks, asked } in self.hand_off.take_asked() {
            match asked {
                Asked::ByHand(reply) => {
                    let fired = by_hand(at_ticks);
                    let saved = self.save(&fired, &note, self.other_processes());
                    self.tell_failure(fired.kind, &saved);
                    // Whoever asked may have given up.
                    let _ = reply.send(saved);
                }
                Asked::Watchdog(fired) => {
                    let saved = self.save(&fired, &note, self.other_processes());
                    self.tell(&fired, &saved);
                }
            }
        }
        // What worlds gave up in their ticks and was too large to be freed there.
        allocator::free_deferred();
        let now = ticks::now();
        if now.saturating_sub(self.looked_at_ticks) > self.clock.calibration.ticks(LOOK_AT_HOST_EVERY_NS) {
            self.looked_at_ticks = now;
            self.clock.calibration = self.clock.calibration.renewed();
            self.look_at_host();
        }
        self.memory_growth.look(now, &self.clock, self.hand_off);
    }

    /// Not at rest, in which nothing can be held up by others.
    fn look_at_host(&mut self) {
        if self.hand_off.is_resting() {
            self.are_looks_old = true;
            return;
        }
        self.host_looks.swap(0, 1);
        self.host_looks[1] = HostLook::now();
        if std::mem::take(&mut self.are_looks_old) {
            self.host_looks[0] = HostLook::now();
        }
    }

    /// Who else has used the cores in the last one to two seconds; nobody where that is not known, at rest and up to a
    /// second after it.
    fn other_processes(&self) -> Vec<ProcessShare> {
        if self.are_looks_old {
            return Vec::new();
        }
        let shares = HostLook::now().shares_since(&self.host_looks[0], PROCESSES_MAX);
        let share =
            |process: sched::ProcessShare| ProcessShare { pid: process.pid, name: process.name, cores: process.cores };
        shares.processes.into_iter().map(share).collect()
    }

    /// The rest stays in the queue, which is full soon: then triggers are turned away and counted.
    fn take_requests(&mut self) {
        while self.waiting.len() < WAITING_MAX
            && let Some(fired) = self.hand_off.take_request()
        {
            let post_roll_s = f64::from(self.hand_off.rules().trigger(fired.kind).post_roll_s);
            let post_roll = self.clock.calibration.ticks((post_roll_s * 1e9) as u64);
            let due_ticks = fired.at.saturating_add(post_roll);
            self.waiting.push(Waiting { fired, due_ticks, processes: self.other_processes() });
        }
    }

    fn save_due(&mut self, now: u64) {
        while let Some(place) = self.waiting.iter().position(|waiting| waiting.due_ticks <= now) {
            let Waiting { fired, processes, .. } = self.waiting.remove(place);
            let saved = self.save(&fired, "", processes);
            self.tell(&fired, &saved);
        }
    }

    /// Logs a capture that a trigger had saved, or why it was not.
    fn tell(&mut self, fired: &Fired, saved: &Result<Saved, SaveError>) {
        if let Ok(saved) = saved {
            let path = saved.path.display();
            log_warn!(CAPTURE, trigger = fired.kind.name(), cause = cause_name(fired.cause), %path, "capture saved");
        }
        self.tell_failure(fired.kind, saved);
    }

    /// Logs each cause of failures once.
    fn tell_failure(&mut self, kind: TriggerKind, saved: &Result<Saved, SaveError>) {
        match saved {
            Ok(_) => self.told_failures.end(kind),
            Err(error) if self.told_failures.is_news(kind, error) => {
                let trigger = kind.name();
                log_error!(CAPTURE, trigger, %error, "captures cannot be saved; the server goes on, and tries again without telling");
            }
            Err(_) => {}
        }
    }

    fn save(&mut self, fired: &Fired, note: &str, processes: Vec<ProcessShare>) -> Result<Saved, SaveError> {
        scope!("profiler.save");
        let saved = allocator::hand_memory_back(|| self.write(fired, note, processes));
        let count = if saved.is_ok() { &self.hand_off.counts.saved } else { &self.hand_off.counts.failed };
        count.fetch_add(1, Ordering::Relaxed);
        saved
    }

    fn write(&mut self, fired: &Fired, note: &str, processes: Vec<ProcessShare>) -> Result<Saved, SaveError> {
        let Some(folder) = &mut self.folder else { return Err(SaveError::NoFolder) };
        self.clock.calibration = self.clock.calibration.renewed();
        let mut pace = Pace::begin();
        let capture = draw_up(self.hand_off, &self.clock, fired, note, processes, &mut pace);
        let write_error = |path: PathBuf, cause: &dyn std::fmt::Display| SaveError::Write {
            path: path.display().to_string(),
            cause: cause.to_string(),
        };
        let root = self.hand_off.settings.captures.clone().unwrap_or_default();
        let mut bytes = Vec::new();
        let out = PacedWriter { bytes: &mut bytes, pace: &mut pace };
        format::write(&capture, out).map_err(|cause| write_error(root.clone(), &cause))?;
        let rules = self.hand_off.rules();
        let budgets =
            DiskBudgets { folder: rules.trigger(fired.kind).disk_budget_bytes, all: rules.captures_disk_budget_bytes };
        let about = &capture.about;
        let of_cause = folder_of(&cause_name(fired.cause), fired.world_kind.name());
        let (unix_s, frame) = (about.saved_unix_s, about.frame);
        let new = NewCapture { kind: fired.kind, folder: &of_cause, unix_s, frame, bytes: &bytes };
        let kept = folder.keep(&new, budgets);
        let path = kept.map_err(|cause| write_error(root, &cause))?;
        let of_frame = capture.frames.iter().find(|kept| kept.number == frame);
        self.hand_off.kept.add(KeptCapture {
            id: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            path: path.clone(),
            trigger: fired.kind,
            cause: cause_name(fired.cause),
            world_kind: fired.world_kind.name().unwrap_or_default().to_owned(),
            at_unix_ms: self.unix_ms(fired.at),
            frame,
            frame_us: of_frame.map(|frame| frame.end_ns.saturating_sub(frame.begin_ns) / 1_000),
            size_bytes: bytes.len() as u64,
        });
        Ok(Saved { path, size_bytes: bytes.len() as u64 })
    }
}

impl Saver<'_> {
    /// A moment of the past since 1970.
    fn unix_ms(&self, at_ticks: u64) -> u64 {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let ago_ns = self.clock.calibration.ns(ticks::now().saturating_sub(at_ticks));
        now_ms.saturating_sub(ago_ns / 1_000_000)
    }
}

/// Causes of failures that were logged. A disk that is full is one line, and not one for each capture.
#[derive(Default)]
struct ToldFailures {
    /// With the kind that met it first.
    causes: VecDeque<(TriggerKind, String)>,
}

impl ToldFailures {
    /// Whether nobody was told of this cause since a capture of the kind that met it was last saved.
    fn is_news(&mut self, kind: TriggerKind, error: &SaveError) -> bool {
        let cause = error.to_string();
        if self.causes.iter().any(|(_, told)| *told == cause) {
            return false;
        }
        if self.causes.len() >= CAUSES_TOLD_MAX {
            self.causes.pop_front();
        }
        self.causes.push_back((kind, cause));
        true
    }

    /// A capture of this kind was saved: what kept it from that is over.
    fn end(&mut self, kind: TriggerKind) {
        self.causes.retain(|(met_by, _)| *met_by != kind);
    }
}

/// What a crash report keeps of the last seconds, as a file's bytes.
pub(crate) fn crash_capture(hand_off: &HandOff, world: Option<u32>) -> io::Result<Vec<u8>> {
    let calibration = Calibration::get().renewed();
    let clock = Clock { calibration, start_ns: hand_off.start_ns };
    let (kind, at) = (TriggerKind::Crash, ticks::now());
    let (cause, world_kind, frame) = (Cause::Frame, KindNumber::NONE, u64::MAX);
    let fired = Fired { kind, cause, world_kind, measured: 0, allowed: 0, world, at, frame };
    let mut bytes = Vec::new();
    let capture = draw_up(hand_off, &clock, &fired, "", Vec::new(), &mut Pace::unbroken());
    format::write(&capture, &mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

fn by_hand(at: u64) -> Fired {
    let (kind, cause, world_kind) = (TriggerKind::Manual, Cause::Frame, KindNumber::NONE);
    Fired { kind, cause, world_kind, measured: 0, allowed: 0, world: None, at, frame: u64::MAX }
}

/// Everything about the moments around `fired`.
fn draw_up(
    hand_off: &HandOff,
    clock: &Clock,
    fired: &Fired,
    note: &str,
    processes: Vec<ProcessShare>,
    pace: &mut Pace,
) -> Capture {
    let rules = hand_off.rules();
    let rule = rules.trigger(fired.kind);
    let now = ticks::now();
    let ticks_of = |seconds: f64| clock.calibration.ticks((seconds.max(0.0) * 1e9) as u64);
    // A thing that took long began long before it was noticed.
    let measured = if is_time(fired.kind) { clock.calibration.ticks(fired.measured) } else { 0 };
    let before = ticks_of(rule.pre_roll_s.into()).saturating_add(measured);
    let window = Window {
        begin_ticks: fired.at.saturating_sub(before),
        end_ticks: fired.at.saturating_add(ticks_of(rule.post_roll_s.into())).min(now),
        clock: *clock,
    };
    let mut capture = capture_builder::threads(&window, pace);
    let begin_ns = clock.ns(window.begin_ticks);
    let end_ns = clock.ns(window.end_ticks);
    let frames = hand_off.frames_between(window.begin_ticks, window.end_ticks);
    capture.frames = frames.iter().map(|note| capture_builder::frame(note, clock)).collect();
    let frame_now = || capture.frames.last().map_or(0, |frame| frame.number);
    let frame = if fired.frame == u64::MAX { frame_now() } else { fired.frame };
    let monotonic_ns = |ns: u64| ns + clock.start_ns;
    if hand_off.switches.source.has_each_switch() {
        for (thread, records) in hand_off.switches.history.between(monotonic_ns(begin_ns), monotonic_ns(end_ns)) {
            pace.rest_if_due();
            if let Some(thread) = capture.threads.get_mut(thread as usize) {
                capture_builder::merge(&mut thread.events, capture_builder::moments(records, clock, begin_ns));
            }
        }
    }
    if let Some(cores) = &hand_off.switches.cores {
        pace.rest_if_due();
        (capture.host_threads, capture.cores) = cores.between(monotonic_ns(begin_ns), monotonic_ns(end_ns));
        let runs = capture.cores.iter_mut().flat_map(|core| &mut core.runs);
        runs.for_each(|run| run.at_ns = clock.of_monotonic(run.at_ns));
    }
    if let Some(stalls) = &hand_off.settings.host_stalls {
        let stalls = stalls.between(monotonic_ns(begin_ns), monotonic_ns(end_ns));
        let stall = |stall: Stall| HostStall {
            core: stall.core,
            begin_ns: clock.of_monotonic(stall.begin_ns),
            end_ns: clock.of_monotonic(stall.end_ns),
        };
        capture.host_stalls = stalls.into_iter().map(stall).collect();
    }
    let names = hand_off.worlds();
    for world in &mut capture.worlds {
        if let Some(known) = names.iter().find(|known| recorded_world(known.id) == world.id) {
            *world = World { id: world.id, ..known.clone() };
        }
    }
    let free_text = hand_off.settings.free_text;
    let lines = log::lines_between(window.begin_ticks, window.end_ticks);
    let line = |line: &log::Line| {
        // A thread that was not there yet when the threads were listed cannot be named.
        let thread = line.thread.filter(|&thread| (thread as usize) < capture.threads.len())?;
        Some(line.to_model(clock.ns(line.at_ticks), thread, free_text))
    };
    capture.logs = lines.iter().filter_map(line).collect();
    capture.memory = capture_builder::memory(&mut capture);
    capture.processes = processes;
    capture.about = About {
        build: hand_off.settings.build.clone(),
        game: hand_off.settings.game.clone(),
        cores: cores::usable().count as u32,
        saved_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        trigger: Trigger {
            kind: fired.kind,
            name: trigger_name(fired),
            measured: fired.measured,
            allowed: fired.allowed,
            world: fired.world.map(recorded_world),
            at_ns: clock.ns(fired.at),
            note: note.into(),
        },
        begin_ns,
        end_ns,
        frame,
        switches: hand_off.switches.source,
        switches_why_not: hand_off.switches.why_not.clone(),
        records_lost: pool().lost(),
        has_free_text: true,
    };
    if free_text { capture } else { capture.without_free_text() }
}

fn is_time(kind: TriggerKind) -> bool {
    kind.unit() == Unit::Nanoseconds
}

/// What a tick is recorded as.
const TICK_SCOPE: &str = "world.tick";

/// What the trigger of a capture is about. The budget of one kind of world says of which.
fn trigger_name(fired: &Fired) -> String {
    let name = cause_name(fired.cause);
    match fired.world_kind.name().filter(|_| fired.kind == TriggerKind::Subsystem) {
        Some(world_kind) => name + OF_KIND + world_kind,
        None => name,
    }
}

fn cause_name(cause: Cause) -> String {
    let subsystem = |number: u32| site::subsystems().get(number as usize).copied().unwrap_or_default().to_owned();
    match cause {
        Cause::Frame | Cause::Workers => String::new(),
        Cause::Tick => TICK_SCOPE.into(),
        Cause::Subsystem(number) => subsystem(number),
        Cause::SubsystemPerTick(number) => subsystem(number) + PER_TICK,
        Cause::Scope(site) => site::get(site).map(|site| site.name()).unwrap_or_default().into(),
        Cause::Lock(number) => sync::lock_names().get(number as usize).copied().unwrap_or_default().into(),
        Cause::Thread(index) => thread::all().get(index as usize).map(|cells| cells.name()).unwrap_or_default().into(),
        Cause::Memory(site) => site.and_then(site::get).map(|site| site.name()).unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(cause: &str) -> SaveError {
        SaveError::Write { path: "captures".into(), cause: cause.into() }
    }

    #[test]
    fn each_cause_of_failures_is_told_once_until_it_is_over() {
        let mut told = ToldFailures::default();
        let (full, forbidden) = (error("no space left"), error("permission denied"));
        assert!(told.is_news(TriggerKind::Manual, &full));
        assert!(!told.is_news(TriggerKind::Frame, &full), "one disk, one line");
        assert!(told.is_news(TriggerKind::Tick, &forbidden), "another cause");
        told.end(TriggerKind::Frame);
        assert!(!told.is_news(TriggerKind::Tick, &forbidden), "the folder of another kind is well");
        told.end(TriggerKind::Tick);
        assert!(told.is_news(TriggerKind::Tick, &forbidden));
        (0..100).for_each(|number| assert!(told.is_news(TriggerKind::Leak, &error(&number.to_string()))));
        assert_eq!(told.causes.len(), CAUSES_TOLD_MAX);
    }
}
