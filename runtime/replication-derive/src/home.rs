//! Home: by which path the user's crate reaches the crate of ours that a macro's code needs.
//!
//! The code is compiled in the user's crate, so it must name what that crate's Cargo.toml has: our crate itself, or one
//! above it that shows it, as `throng` shows `throng_replication` as `replication`. What only the tests have is not there
//! for the rest of the crate, so it counts where there is nothing else.
//!
//! `proc-macro-crate` knows the names, renamed and inherited ones too, but not whom a dependency is for. Where there is a
//! choice that is read from the Cargo.toml.
//!
//! One file, in three crates by links: a crate of macros can show nothing else, and a crate for this would be one more to
//! publish.

use std::{env, fs, path::Path};

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use toml_edit::{DocumentMut, Item, TableLike};

/// The path to `package`, or to what one of the crates `above` shows as `module`; that of the package itself if nothing
/// says otherwise.
pub fn find(package: &str, module: &str, above: &[&str]) -> TokenStream {
    let own = name_of(package);
    let names: Vec<String> = own.iter().cloned().chain(above.iter().filter_map(|above| name_of(above))).collect();
    let Some(chosen) = choose(&names, manifest) else {
        let name = format_ident!("{}", identifier(package));
        return quote!(::#name);
    };
    let name = format_ident!("{chosen}");
    if own.as_ref() == Some(chosen) {
        return quote!(::#name);
    }
    let module = format_ident!("{module}");
    quote!(::#name::#module)
}

fn name_of(package: &str) -> Option<String> {
    Some(match crate_name(package).ok()? {
        FoundCrate::Itself => identifier(package),
        FoundCrate::Name(name) => name,
    })
}

/// As code names a package.
fn identifier(package: &str) -> String {
    package.replace('-', "_")
}

/// The first that all of the crate has, else the first.
fn choose(names: &[String], manifest: impl FnOnce() -> Option<DocumentMut>) -> Option<&String> {
    let [first, _, ..] = names else { return names.first() };
    let Some(manifest) = manifest() else { return Some(first) };
    names.iter().find(|name| is_for_all(&manifest, name)).or(Some(first))
}

/// Whether all of the crate has the dependency of this name, or is it, and not only its tests.
fn is_for_all(manifest: &DocumentMut, name: &str) -> bool {
    let has = |table: &dyn TableLike| {
        let dependencies = table.get("dependencies").and_then(Item::as_table_like);
        dependencies.is_some_and(|dependencies| dependencies.iter().any(|(key, _)| identifier(key) == name))
    };
    let own_name = manifest.get("package").and_then(|package| package.get("name")?.as_str());
    let targets = manifest.get("target").and_then(Item::as_table_like);
    own_name.is_some_and(|own| identifier(own) == name)
        || has(manifest.as_table())
        || targets.is_some_and(|targets| targets.iter().any(|(_, target)| target.as_table_like().is_some_and(has)))
}

/// The user's; `proc-macro-crate` says what is wrong with one that cannot be read.
fn manifest() -> Option<DocumentMut> {
    let folder = env::var("CARGO_MANIFEST_DIR").ok()?;
    fs::read_to_string(Path::new(&folder).join("Cargo.toml")).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(manifest: &str, names: &[&str], expect: &str) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let parsed = || Some(manifest.parse::<DocumentMut>().expect("a manifest"));
        assert_eq!(choose(&names, parsed).map(String::as_str), Some(expect), "{manifest}");
    }

    const BOTH: [&str; 2] = ["throng_replication", "throng"];

    #[test]
    fn what_only_tests_have_is_not_named() {
        check("[dependencies]\nthrong = '1'\n[dev-dependencies]\nthrong-replication = '1'", &BOTH, "throng");
        check("[dependencies]\nthrong-replication = '1'\n[dev-dependencies]\nthrong = '1'", &BOTH, BOTH[0]);
        check("[dependencies.throng]\nworkspace = true\n[dev-dependencies.throng-replication]", &BOTH, "throng");
        check(
            "[target.'cfg(unix)'.dependencies]\nthrong = '1'\n[dev-dependencies]\nthrong-replication = '1'",
            &BOTH,
            "throng",
        );
        check(
            "[dependencies]\ngame-server = { package = 'throng' }",
            &["throng_replication", "game_server"],
            "game_server",
        );
    }

    #[test]
    fn of_those_that_all_of_the_crate_has_the_nearest_is_named() {
        check("[dependencies]\nthrong = '1'\nthrong-replication = '1'", &BOTH, BOTH[0]);
        check("[dev-dependencies]\nthrong = '1'\nthrong-replication = '1'", &BOTH, BOTH[0]);
        check("[package]\nname = 'throng'\n[dev-dependencies]\nthrong-replication = '1'", &BOTH, "throng");
    }
}
