//! The watchdog: a process that ends what is left of a run whose own process has died, however it died.
//!
//! Any program may be measured, and most do not notice that whoever started them is gone. The watchdog is told the number
//! of each group of processes when it starts (`keep N`) and when all of it has ended (`forget N`), since a stranger may
//! have the number from then on. It waits for the end of its stdin, which comes with the end of this process; then it
//! kills all that it still keeps. It is a shell, so that it has no part of this program that could die with it, and in a
//! group of its own, so that Ctrl-C does not reach it.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Each number in `groups` has a blank before and behind it, so that 12 is not found in 123.
const SCRIPT: &str = r#"groups=' '
while read -r order group; do
    case $order in
        keep) groups="$groups$group " ;;
        forget) groups="${groups%% $group *} ${groups#* $group }" ;;
    esac
done
for group in $groups; do kill -KILL "-$group"; done"#;

/// Dropped, it ends without killing anybody.
pub(crate) struct Watchdog {
    process: Child,
    /// Only a test takes it away.
    orders: Option<ChildStdin>,
}

impl Watchdog {
    pub fn start() -> io::Result<Self> {
        let mut process = Command::new("sh")
            .args(["-c", SCRIPT])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let orders = process.stdin.take();
        Ok(Self { process, orders })
    }

    /// From now on it keeps this group, too.
    pub fn keep(&mut self, leader: u32) -> io::Result<()> {
        self.order("keep", leader)
    }

    /// A group that it keeps has ended, and its leader has been waited for.
    pub fn forget(&mut self, leader: u32) -> io::Result<()> {
        self.order("forget", leader)
    }

    fn order(&mut self, order: &str, leader: u32) -> io::Result<()> {
        // In one piece: half a line would be another number.
        let line = format!("{order} {leader}\n");
        self.orders.as_mut().map_or(Ok(()), |orders| orders.write_all(line.as_bytes()))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // Before its stdin ends. Whoever drops it has ended the groups, and their numbers may be others' by now.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use throng_platform::process_groups;

    use super::*;

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").process_group(0).spawn().unwrap()
    }

    #[test]
    fn when_its_stdin_ends_all_that_it_keeps_is_killed() {
        let mut watchdog = Watchdog::start().unwrap();
        let (mut gone, mut kept, mut other) = (sleeper(), [sleeper(), sleeper()], sleeper());
        gone.kill().unwrap();
        gone.wait().unwrap();
        watchdog.keep(gone.id()).unwrap();
        kept.iter().for_each(|child| watchdog.keep(child.id()).unwrap());
        // As when this process dies.
        watchdog.orders = None;
        kept.iter_mut().for_each(|child| assert_eq!(child.wait().unwrap().code(), None));
        assert!(!process_groups::has_ended(other.id()), "of others it knows nothing");
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_forgotten_group_outlives_its_stdin() {
        let mut watchdog = Watchdog::start().unwrap();
        let [mut first, mut forgotten, mut last] = [sleeper(), sleeper(), sleeper()];
        [&first, &forgotten, &last].into_iter().for_each(|child| watchdog.keep(child.id()).unwrap());
        watchdog.forget(forgotten.id()).unwrap();
        watchdog.orders = None;
        // Then it has killed whom it kills.
        watchdog.process.wait().unwrap();
        [&mut first, &mut last].into_iter().for_each(|child| assert_eq!(child.wait().unwrap().code(), None));
        assert!(!process_groups::has_ended(forgotten.id()));
        forgotten.kill().unwrap();
        forgotten.wait().unwrap();
    }
}
