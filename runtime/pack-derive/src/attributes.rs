//! Attributes: what stands in `#[pack(..)]` on types, variants and fields.

use syn::{Expr, LitInt, LitStr, Token, Type, meta::ParseNestedMeta, spanned::Spanned};

pub struct TypeAttributes {
    pub name: String,
    pub version: u16,
}

/// `since` is 1 where none is given.
pub struct VariantAttributes {
    pub name: String,
    pub since: u16,
}

pub struct FieldAttributes {
    pub name: String,
    pub since: u16,
    /// The value of what is older than `since`.
    pub default: Option<Expr>,
    pub min: Option<Expr>,
    pub max: Option<Expr>,
    pub fixed: bool,
    pub via: Option<Type>,
}

impl TypeAttributes {
    pub fn read(input: &syn::DeriveInput) -> syn::Result<Self> {
        let (mut name, mut version) = (None, None);
        read(&input.attrs, "a type takes name and version", |key, meta| {
            Ok(Some(match key {
                "name" => name.replace(string(meta)?).is_some(),
                "version" => {
                    let number = integer(meta)?;
                    if number == 0 {
                        return Err(meta.error("the first version is 1"));
                    }
                    version.replace(number).is_some()
                }
                _ => return Ok(None),
            }))
        })?;
        Ok(Self { name: name.unwrap_or_else(|| input.ident.to_string()), version: version.unwrap_or(1) })
    }

    fn check_since(&self, since: Option<u16>, place: &impl Spanned) -> syn::Result<u16> {
        let version = self.version;
        match since {
            None => Ok(1),
            Some(0 | 1) => Err(syn::Error::new(place.span(), "`since` is 2 or more")),
            Some(since) if since > version => Err(syn::Error::new(
                place.span(),
                format!(
                    "`since = {since}` is newer than the type, whose version is {version}; give the type \
                     `#[pack(version = {since})]`"
                ),
            )),
            Some(since) => Ok(since),
        }
    }
}

impl VariantAttributes {
    pub fn read(variant: &syn::Variant, ty: &TypeAttributes) -> syn::Result<Self> {
        let (mut name, mut since) = (None, None);
        read(&variant.attrs, "a variant takes since and name", |key, meta| {
            Ok(Some(match key {
                "name" => name.replace(string(meta)?).is_some(),
                "since" => since.replace(integer(meta)?).is_some(),
                _ => return Ok(None),
            }))
        })?;
        let since = ty.check_since(since, &variant.ident)?;
        Ok(Self { name: name.unwrap_or_else(|| variant.ident.to_string()), since })
    }
}

impl FieldAttributes {
    /// `name`: the field's in the program.
    pub fn read(field: &syn::Field, name: String, ty: &TypeAttributes) -> syn::Result<Self> {
        let (mut given_name, mut since, mut default) = (None, None, None);
        let (mut min, mut max, mut fixed, mut via) = (None, None, None, None);
        read(&field.attrs, "a field takes min, max, fixed, since, default, via and name", |key, meta| {
            Ok(Some(match key {
                "min" => min.replace(meta.value()?.parse()?).is_some(),
                "max" => max.replace(meta.value()?.parse()?).is_some(),
                "fixed" => fixed.replace(()).is_some(),
                "since" => since.replace(integer(meta)?).is_some(),
                "default" if meta.input.peek(Token![=]) => default.replace(meta.value()?.parse()?).is_some(),
                "default" => default.replace(syn::parse_quote!(::core::default::Default::default())).is_some(),
                "via" => via.replace(meta.value()?.parse()?).is_some(),
                "name" => given_name.replace(string(meta)?).is_some(),
                _ => return Ok(None),
            }))
        })?;
        let refuse = |message: &str| Err(syn::Error::new(field.span(), message));
        let since = ty.check_since(since, field)?;
        match (since, &default) {
            (1, Some(_)) => refuse("`default` is for fields with `since`"),
            (2.., None) => refuse("`since` needs `default` or `default = ..`: the value of what has an older version"),
            _ => Ok(Self { name: given_name.unwrap_or(name), since, default, min, max, fixed: fixed.is_some(), via }),
        }
    }
}

/// Hands each attribute's key to `take`, which says whether it was there before, or none if it does not know it.
fn read(
    attributes: &[syn::Attribute],
    known: &str,
    mut take: impl FnMut(&str, &ParseNestedMeta<'_>) -> syn::Result<Option<bool>>,
) -> syn::Result<()> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("pack")) {
        attribute.parse_nested_meta(|meta| {
            let key = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            match take(&key, &meta)? {
                None => Err(meta.error(format!("unknown `{key}`; {known}"))),
                Some(true) => Err(meta.error(format!("`{key}` is given twice"))),
                Some(false) => Ok(()),
            }
        })?;
    }
    Ok(())
}

fn string(meta: &ParseNestedMeta<'_>) -> syn::Result<String> {
    Ok(meta.value()?.parse::<LitStr>()?.value())
}

fn integer(meta: &ParseNestedMeta<'_>) -> syn::Result<u16> {
    meta.value()?.parse::<LitInt>()?.base10_parse()
}

/// Refuses a name that is there already.
pub fn add_name<'a>(names: &mut Vec<&'a str>, name: &'a str, place: &impl Spanned) -> syn::Result<()> {
    if names.contains(&name) {
        return Err(syn::Error::new(place.span(), format!("there is a `{name}` already")));
    }
    names.push(name);
    Ok(())
}

/// One error of all that there are.
pub fn all<T>(results: impl Iterator<Item = syn::Result<T>>) -> syn::Result<Vec<T>> {
    let (mut values, mut errors): (Vec<T>, Option<syn::Error>) = (Vec::new(), None);
    for result in results {
        match (result, &mut errors) {
            (Ok(value), _) => values.push(value),
            (Err(error), None) => errors = Some(error),
            (Err(error), Some(earlier)) => earlier.combine(error),
        }
    }
    errors.map_or(Ok(values), Err)
}
