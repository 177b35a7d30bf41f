//! Images: the files whose code a process runs, as far as unwinding and naming need them.
//!
//! Opened from where the process itself sees them, so that a container's files, a program that was replaced on disk
//! while it runs, and the kernel's own vDSO are all read as they are mapped. The file stays open: a name may be gone
//! by the time that addresses are resolved, after the run.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use framehop::ExplicitModuleSectionInfo;
use object::elf::PF_X;
use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSegment, ReadRef, SegmentFlags};

use super::maps::Mapping;
use super::process::Process;

/// The vDSO is two or four pages; more is not read from another process's memory.
const VDSO_BYTES_MAX: u64 = 1 << 20;

/// One file with code.
pub(super) struct Image {
    /// The last part of its path, such as `libc.so.6`.
    pub(super) name: String,
    pub(super) source: Source,
    segments: Vec<Segment>,
    /// Address that the file gives its first byte.
    pub(super) base: u64,
    functions: FunctionStarts,
}

/// Where an image's bytes come from.
pub(super) enum Source {
    File {
        file: File,
        path: PathBuf,
    },
    Bytes(Vec<u8>),
    /// It could not be opened: frames in it are unwound by frame pointers and have no names.
    Missing,
}

/// A part of the file that is mapped to be run. Neighbours may share a page of the file, so the others must not be
/// mistaken for it.
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

pub(super) type Sections = ExplicitModuleSectionInfo<Vec<u8>>;

impl Image {
    /// What is mapped there, and the sections from which its code is unwound.
    pub(super) fn open(process: &Process, mapping: &Mapping) -> (Image, Sections) {
        let source = open_source(process, mapping);
        let parsed = match &source {
            Source::File { file, .. } => file.try_clone().ok().and_then(|file| parse(&ReadCache::new(file))),
            Source::Bytes(bytes) => parse(bytes.as_slice()),
            Source::Missing => None,
        };
        let name =
            Path::new(&mapping.path).file_name().map_or(mapping.path.as_str().into(), |name| name.to_string_lossy());
        let name = name.trim_end_matches(DELETED).to_owned();
        let (segments, base, sections) = parsed.unwrap_or_default();
        let functions = FunctionStarts::of(&sections);
        (Image { name, source, segments, base, functions }, sections)
    }

    /// How far the process has moved the image from the addresses that the file states; wraps for negative ones.
    pub(super) fn bias(&self, mapping: &Mapping) -> u64 {
        let holds = |segment: &&Segment| {
            // A mapping begins at a page, which may be a little before the segment's first byte.
            let begin = segment.offset & !(PAGE - 1);
            // The file says what it likes.
            (begin..segment.offset.saturating_add(segment.size.max(1))).contains(&mapping.offset)
        };
        match self.segments.iter().find(holds) {
            Some(segment) => {
                mapping.start.wrapping_sub(segment.address.wrapping_sub(segment.offset).wrapping_add(mapping.offset))
            }
            None => mapping.start.wrapping_sub(mapping.offset),
        }
    }

    /// Start of the function around a stated address, if the unwinding tables know one.
    pub(super) fn function_start(&self, stated: u64) -> Option<u64> {
        self.functions.around(stated)
    }

    /// A path that opens this very file, also after its name is gone.
    pub(super) fn path(&self) -> Option<PathBuf> {
        match &self.source {
            Source::File { file, .. } => Some(format!("/proc/self/fd/{}", file.as_raw_fd()).into()),
            _ => None,
        }
    }
}

const PAGE: u64 = 4_096;
/// What the kernel writes behind the name of a file that has none any more.
pub(super) const DELETED: &str = " (deleted)";

fn open_source(process: &Process, mapping: &Mapping) -> Source {
    if mapping.path == "[vdso]" {
        let mut bytes = vec![0; (mapping.end - mapping.start).min(VDSO_BYTES_MAX) as usize];
        return match process.memory.read(mapping.start, &mut bytes) {
            Ok(length) => {
                bytes.truncate(length);
                Source::Bytes(bytes)
            }
            Err(_) => Source::Missing,
        };
    }
    let named = Path::new(&mapping.path);
    let mut paths = process.unnamed(mapping.start, mapping.end, named);
    if !mapping.path.ends_with(DELETED) {
        paths.insert(0, process.path_from_here(named));
    }
    let opened = paths.into_iter().find_map(|path| Some(Source::File { file: File::open(&path).ok()?, path }));
    opened.unwrap_or(Source::Missing)
}

type Parsed = (Vec<Segment>, u64, Sections);

fn parse<'data>(data: impl ReadRef<'data>) -> Option<Parsed> {
    let file = object::File::parse(data).ok()?;
    let is_code = |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.contains(PF_X));
    let base = file.segments().map(|segment| segment.address() & !(PAGE - 1)).min().unwrap_or(0);
    let segments: Vec<Segment> = file
        .segments()
        .filter(|segment| is_code(segment.flags()))
        .map(|segment| {
            let (offset, size) = segment.file_range();
            Segment { offset, size, address: segment.address() }
        })
        .collect();
    let range = |name| {
        let section = file.section_by_name(name)?;
        Some(section.address()..section.address().checked_add(section.size())?)
    };
    let bytes = |name| Some(file.section_by_name(name)?.uncompressed_data().ok()?.into_owned());
    let eh_frame = bytes(".eh_frame").filter(|bytes| !bytes.is_empty());
    let debug_frame = if eh_frame.is_none() { bytes(".debug_frame") } else { None };
    let sections = Sections {
        base_svma: base,
        text_svma: range(".text"),
        got_svma: range(".got"),
        eh_frame_svma: range(".eh_frame"),
        eh_frame,
        eh_frame_hdr_svma: range(".eh_frame_hdr"),
        eh_frame_hdr: bytes(".eh_frame_hdr"),
        debug_frame,
        ..Sections::default()
    };
    Some((segments, base, sections))
}

/// First addresses of functions, from the search table of `.eh_frame_hdr`, which stripped files keep too.
#[derive(Default)]
struct FunctionStarts {
    /// Ascending, as the linker writes them.
    starts: Vec<u64>,
}

impl FunctionStarts {
    /// ```text
    /// u8 version = 1 | u8 pointer encoding | u8 count encoding = 3 | u8 table encoding = 0x3b |
    /// i32 .eh_frame  | u32 count | count x { i32 function, i32 entry }, both from the section's own address
    /// ```
    /// Other encodings are legal and not seen in practice: then nothing is known.
    fn of(sections: &Sections) -> FunctionStarts {
        let (Some(table), Some(range)) = (&sections.eh_frame_hdr, &sections.eh_frame_hdr_svma) else {
            return FunctionStarts::default();
        };
        let Some(([1, 0x1b, 0x03, 0x3b], rest)) = table.split_first_chunk::<4>() else {
            return FunctionStarts::default();
        };
        let entries = rest.get(8..).unwrap_or_default().chunks_exact(8);
        let start = |entry: &[u8]| {
            let offset = i32::from_le_bytes(entry[..4].try_into().unwrap_or_default());
            range.start.wrapping_add_signed(offset.into())
        };
        FunctionStarts { starts: entries.map(start).collect() }
    }

    fn around(&self, address: u64) -> Option<u64> {
        let after = self.starts.partition_point(|start| *start <= address);
        self.starts.get(after.checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_around_an_address_is_the_last_one_that_begins_before_it() {
        let mut table = vec![1, 0x1b, 0x03, 0x3b];
        for word in [0_i32, 3, -0x1000, 0, -0x800, 0, 0x100, 0] {
            table.extend(word.to_le_bytes());
        }
        let sections =
            Sections { eh_frame_hdr: Some(table), eh_frame_hdr_svma: Some(0x5000..0x5100), ..Sections::default() };
        let starts = FunctionStarts::of(&sections);
        for (address, expect) in
            [(0x3fff, None), (0x4000, Some(0x4000)), (0x47ff, Some(0x4000)), (0x9000, Some(0x5100))]
        {
            assert_eq!(starts.around(address), expect, "{address:x}");
        }
        assert_eq!(FunctionStarts::of(&Sections::default()).around(1), None);
    }

    #[test]
    fn a_segment_that_ends_beyond_all_addresses_holds_what_it_begins_with() {
        let segment = |offset| Segment { offset, size: u64::MAX, address: 0x40_0000 + offset };
        let image = Image {
            name: "hostile".to_owned(),
            source: Source::Missing,
            segments: vec![segment(0x7000)],
            base: 0,
            functions: FunctionStarts::default(),
        };
        let maps = super::super::maps::parse("7f0000007000-7f0000008000 r-xp 00007000 fe:01 7 /tmp/hostile\n");
        assert_eq!(image.bias(&maps[0]), 0x7f00_0000_7000 - 0x40_7000);
    }

    #[test]
    fn this_program_and_its_vdso_have_what_unwinding_needs() {
        let process = Process::open(std::process::id()).unwrap();
        let here = this_program_and_its_vdso_have_what_unwinding_needs as fn() as usize as u64;
        let maps = super::super::maps::parse(&process.maps().unwrap());
        let own = maps.iter().find(|mapping| (mapping.start..mapping.end).contains(&here)).unwrap();
        let (image, sections) = Image::open(&process, own);
        assert!(sections.eh_frame.is_some_and(|bytes| bytes.len() > 1_000));
        let stated = here.wrapping_sub(image.bias(own));
        assert_eq!(image.function_start(stated + 1), Some(stated), "this function begins where it begins");
        let vdso = maps.iter().find(|mapping| mapping.path == "[vdso]").unwrap();
        assert!(Image::open(&process, vdso).1.eh_frame.is_some());
    }
}
