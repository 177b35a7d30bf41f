//! The promise: what players have and worlds hold is there again after the server has ended, however it ended, as of one
//! moment for everybody concerned; nothing is there twice, and nothing is gone.

mod bazaar;
mod chaos;
mod damaged;
mod disk;
mod killers;
mod kills;
mod leavers;
mod left_out;
mod moves;
mod older_build;
mod parked;
mod restart;
mod stale;
