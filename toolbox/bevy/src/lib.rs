//! A client in a Bevy app: what the server shows of its world are entities of the app, with the game's own components.
//!
//! ```no_run
//! use bevy_app::prelude::*;
//! use bevy_ecs::prelude::*;
//! use throng_bevy::{
//!     ClientPlugin, ClientSystems, OwnPlayer, Wish,
//!     client::{interpolation::Interpolate, prediction::Predict, prelude::*},
//! };
//!
//! /// What the server shows of everybody; where a player is, predicted or interpolated.
//! #[derive(Component, Clone, PartialEq, Replicate)]
//! struct Runner {
//!     #[replicate(min = -100.0, max = 100.0, step = 0.01)]
//!     x: f32,
//! }
//! impl Interpolate for Runner {
//!     fn between(&self, later: &Self, share: f32) -> Self {
//!         Runner { x: self.x + (later.x - self.x) * share }
//!     }
//! }
//!
//! /// What is shown as it comes.
//! #[derive(Component, Clone, PartialEq, Replicate)]
//! struct Name(Text<16>);
//!
//! /// What one wants: a step in each tick.
//! #[derive(Clone, Pack)]
//! struct Run(i8);
//! impl ClientInput for Run {
//!     const REPEATS: u8 = 3;
//! }
//!
//! /// The step, as the server takes it.
//! #[derive(Clone)]
//! struct Rules;
//! impl Predict for Rules {
//!     type State = Runner;
//!     type Input = Run;
//!     fn step(&self, state: &Runner, input: &Run) -> Runner {
//!         Runner { x: state.x + f32::from(input.0) * 0.01 }
//!     }
//!     fn place(&self, state: &Runner) -> [f32; 3] {
//!         [state.x, 0.0, 0.0]
//!     }
//!     fn shifted(&self, state: &Runner, by_m: [f32; 3]) -> Runner {
//!         Runner { x: state.x + by_m[0] }
//!     }
//! }
//!
//! fn wish(mut wish: ResMut<Wish<Run>>) {
//!     wish.0 = Some(Run(100));
//! }
//!
//! fn draw(runners: Query<(&Runner, &Name, Has<OwnPlayer>)>) {
//!     for (Runner { x }, Name(name), is_own) in &runners {
//!         println!("{}{name} at {x:.2} m", if is_own { "I am " } else { "" });
//!     }
//! }
//!
//! /// `token` comes from the game's login service.
//! fn play(token: ConnectToken) -> Result<AppExit, UdpError> {
//!     let schema = SchemaBuilder::new().component::<Runner>().component::<Name>().input::<Run>().build();
//!     let shown = ClientPlugin::new().component::<Name>().predicted(Rules);
//!     let mut app = App::new();
//!     app.add_plugins(shown).insert_non_send(UdpClient::connect(token, schema)?);
//!     app.add_systems(Update, wish).add_systems(PostUpdate, draw.after(ClientSystems::Show));
//!     // With a window, or with `ScheduleRunnerPlugin`; without a runner it updates once.
//!     Ok(app.run())
//! }
//! ```
//!
//! In each update of the app:
//!
//! ```text
//!   PreUpdate    Receive   the socket is read; entities come and go; Confirmed<T> is what the server said last
//!   Update                 the game says what its player wants: Wish<I>; asks for things by the client itself
//!   PostUpdate   Step      one input for each tick of the server that has begun, sent and predicted
//!                Show      T is what is to be drawn: as it came, interpolated, or predicted
//!                Send      what is due goes out
//! ```
//!
//! | file | holds |
//! | --- | --- |
//! | `plugin` | [`ClientPlugin`]: which components there are, and how each is shown |
//! | `systems` | [`ClientSystems`]: the steps above, to stand before or after |
//! | `connection` | reading and writing the socket; what happened to the connection |
//! | `copies` | which entity of the server is which of the app |
//! | `confirmed` | components as the server said them |
//! | `interpolated` | components of others, at the moment that is shown |
//! | `predicted` | the component of the own player, ahead of the server |
//!
//! The client ([`UdpClient`](client::udp::UdpClient)) is non-send data, which the program inserts when it has a token, and
//! takes out or replaces when it wants to; without one, nothing happens, and the entities stay as they are until another
//! one enters a world. It stands on `bevy_app` and `bevy_ecs` alone, so it goes with any renderer and with none.
//!
//! Systems run on the app's main thread, for they touch the socket. Cost: that of the client, and for each entity and
//! component a look whether it has changed. A component is written only where that makes it another value, so `Changed<T>`
//! means what it says. Allocates when entities come.

mod confirmed;
mod connection;
mod copies;
mod interpolated;
mod plugin;
mod predicted;
mod systems;

pub use confirmed::Confirmed;
pub use connection::{ClientChange, SocketErrors};
pub use copies::{NetEntity, OwnPlayer};
pub use plugin::ClientPlugin;
pub use predicted::{Prediction, Wish};
pub use systems::ClientSystems;

/// The client that the plugin drives, of the version that it is built with.
#[doc(no_inline)]
pub use throng_client as client;
