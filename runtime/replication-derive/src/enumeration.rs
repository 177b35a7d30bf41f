//! Enums without fields: the variant's position is its code.

use proc_macro2::TokenStream;
use quote::quote;

pub fn expand(name: &syn::Ident, data: &syn::DataEnum) -> syn::Result<TokenStream> {
    if data.variants.is_empty() {
        return Err(syn::Error::new_spanned(name, "an enum without variants has no value to send"));
    }
    if let Some(variant) = data.variants.iter().find(|variant| !matches!(variant.fields, syn::Fields::Unit)) {
        return Err(syn::Error::new_spanned(variant, "only enums without fields are replicated"));
    }
    let variants: Vec<&syn::Ident> = data.variants.iter().map(|variant| &variant.ident).collect();
    let codes: Vec<u32> = (0..).take(variants.len()).collect();
    // One variant still takes a bit, so that no component field is empty.
    let bits = (u32::BITS - (variants.len() as u32 - 1).leading_zeros()).max(1);
    let text = name.to_string();
    Ok(quote! {
        const _: () = {
            use ::throng_replication::{
                Replicate, ReplicateBits, quantise, bytes::{DecodeError, Reader, Writer},
            };
            const CODE: quantise::Bits = quantise::Bits::new(#bits);

            #[automatically_derived]
            impl ReplicateBits for #name {
                const BITS: u32 = #bits;
                fn to_code(&self) -> u32 {
                    match self { #(Self::#variants => #codes),* }
                }
                fn from_code(code: u32) -> Result<Self, DecodeError> {
                    match code { #(#codes => Ok(Self::#variants),)* _ => Err(DecodeError::OutOfRange) }
                }
            }

            #[automatically_derived]
            impl Replicate for #name {
                const NAME: &'static str = #text;
                const LAYOUT: u64 = CODE.fingerprint();
                const BYTES_MAX: usize = (#bits as usize).div_ceil(8);
                const EXACT_BYTES_MAX: usize = <Self as Replicate>::BYTES_MAX;

                fn encode(&self, out: &mut Writer<'_>) {
                    CODE.encode(self, out);
                    out.align();
                }
                fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
                    let decoded = CODE.decode(from)?;
                    from.align()?;
                    Ok(decoded)
                }
                fn encode_exact(&self, out: &mut Writer<'_>) {
                    self.encode(out);
                }
                fn decode_exact(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
                    Self::decode(from)
                }
                fn agrees_with(&self, exact: &Self) -> bool {
                    self.to_code() == exact.to_code()
                }
            }
        };
    })
}
