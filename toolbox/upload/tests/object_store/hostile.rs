//! Stores that answer with half of something, or not at all.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    sync::Arc,
    time::{Duration, Instant},
};

use throng::uploads::SharedUploadCounts;
use throng_upload::{
    folder::{pull, push},
    store::Store,
    uploader::Uploader,
};

use crate::{
    server::{KEY, folder, settings},
    until, watched,
};

/// Answers every request with these bytes and closes; with none it says nothing and keeps the connection.
fn answers(bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(&bytes);
            if bytes.is_empty() {
                kept.push(stream);
            }
        }
    });
    endpoint
}

fn told(name: &str, answer: &str) -> String {
    let (from, to) = (folder(&format!("hostile-{name}")), folder(&format!("hostile-{name}-to")));
    fs::write(from.join("report.json"), b"{}").unwrap();
    let store = Store::of(&settings(&answers(answer.as_bytes().to_vec()), &from, KEY, KEY)).unwrap().unwrap();
    let pushed = push(&store, &from, "x", |_| ()).unwrap_err().to_string();
    let pulled = pull(&store, "x", &to, |_| ()).unwrap_err();
    assert_eq!(fs::read_dir(&to).unwrap().count(), 0, "nothing of it stays");
    assert_eq!(fs::read(from.join("report.json")).unwrap(), b"{}");
    format!("{pushed}\n{pulled}")
}

#[test]
fn half_an_answer_is_an_error_and_leaves_no_file() {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n<ListBucketResult><Contents>";
    assert!(told("half", half).contains("no answer, or not all of it"));
    let no_end = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n<ListBucketResult><Contents><Key>x/a</Key>";
    assert!(told("no-end", no_end).contains("half of one"));
    let html = "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n<html></html>";
    assert!(told("html", html).contains("its list is none"));
    assert!(told("nonsense", "SSH-2.0-OpenSSH\r\n").contains("no answer"));
    let skewed = "<Error><Code>RequestTimeTooSkewed</Code></Error>";
    let skewed = format!("HTTP/1.1 403 Forbidden\r\nContent-Length: {}\r\n\r\n{skewed}", skewed.len());
    assert!(told("skewed", &skewed).contains("NTP"));
}

/// The list names a file outside, and then one that is not as long as it says.
#[test]
fn a_store_cannot_write_outside_of_the_folder() {
    let list = "<ListBucketResult><Contents><Key>x/../../outside</Key><Size>1</Size></Contents></ListBucketResult>";
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{list}", list.len());
    let to = folder("hostile-outside");
    let store = Store::of(&settings(&answers(answer.into_bytes()), &to, KEY, KEY)).unwrap().unwrap();
    let error = pull(&store, "x", &to, |_| ()).unwrap_err().to_string();
    assert!(error.contains("no name of a file below a folder"), "{error}");
    assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
}

#[test]
fn an_uploader_whose_store_says_nothing_can_be_ended() {
    let from = folder("hostile-stalls");
    fs::create_dir_all(from.join("captures")).unwrap();
    fs::write(from.join("captures/a"), b"a").unwrap();
    let settings = settings(&answers(Vec::new()), &from, KEY, KEY);
    let counts = Arc::<SharedUploadCounts>::default();
    let store = Store::of(&settings).unwrap().unwrap();
    let uploader = Uploader::start(store, &settings, watched(&from), "eu-1", counts.clone()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    uploader.finish(Duration::from_millis(50));
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!((counts.sums().files, fs::read(from.join("captures/a")).unwrap()), (0, b"a".to_vec()));
}

#[test]
fn a_store_that_is_overloaded_is_asked_again() {
    let from = folder("hostile-busy");
    fs::create_dir_all(from.join("captures")).unwrap();
    let settings = settings(&answers(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n".to_vec()), &from, KEY, KEY);
    let counts = Arc::<SharedUploadCounts>::default();
    let store = Store::of(&settings).unwrap().unwrap();
    let uploader = Uploader::start(store, &settings, watched(&from), "eu-1", counts.clone()).unwrap();
    until("asked twice", || counts.sums().errors >= 2);
    uploader.finish(Duration::from_secs(5));
}
