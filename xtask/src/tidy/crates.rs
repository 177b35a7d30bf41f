//! The workspace's crates as their Cargo.tomls state them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::error::XtaskError;

/// One crate of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Crate {
    /// As Cargo knows it, such as `throng-net`.
    pub name: String,
    /// From the root, such as `runtime/net`.
    pub folder: String,
    pub description: String,
    /// Crates of ours that it is built with, by their Cargo names.
    pub uses: BTreeSet<String>,
    /// Crates of ours that only its tests are built with.
    pub tests_use: BTreeSet<String>,
    pub workspace_lints: bool,
    /// Whether it is for crates.io. Who does not say so is.
    pub is_published: bool,
}

impl Crate {
    /// The name of its room: the folder's last part.
    pub(crate) fn room(&self) -> &str {
        self.folder.rsplit('/').next().unwrap_or(&self.folder)
    }
}

/// Reads all members of the workspace, ordered by folder.
pub(crate) fn read(root: &Path) -> Result<Vec<Crate>, XtaskError> {
    let workspace = table(&root.join("Cargo.toml"))?;
    let list = |key: &str| workspace.get("workspace").and_then(|workspace| workspace.get(key)?.as_array());
    let words = |key: &str| list(key).into_iter().flatten().filter_map(Value::as_str);
    let mut folders: Vec<String> = words("members").flat_map(|member| expand(root, member)).collect();
    folders.retain(|folder| words("exclude").all(|excluded| excluded != folder));
    folders.sort();
    let manifests: Vec<(String, Table)> = folders
        .into_iter()
        .map(|folder| Ok((folder.clone(), table(&root.join(&folder).join("Cargo.toml"))?)))
        .collect::<Result<_, XtaskError>>()?;
    let ours: BTreeSet<String> = manifests.iter().map(|(_, manifest)| text(manifest, "name")).collect();
    Ok(manifests.iter().map(|(folder, manifest)| from_manifest(folder, manifest, &ours)).collect())
}

/// Every crate takes the workspace's lints: a crate that forgets them is where `unsafe` gets in unseen.
pub(crate) fn check(crates: &[Crate]) -> Vec<String> {
    let careless = crates.iter().filter(|one| !one.workspace_lints);
    let problem =
        |one: &Crate| format!("{}/Cargo.toml: takes no lints; add `[lints]` with `workspace = true`", one.folder);
    careless.map(problem).collect()
}

pub(crate) fn from_manifest(folder: &str, manifest: &Table, ours: &BTreeSet<String>) -> Crate {
    let mut tables = vec![manifest];
    let targets = manifest.get("target").and_then(Value::as_table);
    tables.extend(targets.into_iter().flat_map(|targets| targets.values()).filter_map(Value::as_table));
    let named = |kinds: &[&str]| -> BTreeSet<String> {
        let lists = tables.iter().flat_map(|table| kinds.iter().filter_map(|kind| table.get(*kind)?.as_table()));
        let named = lists.flatten().map(|(key, value)| {
            let renamed = value.get("package").and_then(Value::as_str);
            renamed.unwrap_or(key).to_owned()
        });
        named.filter(|name| ours.contains(name)).collect()
    };
    let lints = manifest.get("lints").and_then(|lints| lints.get("workspace")?.as_bool());
    Crate {
        name: text(manifest, "name"),
        folder: folder.to_owned(),
        description: text(manifest, "description"),
        uses: named(&["dependencies", "build-dependencies"]),
        tests_use: named(&["dev-dependencies"]),
        workspace_lints: lints == Some(true),
        is_published: manifest.get("package").and_then(|package| package.get("publish")?.as_bool()) != Some(false),
    }
}

fn text(manifest: &Table, key: &str) -> String {
    let value = manifest.get("package").and_then(|package| package.get(key)?.as_str());
    value.unwrap_or_default().to_owned()
}

/// The folders that a member stands for: itself, or with `/*` all below it that have a manifest.
fn expand(root: &Path, member: &str) -> Vec<String> {
    let Some(parent) = member.strip_suffix("/*") else {
        return vec![member.to_owned()];
    };
    let entries = fs::read_dir(root.join(parent)).into_iter().flatten().flatten();
    let with_manifest = entries.filter(|entry| entry.path().join("Cargo.toml").is_file());
    with_manifest.map(|entry| format!("{parent}/{}", entry.file_name().to_string_lossy())).collect()
}

fn table(path: &PathBuf) -> Result<Table, XtaskError> {
    let text = fs::read_to_string(path).map_err(|cause| XtaskError::Usage(format!("{}: {cause}", path.display())))?;
    text.parse().map_err(|cause| XtaskError::Usage(format!("{}: {cause}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_found_in_every_kind_of_table() {
        let manifest = r#"
            [package]
            name = "throng-net"
            description = "Bytes."
            [lints]
            workspace = true
            [dependencies]
            throng-platform.workspace = true
            serde = "1"
            renamed = { package = "throng-metrics", path = "x" }
            [target.'cfg(unix)'.dependencies]
            throng-query = { path = "y" }
            [build-dependencies]
            throng-script = "1"
            [dev-dependencies]
            throng-simulator.workspace = true
        "#;
        let ours = ["throng-platform", "throng-metrics", "throng-query", "throng-script", "throng-simulator"];
        let ours = ours.map(str::to_owned).into();
        let read = from_manifest("runtime/net", &manifest.parse().unwrap(), &ours);
        let uses: Vec<&str> = read.uses.iter().map(String::as_str).collect();
        assert_eq!(uses, ["throng-metrics", "throng-platform", "throng-query", "throng-script"]);
        assert_eq!(read.tests_use, BTreeSet::from(["throng-simulator".to_owned()]));
        assert_eq!((read.room(), read.description.as_str(), read.workspace_lints), ("net", "Bytes.", true));
        assert!(read.is_published);
        let stays = "[package]\nname = \"throng-net\"\npublish = false\n".parse().unwrap();
        assert!(!from_manifest("runtime/net", &stays, &ours).is_published);
    }
}
