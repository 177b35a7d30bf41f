//! Disks of a test's own, mounted in a folder: a small one in memory, and ext4 in a file, which can be frozen and broken.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
};

use throng_platform::testing::not_permitted;

use crate::folder::Folder;

/// Room on each of them. A store keeps two of each record, writes new ones before it frees the old, and doubles its file: with
/// the two hoards of 2 MB that these tests save at most, 12 MiB after 15 s and 32 MiB after 80 s. On a disk of 8 MiB a slow machine
/// had filled it before the ballast did, and clearing that gave the store no room to come back.
const ROOM_BYTES: u64 = 64 << 20;
/// So much of it is the saves' own at most; what they do not need the ballast takes.
const SAVES_BYTES_MAX: u64 = ROOM_BYTES / 4 * 3;

/// Taken down when dropped.
pub struct Mounted {
    folder: Folder,
    /// What ext4 is in; none in memory.
    image: Option<PathBuf>,
    is_mounted: bool,
}

fn run(program: &str, words: &[&str]) -> std::io::Result<Output> {
    Command::new(program).args(words).output()
}

fn is_done(output: &std::io::Result<Output>) -> bool {
    output.as_ref().is_ok_and(|output| output.status.success())
}

impl Mounted {
    /// In memory. `None` where it cannot be, which was said.
    pub fn tmpfs(test: &str) -> Option<Mounted> {
        Mounted { folder: Folder::new(test), image: None, is_mounted: false }.mount()
    }

    /// Of ext4.
    pub fn ext4(test: &str) -> Option<Mounted> {
        let folder = Folder::new(test);
        let image = folder.path().with_extension("image");
        File::create(&image).unwrap().set_len(ROOM_BYTES).unwrap();
        let made = run("mkfs.ext4", &["-q", image.to_str().unwrap()]);
        if !is_done(&made) {
            not_permitted(&format!("making a disk of ext4: {made:?}"));
            return None;
        }
        Mounted { folder, image: Some(image), is_mounted: false }.mount()
    }

    fn mount(mut self) -> Option<Mounted> {
        if self.mount_again() { Some(self) } else { None }
    }

    /// After [`Mounted::abort`]: what was written by then, as after a repair.
    pub fn mount_again(&mut self) -> bool {
        let folder = self.folder.path().to_str().unwrap().to_owned();
        let mounted = match &self.image {
            Some(image) => run("mount", &["-o", "loop", image.to_str().unwrap(), &folder]),
            None => run("mount", &["-t", "tmpfs", "-o", &format!("size={ROOM_BYTES}"), "tmpfs", &folder]),
        };
        self.is_mounted = is_done(&mounted);
        if !self.is_mounted {
            not_permitted(&format!("mounting a disk of a test's own: {mounted:?}"));
        }
        self.is_mounted
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// An empty folder in it, by the number of the round; those of earlier rounds are gone.
    pub fn fresh_folder(&self, round: u32) -> PathBuf {
        for entry in fs::read_dir(self.path()).unwrap().flatten().filter(|entry| entry.file_name() != "lost+found") {
            let _ = fs::remove_dir_all(entry.path());
        }
        let folder = self.path().join(round.to_string());
        fs::create_dir(&folder).unwrap();
        folder
    }

    /// Takes all room.
    pub fn fill(&self) {
        let mut file = File::create(self.path().join("ballast")).unwrap();
        for bytes in [65_536, 4_096, 1] {
            while file.write(&vec![0; bytes]).is_ok() {}
        }
    }

    /// The saves in this folder have not filled the disk by themselves: otherwise there is nothing to give back.
    pub fn check_room(folder: &Path) {
        let bytes = fs::metadata(folder.join("saves.redb")).unwrap().len();
        println!("the saves have become {} KiB", bytes >> 10);
        assert!(bytes <= SAVES_BYTES_MAX, "the saves have become {bytes} bytes, and the disk has {ROOM_BYTES}");
    }

    /// Gives it back.
    pub fn clear(&self) {
        fs::remove_file(self.path().join("ballast")).unwrap();
    }

    /// Whoever writes waits, until what this returns is dropped.
    pub fn freeze(&self) -> Frozen<'_> {
        let done = run("fsfreeze", &["--freeze", self.path().to_str().unwrap()]);
        assert!(is_done(&done), "{done:?}");
        Frozen(self)
    }

    /// Makes it read-only at once, under whoever has files in it open, as the kernel does after an error.
    pub fn abort(&self) {
        let done = run("mount", &["-o", "remount,abort", self.path().to_str().unwrap()]);
        assert!(File::create(self.path().join("probe")).is_err(), "it takes writes: {done:?}");
    }

    /// Away with it, whoever has files in it open.
    pub fn unmount(&mut self) {
        let _ = run("umount", &["--lazy", self.path().to_str().unwrap()]);
        self.is_mounted = false;
    }
}

/// A disk that stands still.
pub struct Frozen<'d>(&'d Mounted);

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        let done = run("fsfreeze", &["--unfreeze", self.0.path().to_str().unwrap()]);
        assert!(is_done(&done) || thread::panicking(), "{done:?}");
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_mounted {
            // One that a failed test has frozen cannot be taken down.
            let _ = run("fsfreeze", &["--unfreeze", self.path().to_str().unwrap()]);
            self.unmount();
        }
        let _ = self.image.as_ref().map(fs::remove_file);
    }
}
