//! The writer: from the model to sections, in the order of [`Kind`].

use std::cmp::Reverse;
use std::io::Write;

use super::bytes::{put_step, put_text, put_varint};
use super::events::{COMMON_SITES, Counts, EventWriter, check_index};
use super::section::{Kind, SectionWriter};
use super::{MAGIC, VERSION, WriteError, elements, maximum};
use crate::model::{Capture, Event};

/// Writes the capture. `out` gets whole sections, and is flushed at the end; a file needs no buffer in front of it.
pub fn write(capture: &Capture, mut out: impl Write) -> Result<(), WriteError> {
    check_counts(capture)?;
    let counts = Counts {
        sites: capture.sites.len(),
        locks: capture.locks.len(),
        counters: capture.counters.len(),
        threads: capture.threads.len(),
    };
    out.write_all(&MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())?;
    let mut sections = SectionWriter::new(out);

    sections.element(Kind::About, |out| elements::put_about(out, &capture.about))?;
    sections.end_list(Kind::About)?;
    list(&mut sections, Kind::Sites, &capture.sites, elements::put_site)?;
    let common = common_sites(capture)?;
    list(&mut sections, Kind::CommonSites, &common, |out, site| {
        put_varint(out, u64::from(*site));
        Ok(())
    })?;
    list(&mut sections, Kind::Worlds, &capture.worlds, elements::put_world)?;
    list(&mut sections, Kind::Locks, &capture.locks, |out, lock| put_text(out, &lock.name, "a lock's name"))?;
    list(&mut sections, Kind::Counters, &capture.counters, |out, counter| {
        put_text(out, &counter.name, "a counter's name")
    })?;
    list(&mut sections, Kind::Threads, &capture.threads, elements::put_thread)?;

    let mut ranks = vec![None; counts.sites];
    for (rank, &site) in common.iter().enumerate() {
        ranks[site as usize] = Some(rank as u8);
    }
    for (thread, index) in capture.threads.iter().zip(0_u64..) {
        let mut writer = EventWriter { counts: &counts, ranks: &ranks, before_ns: capture.about.begin_ns };
        list(&mut sections, Kind::Events, &thread.events, |out, event| {
            if out.is_empty() {
                put_varint(out, index);
            }
            writer.put(out, *event)
        })?;
    }

    let begin_ns = capture.about.begin_ns;
    let mut before = (0, begin_ns);
    list(&mut sections, Kind::Frames, &capture.frames, |out, frame| {
        elements::put_frame(out, before, frame, counts.threads)?;
        before = (frame.number, frame.end_ns);
        Ok(())
    })?;
    let mut before_ns = begin_ns;
    list(&mut sections, Kind::Logs, &capture.logs, |out, line| {
        elements::put_log(out, before_ns, line, counts.threads)?;
        before_ns = line.at_ns;
        Ok(())
    })?;
    let mut before_ns = begin_ns;
    list(&mut sections, Kind::MemoryMoments, &capture.memory.at_ns, |out, at_ns| {
        put_step(out, before_ns, *at_ns);
        before_ns = *at_ns;
        Ok(())
    })?;
    list(&mut sections, Kind::MemoryRows, &capture.memory.by_site, |out, row| {
        elements::put_live_bytes(out, row, capture.memory.at_ns.len(), counts.sites)
    })?;
    list(&mut sections, Kind::Processes, &capture.processes, elements::put_process)?;
    list(&mut sections, Kind::HostThreads, &capture.host_threads, elements::put_host_thread)?;
    list(&mut sections, Kind::Cores, &capture.cores, |out, core| {
        put_varint(out, core.number.into());
        Ok(())
    })?;
    for (core, index) in capture.cores.iter().zip(0_u64..) {
        let mut before_ns = begin_ns;
        list(&mut sections, Kind::CoreRuns, &core.runs, |out, run| {
            if out.is_empty() {
                put_varint(out, index);
            }
            elements::put_core_run(out, before_ns, run, capture.host_threads.len())?;
            before_ns = run.at_ns;
            Ok(())
        })?;
    }
    list(&mut sections, Kind::HostStalls, &capture.host_stalls, |out, stall| {
        elements::put_host_stall(out, begin_ns, stall);
        Ok(())
    })?;
    sections.close(Kind::End)?;
    sections.flush()
}

fn list<W: Write, T>(
    sections: &mut SectionWriter<W>,
    kind: Kind,
    elements: &[T],
    mut put: impl FnMut(&mut Vec<u8>, &T) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    for element in elements {
        sections.element(kind, |out| put(out, element))?;
    }
    sections.end_list(kind)
}

/// The sites with the most scopes, the commonest first; equally common ones by index, so that a capture has one file.
fn common_sites(capture: &Capture) -> Result<Vec<u32>, WriteError> {
    let mut scopes = vec![0_u64; capture.sites.len()];
    for event in capture.threads.iter().flat_map(|thread| &thread.events) {
        if let Event::Scope { site, .. } = *event {
            check_index("site", site, scopes.len())?;
            scopes[site as usize] += 1;
        }
    }
    let mut sites: Vec<u32> = (0..).zip(&scopes).filter(|(_, scopes)| **scopes > 0).map(|(site, _)| site).collect();
    sites.sort_by_key(|&site| (Reverse(scopes[site as usize]), site));
    sites.truncate(COMMON_SITES);
    Ok(sites)
}

fn check_counts(capture: &Capture) -> Result<(), WriteError> {
    let runs_most = capture.cores.iter().map(|core| core.runs.len()).max().unwrap_or(0);
    let events_most = capture.threads.iter().map(|thread| thread.events.len()).max().unwrap_or(0);
    let counts = [
        ("sites", capture.sites.len(), maximum::SITES),
        ("worlds", capture.worlds.len(), maximum::WORLDS),
        ("locks", capture.locks.len(), maximum::LOCKS),
        ("counters", capture.counters.len(), maximum::COUNTERS),
        ("threads", capture.threads.len(), maximum::THREADS),
        ("events of one thread", events_most, maximum::EVENTS),
        ("frames", capture.frames.len(), maximum::FRAMES),
        ("log lines", capture.logs.len(), maximum::LOGS),
        ("moments of memory", capture.memory.at_ns.len(), maximum::MEMORY_MOMENTS),
        ("rows of live bytes", capture.memory.by_site.len(), maximum::MEMORY_ROWS),
        ("processes", capture.processes.len(), maximum::PROCESSES),
        ("threads of the host", capture.host_threads.len(), maximum::HOST_THREADS),
        ("cores", capture.cores.len(), maximum::CORES),
        ("runs of one core", runs_most, maximum::CORE_RUNS),
        ("stalls", capture.host_stalls.len(), maximum::HOST_STALLS),
    ];
    match counts.into_iter().find(|(_, count, maximum)| count > maximum) {
        Some((what, _, maximum)) => Err(WriteError::TooMany { what, maximum }),
        None => Ok(()),
    }
}
