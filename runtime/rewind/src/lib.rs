//! Rewind: a shot is judged against what its shooter saw.
//!
//! What a player sees is old: it waited for a tick, was on its way, and is drawn a little later still, so that it moves
//! smoothly. When the shot arrives, everybody has gone on. So a world keeps where everybody was and how they stood in the
//! last ticks, an input says at which moment of the world it was made, and the shot is cast at the bodies of that moment.
//!
//! - [`view_time`]: a moment of a world, between two ticks.
//! - [`view_limits`]: how far a shooter is believed: the clamp, what his line and his acknowledgements explain, never
//!   backwards.
//! - [`shooter`]: what a player was shown when it pulled the trigger, for as long as it holds that.
//! - [`history`]: everybody who can be hit, at each of the last ticks: ring columns.
//! - [`past_casts`]: what shots hit, level or limb: broad phase, poses, `throng_query`'s casts.
//! - [`rig`]: what of a body can be hit. [`skeleton`], [`clip`] and [`pose_sampler`]: how its bones move.
//! - [`gltf`]: skeletons and clips out of a file, and into one. [`person`]: a made-up person, for games without artists.
//! - [`ecs`]: the part that knows Bevy: bodies are components, and a system records them.
//!
//! Reads no clock and trusts no number: whatever a shot or a claim says, the answer is a moment within the clamp and a hit
//! on something that was there. Once made, nothing here allocates.
//!
//! ```
//! use std::sync::Arc;
//!
//! use glam::Vec3;
//! use throng_platform::time::Nanos;
//! use throng_query::casts::Ray;
//! use throng_rewind::{
//!     history::{Body, History, HistorySettings},
//!     past_casts::{PastCasts, PastShot, PastTarget},
//!     rig::{Playing, Rig},
//!     view_limits::{ShooterView, ViewLimits},
//!     view_time::ViewTime,
//! };
//!
//! // Somebody runs along x at 7 m/s; 128 ticks a second.
//! let rig = Arc::new(Rig::upright(0.4, 1.8)?);
//! let mut history = History::new(&HistorySettings::new(128, 10), vec![rig])?;
//! history.insert(3, 0);
//! for tick in 0..100 {
//!     history.begin_tick(tick);
//!     history.place(3, &Body::standing(Vec3::X * tick as f32 * 7.0 / 128.0, 0.0, Playing::default()));
//!     history.end_tick();
//! }
//!
//! // His client says that it was shown tick 90 and a half; it has acknowledged the snapshot of tick 93, and the line
//! // takes 60 ms there and back.
//! let mut shooter = ShooterView::default();
//! shooter.acknowledged(93);
//! let claimed = ViewTime::new(90, 128);
//! let admitted = ViewLimits::new(128).admit(&mut shooter, 99, claimed, Nanos::from_millis(60));
//! assert_eq!(admitted.at, claimed);
//!
//! // He aims at where he saw the runner, who has gone on by half a metre.
//! let seen = Vec3::new(90.5 * 7.0 / 128.0, 1.2, 0.0);
//! let ray = Ray { origin: seen - Vec3::Z * 20.0, direction: Vec3::Z, distance_m_max: 100.0 };
//! let mut hits = Vec::new();
//! PastCasts::default().cast(&history, None, &[PastShot { ray, at: admitted.at, shooter: None }], &mut hits);
//! assert_eq!(hits[0].map(|hit| hit.target), Some(PastTarget::Body { slot: 3, limb: 0 }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod clip;
pub mod ecs;
pub mod gltf;
pub mod history;
pub mod past_casts;
pub mod person;
pub mod pose_sampler;
mod poses;
pub mod rig;
pub mod saved;
pub mod shooter;
pub mod skeleton;
mod transforms;
pub mod view_limits;
pub mod view_time;

pub use transforms::PLACE_M_MAX;
