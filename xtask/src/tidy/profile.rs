//! The profile that tests are built in: our crates are named there one by one, since Cargo has no name for all of them.
//!
//! One that is missing is optimised as if it were somebody else's, and takes several times as long to build; nothing else
//! would show it.

use std::path::Path;

use toml::Table;

use super::crates::Crate;

const PAGE: &str = "Cargo.toml";

pub(super) fn check(root: &Path, crates: &[Crate]) -> Vec<String> {
    match std::fs::read_to_string(root.join(PAGE)).map(|text| text.parse::<Table>()) {
        Ok(Ok(manifest)) => compare(&manifest, crates),
        Ok(Err(cause)) => vec![format!("{PAGE}: {cause}")],
        Err(cause) => vec![format!("{PAGE}: cannot be read: {cause}")],
    }
}

fn compare(manifest: &Table, crates: &[Crate]) -> Vec<String> {
    let packages = manifest.get("profile").and_then(|profile| profile.get("dev")?.get("package")?.as_table());
    let is_named = |one: &&Crate| packages.is_some_and(|packages| packages.contains_key(&one.name));
    let missing = crates.iter().filter(|one| !is_named(one));
    let problem = |one: &Crate| {
        format!("{PAGE}: [profile.dev.package] lacks {name}; add: {name} = {{ opt-level = 1 }}", name = one.name)
    };
    missing.map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_would_be_optimised_as_a_strangers_is_told() {
        let crates = ["throng-net", "throng-new"].map(|name| Crate { name: name.to_owned(), ..Crate::default() });
        let manifest = "[profile.dev.package]\n\"*\" = { debug = false }\nthrong-net = { opt-level = 1 }\n";
        let found = compare(&manifest.parse().unwrap(), &crates);
        assert_eq!(found, ["Cargo.toml: [profile.dev.package] lacks throng-new; add: throng-new = { opt-level = 1 }"]);
    }
}
