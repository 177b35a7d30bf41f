// Datagrams over WebTransport, where the browser has it: one that is lost holds back no other. What is longer than the
// browser's datagrams, as the packet with the token is in some, goes as a stream of its own.

import type { Tunnel } from "./tunnel.ts";

/** Where WebTransport is. */
export interface WebTransportPlace {
  /** `https://`. */
  readonly url: string;
  /** SHA-256 of a certificate that no authority knows (base64), `null` for one that browsers know by themselves. */
  readonly certificateHash: string | null;
}

/** Datagrams, and packets in streams, that may wait in the browser: some 250 ms of a client that sends much. */
const WAITING_MAX = 32;
const STREAMS_MAX = 8;
const DATAGRAM_BYTES_MAX = 1300;
/** A datagram that has waited for so long is old (ms). */
const WAITING_MS_MAX = 100;

/** Opens one. Rejects if nobody answers there within `timeoutMs`, or the browser has no WebTransport. */
export async function openWebTransport(place: WebTransportPlace, timeoutMs = 2000): Promise<Tunnel> {
  if (typeof WebTransport === "undefined") throw new Error("no WebTransport here");
  const hashes = place.certificateHash === null ? [] : [{ algorithm: "sha-256", value: bytesOf(place.certificateHash) }];
  const transport = new WebTransport(place.url, { requireUnreliable: true, congestionControl: "low-latency", ...(hashes.length > 0 && { serverCertificateHashes: hashes }) });
  // Whoever breaks off is told by `closed`; both reject, and what is not looked at would be an error of the page.
  transport.closed.catch(() => {});
  transport.ready.catch(() => {});
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const late = new Promise<never>((_, fail) => (timer = setTimeout(() => fail(new Error("no answer")), timeoutMs)));
    await Promise.race([transport.ready, late]);
  } catch (error) {
    transport.close();
    throw new Error(`${place.url}: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    clearTimeout(timer);
  }
  return new WebTransportTunnel(transport);
}

class WebTransportTunnel implements Tunnel {
  readonly name = "WebTransport";
  onDatagram: (datagram: Uint8Array) => void = () => {};
  onClose: (why: string) => void = () => {};
  dropped = 0;
  readonly #transport: WebTransport;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  #waiting = 0;
  #streams = 0;
  #isClosed = false;

  constructor(transport: WebTransport) {
    this.#transport = transport;
    const datagrams = transport.datagrams as WebTransportDatagramDuplexStream & { createWritable?(): WritableStream<Uint8Array> };
    datagrams.outgoingMaxAge = WAITING_MS_MAX;
    this.#writer = (datagrams.createWritable?.() ?? (datagrams.writable as WritableStream<Uint8Array>)).getWriter();
    const ended = (why: string): void => {
      if (!this.#isClosed) this.onClose(why);
      this.#isClosed = true;
    };
    transport.closed.then(({ reason }) => ended(reason || "closed"), (error) => ended(String(error)));
    void this.#receive();
    void this.#receiveStreams();
  }

  send(datagram: Uint8Array): void {
    if (this.#isClosed) return void this.dropped++;
    if (datagram.length > this.#transport.datagrams.maxDatagramSize) return this.#sendAsStream(datagram);
    if (this.#waiting >= WAITING_MAX) return void this.dropped++;
    this.#waiting++;
    const done = (): void => void this.#waiting--;
    // The sender may use its buffer again.
    this.#writer.write(datagram.slice()).then(done, done);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    // What was written last, a goodbye, leaves before the session ends.
    const end = (): void => this.#transport.close();
    Promise.race([this.#writer.ready, new Promise((resolve) => setTimeout(resolve, 50))]).then(() => setTimeout(end, 20), end);
  }

  #sendAsStream(datagram: Uint8Array): void {
    if (this.#streams >= STREAMS_MAX) return void this.dropped++;
    this.#streams++;
    const bytes = datagram.slice();
    const write = async (): Promise<void> => {
      const writer = (await this.#transport.createUnidirectionalStream()).getWriter();
      await writer.write(bytes);
      await writer.close();
    };
    write()
      .catch(() => void this.dropped++)
      .finally(() => this.#streams--);
  }

  async #receive(): Promise<void> {
    const reader = (this.#transport.datagrams.readable as ReadableStream<Uint8Array>).getReader();
    await each(reader, (datagram) => this.#take(datagram));
  }

  async #receiveStreams(): Promise<void> {
    const reader = (this.#transport.incomingUnidirectionalStreams as ReadableStream<ReadableStream<Uint8Array>>).getReader();
    await each(reader, (stream) => void wholeOf(stream).then((packet) => packet && this.#take(packet)));
  }

  #take(datagram: Uint8Array): void {
    if (!this.#isClosed && datagram.length <= DATAGRAM_BYTES_MAX) this.onDatagram(datagram);
  }
}

/** Until there are no more; `closed` says why. */
async function each<T>(reader: ReadableStreamDefaultReader<T>, take: (one: T) => void): Promise<void> {
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      take(value);
    }
  } catch {
    return;
  }
}

/** The packet of a stream; `null` if it is none. */
async function wholeOf(stream: ReadableStream<Uint8Array>): Promise<Uint8Array | null> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = stream.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      length += value.length;
      if (length > DATAGRAM_BYTES_MAX) {
        await reader.cancel();
        return null;
      }
      parts.push(value);
    }
  } catch {
    return null;
  }
  const packet = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    packet.set(part, at);
    at += part.length;
  }
  return packet;
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}
