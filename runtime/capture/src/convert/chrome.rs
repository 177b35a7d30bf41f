//! Chrome trace events (JSON), for Perfetto, `chrome://tracing` and Tracy.
//!
//! Complete events (`X`) of a thread come outer ones first and nest, as the viewers want them. Times are microseconds
//! with three decimals, which loses nothing. The frames have a track of their own, with the process's number.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};

use throng_redact::visible;

use super::json::{Elements, micros, string};
use super::names::{self, PROCESS_NUMBER};
use super::spans::{self, Span, What};
use crate::model::{Capture, Event, Holder};

/// Writes the capture as one JSON object.
pub fn write(capture: &Capture, mut out: impl Write) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{")?;
    let about = &capture.about;
    let trigger = &about.trigger;
    for (index, (name, text)) in [
        ("build", visible(&about.build)),
        ("game", visible(&about.game)),
        ("trigger", trigger.kind.name().into()),
        ("trigger name", visible(&trigger.name)),
        ("trigger note", visible(&trigger.note)),
    ]
    .into_iter()
    .enumerate()
    {
        write!(out, "{}{}:{}", if index == 0 { "" } else { "," }, string(name), string(&text))?;
    }
    writeln!(out, "}},\"traceEvents\":[")?;
    let mut events = Events { elements: Elements::new(out) };
    let numbers = names::thread_numbers(capture);
    metadata(capture, &numbers, &mut events)?;
    frames(capture, &mut events)?;
    for (thread, &number) in capture.threads.iter().zip(&numbers) {
        for span in spans::nested(capture, thread) {
            complete(capture, number, &span, &mut events)?;
        }
        for event in &thread.events {
            moment(capture, number, event, &mut events)?;
        }
    }
    logs_and_trigger(capture, &numbers, &mut events)?;
    live_bytes(capture, &mut events)?;
    writeln!(events.elements.out, "\n]}}")
}

struct Events<W> {
    elements: Elements<W>,
}

impl<W: Write> Events<W> {
    /// One event: `fields` are those besides process, thread, name, phase and arguments, beginning with a comma if
    /// there are any.
    fn put(&mut self, phase: char, thread: u32, name: &str, fields: &str, arguments: &Arguments) -> io::Result<()> {
        let out = self.elements.begin()?;
        write!(out, "{{\"ph\":\"{phase}\",\"pid\":{PROCESS_NUMBER},\"tid\":{thread},\"name\":{}", string(name))?;
        write!(out, "{fields},\"args\":{{{}}}}}", arguments.json)
    }
}

/// What a viewer shows of an event beside its name and time.
#[derive(Default)]
struct Arguments {
    json: String,
}

impl Arguments {
    fn number(mut self, name: &str, value: impl Display) -> Self {
        let comma = if self.json.is_empty() { "" } else { "," };
        self.json += &format!("{comma}{}:{value}", string(name));
        self
    }

    fn text(self, name: &str, text: &str) -> Self {
        self.number(name, string(text))
    }
}

fn metadata<W: Write>(capture: &Capture, numbers: &[u32], events: &mut Events<W>) -> io::Result<()> {
    let name = |text: &str| Arguments::default().text("name", text);
    events.put('M', PROCESS_NUMBER, "process_name", "", &name(&names::process(capture)))?;
    events.put('M', PROCESS_NUMBER, "thread_name", "", &name("frames"))?;
    for (index, &number) in (0..).zip(numbers) {
        events.put('M', number, "thread_name", "", &name(&names::thread(capture, index)))?;
        // As they stand in the capture; the frames, which have no entry, come first.
        events.put('M', number, "thread_sort_index", "", &Arguments::default().number("sort_index", index + 1))?;
    }
    Ok(())
}

fn frames<W: Write>(capture: &Capture, events: &mut Events<W>) -> io::Result<()> {
    let mut free_from_ns = 0;
    for frame in &capture.frames {
        let begin_ns = frame.begin_ns.max(free_from_ns);
        let end_ns = frame.end_ns.max(begin_ns);
        free_from_ns = end_ns;
        let over_ns = frame.end_ns.saturating_sub(frame.begin_ns).saturating_sub(frame.budget_ns);
        let arguments = Arguments::default().number("budget_ns", frame.budget_ns).number("over_ns", over_ns);
        let fields = duration(begin_ns, end_ns - begin_ns, "frame");
        events.put('X', PROCESS_NUMBER, &format!("frame {}", frame.number), &fields, &arguments)?;
    }
    Ok(())
}

fn duration(begin_ns: u64, duration_ns: u64, category: &str) -> String {
    format!(",\"cat\":{},\"ts\":{},\"dur\":{}", string(category), micros(begin_ns), micros(duration_ns))
}

fn instant(at_ns: u64, category: &str) -> String {
    format!(",\"cat\":{},\"ts\":{},\"s\":\"t\"", string(category), micros(at_ns))
}

fn complete<W: Write>(capture: &Capture, thread: u32, span: &Span, events: &mut Events<W>) -> io::Result<()> {
    let mut arguments = Arguments::default();
    if let Some((world, tick)) = span.world {
        arguments = arguments.number("world", world).number("tick", tick);
    }
    if let Some(allocations) = span.allocations {
        arguments = arguments.number("allocations", allocations.count).number("frees", allocations.frees);
        arguments = arguments.number("allocated_bytes", allocations.bytes);
    }
    if span.is_open {
        arguments = arguments.number("is_open", true);
    }
    let category: Cow<'_, str> = match span.what {
        What::Scope { site } => match names::site(capture, site) {
            Some(site) => {
                arguments = arguments.text("place", &format!("{}:{}", visible(&site.file), site.line));
                if let Some(budget_ns) = site.budget_ns {
                    arguments = arguments.number("budget_ns", budget_ns);
                }
                visible(&site.category)
            }
            None => "".into(),
        },
        What::LockWait { holder, .. } => {
            if let Some(holder) = holder {
                arguments = arguments.text("holder", &holder_name(capture, holder));
            }
            "lock".into()
        }
    };
    let fields = duration(span.begin_ns, span.duration_ns(), &category);
    events.put('X', thread, &names::span(capture, span.what), &fields, &arguments)
}

/// `thread, scope, world`, as far as known.
pub(super) fn holder_name(capture: &Capture, holder: Holder) -> String {
    let mut name = names::thread(capture, holder.thread).into_owned();
    if let Some(site) = holder.site {
        name += ", ";
        name += &names::span(capture, What::Scope { site });
    }
    if let Some(world) = holder.world {
        name += &format!(", world {world}");
    }
    name
}

fn moment<W: Write>(capture: &Capture, thread: u32, event: &Event, events: &mut Events<W>) -> io::Result<()> {
    match *event {
        Event::PageFault { at_ns } => {
            events.put('i', thread, "page fault", &instant(at_ns, "memory"), &Arguments::default())
        }
        Event::LargeAllocation { at_ns, bytes } => {
            let arguments = Arguments::default().number("bytes", bytes);
            events.put('i', thread, "large allocation", &instant(at_ns, "memory"), &arguments)
        }
        // JSON has no numbers for the others.
        Event::Count { at_ns, counter, value } if value.is_finite() => {
            let arguments = Arguments::default().number("value", value);
            events.put(
                'C',
                thread,
                &names::counter(capture, counter),
                &format!(",\"ts\":{}", micros(at_ns)),
                &arguments,
            )
        }
        _ => Ok(()),
    }
}

fn logs_and_trigger<W: Write>(capture: &Capture, numbers: &[u32], events: &mut Events<W>) -> io::Result<()> {
    for line in &capture.logs {
        let thread = numbers.get(line.thread as usize).copied().unwrap_or(PROCESS_NUMBER);
        let arguments = Arguments::default().text("level", &visible(&line.level)).text("text", &visible(&line.text));
        events.put('i', thread, &visible(&line.target), &instant(line.at_ns, "log"), &arguments)?;
    }
    let trigger = &capture.about.trigger;
    let arguments = Arguments::default().text("about", &visible(&trigger.name)).text("note", &visible(&trigger.note));
    let arguments = arguments.number("measured", trigger.measured).number("allowed", trigger.allowed);
    let name = format!("trigger: {}", trigger.kind.name());
    let fields = format!(",\"cat\":\"trigger\",\"ts\":{},\"s\":\"g\"", micros(trigger.at_ns));
    events.put('i', PROCESS_NUMBER, &name, &fields, &arguments)
}

fn live_bytes<W: Write>(capture: &Capture, events: &mut Events<W>) -> io::Result<()> {
    for row in &capture.memory.by_site {
        let name = names::live_bytes(capture, row);
        for (&at_ns, bytes) in capture.memory.at_ns.iter().zip(&row.bytes) {
            let fields = format!(",\"ts\":{}", micros(at_ns));
            events.put('C', PROCESS_NUMBER, &name, &fields, &Arguments::default().number("bytes", bytes))?;
        }
    }
    Ok(())
}
