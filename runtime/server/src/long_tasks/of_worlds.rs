//! Long tasks of worlds: started after their tick, and what they bring put into their mailboxes.

use throng_world::GameWorld;

use crate::server::Server;

impl Server {
    /// Starts what a world's systems have asked for.
    pub(crate) fn start_long_tasks_of(&mut self, world: &mut GameWorld) {
        let id = world.id();
        let long = &mut self.long_tasks;
        let tasks = long.tasks().clone();
        world.report_mut().long_tasks.drain(..).for_each(|task| long.of_worlds.start(id, task, &tasks));
    }

    /// Results become mail of their worlds. What a world that has ended asked for is dropped, counted.
    pub(crate) fn deliver_long_results(&mut self) {
        let Self { long_tasks, mailboxes, counts, .. } = self;
        long_tasks.of_worlds.deliver(|world, message| {
            let is_taken = mailboxes.get(world).is_some_and(|mailbox| mailbox.push_message(message));
            counts.long_tasks.results_undeliverable += u64::from(!is_taken);
        });
    }
}
