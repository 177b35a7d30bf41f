//! Wishes: what players have asked for in messages this tick, until [`crate::talk`] grants it.
//!
//! Messages are copied. At most [`WISHES_EACH_MAX`] of one player and [`WISHES_MAX`] and [`WORDS_BYTES_MAX`] of all are
//! taken in a tick; the caller counts what is refused. Allocates nothing once its buffers have grown.

use bevy_ecs::resource::Resource;
use throng_replication::NetId;

use crate::{components::Gesture, protocol::ClientMessage};

/// Wishes of one player in one tick. Too low → a client on a bad network, whose messages come in a lump, loses some;
/// too high → a few clients take the room of all others.
pub const WISHES_EACH_MAX: u8 = 8;
/// Wishes of all players in one tick: all that 2,048 may have.
pub const WISHES_MAX: usize = 2_048 * WISHES_EACH_MAX as usize;
/// Bytes of text of one tick.
pub const WORDS_BYTES_MAX: usize = 1 << 20;

/// What a player asks for; the words are beside it.
#[derive(Debug, Clone, Copy)]
pub enum Wish {
    Say,
    Name,
    Target(Option<NetId>),
    Join(NetId),
    Leave,
    Use(NetId),
    Emote(Gesture),
}

/// What was asked for this tick, in order.
#[derive(Resource, Default)]
pub struct Wishes {
    words: String,
    wishes: Vec<(u32, Wish, usize)>,
    /// How many of them each actor has.
    each: Vec<u8>,
}

impl Wishes {
    /// Notes what a player asked for; false if there is no room for more in this tick, or for more of this player.
    pub fn hear(&mut self, actor: u32, message: &ClientMessage<'_>) -> bool {
        let (wish, words) = match *message {
            ClientMessage::Say(words) => (Wish::Say, words),
            ClientMessage::Name(words) => (Wish::Name, words),
            ClientMessage::Target(target) => (Wish::Target(target), ""),
            ClientMessage::Join(other) => (Wish::Join(other), ""),
            ClientMessage::Leave => (Wish::Leave, ""),
            ClientMessage::Use(thing) => (Wish::Use(thing), ""),
            ClientMessage::Emote(gesture) => (Wish::Emote(gesture), ""),
        };
        if self.each.len() <= actor as usize {
            self.each.resize(actor as usize + 1, 0);
        }
        let each = &mut self.each[actor as usize];
        if *each >= WISHES_EACH_MAX
            || self.wishes.len() >= WISHES_MAX
            || self.words.len() + words.len() > WORDS_BYTES_MAX
        {
            return false;
        }
        *each += 1;
        self.words.push_str(words);
        self.wishes.push((actor, wish, self.words.len()));
        true
    }

    pub fn is_empty(&self) -> bool {
        self.wishes.is_empty()
    }

    /// Calls `heed` with each wish in order, its actor and its words, and empties the list.
    pub fn drain(&mut self, mut heed: impl FnMut(u32, Wish, &str)) {
        let mut begin = 0;
        for (actor, wish, end) in self.wishes.drain(..) {
            let words = &self.words[begin..end];
            begin = end;
            self.each[actor as usize] = 0;
            heed(actor, wish, words);
        }
        self.words.clear();
    }
}
