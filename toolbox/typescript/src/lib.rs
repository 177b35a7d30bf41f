//! A game's schema as TypeScript: what components, events, inputs, requests and messages are made of, as types for whoever
//! writes a client, and as data for `web/client`, which reads and writes by it.
//!
//! ```
//! use throng_pack::Pack;
//! use throng_replication::{ClientInput, Replicate, SchemaBuilder};
//!
//! #[derive(Clone, Replicate)]
//! struct Position {
//!     #[replicate(min = -100.0, max = 100.0, step = 0.01)]
//!     x: f32,
//! }
//!
//! #[derive(Pack)]
//! struct Walk(i8);
//! impl ClientInput for Walk {}
//!
//! let schema = SchemaBuilder::new().component::<Position>().input::<Walk>().build();
//! let text = throng_typescript::module("meadow", &schema, "throng-client").unwrap();
//! assert!(text.contains("export interface Position {\n  readonly x: number;\n}"));
//! assert!(text.contains("export type Walk = number;"));
//! ```
//!
//! The same schema gives the same text, so that a file that is kept can be compared. Types are immutable (`readonly`): a
//! client's copies are not to be changed. Allocates; runs at an export, and when a server begins to show pages.

mod data;
mod types;

use std::fmt::Write;

use throng_replication::Schema;

use types::Types;

/// Why a schema cannot be exported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    #[error(
        "`{kind}` has a codec that was written by hand and does not say what it is made of: derive `Replicate`, or write \
         its `shape`"
    )]
    Unsaid { kind: String },
}

/// The whole module: types, and `schema`. `client` is what the package is imported from.
pub fn module(game: &str, schema: &Schema, client: &str) -> Result<String, ExportError> {
    let data = data::of(schema)?;
    let mut types = Types::default();
    let sorts = sorts(schema, &mut types);
    let mut out = format!(
        "// What a server of {game} says and is told: written by the command `schema`, not by hand.\n\n\
         import {{ {}Schema }} from \"{client}\";\n",
        if types.names_entities { "type EntityId, " } else { "" }
    );
    for definition in types.definitions() {
        _ = write!(out, "\n{definition}\n");
    }
    _ = write!(out, "\nexport interface Game {{\n");
    for (sort, names) in sorts {
        let fields: Vec<String> =
            names.iter().map(|(key, name)| format!("readonly {}: {name}", property(key))).collect();
        _ = writeln!(out, "  readonly {sort}: {{ {} }};", fields.join("; "));
    }
    _ = write!(out, "}}\n\nexport const schema = new Schema<Game>({data});\n");
    Ok(out.replace("{  }", "object"))
}

/// The data alone, as a module of JavaScript that exports it as `data`.
pub fn data_module(schema: &Schema) -> Result<String, ExportError> {
    Ok(format!("export const data = {};\n", data::of(schema)?))
}

/// Of each sort the names on the wire, and the types.
fn sorts(schema: &Schema, types: &mut Types) -> [(&'static str, Vec<(String, String)>); 5] {
    let components = schema
        .kind_names()
        .zip(schema.component_shapes())
        .map(|(name, shape)| (name.to_owned(), types.of_field(&shape)))
        .collect();
    let events = schema.events().iter().map(|event| (event.name.to_owned(), types.of_field(&event.shape()))).collect();
    let mut packed = |kinds: &[throng_replication::PackedKind]| {
        kinds.iter().map(|kind| (kind.name.to_owned(), types.of_packed(kind.schema))).collect()
    };
    let (inputs, requests, messages) = (packed(schema.inputs()), packed(schema.requests()), packed(schema.messages()));
    [("components", components), ("events", events), ("inputs", inputs), ("requests", requests), ("messages", messages)]
}

/// A property's name, in quotes where it needs them.
fn property(name: &str) -> String {
    let is_plain = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && !name.starts_with(|first: char| first.is_ascii_digit());
    if is_plain { name.to_owned() } else { format!("\"{name}\"") }
}

#[cfg(test)]
mod tests;
