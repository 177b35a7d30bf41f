// A whole player of `games/meadow`, in 50 lines: bundle it into a page that the server shows, or run it in Node 22.

import { type EntityId, Schema, type SchemaData, SocketClient, type TokenAnswer, connect, mix, Track, textOfReason, waysOf } from "./index.ts";

/** Of your game the command `schema` writes this, with all that the server says. */
interface Meadow {
  components: { Position: { x: number; z: number }; Sort: "Player" | "Sheep" | "Flower" };
  events: object;
  inputs: { Walk: { x: number; z: number } };
  requests: { Pick: Record<string, never>; GoThrough: Record<string, never> };
  messages: { "game.basket": { flowers: number } };
}

/** `server` is the page's address, such as `http://127.0.0.1:8080/play/`. */
export async function walk(server: string, data: SchemaData): Promise<SocketClient<Meadow>> {
  const answer = await fetch(new URL("token", server), { method: "POST", headers: { "x-throng": "play" } });
  const given = (await answer.json()) as TokenAnswer;
  const player = await connect(new Schema<Meadow>(data), given.token, waysOf(given, server));
  const { client } = player;
  const tracks = new Map<EntityId, Track<{ x: number; z: number }>>();
  const frame = setInterval(() => {
    const nowMs = performance.now();
    // One input for each tick of the world: what is wanted now, in circles here.
    for (let due = client.dueInputs(nowMs); due > 0; due--) {
      client.sendInput("Walk", { x: Math.round(100 * Math.sin(nowMs / 1000)), z: Math.round(100 * Math.cos(nowMs / 1000)) }, nowMs);
    }
    player.poll();
    // Everybody, shown evenly between the values that came.
    const moment = client.seen(nowMs);
    for (const [id, position] of client.replicas.each("Position")) {
      const track = tracks.get(id) ?? new Track();
      tracks.set(id, track);
      track.push(client.replicas.tickOf(id, "Position")!, position);
      const shown = moment && track.sample(moment, client.world!.tickHz, (one, later, share) => ({ x: mix(one.x, later.x, share), z: mix(one.z, later.z, share) }));
      if (shown && id === client.ownEntity) console.log(`I am at ${shown.x.toFixed(1)}, ${shown.z.toFixed(1)}; ${client.replicas.size} in sight`);
    }
    for (const { name, value } of client.takeMessages()) if (name === "game.basket") console.log(`${value.flowers} flowers`);
    if (client.state !== "disconnected") return;
    clearInterval(frame);
    console.log(textOfReason(client.disconnectReason!));
  }, 50);
  return player;
}
