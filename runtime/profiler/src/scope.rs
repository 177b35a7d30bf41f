//! Scopes: named stretches of a thread's time.
//!
//! ```
//! use throng_profiler::{Category, scope};
//!
//! fn perceive() {
//!     scope!("ai.perception");
//!     // ... until the end of the block
//! }
//!
//! fn blur() {
//!     scope!("render.blur", budget_us = 500, category = Category::OTHER);
//! }
//!
//! fn recoil() {
//!     scope!("combat.recoil", budget_ns = 500);
//! }
//! # perceive();
//! # blur();
//! # recoil();
//! ```
//!
//! A scope costs about what its two readings of the clock cost; switched off, one load and a branch; without the
//! feature `record`, nothing. Siblings that follow each other share a reading: [`Phases`]. Where a reading takes 9 ns,
//! a scope is 19 ns and a phase 12; there are processors on which a reading takes 20. So what runs a thousand times a
//! frame wants phases.

use crate::is_recording;
use crate::site::Site;
use crate::thread;

/// Records the rest of the block as a scope of this name.
///
/// Names are dotted, `subsystem.part`, and the same as in budgets, metrics and logs. Options: `budget_us = 500` for
/// what one scope may take, or `budget_ns` for what takes less; after it `fits_rate = true` if that is for worlds of 30 Hz
/// and slower, and less in faster ones ([`Site::fits_rate`]); `category = Category::NETWORK` where the heading does not
/// follow from the name.
#[macro_export]
macro_rules! scope {
    ($($arguments:tt)+) => {
        let _scope = $crate::Scope::begin($crate::site!($($arguments)+));
    };
}

/// The site of this place in the code, as `scope!` would make it.
#[macro_export]
macro_rules! site {
    ($name:expr $(, $option:ident = $value:expr)* $(,)?) => {{
        static SITE: $crate::Site = $crate::Site::new($name, file!(), line!())$(.$option($value))*;
        &SITE
    }};
}

/// An open scope; ends when dropped. Stays in its thread.
#[must_use = "a scope ends when this is dropped"]
pub struct Scope {
    #[cfg(feature = "record")]
    begun: Option<thread::Begun>,
    not_send: std::marker::PhantomData<*const ()>,
}

impl Scope {
    #[cfg(feature = "record")]
    #[inline(always)]
    pub fn begin(site: &'static Site) -> Scope {
        let begun = if is_recording() { thread::begin(site) } else { None };
        Scope { begun, not_send: std::marker::PhantomData }
    }

    #[cfg(not(feature = "record"))]
    #[inline(always)]
    pub fn begin(_site: &'static Site) -> Scope {
        Scope { not_send: std::marker::PhantomData }
    }
}

#[cfg(feature = "record")]
impl Drop for Scope {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(begun) = self.begun {
            thread::end(begun);
        }
    }
}

/// Scopes that follow each other without a gap: the end of one is the beginning of the next, for one reading of the
/// clock.
///
/// ```
/// use throng_profiler::{Phases, site};
///
/// let mut phases = Phases::begin(site!("frame.begin"));
/// // ...
/// phases.next(site!("frame.worlds"));
/// // ... until it is dropped
/// ```
///
/// What is called within a phase may have phases of its own in its place, without a reading at either end:
/// [`Phases::split`], [`Phases::go_on`]. A thread's innermost scope is then another phase when the callee returns.
#[must_use = "the last phase ends when this is dropped"]
pub struct Phases {
    #[cfg(feature = "record")]
    open: Option<thread::OpenPhase>,
    /// The scope that consists of these phases, if they have one to themselves.
    #[cfg(feature = "record")]
    around: Option<thread::Begun>,
    /// The phase that is open at the end is the caller's.
    #[cfg(feature = "record")]
    is_callers: bool,
    not_send: std::marker::PhantomData<*const ()>,
}

#[cfg(feature = "record")]
impl Phases {
    #[inline(always)]
    pub fn begin(site: &'static Site) -> Phases {
        Phases::of(if is_recording() { thread::begin_phase(site) } else { None }, None, false)
    }

    /// A scope that is phases from its begin to its end: each end is one reading for both.
    #[inline(always)]
    pub fn divide(site: &'static Site, first: &'static Site) -> Phases {
        let (around, open) = if is_recording() { thread::begin_divided(site, first) } else { (None, None) };
        Phases::of(open, around, false)
    }

    /// Makes phases of the phase that is open in this thread, of which this site's is the first: what has passed since
    /// the open one's begin is the first one's too. The last one is left to whoever had begun it. For a part that a
    /// phase was begun for, such as a game's system. Without an open phase, as [`Phases::begin`].
    #[inline(always)]
    pub fn split(first: &'static Site) -> Phases {
        let phases = Phases::go_on(first);
        if let Some(open) = phases.open.filter(|_| phases.is_callers) {
            open.rename(first);
        }
        phases
    }

    /// Goes on with the phase that is open in this thread, and leaves the last one to whoever had begun it. Without an
    /// open phase, as [`Phases::begin`].
    #[inline(always)]
    pub fn go_on(otherwise: &'static Site) -> Phases {
        let callers = if is_recording() { thread::open_phase() } else { None };
        match callers {
            Some(open) => Phases::of(Some(open), None, true),
            None => Phases::begin(otherwise),
        }
    }

    /// Ends the phase that is open and begins this one.
    #[inline(always)]
    pub fn next(&mut self, site: &'static Site) {
        match self.open {
            Some(open) => open.next(site),
            None if is_recording() => self.open = thread::begin_phase(site),
            None => {}
        }
    }

    #[inline(always)]
    fn of(open: Option<thread::OpenPhase>, around: Option<thread::Begun>, is_callers: bool) -> Phases {
        Phases { open, around, is_callers, not_send: std::marker::PhantomData }
    }
}

#[cfg(feature = "record")]
impl Drop for Phases {
    #[inline(always)]
    fn drop(&mut self) {
        match (self.around, self.open) {
            (Some(around), last) => thread::end_divided(around, last),
            (None, Some(last)) if !self.is_callers => last.end(),
            (None, _) => {}
        }
    }
}

#[cfg(not(feature = "record"))]
impl Phases {
    #[inline(always)]
    pub fn begin(_site: &'static Site) -> Phases {
        Phases { not_send: std::marker::PhantomData }
    }

    #[inline(always)]
    pub fn divide(_site: &'static Site, first: &'static Site) -> Phases {
        Phases::begin(first)
    }

    #[inline(always)]
    pub fn split(first: &'static Site) -> Phases {
        Phases::begin(first)
    }

    #[inline(always)]
    pub fn go_on(otherwise: &'static Site) -> Phases {
        Phases::begin(otherwise)
    }

    #[inline(always)]
    pub fn next(&mut self, _site: &'static Site) {}
}
