//! One GET of a page of metrics. What answers may be any program: its answer is bounded in bytes and time.
//!
//! HTTP/1.0, so that the answer ends with the connection and needs no library; chunks are read all the same, since some
//! servers send them whatever is asked for.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// For the whole of it: a server on a full host answers late.
const TIMEOUT: Duration = Duration::from_secs(5);
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("{0:?} is no address of a page; write http://HOST:PORT/PATH (without TLS)")]
    Url(String),
    #[error("{url}: {cause}")]
    Io { url: String, cause: io::Error },
    #[error("{url} answered {status}{}", advice(*status))]
    Status { url: String, status: u16 },
    #[error("{url} does not answer in HTTP")]
    NotHttp { url: String },
}

fn advice(status: u16) -> &'static str {
    match status {
        401 | 403 => "; the page must be open to this host",
        404 => "; is the path right?",
        _ => "",
    }
}

/// Fetches the page at `http://HOST[:PORT][/PATH]`.
pub(crate) fn get(url: &str) -> Result<String, HttpError> {
    get_within(url, TIMEOUT)
}

fn get_within(url: &str, within: Duration) -> Result<String, HttpError> {
    let (host, path) = parts(url)?;
    let bytes =
        talk(host, path, Instant::now() + within).map_err(|cause| HttpError::Io { url: url.to_owned(), cause })?;
    let (status, body) = read_answer(&bytes).ok_or_else(|| HttpError::NotHttp { url: url.to_owned() })?;
    if status != 200 {
        return Err(HttpError::Status { url: url.to_owned(), status });
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Host with port, and path.
pub(crate) fn parts(url: &str) -> Result<(&str, &str), HttpError> {
    let wrong = || HttpError::Url(url.to_owned());
    let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let has_port = host.rsplit_once(':').is_some_and(|(name, port)| !name.is_empty() && !port.is_empty());
    let is_clean = !url.contains(|letter: char| letter.is_whitespace() || letter.is_control());
    if has_port && is_clean { Ok((host, if path.is_empty() { "/" } else { path })) } else { Err(wrong()) }
}

fn talk(host: &str, path: &str, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut stream = connect(host, deadline)?;
    stream.set_write_timeout(Some(left_until(deadline)?))?;
    let request = format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nAccept: text/plain\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    UntilDeadline { stream, deadline }.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(answer)
}

/// Reads until a deadline: one that sends a byte now and then does not get more time for each.
struct UntilDeadline {
    stream: TcpStream,
    deadline: Instant,
}

impl Read for UntilDeadline {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(left_until(self.deadline)?))?;
        self.stream.read(bytes)
    }
}

fn left_until(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn connect(host: &str, deadline: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no address");
    for address in host.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left_until(deadline)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Status and body.
fn read_answer(bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
    let head_bytes = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&bytes[..head_bytes]).ok()?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.get(..3)?.parse().ok()?;
    let body = &bytes[head_bytes + 4..];
    let is_chunked = head
        .to_ascii_lowercase()
        .lines()
        .any(|line| line.strip_prefix("transfer-encoding:").is_some_and(|coding| coding.trim() == "chunked"));
    Some((status, if is_chunked { without_chunks(body) } else { body.to_vec() }))
}

/// Chunks `SIZE[;...]\r\nBYTES\r\n`, the last of size 0. What is cut off ends it.
fn without_chunks(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(line_bytes) = rest.windows(2).position(|two| two == b"\r\n") {
        let line = String::from_utf8_lossy(&rest[..line_bytes]);
        let size = usize::from_str_radix(line.split(';').next().unwrap_or_default().trim(), 16).unwrap_or(0);
        rest = &rest[line_bytes + 2..];
        if size == 0 {
            break;
        }
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        rest = rest.get(size.saturating_add(2)..).unwrap_or_default();
    }
    body
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        assert_eq!(parts("http://127.0.0.1:9100/metrics").unwrap(), ("127.0.0.1:9100", "/metrics"));
        assert_eq!(parts("http://[::1]:9100").unwrap(), ("[::1]:9100", "/"));
        for wrong in ["127.0.0.1:9100", "https://host:1/", "http://host/metrics", "http://:1/", "http://a:1/b c"] {
            assert!(parts(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn answers_are_read_whole_and_in_chunks() {
        let read =
            |text: &str| read_answer(text.as_bytes()).map(|(status, body)| (status, String::from_utf8(body).unwrap()));
        assert_eq!(read("HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody"), Some((200, "body".to_owned())));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(read(&format!("{chunked}3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n")), Some((200, "abcde".to_owned())));
        assert_eq!(read(&format!("{chunked}ffff\r\nab")), Some((200, "ab".to_owned())), "cut off");
        assert_eq!(read("SSH-2.0\r\n\r\n"), None);
        assert_eq!(read("HTTP/1.1"), None);
    }

    #[test]
    fn a_page_is_fetched_and_a_refusal_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            for answer in ["HTTP/1.0 200 OK\r\n\r\na 1\n", "HTTP/1.0 401 No\r\n\r\n"] {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.extend(byte);
                }
                assert!(head.starts_with(b"GET /metrics HTTP/1.0\r\n"));
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        let url = format!("http://{address}/metrics");
        assert_eq!(get(&url).unwrap(), "a 1\n");
        assert!(get(&url).unwrap_err().to_string().contains("401; the page must be open"));
        server.join().unwrap();
        assert!(matches!(get(&url), Err(HttpError::Io { .. })), "nobody listens any more");
    }

    #[test]
    fn who_goes_on_answering_is_left_in_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // Until nobody listens any more.
            while stream.write_all(b"a").is_ok() {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        let error = get_within(&url, Duration::from_millis(200)).unwrap_err();
        assert!(matches!(error, HttpError::Io { .. }), "{error}");
        server.join().unwrap();
    }
}
