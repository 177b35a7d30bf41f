//! Fuchsia trace format, which Perfetto, Tracy and magic-trace read.
//!
//! Little-endian 64-bit words; every record begins with a header word (`[0..3]` kind, `[4..15]` length in words) and is
//! at most 4,095 words long. Strings and threads are registered once and referred to by index; where the tables are
//! full, and for texts that occur once, they stand in the record itself. A tick is a nanosecond. Specification:
//! <https://fuchsia.dev> under "trace format".
//!
//! Context switches are written in the order of time over all threads, as Perfetto wants them. What ran on a core
//! before and after is not known, so the other side of each switch is the idle thread (its weight says so). Wake-ups
//! are not recorded, and not written.

mod record;

use std::io::{self, Write};

use throng_redact::visible;

use self::record::{Event as TraceEvent, Value, Writer};
use super::chrome::holder_name;
use super::names::{self, PROCESS_NUMBER};
use super::spans::{self, Span, What};
use crate::model::{Capture, Event, Switch};

/// Writes the capture as one trace.
pub fn write(capture: &Capture, out: impl Write) -> io::Result<()> {
    let numbers = names::thread_numbers(capture);
    let mut writer = Writer::begin(out)?;
    writer.process(PROCESS_NUMBER, &names::process(capture))?;
    for (index, &number) in (0..).zip(&numbers) {
        writer.thread(number, &names::thread(capture, index), PROCESS_NUMBER)?;
    }
    // A track of their own for frames, and for what belongs to no thread.
    writer.thread(PROCESS_NUMBER, "frames", PROCESS_NUMBER)?;
    frames(capture, &mut writer)?;
    for (thread, &number) in capture.threads.iter().zip(&numbers) {
        for span in spans::nested(capture, thread) {
            complete(capture, number, &span, &mut writer)?;
        }
        for event in &thread.events {
            moment(capture, number, event, &mut writer)?;
        }
    }
    logs_and_trigger(capture, &numbers, &mut writer)?;
    live_bytes(capture, &mut writer)?;
    switches(capture, &numbers, &mut writer)
}

fn frames<W: Write>(capture: &Capture, writer: &mut Writer<W>) -> io::Result<()> {
    let mut free_from_ns = 0;
    for frame in &capture.frames {
        let begin_ns = frame.begin_ns.max(free_from_ns);
        free_from_ns = frame.end_ns.max(begin_ns);
        let name = format!("frame {}", frame.number);
        let event = TraceEvent { category: "frame", name: &name, thread: PROCESS_NUMBER, at_ns: begin_ns };
        let arguments = [("number", Value::Number(frame.number)), ("budget_ns", Value::Number(frame.budget_ns))];
        writer.complete(event, free_from_ns, &arguments)?;
    }
    Ok(())
}

fn complete<W: Write>(capture: &Capture, thread: u32, span: &Span, writer: &mut Writer<W>) -> io::Result<()> {
    let number = |value: u64| Value::Number(value);
    let mut arguments = Vec::with_capacity(8);
    if let Some((world, tick)) = span.world {
        arguments.extend([("world", number(world.into())), ("tick", number(tick.into()))]);
    }
    if let Some(allocations) = span.allocations {
        arguments.push(("allocations", number(allocations.count.into())));
        arguments.push(("frees", number(allocations.frees.into())));
        arguments.push(("allocated_bytes", number(allocations.bytes)));
    }
    if span.is_open {
        arguments.push(("is_open", Value::Bool(true)));
    }
    let mut category = "lock".into();
    match span.what {
        What::Scope { site } => {
            let site = names::site(capture, site);
            category = site.map_or("".into(), |site| visible(&site.category));
            if let Some(site) = site {
                arguments.push(("place", Value::Name(format!("{}:{}", visible(&site.file), site.line))));
                arguments.extend(site.budget_ns.map(|budget_ns| ("budget_ns", number(budget_ns))));
            }
        }
        What::LockWait { holder: Some(holder), .. } => {
            arguments.push(("holder", Value::Name(holder_name(capture, holder))));
        }
        What::LockWait { .. } => {}
    }
    let name = names::span(capture, span.what);
    let event = TraceEvent { category: &category, name: &name, thread, at_ns: span.begin_ns };
    writer.complete(event, span.end_ns, &arguments)
}

fn moment<W: Write>(capture: &Capture, thread: u32, event: &Event, writer: &mut Writer<W>) -> io::Result<()> {
    match *event {
        Event::PageFault { at_ns } => {
            writer.instant(TraceEvent { category: "memory", name: "page fault", thread, at_ns }, &[])
        }
        Event::LargeAllocation { at_ns, bytes } => {
            let event = TraceEvent { category: "memory", name: "large allocation", thread, at_ns };
            writer.instant(event, &[("bytes", Value::Number(bytes))])
        }
        Event::Count { at_ns, counter, value } => {
            let name = names::counter(capture, counter);
            let event = TraceEvent { category: "counter", name: &name, thread, at_ns };
            writer.counter(event, counter.into(), &[("value", Value::Float(value.into()))])
        }
        _ => Ok(()),
    }
}

fn logs_and_trigger<W: Write>(capture: &Capture, numbers: &[u32], writer: &mut Writer<W>) -> io::Result<()> {
    for line in &capture.logs {
        let thread = numbers.get(line.thread as usize).copied().unwrap_or(PROCESS_NUMBER);
        let target = visible(&line.target);
        let event = TraceEvent { category: "log", name: &target, thread, at_ns: line.at_ns };
        let level = Value::Name(visible(&line.level).into_owned());
        let text = Value::Text(visible(&line.text).into_owned());
        writer.instant(event, &[("level", level), ("text", text)])?;
    }
    let trigger = &capture.about.trigger;
    let name = format!("trigger: {}", trigger.kind.name());
    let event = TraceEvent { category: "trigger", name: &name, thread: PROCESS_NUMBER, at_ns: trigger.at_ns };
    let arguments = [
        ("about", Value::Text(visible(&trigger.name).into_owned())),
        ("note", Value::Text(visible(&trigger.note).into_owned())),
        ("measured", Value::Number(trigger.measured)),
        ("allowed", Value::Number(trigger.allowed)),
    ];
    writer.instant(event, &arguments)
}

fn live_bytes<W: Write>(capture: &Capture, writer: &mut Writer<W>) -> io::Result<()> {
    // Numbers of counters go on where those of the capture end.
    for (row, id) in capture.memory.by_site.iter().zip(capture.counters.len() as u64..) {
        let name = names::live_bytes(capture, row);
        for (&at_ns, &bytes) in capture.memory.at_ns.iter().zip(&row.bytes) {
            let event = TraceEvent { category: "memory", name: &name, thread: PROCESS_NUMBER, at_ns };
            writer.counter(event, id, &[("bytes", Value::Number(bytes))])?;
        }
    }
    Ok(())
}

fn switches<W: Write>(capture: &Capture, numbers: &[u32], writer: &mut Writer<W>) -> io::Result<()> {
    let mut switches = Vec::new();
    for (thread, &number) in capture.threads.iter().zip(numbers) {
        let mut core = None;
        for event in &thread.events {
            let Event::Switch { at_ns, change } = *event else { continue };
            if let Switch::Running { core: next } = change {
                core = Some(next);
            }
            // Where a thread was when it first lost a core in the capture is not known.
            switches.extend(core.map(|core| (at_ns, number, core, change)));
        }
    }
    switches.sort_by_key(|(at_ns, ..)| *at_ns);
    for (at_ns, thread, core, change) in switches {
        match change {
            Switch::Running { .. } => writer.switch_in(at_ns, core, thread)?,
            Switch::Preempted => writer.switch_out(at_ns, core, thread, record::READY)?,
            Switch::Blocked => writer.switch_out(at_ns, core, thread, record::BLOCKED)?,
        }
    }
    Ok(())
}
