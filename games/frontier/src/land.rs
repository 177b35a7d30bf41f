//! Land: what players change of the landscape, in cells of two metres.
//!
//! ```text
//!   cells     places as cells, plots and sectors; what grows in a cell as nobody has touched it
//!   ground    what a cell is like
//!   map       the cells that were changed, sector by sector, as far as somebody is near
//!   store     changed cells as records: read by sector, written one by one
//! ```
//!
//! What a cell is like before anybody touches it follows from the world's seed and its number, and is worked out when
//! somebody asks: the land takes no memory and no time until then. What was changed is kept: each changed cell is a record
//! of its own, so that a save writes what has changed since the last one and nothing else; and the records of a sector lie
//! beside each other, so that they are read in one go when somebody comes near.
//!
//! So neither a tick, nor a save, nor a start costs more on an old land than on a new one. Memory holds the sectors that
//! somebody is near, and some more ([`map::IDLE_MAX`]).

pub mod cells;
pub mod ground;
pub mod map;
pub mod store;

pub use cells::{Cell, Plot, Sector};
pub use ground::{Ground, Growth, Piece, PieceKind};
pub use map::Map;
