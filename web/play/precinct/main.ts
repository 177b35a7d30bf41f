// Plays precinct: walk, sprint, aim with the mouse and shoot. Shots come from everybody's `Action`, whose count rises with each.

import { type EntityId, mix, mixAngle } from "../../client/index.ts";
import { disc, grid, label, line } from "../camera.ts";
import { toMove } from "../direction.ts";
import { Flashes } from "../flashes.ts";
import { Runner } from "../runner.ts";
import { type Frame, play } from "../shell.ts";
import { Tracks } from "../tracks.ts";
import { stepOf } from "./movement.ts";
import { type Game, type Pose, schema } from "./schema.ts";

const FIRE = 1;
const SPRINT = 2;
const HEAL = 4;
const GRIP = 8;
const TURN = 2 * Math.PI;
const COLORS = { Agents: "#6db3f2", Rioters: "#f2a65a", Cleaners: "#e0607e" } as const;

const runner = new Runner();
const flashes = new Flashes();
const actions = new Map<EntityId, number>();
const places = new Tracks<Game, "Pose">("Pose", (pose, later, share): Pose => ({
  x: mix(pose.x, later.x, share), y: mix(pose.y, later.y, share), z: mix(pose.z, later.z, share), yaw: mixAngle(pose.yaw, later.yaw, share),
}));
let own = { x: 0, z: 0, yaw: 0 };
let said = "";

void play(schema, {
  title: "precinct",
  help: "WASD walk, Shift sprints, the mouse aims and shoots, Q takes a medkit, E opens doors",
  prediction: runner.stats,

  enteredWorld() {
    runner.leftWorld();
    places.clear();
    actions.clear();
  },

  input({ client, controls, camera, nowMs }) {
    const [x, z] = camera.worldAt(controls.pointerX, controls.pointerY);
    own.yaw = (Math.atan2(x - own.x, z - own.z) + TURN) % TURN;
    const isSprinting = controls.isDown("ShiftLeft", "ShiftRight");
    const buttons =
      (controls.isDown("Mouse0", "Space") ? FIRE : 0) | (isSprinting ? SPRINT : 0) | (controls.isDown("KeyQ") ? HEAL : 0) | (controls.isDown("KeyE") ? GRIP : 0);
    const move = toMove(controls.direction);
    const yaw = Math.floor(own.yaw * (65_536 / TURN)) & 0xffff;
    const number = client.sendInput("precinct.input", { move_x: move[0], move_z: move[1], yaw, pitch_degrees: 0, buttons }, nowMs);
    const step = stepOf(move, isSprinting, client.world!.tickHz);
    runner.took(number, step.x, step.z);
  },

  draw(frame) {
    const { client, canvas, camera, nowMs } = frame;
    const shown = runner.shown(nowMs, client.ownState("Pose"));
    if (shown) own = { ...own, x: shown.x, z: shown.z };
    camera.lookAt(canvas, own.x, own.z);
    canvas.strokeStyle = "#242a33";
    grid(canvas, camera, 8);
    for (const [id, pose] of places.shown(client, nowMs)) {
      const isOwn = id === client.ownEntity;
      drawSomebody(frame, id, isOwn ? { ...pose, ...own } : pose, isOwn);
    }
    flashes.draw(canvas, nowMs);
    for (const message of client.takeMessages()) if (message.name === "precinct.said") said = `${message.value.speaker}: ${message.value.words}`;
    client.takeEvents();
  },

  status({ client }) {
    const vitals = client.ownEntity === null ? undefined : client.replicas.get(client.ownEntity, "Vitals");
    return [vitals ? (vitals.alive ? `health ${vitals.health}` : "you are down, and come back in a moment") : "", said].filter(Boolean);
  },
});

function drawSomebody({ client: { replicas }, canvas, nowMs }: Frame<Game>, id: EntityId, pose: Pose, isOwn: boolean): void {
  const door = replicas.get(id, "Door");
  if (door || replicas.get(id, "Lying")) {
    canvas.fillStyle = door ? (door.open ? "#39414d" : "#8b7355") : "#c9b458";
    canvas.fillRect(pose.x - (door ? 1.5 : 0.25), pose.z - 0.25, door ? 3 : 0.5, 0.5);
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
  if (!action || action.count === actions.get(id)) return;
  const isNews = actions.has(id) && action.kind === "Shot";
  actions.set(id, action.count);
  if (isNews) {
    flashes.add(nowMs, 120, (on, share) => {
      on.globalAlpha = share;
      on.strokeStyle = "#ffd166";
      line(on, pose.x, pose.z, pose.x + Math.sin(pose.yaw) * 30, pose.z + Math.cos(pose.yaw) * 30, 0.08);
    });
  }
}
