//! Ids: how servers and clients call a replicated entity.

/// Most slots a world may have; also the highest slot a client believes.
pub const SLOTS_MAX: u32 = 1 << 20;

/// A replicated entity, as servers and clients call it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetId {
    pub slot: u32,
    /// Tells this owner of the slot from those before and after.
    pub generation: u8,
}
