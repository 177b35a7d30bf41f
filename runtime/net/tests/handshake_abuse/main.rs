//! What strangers and thieves may try in the handshake, and what must come of it.

mod crowds;
mod junk;
mod line;
mod mutations;
mod nonces;
mod scene;
mod silence;
mod stolen_tokens;

#[global_allocator]
static ALLOCATOR: throng_platform::allocator::CountingAllocator = throng_platform::allocator::CountingAllocator;
