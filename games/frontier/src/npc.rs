//! NPCs: what each remembers, when it thinks, and what it then does.
//!
//! An NPC thinks four times a second while a player is within some 250 m of its home, otherwise once in four seconds;
//! the NPCs are spread over the ticks. A thought asks who is hated most, whether home is too far away, and whether
//! there is a reason to move. An NPC moves only for a reason (a chase, the way back, a stroll now and then), so most of
//! them stand still and cost neither time nor bytes.
//!
//! Cost: 60 ns a thought and 60 ns a step; 2,000 thoughts a tick with 10,000 NPCs all awake.

pub mod minds;
pub mod population;
pub mod presence;
pub mod think;
pub mod wake;
pub mod walk;

pub use minds::{Mind, Minds};
