// A capture as a busy server would make it, of any size: four threads that tick worlds, each tick a tree of scopes.
//
// What stands between the scopes is as dense as in a second of `precinct` with 100 players on two cores, where a worker's
// 26,000 scopes came with 325 switches, 30 allocations and 2 page faults. Nobody waited for a lock there; here a thread does
// once in 60 ticks, so that waits are drawn as well.

import { CaptureWriter } from "./capture_writer.ts";

const SITES = [
  { name: "frame", category: "other", budgetNs: 16_000_000 },
  { name: "world.tick", category: "gameplay", budgetNs: 900_000 },
  { name: "net.receive", category: "network" },
  { name: "net.open", category: "network" },
  { name: "ai.think", category: "gameplay" },
  { name: "ai.path", category: "physics" },
  { name: "query.cast", category: "physics" },
  { name: "movement.step", category: "movement" },
  { name: "combat.hit", category: "equipment" },
  { name: "occlusion.cast", category: "fog-of-war" },
  { name: "replication.collect", category: "replication" },
  { name: "replication.interest", category: "replication" },
  { name: "replication.snapshot", category: "replication" },
  { name: "net.send", category: "network" },
];
const THREADS = 4;
const LOCKS = ["levels", "paths"];
const COUNTERS = ["clients", "queue"];
/** Ticks between two waits for a lock, two losses of the core, two page faults and two large allocations, of a thread. */
const EVERY_TICKS = { wait: 60, lostCore: 25, pageFault: 80, largeAllocation: 2_000 };
/** Of the parts of a tick, one in so many allocates. */
const ALLOCATES_ONE_IN = 220;
/** Ticks between two readings of the counters. */
const COUNTED_EVERY_TICKS = 64;
const BEGIN_NS = 3_600_000_000_000;
const WORLDS = 12;

/** The same bytes for the same number of scopes. */
export function largeCapture(scopes: number): Uint8Array<ArrayBuffer> {
  let seed = 12_345;
  const random = (below: number) => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  // What a tick has: 2 + 4 leaves for each of its parts.
  const parts = 40;
  const perTick = 2 + parts * 4;
  const ticksPerThread = Math.ceil(scopes / THREADS / perTick);
  const tickNs = 250_000;
  const endNs = BEGIN_NS + ticksPerThread * tickNs + 1_000_000;
  const badNs = 31_000_000;
  const frameNs = 16_666_667;
  const frames = Math.max(1, Math.floor((ticksPerThread * tickNs - badNs) / frameNs));
  const bad = Math.floor(frames / 2);
  const writer = new CaptureWriter({
    beginNs: BEGIN_NS,
    endNs,
    frame: 1_000 + bad,
    build: "throng 0.1.0 (made up)",
    game: "large",
    trigger: {
      kind: 1,
      name: "",
      measured: badNs,
      allowed: frameNs,
      atNs: BEGIN_NS + bad * frameNs + badNs,
      note: "",
    },
  });
  writer.sites(SITES);
  writer.worlds(Array.from({ length: WORLDS }, (_, world) => ({ id: world, name: "hideout", tickHz: 60 })));
  writer.locks(LOCKS).counters(COUNTERS);
  writer.threads(
    Array.from({ length: THREADS }, (_, thread) => ({
      name: thread === 0 ? "frame" : `worker ${thread}`,
      tid: 100 + thread,
      class: thread === 0 ? 1 : 2,
    })),
  );
  // Each thread has a core of its own, which idles between ticks, and now and then has another process's thread.
  const [idle, foreign] = [THREADS, THREADS + 1];
  const cores = Array.from({ length: THREADS }, (_, number) => ({ number, runs: [{ at: BEGIN_NS, thread: idle }] }));
  let left = scopes;
  for (let thread = 0; thread < THREADS; thread++) {
    writer.beginThread(thread);
    for (let tick = 0; tick < ticksPerThread && left > 0; tick++) {
      const begin = BEGIN_NS + tick * tickNs;
      const { runs } = cores[thread]!;
      // Threads do not do it all at once.
      const isTime = (every: number) => (tick + 7 * thread) % every === every - 1;
      writer.runs(begin, thread).world(begin, random(WORLDS), tick);
      runs.push({ at: begin, thread });
      let at = begin + 1_000;
      const tickBegin = at;
      for (let part = 0; part < parts && left > 2; part++) {
        const partBegin = at;
        for (let leaf = 0; leaf < 3 && left > 2; leaf++) {
          const site = 5 + random(SITES.length - 5);
          at += 100 + random(200);
          const end = at + 300 + random(900);
          writer.scope(site, at, end);
          at = end;
          left--;
        }
        at += 50 + random(100);
        writer.scope(2 + random(3), partBegin, at);
        left--;
        if (random(ALLOCATES_ONE_IN) === 0) writer.allocations(1 + random(8), random(8), 64 << random(8));
        at += 100;
        if (part !== parts / 2) continue;
        if (isTime(EVERY_TICKS.wait)) {
          const lasts = 5_000 + random(20_000);
          writer.wait(random(LOCKS.length), at, at + lasts, { thread: (thread + 1) % THREADS, site: 5, world: random(WORLDS) });
          at += lasts + 100;
        }
        if (isTime(EVERY_TICKS.lostCore)) {
          const lasts = 5_000 + random(40_000);
          writer.preempted(at).runs(at + lasts, thread);
          runs.push({ at, thread: foreign }, { at: at + lasts, thread });
          at += lasts + 100;
        }
        if (isTime(EVERY_TICKS.pageFault)) writer.pageFault(at++);
        if (isTime(EVERY_TICKS.largeAllocation)) writer.largeAllocation(at++, (1 + random(16)) << 20);
      }
      writer.scope(1, tickBegin, at);
      writer.scope(0, begin, at + 500);
      left -= 2;
      at += 600;
      if (thread === 0 && isTime(COUNTED_EVERY_TICKS)) writer.count(at, 0, 900 + random(100)).count(at, 1, random(12));
      writer.blocked(at);
      runs.push({ at, thread: idle });
    }
    writer.endThread();
  }
  writer.frames(
    Array.from({ length: frames }, (_, frame) => {
      const begin = BEGIN_NS + frame * frameNs + (frame > bad ? badNs - frameNs : 0);
      const end = begin + (frame === bad ? badNs : 9_000_000 + random(6_000_000));
      return { number: 1_000 + frame, begin, end, budget: frameNs };
    }),
  );
  writer.processes([{ pid: 4_711, name: "backup", cores: 0.1 }]);
  writer.hostThreads([
    ...cores.map((_, thread) => ({ pid: 1, tid: 100 + thread, owner: 1, name: thread === 0 ? "frame" : `worker ${thread}`, process: "large" })),
    { pid: 0, tid: 0, owner: 2, name: "", process: "" },
    { pid: 4_711, tid: 4_712, owner: 0, name: "rsync", process: "backup" },
  ]);
  writer.cores(cores);
  return writer.done();
}
