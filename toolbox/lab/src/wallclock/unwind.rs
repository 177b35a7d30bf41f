//! Unwinding: from a thread's registers and stack to the chain of its callers.
//!
//! Compilers leave tables (`.eh_frame`) from which the caller of any instruction is found, mostly from the stack
//! pointer alone; `framehop` reads them. Code without tables, as just-in-time compilers make it, is followed by frame
//! pointers.
//!
//! Of a sleeping thread the kernel tells the stack pointer and the instruction, not the frame pointer. Most functions
//! between a system call and the interesting frames save it on the stack, where the tables say, and from there on it is
//! known. Where a frame needs it before that, it is recovered: it must be the address of a slot above the stack
//! pointer, followed by a return address. Values that point right behind a call are rare on a stack, calls of the very
//! function being unwound rarer still, and the chain that follows must reach the thread's first function.
//!
//! Runs on the sampling thread. Cost: about 5 us for a stack of 15 frames once its rules are cached.

use std::collections::HashMap;

use framehop::x86_64::{CacheX86_64 as Cache, UnwindRegsX86_64 as UnwindRegs, UnwinderX86_64 as Unwinder};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};

use super::call_site::{self, CALL_BYTES_MAX, CallSite};
use super::image::Image;
use super::maps::{self, Mapping};
use super::process::{Process, SleepCall};
use super::stack_reader::StackReader;

/// Deeper stacks, as of a runaway recursion, are cut off at their callers' end.
const FRAMES_MAX: usize = 512;
/// Stands for a frame pointer that is not known: no program has such an address, so that reading it fails.
const UNKNOWN: u64 = 0x7ff0_0000_0000_0000;
/// How far above the stack pointer a frame pointer is searched. Functions with larger frames are rare.
const SEARCH_BYTES: u64 = 32 * 1_024;
/// Chains that are tried for one missing frame pointer.
const CANDIDATES_MAX: usize = 48;

/// One frame of a stack, before it has a name.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Frame {
    /// An address as image `image` states it, inside the instruction that was running or calling.
    Code {
        image: u32,
        address: u64,
    },
    /// An address in no file.
    Nameless(u64),
    Sleep(SleepCall),
    /// The thread was on a core inside the kernel: in a system call if the program's next instruction follows one.
    Kernel {
        in_system_call: bool,
    },
    /// The rest of the stack could not be followed.
    Lost,
    Unseen(Unseen),
}

/// Why time has no stack.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Unseen {
    Running,
    InKernel,
    Blocked,
}

/// How the frames of a run were found.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct UnwindCounts {
    /// Stacks unwound to the thread's first function.
    pub complete: u64,
    /// Stacks whose callers' end is missing.
    pub cut_off: u64,
    /// Stacks for which a missing frame pointer was found by its call of the very function.
    pub frame_pointers_recovered: u64,
    /// The same by a call through a pointer, which names no function.
    pub frame_pointers_guessed: u64,
    /// Samples of running threads that needed more of the stack than was copied with them.
    pub read_beyond_sample: u64,
}

/// Where unwinding starts.
#[derive(Copy, Clone, Debug)]
pub(super) struct Start {
    pub(super) instruction: u64,
    pub(super) stack: u64,
    pub(super) frame: Option<u64>,
}

/// The code of a process, by address, and how to unwind it.
pub(super) struct AddressSpace {
    mappings: Vec<(Mapping, Option<Placed>)>,
    pub(super) images: Vec<Image>,
    by_file: HashMap<(String, u64, String), u32>,
    unwinder: Unwinder<Vec<u8>>,
    modules: HashMap<(u32, u64), u64>,
    cache: Cache,
    /// While the frame pointer is unknown some rules fail, and framehop would remember the failure as the rule.
    cache_without_frame: Cache,
    call_sites: HashMap<u64, Option<CallSite>>,
    /// Mappings are read again when an address is unknown, but not for every wild value.
    reread_tickets: u32,
    pub(super) counts: UnwindCounts,
}

/// An image at its place in the process.
#[derive(Copy, Clone, Debug)]
struct Placed {
    image: u32,
    bias: u64,
}

/// How following a chain of callers ended.
#[derive(Copy, Clone)]
enum End {
    Root,
    Lost,
    /// The next step needs the frame pointer, which is not known.
    NeedsFrame(FrameAddress, UnwindRegs),
}

impl AddressSpace {
    pub(super) fn read(process: &Process) -> AddressSpace {
        let mut space = AddressSpace {
            mappings: Vec::new(),
            images: Vec::new(),
            by_file: HashMap::new(),
            unwinder: Unwinder::new(),
            modules: HashMap::new(),
            cache: Cache::new(),
            cache_without_frame: Cache::new(),
            call_sites: HashMap::new(),
            reread_tickets: 0,
            counts: UnwindCounts::default(),
        };
        space.reread(process);
        space
    }

    /// Lets unknown addresses lead to a new reading of the mappings again. Called a few times per second.
    pub(super) fn allow_reread(&mut self) {
        self.reread_tickets = 1;
    }

    /// The process runs another program now: nothing known about its addresses holds any more.
    pub(super) fn forget(&mut self, process: &Process) {
        for start in std::mem::take(&mut self.modules).into_values() {
            self.unwinder.remove_module(start);
        }
        self.call_sites.clear();
        self.mappings.clear();
        self.reread(process);
    }

    fn reread(&mut self, process: &Process) {
        let Ok(text) = process.maps() else { return };
        self.mappings.clear();
        let mut ranges: HashMap<(u32, u64), (u64, u64)> = HashMap::new();
        let mut new_sections = HashMap::new();
        for mapping in maps::parse(&text) {
            let placed = mapping.has_file().then(|| {
                let file = (mapping.device.clone(), mapping.inode, mapping.path.clone());
                let image = *self.by_file.entry(file).or_insert_with(|| {
                    let (image, sections) = Image::open(process, &mapping);
                    self.images.push(image);
                    let index = self.images.len() as u32 - 1;
                    new_sections.insert(index, sections);
                    index
                });
                Placed { image, bias: self.images[image as usize].bias(&mapping) }
            });
            if let Some(Placed { image, bias }) = placed {
                let range = ranges.entry((image, bias)).or_insert((mapping.start, mapping.end));
                *range = (range.0.min(mapping.start), range.1.max(mapping.end));
            }
            self.mappings.push((mapping, placed));
        }
        let gone: Vec<(u32, u64)> = self.modules.keys().filter(|key| !ranges.contains_key(*key)).copied().collect();
        for key in gone {
            if let Some(start) = self.modules.remove(&key) {
                self.unwinder.remove_module(start);
            }
        }
        for ((image, bias), (start, end)) in ranges {
            if self.modules.contains_key(&(image, bias)) {
                continue;
            }
            let opened = &self.images[image as usize];
            // The second place of one file (or a place after a remapping) needs its sections again; that is rare.
            let sections = new_sections.remove(&image).or_else(|| {
                let mapping = self.mappings.iter().find(|(mapping, _)| mapping.start == start)?;
                Some(Image::open(process, &mapping.0).1)
            });
            let sections: ExplicitModuleSectionInfo<Vec<u8>> = sections.unwrap_or_default();
            let base = bias.wrapping_add(opened.base);
            self.unwinder.add_module(Module::new(opened.name.clone(), start..end, base, sections));
            self.modules.insert((image, bias), start);
        }
    }

    /// The frame that an address stands for; nothing if no code is mapped there.
    fn locate(&self, address: u64) -> Option<Frame> {
        let after = self.mappings.partition_point(|(mapping, _)| mapping.start <= address);
        let (mapping, placed) = self.mappings.get(after.checked_sub(1)?)?;
        if address >= mapping.end {
            return None;
        }
        Some(match placed {
            Some(Placed { image, bias }) => Frame::Code { image: *image, address: address.wrapping_sub(*bias) },
            None => Frame::Nameless(address),
        })
    }

    fn locate_or_reread(&mut self, process: &Process, address: u64) -> Option<Frame> {
        let found = self.locate(address);
        if found.is_some() || self.reread_tickets == 0 {
            return found;
        }
        self.reread_tickets -= 1;
        self.reread(process);
        self.locate(address)
    }

    /// Appends the frames of a stack to `frames`, the innermost first.
    pub(super) fn unwind(
        &mut self,
        process: &Process,
        start: Start,
        reader: &mut StackReader<'_>,
        frames: &mut Vec<Frame>,
    ) {
        match self.locate_or_reread(process, start.instruction) {
            Some(frame) => frames.push(frame),
            None => frames.push(Frame::Lost),
        }
        let regs = UnwindRegs::new(start.instruction, start.stack, start.frame.unwrap_or(UNKNOWN));
        let from = FrameAddress::from_instruction_pointer(start.instruction);
        let mut end = self.follow(process, from, regs, reader, frames);
        if let End::NeedsFrame(address, regs) = end {
            end = self.recover(process, address, regs, reader, frames);
        }
        match end {
            End::Root => self.counts.complete += 1,
            End::Lost | End::NeedsFrame(..) => {
                self.counts.cut_off += 1;
                frames.push(Frame::Lost);
            }
        }
        self.counts.read_beyond_sample += u64::from(reader.read_beyond_sample());
    }

    fn follow(
        &mut self,
        process: &Process,
        mut address: FrameAddress,
        mut regs: UnwindRegs,
        reader: &mut StackReader<'_>,
        frames: &mut Vec<Frame>,
    ) -> End {
        while frames.len() < FRAMES_MAX {
            let before = regs;
            let is_unknown = before.bp() == UNKNOWN;
            let cache = if is_unknown { &mut self.cache_without_frame } else { &mut self.cache };
            match self.unwinder.unwind_frame(address, &mut regs, cache, &mut |address| reader.read(address)) {
                Ok(None) => return End::Root,
                Ok(Some(return_address)) => {
                    let Some(next) = FrameAddress::from_return_address(return_address) else { return End::Root };
                    let Some(frame) = self.locate_or_reread(process, next.address_for_lookup()) else {
                        return if is_unknown { End::NeedsFrame(address, before) } else { End::Lost };
                    };
                    frames.push(frame);
                    address = next;
                }
                Err(_) if is_unknown => return End::NeedsFrame(address, before),
                Err(_) => return End::Lost,
            }
        }
        End::Lost
    }

    /// Goes on from a frame that needs the frame pointer, with the most plausible one that the stack holds.
    fn recover(
        &mut self,
        process: &Process,
        address: FrameAddress,
        regs: UnwindRegs,
        reader: &mut StackReader<'_>,
        frames: &mut Vec<Frame>,
    ) -> End {
        let known = frames.len();
        let (named, unnamed) = self.candidates(process, address.address_for_lookup(), regs.sp(), reader);
        let tries = named.iter().map(|slot| (*slot, true)).chain(unnamed.iter().map(|slot| (*slot, false)));
        for (slot, is_named) in tries.take(CANDIDATES_MAX) {
            let mut regs = regs;
            regs.set_bp(slot);
            if let End::Root = self.follow(process, address, regs, reader, frames) {
                if is_named {
                    self.counts.frame_pointers_recovered += 1;
                } else {
                    self.counts.frame_pointers_guessed += 1;
                }
                return End::Root;
            }
            frames.truncate(known);
        }
        End::Lost
    }

    /// Slots that could be the frame pointer of the function around `instruction`, nearest first: those whose return
    /// address follows a call of that function, and those whose call does not say.
    fn candidates(
        &mut self,
        process: &Process,
        instruction: u64,
        stack: u64,
        reader: &mut StackReader<'_>,
    ) -> (Vec<u64>, Vec<u64>) {
        let function = self.function_start(instruction);
        let (mut named, mut unnamed) = (Vec::new(), Vec::new());
        for slot in (stack & !7..stack.saturating_add(SEARCH_BYTES)).step_by(8) {
            // The stack pointer of a program may be anything.
            let Ok(return_address) = reader.read(slot.saturating_add(8)) else { break };
            if self.locate(return_address.wrapping_sub(1)).is_none() {
                continue;
            }
            match self.call_before(process, return_address) {
                Some(CallSite::Direct { target }) if Some(target) == function => named.push(slot),
                // It called another function from that one's start: whatever it is, it is not our caller.
                Some(CallSite::Direct { target })
                    if function.is_some() && self.function_start(target) == Some(target) => {}
                Some(_) => unnamed.push(slot),
                None => {}
            }
        }
        (named, unnamed)
    }

    /// Where the function around an address starts, in the process's own addresses.
    fn function_start(&self, address: u64) -> Option<u64> {
        let Some(Frame::Code { image, address: stated }) = self.locate(address) else { return None };
        let bias = address.wrapping_sub(stated);
        Some(self.images[image as usize].function_start(stated)?.wrapping_add(bias))
    }

    fn call_before(&mut self, process: &Process, return_address: u64) -> Option<CallSite> {
        *self.call_sites.entry(return_address).or_insert_with(|| {
            let mut bytes = [0; CALL_BYTES_MAX];
            let length = process.memory.read(return_address.checked_sub(CALL_BYTES_MAX as u64)?, &mut bytes).ok()?;
            (length == CALL_BYTES_MAX).then(|| call_site::before(return_address, &bytes)).flatten()
        })
    }

    /// Whether the program's next instruction follows a `syscall`.
    pub(super) fn is_after_system_call(&self, process: &Process, instruction: u64) -> bool {
        let mut bytes = [0; 2];
        let read = instruction.checked_sub(2).map(|from| process.memory.read(from, &mut bytes));
        matches!(read, Some(Ok(2))) && bytes == [0x0f, 0x05]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_at_the_end_of_all_addresses_has_no_callers() {
        let process = Process::open(std::process::id()).unwrap();
        let mut space = AddressSpace::read(&process);
        for stack in [u64::MAX, u64::MAX - 7, u64::MAX - SEARCH_BYTES] {
            let mut reader = StackReader::asleep(&process.memory, stack);
            assert_eq!(space.candidates(&process, 0x1000, stack, &mut reader), (vec![], vec![]), "{stack:x}");
        }
    }
}
