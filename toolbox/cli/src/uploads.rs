//! What goes to the object store of itself: by `serve` while it runs, the folders that the settings name; by `load` and
//! `demo`, their reports.

use std::{
    error::Error,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use throng::{
    Server,
    settings::{AnySection, Settings, Uploaded},
};
use throng_lab::daily::INDEX;
use throng_platform::process;
use throng_upload::{
    folder::{Found, as_folder, push_some, put_unless_same},
    store::{Store, StoreError},
    uploader::{Uploader, Watched},
};

use crate::output::remark;

/// How long the end of a server waits for the file that is on its way, if it has as much time left; the next run sends what is left.
pub const LAST_FILE_MAX: Duration = Duration::from_secs(5);

/// A file of events that is as old as this beyond its age is not written to any more.
const EVENTS_SETTLED_AFTER: Duration = Duration::from_secs(10);

/// None where the settings name no store. After the recorder is started, which may have been given another folder.
pub fn start(settings: &Settings, server: &Server, name: &str) -> Result<Option<Uploader>, Box<dyn Error>> {
    let Some(store) = Store::of(&settings.object_store)? else { return Ok(None) };
    let watched = settings.object_store.upload.iter().filter_map(|what| {
        let watched = Watched::new(*what, folder_of(*what, settings, server)?);
        Some(match what {
            Uploaded::Captures | Uploaded::Crashes | Uploaded::Reports => watched,
            Uploaded::Analytics => {
                let file_age_max = Duration::from_secs(settings.analytics.file_s.into());
                Watched { settled_after: file_age_max + EVENTS_SETTLED_AFTER, ..watched }
            }
        })
    });
    let name = settings.object_store.name.as_deref().unwrap_or(name);
    Ok(Some(Uploader::start(store, &settings.object_store, watched.collect(), name, server.upload_counts())?))
}

fn folder_of(what: Uploaded, settings: &Settings, server: &Server) -> Option<PathBuf> {
    match what {
        Uploaded::Captures => Some(server.control().published().recorder()?.captures_folder()?.to_owned()),
        Uploaded::Crashes => Some(settings.server.crashes.path()?.to_owned()),
        Uploaded::Analytics => settings.analytics.folder.clone(),
        // A server writes none.
        Uploaded::Reports => None,
    }
}

/// The report of a load run or a demo, where the settings name a store for it. What keeps it from going there is told, and
/// fails no run: it is on the disk.
pub fn push_report(config: Option<&Path>, report: &Path) {
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    push(config, report, &unix_s.to_string(), |there, at| push_some(there, report, at, is_wanted, |_| ()).map(drop));
}

/// The same of a day's folder, and of the index over all days on this host, if that could be written.
pub fn push_day(config: Option<&Path>, folder: &Path, day: &str, index: Option<&Path>) {
    push(config, folder, &format!("{DAYS}/{day}"), |there, at| {
        push_some(there, folder, at, is_wanted, |_| ())?;
        let Some(path) = index else { return Ok(()) };
        let local = |cause| StoreError::Local { path: path.to_owned(), cause };
        let size_bytes = path.metadata().map_err(local)?.len();
        let found = Found { name: INDEX.to_owned(), path: path.to_owned(), size_bytes };
        put_unless_same(there, at.strip_suffix(day).unwrap_or(at), &found, None).map(drop)
    });
}

/// The folder of days among reports.
const DAYS: &str = "daily";

/// What players have is nobody's report.
fn is_wanted(file: &str) -> bool {
    file.split('/').all(|part| part != "saves")
}

/// Sends what is in `folder`, to `place` among the reports, where the settings name a store for them.
fn push(config: Option<&Path>, folder: &Path, place: &str, send: impl FnOnce(&Store, &str) -> Result<(), StoreError>) {
    let Reports { there, prefix, folder: reports } = match Reports::of(config) {
        Ok(None) => return,
        Ok(Some(found)) => found,
        Err(error) => return remark(format_args!("the report is not in the object store: {error}")),
    };
    let below = format!("{reports}/{place}");
    let at = format!("{prefix}{below}");
    match send(&there, &at) {
        Ok(()) => remark(format_args!("report: in the object store as {at}")),
        Err(error) => remark(format_args!(
            "the report is not in the object store: {error}; `throng sync push {} --at {below}` tries again",
            folder.display()
        )),
    }
}

/// Where this host's reports go.
struct Reports {
    there: Store,
    /// What all of its keys begin with.
    prefix: String,
    /// Below that.
    folder: String,
}

impl Reports {
    /// `None`: the settings name no store for reports.
    fn of(config: Option<&Path>) -> Result<Option<Self>, Box<dyn Error>> {
        let (settings, AnySection {}) = Settings::find(config)?;
        let store = settings.object_store;
        if !store.upload.contains(&Uploaded::Reports) {
            return Ok(None);
        }
        let Some(there) = Store::of(&store)? else { return Ok(None) };
        let name = store.name.or_else(process::host_name).unwrap_or_else(|| "localhost".to_owned());
        let folder = format!("{name}/{}", Uploaded::Reports.name());
        Ok(Some(Self { there, prefix: as_folder(&store.prefix), folder }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saves_go_nowhere_in_whichever_run_of_a_day_they_are() {
        assert!(is_wanted("report.json") && is_wanted("precinct-usual/crashes/crash-1-2/report.txt"));
        assert!(!is_wanted("saves/throng.redb") && !is_wanted("precinct-usual/saves/throng.redb"));
    }
}
