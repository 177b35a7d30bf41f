// A whole player: a client, its tunnel and its clock.

import { Client, type DisconnectReason } from "./client.ts";
import { type Tunnel } from "./tunnels/tunnel.ts";
import { type Ways, openTunnel } from "./tunnels/ways.ts";
import type { GameTypes, Schema } from "./schema.ts";

/** How often acks, keep-alives and steps of the handshake are looked at. */
const POLL_EVERY_MS = 20;

/** A client with its tunnel. */
export class SocketClient<G extends GameTypes = GameTypes> {
  readonly client: Client<G>;
  readonly tunnel: Tunnel;
  /** Called after each datagram, and when the connection ends: for programs without frames of their own. */
  onChange: () => void = () => {};
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #send: (datagram: Uint8Array) => void;

  /** For a tunnel that is open; `connect` opens one. */
  constructor(schema: Schema<G>, token: Uint8Array | string, tunnel: Tunnel) {
    this.client = new Client(schema, token, performance.now());
    this.tunnel = tunnel;
    this.#send = (datagram) => tunnel.send(datagram);
    tunnel.onDatagram = (datagram) => {
      const isConnecting = this.client.state === "connecting";
      this.client.receive(datagram, performance.now());
      if (isConnecting) this.poll();
      this.onChange();
    };
    tunnel.onClose = () => this.close({ is: "tunnel-closed" });
    this.#timer = setInterval(() => this.poll(), POLL_EVERY_MS);
    this.poll();
  }

  /** Sends what is due. Called every 20 ms; call it after inputs, so that they leave at once. */
  poll(): void {
    this.client.poll(performance.now(), this.#send);
    if (this.client.state === "disconnected") this.#end();
  }

  /** Says goodbye. */
  close(reason: DisconnectReason = { is: "closed-by-client" }): void {
    this.client.close(performance.now(), this.#send, reason);
    this.#end();
  }

  #end(): void {
    clearInterval(this.#timer);
    this.tunnel.onClose = () => {};
    this.tunnel.close();
    this.onChange();
  }
}

/**
 * Connects with a token: over WebTransport where the server and the browser have it, and over a WebSocket else. `waysOf` has
 * the ways from what `/play/token` answers; a text is a WebSocket's address (`ws://` or `wss://`).
 *
 * Rejects if nobody answers there. What becomes of the token is told by the client (`state`, `disconnectReason`).
 */
export async function connect<G extends GameTypes>(schema: Schema<G>, token: Uint8Array | string, ways: Ways | string): Promise<SocketClient<G>> {
  const { webSocket, webTransport } = typeof ways === "string" ? { webSocket: ways, webTransport: null } : ways;
  return new SocketClient(schema, token, await openTunnel({ webSocket, webTransport }));
}
