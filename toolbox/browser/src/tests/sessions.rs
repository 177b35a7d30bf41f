//! WebTransport, asked as a browser asks, and by those who mean no good.

use std::future::Future;

use axum::body::Bytes;
use axum::http::{HeaderValue, header};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use throng_net::protocol::PACKET_BYTES_MAX;
use tokio::time::timeout;
use tokio_rustls::rustls::{
    self, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use web_transport_quinn::quinn::crypto::rustls::QuicClientConfig;
use web_transport_quinn::quinn::{ClientConfig, Connection, Endpoint, VarInt};
use web_transport_quinn::{ClientBuilder, Session, proto::ConnectRequest};

use super::*;

/// Above all that the gateway waits for.
const LONG: Duration = Duration::from_secs(20);

/// What a page is told.
struct Place {
    url: url::Url,
    hash: Vec<u8>,
}

fn with_sessions(browser: BrowserSettings) -> (Bench, Place) {
    let bench = bench(&BrowserSettings { web_transport_address: Some("127.0.0.1:0".parse().unwrap()), ..browser });
    let request = "POST /play/token HTTP/1.1\r\nHOST\r\nx-throng: play\r\ncontent-length: 0\r\n\r\n";
    let answer = asked(&bench.gateway, request);
    let body = answer.split("\r\n\r\n").nth(1).unwrap();
    let told: serde_json::Value = serde_json::from_str(body).unwrap();
    let said = |key: &str| told["web_transport"][key].as_str().unwrap_or_else(|| panic!("{key}: {body}")).to_owned();
    let place = Place { url: said("url").parse().unwrap(), hash: BASE64.decode(said("certificate_hash")).unwrap() };
    (bench, place)
}

/// On a runtime of its own, as a browser is a process of its own.
pub(super) fn within<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { timeout(LONG, what).await.expect("it ends within 20 s") })
}

async fn session(place: &Place) -> Session {
    let client = ClientBuilder::new().with_server_certificate_hashes(vec![place.hash.clone()]).unwrap();
    client.connect(place.url.clone()).await.expect("a session")
}

/// A connection without the rest of HTTP/3.
async fn connection(place: &Place) -> (Endpoint, Connection) {
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybodys))
        .with_no_client_auth();
    tls.alpn_protocols = vec![web_transport_quinn::ALPN.into()];
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let address = place.url.socket_addrs(|| None).unwrap()[0];
    let connection = endpoint.connect_with(config, address, "127.0.0.1").unwrap().await.unwrap();
    (endpoint, connection)
}

/// Takes any certificate: a stranger does not mind.
#[derive(Debug)]
struct Anybodys;

impl ServerCertVerifier for Anybodys {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        unreachable!("QUIC has TLS 1.3")
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

#[test]
fn datagrams_of_sessions_go_both_ways_whatever_their_length() {
    let (mut bench, place) = with_sessions(settings());
    within(async {
        let session = session(&place).await;
        session.send_datagram(Bytes::from_static(b"hello")).unwrap();
        // Longer than QUIC's datagrams are at first, as the packet with a token may be.
        let long = vec![7; PACKET_BYTES_MAX];
        let mut stream = session.open_uni().await.unwrap();
        stream.write_all(&long).await.unwrap();
        stream.finish().unwrap();
        // Both came, in whatever order.
        let mut received = Vec::new();
        while received.len() < 2 {
            bench.transport.receive(&mut |from, datagram| received.push((from, datagram.to_vec())), 64);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        received.sort_by_key(|(_, datagram)| datagram.len());
        let to = received[0].0;
        assert_eq!(received, [(to, b"hello".to_vec()), (to, long.clone())]);

        let mut sender = bench.transport.sender(0);
        for datagram in [b"back".to_vec(), long.clone()] {
            sender.buffer()[..datagram.len()].copy_from_slice(&datagram);
            sender.commit(to, datagram.len());
        }
        assert_eq!(sender.flush().sent, 2);
        assert_eq!(session.read_datagram().await.unwrap(), "back");
        // As a datagram, once QUIC has found out how long these may be.
        let packet = tokio::select! {
            packet = session.read_datagram() => packet.unwrap().to_vec(),
            stream = session.accept_uni() => stream.unwrap().read_to_end(PACKET_BYTES_MAX).await.unwrap(),
        };
        assert_eq!(packet, long);
        session.close(0, b"");
    });
    until("the tunnel of a browser that is gone is closed", || bench.tunnels.stats().open == 0);
}

#[test]
fn who_breaks_the_rules_is_closed_and_others_play_on() {
    let (mut bench, place) = with_sessions(settings());
    within(async {
        let honest = session(&place).await;
        // Bytes that are no HTTP/3, in streams of every kind, and datagrams of no session.
        for noise in [&[0xFF; 300][..], &[0x00, 0x04, 0xFF, 0xFF, 0xFF, 0xFF], &[0x00, 0x04, 0x02, 0xC0], &[]] {
            let (_endpoint, hostile) = connection(&place).await;
            let _ = hostile.send_datagram(Bytes::copy_from_slice(noise));
            if let Ok(mut stream) = hostile.open_uni().await {
                let _ = stream.write_all(noise).await;
                let _ = stream.finish();
            }
            if let Ok((mut stream, _)) = hostile.open_bi().await {
                let _ = stream.write_all(noise).await;
                let _ = stream.finish();
            }
            hostile.closed().await;
        }
        // A session for another path.
        let client = ClientBuilder::new().with_server_certificate_hashes(vec![place.hash.clone()]).unwrap();
        assert!(client.connect(place.url.join("/elsewhere").unwrap()).await.is_err());
        // Streams that are no packets, without an end.
        let flood = session(&place).await;
        while let Ok(mut stream) = flood.open_uni().await {
            let _ = stream.write_all(&[0; PACKET_BYTES_MAX + 1]).await;
            let _ = stream.finish();
        }
        // Datagrams far above what one may send.
        let flood = session(&place).await;
        while flood.send_datagram(Bytes::from_static(&[1; 900])).is_ok() {
            tokio::task::yield_now().await;
        }
        // Datagrams of another session.
        let stray = session(&place).await;
        let _ = (*stray).send_datagram(Bytes::from_static(&[0x40, 0x40, 1, 2, 3]));
        stray.closed().await;
        let _ = bench.transport.receive(&mut |_, _| {}, usize::MAX);
        honest.send_datagram(Bytes::from_static(b"I am here")).unwrap();
        let mut is_heard = false;
        while !is_heard {
            bench.transport.receive(&mut |_, datagram| is_heard |= datagram == b"I am here", usize::MAX);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
}

#[test]
fn who_says_nothing_is_closed_and_holds_no_place() {
    let (bench, place) = with_sessions(settings());
    within(async {
        let (_endpoint, silent) = connection(&place).await;
        silent.closed().await;
        // Half a header of a packet in a stream holds up nobody.
        let slow = session(&place).await;
        let mut stream = slow.open_uni().await.unwrap();
        stream.write_all(&[1]).await.unwrap();
        assert!(stream.stopped().await.is_ok(), "it is given up after two seconds");
        (*slow).close(VarInt::from_u32(0), b"");
    });
    until("nothing is left of them", || bench.tunnels.stats().open == 0);
}

#[test]
fn there_are_so_many_places_and_no_more() {
    let (bench, place) = with_sessions(BrowserSettings { clients_max: 2, ..settings() });
    within(async {
        let both = (session(&place).await, session(&place).await);
        let client = ClientBuilder::new().with_server_certificate_hashes(vec![place.hash.clone()]).unwrap();
        assert!(client.connect(place.url.clone()).await.is_err(), "a third one");
        assert_eq!(bench.tunnels.stats().open, 2);
        drop(both);
    });
}

#[test]
fn a_page_of_another_server_opens_no_session() {
    let (bench, place) = with_sessions(settings());
    let client = || ClientBuilder::new().with_server_certificate_hashes(vec![place.hash.clone()]).unwrap();
    let from = |origin: &str| {
        ConnectRequest::new(place.url.clone()).with_header(header::ORIGIN, HeaderValue::from_str(origin).unwrap())
    };
    within(async {
        let own = format!("http://localhost:{}", bench.gateway.local_addr().port());
        let _own = client().connect(from(&own)).await.expect("a session for its own page");
        for origin in ["http://evil.example", "null"] {
            assert!(client().connect(from(origin)).await.is_err(), "{origin}");
        }
    });
    let stats = bench.tunnels.stats();
    assert_eq!((stats.opened, stats.turned_away[Refusal::Page as usize]), (1, 2));
}
