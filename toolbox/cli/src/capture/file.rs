//! Reading a capture that may be anything: too large, a pipe, damaged.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use throng_capture::{Capture, format};

/// Larger files are refused before they are read into memory: the recorder's disk budgets are far below.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Reads a capture; the error names the file, what is wrong with it and where.
pub fn read(path: &Path) -> Result<Capture, String> {
    let context = |error: io::Error| format!("{}: {error}", path.display());
    let too_large = || format!("{}: is larger than 1 GiB, which no recorder writes", path.display());
    let file = File::open(path).map_err(context)?;
    if file.metadata().map_err(context)?.len() > FILE_BYTES_MAX {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // It may grow, or be a pipe.
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(context)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(too_large());
    }
    format::read(&bytes).map_err(|error| format!("{}: {error}", path.display()))
}
