// What a server of duel says and is told: written by the command `schema`, not by hand.

import { Schema } from "../../client/index.ts";

export interface Pose {
  readonly x: number;
  readonly y: number;
  readonly z: number;
  readonly yaw: number;
  readonly pitch: number;
  readonly life: number;
}

export type TeamId = "One" | "Two";

export interface Player {
  readonly seat: number;
  readonly team: TeamId;
  readonly is_connected: boolean;
}

export interface Condition {
  readonly health: number;
  readonly armour: number;
}

export interface TeamVitals {
  readonly team: TeamId;
  readonly members: readonly Condition[];
}

export type WeaponKind = "Pistol" | "Submachine" | "Rifle" | "Marksman";

export type Doing = "Nothing" | "Loading" | "Planting" | "Defusing";

export interface Arms {
  readonly weapon: WeaponKind;
  readonly doing: Doing;
}

export type Phase = "WarmUp" | "Buy" | "Live" | "Planted" | "Over" | "MatchOver";

export interface Clock {
  readonly phase: Phase;
  readonly round: number;
  readonly ends_tick: number;
}

export type RoundEnd = "AttackersEliminated" | "DefendersEliminated" | "SpikeExploded" | "SpikeDefused" | "TimeRanOut";

export interface Score {
  readonly wins_one: number;
  readonly wins_two: number;
  readonly attackers: TeamId;
  readonly last_end: RoundEnd | null;
  readonly alive: number;
}

export type Spike =
  | { readonly is: "Gone" }
  | { readonly is: "Carried"; readonly seat: number }
  | { readonly is: "Dropped"; readonly x: number; readonly z: number }
  | { readonly is: "Planted"; readonly x: number; readonly z: number; readonly explodes_tick: number };

export interface Cloud {
  readonly x: number;
  readonly z: number;
  readonly until_tick: number;
}

export interface Clouds {
  readonly clouds: readonly Cloud[];
}

export interface ShotFired {
  readonly seat: number;
  readonly weapon: WeaponKind;
  readonly yaw: number;
  readonly pitch: number;
}

export type BodyPart = "Body" | "Head" | "Leg";

export interface HitConfirmed {
  readonly part: BodyPart;
  readonly damage: number;
}

export interface Killed {
  readonly seat: number;
  readonly by: number | null;
  readonly weapon: WeaponKind | null;
  readonly part: BodyPart;
}

export interface Bang {
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

export interface Input {
  readonly move_x: number;
  readonly move_z: number;
  readonly yaw: number;
  readonly pitch: number;
  readonly buttons: number;
}

export type Item =
  | { readonly is: "Weapon"; readonly value: WeaponKind }
  | { readonly is: "Armour" }
  | { readonly is: "Smoke" }
  | { readonly is: "Flash" };

export interface Buy {
  readonly item: Item;
}

export type Grenade = "Smoke" | "Flash";

export interface Throw {
  readonly grenade: Grenade;
}

export interface Kit {
  readonly credits: number;
  readonly weapon: WeaponKind;
  readonly rounds: number;
  readonly smokes: number;
  readonly flashes: number;
}

export interface Blinded {
  readonly for_ms: number;
}

export interface Terms {
  readonly defuse_ms: number;
}

export interface Waiting {
  readonly ahead: number;
}

export interface Game {
  readonly components: { readonly Pose: Pose; readonly Player: Player; readonly TeamVitals: TeamVitals; readonly Arms: Arms; readonly Clock: Clock; readonly Score: Score; readonly Spike: Spike; readonly Clouds: Clouds };
  readonly events: { readonly "combat.shot": ShotFired; readonly "combat.hit": HitConfirmed; readonly "combat.kill": Killed; readonly "equipment.bang": Bang };
  readonly inputs: { readonly "duel.input": Input };
  readonly requests: { readonly "duel.buy": Buy; readonly "duel.throw": Throw };
  readonly messages: { readonly "duel.kit": Kit; readonly "duel.blinded": Blinded; readonly "duel.terms": Terms; readonly "duel.waiting": Waiting };
}

export const schema = new Schema<Game>({
  hash: "b99191668247ecf0",
  components: [
    { name: "Pose", shape: { is: "struct", fields: [["x", { is: "range", min: -45.0, max: 45.0, step: 0.01 }], ["y", { is: "range", min: 0.0, max: 6.0, step: 0.01 }], ["z", { is: "range", min: -33.0, max: 33.0, step: 0.01 }], ["yaw", { is: "angle", bits: 12 }], ["pitch", { is: "range", min: -1.6, max: 1.6, step: 0.0125 }], ["life", { is: "unsigned", bits: 3, full: 8 }]] } },
    { name: "Player", shape: { is: "struct", fields: [["seat", { is: "unsigned", bits: 4, full: 8 }], ["team", { is: "choice", bits: 1, names: ["One", "Two"] }], ["is_connected", { is: "bool", bits: 1 }]] } },
    { name: "TeamVitals", shape: { is: "struct", fields: [["team", { is: "choice", bits: 1, names: ["One", "Two"] }], ["members", { is: "list", countMax: 5, of: { is: "struct", fields: [["health", { is: "unsigned", bits: 7, full: 8 }], ["armour", { is: "unsigned", bits: 6, full: 8 }]] } }]] } },
    { name: "Arms", shape: { is: "struct", fields: [["weapon", { is: "choice", bits: 2, names: ["Pistol", "Submachine", "Rifle", "Marksman"] }], ["doing", { is: "choice", bits: 2, names: ["Nothing", "Loading", "Planting", "Defusing"] }]] } },
    { name: "Clock", shape: { is: "struct", fields: [["phase", { is: "choice", bits: 3, names: ["WarmUp", "Buy", "Live", "Planted", "Over", "MatchOver"] }], ["round", { is: "unsigned", bits: 6, full: 8 }], ["ends_tick", { is: "unsigned", bits: 32, full: 32 }]] } },
    { name: "Score", shape: { is: "struct", fields: [["wins_one", { is: "unsigned", bits: 6, full: 8 }], ["wins_two", { is: "unsigned", bits: 6, full: 8 }], ["attackers", { is: "choice", bits: 1, names: ["One", "Two"] }], ["last_end", { is: "option", of: { is: "choice", bits: 3, names: ["AttackersEliminated", "DefendersEliminated", "SpikeExploded", "SpikeDefused", "TimeRanOut"] } }], ["alive", { is: "unsigned", bits: 10, full: 16 }]] } },
    { name: "Spike", shape: { is: "variants", variants: [["Gone", []], ["Carried", [["seat", { is: "unsigned", bits: 4, full: 8 }]]], ["Dropped", [["x", { is: "range", min: -45.0, max: 45.0, step: 0.01 }], ["z", { is: "range", min: -33.0, max: 33.0, step: 0.01 }]]], ["Planted", [["x", { is: "range", min: -45.0, max: 45.0, step: 0.01 }], ["z", { is: "range", min: -33.0, max: 33.0, step: 0.01 }], ["explodes_tick", { is: "unsigned", bits: 32, full: 32 }]]]] } },
    { name: "Clouds", shape: { is: "struct", fields: [["clouds", { is: "list", countMax: 10, of: { is: "struct", fields: [["x", { is: "range", min: -45.0, max: 45.0, step: 0.01 }], ["z", { is: "range", min: -33.0, max: 33.0, step: 0.01 }], ["until_tick", { is: "unsigned", bits: 32, full: 32 }]] } }]] } },
  ],
  events: [
    { name: "combat.shot", isReliable: false, shape: { is: "struct", fields: [["seat", { is: "unsigned", bits: 4, full: 8 }], ["weapon", { is: "choice", bits: 2, names: ["Pistol", "Submachine", "Rifle", "Marksman"] }], ["yaw", { is: "angle", bits: 14 }], ["pitch", { is: "range", min: -2.0, max: 2.0, step: 0.0005 }]] } },
    { name: "combat.hit", isReliable: true, shape: { is: "struct", fields: [["part", { is: "choice", bits: 2, names: ["Body", "Head", "Leg"] }], ["damage", { is: "unsigned", bits: 8, full: 8 }]] } },
    { name: "combat.kill", isReliable: true, shape: { is: "struct", fields: [["seat", { is: "unsigned", bits: 4, full: 8 }], ["by", { is: "option", of: { is: "unsigned", bits: 4, full: 8 } }], ["weapon", { is: "option", of: { is: "choice", bits: 2, names: ["Pistol", "Submachine", "Rifle", "Marksman"] } }], ["part", { is: "choice", bits: 2, names: ["Body", "Head", "Leg"] }]] } },
    { name: "equipment.bang", isReliable: false, shape: { is: "struct", fields: [["x", { is: "range", min: -45.0, max: 45.0, step: 0.1 }], ["y", { is: "range", min: 0.0, max: 12.0, step: 0.1 }], ["z", { is: "range", min: -33.0, max: 33.0, step: 0.1 }]] } },
  ],
  inputs: [
    { name: "duel.input", saysSeen: true, repeats: 3, shape: { is: "struct", fields: [["move_x", { is: "signed", bits: 8, min: -127, max: 127 }], ["move_z", { is: "signed", bits: 8, min: -127, max: 127 }], ["yaw", { is: "unsigned", bits: 16, isFixed: true }], ["pitch", { is: "unsigned", bits: 16, isFixed: true }], ["buttons", { is: "unsigned", bits: 8, min: 0, max: 31 }]] } },
  ],
  requests: [
    { name: "duel.buy", isForAnyWorld: false, shape: { is: "struct", fields: [["item", { is: "variants", variants: [["Weapon", [[null, { is: "choice", names: ["Pistol", "Submachine", "Rifle", "Marksman"] }]]], ["Armour", []], ["Smoke", []], ["Flash", []]] }]] } },
    { name: "duel.throw", isForAnyWorld: false, shape: { is: "struct", fields: [["grenade", { is: "choice", names: ["Smoke", "Flash"] }]] } },
  ],
  messages: [
    { name: "duel.kit", shape: { is: "struct", fields: [["credits", { is: "unsigned", bits: 16 }], ["weapon", { is: "choice", names: ["Pistol", "Submachine", "Rifle", "Marksman"] }], ["rounds", { is: "unsigned", bits: 8 }], ["smokes", { is: "unsigned", bits: 8 }], ["flashes", { is: "unsigned", bits: 8 }]] } },
    { name: "duel.blinded", shape: { is: "struct", fields: [["for_ms", { is: "unsigned", bits: 16 }]] } },
    { name: "duel.terms", shape: { is: "struct", fields: [["defuse_ms", { is: "unsigned", bits: 16 }]] } },
    { name: "duel.waiting", shape: { is: "struct", fields: [["ahead", { is: "unsigned", bits: 16 }]] } },
  ],
});
