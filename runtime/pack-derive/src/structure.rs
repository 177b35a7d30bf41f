//! Structs: the fields, one after the other.

use quote::quote;

use crate::{Parts, attributes::TypeAttributes, field};

pub fn expand(ty: &TypeAttributes, fields: &syn::Fields) -> syn::Result<Parts> {
    let fields = field::read_all(ty, fields, "", "")?;
    let members = fields.iter().map(|field| &field.member);
    let constants = fields.iter().map(|field| field.constants());
    let schemas = fields.iter().map(|field| field.schema());
    let bytes_min = fields.iter().map(|field| field.bytes_min());
    let bytes_max = fields.iter().map(|field| field.bytes_max());
    let unpack = fields.iter().map(|field| field.unpack());
    let pack = fields.iter().map(|field| {
        let member = &field.member;
        field.pack(&quote!(&self.#member))
    });
    Ok(Parts {
        constants: quote!(#(#constants)*),
        shape: quote!(__pack::schema::Shape::Struct(&[#(#schemas),*])),
        bytes_min: quote!(__pack::derived::sum(&[#(#bytes_min),*])),
        bytes_max: quote!(__pack::derived::sum(&[#(#bytes_max),*])),
        pack: quote!(#(#pack)*),
        unpack: quote!(::core::result::Result::Ok(Self { #(#members: #unpack),* })),
    })
}
