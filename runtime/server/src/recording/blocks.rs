//! Blocks: what a recording is made of, as bytes. Writing and reading stand side by side; drawn in
//! `docs/spec/recording.md`.
//!
//! ```text
//! block   | kind u8 | length u32 | content, length bytes |
//! ```
//!
//! A block after a `Part` is of that part's world, up to the next `Part`. What is read borrows from the bytes: a length is
//! held against what is there before anything is made of it.

use throng_pack::{Fault, Reader, Writer};
use throng_scheduler::Hertz;
use throng_world::{
    ids::WorldId,
    input_log::{InputLogReader, LogStart},
};

use crate::seeds::DRAWN_MAX;

const ABOUT: u8 = 1;
const WORLD: u8 = 2;
const PART: u8 = 3;
const BUILT: u8 = 4;
const CHECKPOINT: u8 = 5;
const TICKS: u8 = 6;
const HASH: u8 = 7;
const ENDED: u8 = 8;
const CLOSED: u8 = 9;

/// Kind and length.
pub(crate) const BLOCK_HEADING_BYTES: usize = 1 + 4;

/// Kinds of worlds, tunables, words of a command line and draws in one recording, at most of each.
pub(super) const LIST_MAX: u64 = 4_096;
const _: () = assert!(DRAWN_MAX as u64 <= LIST_MAX);

/// One block.
#[derive(Debug, Clone, PartialEq)]
pub enum Block<'a> {
    /// What was recorded. The first of each segment.
    About(Box<About>),
    /// What a world was made from. In each segment before its first part there.
    World(WorldId, WorldPlan),
    /// What follows is of this world. Numbers of a world's parts count up; where one is missing there is a gap.
    Part { world: WorldId, number: u32 },
    /// The world begins as its kind builds it.
    Built,
    /// The world as it is after so many ticks.
    Checkpoint { why: CheckpointReason, ticks: u32, bytes: &'a [u8] },
    /// What entered the world in some ticks in a row.
    Ticks(RecordedTicks<'a>),
    /// The world's state after so many ticks, as hashes.
    Hash(RecordedHash<'a>),
    /// There is no more of this world.
    Ended(EndReason),
    /// There is no more in this segment: it was written to its end.
    Closed { is_last: bool },
}

/// What was recorded, and by whom.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    pub game: String,
    pub version: String,
    pub commit: String,
    /// Hash of the schema.
    pub schema: u64,
    /// When the recording began.
    pub unix_s: u64,
    /// The settings' file, without what is secret.
    pub settings: String,
    /// What shaped the game's worlds, as words of a command line.
    pub arguments: Vec<String>,
    /// By number.
    pub tunables: Vec<String>,
    /// By number.
    pub kinds: Vec<String>,
    /// Numbers that the game has drawn from the server while its worlds were made (`Server::draw_seed`).
    pub draws: Vec<u64>,
    /// Texts of rules without comments, each on top of those before it: the file, and what an operator has said since.
    pub rules: Vec<String>,
    /// Whether the server kept saves; `None` where an earlier build did not say so.
    pub has_store: Option<bool>,
}

/// The numbers of a world's parts, as they come.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PartNumbers(Option<u32>);

impl PartNumbers {
    /// Whether nothing is missing between the part before and this one. The first follows on nothing, and neither does number 0, with
    /// which a world that is recorded anew begins.
    pub fn follows(&mut self, number: u32) -> bool {
        let expected = self.0.replace(number.wrapping_add(1));
        expected.is_none_or(|expected| expected == number) || number == 0
    }
}

/// What a world was made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorldPlan {
    pub kind: String,
    pub rate_hz: u16,
    pub seed: u64,
    pub parameters: Option<Vec<u8>>,
    /// Saves of its players are kept.
    pub is_saved: bool,
    /// And of itself.
    pub saves_world: bool,
}

/// Why a checkpoint stands where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointReason {
    /// So that what is older can be dropped. The world goes on as it is.
    Regular,
    /// The world is recorded from here on. What came after so many ticks and before this is missing; nothing is if this is
    /// where it was first recorded.
    Begin { after: Option<u32> },
    /// Somebody has changed the world from outside in its last tick.
    Changed,
}

/// Why there is no more of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    Ended,
    Panicked,
    /// It goes on, and is not recorded any more.
    NotRecorded,
}

/// Ticks in a row, as an input log has them, without its heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedTicks<'a>(pub(super) &'a [u8]);

impl<'a> RecordedTicks<'a> {
    /// The number of the first; `None` where there is none.
    pub fn first_tick(self) -> Option<u32> {
        self.0.first_chunk().copied().map(u32::from_le_bytes)
    }

    /// As they stand in the block.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Reads them from the first on, whatever its number. `rate` is that of the world.
    pub fn read(self, rate: Hertz) -> InputLogReader<'a> {
        self.read_from(self.first_tick().unwrap_or_default(), rate)
    }

    /// Reads them; it is a fault if the first is not `tick`.
    pub fn read_from(self, tick: u32, rate: Hertz) -> InputLogReader<'a> {
        InputLogReader::of_ticks(self.0, LogStart { rate, tick: tick.wrapping_sub(1), seed: 0, schema: 0 })
    }
}

/// Hashes of a world's state: whole, of each component and of each entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedHash<'a> {
    /// Ticks done.
    pub ticks: u32,
    pub whole: u64,
    /// The source of chance.
    pub random: u32,
    columns: &'a [u8],
    entities: &'a [u8],
}

impl RecordedHash<'_> {
    /// Of each component, in the order in which the kind registers them.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = u32> {
        self.columns.chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap_or_default()))
    }

    /// Place and hash of each entity that has such a component, by place.
    pub fn entities(&self) -> impl Iterator<Item = (u32, u16)> {
        let (mut from, mut next) = (Reader::new(self.entities), 0_u64);
        std::iter::from_fn(move || {
            // A recording may say anything.
            let place = u32::try_from(next.checked_add(from.varint().ok()?)?).ok()?;
            next = u64::from(place) + 1;
            Some((place, u16::from_le_bytes(from.array().ok()?)))
        })
    }
}

/// 32 bits of a hash, in which all of it counts.
pub(crate) fn short(hash: u64) -> u32 {
    (hash ^ hash >> 32) as u32
}

/// 16 bits of one.
pub(crate) fn shorter(hash: u64) -> u16 {
    let short = short(hash);
    (short ^ short >> 16) as u16
}

/// Writes a block around what `content` writes.
fn block(kind: u8, out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let begin = begin_block(kind, out);
    content(out);
    end_block(begin, out);
}

fn begin_block(kind: u8, out: &mut Vec<u8>) -> usize {
    let begin = out.len();
    out.push(kind);
    out.extend_from_slice(&[0; 4]);
    begin
}

/// Writes its length into a block that was begun at `begin`.
pub(crate) fn end_block(begin: usize, out: &mut [u8]) {
    let length = (out.len() - begin - BLOCK_HEADING_BYTES) as u32;
    out[begin + 1..begin + BLOCK_HEADING_BYTES].copy_from_slice(&length.to_le_bytes());
}

pub(crate) fn write_about(about: &About, out: &mut Vec<u8>) {
    block(ABOUT, out, |out| {
        [&about.game, &about.version, &about.commit].into_iter().for_each(|text| write_text(text, out));
        out.extend_from_slice(&about.schema.to_le_bytes());
        out.extend_from_slice(&about.unix_s.to_le_bytes());
        write_text(&about.settings, out);
        [&about.arguments, &about.tunables, &about.kinds].into_iter().for_each(|list| write_list(list, out));
        Writer::new(out).varint(about.draws.len() as u64);
        about.draws.iter().for_each(|draw| out.extend_from_slice(&draw.to_le_bytes()));
        write_list(&about.rules, out);
        out.extend(about.has_store.map(u8::from));
    });
}

pub(crate) fn write_world(world: WorldId, plan: &WorldPlan, out: &mut Vec<u8>) {
    block(WORLD, out, |out| {
        write_id(world, out);
        write_text(&plan.kind, out);
        out.extend_from_slice(&plan.rate_hz.to_le_bytes());
        out.extend_from_slice(&plan.seed.to_le_bytes());
        out.extend_from_slice(&[plan.is_saved.into(), plan.saves_world.into(), plan.parameters.is_some().into()]);
        out.extend_from_slice(plan.parameters.as_deref().unwrap_or_default());
    });
}

pub(crate) fn write_part(world: WorldId, number: u32, out: &mut Vec<u8>) {
    block(PART, out, |out| {
        write_id(world, out);
        out.extend_from_slice(&number.to_le_bytes());
    });
}

pub(crate) fn write_built(out: &mut Vec<u8>) {
    block(BUILT, out, |_| {});
}

pub(crate) fn write_checkpoint(why: CheckpointReason, ticks: u32, bytes: &[u8], out: &mut Vec<u8>) {
    block(CHECKPOINT, out, |out| {
        let (why, after) = match why {
            CheckpointReason::Regular => (0, 0),
            CheckpointReason::Begin { after: None } => (1, 0),
            CheckpointReason::Begin { after: Some(after) } => (2, after),
            CheckpointReason::Changed => (3, 0),
        };
        out.push(why);
        out.extend_from_slice(&after.to_le_bytes());
        out.extend_from_slice(&ticks.to_le_bytes());
        out.extend_from_slice(bytes);
    });
}

/// Begins a block of ticks, which grows until [`end_block`].
pub(crate) fn begin_ticks(out: &mut Vec<u8>) -> usize {
    begin_block(TICKS, out)
}

pub(crate) fn write_hash(
    (ticks, whole, random): (u32, u64, u64),
    columns: &[u64],
    entities: impl Iterator<Item = (u32, u64)>,
    out: &mut Vec<u8>,
) {
    block(HASH, out, |out| {
        out.extend_from_slice(&ticks.to_le_bytes());
        out.extend_from_slice(&whole.to_le_bytes());
        out.extend_from_slice(&short(random).to_le_bytes());
        out.push(columns.len().min(255) as u8);
        columns.iter().take(255).for_each(|column| out.extend_from_slice(&short(*column).to_le_bytes()));
        let mut next = 0;
        for (place, hash) in entities {
            Writer::new(out).varint(u64::from(place) - next);
            out.extend_from_slice(&shorter(hash).to_le_bytes());
            next = u64::from(place) + 1;
        }
    });
}

pub(crate) fn write_ended(why: EndReason, out: &mut Vec<u8>) {
    block(ENDED, out, |out| {
        out.push(match why {
            EndReason::Ended => 0,
            EndReason::Panicked => 1,
            EndReason::NotRecorded => 2,
        });
    });
}

pub(crate) fn write_closed(is_last: bool, out: &mut Vec<u8>) {
    block(CLOSED, out, |out| out.push(is_last.into()));
}

fn write_id(world: WorldId, out: &mut Vec<u8>) {
    out.extend_from_slice(&(world.index() as u32).to_le_bytes());
    out.extend_from_slice(&world.generation().to_le_bytes());
}

fn write_text(text: &str, out: &mut Vec<u8>) {
    Writer::new(out).varint(text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn write_list(list: &[String], out: &mut Vec<u8>) {
    Writer::new(out).varint(list.len() as u64);
    list.iter().for_each(|text| write_text(text, out));
}

/// The next block; `None` at the end.
pub(crate) fn read<'a>(from: &mut Reader<'a>) -> Option<Result<Block<'a>, Fault>> {
    (from.remaining_bytes() > 0).then(|| {
        let kind = from.u8()?;
        let length = u32::from_le_bytes(from.array()?);
        let content = from.bytes(usize::try_from(length).map_err(|_| Fault::Truncated)?)?;
        read_content(kind, content)
    })
}

fn read_content(kind: u8, content: &[u8]) -> Result<Block<'_>, Fault> {
    let mut from = Reader::new(content);
    let read = match kind {
        ABOUT => {
            let [game, version, commit] = [read_text(&mut from)?, read_text(&mut from)?, read_text(&mut from)?];
            let (schema, unix_s) = (u64::from_le_bytes(from.array()?), u64::from_le_bytes(from.array()?));
            let settings = read_text(&mut from)?;
            let [arguments, tunables, kinds] = [read_list(&mut from)?, read_list(&mut from)?, read_list(&mut from)?];
            let draws = read_draws(&mut from)?;
            // Earlier builds wrote none of these.
            let rules = if from.remaining_bytes() > 0 { read_list(&mut from)? } else { Vec::new() };
            let has_store = (from.remaining_bytes() > 0).then(|| from.flag()).transpose()?;
            let names = About { game, version, commit, schema, unix_s, settings, ..About::default() };
            Block::About(Box::new(About { arguments, tunables, kinds, draws, rules, has_store, ..names }))
        }
        WORLD => {
            let (world, kind) = (read_id(&mut from)?, read_text(&mut from)?);
            let rate_hz = u16::from_le_bytes(from.array()?);
            if !(1..=255).contains(&rate_hz) {
                return Err(Fault::OutOfRange);
            }
            let seed = u64::from_le_bytes(from.array()?);
            let (is_saved, saves_world, has_parameters) = (from.flag()?, from.flag()?, from.flag()?);
            let parameters =
                has_parameters.then(|| from.bytes(from.remaining_bytes())).transpose()?.map(<[u8]>::to_vec);
            Block::World(world, WorldPlan { kind, rate_hz, seed, parameters, is_saved, saves_world })
        }
        PART => Block::Part { world: read_id(&mut from)?, number: read_u32(&mut from)? },
        BUILT => Block::Built,
        CHECKPOINT => {
            let (why, after) = (from.u8()?, read_u32(&mut from)?);
            let why = match why {
                0 => CheckpointReason::Regular,
                1 => CheckpointReason::Begin { after: None },
                2 => CheckpointReason::Begin { after: Some(after) },
                3 => CheckpointReason::Changed,
                got => return Err(Fault::UnknownVariant { got }),
            };
            Block::Checkpoint { why, ticks: read_u32(&mut from)?, bytes: from.bytes(from.remaining_bytes())? }
        }
        TICKS => Block::Ticks(RecordedTicks(from.bytes(from.remaining_bytes())?)),
        HASH => {
            let (ticks, whole) = (read_u32(&mut from)?, u64::from_le_bytes(from.array()?));
            let random = read_u32(&mut from)?;
            let count = usize::from(from.u8()?);
            let columns = from.bytes(4 * count)?;
            let entities = from.bytes(from.remaining_bytes())?;
            Block::Hash(RecordedHash { ticks, whole, random, columns, entities })
        }
        ENDED => Block::Ended(match from.u8()? {
            0 => EndReason::Ended,
            1 => EndReason::Panicked,
            2 => EndReason::NotRecorded,
            got => return Err(Fault::UnknownVariant { got }),
        }),
        CLOSED => Block::Closed { is_last: from.flag()? },
        got => return Err(Fault::UnknownVariant { got }),
    };
    if from.remaining_bytes() > 0 { Err(Fault::OutOfRange) } else { Ok(read) }
}

fn read_id(from: &mut Reader<'_>) -> Result<WorldId, Fault> {
    Ok(WorldId::new(read_u32(from)?, read_u32(from)?))
}

fn read_u32(from: &mut Reader<'_>) -> Result<u32, Fault> {
    Ok(u32::from_le_bytes(from.array()?))
}

fn read_text(from: &mut Reader<'_>) -> Result<String, Fault> {
    let length = usize::try_from(from.varint()?).map_err(|_| Fault::Truncated)?;
    let bytes = from.bytes(length)?;
    Ok(std::str::from_utf8(bytes).map_err(|_| Fault::OutOfRange)?.to_owned())
}

fn read_draws(from: &mut Reader<'_>) -> Result<Vec<u64>, Fault> {
    let count = from.varint()?;
    if count > LIST_MAX {
        return Err(Fault::OutOfRange);
    }
    (0..count).map(|_| Ok(u64::from_le_bytes(from.array()?))).collect()
}

fn read_list(from: &mut Reader<'_>) -> Result<Vec<String>, Fault> {
    let count = from.varint()?;
    if count > LIST_MAX {
        return Err(Fault::OutOfRange);
    }
    (0..count).map(|_| read_text(from)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_follows_the_one_before_it_or_begins_anew() {
        let mut numbers = PartNumbers::default();
        let follows = [7, 8, 10, 11, 0, 1, u32::MAX].map(|number| numbers.follows(number));
        assert_eq!(follows, [true, true, false, true, true, true, false]);
        assert!(numbers.follows(0), "it counts around");
    }

    #[test]
    fn places_beyond_all_numbers_end_the_list_of_entities() {
        let varint = |value: u64| {
            let mut bytes = Vec::new();
            let mut left = value;
            while left >= 0x80 {
                bytes.push(left as u8 | 0x80);
                left >>= 7;
            }
            bytes.push(left as u8);
            bytes
        };
        let entities = |steps: &[u64]| {
            let list: Vec<u8> = steps.iter().flat_map(|step| [varint(*step), vec![7, 0]].concat()).collect();
            let hash = RecordedHash { ticks: 1, whole: 2, random: 3, columns: &[], entities: &list };
            hash.entities().collect::<Vec<_>>()
        };
        assert_eq!(entities(&[4, 0, 2]), [(4, 7), (5, 7), (8, 7)]);
        assert_eq!(entities(&[4, u64::MAX, 0]), [(4, 7)]);
        assert_eq!(entities(&[u64::from(u32::MAX), 0]), [(u32::MAX, 7)]);
        assert_eq!(entities(&[u64::from(u32::MAX) + 1]), []);
    }
}
