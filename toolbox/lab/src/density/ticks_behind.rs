//! Ticks behind real time: what a server of ours says of ticks that it left out, or ran in slow motion.
//!
//! A server whose worlds have too little time slows them (`docs/overload.md`): their ticks come less often, and each is as
//! short as ever. So frame times of an overloaded server look better than those of one that is full, and are no verdict by
//! themselves. Other servers' pages have no such counters, and are judged by frames alone.

use super::exposition::sum_of;

/// Ticks of one server, since its start or within a window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct TicksBehind {
    pub done: f64,
    pub missed: f64,
    pub slowed: f64,
}

impl TicksBehind {
    /// What a page of metrics says; `None` if it is no server of ours.
    pub fn find(page: &str) -> Option<Self> {
        let of = |name: &str| sum_of(page, &format!("throng_server_{name}_total"));
        Some(Self { done: of("ticks")?, missed: of("ticks_missed")?, slowed: of("ticks_slowed")? })
    }

    /// Those between an earlier reading and this one.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            done: self.done - earlier.done,
            missed: self.missed - earlier.missed,
            slowed: self.slowed - earlier.slowed,
        }
    }

    /// Share of those that were due which were not run at their time; 0 where none was due.
    pub fn share(&self) -> f64 {
        let due = self.done + self.missed;
        if due > 0.0 { (self.missed + self.slowed) / due } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_ours_tells_and_others_do_not() {
        let page = "throng_server_ticks_total 900\nthrong_server_ticks_missed_total 100\n\
                    throng_server_ticks_slowed_total 50\n";
        let first = TicksBehind::find(page).unwrap();
        assert!((first.share() - 0.15).abs() < 1e-12);
        assert_eq!(TicksBehind::find("frame_ms_count 7\nthrong_server_ticks_total 9\n"), None);
        let later = TicksBehind { done: 1_900.0, ..first };
        assert_eq!(later.since(&first).share(), 0.0, "what was before the window is not its affair");
        assert_eq!(first.since(&first).share(), 0.0);
    }
}
