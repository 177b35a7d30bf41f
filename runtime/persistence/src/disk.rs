//! Disk: where the embedded store's bytes are, so that tests can hand in one that fails, tears and forgets.
//!
//! [`FileDisk`] is a file. Three things about files are easily got wrong. A new file is there after a power loss only if
//! its folder was synced too. One that was half made when the power went is no store, and must not be in the way of one:
//! so it is made under another name, and gets its own only where nobody has that. And after a failed fsync the kernel may
//! hold pages that never reached the disk and calls them clean: whoever reads them back believes in a commit that is gone
//! after the next power loss. So before a file is opened again after a failure, the kernel is told to forget what it holds
//! of it, and every page's checksum is held against what then comes from the disk. Whoever opens it at a start does not know
//! how the process before ended, so the kernel forgets then, too.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, PosixFadviseAdvice, RenameFlags, posix_fadvise, renameat2},
};
use redb::{
    Builder, Database, StorageBackend,
    backends::{FileBackend, InMemoryBackend},
};

use crate::{overlay::Overlay, store_error::StoreError};

/// Opens the database, again and again: after each failure a new handle.
pub trait Disk: Send {
    /// `builder` says how much is cached, and whether everything is verified first, which it is `after_failure`.
    fn open(&mut self, builder: &Builder, after_failure: bool) -> Result<Database, StoreError>;

    /// For reading, while it cannot be opened: what opening writes stays in memory ([`Overlay`]).
    fn open_aside(&mut self, builder: &Builder) -> Result<Database, StoreError>;
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
        // After a failure a file that is gone took commits with it: nobody is to begin an empty one unasked.
        let file = if after_failure { open_file(&self.path)? } else { open_or_make(&mut FolderOfFiles, &self.path)? };
        forget(&file)?;
        Ok(builder.create_with_backend(FileBackend::new(file)?)?)
    }

    fn open_aside(&mut self, builder: &Builder) -> Result<Database, StoreError> {
        let file = File::open(&self.path)?;
        forget(&file)?;
        Ok(builder.create_with_backend(Overlay::new(Box::new(FileBackend::new(file)?))?)?)
    }
}

/// A file that is only read: what opening it writes stays in memory ([`Overlay`]).
pub struct ReadOnlyFile {
    path: PathBuf,
}

impl ReadOnlyFile {
    pub fn new(path: &Path) -> ReadOnlyFile {
        ReadOnlyFile { path: path.to_owned() }
    }
}

impl Disk for ReadOnlyFile {
    fn open(&mut self, builder: &Builder, _: bool) -> Result<Database, StoreError> {
        self.open_aside(builder)
    }

    fn open_aside(&mut self, builder: &Builder) -> Result<Database, StoreError> {
        let file = File::open(&self.path)?;
        if file.metadata()?.len() == 0 {
            return Err(StoreError::Damaged("it is empty".into()));
        }
        // The overlay locks nothing, so the lock that a writer has is asked for here. It goes with the file.
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse),
            // Where there are no locks, nobody can tell.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        Ok(builder.create_with_backend(Overlay::new(Box::new(FileBackend::new(file)?))?)?)
    }
}

/// A disk in memory, the same for all clones: for simulations, in which a process ends and its disk does not.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk(Arc<InMemoryBackend>);

impl Disk for MemoryDisk {
    fn open(&mut self, builder: &Builder, _: bool) -> Result<Database, StoreError> {
        Ok(builder.create_with_backend(self.clone())?)
    }

    fn open_aside(&mut self, builder: &Builder) -> Result<Database, StoreError> {
        Ok(builder.create_with_backend(Overlay::new(Box::new(self.clone()))?)?)
    }
}

impl StorageBackend for MemoryDisk {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

/// The kernel is to read it from the disk again.
fn forget(file: &File) -> io::Result<()> {
    Ok(posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?)
}

fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// A folder in which stores are made, so that tests can hand in one that loses its power.
pub trait Folder {
    /// A file that is being made.
    type Made: StorageBackend;
    /// One that is there.
    type Opened;

    /// An empty file. One that is there is emptied.
    fn make(&mut self, path: &Path) -> Result<Self::Made, StoreError>;

    fn open(&mut self, path: &Path) -> io::Result<Self::Opened>;

    /// Gives a file a name that nobody has; where somebody has it, that is an error.
    fn rename_to_new(&mut self, from: &Path, to: &Path) -> io::Result<()>;

    /// When it returns, the names of the folder that this file is in outlast a loss of power.
    fn sync(&mut self, path: &Path) -> io::Result<()>;
}

/// Opens a store's file. Where there is none, an empty store is made under another name, which gets its own when it is whole
/// and synced, as redb leaves what it closes: a file that is half made does not open.
///
/// The name is synced also where the file was there: a process before may have ended between giving it and that.
pub fn open_or_make<F: Folder>(folder: &mut F, path: &Path) -> Result<F::Opened, StoreError> {
    let file = match folder.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut unfinished = path.as_os_str().to_owned();
            unfinished.push(".new");
            let unfinished = Path::new(&unfinished);
            Builder::new().create_with_backend(folder.make(unfinished)?)?.close()?;
            folder.rename_to_new(unfinished, path)?;
            folder.open(path)?
        }
        opened => opened?,
    };
    folder.sync(path)?;
    Ok(file)
}

struct FolderOfFiles;

impl Folder for FolderOfFiles {
    type Made = FileBackend;
    type Opened = File;

    fn make(&mut self, path: &Path) -> Result<FileBackend, StoreError> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(FileBackend::new(file)?)
    }

    fn open(&mut self, path: &Path) -> io::Result<File> {
        open_file(path)
    }

    fn rename_to_new(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        rename_to_new(from, to)
    }

    fn sync(&mut self, path: &Path) -> io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

/// Gives a file a name that nobody has. A store that came there meanwhile, by another process or by hand, is not replaced:
/// then it is an error.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    let renamed = match renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE) {
        // A file system, or a kernel, that cannot rename like that.
        Err(Errno::EINVAL | Errno::ENOSYS) => check_and_rename(from, to),
        renamed => renamed.map_err(io::Error::from),
    };
    renamed.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            let text = format!("{} has been made meanwhile, and is not replaced: look who made it", to.display());
            io::Error::new(io::ErrorKind::AlreadyExists, text)
        }
        _ => error,
    })
}

/// The same in two steps, between which a file may come.
fn check_and_rename(from: &Path, to: &Path) -> io::Result<()> {
    // A link that leads nowhere is there, too.
    match fs::symlink_metadata(to) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::rename(from, to),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise: a store that is there already is left as it is, and the error names it.
    #[test]
    fn a_new_store_replaces_no_file() {
        let folder = std::env::temp_dir().join(format!("throng-disk-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [from, to] = ["saves.redb.new", "saves.redb"].map(|name| folder.join(name));
        for rename in [rename_to_new, check_and_rename] {
            fs::write(&from, "new").unwrap();
            fs::write(&to, "old").unwrap();
            let refused = rename(&from, &to).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!([&from, &to].map(|path| fs::read_to_string(path).unwrap()), ["new", "old"]);
            fs::remove_file(&to).unwrap();
            rename(&from, &to).unwrap();
            assert_eq!((fs::read_to_string(&to).unwrap().as_str(), from.exists()), ("new", false));
        }
        fs::write(&from, "new").unwrap();
        let error = StoreError::from(rename_to_new(&from, &to).unwrap_err());
        assert!(error.to_string().contains("saves.redb has been made meanwhile"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
