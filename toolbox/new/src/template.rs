//! The template: the files of a project, with its name in them.

use std::path::Path;

/// What stands for the project's name.
const NAME: &str = "meadow";

const MANIFEST: &str = include_str!("manifest.toml");

/// Those of `games/meadow`, by their paths in it. Its own tests are about the toolbox, and stay.
const FILES: [(&str, &str); 16] = [
    (".containerignore", include_str!("../../../games/meadow/.containerignore")),
    (".gitignore", include_str!("../../../games/meadow/.gitignore")),
    ("Containerfile", include_str!("../../../games/meadow/Containerfile")),
    ("build.rs", include_str!("../../../games/meadow/build.rs")),
    ("README.md", include_str!("../../../games/meadow/README.md")),
    ("rules.toml", include_str!("../../../games/meadow/rules.toml")),
    ("src/bot.rs", include_str!("../../../games/meadow/src/bot.rs")),
    ("src/flowers.rs", include_str!("../../../games/meadow/src/flowers.rs")),
    ("src/main.rs", include_str!("../../../games/meadow/src/main.rs")),
    ("src/page.html", include_str!("../../../games/meadow/src/page.html")),
    ("src/players.rs", include_str!("../../../games/meadow/src/players.rs")),
    ("src/protocol.rs", include_str!("../../../games/meadow/src/protocol.rs")),
    ("src/sheep.rs", include_str!("../../../games/meadow/src/sheep.rs")),
    ("src/tests.rs", include_str!("../../../games/meadow/src/tests.rs")),
    ("src/worlds.rs", include_str!("../../../games/meadow/src/worlds.rs")),
    ("throng.toml", include_str!("../../../games/meadow/throng.toml")),
];

/// Path and text of each file.
pub fn files(name: &str, throng: &Path) -> Vec<(&'static str, String)> {
    let rust_version = env!("CARGO_PKG_RUST_VERSION");
    let manifest = MANIFEST.replace(NAME, name).replace("{rust-version}", rust_version);
    // The path last: it may have anything in it.
    let manifest = manifest.replace("{throng}", &throng.to_string_lossy());
    let rest = FILES.iter().map(|(path, text)| (*path, named(text, name)));
    [("Cargo.toml", manifest)].into_iter().chain(rest).collect()
}

/// Names of scopes begin with the crate's, which has underscores where the package has hyphens.
fn named(text: &str, name: &str) -> String {
    let scopes = format!("\"{NAME}.");
    text.replace(&scopes, &format!("\"{}.", name.replace('-', "_"))).replace(NAME, name)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs};

    use super::*;

    /// The project's name comes from cargo in Rust code, so what is compiled here is to the letter what a project gets.
    #[test]
    fn rust_files_do_not_name_the_project() {
        for (path, text) in FILES.iter().filter(|(path, _)| path.ends_with(".rs")) {
            assert!(!text.to_lowercase().contains(NAME), "{path}");
        }
    }

    #[test]
    fn no_file_of_the_game_is_left_out() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../games").join(NAME);
        let names = |folder: &Path, prefix: &str| -> Vec<String> {
            let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
            let files = entries.filter(|entry| entry.path().is_file());
            files.map(|entry| format!("{prefix}{}", entry.file_name().to_string_lossy())).collect()
        };
        let there: BTreeSet<String> =
            names(&folder, "").into_iter().chain(names(&folder.join("src"), "src/")).collect();
        let taken: BTreeSet<String> = files("a", Path::new("t")).into_iter().map(|(path, _)| path.to_owned()).collect();
        assert_eq!(there, taken);
    }

    #[test]
    fn a_project_depends_on_what_the_game_depends_on() {
        let read = |text: &str| text.parse::<toml::Table>().expect("TOML");
        let names = |manifest: &toml::Table, section: &str| -> BTreeSet<String> {
            manifest[section].as_table().expect("a table").keys().cloned().collect()
        };
        let own = read(include_str!("../../../games/meadow/Cargo.toml"));
        let made = files("a", Path::new("t")).into_iter().find(|(path, _)| *path == "Cargo.toml");
        let made = read(&made.expect("a manifest").1);
        for section in ["dependencies", "build-dependencies"] {
            assert_eq!(names(&own, section), names(&made, section));
        }
        // One test of the game's speaks with its processes, and is no part of a project.
        let mut tests = names(&made, "dev-dependencies");
        tests.insert("serde_json".to_owned());
        assert_eq!(names(&own, "dev-dependencies"), tests);
    }
}
