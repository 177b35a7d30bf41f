//! The behaviour graph: what NPCs may decide, as one large table that all of them share.
//!
//! A tree of about 10,000 nodes, made once at start from archetypes x situations ([`library`]) and read
//! through an `Arc` by every NPC of every world. A node is 10 bytes and knows its parent and the run
//! of its children, so a mind needs no stack: "I am at node 4711" says everything, and what is
//! kept per NPC stays small ([`Brain`](super::brain::Brain)).
//!
//! Three kinds of inner nodes:
//! - **selector**: children in order until one does not fail;
//! - **sequence**: children in order until one does not succeed;
//! - **parallel**: all children but the last are conditions that must hold as long as the last, the
//!   body, runs. They are looked at before each step of the body, which ends when one fails.
//!
//! Leaves are conditions (answered at once) and actions (may run for many ticks). What they mean is
//! the body's business ([`brain::Body`](super::brain::Body)); here they are only names with a parameter.
//!
//! Read-only after [`GraphBuilder::finish`], which runs [`Graph::check`]. Size: 100 KB in all.

mod library;

use throng_pack::Pack;

pub use library::{ARCHETYPES, SITUATIONS, precinct_graph};

/// Index of a node. Node 0 is a guard that is never part of a tree, so 0 can mean "none".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Pack)]
#[pack(name = "precinct.graph_node")]
pub struct NodeId(pub u16);

impl NodeId {
    pub const NONE: Self = Self(0);
}

/// Most nodes a graph can have: ids are 16 bits.
pub const NODES_MAX: usize = u16::MAX as usize;
/// Deepest nesting: bounds how far a mind climbs after a leaf has ended.
pub const DEPTH_MAX: usize = 8;

/// What is asked. The parameter's unit stands with each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// An enemy is in sight.
    SeesEnemy,
    /// An enemy was seen within the last [parameter: tenths of a second].
    RemembersEnemy,
    /// The enemy is nearer than [parameter: m].
    EnemyWithin,
    /// Health is below [parameter: percent].
    HealthBelow,
    /// Was hurt within the last [parameter: tenths of a second].
    HurtWithin,
    /// There are at least `parameter` more enemies than friends near.
    OutnumberedBy,
    /// At least `parameter` friends are near.
    FriendsNear,
    /// Fewer rounds are loaded than `parameter`.
    RoundsBelow,
    /// Holds in `parameter` percent of the askings.
    Chance,
    /// A player is near enough that somebody watches.
    Watched,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Stands still for [parameter: tenths of a second].
    Hold,
    /// Turns about for [parameter: tenths of a second].
    LookAround,
    /// Fires `parameter` rounds at the enemy; fails when it is out of sight or range.
    Burst,
    /// Walks to a place of the contested area, [parameter: m] around it at most.
    Patrol,
    /// Walks to a place [parameter: m] or less from where it stands.
    Wander,
    /// Runs towards the enemy until [parameter: m] are left.
    Advance,
    /// Runs to a place [parameter: m] to the side of the enemy.
    Flank,
    /// Runs to cover at most [parameter: m] away.
    TakeCover,
    /// Runs [parameter: m] towards home.
    Retreat,
    /// Walks to where the enemy was last seen, until [parameter: m] are left.
    Investigate,
    /// Reloads the weapon.
    Reload,
    /// Regains `parameter` percent of health, once, standing still.
    Recover,
}

/// One node's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Selector,
    Sequence,
    Parallel,
    Condition(Condition),
    Action(Deed),
}

impl Kind {
    pub fn is_leaf(self) -> bool {
        matches!(self, Self::Condition(_) | Self::Action(_))
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Node {
    pub kind: Kind,
    pub child_count: u8,
    pub parent: NodeId,
    pub first_child: NodeId,
    pub parameter: u16,
}

const _: () = assert!(size_of::<Node>() == 10);

/// What a graph that cannot be used has wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GraphFault {
    #[error("the graph has {0} nodes, at most {NODES_MAX} can be named")]
    TooLarge(usize),
    #[error("node {} is inner and has no children, or a leaf and has some", .0.0)]
    ChildCount(NodeId),
    #[error("the children of node {} lie outside the graph or do not point back at it", .0.0)]
    Links(NodeId),
    #[error("node {} is nested deeper than {DEPTH_MAX}", .0.0)]
    Depth(NodeId),
    #[error("a guard of the parallel node {} is not a condition", .0.0)]
    Guard(NodeId),
    #[error("the tree below node {} can end without any action", .0.0)]
    Idle(NodeId),
    #[error("node {} is reachable from no root or from two places", .0.0)]
    Stray(NodeId),
    #[error("the parameter of node {} makes no sense for it", .0.0)]
    Parameter(NodeId),
}

/// A checked, unchanging behaviour graph with one root per archetype.
#[derive(Debug)]
pub struct Graph {
    nodes: Vec<Node>,
    roots: Vec<NodeId>,
}

impl Graph {
    /// The root of an archetype; archetypes count around, so any number is good.
    pub fn root(&self, archetype: usize) -> NodeId {
        self.roots[archetype % self.roots.len()]
    }

    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[usize::from(id.0)]
    }

    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The next child after `child` of its parent, if there is one.
    pub fn next_sibling(&self, child: NodeId) -> Option<NodeId> {
        let parent = self.node(self.node(child).parent);
        let next = child.0 + 1;
        (next < parent.first_child.0 + u16::from(parent.child_count)).then_some(NodeId(next))
    }

    pub fn children(&self, id: NodeId) -> impl ExactSizeIterator<Item = NodeId> + use<> {
        let node = self.node(id);
        let first = node.first_child.0;
        (first..first + u16::from(node.child_count)).map(NodeId)
    }

    /// Everything that must hold before a mind may walk this graph.
    pub fn check(&self) -> Result<(), GraphFault> {
        if self.nodes.len() > NODES_MAX {
            return Err(GraphFault::TooLarge(self.nodes.len()));
        }
        let mut reached = vec![false; self.nodes.len()];
        reached[0] = true;
        for &root in &self.roots {
            self.check_below(root, 1, &mut reached)?;
            if self.node(root).parent != NodeId::NONE {
                return Err(GraphFault::Links(root));
            }
            if !self.ends_in_action(root) {
                return Err(GraphFault::Idle(root));
            }
        }
        match reached.iter().position(|&reached| !reached) {
            Some(stray) => Err(GraphFault::Stray(NodeId(stray as u16))),
            None => Ok(()),
        }
    }

    fn check_below(&self, id: NodeId, depth: usize, reached: &mut [bool]) -> Result<(), GraphFault> {
        if depth > DEPTH_MAX {
            return Err(GraphFault::Depth(id));
        }
        if std::mem::replace(&mut reached[usize::from(id.0)], true) {
            return Err(GraphFault::Stray(id));
        }
        let node = self.node(id);
        if node.kind.is_leaf() != (node.child_count == 0) {
            return Err(GraphFault::ChildCount(id));
        }
        if !parameter_makes_sense(node) {
            return Err(GraphFault::Parameter(id));
        }
        let end = usize::from(node.first_child.0) + usize::from(node.child_count);
        if end > self.nodes.len() {
            return Err(GraphFault::Links(id));
        }
        let last = end.saturating_sub(1);
        for child in self.children(id) {
            if self.node(child).parent != id {
                return Err(GraphFault::Links(id));
            }
            let is_guard = node.kind == Kind::Parallel && usize::from(child.0) != last;
            if is_guard && !matches!(self.node(child).kind, Kind::Condition(_)) {
                return Err(GraphFault::Guard(id));
            }
            self.check_below(child, depth + 1, reached)?;
        }
        Ok(())
    }

    /// Whether, with every condition refused, the tree still comes to an action: nobody stands brainless.
    fn ends_in_action(&self, id: NodeId) -> bool {
        match self.node(id).kind {
            Kind::Action(_) => true,
            Kind::Condition(_) => false,
            Kind::Selector => self.children(id).any(|child| self.ends_in_action(child)),
            Kind::Sequence => self.children(id).next().is_some_and(|child| self.ends_in_action(child)),
            Kind::Parallel => self.node(id).child_count == 1 && self.ends_in_action(self.node(id).first_child),
        }
    }
}

fn parameter_makes_sense(node: &Node) -> bool {
    match node.kind {
        Kind::Condition(Condition::HealthBelow | Condition::Chance) => node.parameter <= 100,
        Kind::Action(Deed::Hold | Deed::LookAround | Deed::Burst | Deed::Recover) => node.parameter > 0,
        Kind::Action(Deed::Reload) => true,
        Kind::Action(_) => (1..=200).contains(&node.parameter),
        _ => true,
    }
}

/// A tree still on paper; [`GraphBuilder`] lays it out as nodes.
#[derive(Debug, Clone)]
pub struct Sketch {
    kind: Kind,
    parameter: u16,
    children: Vec<Sketch>,
}

pub fn selector(children: Vec<Sketch>) -> Sketch {
    Sketch { kind: Kind::Selector, parameter: 0, children }
}

pub fn sequence(children: Vec<Sketch>) -> Sketch {
    Sketch { kind: Kind::Sequence, parameter: 0, children }
}

/// `body` runs as long as all `guards` hold.
pub fn parallel(guards: Vec<Sketch>, body: Sketch) -> Sketch {
    let children = guards.into_iter().chain([body]).collect();
    Sketch { kind: Kind::Parallel, parameter: 0, children }
}

pub fn condition(condition: Condition, parameter: u16) -> Sketch {
    Sketch { kind: Kind::Condition(condition), parameter, children: Vec::new() }
}

pub fn action(deed: Deed, parameter: u16) -> Sketch {
    Sketch { kind: Kind::Action(deed), parameter, children: Vec::new() }
}

/// Lays sketches out so that the children of each node lie side by side.
#[derive(Debug)]
pub struct GraphBuilder {
    nodes: Vec<Node>,
    roots: Vec<NodeId>,
}

impl Default for GraphBuilder {
    fn default() -> Self {
        let guard = Node {
            kind: Kind::Selector,
            child_count: 0,
            parent: NodeId::NONE,
            first_child: NodeId::NONE,
            parameter: 0,
        };
        Self { nodes: vec![guard], roots: Vec::new() }
    }
}

impl GraphBuilder {
    /// Adds the tree of one more archetype.
    pub fn root(&mut self, sketch: Sketch) -> &mut Self {
        let root = self.reserve(&sketch, NodeId::NONE);
        self.roots.push(root);
        self.lay_out(&sketch, root);
        self
    }

    pub fn finish(self) -> Result<Graph, GraphFault> {
        // Ids wrapped around if there were too many, so this must be known before any id is followed.
        if self.nodes.len() > NODES_MAX {
            return Err(GraphFault::TooLarge(self.nodes.len()));
        }
        let graph = Graph { nodes: self.nodes, roots: self.roots };
        graph.check()?;
        Ok(graph)
    }

    fn reserve(&mut self, sketch: &Sketch, parent: NodeId) -> NodeId {
        let id = NodeId(self.nodes.len() as u16);
        self.nodes.push(Node {
            kind: sketch.kind,
            child_count: sketch.children.len() as u8,
            parent,
            first_child: NodeId::NONE,
            parameter: sketch.parameter,
        });
        id
    }

    fn lay_out(&mut self, sketch: &Sketch, id: NodeId) {
        let children: Vec<NodeId> = sketch.children.iter().map(|child| self.reserve(child, id)).collect();
        if let Some(&first) = children.first() {
            self.nodes[usize::from(id.0)].first_child = first;
        }
        for (child, child_id) in sketch.children.iter().zip(children) {
            self.lay_out(child, child_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sketch: Sketch, expect: Result<(), GraphFault>) {
        let mut builder = GraphBuilder::default();
        builder.root(sketch);
        assert_eq!(builder.finish().map(|_| ()), expect);
    }

    #[test]
    fn the_games_own_graph_is_large_sound_and_always_the_same() {
        let graph = precinct_graph();
        assert_eq!(graph.check(), Ok(()));
        let nodes = graph.node_count();
        assert!((8_000..14_000).contains(&nodes), "{nodes} nodes");
        assert_eq!(format!("{graph:?}"), format!("{:?}", precinct_graph()));
    }

    #[test]
    fn unsound_graphs_are_refused() {
        let idle = || condition(Condition::SeesEnemy, 0);
        let wait = || action(Deed::Hold, 5);
        check(wait(), Ok(()));
        check(selector(vec![idle(), wait()]), Ok(()));
        check(selector(vec![]), Err(GraphFault::ChildCount(NodeId(1))));
        check(selector(vec![idle()]), Err(GraphFault::Idle(NodeId(1))));
        check(sequence(vec![idle(), wait()]), Err(GraphFault::Idle(NodeId(1))));
        check(selector(vec![parallel(vec![wait()], wait()), wait()]), Err(GraphFault::Guard(NodeId(2))));
        check(action(Deed::Hold, 0), Err(GraphFault::Parameter(NodeId(1))));
        check(selector(vec![condition(Condition::Chance, 101), wait()]), Err(GraphFault::Parameter(NodeId(2))));
        let deep = (0..DEPTH_MAX).fold(wait(), |below, _| selector(vec![below]));
        check(deep, Err(GraphFault::Depth(NodeId(DEPTH_MAX as u16 + 1))));
    }

    #[test]
    fn broken_links_are_found() {
        let build = || {
            let mut builder = GraphBuilder::default();
            builder.root(selector(vec![action(Deed::Hold, 1), action(Deed::Hold, 2)]));
            builder.finish().unwrap()
        };
        let mut graph = build();
        graph.nodes[2].parent = NodeId(3);
        assert_eq!(graph.check(), Err(GraphFault::Links(NodeId(1))));
        let mut graph = build();
        graph.nodes[1].child_count = 9;
        assert_eq!(graph.check(), Err(GraphFault::Links(NodeId(1))));
        let mut graph = build();
        graph.nodes[1].child_count = 1;
        assert_eq!(graph.check(), Err(GraphFault::Stray(NodeId(3))));
    }
}
