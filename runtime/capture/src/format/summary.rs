//! The summary of a file: what it says of itself, without its events.
//!
//! Whoever lists captures asks each file when and why it was saved, and in which world. Of all other sections only the
//! headers are read, to see that the file is whole; what is damaged inside of them shows when the capture is opened. So
//! a file takes two short reads for every 64 KiB of it, whatever is in it, and the memory of a section.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use super::bytes::Cursor;
use super::section::{self, HEADER_BYTES, Kind};
use super::{MAGIC, ReadError, elements, maximum};
use crate::model::{About, World};

/// What a file says of itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    pub about: About,
    /// The world that the trigger fired in, if it is listed.
    pub world: Option<World>,
}

/// The longest of the sections that are read: five texts and some numbers, or as many worlds as were put into one.
const SECTION_BYTES_MAX: usize = 8 * maximum::TEXT_BYTES;

/// Holds two headers, so that passing over a section reads little of it.
const BUFFER_BYTES: usize = 64;

/// Fails with `InvalidData` and a [`ReadError`] where the file is no capture or is cut short.
pub fn read_summary(mut file: impl Read + Seek) -> io::Result<Summary> {
    let file_bytes = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut bytes = Vec::new();
    let mut offset = read_more(&mut file, MAGIC.len() + 2, &mut bytes)?;
    let version = section::version(&mut Cursor::new(&bytes, 0))?;
    let mut summary = Summary::default();
    let mut last = None;
    while last != Some(Kind::End) {
        bytes.clear();
        read_more(&mut file, HEADER_BYTES, &mut bytes)?;
        let (kind, length) = section::peek(Cursor::new(&bytes, offset))?;
        if !kind.may_follow(last) {
            return Err(ReadError::UnexpectedSection { offset, kind: kind as u8 }.into());
        }
        last = Some(kind);
        if matches!(kind, Kind::About | Kind::Worlds | Kind::End) {
            if length as usize > SECTION_BYTES_MAX {
                return Err(ReadError::OutOfRange { offset, what: "the length of a section" }.into());
            }
            read_more(&mut file, length as usize, &mut bytes)?;
            let (_, payload) = section::next(&mut Cursor::new(&bytes, offset))?;
            summary.add(kind, payload, version)?;
        } else {
            file.seek_relative(length.into())?;
        }
        offset += HEADER_BYTES + length as usize;
        if offset as u64 > file_bytes {
            return Err(ReadError::CutShort { offset: file_bytes as usize }.into());
        }
    }
    if offset as u64 == file_bytes { Ok(summary) } else { Err(ReadError::BytesAfterEnd { offset }.into()) }
}

/// Adds `len` bytes, or as many as there are; returns how many.
fn read_more(file: &mut impl Read, len: usize, bytes: &mut Vec<u8>) -> io::Result<usize> {
    file.by_ref().take(len as u64).read_to_end(bytes)
}

impl Summary {
    fn add(&mut self, kind: Kind, mut bytes: Cursor<'_>, version: u16) -> Result<(), ReadError> {
        match kind {
            Kind::About => self.about = elements::about(&mut bytes, version)?,
            Kind::Worlds => {
                while !bytes.is_at_end() {
                    let world = elements::world(&mut bytes)?;
                    if self.world.is_none() && self.about.trigger.world == Some(world.id) {
                        self.world = Some(world);
                    }
                }
            }
            _ => {}
        }
        match bytes.is_at_end() {
            true => Ok(()),
            false => Err(ReadError::OutOfRange { offset: bytes.offset(), what: "what follows" }),
        }
    }
}
