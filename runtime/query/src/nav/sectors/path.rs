//! Paths over sectors: the way from one point to another, over all that is streamed.
//!
//! The same search as on a whole mesh ([`path`](crate::nav::path)), over polygons of all sectors that are there. Where a
//! polygon ends at a side, the edges behind it are looked up, and each stretch that two edges have in common is a portal.
//!
//! A goal need not be streamed: the way then leads to the place nearest to it that is, as an ordinary result
//! ([`PathOutcome::Partial`]); whoever walks it has more streamed by its end. If sectors come, go or are replaced while a
//! search goes on, it begins anew.
//!
//! Scratch is 72 bytes for each polygon that is streamed, kept by whoever searches: a world, or better a worker. Cost:
//! about 0.3 µs a node.

use glam::{Vec2, Vec3};
use throng_profiler::scoped;

use super::level::SectorId;
use super::sector::{Sector, Side};
use super::streaming::WorldSectors;
use super::surface::SectorPoint;
use crate::nav::funnel::{Portal, pull_string};
use crate::nav::mesh::{NONE, NavMesh, PolygonId, SKIN_M, ground};
use crate::nav::open_list::OpenList;
use crate::nav::path::{Path, PathOutcome, SearchState, shortest_crossing};

/// How far from a goal the surface may be that it is taken for (m).
const GOAL_REACH_M: f32 = 4.0;

#[derive(Clone, Copy)]
struct Node {
    /// Number of the search that wrote this node; others are as good as absent.
    search: u32,
    closed: bool,
    /// The node before, or [`NONE`] at the start.
    before: u32,
    /// What is crossed between that one and this.
    portal: Portal,
    /// Where it is crossed.
    entry: Vec2,
    /// From the start to `entry` (m).
    cost_m: f32,
}

/// A search's view of one sector: where its nodes begin.
#[derive(Clone, Copy)]
struct Part {
    id: SectorId,
    first_node: u32,
}

/// One path search at a time, and the scratch for the next.
#[derive(Default)]
pub struct SectorSearch {
    /// By id, and so by first node.
    parts: Vec<Part>,
    nodes: Vec<Node>,
    open: OpenList,
    portals: Vec<Portal>,
    search: u32,
    state: Option<SearchState>,
    ends: Option<Ends>,
    /// Of the sectors that it began on.
    generation: u32,
    /// Node nearest to the goal so far, and its distance (m).
    nearest: (u32, f32),
    node_count: u32,
}

#[derive(Clone, Copy)]
struct Ends {
    from: SectorPoint,
    goal: Vec3,
    /// The goal on what is streamed, and its node.
    to: Option<(SectorPoint, u32)>,
}

impl SectorSearch {
    /// The whole path at once; none if the sector of `from` is not streamed.
    pub fn find(
        &mut self,
        sectors: &WorldSectors,
        from: SectorPoint,
        goal: Vec3,
        waypoints: &mut [Vec3],
    ) -> Option<Path> {
        if !self.begin(sectors, from, goal) {
            return None;
        }
        self.advance(sectors, u32::MAX);
        Some(self.finish(sectors, waypoints))
    }

    /// Starts a search; whatever was going on before is dropped. False if the sector of `from` is not streamed, or the goal
    /// is not finite.
    pub fn begin(&mut self, sectors: &WorldSectors, from: SectorPoint, goal: Vec3) -> bool {
        self.ends = None;
        self.state = None;
        self.node_count = 0;
        self.restart(sectors, from, goal)
    }

    fn restart(&mut self, sectors: &WorldSectors, from: SectorPoint, goal: Vec3) -> bool {
        let Some(from) = sectors.up_to_date(from).filter(|_| goal.is_finite()) else { return false };
        self.lay_out(sectors);
        let Some(start) = self.node_of(from) else { return false };
        let to = sectors.nearest(goal, GOAL_REACH_M).ok();
        let to = to.and_then(|to| Some((to, self.node_of(to)?)));
        let entry = ground(from.position());
        let left_m = entry.distance(ground(goal));
        self.generation = sectors.generation();
        self.ends = Some(Ends { from, goal, to });
        self.state = Some(SearchState::Running);
        self.nearest = (start, left_m);
        let portal = Portal { left: from.position(), right: from.position() };
        let search = self.search;
        self.nodes[start as usize] = Node { search, closed: false, before: NONE, portal, entry, cost_m: 0.0 };
        self.open.insert_or_improve(start, left_m);
        true
    }

    /// Gives each streamed polygon a node.
    fn lay_out(&mut self, sectors: &WorldSectors) {
        self.parts.clear();
        let mut first_node = 0;
        for sector in sectors.resident() {
            self.parts.push(Part { id: sector.id(), first_node });
            first_node += sector.mesh.as_ref().map_or(0, NavMesh::polygon_count) as u32;
        }
        let count = first_node as usize;
        if self.nodes.len() < count {
            let portal = Portal { left: Vec3::ZERO, right: Vec3::ZERO };
            let unused = Node { search: 0, closed: false, before: NONE, portal, entry: Vec2::ZERO, cost_m: 0.0 };
            self.nodes.resize(count, unused);
            self.portals.reserve(count - self.portals.len());
        }
        self.open.reset(count);
        self.search = self.search.wrapping_add(1);
        if self.search == 0 {
            self.nodes.iter_mut().for_each(|node| node.search = 0);
            self.search = 1;
        }
    }

    fn first_node(&self, id: SectorId) -> Option<u32> {
        let index = self.parts.binary_search_by_key(&id, |part| part.id).ok()?;
        Some(self.parts[index].first_node)
    }

    fn node_of(&self, point: SectorPoint) -> Option<u32> {
        Some(self.first_node(point.sector)? + point.on.polygon().0)
    }

    fn part_of(&self, node: u32) -> Part {
        self.parts[self.parts.partition_point(|part| part.first_node <= node) - 1]
    }

    /// Expands at most `nodes_max` polygons. If sectors have changed since, it begins anew.
    #[scoped("query.path")]
    pub fn advance(&mut self, sectors: &WorldSectors, nodes_max: u32) -> SearchState {
        let Some(ends) = self.ends else { return SearchState::Idle };
        if self.generation != sectors.generation() && !self.restart(sectors, ends.from, ends.goal) {
            self.ends = None;
            self.state = None;
            return SearchState::Idle;
        }
        for _ in 0..nodes_max {
            if self.state() != SearchState::Running {
                break;
            }
            match self.open.pop() {
                Some(node) => self.expand(sectors, node),
                None => self.state = Some(SearchState::Done),
            }
        }
        self.state()
    }

    pub fn state(&self) -> SearchState {
        self.state.unwrap_or(SearchState::Idle)
    }

    /// Polygons expanded since `begin`.
    pub fn node_count(&self) -> u32 {
        self.node_count
    }

    fn expand(&mut self, sectors: &WorldSectors, number: u32) {
        let Some(ends) = self.ends else { return };
        self.node_count += 1;
        self.nodes[number as usize].closed = true;
        if ends.to.is_some_and(|(_, node)| node == number) {
            self.nearest = (number, 0.0);
            self.state = Some(SearchState::Done);
            return;
        }
        let Part { id, first_node } = self.part_of(number);
        let Some((sector, mesh)) = meshed(sectors, id) else { return };
        let (polygon, goal) = (PolygonId(number - first_node), ground(ends.goal));
        let left_m = mesh.closest_place(polygon, goal).distance(goal);
        if left_m < self.nearest.1 {
            self.nearest = (number, left_m);
        }
        let first_edge = mesh.polygon(polygon).first_edge;
        for (index, edge) in mesh.edges_of(polygon).iter().enumerate() {
            // The corners run counter-clockwise, so whoever leaves through an edge has its end on the left.
            let (right, left) = (edge.corner, mesh.edge_end(first_edge + index as u32));
            if edge.neighbour != NONE {
                self.reach(number, first_node + edge.neighbour, Portal { left, right }, goal);
            } else if let Some(side) = sector.side_of(right, left) {
                self.expand_behind(sectors, number, sector, side, Portal { left, right }, goal);
            }
        }
    }

    /// Reaches all that has a stretch of a side in common with an edge that lies on it.
    fn expand_behind(
        &mut self,
        sectors: &WorldSectors,
        number: u32,
        sector: &Sector,
        side: Side,
        edge: Portal,
        goal: Vec2,
    ) {
        let behind = side.behind(sector.id()).and_then(|id| meshed(sectors, id));
        let Some((behind, mesh)) = behind else { return };
        let Some(first_node) = self.first_node(behind.id()) else { return };
        let (right_m, left_m) = (side.along(ground(edge.right)), side.along(ground(edge.left)));
        let (low_m, high_m) = (right_m.min(left_m), right_m.max(left_m));
        let at = |along_m: f32| edge.right.lerp(edge.left, (along_m - right_m) / (left_m - right_m));
        for other in behind.edges_on(side.opposite()) {
            if other.low_m >= high_m {
                break;
            }
            let (from_m, to_m) = (other.low_m.max(low_m), other.high_m.min(high_m));
            if to_m - from_m <= SKIN_M {
                continue;
            }
            let middle_m = (from_m + to_m) * 0.5;
            if (other.height_at(middle_m) - at(middle_m).y).abs() > sectors.climb_m() {
                continue;
            }
            let (one, two) = (at(from_m), at(to_m));
            let portal =
                if right_m < left_m { Portal { right: one, left: two } } else { Portal { right: two, left: one } };
            self.reach(number, first_node + mesh.edges[other.edge as usize].polygon, portal, goal);
        }
    }

    fn reach(&mut self, from: u32, to: u32, portal: Portal, goal: Vec2) {
        let Node { entry, cost_m, .. } = self.nodes[from as usize];
        let entry_to = shortest_crossing(entry, goal, ground(portal.right), ground(portal.left));
        let cost_m = cost_m + entry.distance(entry_to);
        let node = &mut self.nodes[to as usize];
        if node.search == self.search && (node.closed || node.cost_m <= cost_m) {
            return;
        }
        *node = Node { search: self.search, closed: false, before: from, portal, entry: entry_to, cost_m };
        self.open.insert_or_improve(to, cost_m + entry_to.distance(goal));
    }

    /// Writes the corners to go to, as a search on a whole mesh does. Ends the search.
    ///
    /// After sectors have changed since the last [`advance`](Self::advance), and without a search, there is nothing to
    /// write: a partial path without waypoints.
    pub fn finish(&mut self, sectors: &WorldSectors, waypoints: &mut [Vec3]) -> Path {
        let mut path =
            Path { outcome: PathOutcome::Partial, waypoint_count: 0, length_m: 0.0, node_count: self.node_count };
        self.state = None;
        let Some(ends) = self.ends.take().filter(|_| self.generation == sectors.generation()) else { return path };
        let last = self.nearest.0;
        let end = match ends.to.filter(|(_, node)| *node == last) {
            Some((to, _)) => {
                path.outcome = PathOutcome::Complete;
                to.position()
            }
            None => {
                let Part { id, first_node } = self.part_of(last);
                let Some((_, mesh)) = meshed(sectors, id) else { return path };
                let polygon = PolygonId(last - first_node);
                mesh.point_on(polygon, mesh.closest_place(polygon, ground(ends.goal))).position()
            }
        };
        self.collect_portals(last, end);
        let mut at = ends.from.position();
        pull_string(ends.from.position(), &self.portals, end, |corner| {
            let Some(waypoint) = waypoints.get_mut(path.waypoint_count) else {
                path.outcome = PathOutcome::Cut;
                return false;
            };
            *waypoint = corner;
            path.waypoint_count += 1;
            path.length_m += ground(at).distance(ground(corner));
            at = corner;
            true
        });
        path
    }

    fn collect_portals(&mut self, last: u32, end: Vec3) {
        self.portals.clear();
        self.portals.push(Portal { left: end, right: end });
        let mut node = &self.nodes[last as usize];
        while node.before != NONE {
            self.portals.push(node.portal);
            node = &self.nodes[node.before as usize];
        }
        self.portals.reverse();
    }

    /// Memory held.
    pub fn heap_bytes(&self) -> usize {
        self.parts.capacity() * size_of::<Part>()
            + self.nodes.capacity() * size_of::<Node>()
            + self.portals.capacity() * size_of::<Portal>()
            + self.open.heap_bytes()
    }
}

fn meshed(sectors: &WorldSectors, id: SectorId) -> Option<(&Sector, &NavMesh)> {
    let sector = sectors.sector(id)?;
    Some((sector, sector.mesh.as_ref()?))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::geometry::Aabb;
    use crate::nav::sectors::store::{SectorStore, StoreLimits};
    use crate::nav::sectors::streaming::StreamSettings;
    use crate::nav::sectors::testing::{SIDE_M, everywhere, level_of, stream, town, town_boxes, whole};

    fn find(sectors: &WorldSectors, from: Vec3, to: Vec3) -> (Path, Vec<Vec3>) {
        let mut waypoints = [Vec3::ZERO; 64];
        let from = sectors.nearest(from, 1.0).unwrap();
        let path = SectorSearch::default().find(sectors, from, to, &mut waypoints).unwrap();
        (path, waypoints[..path.waypoint_count].to_vec())
    }

    /// Promise: cut into sectors or not, there is a way or there is none, and it is as long.
    #[test]
    fn ways_over_sides_are_as_long_as_on_a_whole_mesh() {
        let (mut ratios, mut ways) = (Vec::new(), 0);
        for seed in 0..6 {
            let (boxes, mut rng) = (town_boxes(seed, 4), Xoshiro256PlusPlus::seed_from_u64(seed));
            let cut = everywhere(SectorStore::new(town(seed, 4), StoreLimits::default()));
            let one = whole(&boxes, 4);
            for _ in 0..100 {
                let [from, to] = [(); 2].map(|()| one.random_point(&mut rng).unwrap().position());
                if [from, to].iter().any(|place| cut.nearest(*place, 0.2).is_err() || place.y > 1.0) {
                    continue;
                }
                let ((expect, _), (path, waypoints)) = (find(&one, from, to), find(&cut, from, to));
                ways += 1;
                if expect.outcome != PathOutcome::Complete || path.outcome != PathOutcome::Complete {
                    assert_eq!(path.outcome, expect.outcome, "seed {seed}: {from} to {to}");
                    continue;
                }
                // Each straight piece can be walked.
                let mut at = cut.nearest(from, 0.2).unwrap();
                for waypoint in waypoints {
                    at = cut.walk_straight(at, waypoint).unwrap().end;
                    assert!(at.position().distance(waypoint) < 0.05, "seed {seed}: {from} to {to}: {waypoint}, {at:?}");
                }
                if expect.length_m > 5.0 {
                    ratios.push(path.length_m / expect.length_m);
                }
            }
        }
        ratios.sort_by(f32::total_cmp);
        let mean = ratios.iter().sum::<f32>() / ratios.len() as f32;
        println!("{} of {ways} ways: {mean:.4} on average, {:?} at most", ratios.len(), ratios.last());
        assert!(ratios.len() > 300 && (0.98..1.02).contains(&mean));
        // Each of the two may be some percent longer than the shortest.
        assert!(ratios[ratios.len() * 99 / 100] < 1.1 && *ratios.last().unwrap() < 1.25);
    }

    #[test]
    fn a_goal_that_is_not_streamed_is_approached() {
        let floor = Aabb::new(Vec3::new(0.0, -1.0, 0.0), Vec3::new(4.0 * SIDE_M, 0.0, SIDE_M));
        let store = SectorStore::new(level_of(&[floor]), StoreLimits::default());
        let settings = StreamSettings { radius_m: SIDE_M, keep_m: 0.0, ..StreamSettings::default() };
        let mut sectors = WorldSectors::new(store, settings);
        let from = Vec3::new(10.0, 0.0, 10.0);
        stream(&mut sectors, &[from]);
        let goal = Vec3::new(4.0 * SIDE_M - 3.0, 0.0, 10.0);
        let (path, waypoints) = find(&sectors, from, goal);
        assert_eq!(path.outcome, PathOutcome::Partial);
        let end = *waypoints.last().unwrap();
        assert!(end.distance(Vec3::new(2.0 * SIDE_M, 0.0, 10.0)) < 0.001, "{end}");
        stream(&mut sectors, &[end, goal]);
        let (path, waypoints) = find(&sectors, end, goal);
        assert_eq!(path.outcome, PathOutcome::Complete);
        assert!(waypoints.last().unwrap().distance(goal) < 0.001);
    }

    #[test]
    fn slices_give_the_same_way_and_begin_anew_when_sectors_change() {
        let sectors = everywhere(SectorStore::new(town(7, 4), StoreLimits::default()));
        let from = sectors.nearest(Vec3::new(2.0, 0.0, 2.0), 3.0).unwrap();
        let goal = Vec3::new(4.0 * SIDE_M - 2.0, 0.0, 4.0 * SIDE_M - 2.0);
        let (mut expect, mut found) = ([Vec3::ZERO; 64], [Vec3::ZERO; 64]);
        let mut search = SectorSearch::default();
        let path = search.find(&sectors, from, goal, &mut expect).unwrap();
        assert!(search.begin(&sectors, from, goal));
        while search.advance(&sectors, 3) == SearchState::Running {}
        assert_eq!((search.finish(&sectors, &mut found), found), (path, expect));

        let mut other = everywhere(SectorStore::new(town(7, 4), StoreLimits::default()));
        search.begin(&other, from, goal);
        search.advance(&other, 5);
        other.follow([]);
        assert_eq!(search.advance(&other, 5), SearchState::Idle, "nothing is streamed any more");
        assert_eq!(search.finish(&other, &mut found).waypoint_count, 0);
    }
}
