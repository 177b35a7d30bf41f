// Promise: what is said arrives, once and in order where it is reliable, whatever the line loses; and no bytes break a client.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Connection } from "../client/connection/connection.ts";
import { SealedLink } from "../client/netcode/link.ts";
import { Kind } from "../client/netcode/packet.ts";
import { ReplayWindow } from "../client/netcode/replay.ts";

const KEYS = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)] as const;
const PROTOCOL = Uint8Array.of(5, 0, 0, 0, 0, 0, 0, 0);

function links(first: number): [SealedLink, SealedLink] {
  const link = (sealing: Uint8Array, opening: Uint8Array) => new SealedLink({ sealing, opening, protocolId: PROTOCOL }, first, 10, 0);
  return [link(KEYS[0], KEYS[1]), link(KEYS[1], KEYS[0])];
}

/** Numbers from a seed. */
function chance(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

test("payloads of every size come through once", () => {
  for (const first of [0, 255, 2 ** 40, 2 ** 48 - 1]) {
    const [here, there] = links(first);
    for (const size of [1, 2, 63, 64, 65, 1199, 1200]) {
      const payload = new Uint8Array(size).fill(size);
      const datagram = here.seal(Kind.payload, payload, 3)!;
      const forged = datagram.slice();
      forged[forged.length - 1]! ^= 1;
      assert.equal(there.open(forged, 4), null);
      assert.deepEqual(there.open(datagram, 4), { kind: "payload", payload });
      assert.equal(there.open(datagram, 4), null, "not twice");
    }
  }
});

test("the replay window takes each sequence once, in any order within 256", () => {
  const window = new ReplayWindow();
  const random = chance(7);
  const taken = new Set<number>();
  let newest = 0;
  for (let round = 0; round < 20_000; round++) {
    const sequence = Math.max(0, newest + Math.floor(random() * 300) - 280);
    const isFresh = window.isFresh(sequence);
    assert.equal(isFresh, sequence > newest || (newest - sequence < 256 && !taken.has(sequence)) || taken.size === 0);
    if (!isFresh) continue;
    window.take(sequence);
    taken.add(sequence);
    newest = Math.max(newest, sequence);
  }
});

test("reliable messages arrive once and in order over a line that loses a quarter", () => {
  const random = chance(1);
  const [a, b] = links(9).map((link) => new Connection(link, 0)) as [Connection, Connection];
  const said = Array.from({ length: 60 }, (_, index) => new Uint8Array(1 + Math.floor(random() ** 4 * 60_000)).fill(index));
  const heard: Uint8Array[] = [];
  let unsent = 0;
  const line: { readonly atMs: number; readonly to: Connection; readonly datagram: Uint8Array }[] = [];
  let nowMs = 0;
  const send = (to: Connection) => (datagram: Uint8Array): void => {
    if (random() >= 0.25) line.push({ atMs: nowMs + 20 + random() * 30, to, datagram });
    if (random() < 0.05) line.push({ atMs: nowMs + 60, to, datagram });
  };
  for (; heard.length < said.length && nowMs < 120_000; nowMs += 10) {
    while (unsent < said.length && a.sendReliable(said[unsent]!)) unsent++;
    for (const arrived of line.filter(({ atMs }) => atMs <= nowMs)) {
      line.splice(line.indexOf(arrived), 1);
      arrived.to.receive(arrived.datagram, nowMs, (_, message) => void heard.push(message.slice()));
    }
    for (const [from, to] of [[a, b], [b, a]] as const) {
      from.update(nowMs);
      from.poll(nowMs, send(to));
      assert.equal(from.end, null);
    }
  }
  assert.equal(heard.length, said.length, `${nowMs} ms`);
  heard.forEach((message, index) => assert.deepEqual(message, said[index]));
  assert.ok(a.stats.packetsLost > 10 && a.stats.refused + b.stats.refused > 5, JSON.stringify([a.stats, b.stats]));
  assert.ok(a.roundTripMs > 40 && a.roundTripMs < 200, String(a.roundTripMs));
});

test("a server that says nothing, or breaks the rules, is given up", () => {
  const [here, there] = links(0);
  const client = new Connection(here, 0);
  client.update(9_999);
  assert.equal(client.end, null);
  client.update(10_000);
  assert.equal(client.end, "timed-out");
  const [other] = links(0);
  const broken = new Connection(other, 0);
  // A fragment beyond the window.
  const payload = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 1, 0x80, 0, 1, 7);
  broken.receive(there.seal(Kind.payload, payload, 0)!, 0, () => {});
  assert.equal(broken.end, "broken");
});
