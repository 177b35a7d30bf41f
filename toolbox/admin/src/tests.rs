//! The listener as a scraper, a probe and an attacker see it, over a plain TCP stream.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, MutexGuard, Once, PoisonError};
use std::time::Instant;

use throng_platform::clock::ManualClock;
use throng_platform::time::Nanos;
use throng_profiler::log::CategoryFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::*;
use crate::access::Role;

mod watching;

struct FixedSource {
    text: String,
    health: Health,
    captures: Option<PathBuf>,
    /// What is gathered for those who watch.
    watched: Arc<watching::Watched>,
    /// Pages of metrics that were made.
    pages: AtomicU32,
}

impl AdminSource for FixedSource {
    /// The text, and before its end mark what the port counts, each as name, labels and count.
    fn metrics(&self, format: MetricsFormat, counters: Vec<LabelledCounters>) -> Vec<u8> {
        self.pages.fetch_add(1, Ordering::SeqCst);
        let rows = counters.iter().flat_map(|family| family.rows.iter().map(|row| (family.name, row)));
        let lines: String = rows.map(|(name, (labels, count))| format!("{name}{labels:?} {count}\n")).collect();
        match format {
            MetricsFormat::Text => self.text.replace("# EOF\n", &format!("{lines}# EOF\n")).into_bytes(),
            MetricsFormat::Protobuf => b"families".to_vec(),
        }
    }

    fn health(&self) -> Health {
        self.health
    }

    fn packets(&self) -> String {
        r#"[{"kind":"pose","cause":"change","world":"hub 0","packets_per_s":20.0,"bytes_per_s":700.0,"updates_per_s":90.0}]"#
            .to_owned()
    }

    fn clients(&self) -> String {
        r#"[{"client_id":1007,"world":"hub 0","work_per_s":912.0}]"#.to_owned()
    }

    fn counters(&self) -> String {
        r#"[{"name":"net.packets_in","value":7,"per_s":2.0,"unit":"packets","help":"Datagrams received."}]"#.to_owned()
    }

    fn past(&self) -> Past {
        self.watched.past()
    }

    fn begin_watch(self: Arc<Self>) -> Box<dyn WatchSource> {
        Box::new(watching::Gathered::begin(self.watched.clone()))
    }

    fn save_capture(&self, note: &str) -> Result<SavedCapture, String> {
        match note {
            "full" => Err("the disk is full".to_owned()),
            note => Ok(SavedCapture { path: format!("captures/{note}"), size_bytes: 7 }),
        }
    }

    fn captures_folder(&self) -> Option<PathBuf> {
        self.captures.clone()
    }
}

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

fn source(text: &str, state: HealthState) -> Arc<FixedSource> {
    Arc::new(FixedSource {
        text: text.to_owned(),
        health: Health {
            state,
            frame_age_ms: 12.34,
            workers_stuck_ms: 0.0,
            are_saves_away: state == HealthState::Stuck,
            are_analytics_away: state == HealthState::Sleeping,
        },
        captures: None,
        watched: Arc::default(),
        pages: AtomicU32::default(),
    })
}

/// `operate`.
const ALICE: &str = "5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c";
/// `observe`.
const WATCHER: &str = "91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa";
const WRONG: &str = "77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa77aa";

fn access() -> Access {
    let lines = format!("alice operate {ALICE}\nwatcher observe {WATCHER}\n");
    Access { names: Vec::new(), keys: Some(AccessKeys::parse("keys", &lines).unwrap()) }
}

/// The header that shows a key.
fn shows(key: &str) -> String {
    format!("Authorization: Bearer {key}\r\n")
}

fn start(text: &str, state: HealthState) -> AdminHandle {
    start_with(source(text, state), Console::new(), Surroundings::default())
}

fn start_with(source: Arc<FixedSource>, console: Console, surroundings: Surroundings) -> AdminHandle {
    AdminServer::start_with(LOOPBACK, access(), source, console, surroundings).unwrap()
}

fn connect(admin: &AdminHandle) -> TcpStream {
    let stream = TcpStream::connect(admin.local_addr()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// The answer with its lines; empty if the connection was cut.
fn request(admin: &AdminHandle, request: &[u8]) -> String {
    let mut stream = connect(admin);
    // A server that refuses early may have closed before all was written.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[track_caller]
fn check(admin: &AdminHandle, path: &str, expect: &[&str]) {
    let answer = request(admin, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
    for part in expect {
        assert!(answer.contains(part), "GET {path} lacks {part:?}:\n{answer}");
    }
}

fn post(path: &str, header: &str, body: &str) -> String {
    let admin = start_with(source("", HealthState::Running), console(), Surroundings::default());
    post_to(&admin, path, header, body)
}

fn console() -> Console {
    Console::new()
        .with("rules.reload", Role::Operate, "", "reads the rules again", |_| Err("the file is gone".to_owned()))
}

fn post_to(admin: &AdminHandle, path: &str, header: &str, body: &str) -> String {
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{header}Content-Length: {length}\r\n\r\n{body}");
    request(admin, head.as_bytes())
}

#[test]
fn a_capture_is_saved_for_those_who_mean_it() {
    let meant = format!("x-throng: capture\r\n{}", shows(ALICE));
    let answer = post("/capture", &meant, "slow");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains(r#"{"bytes":7,"path":"captures/slow"}"#), "{answer}");
    let answer = post("/capture", &shows(ALICE), "slow");
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("x-throng"), "{answer}");
    let answer = post("/capture", &meant, "full");
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("the disk is full"), "{answer}");
}

/// Promise: what waits for the server is bounded, also when nobody waits for the answer any more.
#[test]
fn so_many_commands_are_carried_out_at_a_time_and_no_more() {
    let (begun, wait) = (Arc::new(AtomicUsize::new(0)), Arc::new(Barrier::new(pages::COMMANDS_MAX + 1)));
    let (counted, end) = (begun.clone(), wait.clone());
    let console = Console::new().with("world.list", Role::Observe, "", "waits", move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        end.wait();
        Ok(String::new())
    });
    let admin = start_with(source("", HealthState::Running), console, Surroundings::default());
    let head = "POST /console HTTP/1.1\r\nHost: localhost\r\nx-throng: console\r\nContent-Length: 10\r\n\r\nworld.list";
    for place in 1..=pages::COMMANDS_MAX {
        let mut asker = connect(&admin);
        asker.write_all(head.as_bytes()).unwrap();
        let patience = Instant::now() + Duration::from_secs(30);
        while begun.load(Ordering::SeqCst) < place {
            assert!(Instant::now() < patience, "{begun:?} of {place} have begun");
            std::thread::sleep(Duration::from_millis(1));
        }
        // And leaves.
        drop(asker);
    }
    let refused = request(&admin, head.as_bytes());
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("too many commands"), "{refused}");
    assert_eq!(begun.load(Ordering::SeqCst), pages::COMMANDS_MAX);
    wait.wait();
}

/// A page that was loaded from a name which means this host by now says everything right but that name.
#[test]
fn pages_of_other_servers_are_not_answered_whatever_their_name_means() {
    let admin = start("throng_frames_total 7\n", HealthState::Running);
    let answers = |head: &str, host: &str, more: &str, expect: bool| {
        let answer = request(&admin, format!("{head} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n").as_bytes());
        assert_eq!(answer.starts_with("HTTP/1.1 200"), expect, "{head} {host} {more}: {answer}");
        assert!(expect || answer.starts_with("HTTP/1.1 403"), "{answer}");
    };
    let meant = format!("x-throng: capture\r\n{}Content-Length: 0\r\n", shows(ALICE));
    for (head, more) in [("GET /metrics", ""), ("GET /health", ""), ("POST /capture", meant.as_str())] {
        answers(head, "127.0.0.1:9100", more, true);
        answers(head, "evil.example:9100", more, false);
        answers(head, "127.0.0.1:9100", &format!("Origin: http://evil.example\r\n{more}"), false);
    }
}

#[test]
fn a_command_is_carried_out_for_those_who_mean_it() {
    let check = |header: &str, line: &str, status: &str, words: &str| {
        let answer = post("/console", header, line);
        assert!(answer.starts_with(status) && answer.contains(words), "{line}: {answer}");
    };
    let meant = "x-throng: console\r\n";
    let with_key = format!("{meant}{}", shows(ALICE));
    check(meant, "packets", "HTTP/1.1 200", r"pose  change       1       20.0       90.0    700.0    100.0\n");
    check(meant, "packets --json", "HTTP/1.1 200", r#"{"text":"{\"packets\":[{"#);
    check(meant, "counters", "HTTP/1.1 200", "net.packets_in      7         2.0  Datagrams received. [packets]");
    check(meant, "clients", "HTTP/1.1 200", r"\n1007    hub 0   912.0 ");
    check(meant, "help", "HTTP/1.1 200", "rules.reload");
    check(&with_key, "rules.reload", "HTTP/1.1 400", "rules.reload: the file is gone");
    check(meant, "quit", "HTTP/1.1 400", "there are rules.reload, packets, counters, clients, changes, complete, help");
    check("", "packets", "HTTP/1.1 403", "x-throng: console");
    check("x-throng: capture\r\n", "packets", "HTTP/1.1 403", "x-throng: console");
}

#[test]
fn metrics_come_in_the_format_that_was_asked_for() {
    let early = start("", HealthState::Running);
    check(&early, "/metrics", &["HTTP/1.1 200 OK", "content-type: text/plain; version=0.0.4", "connection: close"]);
    let open = start("throng_frames_total 7\n# EOF\n", HealthState::Running);
    let text = [
        "HTTP/1.1 200 OK",
        "content-type: application/openmetrics-text; version=1.0.0",
        "\r\n\r\nthrong_frames_total 7\n",
    ];
    check(&open, "/metrics", &text);
    let accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,*/*;q=0.1";
    let head = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n\r\n");
    let answer = request(&open, head.as_bytes());
    let is_protobuf = answer.contains(
        "content-type: application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited",
    );
    assert!(is_protobuf && answer.ends_with("\r\n\r\nfamilies"), "{answer}");
}

/// Promise: many scrapers cost some pages a second, not one each.
#[test]
fn scrapers_at_one_time_share_a_page_of_metrics() {
    let source = source("throng_frames_total 7\n# EOF\n", HealthState::Running);
    let admin = start_with(source.clone(), console(), Surroundings::default());
    let begun = Instant::now();
    (0..32).for_each(|_| check(&admin, "/metrics", &["throng_frames_total 7\n"]));
    // Four a second, and the first.
    let most = 1 + (begun.elapsed().as_secs_f64() * 4.0) as u32;
    let made = source.pages.load(Ordering::SeqCst);
    assert!((1..=most).contains(&made), "{made} pages were made, and not {most} at most");
}

#[test]
fn a_link_from_a_dashboard_leads_to_the_captures_of_that_moment() {
    let none = start("", HealthState::Running);
    check(&none, "/captures", &["404 Not Found", "[recorder] captures"]);
    let folder = std::env::temp_dir().join(format!("throng-admin-linked-{}", std::process::id()));
    let inside = folder.join("frame/world.tick@hub");
    std::fs::create_dir_all(&inside).unwrap();
    std::fs::write(inside.join("1764000000-812-0.capture"), "what was slow").unwrap();
    let source = Arc::new(FixedSource {
        captures: Some(folder.clone()),
        text: String::new(),
        health: source("", HealthState::Running).health,
        watched: Arc::default(),
        pages: AtomicU32::default(),
    });
    let admin = start_with(source, Console::new(), Surroundings::default());
    check(
        &admin,
        "/captures",
        &["200 OK", "application/json", r#""folder":"frame/world.tick@hub","name":"1764000000-812-0""#],
    );
    check(
        &admin,
        "/captures/1764000000-812-0",
        &["200 OK", "filename=\"1764000000-812-0.capture\"", "content-length: 13", "\r\n\r\nwhat was slow"],
    );
    check(&admin, "/captures/1764000000-812-1", &["404 Not Found", "no such capture"]);
    check(&admin, "/captures/..%2F..%2Fetc%2Fpasswd", &["404 Not Found"]);
    // As a browser asks whose window goes there from a page of Grafana.
    let followed =
        "Accept: text/html\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
    let get = |path: &str| {
        request(&admin, format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:9100\r\n{followed}\r\n").as_bytes())
    };
    let page = get("/captures?at=1764000000000");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("href=\"/captures/1764000000-812-0\""), "{page}");
    assert!(page.contains("frame-ancestors 'none'"), "{page}");
    assert!(get("/metrics").starts_with("HTTP/1.1 403"), "nothing else is linked to");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn health_tells_running_sleeping_and_stuck_apart() {
    let check = |state, status: &str, body: &str| check(&start("", state), "/health", &[status, body]);
    let body = |state, saves, analytics| {
        format!(
            "{{\"state\":\"{state}\",\"frame_age_ms\":12.3,\"workers_stuck_ms\":0.0,\"saves_away\":{saves},\"analytics_away\":{analytics}}}\n"
        )
    };
    check(HealthState::Running, "200 OK", &body("running", false, false));
    check(HealthState::Sleeping, "200 OK", &body("sleeping", false, true));
    check(HealthState::Stuck, "503 Service Unavailable", &body("stuck", true, false));
}

#[test]
fn other_paths_and_methods_are_refused_with_directions() {
    let admin = start("", HealthState::Running);
    check(
        &admin,
        "/nowhere",
        &[
            "404 Not Found",
            "GET /metrics, GET /health, GET /captures, GET /api/watch, GET /api/captures, POST /capture",
        ],
    );
    let answer = post_to(&admin, "/metrics", &shows(ALICE), "");
    assert!(answer.starts_with("HTTP/1.1 405 Method Not Allowed"), "{answer}");
}

#[test]
fn a_used_port_is_named_with_the_setting_to_change() {
    let first = start("", HealthState::Running);
    let error = AdminServer::start(first.local_addr(), access(), source("", HealthState::Running), Console::new())
        .err()
        .unwrap();
    assert!(matches!(error, AdminError::AddressInUse { .. }));
    let (address, port) = (first.local_addr(), first.local_addr().port());
    assert_eq!(
        error.to_string(),
        format!(
            "admin address {address} is in use by another program (`ss -ltnp 'sport = :{port}'` shows which); stop it, \
             or set [server] admin_address to another port or to \"off\""
        )
    );
}

#[test]
fn a_foreign_address_is_named() {
    let foreign = SocketAddr::from(([192, 0, 2, 1], 9100));
    let start = |access| AdminServer::start(foreign, access, source("", HealthState::Running), Console::new());
    let error = start(access()).err().unwrap();
    assert!(error.to_string().starts_with("admin address 192.0.2.1:9100 is not one of this host's;"), "{error}");
}

#[test]
fn an_endless_request_is_cut_off() {
    let admin = start("", HealthState::Running);
    let mut endless = b"GET /health HTTP/1.1\r\n".to_vec();
    while endless.len() <= 4 * bounds::REQUEST_BYTES_MAX {
        endless
            .extend_from_slice(b"X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n");
    }
    let answer = request(&admin, &endless);
    assert!(!answer.contains("200 OK"), "{answer}");
    check(&admin, "/health", &["200 OK"]);
}

#[test]
fn connections_that_never_ask_lose_their_places() {
    let life_max = Duration::from_millis(300);
    let surroundings = Surroundings { life_max, ..Surroundings::default() };
    let admin = start_with(source("", HealthState::Running), Console::new(), surroundings);
    let began = Instant::now();
    let silent: Vec<TcpStream> = (0..2 * bounds::CONNECTIONS_MAX).map(|_| connect(&admin)).collect();
    for mut stream in &silent {
        stream.write_all(b"GET /health HT").unwrap();
    }
    // Two rounds of silent connections stand before this one.
    check(&admin, "/health", &["200 OK"]);
    assert!(began.elapsed() >= life_max, "a place was free that should not have been");
}

#[test]
fn health_is_answered_while_others_hold_the_line() {
    let admin = start("", HealthState::Running);
    let began = Instant::now();
    let _silent: Vec<TcpStream> = (0..2 * bounds::CONNECTIONS_MAX).map(|_| connect(&admin)).collect();
    check(&admin, "/health", &["200 OK"]);
    assert!(began.elapsed() < bounds::LIFE_MAX / 2, "{:?}", began.elapsed());
}

#[test]
fn dropping_the_handle_closes_the_port_at_once() {
    let admin = start("", HealthState::Running);
    let address = admin.local_addr();
    let open = connect(&admin);
    let began = Instant::now();
    drop(admin);
    assert!(began.elapsed() < bounds::LIFE_MAX / 2, "an open connection held the stop up");
    assert!(TcpStream::connect(address).is_err());
    drop(open);
}

#[test]
fn without_keys_it_does_not_listen_where_others_can_reach_it() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:9100"] {
        let address: SocketAddr = address.parse().unwrap();
        let error = AdminServer::start(address, Access::default(), source("", HealthState::Running), Console::new())
            .err()
            .unwrap();
        assert!(matches!(error, AdminError::NoKeys { .. }), "{error}");
        let (error, port) = (error.to_string(), address.port());
        for word in ["admin_keys_file", "throng admin-key NAME ROLE"] {
            assert!(error.contains(word), "{word} is not in {error}");
        }
        assert!(error.contains(&format!("\"127.0.0.1:{port}\"")), "{error}");
    }
}

#[test]
fn who_is_not_let_is_told_by_status_header_and_words() {
    let surroundings = Surroundings { clock: Arc::new(ManualClock::new()), ..Surroundings::default() };
    let admin = start_with(source("", HealthState::Running), console(), surroundings);
    let check = |key: Option<&str>, parts: &[&str]| {
        let header = format!("x-throng: console\r\n{}", key.map(shows).unwrap_or_default());
        let answer = post_to(&admin, "/console", &header, "rules.reload");
        for part in parts {
            assert!(answer.contains(part), "{part:?} is not in {answer}");
        }
        assert!(![ALICE, WATCHER, WRONG].iter().any(|key| answer.contains(key)), "an answer shows a key: {answer}");
    };
    check(None, &["HTTP/1.1 401", "www-authenticate: Bearer", "needs a key of the role operate", "--admin-key-file"]);
    check(Some(WATCHER), &["HTTP/1.1 403", "`watcher` may not do this", "role operate"]);
    for _ in 0..5 {
        check(Some(WRONG), &["HTTP/1.1 401", "www-authenticate: Bearer", "no key of this server"]);
    }
    check(Some(ALICE), &["HTTP/1.1 429", "retry-after: 30", "wait 30 s"]);
    check(None, &["HTTP/1.1 401"]);
    let answer = request(&admin, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn who_waited_long_enough_is_let_in_again() {
    let clock = ManualClock::new();
    let surroundings = Surroundings { clock: Arc::new(clock.clone()), ..Surroundings::default() };
    let admin = start_with(source("", HealthState::Running), console(), surroundings);
    let ask = |key: &str| post_to(&admin, "/console", &format!("x-throng: console\r\n{}", shows(key)), "help");
    (0..5).for_each(|_| assert!(ask(WRONG).starts_with("HTTP/1.1 401")));
    clock.advance(Nanos::from_millis(29_999));
    assert!(ask(ALICE).starts_with("HTTP/1.1 429"));
    clock.advance(Nanos::from_millis(1));
    assert!(ask(ALICE).starts_with("HTTP/1.1 200"));
}

#[test]
fn what_was_refused_and_let_through_is_among_the_metrics() {
    let admin =
        start_with(source("throng_frames_total 7\n# EOF\n", HealthState::Running), console(), Surroundings::default());
    post_to(&admin, "/capture", "", "");
    post_to(&admin, "/capture", &shows(ALICE), "");
    let figures = [
        "throng_frames_total 7\nadmin.refused[\"origin\"] 0\n",
        "admin.refused[\"no_key\"] 1\n",
        "admin.operated[] 1\n",
        "admin.watch_lines_dropped[] 0\n",
        "admin.watchers_refused[] 0\n# EOF\n",
    ];
    check(&admin, "/metrics", &figures);
}

/// What the process has logged since the first test that asked. Tests share it, and look for their own words.
static LOG: Mutex<String> = Mutex::new(String::new());

fn log() -> MutexGuard<'static, String> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

struct ToLog;

impl Write for ToLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        log().push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn keep_log() {
    static ONCE: Once = Once::new();
    let lines = || tracing_subscriber::fmt::layer().with_ansi(false).with_writer(|| ToLog);
    ONCE.call_once(|| tracing_subscriber::registry().with(CategoryFilter).with(lines()).init());
}

/// The first line of the audit with `words` in it, after `ask` or while it is asked again: refusals of all tests share a
/// rate, and some are left out.
#[track_caller]
fn line_after(words: &str, mut ask: impl FnMut()) -> String {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        ask();
        if let Some(line) = log().lines().find(|line| line.contains(" admin.audit: ") && line.contains(words)) {
            return line.to_owned();
        }
        assert!(Instant::now() < deadline, "no line has {words:?}:\n{}", log());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn whoever_changes_something_or_was_not_let_has_a_line_and_no_key_is_in_it() {
    keep_log();
    let admin = start_with(source("", HealthState::Running), console(), Surroundings::default());
    let ask = |key: &str, line: &str| {
        post_to(&admin, "/console", &format!("x-throng: console\r\n{key}"), line);
    };
    ask(&shows(ALICE), "rules.reload --audit-of-alice\u{1b}[2J\n");
    let line = line_after("--audit-of-alice", || ());
    assert!(line.contains(" INFO admin.audit: a request that changes something "), "{line}");
    for part in
        ["who=alice", "from=127.0.0.1:", r#"what="console rules.reload --audit-of-alice\u{1b}[2J""#, "400 Bad Request"]
    {
        assert!(line.contains(part), "{part:?} is not in {line}");
    }
    assert!(!line.contains('\u{1b}'), "{line:?}");

    let line = line_after("--audit-of-nobody", || ask("", "rules.reload --audit-of-nobody"));
    for part in ["a request was refused", "no_key", "who=nobody", "from=127.0.0.1:"] {
        assert!(line.contains(part), "{part:?} is not in {line}");
    }
    let line = line_after("--audit-of-watcher", || ask(&shows(WATCHER), "rules.reload --audit-of-watcher"));
    assert!(line.contains("who=watcher"), "{line}");
    ask(&shows(WRONG), &format!("rules.reload {WRONG}"));
    ask(&shows(ALICE), &format!("rules.reload {ALICE} --audit-of-key"));
    line_after("rules.reload (hidden) --audit-of-key", || ());
    let log = log();
    assert!(![ALICE, WATCHER, WRONG].iter().any(|key| log.contains(key)), "a key is in\n{log}");
}

/// Whoever leaves before the answer may have had the command carried out.
#[test]
fn a_command_whose_asker_has_left_has_a_line_too() {
    keep_log();
    let (started, has_started) = std::sync::mpsc::channel();
    let (end_of_test, may_end) = std::sync::mpsc::channel::<()>();
    let (started, may_end) = (Mutex::new(started), Mutex::new(may_end));
    let console = Console::new().with("slow.command", Role::Operate, "", "takes its time", move |_| {
        started.lock().unwrap().send(()).unwrap();
        // An error is the test's end.
        let _ = may_end.lock().unwrap().recv();
        Ok(String::new())
    });
    let admin = start_with(source("", HealthState::Running), console, Surroundings::default());
    // Dropped before the port, which waits for the command.
    let end = end_of_test;
    let mut stream = connect(&admin);
    let head = format!("POST /console HTTP/1.1\r\nHost: localhost\r\nx-throng: console\r\n{}", shows(ALICE));
    stream.write_all(format!("{head}Content-Length: 12\r\n\r\nslow.command").as_bytes()).unwrap();
    has_started.recv().unwrap();
    drop(stream);
    let line = line_after("slow.command", || ());
    assert!(line.contains("who=alice") && line.contains("the asker left before the answer"), "{line}");
    drop(end);
}

#[test]
fn a_server_without_keys_leaves_one_for_its_own_user() {
    let folder = std::env::temp_dir().join(format!("throng-admin-port-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let key_folders = vec![folder.join("keys")];
    let start = |access| {
        let surroundings = Surroundings { key_folders: key_folders.clone(), ..Surroundings::default() };
        AdminServer::start_with(LOOPBACK, access, source("", HealthState::Running), console(), surroundings).unwrap()
    };
    let admin = start(Access::default());
    let path = key_folders[0].join(format!("admin-{}.key", admin.local_addr()));
    let key = access::read_key(&path).unwrap().to_hex();
    let ask = |key: &str| post_to(&admin, "/console", &format!("x-throng: console\r\n{}", shows(key)), "rules.reload");
    assert!(ask(&key).contains("the file is gone"), "it is let in");
    assert!(ask(WRONG).starts_with("HTTP/1.1 401"));
    drop(admin);
    assert!(!path.exists());
    let admin = start(access());
    assert_eq!(std::fs::read_dir(&key_folders[0]).unwrap().count(), 0, "one with keys leaves none");
    drop(admin);
    std::fs::remove_dir_all(&folder).unwrap();
}
