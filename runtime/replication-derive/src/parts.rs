//! Parts: a struct or an enum with fields as a field of another, and any type as a component.

use proc_macro2::TokenStream;
use quote::quote;

/// The code for a type, in pieces.
pub struct Parts {
    pub constants: TokenStream,
    pub bits: TokenStream,
    pub exact_bits: TokenStream,
    pub layout: TokenStream,
    pub links: TokenStream,
    pub encode: TokenStream,
    pub decode: TokenStream,
    pub encode_exact: TokenStream,
    pub decode_exact: TokenStream,
    pub agrees: TokenStream,
    pub shape: TokenStream,
    pub visit_links: TokenStream,
}

impl Parts {
    pub fn field(self, name: &syn::Ident) -> TokenStream {
        let Self {
            constants,
            bits,
            exact_bits,
            layout,
            links,
            encode,
            decode,
            encode_exact,
            decode_exact,
            agrees,
            shape,
            visit_links,
        } = self;
        quote! {
            #constants

            #[automatically_derived]
            #[allow(unused_variables, unused_parens, unreachable_patterns)]
            impl __throng::ReplicateField for #name {
                const BITS_MAX: u32 = #bits;
                const EXACT_BITS_MAX: u32 = #exact_bits;
                const LAYOUT: u64 = #layout;
                const LINKS: bool = #links;

                #[inline]
                fn encode_field(&self, out: &mut __throng::Writer<'_>) {
                    #encode
                }

                #[inline]
                fn decode_field(
                    from: &mut __throng::Reader<'_>,
                ) -> ::core::result::Result<Self, __throng::DecodeError> {
                    ::core::result::Result::Ok(#decode)
                }

                #[inline]
                fn encode_field_exact(&self, out: &mut __throng::Writer<'_>) {
                    #encode_exact
                }

                fn decode_field_exact(
                    from: &mut __throng::Reader<'_>,
                ) -> ::core::result::Result<Self, __throng::DecodeError> {
                    ::core::result::Result::Ok(#decode_exact)
                }

                fn field_agrees(&self, exact: &Self) -> bool {
                    #agrees
                }

                fn visit_links(&mut self, visit: &mut dyn ::core::ops::FnMut(&mut __throng::EntityLink)) {
                    #visit_links
                }

                fn shape() -> __throng::FieldShape {
                    #shape
                }
            }
        }
    }
}

/// A type as a component or an event: its bits as a field, filled up to whole bytes.
pub fn component(name: &syn::Ident, public_name: &str) -> TokenStream {
    let field = quote!(<Self as __throng::ReplicateField>);
    quote! {
        #[automatically_derived]
        impl __throng::Replicate for #name {
            const NAME: &'static str = #public_name;
            const LAYOUT: u64 = #field::LAYOUT;
            const BYTES_MAX: usize = (#field::BITS_MAX as usize).div_ceil(8);
            const EXACT_BYTES_MAX: usize = (#field::EXACT_BITS_MAX as usize).div_ceil(8);
            const LINKS: bool = #field::LINKS;

            #[inline]
            fn encode(&self, out: &mut __throng::Writer<'_>) {
                #field::encode_field(self, out);
                out.align();
            }

            #[inline]
            fn decode(from: &mut __throng::Reader<'_>) -> ::core::result::Result<Self, __throng::DecodeError> {
                let decoded = #field::decode_field(from)?;
                from.align()?;
                ::core::result::Result::Ok(decoded)
            }

            #[inline]
            fn encode_exact(&self, out: &mut __throng::Writer<'_>) {
                #field::encode_field_exact(self, out);
                out.align();
            }

            fn decode_exact(from: &mut __throng::Reader<'_>) -> ::core::result::Result<Self, __throng::DecodeError> {
                let decoded = #field::decode_field_exact(from)?;
                from.align()?;
                ::core::result::Result::Ok(decoded)
            }

            fn agrees_with(&self, exact: &Self) -> bool {
                #field::field_agrees(self, exact)
            }

            fn visit_links(&mut self, visit: &mut dyn ::core::ops::FnMut(&mut __throng::EntityLink)) {
                #field::visit_links(self, visit);
            }

            fn shape() -> __throng::FieldShape {
                #field::shape()
            }
        }
    }
}
