// Everybody's places, shown evenly: a track for each entity that has the component, between the values that came.

import { type Between, type EntityId, type GameTypes, type SocketClient, Track } from "../client/index.ts";

export class Tracks<G extends GameTypes, N extends keyof G["components"] & string> {
  readonly #name: N;
  readonly #between: Between<G["components"][N]>;
  readonly #tracks = new Map<EntityId, Track<G["components"][N]>>();

  constructor(name: N, between: Between<G["components"][N]>) {
    this.#name = name;
    this.#between = between;
  }

  clear(): void {
    this.#tracks.clear();
  }

  /** Takes what came, and gives everybody at the moment that is shown now. */
  *shown(client: SocketClient<G>["client"], nowMs: number): Generator<[EntityId, G["components"][N]]> {
    const [seen, world, { replicas }] = [client.seen(nowMs), client.world, client];
    if (!seen || !world) return;
    for (const id of this.#tracks.keys()) if (!replicas.has(id)) this.#tracks.delete(id);
    for (const [id, value] of replicas.each(this.#name)) {
      let track = this.#tracks.get(id);
      if (!track) this.#tracks.set(id, (track = new Track()));
      track.push(replicas.tickOf(id, this.#name)!, value);
      yield [id, track.sample(seen, world.tickHz, this.#between) ?? value];
    }
  }
}
