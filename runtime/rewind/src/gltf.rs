//! glTF: skeletons and clips out of a file of any artist's program, and into one.
//!
//! Read is what a server needs of a binary glTF 2.0 file (`.glb`): the joints of its first skin, and the animations that
//! move them. Meshes, materials and everything else are passed over. What would put a hitbox elsewhere than where the
//! artist sees it is refused by name: scaled or sheared joints, cubic keys, nodes above the skeleton that move it.
//!
//! ```text
//! +----------------+-----------------------+---------------------------+
//! | glTF, 2, bytes | bytes, JSON, text ..  | bytes, BIN, numbers ..    |    all little endian, 4 bytes each
//! +----------------+-----------------------+---------------------------+
//! ```
//!
//! glTF does not say whether an animation is a loop: `"extras": { "loop": true }` does here.
//!
//! Done while a level is loaded, never in a tick. Trusts no number of the file: what it claims is held against what is
//! there before anything is sized by it.

use std::sync::Arc;

use crate::{
    clip::{CLIP_S_MAX, Clip, ClipError, FRAMES_PER_S, KeyedClip, NUMBERS_PER_BONE},
    skeleton::{Skeleton, SkeletonError},
};

mod read;
mod write;

/// Numbers in all clips of a file together: 64 MB.
pub const NUMBERS_MAX: usize = 1 << 24;

pub(crate) const MAGIC: [u8; 4] = *b"glTF";
pub(crate) const VERSION: u32 = 2;
pub(crate) const JSON_CHUNK: [u8; 4] = *b"JSON";
pub(crate) const BIN_CHUNK: [u8; 4] = *b"BIN\0";
/// `componentType` of a 32-bit float.
pub(crate) const FLOAT: u64 = 5126;

/// A skeleton and how it moves, by keys.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub skeleton: Arc<Skeleton>,
    pub clips: Vec<KeyedClip>,
}

/// Why a file is no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GltfError {
    #[error("it is no binary glTF 2.0 file: {0}")]
    NotGlb(&'static str),
    #[error("its JSON cannot be read: {0}")]
    Json(String),
    #[error("{0} is missing, or is not what glTF has there")]
    Missing(&'static str),
    #[error("{0}: not supported; export without")]
    Unsupported(&'static str),
    #[error("the joints of its first skin: {0}")]
    Skeleton(#[from] SkeletonError),
    #[error("animation `{name}`: {cause}")]
    Clip { name: String, cause: ClipError },
    #[error("its clips have more than {NUMBERS_MAX} numbers together")]
    TooLarge,
}

impl Model {
    /// Reads a `.glb` file.
    pub fn read(bytes: &[u8]) -> Result<Self, GltfError> {
        read::model(bytes)
    }

    /// Writes a `.glb` file, from which [`read`](Self::read) makes the same model.
    pub fn write(&self) -> Vec<u8> {
        write::model(self)
    }

    /// The clips as a [`Rig`](crate::rig::Rig) takes them, in this order.
    pub fn make_clips(&self) -> Result<Vec<Arc<Clip>>, GltfError> {
        let numbers = self.clips.iter().map(|clip| {
            let ends = clip.tracks.iter().filter_map(|track| track.times_s.last());
            // What is longer is refused below, so it is not counted for more.
            let duration_s = ends.copied().fold(0.0, f32::max).min(CLIP_S_MAX);
            let frames = (duration_s * FRAMES_PER_S as f32).ceil() as usize + 2;
            frames * self.skeleton.len() * NUMBERS_PER_BONE
        });
        if numbers.fold(0, usize::saturating_add) > NUMBERS_MAX {
            return Err(GltfError::TooLarge);
        }
        let clip = |keyed: &KeyedClip| match Clip::new(&self.skeleton, keyed) {
            Ok(clip) => Ok(Arc::new(clip)),
            Err(cause) => Err(GltfError::Clip { name: keyed.name.clone(), cause }),
        };
        self.clips.iter().map(clip).collect()
    }
}

#[cfg(test)]
mod tests;
