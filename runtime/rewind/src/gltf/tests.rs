//! Contract: what is written is read again, number for number, and whatever else a file is, reading it ends with an error
//! and never with a panic.

use glam::{Quat, Vec3};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::person;

/// A file of this document, without numbers.
fn file_of(document: &Value) -> Vec<u8> {
    let text = document.to_string();
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(&VERSION.to_le_bytes());
    file.extend_from_slice(&(20 + text.len() as u32).to_le_bytes());
    file.extend_from_slice(&(text.len() as u32).to_le_bytes());
    file.extend_from_slice(&JSON_CHUNK);
    file.extend_from_slice(text.as_bytes());
    file
}

#[test]
fn what_is_written_is_read() {
    let model = person::model();
    let read = Model::read(&model.write()).unwrap();
    assert_eq!(read.skeleton, model.skeleton);
    assert_eq!(read.clips, model.clips);
    assert_eq!(read.make_clips().unwrap(), model.make_clips().unwrap());
    let without_clips = Model { clips: Vec::new(), ..model };
    assert_eq!(Model::read(&without_clips.write()).unwrap(), without_clips);
}

#[test]
fn joints_of_any_order_become_bones_with_parents_first() {
    // Two joints below a node that is none and does not move them; the child has the lower number.
    let document = json!({
        "nodes": [
            { "name": "hand", "translation": [1, 0, 0] },
            { "name": "arm", "children": [0], "rotation": [0, 1, 0, 0] },
            { "name": "scene", "children": [1] },
        ],
        "skins": [{ "joints": [0, 1] }],
    });
    let model = Model::read(&file_of(&document)).unwrap();
    let names: Vec<(&str, Option<u16>)> =
        model.skeleton.bones().iter().map(|bone| (bone.name.as_str(), bone.parent)).collect();
    assert_eq!(names, [("arm", None), ("hand", Some(0))]);
    assert_eq!(model.skeleton.bones()[0].turn, Quat::from_xyzw(0.0, 1.0, 0.0, 0.0));
    assert_eq!(model.skeleton.bones()[1].place, Vec3::X);
}

#[test]
fn what_would_put_limbs_elsewhere_is_refused_by_name() {
    #[track_caller]
    fn check(nodes: &Value, expect: &GltfError) {
        let document = json!({ "nodes": nodes, "skins": [{ "joints": [0] }] });
        assert_eq!(&Model::read(&file_of(&document)).unwrap_err(), expect);
    }
    check(&json!([{ "scale": [1, 2, 1] }]), &GltfError::Unsupported("a joint that is scaled"));
    check(&json!([{ "matrix": [] }]), &GltfError::Unsupported("a node with a matrix"));
    check(&json!([{ "translation": [1, 2] }]), &GltfError::Missing("a node's transform"));
    check(&json!([]), &GltfError::Missing("a joint's node"));
    let moved = json!([{}, { "children": [0], "translation": [0, 1, 0] }]);
    check(&moved, &GltfError::Unsupported("a node above the skeleton that moves it"));
    let ring = json!([{ "children": [1] }, { "children": [0] }]);
    check(&ring, &GltfError::Missing("a root: nodes are children of each other, and it"));
}

#[test]
fn what_is_no_file_of_this_kind_is_refused() {
    let good = person::model().write();
    assert_eq!(Model::read(b"glTF"), Err(GltfError::NotGlb("it ends too early")));
    assert_eq!(Model::read(&good[..good.len() - 1]), Err(GltfError::NotGlb("it ends too early")));
    assert_eq!(Model::read(&[0; 64]), Err(GltfError::NotGlb("it does not begin with `glTF`")));
    assert_eq!(Model::read(&file_of(&json!({}))), Err(GltfError::Missing("a skin")));
    let mut other = good;
    other[4] = 1;
    assert_eq!(Model::read(&other), Err(GltfError::NotGlb("it is of another version")));
}

#[test]
fn clips_that_are_too_long_together_are_refused_before_they_are_made() {
    let mut model = person::model();
    let mut long = model.clips[0].clone();
    long.tracks.truncate(1);
    let last = long.tracks[0].times_s.last_mut().unwrap();
    *last = CLIP_S_MAX;
    model.clips = vec![long; 40];
    assert_eq!(model.make_clips().unwrap_err(), GltfError::TooLarge);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Promise: a file with any bytes changed is read or refused; what is read can be made into clips or is refused.
    #[test]
    fn a_broken_file_never_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
        let mut file = person::model().write();
        for (place, byte) in changes {
            let place = place.index(file.len());
            file[place] = byte;
        }
        if let Ok(model) = Model::read(&file) {
            let _ = model.make_clips();
        }
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Model::read(&bytes).is_err());
    }
}
