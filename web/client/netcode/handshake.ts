// The client's way in: from a connect token to a sealed link.
//
//   hello --cookie--> request --challenge--> response --keep-alive--> connected
//     ^                  |                     |    ^
//     +------ 3 s -------+                     |  queued
//     +------------------- 5 s ----------------+
//
// Each step is said again every 100 to 300 ms until the answer comes. A server that tells us our place in its line has our
// patience. Sans-IO: `poll` gives a datagram, `handle` takes one; no bytes make it throw.

import { type DenialReason, denialOf } from "./denial.ts";
import { SealedLink } from "./link.ts";
import { COOKIE_BYTES, HELLO_BYTES, Kind, VERSION, readSealedHeader, sequenceOf } from "./packet.ts";
import type { ConnectToken } from "./token.ts";

const RESEND_MS = [100, 300] as const;
const RESEND_IN_LINE_MS = [400, 600] as const;
/** A cookie is good for 4 s at least. */
const COOKIE_LIFE_MS = 3000;
/** A server forgets an unanswered challenge after 5 s. */
const RESPONSE_LIFE_MS = 5000;

/** Where a client that waits to come in stands. */
export type QueueState = { readonly place: number; readonly length: number } | "world-being-made";

export type HandshakeFailure = { readonly denied: DenialReason } | "timed-out" | "token-expired";

/** Fills bytes with chance that nobody can guess. */
export type Randomness = (bytes: Uint8Array) => void;

type Step = "hello" | "request" | "response" | "connected" | "failed";

export class Handshake {
  readonly link: SealedLink;
  readonly #token: ConnectToken;
  readonly #random: Randomness;
  #step: Step = "hello";
  #stepSinceMs: number;
  #nextSendMs: number;
  #serverSinceMs: number;
  #clientNumber = new Uint8Array(8);
  #cookie = new Uint8Array(COOKIE_BYTES);
  #challenge: Uint8Array = new Uint8Array(0);
  #queue: QueueState | null = null;
  #queueSequence = -1n;
  #failure: HandshakeFailure | null = null;

  constructor(token: ConnectToken, nowMs: number, random: Randomness) {
    this.#token = token;
    this.#random = random;
    const start = new Uint8Array(6);
    random(start);
    const firstSequence = start.reduce((sum, byte) => sum * 256 + byte, 0);
    const keys = { sealing: token.clientToServerKey, opening: token.serverToClientKey, protocolId: token.protocolId };
    this.link = new SealedLink(keys, firstSequence, token.timeoutS, nowMs);
    this.#stepSinceMs = this.#nextSendMs = this.#serverSinceMs = nowMs;
    this.#startOver(nowMs);
  }

  get state(): "connecting" | "connected" | "failed" {
    return this.#step === "connected" || this.#step === "failed" ? this.#step : "connecting";
  }

  get failure(): HandshakeFailure | null {
    return this.#failure;
  }

  /** What the server last said about our waiting. */
  get queue(): QueueState | null {
    return this.#step === "response" ? this.#queue : null;
  }

  /** The datagram that is due now. Ask every 50 ms. */
  poll(nowMs: number, unixS: number): Uint8Array | null {
    this.#passTime(nowMs, unixS);
    if (nowMs < this.#nextSendMs) return null;
    this.#nextSendMs = this.#drawTime(nowMs, RESEND_MS);
    switch (this.#step) {
      case "hello":
        return this.#hello();
      case "request":
        return this.#request();
      case "response":
        return this.link.seal(Kind.response, this.#challenge, nowMs);
      default:
        return null;
    }
  }

  /** Takes a datagram of the server. What does not belong to the current step is dropped. */
  handle(datagram: Uint8Array, nowMs: number): void {
    if (this.#step === "hello") {
      const answers = datagram.length === 1 + 8 + COOKIE_BYTES && datagram[0] === Kind.cookie && this.#clientNumber.every((byte, index) => datagram[1 + index] === byte);
      if (!answers) return;
      this.#cookie = datagram.slice(9);
      this.#enter("request", nowMs);
      return;
    }
    const header = readSealedHeader(datagram);
    if (!header || (this.#step !== "request" && this.#step !== "response")) return;
    const isResponse = this.#step === "response";
    if (header.kind === Kind.keepAlive) {
      if (!isResponse || this.link.open(datagram, nowMs) === null) return;
      this.link.begin(nowMs);
      this.#enter("connected", nowMs);
      return;
    }
    const isWanted = header.kind === Kind.denied || header.kind === (isResponse ? Kind.queued : Kind.challenge);
    const body = isWanted ? this.link.openBody(header, datagram) : null;
    if (!body) return;
    if (header.kind === Kind.denied) this.#fail({ denied: denialOf(body) }, nowMs);
    else if (header.kind === Kind.challenge) {
      this.#challenge = body;
      this.#enter("response", nowMs);
    } else this.#waitInLine(body, sequenceOf(datagram, header), nowMs);
  }

  #hello(): Uint8Array {
    const datagram = new Uint8Array(HELLO_BYTES);
    datagram[0] = Kind.hello;
    datagram.set(VERSION, 1);
    datagram.set(this.#token.protocolId, 14);
    datagram.set(this.#clientNumber, 22);
    return datagram;
  }

  #request(): Uint8Array {
    const datagram = new Uint8Array(HELLO_BYTES);
    datagram[0] = Kind.cookieRequest;
    datagram.set(this.#cookie, 1);
    datagram.set(this.#clientNumber, 17);
    datagram.set(this.#token.requestBody, 25);
    return datagram;
  }

  #waitInLine(body: Uint8Array, sequence: bigint, nowMs: number): void {
    const view = new DataView(body.buffer, body.byteOffset, body.length);
    const [state, place, length] = [view.getUint8(0), view.getUint32(1, true), view.getUint32(5, true)];
    const isInLine = state === 0 && place >= 1 && place <= length;
    const isCalled = state === 1 && place === 0 && length === 0;
    if (sequence <= this.#queueSequence || !(isInLine || isCalled)) return;
    this.#queueSequence = sequence;
    this.#queue = isCalled ? "world-being-made" : { place, length };
    this.#stepSinceMs = this.#serverSinceMs = nowMs;
    this.#nextSendMs = this.#drawTime(nowMs, RESEND_IN_LINE_MS);
  }

  #passTime(nowMs: number, unixS: number): void {
    if (this.state !== "connecting") return;
    if (nowMs - this.#serverSinceMs >= this.link.timeoutMs) {
      this.#fail(unixS >= this.#token.expiresUnixS ? "token-expired" : "timed-out", nowMs);
      return;
    }
    // Without a timeout only the token's end stops the attempt, at twice the clock error that servers forgive.
    if (this.link.timeoutMs === Infinity && !this.queue && unixS >= this.#token.expiresUnixS + 120) {
      this.#fail("token-expired", nowMs);
      return;
    }
    const inStepMs = nowMs - this.#stepSinceMs;
    if ((this.#step === "request" && inStepMs >= COOKIE_LIFE_MS) || (this.#step === "response" && inStepMs >= RESPONSE_LIFE_MS)) this.#startOver(nowMs);
  }

  #startOver(nowMs: number): void {
    this.#random(this.#clientNumber);
    this.#enter("hello", nowMs);
  }

  #fail(failure: HandshakeFailure, nowMs: number): void {
    this.#failure = failure;
    this.#enter("failed", nowMs);
  }

  #enter(step: Step, nowMs: number): void {
    this.#step = step;
    this.#stepSinceMs = this.#nextSendMs = nowMs;
  }

  #drawTime(nowMs: number, [least, most]: readonly [number, number]): number {
    return nowMs + least + Math.random() * (most - least);
  }
}
