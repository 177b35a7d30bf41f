// Connection: messages, acks and losses on one sealed link. Datagrams in, datagrams out.
//
// A packet is filled in this order: reliable data up to its share, queued unreliable messages, more reliable data.

import type { SealedLink } from "../netcode/link.ts";
import { Kind, PAYLOAD_BYTES_MAX } from "../netcode/packet.ts";
import { type Fate, ReceivedPackets, SentPackets } from "./acks.ts";
import { FRAGMENT_BYTES_MAX, FRAGMENT_OVERHEAD_BYTES, HEADER_BYTES, PacketWriter, UNRELIABLE_OVERHEAD_BYTES, readPacket } from "./packet.ts";
import { HEARD_FOR_MS } from "./patience.ts";
import { ReliableReceiver } from "./reliable_receiver.ts";
import { ReliableSender } from "./reliable_sender.ts";
import { ACK_DELAY_MS_MAX, RoundTrip } from "./round_trip.ts";

const KEEP_ALIVE_MS = 1000;
const QUIET_KEEP_ALIVE_MS = 2500;
/** So many packets are acknowledged without waiting: half of what a header can name. */
const UNACKED_MAX = 16;
const RELIABLE_SHARE_BYTES = FRAGMENT_OVERHEAD_BYTES + FRAGMENT_BYTES_MAX;
export const UNRELIABLE_BYTES_MAX = PAYLOAD_BYTES_MAX - HEADER_BYTES - UNRELIABLE_OVERHEAD_BYTES - RELIABLE_SHARE_BYTES;
/** Unreliable messages that wait at most; of more the oldest is dropped and counted. */
const QUEUED_MAX = 64;
const PACKETS_PER_POLL_MAX = 8;
/** A goodbye is not acknowledged, so it is said this often. */
const GOODBYES = 10;

export type Channel = "reliable" | "unreliable";
export type Send = (datagram: Uint8Array) => void;

/** Why a connection is over. */
export type ConnectionEnd = "closed-by-server" | "timed-out" | "broken";

export interface ConnectionStats {
  packetsSent: number;
  packetsReceived: number;
  packetsLost: number;
  packetsAcked: number;
  bytesSent: number;
  bytesReceived: number;
  /** Datagrams that did not open, were no packet, or came twice. */
  refused: number;
  unreliableDropped: number;
}

export class Connection {
  readonly #link: SealedLink;
  readonly #received = new ReceivedPackets();
  readonly #sent = new SentPackets();
  readonly #roundTrip = new RoundTrip();
  readonly #sender = new ReliableSender();
  readonly #receiver = new ReliableReceiver();
  readonly #unreliable: Uint8Array[] = [];
  readonly #writer = new PacketWriter();
  #lastSentMs: number;
  #keepAliveMs = KEEP_ALIVE_MS;
  /** Packets with chunks that no header of ours has acknowledged yet. */
  #unacked = 0;
  #end: ConnectionEnd | null = null;
  readonly stats: ConnectionStats = {
    packetsSent: 0, packetsReceived: 0, packetsLost: 0, packetsAcked: 0, bytesSent: 0, bytesReceived: 0, refused: 0, unreliableDropped: 0,
  };

  constructor(link: SealedLink, nowMs: number) {
    this.#link = link;
    this.#lastSentMs = nowMs;
  }

  /** Opens a datagram and gives its messages to `each`, which keeps none of the bytes. */
  receive(datagram: Uint8Array, nowMs: number, each: (channel: Channel, message: Uint8Array) => void): void {
    this.stats.bytesReceived += datagram.length;
    const opened = this.#end ? null : this.#link.open(datagram, nowMs);
    if (opened?.kind === "disconnect") this.#end = "closed-by-server";
    if (opened?.kind === "payload" && this.#take(opened.payload, nowMs, each)) return;
    if (opened === null || opened.kind === "payload") this.stats.refused++;
  }

  /** `false`: too much waits to be acknowledged. */
  sendReliable(message: Uint8Array): boolean {
    return this.#sender.push(message);
  }

  sendUnreliable(message: Uint8Array): void {
    if (message.length < 1 || message.length > UNRELIABLE_BYTES_MAX) throw new RangeError(`an unreliable message has 1 to ${UNRELIABLE_BYTES_MAX} bytes`);
    if (this.#unreliable.length === QUEUED_MAX) {
      this.#unreliable.shift();
      this.stats.unreliableDropped++;
    }
    this.#unreliable.push(message);
  }

  /** Whether a packet should go out now: data, an ack or a keep-alive is due. */
  wantsPacket(nowMs: number): boolean {
    if (this.#end) return false;
    const silenceMs = nowMs - this.#lastSentMs;
    return (
      this.#unacked >= UNACKED_MAX ||
      (this.#unacked > 0 && silenceMs >= ACK_DELAY_MS_MAX) ||
      silenceMs >= this.#keepAliveMs ||
      this.#unreliable.length > 0 ||
      this.#sender.hasDue
    );
  }

  /** Sends what is due. */
  poll(nowMs: number, send: Send): void {
    for (let packets = 0; packets < PACKETS_PER_POLL_MAX && this.wantsPacket(nowMs); packets++) this.sendPacket(nowMs, send);
  }

  sendPacket(nowMs: number, send: Send): void {
    const sequence = this.#sent.next;
    this.#writer.begin(sequence, this.#received.acks);
    this.#sender.write(this.#writer, RELIABLE_SHARE_BYTES, sequence);
    while (this.#unreliable.length > 0 && UNRELIABLE_OVERHEAD_BYTES + this.#unreliable[0]!.length <= this.#writer.space) {
      this.#writer.unreliable(this.#unreliable.shift()!);
    }
    this.#sender.write(this.#writer, this.#writer.space, sequence);
    this.#sent.sent(nowMs, this.#writer.hasChunks);
    this.#lastSentMs = nowMs;
    this.#unacked = 0;
    this.stats.packetsSent++;
    this.#sendSealed(Kind.payload, this.#writer.bytes, nowMs, send);
  }

  /** Once in 50 ms or more often: notices losses, and the end. */
  update(nowMs: number): void {
    this.#sent.expire(nowMs, this.#roundTrip.lossTimes(this.#keepAliveMs), (fate) => this.#decide(fate));
    const silenceMs = nowMs - this.#link.lastReceivedMs;
    const isHeard = silenceMs <= HEARD_FOR_MS;
    if (this.#sender.isStalled(nowMs, isHeard) || this.#receiver.isStalled(nowMs, isHeard)) this.#end ??= "broken";
    if (silenceMs >= this.#link.timeoutMs) this.#end ??= "timed-out";
  }

  /** Says goodbye, several times. */
  close(nowMs: number, send: Send): void {
    for (let index = 0; index < GOODBYES; index++) this.#sendSealed(Kind.disconnect, new Uint8Array(0), nowMs, send);
    this.#end ??= "closed-by-server";
  }

  get end(): ConnectionEnd | null {
    return this.#end;
  }

  get roundTripMs(): number {
    return this.#roundTrip.smoothedMs;
  }

  /** Whether both sides are silent for longer while nobody has anything to say, as in a world that is reactive. */
  setQuiet(isQuiet: boolean): void {
    const quietMs = Math.max(Math.min(this.#link.timeoutMs / 4, QUIET_KEEP_ALIVE_MS), KEEP_ALIVE_MS);
    this.#keepAliveMs = isQuiet ? quietMs : KEEP_ALIVE_MS;
  }

  #sendSealed(kind: number, body: Uint8Array, nowMs: number, send: Send): void {
    const datagram = this.#link.seal(kind, body, nowMs);
    if (!datagram) return;
    this.stats.bytesSent += datagram.length;
    send(datagram);
  }

  #take(payload: Uint8Array, nowMs: number, each: (channel: Channel, message: Uint8Array) => void): boolean {
    const packet = readPacket(payload);
    if (!packet || !this.#sent.allows(packet.acks) || this.#received.arrival(packet.sequence) !== "fresh") return false;
    const roundTripMs = this.#sent.acknowledge(packet.acks, nowMs, (fate) => this.#decide(fate));
    if (roundTripMs !== null) this.#roundTrip.sample(roundTripMs);
    for (const chunk of packet.chunks) {
      if (chunk.is === "unreliable") each("unreliable", chunk.bytes);
      else if (!this.#receiver.receive(chunk.id, chunk.isLast, chunk.bytes, (message) => each("reliable", message))) {
        this.#end = "broken";
        return false;
      }
    }
    this.#received.mark(packet.sequence);
    this.stats.packetsReceived++;
    if (packet.chunks.length > 0) this.#unacked++;
    return true;
  }

  #decide({ sequence, hasArrived, isSilence }: Fate): void {
    if (hasArrived) {
      this.stats.packetsAcked++;
      this.#sender.packetAcked(sequence);
    } else {
      this.stats.packetsLost++;
      this.#sender.packetLost(sequence, isSilence);
    }
  }
}
