//! Packing and unpacking, tried on a type with a field of every kind.

mod refusals;
mod round_trip;
mod values;
