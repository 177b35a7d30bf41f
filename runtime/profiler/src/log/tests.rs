//! What is off costs nothing and does nothing; what is on is written, within limits, and kept for captures.

use std::cell::Cell;
use std::sync::PoisonError;

use throng_platform::ticks;
use tracing_subscriber::layer::SubscriberExt;

use super::*;

/// Levels and the ring belong to the process: tests that use them take turns.
static TURN: Mutex<()> = Mutex::new(());

/// What is written while `act` runs, with these levels.
fn written(levels: &[(&str, Level)], act: impl FnOnce()) -> Vec<Line> {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    set_levels(&levels.iter().map(|(name, level)| ((*name).to_owned(), *level)).collect::<Vec<_>>());
    let begin = ticks::now();
    let subscriber = tracing_subscriber::registry().with(CategoryFilter).with(Lines::new());
    tracing::subscriber::with_default(subscriber, act);
    let lines = lines_between(begin, ticks::now());
    set_levels(&[]);
    lines
}

fn texts(lines: &[Line]) -> Vec<&str> {
    lines.iter().map(Line::text).collect()
}

#[test]
fn a_call_that_is_off_evaluates_none_of_its_arguments() {
    log_category!(QUIET = "log-test.quiet");
    let evaluated = Cell::new(0);
    let count = || {
        evaluated.set(evaluated.get() + 1);
        evaluated.get()
    };
    let act = || {
        log_error!(QUIET, count = count(), "off");
        log_debug!(QUIET, count = %count(), text = ?count(), "off");
    };
    assert!(written(&[("log-test", Level::Off)], act).is_empty());
    assert_eq!(evaluated.get(), 0);
    let lines = written(&[("log-test", Level::Error)], act);
    assert_eq!(texts(&lines), ["off count=1"]);
    assert_eq!(evaluated.get(), 1);
}

#[test]
fn the_longest_name_decides_and_a_part_of_a_word_does_not() {
    log_category!(DOOR = "log-names.door");
    log_category!(DOORBELL = "log-names.doorbell");
    log_category!(KITCHEN = "log-names.kitchen");
    let all = || {
        log_info!(DOOR, "door");
        log_info!(DOORBELL, "doorbell");
        log_info!(KITCHEN, "kitchen");
    };
    let check = |levels: &[(&str, Level)], expect: &[&str]| assert_eq!(texts(&written(levels, all)), expect);
    check(&[], &["door", "doorbell", "kitchen"]);
    check(&[("log-names", Level::Warn)], &[]);
    check(&[("log-names.door", Level::Debug), ("log-names", Level::Off)], &["door"]);
    check(&[(ALL, Level::Off), ("log-names.kitchen", Level::Info)], &["kitchen"]);
    check(&[(ALL, Level::Off)], &[]);
}

#[test]
fn rules_come_before_the_base_and_fall_back_to_it() {
    log_category!(BASE = "log-base");
    let act = || log_debug!(BASE, "debug");
    let base = |level| set_base_levels(&[("log-base".to_owned(), level)]);
    base(Level::Debug);
    assert_eq!(written(&[], act).len(), 1);
    assert_eq!(written(&[("log-base", Level::Info)], act).len(), 0);
    assert_eq!(written(&[(ALL, Level::Off)], act).len(), 1, "the base names it, the rules only name all");
    set_base_levels(&[]);
    assert_eq!(written(&[], act).len(), 0);
}

#[test]
fn a_level_holds_for_categories_that_are_first_used_later() {
    log_category!(LATE = "log-late.part");
    let lines = written(&[("log-late", Level::Trace)], || log_trace!(LATE, "first use"));
    assert_eq!(texts(&lines), ["first use"]);
}

#[test]
fn a_level_switched_by_another_thread_holds_for_the_next_call() {
    log_category!(SWITCHED = "log-switched");
    let from_elsewhere = |level| {
        std::thread::scope(|scope| scope.spawn(|| set_levels(&[("log-switched".to_owned(), level)])).join().unwrap())
    };
    let lines = written(&[], || {
        for (step, level) in [Level::Off, Level::Debug, Level::Info, Level::Trace].into_iter().enumerate() {
            from_elsewhere(level);
            log_debug!(SWITCHED, step, "now");
        }
    });
    assert_eq!(texts(&lines), ["now step=1", "now step=3"]);
}

#[test]
fn a_flood_at_one_place_is_cut_and_tells_how_much_is_missing() {
    log_category!(FLOOD = "log-flood");
    let lines = written(&[], || {
        let say = |number| log_info!(FLOOD, number, "flood");
        (0..1_000).for_each(say);
        std::thread::sleep(std::time::Duration::from_millis(120));
        say(1_000);
    });
    // A machine that stalls in between lets a few more pass; every line is written or counted.
    assert!((21..200).contains(&lines.len()), "{} lines", lines.len());
    assert!(lines[..20].iter().all(|line| !line.text().contains("suppressed")));
    let suppressed: usize = lines.iter().filter_map(|line| suppressed(line.text())).sum();
    assert_eq!(lines.len() + suppressed, 1_001);
}

#[test]
fn a_line_that_must_not_be_left_out_is_not() {
    log_category!(AUDIT = "log-audit");
    let say = || (0..10 * BURST_LINES).for_each(|number| log_every!(AUDIT, number, who = "alice", "done"));
    let lines = written(&[], say);
    assert_eq!(lines.len() as u64, 10 * BURST_LINES);
    assert_eq!(lines[199].text(), r#"done number=199 who="alice""#);
    assert!(written(&[("log-audit", Level::Warn)], say).is_empty(), "it has a level as others have");
}

fn suppressed(text: &str) -> Option<usize> {
    text.split_once("suppressed=")?.1.split(' ').next()?.parse().ok()
}

#[test]
fn texts_stand_apart_from_what_is_certainly_ours() {
    log_category!(TEXTS = "log-texts");
    let lines = written(&[], || {
        log_warn!(TEXTS, name = "Robert'); --", client = 7, is_new = true, address = %"203.0.113.7", ms = 1.5, "came in");
        tracing::warn!(client = 7, "hello {}", "Robert");
    });
    assert_eq!(lines[0].text(), r#"came in client=7 is_new=true ms=1.5 name="Robert'); --" address=203.0.113.7"#);
    assert_eq!(lines[0].text_without_texts(), "came in client=7 is_new=true ms=1.5");
    assert_eq!((lines[0].level, lines[0].target), (Level::Warn, "log-texts"));
    assert_eq!(lines[1].text(), "client=7 hello Robert");
    assert_eq!(lines[1].text_without_texts(), "client=7");

    let model = lines[0].to_model(5, 2, false);
    assert_eq!((model.at_ns, model.thread, &*model.level, &*model.target), (5, 2, "warn", "log-texts"));
    assert_eq!(model.text, "came in client=7 is_new=true ms=1.5");
}

#[test]
fn hostile_texts_are_escaped_and_cut_between_characters() {
    log_category!(HOSTILE = "log-hostile");
    let check = |text: &str, expect: &str| {
        let lines = written(&[], || log_info!(HOSTILE, shown = %text, "m"));
        assert_eq!(texts(&lines), [format!("m shown={expect}")]);
    };
    check("a\r\nb", r"a\r\nb");
    check("\x1b[31mred", r"\u{1b}[31mred");
    check("\u{202e}evil", r"\u{202e}evil");
    check("${jndi:ldap://x}", "${jndi:ldap://x}");
    check(&"ß".repeat(1_000), &"ß".repeat((LINE_BYTES_MAX - "m shown=".len()) / 2));
}

#[test]
fn the_ring_keeps_the_last_lines_and_no_more() {
    let say = |number: usize| tracing::info!(number, "line");
    let lines = written(&[], || (0..LINES_MAX + 10).for_each(say));
    let numbers: Vec<_> = lines.iter().map(|line| line.text_without_texts().to_owned()).collect();
    let expect: Vec<_> = (10..LINES_MAX + 10).map(|number| format!("number={number}")).collect();
    assert_eq!(numbers, expect);
}

#[test]
fn a_writer_never_waits_for_a_reader() {
    log_category!(BUSY = "log-busy");
    let missed_before = lines_missed();
    let lines = written(&[], || {
        let _reader = lines::hold_ring();
        log_info!(BUSY, "while somebody reads");
    });
    assert!(lines.is_empty());
    assert!(lines_missed() > missed_before);
}

#[test]
fn lines_of_libraries_pass_by_the_level_of_their_crate() {
    log_category!(OURS = "log-ours");
    let check = |levels: &[(&str, Level)], expect: &[&str]| {
        let lines = written(levels, || {
            log_trace!(OURS, "ours");
            tracing::info!(target: "library::part", text = "theirs");
            tracing::debug!(target: "library::part", text = "theirs, in detail");
        });
        assert_eq!(texts(&lines), expect);
    };
    check(&[("log-ours", Level::Trace)], &["ours", r#"text="theirs""#]);
    check(&[("library", Level::Debug)], &[r#"text="theirs""#, r#"text="theirs, in detail""#]);
    check(&[(ALL, Level::Off), ("log-ours", Level::Trace)], &["ours"]);
}

#[test]
fn the_syntax_of_fields_is_that_of_tracing() {
    log_category!(SYNTAX = "log-syntax");
    struct Client {
        id: u32,
    }
    let (client, reason) = (Client { id: 3 }, "left");
    let lines = written(&[], || {
        log_info!(SYNTAX, "alone");
        log_info!(SYNTAX, client.id, negative = -1, reason, "all of them",);
        log_info!(SYNTAX, %reason, ?reason, cause = if client.id == 3 { "three" } else { "other" }, "shown");
    });
    let expect = ["alone", r#"all of them client.id=3 negative=-1 reason="left""#];
    assert_eq!(texts(&lines[..2]), expect);
    assert_eq!(lines[2].text(), r#"shown reason=left reason="left" cause="three""#);
}
