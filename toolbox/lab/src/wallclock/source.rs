//! Where the stacks of running threads come from on this host, and what would make it better.

use std::io;

use serde::Serialize;

/// What the kernel lets this process see of threads while they are on a core.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCore {
    /// Samples of the program and of the kernel working for it.
    #[default]
    KernelToo,
    /// Samples of the program; time inside the kernel is known in sum only.
    ProgramOnly,
    /// No samples: running time is known in sum only. Sleeping threads are seen as ever.
    Nothing,
}

/// How running threads are seen. Sleeping threads are always read from /proc and from memory, without stopping them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Source {
    pub on_core: OnCore,
    /// What is lost and how to get it, if the host refused something.
    pub advice: Option<String>,
    /// Threads for which the memory of a sampling ring was refused.
    pub threads_without_samples: u64,
    #[serde(skip)]
    pub(super) has_opened: bool,
}

impl Source {
    /// Takes the next rung of the ladder after the kernel refused this one.
    pub(super) fn refuse(&mut self, error: &io::Error) {
        let setting = match std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid") {
            Ok(value) => format!("kernel.perf_event_paranoid is {}", value.trim()),
            Err(_) => "this kernel has no perf events".to_owned(),
        };
        let (next, lost, needed) = match self.on_core {
            OnCore::KernelToo => (
                OnCore::ProgramOnly,
                "time on a core inside the kernel is shown in sum, without stacks",
                "sysctl -w kernel.perf_event_paranoid=1",
            ),
            OnCore::ProgramOnly | OnCore::Nothing => (
                OnCore::Nothing,
                "time on a core is shown in sum, without stacks",
                "sysctl -w kernel.perf_event_paranoid=2, in a container also a seccomp profile that allows perf_event_open",
            ),
        };
        self.on_core = next;
        self.advice = Some(format!("{lost} ({error}; {setting}): run as root, with CAP_PERFMON, or after `{needed}`"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_takes_one_rung_and_says_what_is_lost() {
        let mut source = Source::default();
        let refused = io::Error::from(io::ErrorKind::PermissionDenied);
        source.refuse(&refused);
        assert_eq!(source.on_core, OnCore::ProgramOnly);
        assert!(source.advice.as_ref().is_some_and(|advice| advice.contains("inside the kernel")));
        source.refuse(&refused);
        assert_eq!(source.on_core, OnCore::Nothing);
        assert!(source.advice.is_some_and(|advice| advice.contains("CAP_PERFMON")));
    }
}
