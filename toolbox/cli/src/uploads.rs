//! What goes to the object store of itself: by `serve` while it runs, the folders that the settings name; by `load`, its report.

use std::{
    error::Error,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use throng::{
    Server,
    settings::{AnySection, Settings, Uploaded},
};
use throng_platform::process;
use throng_upload::{
    folder::{as_folder, push_some},
    store::Store,
    uploader::{Uploader, Watched},
};

use crate::output::remark;

/// How long the end of a server waits for the file that is on its way; the next run sends what is left.
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

/// A load run's report, where the settings name a store for it. What keeps it from going there is told, and fails no run: it
/// is on the disk.
pub fn push_report(config: Option<&Path>, report: &Path) {
    match try_push_report(config, report) {
        Ok(None) => {}
        Ok(Some(prefix)) => remark(format_args!("report: in the object store as {prefix}")),
        Err(error) => remark(format_args!(
            "the report is not in the object store: {error}; `throng sync push {}` tries again",
            report.display()
        )),
    }
}

fn try_push_report(config: Option<&Path>, report: &Path) -> Result<Option<String>, Box<dyn Error>> {
    let (settings, AnySection {}) = Settings::find(config)?;
    let store = settings.object_store;
    if !store.upload.contains(&Uploaded::Reports) {
        return Ok(None);
    }
    let Some(there) = Store::of(&store)? else { return Ok(None) };
    let name = store.name.or_else(process::host_name).unwrap_or_else(|| "localhost".to_owned());
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let what = Uploaded::Reports.name();
    let prefix = format!("{}{name}/{what}/{unix_s}", as_folder(&store.prefix));
    // What players have is nobody's report.
    push_some(&there, report, &prefix, |file| !file.starts_with("saves/"), |_| ())?;
    Ok(Some(prefix))
}
