//! Enums: the variant's position is its code; its fields follow.

use proc_macro2::TokenStream;
use quote::quote;

use crate::{fields::Fields, parts::Parts};

/// What both sorts of enums have.
struct Variants {
    names: Vec<syn::Ident>,
    codes: Vec<u32>,
    bits: u32,
    /// The layout of the names, in order.
    layout: TokenStream,
}

impl Variants {
    fn read(name: &syn::Ident, data: &syn::DataEnum) -> syn::Result<Self> {
        if data.variants.is_empty() {
            return Err(syn::Error::new_spanned(name, "an enum without variants has no value to send"));
        }
        let mut attributes = data.variants.iter().flat_map(|variant| &variant.attrs);
        if let Some(attribute) = attributes.find(|attribute| attribute.path().is_ident("replicate")) {
            return Err(syn::Error::new_spanned(attribute, "a variant takes no attributes; its fields do"));
        }
        let names: Vec<_> = data.variants.iter().map(|variant| variant.ident.clone()).collect();
        let codes: Vec<u32> = (0..).take(names.len()).collect();
        // One variant still takes a bit, so that no component field is empty.
        let bits = (u32::BITS - (names.len() as u32 - 1).leading_zeros()).max(1);
        let written = names.iter().map(ToString::to_string);
        let layout = quote!(__throng::mix_names(11, &[#(#written),*]));
        Ok(Self { names, codes, bits, layout })
    }
}

/// An enum without fields, which takes the attribute `bits` where it is a field.
pub fn expand_plain(name: &syn::Ident, data: &syn::DataEnum) -> syn::Result<TokenStream> {
    let Variants { names, codes, bits, layout } = Variants::read(name, data)?;
    let (own_name, written) = (name.to_string(), names.iter().map(ToString::to_string));
    Ok(quote! {
        #[automatically_derived]
        impl __throng::ReplicateBits for #name {
            const BITS: u32 = #bits;
            const LAYOUT: u64 = #layout;

            #[inline]
            fn to_code(&self) -> u32 {
                match self { #(Self::#names => #codes),* }
            }

            #[inline]
            fn from_code(code: u32) -> ::core::result::Result<Self, __throng::DecodeError> {
                match code {
                    #(#codes => ::core::result::Result::Ok(Self::#names),)*
                    _ => ::core::result::Result::Err(__throng::DecodeError::OutOfRange),
                }
            }

            fn shape_in(bits: u32) -> __throng::FieldShape {
                __throng::FieldShape::Choice { name: #own_name, bits, variants: &[#(#written),*] }
            }
        }
    })
}

/// An enum of which some variants have fields.
pub fn expand(name: &syn::Ident, data: &syn::DataEnum) -> syn::Result<Parts> {
    let Variants { names, codes, bits, layout } = Variants::read(name, data)?;
    let (mut variants, mut errors): (Vec<Fields>, Option<syn::Error>) = (Vec::new(), None);
    for (variant, code) in data.variants.iter().zip(&codes) {
        match (Fields::read(&variant.fields, &format!("FIELD_{code}")), &mut errors) {
            (Ok(fields), _) => variants.push(fields),
            (Err(error), None) => errors = Some(error),
            (Err(error), Some(earlier)) => earlier.combine(error),
        }
    }
    if let Some(errors) = errors {
        return Err(errors);
    }
    // For each variant, what its pattern says and what is done with the fields that it binds.
    let arms = |each: fn(&Fields, &[TokenStream]) -> TokenStream| -> Vec<TokenStream> {
        let arms = names.iter().zip(&variants).map(|(name, fields)| {
            let (members, bound) = (fields.members(), fields.bindings("field"));
            let places: Vec<_> = bound.iter().map(|name| quote!(#name)).collect();
            let done = each(fields, &places);
            quote!(Self::#name { #(#members: #bound),* } => { #done })
        });
        arms.collect()
    };
    let encoded = |arms: Vec<TokenStream>| {
        quote! {
            let code: u32 = match self { #(Self::#names { .. } => #codes),* };
            out.bits(code, #bits);
            match self { #(#arms)* }
        }
    };
    let decoded = |each: fn(&Fields) -> TokenStream| {
        let fields = variants.iter().map(each);
        quote! {
            match from.bits(#bits)? {
                #(#codes => Self::#names { #fields },)*
                _ => return ::core::result::Result::Err(__throng::DecodeError::OutOfRange),
            }
        }
    };
    let agrees = names.iter().zip(&variants).map(|(name, fields)| {
        let (members, copies, exacts) = (fields.members(), fields.bindings("copy"), fields.bindings("exact"));
        let place = |names: &[syn::Ident]| names.iter().map(|name| quote!(#name)).collect::<Vec<_>>();
        let agrees = fields.agrees(&place(&copies), &place(&exacts));
        quote! {
            (Self::#name { #(#members: #copies),* }, Self::#name { #(#members: #exacts),* }) => #agrees,
        }
    });
    let constants = variants.iter().map(Fields::constants);
    let most = |each: fn(&Fields) -> TokenStream| {
        let each = variants.iter().map(each);
        quote!((#bits + __throng::most(&[#(#each),*])))
    };
    let layouts = variants.iter().map(Fields::layout);
    let links = variants.iter().map(Fields::links);
    let visits = arms(Fields::visit_links);
    let (own_name, written) = (name.to_string(), names.iter().map(ToString::to_string));
    let shapes = variants.iter().map(Fields::shapes);
    Ok(Parts {
        constants: quote!(#(#constants)*),
        bits: most(Fields::bits),
        exact_bits: most(Fields::exact_bits),
        layout: quote!({
            let mut layout = #layout;
            // Which variant a field belongs to counts, too.
            #(layout = __throng::quantise::mix(layout, #codes as u64); #layouts)*
            layout
        }),
        links: quote!((false #(|| #links)*)),
        encode: encoded(arms(Fields::encode)),
        decode: decoded(Fields::decode),
        encode_exact: encoded(arms(Fields::encode_exact)),
        decode_exact: decoded(Fields::decode_exact),
        agrees: quote! {
            match (self, exact) {
                #(#agrees)*
                _ => false,
            }
        },
        shape: quote!(__throng::FieldShape::Enum { name: #own_name, variants: ::std::vec![#((#written, #shapes)),*] }),
        visit_links: quote!(match self { #(#visits)* }),
    })
}
