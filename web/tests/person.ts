// A person at a page that plays: what its client knows, whom to go for, and what the server said of shots. All of it is
// read in the page itself, from the client that its picture is drawn from; mouse and keys are real ones, but for a pointer
// that has to follow somebody in each frame.

import type { Page } from "playwright-core";
import type { SocketClient } from "../client/index.ts";
import { ROWS, SQUARE_M } from "../play/duel/map.ts";

/** What the page's client knows, and what it was told since the test began to look. */
export interface Known {
  readonly state: string;
  readonly world: string | null;
  readonly own: Place | null;
  readonly others: number;
  readonly checks: number;
  readonly errors: number;
  readonly protocolErrors: number;
  readonly inputs: number;
  readonly tunnel: string;
  /** Of a match: which part of a round it is. */
  readonly phase: string | null;
  /** Whoever may be fought, the nearest first; of a match those with no wall between, since one hears of the others a moment
   * before they come round their corner. */
  readonly enemies: readonly Place[];
  /** By the server: shots and blows of this player, and those that hurt somebody. */
  readonly shots: number;
  readonly hits: number;
}

export interface Place {
  readonly x: number;
  readonly z: number;
}

/** Pixels of a metre in a picture as small as the tests' is. */
export const METRE_PIXELS = 13;

/** Looks on while the page draws: each frame takes the events, and with them what they say of this player. */
export function watch(page: Page, game: string): Promise<void> {
  return page.evaluate(([name, pixels, rows, square]) => {
    const { session } = globalThis.throng as { session: SocketClient };
    const { client } = session;
    const replicas = client.replicas;
    const get = (id: unknown, component: string): any => replicas.get(id as never, component as never);
    const told = { shots: 0, hits: 0 };
    (globalThis as any).told = told;
    let shotsBefore: number | null = null;
    const health = new Map<unknown, number>();
    // A match's players run at 5 m/s: the pointer is on the nearest one, where that is shown at the moment of the input, since
    // shots go into that past.
    const tracks = new Map<unknown, { tick: number; x: number; z: number }[]>();
    const follow = (own: unknown): void => {
      const seen = client.seen(performance.now());
      const [at, alive] = [get(own, "Pose"), [...(replicas.each("Score" as never) as Iterable<[never, any]>)][0]?.[1].alive ?? 0];
      if (!seen || !at) return;
      let nearest: { x: number; z: number; apart: number } | null = null;
      for (const [id, pose] of replicas.each("Pose" as never) as Iterable<[never, any]>) {
        const track = tracks.get(id) ?? [];
        tracks.set(id, track);
        const tick = replicas.tickOf(id, "Pose" as never)!;
        if (track.at(-1)?.tick !== tick) track.push({ tick, x: pose.x, z: pose.z });
        while (track.length > 1 && track[1]!.tick <= seen.tick) track.shift();
        const player = get(id, "Player");
        if (id === own || !player || player.team === get(own, "Player")?.team || ((alive >>> player.seat) & 1) === 0) continue;
        const [from, to] = [track[0]!, track[1] ?? track[0]!];
        const share = to === from ? 0 : Math.max((seen.tick + seen.part - from.tick) / (to.tick - from.tick), 0);
        const [x, z] = [from.x + (to.x - from.x) * share, from.z + (to.z - from.z) * share];
        const apart = Math.hypot(x - at.x, z - at.z);
        if (isInSight(at, { x, z }) && (!nearest || apart < nearest.apart)) nearest = { x, z, apart };
      }
      if (!nearest) return;
      const where = { clientX: innerWidth / 2 + (nearest.x - at.x) * pixels, clientY: innerHeight / 2 - (nearest.z - at.z) * pixels };
      document.querySelector("canvas")!.dispatchEvent(new PointerEvent("pointermove", where));
    };
    const isInSight = (from: Place, to: Place): boolean => {
      const apart = Math.hypot(to.x - from.x, to.z - from.z);
      for (let far = 0; far < apart; far += 0.2) {
        const [x, z] = [from.x + ((to.x - from.x) * far) / apart, from.z + ((to.z - from.z) * far) / apart];
        const letter = rows[rows.length / 2 - 1 - Math.floor(z / square)]?.[Math.floor(x / square) + rows[0]!.length / 2];
        if (letter === "#" || letter === "C") return false;
      }
      return true;
    };
    if (name === "duel") {
      (globalThis as any).isInSight = isInSight;
      const due = client.dueInputs.bind(client);
      client.dueInputs = (nowMs) => {
        if (client.ownEntity !== null) follow(client.ownEntity);
        return due(nowMs);
      };
    }
    const take = client.takeEvents.bind(client);
    client.takeEvents = () => {
      const events = take();
      const own = client.ownEntity;
      if (own === null) return events;
      for (const { name: event, value } of events as unknown as { name: string; value: any }[]) {
        if (event === "combat.shot" && value.seat === get(own, "Player")?.seat) told.shots++;
        if (event === "combat.hit") told.hits++; // said to the shooter alone
        if (event === "spell.cast" && value.caster === own) told.shots++;
        if (event === "combat.damage" && value.source === own && value.target !== own) told.hits++;
      }
      if (name !== "precinct") return events;
      // Here a hit is known by what it did: who stands where this player aims is hurt in the tick of the player's own shot.
      const action = get(own, "Action");
      const tick = replicas.tickOf(own, "Action" as never);
      const hasShot = action?.kind === "Shot" && shotsBefore !== null && action.count !== shotsBefore;
      if (hasShot) told.shots += (action.count - shotsBefore!) & 63;
      if (action) shotsBefore = action.count;
      const at = get(own, "Pose");
      for (const [id, vitals] of replicas.each("Vitals" as never) as Iterable<[never, any]>) {
        const isHurt = vitals.health < (health.get(id) ?? 0);
        health.set(id, vitals.health);
        const there = get(id, "Pose");
        if (!isHurt || !hasShot || id === own || !there || replicas.tickOf(id, "Vitals" as never) !== tick) continue;
        const aside = Math.abs(((Math.atan2(there.x - at.x, there.z - at.z) - at.yaw + 3 * Math.PI) % (2 * Math.PI)) - Math.PI);
        if (aside < 0.2) told.hits++;
      }
      return events;
    };
  }, [game, METRE_PIXELS, ROWS, SQUARE_M] as const);
}

/** What the page's client knows now. */
export function known(page: Page, game: string): Promise<Known> {
  return page.evaluate((name) => {
    const MONSTERS = ["Wolf", "Bandit", "Shaman", "Brute", "Stalker", "Howler", "Plaguebearer"];
    const none = { state: "no session", world: null, own: null, others: 0, checks: 0, errors: 0, protocolErrors: 0, inputs: 0, tunnel: "", phase: null, enemies: [], shots: 0, hits: 0 };
    const session = globalThis.throng?.session;
    if (!session) return none;
    const { client, tunnel } = session;
    const replicas = client.replicas;
    const get = (id: unknown, component: string): any => replicas.get(id as never, component as never);
    const each = (component: string): [never, any][] => [...(replicas.each(component as never) as Iterable<[never, any]>)];
    const place = name === "frontier" ? "pose" : "Pose";
    const own = client.ownEntity === null ? undefined : get(client.ownEntity, place);
    const alive = name === "duel" && client.world?.name === "match" ? (each("Score")[0]?.[1].alive ?? 0) : 0;
    const isEnemy: Record<string, (id: never) => boolean> = {
      precinct: (id) => get(id, "Character")?.npc && get(id, "Character").faction !== "Agents" && get(id, "Vitals")?.alive,
      frontier: (id) => MONSTERS.includes(get(id, "look")?.kind) && get(id, "vitals")?.alive,
      duel: (id) => get(id, "Player") && get(id, "Player").team !== get(client.ownEntity, "Player")?.team && ((alive >>> get(id, "Player").seat) & 1) === 1,
    };
    const enemies = own
      ? each(place)
          .filter(([id]) => id !== client.ownEntity && isEnemy[name]!(id))
          .map(([, { x, z }]) => ({ x, z }))
          .filter((place) => (globalThis as any).isInSight?.(own, place) ?? true)
          .sort((a, b) => Math.hypot(a.x - own.x, a.z - own.z) - Math.hypot(b.x - own.x, b.z - own.z))
      : [];
    const { stateChecks, stateErrors } = replicas.counts;
    const { shots, hits } = (globalThis as any).told ?? none;
    return {
      state: client.state,
      world: client.world?.name ?? null,
      own: own ? { x: own.x, z: own.z } : null,
      others: replicas.size,
      checks: stateChecks,
      errors: stateErrors,
      protocolErrors: client.stats.protocolErrors,
      inputs: client.stats.inputsSent,
      tunnel: tunnel.name,
      phase: name === "duel" && client.world?.name === "match" ? (each("Clock")[0]?.[1].phase ?? null) : null,
      enemies: enemies.slice(0, 5),
      shots,
      hits,
    };
  }, game);
}

/** Keys by which one walks that way. */
export function keysTo([east, north]: readonly [number, number]): string[] {
  const apart = Math.hypot(east, north);
  return [...(Math.abs(east) > apart / 3 ? [east > 0 ? "KeyD" : "KeyA"] : []), ...(Math.abs(north) > apart / 3 ? [north > 0 ? "KeyW" : "KeyS"] : [])];
}

/** Hands on mouse and keys. What is asked for again is held on. */
export class Hands {
  readonly #page: Page;
  readonly #held = new Set<string>();
  #isMouseDown = false;

  constructor(page: Page) {
    this.#page = page;
  }

  /** Holds these keys and no others. */
  async hold(keys: readonly string[]): Promise<void> {
    for (const key of [...this.#held]) {
      if (keys.includes(key)) continue;
      this.#held.delete(key);
      await this.#page.keyboard.up(key);
    }
    for (const key of keys) {
      if (this.#held.has(key)) continue;
      this.#held.add(key);
      await this.#page.keyboard.down(key);
    }
  }

  /** Points from the player, who is in the middle of the picture, so many pixels to the east and to the north. */
  async point(east: number, north: number): Promise<void> {
    const { width, height } = this.#page.viewportSize()!;
    await this.#page.mouse.move(width / 2 + east, height / 2 - north);
  }

  async trigger(isDown: boolean): Promise<void> {
    if (isDown === this.#isMouseDown) return;
    this.#isMouseDown = isDown;
    await (isDown ? this.#page.mouse.down() : this.#page.mouse.up());
  }
}
