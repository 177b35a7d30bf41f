//! NPCs: what each remembers, when it thinks, and what it then does.
//!
//! An NPC thinks four times a second, each in its own tick of the five, as long as a player is within some 250 m of its
//! home; otherwise once in four seconds. Thinking is: who is hated most, is home too far, is there a reason to move. It
//! moves only for a reason (chase, way back, a stroll now and then), so most of them stand still, cost nothing and are
//! not heard of.
//!
//! Cost: 60 ns a thought and 60 ns a step; 2,000 thoughts a tick with 10,000 NPCs all awake.

pub mod minds;
pub mod population;
pub mod presence;
pub mod think;
pub mod wake;
pub mod walk;

pub use minds::{Mind, Minds};
