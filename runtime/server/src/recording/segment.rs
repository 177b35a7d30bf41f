//! Segment: one file of a recording, as bytes. Drawn in `docs/spec/recording.md`.
//!
//! ```text
//! heading | "throngrc" 8 | version u16 | flags u16 | number u32 | recording u64 | crc u32 |
//! group   | raw u32 | stored u32 | at u32 | body crc u32 | crc u32 | blocks, compressed, stored bytes |
//! ```
//!
//! Blocks are compressed in groups (LZ4, without dictionary), so that what is before damage can be read: a group is good
//! by itself. A group's heading has a checksum of its own, so a length is believed only if it is as it was written.
//! Reading allocates what a group says that it holds, at most 255 times what is stored of it, as LZ4 can have it.

use throng_pack::{Fault, Reader};
use throng_world::ids::WorldId;

use super::{
    blocks::{self, Block, RecordedTicks},
    writer::GROUP_BYTES,
};
use crate::world_record::{CHECKPOINT_BYTES_MAX, LOG_BYTES_MAX};

const MAGIC: [u8; 8] = *b"throngrc";
const VERSION: u16 = 1;
const HEADING_BYTES: usize = 8 + 2 + 2 + 4 + 8 + 4;
const GROUP_HEADING_BYTES: usize = 5 * 4;

/// What is in a group, uncompressed, at most (bytes).
pub(crate) const GROUP_BYTES_MAX: usize = 160 << 20;

/// For what entered one tick, and for a hash with each of the world's entities.
const TICK_AND_HASH_BYTES: usize = 64 << 20;

// What is written can be read: a group that is not full yet, and the largest part.
const _: () = assert!(GROUP_BYTES + LOG_BYTES_MAX + CHECKPOINT_BYTES_MAX + TICK_AND_HASH_BYTES <= GROUP_BYTES_MAX);

/// LZ4 makes no more of a byte.
const EXPANSION_MAX: usize = 255;

/// What is wrong with a segment. `at` is the place of the group that cannot be read; all before it is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SegmentFault {
    #[error("these bytes are no recording")]
    NoRecording,
    #[error(
        "version {got} of recordings is not known; this program knows {VERSION}: replay it with the build that wrote it"
    )]
    UnknownVersion { got: u16 },
    #[error("the recording's heading is damaged")]
    HeadingDamaged,
    #[error("the recording was not written to its end: it is whole up to byte {at}")]
    Torn { at: usize },
    #[error("the recording is damaged at byte {at}")]
    Damaged { at: usize },
    #[error("a block of the group at byte {at} cannot be read: {fault}")]
    Block { at: usize, fault: Fault },
}

/// Which segment of which recording it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeading {
    pub number: u32,
    /// The same in all segments of a recording, and no other's; `recording` in docs/spec/recording.md.
    pub recording_id: u64,
}

impl SegmentHeading {
    /// A segment with one group of these bytes, whatever they are: for those who test what a reader believes.
    #[doc(hidden)]
    pub fn seal(self, blocks: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        write_group(blocks, 0, &mut bytes);
        bytes
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        let begin = out.len();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.recording_id.to_le_bytes());
        let crc = crc32fast::hash(&out[begin..]);
        out.extend_from_slice(&crc.to_le_bytes());
    }
}

/// Appends a group of blocks to `out`. `at_ms`: since the recording began.
pub(crate) fn write_group(raw: &[u8], at_ms: u32, out: &mut Vec<u8>) {
    let begin = out.len();
    let room = lz4_flex::block::get_maximum_output_size(raw.len());
    out.resize(begin + GROUP_HEADING_BYTES + room, 0);
    let (heading, body) = out[begin..].split_at_mut(GROUP_HEADING_BYTES);
    let stored = lz4_flex::block::compress_into(raw, body).expect("there is room for the worst case");
    let body_crc = crc32fast::hash(&body[..stored]);
    let numbers = [raw.len() as u32, stored as u32, at_ms, body_crc];
    for (bytes, number) in heading.chunks_exact_mut(4).zip(numbers) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    let crc = crc32fast::hash(&heading[..16]);
    heading[16..].copy_from_slice(&crc.to_le_bytes());
    out.truncate(begin + GROUP_HEADING_BYTES + stored);
}

/// A segment that is read group by group.
#[derive(Debug)]
pub struct SegmentReader<'a> {
    bytes: &'a [u8],
    at: usize,
    heading: SegmentHeading,
    is_over: bool,
}

/// Blocks that were written together.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// When, since the recording began (ms).
    pub at_ms: u32,
    /// Where it stands in the segment.
    pub at: usize,
    /// The blocks, unpacked.
    pub(super) raw: Vec<u8>,
}

impl<'a> SegmentReader<'a> {
    /// # Errors
    /// If the bytes do not begin as a segment of a version that this program knows.
    pub fn new(bytes: &'a [u8]) -> Result<Self, SegmentFault> {
        if bytes.get(..MAGIC.len()) != Some(&MAGIC) {
            return Err(SegmentFault::NoRecording);
        }
        let heading = bytes.get(..HEADING_BYTES).ok_or(SegmentFault::Torn { at: 0 })?;
        let (checked, crc) = heading.split_last_chunk().ok_or(SegmentFault::NoRecording)?;
        if crc32fast::hash(checked) != u32::from_le_bytes(*crc) {
            return Err(SegmentFault::HeadingDamaged);
        }
        let mut from = Reader::new(&checked[MAGIC.len()..]);
        let read = |from: &mut Reader<'_>| -> Result<(u16, SegmentHeading), Fault> {
            let version = u16::from_le_bytes(from.array()?);
            from.array::<2>()?;
            let number = u32::from_le_bytes(from.array()?);
            Ok((version, SegmentHeading { number, recording_id: u64::from_le_bytes(from.array()?) }))
        };
        let (version, heading) = read(&mut from).map_err(|_| SegmentFault::NoRecording)?;
        if version != VERSION {
            return Err(SegmentFault::UnknownVersion { got: version });
        }
        Ok(Self { bytes, at: HEADING_BYTES, heading, is_over: false })
    }

    pub fn heading(&self) -> SegmentHeading {
        self.heading
    }

    fn read_group(&mut self) -> Result<Group, SegmentFault> {
        let at = self.at;
        let rest = &self.bytes[at..];
        // A file that was lengthened before its bytes were on the disk ends in zeros; no heading is all zeros.
        let torn_or = |fault| if rest.iter().all(|byte| *byte == 0) { SegmentFault::Torn { at } } else { fault };
        let (heading, rest) = rest.split_first_chunk::<GROUP_HEADING_BYTES>().ok_or(SegmentFault::Torn { at })?;
        let number = |index: usize| {
            let bytes = heading[4 * index..4 * index + 4].try_into().unwrap_or_default();
            u32::from_le_bytes(bytes)
        };
        if crc32fast::hash(&heading[..16]) != number(4) {
            return Err(torn_or(SegmentFault::Damaged { at }));
        }
        let [raw_bytes, stored_bytes] = [number(0), number(1)].map(|number| number as usize);
        let stored = rest.get(..stored_bytes).ok_or(SegmentFault::Torn { at })?;
        let is_possible = raw_bytes <= GROUP_BYTES_MAX && raw_bytes <= stored_bytes.saturating_mul(EXPANSION_MAX);
        if crc32fast::hash(stored) != number(3) || !is_possible {
            return Err(SegmentFault::Damaged { at });
        }
        let mut raw = vec![0; raw_bytes];
        match lz4_flex::block::decompress_into(stored, &mut raw) {
            Ok(length) if length == raw_bytes => {}
            _ => return Err(SegmentFault::Damaged { at }),
        }
        self.at += GROUP_HEADING_BYTES + stored_bytes;
        Ok(Group { at_ms: number(2), at, raw })
    }
}

impl Iterator for SegmentReader<'_> {
    type Item = Result<Group, SegmentFault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over || self.at == self.bytes.len() {
            return None;
        }
        let group = self.read_group();
        self.is_over = group.is_err();
        Some(group)
    }
}

impl Group {
    /// Its blocks; none after the first that cannot be read.
    pub fn blocks(&self) -> impl Iterator<Item = Result<Block<'_>, SegmentFault>> {
        let (mut from, mut is_over) = (Reader::new(&self.raw), false);
        std::iter::from_fn(move || {
            let block = if is_over { None } else { blocks::read(&mut from) }?;
            is_over = block.is_err();
            Some(block.map_err(|fault| SegmentFault::Block { at: self.at, fault }))
        })
    }

    /// Its bytes, with ticks as `write` has them for each world: for those who test what a replay misses.
    ///
    /// # Panics
    /// If it has a block that cannot be read.
    #[doc(hidden)]
    pub fn with_ticks(&self, mut write: impl FnMut(WorldId, RecordedTicks<'_>, &mut Vec<u8>)) -> Vec<u8> {
        let (mut from, mut bytes, mut current) = (Reader::new(&self.raw), Vec::new(), None);
        loop {
            let at = self.raw.len() - from.remaining_bytes();
            match blocks::read(&mut from).transpose().expect("it was written just now") {
                Some(Block::Ticks(ticks)) => {
                    let begin = blocks::begin_ticks(&mut bytes);
                    write(current.expect("a part stands before its blocks"), ticks, &mut bytes);
                    blocks::end_block(begin, &mut bytes);
                    continue;
                }
                Some(Block::Part { world, .. }) => current = Some(world),
                Some(_) => {}
                None => return bytes,
            }
            bytes.extend_from_slice(&self.raw[at..self.raw.len() - from.remaining_bytes()]);
        }
    }
}
