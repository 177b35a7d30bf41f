//! A swarm: how a run begins and ends.
//!
//! ```text
//!   start                    last bot sent in                        end
//!     |------ joining ---------------|------------ seconds -----------|-- goodbye --|
//!                                    the report's rates and latencies
//! ```
//!
//! A run ends when its time is up, when a stop is requested, or when no bot is left. Audit samples that are
//! due by then have been checked, because every snapshot checks them; those inside their grace are
//! left out. Then every bot says goodbye, a few at a time, so that the server's socket keeps up.

use std::sync::Arc;

use throng_platform::signals::StopFlag;
use throng_replication::Schema;

use crate::behaviour::Behaviour;
use crate::driver::Driver;
use crate::error::SwarmError;
use crate::report::{SwarmReport, SwarmStatus};
use crate::settings::SwarmSettings;

/// Many bots on one thread.
pub struct Swarm;

impl Swarm {
    /// Sends the bots in, lets them play, and reports what they saw. Blocks the calling thread.
    ///
    /// `make_behaviour` is given each bot's index when it is sent in. `on_status` is called on this
    /// thread, between two bots: keep it short. A stop request ends the run early with a report.
    ///
    /// Fails before anything is sent when the machine cannot give every bot a socket, and at the end
    /// when not a single bot got into a world.
    pub fn run(
        settings: SwarmSettings,
        schema: Arc<Schema>,
        make_behaviour: impl Fn(usize) -> Box<dyn Behaviour> + Send + Sync + 'static,
        stop: StopFlag,
        on_status: &mut dyn FnMut(&SwarmStatus),
    ) -> Result<SwarmReport, SwarmError> {
        let mut driver = Driver::begin(settings, schema, make_behaviour)?;
        let played = driver.play(&stop, on_status);
        let report = driver.report();
        driver.say_goodbye();
        played?;
        if report.players_connected + report.disconnects == 0 && !stop.requested() {
            return Err(driver.nobody_got_in());
        }
        Ok(report)
    }
}
