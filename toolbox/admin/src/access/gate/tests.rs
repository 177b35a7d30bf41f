//! Who gets through with what, and what those are told who do not.

use axum::http::HeaderValue;
use axum::http::header::HOST;
use throng_platform::clock::ManualClock;

use super::super::back_off::{FAILURES_MAX, PAUSE_MIN, SOURCES_MAX};
use super::*;

const ALICE: &str = "5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c";
const WATCHER: &str = "91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa";
const WRONG: &str = "77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa";

struct Trial {
    gate: Gate,
    clock: ManualClock,
    from: IpAddr,
}

fn trial(listens_on: &str) -> Trial {
    let keys = AccessKeys::parse("keys", &format!("alice operate {ALICE}\nwatcher observe {WATCHER}\n")).unwrap();
    let clock = ManualClock::new();
    let gate = Gate::new(listens_on.parse().unwrap(), OwnNames::new(&[]), keys, Arc::new(clock.clone()));
    Trial { gate, clock, from: IpAddr::from([192, 0, 2, 1]) }
}

impl Trial {
    /// `Ok` with the name of the key; `Err` with the refusal.
    fn ask(&self, method: Method, path: &str, authorization: &[&str]) -> Result<Option<String>, Refusal> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_static("127.0.0.1:9100"));
        for text in authorization {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(text.as_bytes()).unwrap());
        }
        let result = self.gate.admit(self.from, &method, path, &headers);
        let told = result.as_ref().err().map(|refusal| format!("{refusal:?}")).unwrap_or_default();
        for key in [ALICE, WATCHER, WRONG] {
            assert!(!told.contains(key), "a refusal shows a key: {told}");
        }
        result.map(|caller| caller.who)
    }

    fn with_key(&self, method: Method, path: &str, key: &str) -> Result<Option<String>, Cause> {
        self.ask(method, path, &[&format!("Bearer {key}")]).map_err(|refusal| refusal.cause)
    }

    fn without_key(&self, method: Method, path: &str) -> Result<Option<String>, Cause> {
        self.ask(method, path, &[]).map_err(|refusal| refusal.cause)
    }
}

fn named(name: &str) -> Result<Option<String>, Cause> {
    Ok(Some(name.to_owned()))
}

#[test]
fn on_loopback_whoever_asks_may_read_and_only_who_may_operate_changes_anything() {
    for address in ["127.0.0.1:9100", "127.8.8.8:1", "[::1]:9100", "[::ffff:127.0.0.1]:9100"] {
        let trial = trial(address);
        for path in ["/metrics", "/health", "/", "/later/page"] {
            assert_eq!(trial.without_key(Method::GET, path), Ok(None), "{address} {path}");
        }
        assert_eq!(trial.without_key(Method::POST, CONSOLE), Ok(None), "its line says more");
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            assert_eq!(trial.without_key(method.clone(), "/capture"), Err(Cause::NoKey), "{method}");
            assert_eq!(trial.with_key(method.clone(), "/capture", WATCHER), Err(Cause::Role), "{method}");
            assert_eq!(trial.with_key(method.clone(), "/capture", ALICE), named("alice"), "{method}");
        }
        assert_eq!(trial.with_key(Method::GET, "/metrics", WRONG), Err(Cause::WrongKey), "a mistake is told");
    }
}

#[test]
fn where_others_can_reach_it_all_but_health_and_the_pages_needs_a_key() {
    for address in ["0.0.0.0:9100", "192.0.2.7:9100", "[::]:9100", "[2001:db8::1]:9100"] {
        let trial = trial(address);
        assert_eq!(trial.without_key(Method::GET, HEALTH), Ok(None));
        assert_eq!(trial.with_key(Method::GET, HEALTH, WRONG), Ok(None), "it looks at none");
        for page in [CONSOLE_PAGE, VIEWER_PAGE] {
            assert_eq!(trial.without_key(Method::GET, page), Ok(None), "{page} shows nothing of the server");
            assert_eq!(trial.without_key(Method::POST, page), Err(Cause::NoKey), "{page}");
        }
        for (method, path) in [(Method::GET, "/metrics"), (Method::GET, "/api/watch"), (Method::POST, CONSOLE)] {
            assert_eq!(trial.without_key(method.clone(), path), Err(Cause::NoKey), "{method} {path}");
            assert_eq!(trial.with_key(method.clone(), path, WATCHER), named("watcher"), "{method} {path}");
            assert_eq!(trial.with_key(method.clone(), path, ALICE), named("alice"), "{method} {path}");
        }
        assert_eq!(trial.with_key(Method::POST, "/capture", WATCHER), Err(Cause::Role));
    }
}

#[test]
fn a_line_of_the_console_needs_what_its_command_needs() {
    let trial = trial("127.0.0.1:9100");
    let permit = |who: Option<&str>, may, role| {
        let caller = Caller { who: who.map(str::to_owned), may };
        trial.gate.permit(&caller, role).map_err(|refusal| (refusal.cause, refusal.text))
    };
    let (observe, operate) = (Role::Observe, Role::Operate);
    assert_eq!(permit(None, Some(observe), observe), Ok(()));
    assert_eq!(permit(Some("alice"), Some(operate), operate), Ok(()));
    let (cause, text) = permit(None, Some(observe), operate).unwrap_err();
    assert_eq!(cause, Cause::NoKey);
    for word in ["role operate", "--admin-key-file", "THRONG_ADMIN_KEY", "Authorization: Bearer"] {
        assert!(text.contains(word), "{word} is not in {text}");
    }
    let (cause, text) = permit(Some("watcher"), Some(observe), operate).unwrap_err();
    assert_eq!(cause, Cause::Role);
    assert!(text.contains("`watcher` may not") && text.contains("admin_keys_file"), "{text}");
}

#[test]
fn a_key_is_shown_in_one_way_and_once() {
    let trial = trial("127.0.0.1:9100");
    let bearer = format!("Bearer {ALICE}");
    for right in [bearer.clone(), bearer.to_lowercase(), format!("BEARER {}", ALICE.to_uppercase())] {
        assert_eq!(trial.ask(Method::GET, "/metrics", &[&right]), Ok(Some("alice".to_owned())), "{right}");
    }
    let short = format!("Bearer {}", &ALICE[1..]);
    let wrong = [ALICE, "Bearer", "Bearer ", "", "Basic YWxpY2U6NWUwYw==", "Bearer \u{fffd}", short.as_str()];
    for wrong in wrong {
        trial.clock.advance(Nanos::from_secs(60));
        let refusal = trial.ask(Method::GET, "/metrics", &[wrong]).unwrap_err();
        assert_eq!((refusal.cause, refusal.cause.status()), (Cause::WrongKey, StatusCode::UNAUTHORIZED), "{wrong}");
    }
    let twice = trial.ask(Method::GET, "/metrics", &[&bearer, &bearer]);
    assert_eq!(twice.map_err(|refusal| refusal.cause), Err(Cause::WrongKey));
}

#[test]
fn who_shows_wrong_keys_waits_and_what_needs_no_key_is_answered_meanwhile() {
    let trial = trial("127.0.0.1:9100");
    for _ in 0..FAILURES_MAX {
        assert_eq!(trial.with_key(Method::POST, "/capture", WRONG), Err(Cause::WrongKey));
    }
    trial.clock.advance(Nanos::from_millis(500));
    let refusal = trial.ask(Method::POST, "/capture", &[&format!("Bearer {ALICE}")]).unwrap_err();
    assert_eq!(
        (refusal.cause, refusal.cause.status().as_u16()),
        (Cause::BackOff, 429),
        "the right key is no exception"
    );
    assert_eq!(refusal.retry_after_s, Some(30));
    assert!(refusal.text.contains("wait 30 s"), "{}", refusal.text);
    assert_eq!(trial.without_key(Method::GET, "/metrics"), Ok(None));
    assert_eq!(trial.with_key(Method::GET, HEALTH, ALICE), Ok(None));
    let elsewhere = Trial { from: IpAddr::from([192, 0, 2, 2]), ..trial };
    assert_eq!(elsewhere.with_key(Method::POST, "/capture", ALICE), named("alice"));

    let trial = Trial { from: IpAddr::from([192, 0, 2, 1]), ..elsewhere };
    trial.clock.advance(PAUSE_MIN);
    assert_eq!(trial.with_key(Method::POST, "/capture", ALICE), named("alice"));
}

#[test]
fn no_key_at_all_is_no_guess() {
    let trial = trial("127.0.0.1:9100");
    for _ in 0..10 * FAILURES_MAX {
        assert_eq!(trial.without_key(Method::POST, "/capture"), Err(Cause::NoKey));
        assert_eq!(
            trial.with_key(Method::POST, "/capture", WATCHER),
            Err(Cause::Role),
            "nor is one that is not enough"
        );
    }
    assert_eq!(trial.with_key(Method::POST, "/capture", ALICE), named("alice"));
}

/// Promise: however many keys are tried, from however many addresses, none gets in, and little is kept about them.
#[test]
fn r37_a_hundred_thousand_wrong_keys_let_nobody_in() {
    let mut trial = trial("0.0.0.0:9100");
    let mut compared = 0;
    for index in 0..100_000_u32 {
        trial.clock.advance(Nanos::from_millis(1));
        // Half from one address, half from addresses that are used once.
        trial.from =
            if index % 2 == 0 { IpAddr::from([192, 0, 2, 1]) } else { (0x0a00_0000 + index).to_be_bytes().into() };
        let cause = trial.with_key(Method::POST, "/capture", &format!("{:064x}", index + 1)).unwrap_err();
        compared += u32::from(cause == Cause::WrongKey && index % 2 == 0);
        assert!(trial.gate.back_off().sources_count() <= SOURCES_MAX);
    }
    // In 100 s: after 0 s, after 30 s more, after 60 s more.
    assert_eq!(compared, 3 * FAILURES_MAX as u32, "the one address has so many tries");
}

#[test]
fn what_is_refused_and_let_through_is_counted() {
    let trial = trial("0.0.0.0:9100");
    let _ = trial.without_key(Method::GET, "/metrics");
    let _ = trial.with_key(Method::POST, "/capture", WATCHER);
    (0..FAILURES_MAX + 2).for_each(|_| drop(trial.with_key(Method::GET, "/metrics", WRONG)));
    trial.gate.note_operated();
    let told: Vec<(&str, String, u64)> = trial
        .gate
        .counters()
        .into_iter()
        .flat_map(|family| family.rows.into_iter().map(move |(labels, count)| (family.name, labels.concat(), count)))
        .collect();
    let refused = |cause: &str, count| ("admin.refused", cause.to_owned(), count);
    let expect = [
        refused("origin", 0),
        refused("no_key", 1),
        refused("wrong_key", 5),
        refused("role", 1),
        refused("back_off", 2),
        ("admin.operated", String::new(), 1),
    ];
    assert_eq!(told, expect);
}

/// The page of metrics is made in a crate below this one.
#[test]
fn the_metrics_page_explains_what_is_counted_here() {
    let page = include_str!("../../../../../docs/metrics.md");
    for (name, help) in FAMILIES.into_iter().chain(crate::watch::FAMILIES) {
        assert!(
            page.contains(&format!("| `throng_{}_total` | {help}", name.replace('.', "_"))),
            "docs/metrics.md lacks {name}: {help}"
        );
    }
    for cause in Cause::ALL {
        assert!(page.contains(&format!("`{}`", cause.name())), "docs/metrics.md lacks the cause {}", cause.name());
    }
}
