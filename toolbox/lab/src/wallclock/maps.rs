//! Mappings: which file's code stands at which address of a process.

/// A stretch of addresses whose bytes may be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Of the first byte in its file.
    pub(super) offset: u64,
    /// Device and number of the file; number 0 is none.
    pub(super) device: String,
    pub(super) inode: u64,
    /// Empty for code that stands in no file, as a just-in-time compiler makes it.
    pub(super) path: String,
}

impl Mapping {
    pub(super) fn has_file(&self) -> bool {
        self.inode != 0 || self.path == "[vdso]"
    }
}

/// The executable ones of /proc/PID/maps, in ascending order. Lines that are none are left out.
pub(super) fn parse(maps: &str) -> Vec<Mapping> {
    maps.lines().filter_map(parse_line).collect()
}

/// `7f10-7f20 r-xp 00026000 fe:01 1234      /usr/lib/libc.so.6`; the path may contain spaces.
fn parse_line(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let (word, after) = rest.split_once(' ')?;
        rest = after;
        Some(word)
    };
    let (start, end) = word()?.split_once('-')?;
    let permissions = word()?;
    let offset = word()?;
    let device = word()?.to_owned();
    let (inode, path) = rest.split_once(' ').unwrap_or((rest, ""));
    let hex = |word| u64::from_str_radix(word, 16).ok();
    let mapping = Mapping {
        start: hex(start)?,
        end: hex(end)?,
        offset: hex(offset)?,
        device,
        inode: inode.parse().ok()?,
        path: path.trim_start().to_owned(),
    };
    (permissions.as_bytes().get(2) == Some(&b'x') && mapping.path != "[vsyscall]").then_some(mapping)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_mappings_are_kept_with_their_files() {
        let maps = "5570-5580 r--p 00000000 fe:01 77   /usr/bin/a b (deleted)\n\
                    5580-5590 r-xp 00001000 fe:01 77   /usr/bin/a b (deleted)\n\
                    6000-7000 rwxp 00000000 00:00 0 \n\
                    7ff0-7ff1 r-xp 00000000 00:00 0                          [vdso]\n\
                    ffff-fff0 --xp 00000000 00:00 0                          [vsyscall]\n\
                    nonsense\n";
        let found = parse(maps);
        assert_eq!(found.len(), 3);
        assert_eq!(
            (found[0].start, found[0].offset, found[0].path.as_str()),
            (0x5580, 0x1000, "/usr/bin/a b (deleted)")
        );
        assert_eq!(found.iter().map(Mapping::has_file).collect::<Vec<_>>(), [true, false, true]);
    }
}
