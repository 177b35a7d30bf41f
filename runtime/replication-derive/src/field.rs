//! One field: its attributes read, and the code that packs it.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Expr, Type, spanned::Spanned};

/// What a field is made of.
#[expect(clippy::large_enum_variant, reason = "one per field, while compiling")]
enum Shape {
    /// One f32.
    Number,
    /// `[f32; N]`, with N.
    Numbers(Expr),
    /// `Vec2` or `Vec3`, with how many numbers it has.
    Vector(u32),
    /// `Text<N>`.
    Text,
    /// Anything that implements `ReplicateBits`.
    Code,
}

/// How its numbers become bits.
#[expect(clippy::large_enum_variant, reason = "one per field, while compiling")]
enum Packing {
    Range { min: Expr, max: Expr, step: Expr },
    Angle { bits: Expr },
    Exact,
    Bits(Option<Expr>),
}

/// The code for one field, in pieces that `structure` puts together.
pub struct Field {
    /// A constant of `quantise` that knows how.
    pub codec: TokenStream,
    pub bits: TokenStream,
    pub exact_bits: TokenStream,
    pub fingerprint: TokenStream,
    pub encode: TokenStream,
    pub decode: TokenStream,
    pub encode_exact: TokenStream,
    pub decode_exact: TokenStream,
    pub agrees: TokenStream,
}

impl Field {
    pub fn new(field: &syn::Field, member: &syn::Member, codec: &syn::Ident) -> syn::Result<Self> {
        let shape = Shape::of(&field.ty)?;
        let packing = Attributes::read(field)?.packing(&shape, field)?;
        let ty = &field.ty;
        let (count, values) = match &shape {
            Shape::Number => (quote!(1), quote!([self.#member])),
            Shape::Numbers(count) => (quote!((#count) as u32), quote!(self.#member)),
            Shape::Vector(count) => (quote!(#count), quote!(self.#member.to_array())),
            Shape::Text => return Ok(Self::text(ty, member)),
            Shape::Code => return Ok(Self::code(ty, member, codec, packing)),
        };
        let exact_values = match &shape {
            Shape::Number => quote!([exact.#member]),
            Shape::Numbers(_) => quote!(exact.#member),
            _ => quote!(exact.#member.to_array()),
        };
        let rebuilt = |each: TokenStream| match &shape {
            Shape::Number => each,
            Shape::Numbers(count) => quote!({
                let mut values = [0.0_f32; #count];
                for value in &mut values { *value = #each; }
                values
            }),
            _ => quote!({
                let mut values = <#ty>::ZERO.to_array();
                for value in &mut values { *value = #each; }
                <#ty>::from_array(values)
            }),
        };
        let constant = match packing {
            Packing::Range { min, max, step } => quote! {
                const #codec: quantise::Range = quantise::Range::new((#min) as f64, (#max) as f64, (#step) as f64);
            },
            Packing::Angle { bits } => {
                quote!(const #codec: quantise::Angle = quantise::Angle::new(#bits);)
            }
            Packing::Exact => quote!(const #codec: quantise::Exact = quantise::Exact;),
            Packing::Bits(_) => unreachable!("numbers are never packed as integers"),
        };
        Ok(Self {
            codec: constant,
            bits: quote!(#codec.bits() * #count),
            exact_bits: quote!(32 * #count),
            fingerprint: quote!(quantise::mix(#codec.fingerprint(), #count as u64)),
            encode: quote!(for value in #values { #codec.encode(value, out); }),
            decode: rebuilt(quote!(#codec.decode(from)?)),
            encode_exact: quote!(for value in #values { #codec.encode_exact(value, out); }),
            decode_exact: rebuilt(quote!(from.f32()?)),
            agrees: quote!(
                #values.into_iter().zip(#exact_values).all(|(copy, exact)| #codec.agrees(copy, exact))
            ),
        })
    }

    fn text(ty: &Type, member: &syn::Member) -> Self {
        let bits = quote!(<#ty as ReplicateText>::BITS_MAX);
        let encode = quote!(ReplicateText::encode(&self.#member, out););
        let decode = quote!(<#ty as ReplicateText>::decode(from)?);
        Self {
            codec: quote!(),
            bits: bits.clone(),
            exact_bits: bits.clone(),
            fingerprint: quote!(quantise::mix(5, #bits as u64)),
            encode: encode.clone(),
            decode: decode.clone(),
            encode_exact: encode,
            decode_exact: decode,
            agrees: quote!(self.#member == exact.#member),
        }
    }

    fn code(ty: &Type, member: &syn::Member, codec: &syn::Ident, packing: Packing) -> Self {
        let whole = quote!(<#ty as ReplicateBits>::BITS);
        let bits = match packing {
            Packing::Bits(Some(bits)) => quote!(#bits),
            _ => whole.clone(),
        };
        Self {
            codec: quote!(const #codec: quantise::Bits = quantise::Bits::new(#bits);),
            bits: quote!(#codec.bits()),
            exact_bits: whole.clone(),
            fingerprint: quote!(#codec.fingerprint()),
            encode: quote!(#codec.encode(&self.#member, out);),
            decode: quote!(#codec.decode::<#ty>(from)?),
            encode_exact: quote!(quantise::Bits::new(#whole).encode(&self.#member, out);),
            decode_exact: quote!(quantise::Bits::new(#whole).decode::<#ty>(from)?),
            agrees: quote!(#codec.agrees(&self.#member, &exact.#member)),
        }
    }
}

impl Shape {
    fn of(ty: &Type) -> syn::Result<Self> {
        match ty {
            Type::Path(path) => Ok(match path.path.segments.last().map(|last| last.ident.to_string()).as_deref() {
                Some("f32") => Self::Number,
                Some("Vec2") => Self::Vector(2),
                Some("Vec3") => Self::Vector(3),
                Some("Text") => Self::Text,
                Some("f64") => {
                    return Err(syn::Error::new_spanned(ty, "an f64 is not packed; use f32"));
                }
                _ => Self::Code,
            }),
            Type::Array(array) => match Self::of(&array.elem)? {
                Self::Number => Ok(Self::Numbers(array.len.clone())),
                _ => Err(syn::Error::new_spanned(
                    ty,
                    "only arrays of f32 are packed; give the values fields of their own",
                )),
            },
            _ => Ok(Self::Code),
        }
    }
}

#[derive(Default)]
struct Attributes {
    min: Option<Expr>,
    max: Option<Expr>,
    step: Option<Expr>,
    bits: Option<Expr>,
    angle: Option<()>,
    exact: Option<()>,
}

impl Attributes {
    fn read(field: &syn::Field) -> syn::Result<Self> {
        let mut read = Self::default();
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("replicate")) {
            attribute.parse_nested_meta(|meta| {
                let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
                let twice = match name.as_str() {
                    "angle" => read.angle.replace(()).is_some(),
                    "exact" => read.exact.replace(()).is_some(),
                    "min" => read.min.replace(meta.value()?.parse()?).is_some(),
                    "max" => read.max.replace(meta.value()?.parse()?).is_some(),
                    "step" => read.step.replace(meta.value()?.parse()?).is_some(),
                    "bits" => read.bits.replace(meta.value()?.parse()?).is_some(),
                    _ => {
                        let known = "known are min, max, step, angle, bits and exact";
                        return Err(meta.error(format!("unknown `{name}`; {known}")));
                    }
                };
                if twice { Err(meta.error(format!("`{name}` is given twice"))) } else { Ok(()) }
            })?;
        }
        Ok(read)
    }

    fn packing(self, shape: &Shape, field: &syn::Field) -> syn::Result<Packing> {
        let refuse = |message: &str| Err(syn::Error::new(field.span(), message));
        let ranged = self.min.is_some() || self.max.is_some() || self.step.is_some();
        let none = !ranged && self.angle.is_none() && self.exact.is_none();
        if let Shape::Text = shape {
            return if none && self.bits.is_none() {
                Ok(Packing::Bits(None))
            } else {
                refuse("a text takes no attributes")
            };
        }
        if let Shape::Code = shape {
            if !none {
                return refuse("an integer, bool or enum takes only `bits = ..`");
            }
            return Ok(Packing::Bits(self.bits));
        }
        match (ranged, self.angle, self.exact) {
            (false, None, None) => refuse(
                "an f32 needs `#[replicate(min = .., max = .., step = ..)]`, `#[replicate(angle, bits = ..)]` or \
                 `#[replicate(exact)]`",
            ),
            (true, None, None) => match (self.min, self.max, self.step, self.bits) {
                (None, ..) => refuse("`min` is missing"),
                (_, None, ..) => refuse("`max` is missing"),
                (_, _, None, _) => refuse("`step` is missing"),
                (.., Some(_)) => refuse("`bits` follows from min, max and step"),
                (Some(min), Some(max), Some(step), None) => Ok(Packing::Range { min, max, step }),
            },
            (false, Some(()), None) => match (shape, self.bits) {
                (Shape::Vector(_), _) => refuse("a vector is not an angle"),
                (_, None) => refuse("an angle needs `bits = ..`"),
                (_, Some(bits)) => Ok(Packing::Angle { bits }),
            },
            (false, None, Some(())) if self.bits.is_none() => Ok(Packing::Exact),
            (false, None, Some(())) => refuse("`exact` numbers take 32 bits"),
            _ => refuse("choose one of min/max/step, angle and exact"),
        }
    }
}
