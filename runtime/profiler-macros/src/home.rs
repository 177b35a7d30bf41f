//! Home: by which path the user's crate reaches `throng_profiler`.
//!
//! What the attribute writes is compiled in the user's crate, so it must name what that crate's Cargo.toml has:
//! `throng_profiler` itself, or `throng`, which shows it as `profiler`. `proc-macro-crate` reads the Cargo.toml once per
//! crate that is compiled.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The path, `::throng_profiler` if nothing says otherwise.
pub fn find() -> TokenStream {
    match (crate_name("throng-profiler"), crate_name("throng")) {
        (Ok(FoundCrate::Name(name)), _) => {
            let name = format_ident!("{name}");
            quote!(::#name)
        }
        (Err(_), Ok(FoundCrate::Name(name))) => {
            let name = format_ident!("{name}");
            quote!(::#name::profiler)
        }
        _ => quote!(::throng_profiler),
    }
}
