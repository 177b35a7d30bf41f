//! Replica column: the client's values of one component kind, typed inside and by index outside.

use std::any::Any;

use crate::wire::{
    bytes::{DecodeError, Reader},
    replicate::Replicate,
};

/// The values of one kind, for code that does not know the type.
pub(crate) trait ReplicaColumn: Send + Sync {
    fn as_any(&self) -> &dyn Any;
    /// Makes room for indexes below `count`.
    fn grow(&mut self, count: usize);
    /// Reads a quantised value into `index`. On an error the old value stays.
    fn decode(&mut self, index: usize, from: &mut Reader<'_>) -> Result<(), DecodeError>;
    /// Reads past a quantised value.
    fn skip(&self, from: &mut Reader<'_>) -> Result<(), DecodeError>;
    fn clear(&mut self, index: usize);
    /// Reads past an exact value.
    fn skip_exact(&self, from: &mut Reader<'_>) -> Result<(), DecodeError>;
    /// Whether the value at `index` is what the exact one rounds to. `None` if there is none.
    fn agrees(&self, index: usize, exact: &[u8]) -> Option<bool>;
}

/// The values of `T`, by index.
pub(crate) struct ReplicaColumnOf<T> {
    pub values: Vec<Option<T>>,
}

impl<T> Default for ReplicaColumnOf<T> {
    fn default() -> Self {
        Self { values: Vec::new() }
    }
}

impl<T: Replicate> ReplicaColumn for ReplicaColumnOf<T> {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn grow(&mut self, count: usize) {
        self.values.resize_with(count, || None);
    }

    fn decode(&mut self, index: usize, from: &mut Reader<'_>) -> Result<(), DecodeError> {
        self.values[index] = Some(T::decode(from)?);
        Ok(())
    }

    fn skip(&self, from: &mut Reader<'_>) -> Result<(), DecodeError> {
        T::decode(from).map(drop)
    }

    fn clear(&mut self, index: usize) {
        self.values[index] = None;
    }

    fn skip_exact(&self, from: &mut Reader<'_>) -> Result<(), DecodeError> {
        T::decode_exact(from).map(drop)
    }

    fn agrees(&self, index: usize, exact: &[u8]) -> Option<bool> {
        let copy = self.values[index].as_ref()?;
        let exact = T::decode_exact(&mut Reader::new(exact)).ok()?;
        Some(copy.agrees_with(&exact))
    }
}
