//! The frame's step: how many workers leave their cores to long tasks, and whether newcomers wait.

use throng_profiler::{log_category, log_info, log_warn};

use super::Pace;
use crate::{overload::Level, server::Server};

log_category!(LONG_TASKS = "server.long_tasks");

impl Server {
    /// Holds what waits against the marks. Once a frame.
    pub(crate) fn pace_long_tasks(&mut self) {
        let waited = self.long_tasks.admission_waits();
        let yields = self.overload.now().level > Level::Normal;
        let Pace { mut workers_used, admission_waits } = self.long_tasks.step(self.maker.held_cost(), yields);
        if self.control.published.worlds_stuck() > 0 {
            // The one that is used may be the one that is stuck.
            workers_used = self.pool.worker_count();
        }
        if std::mem::replace(&mut self.long_tasks.workers_used, workers_used) != workers_used {
            self.pool.use_workers(workers_used);
            self.counts.long_tasks.levels_changed += 1;
        }
        if admission_waits != waited {
            self.close_line_if_needed();
            self.tell_of_admission(admission_waits);
        }
        self.control.published.set_long_tasks(self.long_tasks.level(), admission_waits);
        self.maker.hold(admission_waits);
    }

    /// Nobody is let in from the line while worlds are overloaded, or dropped ones pile up.
    pub(crate) fn close_line_if_needed(&mut self) {
        let is_closed = self.overload.now().admission_is_closed || self.long_tasks.admission_waits();
        self.addresses.close_line(is_closed);
    }

    fn tell_of_admission(&self, waits: bool) {
        let tasks = self.long_tasks.tasks();
        let (freeing_ms, waiting) = (tasks.freeing().as_millis_f64(), tasks.waiting());
        if waits {
            log_warn!(
                LONG_TASKS,
                freeing_ms,
                waiting,
                "worlds end faster than they can be dropped: nobody is let in from the line, and no world is made, until half \
                 of them are"
            );
        } else {
            log_info!(LONG_TASKS, freeing_ms, waiting, "players are let in again: ended worlds have been dropped");
        }
    }
}
