//! Attributes: what stands in `#[replicate(..)]`, on types and on fields.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{Expr, spanned::Spanned};

use crate::shape::Shape;

/// What a type says of itself.
pub struct TypeAttributes {
    /// The name in rules and reports: the type's own unless an attribute says otherwise.
    pub name: String,
    /// Where `throng_replication` is, if the type says so.
    pub home: Option<TokenStream>,
}

impl TypeAttributes {
    pub fn read(input: &syn::DeriveInput) -> syn::Result<Self> {
        let mut read = Self { name: input.ident.to_string(), home: None };
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("replicate")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("name") {
                    read.name = meta.value()?.parse::<syn::LitStr>()?.value();
                } else if meta.path.is_ident("crate") {
                    let path = meta.value()?.parse::<syn::LitStr>()?.parse::<syn::Path>()?;
                    read.home = Some(path.into_token_stream());
                } else {
                    let known =
                        "a type takes only `name = \"..\"` and `crate = \"..\"`; all else belongs on the fields";
                    return Err(meta.error(known));
                }
                Ok(())
            })?;
        }
        Ok(read)
    }

    /// The statement that brings what derived code names into scope, as `__throng`.
    pub fn import(&self, home: &TokenStream) -> TokenStream {
        let home = self.home.as_ref().unwrap_or(home);
        quote!(use #home::derived as __throng;)
    }
}

/// How the numbers of a field become bits.
#[allow(clippy::large_enum_variant, reason = "one per field, while compiling")]
pub enum Packing {
    Range {
        min: Expr,
        max: Expr,
        step: Expr,
    },
    Angle {
        bits: Expr,
    },
    Exact,
    /// An integer's range.
    Whole {
        min: Expr,
        max: Expr,
    },
    Bits(Expr),
    /// As the type itself says.
    Plain,
}

#[derive(Default)]
pub struct Attributes {
    min: Option<Expr>,
    max: Option<Expr>,
    step: Option<Expr>,
    bits: Option<Expr>,
    angle: Option<()>,
    exact: Option<()>,
}

impl Attributes {
    pub fn read(field: &syn::Field) -> syn::Result<Self> {
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

    /// `shape` is what the attributes are about: that of the field, or what its option or list is of.
    pub fn packing(self, shape: &Shape, field: &syn::Field) -> syn::Result<Packing> {
        let refuse = |message: &str| Err(syn::Error::new(field.span(), message));
        let ranged = self.min.is_some() || self.max.is_some() || self.step.is_some();
        if let Some(name) = shape.code_name() {
            return self.code_packing(&name, field);
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
                (Shape::Vector(..), _) => refuse("a vector is not an angle"),
                (_, None) => refuse("an angle needs `bits = ..`"),
                (_, Some(bits)) => Ok(Packing::Angle { bits }),
            },
            (false, None, Some(())) if self.bits.is_none() => Ok(Packing::Exact),
            (false, None, Some(())) => refuse("`exact` numbers take 32 bits"),
            _ => refuse("choose one of min/max/step, angle and exact"),
        }
    }

    /// Of what is no f32, by its name.
    fn code_packing(self, name: &str, field: &syn::Field) -> syn::Result<Packing> {
        let refuse = |message: &str| Err(syn::Error::new(field.span(), message));
        let Self { min, max, step, bits, angle, exact } = self;
        let is_plain = min.is_none() && max.is_none() && bits.is_none();
        if step.is_some()
            || angle.is_some()
            || exact.is_some()
            || !is_plain && matches!(name, "Text" | "EntityLink" | "NetId")
        {
            return refuse(match name {
                "Text" => "a text takes no attributes",
                "EntityLink" => "a link takes no attributes",
                "NetId" => "an id takes no attributes",
                _ => "an integer takes only `bits = ..`, or `min = ..` and `max = ..`; a bool or enum only `bits = ..`",
            });
        }
        match (min, max, bits) {
            (None, None, None) => Ok(Packing::Plain),
            (None, None, Some(bits)) => Ok(Packing::Bits(bits)),
            (Some(min), Some(max), None) => Ok(Packing::Whole { min, max }),
            (None, _, None) => refuse("`min` is missing"),
            (_, None, None) => refuse("`max` is missing"),
            (_, _, Some(_)) => refuse("`bits` follows from min and max"),
        }
    }
}
