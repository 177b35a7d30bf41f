// The shell of a page that plays: it gets a token, connects, draws a picture for each frame of the screen from above, asks
// the game which inputs its keys mean, and shows how the line is. What a game adds is a `GamePage`: how it draws, what keys
// do, and how its player moves if that is predicted.

import { type DisconnectReason, type GameTypes, type PredictionStats, type Schema, SocketClient, type TokenAnswer, connect, textOfReason, waysOf } from "../client/index.ts";
import { Camera } from "./camera.ts";
import { Controls } from "./controls.ts";
import { HELP_KEY, LinePanel } from "./line_panel.ts";

/** What a frame of the screen is drawn with. */
export interface Frame<G extends GameTypes> {
  readonly session: SocketClient<G>;
  readonly client: SocketClient<G>["client"];
  readonly canvas: CanvasRenderingContext2D;
  readonly camera: Camera;
  readonly controls: Controls;
  readonly nowMs: number;
}

/** What a game adds to the shell. */
export interface GamePage<G extends GameTypes> {
  readonly title: string;
  /** What keys and mouse do, in a line. */
  readonly help: string;
  /** What was corrected of the player that is predicted, if it is. */
  readonly prediction?: PredictionStats;
  /** An input is due: one for each tick of the world. */
  input(frame: Frame<G>): void;
  /** A key or a button went down. */
  pressed?(code: string, frame: Frame<G>): void;
  /** Takes what came (values, events, messages) and draws. The canvas is empty, and one unit is one metre. */
  draw(frame: Frame<G>): void;
  /** Lines that are shown below the help. */
  status?(frame: Frame<G>): string[];
  /** The player is in another world. */
  enteredWorld?(): void;
}

/** Whom tests and the console of the browser look at. */
declare global {
  // eslint-disable-next-line no-var
  var throng: { session: SocketClient | null; reason: DisconnectReason | null; prediction: PredictionStats | null };
}

/** How long the page waits before it comes in again after the connection was lost. */
const COME_BACK_AFTER_MS = 2000;

/** Fills the page and plays until it is closed. */
export async function play<G extends GameTypes>(schema: Schema<G>, page: GamePage<G>): Promise<void> {
  document.title = page.title;
  const canvas = document.createElement("canvas");
  const told = document.createElement("div");
  told.className = "told";
  document.body.append(canvas, told);
  const controls = new Controls(canvas);
  const panel = new LinePanel(told, `${page.help}; the wheel brings it nearer`);
  const prediction = page.prediction ?? null;
  globalThis.throng = { session: null, reason: null, prediction };
  for (;;) {
    try {
      const session = await enter(schema);
      globalThis.throng = { session: session as unknown as SocketClient, reason: null, prediction };
      const reason = await show(session, page, canvas, controls, panel);
      globalThis.throng.reason = reason;
      panel.say(textOfReason(reason));
      if (reason.is === "schema-mismatch") return;
    } catch (error) {
      panel.say(error instanceof Error ? error.message : String(error));
    }
    await new Promise((resolve) => setTimeout(resolve, COME_BACK_AFTER_MS));
  }
}

/** Gets a token and connects with it. */
async function enter<G extends GameTypes>(schema: Schema<G>): Promise<SocketClient<G>> {
  const search = new URLSearchParams(location.search);
  const asksForAudit = search.has("audit");
  const answer = await fetch(`/play/token${asksForAudit ? "?audit" : ""}`, { method: "POST", headers: { "x-throng": "play" } });
  if (!answer.ok) throw new Error((await answer.text()).trim() || `no token: ${answer.status}`);
  const given = (await answer.json()) as TokenAnswer;
  const ways = waysOf(given, location.href);
  // To compare the two, or where a network lets UDP through and loses it.
  return connect(schema, given.token, search.has("websocket") ? ways.webSocket : ways);
}

/** One session, until it is over. */
function show<G extends GameTypes>(session: SocketClient<G>, page: GamePage<G>, element: HTMLCanvasElement, controls: Controls, panel: LinePanel): Promise<DisconnectReason> {
  const { client } = session;
  const canvas = element.getContext("2d")!;
  const camera = new Camera();
  const frame: Frame<G> = { session, client, canvas, camera, controls, nowMs: 0 };
  let epoch: number | null = null;
  addEventListener("pagehide", () => session.close(), { once: true });
  return new Promise((resolve) => {
    controls.onPress = (code) => (code === HELP_KEY ? panel.toggleHelp() : page.pressed?.(code, frame));
    const step = (nowMs: number): void => {
      (frame as { nowMs: number }).nowMs = nowMs;
      if (client.state === "disconnected") {
        controls.onPress = () => {};
        resolve(client.disconnectReason!);
        return;
      }
      requestAnimationFrame(step);
      if (client.world && client.world.epoch !== epoch) {
        epoch = client.world.epoch;
        page.enteredWorld?.();
      }
      const due = client.dueInputs(nowMs);
      for (let input = 0; input < due; input++) page.input(frame);
      if (due > 0) session.poll();
      camera.zoom = controls.zoom;
      camera.begin(element, canvas);
      page.draw(frame);
      panel.show(session, page.prediction ?? null, page.status?.(frame) ?? [], nowMs);
    };
    requestAnimationFrame(step);
  });
}
