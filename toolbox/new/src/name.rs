//! Names: what a project may be called.
//!
//! The name is a package's, an executable's and a game's, so it is what all three take: lower-case letters, digits and
//! hyphens, as reports and metrics have them.

use crate::NewError;

const LENGTH_MAX: usize = 40;

/// Words of the language: a package of that name cannot be named in code.
const KEYWORDS: [&str; 52] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super", "trait", "true",
    "try", "type", "typeof", "union", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// What cargo keeps for itself, for libraries of the language, and folders of a build.
const TAKEN: [&str; 11] =
    ["alloc", "build", "cargo", "core", "deps", "examples", "incremental", "proc-macro", "std", "target", "test"];

/// Checks that a project may be called so.
///
/// # Errors
/// What is wrong with it, and a name like it that would do, where there is one.
pub fn check_name(name: &str) -> Result<(), NewError> {
    let Some(reason) = mistake(name) else { return Ok(()) };
    let instead = Some(mended(name)).filter(|instead| mistake(instead).is_none());
    Err(NewError::Name { name: name.chars().take(2 * LENGTH_MAX).collect(), reason, instead })
}

fn mistake(name: &str) -> Option<&'static str> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() {
        Some("it is empty")
    } else if name.len() > LENGTH_MAX {
        Some("it is longer than 40 letters")
    } else if !name.chars().all(is_allowed) {
        Some("it may have lower-case letters (a to z), digits and hyphens")
    } else if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        Some("it must begin with a letter")
    } else if name.ends_with('-') || name.contains("--") {
        Some("hyphens stand alone and between others")
    } else if KEYWORDS.contains(&name) {
        Some("it is a word of the language")
    } else if TAKEN.contains(&name) {
        Some("cargo or Rust's own libraries have it")
    } else if name == "throng" || name.starts_with("throng-") || name == "serde" {
        Some("a package that the project stands on has it, or may have it one day")
    } else {
        None
    }
}

/// The nearest name by letters, right or not.
fn mended(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let words = lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let joined = words.collect::<Vec<_>>().join("-");
    let from_letter = joined.trim_start_matches(|c: char| !c.is_ascii_lowercase());
    let short: String = from_letter.chars().take(LENGTH_MAX).collect();
    let short = short.trim_end_matches('-');
    if KEYWORDS.contains(&short) || TAKEN.contains(&short) { format!("{short}-game") } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_packages_are_taken() {
        for name in ["meadow", "my-game", "a", "game2", "x-1", &"a".repeat(LENGTH_MAX)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn others_are_refused_with_the_reason_and_a_name_that_would_do() {
        let check = |name: &str, reason: &str, instead: &str| {
            let said = check_name(name).expect_err(name).to_string();
            assert!(said.contains(reason) && said.ends_with(instead), "{said}");
        };
        check("My Game", "lower-case letters (a to z)", "`my-game` would do");
        check("my_game", "digits and hyphens", "`my-game` would do");
        check("../other", "digits and hyphens", "`other` would do");
        check("2fast", "begin with a letter", "`fast` would do");
        check("-a--b-", "begin with a letter", "`a-b` would do");
        check("loop", "word of the language", "`loop-game` would do");
        check("test", "cargo or Rust's own", "`test-game` would do");
        check("throng-bots", "stands on", "such as `my-game`");
        check("", "empty", "such as `my-game`");
        check("日本", "lower-case letters", "such as `my-game`");
        check(&"a".repeat(41), "longer than 40", "would do");
    }
}
