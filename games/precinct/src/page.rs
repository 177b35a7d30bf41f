//! Tests: what the page that plays knows of the game is what the game makes of it. Files in `web/` say it: they are compared
//! here. `UPDATE_EXPECT=1 cargo test -p precinct --lib` writes them anew, and `cargo xtask web` the page.

/// Holds a file in `web/` to what the game makes of it.
#[track_caller]
pub fn check(file: &str, text: &str) {
    let path = format!("{}/../../web/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, text).expect("the file is writable");
    }
    let known = std::fs::read_to_string(&path).expect("a file of the page");
    assert_eq!(known, text, "run the test with UPDATE_EXPECT=1, then the tests in web/ and `cargo xtask web`");
}
