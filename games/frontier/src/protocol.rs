//! What a client of Frontier says to the world. What the world says is components and events.
//!
//! Inputs are six bytes of integers, so no float ever crosses the wire: a direction is made of fractions of a byte and
//! never NaN, and what is not meant is refused where it is read instead of being clamped later.
//!
//! ```text
//! input (follows the runtime's input header, its kind and what its player was shown; unreliable, every client tick)
//!   0  move x      i8   -127..=127, world axes, 127 = full speed; -128 is refused
//!   1  move z      i8   the same
//!   2  heading     u16  little endian, 65,536 to a full turn
//!   4  ability     u8   0 none, 1..=11 what to cast at the target; may be repeated: the world
//!                       keeps the cool-down
//!   5  buttons     u8   bit 0 attack, 1 run, 2 sneak, 3 gather; other bits must be zero
//! ```
//!
//! All that is asked for once is a [`Wish`], a packed value (`throng_pack`): so wishes are granted in the order in which
//! they were sent.
//!
//! Cost: some 10 ns a message; 2,000 clients at 20 Hz are 0.4 ms a second.

use std::f32::consts::TAU;

use speech::{Line, Name, TextFault};
use throng::prelude::*;
use throng_pack::{List, Pack};
use throng_replication::{NetId, Replicate};

use crate::{
    components::{Gesture, NAME_BYTES_MAX},
    land::{Cell, Growth, Piece, PieceKind, Sector, cells::SECTOR_CELLS, ground::DEPTH_MAX},
};

/// Longest text a client may say, in bytes of UTF-8.
pub const SAY_BYTES_MAX: usize = 120;

const BUTTON_ATTACK: u8 = 1 << 0;
const BUTTON_RUN: u8 = 1 << 1;
const BUTTON_SNEAK: u8 = 1 << 2;
const BUTTON_GATHER: u8 = 1 << 3;
const BUTTONS_KNOWN: u8 = BUTTON_ATTACK | BUTTON_RUN | BUTTON_SNEAK | BUTTON_GATHER;
const MOVE_FULL: i8 = 127;

/// What a player, or an NPC, can cast.
#[derive(Replicate, Pack, Debug, Clone, Copy, PartialEq, Eq, Default)]
#[pack(name = "frontier.ability")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pack)]
#[pack(name = "frontier.input")]
pub struct Input {
    #[pack(min = -MOVE_FULL)]
    move_x: i8,
    #[pack(min = -MOVE_FULL)]
    move_z: i8,
    #[pack(fixed)]
    heading: u16,
    ability: Ability,
    #[pack(max = BUTTONS_KNOWN)]
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

/// What a player asks for once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.wish")]
pub enum Wish {
    /// To everybody in earshot.
    Say(Line<SAY_BYTES_MAX>),
    /// What the player is to be called.
    Name(Name<NAME_BYTES_MAX>),
    /// Whom attacks and spells are meant for.
    Target(Option<NetId>),
    /// Into the party of this player, who must be near.
    Join(NetId),
    /// Out of the party.
    Leave,
    /// Opens a door, or takes what is carried to a banker. Both must be near.
    Use(NetId),
    Emote(Greeting),
}

impl Wish {
    pub fn say(words: &str) -> Result<Self, TextFault> {
        Line::new(words).map(Self::Say)
    }

    pub fn call_me(name: &str) -> Result<Self, TextFault> {
        Name::new(name).map(Self::Name)
    }
}

/// What a player wants done to the land, once. Its cell must be near.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.work")]
pub enum Work {
    /// The plot that the cell lies in is to be its own, if it is nobody's. One at a time.
    Claim(Cell),
    /// Its plot is to be nobody's again.
    Abandon,
    /// A piece of a house on its plot, for one of what it carries.
    Build(Site),
    /// Hits a piece of a house, whoever's it is.
    Batter(Cell),
    /// Fells a tree, and carries what it gives.
    Harvest(Cell),
    /// Clears a boulder away, or digs deeper.
    Dig(Cell),
}

/// What is to stand where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.site")]
pub struct Site {
    pub cell: Cell,
    pub kind: PieceKind,
}

/// Which land it is: what nobody has touched follows from it ([`Cell::untouched`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.realm")]
pub struct Realm {
    #[pack(fixed)]
    pub seed: u64,
}

impl ClientMessage for Realm {}

/// What was changed in a sector that has come near. Of a sector in which nothing was, nothing is told; each change from
/// then on is a [`CellChanged`](crate::events::CellChanged), until the sector is none of those around the player's.
#[derive(Debug, Clone, PartialEq, Eq, Pack)]
#[pack(name = "frontier.land_seen")]
pub struct LandSeen {
    pub sector: Sector,
    pub cells: List<CellSeen, SECTOR_CELLS>,
}

impl ClientMessage for LandSeen {}

/// A changed cell, by its place in the sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.cell_seen")]
pub struct CellSeen {
    #[pack(max = (SECTOR_CELLS - 1) as u16)]
    pub index: u16,
    pub growth: Growth,
    #[pack(max = DEPTH_MAX)]
    pub depth: u8,
    pub piece: Option<Piece>,
    pub whose: Whose,
}

/// Whose a plot is, in its corner. Nobody is told who the others are.
#[derive(Replicate, Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.whose")]
pub enum Whose {
    Nobodys,
    Own,
    Others,
}

/// A gesture that a player makes when it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pack)]
#[pack(name = "frontier.greeting")]
pub enum Greeting {
    Wave,
    Cheer,
    Shout,
    Bow,
}

impl Greeting {
    pub const ALL: [Self; 4] = [Self::Wave, Self::Cheer, Self::Shout, Self::Bow];

    pub const fn gesture(self) -> Gesture {
        match self {
            Self::Wave => Gesture::Wave,
            Self::Cheer => Gesture::Cheer,
            Self::Shout => Gesture::Shout,
            Self::Bow => Gesture::Bow,
        }
    }
}

fn finite_or_zero(value: f32) -> f32 {
    if value.is_finite() { value } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use throng_pack::{PackError, pack_body, unpack_body};
    use throng_replication::{ReplicateBits, SLOTS_MAX};
    use throng_simulator::mutation::mutations;

    use super::*;

    const SOMEBODY: NetId = NetId { slot: 4_321, generation: 7 };

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
        let runs = Input::new([0.6, -0.8], 3.0).attacking(true).running(true).casting(Ability::Recall);
        let back = input(&packed(&runs)).unwrap();
        assert_eq!((back, Input::BYTES_MAX), (runs, 6));
        assert!((back.heading() - 3.0).abs() < 0.001);
        assert!((back.direction()[0] - 0.6).abs() < 0.01);
        assert_eq!((back.attacks(), back.runs(), back.sneaks(), back.gathers()), (true, true, false, false));
        assert!(!back.attacking(false).attacks());
    }

    #[test]
    fn r12_poisoned_numbers_never_leave_the_encoder() {
        for poison in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -0.0, 1e-40] {
            let back = input(&packed(&Input::new([poison, poison], poison))).unwrap();
            assert!(back.direction()[0].hypot(back.direction()[1]) <= 1.0 + 1e-6);
            assert!(back.heading().is_finite());
        }
    }

    #[test]
    fn every_ability_has_a_code() {
        for (index, ability) in Ability::ALL.into_iter().enumerate() {
            assert_eq!(ability.to_code() as usize, index + 1);
            assert_eq!(input(&[0, 0, 0, 0, index as u8 + 1, 0]).unwrap().ability(), ability);
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
        check(&[0, 0, 0, 0, 12, 0], "");
        check(&[0, 0, 0, 0, 255, 0], "");
        check(&[0, 0, 0, 0, 0, 0x10], "buttons");
        let check = |bytes: &[u8]| assert!(unpack_body::<Wish>(bytes).is_err(), "{bytes:?}");
        check(&[]);
        check(&[7]);
        check(&[0]);
        check(&[0, 0]);
        check(&[2]);
        check(&[2, 2]);
        check(&[2, 1, 1]);
        check(&[3, 0xff, 0xff, 0xff, 0xff, 0]);
        check(&[4, 0]);
        check(&[5]);
        check(&[6, 4]);
        let beyond = NetId { slot: SLOTS_MAX, generation: 0 };
        assert!(pack_body(&Wish::Use(beyond), &mut Vec::new()).is_err());
    }

    fn wishes() -> Vec<Wish> {
        let mut wishes = vec![
            Wish::say("zwölf Häuser am Fluß 🏙").unwrap(),
            Wish::call_me("Faye").unwrap(),
            Wish::Target(None),
            Wish::Target(Some(SOMEBODY)),
            Wish::Join(SOMEBODY),
            Wish::Leave,
            Wish::Use(SOMEBODY),
        ];
        wishes.extend(Greeting::ALL.map(Wish::Emote));
        wishes
    }

    #[test]
    fn wishes_survive_the_wire() {
        for wish in wishes() {
            assert_eq!(unpack_body(&packed(&wish)), Ok(wish));
        }
    }

    /// Promise: no bytes whatever make a decoder panic, and what it accepts is in range.
    #[test]
    fn a_hundred_thousand_mutated_messages_never_panic() {
        let mut messages: Vec<Vec<u8>> = wishes().iter().map(packed).collect();
        let cell = Cell::at([100.0, -900.0]);
        let site = Site { cell, kind: PieceKind::Wall };
        messages
            .extend([Work::Claim(cell), Work::Abandon, Work::Build(site), Work::Dig(cell)].map(|work| packed(&work)));
        messages.push(packed(&Input::new([0.5, 0.5], 1.0).attacking(true).casting(Ability::Bolt)));
        let mut accepted = 0;
        for bytes in mutations(&messages, 100_000, 7) {
            if let Ok(input) = input(&bytes) {
                let [x, z] = input.direction();
                assert!(x.hypot(z) <= 1.0 + 1e-6);
                accepted += 1;
            }
            if let Ok(work) = unpack_body::<Work>(&bytes) {
                assert_eq!(packed(&work), bytes, "there is one spelling of everything");
                accepted += 1;
            }
            if let Ok(wish) = unpack_body::<Wish>(&bytes) {
                assert_eq!(packed(&wish), bytes, "there is one spelling of everything");
                accepted += 1;
            }
        }
        assert!(accepted > 1_000, "the mutations reach behind the first check: {accepted}");
    }
}
