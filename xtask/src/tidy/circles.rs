//! Circles: files of one crate that import each other in a ring.
//!
//! A file inside a circle cannot be read, tested or moved without all the others, and what the circle is about stands
//! in none of them. Up to [`FILES_MAX`] files may be one idea in pieces (a parent and its children); beyond that the
//! crate has lost its layers. To break a circle, move what both sides agree on (a type, a trait, a constant) below both
//! of them, or give a function what it needs as an argument instead of the type that holds everything.
//!
//! What counts as an import is in [`modules`].
//!
//! [`modules`]: super::modules

use std::fs;
use std::path::Path;

use super::crates::Crate;
use super::modules::{self, Files};

/// Files that a circle may have.
const FILES_MAX: usize = 4;

pub(super) fn check(root: &Path, crates: &[Crate]) -> Vec<String> {
    let load = |path: &str| fs::read_to_string(root.join(path)).ok();
    let mut problems = Vec::new();
    for one in crates {
        for root_file in roots(root, &one.folder) {
            let circles = circles(&modules::read(&root_file, &load));
            problems.extend(circles.iter().filter_map(|circle| circle.problem(&one.folder)));
        }
    }
    problems
}

/// The files that a crate is compiled from: its library and its programs.
fn roots(root: &Path, folder: &str) -> Vec<String> {
    let mut roots = vec![format!("{folder}/src/lib.rs"), format!("{folder}/src/main.rs")];
    let programs = fs::read_dir(root.join(folder).join("src/bin")).into_iter().flatten().flatten();
    roots.extend(programs.map(|entry| format!("{folder}/src/bin/{}", entry.file_name().to_string_lossy())));
    roots.retain(|path| root.join(path).is_file());
    roots
}

/// Files of which each leads to each other over imports.
struct Circle {
    /// Path, and which of the circle's files it uses.
    files: Vec<(String, Vec<String>)>,
}

impl Circle {
    /// `None` while it is small enough.
    fn problem(&self, folder: &str) -> Option<String> {
        let count = self.files.len();
        (count > FILES_MAX).then(|| {
            format!(
                "{folder}: {count} files import each other in a circle (at most {FILES_MAX}); \
                 move what they share below them:\n{}",
                self.lines()
            )
        })
    }

    fn lines(&self) -> String {
        let line = |(path, uses): &(String, Vec<String>)| format!("    {path} uses {}", uses.join(", "));
        self.files.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The circles of two files and more: strongly connected components, by Tarjan.
fn circles(files: &Files) -> Vec<Circle> {
    let mut search = Search::new(files);
    for file in 0..files.paths.len() {
        if search.numbers[file].is_none() {
            search.visit(file);
        }
    }
    let name = |file: usize| {
        let path = &files.paths[file];
        path.split_once("/src/").map_or(path.as_str(), |(_, inside)| inside).to_owned()
    };
    let circle = |mut members: Vec<usize>| {
        members.sort_by_key(|&file| &files.paths[file]);
        let within = |file: usize| members.iter().filter(move |other| files.uses[file].contains(other));
        Circle {
            files: members.iter().map(|&file| (name(file), within(file).map(|&other| name(other)).collect())).collect(),
        }
    };
    search.found.into_iter().filter(|members| members.len() > 1).map(circle).collect()
}

struct Search<'a> {
    files: &'a Files,
    /// Order of the first visit.
    numbers: Vec<Option<usize>>,
    /// The earliest file on the stack that each leads back to.
    lowest: Vec<usize>,
    stack: Vec<usize>,
    visited: usize,
    found: Vec<Vec<usize>>,
}

impl<'a> Search<'a> {
    fn new(files: &'a Files) -> Self {
        let count = files.paths.len();
        Self {
            files,
            numbers: vec![None; count],
            lowest: vec![0; count],
            stack: Vec::new(),
            visited: 0,
            found: Vec::new(),
        }
    }

    fn visit(&mut self, file: usize) {
        let number = self.visited;
        self.visited += 1;
        self.numbers[file] = Some(number);
        self.lowest[file] = number;
        self.stack.push(file);
        for &other in &self.files.uses[file] {
            match self.numbers[other] {
                None => {
                    self.visit(other);
                    self.lowest[file] = self.lowest[file].min(self.lowest[other]);
                }
                Some(number) if self.stack.contains(&other) => self.lowest[file] = self.lowest[file].min(number),
                Some(_) => {}
            }
        }
        if self.lowest[file] == number {
            let begin = self.stack.iter().position(|&other| other == file).unwrap_or(0);
            self.found.push(self.stack.split_off(begin));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(uses: &[(&str, &[usize])]) -> Vec<Circle> {
        circles(&Files {
            paths: uses.iter().map(|file| file.0.to_owned()).collect(),
            uses: uses.iter().map(|file| file.1.iter().copied().collect()).collect(),
        })
    }

    #[test]
    fn a_ring_is_a_circle_and_what_hangs_on_it_is_not() {
        let circles =
            found(&[("g/src/a.rs", &[1]), ("g/src/b.rs", &[2, 3]), ("g/src/c.rs", &[0]), ("g/src/d.rs", &[])]);
        assert_eq!(circles.len(), 1);
        assert_eq!(circles[0].lines(), "    a.rs uses b.rs\n    b.rs uses c.rs\n    c.rs uses a.rs");
        assert!(found(&[("a.rs", &[1, 2]), ("b.rs", &[2]), ("c.rs", &[])]).is_empty());
    }

    #[test]
    fn two_rings_that_meet_in_a_file_are_one_circle() {
        let circles = found(&[("a", &[1]), ("b", &[0, 2]), ("c", &[3]), ("d", &[1]), ("e", &[0, 5]), ("f", &[4])]);
        let mut sizes: Vec<usize> = circles.iter().map(|circle| circle.files.len()).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, [2, 4]);
    }

    #[test]
    fn circles_of_too_many_files_are_named() {
        let circle = |size: usize| Circle { files: (0..size).map(|n| (format!("{n}.rs"), Vec::new())).collect() };
        assert_eq!(circle(4).problem("games/duel"), None);
        let problem = circle(5).problem("games/duel").unwrap();
        assert!(problem.contains("games/duel: 5 files import each other in a circle (at most 4); move"), "{problem}");
    }

    /// The promise of this rule, for everything that we have written.
    #[test]
    fn this_workspace_has_no_large_circles() {
        let root = crate::step::root();
        let crates = crate::tidy::crates::read(&root).unwrap();
        assert_eq!(super::check(&root, &crates), Vec::<String>::new());
    }
}
