// How a person fights in each game: points at the nearest, goes there, and shoots.

import type { Page } from "playwright-core";
import { wayThrough } from "./duel_way.ts";
import { Hands, type Known, METRE_PIXELS, type Place, keysTo, known } from "./person.ts";

/** How a game is fought. */
export interface Fight {
  readonly bots: number;
  /** What carries the datagrams. */
  readonly over: "WebSocket" | "WebTransport";
  /** `[game]` of its settings. */
  readonly settings?: string;
  /** Players of a match, at most: it begins when they are there. */
  readonly matchSize?: number;
  /** From how far away (m). */
  readonly within: number;
  /** Pixels of a metre, where the pointer has to be on somebody. */
  readonly pixels?: number;
  /** Keys that are held beside the mouse while somebody is near enough. */
  readonly keys: readonly string[];
  /** Shift runs, where it is far. */
  readonly runs?: true;
  isOn(now: Known): boolean;
  /** The page's own pointer follows whoever is nearest, frame by frame. */
  readonly follows?: true;
  /** Makes what says where to go when nobody is in sight; else round and round. */
  way?(): (own: Place) => Place;
}

export const FIGHTS: Record<string, Fight> = {
  precinct: { bots: 12, over: "WebSocket", within: 20, keys: [], isOn: () => true },
  frontier: {
    bots: 12,
    over: "WebTransport",
    within: 12,
    pixels: METRE_PIXELS,
    keys: ["Digit1", "Space"],
    runs: true,
    isOn: () => true,
  },
  duel: {
    bots: 9,
    matchSize: 10,
    over: "WebTransport",
    settings: "warm_up_s = 1\nstagger_s = 0\nbuy_s = 1\nround_s = 30\nspike_s = 10\nover_s = 1\nrounds_to_win = 30\nfill_s = 60",
    within: 25,
    keys: [],
    isOn: ({ phase }) => phase === "Live" || phase === "Planted",
    follows: true,
    way: wayThrough,
  },
};

/** Somebody at a page that plays, with mouse and keys. */
export class Fighter {
  readonly #page: Page;
  readonly #game: string;
  readonly #fight: Fight;
  readonly #hands: Hands;
  readonly #way: ((own: Place) => Place) | undefined;
  #turn = 0;
  #first: Place | null = null;
  /** Where it was when it had last gone on by a metre, and when that was. */
  #moved: { at: Place; turn: number } | null = null;
  /** From where it was first seen (m). */
  farthest = 0;

  constructor(page: Page, game: string) {
    this.#page = page;
    this.#game = game;
    this.#fight = FIGHTS[game]!;
    this.#hands = new Hands(page);
    this.#way = this.#fight.way?.();
  }

  /** Looks once, and does what follows from that. */
  async turn(): Promise<Known> {
    const now = await known(this.#page, this.#game);
    if (now.own) this.#went(now.own);
    await this.#act(now);
    this.#turn++;
    return now;
  }

  /** Lets go of everything. */
  async rest(): Promise<void> {
    await this.#hands.trigger(false);
    await this.#hands.hold([]);
  }

  #went(own: Place): void {
    this.#first ??= own;
    this.farthest = Math.max(this.farthest, Math.hypot(own.x - this.#first.x, own.z - this.#first.z));
    if (!this.#moved || Math.hypot(own.x - this.#moved.at.x, own.z - this.#moved.at.z) > 1) this.#moved = { at: own, turn: this.#turn };
  }

  /** Points at the nearest, goes there until near enough, and fights. Who has stood still for some looks tries another way. */
  async #act(now: Known): Promise<void> {
    const [fight, hands, turn, own, target] = [this.#fight, this.#hands, this.#turn, now.own, now.enemies[0]];
    if (!own || !fight.isOn(now)) return this.rest();
    // Round what stands in the way, every now and then.
    const aside = ["KeyW", "KeyD", "KeyS", "KeyA"][Math.floor(turn / 12) % 4]!;
    if (!target) {
      await hands.trigger(false);
      const next = this.#way?.(own);
      return hands.hold(next ? keysTo([next.x - own.x, next.z - own.z]) : [aside]);
    }
    const to = [target.x - own.x, target.z - own.z] as const;
    const apart = Math.max(Math.hypot(...to), 0.1);
    const pixels = fight.pixels ?? 150 / apart;
    if (!fight.follows) await hands.point(to[0] * pixels, to[1] * pixels);
    const goesAside = (turn - this.#moved!.turn) % 25 > 15 && !this.#way;
    if (apart > fight.within || goesAside) {
      await hands.trigger(false);
      return hands.hold([...(goesAside ? [aside] : keysTo(to)), ...(fight.runs ? ["ShiftLeft"] : [])]);
    }
    // Whom a click chooses is chosen anew each time; a weapon that climbs comes down between two bursts.
    if (fight.pixels) await hands.trigger(false);
    await hands.trigger(!fight.follows || turn % 8 < 4);
    await hands.hold(fight.keys);
  }
}
