//! Names: from the addresses of a run to functions, with what was inlined into them, source files and lines.
//!
//! Done once after the run, each address once: reading the debug information of a large program takes seconds, which
//! while sampling would be a hole in the profile. In order of preference: debug information (also in a file of its own,
//! found by build id), symbol tables, what a just-in-time compiler wrote into /tmp/perf-PID.map, the file's name.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSymbol, ReadRef, SymbolKind};
use syscalls::Sysno;

use super::image::{Image, Source};
use super::process::{Process, SleepCall};
use super::unwind::{Frame, Unseen};

/// One function of a stack, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamedFrame {
    pub function: String,
    /// The program or library, or an empty text for what is in no file.
    pub object: String,
    /// Source file, if known.
    pub file: Option<String>,
    /// In `file`; 0 is unknown. In a profile, the lowest line of the function that was seen.
    pub line: u32,
}

impl NamedFrame {
    pub(super) fn bare(function: impl Into<String>) -> NamedFrame {
        NamedFrame { function: function.into(), object: String::new(), file: None, line: 0 }
    }
}

/// Gives names to frames, and keeps those it gave.
pub(super) struct Names<'a> {
    process: &'a Process,
    images: &'a [Image],
    tables: HashMap<u32, ImageNames>,
    compiled_later: Option<JitNames>,
    given: HashMap<Frame, Vec<NamedFrame>>,
}

impl<'a> Names<'a> {
    pub(super) fn new(process: &'a Process, images: &'a [Image]) -> Names<'a> {
        Names { process, images, tables: HashMap::new(), compiled_later: None, given: HashMap::new() }
    }

    /// The functions of one frame, callers first: more than one where calls were inlined.
    pub(super) fn of(&mut self, frame: Frame) -> &[NamedFrame] {
        if !self.given.contains_key(&frame) {
            let named = self.find(frame);
            self.given.insert(frame, named);
        }
        &self.given[&frame]
    }

    fn find(&mut self, frame: Frame) -> Vec<NamedFrame> {
        let bare = match frame {
            Frame::Code { image, address } => {
                let opened = &self.images[image as usize];
                let table = self.tables.entry(image).or_insert_with(|| ImageNames::read(self.process, opened));
                return table.of(&opened.name, address);
            }
            Frame::Nameless(address) => {
                let jit = self.compiled_later.get_or_insert_with(|| JitNames::read(&self.process.perf_map()));
                jit.of(address).unwrap_or("[code without a file]").to_owned()
            }
            Frame::Sleep(SleepCall::System(number)) => match Sysno::new(number as usize) {
                Some(call) => format!("[{}]", call.name()),
                None => format!("[system call {number}]"),
            },
            Frame::Sleep(SleepCall::Fault) => "[page fault]".to_owned(),
            Frame::Kernel { in_system_call: true } => "[kernel: system call]".to_owned(),
            Frame::Kernel { in_system_call: false } => "[kernel: fault or interrupt]".to_owned(),
            Frame::Lost => "[callers not found]".to_owned(),
            Frame::Unseen(Unseen::Running) => "[running, not sampled]".to_owned(),
            Frame::Unseen(Unseen::InKernel) => "[running in the kernel, not sampled]".to_owned(),
            Frame::Unseen(Unseen::Blocked) => "[blocked, not seen]".to_owned(),
        };
        vec![NamedFrame::bare(bare)]
    }
}

/// Debug information and symbols of one image.
struct ImageNames {
    debug: Option<Loader>,
    symbols: Vec<Symbol>,
}

struct Symbol {
    address: u64,
    size: u64,
    name: String,
}

impl ImageNames {
    fn read(process: &Process, image: &Image) -> ImageNames {
        let Some(found) = (match &image.source {
            Source::File { file, .. } => file.try_clone().ok().and_then(|file| inspect(&ReadCache::new(file))),
            Source::Bytes(bytes) => inspect(bytes.as_slice()),
            Source::Missing => None,
        }) else {
            return ImageNames { debug: None, symbols: Vec::new() };
        };
        let mut symbols = found.symbols;
        let own = image.path().filter(|_| found.has_debug_info);
        let apart = || {
            let named = match &image.source {
                Source::File { path, .. } => Some(path.as_path()),
                _ => None,
            };
            debug_files(process, &found.build_id, found.debug_link.as_deref(), named)
                .into_iter()
                .find(|path| path.exists())
        };
        let debug_file = own.or_else(apart);
        if let Some(path) = debug_file.as_deref().filter(|_| !found.has_debug_info) {
            let more = File::open(path).ok().and_then(|file| inspect(&ReadCache::new(file)));
            symbols.extend(more.into_iter().flat_map(|found| found.symbols));
        }
        sort(&mut symbols);
        ImageNames { debug: debug_file.and_then(|path| Loader::new(path).ok()), symbols }
    }

    fn of(&self, object: &str, address: u64) -> Vec<NamedFrame> {
        let mut named = self.inlined(object, address);
        let unnamed_or_none = named.first().is_none_or(|outermost| outermost.function.is_empty());
        if unnamed_or_none {
            let function = match containing(&self.symbols, address) {
                Some(symbol) => demangle(&symbol.name),
                None => format!("{object}+0x{address:x}"),
            };
            match named.first_mut() {
                Some(outermost) => outermost.function = function,
                None => named.push(NamedFrame { function, object: object.to_owned(), file: None, line: 0 }),
            }
        }
        named.retain(|frame| !frame.function.is_empty());
        named
    }

    fn inlined(&self, object: &str, address: u64) -> Vec<NamedFrame> {
        let Some(Ok(mut frames)) = self.debug.as_ref().map(|debug| debug.find_frames(address)) else {
            return Vec::new();
        };
        let mut named = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|name| Some(name.demangle().ok()?.into_owned()));
            named.push(NamedFrame {
                function: name.unwrap_or_default(),
                object: object.to_owned(),
                file: frame.location.as_ref().and_then(|location| location.file).map(str::to_owned),
                line: frame.location.and_then(|location| location.line).unwrap_or(0),
            });
        }
        named.reverse();
        named
    }
}

struct Found {
    symbols: Vec<Symbol>,
    has_debug_info: bool,
    build_id: Vec<u8>,
    debug_link: Option<String>,
}

fn inspect<'data>(data: impl ReadRef<'data>) -> Option<Found> {
    let file = object::File::parse(data).ok()?;
    let symbols = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.is_definition() && symbol.address() != 0)
        .filter(|symbol| matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown))
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?.to_owned();
            Some(Symbol { address: symbol.address(), size: symbol.size(), name })
        })
        .collect();
    Some(Found {
        symbols,
        has_debug_info: file.section_by_name(".debug_info").is_some_and(|section| section.size() > 0),
        build_id: file.build_id().ok().flatten().unwrap_or_default().to_owned(),
        debug_link: file.gnu_debuglink().ok().flatten().map(|(name, _)| String::from_utf8_lossy(name).into_owned()),
    })
}

/// Where distributions put debug information that they strip from a file, in the process's own file system first.
fn debug_files(process: &Process, build_id: &[u8], link: Option<&str>, image: Option<&Path>) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    if let Some((first, rest)) = build_id.split_first() {
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        let path = PathBuf::from(format!("/usr/lib/debug/.build-id/{first:02x}/{rest}.debug"));
        paths.extend([process.path_from_here(&path), path]);
    }
    if let (Some(link), Some(folder)) = (link, image.and_then(Path::parent)) {
        paths.extend([folder.join(".debug").join(link), folder.join(link)]);
    }
    paths
}

/// By address; of several names for one address the plainest first: `read` before `__read` and `__libc_read`.
fn sort(symbols: &mut Vec<Symbol>) {
    symbols.sort_by(|a, b| {
        let rank = |symbol: &Symbol| (symbol.size == 0, symbol.name.starts_with('_'), symbol.name.len());
        a.address.cmp(&b.address).then_with(|| rank(a).cmp(&rank(b))).then_with(|| a.name.cmp(&b.name))
    });
    symbols.dedup_by_key(|symbol| symbol.address);
}

/// A symbol without a size, as written in assembler, reaches to the next one.
fn containing(symbols: &[Symbol], address: u64) -> Option<&Symbol> {
    let after = symbols.partition_point(|symbol| symbol.address <= address);
    let symbol = symbols.get(after.checked_sub(1)?)?;
    (symbol.size == 0 || address - symbol.address < symbol.size).then_some(symbol)
}

fn demangle(name: &str) -> String {
    addr2line::demangle_auto(name.into(), None).into_owned()
}

/// Functions that a just-in-time compiler wrote down.
struct JitNames {
    symbols: Vec<Symbol>,
}

impl JitNames {
    /// Lines of `start size name`, hexadecimal. Of code that replaced other code the later line holds.
    fn read(path: &Path) -> JitNames {
        JitNames::parse(
            &std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default(),
        )
    }

    fn parse(text: &str) -> JitNames {
        let mut latest: HashMap<u64, Symbol> = HashMap::new();
        for line in text.lines() {
            let mut words = line.splitn(3, ' ');
            let mut hex = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
            if let (Some(address), Some(size), Some(name)) = (hex(), hex(), words.next()) {
                latest.insert(address, Symbol { address, size, name: name.to_owned() });
            }
        }
        let mut symbols: Vec<Symbol> = latest.into_values().collect();
        symbols.sort_by_key(|symbol| symbol.address);
        JitNames { symbols }
    }

    fn of(&self, address: u64) -> Option<&str> {
        containing(&self.symbols, address).map(|symbol| symbol.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(address: u64, size: u64, name: &str) -> Symbol {
        Symbol { address, size, name: name.to_owned() }
    }

    #[test]
    fn a_symbol_reaches_as_far_as_it_says_and_the_plainest_name_wins() {
        let mut symbols =
            vec![symbol(10, 5, "__libc_read"), symbol(10, 5, "read"), symbol(10, 5, "__read"), symbol(20, 0, "start")];
        sort(&mut symbols);
        for (address, expect) in [(9, None), (10, Some("read")), (14, Some("read")), (15, None), (99, Some("start"))] {
            assert_eq!(containing(&symbols, address).map(|symbol| symbol.name.as_str()), expect, "{address}");
        }
    }

    #[test]
    fn later_lines_of_a_compiler_replace_earlier_ones() {
        let jit = JitNames::parse("100 10 old f\n200 10 g\n100 20 new f\nbad line\n");
        assert_eq!(jit.of(0x11f), Some("new f"));
        assert_eq!(jit.of(0x205), Some("g"));
        assert_eq!(jit.of(0x150), None);
    }

    #[test]
    fn names_of_both_languages_are_readable() {
        assert_eq!(demangle("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(demangle("_ZN4core3fmt5write17h0123456789abcdefE"), "core::fmt::write");
        assert_eq!(demangle("do_read"), "do_read");
    }
}
