//! `throng capture save`: one request to the admin port of a running server.

use std::{
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::Duration,
};

use clap::Args;
use serde::Deserialize;
use throng_capture::story::printable_text;

use crate::{CommandResult, Verdict};

/// For connecting, and for each step of the talk. Saving takes the server a second or two.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The answer is one small JSON object; a stranger on that port may send more.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

#[derive(Args)]
pub struct SaveArguments {
    /// The server's admin port, HOST:PORT.
    #[arg(long, value_name = "HOST:PORT")]
    connect: String,
    /// Why: kept in the capture.
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What the server says.
#[derive(Deserialize)]
struct Answer {
    path: Option<String>,
    bytes: Option<u64>,
    error: Option<String>,
}

pub fn run(arguments: &SaveArguments) -> CommandResult {
    let server = &arguments.connect;
    let (status, body) =
        request(server, &arguments.note).map_err(|error| format!("--connect {server}: {}", explained(&error)))?;
    let answer: Option<Answer> = serde_json::from_slice(&body).ok();
    match answer {
        Some(Answer { path: Some(path), bytes, .. }) if status == 200 => {
            if arguments.json {
                println!("{}", serde_json::json!({ "path": path, "bytes": bytes }));
            } else {
                println!("{} ({} bytes, on the server's host)", printable_text(&path), bytes.unwrap_or(0));
            }
            Ok(Verdict::Fine)
        }
        Some(Answer { error: Some(error), .. }) => Err(format!("{server} did not save: {}", printable_text(&error)).into()),
        _ => Err(format!(
            "{server} answered {status} to POST /capture, not as the admin port of a throng server with a recorder does; \
             see `admin_address` in its settings"
        )
        .into()),
    }
}

fn explained(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!("no answer within {} s", TIMEOUT.as_secs()),
        io::ErrorKind::InvalidInput => format!("{error}; give HOST:PORT, such as 127.0.0.1:9100"),
        _ => error.to_string(),
    }
}

/// Status and body of the answer. HTTP/1.1 with one request per connection needs no library.
fn request(server: &str, note: &str) -> io::Result<(u16, Vec<u8>)> {
    let mut stream = connect(server)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    // The header keeps web pages out: a browser asks before it sends one to another site. The body is the note.
    let head = format!(
        "POST /capture HTTP/1.1\r\nHost: {server}\r\nx-throng: capture\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        note.len()
    );
    stream.write_all(&[head.as_bytes(), note.as_bytes()].concat())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    let not_http = || io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP; is this the admin port?");
    let head_bytes = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or_else(not_http)?;
    let status = std::str::from_utf8(&answer[..head_bytes])
        .ok()
        .and_then(|head| head.strip_prefix("HTTP/1."))
        .and_then(|head| head.split(' ').nth(1)?.get(..3)?.parse().ok())
        .ok_or_else(not_http)?;
    Ok((status, answer.split_off(head_bytes + 4)))
}

fn connect(server: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no address");
    for address in server.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
