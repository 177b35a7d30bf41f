//! The games that these tests play: what a client hears of them, what their bots do, and an input that wants nothing.

use std::sync::{Arc, OnceLock};

use frontier::FrontierBot;
use precinct::PrecinctBot;
use throng_bots::Behaviour;
use throng_pack::{Pack, pack_body};
use throng_replication::{SEEN_BYTES, Schema};

#[derive(Debug, Clone, Copy)]
pub enum Game {
    Precinct,
    Frontier,
}

/// Makes the bot of a number.
pub type MakeBot = Box<dyn Fn(usize) -> Box<dyn Behaviour> + Send + Sync>;

impl Game {
    pub fn schema(self) -> Arc<Schema> {
        match self {
            Self::Precinct => precinct::schema(),
            Self::Frontier => frontier::schema(),
        }
    }

    pub fn bots(self) -> MakeBot {
        match self {
            Self::Precinct => {
                static GUIDE: OnceLock<Arc<precinct::bot::BotGuide>> = OnceLock::new();
                let guide = GUIDE.get_or_init(precinct::bot::BotGuide::load).clone();
                Box::new(move |_bot| Box::new(PrecinctBot::new(guide.clone())))
            }
            Self::Frontier => {
                static GUIDE: OnceLock<Arc<frontier::bot::BotGuide>> = OnceLock::new();
                let guide = GUIDE.get_or_init(|| frontier::bot::BotGuide::load(true)).clone();
                Box::new(move |_bot| Box::new(FrontierBot::new(guide.clone())))
            }
        }
    }

    /// An input that asks for nothing: its kind, which is the only one of either game, what was seen, and what it packs.
    pub fn idle_input(self) -> Vec<u8> {
        match self {
            Self::Precinct => said(&precinct::protocol::Input::new([0.0, 0.0], 0.0, 0.0, false, false)),
            Self::Frontier => said(&frontier::protocol::Input::new([0.0, 0.0], 0.0)),
        }
    }
}

fn said(input: &impl Pack) -> Vec<u8> {
    let mut bytes = vec![0; 1 + SEEN_BYTES];
    pack_body(input, &mut bytes).expect("it is sound");
    bytes
}
