//! Finds out which commit is built, for `src/main.rs`. This is the last crate of all, so a new commit compiles little else.

fn main() {
    throng_commit::set(&["../../runtime", "../../toolbox", "../../games", "../../Cargo.toml", "../../Cargo.lock"]);
}
