// What hostile peers do with WebSockets, with requests, and at the admin port, each until it is told to stop. None waits for a
// server that does not answer: a connection goes when it is over, and what has to be opened is given up after some seconds. What they
// do with WebTransport is done in a page (sessions.page.ts).

import { randomBytes } from "node:crypto";
import { type NetConnectOpts, type Socket, connect } from "node:net";
import type { Browser, Page } from "playwright-core";
import { pagePart } from "./parts.ts";
import type {} from "./sessions.page.ts";

/** Where a server is attacked. */
export interface Place {
  /** Pages and WebSockets. */
  readonly play: URL;
  /** The admin port: `host:port`. */
  readonly admin: string;
}

/** What those were answered who are to be refused. */
export class Answers {
  /** By what was asked, with the status. */
  readonly all: Record<string, number> = {};
  /** Of these, those that were no refusal. */
  readonly wrong: Record<string, number> = {};
  tokensGiven = 0;

  note(asked: string, status: number, refusals: readonly number[]): void {
    const answer = `${asked}: ${status}`;
    this.all[answer] = (this.all[answer] ?? 0) + 1;
    if (!refusals.includes(status)) this.wrong[answer] = (this.wrong[answer] ?? 0) + 1;
  }

  /** Whether everything that has to be refused was asked for and answered. */
  haveAll(): boolean {
    return [...STRANGERS.map(({ asked }) => asked), ...WRONG_KEYS.map(({ asked }) => asked)].every((asked) => Object.keys(this.all).some((answer) => answer.startsWith(`${asked}: `)));
  }
}

export type Attack = (place: Place, isOver: () => boolean, answers: Answers) => Promise<void>;

export const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A page with `sessions`, which attacks the server that it is of: a page may open them to its own server alone. */
export async function openSessionsPage(browser: Browser, playUrl: string): Promise<Page> {
  const page = await browser.newPage();
  page.on("pageerror", (error) => console.error(String(error)));
  await page.goto(`${playUrl}schema.js`);
  await page.evaluate(pagePart("sessions"));
  return page;
}

/** What has not opened or answered by then is given up (ms). */
const WITHIN_MS = 5000;

/** A connection until it closes or all is over. `readsBytes`: what Node takes from the kernel before somebody reads it. */
function held(url: URL, isOver: () => boolean, use: (socket: Socket) => void, readsBytes = 1 << 16): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port: Number(url.port), host: url.hostname, highWaterMark: readsBytes } as NetConnectOpts);
    const timer = setInterval(() => void (isOver() && socket.destroy()), 50);
    socket.on("error", () => {}).on("close", () => (clearInterval(timer), resolve()));
    use(socket);
  });
}

const adminUrl = ({ admin }: Place): URL => new URL(`http://${admin}`);

/** What a WebSocket is asked for with, but for its host. */
const upgrade = (): string => `upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${randomBytes(16).toString("base64")}\r\nsec-websocket-protocol: throng\r\n`;

/** A WebSocket that is asked for by hand, so that it may be spoken badly. */
function raw(url: URL, isOver: () => boolean, then: (write: (bytes: Uint8Array) => void) => Promise<void>): Promise<void> {
  return held(url, isOver, (socket) => {
    socket.resume().on("connect", () => {
      socket.write(`GET /play/socket HTTP/1.1\r\nhost: ${url.host}\r\n${upgrade()}\r\n`);
      void then((bytes) => void (socket.writable && socket.write(bytes))).finally(() => socket.destroy());
    });
  });
}

const open = (url: URL): Promise<WebSocket | null> =>
  new Promise((resolve) => {
    const socket = new WebSocket(url.href.replace(/^http/, "ws"), "throng");
    const give = (opened: WebSocket | null): void => (clearTimeout(timer), resolve(opened));
    const timer = setTimeout(() => (socket.close(), give(null)), WITHIN_MS);
    socket.onopen = () => give(socket);
    socket.onerror = socket.onclose = () => give(null);
  });

/** What strangers ask for: a page of another server (cross-origin), and one whose name has come to mean this host (rebinding). All
 * of it is refused with 403, and no token is given out; a browser asks before it sends a header of ours from elsewhere, and what
 * it is answered must not let it (405: it is no method of that path). */
const STRANGERS = ["cross-origin", "rebinding"].flatMap((from) =>
  (
    [
      ["play", "POST /play/token", "x-throng: play\r\n", 403],
      ["play", "OPTIONS /play/token", "access-control-request-method: POST\r\naccess-control-request-headers: x-throng\r\n", 405],
      ["play", "GET /play/socket", null, 403],
      ["admin", "GET /metrics", "", 403],
      ["admin", "GET /api/watch", "", 403],
      ["admin", "POST /console", "x-throng: console\r\n", 403],
    ] as const
  ).map(([at, what, more, status]) => ({ asked: `${from} ${what}`, from, at, what, more, status })),
);

/** What wrong keys are shown for; refused with 401, or 429 when there were too many of them. */
const WRONG_KEYS = [
  { asked: "wrong key POST /console", path: "/console", method: "POST", headers: { "x-throng": "console" }, body: "tune.list" },
  { asked: "wrong key POST /capture", path: "/capture", method: "POST", headers: { "x-throng": "capture" }, body: "a note" },
  { asked: "wrong key GET /metrics", path: "/metrics", method: "GET", headers: {}, body: null },
] as const;

/** Connections of one who shows wrong keys, and streams of one who watches: three of the latter have more than the port bears. */
const LOGINS = 4;
const WATCHES = 4;

export const ATTACKS: Record<string, Attack> = {
  // Noise in datagrams, as fast as it goes.
  async noise({ play: url }, isOver) {
    while (!isOver()) {
      const socket = await open(url);
      for (let sent = 0; socket && !isOver() && socket.readyState === WebSocket.OPEN; sent++) {
        socket.send(randomBytes(1 + (sent % 1300)));
        if (sent % 50 === 0) await rest(1);
      }
      socket?.close();
      await rest(20);
    }
  },
  // Hellos without an end: each wants a cookie.
  async hellos({ play: url }, isOver) {
    const hello = new Uint8Array(1102);
    hello.set([7, ...new TextEncoder().encode("NETCODE 1.02\0")]);
    while (!isOver()) {
      const socket = await open(url);
      while (socket && !isOver() && socket.readyState === WebSocket.OPEN) {
        hello.set(randomBytes(8), 22);
        socket.send(hello);
        await rest(2);
      }
      socket?.close();
      await rest(20);
    }
  },
  // Frames that break the protocol: without a mask, of a huge length, text, in pieces that never end.
  async frames({ play: url }, isOver) {
    const bad = [[0x82, 0x05, 1, 2, 3, 4, 5], [0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], [0x81, 0x81, 0, 0, 0, 0, 65], [0x02, 0x81, 0, 0, 0, 0, 1], [0xf2, 0x80, 0, 0, 0, 0], [0x8b, 0x80, 0, 0, 0, 0]];
    for (let turn = 0; !isOver(); turn++) {
      await raw(url, isOver, async (write) => {
        await rest(5);
        write(Uint8Array.from(bad[turn % bad.length]!));
        await rest(20);
      });
    }
  },
  // A message in fragments without an end, each empty.
  async fragments({ play: url }, isOver) {
    const fragments = Buffer.alloc(6 * 200);
    for (let at = 0; at < fragments.length; at += 6) fragments.set([0x00, 0x80, 0, 0, 0, 0], at);
    while (!isOver()) {
      await raw(url, isOver, async (write) => {
        await rest(5);
        write(Uint8Array.of(0x02, 0x80, 0, 0, 0, 0));
        for (let sent = 0; sent < 1000 && !isOver(); sent++) {
          write(fragments);
          await rest(1);
        }
      });
    }
  },
  // Asks for a page, and takes none of it.
  async unread({ play: url }, isOver) {
    while (!isOver()) await held(url, isOver, (socket) => socket.pause().write(`GET /play/client.js HTTP/1.1\r\nhost: ${url.host}\r\n\r\n`));
  },
  // Opens, and never says or reads anything more.
  async silence({ play: url }, isOver) {
    while (!isOver()) await raw(url, isOver, async () => { for (let waited = 0; waited < 200 && !isOver(); waited++) await rest(50); });
  },
  // Half a request, byte by byte.
  async slow({ play: url }, isOver) {
    while (!isOver()) {
      await held(url, isOver, (socket) => {
        const timer = setInterval(() => void (socket.writable && socket.write("G")), 300);
        socket.resume().on("close", () => clearInterval(timer));
      });
    }
  },
  // Pages of others ask for tokens, WebSockets, metrics and streams, and to have a command carried out.
  async strangers(place, isOver, answers) {
    const urls = { play: place.play, admin: adminUrl(place) };
    for (let turn = 0; !isOver(); turn++) {
      const { asked, from, at, what, more, status } = STRANGERS[turn % STRANGERS.length]!;
      const host = from === "rebinding" ? "evil.example" : urls[at].host;
      const began = Date.now();
      await held(urls[at], () => isOver() || Date.now() - began > WITHIN_MS, (socket) => {
        socket.write(`${what} HTTP/1.1\r\nhost: ${host}\r\norigin: http://evil.example\r\n${more ?? upgrade()}content-length: 0\r\n\r\n`);
        let answer = "";
        socket.setEncoding("latin1").on("data", (text: string) => {
          answer += text;
          if (!answer.includes("\r\n\r\n")) return;
          const given = Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1]);
          answers.note(asked, /^access-control-allow/im.test(answer) ? 200 : given, [status]);
          if (given === 200 && what.endsWith("/token")) answers.tokensGiven++;
          socket.destroy();
        });
      });
      await rest(5);
    }
  },
  // Asks for metrics, and takes a byte of them now and then.
  async metrics(place, isOver) {
    const url = adminUrl(place);
    while (!isOver()) {
      const use = (socket: Socket): void => {
        socket.write(`GET /metrics HTTP/1.1\r\nhost: ${url.host}\r\n\r\n`);
        const timer = setInterval(() => void socket.read(1), 20);
        socket.on("readable", () => {}).on("end", () => socket.destroy()).on("close", () => clearInterval(timer));
      };
      await held(url, isOver, use, 1);
      await rest(20);
    }
  },
  // Guesses keys of the admin port, some hundred times a second.
  async logins(place, isOver, answers) {
    const guess = async (): Promise<void> => {
      for (let turn = 0; !isOver(); turn++) {
        const { asked, path, method, headers, body } = WRONG_KEYS[turn % WRONG_KEYS.length]!;
        const key = { authorization: `Bearer ${randomBytes(32).toString("hex")}` };
        try {
          const answer = await fetch(new URL(path, adminUrl(place)), { method, headers: { ...headers, ...key }, body, signal: AbortSignal.timeout(WITHIN_MS) });
          answers.note(asked, answer.status, [401, 429]);
          await answer.body?.cancel();
        } catch {
          // No answer is none that lets anybody in.
        }
        await rest(20);
      }
    };
    await Promise.all(Array.from({ length: LOGINS }, guess));
  },
  // Watches the server, and reads no more than that it may. Who finds no place asks again.
  async watchers(place, isOver, answers) {
    const url = adminUrl(place);
    const watch = async (): Promise<void> => {
      while (!isOver()) {
        await held(url, isOver, (socket) => {
          socket.write(`GET /api/watch HTTP/1.1\r\nhost: ${url.host}\r\n\r\n`);
          socket.once("data", (head) => {
            const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head.toString("latin1"))?.[1]);
            answers.note("watch", status, [200, 503]);
            if (status === 200) socket.pause();
            else socket.destroy();
          });
        });
        await rest(100);
      }
    };
    await Promise.all(Array.from({ length: WATCHES }, watch));
  },
};
