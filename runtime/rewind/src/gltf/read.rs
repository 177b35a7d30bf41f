//! Reading a model: the joints of the first skin, in an order in which parents come first, and the keys that move them.

use std::{collections::HashMap, sync::Arc};

use glam::{Quat, Vec3};
use serde_json::Value;

use super::{BIN_CHUNK, FLOAT, GltfError, JSON_CHUNK, MAGIC, Model, VERSION};
use crate::{
    clip::{KeyedClip, Keys, Track},
    skeleton::{BONES_MAX, Bone, Skeleton, SkeletonError},
};

/// How far from 1 a scale may be, which programs write with rounding errors.
const SCALE_ERROR_MAX: f64 = 1e-3;

pub(super) fn model(bytes: &[u8]) -> Result<Model, GltfError> {
    let file = File::open(bytes)?;
    let (skeleton, bones) = skeleton(&file)?;
    let clips = file.list("animations").iter().enumerate();
    let clips = clips.map(|(number, animation)| file.clip(number, animation, &bones));
    Ok(Model { skeleton: Arc::new(skeleton), clips: clips.collect::<Result<_, _>>()? })
}

/// The two chunks of a file.
struct File<'a> {
    json: Value,
    numbers: &'a [u8],
}

impl<'a> File<'a> {
    fn open(bytes: &'a [u8]) -> Result<Self, GltfError> {
        let short = || GltfError::NotGlb("it ends too early");
        let (header, mut rest) = bytes.split_first_chunk::<12>().ok_or_else(short)?;
        if header[..4] != MAGIC {
            return Err(GltfError::NotGlb("it does not begin with `glTF`"));
        }
        if header[4..8] != VERSION.to_le_bytes() {
            return Err(GltfError::NotGlb("it is of another version"));
        }
        let (mut json, mut numbers): (Option<&[u8]>, &[u8]) = (None, &[]);
        while let Some((head, after)) = rest.split_first_chunk::<8>() {
            let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
            let chunk = after.get(..length).ok_or_else(short)?;
            rest = &after[length..];
            if head[4..] == JSON_CHUNK && json.is_none() {
                json = Some(chunk);
            } else if head[4..] == BIN_CHUNK {
                numbers = chunk;
            }
        }
        let json = json.ok_or(GltfError::NotGlb("it has no JSON"))?;
        let json = serde_json::from_slice(json).map_err(|error| GltfError::Json(error.to_string()))?;
        Ok(Self { json, numbers })
    }

    /// A list of the document; empty if it has none.
    fn list(&self, key: &str) -> &[Value] {
        self.json.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice)
    }

    fn clip(&self, number: usize, animation: &Value, bones: &HashMap<usize, u16>) -> Result<KeyedClip, GltfError> {
        let name = animation.get("name").and_then(Value::as_str);
        let name = name.map_or_else(|| format!("animation {number}"), str::to_owned);
        let is_loop = animation.get("extras").and_then(|extras| extras.get("loop")?.as_bool()).unwrap_or(false);
        let lists = |key: &str| animation.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let (channels, samplers) = (lists("channels"), lists("samplers"));
        let mut tracks = Vec::new();
        for channel in channels {
            let target = channel.get("target").ok_or(GltfError::Missing("a channel's target"))?;
            // What moves something else moves nobody's limbs.
            let Some(bone) = index(target, "node").and_then(|node| bones.get(&node)) else { continue };
            let sampler = index(channel, "sampler").and_then(|index| samplers.get(index));
            let sampler = sampler.ok_or(GltfError::Missing("a channel's sampler"))?;
            if sampler.get("interpolation").is_some_and(|value| value != "LINEAR") {
                return Err(GltfError::Unsupported("keys that are stepped or cubic"));
            }
            let column = |key| index(sampler, key).ok_or(GltfError::Missing("a sampler's accessor"));
            let (input, output) = (column("input")?, column("output")?);
            let keys = match target.get("path").and_then(Value::as_str) {
                Some("translation") => {
                    Keys::Places(self.column::<3>(output, "VEC3")?.into_iter().map(Vec3::from_array).collect())
                }
                Some("rotation") => {
                    Keys::Turns(self.column::<4>(output, "VEC4")?.into_iter().map(Quat::from_array).collect())
                }
                Some("scale") => {
                    let scales = self.column::<3>(output, "VEC3")?;
                    let is_one = |scale: &f32| (f64::from(*scale) - 1.0).abs() < SCALE_ERROR_MAX;
                    if !scales.iter().flatten().all(is_one) {
                        return Err(GltfError::Unsupported("a joint that is scaled"));
                    }
                    continue;
                }
                _ => continue,
            };
            let times_s = self.column::<1>(input, "SCALAR")?.into_iter().map(|[time_s]| time_s).collect();
            tracks.push(Track { bone: *bone, times_s, keys });
        }
        Ok(KeyedClip { name, is_loop, tracks })
    }

    /// The numbers of an accessor, `N` for each.
    fn column<const N: usize>(&self, accessor: usize, kind: &'static str) -> Result<Vec<[f32; N]>, GltfError> {
        let accessor = self.list("accessors").get(accessor).ok_or(GltfError::Missing("an accessor"))?;
        if accessor.get("sparse").is_some() {
            return Err(GltfError::Unsupported("a sparse accessor"));
        }
        let is_float = accessor.get("componentType").and_then(Value::as_u64) == Some(FLOAT);
        if !is_float || accessor.get("type").and_then(Value::as_str) != Some(kind) {
            return Err(GltfError::Unsupported("keys that are not floats, or not as many as they move"));
        }
        let view = index(accessor, "bufferView").and_then(|view| self.list("bufferViews").get(view));
        let view = view.ok_or(GltfError::Missing("an accessor's view"))?;
        let tight = N * size_of::<f32>();
        let is_tight = index(view, "byteStride").is_none_or(|stride| stride == tight);
        if !is_tight || index(view, "buffer") != Some(0) {
            return Err(GltfError::Unsupported("numbers with gaps, or in another file"));
        }
        let begin = index(view, "byteOffset").unwrap_or(0).checked_add(index(accessor, "byteOffset").unwrap_or(0));
        let length = index(accessor, "count").and_then(|count| count.checked_mul(tight));
        let bytes = begin.zip(length).and_then(|(begin, length)| self.numbers.get(begin..begin.checked_add(length)?));
        let bytes = bytes.ok_or(GltfError::Missing("what an accessor points to"))?;
        let value = |bytes: &[u8]| std::array::from_fn(|axis| number(&bytes[axis * size_of::<f32>()..]));
        Ok(bytes.chunks_exact(tight).map(value).collect())
    }
}

/// A float at the beginning of some bytes, of which there are four at least.
fn number(bytes: &[u8]) -> f32 {
    f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// A number that counts or points.
fn index(value: &Value, key: &str) -> Option<usize> {
    usize::try_from(value.get(key)?.as_u64()?).ok()
}

/// The first skin's joints as bones, and which node is which.
fn skeleton(file: &File<'_>) -> Result<(Skeleton, HashMap<usize, u16>), GltfError> {
    let nodes = file.list("nodes");
    let skin = file.list("skins").first().ok_or(GltfError::Missing("a skin"))?;
    let joints = skin.get("joints").and_then(Value::as_array).ok_or(GltfError::Missing("a skin's joints"))?;
    if joints.len() > BONES_MAX {
        return Err(SkeletonError::Count { count: joints.len() }.into());
    }
    let joint = |value: &Value| usize::try_from(value.as_u64()?).ok().filter(|node| *node < nodes.len());
    let joints: Option<Vec<usize>> = joints.iter().map(joint).collect();
    let joints = joints.ok_or(GltfError::Missing("a joint's node"))?;

    let mut parents: Vec<Option<usize>> = vec![None; nodes.len()];
    for (parent, node) in nodes.iter().enumerate() {
        for child in node.get("children").and_then(Value::as_array).into_iter().flatten() {
            let child = joint(child).ok_or(GltfError::Missing("a node's child"))?;
            parents[child] = Some(parent);
        }
    }
    // From each joint up: how many are above it, and the nearest that is a joint.
    let mut placed: Vec<(usize, usize, Option<usize>)> = Vec::with_capacity(joints.len());
    for joint in &joints {
        let (mut depth, mut nearest, mut above) = (0, None, parents[*joint]);
        while let Some(node) = above {
            depth += 1;
            if depth > nodes.len() {
                return Err(GltfError::Missing("a root: nodes are children of each other, and it"));
            }
            if nearest.is_none() && joints.contains(&node) {
                nearest = Some(node);
            } else if nearest.is_none() && transform(&nodes[node])? != (Vec3::ZERO, Quat::IDENTITY) {
                return Err(GltfError::Unsupported("a node above the skeleton that moves it"));
            }
            above = parents[node];
        }
        placed.push((depth, *joint, nearest));
    }
    // The skin's own order, if it will do.
    let is_before = |(at, (_, _, nearest)): (usize, &(usize, usize, Option<usize>))| {
        nearest.is_none_or(|nearest| joints[..at].contains(&nearest))
    };
    if !placed.iter().enumerate().all(is_before) {
        placed.sort_by_key(|(depth, ..)| *depth);
    }

    let mut bones = Vec::with_capacity(placed.len());
    let mut bone_of = HashMap::with_capacity(placed.len());
    for (_, node, nearest) in placed {
        let (place, turn) = transform(&nodes[node])?;
        let name = nodes[node].get("name").and_then(Value::as_str);
        let name = name.map_or_else(|| format!("node {node}"), str::to_owned);
        let parent = nearest.and_then(|nearest| bone_of.get(&nearest).copied());
        bone_of.insert(node, bones.len() as u16);
        bones.push(Bone { name, parent, place, turn });
    }
    Ok((Skeleton::new(bones)?, bone_of))
}

/// Place and turn of a node.
fn transform(node: &Value) -> Result<(Vec3, Quat), GltfError> {
    if node.get("matrix").is_some() {
        return Err(GltfError::Unsupported("a node with a matrix"));
    }
    let scale = numbers::<3>(node, "scale")?.unwrap_or([1.0; 3]);
    if scale.iter().any(|scale| (f64::from(*scale) - 1.0).abs() > SCALE_ERROR_MAX) {
        return Err(GltfError::Unsupported("a joint that is scaled"));
    }
    let place = numbers(node, "translation")?.map_or(Vec3::ZERO, Vec3::from_array);
    let turn = numbers(node, "rotation")?.map_or(Quat::IDENTITY, Quat::from_array);
    Ok((place, turn))
}

/// So many numbers of a node; `None` if it does not have them.
fn numbers<const N: usize>(node: &Value, key: &str) -> Result<Option<[f32; N]>, GltfError> {
    let Some(values) = node.get(key) else { return Ok(None) };
    let missing = GltfError::Missing("a node's transform");
    let values = values.as_array().filter(|values| values.len() == N).ok_or(missing.clone())?;
    let mut found = [0.0; N];
    for (found, value) in found.iter_mut().zip(values) {
        *found = value.as_f64().ok_or(missing.clone())? as f32;
    }
    Ok(Some(found))
}
