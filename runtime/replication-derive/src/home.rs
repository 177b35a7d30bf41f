//! Home: by which path the user's crate reaches `throng_replication`.
//!
//! A derive's code is compiled in the user's crate, so it must name what that crate's Cargo.toml has: `throng_replication`
//! itself, or `throng` or `throng_client`, which show it as `replication`. `proc-macro-crate` reads the Cargo.toml once
//! per crate that is compiled.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};

/// The path, `::throng_replication` if nothing says otherwise.
pub fn find() -> TokenStream {
    let dependency = |package: &str| match crate_name(package).ok()? {
        FoundCrate::Itself => Some(format_ident!("{}", package.replace('-', "_"))),
        FoundCrate::Name(name) => Some(format_ident!("{name}")),
    };
    if let Some(name) = dependency("throng-replication") {
        return quote!(::#name);
    }
    let above = ["throng", "throng-client"].into_iter().find_map(dependency);
    above.map_or_else(|| quote!(::throng_replication), |name| quote!(::#name::replication))
}
