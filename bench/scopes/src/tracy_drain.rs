//! As much of a Tracy server as it takes to make a client send: the handshake of protocol 82, then everything is thrown
//! away.
//!
//! ```text
//!  server: "TracyPrf"  protocol (u32)
//!  client: status (u8, 1 = welcome)  welcome message  frames of compressed events, without end
//! ```
//!
//! It asks no questions, as a real one does for the names of what it sees, so the client's own thread has a little less
//! to do.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// The environment variable by which Tracy's client is told where to listen.
pub(crate) const PORT_VARIABLE: &str = "TRACY_PORT";

/// Of tracy-client 0.19.
const PROTOCOL: u32 = 82;
const WELCOME: u8 = 1;

/// The client listens soon after its start.
const TRIES: u32 = 100;
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// A port that nobody listens on at the moment.
pub(crate) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Connects to the client in this very process; a thread reads what it sends from then on.
pub(crate) fn connect() -> io::Result<()> {
    let port = std::env::var(PORT_VARIABLE).ok().and_then(|port| port.parse().ok());
    let port: u16 = port.ok_or_else(|| io::Error::other("TRACY_PORT says no port"))?;
    let mut stream = patiently(|| TcpStream::connect((Ipv4Addr::LOCALHOST, port)))?;
    stream.write_all(b"TracyPrf")?;
    stream.write_all(&PROTOCOL.to_le_bytes())?;
    let mut status = [0];
    stream.read_exact(&mut status)?;
    if status[0] != WELCOME {
        return Err(io::Error::other(format!(
            "Tracy's client answers {}: another protocol than {PROTOCOL}",
            status[0]
        )));
    }
    thread::spawn(move || io::copy(&mut stream, &mut io::sink()));
    Ok(())
}

fn patiently<T>(mut action: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..TRIES {
        if let Ok(done) = action() {
            return Ok(done);
        }
        thread::sleep(TRY_AGAIN);
    }
    action()
}
