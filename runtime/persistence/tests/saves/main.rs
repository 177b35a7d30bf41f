//! Saves: what the crate promises, held against disks that fail, tear and forget, and processes that are killed.

mod accounts;
mod folder;
mod leases;
mod versions;
mod writer;
