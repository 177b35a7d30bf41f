//! Ids: how servers and clients call a replicated entity.

use throng_pack::Pack;

/// Most slots a world may have; also the highest slot a client believes.
pub const SLOTS_MAX: u32 = 1 << 20;

/// A replicated entity, as servers and clients call it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Pack)]
#[pack(name = "throng.net_id")]
pub struct NetId {
    #[pack(max = SLOTS_MAX - 1)]
    pub slot: u32,
    /// Tells this owner of the slot from those before and after.
    pub generation: u8,
}
