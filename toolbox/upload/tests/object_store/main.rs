//! Promise: a folder that went to an S3 server that is not ours comes back the same, byte for byte; what is there is not sent
//! again; what an operator did wrong is told by its name; and whatever a store does, nothing is lost and nobody waits for it.

mod hostile;
mod server;

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use server::{BUCKET, KEY, S3Server, folder};
use throng::{settings::Uploaded, uploads::SharedUploadCounts};
use throng_upload::{
    folder::{Moved, files, pull, push},
    store::{Store, StoreError},
    uploader::{Uploader, Watched},
};

fn store(settings: &throng::settings::ObjectStoreSettings) -> Store {
    Store::of(settings).unwrap().unwrap()
}

/// As reports are: folders in folders, names that have to be written otherwise in an address, an empty file, a large one.
fn fill(folder: &Path) {
    let large: Vec<u8> = (0..3_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let files: [(&str, &[u8]); 7] = [
        ("report.json", b"{}\n"),
        ("empty", b""),
        ("captures/hub/1764000000-812-0.capture", &large),
        ("captures/dark zone/a+b & c%20d=\u{e4}.capture", b"\x00\xff\r\n"),
        ("crashes/1764000000-812/report.json", b"dead"),
        ("crashes/1764000000-812/what?.md", b"#"),
        ("analytics/events-1-cafe-000001.jsonl", b"{\"sequence\":0}\n"),
    ];
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    files(folder).unwrap().into_iter().map(|file| (file.name, fs::read(file.path).unwrap())).collect()
}

#[test]
fn a_folder_goes_to_the_store_and_comes_back_the_same_and_only_what_changed_goes_again() {
    there_and_back(&S3Server::start("there-and-back"));
}

#[test]
#[ignore = "full form: a server that holds every signature against its key, whose program VERSITYGW names"]
fn a_server_that_believes_no_signature_takes_ours_and_no_other() {
    let server = S3Server::start_strict("strict");
    there_and_back(&server);
    let error = store(&server.settings(KEY, "another")).list("").unwrap_err();
    assert!(!error.may_pass() && error.to_string().contains("the key is wrong"), "{error}");
    let error = store(&server.settings("another", KEY)).list("").unwrap_err();
    assert!(error.to_string().contains("the key is wrong"), "{error}");
}

fn there_and_back(server: &S3Server) {
    let store = store(&server.settings(KEY, KEY));
    let (from, to) = (folder("there-from"), folder("there-to"));
    fill(&from);
    let bytes = contents(&from).values().map(|file| file.len() as u64).sum();
    let mut sent = Vec::new();
    let moved = push(&store, &from, "live/eu/run", |file| sent.push(file.name.clone())).unwrap();
    assert_eq!(moved, Moved { files: 7, bytes, same: 0 });
    assert_eq!(sent.len(), 7);
    assert_eq!(push(&store, &from, "live/eu/run", |_| ()).unwrap(), Moved { files: 0, bytes: 0, same: 7 });
    // The same size, and another byte.
    fs::write(from.join("report.json"), b"{1\n").unwrap();
    assert_eq!(push(&store, &from, "live/eu/run", |_| ()).unwrap(), Moved { files: 1, bytes: 3, same: 6 });

    let moved = pull(&store, "live/eu/run", &to, |_| ()).unwrap();
    assert_eq!((moved.files, moved.same), (7, 0));
    assert_eq!(contents(&from), contents(&to));
    fs::write(to.join("empty"), b"not so").unwrap();
    fs::remove_file(to.join("report.json")).unwrap();
    let moved = pull(&store, "live/eu/run", &to, |_| ()).unwrap();
    assert_eq!((moved.files, moved.same), (2, 5));
    assert_eq!(contents(&from), contents(&to));
    // A neighbour whose name begins the same is another folder.
    assert_eq!(pull(&store, "live/eu/ru", &folder("none"), |_| ()).unwrap(), Moved::default());
}

#[test]
fn what_an_operator_did_wrong_is_told_by_its_name() {
    let server = S3Server::start("mistakes");
    let from = folder("mistakes-from");
    fill(&from);
    let told = |settings: &throng::settings::ObjectStoreSettings| {
        let error = push(&store(settings), &from, "x", |_| ()).unwrap_err();
        assert!(!error.may_pass(), "{error}");
        error.to_string()
    };
    let wrong_key = told(&server.settings("other", "s3cret"));
    assert!(wrong_key.contains("the key is wrong") && wrong_key.contains("key_file"), "{wrong_key}");
    assert!(!wrong_key.contains("s3cret"), "{wrong_key}");
    let mut settings = server.settings(KEY, KEY);
    settings.bucket = Some("nothing-here".to_owned());
    let no_bucket = told(&settings);
    assert!(no_bucket.contains("no such bucket") && no_bucket.contains("nothing-here"), "{no_bucket}");
    settings.endpoint = Some("http://".to_owned());
    assert!(matches!(Store::of(&settings), Err(StoreError::Endpoint { .. })));
}

/// Waits until it is so; a store on loopback takes milliseconds.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "never {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn watched(folder: &Path) -> Vec<Watched> {
    let of = |what: Uploaded| Watched { what, folder: folder.join(what.name()), settled_after: Duration::ZERO };
    [Uploaded::Captures, Uploaded::Crashes, Uploaded::Analytics].map(of).into()
}

#[test]
fn a_server_uploads_its_folders_and_after_a_restart_only_what_is_new() {
    let server = S3Server::start("uploader");
    let (from, to) = (folder("uploader-from"), folder("uploader-to"));
    fill(&from);
    fs::create_dir_all(from.join("analytics/spool")).unwrap();
    fs::write(from.join("analytics/spool/1-2-3.jsonl"), b"waits").unwrap();
    let mut settings = server.settings(KEY, KEY);
    settings.period_s = 1;
    let start = |counts: &std::sync::Arc<SharedUploadCounts>| {
        Uploader::start(store(&settings), &settings, watched(&from), "eu-1", counts.clone()).unwrap()
    };
    let counts = std::sync::Arc::<SharedUploadCounts>::default();
    let uploader = start(&counts);
    until("everything there", || counts.sums().files == 5);
    uploader.finish(Duration::from_secs(10));
    let pulled = || {
        pull(&store(&settings), "live/eu/eu-1", &to, |_| ()).unwrap();
        contents(&to)
    };
    let mut expect = contents(&from);
    expect.retain(|name, _| name.contains('/') && !name.contains("spool"));
    assert_eq!(pulled(), expect);

    settings_keep_nothing(&server, &from, &to, expect);
}

/// The second run: what is there is known, what is new goes, and is not kept.
fn settings_keep_nothing(server: &S3Server, from: &Path, to: &Path, mut expect: BTreeMap<String, Vec<u8>>) {
    let mut settings = server.settings(KEY, KEY);
    (settings.period_s, settings.keep_local) = (1, false);
    fs::write(from.join("captures/hub/new.capture"), b"new").unwrap();
    let counts = std::sync::Arc::<SharedUploadCounts>::default();
    let uploader = Uploader::start(store(&settings), &settings, watched(from), "eu-1", counts.clone()).unwrap();
    until("what is new there", || counts.sums().files == 1 && counts.sums().same == 5);
    // Nothing is asked twice while it runs.
    std::thread::sleep(Duration::from_millis(1_500));
    uploader.finish(Duration::from_secs(10));
    let sums = counts.sums();
    assert_eq!((sums.files, sums.bytes, sums.same, sums.errors), (1, 3, 5, 0));
    expect.insert("captures/hub/new.capture".into(), b"new".to_vec());
    pull(&store(&settings), "live/eu/eu-1", to, |_| ()).unwrap();
    assert_eq!(contents(to), expect);
    let mut left = contents(from);
    left.retain(|name, _| name.contains('/'));
    let kept = ["analytics/spool/1-2-3.jsonl", "crashes/1764000000-812/report.json", "crashes/1764000000-812/what?.md"];
    assert_eq!(left.keys().collect::<Vec<_>>(), kept, "reports of deaths stay, and what waits for its receiver");
}

#[test]
fn a_store_that_comes_late_gets_everything() {
    let from = folder("late-from");
    fill(&from);
    let mut server = S3Server::start("late");
    let mut settings = server.settings("other", "s3cret");
    settings.period_s = 1;
    let counts = std::sync::Arc::<SharedUploadCounts>::default();
    // The key is wrong at first, and its file is put right for the next start.
    let uploader = Uploader::start(store(&settings), &settings, watched(&from), "eu-1", counts.clone()).unwrap();
    until("an error", || counts.sums().errors > 0);
    uploader.finish(Duration::from_secs(10));
    assert_eq!(counts.sums().files, 0);
    settings.key_file = server.settings(KEY, KEY).key_file;
    let uploader = Uploader::start(store(&settings), &settings, watched(&from), "eu-1", counts.clone()).unwrap();
    until("everything there", || counts.sums().files == 5);
    uploader.finish(Duration::from_secs(10));
    assert_eq!(server.settings(KEY, KEY).bucket.as_deref(), Some(BUCKET));
    assert!(server_is_up(&mut server));
}

fn server_is_up(server: &mut S3Server) -> bool {
    store(&server.settings(KEY, KEY)).list("live/eu/eu-1/").unwrap().len() == 5
}
