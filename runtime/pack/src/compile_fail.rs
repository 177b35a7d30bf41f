//! What does not compile, held by these examples; the derive's own tests hold what it says.
//!
//! A list without a bound:
//! ```compile_fail,E0277
//! #[derive(throng_pack::Pack)]
//! struct Bag {
//!     items: Vec<u8>,
//! }
//! ```
//!
//! A text without a bound:
//! ```compile_fail,E0277
//! #[derive(throng_pack::Pack)]
//! struct Sign {
//!     words: String,
//! }
//! ```
//!
//! A number whose size depends on the machine:
//! ```compile_fail,E0277
//! #[derive(throng_pack::Pack)]
//! struct Count {
//!     things: usize,
//! }
//! ```
//!
//! A type that contains itself, which hostile bytes could nest without end:
//! ```compile_fail,E0391
//! #[derive(throng_pack::Pack)]
//! struct Box {
//!     boxes: throng_pack::List<Box, 4>,
//! }
//! ```
//!
//! A range that holds nothing, or no number at all:
//! ```compile_fail,E0080
//! #[derive(throng_pack::Pack)]
//! struct Health {
//!     #[pack(min = 10, max = 1)]
//!     points: u8,
//! }
//! ```
//! ```compile_fail,E0080
//! #[derive(throng_pack::Pack)]
//! struct Place {
//!     #[pack(max = f32::NAN)]
//!     height: f32,
//! }
//! ```
//! ```compile_fail,E0080
//! #[derive(throng_pack::Pack)]
//! struct Place {
//!     #[pack(max = f32::INFINITY)]
//!     height: f32,
//! }
//! ```
//!
//! A range for what has no numbers, and one of numbers of another type:
//! ```compile_fail,E0277
//! #[derive(throng_pack::Pack)]
//! struct Name {
//!     #[pack(max = 10)]
//!     name: throng_pack::Text<24>,
//! }
//! ```
//! ```compile_fail,E0308
//! #[derive(throng_pack::Pack)]
//! struct Place {
//!     #[pack(max = 10)]
//!     height: f32,
//! }
//! ```
//!
//! `fixed` for what is so anyway:
//! ```compile_fail,E0277
//! #[derive(throng_pack::Pack)]
//! struct Health {
//!     #[pack(fixed)]
//!     points: u8,
//! }
//! ```
//!
//! A text longer than its length can say:
//! ```compile_fail,E0080
//! #[derive(throng_pack::Pack)]
//! struct Novel {
//!     words: throng_pack::Text<256>,
//! }
//! ```
//!
//! An envelope around something without a name:
//! ```compile_fail,E0277
//! throng_pack::envelope::write(&7_u32, &mut Vec::new());
//! ```
//!
//! Two types with one name in one value, whose versions could not be told apart:
//! ```compile_fail,E0080
//! mod old {
//!     #[derive(throng_pack::Pack)]
//!     #[pack(version = 2)]
//!     pub struct Item(pub u8);
//! }
//! #[derive(throng_pack::Pack)]
//! #[pack(version = 2)]
//! struct Item(u16);
//! #[derive(throng_pack::Pack)]
//! struct Both(old::Item, Item);
//! ```
