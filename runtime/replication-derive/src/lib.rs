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
//! | `bool`, `u8`, `u16`, `u32`, enum | none | 1, 8, 16, 32, as many as the enum's variants need |
//! | the same | `bits = n` | n; larger values become the largest that fits |
//! | `Text<N>` | none | 8 for the length, 8 for each byte there is |
//!
//! Fields are packed in their order, lowest bit first, and the last byte is filled with zeros. `a`, `b`, `s`
//! and `n` may be any constant expressions. An enum without fields takes no attributes.
//!
//! `#[replicate(name = "chat.say")]` on a struct gives it that name in rules and reports, in place of its own.

use proc_macro::TokenStream;

mod enumeration;
mod field;
mod structure;

/// See the crate's documentation for what fields may be and which attributes they take.
#[proc_macro_derive(Replicate, attributes(replicate))]
pub fn derive_replicate(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}

fn expand(input: &syn::DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    if !input.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(
            &input.generics,
            "a replicated component cannot be generic: its bytes must be known",
        ));
    }
    let name = public_name(input)?;
    match &input.data {
        syn::Data::Struct(data) => structure::expand(&input.ident, &name, &data.fields),
        syn::Data::Enum(data) => enumeration::expand(&input.ident, data),
        syn::Data::Union(_) => Err(syn::Error::new_spanned(&input.ident, "a union cannot be replicated")),
    }
}

/// The name in rules and reports: the type's own unless an attribute says otherwise.
fn public_name(input: &syn::DeriveInput) -> syn::Result<String> {
    let mut name = input.ident.to_string();
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("replicate")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("name") || matches!(input.data, syn::Data::Enum(_)) {
                return Err(meta.error("a struct takes only `name = \"..\"`; all else belongs on the fields"));
            }
            name = meta.value()?.parse::<syn::LitStr>()?.value();
            Ok(())
        })?;
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expect: &str) {
        let input = syn::parse_str(source).unwrap();
        match expand(&input) {
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

    #[test]
    fn what_compiles() {
        check("struct A { #[replicate(min = -1.0, max = 1.0, step = 0.1)] x: f32, y: bool }", "");
        check("struct A(u16, #[replicate(bits = 3)] u8);", "");
        check("struct A;", "");
        check("struct A { #[replicate(angle, bits = 7)] x: [f32; 2], #[replicate(exact)] y: glam::Vec3 }", "");
        check("enum A { B, C, D }", "");
        check("#[replicate(name = \"chat.say\")] struct A { who: u16, words: Text<120> }", "");
    }

    #[test]
    fn what_does_not_and_what_it_says() {
        check(
            "struct A { x: f32 }",
            "an f32 needs `#[replicate(min = .., max = .., step = ..)]`, `#[replicate(angle, bits = ..)]` or \
             `#[replicate(exact)]`",
        );
        check("struct A { #[replicate(min = 0.0, max = 1.0)] x: f32 }", "`step` is missing");
        check("struct A { #[replicate(angle)] x: f32 }", "an angle needs `bits = ..`");
        check("struct A { #[replicate(angle, bits = 4)] x: Vec3 }", "a vector is not an angle");
        check(
            "struct A { #[replicate(steps = 3)] x: f32 }",
            "unknown `steps`; known are min, max, step, angle, bits and exact",
        );
        check("struct A { #[replicate(min = 0.0)] x: u8 }", "an integer, bool or enum takes only `bits = ..`");
        check(
            "struct A { #[replicate(exact, angle, bits = 3)] x: f32 }",
            "choose one of min/max/step, angle and exact",
        );
        check("struct A { #[replicate(bits = 3, bits = 4)] x: u8 }", "`bits` is given twice");
        check("struct A { x: [u8; 4] }", "only arrays of f32 are packed; give the values fields of their own");
        check("struct A { x: f64 }", "an f64 is not packed; use f32");
        check("struct A<T> { x: T }", "a replicated component cannot be generic: its bytes must be known");
        check(
            "#[replicate(bits = 3)] struct A;",
            "a struct takes only `name = \"..\"`; all else belongs on the fields",
        );
        check("struct A { #[replicate(bits = 3)] x: Text<20> }", "a text takes no attributes");
        check("enum A {}", "an enum without variants has no value to send");
        check("enum A { B(u8) }", "only enums without fields are replicated");
        check("union A { x: u8 }", "a union cannot be replicated");
    }
}
