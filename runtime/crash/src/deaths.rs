//! Deaths: the reports of a folder, grouped by what they died of.
//!
//! For commands and reports of runs. Reports may come from other hosts, so each is read up to a size only, and every text
//! is shown escaped. Any thread; reads files and allocates.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use throng_redact::visible;

use crate::report::{self, CrashReport, JSON_FILE};
use crate::signature;

/// The largest report that is read: a thousand threads with a thousand frames each are less.
const REPORT_BYTES_MAX: u64 = 64 << 20;

/// Equal deaths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeathGroup {
    /// What they have in common: cause, and the innermost functions of our own code.
    pub signature: String,
    pub count: usize,
    pub first_unix_s: u64,
    pub last_unix_s: u64,
    /// Builds that died of it, by name.
    pub builds: Vec<String>,
    /// The folder of the newest one's report.
    pub newest: PathBuf,
}

/// What a folder holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Deaths {
    /// The most frequent first; of as many, the newest.
    pub groups: Vec<DeathGroup>,
    /// Reports that cannot be read, and why.
    pub broken: Vec<(PathBuf, String)>,
}

/// Reads the reports of all deaths in `folder`. Fails when that cannot be read; a report that cannot is told.
pub fn in_folder(folder: &Path) -> io::Result<Deaths> {
    let mut groups: BTreeMap<String, DeathGroup> = BTreeMap::new();
    let mut broken = Vec::new();
    for death in report::folders_of_deaths(folder)? {
        let file = death.join(JSON_FILE);
        match read(&file) {
            Ok(report) => {
                let signature = if report.signature.is_empty() { signature::of(&report) } else { report.signature };
                let signature = visible(&signature).into_owned();
                let group = groups.entry(signature.clone()).or_default();
                group.add(signature, report.died_at_unix_s, visible(&report.build).into_owned(), death);
            }
            // A monitor may be at work on it, or have deleted it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => broken.push((file, visible(&error.to_string()).into_owned())),
        }
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by(|a, b| (b.count, b.last_unix_s).cmp(&(a.count, a.last_unix_s)).then(a.signature.cmp(&b.signature)));
    Ok(Deaths { groups, broken })
}

impl DeathGroup {
    /// Deaths come in the order of their time.
    fn add(&mut self, signature: String, died_at_unix_s: u64, build: String, folder: PathBuf) {
        if self.count == 0 {
            self.first_unix_s = died_at_unix_s;
        }
        self.signature = signature;
        self.count += 1;
        self.last_unix_s = died_at_unix_s;
        self.newest = folder;
        if let Err(place) = self.builds.binary_search(&build) {
            self.builds.insert(place, build);
        }
    }
}

pub(crate) fn read(file: &Path) -> io::Result<CrashReport> {
    if !fs::metadata(file)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no file"));
    }
    let mut text = Vec::new();
    File::open(file)?.take(REPORT_BYTES_MAX).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_deaths_are_one_row_and_a_broken_report_hides_none() {
        let folder = std::env::temp_dir().join(format!("throng-groups-{}", std::process::id()));
        let write = |at: u64, pid: u32, meaning: &str, build: &str| {
            let mut report = CrashReport { died_at_unix_s: at, pid, ..CrashReport::default() };
            (report.meaning, report.build) = (meaning.into(), build.into());
            let death = folder.join(report::folder_name(at, pid));
            fs::create_dir_all(&death).unwrap();
            report.write(&death).unwrap();
            death
        };
        write(100, 1, "stack overflow", "throng 0.1.0 (aaa)");
        let newest = write(300, 2, "stack overflow", "throng 0.1.0 (bbb)");
        write(200, 3, "stack overflow", "throng 0.1.0 (bbb)");
        let other = write(400, 4, "out of\nmemory", "throng 0.1.0 (bbb)");
        let broken = write(500, 5, "", "").join(JSON_FILE);
        fs::write(&broken, "{").unwrap();
        fs::create_dir_all(folder.join("crash-600-6")).unwrap();
        fs::write(folder.join("notes"), "").unwrap();

        let deaths = in_folder(&folder).unwrap();
        let group = |signature: &str, count, first_unix_s, last_unix_s, builds: &[&str], newest| DeathGroup {
            signature: signature.into(),
            count,
            first_unix_s,
            last_unix_s,
            builds: builds.iter().map(|&build| build.into()).collect(),
            newest,
        };
        let builds = ["throng 0.1.0 (aaa)", "throng 0.1.0 (bbb)"];
        assert_eq!(
            deaths.groups,
            [
                group("killed stack overflow", 3, 100, 300, &builds, newest),
                group("killed out of\\nmemory", 1, 400, 400, &builds[1..], other)
            ]
        );
        assert_eq!(deaths.broken.iter().map(|(file, _)| file).collect::<Vec<_>>(), [&broken]);
        fs::remove_dir_all(&folder).unwrap();
        assert!(in_folder(&folder).is_err());
    }
}
