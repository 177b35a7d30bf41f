//! Accesses that the processor refuses, on purpose: to see on a host that crash reports work there, and to test that
//! they do.
//!
//! Each ends the process by the signal that such an access has.

use std::fs::File;
use std::hint::black_box;
use std::io;

use memmap2::Mmap;

/// SIGSEGV: a read through a pointer to nowhere.
pub fn read_nowhere() {
    // Above what counts as null, and below all that is ever mapped.
    let nowhere = black_box(0x10_a010_usize) as *const u64;
    // SAFETY: none: this is a fault on purpose.
    black_box(unsafe { nowhere.read_volatile() });
}

/// SIGBUS: a read of a mapped file beyond its end. Fails when no file could be made to be mapped.
pub fn read_beyond_the_end() -> io::Result<()> {
    let path = std::env::temp_dir().join(format!("throng-drill-{}", std::process::id()));
    let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
    std::fs::remove_file(&path)?;
    file.set_len(4096)?;
    // SAFETY: none: the file is made shorter below, on purpose.
    let map = unsafe { Mmap::map(&file) }?;
    file.set_len(0)?;
    black_box(map[black_box(0)]);
    Ok(())
}
