// The worker: takes a capture file apart, away from the page's own thread. Large files are shared with helpers, which
// are workers of the same program: threads of a capture have nothing to do with each other.
//
//   page --file--> worker: checks all sections, reads all but events
//                    |--some threads--> helper: events, rows, summaries --+
//                    |  other threads itself                              |
//                    +--- everything together <---------------------------+--> page

import { ReadError } from "./format/read_error.ts";
import { readEvents, roomOf, scan, type Ranges, type Scanned } from "./format/read.ts";
import { buffersOf, prepareThreads, together, type Prepared, type Share } from "./prepare/prepare.ts";

/** A file as it is, or compressed with gzip and in base64, as a page carries it. */
export type Order = { file: ArrayBuffer } | { packed: string };
export type Answer = { prepared: Prepared; bytes: number; readMs: number } | { error: string };

/** Some of a capture's threads, for a helper. */
interface Errand {
  file: Uint8Array;
  scanned: Pick<Scanned, "counts" | "commonSites" | "timeMin"> & { capture: Pick<Scanned["capture"], "about" | "sites"> };
  leftBytes: number;
  threads: { index: number; thread: Scanned["capture"]["threads"][number]; ranges: Ranges }[];
}
type Returned = { share: Share } | { error: string; offset: number };

/** What a page's own capture may unpack to (bytes): as much as the reader takes. */
const UNPACKED_BYTES_MAX = 2 ** 31;
/** Smaller files are not worth a helper (bytes). */
const SHARED_BYTES_MIN = 4 << 20;
const HELPERS_MAX = 3;
/** What a byte of events can take in memory at most: two make an event of 48. */
const MEMORY_PER_BYTE = 24;

async function open(order: Order): Promise<Answer> {
  try {
    const file = "file" in order ? new Uint8Array(order.file) : await unpack(order.packed);
    const began = performance.now();
    const helpers = startHelpers(file.length);
    const scanned = scan(file);
    const shares = await shared(file, scanned, helpers);
    helpers.forEach((helper) => helper.terminate());
    const prepared = together(scanned.capture, shares);
    return { prepared, bytes: file.length, readMs: performance.now() - began };
  } catch (error) {
    if (error instanceof ReadError) return { error: error.message };
    if (error instanceof RangeError) return { error: "the capture is larger than this browser has memory for" };
    return { error: `the capture cannot be opened: ${error instanceof Error ? error.message : String(error)}` };
  }
}

/** Before it is known whether there is work for them: a worker takes as long to start as a file to be checked. */
function startHelpers(fileBytes: number): Worker[] {
  if (fileBytes < SHARED_BYTES_MIN) return [];
  const count = Math.min((navigator.hardwareConcurrency || 1) - 1, HELPERS_MAX);
  try {
    return Array.from({ length: count }, () => new Worker(self.location.href));
  } catch {
    return [];
  }
}

/** All threads, by this worker and its helpers. */
async function shared(file: Uint8Array, scanned: Scanned, helpers: readonly Worker[]): Promise<Share[]> {
  const { capture, events, counts, commonSites, timeMin, room } = scanned;
  const bytes = (ranges: Ranges) => ranges.reduce((sum, [begin, end]) => sum + end - begin, 0);
  const threads = capture.threads.map((thread, index) => {
    const ranges = events[index] ?? [];
    return { index, thread, ranges, bytes: bytes(ranges) };
  });
  const total = threads.reduce((sum, { bytes }) => sum + bytes, 0);
  const busy = threads.filter(({ bytes }) => bytes > SHARED_BYTES_MIN / 8).length;
  // Helpers do not know of each other's memory: whatever they read has to fit.
  const fits = total * MEMORY_PER_BYTE <= room.leftBytes;
  const workers = fits ? Math.max(1, Math.min(helpers.length + 1, busy)) : 1;
  const errands = Array.from({ length: workers }, (): Errand => ({
    file,
    scanned: { capture: { about: capture.about, sites: capture.sites }, counts, commonSites, timeMin },
    leftBytes: room.leftBytes,
    threads: [],
  }));
  const loads = new Float64Array(workers);
  // The largest first, each to whom has least.
  for (const thread of threads.sort((a, b) => b.bytes - a.bytes)) {
    const least = loads.indexOf(Math.min(...loads));
    loads[least]! += thread.bytes;
    errands[least]!.threads.push(thread);
  }
  const helped = errands.slice(1).map((errand, at) => sendOut(helpers[at]!, errand));
  const own = runErrand(errands[0]!);
  const returned = [own, ...(await Promise.all(helped))];
  const refused = returned.filter((it) => "error" in it).sort((a, b) => a.offset - b.offset)[0];
  if (refused) throw new ReadError(refused.error, refused.offset);
  return returned.filter((it) => "share" in it).map(({ share }) => share);
}

/** Has a helper do it, with those bytes alone; what a helper cannot do or refuses is done here, where bytes have their places. */
function sendOut(helper: Worker, errand: Errand): Promise<Returned> {
  return new Promise((resolve) => {
    helper.onmessage = ({ data }: MessageEvent<Returned>) => resolve("error" in data ? runErrand(errand) : data);
    helper.onerror = (event) => {
      event.preventDefault();
      resolve(runErrand(errand));
    };
    const all = errand.threads.flatMap(({ ranges }) => ranges);
    const file = new Uint8Array(all.reduce((sum, [begin, end]) => sum + end - begin, 0));
    let at = 0;
    const moved = ([begin, end]: Ranges[number]): Ranges[number] => {
      file.set(errand.file.subarray(begin, end), at);
      at += end - begin;
      return [at - (end - begin), at];
    };
    const threads = errand.threads.map((thread) => ({ ...thread, ranges: thread.ranges.map(moved) }));
    helper.postMessage({ ...errand, file, threads }, [file.buffer]);
  });
}

function runErrand({ file, scanned, leftBytes, threads }: Errand): Returned {
  const context = { ...scanned, room: roomOf(leftBytes) };
  try {
    const share = prepareThreads(
      scanned.capture,
      threads.map(({ index, thread, ranges }) => ({ index, thread, events: () => readEvents(file, ranges, context) })),
    );
    return { share };
  } catch (error) {
    if (error instanceof ReadError) return { error: error.message, offset: error.offset };
    throw error;
  }
}

async function unpack(base64: string): Promise<Uint8Array> {
  const packed = fromBase64(base64);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    length += value.length;
    if (length > UNPACKED_BYTES_MAX) throw new Error("it unpacks to more than 2 GiB");
    chunks.push(value);
  }
  const file = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    file.set(chunk, at);
    at += chunk.length;
  }
  return file;
}

/** Four letters at a time: `atob` makes a text of the same length first. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const values = new Uint8Array(128);
  for (let value = 0; value < 64; value++) values[letters.charCodeAt(value)] = value;
  const codes = new TextEncoder().encode(text);
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const bytes = new Uint8Array(Math.floor(codes.length / 4) * 3);
  for (let from = 0, to = 0; from + 3 < codes.length; from += 4, to += 3) {
    const four =
      (values[codes[from]! & 127]! << 18) |
      (values[codes[from + 1]! & 127]! << 12) |
      (values[codes[from + 2]! & 127]! << 6) |
      values[codes[from + 3]! & 127]!;
    bytes[to] = four >> 16;
    bytes[to + 1] = four >> 8;
    bytes[to + 2] = four;
  }
  return bytes.subarray(0, bytes.length - padding);
}

self.onmessage = async ({ data }: MessageEvent<Order | Errand>) => {
  const answer = "threads" in data ? runErrand(data) : await open(data);
  self.postMessage(answer, { transfer: "error" in answer ? [] : buffersOf(answer) });
};
