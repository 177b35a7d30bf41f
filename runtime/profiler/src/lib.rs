//! The flight recorder: always on, of fixed size, and there when a frame was bad.
//!
//! Every thread notes its scopes, waits and allocations in blocks of its own ([`thread`], `block`). Once a frame the
//! frame's thread gives old blocks back to be written again ([`mod@pool`]), adds up what each subsystem took, and looks
//! at the triggers ([`triggers`]). When one fires, a low-priority thread reads the blocks around that moment and writes
//! a capture file ([`saver`]); nobody waits for it.
//!
//! ```text
//!  scope! --> thread's block --> pool's history ---- pinned and read ----> capture file
//!  allocator, locks, context switches --^                  ^
//!                     frame's end: sums, budgets, triggers -+
//! ```
//!
//! There is one recorder per process, because threads and the allocator are the process's. Without a running
//! [`Recorder`] a scope costs a load and a branch; without the feature `record` it is not compiled at all.

mod block;
mod capture_builder;
mod captures;
mod category;
mod control;
mod cores;
mod counter;
pub mod end_hook;
mod hand_off;
mod kept;
pub mod log;
pub mod memory;
mod memory_growth;
mod overruns;
mod pace;
pub mod pool;
mod record;
mod recorder;
pub mod rules;
mod save_request;
mod saver;
mod scope;
mod settings;
mod shim;
pub mod site;
pub mod switches;
pub mod sync;
pub mod thread;
mod tick_means;
mod triggers;
mod workers;
pub mod world_kind;
pub mod world_scopes;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

pub use category::Category;
pub use control::{RecorderControl, RecorderFigures};
pub use counter::Counter;
pub use kept::KeptCapture;
pub use recorder::{FrameFigures, LateTick, Recorder};
pub use save_request::{SaveError, Saved, StuckTick};
pub use scope::{Phases, Scope};
pub use settings::RecorderSettings;
pub use site::{Site, SiteId};
pub use throng_profiler_macros::scoped;
pub use world_kind::KindNumber;

use pool::{Pool, PoolSettings};

/// Whether scopes are recorded. Written by whoever starts or stops the recorder, read by every scope; a scope more or
/// less on either side does no harm, so relaxed order is enough.
static RECORDING: AtomicBool = AtomicBool::new(false);

static POOL: OnceLock<Pool> = OnceLock::new();

/// Whether scopes are being recorded.
#[inline(always)]
pub fn is_recording() -> bool {
    cfg!(feature = "record") && RECORDING.load(Ordering::Relaxed)
}

/// Begins recording. The first time sets the pool's size for good. For a server, [`Recorder::start`] does this and
/// more.
pub fn start_recording(settings: PoolSettings) {
    POOL.get_or_init(|| Pool::new(settings));
    overruns::prepare();
    RECORDING.store(true, Ordering::Relaxed);
}

/// Switches recording off or on again at run time; what has been recorded stays. Without effect before it was started.
pub fn switch_recording(is_on: bool) {
    RECORDING.store(is_on && POOL.get().is_some(), Ordering::Relaxed);
}

fn pool() -> &'static Pool {
    POOL.get().expect("recording begins after the pool is made")
}
