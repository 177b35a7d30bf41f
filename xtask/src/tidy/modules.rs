//! Modules: which file of a crate names what another file of it defines.
//!
//! The files are read as tokens, so comments, texts and documentation do not count. Test code (`#[cfg(test)]`) does not
//! either. From each file, the paths are taken that begin with `crate`, `super`, `self`, a child module or an imported
//! name, and each is followed to the file that defines the item:
//!
//! - A path through a re-export leads to the file behind it, and so does a name that a glob import brings.
//! - `mod child;` is no use, nor is `pub use child::Item;`. A parent uses its child where its own code names the item.
//! - An import of a module is no use; the names that are taken through it are.
//!
//! What the tokens cannot show is missing: calls of methods and fields (a type's `impl` in another file names the type,
//! not the other way round), names that a macro makes up, and textual `macro_rules!`. A name that a module seems not to
//! define counts as the module's own, which is where a macro would have made it.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The files of one crate root and their uses of each other.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// Paths as `read` got them.
    pub paths: Vec<String>,
    /// By file: the other files whose items it names.
    pub uses: Vec<BTreeSet<usize>>,
}

/// Follows the modules from a crate's root file. `load` gives a file's text; a file that it does not have is left out.
pub(super) fn read(root: &str, load: &dyn Fn(&str) -> Option<String>) -> Files {
    let mut tree = Tree { load, modules: Vec::new(), paths: Vec::new() };
    tree.add_file(root, None, folder_of(root));
    let mut uses = vec![BTreeSet::new(); tree.paths.len()];
    for index in 0..tree.modules.len() {
        tree.add_uses(index, &mut uses);
    }
    Files { paths: tree.paths, uses }
}

type Path = Vec<String>;

/// One module: a file, or an inline `mod name { .. }` of it.
#[derive(Default)]
struct Module {
    file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// What is defined here, by name.
    items: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths and single names that the code has outside of `use`.
    names: BTreeSet<Path>,
}

/// One leaf of a `use` tree. `name` is `None` for a glob.
struct Import {
    path: Path,
    name: Option<String>,
    is_public: bool,
}

#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    /// An item that this module's file defines.
    Item(usize),
}

struct Tree<'a> {
    load: &'a dyn Fn(&str) -> Option<String>,
    modules: Vec<Module>,
    paths: Vec<String>,
}

impl Tree<'_> {
    /// Reads the file of a module, and those of its children, which are in `folder`.
    fn add_file(&mut self, path: &str, parent: Option<usize>, folder: String) -> Option<usize> {
        let tokens: Vec<TokenTree> = (self.load)(path)?.parse::<TokenStream>().ok()?.into_iter().collect();
        if starts_as_test(&tokens) {
            return None;
        }
        let file = self.paths.len();
        self.paths.push(path.to_owned());
        let module = self.add_module(file, parent);
        self.read_items(module, &tokens, &folder);
        Some(module)
    }

    fn add_module(&mut self, file: usize, parent: Option<usize>) -> usize {
        self.modules.push(Module { file, parent, ..Module::default() });
        self.modules.len() - 1
    }

    /// Reads what stands at a module's own level: definitions, child modules, and all code inside.
    fn read_items(&mut self, module: usize, tokens: &[TokenTree], folder: &str) {
        let mut at = 0;
        while at < tokens.len() {
            if let Some(next) = skip_test_item(tokens, at) {
                at = next;
                continue;
            }
            let name = match word(tokens, at).as_deref() {
                Some("struct" | "enum" | "union" | "trait" | "type" | "fn" | "const" | "static" | "mod") => {
                    word(tokens, at + 1)
                }
                Some("macro_rules") => word(tokens, at + 2),
                _ => None,
            };
            match (word(tokens, at).as_deref(), name) {
                (Some("mod"), Some(name)) => {
                    self.add_child(module, &name, tokens.get(at + 2), folder);
                    at += 3;
                }
                (Some("use"), _) => at = self.read_use(module, tokens, at),
                (_, name) => {
                    self.modules[module].items.extend(name);
                    at = self.read_code(module, tokens, at);
                }
            }
        }
    }

    fn add_child(&mut self, module: usize, name: &str, body: Option<&TokenTree>, folder: &str) {
        let below = format!("{folder}{name}/");
        let child = match body {
            Some(TokenTree::Group(group)) => {
                let child = self.add_module(self.modules[module].file, Some(module));
                self.read_items(child, &group.stream().into_iter().collect::<Vec<_>>(), &below);
                Some(child)
            }
            _ => self
                .add_file(&format!("{folder}{name}.rs"), Some(module), below.clone())
                .or_else(|| self.add_file(&format!("{below}mod.rs"), Some(module), below.clone())),
        };
        if let Some(child) = child {
            self.modules[module].children.insert(name.to_owned(), child);
        }
    }

    /// Takes the path at `at`, or goes into the group there. Returns where to go on.
    fn read_code(&mut self, module: usize, tokens: &[TokenTree], at: usize) -> usize {
        match &tokens[at] {
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let mut next = 0;
                while next < inner.len() {
                    next = match (skip_test_item(&inner, next), word(&inner, next).as_deref()) {
                        (Some(after), _) => after,
                        (None, Some("use")) => self.read_use(module, &inner, next),
                        (None, _) => self.read_code(module, &inner, next),
                    };
                }
                at + 1
            }
            TokenTree::Ident(_) => {
                let (path, next) = path(tokens, at);
                let is_label = is_punct(tokens, next, ':') && !is_path_separator(tokens, next);
                if !is_label && !is_continuation(tokens, at) {
                    self.modules[module].names.insert(path);
                }
                next
            }
            _ => at + 1,
        }
    }

    /// Reads `use a::{b, c as d, e::*};` into imports.
    fn read_use(&mut self, module: usize, tokens: &[TokenTree], at: usize) -> usize {
        let end = (at..tokens.len()).find(|&index| is_punct(tokens, index, ';'));
        // `use<'a>` in a type is no import.
        let Some(end) = end.filter(|_| !is_punct(tokens, at + 1, '<')) else { return at + 1 };
        let before = at.checked_sub(1).and_then(|index| tokens.get(index));
        let is_public = match before {
            Some(TokenTree::Ident(ident)) => ident == "pub",
            Some(TokenTree::Group(group)) => group.delimiter() == Delimiter::Parenthesis,
            _ => false,
        };
        let mut leaves = Vec::new();
        read_use_tree(&tokens[at + 1..end], &[], &mut leaves);
        let imports = leaves.into_iter().map(|(path, name)| Import { path, name, is_public });
        self.modules[module].imports.extend(imports);
        end + 1
    }

    fn add_uses(&self, index: usize, uses: &mut [BTreeSet<usize>]) {
        let module = &self.modules[index];
        let mut add = |target: Option<Target>, is_reexport: bool| {
            if let Some(Target::Item(other)) = target
                && self.modules[other].file != module.file
                && !(is_reexport && self.is_below(other, index))
            {
                uses[module.file].insert(self.modules[other].file);
            }
        };
        for import in module.imports.iter().filter(|import| import.name.is_some()) {
            add(self.resolve(index, &import.path, &mut BTreeSet::new()), import.is_public);
        }
        for name in &module.names {
            add(self.resolve(index, name, &mut BTreeSet::new()), false);
        }
    }

    fn is_below(&self, module: usize, ancestor: usize) -> bool {
        let parents = std::iter::successors(Some(module), |&module| self.modules[module].parent);
        parents.skip(1).any(|parent| parent == ancestor)
    }

    /// Where a path leads; `None` if it leads out of the crate or is no path of modules at all.
    fn resolve(&self, from: usize, path: &[String], seen: &mut BTreeSet<(usize, String)>) -> Option<Target> {
        let mut at = from;
        for (index, name) in path.iter().enumerate() {
            at = match name.as_str() {
                "crate" => 0,
                "self" => at,
                "super" => self.modules[at].parent?,
                name => match self.look_up(at, name, seen) {
                    Some(Target::Module(child)) => child,
                    Some(item) => return Some(item),
                    None if index == 0 => return None,
                    None => return Some(Target::Item(at)),
                },
            };
        }
        Some(Target::Module(at))
    }

    /// What a name means in a module. `seen` ends circles of re-exports.
    fn look_up(&self, at: usize, name: &str, seen: &mut BTreeSet<(usize, String)>) -> Option<Target> {
        let module = &self.modules[at];
        if let Some(&child) = module.children.get(name) {
            return Some(Target::Module(child));
        }
        if module.items.contains(name) {
            return Some(Target::Item(at));
        }
        if !seen.insert((at, name.to_owned())) {
            return None;
        }
        let named = module.imports.iter().filter(|import| import.name.as_deref() == Some(name));
        if let Some(target) = named.filter_map(|import| self.resolve(at, &import.path, seen)).next() {
            return Some(target);
        }
        let globs = module.imports.iter().filter(|import| import.name.is_none());
        globs
            .filter_map(|import| match self.resolve(at, &import.path, seen)? {
                Target::Module(other) if other != at => self.look_up(other, name, seen),
                _ => None,
            })
            .next()
    }
}

/// The leaves of a `use` tree: path and name, the name `None` for a glob.
fn read_use_tree(tokens: &[TokenTree], before: &[String], leaves: &mut Vec<(Path, Option<String>)>) {
    for branch in tokens.split(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')) {
        let mut branch_path = before.to_vec();
        let mut renamed = None;
        let mut is_leaf = !branch.is_empty();
        for (index, token) in branch.iter().enumerate() {
            match token {
                TokenTree::Ident(ident) if ident == "as" => {
                    renamed = word(branch, index + 1);
                    break;
                }
                TokenTree::Ident(ident) => branch_path.push(ident.to_string()),
                TokenTree::Punct(punct) if punct.as_char() == '*' => {
                    leaves.push((branch_path.clone(), None));
                    is_leaf = false;
                }
                TokenTree::Group(group) => {
                    read_use_tree(&group.stream().into_iter().collect::<Vec<_>>(), &branch_path, leaves);
                    is_leaf = false;
                }
                _ => {}
            }
        }
        if branch_path.len() > 1 && branch_path.last().is_some_and(|last| last == "self") {
            branch_path.pop();
        }
        if is_leaf {
            let name = renamed.or_else(|| branch_path.last().cloned()).unwrap_or_default();
            leaves.push((branch_path, Some(name)));
        }
    }
}

/// The path that begins at `at`, and the index after it.
fn path(tokens: &[TokenTree], at: usize) -> (Path, usize) {
    let mut path: Path = word(tokens, at).into_iter().collect();
    let mut next = at + 1;
    while is_path_separator(tokens, next) {
        let Some(name) = word(tokens, next + 2) else { break };
        path.push(name);
        next += 3;
    }
    (path, next)
}

/// Whether the name at `at` belongs to what stands before it: a field or method, the rest of a path, a lifetime.
fn is_continuation(tokens: &[TokenTree], at: usize) -> bool {
    let before = |distance: usize, mark: char| at >= distance && is_punct(tokens, at - distance, mark);
    let is_member = before(1, '.') && !before(2, '.');
    is_member || before(1, '\'') || (before(1, ':') && before(2, ':'))
}

fn is_path_separator(tokens: &[TokenTree], at: usize) -> bool {
    is_punct(tokens, at, ':') && is_punct(tokens, at + 1, ':')
}

fn is_punct(tokens: &[TokenTree], at: usize, mark: char) -> bool {
    matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == mark)
}

fn word(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at) {
        Some(TokenTree::Ident(ident)) => Some(ident.to_string()),
        _ => None,
    }
}

/// Where to go on if an item for tests only begins at `at`.
fn skip_test_item(tokens: &[TokenTree], at: usize) -> Option<usize> {
    if !is_punct(tokens, at, '#') || !tokens.get(at + 1).is_some_and(is_test_attribute) {
        return None;
    }
    let mut at = at + 2;
    while is_punct(tokens, at, '#') {
        at += 2;
    }
    // Visibility.
    if word(tokens, at).as_deref() == Some("pub") {
        at += 1;
        let is_restricted = matches!(tokens.get(at), Some(TokenTree::Group(group))
            if group.delimiter() == Delimiter::Parenthesis);
        at += usize::from(is_restricted);
    }
    let is_end = |token: &TokenTree, marks: &[char], braces: bool| match token {
        TokenTree::Punct(punct) => marks.contains(&punct.as_char()),
        TokenTree::Group(group) => braces && group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    let (marks, braces): (&[char], bool) = match (word(tokens, at).as_deref(), word(tokens, at + 1).as_deref()) {
        (Some("const"), Some("fn" | "unsafe")) => (&[';'], true),
        (Some("use" | "const" | "static" | "type" | "let"), _) => (&[';'], false),
        (Some("fn" | "struct" | "enum" | "impl" | "mod" | "trait" | "unsafe" | "async" | "extern"), _) => {
            (&[';'], true)
        }
        // A field, a variant, an expression.
        _ => (&[',', ';'], true),
    };
    let rest = tokens.get(at..).unwrap_or_default();
    let end = rest.iter().position(|token| is_end(token, marks, braces)).unwrap_or(rest.len());
    Some(at + end + 1)
}

/// `#![cfg(test)]` at the top of a file.
fn starts_as_test(tokens: &[TokenTree]) -> bool {
    let inner = (0..tokens.len()).filter(|&at| is_punct(tokens, at, '#') && is_punct(tokens, at + 1, '!'));
    inner.take(8).any(|at| tokens.get(at + 2).is_some_and(is_test_attribute))
}

/// `[cfg(test)]`, and `[cfg(all(test, ..))]`.
fn is_test_attribute(token: &TokenTree) -> bool {
    let inside = |token: Option<&TokenTree>| match token {
        Some(TokenTree::Group(group)) => group.stream().into_iter().collect::<Vec<_>>(),
        _ => Vec::new(),
    };
    let attribute = inside(Some(token));
    if word(&attribute, 0).as_deref() != Some("cfg") {
        return false;
    }
    let condition = inside(attribute.get(1));
    let all = if word(&condition, 0).as_deref() == Some("all") { inside(condition.get(1)) } else { condition };
    all.split(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ','))
        .any(|one| one.len() == 1 && word(one, 0).as_deref() == Some("test"))
}

/// The folder of a crate root's modules, with a slash.
fn folder_of(root: &str) -> String {
    root.rsplit_once('/').map_or_else(String::new, |(folder, _)| format!("{folder}/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `files` are path and text; `expect` are lines such as `a.rs -> b.rs c.rs`.
    #[track_caller]
    fn check(files: &[(&str, &str)], expect: &[&str]) {
        let load = |path: &str| files.iter().find(|file| file.0 == path).map(|file| file.1.to_owned());
        let found = read("lib.rs", &load);
        let names = |uses: &BTreeSet<usize>| {
            let mut names: Vec<&str> = uses.iter().map(|&other| found.paths[other].as_str()).collect();
            names.sort_unstable();
            names.join(" ")
        };
        let with_uses = found.paths.iter().zip(&found.uses).filter(|(_, uses)| !uses.is_empty());
        let mut lines: Vec<String> = with_uses.map(|(path, uses)| format!("{path} -> {}", names(uses))).collect();
        lines.sort();
        assert_eq!(lines, expect);
    }

    #[test]
    fn paths_from_the_root_and_from_the_parent_lead_to_the_file() {
        check(
            &[
                ("lib.rs", "mod a; pub mod b; mod c;"),
                ("a.rs", "use crate::b::B; fn f(c: crate::c::C<crate::b::inner::I>) {}"),
                ("b.rs", "pub mod inner; pub struct B;"),
                ("b/inner.rs", "use super::super::c; pub struct I(c::C, super::B);"),
                ("c.rs", "/// Not [`crate::a`].\npub struct C; const TEXT: &str = \"crate::a::X\";"),
            ],
            &["a.rs -> b.rs b/inner.rs c.rs", "b/inner.rs -> b.rs c.rs"],
        );
    }

    #[test]
    fn a_path_through_a_reexport_leads_behind_it_and_the_reexport_itself_is_no_use() {
        check(
            &[
                ("lib.rs", "mod a; mod b; pub use b::B;"),
                ("a.rs", "use crate::{B, b::{C as D, self}}; fn f(d: D) { b::free(); }"),
                ("b.rs", "mod b1; mod b2; pub use b1::B; pub(crate) use self::b2::*;"),
                ("b/b1.rs", "pub struct B;"),
                ("b/b2.rs", "pub struct C; pub fn free() {}"),
            ],
            &["a.rs -> b/b1.rs b/b2.rs"],
        );
    }

    #[test]
    fn a_parent_uses_the_child_that_its_own_code_names() {
        check(
            &[
                ("lib.rs", "mod a;"),
                ("a.rs", "mod one; mod two; pub mod three; pub use one::One; fn f(x: One) { two::go(); }"),
                ("a/one.rs", "pub struct One;"),
                ("a/two.rs", "pub fn go() { crate::a::f(); }"),
                ("a/three.rs", ""),
            ],
            &["a.rs -> a/one.rs a/two.rs", "a/two.rs -> a.rs"],
        );
    }

    #[test]
    fn a_reexport_of_what_is_elsewhere_is_a_use() {
        check(
            &[("lib.rs", "mod a; mod b;"), ("a.rs", "pub use crate::b::B;"), ("b.rs", "pub struct B;")],
            &["a.rs -> b.rs"],
        );
    }

    #[test]
    fn globs_bring_the_names_that_are_used_and_no_others() {
        check(
            &[
                ("lib.rs", "mod all; mod a; mod b; mod c;"),
                ("all.rs", "pub use crate::{b::*, c::*};"),
                ("a.rs", "use crate::all::*; fn f(b: B) { let x = b.C; 'c: loop {} }"),
                ("b.rs", "pub struct B;"),
                ("c.rs", "pub struct C; fn c() {}"),
            ],
            &["a.rs -> b.rs"],
        );
    }

    #[test]
    fn names_that_a_macro_makes_belong_to_the_module() {
        check(
            &[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::Made;"), ("b.rs", "make! { Made }")],
            &["a.rs -> b.rs"],
        );
    }

    #[test]
    fn test_code_does_not_count() {
        check(
            &[
                ("lib.rs", "mod a; mod b; mod c; #[cfg(test)] mod headless;"),
                (
                    "a.rs",
                    "#[cfg(test)]\nuse crate::b::{B, C};\nuse crate::c::C;\n#[cfg(all(test, unix))] #[allow(x)]\n\
                     pub(crate) fn f() { crate::b::g(); }\nstruct S { #[cfg(test)] b: crate::b::B, c: C }\n\
                     #[cfg(test)]\nmod tests { use crate::b::B; }",
                ),
                ("b.rs", "#![cfg(test)]\npub struct B;"),
                ("c.rs", "pub struct C;"),
                ("headless.rs", "use crate::a::S;"),
            ],
            &["a.rs -> c.rs"],
        );
    }

    #[test]
    fn inline_modules_are_part_of_their_file() {
        check(
            &[
                ("lib.rs", "mod a; mod b;"),
                ("a.rs", "pub mod inside { pub use super::super::b::B; pub fn f() {} }"),
                ("b.rs", "pub struct B; fn g() { crate::a::inside::f(); use crate::a::inside as i; i::B; }"),
            ],
            &["a.rs -> b.rs", "b.rs -> a.rs"],
        );
    }
}
