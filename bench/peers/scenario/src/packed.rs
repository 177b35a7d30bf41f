//! Packed: a pose in 7 bytes, for peers that let a component choose its bytes.
//!
//! ```text
//! bits   17 east | 17 north | 13 up | 7 yaw | 2 zero      2 cm steps (at most 1 cm off), 2.8 degrees (1.4 off)
//! ```
//!
//! The same steps that Throng declares for the same component, so that no peer pays for digits that another drops.

use std::f32::consts::TAU;

use crate::Pose;

/// Length of a packed pose.
pub const PACKED_BYTES: usize = 7;

const STEP_M: f64 = 0.02;
/// Reach of the ground axes and of the height. (m)
const GROUND_M: f64 = 1024.0;
const HEIGHT_M: f64 = 64.0;
const YAW_BITS: u32 = 7;

/// Rounds a pose into its bytes.
pub fn pack(pose: &Pose) -> [u8; PACKED_BYTES] {
    let code = |metres: f32, reach: f64| ((f64::from(metres).clamp(-reach, reach) + reach) / STEP_M + 0.5) as u64;
    let turns = f64::from(pose.yaw / TAU);
    let yaw = ((turns - turns.floor()) * f64::from(1 << YAW_BITS) + 0.5) as u64 & ((1 << YAW_BITS) - 1);
    let [east, up, north] = pose.place;
    let word = code(east, GROUND_M) | code(north, GROUND_M) << 17 | code(up, HEIGHT_M) << 34 | yaw << 47;
    word.to_le_bytes()[..PACKED_BYTES].try_into().expect("7 of 8 bytes")
}

/// The pose that the bytes stand for.
pub fn unpack(bytes: &[u8; PACKED_BYTES]) -> Pose {
    let mut word = [0; 8];
    word[..PACKED_BYTES].copy_from_slice(bytes);
    let word = u64::from_le_bytes(word);
    let metres =
        |shift: u32, bits: u32, reach: f64| ((word >> shift & ((1 << bits) - 1)) as f64 * STEP_M - reach) as f32;
    let yaw = (word >> 47 & ((1 << YAW_BITS) - 1)) as f32 * TAU / (1 << YAW_BITS) as f32;
    Pose { place: [metres(0, 17, GROUND_M), metres(34, 13, HEIGHT_M), metres(17, 17, GROUND_M)], yaw }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_pose_is_within_its_steps() {
        for index in 0..1000 {
            let number = index as f32 - 500.0;
            let pose = Pose { place: [number * 1.9, number * 0.1, -number], yaw: (number * 0.37).rem_euclid(TAU) };
            let copy = unpack(&pack(&pose));
            for axis in 0..3 {
                assert!((copy.place[axis] - pose.place[axis]).abs() <= 0.0102, "{pose:?} became {copy:?}");
            }
            let turn = (copy.yaw - pose.yaw).rem_euclid(TAU);
            assert!(turn.min(TAU - turn).to_degrees() <= 1.5, "{pose:?} became {copy:?}");
        }
    }
}
