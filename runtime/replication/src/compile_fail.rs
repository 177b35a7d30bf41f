//! What does not compile, held by these examples; the derive's own tests hold what it says.
//!
//! A type that nobody knows how to pack:
//! ```compile_fail,E0277
//! #[derive(Clone, throng_replication::Replicate)]
//! struct Letter {
//!     first: char,
//! }
//! ```
//!
//! Fewer bits for what is not one code:
//! ```compile_fail,E0277
//! #[derive(Clone, throng_replication::Replicate)]
//! struct Inner(u8);
//! #[derive(Clone, throng_replication::Replicate)]
//! struct Outer {
//!     #[replicate(bits = 3)]
//!     inner: Inner,
//! }
//! ```
//!
//! A range for what is no number:
//! ```compile_fail,E0277
//! #[derive(Clone, throng_replication::Replicate)]
//! struct Door {
//!     #[replicate(min = 0, max = 1)]
//!     open: bool,
//! }
//! ```
//!
//! A range that holds nothing, and one that is wider than its type:
//! ```compile_fail,E0080
//! #[derive(Clone, throng_replication::Replicate)]
//! struct Depth {
//!     #[replicate(min = 3, max = -3)]
//!     metres: i8,
//! }
//! ```
//! ```compile_fail,E0080
//! #[derive(Clone, throng_replication::Replicate)]
//! struct Depth {
//!     #[replicate(min = -200, max = 0)]
//!     metres: i8,
//! }
//! ```
//!
//! A list of too many, or of none:
//! ```compile_fail,E0080
//! use throng_replication::ArrayVec;
//! #[derive(Clone, throng_replication::Replicate)]
//! struct Crowd {
//!     ages: ArrayVec<u8, 256>,
//! }
//! ```
//! ```compile_fail,E0080
//! use throng_replication::ArrayVec;
//! #[derive(Clone, throng_replication::Replicate)]
//! struct Crowd {
//!     ages: ArrayVec<u8, 0>,
//! }
//! ```
//!
//! A type that contains itself, which hostile bytes could nest without end:
//! ```compile_fail
//! use throng_replication::List;
//! #[derive(Clone, throng_replication::Replicate)]
//! struct Branch {
//!     branches: List<Branch, 4>,
//! }
//! ```
//!
//! With nothing wrong, as above, it compiles:
//! ```
//! use throng_replication::{ArrayVec, Replicate};
//! #[derive(Clone, Replicate)]
//! struct Depth {
//!     #[replicate(min = -100, max = 100)]
//!     metres: Option<i8>,
//!     ages: ArrayVec<u8, 255>,
//! }
//! ```
