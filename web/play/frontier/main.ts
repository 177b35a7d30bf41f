// Plays frontier: run through the landscape, choose whom to fight with a click, strike and cast.

import { type EntityId, generationOf, mix, mixAngle, slotOf } from "../../client/index.ts";
import { disc, grid, label, line } from "../camera.ts";
import { toMove } from "../direction.ts";
import { Flashes } from "../flashes.ts";
import { Runner } from "../runner.ts";
import { type Frame, play } from "../shell.ts";
import { Tracks } from "../tracks.ts";
import { stepOf } from "./movement.ts";
import { type Ability, type Game, type Kind, type Pose, schema } from "./schema.ts";

const ATTACK = 1;
const RUN = 2;
const GATHER = 8;
const TURN = 2 * Math.PI;
const SPELLS: Record<string, Ability> = { Digit1: "Bolt", Digit2: "Blast", Digit3: "Heal", Digit4: "Stun", Digit5: "Totem", Digit6: "Recall" };
const MONSTERS: readonly Kind[] = ["Wolf", "Bandit", "Shaman", "Brute", "Stalker", "Howler", "Plaguebearer"];
/** A click chooses who is no farther from it (m). */
const CHOSEN_WITHIN_M = 2;

const runner = new Runner();
const flashes = new Flashes();
const places = new Tracks<Game, "pose">("pose", (pose, later, share): Pose => ({
  x: mix(pose.x, later.x, share), z: mix(pose.z, later.z, share), heading: mixAngle(pose.heading, later.heading, share),
}));
const shownAt = new Map<EntityId, Pose>();
let own = { x: 0, z: 0, heading: 0 };
let target: EntityId | null = null;
let ability: Ability = "None";
let told = "";

void play(schema, {
  title: "frontier",
  help: "WASD walk, Shift runs, a click chooses, Space strikes, 1 bolt 2 blast 3 heal 4 stun 5 totem 6 recall, E gathers, T talks to doors and bankers",
  prediction: runner.stats,

  enteredWorld() {
    runner.leftWorld();
    places.clear();
    target = null;
  },

  input({ client, controls, camera, nowMs }) {
    const [x, z] = camera.worldAt(controls.pointerX, controls.pointerY);
    own.heading = (Math.atan2(x - own.x, z - own.z) + TURN) % TURN;
    const isRunning = controls.isDown("ShiftLeft", "ShiftRight");
    const buttons = (controls.isDown("Space") ? ATTACK : 0) | (isRunning ? RUN : 0) | (controls.isDown("KeyE") ? GATHER : 0);
    const move = toMove(controls.direction);
    const heading = Math.floor(own.heading * (65_536 / TURN)) & 0xffff;
    const number = client.sendInput("frontier.input", { move_x: move[0], move_z: move[1], heading, ability, buttons }, nowMs);
    if (!Object.keys(SPELLS).some((code) => controls.isDown(code))) ability = "None";
    const step = stepOf(move, isRunning, client.world!.tickHz);
    runner.took(number, step.x, step.z);
  },

  pressed(code, frame) {
    ability = SPELLS[code] ?? ability;
    if (code === "Mouse0") choose(frame);
    if (code === "KeyT" && target !== null) frame.client.request("frontier.wish", { is: "Use", value: named(target) });
  },

  draw(frame) {
    const { client, canvas, camera, nowMs } = frame;
    const shown = runner.shown(nowMs, client.ownState("pose"));
    if (shown) own = { ...own, x: shown.x, z: shown.z };
    camera.metres = 80;
    camera.lookAt(canvas, own.x, own.z);
    canvas.strokeStyle = "#242a33";
    grid(canvas, camera, 10);
    shownAt.clear();
    for (const [id, pose] of places.shown(client, nowMs)) {
      const isOwn = id === client.ownEntity;
      const at = isOwn ? { ...pose, ...own } : pose;
      shownAt.set(id, at);
      drawThing(frame, id, at, isOwn);
    }
    hear(frame);
    flashes.draw(canvas, nowMs);
    client.takeMessages();
  },

  status({ client }) {
    const vitals = client.ownEntity === null ? undefined : client.replicas.get(client.ownEntity, "vitals");
    const look = target === null ? undefined : client.replicas.get(target, "look");
    const lines = [vitals ? (vitals.alive ? `health ${vitals.health} %` : "you have died, and rise in a moment") : ""];
    if (look) lines.push(`chosen: ${look.kind} of level ${look.level}`);
    return [...lines, told].filter(Boolean);
  },
});

const named = (id: EntityId) => ({ slot: slotOf(id), generation: generationOf(id) });

/** Whoever is nearest to the pointer. */
function choose({ client, camera, controls }: Frame<Game>): void {
  const [x, z] = camera.worldAt(controls.pointerX, controls.pointerY);
  const near = [...shownAt].map(([id, pose]) => ({ id, apart: Math.hypot(pose.x - x, pose.z - z) }));
  const nearest = near.filter(({ id, apart }) => apart < CHOSEN_WITHIN_M && id !== client.ownEntity).sort((a, b) => a.apart - b.apart)[0];
  target = nearest?.id ?? null;
  client.request("frontier.wish", { is: "Target", value: target === null ? null : named(target) });
}

function hear({ client, nowMs }: Frame<Game>): void {
  for (const event of client.takeEvents()) {
    if (event.name === "chat.say") told = `${event.value.name}: ${event.value.words}`;
    if (event.name !== "combat.damage") continue;
    const [at, from] = [shownAt.get(event.value.target), event.value.source === null ? undefined : shownAt.get(event.value.source)];
    if (!at) continue;
    flashes.add(nowMs, 600, (on, share) => {
      on.globalAlpha = share;
      on.fillStyle = on.strokeStyle = "#ff8a80";
      label(on, String(event.value.amount), at.x, at.z + 2 - share, 1);
      if (from && share > 0.8) line(on, from.x, from.z, at.x, at.z, 0.1);
    });
  }
}

function drawThing({ client: { replicas }, canvas }: Frame<Game>, id: EntityId, pose: Pose, isOwn: boolean): void {
  const [look, vitals, name] = [replicas.get(id, "look"), replicas.get(id, "vitals"), replicas.get(id, "name")];
  if (!look) return;
  canvas.globalAlpha = vitals && !vitals.alive ? 0.3 : 1;
  canvas.fillStyle = canvas.strokeStyle = isOwn ? "#ffffff" : look.kind === "Player" ? "#6db3f2" : MONSTERS.includes(look.kind) ? "#e0607e" : "#9fc37a";
  if (look.kind === "Door" || look.kind === "Node" || look.kind === "Trap" || look.kind === "Totem") canvas.fillRect(pose.x - 0.5, pose.z - 0.5, 1, 1);
  else {
    disc(canvas, pose.x, pose.z, 0.3 + look.level / 120);
    line(canvas, pose.x, pose.z, pose.x + Math.sin(pose.heading), pose.z + Math.cos(pose.heading), 0.12);
  }
  if (id === target) {
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
