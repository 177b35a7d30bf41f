//! History: what runs took, kept over commits, and which commits made something slower.
//!
//! Every load run and every bench appends a [`Record`] to a [`store`]: what each subsystem took, on which [`Machine`], of which
//! commit. [`changes`] then holds runs of a like load on like machines against each other and names the commits between
//! which a subsystem began to take another time. A figure of another machine is never compared.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`machine`] | facts about the host, with a short calibration, and whether two hosts can be compared |
//! | [`record`] | one run |
//! | [`store`] | a folder of lines that only grows |
//! | [`series`] | runs of a like load on like machines, in the order of commits |
//! | [`commit_order`] | commits as a repository has them, whenever they were measured |
//! | [`changes`] | where a series changes, by a test that outliers do not fool |
//! | [`student`] | how far a mean of few may be off |
//!
//! Any thread, outside of servers: it reads and writes files and allocates. Cost: some 40 ms for the calibration of a machine,
//! some ms for a store of a thousand runs.

pub mod changes;
pub mod commit_order;
pub mod machine;
pub mod record;
pub mod series;
pub mod store;
pub mod student;

pub use machine::Machine;
pub use record::Record;
