//! Walks about on the meadow (`games/meadow`), and says who else is there.
//!
//! ```sh
//! export THRONG_PRIVATE_KEY=$(openssl rand -hex 32)
//! cargo run -p meadow -- serve --address 127.0.0.1:40000 &
//! cargo run -p throng-client --example walk -- \
//!     $(cargo run -p meadow -- token --client-id 7 --server 127.0.0.1:40000)
//! ```
//!
//! What the meadow declares is declared here again: both sides hold its hash against the other's, and a client that has
//! another one is told so.

use std::{error::Error, process::ExitCode};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use throng_client::{platform::time::Nanos, prelude::*};

#[derive(Clone, Copy, Debug, Replicate)]
struct Position {
    #[replicate(min = -100.0, max = 100.0, step = 0.01)]
    x: f32,
    #[replicate(min = -100.0, max = 100.0, step = 0.01)]
    z: f32,
}

/// West or east, south or north, 127 at full speed.
#[derive(Pack)]
struct Walk(i8, i8);

impl ClientInput for Walk {}

/// Inputs of one walk to a side of a square, at 20 in a second.
const SIDE_INPUTS: usize = 40;

fn main() -> ExitCode {
    let Some(token) = std::env::args().nth(1) else {
        eprintln!("usage: walk TOKEN, in base64, as the server's command `token` prints it");
        return ExitCode::from(2);
    };
    match read(&token).and_then(walk) {
        Ok(reason) => println!("over: {reason}"),
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn read(token: &str) -> Result<ConnectToken, Box<dyn Error>> {
    let bytes = BASE64.decode(token.trim())?;
    let bytes = bytes.as_slice().try_into().map_err(|_| "a connect token has 2,048 bytes")?;
    Ok(ConnectToken::from_bytes(bytes)?)
}

/// Walks in a square until the server ends it.
fn walk(token: ConnectToken) -> Result<DisconnectReason, Box<dyn Error>> {
    let schema = SchemaBuilder::new().component::<Position>().input::<Walk>().build();
    let mut player = UdpClient::connect(token, schema)?;
    let sides = [Walk(127, 0), Walk(0, 127), Walk(-127, 0), Walk(0, -127)];
    for (turn, side) in sides.iter().cycle().flat_map(|side| [side; SIDE_INPUTS]).enumerate() {
        player.run_for(Nanos::from_millis(50))?;
        while let Some(event) = player.client.next_event() {
            match event {
                ClientEvent::EnteredWorld { .. } => {
                    println!("in: {}", player.client.world().map_or("", |world| &world.name));
                }
                ClientEvent::Disconnected(reason) => return Ok(reason),
                _ => {}
            }
        }
        // Refused until there is a world.
        let _ = player.send_input(side);
        if turn % SIDE_INPUTS == 0 {
            report(&player.client);
        }
    }
    unreachable!("the sides are endless")
}

fn report(client: &Client) {
    let everybody = client.replicas();
    let own = client.own_entity().and_then(|own| everybody.get::<Position>(own));
    if let Some(Position { x, z }) = own {
        println!("at {x:.1}, {z:.1} m, with {} others in view", everybody.len() - 1);
    }
}
