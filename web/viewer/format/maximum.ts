// How many of each thing a capture file may hold: the figures of `throng_capture::format::maximum`.

export const TEXT_BYTES = 1 << 20;
export const SITES = 1 << 16;
export const COMMON_SITES = 80;
export const WORLDS = 1 << 20;
export const LOCKS = 1 << 16;
export const COUNTERS = 1 << 16;
export const THREADS = 1 << 12;
/** Of one thread. */
export const EVENTS = 1 << 26;
export const FRAMES = 1 << 20;
export const FRAME_THREADS = THREADS;
export const LOGS = 1 << 20;
export const MEMORY_MOMENTS = 1 << 16;
export const MEMORY_ROWS = 1 << 17;
export const PROCESSES = 1 << 16;
export const HOST_THREADS = 1 << 16;
export const CORES = 1 << 12;
/** Of one core. */
export const CORE_RUNS = 1 << 24;
export const HOST_STALLS = 1 << 20;

/** What all lists together may take, each element counted as the Rust reader counts it (bytes). */
export const MEMORY_BYTES = 2 ** 31;

/**
 * How far from the capture's begin a time may lie (ns): 104 days, so that a double holds each nanosecond. The Rust
 * reader has 64 bits and takes more; no recorder keeps that long.
 */
export const TIME_NS = Number.MAX_SAFE_INTEGER;
