//! Layout: how entities and values stand in a checkpoint's body. Writing and reading side by side.

use bevy_ecs::entity::{Entity, EntityGeneration, EntityIndex};
use throng_pack::{Fault, PackError, Reader, Writer};

use super::error::LoadError;

pub(super) fn write_varint(value: u64, out: &mut Vec<u8>) {
    Writer::new(out).varint(value);
}

pub(super) fn read_u32(from: &mut Reader<'_>) -> Result<u32, Fault> {
    u32::try_from(from.varint()?).map_err(|_| Fault::OutOfRange)
}

pub(super) fn write_entity(entity: Entity, out: &mut Vec<u8>) {
    let mut out = Writer::new(out);
    out.varint(entity.index_u32().into());
    out.varint(entity.generation().to_bits().into());
}

pub(super) fn read_entity(from: &mut Reader<'_>) -> Result<Entity, LoadError> {
    let (index, generation) = (read_u32(from)?, read_u32(from)?);
    let index = EntityIndex::from_raw_u32(index).ok_or(Fault::OutOfRange)?;
    Ok(Entity::from_index_and_generation(index, EntityGeneration::from_bits(generation)))
}

/// Appends what `pack` appends, behind its length.
pub(super) fn write_value(
    out: &mut Vec<u8>,
    pack: impl FnOnce(&mut Vec<u8>) -> Result<(), PackError>,
) -> Result<(), PackError> {
    let begin = out.len();
    // Most values are short: room for one byte, and for more of them only where the value turns out to be long.
    out.push(0);
    pack(out)?;
    let length = out.len() - begin - 1;
    if let Ok(short @ ..0x80) = u8::try_from(length) {
        out[begin] = short;
    } else {
        let mut prefix = Vec::with_capacity(5);
        write_varint(length as u64, &mut prefix);
        out.splice(begin..=begin, prefix);
    }
    Ok(())
}

pub(super) fn read_value<'a>(from: &mut Reader<'a>) -> Result<&'a [u8], Fault> {
    let length = usize::try_from(from.varint()?).map_err(|_| Fault::Truncated)?;
    from.bytes(length)
}
