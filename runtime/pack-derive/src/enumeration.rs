//! Enums: the variant's number, and its fields.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use crate::{
    Parts,
    attributes::{self, TypeAttributes, VariantAttributes},
    field::{self, Field},
};

/// A variant's number is one byte.
const VARIANTS_MAX: usize = 256;

pub fn expand(ty: &TypeAttributes, name: &syn::Ident, data: &syn::DataEnum) -> syn::Result<Parts> {
    if data.variants.is_empty() {
        return Err(syn::Error::new_spanned(name, "an enum without variants has no value to pack"));
    }
    if data.variants.len() > VARIANTS_MAX {
        return Err(syn::Error::new_spanned(name, "an enum of more than 256 variants cannot be packed"));
    }
    let variants = attributes::all(data.variants.iter().enumerate().map(|(number, variant)| {
        let attributes = VariantAttributes::read(variant, ty)?;
        let fields = field::read_all(ty, &variant.fields, &format!("_{number}"), &format!("{}.", attributes.name))?;
        Ok(Variant { ident: &variant.ident, number: number as u8, attributes, fields })
    }))?;
    let mut names = Vec::new();
    for variant in &variants {
        attributes::add_name(&mut names, &variant.attributes.name, variant.ident)?;
    }
    for pair in variants.windows(2) {
        if pair[0].attributes.since > pair[1].attributes.since {
            let message = "older variants stand first, or their numbers in older bytes would change";
            return Err(syn::Error::new_spanned(pair[1].ident, message));
        }
    }
    let constants = variants.iter().flat_map(|variant| variant.fields.iter().map(Field::constants));
    let schemas = variants.iter().map(Variant::schema);
    let bytes_min = variants.iter().map(|variant| variant.bytes(|field| field.bytes_min()));
    let bytes_max = variants.iter().map(|variant| variant.bytes(|field| field.bytes_max()));
    let pack = variants.iter().map(Variant::pack);
    let unpack = variants.iter().map(Variant::unpack);
    Ok(Parts {
        constants: quote!(#(#constants)*),
        shape: quote!(__pack::schema::Shape::Enum(&[#(#schemas),*])),
        bytes_min: quote!(__pack::derived::least(&[#(#bytes_min),*])),
        bytes_max: quote!(__pack::derived::most(&[#(#bytes_max),*])),
        pack: quote!(match self { #(#pack)* }),
        unpack: quote! {
            let number = __from.u8().map_err(|fault| __pack::PackError::from(fault).at(__NAME, ""))?;
            ::core::result::Result::Ok(match number {
                #(#unpack)*
                #[allow(unreachable_patterns)]
                got => {
                    let fault = __pack::Fault::UnknownVariant { got };
                    return ::core::result::Result::Err(__pack::PackError::from(fault).at(__NAME, ""));
                }
            })
        },
    })
}

struct Variant<'a> {
    ident: &'a syn::Ident,
    number: u8,
    attributes: VariantAttributes,
    fields: Vec<Field<'a>>,
}

impl Variant<'_> {
    fn schema(&self) -> TokenStream {
        let (name, since) = (&self.attributes.name, self.attributes.since);
        let fields = self.fields.iter().map(Field::schema);
        quote!(__pack::schema::Variant { name: #name, fields: &[#(#fields),*], since: #since })
    }

    fn bytes(&self, of: fn(&Field<'_>) -> TokenStream) -> TokenStream {
        let bytes = self.fields.iter().map(of);
        quote!(__pack::derived::sum(&[1, #(#bytes),*]))
    }

    /// An arm of a match; tuples' fields are named by their numbers, as structs' by their names.
    fn pack(&self) -> TokenStream {
        let (ident, number) = (self.ident, Literal::u8_suffixed(self.number));
        let members = self.fields.iter().map(|field| &field.member);
        let bindings: Vec<_> = (0..self.fields.len()).map(|index| format_ident!("__field_{index}")).collect();
        let packed = self.fields.iter().zip(&bindings).map(|(field, binding)| field.pack(&quote!(#binding)));
        quote! {
            Self::#ident { #(#members: #bindings),* } => {
                __out.u8(#number);
                #(#packed)*
            }
        }
    }

    fn unpack(&self) -> TokenStream {
        let (ident, number) = (self.ident, Literal::u8_suffixed(self.number));
        let members = self.fields.iter().map(|field| &field.member);
        let values = self.fields.iter().map(Field::unpack);
        let since = self.attributes.since;
        let guard = if since > 1 { quote!(if __version >= #since) } else { quote!() };
        quote!(#number #guard => Self::#ident { #(#members: #values),* },)
    }
}
