// The part of `npm run load` in a process of its own: has browsers' worth of clients join, in Node over WebSockets and in pages of
// chromium over WebTransport, says `playing` when all of them do, and what they know as JSON for each line that it is told.
// It leaves when its standard input ends.

import { createInterface } from "node:readline";
import type { Page } from "playwright-core";
import { Schema, type SchemaData, SocketClient, openWebSocket } from "../client/index.ts";
import type {} from "./crowd.page.ts";
import { GIVES_UP_MS, takeSchema, takeToken, until } from "./live_server.ts";
import { launch } from "./page.ts";
import { pagePart } from "./parts.ts";
import { play, together } from "./playing.ts";

/** Clients of a page. */
const PAGE_CLIENTS = 25;
/** As the server gives tokens to everybody: 20 a second (ms). */
const TOKEN_EVERY_MS = 60;
const INPUT_EVERY_MS = 25;
/** One in so many asks for audit samples. */
const AUDITED = 10;
/** Goodbyes that are on their way are waited for (ms). */
const GOODBYE_MS = 500;

const [playUrl = "", webSockets = "0", webTransports = "0"] = process.argv.slice(2);
const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const schema = new Schema((await takeSchema(playUrl)) as SchemaData);
const inputName = schema.data.inputs[0]!.name;
const clients: SocketClient[] = [];
const known = play(clients, inputName, INPUT_EVERY_MS);
for (let index = 0; index < Number(webSockets); index++) {
  const { token, ways } = await takeToken(playUrl, index % AUDITED === 0);
  clients.push(new SocketClient(schema, token, await openWebSocket(ways.webSocket, GIVES_UP_MS)));
  await rest(TOKEN_EVERY_MS);
}
const browser = Number(webTransports) > 0 ? await launch() : null;
const pages: Page[] = [];
for (let index = 0; index < Number(webTransports); index++) {
  if (index % PAGE_CLIENTS === 0) pages.push(await opened());
  const { token, ways } = await takeToken(playUrl, index % AUDITED === 0);
  if (!ways.webTransport) throw new Error("this server has no WebTransport");
  await pages.at(-1)!.evaluate(([token, place, timeoutMs]) => crowd.join(token, place, timeoutMs), [token, ways.webTransport, GIVES_UP_MS] as const);
  await rest(TOKEN_EVERY_MS);
}
await until("all browsers play", async () => {
  const there = await Promise.all(pages.map((page) => page.evaluate(() => crowd.playing())));
  return clients.every(({ client }) => client.replicas.size > 0) && there.reduce((sum, each) => sum + each, 0) === Number(webTransports);
});
console.log("playing");
createInterface({ input: process.stdin })
  .on("line", async () => console.log(JSON.stringify(together([known(), ...(await Promise.all(pages.map((page) => page.evaluate(() => crowd.known()))))]))))
  .on("close", () => {
    clients.forEach((client) => client.close());
    void Promise.all([browser?.close(), rest(GOODBYE_MS)]).finally(() => process.exit());
  });

/** A page to have clients in, with a process of its own. */
async function opened(): Promise<Page> {
  const page = await (await browser!.newContext()).newPage();
  page.on("pageerror", (error) => console.error(String(error)));
  await page.goto(`${playUrl}schema.js`);
  await page.evaluate(pagePart("crowd"));
  await page.evaluate(([playUrl, inputName, everyMs]) => crowd.open(playUrl, inputName, everyMs), [playUrl, inputName, INPUT_EVERY_MS] as const);
  return page;
}
