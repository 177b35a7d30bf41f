//! Sayings: what was said in this tick, until it is delivered.
//!
//! Texts are copied into a buffer that is kept: nothing is allocated once it has grown.

use bevy_ecs::entity::Entity;

use crate::protocol::ClientMessage;

/// What was said this tick, in order.
#[derive(Default)]
pub struct Sayings {
    words: String,
    sayings: Vec<Saying>,
}

struct Saying {
    speaker: Entity,
    is_name: bool,
    end: usize,
}

impl Sayings {
    /// Notes what a player said; it is acted on later in the tick.
    pub fn hear(&mut self, speaker: Entity, message: &ClientMessage<'_>) {
        let (is_name, words) = match message {
            ClientMessage::Say(words) => (false, words),
            ClientMessage::Name(words) => (true, words),
        };
        self.words.push_str(words);
        self.sayings.push(Saying { speaker, is_name, end: self.words.len() });
    }

    pub fn is_empty(&self) -> bool {
        self.sayings.is_empty()
    }

    /// Hands over each in order, with its speaker, and forgets it.
    pub fn drain(&mut self, mut heed: impl FnMut(Entity, ClientMessage<'_>)) {
        let mut begin = 0;
        for Saying { speaker, is_name, end } in self.sayings.drain(..) {
            let words = &self.words[begin..end];
            begin = end;
            heed(speaker, if is_name { ClientMessage::Name(words) } else { ClientMessage::Say(words) });
        }
        self.words.clear();
    }
}
