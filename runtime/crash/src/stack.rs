//! The calls that led to where a thread of another process is.
//!
//! The thread holds still; its registers and a copy of its stack are enough, together with the unwind tables that every
//! executable carries. No table is prepared in advance, so a server pays nothing for it while it lives.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module, UnwindRegsNative, Unwinder,
    UnwinderNative,
};
use object::{Object, ObjectSection, ObjectSegment, ReadCache};

use crate::maps::Maps;

/// What unwinding starts from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers {
    pub instruction_pointer: u64,
    pub stack_pointer: u64,
    pub frame_pointer: u64,
    /// The return address of the innermost function, on processors that have a register for it.
    #[cfg_attr(not(target_arch = "aarch64"), expect(dead_code, reason = "x86-64 keeps it on the stack"))]
    pub link: u64,
}

/// A part of a stack.
pub(crate) struct StackCopy {
    pub begin: u64,
    pub bytes: Vec<u8>,
}

impl StackCopy {
    fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.begin)?).ok()?;
        let word = self.bytes.get(at..at.checked_add(8)?)?;
        Some(u64::from_ne_bytes(word.try_into().expect("8 bytes")))
    }
}

/// Frames of one stack, innermost first. Of a long one the middle is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    /// Addresses inside the calling instruction, as names are looked up by.
    pub addresses: Vec<u64>,
    /// How many frames are left out in the middle, after [`INNER_FRAMES`].
    pub left_out: usize,
}

/// Frames kept at the inner end of a stack: what was running.
pub(crate) const INNER_FRAMES: usize = 48;
/// Frames kept at the outer end: who began it.
const OUTER_FRAMES: usize = 24;
/// A loop in broken tables ends here. A stack of 8 MiB with the smallest frames, 16 bytes each, has half as many.
const FRAMES_MAX: usize = 1 << 20;

/// An executable file of the process.
pub(crate) struct LoadedFile {
    pub path: PathBuf,
    /// The file itself: the path may lead to another one by now, and to none when the process is gone.
    file: File,
    pub range: Range<u64>,
    /// What to add to an address in the file.
    pub bias: u64,
}

impl LoadedFile {
    /// A path that leads to this very file as long as this value lives.
    pub fn readable_at(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

/// What was read of a file so far: headers and unwind tables, not the debug information. No mapping, so a file that is
/// rewritten meanwhile is an error and no signal.
pub(crate) type Contents = ReadCache<File>;

/// The unwind tables of a process.
pub(crate) struct Unwind<'a> {
    unwinder: UnwinderNative<&'a [u8], MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

/// Files that are mapped into the process to be run, with their contents.
pub(crate) fn loaded_files(pid: u32, maps: &Maps) -> Vec<(LoadedFile, Contents)> {
    let executable = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let mut ranges: Vec<(PathBuf, Range<u64>, bool)> = Vec::new();
    for mapping in maps.iter() {
        let Some(path) = &mapping.path else { continue };
        match ranges.iter_mut().find(|(known, ..)| known == path) {
            Some((_, range, is_run)) => {
                range.end = mapping.end;
                *is_run |= mapping.is_executable;
            }
            None => ranges.push((path.clone(), mapping.begin..mapping.end, mapping.is_executable)),
        }
    }
    let mut files = Vec::new();
    for (path, range, _) in ranges.into_iter().filter(|(.., is_run)| *is_run) {
        let is_main = path.as_os_str() == executable.as_os_str()
            || executable.to_string_lossy().trim_end_matches(" (deleted)") == path.to_string_lossy();
        let opened = if is_main { File::open(format!("/proc/{pid}/exe")) } else { File::open(&path) };
        let Ok(file) = opened else { continue };
        let Ok(contents) = file.try_clone().map(ReadCache::new) else { continue };
        let Some(first) = first_address(&contents) else { continue };
        files.push((LoadedFile { path, file, bias: range.start.wrapping_sub(first), range }, contents));
    }
    files
}

/// The address, in the file's own terms, that its first mapping begins at.
fn first_address(contents: &Contents) -> Option<u64> {
    const PAGE_BYTES: u64 = 4096;
    let object = object::File::parse(contents).ok()?;
    object.segments().map(|segment| segment.address()).min().map(|address| address & !(PAGE_BYTES - 1))
}

impl<'a> Unwind<'a> {
    pub fn new(files: &'a [(LoadedFile, Contents)]) -> Self {
        Self::of(files, Code::Read)
    }

    /// The same from the tables alone, which are a tenth of the code. Without the code, functions that are about to return
    /// may hide their caller.
    pub fn without_code(files: &'a [(LoadedFile, Contents)]) -> Self {
        Self::of(files, Code::Left)
    }

    fn of(files: &'a [(LoadedFile, Contents)], code: Code) -> Self {
        let mut unwinder = UnwinderNative::new();
        for (file, contents) in files {
            if let Some(module) = module(file, contents, code) {
                unwinder.add_module(module);
            }
        }
        Self { unwinder, cache: CacheNative::new() }
    }

    pub fn calls(&mut self, registers: Registers, stack: &StackCopy) -> Calls {
        #[cfg(target_arch = "x86_64")]
        let start =
            UnwindRegsNative::new(registers.instruction_pointer, registers.stack_pointer, registers.frame_pointer);
        #[cfg(target_arch = "aarch64")]
        let start = UnwindRegsNative::new(registers.link, registers.stack_pointer, registers.frame_pointer);
        let mut word = |address| stack.word(address).ok_or(());
        let mut frames = self.unwinder.iter_frames(registers.instruction_pointer, start, &mut self.cache, &mut word);
        let mut inner = Vec::new();
        let mut outer = std::collections::VecDeque::new();
        let mut left_out = 0;
        for _ in 0..FRAMES_MAX {
            // An error is a stack whose rest cannot be followed; what was found so far is good.
            let Ok(Some(frame)) = frames.next() else { break };
            let address = match frame {
                FrameAddress::InstructionPointer(address) => address,
                // One back, into the call: the address after it may belong to another line or function.
                FrameAddress::ReturnAddress(address) => address.get() - 1,
            };
            if inner.len() < INNER_FRAMES {
                inner.push(address);
                continue;
            }
            outer.push_back(address);
            if outer.len() > OUTER_FRAMES {
                outer.pop_front();
                left_out += 1;
            }
        }
        inner.extend(outer);
        Calls { addresses: inner, left_out }
    }
}

/// Whether the code itself is read, beside the tables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Code {
    Read,
    Left,
}

fn module<'a>(file: &LoadedFile, contents: &'a Contents, code: Code) -> Option<Module<&'a [u8]>> {
    let object = object::File::parse(contents).ok()?;
    let section = |name| {
        let section = object.section_by_name(name)?;
        // The file says what it likes.
        Some((section.address()..section.address().checked_add(section.size())?, section.data().ok()?))
    };
    let split = |section: Option<(Range<u64>, &'a [u8])>| {
        section.map_or((None, None), |(range, data)| (Some(range), Some(data)))
    };
    let (text_svma, text) = split(if code == Code::Read { section(".text") } else { None });
    let (eh_frame_svma, eh_frame) = split(section(".eh_frame"));
    let (eh_frame_hdr_svma, eh_frame_hdr) = split(section(".eh_frame_hdr"));
    let (got_svma, _) = split(section(".got"));
    let sections = ExplicitModuleSectionInfo {
        base_svma: file.range.start.wrapping_sub(file.bias),
        text_svma,
        text,
        eh_frame_svma,
        eh_frame,
        eh_frame_hdr_svma,
        eh_frame_hdr,
        got_svma,
        ..Default::default()
    };
    Some(Module::new(file.path.display().to_string(), file.range.clone(), file.range.start, sections))
}
