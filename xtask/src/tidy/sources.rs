//! Sources: file names, sizes, openings and leftovers of our own files.

use std::fs;
use std::path::Path;

/// Folders that hold what we wrote; whatever else lies in the root is built or downloaded.
const FOLDERS: [&str; 10] = ["runtime", "toolbox", "games", "xtask", "bench", "fuzz", "docs", "deploy", "web", ".ci"];
/// Pages that stand in the root.
const PAGES: [&str; 4] = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"];
/// Folders inside them that no person wrote.
const BUILT: [&str; 5] = ["target", "corpus", "artifacts", "node_modules", "dist"];

/// Beyond this a second idea has usually moved in.
const LINES_MAX: usize = 800;
/// A file that is longer for a reason says so in a line that begins with this.
const LONG_MARK: &str = "//! Long because ";

/// Rooms with these names hold whatever nobody found a place for, and hide it.
const HIDING_NAMES: [&str; 9] =
    ["utils", "util", "helpers", "helper", "common", "manager", "managers", "misc", "stuff"];

/// What is not finished, in pieces so that this file does not name it.
const LEFTOVERS: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("to", "do!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
];
/// Folders of one person's machine, in pieces for the same reason.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

pub(super) fn check(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    for folder in FOLDERS {
        visit(root, folder, &mut problems);
    }
    for page in PAGES {
        read(root, page, &mut problems);
    }
    problems
}

fn visit(root: &Path, folder: &str, problems: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(root.join(folder)) else {
        return;
    };
    let mut names: Vec<(String, bool)> = entries
        .flatten()
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path().is_dir()))
        .collect();
    names.sort();
    for (name, is_folder) in names {
        let path = format!("{folder}/{name}");
        let stem = name.split('.').next().unwrap_or(&name);
        if HIDING_NAMES.contains(&stem) {
            problems
                .push(format!("{path}: the name hides what is in it; name it after its one idea, or move things home"));
        }
        if !is_folder {
            read(root, &path, problems);
        } else if !BUILT.contains(&name.as_str()) {
            visit(root, &path, problems);
        }
    }
}

fn read(root: &Path, path: &str, problems: &mut Vec<String>) {
    const READ: [&str; 8] = ["rs", "ts", "mjs", "toml", "md", "css", "sh", "yml"];
    let extension = path.rsplit('.').next().unwrap_or_default();
    if !READ.contains(&extension) && !path.starts_with(".ci/") {
        return;
    }
    if let Ok(text) = fs::read_to_string(root.join(path)) {
        problems.extend(check_text(path, &text));
    }
}

fn check_text(path: &str, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let is_rust = path.ends_with(".rs");
    let is_script = path.ends_with(".ts") || path.ends_with(".mjs");
    if is_script && !text.starts_with("// ") {
        problems.push(format!("{path}:1: opens without `// `; say the idea, the reason and the cost"));
    }
    if is_rust && !text.starts_with("//!") {
        problems.push(format!("{path}:1: opens without `//!`; say the idea, the reason, the thread and the cost"));
    }
    let lines_count = text.lines().count();
    if (is_rust || is_script) && lines_count > LINES_MAX && !text.lines().any(|line| line.starts_with(LONG_MARK)) {
        problems.push(format!(
            "{path}: {lines_count} lines; find the second idea that moved in, or give the reason: `{LONG_MARK}...`"
        ));
    }
    for (index, line) in text.lines().enumerate() {
        let place = format!("{path}:{}", index + 1);
        if let Some(leftover) = LEFTOVERS.iter().find(|leftover| line.contains(*leftover)) {
            problems.push(format!("{place}: `{leftover}` is left over; finish it or take it out"));
        }
        if let Some(folder) = MACHINE_PATHS.iter().find(|folder| line.contains(*folder)) {
            problems.push(format!("{place}: `{folder}` is on one machine only; make the path relative or a setting"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, text: &str, expect: &[&str]) {
        let found = check_text(path, text);
        assert_eq!(found.len(), expect.len(), "{found:?}");
        for (problem, part) in found.iter().zip(expect) {
            assert!(problem.contains(part), "{problem}");
        }
    }

    #[test]
    fn a_good_file_has_no_problems() {
        check("runtime/net/src/link.rs", "//! Link: one client's keys.\n\nfn open() {}\n", &[]);
        check("README.md", "# Throng\n", &[]);
        check("web/elements/dom.ts", "// Elements in one call.\n\nexport {};\n", &[]);
    }

    #[test]
    fn openings_sizes_leftovers_and_machine_paths_are_found() {
        check("a.rs", "use std::fs;\n", &["a.rs:1: opens without `//!`"]);
        check("a.ts", "import x;\n", &["a.ts:1: opens without `// `"]);
        check("a.rs", &("//! A.\n".to_owned() + &"//\n".repeat(800)), &["a.rs: 801 lines"]);
        check("a.mjs", &("// A.\n".to_owned() + &"//\n".repeat(800)), &["a.mjs: 801 lines"]);
        check("a.rs", &("//! A.\n//! Long because it is a table.\n".to_owned() + &"//\n".repeat(800)), &[]);
        check("a.rs", concat!("//! A.\n// TO", "DO: later\n"), &["a.rs:2: `"]);
        check("a.md", concat!("see /ho", "me/me/notes\n"), &["a.md:1: `"]);
    }
}
