//! `#[derive(Pack)]`: the codec and the schema of a plain struct or enum.
//!
//! The attributes are told at `throng_pack`. The derive puts together what is written there: each field goes through
//! the `Pack` of its type, ranges and schemas are constants, so a range that makes no sense and a type that contains
//! itself do not compile.

use proc_macro::TokenStream;
use quote::quote;

mod attributes;
mod enumeration;
mod field;
mod home;
mod structure;

use attributes::TypeAttributes;

/// See `throng_pack` for what fields may be and which attributes they take.
#[proc_macro_derive(Pack, attributes(pack))]
pub fn derive_pack(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand(&input, &home::find("throng-pack", "pack", &["throng"]))
        .unwrap_or_else(|error| error.into_compile_error())
        .into()
}

/// The code for a type, in pieces.
struct Parts {
    /// Constants that the others use.
    constants: proc_macro2::TokenStream,
    shape: proc_macro2::TokenStream,
    bytes_min: proc_macro2::TokenStream,
    bytes_max: proc_macro2::TokenStream,
    pack: proc_macro2::TokenStream,
    unpack: proc_macro2::TokenStream,
}

/// `home` is the path of `throng_pack`.
fn expand(input: &syn::DeriveInput, home: &proc_macro2::TokenStream) -> syn::Result<proc_macro2::TokenStream> {
    if !input.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(
            &input.generics,
            "a packed type cannot be generic: its schema must be known",
        ));
    }
    let ty = TypeAttributes::read(input)?;
    let Parts { constants, shape, bytes_min, bytes_max, pack, unpack } = match &input.data {
        syn::Data::Struct(data) => structure::expand(&ty, &data.fields)?,
        syn::Data::Enum(data) => enumeration::expand(&ty, &input.ident, data)?,
        syn::Data::Union(_) => return Err(syn::Error::new_spanned(&input.ident, "a union cannot be packed")),
    };
    let (ident, name, version) = (&input.ident, &ty.name, ty.version);
    Ok(quote! {
        const _: () = {
            use #home as __pack;
            const __NAME: &str = #name;
            #constants
            const __SCHEMA: __pack::Schema = __pack::Schema::new(__NAME, #version, #shape);
            // Computed here, so that what does not compile is found where it stands and not where it is used.
            const _: usize = <#ident as __pack::Pack>::BYTES_MAX;
            const _: () = __pack::derived::check_parts(&__SCHEMA);

            #[automatically_derived]
            impl __pack::HasSchema for #ident {
                const SCHEMA: &'static __pack::Schema = &__SCHEMA;
            }

            #[automatically_derived]
            impl __pack::Pack for #ident {
                const KIND: __pack::Kind = __pack::Kind::Named(&__SCHEMA);
                const BYTES_MIN: usize = #bytes_min;
                const BYTES_MAX: usize = #bytes_max;

                #[allow(unused_variables)]
                fn pack(
                    &self,
                    __out: &mut __pack::Writer<'_>,
                ) -> ::core::result::Result<(), __pack::PackError> {
                    #pack
                    ::core::result::Result::Ok(())
                }

                #[allow(unused_variables)]
                fn unpack(
                    __from: &mut __pack::Reader<'_>,
                ) -> ::core::result::Result<Self, __pack::PackError> {
                    let __version = __from.version_of(&__SCHEMA);
                    #unpack
                }
            }
        };
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expect: &str) {
        let input = syn::parse_str(source).unwrap();
        match expand(&input, &quote!(::throng_pack)) {
            Ok(tokens) => {
                assert!(expect.is_empty(), "{source}\ncompiled, but should say: {expect}");
                syn::parse2::<syn::File>(tokens).expect("the derive writes Rust");
            }
            Err(error) => {
                let said = error.into_iter().map(|each| each.to_string()).collect::<Vec<_>>().join("; ");
                assert_eq!(said, expect, "{source}");
            }
        }
    }

    #[test]
    fn what_compiles() {
        check("struct A { #[pack(min = -1.0, max = 1.0)] x: f32, y: bool }", "");
        check("struct A(u16, #[pack(fixed)] u64);", "");
        check("struct A;", "");
        check("#[pack(name = \"a\", version = 2)] struct A { #[pack(since = 2, default)] x: u8 }", "");
        check(
            "#[pack(version = 3)] enum A { B, #[pack(since = 2, name = \"c\")] C { x: u8 }, #[pack(since = 3)] D(u8) }",
            "",
        );
        check("struct A { #[pack(via = [f32; 3], min = 0.0)] x: Vec3 }", "");
    }

    #[test]
    fn what_does_not_and_what_it_says() {
        check("struct A<T> { x: T }", "a packed type cannot be generic: its schema must be known");
        check("union A { x: u8 }", "a union cannot be packed");
        check("enum A {}", "an enum without variants has no value to pack");
        check("#[pack(max = 3)] struct A;", "unknown `max`; a type takes name and version");
        check("#[pack(version = 0)] struct A;", "the first version is 1");
        check(
            "struct A { #[pack(length = 3)] x: u8 }",
            "unknown `length`; a field takes min, max, fixed, since, default, via and name",
        );
        check("struct A { #[pack(max = 3, max = 4)] x: u8 }", "`max` is given twice");
        check(
            "struct A { #[pack(since = 2, default)] x: u8 }",
            "`since = 2` is newer than the type, whose version is 1; give the type `#[pack(version = 2)]`",
        );
        check("#[pack(version = 2)] struct A { #[pack(since = 1, default)] x: u8 }", "`since` is 2 or more");
        check(
            "#[pack(version = 2)] struct A { #[pack(since = 2)] x: u8 }",
            "`since` needs `default` or `default = ..`: the value of what has an older version",
        );
        check("struct A { #[pack(default)] x: u8 }", "`default` is for fields with `since`");
        check("struct A { #[pack(name = \"y\")] x: u8, y: u8 }", "there is a `y` already");
        check("enum A { B, #[pack(name = \"B\")] C }", "there is a `B` already");
        check("enum A { #[pack(fixed)] B }", "unknown `fixed`; a variant takes since and name");
        check(
            "#[pack(version = 2)] enum A { #[pack(since = 2)] B, C }",
            "older variants stand first, or their numbers in older bytes would change",
        );
        check(
            "struct A { #[pack(since = 2)] x: u8, #[pack(default)] y: u8 }",
            concat!(
                "`since = 2` is newer than the type, whose version is 1; give the type `#[pack(version = 2)]`; ",
                "`default` is for fields with `since`",
            ),
        );
    }
}
