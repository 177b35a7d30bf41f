// Sections: what a capture file consists of after its header, and the order in which they stand.
//
//   byte   0      1..5        5..9            9..9+length
//          | kind | length    | checksum      | payload    |

import { crc32 } from "./crc32.ts";
import { Cursor } from "./cursor.ts";
import { damaged, notACapture, unexpectedSection, unknownVersion } from "./read_error.ts";

export const MAGIC = new TextEncoder().encode("throng-capture");
export const VERSION = 2;
export const VERSION_MIN = 1;

/** Kinds by name, in the order in which they stand in a file. Numbers only tell them apart. */
export const Kind = {
  About: 1,
  Sites: 2,
  CommonSites: 3,
  Worlds: 4,
  Locks: 5,
  Counters: 6,
  Threads: 7,
  Events: 8,
  Frames: 9,
  Logs: 10,
  MemoryMoments: 11,
  MemoryRows: 12,
  Processes: 13,
  HostThreads: 15,
  Cores: 16,
  CoreRuns: 17,
  HostStalls: 18,
  End: 14,
} as const;

const ORDER: readonly number[] = Object.values(Kind);

/** The first is About and stands once; the others may be missing or go on, in their order. */
export function mayFollow(kind: number, before: number | undefined): boolean {
  if (before === undefined) return kind === Kind.About;
  return ORDER.indexOf(kind) > ORDER.indexOf(before) || (kind === before && kind !== Kind.About);
}

/** The version in the file's first bytes. */
export function version(file: Cursor): number {
  if (file.end < MAGIC.length || MAGIC.some((byte, index) => file.file[index] !== byte)) throw notACapture();
  file.take(MAGIC.length);
  const version = file.uint16();
  if (version < VERSION_MIN || version > VERSION) throw unknownVersion(version, VERSION_MIN, VERSION);
  return version;
}

/** The section that begins here, whole; its payload as a cursor. */
export function next(file: Cursor): { kind: number; payload: Cursor } {
  const offset = file.offset;
  const kind = file.byte();
  const length = file.uint32();
  const expected = file.uint32();
  const begin = file.take(length);
  const ofHeader = crc32(file.file, offset, offset + 5);
  if (crc32(file.file, begin, begin + length, ofHeader) !== expected) throw damaged(offset);
  if (!ORDER.includes(kind)) throw unexpectedSection(offset, kind);
  return { kind, payload: new Cursor(file.file, begin, begin + length) };
}
