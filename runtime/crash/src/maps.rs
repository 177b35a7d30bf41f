//! What is where in another process: its `/proc/<pid>/maps`, read once while it holds still.

use std::fs;
use std::io;
use std::path::PathBuf;

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub begin: u64,
    pub end: u64,
    pub is_readable: bool,
    pub is_writable: bool,
    pub is_executable: bool,
    /// Where `begin` lies in the file.
    pub offset: u64,
    /// The file; `None` for memory without one, and for what the kernel names in brackets.
    pub path: Option<PathBuf>,
}

impl Mapping {
    /// Whether it could be a stack; a guard page could not.
    pub fn is_plain_memory(&self) -> bool {
        self.is_readable && self.is_writable && !self.is_executable
    }
}

/// All mappings, by address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Maps(Vec<Mapping>);

impl Maps {
    pub fn of(pid: u32) -> io::Result<Self> {
        Ok(Self::parse(&fs::read_to_string(format!("/proc/{pid}/maps"))?))
    }

    pub fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(parse_line).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mapping> {
        self.0.iter()
    }

    pub fn at(&self, address: u64) -> Option<&Mapping> {
        self.at_or_above(address).filter(|mapping| mapping.begin <= address)
    }

    /// The mapping at the address, or else the next one above.
    pub fn at_or_above(&self, address: u64) -> Option<&Mapping> {
        let index = self.0.partition_point(|mapping| mapping.end <= address);
        self.0.get(index)
    }

    /// The memory that a stack pointer belongs to, also when it points into the guard below.
    pub fn stack_at(&self, stack_pointer: u64) -> Option<&Mapping> {
        let mut mapping = self.at_or_above(stack_pointer)?;
        if !mapping.is_plain_memory() {
            mapping = self.at_or_above(mapping.end)?;
        }
        (mapping.is_plain_memory() && mapping.begin.saturating_sub(stack_pointer) <= GUARD_BYTES_MAX).then_some(mapping)
    }
}

/// Guards are one page for threads and up to 1 MiB below the main thread's stack.
pub(crate) const GUARD_BYTES_MAX: u64 = 1 << 20;

/// `55d0c8a00000-55d0c8a21000 r-xp 00001000 fe:00 1234   /usr/bin/throng`
fn parse_line(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        let trimmed = rest.trim_start();
        let end = trimmed.find(' ').unwrap_or(trimmed.len());
        let (field, tail) = trimmed.split_at(end);
        rest = tail;
        field
    };
    let (begin, end) = field().split_once('-')?;
    let permissions = field().as_bytes();
    let offset = field();
    let (_device, _inode) = (field(), field());
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let path = rest.trim_start();
    Some(Mapping {
        begin: hex(begin)?,
        end: hex(end)?,
        is_readable: permissions.first() == Some(&b'r'),
        is_writable: permissions.get(1) == Some(&b'w'),
        is_executable: permissions.get(2) == Some(&b'x'),
        offset: hex(offset)?,
        path: path.starts_with('/').then(|| PathBuf::from(path.trim_end_matches(" (deleted)"))),
    })
}

#[cfg(test)]
pub(crate) const EXAMPLE: &str = "\
1000-3000 r--p 00000000 fe:00 12 /bin/a program
3000-5000 r-xp 00002000 fe:00 12 /bin/a program (deleted)
10000-11000 ---p 00000000 00:00 0 
11000-31000 rw-p 00000000 00:00 0 
7f000-80000 rw-p 00000000 00:00 0                          [stack]
not a line
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_finds_its_mapping() {
        let maps = Maps::parse(EXAMPLE);
        assert_eq!(maps.iter().count(), 5);
        let begin_at = |address| maps.at(address).map(|mapping| mapping.begin);
        assert_eq!(
            [0xfff, 0x1000, 0x2fff, 0x3000, 0x4fff, 0x5000].map(begin_at),
            [None, Some(0x1000), Some(0x1000), Some(0x3000), Some(0x3000), None]
        );
        let code = maps.at(0x3000).unwrap();
        assert_eq!((code.offset, code.is_executable, code.is_writable), (0x2000, true, false));
        assert_eq!(code.path.as_deref().unwrap().to_str(), Some("/bin/a program"));
        assert_eq!(maps.at(0x7f000).unwrap().path, None);
    }

    #[test]
    fn a_stack_is_found_from_inside_and_from_its_guard() {
        let maps = Maps::parse(EXAMPLE);
        let begin_of = |pointer| maps.stack_at(pointer).map(|stack| stack.begin);
        assert_eq!(
            [0x12000, 0x10ff8, 0x10000, 0x4000].map(begin_of),
            [Some(0x11000), Some(0x11000), Some(0x11000), None],
            "code is no stack"
        );
        assert_eq!(begin_of(0x7eff8), Some(0x7f000), "the main thread's guard is no mapping");
        assert_eq!(begin_of(0x90000), None);
    }

    #[test]
    fn our_own_maps_have_our_code() {
        let maps = Maps::of(std::process::id()).unwrap();
        let code = maps.at(parse_line as *const () as u64).unwrap();
        assert!(code.is_executable && code.path.is_some());
        assert!(maps.stack_at(&raw const code as u64).unwrap().is_plain_memory());
    }
}
