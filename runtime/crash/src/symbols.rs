//! Functions of a file by address, from its table of symbols alone: without lines and inlined calls, but in microseconds
//! and with little memory.
//!
//! Debug information is ten times as large as the program, and looking into it takes a third of a second and, for that
//! time, memory of its size. A thread of a dead process can wait for that ([`crate::names`]); one that is stuck in a living
//! one cannot. Kept are 16 bytes for each function; names are read from the file when they are asked for.

use std::fs::File;
use std::os::unix::fs::FileExt;

use object::elf::STT_FUNC;
use object::read::elf::{ElfFile64, SectionHeader, Sym};
use object::{Endianness, ReadCache};

use crate::stack::LoadedFile;

/// Longer names are cut: they are mostly types within types.
const NAME_BYTES_MAX: usize = 1_024;

/// Of one file.
pub(crate) struct Symbols {
    file: File,
    /// By address.
    functions: Vec<Function>,
    /// Where the names begin in the file.
    names_at: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    /// In the file's own terms.
    begin: u64,
    size_bytes: u32,
    /// From the begin of the names.
    name: u32,
}

impl Symbols {
    /// `None` for what is no executable of 64 bits with a table of symbols.
    pub fn of(file: &LoadedFile) -> Option<Self> {
        let file = File::open(file.readable_at()).ok()?;
        // What it reads is kept until it is dropped, at the end of this.
        let contents = ReadCache::new(file.try_clone().ok()?);
        let elf = ElfFile64::<Endianness, _>::parse(&contents).ok()?;
        let endian = elf.endian();
        // Without the full one, as in libraries of a distribution, what others may call is known.
        let full = elf.elf_symbol_table();
        let table = if full.is_empty() { elf.elf_dynamic_symbol_table() } else { full };
        let names_at = elf.elf_section_table().section(table.string_section()).ok()?.sh_offset(endian);
        let function = |symbol: &object::elf::Sym64<Endianness>| {
            let is_here = symbol.st_type() == STT_FUNC && symbol.st_value(endian) != 0;
            is_here.then(|| Function {
                begin: symbol.st_value(endian),
                size_bytes: u32::try_from(symbol.st_size(endian)).unwrap_or(u32::MAX),
                name: symbol.st_name(endian),
            })
        };
        let mut functions: Vec<_> = table.iter().filter_map(function).collect();
        functions.sort_unstable();
        functions.dedup_by_key(|function| function.begin);
        functions.shrink_to_fit();
        drop(elf);
        Some(Self { file, functions, names_at })
    }

    /// The function that an address of the file lies in.
    pub fn name_at(&self, address: u64) -> Option<String> {
        let after = self.functions.partition_point(|function| function.begin <= address);
        let function = self.functions.get(after.checked_sub(1)?)?;
        // Some that are written in assembler have no size.
        let is_inside = function.size_bytes == 0 || address - function.begin < u64::from(function.size_bytes);
        if !is_inside {
            return None;
        }
        let mut name = [0; NAME_BYTES_MAX];
        let read = self.file.read_at(&mut name, self.names_at.checked_add(function.name.into())?).ok()?;
        let end = name[..read].iter().position(|&byte| byte == 0).unwrap_or(read);
        let name = String::from_utf8_lossy(&name[..end]);
        Some(addr2line::demangle_auto(name, None).into_owned())
    }
}
