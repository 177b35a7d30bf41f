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
//! # perceive();
//! # blur();
//! ```
//!
//! A scope costs about what its two readings of the clock cost; switched off, one load and a branch; without the
//! feature `record`, nothing. Siblings that follow each other share a reading: [`Phases`].

use crate::is_recording;
use crate::site::Site;
use crate::thread;

/// Records the rest of the block as a scope of this name.
///
/// Names are dotted, `subsystem.part`, and the same as in budgets, metrics and logs. Options: `budget_us = 500` for
/// what one scope may take, `category = Category::NETWORK` where the heading does not follow from the name.
#[macro_export]
macro_rules! scope {
    ($($arguments:tt)+) => {
        let _scope = $crate::Scope::begin($crate::site!($($arguments)+));
    };
}

/// The site of this place in the code, as `scope!` would make it.
#[macro_export]
macro_rules! site {
    ($name:expr $(, budget_us = $budget_us:expr)? $(, category = $category:expr)? $(,)?) => {{
        static SITE: $crate::Site =
            $crate::Site::new($name, file!(), line!())$(.budget_us($budget_us))?$(.category($category))?;
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
#[must_use = "the last phase ends when this is dropped"]
pub struct Phases {
    scope: Scope,
}

impl Phases {
    #[inline(always)]
    pub fn begin(site: &'static Site) -> Phases {
        Phases { scope: Scope::begin(site) }
    }

    /// Ends the phase that is open and begins this one.
    #[cfg(feature = "record")]
    #[inline(always)]
    pub fn next(&mut self, site: &'static Site) {
        self.scope.begun = match self.scope.begun {
            Some(ended) => thread::end_and_begin(ended, site),
            None if is_recording() => thread::begin(site),
            None => None,
        };
    }

    #[cfg(not(feature = "record"))]
    #[inline(always)]
    pub fn next(&mut self, _site: &'static Site) {}
}
