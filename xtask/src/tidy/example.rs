//! The README's example is an excerpt of the one that the tests compile: the documentation of the crate `throng`.
//!
//! A page that is read before anything else must not show an interface that is gone.

use std::fs;
use std::path::Path;

const PAGE: &str = "README.md";
const SOURCE: &str = "runtime/server/src/lib.rs";

pub(super) fn check(root: &Path) -> Vec<String> {
    let read = |path: &str| fs::read_to_string(root.join(path)).map_err(|cause| vec![format!("{path}: {cause}")]);
    match (read(PAGE), read(SOURCE)) {
        (Ok(page), Ok(source)) => first_stray_line(&page, &source).into_iter().collect(),
        (Err(problem), _) | (_, Err(problem)) => problem,
    }
}

/// The first line of the page's example that the source's documentation does not have, in the same order.
fn first_stray_line(page: &str, source: &str) -> Option<String> {
    let mut documented = source.lines().filter_map(|line| line.strip_prefix("//!")).map(str::trim);
    let example = page.lines().enumerate().skip_while(|(_, line)| *line != "```rust").skip(1);
    for (index, line) in example.take_while(|(_, line)| *line != "```") {
        let written = line.trim();
        if !written.is_empty() && !documented.any(|line| line == written) {
            return Some(format!(
                "{PAGE}:{}: `{written}` is not in the example of {SOURCE}; copy the example from there again",
                index + 1
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_fine_and_a_changed_line_is_named() {
        let source = "//! ```\n//! use x;\n//! fn a() {\n//!     b();\n//! }\n//! fn c() {}\n//! ```\n";
        let check = |page: &str, expect: Option<&str>| {
            let found = first_stray_line(page, source);
            assert_eq!(found.is_some(), expect.is_some(), "{found:?}");
            assert!(found.unwrap_or_default().contains(expect.unwrap_or_default()));
        };
        check("# T\n```rust\nfn a() {\n    b();\n}\n\nfn c() {}\n```\nfn not_code() {}\n", None);
        check("```rust\nfn a() {\n    b(1);\n}\n```\n", Some("README.md:3: `b(1);` is not in the example"));
        check("```rust\nfn c() {}\nfn a() {\n```\n", Some("README.md:3: `fn a() {`"));
        check("no example\n", None);
    }
}
