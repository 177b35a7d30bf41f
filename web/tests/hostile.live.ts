// Promise: whatever strangers do with WebSockets, WebTransport sessions, requests and the admin port, those who play go on: nobody is
// thrown out, no world stands still, and no value is wrong; and pages of others and wrong keys are refused. What a tick costs meanwhile is
// measured by `npm run hostile`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Schema, type SchemaData, SocketClient, openWebSocket } from "../client/index.ts";
import { ATTACKS, Answers, openSessionsPage } from "./attacks.ts";
import { GIVES_UP_MS, TEST_GIVES_UP_MS, start, takeSchema, takeToken, until, within } from "./live_server.ts";
import { launch } from "./page.ts";
import type { Kind } from "./sessions.page.ts";

const PEERS = 40;
const SESSIONS = 4;
/** They go on until the server has had this much of them: WebSockets opened, packets refused above their allowance. Some 3 s. */
const OPENED = 500;
const REFUSED = 20_000;
/** And WebTransport sessions of each kind: those that make noise in datagrams are thrown out, and come again. */
const SESSIONS_OPENED: Record<Kind, number> = { datagrams: 2, streams: 1, silence: 1, stalled: 1 };
/** And until each of those who play has held so many more values against the server's. */
const CHECKS = 30;

test("hostile peers harm nobody who plays", { timeout: TEST_GIVES_UP_MS }, async (t) => {
  const server = await start("precinct", 50);
  t.after(() => server.kill());
  const browser = await launch();
  t.after(() => browser.close());
  const { ways } = await takeToken(server.playUrl);
  const place = { play: new URL(ways.webSocket.replace(/^ws/, "http")), admin: server.adminAddress };
  const schema = new Schema((await takeSchema(server.playUrl)) as SchemaData);
  const honest: SocketClient[] = [];
  for (let index = 0; index < 5; index++) {
    const { token, ways } = await takeToken(server.playUrl);
    honest.push(new SocketClient(schema, token, await openWebSocket(ways.webSocket, GIVES_UP_MS)));
  }
  await until("honest ones play", () => honest.every(({ client }) => client.replicas.size > 0) && server.status()["players"]! >= 55);
  const before = honest.map(({ client }) => client.replicas.counts.stateChecks);
  let isOver = false;
  t.after(() => (isOver = true));
  const attacks = Object.values(ATTACKS);
  const answers = new Answers();
  const attacking = Array.from({ length: PEERS }, (_, index) => attacks[index % attacks.length]!(place, () => isOver, answers));
  const page = await openSessionsPage(browser, server.playUrl);
  await page.evaluate(([place, count]) => sessions.begin(place, count), [ways.webTransport!, SESSIONS] as const);
  const kinds = Object.keys(SESSIONS_OPENED) as Kind[];
  let [opened, refused] = [0, 0];
  let sessionsOpened: Partial<Record<Kind, number>> = {};
  await until("the server has had enough of them, and those who play go on", async () => {
    const metrics = await server.metrics();
    [opened, refused] = [metrics.get("throng_browser_opened_total")!, metrics.get("throng_browser_refused_allowance_total")!];
    sessionsOpened = await page.evaluate(() => sessions.opened);
    return kinds.every((kind) => sessionsOpened[kind]! >= SESSIONS_OPENED[kind]) && opened >= OPENED && refused >= REFUSED && answers.haveAll() && honest.every(({ client }, index) => client.replicas.counts.stateChecks >= before[index]! + CHECKS);
  }, () => `${opened} opened, of them sessions ${JSON.stringify(sessionsOpened)}; ${refused} refused; ${honest.map(({ client }) => `${client.state}, ${client.replicas.counts.stateChecks}`).join("; ")}; ${JSON.stringify(answers)}`);
  isOver = true;
  attacking.push(page.evaluate(() => sessions.end()));
  await within(GIVES_UP_MS, "all attacks have ended", Promise.all(attacking));
  for (const { client } of honest) {
    assert.equal(client.state, "connected", JSON.stringify(client.disconnectReason));
    assert.deepEqual([client.replicas.counts.stateErrors, client.stats.protocolErrors], [0, 0]);
  }
  honest.forEach((client) => client.close());
  const { server: report } = await server.stop();
  assert.equal(report.worlds_parked, 0, "a world has panicked");
  assert.deepEqual([answers.wrong, answers.tokensGiven], [{}, 0], "somebody was answered who is to be refused");
});
