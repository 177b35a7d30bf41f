//! One field: the code that packs, unpacks and describes it.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Member, Type};

use crate::attributes::{self, FieldAttributes, TypeAttributes};

/// The code for one field, in pieces that `structure` and `enumeration` put together.
pub struct Field<'a> {
    pub member: Member,
    pub attributes: FieldAttributes,
    ty: &'a Type,
    /// In errors: with the variant in front.
    place: String,
    /// Constants of its range, if it has one.
    range: Option<Range>,
}

struct Range {
    min: Ident,
    max: Ident,
    bounds: Ident,
}

/// The fields of a struct or of a variant. `key` tells their constants apart, `prefix` stands before their names in
/// errors.
pub fn read_all<'a>(
    ty: &TypeAttributes,
    fields: &'a syn::Fields,
    key: &str,
    prefix: &str,
) -> syn::Result<Vec<Field<'a>>> {
    let each = fields.iter().zip(fields.members()).enumerate();
    let read = attributes::all(each.map(|(index, (field, member))| {
        let name = match &member {
            Member::Named(name) => name.to_string().trim_start_matches("r#").to_owned(),
            Member::Unnamed(place) => place.index.to_string(),
        };
        let attributes = FieldAttributes::read(field, name, ty)?;
        let place = format!("{prefix}{}", attributes.name);
        let ranged = attributes.min.is_some() || attributes.max.is_some();
        let range = ranged.then(|| Range {
            min: format_ident!("__MIN{key}_{index}"),
            max: format_ident!("__MAX{key}_{index}"),
            bounds: format_ident!("__RANGE{key}_{index}"),
        });
        Ok(Field { member, attributes, ty: &field.ty, place, range })
    }))?;
    let mut names = Vec::new();
    for (field, source) in read.iter().zip(fields) {
        attributes::add_name(&mut names, &field.attributes.name, source)?;
    }
    Ok(read)
}

impl Field<'_> {
    /// The type that goes to bytes.
    fn packed_type(&self) -> &Type {
        self.attributes.via.as_ref().unwrap_or(self.ty)
    }

    pub fn constants(&self) -> TokenStream {
        let Some(Range { min, max, bounds }) = &self.range else { return quote!() };
        let ty = self.packed_type();
        let number = quote!(<#ty as __pack::Numbers>::Number);
        let end = |given: &Option<syn::Expr>, extreme: TokenStream| match given {
            Some(given) => given.to_token_stream(),
            None => quote!(<#number as __pack::Number>::#extreme),
        };
        let (least, most) = (end(&self.attributes.min, quote!(LEAST)), end(&self.attributes.max, quote!(MOST)));
        quote! {
            const #min: #number = #least;
            const #max: #number = #most;
            #[allow(clippy::unnecessary_cast)]
            const #bounds: __pack::schema::Range = {
                assert!(#min <= #max, "`min` is above `max`");
                if <#number as __pack::Number>::IS_FLOAT {
                    __pack::schema::Range::floats(#min as f64, #max as f64)
                } else {
                    __pack::schema::Range::integers(#min as i128, #max as i128)
                }
            };
        }
    }

    pub fn schema(&self) -> TokenStream {
        let (ty, name, since, fixed) =
            (self.packed_type(), &self.attributes.name, self.attributes.since, self.attributes.fixed);
        let range = match &self.range {
            Some(Range { bounds, .. }) => quote!(::core::option::Option::Some(#bounds)),
            None => quote!(::core::option::Option::None),
        };
        quote! {
            __pack::schema::Field {
                name: #name,
                kind: <#ty as __pack::Pack>::KIND,
                fixed: #fixed,
                range: #range,
                since: #since,
            }
        }
    }

    /// None at all in bytes of a version before it.
    pub fn bytes_min(&self) -> TokenStream {
        if self.attributes.since > 1 { quote!(0) } else { self.bytes(&format_ident!("BYTES_MIN")) }
    }

    pub fn bytes_max(&self) -> TokenStream {
        self.bytes(&format_ident!("BYTES_MAX"))
    }

    fn bytes(&self, limit: &Ident) -> TokenStream {
        let ty = self.packed_type();
        if self.attributes.fixed {
            quote!(<#ty as __pack::PackFixed>::FIXED_BYTES)
        } else {
            quote!(<#ty as __pack::Pack>::#limit)
        }
    }

    /// A statement that packs the value behind the reference `value`.
    pub fn pack(&self, value: &TokenStream) -> TokenStream {
        let (ty, field_ty, place) = (self.packed_type(), self.ty, &self.place);
        let value = match &self.attributes.via {
            Some(via) => {
                quote!(&<#via as ::core::convert::From<#field_ty>>::from(::core::clone::Clone::clone(#value)))
            }
            None => value.clone(),
        };
        let packed = if self.attributes.fixed {
            quote!(<#ty as __pack::PackFixed>::pack_fixed(__value, __out))
        } else {
            quote!(<#ty as __pack::Pack>::pack(__value, __out))
        };
        let packed = match &self.range {
            Some(Range { min, max, .. }) => {
                quote!(__pack::derived::check_within(__value, #min, #max).and_then(|()| #packed))
            }
            None => packed,
        };
        quote! {
            {
                let __value: &#ty = #value;
                #packed.map_err(|error| error.at(__NAME, #place))?;
            }
        }
    }

    /// An expression that reads the value.
    pub fn unpack(&self) -> TokenStream {
        let (ty, field_ty, place) = (self.packed_type(), self.ty, &self.place);
        let unpacked = if self.attributes.fixed {
            quote!(<#ty as __pack::PackFixed>::unpack_fixed(__from))
        } else {
            quote!(<#ty as __pack::Pack>::unpack(__from))
        };
        let unpacked = match &self.range {
            Some(Range { min, max, .. }) => {
                quote!(#unpacked.and_then(|value| __pack::derived::within(value, #min, #max)))
            }
            None => unpacked,
        };
        let unpacked = match &self.attributes.via {
            Some(via) => quote!(#unpacked.and_then(__pack::derived::converted::<#field_ty, #via>)),
            None => unpacked,
        };
        let read = quote!(#unpacked.map_err(|error| error.at(__NAME, #place))?);
        let (since, Some(default)) = (self.attributes.since, &self.attributes.default) else { return read };
        let default = match (&self.range, &self.attributes.via) {
            (Some(Range { min, max, .. }), None) => quote! {
                __pack::derived::within::<#field_ty>(#default, #min, #max)
                    .map_err(|error| error.at(__NAME, #place))?
            },
            _ => default.to_token_stream(),
        };
        quote!(if __version >= #since { #read } else { #default })
    }
}
