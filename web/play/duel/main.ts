// Plays duel: run, walk, aim with the mouse, shoot, plant and defuse, buy and throw, at 128 ticks a second.

import { type EntityId, mix, mixAngle } from "../../client/index.ts";
import { disc, label, line } from "../camera.ts";
import { directionOf } from "../direction.ts";
import { Flashes } from "../flashes.ts";
import { OwnPlayer } from "../own_player.ts";
import { type Frame, type GamePage, play } from "../shell.ts";
import { Tracks } from "../tracks.ts";
import { Body } from "./body.ts";
import { drawMap } from "./map.ts";
import { type Game, type Phase, type Pose, schema } from "./schema.ts";

const FIRE = 1;
const JUMP = 2;
const WALK = 4;
const USE = 8;
const LOAD = 16;
/** Eyes and chests are so high (m). Seen from above a pointer says no height: a shot goes for the chest of whoever is under it. */
const EYE_M = 1.65;
const CHEST_M = 1.3;
/** Who points at his own feet looks this far ahead (m). */
const AIM_M_MIN = 2;
const COLORS = ["#6db3f2", "#f2a65a"] as const;

class DuelPage implements GamePage<Game> {
  readonly title = "duel";
  readonly help =
    "WASD run, Shift walks, Space jumps, the mouse aims and shoots, R loads, E plants and defuses, 1 rifle 2 armour 3 smoke 4 flash, G throws smoke, F a flash";
  readonly #body = new Body();
  readonly prediction = this.#body.stats;
  readonly #own = new OwnPlayer();
  readonly #flashes = new Flashes();
  readonly #places = new Tracks<Game, "Pose">("Pose", (pose, later, share): Pose => {
    if (pose.life !== later.life) return pose;
    return {
      ...pose, x: mix(pose.x, later.x, share), y: mix(pose.y, later.y, share), z: mix(pose.z, later.z, share),
      yaw: mixAngle(pose.yaw, later.yaw, share), pitch: mix(pose.pitch, later.pitch, share),
    };
  });
  readonly #seats = new Map<number, Pose>();
  #kit: Game["messages"]["duel.kit"] | null = null;
  #told = "";
  #waiting = "";
  #blindUntilMs = 0;

  enteredWorld(): void {
    this.#body.leftWorld();
    this.#places.clear();
    this.#seats.clear();
    [this.#kit, this.#told, this.#waiting] = [null, "", ""];
  }

  input(frame: Frame<Game>): void {
    const { client, controls, nowMs } = frame;
    // In the lobby one waits, and says nothing.
    if (client.world!.name !== "match") return;
    const { move, yaw, pointerMetres } = this.#own.asked(frame);
    const up = Math.atan2(CHEST_M - EYE_M, Math.max(pointerMetres, AIM_M_MIN));
    const isWalking = controls.isDown("ShiftLeft", "ShiftRight");
    const down = (button: number, ...codes: string[]): number => (controls.isDown(...codes) ? button : 0);
    const buttons = down(FIRE, "Mouse0") | down(JUMP, "Space") | down(USE, "KeyE") | down(LOAD, "KeyR") | (isWalking ? WALK : 0);
    // 0 is straight down, 65,535 straight up.
    const pitch = Math.round((up / Math.PI + 0.5) * 65_535);
    const number = client.sendInput("duel.input", { move_x: move[0], move_z: move[1], yaw, pitch, buttons }, nowMs);
    const { phase, isAttacker, isRooted } = standingOf(client);
    const direction = isRooted ? ([0, 0] as const) : directionOf(move);
    this.#body.took(number, { direction, isWalking, isJumping: (buttons & JUMP) !== 0 && !isRooted }, phase, isAttacker);
  }

  pressed(code: string, { client }: Frame<Game>): void {
    if (code === "Digit1") client.request("duel.buy", { item: { is: "Weapon", value: "Rifle" } });
    if (code === "Digit2") client.request("duel.buy", { item: { is: "Armour" } });
    if (code === "Digit3") client.request("duel.buy", { item: { is: "Smoke" } });
    if (code === "Digit4") client.request("duel.buy", { item: { is: "Flash" } });
    if (code === "KeyG") client.request("duel.throw", { grenade: "Smoke" });
    if (code === "KeyF") client.request("duel.throw", { grenade: "Flash" });
  }

  draw(frame: Frame<Game>): void {
    const { client, canvas, camera, nowMs } = frame;
    const state = client.ownState("Pose");
    const { isAlive } = standingOf(client);
    if (!isAlive) this.#body.die();
    this.#own.moveTo(isAlive ? this.#body.shown(nowMs, state) : state?.state);
    this.#hear(frame);
    camera.metres = 46;
    camera.lookAt(canvas, this.#own.x, this.#own.z);
    drawMap(canvas);
    const alive = [...client.replicas.each("Score")][0]?.[1].alive ?? 0;
    for (const [id, pose] of this.#places.shown(client, nowMs)) {
      const isOwn = id === client.ownEntity;
      const { x, z, yaw } = isOwn ? this.#own : pose;
      this.#drawPlayer(frame, id, { ...pose, x, z, yaw }, isOwn, alive);
    }
    canvas.fillStyle = "#9aa3b0e0";
    for (const [, { clouds }] of client.replicas.each("Clouds")) for (const { x, z } of clouds) disc(canvas, x, z, 3.5);
    for (const [, spike] of client.replicas.each("Spike")) {
      if (spike.is !== "Dropped" && spike.is !== "Planted") continue;
      canvas.fillStyle = spike.is === "Planted" ? "#ff5964" : "#ffd166";
      disc(canvas, spike.x, spike.z, 0.4);
    }
    this.#flashes.draw(canvas, nowMs);
    if (nowMs < this.#blindUntilMs) {
      canvas.setTransform(1, 0, 0, 1, 0, 0);
      canvas.fillStyle = `rgb(255 255 255 / ${Math.min((this.#blindUntilMs - nowMs) / 600, 1)})`;
      canvas.fillRect(0, 0, canvas.canvas.width, canvas.canvas.height);
    }
  }

  status({ client, nowMs }: Frame<Game>): string[] {
    if (client.world?.name !== "match") return [this.#waiting || "in the lobby, until a match has a seat"];
    const clock = [...client.replicas.each("Clock")][0]?.[1];
    const score = [...client.replicas.each("Score")][0]?.[1];
    const leftS = clock ? Math.max(clock.ends_tick - (client.seen(nowMs)?.tick ?? 0), 0) / client.world.tickHz : 0;
    const lines = clock && score ? [`${clock.phase}, ${leftS.toFixed(0)} s; ${score.wins_one} : ${score.wins_two}`] : [];
    if (this.#kit) lines.push(`${this.#kit.credits} credits, ${this.#kit.weapon} with ${this.#kit.rounds} rounds, ${this.#kit.smokes} smokes, ${this.#kit.flashes} flashes`);
    return this.#told ? [...lines, this.#told] : lines;
  }

  #hear({ client, nowMs }: Frame<Game>): void {
    for (const message of client.takeMessages()) {
      if (message.name === "duel.kit") this.#kit = message.value;
      if (message.name === "duel.blinded") this.#blindUntilMs = nowMs + message.value.for_ms;
      if (message.name === "duel.waiting") this.#waiting = waitingText(message.value.ahead);
    }
    for (const event of client.takeEvents()) {
      if (event.name === "combat.shot") {
        const [pose, { yaw }] = [this.#seats.get(event.value.seat), event.value];
        if (!pose) continue;
        this.#flashes.add(nowMs, 120, (on, share) => {
          on.globalAlpha = share;
          on.strokeStyle = "#ffd166";
          line(on, pose.x, pose.z, pose.x + Math.sin(yaw) * 30, pose.z + Math.cos(yaw) * 30, 0.08);
        });
      }
      if (event.name === "combat.hit") this.#told = `hit: ${event.value.part}, ${event.value.damage}`;
      if (event.name === "combat.kill") this.#told = `seat ${event.value.seat} is dead`;
    }
  }

  #drawPlayer({ client: { replicas }, canvas }: Frame<Game>, id: EntityId, pose: Pose, isOwn: boolean, alive: number): void {
    const player = replicas.get(id, "Player");
    if (!player) return;
    this.#seats.set(player.seat, pose);
    const team = [...replicas.each("Player")].map(([, { team }]) => team).sort()[0] === player.team ? 0 : 1;
    canvas.globalAlpha = (alive >>> player.seat) & 1 ? 1 : 0.25;
    canvas.strokeStyle = canvas.fillStyle = isOwn ? "#ffffff" : COLORS[team]!;
    disc(canvas, pose.x, pose.z, 0.45);
    line(canvas, pose.x, pose.z, pose.x + Math.sin(pose.yaw) * 0.9, pose.z + Math.cos(pose.yaw) * 0.9, 0.15);
    label(canvas, String(player.seat), pose.x, pose.z + 0.7, 0.6);
    canvas.globalAlpha = 1;
  }
}

/** How it stands with the own player. */
function standingOf({ replicas, ownEntity }: Frame<Game>["client"]): { phase: Phase; isAttacker: boolean; isAlive: boolean; isRooted: boolean } {
  const [player, arms] = ownEntity === null ? [] : [replicas.get(ownEntity, "Player"), replicas.get(ownEntity, "Arms")];
  const [clock, score] = [[...replicas.each("Clock")][0]?.[1], [...replicas.each("Score")][0]?.[1]];
  const phase = clock?.phase ?? "WarmUp";
  return {
    phase,
    isAttacker: player?.team === (score?.attackers ?? "One"),
    isAlive: player !== undefined && (((score?.alive ?? 0) >>> player.seat) & 1) === 1,
    isRooted: arms?.doing === "Planting" || arms?.doing === "Defusing" || phase === "MatchOver",
  };
}

/** A match begins when its seats are taken, or those who wait have waited for long and are two at least. */
function waitingText(ahead: number): string {
  if (ahead === 0) return "in the lobby, first in line: you play when others have come, or a seat is free in a match";
  return `in the lobby, ${ahead} ahead in line: you play when there are enough for a match, or a seat is free in one`;
}

void play(schema, new DuelPage());
