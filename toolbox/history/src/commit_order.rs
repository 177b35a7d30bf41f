//! Order of commits: as a repository has them, parents before children.
//!
//! Runs are kept when they are made, and an old commit may be measured after a new one: to fill a gap, or to look for a slowdown by
//! halves. What is asked of a history is between which commits something changed, so they stand as they were made, wherever a
//! repository is at hand that knows them.
//!
//! Asks `git`, as a child process, once for a history. A record's text is handed to it only if it is a commit's number. Cost:
//! some 10 ms, and 10 us for each commit that was ever made.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::record::Record;

/// What builds put behind a commit's number if their sources are not as it has them.
const MODIFIED: &str = "-modified";

/// Where commits stand among others.
#[derive(Debug, Clone, Default)]
pub struct CommitOrder {
    /// By the texts that records have.
    places: HashMap<String, usize>,
    /// Why there are none.
    why_none: Option<String>,
}

impl CommitOrder {
    /// Nobody knows: commits stand where they were first measured.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self { places: HashMap::new(), why_none: Some(why.into()) }
    }

    /// As the repository has the commits of these records in which `folder` lies, or failing that the one of the working
    /// directory.
    pub fn around(folder: &Path, records: &[Record]) -> Self {
        let here = Path::new(".");
        let of_file = || folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(here);
        let folder = if folder.is_dir() { folder } else { of_file() };
        let commits: BTreeSet<&str> = records.iter().map(|record| record.commit.as_str()).collect();
        let beside = Self::in_repository(folder, &commits);
        if let Ok(order) = &beside
            && order.places.len() == commits.len()
        {
            return order.clone();
        }
        match (beside, Self::in_repository(here, &commits)) {
            (Ok(order), Ok(other)) if order.places.len() < other.places.len() => other,
            (Ok(order), _) | (Err(_), Ok(order)) => order,
            (Err(why), Err(_)) => Self::unknown(why),
        }
    }

    fn in_repository(folder: &Path, commits: &BTreeSet<&str>) -> Result<Self, String> {
        let numbers: BTreeSet<&str> = commits.iter().filter_map(|commit| number_in(commit)).collect();
        let listed = list(folder, &numbers)?;
        // Numbers are abbreviated, and so found by their beginnings.
        let mut sorted: Vec<(&str, usize)> = listed.lines().enumerate().map(|(place, line)| (line, place)).collect();
        sorted.sort_unstable();
        let place_of = |commit: &str| {
            let number = number_in(commit)?;
            let at = sorted.partition_point(|(listed, _)| *listed < number);
            let is_it = |at: usize| sorted.get(at).filter(|(listed, _)| listed.starts_with(number));
            let (_, place) = is_it(at).filter(|_| is_it(at + 1).is_none())?;
            Some(2 * place + usize::from(number.len() < commit.len()))
        };
        let places = commits.iter().filter_map(|commit| Some(((*commit).to_owned(), place_of(commit)?))).collect();
        Ok(Self { places, why_none: None })
    }

    /// Where each of these stands; the higher the later.
    ///
    /// # Errors
    /// If not all of them are known, why.
    pub(crate) fn places_of<'c>(&self, commits: impl Iterator<Item = &'c str>) -> Result<Vec<usize>, String> {
        if let Some(why) = &self.why_none {
            return Err(why.clone());
        }
        let place_of = |commit: &str| {
            self.places.get(commit).copied().ok_or_else(|| format!("the repository does not know commit `{commit}`"))
        };
        commits.map(place_of).collect()
    }
}

/// The number in front of what a build calls its commit.
fn number_in(commit: &str) -> Option<&str> {
    let number = commit.strip_suffix(MODIFIED).unwrap_or(commit);
    let is_number = (7..=64).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then_some(number)
}

/// These commits and all before them, the first first.
fn list(folder: &Path, numbers: &BTreeSet<&str>) -> Result<String, String> {
    let told = |error: std::io::Error| format!("git cannot be asked: {error}");
    let mut git = throng_commit::git(folder)
        .args(["--no-optional-locks", "rev-list", "--date-order", "--reverse", "--ignore-missing", "--stdin"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(told)?;
    let asked: String = numbers.iter().map(|number| format!("{number}\n")).collect();
    // It reads all of it before it answers. One that ends before says why by its status.
    let _ = git.stdin.take().map(|mut stdin| stdin.write_all(asked.as_bytes()));
    let output = git.wait_with_output().map_err(told)?;
    if !output.status.success() && !numbers.is_empty() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("git says: {}", why.lines().next().unwrap_or("nothing").trim_start_matches("fatal: ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;
    use crate::{Machine, changes, series};

    /// A repository with so many commits, the first first; gone with the value.
    struct Repository {
        folder: PathBuf,
        commits: Vec<String>,
    }

    impl Repository {
        fn new(name: &str, commits: usize) -> Self {
            let folder = std::env::temp_dir().join(format!("throng-commits-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(folder.join("reports/history")).unwrap();
            let mut repository = Self { folder, commits: Vec::new() };
            repository.git(&["init", "--quiet"]);
            for commit in 0..commits {
                repository.git(&["commit", "--quiet", "--allow-empty", "--message", &commit.to_string()]);
                let number = repository.git(&["rev-parse", "--short=12", "HEAD"]);
                repository.commits.push(number);
            }
            repository
        }

        fn git(&self, words: &[&str]) -> String {
            let mut git = throng_commit::git(&self.folder);
            for setting in ["user.name=a", "user.email=a@b", "commit.gpgsign=false"] {
                git.args(["-c", setting]);
            }
            let output = git.args(words).output().unwrap();
            assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }

        fn history(&self) -> PathBuf {
            self.folder.join("reports/history")
        }
    }

    impl Drop for Repository {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    fn run(commit: &str, at: u64, shots_us: f64) -> Record {
        Record::of_bench("rewind", &json!({ "shot_us": shots_us }), commit, Machine::default(), at)
    }

    /// Promise: commits that are measured in any order, as one who looks by halves or fills gaps does, stand as they were made, and a
    /// slowdown is bracketed to the commit that made it.
    #[test]
    fn a_slowdown_is_bracketed_in_whichever_order_commits_were_measured() {
        const PLANTED: usize = 12;
        let repository = Repository::new("order", 20);
        let mut records = Vec::new();
        for turn in 0..20 {
            // 0, 7, 14, 1, 8, ...: three runs of each.
            let commit = turn * 7 % 20;
            for run_of_it in 0..3 {
                let at = (3 * turn + run_of_it) as u64;
                let us = if commit >= PLANTED { 10.6 } else { 10.0 } * (1.0 + 0.001 * (at % 5) as f64);
                records.push(run(&repository.commits[commit], at, us));
            }
        }
        let order = CommitOrder::around(&repository.history(), &records);
        let series = series::group_in(&records, &order);
        let [series] = &series[..] else { panic!("{series:?}") };
        let stand: Vec<&str> = series.commits.iter().map(|one| one.commit).collect();
        assert_eq!((stand, &series.not_by_git), (repository.commits.iter().map(String::as_str).collect(), &None));
        let found = changes::find(series, |record| &record.times_us);
        let [change] = &found[..] else { panic!("{found:?}") };
        assert_eq!((change.good, change.bad), (PLANTED - 1, PLANTED), "{change:?}");
        // By the time of their first runs it is nowhere.
        let as_measured = series::group(&records);
        let found = changes::find(&as_measured[0], |record| &record.times_us);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn sources_that_were_changed_stand_behind_their_commit_and_branches_behind_their_beginning() {
        let repository = Repository::new("branches", 3);
        repository.git(&["checkout", "--quiet", "-b", "other", &repository.commits[1]]);
        repository.git(&["commit", "--quiet", "--allow-empty", "--message", "aside"]);
        let aside = repository.git(&["rev-parse", "--short=12", "HEAD"]);
        let [first, second, third] = &repository.commits[..] else { panic!() };
        let modified = format!("{second}-modified");
        let records = [third, &aside, &modified, second, first].map(|commit| run(commit, 1, 1.0));
        let order = CommitOrder::around(&repository.history(), &records);
        let place = |commit: &str| order.places_of([commit].into_iter()).unwrap()[0];
        let in_order = [place(first), place(second), place(&modified), place(third).min(place(&aside))];
        assert!(in_order.is_sorted_by(|one, other| one < other), "{order:?}");
    }

    #[test]
    fn where_no_repository_knows_them_commits_stand_as_they_were_measured_and_that_is_told() {
        let repository = Repository::new("unknown", 2);
        let hostile = "--output=/tmp/owned";
        let records = [&repository.commits[1], &repository.commits[0], "0123456789ab", "unknown", hostile];
        let records = records.map(|commit| run(commit, 1, 1.0));
        let series = series::group_in(&records, &CommitOrder::around(&repository.history(), &records));
        let stand: Vec<&str> = series[0].commits.iter().map(|one| one.commit).collect();
        assert_eq!(stand, records.iter().map(|record| record.commit.as_str()).collect::<Vec<_>>());
        let why = series[0].not_by_git.as_deref().unwrap_or_default();
        assert!(why.contains("0123456789ab"), "{why}");
        let alone = &records[..2];
        let series = series::group_in(alone, &CommitOrder::unknown("there is no repository"));
        assert_eq!(series[0].not_by_git.as_deref(), Some("there is no repository"));
        assert_eq!(series[0].commits[0].commit, repository.commits[1]);
    }
}
