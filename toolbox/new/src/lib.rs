//! A new game: the project that `throng new NAME` writes.
//!
//! Its files are those of `games/meadow`, with the name replaced: they are compiled and tested here with everything else, so
//! the project cannot rot. The manifest alone is another one (`manifest.toml`), since a project of its own inherits from no
//! workspace. Until Throng's crates are published, it has them by their paths in a checkout.
//!
//! A project is written whole or not at all: into a folder beside, which gets its name when all is there.
//!
//! Runs on the caller's thread, in a few milliseconds.

mod error;
mod name;
mod template;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

pub use error::NewError;
pub use name::check_name;

/// The checkout that this program was built from.
pub fn built_from() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}

/// Writes a project called `name` into the folder of that name in `parent`, and returns that folder. It may be there
/// already if it is empty. `throng` is a checkout of Throng.
///
/// # Errors
/// If the name is none for a package, the folder holds something, there is no Throng, or something cannot be written:
/// nothing is left behind then.
pub fn make(name: &str, parent: &Path, throng: &Path) -> Result<PathBuf, NewError> {
    check_name(name)?;
    let throng = find_throng(throng)?;
    let folder = parent.join(name);
    check_is_free(&folder)?;
    let unfinished = parent.join(format!(".{name}.unfinished-{}", std::process::id()));
    let written = write(&unfinished, name, &throng).and_then(|()| {
        fs::rename(&unfinished, &folder).map_err(|cause| NewError::NotWritten { path: folder.clone(), cause })
    });
    if written.is_err() {
        let _ = fs::remove_dir_all(&unfinished);
    }
    written.map(|()| folder)
}

/// The checkout's path from the root, as a manifest can say it.
fn find_throng(path: &Path) -> Result<PathBuf, NewError> {
    let missing = || NewError::NoThrong { path: path.to_owned() };
    let root = path.canonicalize().map_err(|_| missing())?;
    if !root.join("runtime/server/Cargo.toml").is_file() {
        return Err(missing());
    }
    if root.to_str().is_some_and(|text| !text.contains(['"', '\\']) && !text.chars().any(char::is_control)) {
        return Ok(root);
    }
    Err(NewError::OddPath { path: root })
}

fn check_is_free(folder: &Path) -> Result<(), NewError> {
    match fs::read_dir(folder) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(NewError::NotEmpty { path: folder.to_owned() }),
        },
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(_) if folder.is_file() => Err(NewError::NotEmpty { path: folder.to_owned() }),
        Err(cause) => Err(NewError::NotWritten { path: folder.to_owned(), cause }),
    }
}

fn write(folder: &Path, name: &str, throng: &Path) -> Result<(), NewError> {
    for (path, text) in template::files(name, throng) {
        let path = folder.join(path);
        let failed = |cause| NewError::NotWritten { path: path.clone(), cause };
        fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(failed)?;
        fs::write(&path, text).map_err(failed)?;
    }
    // The versions that Throng is tested with; without the file, cargo takes the newest that fit.
    let versions = throng.join("Cargo.lock");
    if versions.is_file() {
        let path = folder.join("Cargo.lock");
        fs::copy(versions, &path).map_err(|cause| NewError::NotWritten { path, cause })?;
    }
    Ok(())
}
