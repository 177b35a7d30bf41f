//! The streets of a district: which of its sectors are there.
//!
//! The engine's [`WorldSectors`] says what is wanted, and everything else here is passing on: work goes to long tasks, what
//! they bring comes as messages, what is given up is dropped by long tasks. So no tick bakes, waits or drops.

use bevy_ecs::prelude::*;
use std::sync::Arc;
use throng::prelude::*;
use throng_query::nav::sectors::{
    SavedSectors, SectorDone, SectorStore, SectorWork, StreamCounts, StreamSettings, WorkKind, WorldSectors,
};
use throng_replication::table_resource;

use super::body::FarPose;
use crate::passport::PlayerClient;

/// A player should have the ground before it by the time it gets there: a runner takes 12 s to the edge of its circle.
const BAKE: LongTaskTerms = LongTaskTerms::new("nav.sector").within_ms(2_000).cost_us(20_000);
const FOUND: LongTaskTerms = LongTaskTerms::new("nav.sector.found").within_ms(1_000);
/// Until then the old ground answers.
const DAMAGED: LongTaskTerms = LongTaskTerms::new("nav.sector.damaged").within_ms(1_000).cost_us(20_000);
/// How often it is looked what is wanted. (Hz)
const FOLLOWS_PER_S: u16 = 2;

/// Which sectors of the level a district holds.
pub struct Streets {
    pub sectors: WorldSectors,
    ordinal: u16,
    keep_awake: bool,
    /// What was counted by the last tick.
    told: StreamCounts,
}

table_resource!(Streets);

impl Streets {
    pub fn new(store: Arc<SectorStore>, ordinal: u16, keep_awake: bool) -> Self {
        let sectors = WorldSectors::new(store, StreamSettings::default());
        Self { sectors, ordinal, keep_awake, told: StreamCounts::default() }
    }

    /// Its number among all districts.
    pub fn ordinal(&self) -> u16 {
        self.ordinal
    }

    pub fn save(&self) -> SavedSectors {
        self.sectors.save()
    }

    pub fn load(&mut self, saved: SavedSectors) {
        self.sectors.load(saved);
    }
}

/// Takes what long tasks have brought.
pub fn take_sectors(messages: Res<WorldMessages>, mut streets: ResMut<Streets>) {
    for message in &messages.0 {
        if let Ok(done) = message.read::<SectorDone>() {
            streets.sectors.take(done);
        } else if let Ok(lost) = message.read::<LongTaskLost>() {
            streets.sectors.lost(lost.number);
        }
    }
}

/// Looks what is wanted, has it done, and gives up the rest.
pub fn stream(
    tick: Res<TickInfo>,
    mut streets: ResMut<Streets>,
    mut outbox: ResMut<Outbox>,
    mut may_be_dormant: ResMut<MayBeDormant>,
    players: Query<&FarPose, With<PlayerClient>>,
) {
    let Streets { sectors, ordinal, keep_awake, told } = &mut *streets;
    let is_due = tick.tick.is_multiple_of(u32::from((tick.rate.0 / FOLLOWS_PER_S).max(1)));
    if is_due {
        sectors.follow(players.iter().map(FarPose::feet));
    }
    while let Some(work) = sectors.next_work() {
        let ticket = work.ticket();
        let number = outbox.start_long_task(terms(&work), move || work.run());
        sectors.started(ticket, number.0);
    }
    if let Some(released) = sectors.released() {
        let bytes = released.bytes();
        drop_later_sized(released, bytes);
    }
    // Whoever sleeps gives nothing up.
    may_be_dormant.0 = !*keep_awake && sectors.is_empty();
    if is_due {
        count(sectors, told);
        // Of all districts together, so one of them tells.
        if *ordinal == 0 {
            tell_store(sectors.store());
        }
    }
}

fn terms(work: &SectorWork) -> LongTaskTerms {
    match work.kind() {
        WorkKind::Bake => BAKE,
        WorkKind::Share => FOUND,
        WorkKind::Damaged => DAMAGED,
    }
}

fn count(sectors: &WorldSectors, told: &mut StreamCounts) {
    let counts = sectors.counts();
    throng::count!("sectors_streamed", counts.streamed - told.streamed);
    throng::count!("sectors_orphaned", counts.orphaned - told.orphaned);
    throng::count!("sectors_rebaked", counts.rebaked - told.rebaked);
    throng::count!("sectors_released", counts.released - told.released);
    throng::count!("sectors_refused", counts.refused - told.refused);
    throng::count!("damage_refused", counts.damage_refused - told.damage_refused);
    *told = counts;
    let (mut held, mut own, mut own_bytes) = (0, 0, 0);
    for sector in sectors.resident() {
        held += 1;
        if sector.version() > 0 {
            own += 1;
            own_bytes += sector.bytes();
        }
    }
    throng::gauge!("sectors_held", held);
    throng::gauge!("sectors_pending", sectors.pending_count());
    throng::gauge!("sectors_own", own);
    throng::gauge!("sectors_own_bytes", own_bytes);
    throng::gauge!("sectors_damage", sectors.damage().len());
}

fn tell_store(store: &SectorStore) {
    let counts = store.counts();
    throng::gauge!("sector_store.resident", counts.resident);
    throng::gauge!("sector_store.bytes", counts.bytes + counts.damaged_bytes);
    throng::gauge!("sector_store.baked", counts.baked + counts.damaged_baked);
    throng::gauge!("sector_store.dropped", counts.dropped);
    throng::gauge!("sector_store.failed", counts.failed);
}
