//! What leaves a server's host by HTTP: analytics events, to whoever receives them; captures, reports and files of events, to
//! an object store.
//!
//! The server knows of none of this. For events it is handed a value that posts ([`throng::analytics::Post`]), and calls it on
//! a thread of low priority. Files are found in their folders by a thread of its own ([`uploader`]). Beyond loopback a receiver is spoken to with TLS, or the operator has written `http://` on purpose;
//! whom a certificate must be from is what the host trusts (`SSL_CERT_FILE`, or the usual place). A proxy is the one that
//! the environment names (`HTTPS_PROXY`, `HTTP_PROXY`, `NO_PROXY`).

mod client;
pub mod folder;
mod receiver;
pub mod store;
pub mod uploader;

pub use client::ClientError;
pub use receiver::{Receiver, ReceiverError, receiver};
