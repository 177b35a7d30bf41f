// Plays precinct: walk, sprint, aim with the mouse and shoot, go from world to world through portals. Shots come from everybody's
// `Action`, whose count rises with each.

import { type EntityId, mix, mixAngle } from "../../client/index.ts";
import { disc, grid, label, line } from "../camera.ts";
import { Flashes } from "../flashes.ts";
import { OwnPlayer } from "../own_player.ts";
import { Runner } from "../runner.ts";
import { type Frame, type GamePage, play } from "../shell.ts";
import { Tracks } from "../tracks.ts";
import { stepOf } from "./movement.ts";
import { Portals } from "./portals.ts";
import { type Game, type Pose, type Vitals, schema } from "./schema.ts";
import { type ClosedDoor, closedDoor, doorHalf, walk } from "./walk.ts";
import { WALLS } from "./walls.ts";

const FIRE = 1;
const SPRINT = 2;
const HEAL = 4;
const GRIP = 8;
/** Over what is lower one sees and shoots: eyes are so high (m). */
const EYE_M = 1.6;
const COLORS = { Agents: "#6db3f2", Rioters: "#f2a65a", Cleaners: "#e0607e" } as const;

class PrecinctPage implements GamePage<Game> {
  readonly title = "precinct";
  readonly help = "WASD walk, Shift sprints, the mouse aims and shoots, Q takes a medkit, E opens doors; walk into a portal to go where it says: others are in the hub and the dark zone";
  // All worlds are in the city block but districts, which tell no `Pose` of a player: there is nothing predicted.
  readonly #runner = new Runner((from, by) => walk(from, by, this.#closedDoors));
  readonly prediction = this.#runner.stats;
  readonly #own = new OwnPlayer();
  readonly #flashes = new Flashes();
  readonly #portals = new Portals();
  readonly #actions = new Map<EntityId, number>();
  readonly #places = new Tracks<Game, "Pose">("Pose", (pose, later, share): Pose => ({
    x: mix(pose.x, later.x, share), y: mix(pose.y, later.y, share), z: mix(pose.z, later.z, share), yaw: mixAngle(pose.yaw, later.yaw, share),
  }));
  /** Those in sight, as far as is known: one that turns while an input is on its way is a correction. */
  #closedDoors: readonly ClosedDoor[] = [];
  #said = "";

  enteredWorld(): void {
    this.#runner.leftWorld();
    this.#portals.enteredWorld();
    this.#places.clear();
    this.#actions.clear();
  }

  input(frame: Frame<Game>): void {
    const { client, controls, nowMs } = frame;
    const { move, yaw } = this.#own.asked(frame);
    const isSprinting = controls.isDown("ShiftLeft", "ShiftRight");
    const buttons =
      (controls.isDown("Mouse0", "Space") ? FIRE : 0) | (isSprinting ? SPRINT : 0) | (controls.isDown("KeyQ") ? HEAL : 0) | (controls.isDown("KeyE") ? GRIP : 0);
    const number = client.sendInput("precinct.input", { move_x: move[0], move_z: move[1], yaw, pitch_degrees: 0, buttons }, nowMs);
    const step = stepOf(move, isSprinting, client.world!.tickHz);
    this.#runner.took(number, step.x, step.z);
  }

  draw(frame: Frame<Game>): void {
    const { client, canvas, camera, nowMs } = frame;
    this.#closedDoors = closedDoorsOf(frame);
    const told = client.ownState("Pose");
    const isAlive = this.#ownVitals(frame)?.alive !== false;
    if (!isAlive) this.#runner.die();
    this.#own.moveTo(isAlive ? this.#runner.shown(nowMs, told) : told?.state);
    camera.lookAt(canvas, this.#own.x, this.#own.z);
    canvas.strokeStyle = "#242a33";
    grid(canvas, camera, 8);
    if (client.world?.name !== "district") {
      drawWalls(frame);
      if (client.world && told) this.#portals.draw(canvas, camera, client.world.name);
    }
    for (const [id, pose] of this.#places.shown(client, nowMs)) {
      const isOwn = id === client.ownEntity;
      const { x, z, yaw } = isOwn ? this.#own : pose;
      this.#drawSomebody(frame, id, { ...pose, x, z, yaw }, isOwn);
    }
    this.#flashes.draw(canvas, nowMs);
    for (const message of client.takeMessages()) if (message.name === "precinct.said") this.#said = `${message.value.speaker}: ${message.value.words}`;
    client.takeEvents();
  }

  status(frame: Frame<Game>): string[] {
    const vitals = this.#ownVitals(frame);
    return [vitals ? (vitals.alive ? `health ${vitals.health}` : "you are down, and come back in a moment") : "", this.#said].filter(Boolean);
  }

  #ownVitals({ client }: Frame<Game>): Vitals | undefined {
    return client.ownEntity === null ? undefined : client.replicas.get(client.ownEntity, "Vitals");
  }

  #drawSomebody({ client: { replicas }, canvas, nowMs }: Frame<Game>, id: EntityId, pose: Pose, isOwn: boolean): void {
    const door = replicas.get(id, "Door");
    if (door || replicas.get(id, "Lying")) {
      canvas.fillStyle = door ? (door.open ? "#39414d" : "#8b7355") : "#c9b458";
      const [halfX, halfZ] = door ? doorHalf(pose.yaw) : [0.25, 0.25];
      canvas.fillRect(pose.x - halfX, pose.z - halfZ, 2 * halfX, 2 * halfZ);
      return;
    }
    const [vitals, character, action] = [replicas.get(id, "Vitals"), replicas.get(id, "Character"), replicas.get(id, "Action")];
    const color = isOwn ? "#ffffff" : character ? COLORS[character.faction] : "#8f99a8";
    canvas.globalAlpha = vitals && !vitals.alive ? 0.3 : 1;
    canvas.strokeStyle = canvas.fillStyle = color;
    disc(canvas, pose.x, pose.z, character?.npc ? 0.35 : 0.45);
    line(canvas, pose.x, pose.z, pose.x + Math.sin(pose.yaw) * 0.9, pose.z + Math.cos(pose.yaw) * 0.9, 0.15);
    if (vitals?.alive && vitals.health < 100) label(canvas, String(vitals.health), pose.x, pose.z + 0.7, 0.6);
    canvas.globalAlpha = 1;
    if (!action || action.count === this.#actions.get(id)) return;
    const isNews = this.#actions.has(id) && action.kind === "Shot";
    this.#actions.set(id, action.count);
    if (isNews) {
      this.#flashes.add(nowMs, 120, (on, share) => {
        on.globalAlpha = share;
        on.strokeStyle = "#ffd166";
        line(on, pose.x, pose.z, pose.x + Math.sin(pose.yaw) * 30, pose.z + Math.cos(pose.yaw) * 30, 0.08);
      });
    }
  }
}

function closedDoorsOf({ client: { replicas } }: Frame<Game>): ClosedDoor[] {
  const poses = [...replicas.each("Door")].map(([id, { open }]) => (open ? undefined : replicas.get(id, "Pose")));
  return poses.filter((pose) => pose !== undefined).map(closedDoor);
}

/** Those in sight. The block is the same in all worlds but a district. */
function drawWalls({ canvas, camera }: Frame<Game>): void {
  const [halfX, halfZ] = camera.halfMetres;
  for (const [west, south, east, north, height] of WALLS) {
    if (west > camera.x + halfX || east < camera.x - halfX || south > camera.z + halfZ || north < camera.z - halfZ) continue;
    canvas.fillStyle = height > EYE_M ? "#39414d" : "#4d4a3a";
    canvas.fillRect(west, south, east - west, north - south);
  }
}

void play(schema, new PrecinctPage());
