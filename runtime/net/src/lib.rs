//! The network of the game: netcode 1.02, the channels above it, and the transports that carry both.
//!
//! Four rooms, from the wire upwards:
//!
//! - [`protocol`] turns datagrams into authenticated bytes and back. It is sans-IO: bytes and a `now` come in, bytes go
//!   out. It knows tokens, the server's side of the handshake ([`protocol::ServerHandshake`]), the client's way in
//!   ([`protocol::ClientHandshake`]) and the sealed link that both end up with ([`protocol::SealedLink`]).
//! - [`connection`] sits on one sealed link: acks, loss, reliable and unreliable messages.
//! - [`control`] has what server and client say to each other before the game says anything.
//! - [`transport`] owns the sockets, and moves datagrams in batches.
//!
//! A link is owned by value and belongs to one world at a time, so opening and sealing run on the workers,
//! in parallel, with no lock. Only the handshake is shared: it runs in the serial part of the frame and sees
//! datagrams of strangers alone.
//!
//! The bytes on the wire are drawn in `docs/spec/netcode.md` and `docs/spec/channels.md`.

pub mod connection;
pub mod control;
pub mod protocol;
pub mod transport;
