//! Reading a capture that may be anything: too large, a pipe, damaged.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use clap::Args;
use throng_capture::{
    Capture,
    format::{self, ReadError, Summary, maximum},
};

#[derive(Args)]
pub struct MemoryArguments {
    /// What the capture may take of memory (MiB). Two bytes of a file can take 48, so give more only for files that you
    /// trust: a recorder with memory_mb = 1024 writes some that need 3,072.
    #[arg(long, value_name = "MIB", default_value_t = maximum::MEMORY_BYTES >> 20)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    memory_mb: u64,
}

/// Reads a capture; the error names the file, what is wrong with it and where.
pub fn read(path: &Path, MemoryArguments { memory_mb }: &MemoryArguments) -> Result<Capture, String> {
    let context = |error: io::Error| format!("{}: {error}", path.display());
    let advice = "if you trust it, allow more with --memory-mb";
    // What it holds takes at least as much as the file.
    let too_large = || format!("{}: is larger than {memory_mb} MiB; {advice}", path.display());
    let bytes_max = memory_mb << 20;
    let file = File::open(path).map_err(context)?;
    if file.metadata().map_err(context)?.len() > bytes_max {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // It may grow, or be a pipe.
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(context)?;
    if bytes.len() as u64 > bytes_max {
        return Err(too_large());
    }
    format::read_within(&bytes, bytes_max).map_err(|error| match error {
        ReadError::TooMuchMemory { .. } => format!("{}: {error}; {advice}", path.display()),
        error => format!("{}: {error}", path.display()),
    })
}

/// Reads what a capture says of itself, and not its events; the error is as that of [`read`].
pub fn summary(path: &Path) -> Result<Summary, String> {
    File::open(path).and_then(format::read_summary).map_err(|error| format!("{}: {error}", path.display()))
}

/// Whether both paths lead to one file that is there.
pub fn is_same(a: &Path, b: &Path) -> bool {
    std::fs::canonicalize(a).is_ok_and(|a| std::fs::canonicalize(b).is_ok_and(|b| a == b))
}
