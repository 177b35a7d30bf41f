//! Placements: clients that were called from the line and whose world is being made, or whose earlier session has to end
//! first.
//!
//! The game's directory is asked again about each, in the order in which they were called, in every frame; meanwhile
//! the handshake tells them what they wait for. Bounded in number: while it is full nobody else is called, and those in
//! line keep their places. Bounded in time: who has waited for too long is refused, and may come again.
//!
//! Frame thread. Cost: one question to the directory per client and frame.

use std::collections::VecDeque;
use std::net::SocketAddr;

use throng_net::protocol::{Called, ClientId, UserData};
use throng_platform::time::Nanos;

pub(super) struct Placements {
    waiting: VecDeque<Pending>,
    waiting_max: usize,
    patience: Nanos,
}

/// A client that is neither in a world yet nor refused.
pub(super) struct Pending {
    pub client_id: ClientId,
    pub user_data: Box<UserData>,
    pub address: SocketAddr,
    /// The address of its earlier session, which ends first; `None` once it has, and the directory is asked.
    pub session: Option<SocketAddr>,
    since: Nanos,
}

/// What is to become of one that waits.
pub(super) enum Next {
    /// It stays, and those behind it are asked about.
    Wait,
    /// It stays, and so do those behind it, until the next frame.
    Pause,
    Done,
}

impl Placements {
    pub fn new(waiting_max: u32, timeout_s: u32) -> Self {
        Self {
            waiting: VecDeque::new(),
            waiting_max: waiting_max as usize,
            patience: Nanos::from_secs(timeout_s.into()),
        }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_full(&self) -> bool {
        self.waiting.len() >= self.waiting_max
    }

    pub fn add(&mut self, called: Called, now: Nanos) {
        let Called { client_id, user_data, address, session, is_recorded: _ } = called;
        self.waiting.push_back(Pending { client_id, user_data: Box::new(user_data), address, session, since: now });
    }

    pub fn patience(&self) -> Nanos {
        self.patience
    }

    /// Whether one has waited for as long as any may.
    pub fn is_over(&self, pending: &Pending, now: Nanos) -> bool {
        now.saturating_sub(pending.since) >= self.patience
    }

    /// Takes everybody out, to be gone through in order and put back with [`put_back`](Self::put_back).
    pub fn take(&mut self) -> VecDeque<Pending> {
        std::mem::take(&mut self.waiting)
    }

    /// Those who still wait, in their order. Nobody was added meanwhile.
    pub fn put_back(&mut self, waiting: VecDeque<Pending>) {
        debug_assert!(self.waiting.is_empty() && waiting.len() <= self.waiting_max);
        self.waiting = waiting;
    }
}
