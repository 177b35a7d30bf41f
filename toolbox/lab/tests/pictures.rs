//! The README's pictures are what is drawn from the committed figures, in light and in dark.
//!
//! `cargo xtask pictures` runs this with `UPDATE_EXPECT=1`, which writes them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use throng_lab::pictures::{Picture, draw_all};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn drawn() -> Vec<Picture> {
    draw_all(&root().join("docs/figures")).expect("the committed figures can be drawn")
}

#[test]
fn committed_pictures_are_what_is_drawn_from_committed_figures() {
    let folder = root().join("docs/pictures");
    let pictures = drawn();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::create_dir_all(&folder).expect("a folder for pictures");
        for Picture { name, svg } in &pictures {
            std::fs::write(folder.join(name), svg).expect("the picture can be written");
        }
    }
    for Picture { name, svg } in &pictures {
        let committed = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        assert!(committed == *svg, "docs/pictures/{name} is not what docs/figures says: `cargo xtask pictures`");
    }
    let files = std::fs::read_dir(&folder).expect("pictures are committed").flatten();
    let files: BTreeSet<_> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    let names: BTreeSet<_> = pictures.iter().map(|picture| picture.name.to_owned()).collect();
    assert_eq!(files, names, "docs/pictures holds what nobody draws");
}

#[test]
fn every_colour_has_one_for_dark_themes() {
    for Picture { name, svg } in drawn() {
        let (style, drawing) = svg.split_once("</style>").expect("a picture has a style");
        for key in ["fill=\"#", "stroke=\"#"] {
            for after in drawing.split(key).skip(1) {
                let rule = format!("[{key}{}\"] {{", &after[..6]);
                assert!(style.contains(&rule), "{name}: the style lacks {rule}");
            }
        }
    }
}

#[test]
fn the_readme_shows_each_picture() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("there is a README");
    for Picture { name, .. } in drawn() {
        assert!(readme.contains(&format!("](docs/pictures/{name})")), "README.md does not show docs/pictures/{name}");
    }
}
