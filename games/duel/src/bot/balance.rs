//! Balance: the numbers that decide how rounds between bots end.
//!
//! A match of bots is a load that looks like a match of players only if all of its rounds are seen: those that are shot
//! out, those in which the spike explodes or is defused, and those in which the time runs out. Each of the five ends is to
//! make one round in twenty at least, which a test counts (`bot/tests.rs`). What each number here brings about:
//!
//! ```text
//! end of a round           | more of it by
//! -------------------------+---------------------------------------------------------------
//! attackers eliminated     | RUSH_SHARE (into held angles)
//! defenders eliminated     | RETAKE_SHARE, FEW_TO_SAVE (they come, and are waited for)
//! spike exploded           | less RETAKE_SHARE, FEW_TO_SAVE (they stay away)
//! spike defused            | RETAKE_SHARE, more of GATHER_S (they come together)
//! time ran out             | STALL_SHARE, LATE_SHARE
//! ```
//!
//! As they stand, of 200 rounds 64 ended with the attackers and 50 with the defenders eliminated; in 21 the spike exploded,
//! in 45 it was defused, and in 20 the time ran out.
//!
//! How well bots shoot is not here but in [`hand`](super::hand) and [`eyes`](super::eyes): both sides shoot equally well.

/// Rounds in which the attackers run to the site at once.
pub const RUSH_SHARE: f32 = 0.2;
/// Rounds in which they go with [`LATE_S_LEFT`] left: some come in time to plant, some do not.
pub const LATE_SHARE: f32 = 0.1;
/// Rounds in which they never go, and wait for the defenders to come to them. Of those that run out of time it is most.
pub const STALL_SHARE: f32 = 0.11;
/// Of the rest they go when so much time is left (s), drawn evenly: early enough for a fight, a plant and a spike that has
/// its time.
pub const USUAL_S_LEFT: [f32; 2] = [40.0, 80.0];
/// As above, where they are late (s). From where they wait it is six to nine seconds to the site, and planting takes four.
pub const LATE_S_LEFT: [f32; 2] = [10.0, 24.0];
/// With so many more attackers than defenders alive, they go whatever they had planned, unless they stall.
pub const MORE_TO_GO: usize = 2;

/// Rounds in which defenders come for a planted spike at all, if they are enough.
pub const RETAKE_SHARE: f32 = 0.6;
/// With so many fewer defenders than attackers alive they save their weapons instead.
pub const FEW_TO_SAVE: usize = 3;
/// How long a defender waits for others before the last stretch to a planted spike (s), while there is time.
pub const GATHER_S: f32 = 6.0;
/// What a defender adds to the time that way and defusing take, before it calls a retake hopeless (s).
pub const HOPE_S: f32 = 0.5;

/// Rounds in which one defender peeks at the attackers' way early on, and so finds them before they come.
pub const PUSH_SHARE: f32 = 0.35;
/// How many defenders leave their site when the other one is attacked, at most. The rest stay until the spike is planted:
/// more → attackers who feint are never met; fewer → a site falls before anybody has come.
pub const ROTATE_MAX: usize = 2;

const _: () = assert!(RUSH_SHARE + LATE_SHARE + STALL_SHARE < 0.6, "most rounds are ordinary ones");
