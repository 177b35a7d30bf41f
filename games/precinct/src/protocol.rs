//! What a Precinct client and its world say to each other.
//!
//! Inputs are six bytes of integers, so no float ever crosses the wire: directions are fractions of a byte, never NaN,
//! and every value that is not meant is refused where it is read instead of being clamped later.
//!
//! ```text
//! input (follows the runtime's input header, its kind and what its player was shown; unreliable, every client tick)
//!   0  move x      i8   -127..=127, world axes, 127 = full speed; -128 is refused
//!   1  move z      i8   the same
//!   2  yaw         u16  little endian, 65,536 to a full turn
//!   4  pitch       i8   -89..=89 degrees, up is positive
//!   5  buttons     u8   bit 0 fire, bit 1 sprint, bit 2 heal, bit 3 open a door; other bits must be zero
//! ```
//!
//! The rest are packed values (`throng_pack`): [`Say`], [`CallMe`] and [`Handle`] from clients, [`Said`], [`Pockets`],
//! [`Carried`], [`Stashed`] and [`Offered`] from worlds.
//!
//! Cost: some 10 ns a message; 1,000 clients at 20 Hz are 0.2 ms a second.

use std::f32::consts::TAU;

use speech::{Line, Name, TextFault};
use throng::prelude::*;
use throng_pack::Pack;
use throng_replication::NetId;

use crate::{
    gear::{Bag, Gear, GearId, GearKind},
    inventory::{Inventory, Stacks},
    stash::Stash,
};

/// Longest text a client may say, in bytes of UTF-8.
pub const SAY_BYTES_MAX: usize = 120;
/// Longest name a player may carry, in bytes.
pub const NAME_BYTES_MAX: usize = 24;

const BUTTON_FIRE: u8 = 1 << 0;
const BUTTON_SPRINT: u8 = 1 << 1;
const BUTTON_HEAL: u8 = 1 << 2;
const BUTTON_GRIP: u8 = 1 << 3;
const BUTTONS_KNOWN: u8 = BUTTON_FIRE | BUTTON_SPRINT | BUTTON_HEAL | BUTTON_GRIP;
const MOVE_FULL: i8 = 127;
const PITCH_DEGREES_MAX: i8 = 89;

/// What a player wants during one client tick. Plain wishes: the world decides what comes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pack)]
#[pack(name = "precinct.input")]
pub struct Input {
    #[pack(min = -MOVE_FULL)]
    move_x: i8,
    #[pack(min = -MOVE_FULL)]
    move_z: i8,
    #[pack(fixed)]
    yaw: u16,
    #[pack(min = -PITCH_DEGREES_MAX, max = PITCH_DEGREES_MAX)]
    pitch_degrees: i8,
    #[pack(max = BUTTONS_KNOWN)]
    buttons: u8,
}

impl Input {
    /// An input from a direction in world axes (longer than 1 is shortened to 1), a yaw in radians
    /// and a pitch in radians. Values that are not finite count as zero.
    pub fn new(direction: [f32; 2], yaw: f32, pitch: f32, fire: bool, sprint: bool) -> Self {
        let [x, z] = direction.map(finite_or_zero);
        let shorten = x.hypot(z).max(1.0).recip();
        let full = f32::from(MOVE_FULL);
        let pitch_max = f32::from(PITCH_DEGREES_MAX);
        Self {
            move_x: (x * shorten * full).round() as i8,
            move_z: (z * shorten * full).round() as i8,
            yaw: (finite_or_zero(yaw).rem_euclid(TAU) * (65_536.0 / TAU)) as u32 as u16,
            pitch_degrees: finite_or_zero(pitch).to_degrees().clamp(-pitch_max, pitch_max).round() as i8,
            buttons: (u8::from(fire) * BUTTON_FIRE) | (u8::from(sprint) * BUTTON_SPRINT),
        }
    }

    /// The same, and a medkit is wanted.
    pub fn and_heal(self) -> Self {
        Self { buttons: self.buttons | BUTTON_HEAL, ..self }
    }

    /// The same, and the door within reach is to be opened.
    pub fn and_grip(self) -> Self {
        Self { buttons: self.buttons | BUTTON_GRIP, ..self }
    }

    /// The wished direction in world axes `[x, z]`, never longer than 1.
    pub fn direction(&self) -> [f32; 2] {
        let full = f32::from(MOVE_FULL);
        let (x, z) = (f32::from(self.move_x) / full, f32::from(self.move_z) / full);
        let shorten = x.hypot(z).max(1.0).recip();
        [x * shorten, z * shorten]
    }

    /// Radians in `0..TAU`; 0 looks along +z, a quarter turn along +x.
    pub fn yaw(&self) -> f32 {
        f32::from(self.yaw) * (TAU / 65_536.0)
    }

    /// Radians, up is positive.
    pub fn pitch(&self) -> f32 {
        f32::from(self.pitch_degrees).to_radians()
    }

    pub fn fire(&self) -> bool {
        self.buttons & BUTTON_FIRE != 0
    }

    pub fn sprint(&self) -> bool {
        self.buttons & BUTTON_SPRINT != 0
    }

    pub fn heal(&self) -> bool {
        self.buttons & BUTTON_HEAL != 0
    }

    pub fn grip(&self) -> bool {
        self.buttons & BUTTON_GRIP != 0
    }
}

/// To everybody in earshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.say")]
pub struct Say {
    pub words: Line<SAY_BYTES_MAX>,
}

impl Say {
    pub fn new(words: &str) -> Result<Self, TextFault> {
        Ok(Self { words: Line::new(words)? })
    }
}

/// What the player is to be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.call_me")]
pub struct CallMe {
    pub name: Name<NAME_BYTES_MAX>,
}

impl CallMe {
    pub fn new(name: &str) -> Result<Self, TextFault> {
        Ok(Self { name: Name::new(name)? })
    }
}

/// Who said what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.said")]
pub struct Said {
    pub speaker: Name<NAME_BYTES_MAX>,
    pub words: Line<SAY_BYTES_MAX>,
}

impl ClientMessage for Said {}

impl Said {
    pub fn new(speaker: &str, words: &str) -> Result<Self, TextFault> {
        Ok(Self { speaker: Name::new(speaker)?, words: Line::new(words)? })
    }
}

/// What one's own player carries now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.pockets")]
pub struct Pockets {
    #[pack(via = Stacks)]
    pub inventory: Inventory,
}

impl ClientMessage for Pockets {}

/// What a player wants done with gear, once. The world decides whether it is near enough and has room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.handle")]
pub enum Handle {
    /// Takes what lies there into the bag.
    PickUp(NetId),
    /// Lays a piece out of the bag on the ground.
    Drop(GearId),
    /// From the bag into the chest, at home.
    PutIn(GearId),
    /// From the chest into the bag, at home.
    TakeOut(GearId),
    /// To another player who is near, in the hub and the dark zone.
    Offer(Offer),
    /// What another player has offered.
    Accept(Acceptance),
}

/// A piece of one's own, for a piece of another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.offer")]
pub struct Offer {
    pub to: NetId,
    pub give: GearId,
    /// Any piece of this kind; `None`: it is a gift.
    pub want: Option<GearKind>,
}

/// The offer that is meant, and what is given for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.acceptance")]
pub struct Acceptance {
    pub from: NetId,
    pub get: GearId,
    /// `None` for a gift.
    pub give: Option<GearId>,
}

/// What one's own player has in its bag now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.carried")]
pub struct Carried {
    pub bag: Bag,
}

impl ClientMessage for Carried {}

/// What is in one's own chest now. Told at home.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.stashed")]
pub struct Stashed {
    pub stash: Stash,
}

impl ClientMessage for Stashed {}

/// Another player offers something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "precinct.offered")]
pub struct Offered {
    pub from: NetId,
    pub gear: Gear,
    pub want: Option<GearKind>,
}

impl ClientMessage for Offered {}

fn finite_or_zero(value: f32) -> f32 {
    if value.is_finite() { value } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use throng_pack::{PackError, pack_body, unpack_body};
    use throng_simulator::mutation::mutations;

    use super::*;
    use crate::{gear::piece, inventory::Item, weapons::WeaponKind};

    fn packed(value: &impl Pack) -> Vec<u8> {
        let mut bytes = Vec::new();
        pack_body(value, &mut bytes).unwrap();
        bytes
    }

    fn input(bytes: &[u8]) -> Result<Input, PackError> {
        unpack_body(bytes)
    }

    #[test]
    fn an_input_survives_the_wire() {
        let walks = Input::new([0.6, -0.8], 3.0, -0.5, true, false);
        let back = input(&packed(&walks)).unwrap();
        assert_eq!((back, Input::BYTES_MAX), (walks, 6));
        assert!((back.yaw() - 3.0).abs() < 0.001);
        assert!((back.pitch() + 0.5).abs() < 0.01);
        assert!((back.direction()[0] - 0.6).abs() < 0.01);
        assert!(back.fire());
        assert!(!back.sprint());
    }

    #[test]
    fn r12_poisoned_numbers_never_leave_the_encoder() {
        for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -0.0, 1e-40] {
            let back = input(&packed(&Input::new([poison, poison], poison, poison, false, false))).unwrap();
            assert!(back.direction()[0].hypot(back.direction()[1]) <= 1.0 + 1e-6);
            assert!(back.yaw().is_finite());
            assert!(back.pitch().is_finite());
        }
    }

    #[test]
    fn what_no_honest_client_sends_is_refused() {
        let check = |bytes: &[u8], field: &str| {
            let error = input(bytes).unwrap_err();
            assert_eq!(error.field, field, "{bytes:?}: {error}");
        };
        check(&[], "move_x");
        check(&[0; 5], "buttons");
        check(&[0; 7], "");
        check(&[0x80, 0, 0, 0, 0, 0], "move_x");
        check(&[0, 0x80, 0, 0, 0, 0], "move_z");
        check(&[0, 0, 0, 0, 90, 0], "pitch_degrees");
        check(&[0, 0, 0, 0, 0x80, 0], "pitch_degrees");
        check(&[0, 0, 0, 0, 0, 0x10], "buttons");
        check(&[0, 0, 0, 0, 0, 0xff], "buttons");
    }

    #[test]
    fn a_grip_at_a_door_is_a_button_of_its_own() {
        let grips = Input::new([0.0, 1.0], 0.5, 0.0, true, false).and_grip();
        let read = input(&packed(&grips)).unwrap();
        assert_eq!(read, grips);
        assert!(read.grip() && read.fire() && !read.heal() && !read.sprint());
        assert!(!Input::default().grip());
    }

    #[test]
    fn a_diagonal_of_full_values_is_no_faster() {
        let [x, z] = input(&[127, 127, 0, 0, 0, 0]).unwrap().direction();
        assert!(x.hypot(z) <= 1.0 + 1e-6);
    }

    #[test]
    fn messages_survive_the_wire() {
        let said = Said::new("Agent 7", "hello, hub").unwrap();
        assert_eq!(unpack_body::<Said>(&packed(&said)), Ok(said));
        let mut inventory = Inventory::usual(WeaponKind::Rifle);
        inventory.add(Item::Credits, 300);
        let pockets = packed(&Pockets { inventory });
        assert_eq!(unpack_body::<Pockets>(&pockets), Ok(Pockets { inventory }));
        assert!(pockets.len() < 12, "{pockets:?}");
        assert!(unpack_body::<Pockets>(&pockets[..pockets.len() - 1]).is_err());
        let medkit = Item::Medkit as u8;
        assert!(unpack_body::<Pockets>(&[1, medkit, 2]).is_ok());
        assert!(unpack_body::<Pockets>(&[1, medkit, 5]).is_err(), "nobody carries five");
        assert!(unpack_body::<Pockets>(&[2, medkit, 1, medkit, 1]).is_err(), "two stacks of the same");
    }

    #[test]
    fn a_medkit_is_asked_for_by_a_button_of_its_own() {
        let fires = Input::new([0.0, 1.0], 1.0, 0.0, true, true);
        assert!(!fires.heal());
        let healing = input(&packed(&fires.and_heal())).unwrap();
        assert!(healing.heal() && healing.fire() && healing.sprint());
    }

    /// Promise: no bytes whatever make a decoder panic, and what it accepts is in range.
    #[test]
    fn a_hundred_thousand_mutated_messages_never_panic() {
        let somebody = NetId { slot: 4_321, generation: 7 };
        let (one, other) = (piece(300).id, piece(2).id);
        let messages: [Vec<u8>; 7] = [
            packed(&Handle::PickUp(somebody)),
            packed(&Handle::Offer(Offer { to: somebody, give: one, want: Some(GearKind::Vest) })),
            packed(&Handle::Accept(Acceptance { from: somebody, get: one, give: Some(other) })),
            packed(&Input::new([0.5, 0.5], 1.0, 0.2, true, true)),
            packed(&Say::new("zwölf Häuser am Fluß 🏙").unwrap()),
            packed(&CallMe::new("Agent 7").unwrap()),
            packed(&Said::new("Agent 7", "all quiet").unwrap()),
        ];
        let mut accepted = 0;
        for bytes in mutations(&messages, 100_000, 7) {
            if let Ok(input) = input(&bytes) {
                let [x, z] = input.direction();
                assert!(x.hypot(z) <= 1.0 + 1e-6);
                accepted += 1;
            }
            if let Ok(Say { words }) = unpack_body(&bytes) {
                assert!(words.len() <= SAY_BYTES_MAX);
                accepted += 1;
            }
            if let Ok(handle) = unpack_body::<Handle>(&bytes) {
                assert_eq!(packed(&handle), bytes, "there is one spelling of everything");
                accepted += 1;
            }
            accepted += usize::from(unpack_body::<CallMe>(&bytes).is_ok());
            accepted += usize::from(unpack_body::<Said>(&bytes).is_ok());
        }
        assert!(accepted > 1_000, "the mutations reach behind the first check: {accepted}");
    }
}
