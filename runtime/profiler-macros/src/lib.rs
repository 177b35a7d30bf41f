//! The attribute behind `#[throng_profiler::scoped]`: a whole function as one scope.

use proc_macro::TokenStream;
use quote::quote;
use syn::{ItemFn, parse_macro_input, parse_quote};

mod home;

/// Records every call of the function as a scope: `#[scoped("query.path")]`, with the options of `scope!`, such as
/// `#[scoped("query.path", budget_us = 500)]`.
///
/// An `async` function is refused: it may go on in another thread than it began in.
#[proc_macro_attribute]
pub fn scoped(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let arguments = proc_macro2::TokenStream::from(arguments);
    let mut function = parse_macro_input!(item as ItemFn);
    if let Some(asyncness) = function.sig.asyncness {
        let message = "a scope belongs to one thread: put `scope!` into the parts between the awaits";
        return syn::Error::new_spanned(asyncness, message).to_compile_error().into();
    }
    if function.sig.constness.is_some() {
        let message = "a `const` function has no time: it may run while the program is compiled";
        return syn::Error::new_spanned(function.sig.fn_token, message).to_compile_error().into();
    }
    let home = home::find("throng-profiler", "profiler", &["throng"]);
    function.block.stmts.insert(0, parse_quote! { #home::scope!(#arguments); });
    quote!(#function).into()
}
