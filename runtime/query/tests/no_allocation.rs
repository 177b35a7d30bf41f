//! Promise: asked again, a warm caller never allocates, whatever it asks.

use glam::Vec3;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_platform::allocator::{AllocationCounts, CountingAllocator, thread_counts};
use throng_query::casts::{Capsules, Ray, Shot, cast_rays, cast_rays_against_capsules, lines_of_sight};
use throng_query::geometry::{Aabb, LevelGeometry};
use throng_query::nav::{BakeSettings, NavPoint, PathSearch, bake};
use throng_query::near::NearList;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn warm_questions_do_not_allocate() {
    let mut boxes = vec![Aabb::new(Vec3::new(-30.0, -1.0, -30.0), Vec3::new(30.0, 0.0, 30.0))];
    for i in 0..25 {
        let min = Vec3::new((i % 5) as f32 * 11.0 - 27.0, 0.0, (i / 5) as f32 * 11.0 - 27.0);
        boxes.push(Aabb::new(min, min + Vec3::new(6.0, 4.0, 6.0)));
    }
    let level = LevelGeometry::from_boxes(&boxes).unwrap();
    let settings = BakeSettings { reachable_from: Some(Vec3::new(-29.0, 0.0, -29.0)), ..Default::default() };
    let mesh = bake(&level, &settings).unwrap();

    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let points: Vec<NavPoint> = (0..200).map(|_| mesh.random_point(&mut rng)).collect();
    let feet: Vec<Vec3> = points.iter().map(|point| point.position()).collect();
    let eyes: Vec<Vec3> = feet.iter().map(|feet| *feet + Vec3::Y * 1.6).collect();
    let pairs: Vec<(Vec3, Vec3)> = eyes.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let rays: Vec<Ray> = pairs.iter().map(|(from, to)| Ray::between(*from, *to)).collect();
    let shots: Vec<Shot> = rays.iter().map(|ray| Shot { ray: *ray, shooter: None }).collect();
    let sizes = [[0.4; 200], [1.8; 200]];
    let characters = Capsules { feet: &feet, radius_m: &sizes[0], height_m: &sizes[1] };
    let (x_m, z_m): (Vec<f32>, Vec<f32>) = feet.iter().map(|feet| (feet.x, feet.z)).unzip();
    let askers: Vec<u32> = (0..200).collect();

    let (mut hits, mut seen, mut shot_hits) = (Vec::new(), Vec::new(), Vec::new());
    let mut near = NearList::default();
    let mut search = PathSearch::new(&mesh);
    let mut waypoints = [Vec3::ZERO; 32];
    let mut ask_everything = || {
        let before = thread_counts();
        cast_rays(&level, &rays, &mut hits);
        lines_of_sight(&level, &pairs, &mut seen);
        cast_rays_against_capsules(&level, &shots, &characters, &mut shot_hits);
        near.find(&x_m, &z_m, &askers, 8.0);
        for ends in points.windows(2) {
            search.find(&mesh, ends[0], ends[1], &mut waypoints);
            mesh.walk_sliding(ends[0], ends[1].position());
            mesh.nearest(ends[0].position() + Vec3::Y * 0.5, 2.0).unwrap();
        }
        thread_counts() - before
    };
    assert_ne!(ask_everything(), AllocationCounts::default(), "the first time makes room");
    assert_eq!(ask_everything(), AllocationCounts::default());
}
