//! The tick that emits: where events go while game code runs on a thread.
//!
//! A tick borrows the page of its worker and leaves it in memory of its thread, so that a call finds it without being
//! handed anything, as counters of a game do ([`throng_metrics::game`]).

use std::{cell::RefCell, marker::PhantomData};

use crate::{
    event::AnalyticsEvent,
    page::{EmittingTick, Mark, Page},
};

/// What the tick on this thread has emitted.
struct TickEvents {
    is_running: bool,
    page: Option<Box<Page>>,
    tick: EmittingTick,
    /// The page as it was when the tick began.
    mark: Mark,
    /// The record of the tick stands in the page.
    is_told: bool,
}

thread_local! {
    static EVENTS: RefCell<TickEvents> = const {
        RefCell::new(TickEvents {
            is_running: false,
            page: None,
            tick: EmittingTick { world: 0, tick: 0, now_ns: 0 },
            mark: Mark::EMPTY,
            is_told: false,
        })
    };
}

/// From now on this thread's game code emits for the tick that begins, into the worker's page; until `end`, or until the
/// tick panics and this is dropped. A worker without a page belongs to a server without analytics.
#[inline]
pub fn begin_tick(page: &mut Option<Box<Page>>, world: u64, tick: u32, now_ns: u64) -> TickEmitting {
    EVENTS.with_borrow_mut(|events| {
        if page.is_some() {
            events.page = page.take();
        }
        // After a tick that panicked the page is here still.
        if let Some(page) = &events.page {
            events.is_running = true;
            events.mark = page.mark();
            events.is_told = false;
            events.tick = EmittingTick { world, tick, now_ns };
        }
    });
    TickEmitting { of_this_thread: PhantomData }
}

/// A tick that emits. See [`begin_tick`].
#[must_use]
pub struct TickEmitting {
    of_this_thread: PhantomData<*const ()>,
}

impl TickEmitting {
    /// The tick is over, and the worker has its page again.
    #[inline]
    pub fn end(self, page: &mut Option<Box<Page>>) {
        EVENTS.with_borrow_mut(|events| {
            events.is_running = false;
            if events.page.is_some() {
                *page = events.page.take();
            }
        });
    }
}

impl Drop for TickEmitting {
    /// Whatever a tick that panicked has emitted is forgotten, as what it counted is.
    fn drop(&mut self) {
        let _ = EVENTS.try_with(|events| {
            let events = &mut *events.borrow_mut();
            if std::mem::replace(&mut events.is_running, false)
                && let Some(page) = &mut events.page
            {
                page.go_back(events.mark);
            }
        });
    }
}

/// Emits an event from the world whose tick runs on this thread.
#[inline]
pub fn emit<T: AnalyticsEvent>(event: &T) {
    // A thread that ends may have no memory for it any more, and no tick either.
    let _ = EVENTS.try_with(|events| {
        let events = &mut *events.borrow_mut();
        if events.is_running
            && let Some(page) = &mut events.page
        {
            let tick = (!events.is_told).then_some(&events.tick);
            events.is_told |= page.push(event, tick);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::analytics!(Hit = "tick.hit", 1 { damage: u16 });

    fn ordinals(page: &Option<Box<Page>>) -> Vec<(u32, u32)> {
        page.as_ref().unwrap().records().map(|record| (record.tick.tick, record.ordinal)).collect()
    }

    #[test]
    fn events_are_those_of_the_tick_and_none_of_a_tick_that_panicked() {
        let mut page = Some(Box::<Page>::default());
        Hit { damage: 1 }.emit();
        let tick = begin_tick(&mut page, 1, 7, 0);
        Hit { damage: 2 }.emit();
        tick.end(&mut page);
        let panicked = std::panic::catch_unwind(|| {
            let _tick = begin_tick(&mut Some(Box::default()), 1, 8, 0);
            Hit { damage: 3 }.emit();
            panic!("on purpose");
        });
        assert!(panicked.is_err());
        assert_eq!(ordinals(&page), [(7, 0)]);
        let tick = begin_tick(&mut page, 1, 9, 0);
        Hit { damage: 4 }.emit();
        Hit { damage: 4 }.emit();
        tick.end(&mut page);
        Hit { damage: 5 }.emit();
        assert_eq!(ordinals(&page), [(7, 0), (9, 1), (9, 2)]);
    }

    #[test]
    fn a_panicked_ticks_worker_gets_its_page_back_with_the_next_tick() {
        let mut page = Some(Box::<Page>::default());
        let tick = begin_tick(&mut page, 1, 1, 0);
        drop(tick);
        assert!(page.is_none());
        let tick = begin_tick(&mut page, 1, 2, 0);
        Hit { damage: 1 }.emit();
        tick.end(&mut page);
        assert_eq!(ordinals(&page), [(2, 0)]);
    }

    #[test]
    fn a_full_page_drops_whole_events_and_says_where() {
        crate::analytics!(Odd = "tick.odd", 1 { text: &'static str });
        let mut page = Some(Box::<Page>::default());
        let tick = begin_tick(&mut page, 1, 1, 0);
        let long: &'static str = "x".repeat(255).leak();
        (0..300).for_each(|_| Odd { text: long }.emit());
        // Something shorter finds room where the long one did not.
        Odd { text: "" }.emit();
        tick.end(&mut page);
        let (seen, page) = (ordinals(&page), page.unwrap());
        assert_eq!((page.emitted(), page.emitted() - page.dropped()), (301, seen.len() as u32));
        assert!(page.dropped() > 0);
        assert_eq!(seen.last(), Some(&(1, 300)));
    }
}
