//! What strangers and thieves may try at the door, and what must come of it.

mod crowds;
mod line;
mod mutations;
mod nonces;
mod scene;
mod stolen_tokens;
