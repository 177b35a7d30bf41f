// What hostile peers do with WebSockets, with requests, and with the metrics, each until it is told to stop.

import { randomBytes } from "node:crypto";
import { type NetConnectOpts, connect } from "node:net";

/** Where a server is attacked. */
export interface Place {
  /** Pages and WebSockets. */
  readonly play: URL;
  /** The admin port: `host:port`. */
  readonly admin: string;
}

export type Attack = (place: Place, isOver: () => boolean) => Promise<void>;

export const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A WebSocket that is asked for by hand, so that it may be spoken badly. */
function raw(url: URL, then: (write: (bytes: Uint8Array) => void) => Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(Number(url.port), url.hostname, () => {
      socket.write(`GET /play/socket HTTP/1.1\r\nhost: ${url.host}\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${randomBytes(16).toString("base64")}\r\nsec-websocket-protocol: throng\r\n\r\n`);
      void then((bytes) => void (socket.writable && socket.write(bytes))).finally(() => socket.destroy());
    });
    socket.on("error", () => resolve()).on("close", () => resolve()).resume();
  });
}

const open = (url: URL): Promise<WebSocket | null> =>
  new Promise((resolve) => {
    const socket = new WebSocket(url.href.replace(/^http/, "ws"), "throng");
    socket.onopen = () => resolve(socket);
    socket.onerror = socket.onclose = () => resolve(null);
  });

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
      await rest(20);
    }
  },
  // Frames that break the protocol: without a mask, of a huge length, text, in pieces that never end.
  async frames({ play: url }, isOver) {
    const bad = [[0x82, 0x05, 1, 2, 3, 4, 5], [0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], [0x81, 0x81, 0, 0, 0, 0, 65], [0x02, 0x81, 0, 0, 0, 0, 1], [0xf2, 0x80, 0, 0, 0, 0], [0x8b, 0x80, 0, 0, 0, 0]];
    for (let turn = 0; !isOver(); turn++) {
      await raw(url, async (write) => {
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
      await raw(url, async (write) => {
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
    while (!isOver()) {
      await new Promise<void>((resolve) => {
        const socket = connect(Number(url.port), url.hostname);
        socket.pause().write(`GET /play/client.js HTTP/1.1\r\nhost: ${url.host}\r\n\r\n`);
        const timer = setInterval(() => void (isOver() && socket.destroy()), 50);
        socket.on("error", () => {}).on("close", () => (clearInterval(timer), resolve()));
      });
    }
  },
  // Opens, and never says or reads anything more.
  async silence({ play: url }, isOver) {
    while (!isOver()) await raw(url, async () => { for (let waited = 0; waited < 200 && !isOver(); waited++) await rest(50); });
  },
  // Half a request, byte by byte.
  async slow({ play: url }, isOver) {
    while (!isOver()) {
      await new Promise<void>((resolve) => {
        const socket = connect(Number(url.port), url.hostname);
        const timer = setInterval(() => void (isOver() ? socket.destroy() : socket.writable && socket.write("G")), 300);
        socket.on("error", () => {}).on("close", () => (clearInterval(timer), resolve())).resume();
      });
    }
  },
  // A page of another server asks (cross-origin), or one whose name has come to mean this host (rebinding): for tokens, WebSockets
  // and metrics, and to have a command carried out.
  async strangers({ play, admin }, isOver) {
    const upgrade = `upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\nsec-websocket-key: ${randomBytes(16).toString("base64")}\r\nsec-websocket-protocol: throng\r\n`;
    const asked = [[play.host, "POST /play/token", "x-throng: play\r\n"], [play.host, "GET /play/socket", upgrade], [admin, "GET /metrics", ""], [admin, "POST /console", "x-throng: console\r\n"]] as const;
    for (let turn = 0; !isOver(); turn++) {
      const [at, what, more] = asked[turn % asked.length]!;
      const from = Math.floor(turn / asked.length) % 2 === 0 ? `host: ${at}\r\norigin: http://evil.example\r\n` : "host: evil.example\r\norigin: http://evil.example\r\n";
      const { hostname, port } = new URL(`http://${at}`);
      await new Promise<void>((resolve) => {
        const socket = connect(Number(port), hostname);
        socket.write(`${what} HTTP/1.1\r\n${from}${more}content-length: 0\r\n\r\n`);
        const timer = setInterval(() => void (isOver() && socket.destroy()), 50);
        // The answer is enough.
        socket.on("data", () => socket.destroy()).on("error", () => {}).on("close", () => (clearInterval(timer), resolve()));
      });
      await rest(5);
    }
  },
  // Asks for metrics, and takes a byte of them now and then.
  async metrics({ admin }, isOver) {
    const { hostname, port } = new URL(`http://${admin}`);
    while (!isOver()) {
      await new Promise<void>((resolve) => {
        const socket = connect({ port: Number(port), host: hostname, highWaterMark: 1 } as NetConnectOpts);
        socket.write(`GET /metrics HTTP/1.1\r\nhost: ${admin}\r\n\r\n`);
        const timer = setInterval(() => void (isOver() ? socket.destroy() : socket.read(1)), 20);
        socket.on("readable", () => {}).on("end", () => socket.destroy()).on("error", () => {}).on("close", () => (clearInterval(timer), resolve()));
      });
      await rest(20);
    }
  },
};
