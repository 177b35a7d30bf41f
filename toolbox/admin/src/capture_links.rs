//! Links to captures: the list of those on the server's disk, and each as a file, for whoever comes from a dashboard's spike.
//!
//! ```text
//! GET /captures            all of them, the newest first: a page for browsers, otherwise JSON
//! GET /captures?at=MS      those nearest to a moment first (ms since 1970): what a link from a point in time asks for
//! GET /captures/NAME       the file: NAME is its name without its end, as metrics and exemplars tell it
//! ```
//!
//! Runs where waiting for the disk is allowed, never on a frame's thread. No name that is asked for becomes part of a
//! path: it is looked for among the files that are there ([`captures::files`]). Cost: a look at every file, some 2 us each;
//! none of them is opened.

use std::io;
use std::path::Path;

use maud::{DOCTYPE, html};
use serde::Serialize;

use crate::captures::{self, Found};

/// Rows of an answer at most. Disk budgets allow some hundreds; a folder with more is not only the recorder's.
const ROWS_MAX: usize = 1_000;
/// What is so near to the moment that was asked for stands out (ms).
const NEAR_MS: u64 = 10_000;

/// A capture on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Linked {
    pub name: String,
    /// Inside the folder of captures: what tripped which trigger in which kind of world.
    pub folder: String,
    pub saved_unix_ms: u64,
    pub bytes: u64,
}

/// What is there, nearest to `at_ms` first, or the newest.
pub(crate) fn list(root: &Path, at_ms: Option<u64>) -> io::Result<Vec<Linked>> {
    let mut linked: Vec<Linked> = captures::files(root)?.iter().map(linked).collect();
    let distance = |capture: &Linked| at_ms.map_or(0, |at_ms| capture.saved_unix_ms.abs_diff(at_ms));
    linked.sort_by(|a, b| (distance(a), b.saved_unix_ms, &b.name).cmp(&(distance(b), a.saved_unix_ms, &a.name)));
    linked.truncate(ROWS_MAX);
    Ok(linked)
}

fn linked(found: &Found) -> Linked {
    let (folder, file) = found.path.rsplit_once('/').unwrap_or(("", &found.path));
    let name = file.strip_suffix(".capture").unwrap_or(file);
    let (name, folder) = (name.to_owned(), folder.to_owned());
    Linked { name, folder, saved_unix_ms: found.written_unix_ms, bytes: found.bytes }
}

/// Whether it is the capture of that name.
pub(crate) fn is_called(found: &Found, name: &str) -> bool {
    let file = found.path.rsplit('/').next().unwrap_or_default();
    file.strip_suffix(".capture") == Some(name)
}

/// The moment that a link asks for.
pub(crate) fn moment_in(query: Option<&str>) -> Option<u64> {
    query?.split('&').find_map(|pair| pair.strip_prefix("at=")?.parse().ok())
}

/// The list as a page. It needs no program, no style of another server and no frame.
pub(crate) fn page(captures: &[Linked], at_ms: Option<u64>) -> String {
    let is_near = |capture: &Linked| at_ms.is_some_and(|at_ms| capture.saved_unix_ms.abs_diff(at_ms) <= NEAR_MS);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; title { "Captures" } }
            body {
                h1 { "Captures" }
                @if let Some(at_ms) = at_ms {
                    p { "Nearest to " (date(at_ms)) " first; those within " (NEAR_MS / 1_000) " s are bold. " a href="/captures" { "All, the newest first" } }
                }
                @if captures.is_empty() { p { "There are none: nothing was slow, or captures have no folder." } }
                @else {
                    p { "Read one with " code { "throng capture show FILE" } ", or in the viewer: " code { "throng capture show --html FILE" } "." }
                    table {
                        thead { tr { th { "saved" } th { "trigger/cause@kind of world" } th { "kB" } th { "file" } } }
                        tbody {
                            @for capture in captures {
                                tr {
                                    td { @if is_near(capture) { b { (date(capture.saved_unix_ms)) } } @else { (date(capture.saved_unix_ms)) } }
                                    td { (capture.folder) }
                                    td { (capture.bytes / 1_000) }
                                    td { a href={ "/captures/" (capture.name) } { (capture.name) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    };
    page.into_string()
}

fn date(unix_ms: u64) -> String {
    throng_capture::story::printable_date(unix_ms / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    /// A folder of its own with captures that were written so many seconds after 1970.
    fn folder(name: &str, files: &[(&str, u64)]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("throng-admin-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        for (path, second) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, [0; 2_000]).unwrap();
            let at: SystemTime = UNIX_EPOCH + Duration::from_secs(*second);
            fs::File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
        }
        root
    }

    fn names(captures: &[Linked]) -> Vec<&str> {
        captures.iter().map(|capture| capture.name.as_str()).collect()
    }

    #[test]
    fn the_newest_come_first_or_those_nearest_to_a_moment() {
        let root = folder(
            "order",
            &[
                ("scope/ai@hub/100-1-0.capture", 100),
                ("frame/200-2-1.capture", 200),
                ("manual/300-3-2.capture", 300),
                ("manual/300-3-2.partial", 300),
                ("of-others/deep/deeper/400-1-1.capture", 400),
                ("notes.txt", 500),
            ],
        );
        assert_eq!(names(&list(&root, None).unwrap()), ["300-3-2", "200-2-1", "100-1-0"]);
        let near = list(&root, Some(130_000)).unwrap();
        assert_eq!(names(&near), ["100-1-0", "200-2-1", "300-3-2"]);
        assert_eq!((near[0].folder.as_str(), near[0].bytes, near[0].saved_unix_ms), ("scope/ai@hub", 2_000, 100_000));
        let page = page(&near, Some(105_000));
        assert!(page.contains("<a href=\"/captures/100-1-0\">100-1-0</a>"), "{page}");
        assert_eq!(page.matches("<b>").count(), 1, "one is near: {page}");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn only_what_lies_in_the_folder_is_found() {
        let root = folder("find", &[("manual/1-1-1.capture", 1)]);
        let outside = folder("find-outside", &[("2-2-2.capture", 2)]);
        std::os::unix::fs::symlink(outside.join("2-2-2.capture"), root.join("2-2-2.capture")).unwrap();
        std::os::unix::fs::symlink(&outside, root.join("linked")).unwrap();
        let found = |name: &str| captures::files(&root).unwrap().iter().any(|found| is_called(found, name));
        assert!(found("1-1-1"));
        for name in ["2-2-2", "../find-outside/2-2-2", "manual/1-1-1", "1-1-1.capture", "", ".", ".."] {
            assert!(!found(name), "{name}");
        }
        assert!(list(Path::new("/nowhere"), None).is_err());
        fs::remove_dir_all(root).unwrap();
        fs::remove_dir_all(outside).unwrap();
    }

    #[test]
    fn a_moment_is_read_from_the_link_and_nothing_else() {
        assert_eq!(moment_in(Some("at=1764000000123")), Some(1_764_000_000_123));
        assert_eq!(moment_in(Some("a=1&at=7")), Some(7));
        for query in [None, Some(""), Some("at="), Some("at=-1"), Some("at=99999999999999999999"), Some("cat=1")] {
            assert_eq!(moment_in(query), None, "{query:?}");
        }
    }
}
