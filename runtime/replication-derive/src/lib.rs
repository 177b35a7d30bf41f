//! `#[derive(Replicate)]`: the quantised codec of a component, written from the ranges it declares.
//!
//! The derive only puts together the pieces of `throng_replication::quantise`; all arithmetic and all checks
//! of ranges are there, as constants, so a range that makes no sense does not compile.
//!
//! | field type | attribute | bits |
//! | --- | --- | --- |
//! | `f32`, `[f32; N]`, `Vec2`, `Vec3` | `min = a, max = b, step = s` | enough for `(b - a) / s` codes, each |
//! | `f32`, `[f32; N]` | `angle, bits = n` | n each; radians that wrap |
//! | `f32`, `[f32; N]`, `Vec2`, `Vec3` | `exact` | 32 each |
//! | `bool`, `u8`, `u16`, `u32`, `i8`, `i16`, `i32` | none | 1, 8, 16, 32, 8, 16, 32 |
//! | an integer | `min = a, max = b` | enough for `b - a`; values outside become the nearer end |
//! | an integer, `bool` or enum without fields | `bits = n` | n; values that do not fit become the nearest that does |
//! | enum | none | as many as its variants need, and those of the variant's fields |
//! | struct | none | those of its fields |
//! | `Text<N>` | none | 8 for the length, 8 for each byte there is |
//! | `NetId` | none | 28 |
//! | `EntityLink` | none | 1, and 28 if it refers to somebody |
//! | `Option<T>` | those of `T` | 1, and those of `T` if it is there |
//! | `ArrayVec<T, N>`, `List<T, N>` | those of `T` | enough for the number `N`, and those of each `T` there is |
//!
//! An enum or a struct that is a field derives `Replicate`, too. Fields are packed in their order, lowest bit first, and
//! the last byte is filled with zeros. `a`, `b`, `s` and `n` may be any constant expressions. The derive knows `f32`,
//! `Vec2`, `Vec3`, `Option`, `ArrayVec` and `List` by these names, so a field of such a type is written with its name.
//!
//! `#[replicate(name = "chat.say")]` on a type gives it that name in rules and reports, in place of its own.
//! `#[replicate(crate = "my_engine::replication")]` says where `throng_replication` is, for a crate that has none of
//! `throng-replication`, `throng` and `throng-client` in its Cargo.toml.

use proc_macro::TokenStream;
use quote::quote;

mod attributes;
mod enumeration;
mod field;
mod fields;
mod home;
mod parts;
mod shape;
mod structure;

/// See the crate's documentation for what fields may be and which attributes they take.
#[proc_macro_derive(Replicate, attributes(replicate))]
pub fn derive_replicate(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand(&input, &home::find("throng-replication", "replication", &["throng", "throng-client"]))
        .unwrap_or_else(|error| error.into_compile_error())
        .into()
}

/// `home` is the path of `throng_replication`.
fn expand(input: &syn::DeriveInput, home: &proc_macro2::TokenStream) -> syn::Result<proc_macro2::TokenStream> {
    if !input.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(
            &input.generics,
            "a replicated component cannot be generic: its bytes must be known",
        ));
    }
    let attributes = attributes::TypeAttributes::read(input)?;
    let name = &input.ident;
    let field = match &input.data {
        syn::Data::Struct(data) => structure::expand(name, &data.fields)?.field(name),
        syn::Data::Enum(data) if data.variants.iter().all(|variant| variant.fields.is_empty()) => {
            enumeration::expand_plain(name, data)?
        }
        syn::Data::Enum(data) => enumeration::expand(name, data)?.field(name),
        syn::Data::Union(_) => return Err(syn::Error::new_spanned(name, "a union cannot be replicated")),
    };
    let import = attributes.import(home);
    let component = parts::component(name, &attributes.name);
    Ok(quote! {
        const _: () = {
            #import
            #field
            #component
        };
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expect: &str) {
        let input = syn::parse_str(source).unwrap();
        match expand(&input, &quote!(::throng_replication)) {
            Ok(tokens) => {
                assert!(expect.is_empty(), "compiled, but should say: {expect}");
                syn::parse2::<syn::File>(tokens).expect("the derive writes Rust");
            }
            Err(error) => {
                let said = error.into_iter().map(|each| each.to_string()).collect::<Vec<_>>().join("; ");
                assert_eq!(said, expect);
            }
        }
    }

    const FLOAT: &str = "an f32 needs `#[replicate(min = .., max = .., step = ..)]`, `#[replicate(angle, bits = ..)]` or \
                         `#[replicate(exact)]`";

    #[test]
    fn what_compiles() {
        check("struct A { #[replicate(min = -1.0, max = 1.0, step = 0.1)] x: f32, y: bool }", "");
        check("struct A(u16, #[replicate(bits = 3)] u8);", "");
        check("struct A;", "");
        check("struct A { #[replicate(angle, bits = 7)] x: [f32; 2], #[replicate(exact)] y: glam::Vec3 }", "");
        check("enum A { B, C, D }", "");
        check("#[replicate(name = \"chat.say\")] struct A { who: u16, words: Text<120> }", "");
        check("struct A { x: i8, #[replicate(bits = 3)] y: i32, #[replicate(min = -5, max = 5)] z: i16 }", "");
        check("struct A { #[replicate(min = 0, max = 1000)] x: u16, who: EntityLink, id: NetId }", "");
        check(
            "struct A { #[replicate(exact)] x: Option<Vec3>, y: Option<throng::Text<8>>, z: Option<Option<u8>> }",
            "",
        );
        check("struct A { #[replicate(bits = 3)] x: ArrayVec<u8, 4>, y: List<ArrayVec<Option<B>, 2>, { 1 + 1 }> }", "");
        check("#[replicate(name = \"a\")] enum A { B, C(u8, Option<i8>), D { #[replicate(exact)] x: f32 } }", "");
        check("#[replicate(crate = \"my_engine::replication\")] struct A(u8);", "");
    }

    #[test]
    fn the_home_is_where_the_type_says() {
        let input = syn::parse_str("#[replicate(crate = \"engine::inner\")] struct A(u8);").unwrap();
        let tokens = expand(&input, &quote!(::throng_replication)).unwrap().to_string();
        assert!(tokens.contains("use engine :: inner :: derived as __throng"), "{tokens}");
        assert!(!tokens.contains("throng_replication"), "{tokens}");
    }

    #[test]
    fn what_does_not_and_what_it_says() {
        check("struct A { x: f32 }", FLOAT);
        check("struct A { #[replicate(min = 0.0, max = 1.0)] x: f32 }", "`step` is missing");
        check("struct A { #[replicate(angle)] x: f32 }", "an angle needs `bits = ..`");
        check("struct A { #[replicate(angle, bits = 4)] x: Vec3 }", "a vector is not an angle");
        check(
            "struct A { #[replicate(steps = 3)] x: f32 }",
            "unknown `steps`; known are min, max, step, angle, bits and exact",
        );
        let code = "an integer takes only `bits = ..`, or `min = ..` and `max = ..`; a bool or enum only `bits = ..`";
        check("struct A { #[replicate(min = 0, max = 9, step = 3)] x: u8 }", code);
        check("struct A { #[replicate(exact)] x: Option<i8> }", code);
        check("struct A { #[replicate(min = 0)] x: u8 }", "`max` is missing");
        check("struct A { #[replicate(max = 0)] x: i8 }", "`min` is missing");
        check("struct A { #[replicate(min = 0, max = 3, bits = 2)] x: u8 }", "`bits` follows from min and max");
        check(
            "struct A { #[replicate(exact, angle, bits = 3)] x: f32 }",
            "choose one of min/max/step, angle and exact",
        );
        check("struct A { #[replicate(bits = 3, bits = 4)] x: u8 }", "`bits` is given twice");
        check(
            "struct A { x: [u8; 4] }",
            "only arrays of f32 are packed; use `ArrayVec<T, N>`, or give the values fields of their own",
        );
        check("struct A { x: f64 }", "an f64 is not packed; use f32");
        check("struct A<T> { x: T }", "a replicated component cannot be generic: its bytes must be known");
        check(
            "#[replicate(bits = 3)] struct A;",
            "a type takes only `name = \"..\"` and `crate = \"..\"`; all else belongs on the fields",
        );
        check("struct A { #[replicate(bits = 3)] x: Text<20> }", "a text takes no attributes");
        check("enum A {}", "an enum without variants has no value to send");
        check("enum A { B(u8, f64) }", "an f64 is not packed; use f32");
        check("enum A { #[replicate(bits = 3)] B(u8) }", "a variant takes no attributes; its fields do");
        check("struct A { x: Option<f32> }", FLOAT);
        check("struct A { #[replicate(min = 0.0, max = 1.0)] x: ArrayVec<f32, 3> }", "`step` is missing");
        check("struct A { #[replicate(bits = 8)] x: EntityLink }", "a link takes no attributes");
        check("struct A { #[replicate(bits = 8)] x: Option<Text<3>> }", "a text takes no attributes");
        check("struct A { x: String }", "a String has no bound; use `Text<N>`");
        check("struct A { x: Vec<u8> }", "a Vec has no bound; use `ArrayVec<T, N>` or `List<T, N>`");
        check(
            "struct A { x: u8, y: Option<Entity>, z: u64 }",
            "an Entity means nothing to a client; use `EntityLink`, which goes as the entity's `NetId`; \
             an integer is packed from 8, 16 or 32 bits; use u32 or i32, or two of them",
        );
        check("union A { x: u8 }", "a union cannot be replicated");
    }
}
