// Promise: the client package in Node plays over a WebSocket as it does in a page, typed or by the schema that the server
// says; and what is no client is sent away without harm to those who are.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Schema, type SchemaData, SocketClient, openWebSocket } from "../client/index.ts";
import { GIVES_UP_MS, type LiveServer, TEST_GIVES_UP_MS, start, takeSchema, takeToken, until } from "./live_server.ts";

async function join(server: LiveServer, schema: Schema): Promise<SocketClient> {
  const { token, ways } = await takeToken(server.playUrl);
  return new SocketClient(schema, token, await openWebSocket(ways.webSocket, GIVES_UP_MS));
}

test("clients in Node see what the server has, and leave when they say so", { timeout: TEST_GIVES_UP_MS }, async (t) => {
  const server = await start("precinct", 10);
  t.after(() => server.kill());
  const schema = new Schema((await takeSchema(server.playUrl)) as SchemaData);
  const clients = await Promise.all(Array.from({ length: 5 }, () => join(server, schema)));
  const timer = setInterval(() => {
    for (const { client } of clients) {
      const due = client.dueInputs(performance.now());
      const yaw = Math.floor(performance.now()) & 0xffff;
      for (let input = 0; input < due; input++) client.sendInput("precinct.input" as never, { move_x: 90, move_z: 90, yaw, pitch_degrees: 0, buttons: 1 } as never, performance.now());
    }
  }, 20);
  t.after(() => clearInterval(timer));
  await until("50 checks each", () => clients.every(({ client }) => client.replicas.counts.stateChecks >= 50));
  for (const { client } of clients) {
    assert.deepEqual([client.replicas.counts.stateErrors, client.stats.protocolErrors], [0, 0], JSON.stringify(client.replicas.takeStateError()));
  }
  const before = server.status()["players"]!;
  clients.forEach((client) => client.close());
  await until("they have left", () => server.status()["players"]! <= before - 5);
  const { server: report } = await server.stop();
  assert.ok(report);
});

test("a client of another schema leaves, and says why", { timeout: TEST_GIVES_UP_MS }, async (t) => {
  const server = await start("precinct", 0);
  t.after(() => server.kill());
  const data = (await takeSchema(server.playUrl)) as SchemaData;
  const stranger = await join(server, new Schema({ ...data, hash: "0123456789abcdef" }));
  await until("it is told", () => stranger.client.state === "disconnected");
  assert.deepEqual(stranger.client.disconnectReason, { is: "schema-mismatch", own: "0123456789abcdef", server: data.hash });
  await server.stop();
});

test("a token is for pages of this server, and is good once", { timeout: TEST_GIVES_UP_MS }, async (t) => {
  const server = await start("precinct", 0);
  t.after(() => server.kill());
  const token = `${server.playUrl}token`;
  assert.equal((await fetch(token, { method: "POST" })).status, 403, "without our header");
  assert.equal((await fetch(token)).status, 405);
  const { token: once, ways } = await takeToken(server.playUrl, false);
  const schema = new Schema((await takeSchema(server.playUrl)) as SchemaData);
  const first = new SocketClient(schema, once, await openWebSocket(ways.webSocket, GIVES_UP_MS));
  await until("the first is in", () => first.client.state === "connected");
  const second = new SocketClient(schema, once, await openWebSocket(ways.webSocket, GIVES_UP_MS));
  await until("the second is not", () => second.client.state === "disconnected");
  assert.equal(second.client.disconnectReason!.is, "handshake");
  first.close();
  await server.stop();
});
