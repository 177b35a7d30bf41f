//! A gateway on a free port, asked by hand as a browser and as a stranger ask.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use throng_net::protocol::{PrivateKey, ProtocolId};
use throng_net::transport::{Refusal, ServerTransport, TunnelledTransport, UdpTransport};
use throng_platform::time::Nanos;

use super::*;

mod encrypted;
mod sessions;

struct Bench {
    gateway: Gateway,
    transport: TunnelledTransport,
    tunnels: Tunnels,
}

fn settings() -> BrowserSettings {
    BrowserSettings { address: Some("127.0.0.1:0".parse().unwrap()), gives_tokens: true, ..BrowserSettings::default() }
}

fn bench(browser: &BrowserSettings) -> Bench {
    let (udp, _) = UdpTransport::bind("127.0.0.1:0".parse().unwrap(), 1, 1 << 20, 1 << 20).unwrap();
    let (transport, tunnels) = Tunnels::beside(udp, browser.clients_max as usize).unwrap();
    let tokens = TokenGiver::new(ProtocolId(7), PrivateKey::new([1; 32]), vec![transport.local_addr()]);
    let pages = Pages { page: Some("<!doctype html>a page"), schema: "export const data = 1;".into() };
    let tokens = browser.gives_tokens.then_some(tokens);
    let gateway = Gateway::start(browser, &ServerSettings::default(), tunnels.clone(), pages, tokens).unwrap();
    Bench { gateway, transport, tunnels }
}

fn connected(gateway: &Gateway) -> TcpStream {
    let stream = TcpStream::connect(gateway.local_addr()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Asks once, and reads to the end.
fn asked(gateway: &Gateway, request: &str) -> String {
    let mut stream = connected(gateway);
    let host = gateway.local_addr();
    stream.write_all(request.replace("HOST", &format!("host: {host}\r\nconnection: close")).as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// What asks for a WebSocket, with these headers.
fn request_of_web_socket(headers: &str) -> String {
    format!(
        "GET /play/socket HTTP/1.1\r\n{headers}\r\nupgrade: websocket\r\nconnection: upgrade\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-protocol: throng\r\n\r\n"
    )
}

/// A WebSocket, and all that was said before its first frame.
fn web_socket(gateway: &Gateway) -> TcpStream {
    opened(connected(gateway), &format!("host: {}", gateway.local_addr()))
}

fn opened<S: Read + Write>(mut stream: S, headers: &str) -> S {
    stream.write_all(request_of_web_socket(headers).as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(
        head.starts_with("HTTP/1.1 101") && head.to_lowercase().contains("sec-websocket-protocol: throng"),
        "{head}"
    );
    stream
}

/// A binary message as a client frames it, with a mask of zeros.
fn frame(payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap();
    let head = match length {
        0..126 => vec![0x82, 0x80 | length as u8],
        _ => [vec![0x82, 0x80 | 126], length.to_be_bytes().to_vec()].concat(),
    };
    [head, vec![0; 4], payload.to_vec()].concat()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..400 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("not within 20 s: {what}");
}

impl Bench {
    /// The first datagrams that come through tunnels.
    fn received(&mut self, count: usize) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut received = Vec::new();
        while received.len() < count {
            self.transport.wait(Some(Nanos::from_secs(20)));
            let taken = self.transport.receive(&mut |from, datagram| received.push((from, datagram.to_vec())), 64);
            assert!(taken > 0, "{} came, and no more", received.len());
        }
        received
    }
}

#[test]
fn datagrams_go_through_a_web_socket_both_ways() {
    let mut bench = bench(&settings());
    let mut socket = web_socket(&bench.gateway);
    socket.write_all(&[frame(b"hello"), frame(&[7; 1_102])].concat()).unwrap();
    let received = bench.received(2);
    assert_eq!((&*received[0].1, &*received[1].1), (&b"hello"[..], &[7; 1_102][..]));
    let mut sender = bench.transport.sender(0);
    for datagram in [&b"back"[..], b"again"] {
        sender.buffer()[..datagram.len()].copy_from_slice(datagram);
        sender.commit(received[0].0, datagram.len());
    }
    assert_eq!(sender.flush().sent, 2);
    let mut answer = [0; 13];
    socket.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"\x82\x04back\x82\x05again");
    assert_eq!(bench.tunnels.stats().open, 1);
    drop(socket);
    until("the tunnel of a browser that is gone is closed", || bench.tunnels.stats().open == 0);
}

#[test]
fn what_breaks_the_rules_is_closed() {
    let bench = bench(&settings());
    let too_long = frame(&[0; 1_400]);
    for bad in [&[0x82, 0x01, 7][..], &[0x81, 0x81, 0, 0, 0, 0, b'a'], &[0xF2, 0x80, 0, 0, 0, 0], &too_long] {
        let mut socket = web_socket(&bench.gateway);
        socket.write_all(bad).unwrap();
        let mut rest = Vec::new();
        let _ = socket.read_to_end(&mut rest);
        assert!(rest.len() < 64, "an end, and no answer: {rest:?}");
    }
    assert_eq!(bench.tunnels.stats().received, 0);
}

#[test]
fn a_message_that_never_ends_is_broken_off() {
    let bench = bench(&settings());
    let mut socket = web_socket(&bench.gateway);
    socket.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.write_all(&[0x02, 0x80, 0, 0, 0, 0]).unwrap();
    // Empty fragments: no message, and no byte of one.
    let fragments = [0x00, 0x80, 0, 0, 0, 0].repeat(10_000);
    let taken = (0..1_000).take_while(|_| socket.write_all(&fragments).is_ok()).count();
    assert!(taken < 1_000, "60 MB of fragments, and no end");
    assert_eq!(bench.tunnels.stats().received, 0);
}

#[test]
fn pages_and_modules_are_shown() {
    let bench = bench(&settings());
    let page = asked(&bench.gateway, "GET /play/ HTTP/1.1\r\nHOST\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("a page"), "{page}");
    assert!(page.contains("content-security-policy: default-src 'self'"), "{page}");
    let client = asked(&bench.gateway, "GET /play/client.js HTTP/1.1\r\nHOST\r\n\r\n");
    assert!(client.contains("text/javascript") && client.ends_with(throng_pages::CLIENT));
    let schema = asked(&bench.gateway, "GET /play/schema.js HTTP/1.1\r\nHOST\r\n\r\n");
    assert!(schema.ends_with("export const data = 1;"), "{schema}");
    let elsewhere = asked(&bench.gateway, "GET / HTTP/1.1\r\nHOST\r\n\r\n");
    assert!(elsewhere.contains("location: /play/"), "{elsewhere}");
    assert!(asked(&bench.gateway, "GET /metrics HTTP/1.1\r\nHOST\r\n\r\n").starts_with("HTTP/1.1 404"));
}

#[test]
fn a_token_is_for_this_servers_page() {
    let open = bench(&settings());
    let ask = |request: &str| asked(&open.gateway, request);
    let given = ask("POST /play/token HTTP/1.1\r\nHOST\r\nx-throng: play\r\ncontent-length: 0\r\n\r\n");
    assert!(given.starts_with("HTTP/1.1 200") && given.contains("\"web_socket\":\"/play/socket\""), "{given}");
    for refused in [
        "POST /play/token HTTP/1.1\r\nHOST\r\ncontent-length: 0\r\n\r\n",
        "POST /play/token HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\nx-throng: play\r\ncontent-length: 0\r\n\r\n",
    ] {
        let answer = ask(refused);
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }
    let closed = bench(&BrowserSettings { gives_tokens: false, ..settings() });
    let answer =
        asked(&closed.gateway, "POST /play/token HTTP/1.1\r\nHOST\r\nx-throng: play\r\ncontent-length: 0\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("gives_tokens"), "{answer}");
}

#[test]
fn a_page_of_another_server_opens_no_web_socket() {
    let bench = bench(&BrowserSettings { origins: vec!["https://login.example".into()], ..settings() });
    let host = bench.gateway.local_addr();
    for origin in [format!("http://{host}"), "https://login.example".to_owned()] {
        opened(connected(&bench.gateway), &format!("host: {host}\r\norigin: {origin}"));
    }
    let opened = bench.tunnels.stats().opened;
    for (headers, why) in [
        (format!("host: {host}\r\norigin: http://evil.example"), "pages of other servers do not play here"),
        ("host: evil.example\r\norigin: http://evil.example".to_owned(), "ask for this page by an address"),
    ] {
        let mut stream = connected(&bench.gateway);
        stream.write_all(request_of_web_socket(&headers).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403") && answer.contains(why), "{answer}");
    }
    let stats = bench.tunnels.stats();
    assert_eq!((stats.opened, stats.turned_away[Refusal::Page as usize]), (opened, 2));
}

#[test]
fn tokens_have_an_end_for_a_while() {
    let tokens = TokenGiver::new(ProtocolId(7), PrivateKey::new([1; 32]), vec!["127.0.0.1:1".parse().unwrap()]);
    let given = |from: &str| (0..1_000).filter(|_| tokens.give(from.parse().unwrap(), false).is_some()).count();
    let [one, of_its_network, other] = ["2001:db8::1", "2001:db8::2", "192.0.2.1"].map(given);
    assert!(
        (10..13).contains(&one) && of_its_network < 3 && (10..13).contains(&other),
        "{one} {of_its_network} {other}"
    );
    let rest = given("127.0.0.1");
    assert!((78..110).contains(&rest), "{rest}");
}

#[test]
fn beyond_loopback_there_is_tls_or_nothing() {
    let (udp, _) = UdpTransport::bind("127.0.0.1:0".parse().unwrap(), 1, 1 << 20, 1 << 20).unwrap();
    let (_transport, tunnels) = Tunnels::beside(udp, 8).unwrap();
    let pages = Pages { page: None, schema: String::new() };
    let start = |browser: &BrowserSettings| {
        Gateway::start(browser, &ServerSettings::default(), tunnels.clone(), pages.clone(), None)
            .err()
            .unwrap()
            .to_string()
    };
    let everywhere = BrowserSettings { address: Some("0.0.0.0:0".parse().unwrap()), ..settings() };
    let error = start(&everywhere);
    assert!(error.contains("certificate_file"), "{error}");
    let sessions = BrowserSettings { web_transport_address: Some("0.0.0.0:0".parse().unwrap()), ..settings() };
    let error = start(&sessions);
    assert!(error.starts_with("[browser] web_transport_address") && error.contains("certificate_file"), "{error}");
    let missing = BrowserSettings {
        certificate_file: Some("/nowhere/cert.pem".into()),
        certificate_key_file: Some("/nowhere/key.pem".into()),
        ..everywhere
    };
    let error = start(&missing);
    assert!(error.contains("certificate_file: /nowhere/cert.pem"), "{error}");
}
