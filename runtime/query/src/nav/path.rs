//! Paths: the way from one point of a mesh to another, in slices that fit a budget.
//!
//! A* over polygons. A polygon is entered where the way from the entry before it to the goal through the common edge is
//! shortest, so that costs in large polygons are close to those of the line that string pulling will make of them.
//! Each polygon is expanded once at most, so a search never takes more nodes than the mesh has polygons; length within
//! a few percent of the shortest is the price.
//!
//! A search belongs to whoever runs it, a world or a worker: `begin`, then `advance` with as many nodes as there is
//! budget for, in this tick and the next, then `finish`, which may come at any time. What it found by then is the
//! answer: a way to the goal or, as an ordinary result, to the place nearest to it that was reached.
//!
//! Scratch is 60 bytes for each polygon and is kept: a search that has seen a mesh does not allocate on it again.
//! Cost: about 0.2 µs a node; a path across a city block of 160 m, 86 m long on average, takes 49 nodes, 10 µs.

use glam::{Vec2, Vec3};
use throng_profiler::scoped;

use super::funnel::{Portal, pull_string};
use super::mesh::{NONE, NavMesh, NavPoint, PolygonId, ground};
use super::open_list::OpenList;

/// Whether a search can go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchState {
    /// No search was begun, or the last one is finished.
    Idle,
    /// There are polygons left to expand.
    Running,
    /// The goal was reached, or everything that can be was.
    Done,
}

/// What a path is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathOutcome {
    /// The last waypoint is the goal.
    Complete,
    /// The last waypoint is the nearest place to the goal that was reached: there is no way, or the search was
    /// finished early.
    Partial,
    /// The waypoints are a beginning of the way: the buffer was full. Search again when they are used up.
    Cut,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    pub outcome: PathOutcome,
    /// How many waypoints were written.
    pub waypoint_count: usize,
    /// Along the waypoints, seen from above `(m)`.
    pub length_m: f32,
    /// Polygons expanded, for metrics.
    pub node_count: u32,
}

#[derive(Clone, Copy)]
struct Node {
    /// Number of the search that wrote this node; others are as good as absent.
    search: u32,
    closed: bool,
    /// Edge of the polygon before, crossed to get here; [`NONE`] at the start.
    through: u32,
    /// Where that edge is crossed.
    entry: Vec2,
    /// From the start to `entry` `(m)`.
    cost_m: f32,
}

/// One path search at a time, and the scratch for the next.
pub struct PathSearch {
    nodes: Vec<Node>,
    open: OpenList,
    portals: Vec<Portal>,
    search: u32,
    state: SearchState,
    ends: Option<(NavPoint, NavPoint)>,
    /// Whether both ends are on one island.
    reachable: bool,
    /// Polygon nearest to the goal so far, and its distance `(m)`.
    nearest: (u32, f32),
    node_count: u32,
}

impl PathSearch {
    /// Scratch for searches on `mesh`. Used on a larger one, it grows at the first `begin`.
    pub fn new(mesh: &NavMesh) -> Self {
        let mut search = Self {
            nodes: Vec::new(),
            open: OpenList::default(),
            portals: Vec::new(),
            search: 0,
            state: SearchState::Idle,
            ends: None,
            reachable: true,
            nearest: (NONE, f32::MAX),
            node_count: 0,
        };
        search.make_room(mesh);
        search
    }

    /// The whole path at once.
    pub fn find(&mut self, mesh: &NavMesh, from: NavPoint, to: NavPoint, waypoints: &mut [Vec3]) -> Path {
        self.begin(mesh, from, to);
        self.advance(mesh, u32::MAX);
        self.finish(mesh, waypoints)
    }

    /// Starts a search between two points of `mesh`; whatever was going on before is dropped.
    pub fn begin(&mut self, mesh: &NavMesh, from: NavPoint, to: NavPoint) {
        self.make_room(mesh);
        self.open.reset(mesh.polygon_count());
        self.search = self.search.wrapping_add(1);
        if self.search == 0 {
            // After four billion searches the numbers start again, and old nodes must not look new.
            self.nodes.iter_mut().for_each(|node| node.search = 0);
            self.search = 1;
        }
        let entry = ground(from.position);
        let left_m = entry.distance(ground(to.position));
        self.ends = Some((from, to));
        self.reachable = mesh.connected(from, to);
        self.state = SearchState::Running;
        self.nearest = (from.polygon.0, left_m);
        self.node_count = 0;
        let search = self.search;
        self.nodes[from.polygon.0 as usize] = Node { search, closed: false, through: NONE, entry, cost_m: 0.0 };
        self.open.insert_or_improve(from.polygon.0, left_m);
    }

    /// Expands at most `nodes_max` polygons. `mesh` must be the one the search began on.
    #[scoped("query.path")]
    pub fn advance(&mut self, mesh: &NavMesh, nodes_max: u32) -> SearchState {
        let Some((_, to)) = self.ends else {
            return self.state;
        };
        let goal = ground(to.position);
        for _ in 0..nodes_max {
            if self.state != SearchState::Running {
                break;
            }
            match self.open.pop() {
                Some(polygon) => self.expand(mesh, polygon, to.polygon.0, goal),
                None => self.state = SearchState::Done,
            }
        }
        self.state
    }

    pub fn state(&self) -> SearchState {
        self.state
    }

    /// Polygons expanded since `begin`.
    pub fn node_count(&self) -> u32 {
        self.node_count
    }

    /// Writes the corners to go to, one after the other; the start is not among them. Ends the search.
    ///
    /// Straight lines between waypoints lie on the mesh, so step onto each before turning to the next: waypoints are
    /// corners, and seen from 30 cm before one the next may be behind the wall.
    ///
    /// Without a search there is nothing to write: a partial path without waypoints.
    pub fn finish(&mut self, mesh: &NavMesh, waypoints: &mut [Vec3]) -> Path {
        let mut path =
            Path { outcome: PathOutcome::Partial, waypoint_count: 0, length_m: 0.0, node_count: self.node_count };
        let Some((from, to)) = self.ends.take() else {
            return path;
        };
        self.state = SearchState::Idle;
        let last = self.nearest.0;
        let end = if last == to.polygon.0 {
            path.outcome = PathOutcome::Complete;
            to.position
        } else {
            let last = PolygonId(last);
            mesh.point_on(last, mesh.closest_place(last, ground(to.position))).position
        };
        self.collect_portals(mesh, last, end);
        let mut corner = from.position;
        let mut cut = false;
        pull_string(from.position, &self.portals, end, |next| {
            let Some(slot) = waypoints.get_mut(path.waypoint_count) else {
                cut = true;
                return false;
            };
            *slot = next;
            path.waypoint_count += 1;
            path.length_m += ground(corner).distance(ground(next));
            corner = next;
            true
        });
        if cut {
            path.outcome = PathOutcome::Cut;
        }
        path
    }

    /// Heap memory held.
    pub fn heap_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.portals.capacity() * size_of::<Portal>()
            + self.open.heap_bytes()
    }

    fn make_room(&mut self, mesh: &NavMesh) {
        let count = mesh.polygon_count();
        if self.nodes.len() < count {
            let unused = Node { search: 0, closed: false, through: NONE, entry: Vec2::ZERO, cost_m: 0.0 };
            self.nodes.resize(count, unused);
            self.portals.reserve(count - self.portals.len());
        }
        self.open.reset(count);
    }

    fn expand(&mut self, mesh: &NavMesh, polygon: u32, goal_polygon: u32, goal: Vec2) {
        self.node_count += 1;
        self.nodes[polygon as usize].closed = true;
        if polygon == goal_polygon {
            self.nearest = (polygon, 0.0);
            self.state = SearchState::Done;
            return;
        }
        let Node { entry, cost_m, .. } = self.nodes[polygon as usize];
        // Without a way the answer is the polygon that comes nearest to the goal. With one, this matters only if the
        // search is finished early, and the distance from where the polygon is entered is at hand.
        let nearest_place = if self.reachable { entry } else { mesh.closest_place(PolygonId(polygon), goal) };
        let left_m = nearest_place.distance(goal);
        if left_m < self.nearest.1 {
            self.nearest = (polygon, left_m);
        }
        let first_edge = mesh.polygon(PolygonId(polygon)).first_edge;
        for (i, edge) in mesh.edges_of(PolygonId(polygon)).iter().enumerate() {
            if edge.neighbour == NONE {
                continue;
            }
            let through = first_edge + i as u32;
            let next_entry = shortest_crossing(entry, goal, ground(edge.corner), ground(mesh.edge_end(through)));
            let next_cost_m = cost_m + entry.distance(next_entry);
            let node = &mut self.nodes[edge.neighbour as usize];
            let known = node.search == self.search;
            if known && (node.closed || node.cost_m <= next_cost_m) {
                continue;
            }
            *node = Node { search: self.search, closed: false, through, entry: next_entry, cost_m: next_cost_m };
            self.open.insert_or_improve(edge.neighbour, next_cost_m + next_entry.distance(goal));
        }
    }

    /// The edges crossed from the start to `last`, in order, and `end` as the last, narrowest one.
    fn collect_portals(&mut self, mesh: &NavMesh, last: u32, end: Vec3) {
        self.portals.clear();
        self.portals.push(Portal { left: end, right: end });
        let mut through = self.nodes[last as usize].through;
        while through != NONE {
            // The corners run counter-clockwise, so whoever leaves through an edge has its end on the left.
            let edge = &mesh.edges[through as usize];
            self.portals.push(Portal { left: mesh.edge_end(through), right: edge.corner });
            through = self.nodes[edge.polygon as usize].through;
        }
        self.portals.reverse();
    }
}

/// The place on the edge from `a` to `b` through which the way from `from` to `to` is shortest. If both lie on the
/// same side, one of them mirrored at the edge: the formula is the same.
pub(super) fn shortest_crossing(from: Vec2, to: Vec2, a: Vec2, b: Vec2) -> Vec2 {
    let edge = b - a;
    let (from_off, to_off) = (edge.perp_dot(from - a).abs(), edge.perp_dot(to - a).abs());
    let (from_along, to_along) = (edge.dot(from - a), edge.dot(to - a));
    let off = from_off + to_off;
    let along = if off > 0.0 { (from_along * to_off + to_along * from_off) / off } else { from_along };
    a + edge * (along / edge.length_squared()).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::{Aabb, LevelGeometry};
    use crate::nav::walk::tests::courtyard;
    use crate::nav::{BakeSettings, WalkOutcome, bake};
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// A yard of 48 m x 48 m with boxes thrown in, different for each seed.
    fn random_yard(seed: u64) -> NavMesh {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut boxes = vec![Aabb::new(Vec3::new(-24.0, -1.0, -24.0), Vec3::new(24.0, 0.0, 24.0))];
        for _ in 0..22 {
            let min = Vec3::new(rng.random_range(-23.0..18.0), 0.0, rng.random_range(-23.0..18.0));
            boxes.push(Aabb::new(min, min + Vec3::new(rng.random_range(0.5..9.0), 4.0, rng.random_range(0.5..9.0))));
        }
        let mesh = bake(&LevelGeometry::from_boxes(&boxes).unwrap(), &BakeSettings::default()).unwrap();
        mesh.check();
        mesh
    }

    /// Length of the shortest way on a fine grid, by Dijkstra, with steps in sixteen directions that are walkable on
    /// the mesh: at most 3 % longer than the shortest way there is.
    fn grid_lengths(mesh: &NavMesh, from: NavPoint, cell_m: f32) -> impl Fn(Vec3) -> Option<f32> {
        let min = mesh.bounds().min;
        let columns = (mesh.bounds().size_m().x / cell_m) as i32 + 2;
        let rows = (mesh.bounds().size_m().z / cell_m) as i32 + 2;
        let place =
            move |column: i32, row: i32| Vec3::new(min.x + column as f32 * cell_m, 0.0, min.z + row as f32 * cell_m);
        let index = move |column: i32, row: i32| (row * columns + column) as usize;
        let points: Vec<Option<NavPoint>> = (0..columns * rows)
            .map(|i| {
                mesh.nearest(place(i % columns, i / columns), 0.01).ok().filter(|point| mesh.connected(*point, from))
            })
            .collect();
        const STEPS: [(i32, i32); 16] = [
            (1, 0),
            (0, 1),
            (-1, 0),
            (0, -1),
            (1, 1),
            (-1, 1),
            (-1, -1),
            (1, -1),
            (2, 1),
            (1, 2),
            (-1, 2),
            (-2, 1),
            (-2, -1),
            (-1, -2),
            (1, -2),
            (2, -1),
        ];
        let mut lengths = vec![f32::MAX; points.len()];
        let mut open = OpenList::default();
        open.reset(points.len());
        for i in 0..columns * rows {
            let Some(point) = points[i as usize] else {
                continue;
            };
            let direct_m = ground(point.position).distance(ground(from.position));
            if direct_m < 2.0 * cell_m && mesh.walk_straight(from, point.position).outcome == WalkOutcome::Arrived {
                lengths[i as usize] = direct_m;
                open.insert_or_improve(i as u32, direct_m);
            }
        }
        while let Some(i) = open.pop() {
            let (column, row) = (i as i32 % columns, i as i32 / columns);
            let Some(here) = points[i as usize] else {
                continue;
            };
            for (dx, dz) in STEPS {
                let (column, row) = (column + dx, row + dz);
                if !(0..columns).contains(&column) || !(0..rows).contains(&row) {
                    continue;
                }
                let Some(there) = points[index(column, row)] else {
                    continue;
                };
                let length_m = lengths[i as usize] + cell_m * ((dx * dx + dz * dz) as f32).sqrt();
                if length_m < lengths[index(column, row)]
                    && mesh.walk_straight(here, there.position).outcome == WalkOutcome::Arrived
                {
                    lengths[index(column, row)] = length_m;
                    open.insert_or_improve(index(column, row) as u32, length_m);
                }
            }
        }
        move |to: Vec3| {
            let (column, row) = (((to.x - min.x) / cell_m) as i32, ((to.z - min.z) / cell_m) as i32);
            (0..4)
                .filter_map(|corner| {
                    let (column, row) = (column + corner % 2, row + corner / 2);
                    let length_m = lengths[index(column, row)];
                    (length_m < f32::MAX).then(|| length_m + ground(place(column, row)).distance(ground(to)))
                })
                .min_by(f32::total_cmp)
        }
    }

    /// Every straight piece must be walkable and end where it says, in one step and in a character's small ones.
    fn check_walkable(mesh: &NavMesh, from: NavPoint, waypoints: &[Vec3]) {
        const STEP_M: f32 = 0.25;
        let (mut at, mut follower) = (from, from);
        for waypoint in waypoints {
            at = mesh.walk_straight(at, *waypoint).end;
            let way_m = ground(follower.position).distance(ground(*waypoint));
            for _ in 0..(way_m / STEP_M).ceil() as usize {
                let left = (*waypoint - follower.position).with_y(0.0);
                let step = follower.position + left.clamp_length_max(STEP_M);
                follower = mesh.walk_sliding(follower, step).end;
            }
            for end in [at, follower] {
                let missed_m = ground(end.position).distance(ground(*waypoint));
                assert!(missed_m < 0.01, "{from:?} along {waypoints:?}: {missed_m} m off {waypoint}");
            }
        }
    }

    #[test]
    fn paths_are_walkable_and_about_as_short_as_can_be() {
        let (mut ratio_max, mut ratio_sum, mut count) = (0.0_f32, 0.0, 0);
        for seed in 0..6 {
            let mesh = random_yard(seed);
            let mut search = PathSearch::new(&mesh);
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            for _ in 0..3 {
                let from = mesh.random_point(&mut rng);
                let shortest_m = grid_lengths(&mesh, from, 0.5);
                for _ in 0..60 {
                    let to = mesh.random_point(&mut rng);
                    let mut waypoints = [Vec3::ZERO; 64];
                    let path = search.find(&mesh, from, to, &mut waypoints);
                    let waypoints = &waypoints[..path.waypoint_count];
                    check_walkable(&mesh, from, waypoints);
                    if !mesh.connected(from, to) {
                        assert_eq!(path.outcome, PathOutcome::Partial);
                        continue;
                    }
                    assert_eq!(path.outcome, PathOutcome::Complete);
                    assert_eq!(*waypoints.last().unwrap(), to.position);
                    let direct_m = ground(from.position).distance(ground(to.position));
                    assert!(path.length_m >= direct_m - 0.01);
                    if let Some(shortest_m) = shortest_m(to.position).filter(|_| direct_m > 3.0) {
                        ratio_max = ratio_max.max(path.length_m / shortest_m);
                        ratio_sum += path.length_m / shortest_m;
                        count += 1;
                    }
                }
            }
        }
        println!(
            "{count} paths: {:.3} of the grid's length on average, {ratio_max:.3} at most",
            ratio_sum / count as f32
        );
        assert!(count > 700);
        assert!(ratio_sum / (count as f32) < 1.02);
        assert!(ratio_max < 1.1);
    }

    #[test]
    fn slices_of_any_size_give_the_same_path() {
        let mesh = random_yard(9);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
        let (mut whole, mut sliced) = (PathSearch::new(&mesh), PathSearch::new(&mesh));
        for nodes_max in [1, 2, 3, 7, 1_000] {
            for _ in 0..40 {
                let (from, to) = (mesh.random_point(&mut rng), mesh.random_point(&mut rng));
                let (mut expect, mut found) = ([Vec3::ZERO; 64], [Vec3::ZERO; 64]);
                let expect_path = whole.find(&mesh, from, to, &mut expect);
                sliced.begin(&mesh, from, to);
                while sliced.advance(&mesh, nodes_max) == SearchState::Running {}
                assert_eq!(sliced.finish(&mesh, &mut found), expect_path);
                assert_eq!(found, expect);
                assert!(expect_path.node_count as usize <= mesh.polygon_count());
            }
        }
    }

    /// Two yards side by side with a gap between them.
    fn two_islands() -> NavMesh {
        let quad = |x: f32| [(x, 0.0), (x + 8.0, 0.0), (x + 8.0, 8.0), (x, 8.0)].map(|(x, z)| Vec3::new(x, 0.0, z));
        let vertices = [quad(0.0), quad(8.0), quad(20.0)].concat();
        NavMesh::from_polygons(&vertices, &[vec![0, 1, 2, 3], vec![1, 5, 6, 2], vec![8, 9, 10, 11]]).unwrap()
    }

    #[test]
    fn what_cannot_be_reached_gives_the_way_to_the_nearest_place() {
        let mesh = two_islands();
        let from = mesh.nearest(Vec3::new(1.0, 0.0, 4.0), 0.1).unwrap();
        let to = mesh.nearest(Vec3::new(24.0, 0.0, 4.0), 0.1).unwrap();
        let mut waypoints = [Vec3::ZERO; 8];
        let path = PathSearch::new(&mesh).find(&mesh, from, to, &mut waypoints);
        assert_eq!((path.outcome, path.waypoint_count), (PathOutcome::Partial, 1));
        assert_eq!(waypoints[0], Vec3::new(16.0, 0.0, 4.0));
    }

    #[test]
    fn finished_early_a_search_gives_what_it_has() {
        let mesh = courtyard();
        let from = mesh.nearest(Vec3::new(-18.0, 0.0, -18.0), 1.0).unwrap();
        let to = mesh.nearest(Vec3::new(18.0, 0.0, 18.0), 5.0).unwrap();
        let mut search = PathSearch::new(&mesh);
        let mut waypoints = [Vec3::ZERO; 16];
        search.begin(&mesh, from, to);
        assert_eq!(search.advance(&mesh, 5), SearchState::Running);
        let path = search.finish(&mesh, &mut waypoints);
        assert_eq!((path.outcome, path.node_count), (PathOutcome::Partial, 5));
        check_walkable(&mesh, from, &waypoints[..path.waypoint_count]);
        assert_eq!(search.state(), SearchState::Idle);
        assert_eq!(search.finish(&mesh, &mut waypoints).waypoint_count, 0, "nothing is left of a finished search");
    }

    #[test]
    fn a_full_buffer_holds_the_beginning_of_the_way() {
        let mesh = random_yard(3);
        let mut search = PathSearch::new(&mesh);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut cuts = 0;
        for _ in 0..50 {
            let (from, to) = (mesh.random_point(&mut rng), mesh.random_point(&mut rng));
            let (mut whole, mut short) = ([Vec3::ZERO; 64], [Vec3::ZERO; 2]);
            let expect = search.find(&mesh, from, to, &mut whole);
            let path = search.find(&mesh, from, to, &mut short);
            assert_eq!(short[..path.waypoint_count], whole[..path.waypoint_count]);
            assert_eq!(path.outcome == PathOutcome::Cut, expect.waypoint_count > 2);
            cuts += u32::from(path.outcome == PathOutcome::Cut);
        }
        assert!(cuts > 5);
    }

    #[test]
    fn a_way_within_one_polygon_is_one_waypoint() {
        let mesh = two_islands();
        let from = mesh.nearest(Vec3::new(1.0, 0.0, 4.0), 0.1).unwrap();
        let mut waypoints = [Vec3::ZERO; 4];
        for x in [1.0, 5.0] {
            let to = mesh.nearest(Vec3::new(x, 0.0, 4.0), 0.1).unwrap();
            let path = PathSearch::new(&mesh).find(&mesh, from, to, &mut waypoints);
            assert_eq!((path.outcome, path.waypoint_count), (PathOutcome::Complete, 1));
            assert_eq!(waypoints[0], to.position);
        }
    }
}
