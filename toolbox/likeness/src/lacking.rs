//! Lacking: what was wrong with the replay of a recording that is compared.
//!
//! Most of it is a remark beside the figures. Of a recording that was not replayed to a large part they are of another play than what was
//! recorded: then it is lacking, and the comparison is not to be relied on.

use throng::replay::ReplayReport;

/// So much of a recording was not replayed that figures are of another play. Its text is a sentence with the recording's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lacking {
    #[error("{recording}: {worlds} of its worlds cannot be replayed to their end, and the figures are of the rest")]
    Worlds { recording: String, worlds: usize },
    /// More than a tenth of them.
    #[error("{recording}: {skipped} of its {all} ticks cannot be replayed, and the figures are of the rest")]
    Ticks { recording: String, skipped: u64, all: u64 },
}

impl Lacking {
    pub(crate) fn of(name: &str, replay: &ReplayReport) -> Option<Self> {
        let (recording, worlds, skipped) = (name.to_owned(), replay.failures.len(), replay.ticks_skipped);
        if worlds > 0 {
            Some(Self::Worlds { recording, worlds })
        } else if replay.skips_too_much() {
            Some(Self::Ticks { recording, skipped, all: replay.ticks + skipped })
        } else {
            None
        }
    }
}

/// What was wrong, as far as a comparison cares.
pub(crate) fn remarks_of(name: &str, replay: &ReplayReport) -> Vec<String> {
    let mut remarks: Vec<String> = replay.faults.iter().map(ToString::to_string).collect();
    if replay.is_other_build {
        remarks.push(format!("{name}: it was recorded by another build: counts and times are those of this one"));
    } else if let Some(first) = replay.divergences.first() {
        let more = replay.divergences.len() - 1;
        remarks.push(format!("{name}: {first}; and {more} more: what comes after is counted as it is replayed"));
    }
    if let Some((world, why)) = replay.failures.first() {
        let more = replay.failures.len() - 1;
        remarks.push(format!("{name}: world {world} cannot be replayed: {why}; and {more} more, which are left out"));
    }
    if replay.gaps_count > 0 || replay.ticks_skipped > 0 {
        let (gaps, skipped) = (replay.gaps_count, replay.ticks_skipped);
        remarks.push(format!("{name}: {gaps} gaps; {skipped} ticks without a state before them are left out"));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use throng::ids::WorldId;

    use super::*;
    use crate::{comparison::Comparison, profile::Profile, profiling::Profiled};

    /// Remarks of a comparison of the sides of one such replay, and what it lacks.
    fn compared(replay: ReplayReport) -> (Vec<String>, Vec<String>) {
        let profiles = [Profile::default(), Profile::default()];
        let mut remarks = Comparison::of(&profiles[0], &profiles[1]).remarks.into_iter();
        let found = Comparison::of_sides("people", &Profiled { profiles, arguments: Vec::new(), replay });
        let of_replay = found.remarks.into_iter().filter(|remark| remarks.next().as_ref() != Some(remark));
        (of_replay.collect(), found.lacking.iter().map(Lacking::to_string).collect())
    }

    #[test]
    fn what_was_not_replayed_is_remarked_and_much_of_it_is_lacking() {
        let whole = || ReplayReport { ticks: 1_000, ..ReplayReport::default() };
        assert_eq!(compared(whole()), (vec![], vec![]));
        let (remarks, lacking) = compared(ReplayReport { ticks_skipped: 100, ..whole() });
        assert_eq!(remarks, ["people: 0 gaps; 100 ticks without a state before them are left out"]);
        assert!(lacking.is_empty(), "{lacking:?}");
        let (_, lacking) = compared(ReplayReport { ticks_skipped: 1_000, ..whole() });
        assert_eq!(lacking, ["people: 1000 of its 2000 ticks cannot be replayed, and the figures are of the rest"]);
        let failures = vec![(WorldId::new(0, 0), "there is no such kind".to_owned())];
        let (remarks, lacking) = compared(ReplayReport { failures, ..whole() });
        assert!(remarks.len() == 1 && remarks[0].contains("cannot be replayed: there is no such kind"), "{remarks:?}");
        let told = "people: 1 of its worlds cannot be replayed to their end, and the figures are of the rest";
        assert_eq!(lacking, [told]);
    }

    #[test]
    fn servers_that_were_started_in_other_ways_are_remarked() {
        let started = |arguments: &[&str]| Profiled {
            profiles: [Profile::default()],
            arguments: arguments.iter().map(ToString::to_string).collect(),
            replay: ReplayReport { ticks: 1_000, ..ReplayReport::default() },
        };
        let remarks = |b: &[&str]| {
            let found = Comparison::of_recordings([("people", &started(&["--npcs", "9"])), ("bots", &started(b))]);
            assert_eq!(found.lacking, []);
            found.remarks.into_iter().filter(|remark| remark.starts_with("the servers")).collect::<Vec<_>>()
        };
        assert_eq!(remarks(&["--npcs", "9"]), [""; 0]);
        assert_eq!(remarks(&["--npcs", "7"]), ["the servers were started in other ways: `--npcs 9` and `--npcs 7`"]);
    }
}
