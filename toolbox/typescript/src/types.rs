//! Types: a declaration for each struct and enum that is met, once.

use throng_pack::schema::{Kind, Schema, Shape};
use throng_replication::FieldShape;

use crate::property;

/// Declarations so far, in the order in which they were met.
#[derive(Default)]
pub(crate) struct Types {
    named: Vec<(String, String)>,
    /// Whether any of them names an entity.
    pub names_entities: bool,
}

type Fields = Vec<(&'static str, String)>;

impl Types {
    pub fn definitions(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(|(_, definition)| &**definition)
    }

    /// The type of a field's shape.
    pub fn of_field(&mut self, shape: &FieldShape) -> String {
        match shape {
            FieldShape::Range { .. }
            | FieldShape::Angle { .. }
            | FieldShape::Exact
            | FieldShape::Unsigned { .. }
            | FieldShape::Signed { .. }
            | FieldShape::Integer { .. } => "number".into(),
            FieldShape::Bool { .. } => "boolean".into(),
            FieldShape::Text { .. } => "string".into(),
            FieldShape::Id => self.entity("EntityId"),
            FieldShape::Link => self.entity("EntityId | null"),
            FieldShape::Numbers { count, .. } => format!("readonly [{}]", vec!["number"; *count].join(", ")),
            FieldShape::Option(of) => format!("{} | null", self.of_field(of)),
            FieldShape::List { of, .. } => list(&self.of_field(of)),
            FieldShape::Choice { name, variants, .. } => self.choice(name, variants),
            FieldShape::Struct { name, fields } => {
                let fields = self.fields(fields);
                self.structure(name, &fields)
            }
            FieldShape::Enum { name, variants } => {
                let variants = variants.iter().map(|(name, fields)| (*name, self.fields(fields))).collect::<Vec<_>>();
                self.variants(name, &variants)
            }
            // The data is refused before.
            FieldShape::Unsaid => "unknown".into(),
        }
    }

    /// The type of what is packed.
    pub fn of_packed(&mut self, schema: &'static Schema) -> String {
        let name = type_name(schema.name);
        match schema.shape {
            Shape::Struct(fields) => {
                let fields = self.packed_fields(fields);
                self.structure(&name, &fields)
            }
            Shape::Enum(variants) if variants.iter().all(|variant| variant.fields.is_empty()) => {
                self.choice(&name, &variants.iter().map(|variant| variant.name).collect::<Vec<_>>())
            }
            Shape::Enum(variants) => {
                let variants: Vec<_> =
                    variants.iter().map(|variant| (variant.name, self.packed_fields(variant.fields))).collect();
                self.variants(&name, &variants)
            }
        }
    }

    fn of_kind(&mut self, kind: &'static Kind) -> String {
        match kind {
            Kind::Bool => "boolean".into(),
            Kind::Unsigned { bits: 64 } | Kind::Signed { bits: 64 } => "bigint".into(),
            Kind::Unsigned { .. } | Kind::Signed { .. } | Kind::Float { .. } => "number".into(),
            Kind::Text { .. } => "string".into(),
            Kind::Option { of } => format!("{} | null", self.of_kind(of)),
            Kind::Array { of, .. } | Kind::List { of, .. } => list(&self.of_kind(of)),
            Kind::Named(schema) => self.of_packed(schema),
        }
    }

    fn fields(&mut self, fields: &[(&'static str, FieldShape)]) -> Fields {
        fields.iter().map(|(name, shape)| (*name, self.of_field(shape))).collect()
    }

    fn packed_fields(&mut self, fields: &'static [throng_pack::schema::Field]) -> Fields {
        fields.iter().map(|field| (field.name, self.of_kind(&field.kind))).collect()
    }

    fn entity(&mut self, name: &str) -> String {
        self.names_entities = true;
        name.into()
    }

    fn choice(&mut self, name: &str, variants: &[&str]) -> String {
        let variants: Vec<String> = variants.iter().map(|variant| format!("\"{variant}\"")).collect();
        self.declare(name, |name| format!("export type {name} = {};", variants.join(" | ")))
    }

    fn structure(&mut self, name: &str, fields: &Fields) -> String {
        match of_tuple(fields) {
            Some(tuple) => self.declare(name, |name| format!("export type {name} = {tuple};")),
            None if fields.is_empty() => {
                self.declare(name, |name| format!("export type {name} = Record<string, never>;"))
            }
            None => {
                let fields: String =
                    fields.iter().map(|(name, of)| format!("  readonly {}: {of};\n", property(name))).collect();
                self.declare(name, |name| format!("export interface {name} {{\n{fields}}}"))
            }
        }
    }

    fn variants(&mut self, name: &str, variants: &[(&str, Fields)]) -> String {
        let each = variants.iter().map(|(variant, fields)| {
            let fields = match of_tuple(fields) {
                Some(tuple) => format!("; readonly value: {tuple}"),
                None => fields.iter().map(|(name, of)| format!("; readonly {}: {of}", property(name))).collect(),
            };
            format!("\n  | {{ readonly is: \"{variant}\"{fields} }}")
        });
        let each: String = each.collect();
        self.declare(name, |name| format!("export type {name} ={each};"))
    }

    /// Declares a type, once; under another name where two differ.
    fn declare(&mut self, name: &str, write: impl Fn(&str) -> String) -> String {
        let mut free = name.to_owned();
        for number in 2.. {
            let definition = write(&free);
            match self.named.iter().find(|(known, _)| *known == free) {
                None => {
                    self.named.push((free.clone(), definition));
                    break;
                }
                Some((_, known)) if *known == definition => break,
                Some(_) => free = format!("{name}{number}"),
            }
        }
        free
    }
}

/// A tuple's type; of a single field, that one's.
fn of_tuple(fields: &Fields) -> Option<String> {
    let [(first, of), rest @ ..] = &**fields else { return None };
    if *first != "0" {
        return None;
    }
    let all = fields.iter().map(|(_, of)| &**of).collect::<Vec<_>>().join(", ");
    Some(if rest.is_empty() { of.clone() } else { format!("readonly [{all}]") })
}

fn list(of: &str) -> String {
    if of.contains(' ') { format!("readonly ({of})[]") } else { format!("readonly {of}[]") }
}

/// `game.bag_of_things` is `BagOfThings`.
fn type_name(name: &str) -> String {
    let last = name.rsplit('.').next().unwrap_or(name);
    let words = last.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect()
}
