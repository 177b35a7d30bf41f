//! What comes from outside: the crates that we build on, judged by cargo-deny after `deny.toml`.
//!
//! Bans, licences and sources follow from `Cargo.lock` and are judged always. Advisories need RustSec's database, which is
//! a git repository on GitHub and no package. Where it cannot be fetched, this says so and goes on: a change must not wait
//! for somebody else's server, and nobody is to believe that advisories were looked at. `ADVISORY_DB_URL` names a mirror
//! that can be reached.

use std::path::{Path, PathBuf};
use std::process::Command;

use toml::{Table, Value};

use crate::error::XtaskError;
use crate::step::{self, cargo};

/// Since 0.20 the command line is as it is used here, and git itself fetches, which made cargo-deny much quicker to build.
/// A newer one is taken as it is.
const VERSION: [u32; 3] = [0, 20, 2];

/// A fetch that is quick takes some seconds; one that hangs is not waited for (s).
const FETCH_S_MAX: u32 = 60;

const MIRROR: &str = "ADVISORY_DB_URL";

/// Whether the crates were held against the advisories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advisories {
    Checked,
    NotChecked,
}

/// cargo-deny, where it is missing or too old.
pub(crate) fn install() -> Result<(), XtaskError> {
    let version = cargo().args(["deny", "--version"]).output().ok();
    let is_there = version.and_then(|output| version_in(&String::from_utf8_lossy(&output.stdout)));
    if is_there.is_some_and(|version| version >= VERSION) {
        return Ok(());
    }
    let version = VERSION.map(|number| number.to_string()).join(".");
    let mut command = cargo();
    command.args(["install", "--locked", "cargo-deny", "--version", &version]);
    // It links with everything optimised as one, for minutes; it runs for seconds.
    command.env("CARGO_PROFILE_RELEASE_LTO", "false").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
    let next = format!("install it by hand: cargo install --locked cargo-deny --version {version}");
    step::run("install cargo-deny", &mut command, &next)
}

/// The three numbers of `cargo-deny 0.20.2`.
fn version_in(said: &str) -> Option<[u32; 3]> {
    let mut numbers = said.split_whitespace().nth(1)?.split(['.', '-', '+']).map(|number| number.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

/// Everything that `deny.toml` asks for.
pub(crate) fn check() -> Result<Advisories, XtaskError> {
    step::run(
        "bans, licences, sources",
        cargo().args(["deny", "--locked", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]),
        "choose another crate, or say in deny.toml why this one may be used",
    )?;
    let mirror = std::env::var(MIRROR).ok();
    let config = match &mirror {
        None => step::root().join("deny.toml"),
        Some(url) => write_config(url)?,
    };
    if let Err(why) = fetch(&config) {
        if mirror.is_some() || !is_kept() {
            eprintln!(
                "── advisories: NOT CHECKED. The database cannot be fetched: {why}\n   Where GitHub is out of reach, set \
                 {MIRROR} to a git mirror of https://github.com/RustSec/advisory-db"
            );
            return Ok(Advisories::NotChecked);
        }
        eprintln!("── advisories: by the database as it was fetched before, since it cannot be fetched now: {why}");
    }
    step::run(
        "advisories",
        cargo().args(["deny", "--locked", "--offline", "--config"]).arg(&config).args(["check", "advisories"]),
        "take the crate's repaired version, or say in deny.toml why it does not concern us",
    )?;
    Ok(Advisories::Checked)
}

/// Brings the database here; the error is the last that was said about it.
fn fetch(config: &Path) -> Result<(), String> {
    let mut command: Command = step::program("timeout".as_ref());
    command.arg(FETCH_S_MAX.to_string()).arg(cargo().get_program());
    command.args(["deny", "--config"]).arg(config).args(["fetch", "db"]);
    eprintln!("── advisories: fetching the database");
    let output = command.output().map_err(|cause| format!("timeout could not be started: {cause}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().rfind(|line| !line.trim().is_empty());
    Err(last.map_or_else(|| format!("no answer within {FETCH_S_MAX} s"), |line| line.trim().to_owned()))
}

/// Is there a database of an earlier fetch, where cargo-deny keeps them?
fn is_kept() -> bool {
    let home = |name| std::env::var_os(name).map(PathBuf::from);
    let cargo_home = home("CARGO_HOME").or_else(|| Some(home("HOME")?.join(".cargo")));
    let folder = cargo_home.map(|folder| folder.join("advisory-dbs"));
    // Beside its lock, which a fetch that failed leaves too.
    let entries = folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|path| path.is_dir())
}

/// A `deny.toml` that knows the mirror only.
fn write_config(url: &str) -> Result<PathBuf, XtaskError> {
    let unusable =
        |path: &Path, cause: &dyn std::fmt::Display| XtaskError::Usage(format!("{}: {cause}", path.display()));
    let original = step::root().join("deny.toml");
    let text = std::fs::read_to_string(&original).map_err(|cause| unusable(&original, &cause))?;
    let text = with_mirror(&text, url).map_err(|cause| unusable(&original, &cause))?;
    let path = step::target_folder().join("deny-with-mirror.toml");
    std::fs::create_dir_all(step::target_folder()).map_err(|cause| unusable(&path, &cause))?;
    std::fs::write(&path, text).map_err(|cause| unusable(&path, &cause))?;
    Ok(path)
}

fn with_mirror(config: &str, url: &str) -> Result<String, String> {
    let mut config: Table = config.parse().map_err(|cause: toml::de::Error| cause.to_string())?;
    let advisories = config.entry("advisories").or_insert_with(|| Value::Table(Table::new()));
    let advisories = advisories.as_table_mut().ok_or("[advisories] is no table")?;
    advisories.insert("db-urls".to_owned(), Value::Array(vec![Value::String(url.to_owned())]));
    Ok(config.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_cargo_deny_is_replaced_and_a_newer_one_is_not() {
        let is_enough = |said| version_in(said).is_some_and(|version| version >= VERSION);
        assert!(is_enough("cargo-deny 0.20.2\n"));
        assert!(is_enough("cargo-deny 0.21.0-rc.1\n"));
        assert!(is_enough("cargo-deny 1.0.0\n"));
        assert!(!is_enough("cargo-deny 0.14.2\n"));
        assert!(!is_enough("cargo-deny\n"));
        assert!(!is_enough(""));
    }

    #[test]
    fn a_mirror_takes_the_place_of_the_database_and_the_rest_stays() {
        let config = "[advisories]\nyanked = \"deny\"\n[bans]\nwildcards = \"deny\"\n";
        let changed: Table = with_mirror(config, "https://mirror.example/advisory-db").unwrap().parse().unwrap();
        assert_eq!(changed["advisories"]["db-urls"][0].as_str(), Some("https://mirror.example/advisory-db"));
        assert_eq!(changed["advisories"]["yanked"].as_str(), Some("deny"));
        assert_eq!(changed["bans"]["wildcards"].as_str(), Some("deny"));
        assert!(with_mirror("", "https://mirror.example/db").unwrap().contains("db-urls"));
        assert!(with_mirror("advisories = 7", "https://mirror.example/db").is_err());
    }
}
