//! Other profilers' scopes, each as its own documents say, and each told to drop what it collects.

use std::thread::sleep;
use std::time::Duration;

use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};
use fastrace::prelude::{LocalSpan, Span};
use tracing_subscriber::util::SubscriberInitExt;

use crate::measure::{CALLS, Outcome, Plan, compare, each, nothing, work};
use crate::tracy_drain;

#[inline(always)]
fn tracy_zone<const ROUNDS: u32>() -> impl FnMut(u64) -> u64 {
    each(|hash| {
        let _zone = tracy_client::span!("bench.scope");
        work::<ROUNDS>(hash)
    })
}

/// Tracy's client that waits for somebody to connect.
pub(crate) fn tracy_idle<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    let _client = tracy_client::Client::start();
    compare(plan, CALLS, tracy_zone::<ROUNDS>(), nothing::<ROUNDS>(), || {})
}

/// The same with somebody connected. What it costs the thread alone: Tracy's own thread, which compresses and sends,
/// has a core of its own and gets 300 µs after every batch, or the queue would grow without end.
pub(crate) fn tracy_connected<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    // Stays until the process ends.
    let _client = tracy_client::Client::start();
    if !tracy_client::Client::is_connected() {
        tracy_drain::connect().expect("the client listens on the port that the parent has chosen");
    }
    compare(plan, CALLS, tracy_zone::<ROUNDS>(), nothing::<ROUNDS>(), || sleep(Duration::from_micros(300)))
}

/// A batch in a frame's scope, which is what puffin is made for: it works on the thread's data when the outermost scope
/// ends.
#[inline(always)]
fn puffin_scopes<const ROUNDS: u32>() -> impl FnMut(u64) -> u64 {
    let mut batch = each(|hash| {
        puffin::profile_scope!("bench.scope");
        work::<ROUNDS>(hash)
    });
    move |hash| {
        puffin::profile_scope!("bench.frame");
        batch(hash)
    }
}

pub(crate) fn puffin<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    puffin::set_scopes_on(true);
    compare(plan, CALLS, puffin_scopes::<ROUNDS>(), nothing::<ROUNDS>(), || puffin::GlobalProfiler::lock().new_frame())
}

pub(crate) fn puffin_off<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    puffin::set_scopes_on(false);
    compare(plan, CALLS, puffin_scopes::<ROUNDS>(), nothing::<ROUNDS>(), || {})
}

#[inline(always)]
fn fastrace_spans<const ROUNDS: u32>() -> impl FnMut(u64) -> u64 {
    each(|hash| {
        let _span = LocalSpan::enter_with_local_parent("bench.scope");
        work::<ROUNDS>(hash)
    })
}

struct Nowhere;

impl Reporter for Nowhere {
    fn report(&mut self, _spans: Vec<SpanRecord>) {}
}

/// A batch under a root span, whose end hands the spans over; the reporter drops them.
pub(crate) fn fastrace<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    fastrace::set_reporter(Nowhere, Config::default());
    let mut batch = fastrace_spans::<ROUNDS>();
    let with = |hash| {
        let root = Span::root("bench.frame", SpanContext::random());
        let _parent = root.set_local_parent();
        batch(hash)
    };
    compare(plan, CALLS, with, nothing::<ROUNDS>(), || {})
}

/// No root span: nothing is recorded.
pub(crate) fn fastrace_off<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    fastrace::set_reporter(Nowhere, Config::default());
    compare(plan, CALLS, fastrace_spans::<ROUNDS>(), nothing::<ROUNDS>(), || {})
}

#[inline(always)]
fn tracing_spans<const ROUNDS: u32>() -> impl FnMut(u64) -> u64 {
    each(|hash| {
        let _span = tracing::info_span!("bench.scope").entered();
        work::<ROUNDS>(hash)
    })
}

/// Without a subscriber.
pub(crate) fn tracing_off<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    compare(plan, CALLS, tracing_spans::<ROUNDS>(), nothing::<ROUNDS>(), || {})
}

/// With the registry alone, which keeps the open spans and no times.
pub(crate) fn tracing_registry<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    // Already set when the second column is measured.
    let _ = tracing_subscriber::registry().try_init();
    compare(plan, CALLS, tracing_spans::<ROUNDS>(), nothing::<ROUNDS>(), || {})
}

/// An event below the level that the subscriber wants.
pub(crate) fn tracing_log_off<const ROUNDS: u32>(plan: &Plan) -> Outcome {
    let _ = tracing_subscriber::fmt().with_max_level(tracing::Level::INFO).with_writer(std::io::sink).try_init();
    let with = each(|hash| {
        tracing::debug!(hash, rounds = ROUNDS, "a call");
        work::<ROUNDS>(hash)
    });
    compare(plan, CALLS, with, nothing::<ROUNDS>(), || {})
}
