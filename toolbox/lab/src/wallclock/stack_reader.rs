//! A stack as the unwinder reads it: from the bytes that came with a sample, and beyond them from the process.

use throng_platform::sampling::ProcessMemory;

const PAGE: u64 = 4_096;
/// Read at once: most stacks are unwound from one piece.
const PIECE_BYTES: u64 = 4 * PAGE;
/// Pieces of one stack. A stack of which more is needed is cut off there (64 x 16 KiB = 1 MiB).
const PIECES_MAX: usize = 64;
/// Addresses of programs are below this on x86-64 with four levels of pages; what is above is no address at all.
const ADDRESS_END: u64 = 1 << 47;

pub(super) struct StackReader<'a> {
    memory: &'a ProcessMemory,
    sampled_from: u64,
    sampled: &'a [u8],
    pieces: Vec<(u64, Vec<u8>)>,
}

impl<'a> StackReader<'a> {
    /// Of a thread that sleeps with its stack pointer there. Most of what unwinding needs is read at once, so that it
    /// is from one moment; the rest as it is needed.
    pub(super) fn asleep(memory: &'a ProcessMemory, stack: u64) -> StackReader<'a> {
        let mut reader = StackReader::sampled(memory, 0, &[]);
        // A failure shows again when the bytes are needed.
        let _ = reader.read(stack);
        reader
    }

    /// Of a thread that had a core when `sampled` was copied. What lies beyond is read now, milliseconds later: the
    /// frames of callers' callers, which seldom have returned since. If they have, unwinding ends early.
    pub(super) fn sampled(memory: &'a ProcessMemory, sampled_from: u64, sampled: &'a [u8]) -> StackReader<'a> {
        StackReader { memory, sampled_from, sampled, pieces: Vec::new() }
    }

    /// Whether bytes were needed that had not been copied with the sample.
    pub(super) fn read_beyond_sample(&self) -> bool {
        !self.sampled.is_empty() && !self.pieces.is_empty()
    }

    pub(super) fn read(&mut self, address: u64) -> Result<u64, ()> {
        if address >= ADDRESS_END {
            return Err(());
        }
        if let Some(word) = word_at(self.sampled_from, self.sampled, address) {
            return Ok(word);
        }
        if let Some(word) = self.pieces.iter().find_map(|(from, bytes)| word_at(*from, bytes, address)) {
            return Ok(word);
        }
        if self.pieces.len() >= PIECES_MAX {
            return Err(());
        }
        // From a page's start, so that what can be read of a stack that ends inside the piece is read.
        let from = address & !(PAGE - 1);
        let mut bytes = vec![0; PIECE_BYTES as usize];
        let length = self.memory.read(from, &mut bytes).map_err(|_| ())?;
        bytes.truncate(length);
        let word = word_at(from, &bytes, address).ok_or(())?;
        self.pieces.push((from, bytes));
        Ok(word)
    }
}

fn word_at(from: u64, bytes: &[u8], address: u64) -> Option<u64> {
    let offset = usize::try_from(address.checked_sub(from)?).ok()?;
    let word = bytes.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_le_bytes(word.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampled_bytes_come_first_and_the_rest_from_memory() {
        let memory = ProcessMemory::of(std::process::id());
        let live = [1_u64, 2, 3];
        let at = live.as_ptr() as u64;
        let sampled = 9_u64.to_le_bytes();
        let mut reader = StackReader::sampled(&memory, at, &sampled);
        assert_eq!(reader.read(at), Ok(9), "as it was when the sample was taken");
        assert!(!reader.read_beyond_sample());
        assert_eq!(reader.read(at + 16), Ok(3));
        assert!(reader.read_beyond_sample());
        assert_eq!(reader.read(8), Err(()));
        assert_eq!(reader.read(u64::MAX), Err(()));
        assert_eq!(StackReader::asleep(&memory, at).read(at + 8), Ok(2));
    }
}
