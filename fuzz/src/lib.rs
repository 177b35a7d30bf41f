//! What the fuzz targets share: how they read their input, the server that they knock at, components to replicate and a
//! world to keep.
//!
//! A target reads the fuzzer's bytes as a script: operations and their arguments, one after the other, where nothing
//! is out of range and a script that ends early has done what it said. So every mutation is a new attempt, and a seed
//! is a handful of bytes. Nothing here reads a clock or a random device: the same input does the same.

pub mod components;
pub mod kept;
pub mod packed;
pub mod scene;
pub mod script;
