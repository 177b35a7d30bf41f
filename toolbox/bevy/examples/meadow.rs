//! Walks about on the meadow (`games/meadow`) in a Bevy app without a window, and says who else is there.
//!
//! ```sh
//! export THRONG_PRIVATE_KEY=$(openssl rand -hex 32)
//! cargo run -p meadow -- serve --address 127.0.0.1:40000 &
//! cargo run -p throng-bevy --example meadow -- \
//!     $(cargo run -p meadow -- token --client-id 7 --server 127.0.0.1:40000)
//! ```
//!
//! With a window it is the same: Bevy's `DefaultPlugins` beside this plugin, and a system after `ClientSystems::Show` that
//! copies a `Position` to the `Transform` of a mesh. What the meadow declares is declared here again.

use std::{error::Error, process::ExitCode, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use bevy_app::{App, AppExit, PostUpdate, ScheduleRunnerPlugin, Update};
use bevy_ecs::prelude::*;
use throng_bevy::{
    ClientChange, ClientPlugin, ClientSystems, NetEntity, OwnPlayer,
    client::{interpolation::Interpolate, prelude::*},
};

#[derive(Component, Clone, Copy, Debug, PartialEq, Replicate)]
struct Position {
    #[replicate(min = -100.0, max = 100.0, step = 0.01)]
    x: f32,
    #[replicate(min = -100.0, max = 100.0, step = 0.01)]
    z: f32,
}

impl Interpolate for Position {
    fn between(&self, later: &Self, share: f32) -> Self {
        Self { x: self.x + (later.x - self.x) * share, z: self.z + (later.z - self.z) * share }
    }
}

/// West or east, south or north, 127 at full speed.
#[derive(Clone, Copy, Pack)]
struct Walk(i8, i8);

impl ClientInput for Walk {}

/// The sides of a square, each with so many inputs, one for each tick.
const SIDES: [Walk; 4] = [Walk(127, 0), Walk(0, 127), Walk(-127, 0), Walk(0, -127)];
const SIDE_INPUTS: usize = 40;

/// Pictures between two lines.
const PICTURES_PER_LINE: u32 = 60;

fn main() -> ExitCode {
    let Some(token) = std::env::args().nth(1) else {
        eprintln!("usage: meadow TOKEN, in base64, as the server's command `token` prints it");
        return ExitCode::from(2);
    };
    match read(&token).and_then(walk) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn read(token: &str) -> Result<ConnectToken, Box<dyn Error>> {
    let bytes = BASE64.decode(token.trim())?;
    let bytes = bytes.as_slice().try_into().map_err(|_| "a connect token has 2,048 bytes")?;
    Ok(ConnectToken::from_bytes(bytes)?)
}

/// Walks in a square until the server ends it.
fn walk(token: ConnectToken) -> Result<AppExit, Box<dyn Error>> {
    let schema = SchemaBuilder::new().component::<Position>().input::<Walk>().build();
    let mut app = App::new();
    app.add_plugins(ScheduleRunnerPlugin::run_loop(Duration::from_millis(16)));
    app.add_plugins(ClientPlugin::new().interpolated::<Position>());
    app.insert_non_send(UdpClient::connect(token, schema)?);
    app.add_systems(Update, (steer, leave)).add_systems(PostUpdate, tell.after(ClientSystems::Show));
    Ok(app.run())
}

/// The meadow takes the newest of each tick, so what it does with them is its own affair and not predicted.
fn steer(mut player: NonSendMut<UdpClient>, mut sent: Local<usize>) {
    let now = player.now();
    for _ in 0..player.client.due_inputs(now) {
        let side = SIDES[*sent / SIDE_INPUTS % SIDES.len()];
        if player.send_input(&side).is_ok() {
            *sent += 1;
        }
    }
}

fn leave(mut changes: MessageReader<ClientChange>, mut exits: MessageWriter<AppExit>) {
    for ClientChange(change) in changes.read() {
        if let ClientEvent::Disconnected(reason) = change {
            println!("over: {reason}");
            exits.write(AppExit::Success);
        }
    }
}

fn tell(walkers: Query<(&NetEntity, &Position, Has<OwnPlayer>)>, mut pictures: Local<u32>) {
    *pictures += 1;
    if !pictures.is_multiple_of(PICTURES_PER_LINE) {
        return;
    }
    let own = walkers.iter().find(|(.., is_own)| *is_own);
    if let Some((NetEntity(id), Position { x, z }, _)) = own {
        let others = walkers.iter().count() - 1;
        println!("I am entity {}, at ({x:.2}, {z:.2}), and see {others} others", id.slot);
    }
}
