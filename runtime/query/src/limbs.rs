//! Limbs: capsules of any direction, as hitboxes on bones are, and which of them a ray enters first.
//!
//! [`casts`](crate::casts) asks upright capsules of everybody in a world; this asks the few dozen of one body that the ray
//! is known to pass. Ends and radii are columns, because a pose that is interpolated is written as columns.
//!
//! A limb whose numbers are not finite is never hit. Any thread; allocates nothing. Sketch of the cost: 2 ns for a
//! limb that the ray passes by, 10 ns for one that it enters.

use glam::Vec3;

use crate::casts::{Ray, ball_hit};

/// Limbs as columns of equal length.
#[derive(Clone, Copy, Debug)]
pub struct Limbs<'a> {
    /// Middles of the balls at both ends (m); equal ends make one ball.
    pub from: &'a [Vec3],
    pub to: &'a [Vec3],
    /// In metres, above 0.
    pub radius_m: &'a [f32],
}

/// Where a ray enters a limb.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimbHit {
    /// Index in the columns.
    pub limb: u32,
    /// Along the ray (m); 0 for a ray that starts inside.
    pub distance_m: f32,
}

/// The limb that the ray enters first, nearer than the ray reaches; of two at the same distance the lower index. `None`
/// also for a ray that no cast can answer.
///
/// The columns must be equally long.
pub fn cast_ray_at_limbs(ray: &Ray, limbs: &Limbs) -> Option<LimbHit> {
    assert_eq!(limbs.from.len(), limbs.to.len());
    assert_eq!(limbs.from.len(), limbs.radius_m.len());
    let unit = ray.unit()?;
    let mut nearest = None;
    let mut reach_m = ray.distance_m_max;
    let columns = limbs.from.iter().zip(limbs.to).zip(limbs.radius_m);
    for (limb, ((from, to), radius_m)) in columns.enumerate() {
        if let Some(distance_m) = limb_hit(ray.origin, unit, reach_m, *from, *to, *radius_m) {
            reach_m = distance_m;
            nearest = Some(LimbHit { limb: limb as u32, distance_m });
        }
    }
    nearest
}

/// Distance at which a ray enters a limb, if below `reach_m`.
fn limb_hit(origin: Vec3, unit: Vec3, reach_m: f32, from: Vec3, to: Vec3, radius_m: f32) -> Option<f32> {
    // The ball around the whole limb settles it for most.
    let half = (to - from) * 0.5;
    let to_middle = from + half - origin;
    let along_m = to_middle.dot(unit);
    let around_m = half.length() + radius_m;
    let off_m2 = (to_middle - unit * along_m).length_squared();
    let near = off_m2 <= around_m * around_m && along_m >= -around_m && along_m - around_m < reach_m;
    if !near {
        return None; // also where a number is not finite: no comparison holds
    }

    // From here on the ray begins beside the limb: squares of a shot's whole way would leave no digits for a limb.
    let skipped_m = (along_m - around_m).max(0.0);
    let start = unit * skipped_m - to_middle; // as seen from the limb's middle
    let axis_m2 = half.length_squared();
    let radius_m2 = radius_m * radius_m;
    let axis_unit = if axis_m2 > 0.0 { half / axis_m2.sqrt() } else { Vec3::ZERO };
    let half_m = axis_m2.sqrt();

    // Ray against the endless cylinder: what is left of both when their parts along the axis are taken away.
    let start_along_m = start.dot(axis_unit);
    let unit_along = unit.dot(axis_unit);
    let start_off = start - axis_unit * start_along_m;
    let unit_off = unit - axis_unit * unit_along;
    let a = unit_off.length_squared();
    let b = start_off.dot(unit_off);
    let c = start_off.length_squared() - radius_m2;
    if c <= 0.0 && start_along_m.abs() <= half_m {
        return (skipped_m < reach_m).then_some(skipped_m);
    }
    let mut hit = None;
    let discriminant = b * b - a * c;
    if c > 0.0 && a > 1e-12 && discriminant >= 0.0 {
        let at_m = (-b - discriminant.sqrt()) / a;
        if at_m >= 0.0 && (start_along_m + unit_along * at_m).abs() <= half_m {
            hit = Some(at_m);
        }
    }
    // The side was missed, so only the balls at both ends are left.
    let hit = hit.or_else(|| {
        let one = ball_hit(-half - start, unit, radius_m);
        let other = ball_hit(half - start, unit, radius_m);
        match (one, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    })?;
    let hit_m = skipped_m + hit;
    (hit_m < reach_m).then_some(hit_m)
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::{
        casts::{Capsules, Shot, ShotTarget, cast_rays_against_capsules},
        geometry::{Aabb, LevelGeometry},
    };

    fn random_point(rng: &mut impl Rng, reach_m: f32) -> Vec3 {
        Vec3::from_array(std::array::from_fn(|_| rng.random_range(-reach_m..reach_m)))
    }

    fn one(ray: Ray, from: Vec3, to: Vec3, radius_m: f32) -> Option<f32> {
        let limbs = Limbs { from: &[from], to: &[to], radius_m: &[radius_m] };
        cast_ray_at_limbs(&ray, &limbs).map(|hit| hit.distance_m)
    }

    /// Steps along the ray and measures the distance to the limb's middle line: slow and obviously right.
    fn naive(ray: &Ray, from: Vec3, to: Vec3, radius_m: f32) -> Option<f32> {
        const STEP_M: f32 = 0.002;
        let unit = ray.direction.normalize();
        let axis = to - from;
        (0..(ray.distance_m_max / STEP_M) as usize).map(|step| step as f32 * STEP_M).find(|at| {
            let point = ray.origin + unit * *at;
            let along = ((point - from).dot(axis) / axis.length_squared().max(1e-9)).clamp(0.0, 1.0);
            point.distance(from + axis * along) <= radius_m
        })
    }

    #[test]
    fn limbs_agree_with_small_steps() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut hit_count = 0;
        for _ in 0..500 {
            let (from, radius_m) = (random_point(&mut rng, 1.0), rng.random_range(0.04..0.4));
            let to = from + random_point(&mut rng, 0.8);
            let origin = random_point(&mut rng, 4.0);
            let aim = (from + to) * 0.5 + random_point(&mut rng, 0.3) - origin;
            let ray = Ray { origin, direction: aim, distance_m_max: rng.random_range(2.0..12.0) };
            let (wide, narrow) = (naive(&ray, from, to, radius_m + 0.01), naive(&ray, from, to, radius_m - 0.01));
            match one(ray, from, to, radius_m) {
                Some(hit) => {
                    let wide = wide.unwrap_or_else(|| panic!("{ray:?} misses a limb grown by 1 cm"));
                    assert!(hit >= wide - 0.01, "{hit}, {wide}");
                    assert!(narrow.is_none_or(|narrow| hit <= narrow + 0.01), "{hit}, {narrow:?}");
                    hit_count += 1;
                }
                None => assert_eq!(narrow, None, "{ray:?} hits a limb shrunk by 1 cm"),
            }
        }
        assert!((100..480).contains(&hit_count), "{hit_count} of 500 hit: the test tests something");
    }

    #[test]
    fn an_upright_limb_is_an_upright_capsule() {
        let level = LevelGeometry::from_boxes(&[Aabb::new(Vec3::splat(900.0), Vec3::splat(901.0))]).unwrap();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(12);
        let mut hits = Vec::new();
        for _ in 0..2_000 {
            let (feet, radius_m) = (random_point(&mut rng, 2.0), rng.random_range(0.1..0.6));
            let height_m = rng.random_range(1.3..2.5);
            let origin = random_point(&mut rng, 5.0);
            let ray = Ray { origin, direction: feet + Vec3::Y - origin, distance_m_max: 16.0 };
            let characters = Capsules { feet: &[feet], radius_m: &[radius_m], height_m: &[height_m] };
            cast_rays_against_capsules(&level, &[Shot { ray, shooter: None }], &characters, &mut hits);
            let expect = hits[0].filter(|hit| hit.target == ShotTarget::Character(0)).map(|hit| hit.distance_m);
            let (from, to) = (feet + Vec3::Y * radius_m, feet + Vec3::Y * (height_m - radius_m));
            match (one(ray, from, to, radius_m), expect) {
                (Some(hit), Some(expect)) => assert!((hit - expect).abs() < 2e-3, "{hit}, not {expect}"),
                (hit, expect) => assert_eq!(hit, expect),
            }
        }
    }

    #[test]
    fn a_thin_limb_far_away_is_hit_where_it_is() {
        let ray = Ray { origin: Vec3::new(0.0, 1.5, -800.0), direction: Vec3::Z, distance_m_max: 1_000.0 };
        let at = |x: f32| (Vec3::new(x, 1.2, 0.0), Vec3::new(x, 1.8, 0.0));
        let (from, to) = at(0.03);
        let hit = one(ray, from, to, 0.05).expect("3 cm beside its middle, 5 cm thick");
        assert!((hit - 799.96).abs() < 1e-2, "{hit}");
        let (from, to) = at(0.06);
        assert_eq!(one(ray, from, to, 0.05), None);
    }

    #[test]
    fn the_nearest_is_hit_and_nothing_that_is_not_finite() {
        let ray = Ray { origin: Vec3::ZERO, direction: Vec3::Z, distance_m_max: 50.0 };
        let behind = |z: f32| Vec3::new(0.0, 0.0, z);
        let limbs = Limbs {
            from: &[behind(9.0), behind(5.0), Vec3::NAN, behind(5.0)],
            to: &[behind(9.0), behind(5.0), Vec3::NAN, behind(5.0)],
            radius_m: &[1.0, 1.0, 1.0, 1.0],
        };
        assert_eq!(cast_ray_at_limbs(&ray, &limbs), Some(LimbHit { limb: 1, distance_m: 4.0 }));
        let from_inside = Ray { origin: behind(8.5), ..ray };
        assert_eq!(cast_ray_at_limbs(&from_inside, &limbs), Some(LimbHit { limb: 0, distance_m: 0.0 }));
        let short = Ray { distance_m_max: 3.5, ..ray };
        assert_eq!(cast_ray_at_limbs(&short, &limbs), None);
        for bad in [Ray { direction: Vec3::ZERO, ..ray }, Ray { origin: Vec3::NAN, ..ray }] {
            assert_eq!(cast_ray_at_limbs(&bad, &limbs), None);
        }
    }
}
