//! A death's signature: what equal deaths have in common, so that a thousand reports are a list of causes.
//!
//! ```text
//! SIGSEGV stack overflow: drop_in_place<Node> < die < tick
//! SIGABRT a panic that nobody caught: at games/precinct/src/npc.rs: index out of bounds: the len is # but the index is #
//! SIGABRT out of memory: an allocation failed: fill < run
//! ```
//!
//! It has no addresses, numbers of lines and figures, which differ from build to build and from death to death, and nothing
//! that was not in the report, which is clean of what must not leave the host.

use crate::report::{CrashReport, Frame};

/// Functions that tell a place apart; those around them are the same for whole families of deaths.
const FUNCTIONS_MAX: usize = 3;
/// Of one function's name, and of a panic's text: generic types write long names.
const PART_CHARS_MAX: usize = 100;

/// Of a report that is whole.
pub(crate) fn of(report: &CrashReport) -> String {
    let signal = report.signal.as_ref().map_or("killed", |signal| signal.name.as_str());
    // A fault's meaning ends with the address.
    let meaning = report.meaning.split(" (address ").next().unwrap_or_default();
    let mut parts = vec![format!("{signal} {meaning}")];
    if let Some(panic) = &report.panic {
        let file = panic.place.rsplit_once(':').map_or(panic.place.as_str(), |(file, _)| file);
        parts.push(format!("at {file}"));
        let text = panic.text.lines().next().unwrap_or_default();
        parts.extend((!text.is_empty()).then(|| without_figures(&cut(text))));
    } else {
        let functions = report.culprit().map(|culprit| telling_functions(&culprit.stack)).unwrap_or_default();
        parts.extend((!functions.is_empty()).then(|| functions.join(" < ")));
    }
    parts.join(": ")
}

/// The innermost functions of our own code, each once; of any code where there is none of ours.
fn telling_functions(stack: &[Frame]) -> Vec<String> {
    let distinct = |is_wanted: fn(&Frame) -> bool| {
        let mut functions: Vec<String> = Vec::new();
        for function in stack.iter().filter(|frame| is_wanted(frame)).filter_map(|frame| frame.function.as_deref()) {
            let function = cut(function);
            // A recursion is there once.
            if functions.len() < FUNCTIONS_MAX && !functions.contains(&function) {
                functions.push(function);
            }
        }
        functions
    };
    let ours = distinct(is_ours);
    if ours.is_empty() { distinct(|_| true) } else { ours }
}

/// Rust that was not downloaded: the standard library's files begin with `library`, those of other crates lie in cargo's
/// folders.
fn is_ours(frame: &Frame) -> bool {
    const DOWNLOADED: [&str; 3] = ["/registry/src/", "/git/checkouts/", "/vendor/"];
    frame.file.as_deref().is_some_and(|file| {
        file.ends_with(".rs") && !file.starts_with("library/") && !DOWNLOADED.iter().any(|part| file.contains(part))
    })
}

fn cut(text: &str) -> String {
    text.chars().take(PART_CHARS_MAX).collect()
}

/// Each run of digits as one `#`.
fn without_figures(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        let shown = if character.is_ascii_digit() { '#' } else { character };
        if shown != '#' || !out.ends_with('#') {
            out.push(shown);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::panics::PanicWords;
    use crate::report::{CrashedThread, SignalName};

    fn frame(function: &str, file: &str, address: u64) -> Frame {
        Frame { function: Some(function.into()), file: Some(file.into()), address, ..Frame::default() }
    }

    fn death(meaning: &str, stack: Vec<Frame>) -> CrashReport {
        let culprit = CrashedThread { is_culprit: true, stack, ..CrashedThread::default() };
        let signal = Some(SignalName { number: 11, name: "SIGSEGV".into() });
        CrashReport { signal, meaning: meaning.into(), threads: vec![culprit], ..CrashReport::default() }
    }

    #[test]
    fn equal_deaths_have_one_signature_wherever_they_were_loaded() {
        let at = |address: u64, times: usize| {
            let mut stack = vec![frame("memcpy", "/build/string.c", address)];
            stack.push(frame("<Vec as Extend>::extend", "/cargo/registry/src/smallvec-1.0.0/lib.rs", address));
            for _ in 0..times {
                stack.push(frame("core::ptr::drop_in_place", "library/core/src/ptr/mod.rs", address + 1));
                stack.push(frame("<Node as Drop>::drop", "/build/games/a/src/list.rs", address + 2));
            }
            stack.extend(["clear", "tick", "main"].map(|name| frame(name, "games/a/src/list.rs", address)));
            of(&death(&format!("use of memory that is not there (address {address:#x})"), stack))
        };
        let expect = "SIGSEGV use of memory that is not there: <Node as Drop>::drop < clear < tick";
        assert_eq!((at(0x1000, 3).as_str(), at(0x7f00, 9).as_str()), (expect, expect));
    }

    #[test]
    fn without_code_of_ours_whatever_was_running_tells_them_apart() {
        let stack = vec![frame("abort", "/build/abort.c", 1), frame("free", "/build/malloc.c", 2)];
        assert_eq!(
            of(&death("the program ended itself: abort", stack)),
            "SIGSEGV the program ended itself: abort: abort < free"
        );
        assert_eq!(
            of(&CrashReport { meaning: "killed from outside".into(), ..CrashReport::default() }),
            "killed killed from outside"
        );
    }

    #[test]
    fn a_panic_is_told_by_its_file_and_its_text_without_figures() {
        let of_panic = |line: u32, len: u32| {
            let text = format!("index out of bounds: the len is {len} but the index is 99\nand more");
            let place = format!("games/a/src/list.rs:{line}");
            let panic = Some(PanicWords { text, place, ..PanicWords::default() });
            of(&CrashReport { panic, ..death("a panic that nobody caught", vec![frame("run", "a.rs", 1)]) })
        };
        assert_eq!(of_panic(7, 12), of_panic(8, 3));
        assert_eq!(
            of_panic(7, 12),
            "SIGSEGV a panic that nobody caught: at games/a/src/list.rs: \
             index out of bounds: the len is # but the index is #"
        );
    }
}
