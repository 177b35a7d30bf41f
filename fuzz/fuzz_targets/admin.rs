//! The admin port, by whoever reaches it: the judgement of a request's headers, and the console's lines.
//!
//! Promise: a request is refused, with a reason, or its line is carried out; a command is given whole words, and never
//! the flag that is not its own. How HTTP itself is read is axum's part.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throng_admin::{
    console::{Call, Console, Outcome},
    judge_request_bytes,
};

fuzz_target!(|bytes: &[u8]| {
    let _ = judge_request_bytes(bytes);
    let Ok(line) = std::str::from_utf8(bytes) else { return };
    let console = Console::new().with("kick", "PLAYER", "sends somebody away", kick);
    let outcome = console.execute(line);
    match line.split_whitespace().next() {
        Some("kick") => assert_eq!(outcome, Ok(String::new())),
        Some("help") => assert!(outcome.is_ok_and(|told| told.contains("kick"))),
        _ => assert!(outcome.is_err_and(|reason| !reason.is_empty())),
    }
});

fn kick(call: &Call<'_>) -> Outcome {
    let is_word = |word: &&str| !word.is_empty() && !word.contains(char::is_whitespace) && **word != "--json";
    assert!(call.arguments.iter().all(is_word), "{call:?}");
    Ok(String::new())
}
