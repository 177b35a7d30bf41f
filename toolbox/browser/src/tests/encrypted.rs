//! What other hosts can reach is TLS with the operator's certificate: pages, tokens, WebSockets and WebTransport.

use axum::body::Bytes;
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use rcgen::{CertificateParams, KeyPair};
use tokio_rustls::rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto::aws_lc_rs, pki_types::CertificateDer,
};
use web_transport_quinn::quinn::{self, Endpoint, crypto::rustls::QuicClientConfig};
use web_transport_quinn::{Client, proto::ConnectRequest};

use super::*;

/// The name that the certificate is for. It leads to this host.
const NAME: &str = "localhost";

/// A certificate, as an operator has it: two files.
struct Files {
    folder: std::path::PathBuf,
    certificate: CertificateDer<'static>,
}

impl Files {
    fn write(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("throng-browser-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![NAME.to_owned()]).unwrap().self_signed(&key).unwrap();
        let write = |file, kind, bytes: &[u8]| {
            let text = format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", BASE64.encode(bytes));
            std::fs::write(folder.join(file), text).unwrap();
        };
        write("cert.pem", "CERTIFICATE", certificate.der());
        write("key.pem", "PRIVATE KEY", &key.serialize_der());
        Self { certificate: certificate.der().clone(), folder }
    }

    fn settings(&self) -> BrowserSettings {
        let everywhere = Some("0.0.0.0:0".parse().unwrap());
        BrowserSettings {
            address: everywhere,
            web_transport_address: everywhere,
            certificate_file: Some(self.folder.join("cert.pem")),
            certificate_key_file: Some(self.folder.join("key.pem")),
            ..settings()
        }
    }

    /// Knows this certificate as an authority's, and no other.
    fn client(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }

    fn stream(&self, gateway: &Gateway) -> StreamOwned<ClientConnection, TcpStream> {
        let session = ClientConnection::new(Arc::new(self.client()), NAME.try_into().unwrap()).unwrap();
        StreamOwned::new(session, connected(gateway))
    }

    /// For WebTransport; within a runtime.
    fn quic(&self) -> Client {
        let mut tls = self.client();
        tls.alpn_protocols = vec![web_transport_quinn::ALPN.into()];
        let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        Client::new(Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap(), config)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Asks once, and reads to the end.
fn asked(files: &Files, gateway: &Gateway, request: &str) -> String {
    let mut stream = files.stream(gateway);
    stream
        .write_all(request.replace("HOST", &format!("host: {NAME}:{}", gateway.local_addr().port())).as_bytes())
        .unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn pages_and_tokens_are_encrypted_with_the_named_certificate() {
    let files = Files::write("pages");
    let Bench { gateway, tunnels, .. } = &bench(&files.settings());
    assert!(gateway.url().starts_with(&format!("https://{NAME}:")), "{}", gateway.url());
    let page = asked(&files, gateway, "GET /play/ HTTP/1.1\r\nHOST\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200") && page.ends_with("a page"), "{page}");
    // The certificate knows the name, so any name that a browser got so far with is one of ours.
    let token = "POST /play/token HTTP/1.1\r\nhost: game.example:1\r\nx-throng: play\r\ncontent-length: 0\r\n\r\n";
    let given = asked(&files, gateway, token);
    assert!(given.contains("\"certificate_hash\":null") && given.contains("\"https://game.example:"), "{given}");

    let stranger = Files::write("pages-of-a-stranger");
    let refused = stranger.stream(gateway).write_all(b"GET /play/ HTTP/1.1\r\n\r\n").unwrap_err().to_string();
    assert!(refused.contains("certificate"), "{refused}");
    let mut plain = connected(gateway);
    plain.write_all(b"GET /play/ HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&answer));
    until("both are counted", || tunnels.stats().turned_away[Refusal::Handshake as usize] == 2);
}

#[test]
fn datagrams_go_through_an_encrypted_web_socket_both_ways() {
    let files = Files::write("socket");
    let mut bench = bench(&files.settings());
    let host = format!("{NAME}:{}", bench.gateway.local_addr().port());
    let mut socket = opened(files.stream(&bench.gateway), &format!("host: {host}\r\norigin: https://{host}"));
    socket.write_all(&frame(b"hello")).unwrap();
    let (from, datagram) = bench.received(1).remove(0);
    assert_eq!(datagram, b"hello");
    let mut sender = bench.transport.sender(0);
    sender.buffer()[..4].copy_from_slice(b"back");
    sender.commit(from, 4);
    assert_eq!(sender.flush().sent, 1);
    let mut answer = [0; 6];
    socket.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"\x82\x04back");
    drop(socket);
    until("the tunnel of a browser that is gone is closed", || bench.tunnels.stats().open == 0);
}

#[test]
fn sessions_are_known_by_the_named_certificate() {
    let files = Files::write("session");
    let mut bench = bench(&files.settings());
    let token = "POST /play/token HTTP/1.1\r\nHOST\r\nx-throng: play\r\ncontent-length: 0\r\n\r\n";
    let answer = asked(&files, &bench.gateway, token);
    let told: serde_json::Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let url: url::Url = told["web_transport"]["url"].as_str().expect("a place").parse().unwrap();
    assert_eq!((url.host_str(), &told["web_transport"]["certificate_hash"]), (Some(NAME), &serde_json::Value::Null));
    let page = format!("https://{NAME}:{}", bench.gateway.local_addr().port()).parse().unwrap();
    let ours = ConnectRequest::new(url.clone()).with_header(axum::http::header::ORIGIN, page);
    sessions::within(async {
        let session = files.quic().connect(ours).await.expect("a session");
        session.send_datagram(Bytes::from_static(b"hello")).unwrap();
        let mut received = Vec::new();
        while received.is_empty() {
            bench.transport.receive(&mut |from, datagram| received.push((from, datagram.to_vec())), 64);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(received[0].1, b"hello");
        let mut sender = bench.transport.sender(0);
        sender.buffer()[..4].copy_from_slice(b"back");
        sender.commit(received[0].0, 4);
        assert_eq!(sender.flush().sent, 1);
        assert_eq!(session.read_datagram().await.unwrap(), "back");

        let stranger = Files::write("session-of-a-stranger");
        assert!(stranger.quic().connect(ConnectRequest::new(url)).await.is_err(), "another certificate");
    });
}
