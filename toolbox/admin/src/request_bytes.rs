//! Requests as bytes: what the port's own code makes of one, for the fuzz target `admin`.
//!
//! The listener has axum read the bytes. What is ours begins behind that: the judgement of the headers and the line for
//! the console. Here both are reached without a socket and without a clock. Servers do not call this.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::console::{Console, Outcome};
use crate::origin_check::OwnNames;
use crate::{counter_table, packet_table};

const PACKETS: &str = r#"[{"kind":"pose","cause":"change","world":"hub 0","packets_per_s":20.0,"bytes_per_s":700.0}]"#;
const COUNTERS: &str =
    r#"[{"name":"net.packets_in","value":7,"per_s":2.0,"unit":"packets","help":"Datagrams received."}]"#;

/// Judges a request to a port that goes by the name `metrics.example`: the head's lines, an empty line, and as the body
/// a line for the console, which is carried out when nothing speaks against it. The error is what the client is told.
pub fn judge_request_bytes(bytes: &[u8]) -> Outcome {
    let mark = b"\r\n\r\n";
    let head_len = bytes.windows(mark.len()).position(|window| window == mark).ok_or("the head has no end")?;
    let headers = headers_in(&bytes[..head_len]).ok_or("a header cannot be read")?;
    OwnNames::new(&["metrics.example".to_owned()]).refuse(&headers)?;
    let line = std::str::from_utf8(&bytes[head_len + mark.len()..]).map_err(|_| "the body is no text")?;
    let console = Console::new()
        .with("packets", packet_table::ARGUMENTS, packet_table::HELP, |call| packet_table::command(call, PACKETS))
        .with("counters", counter_table::ARGUMENTS, counter_table::HELP, |call| counter_table::command(call, COUNTERS));
    console.execute(line)
}

/// Those below the first line.
fn headers_in(head: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for line in head.split(|&byte| byte == b'\n').skip(1) {
        let colon = line.iter().position(|&byte| byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        headers.try_append(name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?).ok()?;
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(head: &str, line: &str, expect: Result<&str, &str>) {
        let request = format!("POST /console HTTP/1.1\r\n{head}\r\n\r\n{line}");
        let outcome = judge_request_bytes(request.as_bytes());
        match (&outcome, expect) {
            (Ok(said), Ok(part)) | (Err(said), Err(part)) => assert!(said.contains(part), "{said}"),
            _ => panic!("{outcome:?} and not {expect:?}"),
        }
    }

    #[test]
    fn a_request_reaches_the_console_only_past_the_origin_check() {
        check("Host: 127.0.0.1:9100", "packets", Ok("pose"));
        check("Host: 127.0.0.1:9100", "counters net. --json", Ok("net.packets_in"));
        check("Host: 127.0.0.1:9100", "exit", Err("no command is called `exit`"));
        check("Host: evil.example", "packets", Err("does not go by the name"));
        check("Host: localhost\r\nOrigin: http://evil.example", "packets", Err("pages of other servers"));
        check("Host", "packets", Err("a header cannot be read"));
        assert!(judge_request_bytes(b"GET / HTTP/1.1\r\n").is_err());
    }
}
