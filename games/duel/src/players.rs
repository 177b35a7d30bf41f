//! Players: what they do in a tick, as their clients ask: inputs, steps, loading, buying.

use throng::prelude::*;

use crate::{
    components::{Arms, Doing, Phase, Player, Pose, Vitals},
    controls::{Controls, ReceivedInput, Taken},
    economy::Purse,
    movement::{Motion, Wish, step},
    pace::Pace,
    protocol::{Buy, Input, TICK_HZ},
    rounds::Rounds,
    scene::Scene,
    spike::SpikeState,
    teams::Side,
    weapons::Weapon,
};

/// Inputs go to their players' controls, and this tick's steps are those that come of them. Whose come too often is counted.
pub fn read_inputs(inputs: Inputs<Input>, mut pace: ResMut<Pace>, mut players: Query<(&Player, &mut Controls)>) {
    let mut excess = 0;
    pace.begin_tick();
    for (sender, &input) in inputs.read() {
        // Who has left in an earlier tick, or is not here yet, has no player.
        let Some(Ok((player, mut controls))) = sender.entity.map(|own| players.get_mut(own)) else { continue };
        let number = sender.number.unwrap_or_default();
        let taken = controls.take(ReceivedInput { number, input, seen: sender.seen });
        count!("inputs");
        count!("inputs_late", taken == Taken::Late);
        count!("inputs_over_rate", pace.note(player.seat));
        excess += u64::from(taken == Taken::Excess);
    }
    for (_, mut controls) in &mut players {
        excess += controls.advance(TICK_HZ) as u64;
    }
    count!("inputs_excess", excess);
}

/// Everybody who lives goes its steps and looks where it wants. Whoever works at the spike stands, and so does everybody
/// when the match is over.
pub fn walk(
    tick: Res<TickInfo>,
    scene: Res<Scene>,
    rounds: Res<Rounds>,
    spike_state: Res<SpikeState>,
    mut players: Query<(&Player, &Vitals, &Controls, &mut Motion, &mut Pose)>,
) {
    let phase = rounds.phase();
    for (player, vitals, controls, mut motion, mut pose) in &mut players {
        if !vitals.is_alive {
            continue;
        }
        let is_rooted = spike_state.is_worked_by(player.seat) || phase == Phase::MatchOver;
        let zone = scene.map.zone(phase, Side::of(player.team, rounds.attackers));
        for wish in controls.steps() {
            let wish = if is_rooted { Wish::default() } else { *wish };
            step(&mut motion, &wish, zone, &scene.map, tick.dt_s);
        }
        let input = controls.input();
        let (yaw, pitch) = input.map_or((pose.yaw, pose.pitch), |input| (input.yaw(), input.pitch()));
        let mut next = Pose { yaw, pitch, ..*pose };
        next.set_feet(motion.at);
        // Who stands still has not changed, and costs no bytes.
        pose.set_if_neq(next);
    }
}

/// Weapons are loaded whose players want it, and have their hands free.
pub fn load(
    tick: Res<TickInfo>,
    spike_state: Res<SpikeState>,
    mut players: Query<(&Player, &Vitals, &Controls, &mut Weapon)>,
) {
    for (player, vitals, controls, mut weapon) in &mut players {
        let is_asked = vitals.is_alive && controls.input().is_some_and(Input::load);
        if is_asked && !spike_state.is_worked_by(player.seat) {
            weapon.reload(tick.tick, TICK_HZ);
        }
    }
}

/// Items are bought, in the phase for it.
pub fn buy(asked: Requests<Buy>, rounds: Res<Rounds>, mut players: Query<(&mut Purse, &mut Weapon, &mut Vitals)>) {
    for (sender, Buy { item }) in asked.read() {
        let Some(Ok((mut purse, mut weapon, mut vitals))) = sender.entity.map(|own| players.get_mut(own)) else {
            continue;
        };
        let is_bought = vitals.is_alive && rounds.phase() == Phase::Buy && purse.buy(*item, &mut weapon, &mut vitals);
        count!("bought", is_bought);
    }
}

/// What hands are busy with, as others see it.
pub fn show_hands(
    tick: Res<TickInfo>,
    rounds: Res<Rounds>,
    spike_state: Res<SpikeState>,
    mut players: Query<(&Player, &Weapon, &mut Arms)>,
) {
    for (player, weapon, mut arms) in &mut players {
        let doing = if spike_state.is_worked_by(player.seat) {
            if rounds.phase() == Phase::Planted { Doing::Defusing } else { Doing::Planting }
        } else if weapon.is_loading(tick.tick) {
            Doing::Loading
        } else {
            Doing::Nothing
        };
        arms.set_if_neq(Arms { weapon: weapon.kind, doing });
    }
}
