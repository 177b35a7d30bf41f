// What hostile peers do with WebSockets, each until it is told to stop.

import { randomBytes } from "node:crypto";
import { connect } from "node:net";

export type Attack = (url: URL, isOver: () => boolean) => Promise<void>;

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
  async noise(url, isOver) {
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
  async hellos(url, isOver) {
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
  async frames(url, isOver) {
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
  async fragments(url, isOver) {
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
  async unread(url, isOver) {
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
  async silence(url, isOver) {
    while (!isOver()) await raw(url, async () => { for (let waited = 0; waited < 200 && !isOver(); waited++) await rest(50); });
  },
  // Half a request, byte by byte.
  async slow(url, isOver) {
    while (!isOver()) {
      await new Promise<void>((resolve) => {
        const socket = connect(Number(url.port), url.hostname);
        const timer = setInterval(() => void (isOver() ? socket.destroy() : socket.writable && socket.write("G")), 300);
        socket.on("error", () => {}).on("close", () => (clearInterval(timer), resolve())).resume();
      });
    }
  },
};
