//! Saves: what the crate promises, held against disks that fail, tear and forget, and processes that are killed.

mod accounts;
mod answers;
mod damage;
mod disk_faults;
mod folder;
mod full_disk;
mod kills;
mod leases;
mod poison;
mod power_loss;
mod ranges;
mod settlement;
mod sim_disk;
mod spec;
mod versions;
mod writer;
