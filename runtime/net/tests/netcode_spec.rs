//! Promise: the bytes shown in `docs/spec/netcode.md` are the bytes we send.

#[path = "handshake_abuse/scene.rs"]
#[allow(dead_code)]
mod scene;

use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use scene::*;
use throng_net::protocol::{
    DenialReason, HandshakeFailure, HandshakeState, JournalError, QueueState, Recorded, Reply, ServerHandshake,
    TokenJournal, UsedToken,
};
use throng_platform::time::Nanos;

const NOW: Nanos = Nanos::from_secs(1);

struct KeepInMemory(Arc<Mutex<Vec<u8>>>);

impl TokenJournal for KeepInMemory {
    fn record(&mut self, used: &UsedToken) -> Result<Recorded, JournalError> {
        self.0.lock().unwrap().extend_from_slice(&used.to_bytes());
        Ok(Recorded::Now)
    }
}

/// One handshake with fixed seeds, and a word each way: the named packets of it.
fn packets() -> Vec<(&'static str, Vec<u8>)> {
    let records = Arc::new(Mutex::new(Vec::new()));
    let journal = Box::new(KeepInMemory(records.clone()));
    let mut server_handshake = opened(ServerHandshake::with_journal(settings(), wide_seed(1), [], journal));
    let mut walker = Walker::new(token(1, 1), client_address(1), true, NOW, 1);
    let (mut said, mut heard, mut reply) = (Vec::new(), Vec::new(), Reply::new());
    // Hello, request, response, and a response again while it waits.
    for step in 0..4 {
        let now = NOW + Nanos::from_millis(300 * step);
        let datagram = walker.says(now).expect("a step is due");
        said.push(datagram.clone());
        server_handshake.handle(walker.address, &mut datagram.clone(), &mut reply);
        heard.push(reply.bytes().to_vec());
        walker.hears(now, &reply);
    }
    assert_eq!(walker.handshake.queue(), Some(QueueState::InLine { place: 1, length: 1 }));
    let mut server_link = server_handshake.admit_next(&mut reply).expect("its turn").link;
    heard.push(reply.bytes().to_vec());
    walker.hears(NOW, &reply);
    let mut client_link = walker.handshake.into_link();
    let mut out = [0; 1400];
    let len = client_link.seal_payload(b"throng", &mut out, NOW);
    let payload = out[..len].to_vec();
    let len = server_link.seal_disconnect(&mut out, NOW);
    let record = records.lock().unwrap().clone();
    let mut second = Walker::new(token(1, 2), client_address(2), true, NOW, 2);
    for _ in 0..3 {
        server_handshake.handle(second.address, &mut second.says(NOW).expect("a step is due"), &mut reply);
        second.hears(NOW, &reply);
    }
    assert!(server_handshake.admit_next(&mut reply).is_none(), "its earlier session is there");
    second.hears(NOW, &reply);
    let reason = HandshakeFailure::Denied(DenialReason::AlreadyConnected);
    assert_eq!(second.handshake.state(), HandshakeState::Failed(reason));
    let denied = reply.bytes().to_vec();
    vec![
        ("hello", said[0][..30].to_vec()),
        ("cookie", heard[0].clone()),
        ("queued", heard[3].clone()),
        ("keep-alive", heard[4].clone()),
        ("denied", denied),
        ("payload", payload),
        ("disconnect", out[..len].to_vec()),
        ("record", record),
    ]
}

fn hex_block(name: &str, bytes: &[u8]) -> String {
    let mut block = format!("```hex {name}\n");
    for line in bytes.chunks(16) {
        let numbers: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(block, "{}", numbers.join(" ")).expect("into memory");
    }
    block + "```\n"
}

#[test]
fn the_page_shows_the_bytes_we_send() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spec/netcode.md");
    let page = std::fs::read_to_string(&path).expect("the page of the spec");
    let mut expect = page.clone();
    for (name, bytes) in packets() {
        let begin = expect.find(&format!("```hex {name}\n")).unwrap_or_else(|| panic!("no example of {name}"));
        let fence = expect[begin + 3..].find("```\n").expect("a closed example") + begin + 3;
        expect.replace_range(begin..fence + 4, &hex_block(name, &bytes));
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &expect).expect("the page is writable");
        return;
    }
    assert_eq!(page, expect, "run the test with UPDATE_EXPECT=1 and read the diff");
}
