//! What a player's client and its match say to each other, beside the components.
//!
//! ```text
//! input (follows the runtime's header and the four bytes of what was seen; unreliable, one for each tick of the match)
//!   0  move x      i8   -127..=127, world axes, 127 = full speed; -128 is refused
//!   1  move z      i8   the same
//!   2  yaw         u16  little endian, 65,536 to a full turn
//!   4  pitch       u16  little endian, 0 is straight down, 65,535 straight up
//!   6  buttons     u8   bit 0 fire, 1 jump, 2 walk, 3 use, 4 load; other bits must be zero
//! ```
//!
//! One input is one step, which the client takes at once ([`crate::prediction`]) and the match in the order of their
//! numbers ([`crate::controls`]). Each comes in four packets, so that three in a row may be lost.
//!
//! | request  | when | says |
//! |---|---|---|
//! | [`Buy`]   | in the phase for it, in the base | an item; credits, and what one may carry, decide |
//! | [`Throw`] | while a round is played | smoke or a flash, along the view |
//!
//! | message     | to | says |
//! |---|---|---|
//! | [`Kit`]      | its player | what it has, whenever that changes: after each shot, too |
//! | [`Blinded`]  | its player | that a flash has blinded it: no enemy is shown to it for so long |
//! | [`Terms`]    | who comes | what of the match's rules one has to know beforehand |
//! | [`Waiting`]  | who is in the lobby | how many are ahead |
//!
//! | event | to | reliable | says |
//! |---|---|---|---|
//! | [`ShotFired`]    | who may see the shooter | no | where a shot went |
//! | [`HitConfirmed`] | the shooter | yes | that it hit, what of a body, how hard; not where that is |
//! | [`Killed`]       | everybody | yes | who, by whom, with what |
//! | [`Bang`]         | everybody within 60 m | no | where a flash went off |
//!
//! No event says where somebody is to those who may not see it.

use std::f32::consts::{FRAC_PI_2, PI, TAU};

use glam::Vec3;
use throng::prelude::*;

use crate::weapons::{BodyPart, WeaponKind};

/// Names of the kinds of worlds, as clients hear them. In a lobby one waits, and sends nothing.
pub const LOBBY: &str = "lobby";
pub const MATCH: &str = "match";
/// Ticks a second of a match.
pub const TICK_HZ: u16 = 128;

const BUTTON_FIRE: u8 = 1 << 0;
const BUTTON_JUMP: u8 = 1 << 1;
const BUTTON_WALK: u8 = 1 << 2;
const BUTTON_USE: u8 = 1 << 3;
const BUTTON_LOAD: u8 = 1 << 4;
const BUTTONS_KNOWN: u8 = BUTTON_FIRE | BUTTON_JUMP | BUTTON_WALK | BUTTON_USE | BUTTON_LOAD;
const MOVE_FULL: i8 = 127;

/// What a player wants during one client tick. Plain wishes: the match decides what comes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "duel.input")]
pub struct Input {
    #[pack(min = -MOVE_FULL)]
    move_x: i8,
    #[pack(min = -MOVE_FULL)]
    move_z: i8,
    #[pack(fixed)]
    yaw: u16,
    #[pack(fixed)]
    pitch: u16,
    #[pack(max = BUTTONS_KNOWN)]
    buttons: u8,
}

impl ClientInput for Input {
    /// A client at 128 Hz whose clock is a little fast, and a lump after a late packet.
    const PER_S_MAX: u16 = 144;
    const SAYS_SEEN: bool = true;
    const REPEATS: u8 = 3;
}

impl StateHash for Input {
    fn hash_state(&self, hasher: &mut StateHasher) {
        let Self { move_x, move_z, yaw, pitch, buttons } = *self;
        let [x, z] = [move_x, move_z].map(|part| u64::from(part.cast_unsigned()));
        hasher.write_u64(x << 48 | z << 40 | u64::from(yaw) << 24 | u64::from(pitch) << 8 | u64::from(buttons));
    }
}

impl Default for Input {
    /// Of somebody who stands and looks straight ahead along +z.
    fn default() -> Self {
        Self::new([0.0; 2], 0.0, 0.0)
    }
}

impl Input {
    /// An input from a direction in world axes `[x, z]` (longer than 1 is shortened to 1), a yaw and a pitch in
    /// radians. Values that are not finite count as zero. No button is pressed.
    pub fn new(direction: [f32; 2], yaw: f32, pitch: f32) -> Self {
        let [x, z] = direction.map(finite_or_zero);
        let shorten = x.hypot(z).max(1.0).recip();
        let full = f32::from(MOVE_FULL);
        let upwards = (finite_or_zero(pitch).clamp(-FRAC_PI_2, FRAC_PI_2) + FRAC_PI_2) / PI;
        Self {
            move_x: (x * shorten * full).round() as i8,
            move_z: (z * shorten * full).round() as i8,
            yaw: (finite_or_zero(yaw).rem_euclid(TAU) * (65_536.0 / TAU)) as u32 as u16,
            pitch: (upwards * f32::from(u16::MAX)).round() as u16,
            buttons: 0,
        }
    }

    /// The same, with the trigger held.
    pub fn and_fire(self) -> Self {
        self.and(BUTTON_FIRE)
    }

    /// The same, with a jump.
    pub fn and_jump(self) -> Self {
        self.and(BUTTON_JUMP)
    }

    /// The same, at half speed, which is steady.
    pub fn and_walk(self) -> Self {
        self.and(BUTTON_WALK)
    }

    /// The same, with a hand at the spike: plants it on a site, and defuses it.
    pub fn and_use(self) -> Self {
        self.and(BUTTON_USE)
    }

    /// The same, and the weapon is to be loaded.
    pub fn and_load(self) -> Self {
        self.and(BUTTON_LOAD)
    }

    fn and(self, button: u8) -> Self {
        Self { buttons: self.buttons | button, ..self }
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
        f32::from(self.pitch) / f32::from(u16::MAX) * PI - FRAC_PI_2
    }

    pub fn fire(&self) -> bool {
        self.buttons & BUTTON_FIRE != 0
    }

    pub fn jump(&self) -> bool {
        self.buttons & BUTTON_JUMP != 0
    }

    pub fn walk(&self) -> bool {
        self.buttons & BUTTON_WALK != 0
    }

    /// Whether a hand goes to the spike.
    pub fn uses(&self) -> bool {
        self.buttons & BUTTON_USE != 0
    }

    pub fn load(&self) -> bool {
        self.buttons & BUTTON_LOAD != 0
    }
}

/// The direction of a view: yaw 0 looks along +z, a quarter turn along +x; pitch is up.
pub fn direction_of(yaw: f32, pitch: f32) -> Vec3 {
    let (sin_yaw, cos_yaw) = yaw.sin_cos();
    let (sin_pitch, cos_pitch) = pitch.sin_cos();
    Vec3::new(sin_yaw * cos_pitch, sin_pitch, cos_yaw * cos_pitch)
}

/// What can be bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "duel.item")]
pub enum Item {
    /// In place of the weapon that one has.
    Weapon(WeaponKind),
    Armour,
    Smoke,
    Flash,
}

/// Asks for an item. Nothing comes of it outside of the phase for it, and without the credits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "duel.buy")]
pub struct Buy {
    pub item: Item,
}

impl ClientRequest for Buy {
    const PER_S_MAX: u16 = 10;
}

/// What can be thrown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "duel.grenade")]
pub enum Grenade {
    /// Makes a cloud over the ground where it is 1.2 s after the throw.
    Smoke,
    /// Blinds everybody who looks at it, friend and enemy.
    Flash,
}

/// Throws one, along the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "duel.throw")]
pub struct Throw {
    pub grenade: Grenade,
}

impl ClientRequest for Throw {
    const PER_S_MAX: u16 = 5;
}

/// What one's own player has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "duel.kit")]
pub struct Kit {
    pub credits: u16,
    pub weapon: WeaponKind,
    /// Rounds loaded, when this was said; while the weapon is being loaded, with those that go in.
    pub rounds: u8,
    pub smokes: u8,
    pub flashes: u8,
}

impl ClientMessage for Kit {}

/// A flash has blinded one's own player.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "duel.blinded")]
pub struct Blinded {
    pub for_ms: u16,
}

impl ClientMessage for Blinded {}

/// What of a match's rules no component says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "duel.terms")]
pub struct Terms {
    /// How long it takes to defuse the spike.
    pub defuse_ms: u16,
}

impl ClientMessage for Terms {}

/// A place in the lobby's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "duel.waiting")]
pub struct Waiting {
    pub ahead: u16,
}

impl ClientMessage for Waiting {}

/// Somebody has fired.
#[derive(Replicate, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "combat.shot")]
pub struct ShotFired {
    #[replicate(bits = 4)]
    pub seat: u8,
    pub weapon: WeaponKind,
    /// Where it went: recoil and spread included (radians).
    #[replicate(angle, bits = 14)]
    pub yaw: f32,
    #[replicate(min = -2.0, max = 2.0, step = 0.0005)]
    pub pitch: f32,
}

impl ReplicatedEvent for ShotFired {
    const RELIABLE: bool = false;
    const RANGE_M: Option<f32> = None;
}

/// One's own shot has hit an enemy.
#[derive(Replicate, Debug, Clone, Copy, PartialEq, Eq)]
#[replicate(name = "combat.hit")]
pub struct HitConfirmed {
    pub part: BodyPart,
    /// Points of health and armour.
    pub damage: u8,
}

impl ReplicatedEvent for HitConfirmed {
    const RELIABLE: bool = true;
    const RANGE_M: Option<f32> = None;
}

/// Somebody has died.
#[derive(Replicate, Debug, Clone, Copy, PartialEq, Eq)]
#[replicate(name = "combat.kill")]
pub struct Killed {
    #[replicate(bits = 4)]
    pub seat: u8,
    /// By whom, by seat; `None`: by the spike, or since its player has left.
    #[replicate(bits = 4)]
    pub by: Option<u8>,
    pub weapon: Option<WeaponKind>,
    pub part: BodyPart,
}

impl ReplicatedEvent for Killed {
    const RELIABLE: bool = true;
    const RANGE_M: Option<f32> = None;
}

/// How far a flash is heard (m).
const BANG_RANGE_M: f32 = 60.0;

/// A flash has gone off.
#[derive(Replicate, Debug, Clone, Copy, PartialEq)]
#[replicate(name = "equipment.bang")]
pub struct Bang {
    #[replicate(min = -45.0, max = 45.0, step = 0.1)]
    pub x: f32,
    #[replicate(min = 0.0, max = 12.0, step = 0.1)]
    pub y: f32,
    #[replicate(min = -33.0, max = 33.0, step = 0.1)]
    pub z: f32,
}

impl ReplicatedEvent for Bang {
    const RELIABLE: bool = false;
    const RANGE_M: Option<f32> = Some(BANG_RANGE_M);
}

fn finite_or_zero(value: f32) -> f32 {
    if value.is_finite() { value } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use throng_pack::{PackError, pack_body, unpack_body};
    use throng_simulator::mutation::mutations;

    use super::*;

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
        let runs = Input::new([0.6, -0.8], 3.0, -0.5).and_fire().and_jump();
        let back = input(&packed(&runs)).unwrap();
        assert_eq!((back, Input::BYTES_MAX), (runs, 7));
        assert!((back.yaw() - 3.0).abs() < 0.001 && (back.pitch() + 0.5).abs() < 0.001);
        assert!((back.direction()[0] - 0.6).abs() < 0.01);
        assert!(back.fire() && back.jump() && !back.walk() && !back.uses() && !back.load());
        assert!(Input::default().pitch().abs() < 0.001 && Input::default().direction() == [0.0; 2]);
    }

    #[test]
    fn r12_poisoned_numbers_never_leave_the_encoder() {
        for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -0.0, 1e-40] {
            let back = input(&packed(&Input::new([poison, poison], poison, poison))).unwrap();
            assert!(back.direction()[0].hypot(back.direction()[1]) <= 1.0 + 1e-6);
            assert!(back.yaw().is_finite() && back.pitch().abs() <= FRAC_PI_2 + 1e-6);
        }
    }

    #[test]
    fn what_no_honest_client_sends_is_refused() {
        let check = |bytes: &[u8], field: &str| {
            let error = input(bytes).unwrap_err();
            assert_eq!(error.field, field, "{bytes:?}: {error}");
        };
        check(&[], "move_x");
        check(&[0; 6], "buttons");
        check(&[0; 8], "");
        check(&[0x80, 0, 0, 0, 0, 0, 0], "move_x");
        check(&[0, 0x80, 0, 0, 0, 0, 0], "move_z");
        check(&[0, 0, 0, 0, 0, 0, 0x20], "buttons");
    }

    /// Promise: no bytes whatever make a decoder panic, and what it accepts is in range.
    #[test]
    fn a_hundred_thousand_mutated_messages_never_panic() {
        let messages: [Vec<u8>; 3] = [
            packed(&Input::new([0.5, 0.5], 1.0, 0.2).and_fire()),
            packed(&Buy { item: Item::Weapon(WeaponKind::Rifle) }),
            packed(&Throw { grenade: Grenade::Flash }),
        ];
        let mut accepted = 0;
        for bytes in mutations(&messages, 100_000, 7) {
            if let Ok(input) = input(&bytes) {
                let [x, z] = input.direction();
                assert!(x.hypot(z) <= 1.0 + 1e-6);
                accepted += 1;
            }
            accepted += usize::from(unpack_body::<Buy>(&bytes).is_ok());
            accepted += usize::from(unpack_body::<Throw>(&bytes).is_ok());
        }
        assert!(accepted > 1_000, "the mutations reach behind the first check: {accepted}");
    }
}
