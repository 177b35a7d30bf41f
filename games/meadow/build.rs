//! Finds out which commit is built: reports and the history of runs say it.

fn main() {
    throng_commit::set(&["src", "Cargo.toml", "Cargo.lock"]);
}
