// Plays frontier: run through the landscape, choose whom to fight with a click, strike and cast; claim a plot and build there.

import { type EntityId, generationOf, mix, mixAngle, slotOf } from "../../client/index.ts";
import { disc, grid, label, line } from "../camera.ts";
import { Flashes } from "../flashes.ts";
import { OwnPlayer } from "../own_player.ts";
import { Runner } from "../runner.ts";
import { type Frame, type GamePage, play } from "../shell.ts";
import { Tracks } from "../tracks.ts";
import { cellAt, plotOf } from "./cells.ts";
import { drawLand } from "./draw_land.ts";
import { Land } from "./land.ts";
import { type Hindrance, stepOf, walk } from "./movement.ts";
import { type Ability, type Game, type Kind, type Pose, schema } from "./schema.ts";
import { workOf } from "./works.ts";

const ATTACK = 1;
const RUN = 2;
const GATHER = 8;
const TURN = 2 * Math.PI;
const SPELLS: Record<string, Ability> = { Digit1: "Bolt", Digit2: "Blast", Digit3: "Heal", Digit4: "Stun", Digit5: "Totem", Digit6: "Recall" };
const MONSTERS: readonly Kind[] = ["Wolf", "Bandit", "Shaman", "Brute", "Stalker", "Howler", "Plaguebearer"];
/** A click chooses who is no farther from it (m). */
const CHOSEN_WITHIN_M = 2;

type Events = ReturnType<Frame<Game>["client"]["takeEvents"]>;

const named = (id: EntityId) => ({ slot: slotOf(id), generation: generationOf(id) });

class FrontierPage implements GamePage<Game> {
  readonly title = "frontier";
  readonly help = "WASD walk, Shift runs, a click chooses, Space strikes, 1 bolt 2 blast 3 heal 4 stun 5 totem 6 recall, E gathers, T talks to doors and bankers; at the pointer C claims a plot and V gives it up, B builds a wall and F a floor, X fells, digs and batters";
  readonly #land = new Land();
  #hindrance: Hindrance = { land: this.#land, isHeld: false, isSnared: false };
  readonly #runner = new Runner((from, by) => walk(from, by, this.#hindrance));
  readonly prediction = this.#runner.stats;
  readonly #own = new OwnPlayer();
  readonly #flashes = new Flashes();
  readonly #places = new Tracks<Game, "pose">("pose", (pose, later, share): Pose => ({
    x: mix(pose.x, later.x, share), z: mix(pose.z, later.z, share), heading: mixAngle(pose.heading, later.heading, share),
  }));
  readonly #shownAt = new Map<EntityId, Pose>();
  #target: EntityId | null = null;
  #ability: Ability = "None";
  #told = "";
  #carried = 0;

  enteredWorld(): void {
    this.#runner.leftWorld();
    this.#places.clear();
    this.#target = null;
  }

  input(frame: Frame<Game>): void {
    const { client, controls, nowMs } = frame;
    const { move, yaw } = this.#own.asked(frame);
    const isRunning = controls.isDown("ShiftLeft", "ShiftRight");
    const buttons = (controls.isDown("Space") ? ATTACK : 0) | (isRunning ? RUN : 0) | (controls.isDown("KeyE") ? GATHER : 0);
    const number = client.sendInput("frontier.input", { move_x: move[0], move_z: move[1], heading: yaw, ability: this.#ability, buttons }, nowMs);
    if (!Object.keys(SPELLS).some((code) => controls.isDown(code))) this.#ability = "None";
    const step = stepOf(move, isRunning, client.world!.tickHz);
    this.#runner.took(number, step.x, step.z);
  }

  pressed(code: string, frame: Frame<Game>): void {
    this.#ability = SPELLS[code] ?? this.#ability;
    if (code === "Mouse0") this.#choose(frame);
    if (code === "KeyT" && this.#target !== null) frame.client.request("frontier.wish", { is: "Use", value: named(this.#target) });
    this.#work(code, frame);
  }

  draw(frame: Frame<Game>): void {
    const { client, canvas, camera, nowMs } = frame;
    const events = client.takeEvents();
    this.#learn(frame, events);
    this.#own.moveTo(this.#runner.shown(nowMs, client.ownState("pose")));
    camera.metres = 80;
    camera.lookAt(canvas, this.#own.x, this.#own.z);
    canvas.strokeStyle = "#242a33";
    grid(canvas, camera, 10);
    if (client.ownState("pose")) drawLand(canvas, camera, this.#land);
    this.#shownAt.clear();
    for (const [id, pose] of this.#places.shown(client, nowMs)) {
      const isOwn = id === client.ownEntity;
      const at = isOwn ? { x: this.#own.x, z: this.#own.z, heading: this.#own.yaw } : pose;
      this.#shownAt.set(id, at);
      this.#drawThing(frame, id, at, isOwn);
    }
    this.#hear(frame, events);
    this.#flashes.draw(canvas, nowMs);
  }

  status({ client }: Frame<Game>): string[] {
    const vitals = client.ownEntity === null ? undefined : client.replicas.get(client.ownEntity, "vitals");
    const look = this.#target === null ? undefined : client.replicas.get(this.#target, "look");
    const lines = [vitals ? (vitals.alive ? `health ${vitals.health} %` : "you have died, and rise in a moment") : ""];
    if (look) lines.push(`chosen: ${look.kind} of level ${look.level}`);
    const { whose } = this.#land.at(plotOf(cellAt(this.#own.x, this.#own.z)));
    if (whose !== "Nobodys") lines.push(whose === "Own" ? "on your plot" : "on another's plot");
    if (this.#carried > 0) lines.push(`carries ${this.#carried}`);
    return [...lines, this.#told].filter(Boolean);
  }

  /** What was told of the land and of what keeps the player, before it is predicted by that. */
  #learn({ client }: Frame<Game>, events: Events): void {
    for (const message of client.takeMessages()) {
      if (message.name === "frontier.realm") {
        this.#land.begin(message.value.seed);
        // Who carries something is told of it after this.
        this.#carried = 0;
      } else this.#land.seen(message.value);
    }
    for (const event of events) {
      if (event.name === "purse") this.#carried = event.value.carried;
      if (event.name === "land.changed") this.#land.changed(event.value);
    }
    const own = client.ownEntity;
    if (own === null) return;
    const [pose, vitals, effects] = [client.replicas.get(own, "pose"), client.replicas.get(own, "vitals"), client.replicas.get(own, "effects")];
    if (pose) this.#land.moveTo(cellAt(pose.x, pose.z));
    this.#hindrance = { land: this.#land, isHeld: vitals?.alive === false || effects?.stunned === true, isSnared: effects?.snared === true };
  }

  /** Asks for what a key does to the land at the pointer. */
  #work(code: string, { client, camera, controls }: Frame<Game>): void {
    const cell = cellAt(...camera.worldAt(controls.pointerX, controls.pointerY));
    const { isHeld } = this.#hindrance;
    const work = workOf(code, cell, this.#land, { x: this.#own.x, z: this.#own.z, isHeld, carried: this.#carried });
    if (work === null) return;
    this.#told = typeof work === "string" ? work : "";
    if (typeof work !== "string") client.request("frontier.work", work);
  }

  /** Whoever is nearest to the pointer. */
  #choose({ client, camera, controls }: Frame<Game>): void {
    const [x, z] = camera.worldAt(controls.pointerX, controls.pointerY);
    const near = [...this.#shownAt].map(([id, pose]) => ({ id, apart: Math.hypot(pose.x - x, pose.z - z) }));
    const nearest = near.filter(({ id, apart }) => apart < CHOSEN_WITHIN_M && id !== client.ownEntity).sort((a, b) => a.apart - b.apart)[0];
    this.#target = nearest?.id ?? null;
    client.request("frontier.wish", { is: "Target", value: this.#target === null ? null : named(this.#target) });
  }

  #hear({ nowMs }: Frame<Game>, events: Events): void {
    for (const event of events) {
      if (event.name === "chat.say") this.#told = `${event.value.name}: ${event.value.words}`;
      if (event.name !== "combat.damage") continue;
      const [at, from] = [this.#shownAt.get(event.value.target), event.value.source === null ? undefined : this.#shownAt.get(event.value.source)];
      if (!at) continue;
      this.#flashes.add(nowMs, 600, (on, share) => {
        on.globalAlpha = share;
        on.fillStyle = on.strokeStyle = "#ff8a80";
        label(on, String(event.value.amount), at.x, at.z + 2 - share, 1);
        if (from && share > 0.8) line(on, from.x, from.z, at.x, at.z, 0.1);
      });
    }
  }

  #drawThing({ client: { replicas }, canvas }: Frame<Game>, id: EntityId, pose: Pose, isOwn: boolean): void {
    const [look, vitals, name] = [replicas.get(id, "look"), replicas.get(id, "vitals"), replicas.get(id, "name")];
    if (!look) return;
    canvas.globalAlpha = vitals && !vitals.alive ? 0.3 : 1;
    canvas.fillStyle = canvas.strokeStyle = isOwn ? "#ffffff" : look.kind === "Player" ? "#6db3f2" : MONSTERS.includes(look.kind) ? "#e0607e" : "#9fc37a";
    if (look.kind === "Door" || look.kind === "Node" || look.kind === "Trap" || look.kind === "Totem") canvas.fillRect(pose.x - 0.5, pose.z - 0.5, 1, 1);
    else {
      disc(canvas, pose.x, pose.z, 0.3 + look.level / 120);
      line(canvas, pose.x, pose.z, pose.x + Math.sin(pose.heading), pose.z + Math.cos(pose.heading), 0.12);
    }
    if (id === this.#target) {
      canvas.lineWidth = 0.12;
      canvas.strokeStyle = "#ffd166";
      canvas.beginPath();
      canvas.arc(pose.x, pose.z, 1, 0, TURN);
      canvas.stroke();
    }
    if (name) label(canvas, name.text, pose.x, pose.z + 1, 0.8);
    else if (vitals?.alive && vitals.health < 100) label(canvas, `${vitals.health} %`, pose.x, pose.z + 0.9, 0.7);
    canvas.globalAlpha = 1;
  }
}

void play(schema, new FrontierPage());
