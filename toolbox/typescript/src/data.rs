//! Data: a schema as an object of JavaScript, as `web/client/schema.ts` takes it.

use std::fmt::Write;

use throng_pack::schema::{Field, Kind, Range, Schema as PackSchema, Shape};
use throng_replication::{FieldShape, Schema};

use crate::ExportError;

pub(crate) fn of(schema: &Schema) -> Result<String, ExportError> {
    let mut out = String::new();
    _ = write!(out, "{{\n  hash: \"{:016x}\",\n", schema.hash());
    list(&mut out, "components", schema.kind_names().zip(schema.component_shapes()), |(name, shape)| {
        Ok(format!("name: \"{name}\", shape: {}", field(&shape).ok_or_else(|| unsaid(name))?))
    })?;
    list(&mut out, "events", schema.events().iter(), |event| {
        let shape = field(&event.shape()).ok_or_else(|| unsaid(event.name))?;
        Ok(format!("name: \"{}\", isReliable: {}, shape: {shape}", event.name, event.reliable))
    })?;
    list(&mut out, "inputs", schema.inputs().iter(), |input| {
        let (name, shape) = (input.name, packed(input.schema));
        Ok(format!("name: \"{name}\", saysSeen: {}, repeats: {}, shape: {shape}", input.says_seen, input.repeats))
    })?;
    list(&mut out, "requests", schema.requests().iter(), |request| {
        let (name, shape) = (request.name, packed(request.schema));
        Ok(format!("name: \"{name}\", isForAnyWorld: {}, shape: {shape}", request.is_for_any_world))
    })?;
    list(&mut out, "messages", schema.messages().iter(), |message| {
        Ok(format!("name: \"{}\", shape: {}", message.name, packed(message.schema)))
    })?;
    out.push('}');
    Ok(out)
}

fn unsaid(kind: &str) -> ExportError {
    ExportError::Unsaid { kind: kind.to_owned() }
}

/// A line for each.
fn list<T>(
    out: &mut String,
    name: &str,
    each: impl Iterator<Item = T>,
    write: impl Fn(T) -> Result<String, ExportError>,
) -> Result<(), ExportError> {
    _ = writeln!(out, "  {name}: [");
    for one in each {
        _ = writeln!(out, "    {{ {} }},", write(one)?);
    }
    out.push_str("  ],\n");
    Ok(())
}

/// `None` for what does not say what it is.
fn field(shape: &FieldShape) -> Option<String> {
    Some(match shape {
        FieldShape::Range { min, max, step } => {
            format!("{{ is: \"range\", min: {min:?}, max: {max:?}, step: {step:?} }}")
        }
        FieldShape::Angle { bits } => format!("{{ is: \"angle\", bits: {bits} }}"),
        FieldShape::Exact => "{ is: \"exact\" }".into(),
        FieldShape::Bool { bits } => format!("{{ is: \"bool\", bits: {bits} }}"),
        FieldShape::Unsigned { bits, full } => format!("{{ is: \"unsigned\", bits: {bits}, full: {full} }}"),
        FieldShape::Signed { bits, full } => format!("{{ is: \"signed\", bits: {bits}, full: {full} }}"),
        FieldShape::Integer { min, max, is_signed, full } => {
            format!("{{ is: \"integer\", min: {min}, max: {max}, isSigned: {is_signed}, full: {full} }}")
        }
        FieldShape::Choice { bits, variants, .. } => {
            format!("{{ is: \"choice\", bits: {bits}, names: {variants:?} }}")
        }
        FieldShape::Id => "{ is: \"id\" }".into(),
        FieldShape::Link => "{ is: \"link\" }".into(),
        FieldShape::Text { bytes_max } => format!("{{ is: \"text\", bytesMax: {bytes_max} }}"),
        FieldShape::Option(of) => format!("{{ is: \"option\", of: {} }}", field(of)?),
        FieldShape::List { count_max, of } => format!("{{ is: \"list\", countMax: {count_max}, of: {} }}", field(of)?),
        FieldShape::Numbers { count, of } => format!("{{ is: \"numbers\", count: {count}, of: {} }}", field(of)?),
        FieldShape::Struct { fields: all, .. } => format!("{{ is: \"struct\", fields: {} }}", fields(all)?),
        FieldShape::Enum { variants, .. } => {
            let variants: Option<Vec<String>> =
                variants.iter().map(|(name, all)| Some(format!("[\"{name}\", {}]", fields(all)?))).collect();
            format!("{{ is: \"variants\", variants: [{}] }}", variants?.join(", "))
        }
        FieldShape::Unsaid => return None,
    })
}

fn fields(all: &[(&'static str, FieldShape)]) -> Option<String> {
    let all: Option<Vec<String>> =
        all.iter().map(|(name, shape)| Some(format!("[{}, {}]", field_name(name), field(shape)?))).collect();
    Some(format!("[{}]", all?.join(", ")))
}

/// Those of tuples have none.
fn field_name(name: &str) -> String {
    if name.starts_with(|first: char| first.is_ascii_digit()) { "null".into() } else { format!("\"{name}\"") }
}

fn packed(schema: &PackSchema) -> String {
    match schema.shape {
        Shape::Struct(fields) => format!("{{ is: \"struct\", fields: {} }}", packed_fields(fields)),
        Shape::Enum(variants) if variants.iter().all(|variant| variant.fields.is_empty()) => {
            let names: Vec<&str> = variants.iter().map(|variant| variant.name).collect();
            format!("{{ is: \"choice\", names: {names:?} }}")
        }
        Shape::Enum(variants) => {
            let variants: Vec<String> = variants
                .iter()
                .map(|variant| format!("[\"{}\", {}]", variant.name, packed_fields(variant.fields)))
                .collect();
            format!("{{ is: \"variants\", variants: [{}] }}", variants.join(", "))
        }
    }
}

fn packed_fields(fields: &[Field]) -> String {
    let all: Vec<String> =
        fields.iter().map(|field| format!("[{}, {}]", field_name(field.name), kind(&field.kind, field))).collect();
    format!("[{}]", all.join(", "))
}

/// Range and fixed size are said of the field and hold for all numbers in it.
fn kind(kind: &Kind, of: &Field) -> String {
    match kind {
        Kind::Bool => "{ is: \"bool\" }".into(),
        Kind::Unsigned { bits } => integer("unsigned", *bits, of),
        Kind::Signed { bits } => integer("signed", *bits, of),
        Kind::Float { bits } => {
            let limits = match of.range {
                Some(Range::Floats { min, max }) => format!(", min: {min:?}, max: {max:?}"),
                _ => String::new(),
            };
            format!("{{ is: \"float\", bits: {bits}{limits} }}")
        }
        Kind::Text { bytes_max } => format!("{{ is: \"text\", bytesMax: {bytes_max} }}"),
        Kind::Option { of: inner } => format!("{{ is: \"option\", of: {} }}", self::kind(inner, of)),
        Kind::Array { of: inner, count } => {
            format!("{{ is: \"array\", count: {count}, of: {} }}", self::kind(inner, of))
        }
        Kind::List { of: inner, count_max } => {
            format!("{{ is: \"list\", countMax: {count_max}, of: {} }}", self::kind(inner, of))
        }
        Kind::Named(schema) => packed(schema),
    }
}

fn integer(sort: &str, bits: u8, of: &Field) -> String {
    let fixed = if of.fixed { ", isFixed: true" } else { "" };
    // What a double holds no longer is written as a bigint.
    let end = if bits == 64 { "n" } else { "" };
    let limits = match of.range {
        Some(Range::Integers { min, max }) => format!(", min: {min}{end}, max: {max}{end}"),
        _ => String::new(),
    };
    format!("{{ is: \"{sort}\", bits: {bits}{fixed}{limits} }}")
}
