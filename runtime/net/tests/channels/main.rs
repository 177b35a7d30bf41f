//! What the channels above a sealed link promise, tried from outside.
//!
//! | module | promise |
//! | --- | --- |
//! | `delivery` | reliable: once, in order; every packet acked or lost, once; on any path |
//! | `wraps` | the same over 200,000 packets, checked against a model |
//! | `hostile` | whatever a peer with the key sends: bounded memory, no panic |
//! | `silence` | who is heard and acknowledges nothing is let go; who is silent is not |
//! | `steady` | no allocation; small at rest; `room` is exact |
//! | `spec` | `docs/spec/channels.md` shows the bytes as they are |

mod delivery;
mod hostile;
mod pair;
mod silence;
mod spec;
mod steady;
mod wraps;

#[global_allocator]
static ALLOCATOR: throng_platform::allocator::CountingAllocator = throng_platform::allocator::CountingAllocator;
