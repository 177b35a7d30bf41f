// The client itself: from a token to a world, and on until somebody says goodbye.
//
// Sans-IO: datagrams and a time go in, datagrams come out. `SocketClient` (socket_client.ts) is the same with a socket and a
// clock around it. Times are milliseconds of any clock that never goes back, such as `performance.now()`.
//
//   datagram -> receive -> handshake | connection -> control  -> world, ownEntity
//                                                    snapshot -> replicas, answers
//                                                    audit    -> checks of the replicas
//                                                    event    -> events        message -> messages
//   sendInput, request -> poll -> datagram

import { type Channel, Connection, type ConnectionStats, type Send } from "./connection/connection.ts";
import { CONTROL, EVENT, INPUT, MESSAGE, REQUEST, type World, readControl, writeSchemaHash } from "./control.ts";
import { textOfDenial } from "./netcode/denial.ts";
import { Handshake, type HandshakeFailure, type QueueState, type Randomness } from "./netcode/handshake.ts";
import { readToken } from "./netcode/token.ts";
import { AUDIT_SAMPLE } from "./replicas/held_samples.ts";
import { Replicas, SLOWED_SNAPSHOT, SNAPSHOT } from "./replicas/replicas.ts";
import type { GameTypes, Schema } from "./schema.ts";
import { Answers } from "./view/answers.ts";
import { InputBuffer } from "./view/input_buffer.ts";
import { InputClock } from "./view/input_clock.ts";
import { InputLatency } from "./view/input_latency.ts";
import { ServerClock } from "./view/server_clock.ts";
import { type Moment, type Seen, ViewClock, momentOf } from "./view/view_clock.ts";
import type { EntityId } from "./wire/field.ts";
import { PackWriter, unpack } from "./wire/pack.ts";
import { Malformed, Reader } from "./wire/reader.ts";

/** How long a copy may stay behind the server's exact state before it is wrong (s). */
const GRACE_S = 2;
/** Messages and events that wait to be read; of more the oldest are dropped and counted. */
const WAITING_MAX = 1024;
/** How often the server is told that our schema is another one: nothing confirms it. */
const MISMATCHES_SAID = 3;

export type ClientState = "connecting" | "connected" | "disconnected";

/** Why a client is disconnected. */
export type DisconnectReason =
  | { readonly is: "handshake"; readonly failure: HandshakeFailure }
  | { readonly is: "closed-by-server" | "closed-by-client" | "timed-out" | "broken" | "tunnel-closed" }
  | { readonly is: "schema-mismatch"; readonly own: string; readonly server: string };

/** What the client counts. */
export interface ClientStats {
  snapshots: number;
  /** Messages of a stay that is over. */
  oldEpochMessages: number;
  /** Messages that could not be read. Not 0: server and client do not agree, or somebody is hostile. */
  protocolErrors: number;
  messagesDropped: number;
  inputsSent: number;
}

/** A named value: an event or a message, told apart by `name`. */
export type Named<Types extends object> = { [N in keyof Types & string]: { readonly name: N; readonly value: Types[N] } }[keyof Types & string];

/** A component of the own entity as the server has it, and the newest input that is in it. */
export interface OwnState<T> {
  readonly state: T;
  readonly tick: number;
  readonly input: number;
}

export class Client<G extends GameTypes = GameTypes> {
  readonly schema: Schema<G>;
  /** The server's entities as far as this client is told of them. */
  readonly replicas: Replicas<G>;
  readonly stats: ClientStats = { snapshots: 0, oldEpochMessages: 0, protocolErrors: 0, messagesDropped: 0, inputsSent: 0 };
  #handshake: Handshake | null;
  #connection: Connection | null = null;
  #reason: DisconnectReason | null = null;
  #foreignHash: string | null = null;
  #world: World | null = null;
  #ownEntity: EntityId | null = null;
  #messages: Named<G["messages"]>[] = [];
  #events: Named<G["events"]>[] = [];
  readonly #inputs = new InputLatency();
  readonly #inputBuffer = new InputBuffer();
  readonly #answers = new Answers();
  readonly #serverClock = new ServerClock();
  readonly #viewClock = new ViewClock();
  readonly #inputClock = new InputClock();
  readonly #writer = new PackWriter();

  /**
   * Begins to connect with a token: its bytes, or its text. Nothing is sent before `poll`.
   *
   * @throws if the token is none.
   */
  constructor(schema: Schema<G>, token: Uint8Array | string, nowMs: number, random: Randomness = (bytes) => void crypto.getRandomValues(bytes)) {
    this.schema = schema;
    this.replicas = new Replicas(schema);
    this.#handshake = new Handshake(readToken(token), nowMs, random);
  }

  get state(): ClientState {
    if (this.#reason) return "disconnected";
    return this.#connection ? "connected" : "connecting";
  }

  /** Why it is over; `null` as long as it is not. */
  get disconnectReason(): DisconnectReason | null {
    return this.#reason;
  }

  /** What the server says about our waiting to come in. */
  get queue(): QueueState | null {
    return this.#handshake?.queue ?? null;
  }

  /** The world that we are in; `null` before the first, and for a moment between two. */
  get world(): World | null {
    return this.#world;
  }

  /** The entity that the player steers, if the server has named one. It may be named a little before its first values. */
  get ownEntity(): EntityId | null {
    return this.#ownEntity;
  }

  /** Tick of the newest snapshot of this world. */
  get newestTick(): number {
    return Math.max(this.replicas.newestTick, this.#world?.enteredTick ?? 0);
  }

  /** Smoothed round trip (ms); `null` while not connected. */
  get roundTripMs(): number | null {
    return this.#connection?.roundTripMs ?? null;
  }

  /** From an input to the snapshot that has it (ms, smoothed); `null` before the first. */
  get inputToUpdateMs(): number | null {
    return this.#inputs.meanMs;
  }

  /** How fast our world's time runs (percent). */
  get timePercent(): number {
    return this.#serverClock.timePercent;
  }

  get connectionStats(): ConnectionStats | null {
    return this.#connection?.stats ?? null;
  }

  /** Takes a datagram of the server. Whatever it holds, it is applied or counted. */
  receive(datagram: Uint8Array, nowMs: number): void {
    if (this.#reason) return;
    if (this.#handshake) {
      this.#handshake.handle(datagram, nowMs);
      this.#followHandshake(nowMs);
      return;
    }
    this.#connection?.receive(datagram, nowMs, (channel, message) => this.#take(channel, message, nowMs));
    this.#connection?.setQuiet(this.#world?.isReactive ?? false);
    this.#followConnection();
  }

  /** Sends what is due. Call it after `receive` while connecting, after inputs, and every 50 ms at least. */
  poll(nowMs: number, send: Send, unixS = Date.now() / 1000): void {
    if (this.#reason) return;
    if (this.#handshake) {
      const datagram = this.#handshake.poll(nowMs, unixS);
      if (datagram) send(datagram);
      this.#followHandshake(nowMs);
      return;
    }
    const connection = this.#connection!;
    connection.update(nowMs);
    this.#followConnection();
    if (this.#reason) {
      connection.close(nowMs, send);
      return;
    }
    if (this.#foreignHash !== null) {
      this.#leaveForeign(connection, this.#foreignHash, nowMs, send);
      return;
    }
    const queue = (message: Uint8Array): void => connection.sendUnreliable(message);
    if (this.#inputBuffer.hasUnsent || connection.wantsPacket(nowMs)) this.#inputBuffer.queueDue(queue);
    connection.poll(nowMs, send);
  }

  /**
   * Sends an input with the next packet: its number, or `null` where there is no world, which is ordinary. Inputs may be
   * lost: each says what holds (keys that are down), not what has changed.
   *
   * @throws RangeError if the value breaks its type's limits.
   */
  sendInput<N extends keyof G["inputs"] & string>(name: N, value: G["inputs"][N], nowMs: number): number | null {
    const [place, world, connection] = [this.schema.input(name), this.#world, this.#connection];
    if (this.state !== "connected" || !world || !connection) return null;
    const kind = this.schema.data.inputs[place]!;
    const number = this.#inputs.lastNumber === 65_535 ? 1 : this.#inputs.lastNumber + 1;
    this.#writer.clear();
    this.#writer.put(Uint8Array.of(INPUT, world.epoch, number & 255, number >> 8, place));
    if (kind.saysSeen) {
      const { newestTick, behindParts } = this.#seen(world, nowMs);
      this.#writer.u16(newestTick & 0xffff);
      this.#writer.u16(behindParts);
    }
    this.schema.inputs[place]!.write(value, this.#writer, name);
    this.#inputs.sent(nowMs);
    this.#inputBuffer.push(number, kind.repeats, this.#writer.take(), (message) => connection.sendUnreliable(message));
    this.stats.inputsSent++;
    return number;
  }

  /**
   * Asks the world that we are in for something: arrives once, in order with other requests. `false`: not in a world, which
   * is ordinary, or too much waits to be acknowledged.
   *
   * @throws RangeError if the value breaks its type's limits.
   */
  request<N extends keyof G["requests"] & string>(name: N, value: G["requests"][N]): boolean {
    const place = this.schema.request(name);
    const isForAnyWorld = this.schema.data.requests[place]!.isForAnyWorld;
    if (this.state !== "connected" || !this.#connection || (!this.#world && !isForAnyWorld)) return false;
    this.#writer.clear();
    this.#writer.put(Uint8Array.of(REQUEST, this.#world?.epoch ?? 0, place));
    this.schema.requests[place]!.write(value, this.#writer, name);
    return this.#connection.sendReliable(this.#writer.take());
  }

  /** What worlds have told us alone, since this was last asked, in order. */
  takeMessages(): Named<G["messages"]>[] {
    return this.#messages.splice(0);
  }

  /** Events of this stay, since this was last asked, in the order of their arrival. */
  takeEvents(): Named<G["events"]>[] {
    return this.#events.splice(0);
  }

  /** Which moment of its world a player is to be shown now: an even walk behind the newest snapshot. `null`: no world. */
  seen(nowMs: number): Moment | null {
    return this.#world ? momentOf(this.#seen(this.#world, nowMs)) : null;
  }

  /** How many inputs are due in a game that sends one for each tick of its world. */
  dueInputs(nowMs: number): number {
    if (!this.#world) return 0;
    const serverMs = this.#serverClock.read(nowMs, this.#world.tickHz);
    return serverMs === null ? 0 : this.#inputClock.due(serverMs, this.#world.tickHz);
  }

  /** A component of the own entity as the server has it: what a prediction is held against. `null` while it is not known. */
  ownState<N extends keyof G["components"] & string>(name: N): OwnState<G["components"][N]> | null {
    if (this.#ownEntity === null || !this.#world) return null;
    const [state, toldTick] = [this.replicas.get(this.#ownEntity, name), this.replicas.tickOf(this.#ownEntity, name)];
    if (state === undefined || toldTick === undefined) return null;
    const answer = this.#answers.holdsUntil(toldTick, this.#world.tickHz);
    return answer && { state, tick: answer.tick, input: answer.input };
  }

  /** Says goodbye, and is disconnected. */
  close(nowMs: number, send: Send, reason: DisconnectReason = { is: "closed-by-client" }): void {
    if (!this.#reason) this.#connection?.close(nowMs, send);
    this.#disconnect(reason);
  }

  #seen(world: World, nowMs: number): Seen {
    return this.#viewClock.seen(nowMs, this.#serverClock, this.newestTick, world.tickHz);
  }

  #followHandshake(nowMs: number): void {
    const handshake = this.#handshake;
    if (handshake?.state === "connected") {
      this.#handshake = null;
      this.#connection = new Connection(handshake.link, nowMs);
    } else if (handshake?.failure) this.#disconnect({ is: "handshake", failure: handshake.failure });
  }

  #followConnection(): void {
    const end = this.#connection?.end;
    if (end) this.#disconnect({ is: end });
  }

  /** Nothing that this server says can be read. */
  #leaveForeign(connection: Connection, server: string, nowMs: number, send: Send): void {
    const own = this.schema.data.hash;
    for (let said = 0; said < MISMATCHES_SAID; said++) {
      connection.sendUnreliable(writeSchemaHash(own));
      connection.sendPacket(nowMs, send);
    }
    connection.close(nowMs, send);
    this.#disconnect({ is: "schema-mismatch", own, server });
  }

  #disconnect(reason: DisconnectReason): void {
    this.#reason ??= reason;
    this.#handshake = null;
  }

  #take(channel: Channel, message: Uint8Array, nowMs: number): void {
    if (this.#foreignHash !== null) return;
    try {
      this.#read(channel, message, nowMs);
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      this.stats.protocolErrors++;
    }
  }

  #read(channel: Channel, message: Uint8Array, nowMs: number): void {
    const isReliable = channel === "reliable";
    switch (message[0]) {
      case SNAPSHOT:
      case SLOWED_SNAPSHOT:
        return this.#takeSnapshot(message, nowMs);
      case AUDIT_SAMPLE:
        return this.#takeAuditSample(message);
      case EVENT:
        return this.#takeEvent(isReliable, message);
      case CONTROL:
        if (isReliable) return this.#takeControl(message);
        break;
      case MESSAGE:
        if (isReliable) return this.#takeMessage(message);
        break;
    }
    throw new Malformed("a message that is none to a client");
  }

  #takeControl(message: Uint8Array): void {
    const control = readControl(message);
    if (control.is === "schema") {
      if (control.hash === this.schema.data.hash) return;
      this.#foreignHash = control.hash;
      // What came earlier, because it need not wait for a lost packet, was unreadable for this one reason.
      this.stats.protocolErrors = 0;
      return;
    }
    // Else a snapshot has told of a later stay already; that one's own message follows.
    if (!this.#enterEpoch(control.world.epoch)) return;
    this.#ownEntity = control.ownEntity;
    if (this.#world) return;
    this.#world = control.world;
    this.replicas.samples.graceTicks = GRACE_S * control.world.tickHz;
  }

  #takeSnapshot(message: Uint8Array, nowMs: number): void {
    if (!this.#enterEpoch(message[1] ?? 0)) {
      this.stats.oldEpochMessages++;
      return;
    }
    const { tick, input, timePercent } = this.replicas.apply(message);
    this.replicas.checkAuditSamples();
    this.#inputs.answered(nowMs, input);
    this.#inputBuffer.answered(input);
    this.#answers.heard(tick, input, this.#inputs.lastNumber);
    // Without its world's name we do not know how long its ticks are.
    if (this.#world) this.#serverClock.heard(nowMs, tick, this.#world.tickHz, timePercent);
    this.stats.snapshots++;
  }

  #takeAuditSample(message: Uint8Array): void {
    if (message[1] !== this.replicas.epoch) {
      this.stats.oldEpochMessages++;
      return;
    }
    this.replicas.holdAuditSample(message, this.newestTick);
    this.replicas.checkAuditSamples();
  }

  #takeEvent(isReliable: boolean, message: Uint8Array): void {
    const from = new Reader(message, 1);
    const [epoch, place] = [from.u8(), from.u8()];
    const kind = this.schema.data.events[place];
    if (!kind || kind.isReliable !== isReliable) throw new Malformed("an event of no kind that is sent so");
    if (epoch !== this.replicas.epoch) {
      this.stats.oldEpochMessages++;
      return;
    }
    const value = this.schema.events[place]!.read(from);
    from.end();
    this.#keep(this.#events, { name: kind.name, value } as Named<G["events"]>);
  }

  #takeMessage(message: Uint8Array): void {
    const kind = this.schema.data.messages[message[1] ?? 255];
    if (!kind) throw new Malformed("a message of no kind");
    const value = unpack(this.schema.messages[message[1]!]!, message.subarray(2));
    this.#keep(this.#messages, { name: kind.name, value } as Named<G["messages"]>);
  }

  #keep<T>(list: T[], one: T): void {
    if (list.length === WAITING_MAX) {
      list.shift();
      this.stats.messagesDropped++;
    }
    list.push(one);
  }

  /** True when `epoch` is the current stay, which it becomes if it is a newer one. */
  #enterEpoch(epoch: number): boolean {
    const before = this.replicas.epoch;
    if (!this.replicas.enterEpoch(epoch)) return false;
    if (before === epoch) return true;
    this.#world = null;
    this.#ownEntity = null;
    this.#events = [];
    this.#inputs.leftWorld();
    this.#inputBuffer.leftWorld();
    this.#answers.leftWorld(this.#inputs.lastNumber);
    this.#serverClock.leftWorld();
    this.#viewClock.leftWorld();
    this.#inputClock.leftWorld();
    return true;
  }
}

/** Why it is over, for the player who reads it. */
export function textOfReason(reason: DisconnectReason): string {
  switch (reason.is) {
    case "handshake":
      if (reason.failure === "timed-out") return "no server answered";
      if (reason.failure === "token-expired") return "no server answered, and the connect token has expired by now: log in again";
      return textOfDenial(reason.failure.denied);
    case "closed-by-server":
      return "the server ended the connection";
    case "closed-by-client":
      return "you left";
    case "timed-out":
      return "the connection was lost: the server has been silent for too long";
    case "broken":
      return "the connection broke";
    case "tunnel-closed":
      return "the connection was lost";
    case "schema-mismatch":
      return `this page and this server were built from different versions of the game (schema ${reason.own} here, ${reason.server} there): reload the page`;
  }
}
