//! Writing a model: nodes, a skin, animations, and their numbers behind.

use glam::{Quat, Vec3};
use serde_json::{Map, Value, json};

use super::{BIN_CHUNK, FLOAT, JSON_CHUNK, MAGIC, Model, VERSION};
use crate::{
    clip::{KeyedClip, Keys},
    skeleton::Skeleton,
};

pub(super) fn model(model: &Model) -> Vec<u8> {
    let mut numbers = Numbers::default();
    let animations: Vec<Value> = model.clips.iter().map(|clip| animation(clip, &mut numbers)).collect();
    let joints = model.skeleton.len();
    let is_root = |joint: &usize| model.skeleton.bones()[*joint].parent.is_none();
    let roots: Vec<usize> = (0..joints).filter(is_root).collect();
    let mut document = json!({
        "asset": { "version": "2.0", "generator": "throng-rewind" },
        "scene": 0,
        "scenes": [{ "nodes": roots }],
        "nodes": nodes(&model.skeleton),
        "skins": [{ "joints": (0..joints).collect::<Vec<_>>() }],
    });
    // glTF has no empty lists.
    if !animations.is_empty() {
        document["animations"] = animations.into();
        document["buffers"] = json!([{ "byteLength": numbers.bytes.len() }]);
        document["bufferViews"] = numbers.views.into();
        document["accessors"] = numbers.accessors.into();
    }
    glb(&document, numbers.bytes)
}

fn nodes(skeleton: &Skeleton) -> Vec<Value> {
    let node = |(index, bone): (usize, &crate::skeleton::Bone)| {
        let mut node = Map::new();
        node.insert("name".into(), bone.name.clone().into());
        node.insert("translation".into(), json!(bone.place.to_array()));
        node.insert("rotation".into(), json!(bone.turn.to_array()));
        let bones = skeleton.bones().iter().enumerate();
        let children = bones.filter(|(_, child)| child.parent == Some(index as u16)).map(|(child, _)| child);
        let children: Vec<usize> = children.collect();
        if !children.is_empty() {
            node.insert("children".into(), children.into());
        }
        Value::Object(node)
    };
    skeleton.bones().iter().enumerate().map(node).collect()
}

fn animation(clip: &KeyedClip, numbers: &mut Numbers) -> Value {
    let (mut channels, mut samplers) = (Vec::new(), Vec::new());
    for track in &clip.tracks {
        let input = numbers.add("SCALAR", track.times_s.iter().map(|time_s| [*time_s]));
        let (path, output) = match &track.keys {
            Keys::Places(keys) => ("translation", numbers.add("VEC3", keys.iter().map(Vec3::to_array))),
            Keys::Turns(keys) => ("rotation", numbers.add("VEC4", keys.iter().map(Quat::to_array))),
        };
        channels.push(json!({ "sampler": samplers.len(), "target": { "node": track.bone, "path": path } }));
        samplers.push(json!({ "input": input, "output": output, "interpolation": "LINEAR" }));
    }
    let extras = json!({ "loop": clip.is_loop });
    json!({ "name": clip.name, "channels": channels, "samplers": samplers, "extras": extras })
}

/// The binary chunk, and where what lies in it.
#[derive(Default)]
struct Numbers {
    bytes: Vec<u8>,
    views: Vec<Value>,
    accessors: Vec<Value>,
}

impl Numbers {
    /// Adds a column of numbers, `N` for each; returns its accessor.
    fn add<const N: usize>(&mut self, kind: &str, values: impl Iterator<Item = [f32; N]>) -> usize {
        let begin = self.bytes.len();
        let (mut least, mut most, mut count) = ([f32::MAX; N], [f32::MIN; N], 0);
        for value in values {
            for axis in 0..N {
                least[axis] = least[axis].min(value[axis]);
                most[axis] = most[axis].max(value[axis]);
                self.bytes.extend_from_slice(&value[axis].to_le_bytes());
            }
            count += 1;
        }
        let view = json!({ "buffer": 0, "byteOffset": begin, "byteLength": self.bytes.len() - begin });
        self.views.push(view);
        self.accessors.push(json!({
            "bufferView": self.views.len() - 1,
            "componentType": FLOAT,
            "count": count,
            "type": kind,
            "min": least.to_vec(),
            "max": most.to_vec(),
        }));
        self.accessors.len() - 1
    }
}

/// Header and chunks, each a multiple of four bytes long.
fn glb(document: &Value, mut numbers: Vec<u8>) -> Vec<u8> {
    let mut text = document.to_string().into_bytes();
    text.resize(text.len().next_multiple_of(4), b' ');
    numbers.resize(numbers.len().next_multiple_of(4), 0);
    let chunks = [(JSON_CHUNK, text), (BIN_CHUNK, numbers)];
    let chunks: Vec<_> = chunks.into_iter().filter(|(_, bytes)| !bytes.is_empty()).collect();
    let length: usize = 12 + chunks.iter().map(|(_, bytes)| 8 + bytes.len()).sum::<usize>();
    let mut file = Vec::with_capacity(length);
    file.extend_from_slice(&MAGIC);
    file.extend_from_slice(&VERSION.to_le_bytes());
    file.extend_from_slice(&(length as u32).to_le_bytes());
    for (kind, bytes) in chunks {
        file.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        file.extend_from_slice(&kind);
        file.extend_from_slice(&bytes);
    }
    file
}
