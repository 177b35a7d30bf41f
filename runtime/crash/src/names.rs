//! Addresses of a dead process as functions, files and lines.
//!
//! Done when the process has been let go: reading debug information of a large executable takes longer than a dying
//! server should be held.

use std::collections::HashMap;
use std::path::PathBuf;

use addr2line::Loader;

use crate::report::Frame;
use crate::stack::LoadedFile;

/// Looks names up; opens each file once, at the first address that is in it.
pub(crate) struct Names<'a> {
    files: Vec<&'a LoadedFile>,
    loaders: HashMap<PathBuf, Option<Loader>>,
}

impl<'a> Names<'a> {
    pub fn new(files: impl Iterator<Item = &'a LoadedFile>) -> Self {
        Self { files: files.collect(), loaders: HashMap::new() }
    }

    /// The functions at an address, innermost first: more than one where calls were inlined, and always at least one
    /// entry.
    pub fn frames_at(&mut self, address: u64) -> Vec<Frame> {
        let Some(file) = self.files.iter().find(|file| file.range.contains(&address)) else {
            return vec![Frame { module: None, address, ..Default::default() }];
        };
        let in_file = address.wrapping_sub(file.bias);
        let module = file.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let place = Frame { module, address: in_file, ..Default::default() };
        let loader = self.loaders.entry(file.path.clone()).or_insert_with(|| Loader::new(file.readable_at()).ok());
        let Some(loader) = loader else { return vec![place] };
        let mut frames = inlined_frames(loader, in_file, &place);
        if frames.is_empty() {
            frames.push(place);
        }
        // The outermost is the function that exists as code: without debug information it still has a symbol.
        let outermost = frames.last_mut().expect("one at least");
        if outermost.function.is_none() {
            let symbol = loader.find_symbol(in_file);
            outermost.function = symbol.map(|name| addr2line::demangle_auto(name.into(), None).into_owned());
        }
        frames
    }
}

fn inlined_frames(loader: &Loader, in_file: u64, place: &Frame) -> Vec<Frame> {
    let mut frames = Vec::new();
    let Ok(mut found) = loader.find_frames(in_file) else { return frames };
    while let Ok(Some(frame)) = found.next() {
        let function = frame.function.as_ref().and_then(|function| Some(function.demangle().ok()?.into_owned()));
        let file = frame.location.as_ref().and_then(|location| location.file.map(short_path));
        let line = frame.location.as_ref().and_then(|location| location.line);
        frames.push(Frame { function, file, line, ..place.clone() });
    }
    frames
}

/// The standard library's files without the place that they were built at: `library/core/src/ptr/mod.rs`.
fn short_path(path: &str) -> String {
    let in_toolchain = path.strip_prefix("/rustc/").and_then(|path| path.split_once('/'));
    in_toolchain.map_or(path, |(_commit, path)| path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_standard_library_are_short() {
        assert_eq!(short_path("/rustc/59807616e1fa/library/core/src/ptr/mod.rs"), "library/core/src/ptr/mod.rs");
        assert_eq!(short_path("runtime/platform/src/crash.rs"), "runtime/platform/src/crash.rs");
    }
}
