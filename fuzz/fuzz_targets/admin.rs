//! The admin port, by whoever reaches it: the judgement of a request's headers, and the console's lines.
//!
//! Promise: whatever the bytes are, nobody operates without a key for that, and away from loopback nobody reads without one.
//! A command is given whole words, and never the flag that is not its own.

#![no_main]

use libfuzzer_sys::fuzz_target;
use throng_admin::{
    Judged, OBSERVE_KEY, OPERATE_KEY,
    access::Role,
    console::{Call, Console, Outcome},
    judge_request_bytes,
};

fuzz_target!(|bytes: &[u8]| {
    let has = |key: &str| bytes.windows(key.len()).any(|window| window == key.as_bytes());
    for is_loopback in [true, false] {
        let Judged::Admitted { needs: Some(needs), .. } = judge_request_bytes(bytes, is_loopback) else { continue };
        match needs {
            Role::Operate => assert!(has(OPERATE_KEY)),
            Role::Observe => assert!(is_loopback || has(OPERATE_KEY) || has(OBSERVE_KEY)),
        }
    }
    let Ok(line) = std::str::from_utf8(bytes) else { return };
    let console = Console::new().with("kick", Role::Operate, "PLAYER", "sends somebody away", kick);
    let outcome = console.execute(line, "somebody");
    let mut words = line.split_whitespace();
    match words.next() {
        Some("kick") => assert_eq!(outcome, Ok(String::new())),
        Some("help") if words.next().is_none() => assert!(outcome.is_ok_and(|told| told.contains("kick"))),
        Some("help") => assert!(!outcome.unwrap_or_else(|reason| reason).is_empty()),
        Some("complete") => assert!(outcome.is_ok()),
        _ => assert!(outcome.is_err_and(|reason| !reason.is_empty())),
    }
});

fn kick(call: &Call<'_>) -> Outcome {
    let is_word = |word: &&str| !word.is_empty() && !word.contains(char::is_whitespace) && *word != "--json";
    assert!(call.arguments.iter().all(is_word), "{call:?}");
    Ok(String::new())
}
