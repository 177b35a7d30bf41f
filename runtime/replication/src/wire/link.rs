//! Link: how a component refers to another entity.
//!
//! On the server it is made from an entity, which means nothing to a client; on the wire it is the entity's [`NetId`]:
//!
//! ```text
//! bits   0 | 1  generation 8 | slot 20 |      0: refers to nobody, and that is all
//! ```
//!
//! A component is encoded once for all clients, so all that hear of it are told the same id, whether they hear of the
//! entity or not. A client that does not hold the entity finds none for it (`Replicas::contains`). What such a client
//! learns is that there is an entity with this slot and generation, and whether two links are to the same one; not where
//! it is, what it is, or that it is gone. Where even that is too much (who is concealed by a visibility filter, or
//! owner-only), the game leaves the link empty, or puts it into a component of an entity that the client may not hear of
//! either.

use crate::wire::{
    bytes::{DecodeError, Reader, Writer},
    field::ReplicateField,
    ids::NetId,
    quantise::{Bits, mix},
    replicate::ReplicateBits,
    shape::FieldShape,
};

const ID: Bits = Bits::new(NetId::BITS);

/// A reference to another entity, as a field of a replicated component: an `Entity` on the server, a [`NetId`] on a
/// client, where [`EntityLink::id`] gives it.
///
/// It goes as a link to nobody while the entity is not replicated, and follows by itself when that changes. In an event it
/// refers to who has an id when the tick's systems are done: who was despawned in the same tick has none any more, so make
/// such a link from the id ([`Replicated::id`](crate::ecs::Replicated::id)) beforehand.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct EntityLink {
    /// The entity as its world calls it.
    pub(crate) entity_bits: Option<u64>,
    pub(crate) id: Option<NetId>,
}

impl EntityLink {
    /// Refers to nobody.
    pub const NONE: Self = Self { entity_bits: None, id: None };

    /// On a client: the entity's id, `None` if it refers to nobody. On the server: the id that it was made from.
    pub fn id(&self) -> Option<NetId> {
        self.id
    }
}

impl From<NetId> for EntityLink {
    fn from(id: NetId) -> Self {
        Self { entity_bits: None, id: Some(id) }
    }
}

impl ReplicateField for EntityLink {
    const BITS_MAX: u32 = 1 + NetId::BITS;
    const EXACT_BITS_MAX: u32 = Self::BITS_MAX;
    const LAYOUT: u64 = mix(10, Self::BITS_MAX as u64);
    const LINKS: bool = true;

    fn encode_field(&self, out: &mut Writer<'_>) {
        out.bits(self.id.is_some().into(), 1);
        if let Some(id) = &self.id {
            ID.encode(id, out);
        }
    }

    fn decode_field(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let id = if from.bits(1)? == 1 { Some(ID.decode(from)?) } else { None };
        Ok(Self { entity_bits: None, id })
    }

    fn encode_field_exact(&self, out: &mut Writer<'_>) {
        self.encode_field(out);
    }

    fn decode_field_exact(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Self::decode_field(from)
    }

    fn field_agrees(&self, exact: &Self) -> bool {
        self.id == exact.id
    }

    fn visit_links(&mut self, visit: &mut dyn FnMut(&mut EntityLink)) {
        visit(self);
    }

    fn shape() -> FieldShape {
        FieldShape::Link
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_an_id_or_nobody() {
        let id = NetId { slot: 0xABCDE, generation: 0x12 };
        for (link, expect) in [(EntityLink::NONE, &[0][..]), (id.into(), &[0x25, 0xBC, 0x79, 0x15])] {
            let mut bytes = [0; 4];
            let mut out = Writer::new(&mut bytes);
            link.encode_field(&mut out);
            out.align();
            let len = out.len();
            assert_eq!(&bytes[..len], expect);
            assert_eq!(EntityLink::decode_field(&mut Reader::new(&bytes[..len])), Ok(link));
        }
        assert_eq!(EntityLink::decode_field(&mut Reader::new(&[1, 2, 3])), Err(DecodeError::Truncated));
    }
}
