//! A control group with little memory, in which the kernel ends a process that takes more.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::{Duration, Instant},
};

use throng_platform::testing::not_permitted;

/// A control group, of either version; gone when this is dropped.
pub struct LittleMemory(PathBuf);

impl LittleMemory {
    /// `None` where no group can be made, which is said.
    pub fn new(bytes: u64) -> Option<Self> {
        let (tree, limit) = match Path::new("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists() {
            true => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            false => ("/sys/fs/cgroup", "memory.max"),
        };
        let group = Self(Path::new(tree).join(format!("throng-deaths-{}", std::process::id())));
        let made = fs::create_dir(&group.0).and_then(|()| fs::write(group.0.join(limit), bytes.to_string()));
        match made {
            Ok(()) => Some(group),
            Err(error) => {
                not_permitted(&format!(
                    "a control group with a limit of memory cannot be made ({error}), which takes root"
                ));
                None
            }
        }
    }

    /// The same command, in the group.
    pub fn enter(&self, command: &Command) -> Command {
        let mut inside = Command::new("sh");
        let line = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", self.0.display());
        inside.args(["-c", &line]).arg(command.get_program()).args(command.get_args());
        command.get_current_dir().map(|folder| inside.current_dir(folder));
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }
}

impl Drop for LittleMemory {
    fn drop(&mut self) {
        // A group is empty a moment after its last process has been waited for.
        let end = Instant::now() + Duration::from_secs(10);
        while fs::remove_dir(&self.0).is_err() && Instant::now() < end {
            thread::sleep(Duration::from_millis(10));
        }
    }
}
