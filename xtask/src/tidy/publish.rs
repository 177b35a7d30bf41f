//! What must hold before crates can be published: found on the day of a release, it would be in the way of one.
//!
//! Our crates are published together, under one version. Each brings the licences' texts, and stands only on crates that
//! are published too. The Rust that is promised is one figure in two places: in the manifest, where Cargo tells those
//! whose compiler is older, and in the README.

use std::path::Path;

use toml::{Table, Value};

use super::crates::Crate;

const PAGE: &str = "Cargo.toml";
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

pub(super) fn check(root: &Path, crates: &[Crate]) -> Vec<String> {
    let read = |page: &str| std::fs::read_to_string(root.join(page)).map_err(|cause| format!("{page}: {cause}"));
    let pages = read(PAGE).and_then(|text| {
        let manifest: Table = text.parse().map_err(|cause| format!("{PAGE}: {cause}"))?;
        Ok((manifest, read("README.md")?))
    });
    let (manifest, readme) = match pages {
        Ok(pages) => pages,
        Err(problem) => return vec![problem],
    };
    let missing = crates.iter().filter(|one| one.is_published).flat_map(|one| {
        let paths = LICENCES.map(|name| format!("{}/{name}", one.folder));
        paths.into_iter().filter(|path| !root.join(path).is_file())
    });
    let missing = missing.map(|path| format!("{path}: is missing; `ln -s ../../LICENSE-... {path}`"));
    let rust = supported_rust(&manifest, &readme);
    [versions(&manifest, crates), stands_on(crates), rust, missing.collect()].concat()
}

/// Who depends on a crate of ours wants the version that all of them have. Of one that stays here none need be said.
fn versions(manifest: &Table, crates: &[Crate]) -> Vec<String> {
    let workspace = manifest.get("workspace");
    let version = workspace.and_then(|workspace| workspace.get("package")?.get("version")?.as_str());
    let dependencies = workspace.and_then(|workspace| workspace.get("dependencies")?.as_table());
    let ours = dependencies.into_iter().flatten().filter(|(_, value)| value.get("path").is_some());
    let is_published = |name: &String| crates.iter().any(|one| one.name == *name && one.is_published);
    let wrong = ours.filter(|(name, value)| {
        let wanted = value.get("version").and_then(Value::as_str);
        wanted != version && (wanted.is_some() || is_published(name))
    });
    let version = version.unwrap_or_default();
    wrong.map(|(name, _)| format!("{PAGE}: {name} is not wanted as `version = \"{version}\"`; write that")).collect()
}

fn stands_on(crates: &[Crate]) -> Vec<String> {
    let staying = |name: &String| crates.iter().any(|other| other.name == *name && !other.is_published);
    let edges = crates.iter().filter(|one| one.is_published).flat_map(|one| {
        one.uses.iter().filter(|name| staying(name)).map(|name| {
            let (folder, user) = (&one.folder, &one.name);
            format!("{folder}/Cargo.toml: {user} is published and uses {name}, which is not; `publish = false` here, or not there")
        })
    });
    edges.collect()
}

fn supported_rust(manifest: &Table, readme: &str) -> Vec<String> {
    let package = manifest.get("workspace").and_then(|workspace| workspace.get("package"));
    let Some(promised) = package.and_then(|package| package.get("rust-version")?.as_str()) else {
        return vec![format!("{PAGE}: [workspace.package] says no `rust-version`; write it")];
    };
    let mut problems = Vec::new();
    if !readme.contains(&format!("Rust {promised} or newer")) {
        problems.push(format!("README.md: does not ask for `Rust {promised} or newer`, as {PAGE} does; write that"));
    }
    problems
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_crate_of_ours_is_wanted_in_the_version_that_all_have() {
        let manifest = r#"
            [workspace.package]
            version = "0.2.0"
            [workspace.dependencies]
            throng-net = { version = "0.2.0", path = "runtime/net" }
            throng-old = { version = "0.1.0", path = "runtime/old" }
            throng-new = { path = "runtime/new" }
            stays = { path = "games/stays" }
            serde = { version = "1" }
        "#;
        let published = |name: &str| Crate { name: name.to_owned(), is_published: true, ..Crate::default() };
        let found = versions(&manifest.parse().unwrap(), &["throng-net", "throng-old", "throng-new"].map(published));
        let problem = |name: &str| format!("Cargo.toml: {name} is not wanted as `version = \"0.2.0\"`; write that");
        assert_eq!(found, [problem("throng-new"), problem("throng-old")]);
    }

    #[test]
    fn what_is_published_stands_on_what_is_published() {
        let one = |name: &str, uses: &[&str], is_published| Crate {
            name: name.to_owned(),
            folder: name.to_owned(),
            uses: uses.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>(),
            is_published,
            ..Crate::default()
        };
        let well = [one("net", &["platform"], true), one("platform", &[], true), one("bench", &["net"], false)];
        assert_eq!(stands_on(&well), Vec::<String>::new());
        let found = stands_on(&[one("cli", &["precinct"], true), one("precinct", &[], false)]);
        assert!(found[0].starts_with("cli/Cargo.toml: cli is published and uses precinct, which is not"), "{found:?}");
    }

    #[test]
    fn the_rust_that_is_promised_is_the_same_everywhere() {
        let manifest: Table = "[workspace.package]\nrust-version = \"1.95\"\n".parse().unwrap();
        let check = |readme, problems| assert_eq!(supported_rust(&manifest, readme).len(), problems, "{readme}");
        check("- Rust 1.95 or newer", 0);
        check("- Rust 1.9 or newer", 1);
        check("", 1);
        assert_eq!(supported_rust(&Table::new(), "").len(), 1);
    }
}
