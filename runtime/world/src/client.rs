//! A client: all that the server keeps of one, as one value.
//!
//! Its connection, its view of the world, what its line takes, what it may send, and which entity is its own. A client
//! is in exactly one world, in that world's table (`clients`); to travel is to move the box to another world's mail. So
//! it needs nothing of the world it is in to go on living: it outlives one that panicked.
//!
//! A client that has just been let in waits without a view until its world takes it in.

use bevy_ecs::prelude::Entity;
use throng_net::{
    connection::Connection,
    protocol::{ClientId, UserData},
};
use throng_platform::{
    prefetch::{self, FootprintDraft},
    time::Nanos,
};
use throng_replication::{Pacing, Seen, TimeFactor, View, WorldReplication};

use crate::{
    allowance::Allowance,
    client_cost::{ClientCost, CostMeter},
    declared::Spent,
    ids::{ClientKey, WorldId},
    input_window::InputWindow,
    seen_moment::SeenMoment,
    tick_resources::RefusedTravel,
    transfer::Transfer,
};

/// How a client leaves its world at the end of the tick.
pub(crate) enum Leave {
    Travel {
        to: WorldId,
        transfer: Transfer,
    },
    /// `carried`: it was to travel as well. Its game has taken it out of the world with this, so this is what it has.
    Gone {
        reason: &'static str,
        carried: Option<Transfer>,
    },
}

/// One client.
pub struct Client {
    pub(crate) key: ClientKey,
    pub(crate) connection: Connection,
    /// What it holds of the world that it is in, and what it is owed. `None` on its way into a world.
    pub(crate) view: Option<View>,
    /// What its line takes. `None` until it is in its first world.
    pub(crate) pacing: Option<Pacing>,
    /// What it may send: charged with what has opened, so that only the client itself can use it up.
    pub(crate) allowance: Allowance,
    /// What it takes.
    pub(crate) meter: CostMeter,
    /// What it has said in this world, by kind.
    pub(crate) spent: Spent,
    /// Counts the worlds that it has been in, so that both sides can tell snapshots of one from those of the next.
    pub(crate) epoch: u8,
    pub(crate) player: Option<Entity>,
    pub(crate) team: Option<u16>,
    /// Whether it was told by which schema the server writes: once, before anything else.
    pub(crate) knows_schema: bool,
    /// False while it has not been told of its world or its own entity.
    pub(crate) is_greeted: bool,
    pub(crate) leaving: Option<Leave>,
    /// The journey from which it is back, until its world has been told.
    pub(crate) refused_travel: Option<RefusedTravel>,
    /// Whether it is here because a journey from here came to nothing.
    pub(crate) has_returned: bool,
    /// Gets audit samples.
    pub(crate) is_audited: bool,
    /// Worlds that panicked under it, and when the last of these did.
    worlds_lost: u32,
    world_lost_at: Nanos,
    /// Which of its inputs were taken in this world.
    pub(crate) inputs: InputWindow,
    /// What its connect token said of it.
    user_data: Box<UserData>,
}

impl Client {
    /// A client that has just been let in.
    pub fn new(key: ClientKey, connection: Connection, user_data: Box<UserData>, allowance: Allowance) -> Self {
        Self {
            key,
            connection,
            view: None,
            pacing: None,
            allowance,
            meter: CostMeter::default(),
            spent: Spent::default(),
            epoch: 0,
            player: None,
            team: None,
            knows_schema: false,
            is_greeted: false,
            leaving: None,
            refused_travel: None,
            has_returned: false,
            is_audited: false,
            worlds_lost: 0,
            world_lost_at: Nanos::ZERO,
            inputs: InputWindow::default(),
            user_data,
        }
    }

    /// A client that gets audit samples, or does not.
    #[must_use]
    pub fn with_audits(mut self, is_audited: bool) -> Self {
        self.is_audited = is_audited;
        self
    }

    pub fn key(&self) -> ClientKey {
        self.key
    }

    pub fn client_id(&self) -> ClientId {
        self.connection.client_id()
    }

    pub fn user_data(&self) -> &UserData {
        &self.user_data
    }

    /// Its end of the line, to say goodbye with where no world does.
    pub fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// It goes back to where it was, because of this.
    pub fn refuse_travel(&mut self, refused: RefusedTravel) {
        self.refused_travel = Some(refused);
    }

    /// After so long without another a panic of one of its worlds counts no more.
    pub const LOSSES_FORGOTTEN_AFTER: Nanos = Nanos::from_secs(60);

    /// Its world panicked: where that was about to send it, it does not go. Returns how many it has lost lately, this one
    /// included.
    pub fn lose_world(&mut self, now: Nanos) -> u32 {
        match &mut self.leaving {
            Some(Leave::Travel { .. }) => self.leaving = None,
            Some(Leave::Gone { carried, .. }) => *carried = None,
            None => {}
        }
        if now.saturating_sub(self.world_lost_at) > Self::LOSSES_FORGOTTEN_AFTER {
            self.worlds_lost = 0;
        }
        self.world_lost_at = now;
        self.worlds_lost += 1;
        self.worlds_lost
    }

    /// Comes into a world. `ticks_per_s` and `bytes_per_tick_max` are what that world sends one client at most.
    pub(crate) fn enter(&mut self, world: &mut WorldReplication, ticks_per_s: f32, is_reactive: bool) {
        self.connection.set_quiet(is_reactive);
        let bytes_per_tick_max = world.settings().budget_bytes_per_tick;
        match &mut self.pacing {
            Some(pacing) => pacing.set_max(ticks_per_s, bytes_per_tick_max),
            None => self.pacing = Some(Pacing::new(ticks_per_s, bytes_per_tick_max)),
        }
        self.view = Some(world.new_view(self.epoch));
    }

    /// Leaves the world it is in; returns its view of it. What belongs to the stay there is over, what belongs to the
    /// client stays.
    pub(crate) fn exit(&mut self) -> Option<View> {
        self.epoch = self.epoch.wrapping_add(1);
        self.player = None;
        self.team = None;
        self.is_greeted = false;
        self.has_returned = false;
        self.inputs = InputWindow::default();
        self.spent.clear();
        self.view.take()
    }

    /// What it took since it was last asked; nothing the first time.
    pub(crate) fn take_cost(&mut self, now: Nanos) -> Option<ClientCost> {
        let (elapsed, spent) = self.meter.take(now)?;
        Some(ClientCost { client_id: self.client_id(), elapsed, spent })
    }

    /// What it says that its player was shown, with what is known of that.
    pub(crate) fn seen_moment(&self, seen: Seen, time_factor: TimeFactor) -> SeenMoment {
        // So much of the world's time goes by on the way.
        let round_trip = Nanos(self.connection.rtt().0 * u64::from(time_factor.percent()) / 100);
        SeenMoment::new(seen, self.view.as_ref().map_or(0, View::acked_tick), round_trip)
    }

    /// The newest of its inputs, which snapshots tell it; 0 before the first.
    pub(crate) fn last_input(&self) -> u16 {
        self.inputs.newest().unwrap_or_default()
    }

    /// Marks the client as gone at the end of this tick; the first reason counts.
    pub(crate) fn leave(&mut self, reason: &'static str) {
        if self.is_gone() {
            return;
        }
        let carried = match self.leaving.take() {
            Some(Leave::Travel { transfer, .. }) => Some(transfer),
            _ => None,
        };
        self.leaving = Some(Leave::Gone { reason, carried });
    }

    /// Whether its connection ends with this tick.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.leaving, Some(Leave::Gone { .. }))
    }

    /// Travel gives way to a connection's end, and the first order to travel counts.
    pub(crate) fn travel(&mut self, to: WorldId, transfer: Transfer) {
        match &mut self.leaving {
            None => self.leaving = Some(Leave::Travel { to, transfer }),
            Some(Leave::Gone { carried, .. }) => _ = carried.get_or_insert(transfer),
            Some(Leave::Travel { .. }) => {}
        }
    }

    /// Asks for the memory of a client that is told soon (`throng_platform::prefetch`).
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch::value(self);
    }

    /// As `prefetch`, where a datagram of the client is opened soon: that does not read its view, which with its lists
    /// is most of a client.
    #[inline]
    pub(crate) fn prefetch_for_opening(&self) {
        self.connection.prefetch();
        prefetch::value(&self.allowance);
        prefetch::value(&self.meter);
        prefetch::value(&self.epoch);
        prefetch::value(&self.inputs);
    }

    /// Notes what every tick of a small world reads.
    pub(crate) fn note(&self, footprint: &mut FootprintDraft) {
        footprint.note(self);
        if let Some(view) = &self.view {
            view.note_lists(footprint);
        }
        self.connection.note_lists(footprint);
    }

    /// As `prefetch`, a turn later: what every tick reads elsewhere.
    #[inline]
    pub(crate) fn prefetch_lists(&self) {
        if let Some(view) = &self.view {
            view.prefetch_lists();
        }
        self.connection.prefetch_lists();
    }
}
