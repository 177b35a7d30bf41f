//! A window: all instances are watched for some seconds.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use throng_platform::hardware::HardwareError;
use throng_platform::process;
use throng_platform::signals::StopFlag;
use throng_platform::time::Nanos;

use super::error::DensityError;
use super::fleet::{Fleet, LOOK_EVERY, unwatched};
use super::hardware::HardwareWatch;
use super::point::WindowReading;
use super::watch::{Watch, WatchError};

/// A server on a full host answers late: pages are asked for again for so long.
const ANSWERS_WITHIN: Duration = Duration::from_secs(15);
/// Some servers publish once a second. Longer is not waited for a change.
const PUBLISHED_WITHIN: Duration = Duration::from_millis(1_200);
const EDGE_LOOK_EVERY: Duration = Duration::from_millis(20);

/// Whether the processor is asked to count, and why not, once it has refused.
#[derive(Debug, Default)]
pub(crate) struct Hardware {
    pub refused: Option<HardwareError>,
}

/// Watches all instances; `second` is called after each second of it.
pub(crate) fn watch(
    fleet: &mut Fleet<'_>,
    seconds: u32,
    hardware: &mut Hardware,
    stop: &StopFlag,
    second: &mut dyn FnMut(u32),
) -> Result<WindowReading, DensityError> {
    find_edges(fleet, stop)?;
    fleet.instances.iter_mut().for_each(|one| one.watch.begin());
    let processes = fleet.processes();
    let counting = match hardware.refused {
        Some(_) => None,
        None => HardwareWatch::begin(&processes).map_err(|error| hardware.refused = Some(error)).ok(),
    };
    let (began, cpu_before) = (Instant::now(), cpu_times(&processes));
    for at in 1..=seconds {
        wait_until(began + Duration::from_secs(at.into()), stop)?;
        fleet.check()?;
        for place in 0..fleet.instances.len() {
            ask(fleet, place, stop, Watch::sample)?;
        }
        second(at);
    }
    let processes = fleet.processes();
    let (cpu_after, counted) = (cpu_times(&processes), counting.map(HardwareWatch::end));
    let measured_s = began.elapsed().as_secs_f64();
    // One that is new has begun at nothing; of one that has ended meanwhile nothing is counted.
    let used =
        |(process, after): (&u32, &Nanos)| after.saturating_sub(cpu_before.get(process).copied().unwrap_or_default());
    let cpu_s: f64 = cpu_after.iter().map(used).map(|nanos| nanos.as_secs_f64()).sum();
    let rss_bytes: u64 = processes.iter().filter_map(|&process| process::rss_bytes_of(process).ok()).sum();
    let mut seen = WindowReading {
        seconds: measured_s,
        cores_busy: cpu_s / measured_s,
        rss_mb: rss_bytes as f64 / 1e6,
        hardware: counted,
        ..WindowReading::default()
    };
    find_edges(fleet, stop)?;
    let mut rates = Vec::new();
    let mut least: Option<f64> = None;
    for one in &mut fleet.instances {
        let watched = one.watch.end().map_err(|error| unwatched(one.index, error))?;
        seen.worst_mean_ms = seen.worst_mean_ms.max(watched.times.mean_ms().unwrap_or(0.0));
        rates.extend(watched.frames_per_s());
        let behind = watched.ticks.map(|ticks| ticks.share());
        seen.ticks_behind_share =
            behind.map(|share| share.max(seen.ticks_behind_share.unwrap_or(0.0))).or(seen.ticks_behind_share);
        least = watched.frames_per_s_max().map(|rate| least.map_or(rate, |least| least.min(rate))).or(least);
        seen.times.merge(&watched.times);
    }
    seen.frames_per_s_all = (!rates.is_empty()).then(|| rates.iter().sum());
    seen.frames_per_s = median(rates);
    seen.frames_per_s_least = least;
    Ok(seen)
}

/// Looks at all pages in turns until each has changed, so that every window is as long as what was counted in it took,
/// whenever its server publishes.
fn find_edges(fleet: &mut Fleet<'_>, stop: &StopFlag) -> Result<(), DensityError> {
    let mut waited_for: Vec<usize> = (0..fleet.instances.len()).collect();
    let mut published_by = None;
    loop {
        let mut unchanged = Vec::new();
        for place in waited_for {
            if !ask(fleet, place, stop, Watch::look_for_edge)? {
                unchanged.push(place);
            }
        }
        // From when all have been seen once.
        let published_by = *published_by.get_or_insert_with(|| Instant::now() + PUBLISHED_WITHIN);
        if unchanged.is_empty() || Instant::now() >= published_by {
            return Ok(());
        }
        waited_for = unchanged;
        wait_until(Instant::now() + EDGE_LOOK_EVERY, stop)?;
    }
}

/// Asks an instance until it answers, unless any has ended, which is then the error, or the run is to stop.
fn ask<T>(
    fleet: &mut Fleet<'_>,
    place: usize,
    stop: &StopFlag,
    question: impl Fn(&mut Watch) -> Result<T, WatchError>,
) -> Result<T, DensityError> {
    let deadline = Instant::now() + ANSWERS_WITHIN;
    loop {
        let one = &mut fleet.instances[place];
        let (index, answer) = (one.index, question(&mut one.watch));
        let error = match answer {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        fleet.check()?;
        if !matches!(error, WatchError::Http(_)) || Instant::now() >= deadline {
            return Err(unwatched(index, error));
        }
        wait_until(Instant::now() + LOOK_EVERY, stop)?;
    }
}

/// Sleeps; an error if the run is to stop.
pub(crate) fn wait_until(end: Instant, stop: &StopFlag) -> Result<(), DensityError> {
    while !stop.requested() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(LOOK_EVERY));
    }
    Err(DensityError::Interrupted)
}

fn cpu_times(processes: &[u32]) -> BTreeMap<u32, Nanos> {
    processes.iter().filter_map(|&process| Some((process, process::cpu_time_of(process).ok()?))).collect()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0, 4.0]), Some(3.0));
    }
}
