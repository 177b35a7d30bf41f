//! The promise: a command that a game declares in one line reaches its world from the admin port, with its arguments
//! checked, for those who may; and a tunable that is changed there changes worlds that run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use throng::console::{Cell, Column, TextTable, integer, optional};
use throng::{metrics::PublishedMetrics, prelude::*, server::Server, settings::Settings};
use throng_admin::access::{Access, AccessKeys};
use throng_admin::watch::document::Line;
use throng_admin::{AdminHandle, AdminServer, console::Console};
use throng_net::protocol::PrivateKey;
use throng_platform::signals::StopFlag;
use throng_profiler::log::CategoryFilter;
use throng_replication::SchemaBuilder;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const OPERATOR: &str = "5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c5e0c";
const WATCHER: &str = "91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa91aa";

static DEPTH: Tunable<f32> = Tunable::new("depth_m", 1.5, 0.5..=4.0, "m", "how deep ponds are");

/// What a pond's systems have seen: of each tick the depth.
#[derive(Resource, Clone, Default)]
struct Seen(Arc<Mutex<Vec<f32>>>);

/// While it holds, a command that waits for it keeps its world in the tick.
#[derive(Resource, Clone, Default)]
struct Hold(Arc<AtomicBool>);

#[derive(Resource, Default)]
struct Ducks(i64);

struct Pond {
    seen: Seen,
    hold: Hold,
}

impl WorldKind for Pond {
    fn name(&self) -> &str {
        "pond"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn console(&self) -> WorldConsole {
        WorldConsole::new()
            .tunable(&DEPTH)
            .observe("ducks.count", "how many there are", (), count)
            .operate(
                "ducks.feed",
                "lets so many come",
                (integer("count", 1..=9), optional(integer("again", 1..=3))),
                feed,
            )
            .operate("pond.hold", "keeps the pond in its tick", (), hold)
    }

    fn build(&self, world: &mut WorldBuilder) {
        world.insert_resource(self.seen.clone()).insert_resource(self.hold.clone()).init_resource::<Ducks>();
        world.add_systems(Update, |tuned: Tuned, seen: Res<Seen>| seen.0.lock().unwrap().push(tuned.get(&DEPTH)));
    }

    fn dormant_when_empty(&self) -> bool {
        false
    }
}

fn table(ducks: i64) -> CommandResult {
    let mut table = TextTable::new([Column::integer("ducks", "ducks")]);
    table.row(&[Cell::Integer(ducks)]);
    Ok(table)
}

fn count(In(()): In<()>, ducks: Res<Ducks>) -> CommandResult {
    table(ducks.0)
}

fn feed(In((count, again)): In<(i64, Option<i64>)>, mut ducks: ResMut<Ducks>) -> CommandResult {
    ducks.0 += count * again.unwrap_or(1);
    table(ducks.0)
}

fn hold(In(()): In<()>, hold: Res<Hold>) -> CommandResult {
    while hold.0.load(Ordering::SeqCst) {
        std::thread::sleep(Duration::from_millis(5));
    }
    table(0)
}

/// A kind that has nothing to say.
struct Desert;

impl WorldKind for Desert {
    fn name(&self) -> &str {
        "desert"
    }

    fn tick_rate(&self) -> Hertz {
        Hertz(20)
    }

    fn build(&self, _world: &mut WorldBuilder) {}
}

/// A server with a pond and a desert, and its port.
struct Running {
    admin: Option<AdminHandle>,
    address: SocketAddr,
    published: Arc<PublishedMetrics>,
    seen: Seen,
    hold: Hold,
    settings: PathBuf,
    stop: StopFlag,
    server: Option<JoinHandle<()>>,
}

impl Running {
    fn start(test: &str, game: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("throng-commands-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("throng.toml");
        std::fs::write(&path, format!("[server]\naddress = \"127.0.0.1:0\"\n[game]\n{game}\n")).unwrap();
        let mut settings = Settings::load(&path).unwrap();
        settings.server.workers = throng::settings::Workers::Count(2);
        let mut server = Server::bind(&settings, SchemaBuilder::new().build(), PrivateKey::new([1; 32])).unwrap();
        let (seen, hold) = (Seen::default(), Hold::default());
        let pond = server.add_kind(Pond { seen: seen.clone(), hold: hold.clone() }).unwrap();
        let desert = server.add_kind(Desert).unwrap();
        server.create_world(pond, 1).unwrap();
        server.create_world(desert, 1).unwrap();
        let keys = AccessKeys::parse("keys", &format!("anna operate {OPERATOR}\nbert observe {WATCHER}\n")).unwrap();
        let access = Access { names: Vec::new(), keys: Some(keys) };
        let console = Console::new().with_server(&server);
        let published = server.control().published();
        let free_port = "127.0.0.1:0".parse().unwrap();
        let admin = AdminServer::start(free_port, access, published.clone(), console).unwrap();
        let stop = StopFlag::new().unwrap();
        let stop_later = stop.clone();
        let thread = std::thread::spawn(move || _ = server.run(&stop_later, &mut |_| {}).unwrap());
        let address = admin.local_addr();
        Self { admin: Some(admin), address, published, seen, hold, settings: path, stop, server: Some(thread) }
    }

    /// The status, and the text or the error.
    fn ask(&self, key: &str, line: &str) -> (u16, String) {
        ask(self.address, key, line)
    }

    #[track_caller]
    fn check(&self, line: &str, expect: Result<&str, &str>) {
        let (status, told) = self.ask(OPERATOR, line);
        let (expected_status, words) = expect.map_or_else(|wrong| (400, wrong), |text| (200, text));
        assert!(status == expected_status && told.contains(words), "{line}: {status} {told}, not {words:?}");
    }

    /// Of ticks that have begun after now, and what ponds saw in them.
    fn depths_from_now(&self) -> Vec<f32> {
        // The tick that runs has taken its mail, and so may the one have whose systems come next.
        let since = self.seen.0.lock().unwrap().len() + 1;
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let seen = self.seen.0.lock().unwrap();
            if seen.len() >= since + 3 {
                return seen[since..].to_vec();
            }
            drop(seen);
            assert!(Instant::now() < deadline, "the pond does not tick");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.hold.0.store(false, Ordering::SeqCst);
        self.stop.request();
        let ended = self.server.take().map(JoinHandle::join);
        drop(self.admin.take());
        let _ = std::fs::remove_dir_all(self.settings.parent().unwrap());
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()));
    }
}

/// What the process has logged.
static LOG: Mutex<String> = Mutex::new(String::new());

struct ToLog;

impl Write for ToLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn keep_log() {
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(|| ToLog);
    tracing_subscriber::registry().with(CategoryFilter).with(lines).init();
}

fn ask(address: SocketAddr, key: &str, line: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let shown = if key.is_empty() { String::new() } else { format!("Authorization: Bearer {key}\r\n") };
    let head = format!("POST /console HTTP/1.1\r\nHost: localhost\r\nx-throng: console\r\n{shown}");
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{line}", line.len()).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
    let body: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let told = body["text"].as_str().or(body["error"].as_str()).unwrap();
    (status, told.to_owned())
}

#[test]
fn a_games_command_is_carried_out_in_its_world_with_its_arguments_checked() {
    let server = Running::start("game", "");
    server.check("ducks.feed 0 5 2", Ok("ducks\n   10\n"));
    server.check("ducks.feed 0 5", Ok("ducks\n   15\n"));
    server.check("ducks.count 0 --json", Ok("{\"rows\":[{\"ducks\":15}]}"));
    for (line, wrong) in [
        ("ducks.feed 0 10", "ducks.feed: count: 10 is too high; it may be 1 to 9"),
        ("ducks.feed 0 one", "ducks.feed: count: one is not a whole number; it may be 1 to 9"),
        ("ducks.feed 0", "ducks.feed: count is missing: a whole number, 1 to 9"),
        ("ducks.feed 0 1 1 1", "ducks.feed: it takes no `1` after count again"),
        ("ducks.feed", "ducks.feed: world is missing: a world as `world.list` shows it"),
        ("ducks.feed pond 1", "ducks.feed: world: pond is not a world"),
        ("ducks.feed 9 1", "ducks.feed: there is no world 9"),
        ("ducks.feed 1 1", "ducks.feed: world 1 is of a kind that does not know it; worlds of pond do"),
    ] {
        server.check(line, Err(wrong));
    }
    server.check("ducks.count 0", Ok("ducks\n   15\n"));
    server.check("help ducks.feed", Ok("ducks.feed WORLD COUNT [AGAIN]\nlets so many come (needs a key)\n"));
    server.check("complete du", Ok("ducks.count\nducks.feed\n"));
    server.check("world.list", Ok("desert"));
    server.check("player.list", Ok("player  world\n"));
    server.check("player.pos 7", Err("player.pos: player: nobody is called 7 here"));
}

#[test]
fn help_lists_what_the_page_of_the_port_has_and_what_the_game_adds() {
    let server = Running::start("help", "");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/admin.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: String = rows.filter_map(|row| row.split(" | ").next()).collect();
    let (_, told) = server.ask("", "help --json");
    let told: Value = serde_json::from_str(&told).unwrap();
    let names: Vec<&str> =
        told["commands"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("ducks.")).count(), 2);
    for name in names.iter().filter(|name| !name.starts_with("ducks.") && !name.starts_with("pond.")) {
        assert!(listed.contains(name), "docs/admin.md does not have `{name}` among its commands");
    }
    for name in ["world.list", "player.pos", "tune.set", "settings.reload", "packets"] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
}

#[test]
fn who_may_only_read_changes_nothing() {
    let server = Running::start("roles", "");
    for line in ["ducks.feed 0 1", "tune.set depth_m 2", "settings.reload"] {
        assert_eq!(server.ask("", line).0, 401, "{line}");
        assert_eq!(server.ask(WATCHER, line).0, 403, "{line}");
    }
    assert_eq!(server.ask(WATCHER, "ducks.count 0"), (200, "ducks\n    0\n".to_owned()));
    assert!(server.ask("", "tune.get depth_m").1.contains("depth_m  1.5"), "{:?}", server.ask("", "tune.get depth_m"));
}

#[test]
fn a_tunable_changes_a_world_that_runs_within_a_tick() {
    keep_log();
    let server = Running::start("tune", "depth_m = 2.5");
    assert!(server.depths_from_now().iter().all(|depth| *depth == 2.5), "as the settings say");
    server.check("tune.set depth_m 3.25", Ok("name     old  new   unit\ndepth_m  2.5  3.25  m\n"));
    assert!(server.depths_from_now().iter().all(|depth| *depth == 3.25));
    let log = || LOG.lock().unwrap().clone();
    let changes = || -> Vec<String> {
        log().lines().filter(|line| line.contains("a tunable was changed")).map(str::to_owned).collect()
    };
    let lines = changes();
    let [line] = &lines[..] else { panic!("one change, and {lines:?}") };
    for part in [" INFO server.tuning: ", "name=\"depth_m\"", "old=2.5", "new=3.25", "by=anna"] {
        assert!(line.contains(part), "{part} is not in {line}");
    }
    let audited = |words: &str| log().lines().any(|line| line.contains("admin.audit") && line.contains(words));
    assert!(audited("who=anna") && audited("console tune.set depth_m 3.25"), "{}", log());
    for (line, wrong) in [
        ("tune.set depth_m 4.5", "tune.set: depth_m: 4.5 is too high; it may be 0.5 to 4 m"),
        ("tune.set depth_m nan", "tune.set: depth_m: NaN is not a number; it may be 0.5 to 4 m"),
        ("tune.set depth_m deep", "tune.set: value: deep is not a number"),
        ("tune.set width_m 2", "tune.set: name: there is no width_m; it may be depth_m"),
    ] {
        server.check(line, Err(wrong));
    }
    assert!(server.depths_from_now().iter().all(|depth| *depth == 3.25), "nothing was changed");
    assert_eq!(changes().len(), 1, "nor said to be");
    server.check("complete tune.set de", Ok("depth_m\n"));

    std::fs::write(&server.settings, "[game]\ndepth_m = 9\n").unwrap();
    server.check("settings.reload", Err("throng.toml:2: [game] depth_m: 9 is too high; it may be 0.5 to 4 m"));
    std::fs::write(&server.settings, "[game]\ndepth_m = 0.75\n").unwrap();
    server.check("settings.reload --json", Ok("\"in_force\":true"));
    assert!(server.depths_from_now().iter().all(|depth| *depth == 0.75));
}

#[test]
fn a_world_that_does_not_answer_is_said_to_be_silent_and_is_not_asked_later() {
    let server = Running::start("silent", "");
    server.hold.0.store(true, Ordering::SeqCst);
    let address = server.address;
    let held = std::thread::spawn(move || ask(address, OPERATOR, "pond.hold 0"));
    // The pond is in its tick when it ticks no more.
    let ticks = || server.seen.0.lock().unwrap().len();
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut before = usize::MAX;
    while std::mem::replace(&mut before, ticks()) != ticks() {
        assert!(Instant::now() < deadline, "the pond ticks on");
        std::thread::sleep(Duration::from_millis(300));
    }
    server.check("ducks.feed 0 9", Err("world 0 has not answered within 5 s: it was not done and will not be"));
    server.check("world.list", Ok("pond"));
    let (status, told) = held.join().unwrap();
    assert!(status == 400 && told.contains("it has begun and may still end"), "{told}");
    server.hold.0.store(false, Ordering::SeqCst);
    server.check("ducks.count 0", Ok("ducks\n    0\n"));
}

/// Promise: a watcher is told of a server that runs, and the server gathers for nobody else.
#[test]
fn a_server_is_watched_for_as_long_as_somebody_reads() {
    let server = Running::start("watch", "");
    assert_eq!(server.published.watchers_count(), 0);
    // What was before anybody looked is kept.
    while server.published.past_seconds().len() < 2 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    write!(stream, "GET /api/watch HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer {OPERATOR}\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap).skip_while(|line| !line.is_empty()).skip(1);
    let mut next = || serde_json::from_str::<Line>(&lines.next().expect("it goes on")).unwrap();
    let Line::Hello(hello) = next() else { panic!("hello comes first") };
    assert_eq!((hello.role.as_str(), hello.who.as_deref()), ("operate", Some("anna")));
    let Line::Past(past) = next() else { panic!("then what was") };
    let (mut frames, mut second, mut health) = (Vec::new(), None, None);
    while second.is_none() || frames.len() < 2 || health.is_none() {
        match next() {
            Line::Frames(told) => frames.extend(told.numbers),
            Line::Second(told) => second = Some(told),
            Line::Health(told) => health = Some(told),
            Line::Hello(_) | Line::Past(_) => panic!("these come once"),
        }
    }
    assert!(frames.windows(2).all(|pair| pair[0] < pair[1]), "{frames:?}");
    let second = second.unwrap();
    let told: Vec<u32> = (0..past.second.len() as u32).collect();
    assert!(past.second == told && told.len() >= 2 && told.len() as f64 <= second.server.second, "{past:?}");
    assert!(past.at_unix_s.windows(2).all(|pair| pair[0] < pair[1]), "{past:?}");
    assert!(past.at_unix_s.last() < Some(&second.at_unix_s), "{past:?}");
    assert!(past.rss_mb.iter().all(|mb| *mb > 1.0) && past.rss_mb.len() == told.len(), "{past:?}");
    assert!(past.host.len() == 5 && past.host.iter().all(|of| of.values.len() == told.len()), "{past:?}");
    let kept = server.published.past_seconds();
    let kept = kept.iter().find(|kept| kept.second as f64 == second.server.second).expect("what is told is kept, too");
    assert_eq!(kept.frame_ms_max, second.server.frame_ms_max);
    let mut kinds: Vec<String> = second.worlds.rows().map(|world| world.kind).collect();
    kinds.sort_unstable();
    assert_eq!((kinds, second.server.worlds), (vec!["desert".to_owned(), "pond".to_owned()], 2));
    assert_eq!(health.unwrap().state, "running");
    assert_eq!(server.published.watchers_count(), 1);
    drop(lines);
    let deadline = Instant::now() + Duration::from_secs(30);
    while server.published.watchers_count() > 0 {
        assert!(Instant::now() < deadline, "it gathers on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn one_world_is_looked_into_and_nothing_in_it_changes() {
    let server = Running::start("show", "");
    let (status, told) = server.ask("", "world.show 0 --json");
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((status, &told["kind"], &told["state"]), (200, &Value::from("pond"), &Value::from("awake")));
    assert!(told["ticks_done"].is_u64() && told["clients"].as_array().unwrap().is_empty(), "{told}");
    assert!(server.ask("", "world.show 0").1.starts_with("world 0: awake, "));
    // Asked like that, it would be awake ever after.
    server.check("world.show 1 --json", Ok("\"state\":\"dormant\""));
    server.check("world.show 9", Err("world.show: there is no world 9"));
    server.check("world.show pond", Err("world.show: world: pond is not a world"));
}

#[test]
fn who_changed_what_is_told_to_whoever_looks() {
    let server = Running::start("changes", "");
    server.check("changes", Ok("nothing has been changed since the start"));
    server.check("tune.set depth_m 2", Ok("depth_m"));
    server.check("tune.set depth_m 99", Err("too high"));
    let (_, told) = server.ask("", "changes --json");
    let told: Value = serde_json::from_str(&told).unwrap();
    let rows: Vec<_> =
        told["changes"].as_array().unwrap().iter().map(|row| [&row["who"], &row["what"], &row["outcome"]]).collect();
    let row = |what: &str, outcome: &str| ["anna", what, outcome].map(Value::from);
    let expect = [row("console tune.set depth_m 99", "400 Bad Request"), row("console tune.set depth_m 2", "200 OK")];
    assert!(
        rows.len() == 2 && rows.iter().zip(&expect).all(|(row, expect)| row.iter().zip(expect).all(|(a, b)| *a == b)),
        "{told}"
    );
}

#[test]
fn budgets_of_a_server_that_records_nothing_are_refused_in_words() {
    let server = Running::start("budgets", "");
    server.check("budget.list", Err("budget.list: this server records nothing: set [recorder] on = true"));
    server.check("budget.set tick ai 5", Err("budget.set: "));
    server.check("trigger.set tick sideways", Err("trigger.set: state: there is no sideways; it may be on, off"));
    server.check("trigger.set tock on", Err("trigger.set: trigger: there is no tock"));
}

/// Promise: a server that is slow is asked where its time goes, and whoever may only read may ask.
#[test]
fn where_time_goes_is_told_in_tables() {
    let server = Running::start("perf", "");
    let rows = |line: &str| {
        let (status, told) = server.ask(WATCHER, &format!("{line} --json"));
        assert_eq!(status, 200, "{line}: {told}");
        let told: Value = serde_json::from_str(&told).unwrap();
        told["rows"].as_array().unwrap().clone()
    };
    let frames = rows("perf.frame");
    assert_eq!((frames.len(), &frames[0]["seconds"]), (1, &Value::from(1)));
    assert!(frames[0]["frames"].as_u64().unwrap() > 0 && frames[0]["ticks"].as_u64().unwrap() > 0, "{frames:?}");
    let [p50, p99, longest] = ["p50_ns", "p99_ns", "longest_ns"].map(|key| frames[0][key].as_u64().unwrap());
    assert!(p50 <= p99 && p99 <= longest, "{frames:?}");
    // What is gathered for it ends with it.
    assert_eq!(server.published.watchers_count(), 0);

    let worlds = rows("perf.worlds");
    assert_eq!(worlds.iter().map(|row| row["kind"].as_str().unwrap()).collect::<Vec<_>>(), ["pond", "desert"]);
    assert_eq!(worlds[0]["period_ns"], 50_000_000);
    assert_eq!(rows("perf.worlds desert").len(), 1);
    server
        .check("perf.worlds lake", Err("perf.worlds: kind: there is no kind of world `lake`; there are pond, desert"));

    let host = rows("perf.host");
    assert!(host.iter().any(|row| row["figure"] == "outside.host_steal_cores"), "{host:?}");
    let threads = rows("perf.threads");
    assert!(threads.iter().any(|row| row["thread"] == "admin"), "{threads:?}");

    for line in ["perf.subsystems", "perf.subsystems pond", "perf.systems 0"] {
        server.check(line, Err("this server records nothing: set [recorder] on = true"));
    }
    server.check("perf.frame 6", Err("perf.frame: seconds: 6 is too high; it may be 1 to 5"));
    assert_eq!(server.ask(WATCHER, "perf.capture").0, 403);
    server.check("perf.capture by hand", Err("perf.capture: this server records nothing"));
}
