//! Structs: the fields, one after the other.

use quote::quote;

use crate::{fields::Fields, parts::Parts};

pub fn expand(name: &syn::Ident, fields: &syn::Fields) -> syn::Result<Parts> {
    let fields = Fields::read(fields, "FIELD")?;
    let members = fields.members();
    let places: Vec<_> = members.iter().map(|member| quote!(&self.#member)).collect();
    let exacts: Vec<_> = members.iter().map(|member| quote!(&exact.#member)).collect();
    let mutable: Vec<_> = members.iter().map(|member| quote!(&mut self.#member)).collect();
    let (layout, decode, decode_exact) = (fields.layout(), fields.decode(), fields.decode_exact());
    let (name, shapes) = (name.to_string(), fields.shapes());
    Ok(Parts {
        constants: fields.constants(),
        bits: fields.bits(),
        exact_bits: fields.exact_bits(),
        layout: quote!({
            #[allow(unused_mut)]
            let mut layout = 0;
            #layout
            layout
        }),
        links: fields.links(),
        encode: fields.encode(&places),
        decode: quote!(Self { #decode }),
        encode_exact: fields.encode_exact(&places),
        decode_exact: quote!(Self { #decode_exact }),
        agrees: fields.agrees(&places, &exacts),
        shape: quote!(__throng::FieldShape::Struct { name: #name, fields: #shapes }),
        visit_links: fields.visit_links(&mutable),
    })
}
