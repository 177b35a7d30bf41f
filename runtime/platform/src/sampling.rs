//! Another process's threads: where they are on a core, and what is in their memory, without stopping them.
//!
//! A thread on a core is sampled by the kernel: a timer that runs with the thread's own processor time takes its
//! registers and the top of its stack into a ring shared with this process ([`CpuSampler`]), and on request notes when
//! it got and left a core. A thread that sleeps has a stack that nobody changes, so reading its memory is enough
//! ([`ProcessMemory`]). Neither sends a signal nor stops the thread: a sleeping thread that is interrupted would return
//! from `epoll_wait` with an error.
//!
//! The same rights are needed as for a debugger: the same user, or CAP_SYS_PTRACE; samples of time inside the kernel
//! need `kernel.perf_event_paranoid` <= 1 or CAP_PERFMON as well. Any thread. Opening maps a ring of the size asked
//! for, which counts as locked memory; a sample costs the sampled thread the copying of its stack, 2 to 6 us, and a
//! noted switch about 2 us.

use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use perf_event::events::Software;
use perf_event::{Builder, Clock, Counter, SampleFlag, Sampler, data};

use crate::perf::{SWITCH, SWITCH_OUT, SWITCH_OUT_PREEMPT};

/// The registers from which a stack is unwound.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    pub instruction: u64,
    pub stack: u64,
    pub frame: u64,
}

/// One sample of a thread that had a core.
pub struct CpuSample<'a> {
    /// Of the user's program, also when the thread was inside the kernel: what it will return to.
    pub registers: Registers,
    /// The bytes from `registers.stack` upwards, at most as many as were asked for.
    pub stack: &'a [u8],
    pub in_kernel: bool,
}

/// What a ring holds.
pub enum CpuRecord<'a> {
    Sample(CpuSample<'a>),
    /// It got a core. (ns, [`monotonic_ns`](crate::ticks::monotonic_ns))
    OnCore {
        at_ns: u64,
    },
    /// It left its core: preempted, if it could have gone on, and otherwise to sleep.
    OffCore {
        at_ns: u64,
        was_preempted: bool,
        registers: Option<Registers>,
    },
}

/// Whether samples show time inside the kernel, such as in a system call that copies.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum KernelTime {
    Sampled,
    Left,
}

/// What a [`CpuSampler`] takes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CpuSampling {
    /// Processor time of the thread between two samples (ns, >= 100,000). Too low → the thread is slowed by its
    /// samples; too high → few samples.
    pub period_ns: u64,
    /// Bytes of the stack per sample (multiple of 8, <= 65,528). Too low → deep stacks are cut off.
    pub stack_bytes: u32,
    /// Size of the ring (bytes, rounded up to a power of two). Too low → samples are lost between two readings.
    pub ring_bytes: usize,
    pub kernel_time: KernelTime,
    /// Whether to note every switch to and from a core as well. For a thread with 50,000 switches/s that is a sixth of
    /// a core.
    pub switches: bool,
}

/// What one reading of the ring found.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    pub samples: u64,
    /// Records the kernel had no room for.
    pub lost: u64,
}

/// Samples of one thread while it is on a core, taken by the kernel from the opening on.
pub struct CpuSampler {
    sampler: Sampler,
    /// Writes the registers of a thread that leaves its core into the ring of `sampler`, just before the switch itself.
    departures: Option<Counter>,
}

/// Bits of `enum perf_event_x86_regs`; the values arrive in the order of their bits.
#[cfg(target_arch = "x86_64")]
const REGISTER_MASK: u64 = FRAME_BIT | STACK_BIT | INSTRUCTION_BIT;
#[cfg(target_arch = "x86_64")]
const FRAME_BIT: u64 = 1 << 6;
#[cfg(target_arch = "x86_64")]
const STACK_BIT: u64 = 1 << 7;
#[cfg(target_arch = "x86_64")]
const INSTRUCTION_BIT: u64 = 1 << 8;

/// Elsewhere other registers are needed to unwind, and there are no samples: [`CpuSampler::open`] fails.
#[cfg(not(target_arch = "x86_64"))]
const REGISTER_MASK: u64 = 0;

impl CpuSampler {
    /// Fails with `PermissionDenied` where the host forbids it (EACCES, or EPERM for the locked memory of the ring),
    /// and with `NotFound` or ESRCH when the thread has ended.
    pub fn open(thread_id: u32, sampling: CpuSampling) -> io::Result<CpuSampler> {
        if REGISTER_MASK == 0 {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "stacks are sampled on x86-64 only"));
        }
        let thread_id = i32::try_from(thread_id).map_err(|_| io::ErrorKind::NotFound)?;
        let open = |event, period, stack_bytes, switches| {
            let mut builder = Builder::new(event);
            builder
                .observe_pid(thread_id)
                .any_cpu()
                .sample_period(period)
                .sample(SampleFlag::IDENTIFIER)
                .sample(SampleFlag::IP)
                .sample(SampleFlag::TIME)
                .sample(SampleFlag::REGS_USER)
                .sample(SampleFlag::STACK_USER)
                .sample_regs_user(REGISTER_MASK)
                .sample_stack_user(stack_bytes)
                .sample_id_all(true)
                .clockid(Clock::MONOTONIC)
                .context_switch(switches)
                .enabled(true);
            if sampling.kernel_time == KernelTime::Sampled {
                builder.include_kernel();
            }
            builder.build()
        };
        let clock = open(Software::CPU_CLOCK, sampling.period_ns, sampling.stack_bytes, sampling.switches)?;
        let sampler = clock.sampled(sampling.ring_bytes)?;
        // A switch happens inside the kernel: without its time there is no such sample.
        let departures = match sampling.kernel_time {
            KernelTime::Sampled if sampling.switches => {
                let departures = open(Software::CONTEXT_SWITCHES, 1, STACK_BYTES_MIN, false)?;
                write_into_ring_of(&departures, sampler.as_counter())?;
                Some(departures)
            }
            _ => None,
        };
        Ok(CpuSampler { sampler, departures })
    }

    /// Hands out every record since the last call, oldest first, and makes room for the next ones.
    pub fn drain(&mut self, mut each: impl FnMut(CpuRecord<'_>)) -> Drained {
        let mut drained = Drained::default();
        let departures = self.departures.as_ref().map(Counter::id);
        let mut left_at = None;
        while let Some(record) = self.sampler.next_record() {
            if record.ty() == SWITCH {
                // Nothing is in it but the time and the event's number, as the last things.
                let bytes = record.to_contiguous();
                let Some(time) = bytes.last_chunk::<16>().and_then(|end| end.first_chunk::<8>()) else { continue };
                let (at_ns, misc) = (u64::from_le_bytes(*time), record.misc());
                let (is_off, was_preempted) = (misc & SWITCH_OUT != 0, misc & SWITCH_OUT_PREEMPT != 0);
                let registers = left_at.take();
                each(match is_off {
                    true => CpuRecord::OffCore { at_ns, was_preempted, registers },
                    false => CpuRecord::OnCore { at_ns },
                });
                continue;
            }
            let in_kernel = record.misc() & MISC_CPU_MODE == CPU_MODE_KERNEL;
            match record.parse_record() {
                Ok(data::Record::Sample(sample)) => {
                    // Without registers it is a moment in which the thread had no user program, as while it ends.
                    let Some(registers) = sample.regs_user().and_then(|registers| in_order(&registers.regs)) else {
                        continue;
                    };
                    if departures.is_some() && sample.id() == departures {
                        left_at = Some(registers);
                        continue;
                    }
                    drained.samples += 1;
                    let stack = sample.stack_user().unwrap_or_default();
                    each(CpuRecord::Sample(CpuSample { registers, stack, in_kernel }));
                }
                Ok(data::Record::Lost(lost)) => drained.lost += lost.lost,
                _ => {}
            }
        }
        drained
    }
}

/// From the kernel's perf_event.h: PERF_RECORD_MISC_CPUMODE_MASK and PERF_RECORD_MISC_KERNEL.
const MISC_CPU_MODE: u16 = 7;
const CPU_MODE_KERNEL: u16 = 1;

/// The least of a stack that the kernel copies: samples of both events must be of one shape.
const STACK_BYTES_MIN: u32 = 8;

fn write_into_ring_of(event: &Counter, other: &Counter) -> io::Result<()> {
    // SAFETY: both are open perf events of this process; the call takes plain numbers and touches no memory of ours.
    let result = unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, other.as_raw_fd()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// PERF_EVENT_IOC_SET_OUTPUT of perf_event.h: `_IO('$', 5)`.
const SET_OUTPUT: libc::c_ulong = 0x2405;

fn in_order(values: &[u64]) -> Option<Registers> {
    match *values {
        [frame, stack, instruction] => Some(Registers { instruction, stack, frame }),
        _ => None,
    }
}

/// The memory of another process, read while it runs.
#[derive(Copy, Clone, Debug)]
pub struct ProcessMemory {
    process: Pid,
}

impl ProcessMemory {
    /// Opens nothing: whether reading is allowed shows at the first reading.
    pub fn of(process_id: u32) -> ProcessMemory {
        ProcessMemory { process: Pid::from_raw(i32::try_from(process_id).unwrap_or(i32::MAX)) }
    }

    /// Copies what stands at `address`, and returns how many bytes could be: fewer than asked for where the mapping
    /// ends. Fails where nothing is mapped, and with EPERM where it is forbidden.
    pub fn read(&self, address: u64, into: &mut [u8]) -> io::Result<usize> {
        let source = RemoteIoVec { base: address as usize, len: into.len() };
        Ok(process_vm_readv(self.process, &mut [IoSliceMut::new(into)], &[source])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::this_thread_id;
    use crate::ticks::monotonic_ns;
    use std::hint::black_box;

    #[test]
    fn memory_of_this_process_reads_as_it_is_and_stops_where_nothing_is_mapped() {
        let memory = ProcessMemory::of(std::process::id());
        let here = [1_u8, 2, 3, 4];
        let mut copy = [0; 4];
        assert_eq!(memory.read(here.as_ptr() as u64, &mut copy).unwrap(), 4);
        assert_eq!(copy, here);
        assert!(memory.read(8, &mut copy).is_err(), "the first page is never mapped");
        assert!(ProcessMemory::of(u32::MAX).read(here.as_ptr() as u64, &mut copy).is_err());
    }

    /// Also shows that a forbidden sampler is an error and no panic, on hosts that forbid it.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn a_busy_thread_is_sampled_with_the_top_of_its_stack() {
        let sampling = CpuSampling {
            period_ns: 500_000,
            stack_bytes: 1_024,
            ring_bytes: 64 * 1_024,
            kernel_time: KernelTime::Left,
            switches: true,
        };
        let mut sampler = match CpuSampler::open(this_thread_id(), sampling) {
            Ok(sampler) => sampler,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
                crate::testing::not_permitted(&format!("samples of a thread, which take CAP_PERFMON: {error}"));
                return;
            }
        };
        let here = &raw const sampling as u64;
        let (mut drained, mut near, begun) = (Drained::default(), 0, monotonic_ns());
        let mut switched = Vec::new();
        std::thread::sleep(std::time::Duration::from_millis(2));
        while drained.samples < 10 {
            (0..100_000).for_each(|n| {
                black_box(n);
            });
            drained.samples += sampler
                .drain(|record| match record {
                    CpuRecord::Sample(sample) => {
                        assert!(!sample.in_kernel);
                        assert!(sample.stack.len() <= 1_024 && sample.registers.instruction != 0);
                        near += u32::from(sample.registers.stack.abs_diff(here) < 1 << 20);
                    }
                    CpuRecord::OffCore { at_ns, was_preempted, .. } => switched.push((at_ns, Some(was_preempted))),
                    CpuRecord::OnCore { at_ns } => switched.push((at_ns, None)),
                })
                .samples;
        }
        assert!(near >= 10, "{near} samples have a stack pointer on this thread's stack");
        let slept = switched.iter().position(|(_, off)| *off == Some(false)).unwrap();
        assert!(switched.is_sorted() && (begun..=monotonic_ns()).contains(&switched[slept].0));
        assert!(switched[slept + 1].0 - switched[slept].0 >= 2_000_000 && switched[slept + 1].1.is_none());
    }

    #[test]
    fn a_thread_that_is_not_there_is_an_error() {
        let sampling = CpuSampling {
            period_ns: 1_000_000,
            stack_bytes: 512,
            ring_bytes: 4_096,
            kernel_time: KernelTime::Left,
            switches: false,
        };
        assert!(CpuSampler::open((1 << 22) - 1, sampling).is_err());
        assert!(CpuSampler::open(u32::MAX, sampling).is_err());
    }
}
