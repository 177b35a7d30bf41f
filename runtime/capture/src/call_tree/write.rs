//! Call trees as text.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use throng_redact::visible;

use super::{CallTree, add_all};

impl CallTree {
    /// Callgrind text, for KCachegrind and `callgrind_annotate`: sums by function and by caller, all events. `command`
    /// says what ran.
    ///
    /// The format has no stacks: a function that calls itself counts in its inclusive cost more than once.
    pub fn write_callgrind(&self, command: &str, mut out: impl Write) -> io::Result<()> {
        writeln!(out, "# callgrind format\nversion: 1\ncreator: throng\ncmd: {}\npositions: line", visible(command))?;
        let events = self.events.iter().map(|event| visible(event).replace(' ', "_"));
        writeln!(out, "events: {}", events.collect::<Vec<_>>().join(" "))?;
        writeln!(out, "summary:{}", costs_text(&self.totals()))?;
        let mut names = Names { files: HashMap::new(), functions: HashMap::new() };
        let width = self.events.len();
        let inclusive = self.inclusive_costs();
        let mut own = vec![0; self.functions.len() * width];
        // By caller, then by callee.
        let mut calls: BTreeMap<(u32, u32), (u64, Vec<u64>)> = BTreeMap::new();
        for (index, node) in self.nodes.iter().enumerate() {
            add_all(&mut own[node.function as usize * width..][..width], self.self_costs(index));
            if let Some(parent) = node.parent {
                let caller = self.nodes[parent as usize].function;
                let (count, costs) = calls.entry((caller, node.function)).or_insert_with(|| (0, vec![0; width]));
                *count = count.saturating_add(node.calls);
                add_all(costs, &inclusive[index * width..][..width]);
            }
        }
        for (index, function) in (0_u32..).zip(&self.functions) {
            writeln!(out, "\nfl={}\nfn={}", names.file(&function.file), names.function(index, &function.name))?;
            writeln!(out, "{}{}", function.line, costs_text(&own[index as usize * width..][..width]))?;
            for (&(_, callee), (count, costs)) in calls.range((index, 0)..=(index, u32::MAX)) {
                let called = &self.functions[callee as usize];
                writeln!(out, "cfi={}\ncfn={}", names.file(&called.file), names.function(callee, &called.name))?;
                // Where in the caller is not known: its own line stands for it.
                writeln!(out, "calls={} {}\n{}{}", count.max(&1), called.line, function.line, costs_text(costs))?;
            }
        }
        writeln!(out, "\ntotals:{}", costs_text(&self.totals()))
    }

    /// Folded stacks of one event, `outer;inner 123` a line; stacks that cost nothing are left out. For flame graphs.
    pub fn write_folded(&self, event: usize, mut out: impl Write) -> io::Result<()> {
        let mut stack = Vec::new();
        for index in 0..self.nodes.len() {
            let cost = self.self_costs(index).get(event).copied().unwrap_or(0);
            if cost == 0 {
                continue;
            }
            stack.clear();
            let mut at = Some(index);
            while let Some(index) = at {
                let node = &self.nodes[index];
                stack.push(visible(&self.functions[node.function as usize].name).replace(';', ":"));
                at = node.parent.map(|parent| parent as usize);
            }
            stack.reverse();
            writeln!(out, "{} {cost}", stack.join(";"))?;
        }
        Ok(())
    }
}

fn costs_text(costs: &[u64]) -> String {
    costs.iter().map(|cost| format!(" {cost}")).collect()
}

/// A name is written once, with a number; from then on the number stands for it.
struct Names {
    files: HashMap<String, usize>,
    /// Whether a function's name was told, and which number it has: the same name in another file is another function.
    functions: HashMap<u32, usize>,
}

impl Names {
    fn file(&mut self, name: &str) -> String {
        let next = self.files.len() + 1;
        match self.files.get(name) {
            Some(number) => format!("({number})"),
            None => {
                self.files.insert(name.to_owned(), next);
                // `???` is what callgrind writes for what it does not know.
                format!("({next}) {}", if name.is_empty() { "???".into() } else { visible(name) })
            }
        }
    }

    fn function(&mut self, index: u32, name: &str) -> String {
        let next = self.functions.len() + 1;
        match self.functions.get(&index) {
            Some(number) => format!("({number})"),
            None => {
                self.functions.insert(index, next);
                format!("({next}) {}", if name.is_empty() { "???".into() } else { visible(name) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::StackFrame;
    use super::*;

    fn tree() -> CallTree {
        let mut tree = CallTree::new(&["Wall_ns", "Samples"]);
        let main = StackFrame { function: "main", file: "main.rs", line: 3 };
        let work = StackFrame { function: "work;\n\"a\"", file: "work.rs", line: 7 };
        tree.add_stack(&[main], &[5, 1]);
        tree.add_stack(&[main, work], &[20, 2]);
        tree.add_stack(&[main, work], &[20, 2]);
        tree.add_stack(&[work], &[0, 1]);
        tree
    }

    #[test]
    fn callgrind_text_has_each_function_with_its_calls() {
        let mut text = Vec::new();
        tree().write_callgrind("throng\n1", &mut text).unwrap();
        let expected = "\
# callgrind format
version: 1
creator: throng
cmd: throng\\n1
positions: line
events: Wall_ns Samples
summary: 45 6

fl=(1) main.rs
fn=(1) main
3 5 1
cfi=(2) work.rs
cfn=(2) work;\\n\"a\"
calls=2 7
3 40 4

fl=(2)
fn=(2)
7 40 5

totals: 45 6
";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn folded_stacks_have_a_line_each() {
        let mut text = Vec::new();
        tree().write_folded(0, &mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "main 5\nmain;work:\\n\"a\" 40\n");
    }
}
