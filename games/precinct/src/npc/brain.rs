//! The brain: how one NPC walks the shared behaviour graph, in a few dozen bytes of its own.
//!
//! A brain remembers the leaf it is at and since when; the graph knows the rest. A step resumes at that
//! leaf, looks at the guards above it, lets the leaf act and climbs from there, until an action
//! wants more time or the step's node budget is used up (then the next step goes on at the very same
//! node). When what the NPC perceives has changed in kind, it starts again at the root, so that a
//! patrol breaks off when an enemy comes into sight without asking every node every tick.
//!
//! A brain is a value in the entity's row, made once with the NPC and reset when it dies: nothing is allocated
//! in its life. Cost: about 5 ns a node visited, typically 3 nodes for a step that continues and 20 to 60
//! for one that starts again.

use bevy_ecs::component::Component;
use glam::Vec3;
use throng_pack::Pack;

use super::graph::{Condition, Deed, Graph, Kind, NodeId};

/// What a node answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Success,
    Failure,
    Running,
}

impl From<bool> for Status {
    fn from(holds: bool) -> Self {
        if holds { Self::Success } else { Self::Failure }
    }
}

/// What the graph's leaves mean: the NPC that the brain sits in.
pub trait Body {
    fn ask(&mut self, condition: Condition, parameter: u16) -> bool;

    /// Begins (`entering`) or continues an action.
    fn act(&mut self, deed: Deed, parameter: u16, entering: bool, memory: &mut Memory) -> Status;

    /// The current action ended before it was done: guards failed or something more urgent came up.
    fn interrupt(&mut self, memory: &mut Memory);
}

/// What actions note down for later, the blackboard of one NPC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Pack)]
#[pack(name = "precinct.memory")]
pub struct Memory {
    /// Where the latest errand leads.
    #[pack(via = [f32; 3])]
    pub goal: Vec3,
    /// When the current action ends by itself. (ticks)
    pub until_tick: u32,
}

/// The per-NPC state of behaviour.
#[derive(Component, Debug, Clone, Copy, Pack)]
#[pack(name = "precinct.brain")]
pub struct Brain {
    root: NodeId,
    /// The node that the next step begins at; none = the root.
    at: NodeId,
    /// Whether `at` is an action that has begun (else it is still to be entered).
    begun: bool,
    /// What was perceived when the root was last entered.
    stimuli: u8,
    pub memory: Memory,
}

const _: () = assert!(size_of::<Brain>() <= 64);

/// What a step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepCounts {
    pub nodes: u32,
    pub restarted: bool,
    pub out_of_budget: bool,
}

impl Brain {
    pub fn new(root: NodeId) -> Self {
        Self { root, at: NodeId::NONE, begun: false, stimuli: 0, memory: Memory::default() }
    }

    /// Forgets everything but the archetype: a new life.
    pub fn reset(&mut self) {
        *self = Self::new(self.root);
    }

    /// Whether this graph has the nodes that it remembers: of a brain that comes out of bytes.
    pub fn is_of(&self, graph: &Graph) -> bool {
        let has = |node: NodeId| usize::from(node.0) < graph.node_count();
        self.root != NodeId::NONE && has(self.root) && has(self.at) && !(self.begun && self.at == NodeId::NONE)
    }

    /// The node that the brain is busy with.
    pub fn at(&self) -> NodeId {
        self.at
    }

    /// Thinks, visiting at most `nodes_max` nodes. `stimuli` are bits of what is perceived; another
    /// value than last time starts again at the root.
    pub fn step(&mut self, graph: &Graph, stimuli: u8, nodes_max: u32, body: &mut impl Body) -> StepCounts {
        let mut counts = StepCounts::default();
        if self.at == NodeId::NONE || stimuli != self.stimuli {
            self.interrupt(body);
            self.stimuli = stimuli;
            self.at = self.root;
            counts.restarted = true;
        } else if self.begun
            && let Some(failed) = self.failed_guard(graph, body, &mut counts)
        {
            self.interrupt(body);
            if !self.climb(graph, failed, Status::Failure) {
                return counts;
            }
        }
        while counts.nodes < nodes_max {
            counts.nodes += 1;
            let node = graph.node(self.at);
            let status = match node.kind {
                Kind::Selector | Kind::Sequence | Kind::Parallel => {
                    self.at = node.first_child;
                    continue;
                }
                Kind::Condition(condition) => body.ask(condition, node.parameter).into(),
                Kind::Action(deed) => {
                    let entering = !std::mem::replace(&mut self.begun, true);
                    body.act(deed, node.parameter, entering, &mut self.memory)
                }
            };
            if status == Status::Running {
                return counts;
            }
            self.begun = false;
            if !self.climb(graph, self.at, status) {
                return counts;
            }
        }
        counts.out_of_budget = true;
        counts
    }

    /// Goes up from a node that ended with `status` until there is a next node to enter. False if the
    /// whole tree has ended: the next step starts at the root.
    fn climb(&mut self, graph: &Graph, ended: NodeId, status: Status) -> bool {
        let mut child = ended;
        loop {
            let parent = graph.node(child).parent;
            if parent == NodeId::NONE {
                self.at = NodeId::NONE;
                return false;
            }
            let goes_on = match graph.node(parent).kind {
                Kind::Selector => status == Status::Failure,
                _ => status == Status::Success,
            };
            if goes_on && let Some(next) = graph.next_sibling(child) {
                self.at = next;
                return true;
            }
            child = parent;
        }
    }

    /// The outermost parallel node above the running action of which a guard no longer holds.
    fn failed_guard(&self, graph: &Graph, body: &mut impl Body, counts: &mut StepCounts) -> Option<NodeId> {
        let mut failed = None;
        let mut child = self.at;
        loop {
            let parent = graph.node(child).parent;
            if parent == NodeId::NONE {
                return failed;
            }
            if graph.node(parent).kind == Kind::Parallel {
                for guard in graph.children(parent).take_while(|&guard| guard != child) {
                    let node = graph.node(guard);
                    counts.nodes += 1;
                    let Kind::Condition(condition) = node.kind else { continue };
                    if !body.ask(condition, node.parameter) {
                        failed = Some(parent);
                        break;
                    }
                }
            }
            child = parent;
        }
    }

    fn interrupt(&mut self, body: &mut impl Body) {
        if std::mem::take(&mut self.begun) {
            body.interrupt(&mut self.memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::{GraphBuilder, Sketch, action, condition, parallel, precinct_graph, selector, sequence};
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    /// Notes what it is asked and told; conditions hold where `sees` says so, holds run for one step.
    #[derive(Default)]
    struct Puppet {
        sees: bool,
        log: Vec<String>,
    }

    impl Body for Puppet {
        fn ask(&mut self, asked: Condition, parameter: u16) -> bool {
            self.log.push(format!("{asked:?}?"));
            if asked == Condition::SeesEnemy { self.sees } else { parameter > 0 }
        }

        fn act(&mut self, deed: Deed, parameter: u16, entering: bool, _: &mut Memory) -> Status {
            self.log.push(format!("{deed:?} {parameter}{}", if entering { "" } else { " on" }));
            match (deed, entering) {
                (Deed::Hold, true) => Status::Running,
                (Deed::Advance, _) => Status::Failure,
                _ => Status::Success,
            }
        }

        fn interrupt(&mut self, _: &mut Memory) {
            self.log.push("interrupted".into());
        }
    }

    fn graph_of(sketch: Sketch) -> Graph {
        let mut builder = GraphBuilder::default();
        builder.root(sketch);
        builder.finish().unwrap()
    }

    fn fight_or_hold() -> Graph {
        let fight = parallel(
            vec![condition(Condition::SeesEnemy, 0)],
            sequence(vec![action(Deed::Hold, 1), action(Deed::Burst, 3)]),
        );
        graph_of(selector(vec![fight, action(Deed::Hold, 9)]))
    }

    fn check(puppet: &mut Puppet, expect: &[&str]) {
        assert_eq!(std::mem::take(&mut puppet.log), expect);
    }

    #[test]
    fn a_sequence_goes_on_where_it_was() {
        let graph = fight_or_hold();
        let (mut brain, mut puppet) = (Brain::new(graph.root(0)), Puppet { sees: true, ..Puppet::default() });
        brain.step(&graph, 1, 99, &mut puppet);
        check(&mut puppet, &["SeesEnemy?", "Hold 1"]);
        brain.step(&graph, 1, 99, &mut puppet);
        check(&mut puppet, &["SeesEnemy?", "Hold 1 on", "Burst 3"]);
    }

    #[test]
    fn a_guard_that_fails_ends_the_body_and_the_selector_moves_on() {
        let graph = fight_or_hold();
        let (mut brain, mut puppet) = (Brain::new(graph.root(0)), Puppet { sees: true, ..Puppet::default() });
        brain.step(&graph, 1, 99, &mut puppet);
        puppet.log.clear();
        puppet.sees = false;
        brain.step(&graph, 1, 99, &mut puppet);
        check(&mut puppet, &["SeesEnemy?", "interrupted", "Hold 9"]);
    }

    #[test]
    fn a_new_stimulus_starts_again_at_the_root() {
        let graph = fight_or_hold();
        let (mut brain, mut puppet) = (Brain::new(graph.root(0)), Puppet::default());
        brain.step(&graph, 0, 99, &mut puppet);
        check(&mut puppet, &["SeesEnemy?", "Hold 9"]);
        puppet.sees = true;
        let counts = brain.step(&graph, 1, 99, &mut puppet);
        assert!(counts.restarted);
        check(&mut puppet, &["interrupted", "SeesEnemy?", "Hold 1"]);
    }

    #[test]
    fn a_selector_passes_over_what_fails() {
        let graph = graph_of(selector(vec![action(Deed::Advance, 5), action(Deed::Burst, 1)]));
        let (mut brain, mut puppet) = (Brain::new(graph.root(0)), Puppet::default());
        brain.step(&graph, 0, 99, &mut puppet);
        check(&mut puppet, &["Advance 5", "Burst 1"]);
        assert_eq!(brain.at(), NodeId::NONE);
    }

    #[test]
    fn a_step_out_of_budget_goes_on_at_the_same_node() {
        let graph =
            graph_of(selector((0..9).map(|_| action(Deed::Advance, 5)).chain([action(Deed::Hold, 1)]).collect()));
        let (mut brain, mut puppet) = (Brain::new(graph.root(0)), Puppet::default());
        let mut steps = 0;
        while brain.step(&graph, 0, 3, &mut puppet).out_of_budget {
            steps += 1;
            assert!(steps < 9);
        }
        assert_eq!(puppet.log.len(), 10, "each node is entered once: {:?}", puppet.log);
    }

    /// Answers by chance, and fails loudly if an action is continued that was never begun.
    struct Fuzz {
        rng: Xoshiro256PlusPlus,
        running: bool,
    }

    impl Body for Fuzz {
        fn ask(&mut self, _: Condition, _: u16) -> bool {
            self.rng.random_bool(0.5)
        }

        fn act(&mut self, _: Deed, _: u16, entering: bool, _: &mut Memory) -> Status {
            assert_ne!(entering, self.running);
            let status = [Status::Success, Status::Failure, Status::Running][self.rng.random_range(0..3)];
            self.running = status == Status::Running;
            status
        }

        fn interrupt(&mut self, _: &mut Memory) {
            assert!(self.running);
            self.running = false;
        }
    }

    #[test]
    fn every_archetype_survives_a_life_of_chance_within_its_budget() {
        let graph = precinct_graph();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        for archetype in 0..super::super::graph::ARCHETYPES {
            let mut brain = Brain::new(graph.root(archetype));
            let mut body = Fuzz { rng: rng.clone(), running: false };
            for _ in 0..5_000 {
                let stimuli = rng.random_range(0..4);
                let counts = brain.step(&graph, stimuli, 32, &mut body);
                assert!(counts.nodes <= 32 + 16, "{counts:?}");
            }
        }
    }
}
