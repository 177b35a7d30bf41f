//! Promise: a schema is written as types and as data, whole, and what does not say what it is is refused.

use throng_pack::Pack;
use throng_replication::{
    ArrayVec, ClientInput, ClientMessage, ClientRequest, EntityLink, NetId, Replicate, ReplicatedEvent, SchemaBuilder,
    Text,
};

use super::*;

#[derive(Clone, Replicate)]
enum Order {
    Stay,
    Follow(EntityLink),
    Wait { ticks: u8 },
}

#[derive(Clone, Copy, Replicate)]
enum Stance {
    Up,
    Down,
}

#[derive(Clone, Replicate)]
struct Guard {
    #[replicate(min = -150, max = 150)]
    morale: i16,
    #[replicate(bits = 1)]
    stance: Stance,
    #[replicate(angle, bits = 7)]
    heading: f32,
    #[replicate(min = -1.0, max = 1.0, step = 0.1)]
    place: [f32; 3],
    friends: ArrayVec<EntityLink, 2>,
    post: Option<u8>,
    order: Order,
    name: Text<16>,
}

#[derive(Clone, Replicate)]
#[replicate(name = "chat.say")]
struct Say(NetId, bool);

impl ReplicatedEvent for Say {
    const RELIABLE: bool = true;
    const RANGE_M: Option<f32> = None;
}

#[derive(Pack)]
struct Walk(i8);
impl ClientInput for Walk {
    const SAYS_SEEN: bool = true;
    const REPEATS: u8 = 3;
}

#[derive(Pack)]
#[pack(name = "game.pick_up")]
struct PickUp {
    #[pack(max = 1000)]
    thing: u64,
}
impl ClientRequest for PickUp {
    const FOR_ANY_WORLD: bool = true;
}

/// Another of the name.
mod other {
    #[derive(throng_pack::Pack)]
    pub struct Guard;
    impl super::ClientMessage for Guard {}
}

#[test]
fn a_schema_is_written_as_types_and_as_data() {
    let schema = SchemaBuilder::new().component::<Guard>().event::<Say>().input::<Walk>().request::<PickUp>();
    let schema = schema.message::<other::Guard>().build();
    let expect = format!(
        r#"// What a server of keep says and is told: written by the command `schema`, not by hand.

import {{ type EntityId, Schema }} from "throng-client";

export type Stance = "Up" | "Down";

export type Order =
  | {{ readonly is: "Stay" }}
  | {{ readonly is: "Follow"; readonly value: EntityId | null }}
  | {{ readonly is: "Wait"; readonly ticks: number }};

export interface Guard {{
  readonly morale: number;
  readonly stance: Stance;
  readonly heading: number;
  readonly place: readonly [number, number, number];
  readonly friends: readonly (EntityId | null)[];
  readonly post: number | null;
  readonly order: Order;
  readonly name: string;
}}

export type Say = readonly [EntityId, boolean];

export type Walk = number;

export interface PickUp {{
  readonly thing: bigint;
}}

export type Guard2 = Record<string, never>;

export interface Game {{
  readonly components: {{ readonly Guard: Guard }};
  readonly events: {{ readonly "chat.say": Say }};
  readonly inputs: {{ readonly Walk: Walk }};
  readonly requests: {{ readonly "game.pick_up": PickUp }};
  readonly messages: {{ readonly Guard: Guard2 }};
}}

export const schema = new Schema<Game>({{
  hash: "{:016x}",
  components: [
    {{ name: "Guard", shape: {{ is: "struct", fields: [["morale", {{ is: "integer", min: -150, max: 150, isSigned: true, full: 16 }}], ["stance", {{ is: "choice", bits: 1, names: ["Up", "Down"] }}], ["heading", {{ is: "angle", bits: 7 }}], ["place", {{ is: "numbers", count: 3, of: {{ is: "range", min: -1.0, max: 1.0, step: 0.1 }} }}], ["friends", {{ is: "list", countMax: 2, of: {{ is: "link" }} }}], ["post", {{ is: "option", of: {{ is: "unsigned", bits: 8, full: 8 }} }}], ["order", {{ is: "variants", variants: [["Stay", []], ["Follow", [[null, {{ is: "link" }}]]], ["Wait", [["ticks", {{ is: "unsigned", bits: 8, full: 8 }}]]]] }}], ["name", {{ is: "text", bytesMax: 16 }}]] }} }},
  ],
  events: [
    {{ name: "chat.say", isReliable: true, shape: {{ is: "struct", fields: [[null, {{ is: "id" }}], [null, {{ is: "bool", bits: 1 }}]] }} }},
  ],
  inputs: [
    {{ name: "Walk", saysSeen: true, repeats: 3, shape: {{ is: "struct", fields: [[null, {{ is: "signed", bits: 8 }}]] }} }},
  ],
  requests: [
    {{ name: "game.pick_up", isForAnyWorld: true, shape: {{ is: "struct", fields: [["thing", {{ is: "unsigned", bits: 64, min: 0n, max: 1000n }}]] }} }},
  ],
  messages: [
    {{ name: "Guard", shape: {{ is: "struct", fields: [] }} }},
  ],
}});
"#,
        schema.hash()
    );
    let written = module("keep", &schema, "throng-client").unwrap();
    for (written, expect) in written.lines().zip(expect.lines()) {
        assert_eq!(written, expect);
    }
    assert_eq!(written, expect);
    let data = data_module(&schema).unwrap();
    assert!(expect.contains(data.trim_start_matches("export const data = ").trim_end_matches(";\n")));
}

/// As a codec that somebody wrote by hand.
#[derive(Clone)]
struct ByHand;

impl Replicate for ByHand {
    const NAME: &'static str = "ByHand";
    const BYTES_MAX: usize = 0;
    const EXACT_BYTES_MAX: usize = 0;
    fn encode(&self, _out: &mut throng_replication::Writer<'_>) {}
    fn decode(_from: &mut throng_replication::Reader<'_>) -> Result<Self, throng_replication::DecodeError> {
        Ok(Self)
    }
    fn encode_exact(&self, _out: &mut throng_replication::Writer<'_>) {}
    fn decode_exact(_from: &mut throng_replication::Reader<'_>) -> Result<Self, throng_replication::DecodeError> {
        Ok(Self)
    }
    fn agrees_with(&self, _exact: &Self) -> bool {
        true
    }
}

#[test]
fn what_does_not_say_what_it_is_is_refused_by_name() {
    let schema = SchemaBuilder::new().component::<ByHand>().build();
    let error = module("keep", &schema, "throng-client").unwrap_err();
    assert_eq!(error, ExportError::Unsaid { kind: "ByHand".into() });
}
