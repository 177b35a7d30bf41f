//! Envelope: what stands in front of a value that leaves its program, or may outlive it.
//!
//! ```text
//! byte   0         8          16        18        19                             n = 19 + 10 parts
//!        +---------+----------+---------+---------+----------------------------+----------+---------+
//!        | type id | layout   | version | parts   | part id u64, version u16   | length   | value   |
//!        | u64     | u64      | u16     | u8      | as often as parts says     | u32      | length  |
//!        +---------+----------+---------+---------+----------------------------+----------+---------+
//! ```
//!
//! Numbers are little endian. `type id` is the hash of the type's name ([`Schema::id`]), `layout` that of its fields in
//! this version ([`Schema::layout`]), `length` that of the value. `parts` tells the versions of the named types inside
//! that are beyond their first, ascending by id, at most 16.
//!
//! A reader refuses another type, a version that it does not know, and a layout that differs from the one it has for
//! this version: somebody changed fields and forgot the version, and a coat would have become a gun. The header of a
//! type is a constant of the program; writing it costs a few stores. Bytes of the current version cost no search; those of an
//! older one a hash over the schema.
//!
//! [`Schema::id`]: crate::Schema::id
//! [`Schema::layout`]: crate::Schema::layout

use std::{marker::PhantomData, ops::Deref};

use crate::{
    HasSchema, PackError, Reader, Writer,
    error::Fault,
    schema::{PARTS_MAX, Schema, Versions},
};

/// Bytes of an envelope around a value none of whose parts had a second version.
pub const ENVELOPE_BYTES_MIN: usize = 8 + 8 + 2 + 1 + 4;
/// Bytes of the largest envelope, the value not counted.
pub const ENVELOPE_BYTES_MAX: usize = ENVELOPE_BYTES_MIN + 10 * PARTS_MAX;

/// Appends the value in an envelope. Allocates nothing if `out` has room.
///
/// Refuses a value that breaks its limits, and leaves `out` as it was then.
pub fn write<T: HasSchema>(value: &T, out: &mut Vec<u8>) -> Result<(), PackError> {
    let start = out.len();
    Heading::write::<T>(out);
    out.extend_from_slice(&[0; 4]);
    let value_start = out.len();
    if let Err(error) = value.pack(&mut Writer::new(out)) {
        out.truncate(start);
        return Err(error);
    }
    let length = (out.len() - value_start) as u32;
    out[value_start - 4..value_start].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// The value in an envelope that is all there is in `bytes`.
pub fn read<T: HasSchema>(bytes: &[u8]) -> Result<T, PackError> {
    let in_type = |fault: Fault| PackError::from(fault).at(T::SCHEMA.name, "");
    let (envelope, rest) = Envelope::parse(bytes).map_err(in_type)?;
    let value = envelope.unpack()?;
    if rest.is_empty() { Ok(value) } else { Err(in_type(Fault::TrailingBytes)) }
}

/// Most bytes of a value of this type in its envelope, to reserve or to limit.
pub const fn bytes_max<T: HasSchema>() -> usize {
    T::BYTES_MAX + ENVELOPE_BYTES_MIN + 10 * Of::<T>::KNOWN.parts.entries().len()
}

/// What an envelope says of its value's type. Where many values of one type stand together, it stands once, in front of
/// all, and each value is its bytes alone: [`Heading::write`], [`Heading::unpack`].
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Heading {
    /// [`Schema::id`](crate::Schema::id) of the type within.
    pub type_id: u64,
    pub layout: u64,
    pub version: u16,
    parts: Versions,
}

impl Heading {
    /// Appends what an envelope of a `T` says of it.
    pub fn write<T: HasSchema>(out: &mut Vec<u8>) {
        const { &Of::<T>::KNOWN }.write(out);
    }

    /// The next one. Allocates nothing.
    pub fn read(from: &mut Reader<'_>) -> Result<Self, Fault> {
        Ok(Self {
            type_id: u64::from_le_bytes(from.array()?),
            layout: u64::from_le_bytes(from.array()?),
            version: u16::from_le_bytes(from.array()?),
            parts: read_parts(from)?,
        })
    }

    /// The value that [`pack_body`](crate::pack_body) made of a `T` of the version that this says.
    pub fn unpack<T: HasSchema>(&self, value: &[u8]) -> Result<T, PackError> {
        let current = self.check(const { &Of::<T>::KNOWN })?;
        let versions = self.parts.with(T::SCHEMA.id, self.version);
        let mut from = if current { Reader::new(value) } else { Reader::with_versions(value, &versions) };
        let value = T::unpack(&mut from)?;
        from.end().map_err(|fault| PackError::from(fault).at(T::SCHEMA.name, ""))?;
        Ok(value)
    }
}

/// An envelope whose value is not read yet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    heading: Heading,
    value: &'a [u8],
}

impl Deref for Envelope<'_> {
    type Target = Heading;

    fn deref(&self) -> &Heading {
        &self.heading
    }
}

impl<'a> Envelope<'a> {
    /// The envelope at the front of `bytes`, and what follows it. Allocates nothing.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Fault> {
        let mut from = Reader::new(bytes);
        let heading = Heading::read(&mut from)?;
        let length = u32::from_le_bytes(from.array()?);
        let value = from.bytes(usize::try_from(length).map_err(|_| Fault::Truncated)?)?;
        Ok((Self { heading, value }, from.rest()))
    }

    pub fn holds<T: HasSchema>(&self) -> bool {
        self.type_id == T::SCHEMA.id
    }

    /// The bytes of the value.
    pub fn value(&self) -> &'a [u8] {
        self.value
    }

    /// The value, if it is a `T` of a version that this program knows.
    pub fn unpack<T: HasSchema>(&self) -> Result<T, PackError> {
        self.heading.unpack(self.value)
    }
}

impl Heading {
    /// Whether every type in it has the current version; refuses what this program does not know.
    fn check(&self, known: &Known) -> Result<bool, PackError> {
        let schema = known.schema;
        let refuse = |name, fault: Fault| Err(PackError::from(fault).at(name, ""));
        if self.type_id != schema.id {
            return refuse(schema.name, Fault::WrongType { got: self.type_id });
        }
        if self.version == 0 {
            return refuse(schema.name, Fault::NoVersion);
        }
        if self.version > schema.version {
            return refuse(schema.name, Fault::NewerVersion { got: self.version, known: schema.version });
        }
        let current = self.version == schema.version && self.parts == known.parts;
        let mut layout = known.layout;
        if !current {
            let known_parts = schema.parts();
            for &(id, got) in self.parts.entries() {
                let Some(part) = known_parts[1..].iter().find(|part| part.id == id) else {
                    return refuse(schema.name, Fault::UnknownPart { got: id });
                };
                if got > part.version {
                    return refuse(part.name, Fault::NewerVersion { got, known: part.version });
                }
            }
            layout = schema.layout_at(&self.parts.with(schema.id, self.version));
        }
        if self.layout != layout {
            return refuse(schema.name, Fault::LayoutChanged { version: self.version });
        }
        Ok(current)
    }
}

fn read_parts(from: &mut Reader<'_>) -> Result<Versions, Fault> {
    let count = usize::from(from.u8()?);
    if count > PARTS_MAX {
        return Err(Fault::Parts);
    }
    let mut parts = Versions::NONE;
    for _ in 0..count {
        let id = u64::from_le_bytes(from.array()?);
        let version = u16::from_le_bytes(from.array()?);
        let in_order = parts.entries().last().is_none_or(|(last, _)| *last < id);
        if !in_order || version < 2 {
            return Err(Fault::Parts);
        }
        parts = parts.with(id, version);
    }
    Ok(parts)
}

/// What the program knows of a type's envelope. The code over it is the same for every type, so it is compiled once.
struct Known {
    schema: &'static Schema,
    layout: u64,
    parts: Versions,
}

impl Known {
    fn write(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.bytes(&self.schema.id.to_le_bytes());
        writer.bytes(&self.layout.to_le_bytes());
        writer.bytes(&self.schema.version.to_le_bytes());
        writer.u8(self.parts.entries().len() as u8);
        for (id, version) in self.parts.entries() {
            writer.bytes(&id.to_le_bytes());
            writer.bytes(&version.to_le_bytes());
        }
    }
}

/// The same as a constant of the type.
struct Of<T>(PhantomData<T>);

impl<T: HasSchema> Of<T> {
    const KNOWN: Known = {
        assert!(T::BYTES_MAX <= u32::MAX as usize, "a value may take more than 4 GiB: bound its lists");
        Known { schema: T::SCHEMA, layout: T::SCHEMA.layout(), parts: Versions::of_parts(T::SCHEMA) }
    };
}
