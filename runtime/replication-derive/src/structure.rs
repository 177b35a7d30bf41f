//! Structs: the fields' pieces put together, in order.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::field::Field;

pub fn expand(name: &syn::Ident, public_name: &str, fields: &syn::Fields) -> syn::Result<TokenStream> {
    let members: Vec<syn::Member> = fields.members().collect();
    let mut packed = Vec::new();
    let mut errors: Option<syn::Error> = None;
    for (index, (field, member)) in fields.iter().zip(&members).enumerate() {
        match (Field::new(field, member, &format_ident!("FIELD_{index}")), &mut errors) {
            (Ok(field), _) => packed.push(field),
            (Err(error), None) => errors = Some(error),
            (Err(error), Some(earlier)) => earlier.combine(error),
        }
    }
    if let Some(errors) = errors {
        return Err(errors);
    }
    let each = |part: fn(&Field) -> &TokenStream| packed.iter().map(part).collect::<Vec<_>>();
    let codecs = each(|field| &field.codec);
    let bits = each(|field| &field.bits);
    let exact_bits = each(|field| &field.exact_bits);
    let fingerprints = each(|field| &field.fingerprint);
    let encode = each(|field| &field.encode);
    let decode = each(|field| &field.decode);
    let encode_exact = each(|field| &field.encode_exact);
    let decode_exact = each(|field| &field.decode_exact);
    let agrees = each(|field| &field.agrees);
    Ok(quote! {
        const _: () = {
            #[allow(unused_imports)]
            use ::throng_replication::{
                Replicate, ReplicateBits, ReplicateText, quantise, bytes::{DecodeError, Reader, Writer},
            };
            #(#codecs)*

            #[automatically_derived]
            impl Replicate for #name {
                const NAME: &'static str = #public_name;
                const LAYOUT: u64 = {
                    #[allow(unused_mut)]
                    let mut layout = 0;
                    #(layout = quantise::mix(layout, #fingerprints);)*
                    layout
                };
                const BYTES_MAX: usize = ((0 #(+ #bits)*) as usize).div_ceil(8);
                const EXACT_BYTES_MAX: usize = ((0 #(+ #exact_bits)*) as usize).div_ceil(8);

                #[inline]
                fn encode(&self, out: &mut Writer<'_>) {
                    #(#encode)*
                    out.align();
                }

                #[inline]
                fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
                    let decoded = Self { #(#members: #decode),* };
                    from.align()?;
                    Ok(decoded)
                }

                #[inline]
                fn encode_exact(&self, out: &mut Writer<'_>) {
                    #(#encode_exact)*
                    out.align();
                }

                fn decode_exact(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
                    let decoded = Self { #(#members: #decode_exact),* };
                    from.align()?;
                    Ok(decoded)
                }

                #[allow(unused_variables)]
                fn agrees_with(&self, exact: &Self) -> bool {
                    true #(&& #agrees)*
                }
            }
        };
    })
}
