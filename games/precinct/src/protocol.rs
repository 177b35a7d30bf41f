//! What a Precinct client and its world say to each other, and the strict reading of it.
//!
//! Inputs are six bytes of integers, so no float ever crosses the wire raw: directions are fractions
//! of a byte, never NaN, and every value that is not meant is refused at decode instead of being
//! clamped later. Whatever the bytes are, decoding answers `Ok` or a [`ProtocolFault`]; it does not
//! panic, allocate or keep state.
//!
//! ```text
//! input (follows the runtime's input header; unreliable, every client tick)
//!   0  move x      i8   -127..=127, world axes, 127 = full speed; -128 is refused
//!   1  move z      i8   the same
//!   2  yaw         u16  little endian, 65,536 to a full turn
//!   4  pitch       i8   -89..=89 degrees, up is positive
//!   5  buttons     u8   bit 0 fire, bit 1 sprint, bit 2 heal, bit 3 open a door; other bits must be zero
//!
//! reliable, either way
//!   0  kind        u8   16 say, 17 name (from clients); 18 said, 19 pockets (from worlds)
//!   1  ...              say, name: the text to the end of the message
//!                       said: length of the speaker's name u8, the name, the text to the end
//!                       pockets: item u8 and count u16, little endian, for each stack of the player's inventory
//! ```
//!
//! Cost: some 10 ns a message; 1,000 clients at 20 Hz are 0.2 ms a second.

use std::f32::consts::TAU;

use speech::TextFault;

use crate::inventory::{Inventory, Item, SLOTS};

/// Bytes of one encoded [`Input`].
pub const INPUT_BYTES: usize = 6;
/// Longest text a client may say, in bytes of UTF-8.
pub const SAY_BYTES_MAX: usize = 120;
/// Longest name a player may carry, in bytes.
pub const NAME_BYTES_MAX: usize = 24;
/// Longest [`encode_said`] message: kind, name length, name, text.
pub const SAID_BYTES_MAX: usize = 2 + NAME_BYTES_MAX + SAY_BYTES_MAX;

pub(crate) const KIND_SAY: u8 = 16;
pub(crate) const KIND_NAME: u8 = 17;
const KIND_SAID: u8 = 18;
const KIND_POCKETS: u8 = 19;

const BUTTON_FIRE: u8 = 1 << 0;
const BUTTON_SPRINT: u8 = 1 << 1;
const BUTTON_HEAL: u8 = 1 << 2;
const BUTTON_GRIP: u8 = 1 << 3;
const BUTTONS_KNOWN: u8 = BUTTON_FIRE | BUTTON_SPRINT | BUTTON_HEAL | BUTTON_GRIP;
const MOVE_FULL: i8 = 127;
const PITCH_DEGREES_MAX: i8 = 89;

/// Why a message was refused. Counted, never answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolFault {
    #[error("an input is {INPUT_BYTES} bytes long")]
    InputLength,
    #[error("a move of -128 has no opposite and is never sent")]
    MoveRange,
    #[error("the pitch is outside -89..=89 degrees")]
    PitchRange,
    #[error("a button that does not exist is pressed")]
    ButtonUnknown,
    #[error("the message is empty or of a kind that clients do not send")]
    KindUnknown,
    #[error("these are no pockets of a player")]
    Pockets,
    #[error(transparent)]
    Text(#[from] TextFault),
}

/// What a player wants during one client tick. Plain wishes: the world decides what comes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Input {
    move_x: i8,
    move_z: i8,
    yaw: u16,
    pitch_degrees: i8,
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

    pub fn encode(&self) -> [u8; INPUT_BYTES] {
        let [yaw_low, yaw_high] = self.yaw.to_le_bytes();
        [self.move_x as u8, self.move_z as u8, yaw_low, yaw_high, self.pitch_degrees as u8, self.buttons]
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, ProtocolFault> {
        let &[move_x, move_z, yaw_low, yaw_high, pitch, buttons] = bytes else {
            return Err(ProtocolFault::InputLength);
        };
        let input = Self {
            move_x: move_x as i8,
            move_z: move_z as i8,
            yaw: u16::from_le_bytes([yaw_low, yaw_high]),
            pitch_degrees: pitch as i8,
            buttons,
        };
        if input.move_x == i8::MIN || input.move_z == i8::MIN {
            return Err(ProtocolFault::MoveRange);
        }
        if input.pitch_degrees.unsigned_abs() > PITCH_DEGREES_MAX as u8 {
            return Err(ProtocolFault::PitchRange);
        }
        if buttons & !BUTTONS_KNOWN != 0 {
            return Err(ProtocolFault::ButtonUnknown);
        }
        Ok(input)
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

/// A reliable message from a client, its text already accepted by [`speech`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientMessage<'a> {
    Say(&'a str),
    Name(&'a str),
}

impl<'a> ClientMessage<'a> {
    pub fn decode(bytes: &'a [u8]) -> Result<Self, ProtocolFault> {
        match bytes.split_first() {
            Some((&KIND_SAY, rest)) => Ok(Self::Say(speech::accept_line(rest, SAY_BYTES_MAX)?)),
            Some((&KIND_NAME, rest)) => Ok(Self::Name(speech::accept_name(rest, NAME_BYTES_MAX)?)),
            _ => Err(ProtocolFault::KindUnknown),
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let (kind, words) = match self {
            Self::Say(words) => (KIND_SAY, words),
            Self::Name(words) => (KIND_NAME, words),
        };
        let mut bytes = Vec::with_capacity(1 + words.len());
        bytes.push(kind);
        bytes.extend_from_slice(words.as_bytes());
        bytes
    }
}

/// Writes "`speaker` said `words`" into `out` and answers the message within it.
///
/// Both texts must have been accepted on the way in, so they fit.
pub fn encode_said<'a>(speaker: &str, words: &str, out: &'a mut [u8; SAID_BYTES_MAX]) -> &'a [u8] {
    assert!(speaker.len() <= NAME_BYTES_MAX);
    assert!(words.len() <= SAY_BYTES_MAX);
    let words_at = 2 + speaker.len();
    let len = words_at + words.len();
    out[0] = KIND_SAID;
    out[1] = speaker.len() as u8;
    out[2..words_at].copy_from_slice(speaker.as_bytes());
    out[words_at..len].copy_from_slice(words.as_bytes());
    &out[..len]
}

/// Reads a message of a world: who said what.
pub fn decode_said(bytes: &[u8]) -> Result<(&str, &str), ProtocolFault> {
    let [KIND_SAID, name_len, rest @ ..] = bytes else {
        return Err(ProtocolFault::KindUnknown);
    };
    let (name, words) = rest.split_at_checked(usize::from(*name_len)).ok_or(ProtocolFault::Text(TextFault::Length))?;
    Ok((speech::accept_name(name, NAME_BYTES_MAX)?, speech::accept_line(words, SAY_BYTES_MAX)?))
}

/// Longest [`encode_pockets`] message.
pub const POCKETS_BYTES_MAX: usize = 1 + STACK_BYTES * SLOTS;
const STACK_BYTES: usize = 3;

/// Writes what a player carries into `out` and answers the message within it.
pub fn encode_pockets<'a>(inventory: &Inventory, out: &'a mut [u8; POCKETS_BYTES_MAX]) -> &'a [u8] {
    out[0] = KIND_POCKETS;
    let mut len = 1;
    for stack in inventory.stacks() {
        let [low, high] = stack.count.to_le_bytes();
        out[len..len + STACK_BYTES].copy_from_slice(&[stack.item as u8, low, high]);
        len += STACK_BYTES;
    }
    &out[..len]
}

/// A message of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told<'a> {
    Said {
        speaker: &'a str,
        words: &'a str,
    },
    /// What one's own player carries now.
    Pockets(Inventory),
}

impl<'a> Told<'a> {
    pub fn decode(bytes: &'a [u8]) -> Result<Self, ProtocolFault> {
        match bytes.split_first() {
            Some((&KIND_SAID, _)) => decode_said(bytes).map(|(speaker, words)| Self::Said { speaker, words }),
            Some((&KIND_POCKETS, stacks)) => decode_pockets(stacks).map(Self::Pockets),
            _ => Err(ProtocolFault::KindUnknown),
        }
    }
}

fn decode_pockets(stacks: &[u8]) -> Result<Inventory, ProtocolFault> {
    let (stacks, rest) = stacks.as_chunks::<STACK_BYTES>();
    let mut inventory = Inventory::default();
    for &[item, low, high] in stacks {
        let item = *Item::ALL.get(usize::from(item)).ok_or(ProtocolFault::Pockets)?;
        let count = u16::from_le_bytes([low, high]);
        let is_new = count > 0 && inventory.count(item) == 0;
        if !is_new || inventory.add(item, count) < count {
            return Err(ProtocolFault::Pockets);
        }
    }
    if rest.is_empty() { Ok(inventory) } else { Err(ProtocolFault::Pockets) }
}

fn finite_or_zero(value: f32) -> f32 {
    if value.is_finite() { value } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weapons::WeaponKind;
    use throng_simulator::mutation::mutations;

    #[test]
    fn an_input_survives_the_wire() {
        let input = Input::new([0.6, -0.8], 3.0, -0.5, true, false);
        let back = Input::decode(&input.encode()).unwrap();
        assert_eq!(back, input);
        assert!((back.yaw() - 3.0).abs() < 0.001);
        assert!((back.pitch() + 0.5).abs() < 0.01);
        assert!((back.direction()[0] - 0.6).abs() < 0.01);
        assert!(back.fire());
        assert!(!back.sprint());
    }

    #[test]
    fn r12_poisoned_numbers_never_leave_the_encoder() {
        for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -0.0, 1e-40] {
            let input = Input::new([poison, poison], poison, poison, false, false);
            let back = Input::decode(&input.encode()).unwrap();
            assert!(back.direction()[0].hypot(back.direction()[1]) <= 1.0 + 1e-6);
            assert!(back.yaw().is_finite());
            assert!(back.pitch().is_finite());
        }
    }

    #[test]
    fn what_no_honest_client_sends_is_refused() {
        let check = |bytes: &[u8], expect: ProtocolFault| {
            assert_eq!(Input::decode(bytes), Err(expect), "{bytes:?}");
        };
        check(&[], ProtocolFault::InputLength);
        check(&[0; 5], ProtocolFault::InputLength);
        check(&[0; 7], ProtocolFault::InputLength);
        check(&[0x80, 0, 0, 0, 0, 0], ProtocolFault::MoveRange);
        check(&[0, 0x80, 0, 0, 0, 0], ProtocolFault::MoveRange);
        check(&[0, 0, 0, 0, 90, 0], ProtocolFault::PitchRange);
        check(&[0, 0, 0, 0, 0x80, 0], ProtocolFault::PitchRange);
        check(&[0, 0, 0, 0, 0, 0x10], ProtocolFault::ButtonUnknown);
        check(&[0, 0, 0, 0, 0, 0xff], ProtocolFault::ButtonUnknown);
    }

    #[test]
    fn a_grip_at_a_door_is_a_button_of_its_own() {
        let input = Input::new([0.0, 1.0], 0.5, 0.0, true, false).and_grip();
        let read = Input::decode(&input.encode()).unwrap();
        assert_eq!(read, input);
        assert!(read.grip() && read.fire() && !read.heal() && !read.sprint());
        assert!(!Input::default().grip());
    }

    #[test]
    fn a_diagonal_of_full_values_is_no_faster() {
        let input = Input::decode(&[127, 127, 0, 0, 0, 0]).unwrap();
        let [x, z] = input.direction();
        assert!(x.hypot(z) <= 1.0 + 1e-6);
    }

    #[test]
    fn messages_survive_the_wire() {
        for message in [ClientMessage::Say("hello, hub"), ClientMessage::Name("Agent 7")] {
            assert_eq!(ClientMessage::decode(&message.encode()), Ok(message));
        }
        let mut out = [0; SAID_BYTES_MAX];
        let said = encode_said("Agent 7", "hello, hub", &mut out);
        assert_eq!(decode_said(said), Ok(("Agent 7", "hello, hub")));
        assert_eq!(Told::decode(said), Ok(Told::Said { speaker: "Agent 7", words: "hello, hub" }));
        let mut inventory = Inventory::usual(WeaponKind::Rifle);
        inventory.add(Item::Credits, 300);
        let mut out = [0; POCKETS_BYTES_MAX];
        let pockets = encode_pockets(&inventory, &mut out);
        assert_eq!(Told::decode(pockets), Ok(Told::Pockets(inventory)));
        assert_eq!(Told::decode(&pockets[..pockets.len() - 1]), Err(ProtocolFault::Pockets));
        assert_eq!(Told::decode(&[KIND_POCKETS, Item::Medkit as u8, 5, 0]), Err(ProtocolFault::Pockets));
    }

    #[test]
    fn a_medkit_is_asked_for_by_a_button_of_its_own() {
        let input = Input::new([0.0, 1.0], 1.0, 0.0, true, true);
        assert!(!input.heal());
        let healing = Input::decode(&input.and_heal().encode()).unwrap();
        assert!(healing.heal() && healing.fire() && healing.sprint());
    }

    /// Promise: no bytes whatever make a decoder panic, and what it accepts is in range.
    #[test]
    fn a_hundred_thousand_mutated_messages_never_panic() {
        let mut out = [0; SAID_BYTES_MAX];
        let messages: [Vec<u8>; 4] = [
            Input::new([0.5, 0.5], 1.0, 0.2, true, true).encode().to_vec(),
            ClientMessage::Say("zwölf Häuser am Fluß 🏙").encode(),
            ClientMessage::Name("Agent 7").encode(),
            encode_said("Agent 7", "all quiet", &mut out).to_vec(),
        ];
        let mut accepted = 0;
        for bytes in mutations(&messages, 100_000, 7) {
            if let Ok(input) = Input::decode(&bytes) {
                let [x, z] = input.direction();
                assert!(x.hypot(z) <= 1.0 + 1e-6);
                accepted += 1;
            }
            if let Ok(ClientMessage::Say(words)) = ClientMessage::decode(&bytes) {
                assert!(words.len() <= SAY_BYTES_MAX);
                accepted += 1;
            }
            accepted += usize::from(decode_said(&bytes).is_ok());
        }
        assert!(accepted > 1_000, "the mutations reach behind the first check: {accepted}");
    }
}
