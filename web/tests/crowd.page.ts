// The part of `npm run load` in a page: many clients over WebTransport, by the module that the server gives to pages.

import type { Schema, SchemaData, SocketClient, WebTransportPlace, openWebTransport } from "../client/index.ts";
import { type Known, play } from "./playing.ts";

/** What a page has of the server's own module. */
interface Module {
  readonly Schema: typeof Schema;
  readonly SocketClient: typeof SocketClient;
  readonly openWebTransport: typeof openWebTransport;
}

declare global {
  var crowd: Crowd;
}

class Crowd {
  readonly #clients: SocketClient[] = [];
  #module: Module | null = null;
  #schema: Schema | null = null;
  #known: (() => Known) | null = null;

  /** Takes module and schema from the server, as any page takes them. */
  async open(playUrl: string, inputName: string, everyMs: number): Promise<void> {
    this.#module = (await import(`${playUrl}client.js`)) as Module;
    const { data } = (await import(`${playUrl}schema.js`)) as { data: SchemaData };
    this.#schema = new this.#module.Schema(data);
    this.#known = play(this.#clients, inputName, everyMs);
  }

  /** One more client. */
  async join(token: string, place: WebTransportPlace, timeoutMs: number): Promise<void> {
    const tunnel = await this.#module!.openWebTransport(place, timeoutMs);
    this.#clients.push(new this.#module!.SocketClient(this.#schema!, token, tunnel));
  }

  /** How many have been told of a world. */
  playing(): number {
    return this.#clients.filter(({ client }) => client.replicas.size > 0).length;
  }

  known(): Known {
    return this.#known!();
  }
}

globalThis.crowd = new Crowd();
