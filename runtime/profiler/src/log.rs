//! Log: lines by category, free of charge where a category is off.
//!
//! ```
//! use throng_profiler::{log_category, log_debug, log_info};
//!
//! log_category!(CLIENTS = "server.clients");
//!
//! let (client, address) = (7, "203.0.113.7:40000");
//! log_info!(CLIENTS, client, "client came in");
//! log_debug!(CLIENTS, client, from = %address, "token opened");
//! ```
//!
//! A category has the dotted name of its subsystem, and a level that can be changed while the server runs
//! ([`set_levels`]). It is asked before anything else: a call that is off costs one load and a branch, and none of its
//! arguments is evaluated. What passes is an event of `tracing` with the category as its target, for whatever
//! subscriber the program has.
//!
//! Two things hold for every line, because strangers cause some of them. **The message is a literal**, never formatted:
//! values are fields, so nobody's text can pass for ours, and a capture without free text keeps the message and drops
//! the texts. **A place in the code writes at most [`LINES_PER_S`] lines/s**; what it leaves out is counted and told by
//! its next line, in the field `suppressed`. Only [`log_every!`](crate::log_every!) leaves nothing out.
//!
//! Any thread. Never allocates by itself, but for the first line of a category.

mod call_site;
mod level;
mod lines;

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

pub use call_site::{BURST_LINES, CallSite, LINES_PER_S};
pub use level::{Level, UnknownLevel, levels_from_text};
pub use lines::{LINE_BYTES_MAX, LINES_MAX, Line, Lines, lines_between, lines_missed};

#[doc(hidden)]
pub use tracing;

/// Stands for every category in lists of levels.
pub const ALL: &str = "all";

/// The level of a category that nobody spoke of.
pub const DEFAULT_LEVEL: Level = Level::Info;

/// The name of every event that these macros make; others come from libraries.
#[doc(hidden)]
pub const EVENT_NAME: &str = "throng";

/// A heading that lines are switched on and off by; made by [`log_category!`](crate::log_category!).
#[derive(Debug)]
pub struct LogCategory {
    name: &'static str,
    /// The highest level that is written, or `NOT_ASKED_YET`. Written under the registry's lock, read by every call; a
    /// line more or less around a change does no harm, so relaxed order is enough.
    level: AtomicU8,
}

/// Higher than every level, so that the first call comes to the registry without a test of its own.
const NOT_ASKED_YET: u8 = u8::MAX;

impl LogCategory {
    pub const fn new(name: &'static str) -> LogCategory {
        LogCategory { name, level: AtomicU8::new(NOT_ASKED_YET) }
    }

    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether lines of this level are written.
    #[inline(always)]
    pub fn allows(&'static self, level: Level) -> bool {
        let highest = self.level.load(Ordering::Relaxed);
        level as u8 <= highest && (highest != NOT_ASKED_YET || self.register() >= level)
    }

    #[cold]
    fn register(&'static self) -> Level {
        let mut registry = registry();
        let level = registry.level_of(self.name);
        if self.level.swap(level as u8, Ordering::Relaxed) == NOT_ASKED_YET {
            registry.categories.push(self);
        }
        level
    }
}

/// All categories that were ever asked, and what was said about levels.
struct Registry {
    categories: Vec<&'static LogCategory>,
    base: Vec<(String, Level)>,
    rules: Vec<(String, Level)>,
}

impl Registry {
    /// What was said about the longest part of the name that anything was said about; the rules come before the base.
    fn level_of(&self, category: &str) -> Level {
        let said = self.base.iter().chain(&self.rules);
        let nearest = said.filter(|(name, _)| covers(name, category)).max_by_key(|(name, _)| (name != ALL, name.len()));
        nearest.map_or(DEFAULT_LEVEL, |(_, level)| *level)
    }

    fn apply(&self) {
        for category in &self.categories {
            category.level.store(self.level_of(category.name) as u8, Ordering::Relaxed);
        }
    }
}

/// `server` covers `server` and `server.clients`, not `serverless`.
fn covers(name: &str, category: &str) -> bool {
    name == ALL || category.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry { categories: Vec::new(), base: Vec::new(), rules: Vec::new() });

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says what is written from now on, for categories by name or by the first parts of it (`server` covers
/// `server.clients`, [`ALL`] covers everything); the longest name counts. Holds for categories that are first used
/// later, too. Replaces what was said before; categories that are not covered fall back to the base and to
/// [`DEFAULT_LEVEL`].
pub fn set_levels(levels: &[(String, Level)]) {
    let mut registry = registry();
    registry.rules = levels.to_vec();
    registry.apply();
}

/// The same for what holds where the rules say nothing: what the program was started with.
pub fn set_base_levels(levels: &[(String, Level)]) {
    let mut registry = registry();
    registry.base = levels.to_vec();
    registry.apply();
}

/// Lets through what a category has let through, and lines of libraries by the same levels, where a library's crate is
/// its category. A `tracing` layer, in place of a filter by level, which would hold back lines that a category allows.
#[derive(Debug, Default, Clone, Copy)]
pub struct CategoryFilter;

impl<S: Subscriber> Layer<S> for CategoryFilter {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        // Ours are asked before `tracing` hears of them; libraries' levels may change.
        if is_ours(metadata) { Interest::always() } else { Interest::sometimes() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        let library = metadata.target().split("::").next().unwrap_or_default();
        is_ours(metadata) || registry().level_of(library) >= Level::from(*metadata.level())
    }
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.name() == EVENT_NAME
}

/// Keeps the writing of a line out of the function that it stands in, which stays as small as without it.
#[doc(hidden)]
#[cold]
#[inline(never)]
pub fn aside(write: impl FnOnce()) {
    write();
}

/// Whether a message would have been a format, where values were meant to be written into it.
#[doc(hidden)]
pub const fn has_braces(message: &str) -> bool {
    let bytes = message.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == b'{' || bytes[at] == b'}' {
            return true;
        }
        at += 1;
    }
    false
}

/// Makes a [`LogCategory`]: `log_category!(pub CLIENTS = "server.clients");`. Several of the same name are one to
/// the operator.
#[macro_export]
macro_rules! log_category {
    ($(#[$meta:meta])* $visibility:vis $NAME:ident = $name:expr $(;)?) => {
        $(#[$meta])*
        $visibility static $NAME: $crate::log::LogCategory = $crate::log::LogCategory::new($name);
    };
}

/// Something is broken and somebody must look: `log_error!(CATEGORY, field = value, %shown, ?debugged, "message")`.
#[macro_export]
macro_rules! log_error {
    ($category:path, $($rest:tt)+) => { $crate::__log!(Error, ERROR, $category, [] $($rest)+) };
}

/// Something is not as it should be, and the server goes on; arguments as for [`log_error!`].
#[macro_export]
macro_rules! log_warn {
    ($category:path, $($rest:tt)+) => { $crate::__log!(Warn, WARN, $category, [] $($rest)+) };
}

/// What an operator wants to know on a good day; arguments as for [`log_error!`].
#[macro_export]
macro_rules! log_info {
    ($category:path, $($rest:tt)+) => { $crate::__log!(Info, INFO, $category, [] $($rest)+) };
}

/// As [`log_info!`], but no line is left out: for what must be complete, such as an audit, and what strangers cannot cause.
#[macro_export]
macro_rules! log_every {
    ($category:path, $($rest:tt)+) => { $crate::__log_every!($category, [] $($rest)+) };
}

/// What helps to find a fault; off unless asked for. Arguments as for [`log_error!`].
#[macro_export]
macro_rules! log_debug {
    ($category:path, $($rest:tt)+) => { $crate::__log!(Debug, DEBUG, $category, [] $($rest)+) };
}

/// Every step of something; off unless asked for. Arguments as for [`log_error!`].
#[macro_export]
macro_rules! log_trace {
    ($category:path, $($rest:tt)+) => { $crate::__log!(Trace, TRACE, $category, [] $($rest)+) };
}

/// The last argument is the message; what stands before it are fields in the syntax of `tracing`.
#[doc(hidden)]
#[macro_export]
macro_rules! __log {
    ($level:ident, $tracing_level:ident, $category:path, [$($fields:tt)*] $message:tt $(,)?) => {
        if $category.allows($crate::log::Level::$level) {
            const { assert!(!$crate::log::has_braces($message), "a message is not a format: write values as fields") };
            static CALL_SITE: $crate::log::CallSite = $crate::log::CallSite::new();
            $crate::log::aside(|| {
                if let Some(pass) = CALL_SITE.pass() {
                    $crate::log::tracing::event!(
                        name: $crate::log::EVENT_NAME,
                        target: $category.name(),
                        $crate::log::tracing::Level::$tracing_level,
                        message = $message,
                        suppressed = pass.suppressed(),
                        $($fields)*
                    );
                }
            });
        }
    };
    ($level:ident, $tracing_level:ident, $category:path, [$($fields:tt)*] $next:tt $($rest:tt)+) => {
        $crate::__log!($level, $tracing_level, $category, [$($fields)* $next] $($rest)+)
    };
}

/// The same without a limit of lines.
#[doc(hidden)]
#[macro_export]
macro_rules! __log_every {
    ($category:path, [$($fields:tt)*] $message:tt $(,)?) => {
        if $category.allows($crate::log::Level::Info) {
            const { assert!(!$crate::log::has_braces($message), "a message is not a format: write values as fields") };
            $crate::log::aside(|| {
                $crate::log::tracing::event!(
                    name: $crate::log::EVENT_NAME,
                    target: $category.name(),
                    $crate::log::tracing::Level::INFO,
                    message = $message,
                    $($fields)*
                );
            });
        }
    };
    ($category:path, [$($fields:tt)*] $next:tt $($rest:tt)+) => {
        $crate::__log_every!($category, [$($fields)* $next] $($rest)+)
    };
}

#[cfg(test)]
mod tests;
