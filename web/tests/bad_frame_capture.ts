// A second of a small server in which everything occurs: one frame is bad, because the world dark-zone 7 waits for a
// lock that a long task has, and then takes too long in `ai.path`.

import { CaptureWriter } from "./capture_writer.ts";

const MS = 1_000_000;
const BEGIN = 90_000 * MS;
export const BAD_FRAME = 530;

const SITES = [
  { name: "frame", category: "other", budgetNs: 17 * MS },
  { name: "world.tick", category: "gameplay", budgetNs: 8 * MS },
  { name: "net.receive", category: "network" },
  { name: "ai.think", category: "gameplay", budgetNs: 3 * MS },
  { name: "ai.path", category: "physics", budgetNs: 2 * MS },
  { name: "movement.step", category: "movement" },
  { name: "replication.snapshot", category: "replication" },
  { name: "occlusion.cast", category: "fog-of-war" },
  { name: "saves.write", category: "other" },
  { name: "idle.frame", category: "idle" },
];
const [FRAME, TICK, RECEIVE, THINK, PATH, MOVE, SNAPSHOT, CAST, SAVE, IDLE] = SITES.keys();

/** `slower` lengthens every `movement.step`, for captures to compare. */
export function badFrameCapture(slower = 1): Uint8Array<ArrayBuffer> {
  const frames = Array.from({ length: 60 }, (_, frame) => {
    const number = 500 + frame;
    const begin = BEGIN + frame * 16.6 * MS + (number > BAD_FRAME ? 20 * MS : 0);
    return { number, begin: Math.round(begin), end: Math.round(begin + (number === BAD_FRAME ? 36.6 : 16.6) * MS), budget: 16_666_667 };
  });
  const bad = frames.find(({ number }) => number === BAD_FRAME)!;
  const end = frames.at(-1)!.end + MS;
  const writer = new CaptureWriter({
    beginNs: BEGIN,
    endNs: end,
    frame: BAD_FRAME,
    game: "precinct",
    trigger: { kind: 1, name: "", measured: 36_600_000, allowed: 16_666_667, world: 7, atNs: bad.end, note: "" },
  });
  writer.sites(SITES);
  writer.worlds([
    { id: 3, name: "hideout", tickHz: 20 },
    { id: 5, name: "hub", tickHz: 20 },
    { id: 7, name: "dark-zone", tickHz: 30 },
  ]);
  writer.locks(["levels", "saves"]).counters(["clients", "queue"]);
  writer.threads([
    { name: "frame", tid: 100, class: 1 },
    { name: "worker 1", tid: 101, class: 2 },
    { name: "long 0", tid: 102, class: 3 },
    { name: "admin", tid: 103, class: 0 },
  ]);
  writer.beginThread(0);
  for (const { begin, end, number } of frames) {
    writer.runs(begin, 0).scope(RECEIVE!, begin + 20_000, begin + 900_000).allocations(4, 3, 2_048);
    writer.world(begin + MS, 3, number).scope(MOVE!, begin + MS, begin + MS + 600_000 * slower);
    writer.scope(TICK!, begin + MS, begin + 3 * MS).world(begin + 3 * MS, 5, number);
    writer.scope(SNAPSHOT!, begin + 4 * MS, begin + 5 * MS).allocations(1, 0, 512);
    writer.scope(TICK!, begin + 3 * MS, begin + 6 * MS).world(begin + 6 * MS, undefined, 0);
    writer.count(begin + 6 * MS, 0, 40 + (number % 7)).count(begin + 6 * MS, 1, (number * 37) % 11);
    writer.blocked(begin + 6.2 * MS).runs(end - 50_000, 0).scope(IDLE!, begin + 6.1 * MS, end - 30_000).scope(FRAME!, begin, end - 10_000);
  }
  writer.endThread().beginThread(1);
  for (const { begin, number } of frames) {
    const isBad = number === BAD_FRAME;
    let at = begin + 500_000;
    const tickBegin = at;
    writer.world(at, 7, number).runs(at, 1);
    if (isBad) {
      writer.blocked(at + 100_000).runs(at + 9 * MS, 1);
      writer.wait(0, at + 90_000, at + 9 * MS, { thread: 2, site: SAVE! });
      at += 9 * MS;
    }
    const thinkBegin = at;
    const paths = isBad ? 12 : 3;
    for (let path = 0; path < paths; path++) {
      const took = isBad ? 1_600_000 + (path === 7 ? 2 * MS : 0) : 240_000;
      if (isBad && path === 4) writer.preempted(at + 300_000).runs(at + 1_100_000, 1);
      writer.scope(PATH!, at + 20_000, at + took);
      if (isBad) writer.pageFault(at + took);
      at += took + 40_000;
    }
    if (isBad) writer.largeAllocation(at, 9_000_000);
    writer.scope(THINK!, thinkBegin, at).allocations(12, 2, 90_000);
    for (let cast = 0; cast < 20; cast++) {
      writer.scope(CAST!, at + 2_000, at + 30_000);
      at += 31_000;
    }
    writer.scope(SNAPSHOT!, at, at + 700_000).scope(TICK!, tickBegin, at + 720_000);
    writer.world(at + 730_000, undefined, 0).blocked(at + 740_000);
  }
  writer.endThread().beginThread(2);
  writer.runs(BEGIN, 1).blocked(BEGIN + 3 * MS).runs(bad.begin - 4 * MS, 0).scope(SAVE!, bad.begin - 4 * MS, bad.begin + 9.4 * MS);
  writer.blocked(bad.begin + 9.5 * MS).openScope(SAVE!, end - 20 * MS);
  writer.endThread();
  writer.frames(
    frames.map((frame) => {
      const wall = frame.end - frame.begin;
      return { ...frame, parts: [{ thread: 0, running: 6 * MS, waiting: 0, blocked: wall - 6 * MS }] };
    }),
  );
  writer.logs([
    { at: bad.begin + 2 * MS, thread: 1, level: "warn", target: "precinct::dark_zone", text: "levels are being written; waiting" },
    { at: bad.end, thread: 0, level: "error", target: "throng::frame", text: "frame 530 took 36.6 ms" },
    { at: bad.end + 40 * MS, thread: 0, level: "info", target: "throng::saves", text: "written" },
  ]);
  writer.memory(
    Array.from({ length: 10 }, (_, at) => BEGIN + at * 100 * MS),
    [{ site: PATH!, bytes: Array.from({ length: 10 }, (_, at) => 1_000_000 + at * 300_000) }, { bytes: Array<number>(10).fill(5_000_000) }],
  );
  writer.processes([{ pid: 4_711, name: "backup", cores: 0.7 }]);
  writer.hostThreads([
    { pid: 1, tid: 101, owner: 1, name: "worker 1", process: "precinct" },
    { pid: 4_711, tid: 4_712, owner: 0, name: "rsync", process: "backup" },
    { pid: 0, tid: 0, owner: 2, name: "", process: "" },
  ]);
  const pathBegin = bad.begin + 500_000 + 9 * MS + 4 * 1_640_000;
  writer.cores([
    {
      number: 1,
      runs: [
        { at: BEGIN, thread: 2 },
        { at: bad.begin + 500_000, thread: 0 },
        { at: bad.begin + 600_000, thread: 2 },
        { at: bad.begin + 9.5 * MS, thread: 0 },
        { at: pathBegin + 300_000, thread: 1 },
        { at: pathBegin + 1_100_000, thread: 0 },
        { at: bad.end - 2 * MS, thread: 2 },
      ].map(({ at, thread }) => ({ at: Math.round(at), thread })),
    },
  ]);
  writer.stalls([{ core: 1, begin: bad.end + 50 * MS, end: bad.end + 52 * MS }]);
  return writer.done();
}
