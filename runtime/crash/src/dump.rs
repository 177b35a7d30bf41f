//! The minidump: what a debugger is given. Only what is named here gets in.
//!
//! ```text
//! header, directory of streams, then
//!     threads          registers of each, without those that point nowhere; stacks, without what is not a pointer to code or to the stack
//!     modules          which executable and libraries were where, by build id
//!     memory           the list of the stacks, and 256 bytes of code where it broke
//!     exception        signal, address, thread
//!     system           processor and kernel
//!     memory info      what was mapped where
//!     thread names
//!     comment          the state of the process as JSON: worlds, ticks, open scopes
//! ```
//!
//! `minidump-writer` by itself adds environment, command line and open files, in which keys and addresses are found,
//! and copies whatever lies above a stack in the same mapping; so its parts are put together here instead, with those
//! left out.

use std::ops::Range;

use crash_handler::CrashContext;
use error_graph::strategy::DontCare;
use minidump_writer::CrashContextExt;
use minidump_writer::dir_section::DumpBuf;
use minidump_writer::maps_reader::MappingInfo;
use minidump_writer::mem_writer::{MemoryArrayWriter, MemoryWriter};
use minidump_writer::minidump_cpu::RawContextCPU;
use minidump_writer::minidump_format::{
    MD_HEADER_SIGNATURE, MD_HEADER_VERSION, MDRawDirectory, MDRawHeader, MDRawThread, MDStreamType,
};
use minidump_writer::minidump_writer::{MinidumpWriter, MinidumpWriterConfig, systeminfo_stream};
use scroll::{LE, Pread, Pwrite};

use crate::maps::Maps;
use crate::stack::{Registers, StackCopy};

/// Of the stack of the thread that died: all of a worker's 2 MiB and of the main thread's usual 8 MiB.
const CULPRIT_STACK_BYTES_MAX: usize = 8 << 20;
/// Of any other stack, from its top. Below it, memory that is no stack may follow in the same mapping.
const STACK_BYTES_MAX: usize = 256 << 10;

/// A process whose threads are all stopped, until this is dropped.
pub(crate) struct StoppedProcess {
    writer: MinidumpWriter,
    context: Option<CrashContext>,
}

/// A thread of it.
pub(crate) struct StoppedThread {
    pub tid: u32,
    pub name: String,
    pub registers: Registers,
    pub stack: StackCopy,
}

impl StoppedProcess {
    /// Stops process `context.pid`. Fails where this process may not look into the other.
    pub fn stop(context: CrashContext) -> Result<Self, String> {
        let mut config = MinidumpWriterConfig::new(context.pid, context.tid);
        config.sanitize_stack();
        config.set_crash_context(CrashContextExt { inner: context.clone() });
        // The name is the library's: it is the only way to the parts.
        let writer = config.build_for_testing(DontCare).map_err(|error| error.to_string())?;
        if writer.threads.is_empty() {
            return Err("no thread could be stopped: the monitor is not allowed to trace the server".into());
        }
        Ok(Self { writer, context: Some(context) })
    }

    /// Registers and stacks, the thread that died first.
    pub fn threads(&self, maps: &Maps) -> Vec<StoppedThread> {
        let culprit = self.writer.blamed_thread;
        let mut threads: Vec<_> = (0..self.writer.threads.len())
            .filter_map(|index| {
                let thread = &self.writer.threads[index];
                let registers = match &self.context {
                    // It is in its signal handler; what matters is where it was when the signal came.
                    Some(context) if thread.tid == culprit => registers_of(context),
                    _ => self.registers(index)?,
                };
                let max = if thread.tid == culprit { CULPRIT_STACK_BYTES_MAX } else { STACK_BYTES_MAX };
                let stack = self.copy_stack(maps, registers.stack_pointer, max);
                Some(StoppedThread {
                    tid: thread.tid as u32,
                    name: thread.name.clone().unwrap_or_default(),
                    registers,
                    stack,
                })
            })
            .collect();
        threads.sort_by_key(|thread| thread.tid != culprit as u32);
        threads
    }

    fn copy_stack(&self, maps: &Maps, stack_pointer: u64, bytes_max: usize) -> StackCopy {
        let Some(mapping) = maps.stack_at(stack_pointer) else { return StackCopy { begin: 0, bytes: Vec::new() } };
        let begin = mapping.begin.max(stack_pointer & !7);
        let len = (mapping.end - begin).min(bytes_max as u64) as usize;
        let copied = MinidumpWriter::copy_from_process(&self.writer.process_inspector, begin as usize, len);
        StackCopy { begin, bytes: copied.unwrap_or_default() }
    }

    /// The file's contents. Streams that cannot be had are named in `incomplete` and left out.
    pub fn minidump(
        &mut self,
        maps: &Maps,
        comment: &str,
        unix_s: u64,
        incomplete: &mut Vec<String>,
    ) -> Result<Vec<u8>, String> {
        self.limit_stacks(maps);
        let mut buffer = DumpBuf::with_capacity(1 << 20);
        let failed = |error: &dyn std::fmt::Display| format!("minidump: {error}");
        let mut header = MemoryWriter::<MDRawHeader>::alloc(&mut buffer).map_err(|error| failed(&error))?;
        let mut directory =
            MemoryArrayWriter::<MDRawDirectory>::alloc_array(&mut buffer, STREAMS).map_err(|error| failed(&error))?;
        let threads = self.writer.write_thread_list_stream(&mut buffer).map_err(|error| failed(&error))?;
        let mut streams = vec![threads.clone()];
        let mut add = |name: &str, stream: Result<MDRawDirectory, String>| match stream {
            Ok(stream) => streams.push(stream),
            Err(error) => incomplete.push(format!("minidump, {name}: {error}")),
        };
        let text = |error: &dyn std::fmt::Display| error.to_string();
        add("modules", self.writer.write_mappings(&mut buffer).map_err(|error| text(&error)));
        add("memory", self.writer.write_memory_list_stream(&mut buffer).map_err(|error| text(&error)));
        add("exception", self.writer.write_exception_stream(&mut buffer).map_err(|error| text(&error)));
        let system = systeminfo_stream::write(&self.writer.process_inspector, &mut buffer, DontCare);
        add("system", system.map_err(|error| text(&error)));
        add("memory info", self.writer.write_memory_info_list_stream(&mut buffer).map_err(|error| text(&error)));
        add("thread names", self.writer.write_thread_names_stream(&mut buffer).map_err(|error| text(&error)));
        let comment = MemoryArrayWriter::<u8>::write_bytes(&mut buffer, comment.as_bytes()).location();
        streams.push(MDRawDirectory { stream_type: MDStreamType::CommentStreamA as u32, location: comment });

        let head = MDRawHeader {
            signature: MD_HEADER_SIGNATURE,
            version: MD_HEADER_VERSION,
            stream_count: streams.len() as u32,
            stream_directory_rva: directory.location().rva,
            checksum: 0,
            // The format has 32 bits for it.
            time_date_stamp: unix_s as u32,
            flags: 0,
        };
        header.set_value(&mut buffer, head).map_err(|error| failed(&error))?;
        for (index, stream) in streams.into_iter().enumerate() {
            directory.set_value_at(&mut buffer, stream, index).map_err(|error| failed(&error))?;
        }
        let mut file: Vec<u8> = buffer.into();
        let is_clean = self.clean_threads(&mut file, &threads, maps).is_some();
        is_clean.then_some(file).ok_or_else(|| "minidump: its threads cannot be cleaned of what may be secret".into())
    }

    /// Ends each stack's mapping where no more of it is wanted. Mappings of heap and stack merge where they touch, and
    /// the heap is large.
    fn limit_stacks(&mut self, maps: &Maps) {
        let culprit = self.writer.blamed_thread as u32;
        for thread in self.threads_in_brief(maps) {
            let (tid, top) = thread;
            let max = if tid == culprit { CULPRIT_STACK_BYTES_MAX } else { STACK_BYTES_MAX };
            let found = self.writer.mappings.iter_mut().position(|mapping| range(mapping).contains(&top));
            let Some(index) = found else { continue };
            let end = (top & !(PAGE_BYTES - 1)) + max;
            let mapping = &mut self.writer.mappings[index];
            if end >= range(mapping).end {
                continue;
            }
            let mut rest = mapping.clone();
            set_range(&mut rest, end..range(mapping).end);
            let kept = range(mapping).start..end;
            set_range(mapping, kept);
            self.writer.mappings.insert(index + 1, rest);
        }
    }

    /// Threads with the first address of their stacks that holds something.
    fn threads_in_brief(&self, maps: &Maps) -> Vec<(u32, usize)> {
        let mut brief = Vec::new();
        for (index, thread) in self.writer.threads.iter().enumerate() {
            let registers = match &self.context {
                Some(context) if thread.tid == self.writer.blamed_thread => Some(registers_of(context)),
                _ => self.registers(index),
            };
            let Some(stack_pointer) = registers.map(|registers| registers.stack_pointer) else { continue };
            let Some(stack) = maps.stack_at(stack_pointer) else { continue };
            brief.push((thread.tid as u32, stack.begin.max(stack_pointer) as usize));
        }
        brief
    }

    /// Takes registers out that are no addresses, all vector registers, and copied memory that is no code. `None` if
    /// the file is not as expected.
    fn clean_threads(&self, file: &mut [u8], threads: &MDRawDirectory, maps: &Maps) -> Option<()> {
        let mut at = threads.location.rva as usize;
        let count: u32 = file.gread_with(&mut at, LE).ok()?;
        let mut stacks = Vec::new();
        for _ in 0..count {
            let thread: MDRawThread = file.gread_with(&mut at, LE).ok()?;
            stacks.push(thread.stack.memory.rva);
            let context_at = thread.thread_context.rva as usize;
            if thread.thread_context.data_size == 0 {
                continue;
            }
            let mut context: RawContextCPU = file.pread_with(context_at, LE).ok()?;
            clean_registers(&mut context, maps);
            file.pwrite_with(context, context_at, LE).ok()?;
        }
        for block in &self.writer.memory_blocks {
            let is_code = maps
                .at(block.start_of_memory_range)
                .is_some_and(|mapping| mapping.is_executable && !mapping.is_writable);
            if !stacks.contains(&block.memory.rva) && !is_code {
                let begin = block.memory.rva as usize;
                file.get_mut(begin..begin + block.memory.data_size as usize)?.fill(0);
            }
        }
        Some(())
    }

    fn registers(&self, index: usize) -> Option<Registers> {
        let info = self.writer.get_thread_info_by_index(index).ok()?;
        #[cfg(target_arch = "x86_64")]
        let registers = Registers {
            instruction_pointer: info.regs.rip,
            stack_pointer: info.regs.rsp,
            frame_pointer: info.regs.rbp,
            link: 0,
        };
        #[cfg(target_arch = "aarch64")]
        let registers = Registers {
            instruction_pointer: info.regs.pc,
            stack_pointer: info.regs.sp,
            frame_pointer: info.regs.regs[29],
            link: info.regs.regs[30],
        };
        Some(registers)
    }
}

/// As many as are drawn at the head of this file.
const STREAMS: usize = 8;

const PAGE_BYTES: usize = 4096;

fn range(mapping: &MappingInfo) -> Range<usize> {
    mapping.start_address..mapping.start_address + mapping.size
}

fn set_range(mapping: &mut MappingInfo, range: Range<usize>) {
    mapping.system_mapping_info.start_address = range.start;
    mapping.system_mapping_info.end_address = range.end;
    mapping.start_address = range.start;
    mapping.size = range.len();
}

/// What a register holds is kept if it is a small number or points somewhere; anything else may be a piece of a key.
fn clean_word(word: &mut u64, maps: &Maps) {
    const SMALL: u64 = 4096;
    if *word > SMALL && word.wrapping_neg() > SMALL && maps.at(*word).is_none() {
        *word = DEFACED;
    }
}

/// What `minidump-writer` writes in place of words of a stack that were taken out.
const DEFACED: u64 = 0x0def_aced_0def_aced;

#[cfg(target_arch = "x86_64")]
fn clean_registers(context: &mut RawContextCPU, maps: &Maps) {
    let words = [
        &mut context.rax,
        &mut context.rcx,
        &mut context.rdx,
        &mut context.rbx,
        &mut context.rbp,
        &mut context.rsi,
        &mut context.rdi,
        &mut context.r8,
        &mut context.r9,
        &mut context.r10,
        &mut context.r11,
        &mut context.r12,
        &mut context.r13,
        &mut context.r14,
        &mut context.r15,
    ];
    words.into_iter().for_each(|word| clean_word(word, maps));
    context.float_save.fill(0);
    context.vector_register.fill(0);
}

#[cfg(target_arch = "aarch64")]
fn clean_registers(context: &mut RawContextCPU, maps: &Maps) {
    context.iregs.iter_mut().for_each(|word| clean_word(word, maps));
    context.float_regs.fill(0);
}

#[cfg(target_arch = "x86_64")]
pub(crate) fn registers_of(context: &CrashContext) -> Registers {
    let register = |index: libc::c_int| context.context.uc_mcontext.gregs[index as usize] as u64;
    Registers {
        instruction_pointer: register(libc::REG_RIP),
        stack_pointer: register(libc::REG_RSP),
        frame_pointer: register(libc::REG_RBP),
        link: 0,
    }
}

#[cfg(target_arch = "aarch64")]
pub(crate) fn registers_of(context: &CrashContext) -> Registers {
    let machine = &context.context.uc_mcontext;
    Registers {
        instruction_pointer: machine.pc,
        stack_pointer: machine.sp,
        frame_pointer: machine.regs[29],
        link: machine.regs[30],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::EXAMPLE;

    #[test]
    fn registers_keep_pointers_and_small_numbers_only() {
        let maps = Maps::parse(EXAMPLE);
        let check = |word: u64, expected: u64| {
            let mut cleaned = word;
            clean_word(&mut cleaned, &maps);
            assert_eq!(cleaned, expected, "{word:#x}");
        };
        for kept in [0, 1, 4096, u64::MAX, -4096_i64 as u64, 0x3000, 0x12345] {
            check(kept, kept);
        }
        for secret in [0x0102_0304_0506_0708, 0xdead_beef_dead_beef, 0x9_0000] {
            check(secret, DEFACED);
        }
    }
}
