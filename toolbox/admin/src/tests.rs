//! The listener as a scraper, a probe and an attacker see it, over a plain TCP stream.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

use super::*;

struct FixedSource {
    text: String,
    health: Health,
}

impl AdminSource for FixedSource {
    fn metrics_text(&self) -> String {
        self.text.clone()
    }

    fn health(&self) -> Health {
        self.health
    }

    fn packets(&self) -> String {
        r#"[{"kind":"pose","cause":"change","world":"hub 0","packets_per_s":20.0,"bytes_per_s":700.0,"updates_per_s":90.0}]"#
            .to_owned()
    }

    fn counters(&self) -> String {
        r#"[{"name":"net.packets_in","value":7,"per_s":2.0,"unit":"packets","help":"Datagrams received."}]"#.to_owned()
    }

    fn save_capture(&self, note: &str) -> Result<SavedCapture, String> {
        match note {
            "full" => Err("the disk is full".to_owned()),
            note => Ok(SavedCapture { path: format!("captures/{note}"), size_bytes: 7 }),
        }
    }
}

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

fn source(text: &str, state: HealthState) -> Arc<FixedSource> {
    Arc::new(FixedSource {
        text: text.to_owned(),
        health: Health { state, frame_age_ms: 12.34, workers_stuck_ms: 0.0 },
    })
}

fn start(text: &str, state: HealthState) -> AdminHandle {
    AdminServer::start(LOOPBACK, &[], source(text, state), Console::new()).unwrap()
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
    let console =
        Console::new().with("rules.reload", "", "reads the rules again", |_| Err("the file is gone".to_owned()));
    let admin = AdminServer::start(LOOPBACK, &[], source("", HealthState::Running), console).unwrap();
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{header}Content-Length: {length}\r\n\r\n{body}");
    request(&admin, head.as_bytes())
}

#[test]
fn a_capture_is_saved_for_those_who_mean_it() {
    let answer = post("/capture", "x-throng: capture\r\n", "slow");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains(r#"{"bytes":7,"path":"captures/slow"}"#), "{answer}");
    let answer = post("/capture", "", "slow");
    assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("x-throng"), "{answer}");
    let answer = post("/capture", "x-throng: capture\r\n", "full");
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("the disk is full"), "{answer}");
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
    let meant = "x-throng: capture\r\nContent-Length: 0\r\n";
    for (head, more) in [("GET /metrics", ""), ("GET /health", ""), ("POST /capture", meant)] {
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
    check(
        meant,
        "packets",
        "HTTP/1.1 200",
        r"pose  change             1        20.0        90.0         700.0  100.0 %\n",
    );
    check(meant, "packets --json", "HTTP/1.1 200", r#"{"text":"{\"packets\":[{"#);
    check(
        meant,
        "counters",
        "HTTP/1.1 200",
        "net.packets_in               7           2.0  Datagrams received. [packets]",
    );
    check(meant, "help", "HTTP/1.1 200", "rules.reload");
    check(meant, "rules.reload", "HTTP/1.1 400", "rules.reload: the file is gone");
    check(meant, "quit", "HTTP/1.1 400", "there are rules.reload, packets, counters, help");
    check("", "packets", "HTTP/1.1 403", "x-throng: console");
    check("x-throng: capture\r\n", "packets", "HTTP/1.1 403", "x-throng: console");
}

#[test]
fn metrics_come_with_the_format_they_are_in() {
    let old = start("throng_frames_total 7\n", HealthState::Running);
    check(
        &old,
        "/metrics",
        &[
            "HTTP/1.1 200 OK",
            "content-type: text/plain; version=0.0.4",
            "connection: close",
            "\r\n\r\nthrong_frames_total 7\n",
        ],
    );
    let open = start("throng_frames_total 7\n# EOF\n", HealthState::Running);
    check(&open, "/metrics", &["HTTP/1.1 200 OK", "content-type: application/openmetrics-text; version=1.0.0"]);
}

#[test]
fn health_tells_running_sleeping_and_stuck_apart() {
    let check = |state, status: &str, body: &str| check(&start("", state), "/health", &[status, body]);
    check(HealthState::Running, "200 OK", "{\"state\":\"running\",\"frame_age_ms\":12.3,\"workers_stuck_ms\":0.0}\n");
    check(HealthState::Sleeping, "200 OK", "{\"state\":\"sleeping\",\"frame_age_ms\":12.3,\"workers_stuck_ms\":0.0}\n");
    check(
        HealthState::Stuck,
        "503 Service Unavailable",
        "{\"state\":\"stuck\",\"frame_age_ms\":12.3,\"workers_stuck_ms\":0.0}\n",
    );
}

#[test]
fn other_paths_and_methods_are_refused_with_directions() {
    let admin = start("", HealthState::Running);
    check(&admin, "/", &["404 Not Found", "there are GET /metrics, GET /health, POST /capture and POST /console"]);
    let answer = request(&admin, b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 405 Method Not Allowed"), "{answer}");
}

#[test]
fn a_used_port_is_named_with_the_setting_to_change() {
    let first = start("", HealthState::Running);
    let error =
        AdminServer::start(first.local_addr(), &[], source("", HealthState::Running), Console::new()).err().unwrap();
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
    let error = AdminServer::start(foreign, &[], source("", HealthState::Running), Console::new()).err().unwrap();
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
    let admin = AdminServer::start_with_life(LOOPBACK, &[], source("", HealthState::Running), Console::new(), life_max)
        .unwrap();
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
