//! Spikes of one frame in a real Prometheus, whose jobs look at one server at intervals side by side.
//!
//! The figures are a registry's of this process, published once a twentieth of a second or once a second, as a server does
//! it: a server that is made to have spikes of known length would have spikes of the machine's, too.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use throng_metrics::{Beside, CONTENT_TYPE, MetricsSnapshot, PROTOBUF_CONTENT_TYPE, Registry};
use throng_platform::time::Nanos;

use super::instance::{Histograms, Prometheus};

struct Form {
    /// Divides all times: 1 is the real one.
    faster: u64,
    spikes: u64,
    /// Of the scrapers (s).
    intervals_s: &'static [u64],
    /// Longer than the rarest look by what a timer of a busy machine may be late.
    spike_every_s: u64,
}

/// At intervals as operators have them, an hour and 52 minutes.
const FULL: Form = Form { faster: 1, spikes: 100, intervals_s: &[5, 10, 15, 20, 30, 60], spike_every_s: 66 };

/// Answers scrapes from the latest snapshot until this process ends.
fn serve(latest: Arc<Mutex<Option<MetricsSnapshot>>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4_096];
            let length = stream.read(&mut head).unwrap_or_default();
            let is_protobuf = String::from_utf8_lossy(&head[..length]).contains("application/vnd.google.protobuf");
            let snapshot = latest.lock().expect("nobody panics with it").clone();
            let (format, body) = match (snapshot, is_protobuf) {
                (None, _) => (CONTENT_TYPE, b"# EOF\n".to_vec()),
                (Some(snapshot), true) => (PROTOBUF_CONTENT_TYPE, snapshot.to_prometheus_protobuf(Beside::default())),
                (Some(snapshot), false) => (CONTENT_TYPE, snapshot.to_prometheus_text().into_bytes()),
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {format}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
            );
            let _ = stream.write_all(&[head.into_bytes(), body].concat());
        }
    });
    address
}

/// Promise: of frames that are longer than any before, a hundred in the full form, each is in what each scraper has stored, exactly; and in a
/// bucket of its own in native histograms.
fn check(form: &Form, histograms: Histograms) {
    let Form { faster, spikes: count, intervals_s, spike_every_s } = *form;
    let latest = Arc::new(Mutex::new(None));
    let server = serve(latest.clone());
    let ms = |seconds: u64| seconds * 1_000 / faster;
    let job = |seconds: &u64| {
        let interval = ms(*seconds);
        format!(
            "- job_name: every-{seconds}\n  scrape_interval: {interval}ms\n  scrape_timeout: {interval}ms\n  \
             static_configs: [{{ targets: [\"{server}\"] }}]\n"
        )
    };
    let settings = format!("scrape_configs:\n{}", intervals_s.iter().map(job).collect::<String>());
    let prometheus = Prometheus::start(&format!("spikes-{count}-{histograms:?}"), &settings, histograms);

    let mut registry = Registry::with_prefix("throng");
    let frame = registry.register_histogram("server.frame", "Time of one frame");
    let mut cells = registry.cells();
    let spike_every = Duration::from_millis(ms(spike_every_s) + 1);
    let publish_every = Duration::from_millis(ms(1));
    let heights_us: Vec<u64> = (0..count).map(|number| (20_000.0 * 1.06_f64.powi(number as i32)) as u64).collect();
    // A job looks first at any moment of its interval.
    *latest.lock().expect("nobody panics with it") = Some(registry.snapshot());
    let rarest = Duration::from_millis(intervals_s.iter().copied().max().map_or(0, ms));
    prometheus.wait_longer_for(rarest, &format!("count(up == 1) == {}", intervals_s.len()));
    let began = Instant::now();
    let mut spikes = heights_us.iter();
    let (mut next_spike, mut next_publish) = (spike_every, publish_every);
    while began.elapsed() < spike_every * (count as u32 + 2) {
        std::thread::sleep(Duration::from_millis(16 / faster.min(8)));
        let elapsed = began.elapsed();
        cells.record(frame, 9_000);
        if elapsed >= next_spike {
            next_spike += spike_every;
            spikes.next().into_iter().for_each(|&us| cells.record(frame, us));
        }
        registry.merge(&mut cells, Nanos::from(elapsed));
        if elapsed >= next_publish {
            next_publish += publish_every;
            *latest.lock().expect("nobody panics with it") = Some(registry.snapshot());
        }
    }
    for seconds in intervals_s {
        let rows = prometheus.query(&format!("throng_server_frame_seconds_window_max{{job=\"every-{seconds}\"}}[3h]"));
        let samples = rows[0]["values"].as_array().expect("samples");
        let stored: Vec<u64> = samples
            .iter()
            .map(|sample| {
                (sample[1].as_str().and_then(|text| text.parse::<f64>().ok()).expect("a figure") * 1e6).round() as u64
            })
            .collect();
        let missed: Vec<&u64> = heights_us.iter().filter(|&us| !stored.contains(us)).collect();
        assert!(missed.is_empty(), "every {seconds} s: {} of {count} are not stored: {missed:?}", missed.len());
        if histograms == Histograms::Native {
            let of = format!("throng_server_frame_seconds{{job=\"every-{seconds}\"}}");
            let rows = prometheus.query(&of);
            // Each spike is one in its bucket; usual frames are many in theirs.
            let buckets = rows[0]["histogram"][1]["buckets"].as_array().expect("buckets");
            let of_one = buckets.iter().filter(|bucket| bucket[3] == "1").count();
            assert_eq!(of_one as u64, count, "every {seconds} s: {buckets:?}");
        }
        println!("every {seconds} s: {} samples, all {count} spikes", stored.len());
    }
}

/// The rarest has three looks to each spike, so that one may be late.
#[test]
fn ten_spikes_are_stored_at_three_intervals() {
    check(&Form { faster: 60, spikes: 10, intervals_s: &[5, 10, 15], spike_every_s: 48 }, Histograms::Native);
}

#[test]
#[ignore = "full form: a hundred spikes at a hundredth of real intervals, takes 3 min"]
fn a_hundred_spikes_are_stored_at_every_interval() {
    check(&Form { faster: 100, ..FULL }, Histograms::Native);
    check(&Form { faster: 100, ..FULL }, Histograms::Classic);
}

#[test]
#[ignore = "full form: takes two hours"]
fn a_hundred_spikes_at_full_length() {
    check(&FULL, Histograms::Native);
}
