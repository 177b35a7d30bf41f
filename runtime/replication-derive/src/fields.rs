//! The fields of a struct or of an enum's variant: their pieces put together, in order.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::field::Field;

pub struct Fields {
    members: Vec<syn::Member>,
    fields: Vec<Field>,
}

impl Fields {
    /// All fields, or all that is wrong with them. `prefix` begins the names of their constants.
    pub fn read(fields: &syn::Fields, prefix: &str) -> syn::Result<Self> {
        let mut read = Vec::new();
        let mut errors: Option<syn::Error> = None;
        for (index, field) in fields.iter().enumerate() {
            match (Field::new(field, &format_ident!("{prefix}_{index}")), &mut errors) {
                (Ok(field), _) => read.push(field),
                (Err(error), None) => errors = Some(error),
                (Err(error), Some(earlier)) => earlier.combine(error),
            }
        }
        errors.map_or_else(|| Ok(Self { members: fields.members().collect(), fields: read }), Err)
    }

    pub fn members(&self) -> &[syn::Member] {
        &self.members
    }

    /// Names for references to the fields, one each.
    pub fn bindings(&self, prefix: &str) -> Vec<syn::Ident> {
        (0..self.fields.len()).map(|index| format_ident!("{prefix}_{index}")).collect()
    }

    pub fn constants(&self) -> TokenStream {
        let constants = self.each(|field| &field.constants);
        quote!(#(#constants)*)
    }

    pub fn bits(&self) -> TokenStream {
        let bits = self.each(|field| &field.bits);
        quote!((0 #(+ #bits)*))
    }

    pub fn exact_bits(&self) -> TokenStream {
        let bits = self.each(|field| &field.exact_bits);
        quote!((0 #(+ #bits)*))
    }

    /// Statements that fold the layouts into `layout`.
    pub fn layout(&self) -> TokenStream {
        let layouts = self.each(|field| &field.layout);
        quote!(#(layout = __throng::quantise::mix(layout, #layouts);)*)
    }

    /// Whether any may hold links.
    pub fn links(&self) -> TokenStream {
        let links = self.fields.iter().filter_map(|field| field.links.as_ref()).map(|(may, _)| may);
        quote!((false #(|| #links)*))
    }

    /// `places` are references to the fields, as in all that follow.
    pub fn encode(&self, places: &[TokenStream]) -> TokenStream {
        let encode = self.each(|field| &field.encode);
        quote!(#({ let value = #places; #encode })*)
    }

    pub fn encode_exact(&self, places: &[TokenStream]) -> TokenStream {
        let encode = self.each(|field| &field.encode_exact);
        quote!(#({ let value = #places; #encode })*)
    }

    /// What stands in the braces of the new value.
    pub fn decode(&self) -> TokenStream {
        let (members, decode) = (&self.members, self.each(|field| &field.decode));
        quote!(#(#members: #decode),*)
    }

    pub fn decode_exact(&self) -> TokenStream {
        let (members, decode) = (&self.members, self.each(|field| &field.decode_exact));
        quote!(#(#members: #decode),*)
    }

    pub fn agrees(&self, copies: &[TokenStream], exacts: &[TokenStream]) -> TokenStream {
        let agrees = self.each(|field| &field.agrees);
        quote!(true #(&& { let (copy, exact) = (#copies, #exacts); #agrees })*)
    }

    /// A list of the fields' names and shapes.
    pub fn shapes(&self) -> TokenStream {
        let names = self.members.iter().map(|member| match member {
            syn::Member::Named(name) => name.to_string(),
            syn::Member::Unnamed(index) => index.index.to_string(),
        });
        let shapes = self.each(|field| &field.shape);
        quote!(::std::vec![#((#names, #shapes)),*])
    }

    pub fn visit_links(&self, places: &[TokenStream]) -> TokenStream {
        let visits = self.fields.iter().zip(places).filter_map(|(field, place)| {
            let (_, visit) = field.links.as_ref()?;
            Some(quote!({ let value = #place; #visit }))
        });
        quote!(#(#visits)*)
    }

    fn each(&self, part: fn(&Field) -> &TokenStream) -> Vec<&TokenStream> {
        self.fields.iter().map(part).collect()
    }
}
