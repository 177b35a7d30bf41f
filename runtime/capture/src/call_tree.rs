//! Call trees: what was spent by each function, below which others.
//!
//! A tree counts several things at once (time, time without a core, allocations), each a sum per node of what the
//! function spent by itself there. It is built from a capture or from sampled stacks, and written as callgrind text,
//! which has all of it by function, or as folded stacks, which has one of it by stack. Any thread; memory follows the
//! number of different stacks, not of samples.

mod capture;
mod write;

use std::collections::HashMap;

/// Indices of [`CallTree::from_capture`]'s events.
pub const WALL: usize = 0;
pub const CPU: usize = 1;
pub const WAITING: usize = 2;
pub const BLOCKED: usize = 3;
pub const ALLOCATIONS: usize = 4;
pub const ALLOCATED_BYTES: usize = 5;

/// What [`CallTree::from_capture`] counts.
pub const CAPTURE_EVENTS: [&str; 6] =
    ["Wall_ns", "Cpu_ns", "Waiting_ns", "Blocked_ns", "Allocations", "Allocated_bytes"];

/// A function in a stack. File and line are of the function, not of the call; empty and 0 where not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct StackFrame<'a> {
    pub function: &'a str,
    pub file: &'a str,
    pub line: u32,
}

/// Costs by stack.
#[derive(Debug, Clone)]
pub struct CallTree {
    events: Vec<String>,
    functions: Vec<Function>,
    function_of: HashMap<Function, u32>,
    nodes: Vec<Node>,
    node_of: HashMap<(Option<u32>, u32), u32>,
    /// `events` values per node.
    self_costs: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Function {
    name: String,
    file: String,
    line: u32,
}

#[derive(Debug, Clone)]
struct Node {
    function: u32,
    /// Has a smaller index.
    parent: Option<u32>,
    calls: u64,
}

/// A place in the tree: a function below those that called it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NodeIndex(u32);

impl CallTree {
    /// An empty tree that counts `events`. Callgrind wants their names without spaces, such as `Wall_ns`.
    pub fn new(events: &[&str]) -> Self {
        Self {
            events: events.iter().map(|event| (*event).to_owned()).collect(),
            functions: Vec::new(),
            function_of: HashMap::new(),
            nodes: Vec::new(),
            node_of: HashMap::new(),
            self_costs: Vec::new(),
        }
    }

    /// Adds `costs` to the innermost function of a stack (outermost first), and a call of it. An empty stack is
    /// ignored, and so are costs beyond the events; sums stop at `u64::MAX`.
    pub fn add_stack(&mut self, stack: &[StackFrame<'_>], costs: &[u64]) {
        let mut node = None;
        for frame in stack {
            node = Some(self.child(node, *frame));
        }
        if let Some(node) = node {
            self.add(node, costs, 1);
        }
    }

    /// Names of what it counts.
    pub fn events(&self) -> &[String] {
        &self.events
    }

    /// How many different stacks there are, inner parts of others included.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The sum over all nodes, one value per event.
    pub fn totals(&self) -> Vec<u64> {
        let mut totals = vec![0; self.events.len()];
        (0..self.nodes.len()).for_each(|node| add_all(&mut totals, self.self_costs(node)));
        totals
    }

    /// What a stack's innermost function spent by itself there, one value per event; nothing if there is no such stack.
    pub fn costs_of(&self, stack: &[&str]) -> Option<&[u64]> {
        let is_stack = |node: &usize| {
            let mut at = Some(*node);
            let mut names = stack.iter().rev();
            while let Some(index) = at {
                let node = &self.nodes[index];
                if names.next().copied() != Some(self.functions[node.function as usize].name.as_str()) {
                    return false;
                }
                at = node.parent.map(|parent| parent as usize);
            }
            names.next().is_none()
        };
        (0..self.nodes.len()).find(is_stack).map(|node| self.self_costs(node))
    }

    /// The node of a function called from `parent`, made if it is new.
    pub(crate) fn child(&mut self, parent: Option<NodeIndex>, frame: StackFrame<'_>) -> NodeIndex {
        let key = Function { name: frame.function.to_owned(), file: frame.file.to_owned(), line: frame.line };
        let function = match self.function_of.get(&key) {
            Some(&function) => function,
            None => {
                let function = self.functions.len() as u32;
                self.functions.push(key.clone());
                self.function_of.insert(key, function);
                function
            }
        };
        let parent = parent.map(|parent| parent.0);
        let node = *self.node_of.entry((parent, function)).or_insert_with(|| {
            self.nodes.push(Node { function, parent, calls: 0 });
            self.self_costs.resize(self.nodes.len() * self.events.len(), 0);
            self.nodes.len() as u32 - 1
        });
        NodeIndex(node)
    }

    pub(crate) fn add(&mut self, node: NodeIndex, costs: &[u64], calls: u64) {
        let index = node.0 as usize;
        let begin = index * self.events.len();
        add_all(&mut self.self_costs[begin..begin + self.events.len()], costs);
        self.nodes[index].calls = self.nodes[index].calls.saturating_add(calls);
    }

    fn self_costs(&self, node: usize) -> &[u64] {
        &self.self_costs[node * self.events.len()..(node + 1) * self.events.len()]
    }

    /// Per node, its costs and those of all below it.
    fn inclusive_costs(&self) -> Vec<u64> {
        let width = self.events.len();
        let mut costs = self.self_costs.clone();
        // Children come after their parents.
        for (index, node) in self.nodes.iter().enumerate().rev() {
            if let Some(parent) = node.parent {
                let (before, own) = costs.split_at_mut(index * width);
                add_all(&mut before[parent as usize * width..][..width], &own[..width]);
            }
        }
        costs
    }
}

fn add_all(sums: &mut [u64], costs: &[u64]) {
    sums.iter_mut().zip(costs).for_each(|(sum, cost)| *sum = sum.saturating_add(*cost));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str) -> StackFrame<'_> {
        StackFrame { function, file: "a.rs", line: 1 }
    }

    #[test]
    fn equal_stacks_add_up_and_different_ones_do_not() {
        let mut tree = CallTree::new(&["Samples", "Wall_ns"]);
        tree.add_stack(&[frame("main"), frame("work")], &[1, 10]);
        tree.add_stack(&[frame("main"), frame("work")], &[1, 20]);
        tree.add_stack(&[frame("main")], &[1, 5]);
        tree.add_stack(&[frame("work")], &[1, 7]);
        tree.add_stack(&[], &[100, 100]);
        assert_eq!(tree.node_count(), 3);
        assert_eq!(tree.totals(), [4, 42]);
        assert_eq!(tree.costs_of(&["main", "work"]), Some(&[2, 30][..]));
        assert_eq!(tree.costs_of(&["main"]), Some(&[1, 5][..]));
        assert_eq!(tree.costs_of(&["work"]), Some(&[1, 7][..]));
        assert_eq!(tree.costs_of(&["work", "main"]), None);
    }

    #[test]
    fn functions_of_the_same_name_in_other_places_are_others() {
        let mut tree = CallTree::new(&["Samples"]);
        tree.add_stack(&[frame("new")], &[1]);
        tree.add_stack(&[StackFrame { line: 2, ..frame("new") }], &[1]);
        tree.add_stack(&[StackFrame { file: "b.rs", ..frame("new") }], &[1]);
        assert_eq!(tree.node_count(), 3);
    }

    #[test]
    fn sums_stop_at_the_largest_number() {
        let mut tree = CallTree::new(&["Wall_ns"]);
        tree.add_stack(&[frame("main")], &[u64::MAX]);
        tree.add_stack(&[frame("main")], &[1, 2, 3]);
        assert_eq!(tree.totals(), [u64::MAX]);
    }
}
