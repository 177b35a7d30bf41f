// Promise: the 50 lines that the package's README shows play `games/meadow`: they connect, walk, and see who is near.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { SchemaData } from "../client/index.ts";
import { walk } from "../client/example.ts";
import { TEST_GIVES_UP_MS, startOther, takeSchema, until } from "./live_server.ts";

test("the README's player walks in the meadow", { timeout: TEST_GIVES_UP_MS }, async () => {
  const server = await startOther("meadow");
  try {
    const player = await walk(server.playUrl, (await takeSchema(server.playUrl)) as SchemaData);
    const { client } = player;
    const place = () => (client.ownEntity === null ? undefined : client.replicas.get(client.ownEntity, "Position"));
    await until("it has a place in the meadow", () => place() !== undefined, () => client.state);
    const first = place()!;
    await until("it has walked a metre", () => Math.hypot(place()!.x - first.x, place()!.z - first.z) > 1);
    assert.ok([...client.replicas.each("Sort")].some(([, sort]) => sort === "Sheep"), "it sees sheep");
    assert.equal(client.stats.protocolErrors, 0);
    player.close();
    await until("it has left", () => client.state === "disconnected");
  } finally {
    server.kill();
  }
});
