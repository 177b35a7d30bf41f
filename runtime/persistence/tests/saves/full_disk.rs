//! R32 on a real disk that is full: a tiny tmpfs, filled and freed again and again while a game saves.
//!
//! Needs root, to mount it.

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_persistence::{Embedded, Key, Refusal, Store, StoreError, Writer, WriterSettings};
use throng_platform::{process::user_id, testing::not_permitted, time::Nanos};

use crate::{accounts::Accounts, answers::await_ack, folder::Folder};

/// A disk of 8 MiB, unmounted when the test is over.
struct TinyDisk(Folder);

impl TinyDisk {
    fn mount(test: &str) -> Option<TinyDisk> {
        if user_id() != 0 {
            not_permitted("mounting a disk of 8 MiB needs root");
            return None;
        }
        let folder = Folder::new(test);
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=8m", "tmpfs"]).arg(folder.path()).output();
        match mount {
            Ok(output) if output.status.success() => Some(TinyDisk(folder)),
            other => {
                not_permitted(&format!("mounting a disk of 8 MiB: {other:?}"));
                None
            }
        }
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
    }
}

/// Takes all room but so many bytes.
fn fill(folder: &Path, room_bytes: u64) -> PathBuf {
    let path = folder.join("ballast");
    let mut file = File::create(&path).unwrap();
    for bytes in [65_536, 4_096, 1] {
        while file.write(&vec![0; bytes]).is_ok() {}
    }
    let length = file.metadata().unwrap().len();
    file.set_len(length.saturating_sub(room_bytes)).unwrap();
    path
}

fn check(test: &str, cycles: u64) {
    let Some(disk) = TinyDisk::mount(test) else { return };
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(cycles);
    let settings = WriterSettings { gather: Nanos::ZERO, ..WriterSettings::default() };
    let store = Embedded::open(&disk.0.store()).unwrap();
    let mut writer = Writer::start(Box::new(store), settings).unwrap();
    let (mut present, first) = Accounts::found(12);
    writer.submit(first).unwrap();
    await_ack(&mut writer).outcome.unwrap();
    let reads = writer.reads();
    for cycle in 1..=cycles {
        // A store that has all of the disk has no room to delete anything either; this one is kept to half of it.
        let has_half = fs::metadata(disk.0.store()).unwrap().blocks() * 512 > 4 << 20;
        let ballast = fill(disk.0.path(), if has_half { 0 } else { rng.random_range(0..600_000) });
        // Land is claimed until there is no room for more.
        let mut saved = present.clone();
        let mut claimed = 0;
        let refusal = loop {
            let mut commit = present.pay(cycle, &mut rng);
            commit.put_bytes(Key::cell(1, claimed), vec![1; 50_000]);
            writer.submit(commit).unwrap();
            match await_ack(&mut writer).outcome {
                Ok(_) => {
                    saved = present.clone();
                    claimed += 1;
                }
                Err(refusal) => break refusal,
            }
        };
        assert_eq!(refusal, Refusal::Store(StoreError::DiskFull), "cycle {cycle}");
        let (read, count) = Accounts::read(&*reads).unwrap();
        assert!(read == saved && count.holds(), "cycle {cycle}: what was acknowledged can be read on a full disk");

        fs::remove_file(ballast).unwrap();
        let mut whole = present.whole();
        (0..claimed).for_each(|cell| _ = whole.delete(Key::cell(1, cell)));
        // Why it was down is answered before it is up again.
        while writer.is_down() {
            thread::sleep(Duration::from_millis(1));
        }
        writer.submit(whole).unwrap();
        await_ack(&mut writer).outcome.unwrap();
    }
    let counters = writer.counters();
    eprintln!("{counters:?}");
    assert_eq!(counters.refused, cycles);
    writer.finish();
    drop(reads);
    let (read, count) = Accounts::read(&*Embedded::open(&disk.0.store()).unwrap().reader()).unwrap();
    assert!(read == present && count.holds(), "{count:?}");
}

#[test]
fn r32_a_full_disk_costs_saves_and_nothing_else() {
    check("full-disk", 10);
}

#[test]
#[ignore = "full form"]
fn r32_a_full_disk_costs_saves_and_nothing_else_full() {
    check("full-disk-full", 200);
}
