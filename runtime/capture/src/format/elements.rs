//! What stands in lists, other than events, as bytes: each element's writer and reader side by side.

use super::bytes::{Cursor, put_optional_u32, put_step, put_text, put_varint};
use super::events::check_index;
use super::{ReadError, WriteError, maximum};
use crate::model::{
    About, CoreRun, Frame, FrameThread, HostStall, HostThread, LiveBytes, LogLine, Owner, ProcessShare, Site,
    SwitchSource, Thread, ThreadClass, Trigger, TriggerKind, World,
};

const SWITCH_SOURCES: [SwitchSource; 4] =
    [SwitchSource::None, SwitchSource::Schedstat, SwitchSource::PerfEvent, SwitchSource::CpuWide];
const OWNERS: [Owner; 3] = [Owner::Foreign, Owner::Own, Owner::Idle];
const THREAD_CLASSES: [ThreadClass; 4] =
    [ThreadClass::Other, ThreadClass::Frame, ThreadClass::ShortTask, ThreadClass::LongTask];

/// The place of a value among the ones its byte can stand for; the lists above hold all there are.
fn put_choice<T: PartialEq>(out: &mut Vec<u8>, choices: &[T], value: &T) {
    out.push(choices.iter().position(|choice| choice == value).unwrap_or_default() as u8);
}

fn choice<T: Copy>(bytes: &mut Cursor<'_>, choices: &[T], what: &'static str) -> Result<T, ReadError> {
    let offset = bytes.offset();
    choices.get(usize::from(bytes.byte()?)).copied().ok_or(ReadError::OutOfRange { offset, what })
}

pub(super) fn put_about(out: &mut Vec<u8>, about: &About) -> Result<(), WriteError> {
    put_text(out, &about.build, "the build's name")?;
    put_text(out, &about.game, "the game's name")?;
    put_varint(out, about.cores.into());
    put_varint(out, about.saved_unix_s);
    put_varint(out, about.begin_ns);
    put_step(out, about.begin_ns, about.end_ns);
    put_varint(out, about.frame);
    put_choice(out, &SWITCH_SOURCES, &about.switches);
    put_varint(out, about.records_lost);
    out.push(about.has_free_text.into());
    let trigger = &about.trigger;
    put_choice(out, &TriggerKind::ALL, &trigger.kind);
    put_text(out, &trigger.name, "the trigger's name")?;
    put_varint(out, trigger.measured);
    put_varint(out, trigger.allowed);
    put_optional_u32(out, trigger.world);
    put_step(out, about.begin_ns, trigger.at_ns);
    put_text(out, &trigger.note, "the trigger's note")?;
    put_text(out, &about.switches_why_not, WHY_NOT)
}

const WHY_NOT: &str = "why switches have no better source";

pub(super) fn about(bytes: &mut Cursor<'_>, version: u16) -> Result<About, ReadError> {
    let build = bytes.text("the build's name")?;
    let game = bytes.text("the game's name")?;
    let cores = bytes.u32("a count of cores")?;
    let saved_unix_s = bytes.varint()?;
    let begin_ns = bytes.varint()?;
    Ok(About {
        build,
        game,
        cores,
        saved_unix_s,
        begin_ns,
        end_ns: bytes.step(begin_ns)?,
        frame: bytes.varint()?,
        switches: choice(bytes, &SWITCH_SOURCES, "the source of context switches")?,
        records_lost: bytes.varint()?,
        has_free_text: bytes.bool("whether there is free text")?,
        trigger: Trigger {
            kind: choice(bytes, &TriggerKind::ALL, "the kind of a trigger")?,
            name: bytes.text("the trigger's name")?,
            measured: bytes.varint()?,
            allowed: bytes.varint()?,
            world: bytes.optional_u32("a world")?,
            at_ns: bytes.step(begin_ns)?,
            note: bytes.text("the trigger's note")?,
        },
        switches_why_not: if version > 1 { bytes.text(WHY_NOT)? } else { String::new() },
    })
}

pub(super) fn put_site(out: &mut Vec<u8>, site: &Site) -> Result<(), WriteError> {
    put_text(out, &site.name, "a site's name")?;
    put_text(out, &site.subsystem, "a subsystem's name")?;
    put_text(out, &site.category, "a category's name")?;
    put_text(out, &site.file, "a source file's name")?;
    put_varint(out, site.line.into());
    out.push(site.budget_ns.is_some().into());
    site.budget_ns.into_iter().for_each(|budget_ns| put_varint(out, budget_ns));
    Ok(())
}

pub(super) fn site(bytes: &mut Cursor<'_>) -> Result<Site, ReadError> {
    Ok(Site {
        name: bytes.text("a site's name")?,
        subsystem: bytes.text("a subsystem's name")?,
        category: bytes.text("a category's name")?,
        file: bytes.text("a source file's name")?,
        line: bytes.u32("a line")?,
        budget_ns: if bytes.bool("whether there is a budget")? { Some(bytes.varint()?) } else { None },
    })
}

pub(super) fn put_world(out: &mut Vec<u8>, world: &World) -> Result<(), WriteError> {
    put_varint(out, world.id.into());
    put_text(out, &world.name, "a world's name")?;
    put_varint(out, world.tick_hz.into());
    Ok(())
}

pub(super) fn world(bytes: &mut Cursor<'_>) -> Result<World, ReadError> {
    let id = bytes.u32("a world")?;
    let name = bytes.text("a world's name")?;
    let offset = bytes.offset();
    let what = "a tick rate";
    let tick_hz = u16::try_from(bytes.varint()?).map_err(|_| ReadError::OutOfRange { offset, what })?;
    Ok(World { id, name, tick_hz })
}

/// Without its events.
pub(super) fn put_thread(out: &mut Vec<u8>, thread: &Thread) -> Result<(), WriteError> {
    put_text(out, &thread.name, "a thread's name")?;
    put_varint(out, thread.tid.into());
    put_choice(out, &THREAD_CLASSES, &thread.class);
    Ok(())
}

pub(super) fn thread(bytes: &mut Cursor<'_>) -> Result<Thread, ReadError> {
    Ok(Thread {
        name: bytes.text("a thread's name")?,
        tid: bytes.u32("a thread id")?,
        class: choice(bytes, &THREAD_CLASSES, "the class of a thread")?,
        events: Vec::new(),
    })
}

/// `before` are the number and the end of the frame before.
pub(super) fn put_frame(
    out: &mut Vec<u8>,
    before: (u64, u64),
    frame: &Frame,
    threads: usize,
) -> Result<(), WriteError> {
    put_step(out, before.0, frame.number);
    put_step(out, before.1, frame.begin_ns);
    put_step(out, frame.begin_ns, frame.end_ns);
    put_varint(out, frame.budget_ns);
    if frame.threads.len() > maximum::FRAME_THREADS {
        return Err(WriteError::TooMany { what: "threads in a frame", maximum: maximum::FRAME_THREADS });
    }
    put_varint(out, frame.threads.len() as u64);
    for part in &frame.threads {
        check_index("thread", part.thread, threads)?;
        put_varint(out, part.thread.into());
        put_varint(out, part.running_ns);
        put_varint(out, part.waiting_ns);
        put_varint(out, part.blocked_ns);
    }
    Ok(())
}

pub(super) fn frame(bytes: &mut Cursor<'_>, before: (u64, u64), threads: usize) -> Result<Frame, ReadError> {
    let number = bytes.step(before.0)?;
    let begin_ns = bytes.step(before.1)?;
    let mut frame =
        Frame { number, begin_ns, end_ns: bytes.step(begin_ns)?, budget_ns: bytes.varint()?, threads: Vec::new() };
    let offset = bytes.offset();
    let count = bytes.varint()?;
    if count > maximum::FRAME_THREADS as u64 {
        return Err(ReadError::TooMany { offset, what: "threads in a frame", maximum: maximum::FRAME_THREADS });
    }
    for _ in 0..count {
        frame.threads.push(FrameThread {
            thread: bytes.index("thread", threads)?,
            running_ns: bytes.varint()?,
            waiting_ns: bytes.varint()?,
            blocked_ns: bytes.varint()?,
        });
    }
    Ok(frame)
}

pub(super) fn put_log(out: &mut Vec<u8>, before_ns: u64, line: &LogLine, threads: usize) -> Result<(), WriteError> {
    check_index("thread", line.thread, threads)?;
    put_step(out, before_ns, line.at_ns);
    put_varint(out, line.thread.into());
    put_text(out, &line.level, "a log level")?;
    put_text(out, &line.target, "a log target")?;
    put_text(out, &line.text, "a log text")
}

pub(super) fn log(bytes: &mut Cursor<'_>, before_ns: u64, threads: usize) -> Result<LogLine, ReadError> {
    Ok(LogLine {
        at_ns: bytes.step(before_ns)?,
        thread: bytes.index("thread", threads)?,
        level: bytes.text("a log level")?,
        target: bytes.text("a log target")?,
        text: bytes.text("a log text")?,
    })
}

/// One value for each of `moments`.
pub(super) fn put_live_bytes(
    out: &mut Vec<u8>,
    row: &LiveBytes,
    moments: usize,
    sites: usize,
) -> Result<(), WriteError> {
    if row.bytes.len() != moments {
        return Err(WriteError::UnevenMemory { values: row.bytes.len(), moments });
    }
    row.site.map_or(Ok(()), |site| check_index("site", site, sites))?;
    put_optional_u32(out, row.site);
    let mut before = 0;
    for &value in &row.bytes {
        put_step(out, before, value);
        before = value;
    }
    Ok(())
}

pub(super) fn live_bytes(bytes: &mut Cursor<'_>, moments: usize, sites: usize) -> Result<LiveBytes, ReadError> {
    let mut row = LiveBytes { site: bytes.optional_index("site", sites)?, bytes: Vec::new() };
    let mut before = 0;
    for _ in 0..moments {
        before = bytes.step(before)?;
        row.bytes.push(before);
    }
    Ok(row)
}

pub(super) fn put_process(out: &mut Vec<u8>, process: &ProcessShare) -> Result<(), WriteError> {
    put_varint(out, process.pid.into());
    put_text(out, &process.name, "a process's name")?;
    out.extend_from_slice(&process.cores.to_le_bytes());
    Ok(())
}

pub(super) fn process(bytes: &mut Cursor<'_>) -> Result<ProcessShare, ReadError> {
    Ok(ProcessShare {
        pid: bytes.u32("a process id")?,
        name: bytes.text("a process's name")?,
        cores: f32::from_le_bytes(bytes.array()?),
    })
}

pub(super) fn put_host_thread(out: &mut Vec<u8>, thread: &HostThread) -> Result<(), WriteError> {
    put_varint(out, thread.pid.into());
    put_varint(out, thread.tid.into());
    put_choice(out, &OWNERS, &thread.owner);
    put_text(out, &thread.name, "a thread's name")?;
    put_text(out, &thread.process, "a process's name")
}

pub(super) fn host_thread(bytes: &mut Cursor<'_>) -> Result<HostThread, ReadError> {
    Ok(HostThread {
        pid: bytes.u32("a process id")?,
        tid: bytes.u32("a thread id")?,
        owner: choice(bytes, &OWNERS, "the owner of a thread")?,
        name: bytes.text("a thread's name")?,
        process: bytes.text("a process's name")?,
    })
}

/// `before_ns` is when the run before began.
pub(super) fn put_core_run(out: &mut Vec<u8>, before_ns: u64, run: &CoreRun, threads: usize) -> Result<(), WriteError> {
    run.thread.map_or(Ok(()), |thread| check_index("thread of the host", thread, threads))?;
    put_step(out, before_ns, run.at_ns);
    put_optional_u32(out, run.thread);
    Ok(())
}

pub(super) fn core_run(bytes: &mut Cursor<'_>, before_ns: u64, threads: usize) -> Result<CoreRun, ReadError> {
    Ok(CoreRun { at_ns: bytes.step(before_ns)?, thread: bytes.optional_index("thread of the host", threads)? })
}

pub(super) fn put_host_stall(out: &mut Vec<u8>, capture_begin_ns: u64, stall: &HostStall) {
    put_varint(out, stall.core.into());
    put_step(out, capture_begin_ns, stall.begin_ns);
    put_step(out, stall.begin_ns, stall.end_ns);
}

pub(super) fn host_stall(bytes: &mut Cursor<'_>, capture_begin_ns: u64) -> Result<HostStall, ReadError> {
    let core = bytes.u32("a core")?;
    let begin_ns = bytes.step(capture_begin_ns)?;
    Ok(HostStall { core, begin_ns, end_ns: bytes.step(begin_ns)? })
}
