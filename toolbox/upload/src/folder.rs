//! A folder as objects, and objects as a folder: the same names below the same place.
//!
//! ```text
//! FOLDER/captures/hub/1764000000-812-0.capture   <->   PREFIX/captures/hub/1764000000-812-0.capture
//! ```
//!
//! What is there already, with the same size and the same SHA-256, is not sent again: so whatever interrupted it, the same call
//! goes on. Neither way removes anything, and nothing is ever written outside of the folder, whatever a key says.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Component, Path, PathBuf},
};

use crate::store::{FILE_BYTES_MAX, Store, StoreError, sha256_of_file};

/// What a file is called until it is whole.
const UNFINISHED: &str = ".throng-unfinished";

/// What a call has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub files: u64,
    pub bytes: u64,
    /// Files that were the same on both sides.
    pub same: u64,
}

/// A file below a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// With `/` between its parts.
    pub name: String,
    pub path: PathBuf,
    pub size_bytes: u64,
}

/// All files below a folder, by name. Links are not followed; names that are no UTF-8 are an error.
pub fn files(folder: &Path) -> Result<Vec<Found>, StoreError> {
    let mut found = Vec::new();
    walk(folder, "", &mut found)?;
    found.sort_unstable();
    Ok(found)
}

fn walk(folder: &Path, before: &str, found: &mut Vec<Found>) -> Result<(), StoreError> {
    let local = |path: &Path, cause| StoreError::Local { path: path.to_owned(), cause };
    for entry in fs::read_dir(folder).map_err(|cause| local(folder, cause))? {
        let entry = entry.map_err(|cause| local(folder, cause))?;
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| local(&path, io::Error::other("its name is no UTF-8; rename it")))?;
        // Gone since it was listed: as if it had never been there.
        let Ok(metadata) = entry.metadata() else { continue };
        let name = format!("{before}{name}");
        if metadata.is_dir() {
            walk(&path, &format!("{name}/"), found)?;
        } else if metadata.is_file() && !name.ends_with(UNFINISHED) {
            found.push(Found { name, path, size_bytes: metadata.len() });
        }
    }
    Ok(())
}

/// A prefix with something below it: "" or "a/b/".
pub fn as_folder(prefix: &str) -> String {
    match prefix.trim_end_matches('/') {
        "" => String::new(),
        prefix => format!("{prefix}/"),
    }
}

/// The sizes of all objects below a prefix, by their names below it.
pub fn listed(store: &Store, prefix: &str) -> Result<BTreeMap<String, u64>, StoreError> {
    let prefix = as_folder(prefix);
    let listed = store.list(&prefix)?.into_iter();
    let name = |key: &str| key.strip_prefix(&prefix).filter(|name| !name.is_empty()).map(str::to_owned);
    Ok(listed.filter_map(|object| Some((name(&object.key)?, object.size_bytes))).collect())
}

/// Copies a folder into the store. `each` is told of every file that was sent.
///
/// # Errors
/// With the first file that cannot be read or stored; those before it are there, and are not sent again.
pub fn push(store: &Store, folder: &Path, prefix: &str, each: impl FnMut(&Found)) -> Result<Moved, StoreError> {
    push_some(store, folder, prefix, |_| true, each)
}

/// The same of those files alone whose names are `wanted`.
pub fn push_some(
    store: &Store,
    folder: &Path,
    prefix: &str,
    wanted: impl Fn(&str) -> bool,
    mut each: impl FnMut(&Found),
) -> Result<Moved, StoreError> {
    let there = listed(store, prefix)?;
    let mut moved = Moved::default();
    for file in files(folder)?.into_iter().filter(|file| wanted(&file.name)) {
        match put_unless_same(store, prefix, &file, there.get(&file.name).copied())? {
            true => {
                each(&file);
                moved.files += 1;
                moved.bytes += file.size_bytes;
            }
            false => moved.same += 1,
        }
    }
    Ok(moved)
}

/// Stores a file, unless the store has the same; true if it was sent. `size_there`: of the object of that name, if there is one.
pub fn put_unless_same(store: &Store, prefix: &str, file: &Found, size_there: Option<u64>) -> Result<bool, StoreError> {
    let local = |cause| StoreError::Local { path: file.path.clone(), cause };
    if file.size_bytes > FILE_BYTES_MAX {
        return Err(StoreError::TooLarge { path: file.path.clone(), size_bytes: file.size_bytes });
    }
    let sha256 = sha256_of_file(&file.path).map_err(local)?;
    let key = format!("{}{}", as_folder(prefix), file.name);
    if size_there == Some(file.size_bytes) && store.sha256_of(&key)?.as_deref() == Some(&*sha256) {
        return Ok(false);
    }
    store.put(&key, &File::open(&file.path).map_err(local)?, &sha256)?;
    Ok(true)
}

/// Copies all below a prefix into a folder, which is made. `each` is told of every file that came.
///
/// # Errors
/// With the first object that cannot be had or written, and for a key that is no path below the folder.
pub fn pull(store: &Store, prefix: &str, folder: &Path, mut each: impl FnMut(&str)) -> Result<Moved, StoreError> {
    let mut moved = Moved::default();
    for (name, size_bytes) in listed(store, prefix)? {
        let key = format!("{}{name}", as_folder(prefix));
        // Some stores show folders as objects.
        if name.ends_with('/') {
            continue;
        }
        let path = below(folder, &name).ok_or_else(|| StoreError::UnsafeKey { key: key.clone() })?;
        let local = |cause| StoreError::Local { path: path.clone(), cause };
        let is_as_long = fs::symlink_metadata(&path).is_ok_and(|file| file.is_file() && file.len() == size_bytes);
        if is_as_long && store.sha256_of(&key)? == Some(sha256_of_file(&path).map_err(local)?) {
            moved.same += 1;
            continue;
        }
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(local)?;
        let mut unfinished = path.clone().into_os_string();
        unfinished.push(UNFINISHED);
        let mut file = File::create(&unfinished).map_err(local)?;
        let got = store.get(&key, &mut file).and_then(|bytes| {
            file.sync_data().and_then(|()| fs::rename(&unfinished, &path)).map_err(local)?;
            Ok(bytes)
        });
        moved.bytes += got.inspect_err(|_| drop(fs::remove_file(&unfinished)))?;
        moved.files += 1;
        each(&name);
    }
    Ok(moved)
}

/// Where a name lies below a folder; `None` if it lies anywhere else.
fn below(folder: &Path, name: &str) -> Option<PathBuf> {
    let is_plain = |part| matches!(part, Component::Normal(_));
    let parts = Path::new(name).components();
    let is_below = !name.is_empty() && parts.clone().all(is_plain) && !name.contains('\0');
    is_below.then(|| folder.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_leads_out_of_the_folder_has_no_place_in_it() {
        let folder = Path::new("/reports");
        assert_eq!(below(folder, "a/b.json"), Some("/reports/a/b.json".into()));
        for bad in ["", "/etc/passwd", "../x", "a/../../x", "..", "a\0b"] {
            assert_eq!(below(folder, bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_prefix_is_a_folder_or_nothing() {
        assert_eq!((as_folder(""), as_folder("a/b"), as_folder("a/b/")), (String::new(), "a/b/".into(), "a/b/".into()));
    }
}
