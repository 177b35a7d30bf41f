//! Packages: the crates as crates.io would get them, made and built, so that a release finds nothing in its way.
//!
//! `cargo package` puts each together in `target/package`. Its own check would build every crate optimised, on its own; here they
//! are unpacked side by side and type-checked as one workspace, in which each crate finds the others as packages and nothing
//! else of the repository: a file that is used and not packed is missing there. What they stand on was checked for the lints
//! already, and is taken from there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use toml::{Table, Value};

use crate::error::XtaskError;
use crate::step::{self, cargo};
use crate::tidy::crates::{self, Crate};

pub(crate) fn run() -> Result<(), XtaskError> {
    let crates = crates::read(&step::root())?;
    let packages = in_order(&crates);
    let names: Vec<&str> = packages.iter().map(|one| one.name.as_str()).collect();
    eprintln!("── package: {} crates, in the order in which they are published: {}", names.len(), names.join(", "));
    let mut command = cargo();
    // Changes that are not committed are no mistake while one works; and lock files are for commands, not for libraries.
    command.args(["package", "--locked", "--no-verify", "--allow-dirty", "--exclude-lockfile", "--quiet"]);
    command.args(names.iter().flat_map(|name| ["--package", name])).arg("--target-dir").arg(step::target_folder());
    step::run("package", &mut command, "put right what it names in that crate's Cargo.toml")?;
    check(&names)
}

/// The crates that are published, each behind all that it is built with.
fn in_order(crates: &[Crate]) -> Vec<&Crate> {
    let mut left: Vec<&Crate> = crates.iter().filter(|one| one.is_published).collect();
    let mut order: Vec<&Crate> = Vec::new();
    while !left.is_empty() {
        let waiting: BTreeSet<&str> = left.iter().map(|one| one.name.as_str()).collect();
        let (ready, rest): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|one| one.uses.iter().all(|name| !waiting.contains(name.as_str())));
        // Cargo knows no circles, so some are ready; if it ever does, they come last.
        let is_circle = ready.is_empty();
        order.extend(if is_circle { &rest } else { &ready });
        left = if is_circle { Vec::new() } else { rest };
    }
    order
}

/// Unpacks them beside each other and has the compiler look at them.
fn check(names: &[&str]) -> Result<(), XtaskError> {
    let unusable = |path: &Path, cause: &dyn std::fmt::Display| {
        XtaskError::Usage(format!("{}: {cause}; the packages cannot be unpacked there", path.display()))
    };
    let text = fs::read_to_string(step::root().join("Cargo.toml")).map_err(|cause| unusable(&step::root(), &cause))?;
    let manifest: Table = text.parse().map_err(|cause| unusable(&step::root(), &cause))?;
    let version = manifest["workspace"]["package"]["version"].as_str().unwrap_or_default();
    let folder = step::target_folder().join("package/unpacked");
    // What an earlier run left would hide that a file is not packed any more.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|cause| unusable(&folder, &cause))?;
    for name in names {
        let packed = step::target_folder().join(format!("package/{name}-{version}.crate"));
        let mut command = step::program("tar".as_ref());
        // Files in a package are of a day long ago: with that date cargo would take what an earlier run checked for theirs.
        command.args(["--extract", "--touch", "--gzip", "--file"]).arg(&packed).arg("--directory").arg(&folder);
        step::output_of("unpack", &mut command, "look whether `cargo package` made that file")?;
    }
    let write = |name: &str, text: &str| {
        fs::write(folder.join(name), text).map_err(|cause| unusable(&folder.join(name), &cause))
    };
    write("Cargo.toml", &workspace(names, version, manifest.get("profile")))?;
    let lock = fs::read_to_string(step::root().join("Cargo.lock")).map_err(|cause| unusable(&folder, &cause))?;
    write("Cargo.lock", &lock)?;
    let mut command = cargo();
    command.args(["check", "--workspace", "--manifest-path"]).arg(folder.join("Cargo.toml"));
    command.arg("--target-dir").arg(step::target_folder());
    step::run("check packages", &mut command, "a file that is missing there is not packed: move it into its crate")
}

/// A workspace of the unpacked crates, in which each takes the others from beside itself. The profile is ours, so that what
/// was checked in it need not be checked again.
fn workspace(names: &[&str], version: &str, profile: Option<&Value>) -> String {
    let folder = |name: &str| format!("{name}-{version}");
    let path = |name: &str| Value::Table(Table::from_iter([("path".to_owned(), Value::String(folder(name)))]));
    let members = names.iter().map(|name| Value::String(folder(name))).collect();
    let workspace = Table::from_iter([
        ("resolver".to_owned(), Value::String("3".to_owned())),
        ("members".to_owned(), Value::Array(members)),
    ]);
    let patch = Table::from_iter(names.iter().map(|name| ((*name).to_owned(), path(name))));
    let mut manifest = Table::from_iter([
        ("workspace".to_owned(), Value::Table(workspace)),
        ("patch".to_owned(), Value::Table(Table::from_iter([("crates-io".to_owned(), Value::Table(patch))]))),
    ]);
    if let Some(profile) = profile {
        manifest.insert("profile".to_owned(), profile.clone());
    }
    manifest.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, uses: &[&str], is_published: bool) -> Crate {
        let uses = uses.iter().map(|&name| name.to_owned()).collect();
        Crate { name: name.to_owned(), uses, is_published, ..Crate::default() }
    }

    #[test]
    fn a_crate_is_published_after_all_that_it_stands_on() {
        let crates = [
            one("server", &["net", "platform"], true),
            one("xtask", &[], false),
            one("net", &["platform"], true),
            one("platform", &[], true),
            one("bench", &["net"], false),
        ];
        let names: Vec<&str> = in_order(&crates).into_iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["platform", "net", "server"]);
    }

    #[test]
    fn unpacked_crates_find_each_other_and_nothing_else() {
        let profile = Value::Table("dev = { opt-level = 3 }".parse().unwrap());
        let text = workspace(&["throng-net", "throng"], "0.2.0", Some(&profile));
        let manifest: Table = text.parse().unwrap();
        let members: Vec<_> = manifest["workspace"]["members"].as_array().unwrap().iter().map(Value::as_str).collect();
        assert_eq!(members, [Some("throng-net-0.2.0"), Some("throng-0.2.0")]);
        assert_eq!(manifest["patch"]["crates-io"]["throng"]["path"].as_str(), Some("throng-0.2.0"));
        assert_eq!(manifest["profile"]["dev"]["opt-level"].as_integer(), Some(3));
    }
}
