//! speedscope files: an evented profile per thread, to look at as a timeline, a left-heavy graph or a table.
//!
//! Structure: <https://www.speedscope.app/file-format-schema.json>. Each span opens (`O`) and closes (`C`) a frame;
//! closes and opens are balanced and their times never go back, which the nesting of spans sees to.

use std::io::{self, Write};

use throng_redact::visible;

use super::json::{Elements, string};
use super::names;
use super::spans::{self, Span, What};
use crate::model::{Capture, Thread};

/// Writes the capture as one JSON object. Threads without scopes are left out.
pub fn write(capture: &Capture, mut out: impl Write) -> io::Result<()> {
    let title = format!("{}, {}", names::process(capture), capture.about.trigger.kind.name());
    writeln!(out, "{{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",")?;
    writeln!(out, "\"exporter\":\"throng\",\"name\":{},\"activeProfileIndex\":0,", string(&title))?;
    writeln!(out, "\"shared\":{{\"frames\":[")?;
    let mut frames = Elements::new(&mut out);
    for (index, site) in (0..).zip(&capture.sites) {
        let name = names::span(capture, What::Scope { site: index });
        // Lines count from 1; 0 is none.
        let line = if site.line == 0 { String::new() } else { format!(",\"line\":{}", site.line) };
        write!(frames.begin()?, "{{\"name\":{},\"file\":{}{line}}}", string(&name), string(&visible(&site.file)))?;
    }
    for lock in 0..capture.locks.len() as u32 {
        let name = names::span(capture, What::LockWait { lock, holder: None });
        write!(frames.begin()?, "{{\"name\":{}}}", string(&name))?;
    }
    // For what points nowhere.
    write!(frames.begin()?, "{{\"name\":\"unknown\"}}")?;
    writeln!(out, "\n]}},\n\"profiles\":[")?;
    let mut profiles = Elements::new(&mut out);
    for (thread, index) in capture.threads.iter().zip(0..) {
        let spans = spans::nested(capture, thread);
        if !spans.is_empty() {
            profile(capture, thread, &names::thread(capture, index), &spans, profiles.begin()?)?;
        }
    }
    writeln!(out, "\n]}}")
}

fn profile(capture: &Capture, thread: &Thread, name: &str, spans: &[Span], out: &mut impl Write) -> io::Result<()> {
    let about = &capture.about;
    let begin_ns = spans.iter().map(|span| span.begin_ns).min().unwrap_or(0).min(about.begin_ns);
    let end_ns = spans.iter().map(|span| span.end_ns).max().unwrap_or(0).max(about.end_ns);
    let name = format!("{name} ({})", thread.tid);
    write!(out, "{{\"type\":\"evented\",\"name\":{},\"unit\":\"nanoseconds\",", string(&name))?;
    writeln!(out, "\"startValue\":{begin_ns},\"endValue\":{end_ns},\"events\":[")?;
    let mut events = Elements::new(out);
    let mut put = |kind: char, span: &Span, at_ns: u64| {
        write!(events.begin()?, "{{\"type\":\"{kind}\",\"frame\":{},\"at\":{at_ns}}}", frame_index(capture, span.what))
    };
    let mut open: Vec<&Span> = Vec::new();
    for span in spans {
        while open.len() > span.depth as usize {
            if let Some(closed) = open.pop() {
                put('C', closed, closed.end_ns)?;
            }
        }
        put('O', span, span.begin_ns)?;
        open.push(span);
    }
    while let Some(closed) = open.pop() {
        put('C', closed, closed.end_ns)?;
    }
    write!(events.out, "\n]}}")
}

fn frame_index(capture: &Capture, what: What) -> usize {
    let (sites, locks) = (capture.sites.len(), capture.locks.len());
    match what {
        What::Scope { site } if (site as usize) < sites => site as usize,
        What::LockWait { lock, .. } if (lock as usize) < locks => sites + lock as usize,
        _ => sites + locks,
    }
}
