// What a server of frontier says and is told: written by the command `schema`, not by hand.

import { type EntityId, Schema } from "../../client/index.ts";

export interface Pose {
  readonly x: number;
  readonly z: number;
  readonly heading: number;
}

export interface Vitals {
  readonly health: number;
  readonly alive: boolean;
}

export interface Points {
  readonly points: number;
}

export type Gesture = "Stand" | "Swing" | "Flinch" | "Cast" | "Sing" | "Gather" | "Die" | "Rise" | "Wave" | "Cheer" | "Shout" | "Bow" | "Rampage" | "Open" | "Spare1" | "Spare2";

export interface Animation {
  readonly kind: Gesture;
  readonly count: number;
}

export interface Effects {
  readonly stunned: boolean;
  readonly snared: boolean;
  readonly diseased: boolean;
  readonly blessed: boolean;
  readonly soothed: boolean;
  readonly singing: boolean;
  readonly sneaking: boolean;
  readonly open: boolean;
}

export type Kind = "Player" | "Wolf" | "Bandit" | "Shaman" | "Brute" | "Stalker" | "Howler" | "Plaguebearer" | "Guard" | "Banker" | "Door" | "Node" | "Trap" | "Totem";

export interface Look {
  readonly kind: Kind;
  readonly level: number;
  readonly variety: number;
}

export interface Name {
  readonly text: string;
}

export interface Say {
  readonly speaker: EntityId | null;
  readonly name: string;
  readonly words: string;
}

export type Means = "Melee" | "Rampage" | "Bolt" | "Blast" | "Trap" | "Totem" | "Disease" | "Heal";

export interface Damage {
  readonly target: EntityId;
  readonly source: EntityId | null;
  readonly amount: number;
  readonly means: Means;
}

export interface Critical {
  readonly target: EntityId;
  readonly source: EntityId | null;
  readonly amount: number;
}

export type Ability = "None" | "Bolt" | "Blast" | "Taunt" | "Heal" | "Bless" | "Sing" | "Trap" | "Totem" | "Plague" | "Stun" | "Recall";

export interface Cast {
  readonly caster: EntityId;
  readonly ability: Ability;
}

export interface Landed {
  readonly target: EntityId;
  readonly ability: Ability;
}

export interface Stun {
  readonly target: EntityId;
  readonly tenths: number;
}

export interface Song {
  readonly singer: EntityId;
  readonly tune: number;
}

export interface DoorMoved {
  readonly door: EntityId;
  readonly open: boolean;
}

export interface Emote {
  readonly who: EntityId;
  readonly gesture: Gesture;
}

export type Burst = "Blood" | "Dust" | "Sparks" | "Leaves";

export interface Particles {
  readonly at: EntityId;
  readonly burst: Burst;
}

export interface Teleport {
  readonly who: EntityId;
  readonly to: readonly [number, number];
}

export interface Purse {
  readonly carried: number;
  readonly banked: number;
}

export type Growth = "Bare" | "Tree" | "Boulder";

export type PieceKind = "Floor" | "Wall";

export type Whose = "Nobodys" | "Own" | "Others";

export interface CellChanged {
  readonly cell: number;
  readonly growth: Growth;
  readonly depth: number;
  readonly piece: PieceKind | null;
  readonly health: number;
  readonly whose: Whose;
}

export interface Input {
  readonly move_x: number;
  readonly move_z: number;
  readonly heading: number;
  readonly ability: Ability;
  readonly buttons: number;
}

export interface NetId {
  readonly slot: number;
  readonly generation: number;
}

export type Greeting = "Wave" | "Cheer" | "Shout" | "Bow";

export type Wish =
  | { readonly is: "Say"; readonly value: string }
  | { readonly is: "Name"; readonly value: string }
  | { readonly is: "Target"; readonly value: NetId | null }
  | { readonly is: "Join"; readonly value: NetId }
  | { readonly is: "Leave" }
  | { readonly is: "Use"; readonly value: NetId }
  | { readonly is: "Emote"; readonly value: Greeting };

export interface CellNumber {
  readonly number: number;
}

export interface Site {
  readonly cell: CellNumber;
  readonly kind: PieceKind;
}

export type Work =
  | { readonly is: "Claim"; readonly value: CellNumber }
  | { readonly is: "Abandon" }
  | { readonly is: "Build"; readonly value: Site }
  | { readonly is: "Batter"; readonly value: CellNumber }
  | { readonly is: "Harvest"; readonly value: CellNumber }
  | { readonly is: "Dig"; readonly value: CellNumber };

export interface Realm {
  readonly seed: bigint;
}

export interface Sector {
  readonly number: number;
}

export interface Piece {
  readonly kind: PieceKind;
  readonly health: number;
}

export interface CellSeen {
  readonly index: number;
  readonly growth: Growth;
  readonly depth: number;
  readonly piece: Piece | null;
  readonly whose: Whose;
}

export interface LandSeen {
  readonly sector: Sector;
  readonly cells: readonly CellSeen[];
}

export interface Game {
  readonly components: { readonly pose: Pose; readonly vitals: Vitals; readonly points: Points; readonly animation: Animation; readonly effects: Effects; readonly look: Look; readonly name: Name };
  readonly events: { readonly "chat.say": Say; readonly "combat.damage": Damage; readonly "combat.critical": Critical; readonly "spell.cast": Cast; readonly "spell.landed": Landed; readonly "spell.stun": Stun; readonly song: Song; readonly "door.open": DoorMoved; readonly emote: Emote; readonly particles: Particles; readonly teleport: Teleport; readonly purse: Purse; readonly "land.changed": CellChanged };
  readonly inputs: { readonly "frontier.input": Input };
  readonly requests: { readonly "frontier.wish": Wish; readonly "frontier.work": Work };
  readonly messages: { readonly "frontier.realm": Realm; readonly "frontier.land_seen": LandSeen };
}

export const schema = new Schema<Game>({
  hash: "867b063c8fc2ec87",
  components: [
    { name: "pose", shape: { is: "struct", fields: [["x", { is: "range", min: -4096.0, max: 4096.0, step: 0.01 }], ["z", { is: "range", min: -4096.0, max: 4096.0, step: 0.01 }], ["heading", { is: "angle", bits: 8 }]] } },
    { name: "vitals", shape: { is: "struct", fields: [["health", { is: "unsigned", bits: 7, full: 8 }], ["alive", { is: "bool", bits: 1 }]] } },
    { name: "points", shape: { is: "struct", fields: [["points", { is: "unsigned", bits: 16, full: 16 }]] } },
    { name: "animation", shape: { is: "struct", fields: [["kind", { is: "choice", bits: 4, names: ["Stand", "Swing", "Flinch", "Cast", "Sing", "Gather", "Die", "Rise", "Wave", "Cheer", "Shout", "Bow", "Rampage", "Open", "Spare1", "Spare2"] }], ["count", { is: "unsigned", bits: 4, full: 8 }]] } },
    { name: "effects", shape: { is: "struct", fields: [["stunned", { is: "bool", bits: 1 }], ["snared", { is: "bool", bits: 1 }], ["diseased", { is: "bool", bits: 1 }], ["blessed", { is: "bool", bits: 1 }], ["soothed", { is: "bool", bits: 1 }], ["singing", { is: "bool", bits: 1 }], ["sneaking", { is: "bool", bits: 1 }], ["open", { is: "bool", bits: 1 }]] } },
    { name: "look", shape: { is: "struct", fields: [["kind", { is: "choice", bits: 5, names: ["Player", "Wolf", "Bandit", "Shaman", "Brute", "Stalker", "Howler", "Plaguebearer", "Guard", "Banker", "Door", "Node", "Trap", "Totem"] }], ["level", { is: "unsigned", bits: 6, full: 8 }], ["variety", { is: "unsigned", bits: 5, full: 8 }]] } },
    { name: "name", shape: { is: "struct", fields: [["text", { is: "text", bytesMax: 24 }]] } },
  ],
  events: [
    { name: "chat.say", isReliable: true, shape: { is: "struct", fields: [["speaker", { is: "option", of: { is: "id" } }], ["name", { is: "text", bytesMax: 24 }], ["words", { is: "text", bytesMax: 120 }]] } },
    { name: "combat.damage", isReliable: false, shape: { is: "struct", fields: [["target", { is: "id" }], ["source", { is: "option", of: { is: "id" } }], ["amount", { is: "unsigned", bits: 16, full: 16 }], ["means", { is: "choice", bits: 3, names: ["Melee", "Rampage", "Bolt", "Blast", "Trap", "Totem", "Disease", "Heal"] }]] } },
    { name: "combat.critical", isReliable: false, shape: { is: "struct", fields: [["target", { is: "id" }], ["source", { is: "option", of: { is: "id" } }], ["amount", { is: "unsigned", bits: 16, full: 16 }]] } },
    { name: "spell.cast", isReliable: false, shape: { is: "struct", fields: [["caster", { is: "id" }], ["ability", { is: "choice", bits: 4, names: ["None", "Bolt", "Blast", "Taunt", "Heal", "Bless", "Sing", "Trap", "Totem", "Plague", "Stun", "Recall"] }]] } },
    { name: "spell.landed", isReliable: false, shape: { is: "struct", fields: [["target", { is: "id" }], ["ability", { is: "choice", bits: 4, names: ["None", "Bolt", "Blast", "Taunt", "Heal", "Bless", "Sing", "Trap", "Totem", "Plague", "Stun", "Recall"] }]] } },
    { name: "spell.stun", isReliable: false, shape: { is: "struct", fields: [["target", { is: "id" }], ["tenths", { is: "unsigned", bits: 8, full: 8 }]] } },
    { name: "song", isReliable: false, shape: { is: "struct", fields: [["singer", { is: "id" }], ["tune", { is: "unsigned", bits: 4, full: 8 }]] } },
    { name: "door.open", isReliable: false, shape: { is: "struct", fields: [["door", { is: "id" }], ["open", { is: "bool", bits: 1 }]] } },
    { name: "emote", isReliable: false, shape: { is: "struct", fields: [["who", { is: "id" }], ["gesture", { is: "choice", bits: 4, names: ["Stand", "Swing", "Flinch", "Cast", "Sing", "Gather", "Die", "Rise", "Wave", "Cheer", "Shout", "Bow", "Rampage", "Open", "Spare1", "Spare2"] }]] } },
    { name: "particles", isReliable: false, shape: { is: "struct", fields: [["at", { is: "id" }], ["burst", { is: "choice", bits: 2, names: ["Blood", "Dust", "Sparks", "Leaves"] }]] } },
    { name: "teleport", isReliable: true, shape: { is: "struct", fields: [["who", { is: "id" }], ["to", { is: "numbers", count: 2, of: { is: "range", min: -4096.0, max: 4096.0, step: 0.25 } }]] } },
    { name: "purse", isReliable: true, shape: { is: "struct", fields: [["carried", { is: "unsigned", bits: 16, full: 16 }], ["banked", { is: "unsigned", bits: 32, full: 32 }]] } },
    { name: "land.changed", isReliable: true, shape: { is: "struct", fields: [["cell", { is: "unsigned", bits: 24, full: 32 }], ["growth", { is: "choice", bits: 2, names: ["Bare", "Tree", "Boulder"] }], ["depth", { is: "unsigned", bits: 8, full: 8 }], ["piece", { is: "option", of: { is: "choice", bits: 1, names: ["Floor", "Wall"] } }], ["health", { is: "unsigned", bits: 8, full: 8 }], ["whose", { is: "choice", bits: 2, names: ["Nobodys", "Own", "Others"] }]] } },
  ],
  inputs: [
    { name: "frontier.input", saysSeen: true, repeats: 0, shape: { is: "struct", fields: [["move_x", { is: "signed", bits: 8, min: -127, max: 127 }], ["move_z", { is: "signed", bits: 8, min: -127, max: 127 }], ["heading", { is: "unsigned", bits: 16, isFixed: true }], ["ability", { is: "choice", names: ["None", "Bolt", "Blast", "Taunt", "Heal", "Bless", "Sing", "Trap", "Totem", "Plague", "Stun", "Recall"] }], ["buttons", { is: "unsigned", bits: 8, min: 0, max: 15 }]] } },
  ],
  requests: [
    { name: "frontier.wish", isForAnyWorld: false, shape: { is: "variants", variants: [["Say", [[null, { is: "text", bytesMax: 120 }]]], ["Name", [[null, { is: "text", bytesMax: 24 }]]], ["Target", [[null, { is: "option", of: { is: "struct", fields: [["slot", { is: "unsigned", bits: 32, min: 0, max: 1048575 }], ["generation", { is: "unsigned", bits: 8 }]] } }]]], ["Join", [[null, { is: "struct", fields: [["slot", { is: "unsigned", bits: 32, min: 0, max: 1048575 }], ["generation", { is: "unsigned", bits: 8 }]] }]]], ["Leave", []], ["Use", [[null, { is: "struct", fields: [["slot", { is: "unsigned", bits: 32, min: 0, max: 1048575 }], ["generation", { is: "unsigned", bits: 8 }]] }]]], ["Emote", [[null, { is: "choice", names: ["Wave", "Cheer", "Shout", "Bow"] }]]]] } },
    { name: "frontier.work", isForAnyWorld: false, shape: { is: "variants", variants: [["Claim", [[null, { is: "struct", fields: [["number", { is: "unsigned", bits: 32, min: 0, max: 16777215 }]] }]]], ["Abandon", []], ["Build", [[null, { is: "struct", fields: [["cell", { is: "struct", fields: [["number", { is: "unsigned", bits: 32, min: 0, max: 16777215 }]] }], ["kind", { is: "choice", names: ["Floor", "Wall"] }]] }]]], ["Batter", [[null, { is: "struct", fields: [["number", { is: "unsigned", bits: 32, min: 0, max: 16777215 }]] }]]], ["Harvest", [[null, { is: "struct", fields: [["number", { is: "unsigned", bits: 32, min: 0, max: 16777215 }]] }]]], ["Dig", [[null, { is: "struct", fields: [["number", { is: "unsigned", bits: 32, min: 0, max: 16777215 }]] }]]]] } },
  ],
  messages: [
    { name: "frontier.realm", shape: { is: "struct", fields: [["seed", { is: "unsigned", bits: 64, isFixed: true }]] } },
    { name: "frontier.land_seen", shape: { is: "struct", fields: [["sector", { is: "struct", fields: [["number", { is: "unsigned", bits: 16, min: 0, max: 16383 }]] }], ["cells", { is: "list", countMax: 1024, of: { is: "struct", fields: [["index", { is: "unsigned", bits: 16, min: 0, max: 1023 }], ["growth", { is: "choice", names: ["Bare", "Tree", "Boulder"] }], ["depth", { is: "unsigned", bits: 8, min: 0, max: 3 }], ["piece", { is: "option", of: { is: "struct", fields: [["kind", { is: "choice", names: ["Floor", "Wall"] }], ["health", { is: "unsigned", bits: 8, min: 1, max: 100 }]] } }], ["whose", { is: "choice", names: ["Nobodys", "Own", "Others"] }]] } }]] } },
  ],
});
