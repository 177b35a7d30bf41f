//! Hash: a schema as one number, the same in every build and in every language that follows the drawing.
//!
//! FNV-1a of 64 bits over the bytes below; numbers are little endian, names end with a byte 0.
//!
//! ```text
//! schema      name  shape                                 with limits: name  version u16  shape
//! shape       'S' fields ';'   or   'E' variants ';'
//! variant     '|' name  fields  ';'                       with limits: '|' name  since u16  fields  ';'
//! field       '.' name  kind  fixed u8                    with limits: .. fixed u8  since u16  range
//! kind        1 bool | 2 bits u8 unsigned | 3 bits u8 signed | 4 bits u8 float | 5 text | 6 option, kind |
//!             7 count u32 array, kind | 8 list, kind | 9 named, schema
//!                                                         with limits: 5 bytes_max u8 | 8 count_max u32, kind
//! range       (only with limits)                          0 none | 1 min i128 max i128 | 2 min f64 max f64
//! ```
//!
//! Fields and variants that the version does not have are left out. It is computed by the compiler, but for bytes of
//! older versions.

use super::{Field, Kind, Range, Schema, Shape, Variant, Versions};

const FNV_OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01B3;

/// What is taken in.
#[derive(Copy, Clone)]
pub enum Of {
    /// How bytes are read.
    Layout,
    /// And limits, and versions.
    Everything,
}

pub const fn of_name(name: &str) -> u64 {
    mix(FNV_OFFSET, name.as_bytes())
}

/// `versions`: none stands for the current ones.
pub const fn of_schema(schema: &Schema, versions: Option<&Versions>, of: Of) -> u64 {
    Walk { hash: FNV_OFFSET, versions, of }.schema(schema).hash
}

#[derive(Copy, Clone)]
struct Walk<'a> {
    hash: u64,
    versions: Option<&'a Versions>,
    of: Of,
}

impl Walk<'_> {
    const fn schema(self, schema: &Schema) -> Self {
        let version = match self.versions {
            Some(versions) => versions.version_of(schema),
            None => schema.version,
        };
        let walk = self.name(schema.name).limit(&schema.version.to_le_bytes());
        match schema.shape {
            Shape::Struct(fields) => walk.bytes(b"S").fields(fields, version),
            Shape::Enum(variants) => walk.bytes(b"E").variants(variants, version),
        }
    }

    const fn variants(self, variants: &[Variant], version: u16) -> Self {
        let (mut walk, mut index) = (self, 0);
        while index < variants.len() {
            let variant = &variants[index];
            if variant.since <= version {
                let named = walk.bytes(b"|").name(variant.name).limit(&variant.since.to_le_bytes());
                walk = named.fields(variant.fields, version);
            }
            index += 1;
        }
        walk.bytes(b";")
    }

    const fn fields(self, fields: &[Field], version: u16) -> Self {
        let (mut walk, mut index) = (self, 0);
        while index < fields.len() {
            if fields[index].since <= version {
                walk = walk.field(&fields[index]);
            }
            index += 1;
        }
        walk.bytes(b";")
    }

    const fn field(self, field: &Field) -> Self {
        let walk = self.bytes(b".").name(field.name).kind(&field.kind).bytes(&[field.fixed as u8]);
        let walk = walk.limit(&field.since.to_le_bytes());
        match field.range {
            None => walk.limit(&[0]),
            Some(Range::Integers { min, max }) => walk.limit(&[1]).limit(&min.to_le_bytes()).limit(&max.to_le_bytes()),
            Some(Range::Floats { min, max }) => {
                walk.limit(&[2]).limit(&min.to_bits().to_le_bytes()).limit(&max.to_bits().to_le_bytes())
            }
        }
    }

    const fn kind(self, kind: &Kind) -> Self {
        match kind {
            Kind::Bool => self.bytes(&[1]),
            Kind::Unsigned { bits } => self.bytes(&[2, *bits]),
            Kind::Signed { bits } => self.bytes(&[3, *bits]),
            Kind::Float { bits } => self.bytes(&[4, *bits]),
            Kind::Text { bytes_max } => self.bytes(&[5]).limit(&[*bytes_max]),
            Kind::Option { of } => self.bytes(&[6]).kind(of),
            Kind::Array { of, count } => self.bytes(&[7]).bytes(&count.to_le_bytes()).kind(of),
            Kind::List { of, count_max } => self.bytes(&[8]).limit(&count_max.to_le_bytes()).kind(of),
            Kind::Named(schema) => self.bytes(&[9]).schema(schema),
        }
    }

    const fn name(self, name: &str) -> Self {
        self.bytes(name.as_bytes()).bytes(&[0])
    }

    const fn bytes(self, bytes: &[u8]) -> Self {
        Self { hash: mix(self.hash, bytes), ..self }
    }

    /// Bytes that say how much is possible, not how it is read.
    const fn limit(self, bytes: &[u8]) -> Self {
        match self.of {
            Of::Layout => self,
            Of::Everything => self.bytes(bytes),
        }
    }
}

const fn mix(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut index = 0;
    while index < bytes.len() {
        hash = (hash ^ bytes[index] as u64).wrapping_mul(FNV_PRIME);
        index += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the test vectors of the FNV authors.
    #[test]
    fn it_is_fnv_1a() {
        assert_eq!(of_name(""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(of_name("a"), 0xAF63_DC4C_8601_EC8C);
        assert_eq!(of_name("foobar"), 0x8594_4171_F739_67E8);
    }

    /// The drawing, followed by hand.
    #[test]
    fn the_bytes_under_the_hash_are_those_drawn() {
        const ITEM: Schema = Schema::new(
            "Item",
            2,
            Shape::Enum(&[Variant { name: "A", fields: &[], since: 1 }, Variant { name: "B", fields: &[], since: 2 }]),
        );
        let range = Some(Range::integers(-1, 5));
        let field = |name, kind, range| Field { name, kind, fixed: false, range, since: 1 };
        let fields = Box::leak(Box::new([
            field("x", Kind::Signed { bits: 8 }, range),
            field("items", Kind::List { of: &Kind::Named(&ITEM), count_max: 3 }, None),
        ]));
        let bag = Schema::new("Bag", 1, Shape::Struct(fields));
        let layout = b"Bag\0S.x\0\x03\x08\0.items\0\x08\x09Item\0E|A\0;|B\0;;\0;";
        assert_eq!(bag.layout(), mix(FNV_OFFSET, layout));
        let mut everything = b"Bag\0\x01\0S.x\0\x03\x08\0\x01\0\x01".to_vec();
        everything.extend((-1_i128).to_le_bytes().into_iter().chain(5_i128.to_le_bytes()));
        everything.extend(b".items\0\x08\x03\0\0\0\x09Item\0\x02\0E|A\0\x01\0;|B\0\x02\0;;\0\x01\0\0;");
        assert_eq!(bag.hash(), mix(FNV_OFFSET, &everything));
    }
}
