//! Disk: where the embedded store's bytes are, so that tests can hand in one that fails, tears and forgets.
//!
//! [`FileDisk`] is a file. Two things about files are easily got wrong. A new file is there after a power loss only if
//! its folder was synced too. And after a failed fsync the kernel may hold pages that never reached the disk and calls
//! them clean: whoever reads them back believes in a commit that is gone after the next power loss. So before a file is
//! opened again after a failure, the kernel is told to forget what it holds of it, and every page's checksum is held
//! against what then comes from the disk.

use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use redb::{Builder, Database, backends::FileBackend};

use crate::store_error::StoreError;

/// Opens the database, again and again: after each failure a new handle.
pub trait Disk: Send {
    /// `builder` says how much is cached, and whether everything is verified first, which it is `after_failure`.
    fn open(&mut self, builder: &Builder, after_failure: bool) -> Result<Database, StoreError>;
}

/// A file, made if there is none. Its folder must be there.
pub struct FileDisk {
    path: PathBuf,
}

impl FileDisk {
    pub fn new(path: &Path) -> FileDisk {
        FileDisk { path: path.to_owned() }
    }
}

impl Disk for FileDisk {
    fn open(&mut self, builder: &Builder, after_failure: bool) -> Result<Database, StoreError> {
        let file = match OpenOptions::new().read(true).write(true).open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !after_failure => create(&self.path)?,
            // After a failure a file that is gone took commits with it: nobody is to begin an empty one unasked.
            Err(error) => return Err(error.into()),
        };
        if after_failure {
            posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).map_err(io::Error::from)?;
        }
        Ok(builder.create_with_backend(FileBackend::new(file)?)?)
    }
}

fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
    file.sync_all()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    Ok(file)
}
