// Promise: whatever strangers do with WebSockets, those who play go on: nobody is thrown out, no world stands still, and no value
// is wrong. What a tick costs meanwhile is measured by `npm run hostile`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Schema, type SchemaData, SocketClient, openWebSocket } from "../client/index.ts";
import { ATTACKS, rest } from "./attacks.ts";
import { start, takeSchema, takeToken, until } from "./live_server.ts";

const PEERS = 40;
const ATTACK_MS = 8_000;

test("hostile WebSockets harm nobody who plays", { timeout: 300_000 }, async () => {
  const server = await start("precinct", 50);
  const { ways } = await takeToken(server.playUrl);
  const url = new URL(ways.webSocket.replace(/^ws/, "http"));
  const schema = new Schema((await takeSchema(server.playUrl)) as SchemaData);
  const honest: SocketClient[] = [];
  for (let index = 0; index < 5; index++) {
    const { token, ways } = await takeToken(server.playUrl);
    honest.push(new SocketClient(schema, token, await openWebSocket(ways.webSocket)));
  }
  await until("honest ones play", () => honest.every(({ client }) => client.replicas.size > 0) && server.status()["players"]! >= 55, 60_000);
  let isOver = false;
  const attacks = Object.values(ATTACKS);
  const attacking = Array.from({ length: PEERS }, (_, index) => attacks[index % attacks.length]!(url, () => isOver));
  await rest(ATTACK_MS);
  isOver = true;
  await Promise.all(attacking);
  for (const { client } of honest) {
    assert.equal(client.state, "connected", JSON.stringify(client.disconnectReason));
    assert.deepEqual([client.replicas.counts.stateErrors, client.stats.protocolErrors], [0, 0]);
    assert.ok(client.replicas.counts.stateChecks > 20);
  }
  honest.forEach((client) => client.close());
  const { server: report } = await server.stop();
  assert.equal(report["worlds_parked"], 0, "a world has panicked");
});
