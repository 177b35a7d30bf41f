//! Kept: a bench's run goes to the history, where whoever starts the bench says so.
//!
//! `cargo xtask bench` says so by the environment, since it alone knows the commit; a bench that is run by hand or by a test
//! keeps nothing.

use std::{
    collections::BTreeMap,
    env,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::Value;
use throng_history::{
    Machine, Record,
    store::{self, StoreError},
};

/// Folder of the history, the commit that is measured, and how the bench was called.
const FOLDER: &str = "THRONG_BENCH_HISTORY";
const COMMIT: &str = "THRONG_BENCH_COMMIT";
const COMMAND: &str = "THRONG_BENCH_COMMAND";

pub(crate) fn keep(bench: &str, printed: &Value, machine: Machine) -> Result<(), StoreError> {
    let Some(folder) = env::var_os(FOLDER) else { return Ok(()) };
    let commit = env::var(COMMIT).unwrap_or_else(|_| "unknown".to_owned());
    let now_unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let command = env::var(COMMAND).unwrap_or_default();
    let conditions = conditions(env::args().skip(1));
    let record = Record { command, conditions, ..Record::of_bench(bench, printed, &commit, machine, now_unix_s) };
    store::append(Path::new(&folder), &record).map(drop)
}

/// The words that it was given, but for those of the output: with others it is another bench.
fn conditions(words: impl Iterator<Item = String>) -> BTreeMap<String, String> {
    let words: Vec<String> = words.filter(|word| word != "--json").collect();
    let options = (!words.is_empty()).then(|| ("options".to_owned(), words.join(" ")));
    options.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bench_with_other_words_is_another_one() {
        let told = |words: &str| conditions(words.split_whitespace().map(str::to_owned));
        assert_eq!((told("").len(), told("--json")), (0, told("")));
        assert_eq!(told("--json --matches 100")["options"], "--matches 100");
    }
}
