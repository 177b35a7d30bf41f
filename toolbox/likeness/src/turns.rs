//! Turns: two threads that work one at a time, so that whatever the machine does meanwhile it does to both.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Whose turn it is.
#[derive(Default)]
pub(crate) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    whose: usize,
    is_done: [bool; 2],
}

/// One of the two, until it is dropped: also where its thread panics.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    me: usize,
}

impl Turns {
    /// Waits for the first turn of this one [0 or 1].
    pub fn begin(&self, me: usize) -> Turn<'_> {
        self.wait_for(self.lock(), me);
        Turn { turns: self, me }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait_for(&self, state: MutexGuard<'_, State>, me: usize) {
        let waited = self.changed.wait_while(state, |state| state.whose != me);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Turn<'_> {
    /// Lets the other work, until it is our turn again. At once, if the other is done.
    pub fn pass(&self) {
        let mut state = self.turns.lock();
        if !state.is_done[1 - self.me] {
            state.whose = 1 - self.me;
            self.turns.changed.notify_all();
            self.turns.wait_for(state, self.me);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        state.is_done[self.me] = true;
        state.whose = 1 - self.me;
        drop(state);
        self.turns.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_threads_work_in_turns_and_one_goes_on_when_the_other_is_done() {
        let (turns, done) = (Turns::default(), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for (me, steps) in [(0, 2), (1, 4)] {
                let (turns, done) = (&turns, &done);
                scope.spawn(move || {
                    let turn = turns.begin(me);
                    for step in 0..steps {
                        done.lock().unwrap().push((me, step));
                        turn.pass();
                    }
                });
            }
        });
        let done = done.into_inner().unwrap();
        assert_eq!(done, [(0, 0), (1, 0), (0, 1), (1, 1), (1, 2), (1, 3)]);
    }
}
