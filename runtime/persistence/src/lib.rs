//! Persistence: what players own and worlds became is still there after a crash, and nothing is there twice.
//!
//! ```text
//! tick: Writer::submit -- bounded queue --> a thread of low priority -- one transaction, two fsyncs --> Store
//! tick: Writer::take_ack <-- bounded queue -- acknowledgements, in the order of the tickets
//! any other thread: Reads -- one moment of what is committed
//! ```
//!
//! A tick hands in a [`Commit`]: all writes that belong together. It waits for nothing. A thread of its own takes all
//! commits that wait, writes them in one transaction, and acknowledges each when it is on disk. An acknowledged commit
//! survives `kill -9` and power loss, whole; one that is not acknowledged is there whole or not at all; a refused one
//! is not there at all, and no commit that was built on it either ([`refused_keys`]).
//!
//! ```
//! use throng_pack::Pack;
//! use throng_persistence::{Commit, Done, Embedded, Key, Writer, WriterSettings};
//!
//! #[derive(Debug, PartialEq, Pack)]
//! #[pack(name = "example.purse")]
//! struct Purse {
//!     coins: u32,
//! }
//!
//! # let folder = std::env::temp_dir().join(format!("throng-saves-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! let store = Embedded::open(&folder.join("saves.redb"))?;
//! let mut writer = Writer::start(Box::new(store), WriterSettings::default())?;
//!
//! // In a tick: Ada pays Bob. Both sides, or neither.
//! let mut trade = Commit::new();
//! trade.put(Key::player(1), &Purse { coins: 70 })?.put(Key::player(2), &Purse { coins: 130 })?;
//! let ticket = writer.submit(trade)?;
//!
//! // In a later tick; here at the end, which waits for everything.
//! let reads = writer.reads();
//! let acks = writer.finish();
//! assert_eq!((acks[0].ticket, &acks[0].outcome), (ticket, &Ok(Done::Committed)));
//! let bob = reads.get(Key::player(2))?.unwrap();
//! assert_eq!(throng_pack::envelope::read::<Purse>(&bob.value)?, Purse { coins: 130 });
//! # drop(reads);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ## Where to read
//!
//! [`commit`] says what may be asked and answered, [`writer`] how a tick asks, [`store`] what keeps the records and
//! [`embedded`] how the default does; [`lease`] who may write a player or a world, and [`conservation`] how it is shown that nothing
//! was doubled or lost. [`versions`] reads what an older program saved.
//!
//! ## Cost
//!
//! A sketch for 1,000 players of 2 KB who are saved every 10 s: 100 commits and 200 KB a second. With a batch every
//! 50 ms that is 20 transactions a second of 5 commits, 40 fsyncs, and some 4 MB a second of pages of 4 KB, on a thread
//! of low priority. The tick pays for packing the value and an entry in a queue.

pub mod commit;
pub mod conservation;
pub mod disk;
pub mod embedded;
pub mod inspection;
mod judgement;
pub mod key;
pub mod lease;
pub mod overlay;
#[cfg(feature = "postgres")]
pub mod postgres;
mod record;
pub mod refused_keys;
pub mod store;
pub mod store_error;
pub mod versions;
pub mod writer;

pub use commit::{Ack, Commit, Done, Outcome, Refusal, Ticket};
pub use embedded::Embedded;
pub use key::{ItemKind, Key, Kind};
pub use lease::{Lease, LeaseRequest};
pub use store::{Reads, Saved, Store};
pub use store_error::StoreError;
pub use writer::{SaveCounters, Writer, WriterSettings};
