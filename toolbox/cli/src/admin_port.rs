//! One request to the admin port of a running server, as the commands need it that talk to one.
//!
//! HTTP/1.1 with one request per connection needs no library. What answers may be any program on any port: its answer
//! is bounded in bytes and time, and nothing of it is believed to be harmless to a terminal.
//!
//! Each request shows the key that the user gave, or the one that a server on this host has left for its own user. Such
//! a key is good for that server only, for as long as it runs: whoever has taken its port since learns nothing from it.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    path::PathBuf,
    time::Duration,
};

use clap::Args;
use throng::settings::SecretKey;
use throng_admin::access::{ADMIN_KEY_VARIABLE, local_key, read_key, secret_of};
use throng_capture::story::printable_text;

/// For connecting, and for each step of the talk. Saving a capture takes a server a second or two.
const TIMEOUT: Duration = Duration::from_secs(10);
/// A packet report of a thousand worlds has some 2 MB; a stranger on that port may send more.
const ANSWER_BYTES_MAX: u64 = 16 << 20;

/// Which key a command shows.
#[derive(Args)]
pub struct ShownKeyArguments {
    /// A file with the key to show: a line of the server's file of keys, or the key alone. Without it THRONG_ADMIN_KEY;
    /// without that the key that a server on this host has left for the user who runs it.
    #[arg(long, value_name = "FILE")]
    admin_key_file: Option<PathBuf>,
}

impl ShownKeyArguments {
    pub fn key(&self) -> Result<ShownKey, String> {
        if let Some(path) = &self.admin_key_file {
            return read_key(path).map(ShownKey::Given).map_err(|error| error.to_string());
        }
        let Ok(text) = std::env::var(ADMIN_KEY_VARIABLE) else { return Ok(ShownKey::Local) };
        let wrong = |reason| format!("environment variable {ADMIN_KEY_VARIABLE}: {reason}");
        secret_of(&text).map(ShownKey::Given).map_err(wrong)
    }
}

/// The key that requests show.
pub enum ShownKey {
    /// The user's choice, for whichever server is asked.
    Given(SecretKey),
    /// What the server that is asked has left here, if it runs on this host.
    Local,
}

/// Sends `body` to `/purpose`; returns status and body of the answer. An error says what to do, and begins with
/// `server`.
pub fn post(server: &str, key: &ShownKey, purpose: &str, body: &str) -> Result<(u16, Vec<u8>), String> {
    request(server, key, purpose, body).map_err(|error| format!("{server}: {}", explained(&error)))
}

/// Asks for `path`; returns the status, and the answer's body as it comes, each piece of it within `silence_max`. As the
/// version of HTTP that it asks in has no chunks, the body is the server's own bytes.
pub fn open(
    server: &str,
    key: &ShownKey,
    path: &str,
    silence_max: Duration,
) -> Result<(u16, BufReader<TcpStream>), String> {
    open_stream(server, key, path, silence_max).map_err(|error| format!("{server}: {}", explained(&error)))
}

fn open_stream(
    server: &str,
    key: &ShownKey,
    path: &str,
    silence_max: Duration,
) -> io::Result<(u16, BufReader<TcpStream>)> {
    let mut stream = connect(server)?;
    stream.set_read_timeout(Some(silence_max))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let authorization = authorization_line(&stream, key)?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {server}\r\n{authorization}\r\n")?;
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        let left = (HEAD_BYTES_MAX - head.len() as u64).min(HEAD_BYTES_MAX);
        if left == 0 || (&mut reader).take(left).read_line(&mut head)? == 0 {
            return Err(not_http());
        }
    }
    Ok((status_of(&head).ok_or_else(not_http)?, reader))
}

/// What an answer says that is an error, in the port's own words.
pub fn error_in(answer: &mut impl Read) -> Option<String> {
    let mut body = Vec::new();
    answer.take(HEAD_BYTES_MAX).read_to_end(&mut body).ok()?;
    let object: serde_json::Value = serde_json::from_slice(&body).ok()?;
    Some(printable_text(object["error"].as_str()?))
}

/// The error for an answer that no admin port gives; `request` is such as `POST /console`.
pub fn strange_answer(server: &str, status: u16, request: &str) -> String {
    format!(
        "{server} answered {status} to {request}, not as the admin port of a throng server does; see `admin_address` in its \
         settings"
    )
}

/// Of an answer, or of an error's words.
const HEAD_BYTES_MAX: u64 = 16 << 10;

fn not_http() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP; is this the admin port?")
}

fn status_of(head: &str) -> Option<u16> {
    head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.get(..3)?.parse().ok()
}

fn explained(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => format!("no answer within {} s", TIMEOUT.as_secs()),
        io::ErrorKind::InvalidInput => format!("{error}; give HOST:PORT, such as 127.0.0.1:9100"),
        io::ErrorKind::ConnectionRefused => {
            format!("{error}; is this the admin port of a server that runs? See `admin_address` in its settings")
        }
        _ => error.to_string(),
    }
}

fn request(server: &str, key: &ShownKey, purpose: &str, body: &str) -> io::Result<(u16, Vec<u8>)> {
    let mut stream = connect(server)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let authorization = authorization_line(&stream, key)?;
    // The header keeps web pages out: a browser asks before it sends one to another site.
    let head = format!(
        "POST /{purpose} HTTP/1.1\r\nHost: {server}\r\nx-throng: {purpose}\r\n{authorization}\
         Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    let head_bytes = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").ok_or_else(not_http)?;
    let status = std::str::from_utf8(&answer[..head_bytes]).ok().and_then(status_of).ok_or_else(not_http)?;
    Ok((status, answer.split_off(head_bytes + 4)))
}

/// The header that shows the key; empty without one.
fn authorization_line(stream: &TcpStream, key: &ShownKey) -> io::Result<String> {
    let key = authorization(stream, key)?;
    Ok(key.map_or_else(String::new, |key| format!("Authorization: Bearer {}\r\n", key.to_hex())))
}

fn authorization(stream: &TcpStream, key: &ShownKey) -> io::Result<Option<SecretKey>> {
    match key {
        ShownKey::Given(key) => Ok(Some(key.clone())),
        ShownKey::Local => {
            let server = stream.peer_addr()?;
            let left = if server.ip().is_loopback() { local_key::find(server) } else { None };
            left.transpose().map_err(io::Error::other)
        }
    }
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
