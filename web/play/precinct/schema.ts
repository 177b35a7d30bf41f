// What a server of precinct says and is told: written by the command `schema`, not by hand.

import { Schema } from "../../client/index.ts";

export interface Pose {
  readonly x: number;
  readonly y: number;
  readonly z: number;
  readonly yaw: number;
}

export interface Vitals {
  readonly health: number;
  readonly alive: boolean;
}

export type Faction = "Agents" | "Rioters" | "Cleaners";

export type WeaponKind = "Fists" | "Pistol" | "Rifle" | "Submachine" | "Marksman" | "MachineGun";

export interface Character {
  readonly npc: boolean;
  readonly faction: Faction;
  readonly weapon: WeaponKind;
}

export type ActionKind = "Idle" | "Shot" | "Reloaded";

export interface Action {
  readonly kind: ActionKind;
  readonly count: number;
}

export type GearKind = "Mask" | "Vest" | "Backpack" | "Gloves" | "Holster" | "Kneepads";

export interface Lying {
  readonly kind: GearKind;
}

export interface Door {
  readonly open: boolean;
}

export interface FarPose {
  readonly x: number;
  readonly y: number;
  readonly z: number;
  readonly yaw: number;
}

export interface Input {
  readonly move_x: number;
  readonly move_z: number;
  readonly yaw: number;
  readonly pitch_degrees: number;
  readonly buttons: number;
}

export interface Say {
  readonly words: string;
}

export interface CallMe {
  readonly name: string;
}

export interface NetId {
  readonly slot: number;
  readonly generation: number;
}

export interface WorldId {
  readonly index: number;
  readonly generation: number;
}

export interface GearId {
  readonly run: bigint;
  readonly world: WorldId;
  readonly number: bigint;
}

export interface Offer {
  readonly to: NetId;
  readonly give: GearId;
  readonly want: GearKind | null;
}

export interface Acceptance {
  readonly from: NetId;
  readonly get: GearId;
  readonly give: GearId | null;
}

export type Handle =
  | { readonly is: "PickUp"; readonly value: NetId }
  | { readonly is: "Drop"; readonly value: GearId }
  | { readonly is: "PutIn"; readonly value: GearId }
  | { readonly is: "TakeOut"; readonly value: GearId }
  | { readonly is: "Offer"; readonly value: Offer }
  | { readonly is: "Accept"; readonly value: Acceptance };

export interface Said {
  readonly speaker: string;
  readonly words: string;
}

export type Item = "PistolRounds" | "RifleRounds" | "BeltRounds" | "Medkit" | "Credits";

export interface Stack {
  readonly item: Item;
  readonly count: number;
}

export interface Pockets {
  readonly inventory: readonly Stack[];
}

export interface Gear {
  readonly id: GearId;
  readonly kind: GearKind;
}

export interface Bag {
  readonly gear: readonly Gear[];
}

export interface Carried {
  readonly bag: Bag;
}

export interface Stash {
  readonly gear: readonly Gear[];
}

export interface Stashed {
  readonly stash: Stash;
}

export interface Offered {
  readonly from: NetId;
  readonly gear: Gear;
  readonly want: GearKind | null;
}

export interface Game {
  readonly components: { readonly Pose: Pose; readonly Vitals: Vitals; readonly Character: Character; readonly Action: Action; readonly Lying: Lying; readonly Door: Door; readonly FarPose: FarPose };
  readonly events: object;
  readonly inputs: { readonly "precinct.input": Input };
  readonly requests: { readonly "precinct.say": Say; readonly "precinct.call_me": CallMe; readonly "precinct.handle": Handle };
  readonly messages: { readonly "precinct.said": Said; readonly "precinct.pockets": Pockets; readonly "precinct.carried": Carried; readonly "precinct.stashed": Stashed; readonly "precinct.offered": Offered };
}

export const schema = new Schema<Game>({
  hash: "903263fae0c65bbf",
  components: [
    { name: "Pose", shape: { is: "struct", fields: [["x", { is: "range", min: -327.0, max: 327.0, step: 0.01 }], ["y", { is: "range", min: -20.0, max: 60.0, step: 0.01 }], ["z", { is: "range", min: -327.0, max: 327.0, step: 0.01 }], ["yaw", { is: "angle", bits: 8 }]] } },
    { name: "Vitals", shape: { is: "struct", fields: [["health", { is: "unsigned", bits: 7, full: 8 }], ["alive", { is: "bool", bits: 1 }]] } },
    { name: "Character", shape: { is: "struct", fields: [["npc", { is: "bool", bits: 1 }], ["faction", { is: "choice", bits: 2, names: ["Agents", "Rioters", "Cleaners"] }], ["weapon", { is: "choice", bits: 3, names: ["Fists", "Pistol", "Rifle", "Submachine", "Marksman", "MachineGun"] }]] } },
    { name: "Action", shape: { is: "struct", fields: [["kind", { is: "choice", bits: 2, names: ["Idle", "Shot", "Reloaded"] }], ["count", { is: "unsigned", bits: 6, full: 8 }]] } },
    { name: "Lying", shape: { is: "struct", fields: [["kind", { is: "choice", bits: 3, names: ["Mask", "Vest", "Backpack", "Gloves", "Holster", "Kneepads"] }]] } },
    { name: "Door", shape: { is: "struct", fields: [["open", { is: "bool", bits: 1 }]] } },
    { name: "FarPose", shape: { is: "struct", fields: [["x", { is: "range", min: -1030.0, max: 1030.0, step: 0.032 }], ["y", { is: "range", min: -20.0, max: 60.0, step: 0.01 }], ["z", { is: "range", min: -1030.0, max: 1030.0, step: 0.032 }], ["yaw", { is: "angle", bits: 8 }]] } },
  ],
  events: [
  ],
  inputs: [
    { name: "precinct.input", saysSeen: true, repeats: 0, shape: { is: "struct", fields: [["move_x", { is: "signed", bits: 8, min: -127, max: 127 }], ["move_z", { is: "signed", bits: 8, min: -127, max: 127 }], ["yaw", { is: "unsigned", bits: 16, isFixed: true }], ["pitch_degrees", { is: "signed", bits: 8, min: -89, max: 89 }], ["buttons", { is: "unsigned", bits: 8, min: 0, max: 15 }]] } },
  ],
  requests: [
    { name: "precinct.say", isForAnyWorld: false, shape: { is: "struct", fields: [["words", { is: "text", bytesMax: 120 }]] } },
    { name: "precinct.call_me", isForAnyWorld: true, shape: { is: "struct", fields: [["name", { is: "text", bytesMax: 24 }]] } },
    { name: "precinct.handle", isForAnyWorld: false, shape: { is: "variants", variants: [["PickUp", [[null, { is: "struct", fields: [["slot", { is: "unsigned", bits: 32, min: 0, max: 1048575 }], ["generation", { is: "unsigned", bits: 8 }]] }]]], ["Drop", [[null, { is: "struct", fields: [["run", { is: "unsigned", bits: 64, isFixed: true }], ["world", { is: "struct", fields: [["index", { is: "unsigned", bits: 32 }], ["generation", { is: "unsigned", bits: 32 }]] }], ["number", { is: "unsigned", bits: 64 }]] }]]], ["PutIn", [[null, { is: "struct", fields: [["run", { is: "unsigned", bits: 64, isFixed: true }], ["world", { is: "struct", fields: [["index", { is: "unsigned", bits: 32 }], ["generation", { is: "unsigned", bits: 32 }]] }], ["number", { is: "unsigned", bits: 64 }]] }]]], ["TakeOut", [[null, { is: "struct", fields: [["run", { is: "unsigned", bits: 64, isFixed: true }], ["world", { is: "struct", fields: [["index", { is: "unsigned", bits: 32 }], ["generation", { is: "unsigned", bits: 32 }]] }], ["number", { is: "unsigned", bits: 64 }]] }]]], ["Offer", [[null, { is: "struct", fields: [["to", { is: "struct", fields: [["slot", { is: "unsigned", bits: 32, min: 0, max: 1048575 }], ["generation", { is: "unsigned", bits: 8 }]] }], ["give", { is: "struct", fields: [["run", { is: "unsigned", bits: 64, isFixed: true }], ["world", { is: "struct", fields: [["index", { is: "unsigned", bits: 32 }], ["generation", { is: "unsigned", bits: 32 }]] }], ["number", { is: "unsigned", bits: 64 }]] }], ["want", { is: "option", of: { is: "choice", names: ["Mask", "Vest", "Backpack", "Gloves", "Holster", "Kneepads"] } }]] }]]], ["Accept", [[null, { is: "struct", fields: [["from", { is: "struct", fields: [["slot", { is: "unsigned", bits: 32, min: 0, max: 1048575 }], ["generation", { is: "unsigned", bits: 8 }]] }], ["get", { is: "struct", fields: [["run", { is: "unsigned", bits: 64, isFixed: true }], ["world", { is: "struct", fields: [["index", { is: "unsigned", bits: 32 }], ["generation", { is: "unsigned", bits: 32 }]] }], ["number", { is: "unsigned", bits: 64 }]] }], ["give", { is: "option", of: { is: "struct", fields: [["run", { is: "unsigned", bits: 64, isFixed: true }], ["world", { is: "struct", fields: [["index", { is: "unsigned", bits: 32 }], ["generation", { is: "unsigned", bits: 32 }]] }], ["number", { is: "unsigned", bits: 64 }]] } }]] }]]]] } },
  ],
  messages: [
    { name: "precinct.said", shape: { is: "struct", fields: [["speaker", { is: "text", bytesMax: 24 }], ["words", { is: "text", bytesMax: 120 }]] } },
    { name: "precinct.pockets", shape: { is: "struct", fields: [["inventory", { is: "list", countMax: 6, of: { is: "struct", fields: [["item", { is: "choice", names: ["PistolRounds", "RifleRounds", "BeltRounds", "Medkit", "Credits"] }], ["count", { is: "unsigned", bits: 16, min: 1, max: 65535 }]] } }]] } },
    { name: "precinct.carried", shape: { is: "struct", fields: [["bag", { is: "struct", fields: [["gear", { is: "list", countMax: 8, of: { is: "struct", fields: [["id", { is: "struct", fields: [["run", { is: "unsigned", bits: 64, isFixed: true }], ["world", { is: "struct", fields: [["index", { is: "unsigned", bits: 32 }], ["generation", { is: "unsigned", bits: 32 }]] }], ["number", { is: "unsigned", bits: 64 }]] }], ["kind", { is: "choice", names: ["Mask", "Vest", "Backpack", "Gloves", "Holster", "Kneepads"] }]] } }]] }]] } },
    { name: "precinct.stashed", shape: { is: "struct", fields: [["stash", { is: "struct", fields: [["gear", { is: "list", countMax: 16, of: { is: "struct", fields: [["id", { is: "struct", fields: [["run", { is: "unsigned", bits: 64, isFixed: true }], ["world", { is: "struct", fields: [["index", { is: "unsigned", bits: 32 }], ["generation", { is: "unsigned", bits: 32 }]] }], ["number", { is: "unsigned", bits: 64 }]] }], ["kind", { is: "choice", names: ["Mask", "Vest", "Backpack", "Gloves", "Holster", "Kneepads"] }]] } }]] }]] } },
    { name: "precinct.offered", shape: { is: "struct", fields: [["from", { is: "struct", fields: [["slot", { is: "unsigned", bits: 32, min: 0, max: 1048575 }], ["generation", { is: "unsigned", bits: 8 }]] }], ["gear", { is: "struct", fields: [["id", { is: "struct", fields: [["run", { is: "unsigned", bits: 64, isFixed: true }], ["world", { is: "struct", fields: [["index", { is: "unsigned", bits: 32 }], ["generation", { is: "unsigned", bits: 32 }]] }], ["number", { is: "unsigned", bits: 64 }]] }], ["kind", { is: "choice", names: ["Mask", "Vest", "Backpack", "Gloves", "Holster", "Kneepads"] }]] }], ["want", { is: "option", of: { is: "choice", names: ["Mask", "Vest", "Backpack", "Gloves", "Holster", "Kneepads"] } }]] } },
  ],
});
