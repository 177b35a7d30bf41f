//! Promise: a new project is the template with its name in it, and a mistake leaves nothing behind.

use std::{
    fs,
    path::{Path, PathBuf},
};

use throng_new::{NewError, built_from, make};

/// An empty folder for a test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("the target folder can be written");
    folder
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn a_project_is_the_template_with_its_name() {
    let parent = folder("new-made");
    let project = make("my-game", &parent, &built_from()).expect("it is made");
    assert_eq!(project, parent.join("my-game"));
    let hidden = [".containerignore", ".gitignore"];
    let rest =
        ["Cargo.lock", "Cargo.toml", "Containerfile", "README.md", "build.rs", "rules.toml", "src", "throng.toml"];
    assert_eq!(names_in(&project), [&hidden[..], &rest].concat());
    assert_eq!(names_in(&parent), ["my-game"]);

    let game = built_from().join("games/meadow");
    for name in names_in(&project.join("src")) {
        let mut expect = read(game.join("src").join(&name));
        if name.ends_with(".html") {
            expect = expect.replace("meadow", "my-game");
        }
        assert_eq!(read(project.join("src").join(&name)), expect, "{name}");
    }
    for name in ["README.md", "Containerfile", "rules.toml", "throng.toml"] {
        assert!(!read(project.join(name)).contains("meadow"), "{name}");
    }
    assert!(read(project.join("README.md")).starts_with("# my-game\n"));
    assert!(read(project.join("rules.toml")).contains("\"my_game.sheep.flee\" = 2000"));
    let manifest: toml::Table = read(project.join("Cargo.toml")).parse().expect("TOML");
    assert_eq!(manifest["package"]["name"].as_str(), Some("my-game"));
    let throng = manifest["dependencies"]["throng"]["path"].as_str().expect("a path");
    assert!(Path::new(throng).join("Cargo.toml").is_file() && Path::new(throng).is_absolute(), "{throng}");
}

#[test]
fn a_folder_that_is_empty_is_taken_and_another_is_left_as_it_is() {
    let parent = folder("new-there");
    fs::create_dir(parent.join("empty")).unwrap();
    make("empty", &parent, &built_from()).expect("there is nothing in it");
    fs::create_dir(parent.join("full")).unwrap();
    fs::write(parent.join("full/diary"), "dear").unwrap();
    fs::write(parent.join("file"), "dear").unwrap();
    for name in ["full", "file"] {
        let refused = make(name, &parent, &built_from()).expect_err("something is there");
        assert!(matches!(refused, NewError::NotEmpty { .. }), "{refused}");
        assert!(refused.to_string().contains("not empty; take another name"), "{refused}");
    }
    assert_eq!(read(parent.join("full/diary")) + &read(parent.join("file")), "deardear");
    assert_eq!(names_in(&parent), ["empty", "file", "full"]);
}

#[test]
fn a_mistake_leaves_nothing_behind() {
    let parent = folder("new-mistakes");
    let check = |name: &str, parent: &Path, throng: &Path, part: &str| {
        let refused = make(name, parent, throng).expect_err(part).to_string();
        assert!(refused.contains(part), "{refused}");
    };
    check("My Game", &parent, &built_from(), "`my-game` would do");
    check("game", &parent, &parent, "--throng PATH");
    check("game", &parent, &parent.join("nowhere"), "--throng PATH");
    fs::write(parent.join("file"), "").unwrap();
    check("game", &parent.join("file"), &built_from(), "file/game: cannot be written");
    assert_eq!(names_in(&parent), ["file"]);
}
