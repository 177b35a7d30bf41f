//! One field: the code that packs it, from the shape of its type and the packing of the numbers in it.
//!
//! The code works on what is in scope: `value`, a reference to the field, where it encodes or shows links; `copy` and
//! `exact`, two of them, where it compares; `out` and `from`. `Option`s and lists put code around that of what is in them.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::Type;

use crate::{
    attributes::{Attributes, Packing},
    shape::Shape,
};

/// The code for one field, in pieces that `fields` puts together.
pub struct Field {
    /// Constants of `quantise` that know how.
    pub constants: TokenStream,
    pub bits: TokenStream,
    pub exact_bits: TokenStream,
    pub layout: TokenStream,
    pub encode: TokenStream,
    pub decode: TokenStream,
    pub encode_exact: TokenStream,
    pub decode_exact: TokenStream,
    pub agrees: TokenStream,
    /// An expression of its `FieldShape`.
    pub shape: TokenStream,
    /// Whether it may hold links, and the code that shows them; none for numbers.
    pub links: Option<(TokenStream, TokenStream)>,
}

impl Field {
    /// `codec` is the name of its constant.
    pub fn new(field: &syn::Field, codec: &syn::Ident) -> syn::Result<Self> {
        let shape = Shape::of(&field.ty)?;
        let packing = Attributes::read(field)?.packing(shape.inmost(), field)?;
        Ok(Self::of(&shape, &packing, codec))
    }

    fn of(shape: &Shape, packing: &Packing, codec: &syn::Ident) -> Self {
        let ty = match shape {
            Shape::Option(of) => return Self::of(of, packing, codec).optional(),
            Shape::List(ty, of) => {
                return Self::of(of, packing, &format_ident!("{codec}_VALUE")).listed(ty, codec);
            }
            Shape::Number(ty) | Shape::Numbers(ty, _) | Shape::Vector(ty, _) | Shape::Code(ty) => ty,
        };
        match packing {
            Packing::Range { min, max, step } => Self::numbers(
                shape,
                codec,
                quote!(Range),
                quote!(quantise::Range::new((#min) as f64, (#max) as f64, (#step) as f64)),
            ),
            Packing::Angle { bits } => Self::numbers(shape, codec, quote!(Angle), quote!(quantise::Angle::new(#bits))),
            Packing::Exact => Self::numbers(shape, codec, quote!(Exact), quote!(quantise::Exact)),
            Packing::Whole { min, max } => Self::whole(ty, codec, min, max),
            Packing::Bits(bits) => Self::bits(ty, codec, bits),
            Packing::Plain => Self::plain(ty),
        }
    }

    fn numbers(shape: &Shape, codec: &syn::Ident, kind: TokenStream, made: TokenStream) -> Self {
        let array = |of: TokenStream| match shape {
            Shape::Number(_) => quote!([*#of]),
            Shape::Numbers(..) => quote!((*#of)),
            _ => quote!(#of.to_array()),
        };
        let rebuilt = |each: TokenStream| match shape {
            Shape::Numbers(_, count) => quote!({
                let mut values = [0.0_f32; #count];
                for value in &mut values { *value = #each; }
                values
            }),
            Shape::Vector(ty, _) => quote!({
                let mut values = <#ty>::ZERO.to_array();
                for value in &mut values { *value = #each; }
                <#ty>::from_array(values)
            }),
            _ => each,
        };
        let count = match shape {
            Shape::Numbers(_, count) => quote!(((#count) as u32)),
            Shape::Vector(_, count) => quote!(#count),
            _ => quote!(1),
        };
        let shape_of_one = quote!(#codec.shape());
        let shape_of_all = match shape {
            Shape::Number(_) => shape_of_one,
            _ => quote!(__throng::FieldShape::Numbers {
                count: (#count) as usize,
                of: ::std::boxed::Box::new(#shape_of_one),
            }),
        };
        let (values, copies, exacts) = (array(quote!(value)), array(quote!(copy)), array(quote!(exact)));
        Self {
            constants: quote!(const #codec: __throng::quantise::#kind = __throng::#made;),
            bits: quote!(#codec.bits() * #count),
            exact_bits: quote!(32 * #count),
            layout: quote!(__throng::quantise::mix(#codec.fingerprint(), #count as u64)),
            encode: quote!(for value in #values { #codec.encode(value, out); }),
            decode: rebuilt(quote!(#codec.decode(from)?)),
            encode_exact: quote!(for value in #values { #codec.encode_exact(value, out); }),
            decode_exact: rebuilt(quote!(from.f32()?)),
            agrees: quote!(#copies.into_iter().zip(#exacts).all(|(copy, exact)| #codec.agrees(copy, exact))),
            shape: shape_of_all,
            links: None,
        }
    }

    fn whole(ty: &Type, codec: &syn::Ident, min: &syn::Expr, max: &syn::Expr) -> Self {
        let in_full = Self::in_full(ty);
        Self {
            constants: quote! {
                const #codec: __throng::quantise::Whole =
                    __throng::quantise::Whole::new::<#ty>((#min) as i64, (#max) as i64);
            },
            bits: quote!(#codec.bits()),
            layout: quote!(#codec.fingerprint()),
            encode: quote!(#codec.encode(*value, out);),
            decode: quote!(#codec.decode::<#ty>(from)?),
            agrees: quote!(#codec.agrees(*copy, *exact)),
            shape: quote!(#codec.shape::<#ty>()),
            ..in_full
        }
    }

    fn bits(ty: &Type, codec: &syn::Ident, bits: &syn::Expr) -> Self {
        let in_full = Self::in_full(ty);
        let layout = quote!(<#ty as __throng::ReplicateBits>::LAYOUT);
        Self {
            constants: quote!(const #codec: __throng::quantise::Bits = __throng::quantise::Bits::new(#bits);),
            bits: quote!(#codec.bits()),
            layout: quote!(__throng::quantise::mix(#layout, #codec.fingerprint())),
            encode: quote!(#codec.encode(value, out);),
            decode: quote!(#codec.decode::<#ty>(from)?),
            agrees: quote!(#codec.agrees(copy, exact)),
            shape: quote!(<#ty as __throng::ReplicateBits>::shape_in(#codec.bits())),
            ..in_full
        }
    }

    /// What has bits of its own, all of them; `Whole` and `Bits` say which of these they send.
    fn in_full(ty: &Type) -> Self {
        Self { links: None, ..Self::plain(ty) }
    }

    fn plain(ty: &Type) -> Self {
        let field = quote!(<#ty as __throng::ReplicateField>);
        Self {
            constants: quote!(),
            bits: quote!(#field::BITS_MAX),
            exact_bits: quote!(#field::EXACT_BITS_MAX),
            layout: quote!(#field::LAYOUT),
            encode: quote!(#field::encode_field(value, out);),
            decode: quote!(#field::decode_field(from)?),
            encode_exact: quote!(#field::encode_field_exact(value, out);),
            decode_exact: quote!(#field::decode_field_exact(from)?),
            agrees: quote!(#field::field_agrees(copy, exact)),
            shape: quote!(#field::shape()),
            links: Some((quote!(#field::LINKS), quote!(#field::visit_links(value, visit);))),
        }
    }

    /// One bit says whether it is there.
    fn optional(self) -> Self {
        let Self {
            constants,
            bits,
            exact_bits,
            layout,
            encode,
            decode,
            encode_exact,
            decode_exact,
            agrees,
            shape,
            links,
        } = self;
        let encoded = |each: TokenStream| {
            quote! {
                out.bits(value.is_some() as u32, 1);
                if let ::core::option::Option::Some(value) = value { #each }
            }
        };
        let decoded = |each: TokenStream| {
            quote! {
                if from.bits(1)? == 1 { ::core::option::Option::Some(#each) } else { ::core::option::Option::None }
            }
        };
        Self {
            constants,
            bits: quote!((1 + #bits)),
            exact_bits: quote!((1 + #exact_bits)),
            layout: quote!(__throng::quantise::mix(8, #layout)),
            encode: encoded(encode),
            decode: decoded(decode),
            encode_exact: encoded(encode_exact),
            decode_exact: decoded(decode_exact),
            agrees: quote! {
                match (copy, exact) {
                    (::core::option::Option::Some(copy), ::core::option::Option::Some(exact)) => #agrees,
                    (copy, exact) => copy.is_none() && exact.is_none(),
                }
            },
            shape: quote!(__throng::FieldShape::Option(::std::boxed::Box::new(#shape))),
            links: links
                .map(|(may, visit)| (may, quote!(if let ::core::option::Option::Some(value) = value { #visit }))),
        }
    }

    /// A count, and each value.
    fn listed(self, ty: &Type, count: &syn::Ident) -> Self {
        let Self {
            constants,
            bits,
            exact_bits,
            layout,
            encode,
            decode,
            encode_exact,
            decode_exact,
            agrees,
            shape,
            links,
        } = self;
        let list = quote!(<#ty as __throng::ReplicateList>);
        let encoded = |each: TokenStream| {
            quote! {
                #count.encode(#list::values(value).len(), out);
                for value in #list::values(value) { #each }
            }
        };
        let decoded = |each: TokenStream| {
            quote!({
                let mut values = <#ty as ::core::default::Default>::default();
                for _ in 0..#count.decode(from)? {
                    let value = #each;
                    #list::add(&mut values, value);
                }
                values
            })
        };
        Self {
            constants: quote!(#constants const #count: __throng::Count = __throng::Count::new(#list::COUNT_MAX);),
            bits: quote!((#count.bits() + #count.max() * (#bits))),
            exact_bits: quote!((#count.bits() + #count.max() * (#exact_bits))),
            layout: quote!(__throng::quantise::mix(__throng::quantise::mix(7, #count.max() as u64), #layout)),
            encode: encoded(encode),
            decode: decoded(decode),
            encode_exact: encoded(encode_exact),
            decode_exact: decoded(decode_exact),
            agrees: quote!({
                let (copies, exacts) = (#list::values(copy), #list::values(exact));
                copies.len() == exacts.len() && copies.iter().zip(exacts).all(|(copy, exact)| #agrees)
            }),
            shape: quote!(__throng::FieldShape::List {
                count_max: #count.max(),
                of: ::std::boxed::Box::new(#shape),
            }),
            links: links.map(|(may, visit)| (may, quote!(for value in #list::values_mut(value) { #visit }))),
        }
    }
}
