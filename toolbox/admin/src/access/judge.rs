//! Judge: a request's bytes from the wire to its judgement, without a socket or a thread, for fuzzing.
//!
//! The bytes are read by the parser that the server reads them with, and judged by the same gate and the same console,
//! with two known keys. Whatever the bytes are, nobody without such a key in them may operate.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::http::{Request, request};
use throng_platform::clock::ManualClock;

use super::gate::{CONSOLE, Gate, needs};
use super::keys::AccessKeys;
use crate::console::Console;
use crate::origin_check::OwnNames;
use throng::console::Role;

/// A key of the role `observe` that [`judge_request_bytes`] takes.
pub const OBSERVE_KEY: &str = "0b5e7e0b5e7e0b5e7e0b5e7e0b5e7e0b5e7e0b5e7e0b5e7e0b5e7e0b5e7e0b5e";
/// A key of the role `operate` that it takes.
pub const OPERATE_KEY: &str = "09e7a7e09e7a7e09e7a7e09e7a7e09e7a7e09e7a7e09e7a7e09e7a7e09e7a7e0";

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// No whole HTTP request.
    NotHttp,
    /// Refused with this status.
    Refused(u16),
    /// Let through to its page.
    Admitted {
        /// What it needed; `None`: nothing, as `/health`.
        needs: Option<Role>,
        /// What the caller may.
        may: Option<Role>,
    },
}

/// Judges one request as a server does that listens on a loopback address, or on one that others reach.
#[doc(hidden)]
pub fn judge_request_bytes(bytes: &[u8], is_loopback: bool) -> Judged {
    let Some((head, body)) = parse(bytes) else { return Judged::NotHttp };
    let listens_on = if is_loopback { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
    let asked_from = IpAddr::from([192, 0, 2, 1]);
    let lines = format!("watcher observe {OBSERVE_KEY}\noperator operate {OPERATE_KEY}\n");
    let keys = AccessKeys::parse("keys", &lines).expect("two keys");
    let gate = Gate::new(
        SocketAddr::from((listens_on, 9100)),
        OwnNames::new(&["throng.example".to_owned()]),
        keys,
        Arc::new(ManualClock::new()),
    );
    let console = Console::new().with("packets", Role::Observe, "", "what is sent", |_| Ok(String::new())).with(
        "rules.reload",
        Role::Operate,
        "",
        "reads the rules again",
        |_| Ok(String::new()),
    );

    let path = head.uri.path();
    let role = match needs(&head.method, path) {
        // What is not text is refused by the page.
        Some(_) if path == CONSOLE => Some(console.role_of(&String::from_utf8_lossy(body))),
        other => other,
    };
    let admitted = gate.admit(asked_from, &head.method, path, &head.headers);
    let permitted = admitted.and_then(|caller| match role {
        Some(role) => gate.permit(&caller, role).map(|()| caller),
        None => Ok(caller),
    });
    match permitted {
        Ok(caller) => Judged::Admitted { needs: role, may: caller.may },
        Err(refusal) => Judged::Refused(refusal.cause.status().as_u16()),
    }
}

/// As many headers as the server's parser takes.
const HEADERS_MAX: usize = 100;

fn parse(bytes: &[u8]) -> Option<(request::Parts, &[u8])> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut read = httparse::Request::new(&mut headers);
    let head_bytes = match read.parse(bytes) {
        Ok(httparse::Status::Complete(head_bytes)) => head_bytes,
        _ => return None,
    };
    let mut request = Request::builder().method(read.method?).uri(read.path?);
    for header in read.headers.iter() {
        request = request.header(header.name, header.value);
    }
    let (parts, ()) = request.body(()).ok()?.into_parts();
    Some((parts, &bytes[head_bytes..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(head: &str, key: &str, body: &str, on_loopback: Judged, beyond: Judged) {
        let authorization = if key.is_empty() { String::new() } else { format!("Authorization: Bearer {key}\r\n") };
        let bytes = format!("{head} HTTP/1.1\r\nHost: 127.0.0.1\r\n{authorization}\r\n{body}");
        for (is_loopback, expect) in [(true, on_loopback), (false, beyond)] {
            let judged = judge_request_bytes(bytes.as_bytes(), is_loopback);
            assert_eq!(judged, expect, "loopback {is_loopback}: {bytes}");
        }
    }

    #[test]
    fn requests_are_judged_by_page_command_and_key() {
        use Judged::{Admitted, NotHttp, Refused};
        let (observe, operate) = (Some(Role::Observe), Some(Role::Operate));
        let health = Admitted { needs: None, may: None };
        check("GET /health", "", "", health, health);
        check("GET /health", "wrong", "", health, health);
        check("GET /", "", "", health, health);
        check("GET /viewer", "wrong", "", health, health);
        check("GET /metrics", "", "", Admitted { needs: observe, may: observe }, Refused(401));
        let (by_watcher, by_operator) =
            (Admitted { needs: observe, may: observe }, Admitted { needs: observe, may: operate });
        check("GET /metrics", OBSERVE_KEY, "", by_watcher, by_watcher);
        check("GET /metrics", "wrong", "", Refused(401), Refused(401));
        for stream in
            ["GET /api/watch", "GET /api/captures", "GET /api/captures/scope/a/1.capture", "GET /api/stories/a"]
        {
            check(stream, "", "", by_watcher, Refused(401));
            check(stream, "wrong", "", Refused(401), Refused(401));
        }
        check("GET /later/page", OPERATE_KEY, "", by_operator, by_operator);
        check("GET /later/page", "", "", by_watcher, Refused(401));
        check("POST /console", "", "packets", by_watcher, Refused(401));
        check("POST /console", "", "nonsense", by_watcher, Refused(401));
        check("POST /console", OBSERVE_KEY, "rules.reload", Refused(403), Refused(403));
        let operated = Admitted { needs: operate, may: operate };
        for (head, body) in
            [("POST /console", " rules.reload --json"), ("POST /capture", ""), ("DELETE /later", ""), ("POST /", "")]
        {
            check(head, "", body, Refused(401), Refused(401));
            check(head, OBSERVE_KEY, body, Refused(403), Refused(403));
            check(head, OPERATE_KEY, body, operated, operated);
        }
        let judge = |text: &str| judge_request_bytes(text.as_bytes(), true);
        assert_eq!(judge("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"), NotHttp, "without its end");
        assert_eq!(judge("\u{0}"), NotHttp);
        assert_eq!(judge("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n"), Refused(403));
        let two =
            format!("GET /metrics HTTP/1.1\r\nAuthorization: Bearer {OPERATE_KEY}\r\nAuthorization: Bearer x\r\n\r\n");
        assert_eq!(judge(&two), Refused(401), "whichever of them is believed");
    }
}
