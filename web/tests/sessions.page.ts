// The part of hostile peers in a page: hostile WebTransport sessions. Datagrams and streams of noise as fast as they go,
// streams that stand still half-way, and sessions that say nothing.

import type { WebTransportPlace } from "../client/index.ts";

declare global {
  var sessions: Sessions;
}

/** What a hostile session does: noise in datagrams, noise in streams, nothing, streams that stand still half-way. */
export type Kind = "datagrams" | "streams" | "silence" | "stalled";
const KINDS: readonly Kind[] = ["datagrams", "streams", "silence", "stalled"];

const rest = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

class Sessions {
  /** How many sessions of each kind were opened so far. */
  readonly opened: Record<Kind, number> = { datagrams: 0, streams: 0, silence: 0, stalled: 0 };
  readonly #open = new Set<WebTransport>();
  #isOver = true;
  #all: Promise<void>[] = [];

  begin(place: WebTransportPlace, count: number): void {
    this.#isOver = false;
    this.#all = Array.from({ length: count }, (_, index) => this.#attack(place, KINDS[index % KINDS.length]!));
  }

  /** What they wait for fails when their sessions are closed. */
  async end(): Promise<void> {
    this.#isOver = true;
    this.#open.forEach((session) => session.close());
    await Promise.all(this.#all);
  }

  async #attack(place: WebTransportPlace, kind: Kind): Promise<void> {
    const value = Uint8Array.from(atob(place.certificateHash!), (letter) => letter.charCodeAt(0));
    while (!this.#isOver) {
      const session = new WebTransport(place.url, { serverCertificateHashes: [{ algorithm: "sha-256", value }] });
      session.closed.catch(() => {});
      this.#open.add(session);
      try {
        await session.ready;
        this.opened[kind]++;
        await this.#spoil(session, kind);
      } catch {
        await rest(20);
      }
      this.#open.delete(session);
      session.close();
    }
  }

  async #spoil(session: WebTransport, kind: Kind): Promise<void> {
    const datagrams = session.datagrams as WebTransportDatagramDuplexStream & { createWritable?(): WritableStream<Uint8Array> };
    const writer = (datagrams.createWritable?.() ?? (datagrams.writable as WritableStream<Uint8Array>)).getWriter();
    // Half a packet each, and no end: as many as the server takes at once, but two.
    for (let stream = 0; kind === "stalled" && stream < 6; stream++) await (await session.createUnidirectionalStream()).getWriter().write(new Uint8Array(600));
    for (let sent = 0; !this.#isOver; sent++) {
      if (kind === "datagrams") await writer.write(crypto.getRandomValues(new Uint8Array(1 + (sent % 1000))));
      if (kind === "streams") {
        const stream = (await session.createUnidirectionalStream()).getWriter();
        await stream.write(new Uint8Array(1 + (sent % 3000)));
        await stream.close();
      }
      if (kind === "silence" || kind === "stalled" || sent % 50 === 0) await rest(5);
    }
  }
}

globalThis.sessions = new Sessions();
