//! What a client of Frontier says to the world, and the strict reading of it. What the world says is components and
//! events.
//!
//! Inputs are six bytes of integers, so no float ever crosses the wire raw: a direction is made of fractions of a byte
//! and never NaN, and what is not meant is refused at decode instead of being clamped later. Whatever the bytes are,
//! decoding answers `Ok` or a [`ProtocolFault`]; it does not panic, allocate or keep state.
//!
//! ```text
//! input (follows the runtime's input header; unreliable, every client tick)
//!   0  move x      i8   -127..=127, world axes, 127 = full speed; -128 is refused
//!   1  move z      i8   the same
//!   2  heading     u16  little endian, 65,536 to a full turn
//!   4  ability     u8   0 none, 1..=11 what to cast at the target; may be repeated: the world
//!                       keeps the cool-down
//!   5  buttons     u8   bit 0 attack, 1 run, 2 sneak, 3 gather; other bits must be zero
//!
//! reliable, from clients
//!   0  kind        u8   16 say, 17 name, 18 target, 19 join, 20 leave, 21 use, 22 emote
//!   1  ...              say, name: the text to the end of the message
//!                       target: nothing for no target, or an entity; join, use: an entity; leave: nothing
//!                       emote: u8, 0..=3
//!      an entity is u32, little endian: slot << 8 | generation
//! ```
//!
//! Cost: some 10 ns a message; 2,000 clients at 20 Hz are 0.4 ms a second.

use std::f32::consts::TAU;

use speech::TextFault;
use throng_replication::{NetId, Replicate, ReplicateBits};

use crate::components::{Gesture, NAME_BYTES_MAX};

/// Bytes of one encoded [`Input`].
pub const INPUT_BYTES: usize = 6;
/// Longest text a client may say, in bytes of UTF-8.
pub const SAY_BYTES_MAX: usize = 120;

pub(crate) const KIND_SAY: u8 = 16;
pub(crate) const KIND_NAME: u8 = 17;
pub(crate) const KIND_TARGET: u8 = 18;
pub(crate) const KIND_JOIN: u8 = 19;
pub(crate) const KIND_LEAVE: u8 = 20;
pub(crate) const KIND_USE: u8 = 21;
pub(crate) const KIND_EMOTE: u8 = 22;

const BUTTON_ATTACK: u8 = 1 << 0;
const BUTTON_RUN: u8 = 1 << 1;
const BUTTON_SNEAK: u8 = 1 << 2;
const BUTTON_GATHER: u8 = 1 << 3;
const BUTTONS_KNOWN: u8 = BUTTON_ATTACK | BUTTON_RUN | BUTTON_SNEAK | BUTTON_GATHER;
const MOVE_FULL: i8 = 127;
const EMOTES: [Gesture; 4] = [Gesture::Wave, Gesture::Cheer, Gesture::Shout, Gesture::Bow];

/// Why a message was refused. Counted, never answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolFault {
    #[error("an input is {INPUT_BYTES} bytes long")]
    InputLength,
    #[error("a move of -128 has no opposite and is never sent")]
    MoveRange,
    #[error("an ability that does not exist is asked for")]
    AbilityUnknown,
    #[error("a button that does not exist is pressed")]
    ButtonUnknown,
    #[error("the message is empty or of a kind that clients do not send")]
    KindUnknown,
    #[error("the message is longer or shorter than its kind")]
    Length,
    #[error("an emote that does not exist")]
    EmoteUnknown,
    #[error("an entity beyond all that there can be")]
    EntityRange,
    #[error(transparent)]
    Text(#[from] TextFault),
}

/// What a player, or an NPC, can cast.
#[derive(Replicate, Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ability {
    #[default]
    None,
    /// Hurts the target, if it is in line of sight.
    Bolt,
    /// Hurts all enemies around the caster: an area spell.
    Blast,
    /// Turns all monsters around the caster against it.
    Taunt,
    /// Mends the target, if it is of the caster's side, or else the caster itself.
    Heal,
    /// Makes the party around the caster stronger: a group buff.
    Bless,
    /// Begins or ends a song: an aura.
    Sing,
    /// Lays a trap, which others do not see before they are in it.
    Trap,
    /// Sets up a totem, which mends the caster's side around it.
    Totem,
    /// Gives the target a disease, which spreads.
    Plague,
    /// Stuns the target.
    Stun,
    /// Takes the caster to the hearth it calls home.
    Recall,
}

impl Ability {
    /// All that can be asked for, in the order of their codes from 1 on.
    pub const ALL: [Self; 11] = {
        use Ability::*;
        [Bolt, Blast, Taunt, Heal, Bless, Sing, Trap, Totem, Plague, Stun, Recall]
    };
}

/// What a player wants during one client tick. Plain wishes: the world decides what comes of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Input {
    move_x: i8,
    move_z: i8,
    heading: u16,
    ability: Ability,
    buttons: u8,
}

impl Input {
    /// An input from a direction in world axes `[x, z]` (longer than 1 is shortened to 1) and a heading in radians.
    /// Values that are not finite count as zero. Nothing is pressed.
    pub fn new(direction: [f32; 2], heading: f32) -> Self {
        let [x, z] = direction.map(finite_or_zero);
        let shorten = x.hypot(z).max(1.0).recip();
        let full = f32::from(MOVE_FULL);
        Self {
            move_x: (x * shorten * full).round() as i8,
            move_z: (z * shorten * full).round() as i8,
            heading: (finite_or_zero(heading).rem_euclid(TAU) * (65_536.0 / TAU)) as u32 as u16,
            ability: Ability::None,
            buttons: 0,
        }
    }

    /// Strikes at the target while it is in reach.
    pub fn attacking(self, pressed: bool) -> Self {
        self.pressing(BUTTON_ATTACK, pressed)
    }

    pub fn running(self, pressed: bool) -> Self {
        self.pressing(BUTTON_RUN, pressed)
    }

    /// Slow, and hard to see after a moment in which nobody has been struck.
    pub fn sneaking(self, pressed: bool) -> Self {
        self.pressing(BUTTON_SNEAK, pressed)
    }

    /// Gathers from a node in reach; it takes standing still.
    pub fn gathering(self, pressed: bool) -> Self {
        self.pressing(BUTTON_GATHER, pressed)
    }

    /// Casts at the target.
    pub fn casting(self, ability: Ability) -> Self {
        Self { ability, ..self }
    }

    fn pressing(self, button: u8, pressed: bool) -> Self {
        let buttons = if pressed { self.buttons | button } else { self.buttons & !button };
        Self { buttons, ..self }
    }

    pub fn encode(&self) -> [u8; INPUT_BYTES] {
        let [heading_low, heading_high] = self.heading.to_le_bytes();
        let ability = self.ability.to_code() as u8;
        [self.move_x as u8, self.move_z as u8, heading_low, heading_high, ability, self.buttons]
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, ProtocolFault> {
        let &[move_x, move_z, heading_low, heading_high, ability, buttons] = bytes else {
            return Err(ProtocolFault::InputLength);
        };
        let (move_x, move_z) = (move_x as i8, move_z as i8);
        if move_x == i8::MIN || move_z == i8::MIN {
            return Err(ProtocolFault::MoveRange);
        }
        let ability = Ability::from_code(ability.into()).map_err(|_| ProtocolFault::AbilityUnknown)?;
        if buttons & !BUTTONS_KNOWN != 0 {
            return Err(ProtocolFault::ButtonUnknown);
        }
        Ok(Self { move_x, move_z, heading: u16::from_le_bytes([heading_low, heading_high]), ability, buttons })
    }

    /// The wished direction in world axes `[x, z]`, never longer than 1.
    pub fn direction(&self) -> [f32; 2] {
        let full = f32::from(MOVE_FULL);
        let (x, z) = (f32::from(self.move_x) / full, f32::from(self.move_z) / full);
        let shorten = x.hypot(z).max(1.0).recip();
        [x * shorten, z * shorten]
    }

    /// Radians in `0..TAU`; 0 looks along +z, a quarter turn along +x.
    pub fn heading(&self) -> f32 {
        f32::from(self.heading) * (TAU / 65_536.0)
    }

    pub fn ability(&self) -> Ability {
        self.ability
    }

    pub fn attacks(&self) -> bool {
        self.buttons & BUTTON_ATTACK != 0
    }

    pub fn runs(&self) -> bool {
        self.buttons & BUTTON_RUN != 0
    }

    pub fn sneaks(&self) -> bool {
        self.buttons & BUTTON_SNEAK != 0
    }

    pub fn gathers(&self) -> bool {
        self.buttons & BUTTON_GATHER != 0
    }
}

/// A reliable message from a client, its text already accepted by [`speech`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientMessage<'a> {
    /// To everybody in earshot.
    Say(&'a str),
    /// What the player is to be called.
    Name(&'a str),
    /// Whom attacks and spells are meant for.
    Target(Option<NetId>),
    /// Into the party of this player, who must be near.
    Join(NetId),
    /// Out of the party.
    Leave,
    /// Opens a door, or takes what is carried to a banker. Both must be near.
    Use(NetId),
    /// One of wave, cheer, shout and bow.
    Emote(Gesture),
}

impl<'a> ClientMessage<'a> {
    pub fn decode(bytes: &'a [u8]) -> Result<Self, ProtocolFault> {
        let Some((&kind, rest)) = bytes.split_first() else { return Err(ProtocolFault::KindUnknown) };
        match kind {
            KIND_SAY => Ok(Self::Say(speech::accept_line(rest, SAY_BYTES_MAX)?)),
            KIND_NAME => Ok(Self::Name(speech::accept_name(rest, NAME_BYTES_MAX)?)),
            KIND_TARGET if rest.is_empty() => Ok(Self::Target(None)),
            KIND_TARGET => Ok(Self::Target(Some(read_entity(rest)?))),
            KIND_JOIN => Ok(Self::Join(read_entity(rest)?)),
            KIND_LEAVE if rest.is_empty() => Ok(Self::Leave),
            KIND_LEAVE => Err(ProtocolFault::Length),
            KIND_USE => Ok(Self::Use(read_entity(rest)?)),
            KIND_EMOTE => {
                let &[emote] = rest else { return Err(ProtocolFault::Length) };
                let gesture = EMOTES.get(usize::from(emote)).ok_or(ProtocolFault::EmoteUnknown)?;
                Ok(Self::Emote(*gesture))
            }
            _ => Err(ProtocolFault::KindUnknown),
        }
    }

    /// For clients; it allocates.
    pub fn encode(&self) -> Vec<u8> {
        let text = |kind, words: &str| [&[kind], words.as_bytes()].concat();
        let entity = |kind, id: &NetId| [&[kind][..], &id.to_code().to_le_bytes()].concat();
        match self {
            Self::Say(words) => text(KIND_SAY, words),
            Self::Name(words) => text(KIND_NAME, words),
            Self::Target(None) => vec![KIND_TARGET],
            Self::Target(Some(id)) => entity(KIND_TARGET, id),
            Self::Join(id) => entity(KIND_JOIN, id),
            Self::Leave => vec![KIND_LEAVE],
            Self::Use(id) => entity(KIND_USE, id),
            Self::Emote(gesture) => {
                // What is no emote has no code, and is refused by the server.
                let code = EMOTES.iter().position(|emote| emote == gesture).unwrap_or(EMOTES.len());
                vec![KIND_EMOTE, code as u8]
            }
        }
    }
}

fn read_entity(bytes: &[u8]) -> Result<NetId, ProtocolFault> {
    let code = u32::from_le_bytes(bytes.try_into().map_err(|_| ProtocolFault::Length)?);
    if code >> NetId::BITS != 0 {
        return Err(ProtocolFault::EntityRange);
    }
    NetId::from_code(code).map_err(|_| ProtocolFault::EntityRange)
}

fn finite_or_zero(value: f32) -> f32 {
    if value.is_finite() { value } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use throng_simulator::mutation::mutations;

    const SOMEBODY: NetId = NetId { slot: 4_321, generation: 7 };

    #[test]
    fn an_input_survives_the_wire() {
        let input = Input::new([0.6, -0.8], 3.0).attacking(true).running(true).casting(Ability::Recall);
        let back = Input::decode(&input.encode()).unwrap();
        assert_eq!(back, input);
        assert!((back.heading() - 3.0).abs() < 0.001);
        assert!((back.direction()[0] - 0.6).abs() < 0.01);
        assert_eq!((back.attacks(), back.runs(), back.sneaks(), back.gathers()), (true, true, false, false));
        assert!(!back.attacking(false).attacks());
    }

    #[test]
    fn r12_poisoned_numbers_never_leave_the_encoder() {
        for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -0.0, 1e-40] {
            let back = Input::decode(&Input::new([poison, poison], poison).encode()).unwrap();
            assert!(back.direction()[0].hypot(back.direction()[1]) <= 1.0 + 1e-6);
            assert!(back.heading().is_finite());
        }
    }

    #[test]
    fn every_ability_has_a_code() {
        for (index, ability) in Ability::ALL.into_iter().enumerate() {
            assert_eq!(ability.to_code() as usize, index + 1);
            assert_eq!(Input::decode(&[0, 0, 0, 0, index as u8 + 1, 0]).unwrap().ability(), ability);
        }
    }

    #[test]
    fn what_no_honest_client_sends_is_refused() {
        let check = |bytes: &[u8], expect: ProtocolFault| assert_eq!(Input::decode(bytes), Err(expect), "{bytes:?}");
        check(&[], ProtocolFault::InputLength);
        check(&[0; 5], ProtocolFault::InputLength);
        check(&[0; 7], ProtocolFault::InputLength);
        check(&[0x80, 0, 0, 0, 0, 0], ProtocolFault::MoveRange);
        check(&[0, 0x80, 0, 0, 0, 0], ProtocolFault::MoveRange);
        check(&[0, 0, 0, 0, 12, 0], ProtocolFault::AbilityUnknown);
        check(&[0, 0, 0, 0, 255, 0], ProtocolFault::AbilityUnknown);
        check(&[0, 0, 0, 0, 0, 0x10], ProtocolFault::ButtonUnknown);
        let check =
            |bytes: &[u8], expect: ProtocolFault| assert_eq!(ClientMessage::decode(bytes), Err(expect), "{bytes:?}");
        check(&[], ProtocolFault::KindUnknown);
        check(&[15], ProtocolFault::KindUnknown);
        check(&[KIND_SAY], ProtocolFault::Text(TextFault::Length));
        check(&[KIND_TARGET, 1], ProtocolFault::Length);
        check(&[KIND_USE], ProtocolFault::Length);
        check(&[KIND_JOIN, 0, 0, 0, 0, 0], ProtocolFault::Length);
        check(&[KIND_JOIN, 0xff, 0xff, 0xff, 0xff], ProtocolFault::EntityRange);
        check(&[KIND_LEAVE, 0], ProtocolFault::Length);
        check(&[KIND_EMOTE, 4], ProtocolFault::EmoteUnknown);
    }

    #[test]
    fn messages_survive_the_wire() {
        let emotes = EMOTES.map(ClientMessage::Emote);
        let others = [
            ClientMessage::Say("well met"),
            ClientMessage::Name("Faye"),
            ClientMessage::Target(None),
            ClientMessage::Target(Some(SOMEBODY)),
            ClientMessage::Join(SOMEBODY),
            ClientMessage::Leave,
            ClientMessage::Use(SOMEBODY),
        ];
        for message in others.into_iter().chain(emotes) {
            assert_eq!(ClientMessage::decode(&message.encode()), Ok(message));
        }
    }

    /// Promise: no bytes whatever make a decoder panic, and what it accepts is in range.
    #[test]
    fn a_hundred_thousand_mutated_messages_never_panic() {
        let messages: [Vec<u8>; 5] = [
            Input::new([0.5, 0.5], 1.0).attacking(true).casting(Ability::Bolt).encode().to_vec(),
            ClientMessage::Say("zwölf Häuser am Fluß 🏙").encode(),
            ClientMessage::Name("Faye").encode(),
            ClientMessage::Target(Some(SOMEBODY)).encode(),
            ClientMessage::Emote(Gesture::Bow).encode(),
        ];
        let mut accepted = 0;
        for bytes in mutations(&messages, 100_000, 7) {
            if let Ok(input) = Input::decode(&bytes) {
                let [x, z] = input.direction();
                assert!(x.hypot(z) <= 1.0 + 1e-6);
                accepted += 1;
            }
            if let Ok(message) = ClientMessage::decode(&bytes) {
                assert_eq!(message.encode(), bytes, "there is one spelling of everything");
                accepted += 1;
            }
        }
        assert!(accepted > 1_000, "the mutations reach behind the first check: {accepted}");
    }
}
