//! Versions: which version the types in some bytes have.
//!
//! A part (a named type inside another) has a version of its own, but no byte of the value says it: an item in a list
//! of a hundred would say it a hundred times. It is told once, in the envelope, and only of parts that ever had a
//! second version. So a part may change without a new version of the types that hold it.

use super::{Field, Schema, Shape};

/// Parts beyond their first version that one type may have. A search through at most so many per part in older bytes.
pub const PARTS_MAX: usize = 16;

/// Ids and versions, ascending by id. What is not in it has version 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    /// One more for the type itself.
    entries: [(u64, u16); PARTS_MAX + 1],
    count: usize,
}

impl Versions {
    pub const NONE: Self = Self { entries: [(0, 0); PARTS_MAX + 1], count: 0 };

    /// The current versions of the parts of a type, where they are above 1.
    ///
    /// # Panics
    /// If two types in it have one name, or too many have versions: while compiling.
    pub const fn of_parts(schema: &Schema) -> Self {
        let parts = Self::NONE.with_parts(schema, schema);
        assert!(parts.count <= PARTS_MAX, "a type with more than 16 parts beyond version 1");
        parts
    }

    /// With the parts of `of`, which is `whole` or a part of it.
    const fn with_parts(self, of: &Schema, whole: &Schema) -> Self {
        let mut versions = self;
        match of.shape {
            Shape::Struct(fields) => versions.with_fields(fields, whole),
            Shape::Enum(variants) => {
                let mut index = 0;
                while index < variants.len() {
                    versions = versions.with_fields(variants[index].fields, whole);
                    index += 1;
                }
                versions
            }
        }
    }

    const fn with_fields(self, fields: &[Field], whole: &Schema) -> Self {
        let (mut versions, mut index) = (self, 0);
        while index < fields.len() {
            if let Some(part) = fields[index].kind.named() {
                assert!(is_first_of_its_name(part, whole), "two types with one name in one value");
                if part.version > 1 {
                    versions = versions.with(part.id, part.version);
                }
                versions = versions.with_parts(part, whole);
            }
            index += 1;
        }
        versions
    }

    /// With a version more, at its place.
    pub const fn with(self, id: u64, version: u16) -> Self {
        let mut versions = self;
        let mut place = 0;
        while place < versions.count && versions.entries[place].0 < id {
            place += 1;
        }
        if place < versions.count && versions.entries[place].0 == id {
            assert!(versions.entries[place].1 == version, "one version for one id");
            return versions;
        }
        assert!(versions.count <= PARTS_MAX, "a type with more than 16 parts beyond version 1");
        let mut last = versions.count;
        while last > place {
            versions.entries[last] = versions.entries[last - 1];
            last -= 1;
        }
        versions.entries[place] = (id, version);
        versions.count += 1;
        versions
    }

    #[inline]
    pub const fn version_of(&self, schema: &Schema) -> u16 {
        if schema.version == 1 {
            return 1;
        }
        let mut index = 0;
        while index < self.count {
            if self.entries[index].0 == schema.id {
                return self.entries[index].1;
            }
            index += 1;
        }
        1
    }

    pub const fn entries(&self) -> &[(u64, u16)] {
        self.entries.split_at(self.count).0
    }
}

/// Whether the first type of that name in the whole is the same type, as far as bytes tell.
const fn is_first_of_its_name(part: &Schema, whole: &Schema) -> bool {
    match find(whole, part.id) {
        Some(first) => first.version == part.version && first.layout() == part.layout(),
        None => false,
    }
}

const fn find(schema: &Schema, id: u64) -> Option<&Schema> {
    if schema.id == id {
        return Some(schema);
    }
    match schema.shape {
        Shape::Struct(fields) => find_in(fields, id),
        Shape::Enum(variants) => {
            let mut index = 0;
            while index < variants.len() {
                if let Some(found) = find_in(variants[index].fields, id) {
                    return Some(found);
                }
                index += 1;
            }
            None
        }
    }
}

const fn find_in(fields: &'static [Field], id: u64) -> Option<&'static Schema> {
    let mut index = 0;
    while index < fields.len() {
        if let Some(part) = fields[index].kind.named()
            && let Some(found) = find(part, id)
        {
            return Some(found);
        }
        index += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_in_order_and_once() {
        let versions = Versions::NONE.with(7, 2).with(3, 4).with(9, 2).with(7, 2);
        assert_eq!(versions.entries(), [(3, 4), (7, 2), (9, 2)]);
    }
}
