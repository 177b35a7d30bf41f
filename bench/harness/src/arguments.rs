//! Arguments: what every bench is told, and how it prints what it has found by them.

use clap::Parser;
use serde_json::{Value, json};
use throng_history::Machine;

use crate::kept;

/// What every bench is told. One that takes more flattens it into its own.
#[derive(Debug, Clone, Copy, Parser)]
pub struct BenchArguments {
    /// A size that takes seconds, to see that it works.
    #[arg(long)]
    pub small: bool,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

impl BenchArguments {
    /// The program's own, of a bench that takes no more. Ends the program if they are something else, with a word why.
    pub fn read() -> Self {
        Self::parse()
    }

    /// Prints all figures of a bench, a JSON object: in one line with `--json`, else spread over many.
    ///
    /// They carry the machine, and go to the history that `cargo xtask bench` names. Which of them are times, their keys say
    /// ([`throng_history::Record::of_bench`]); what the bench was told stands in `parameters`.
    ///
    /// # Panics
    /// If the figures are no object: the bench's own mistake.
    pub fn print(&self, bench: &str, figures: Value) {
        let figures = self.finish(bench, figures);
        if self.json { println!("{figures}") } else { println!("{figures:#}") }
    }

    /// The same for a bench whose figures are rows: without `--json` they are printed one after the other, and the machine
    /// below them.
    pub fn print_rows(&self, bench: &str, rows: impl IntoIterator<Item = Value>) {
        let rows: Vec<Value> = rows
            .into_iter()
            .inspect(|row| {
                if !self.json {
                    println!("{row:#}")
                }
            })
            .collect();
        let figures = self.finish(bench, json!({ "rows": rows }));
        if self.json { println!("{figures}") } else { println!("{:#}", json!({ "machine": figures["machine"] })) }
    }

    /// Says whose figures they are and of which machine, and keeps them.
    fn finish(&self, bench: &str, figures: Value) -> Value {
        let machine = Machine::here();
        let mut figures = self.with_name_and_size(bench, figures);
        figures["machine"] = json!(machine);
        if let Err(error) = kept::keep(bench, &figures, machine) {
            eprintln!("{error}");
        }
        figures
    }

    fn with_name_and_size(&self, bench: &str, mut figures: Value) -> Value {
        figures["bench"] = bench.into();
        figures["small"] = self.small.into();
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_say_whose_they_are_and_of_which_size() {
        let arguments = BenchArguments::parse_from(["bench-rewind", "--small"]);
        assert!(arguments.small && !arguments.json);
        let figures = arguments.with_name_and_size("rewind", json!({ "ratio": 1.5 }));
        assert_eq!(figures, json!({ "bench": "rewind", "small": true, "ratio": 1.5 }));
    }

    /// A bench's own arguments.
    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        bench: BenchArguments,
        #[arg(long)]
        rounds: Option<usize>,
    }

    #[test]
    fn a_bench_may_take_more() {
        let arguments = Arguments::parse_from(["bench-heap", "--json", "--rounds", "3"]);
        assert!(arguments.bench.json && !arguments.bench.small);
        assert_eq!(arguments.rounds, Some(3));
    }
}
