//! Loss: what an acknowledged or a lost packet means for what a client is owed.
//!
//! A lost packet makes owed again what went out last in it. What went the slow way is labelled with the sequence number
//! of the message that carried it last: what a newer one carries is superseded and is left alone, and so is what
//! changed after it. What was copied from the tick's bulk follows from the message's tick and its first and last slot:
//! all that had its turn then, and has not changed since, is owed. Too much may go out again after a loss; too little
//! never.
//!
//! There is no log of messages' contents. Cost: a loss reads through the labels, 2 B each, well under 0.1 us for 50
//! entities.

use throng_platform::never;

use crate::view::{
    client_view::{View, waiting},
    entry::{END, Entry, State},
    flights::Flight,
    scene::Scene,
    traffic::Cause,
};

impl View {
    /// Names the packet into which the last written message went.
    pub(crate) fn sent(&mut self, packet: u16, scene: &Scene) {
        let Some(flight) = self.flights.take_unsent() else {
            return;
        };
        let flight = Flight { packet, ..flight };
        while let Some(oldest) = self.flights.take_outdated(&flight, scene.settings.packets_in_flight_max) {
            self.give_up(oldest, scene);
        }
        self.flights.push(flight);
    }

    /// A packet arrived. One that is not in flight is counted and means nothing.
    pub fn acked(&mut self, packet: u16) {
        let mut known = false;
        while let Some(flight) = self.flights.take(packet) {
            known = true;
            self.acked_tick = self.acked_tick.max(flight.tick);
            if flight.existence {
                self.confirm(flight);
            }
        }
        self.counts.answers_unknown += u64::from(!known);
    }

    /// Newest tick of which the client has acknowledged a message, so that it has what was told then; 0 before the first.
    pub fn acked_tick(&self) -> u32 {
        self.acked_tick
    }

    pub(crate) fn lost(&mut self, packet: u16, scene: &Scene) {
        let mut known = false;
        while let Some(flight) = self.flights.take(packet) {
            known = true;
            self.give_up(flight, scene);
        }
        self.counts.answers_unknown += u64::from(!known);
    }

    /// A message was written and never sent: everything in it is owed again.
    pub(crate) fn drop_unsent(&mut self, scene: &Scene) {
        if let Some(flight) = self.flights.take_unsent() {
            self.give_up(flight, scene);
        }
    }

    /// Spawns and despawns of this packet have arrived.
    fn confirm(&mut self, flight: Flight) {
        let bit = 1 << (flight.sequence % 64);
        for index in 0..self.list.keys.len() {
            if self.list.keys[index].is_plain() {
                continue;
            }
            let entry = &mut self.list.entries[index];
            match entry.state {
                State::Sent if self.list.cold[index].spawn_packets & bit != 0 => {
                    entry.state = State::Known;
                    self.list.cold[index].spawn_packets = 0;
                    self.list.refresh_key(index);
                }
                State::Leaving if !entry.existence => {
                    let label = self.list.labels[(index + 1) * self.list.stride - 1];
                    if label == flight.sequence {
                        self.list.set_gone(index);
                    }
                }
                _ => {}
            }
        }
    }

    /// What went out last in this packet is owed again, unless it has changed since.
    fn give_up(&mut self, flight: Flight, scene: &Scene) {
        if flight.existence {
            let bit = 1 << (flight.sequence % 64);
            self.list.cold.iter_mut().for_each(|cold| cold.spawn_packets &= !bit);
        }
        if flight.labelled {
            self.give_up_labelled(flight, scene);
        }
        if flight.first <= flight.last {
            self.give_up_plain(flight, scene);
        }
    }

    fn give_up_labelled(&mut self, flight: Flight, scene: &Scene) {
        let entities = &scene.entities;
        for index in 0..self.list.entries.len() {
            let labels = &self.list.labels[index * self.list.stride..(index + 1) * self.list.stride];
            let entry = &mut self.list.entries[index];
            if !labels.contains(&flight.sequence) || matches!(entry.state, State::New | State::Gone) {
                continue;
            }
            let Some((existence, kinds)) = labels.split_last() else {
                never!("an entry without a label for its existence");
                continue;
            };
            let mut again = 0;
            if *existence == flight.sequence && !entry.existence {
                entry.existence = true;
                again += 1;
            }
            if entry.state != State::Leaving {
                let lost = kinds.iter().enumerate().filter(|(_, label)| **label == flight.sequence);
                let mut lost = lost.fold(0, |mask, (kind, _)| mask | 1 << kind) & !entry.owed;
                if entry.state == State::Known {
                    // A newer value has gone out since, or will when its turn comes.
                    let after = flight.tick.saturating_add(1);
                    lost &= !entities.changed_since(entry.slot as usize, lost, 1, after);
                }
                again += lost.count_ones();
                self.owe_again(index, lost, scene);
            }
            self.counts.owed_again += u64::from(again);
            self.list.refresh_key(index);
        }
    }

    fn give_up_plain(&mut self, flight: Flight, scene: &Scene) {
        let Scene { entities, rings, .. } = scene;
        let begin = self.list.entries.partition_point(|entry| entry.slot < flight.first);
        for index in begin..self.list.entries.len() {
            let entry = &self.list.entries[index];
            if entry.slot > flight.last {
                break;
            }
            if entry.state != State::Known {
                // A spawn has it all.
                continue;
            }
            let slot = entry.slot as usize;
            let present = entities.slots[slot].present;
            let told = if self.list.cold[index].ring_since.max(rings.reach_since) <= flight.tick {
                waiting(entities, rings, slot, entry.ring.into(), flight.tick)
            } else {
                entities.changed_since(slot, present, rings.period_max, flight.tick)
            };
            let since = entities.changed_since(slot, told, 1, flight.tick.saturating_add(1));
            let lost = told & !since & !entry.owed;
            self.counts.owed_again += u64::from(lost.count_ones());
            self.owe_again(index, lost, scene);
        }
    }

    /// As `owe`. A plain entry that the bulk of this tick has not come to is then owed its share of that, too.
    fn owe_again(&mut self, index: usize, kinds: u16, scene: &Scene) {
        let Entry { slot, ring, .. } = self.list.entries[index];
        let is_left_out = self.bulk_from <= slot && kinds != 0 && self.list.keys[index].is_plain();
        let this_tick = scene.bulk.rings().get(usize::from(ring)).filter(|_| is_left_out && self.bulk_from != END);
        self.owe(index, kinds | this_tick.map_or(0, |ring| ring.mask(slot)), Cause::Resent);
    }
}
