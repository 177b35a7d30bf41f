//! Access: who may ask this port for what.
//!
//! There are two [roles](Role): `observe` reads, `operate` also changes something or writes to disk. A [key](AccessKeys)
//! has a name and a role, and is shown with a request: `Authorization: Bearer KEY`. On a loopback address reading needs
//! none, since whoever is on the host sees what the server does anyway; on any other address all but `/health` needs
//! one. What a request needs is said in one place (`gate`): reading methods `observe`, others `operate`, and a line for
//! the console what its command needs. So a page that is added later is guarded from its first day, and what a browser
//! is to get before it can show a key is named there.
//!
//! ```text
//! request -> bounds -> origin check -> gate: whose key? -> gate: is its role enough? -> page -> audit line
//!                          403          401, 429              401, 403
//! ```
//!
//! Keys are 32 random bytes, so that guessing is hopeless; the [back-off](back_off) keeps those who try from filling the
//! log, and makes a script with a wrong key seen. A server on a loopback address that was given no keys makes one for
//! its own user ([`local_key`]). A key is never written to a log, shown by `Debug` or told in an answer.
//!
//! Everything here runs on the admin thread. Cost: a comparison of 32 bytes with each key, some 50 ns each.

pub(crate) mod audit;
pub(crate) mod back_off;
pub(crate) mod changes;
pub(crate) mod gate;
pub(crate) mod judge;
pub(crate) mod keys;
pub mod local_key;

pub use keys::{ADMIN_KEY_VARIABLE, AccessKey, AccessKeys, KeysError, read_key, secret_of};
pub use throng::console::Role;

/// Who may ask, and by which names; by default addresses and `localhost`, and a key for this process's user.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Names that the port goes by, beside addresses and `localhost`.
    pub names: Vec<String>,
    /// The keys that are taken. `None`: on a loopback address one that the server makes; elsewhere it does not start.
    pub keys: Option<AccessKeys>,
}
