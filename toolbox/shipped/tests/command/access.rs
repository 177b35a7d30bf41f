//! Who may do what at a live server's admin port, and how the command comes by its key.

use std::{
    fs,
    io::{Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{
    address::KEY,
    child::{Finished, Server, Signal, finish, folder, is_root, throng, unprivileged},
    lifecycle::get,
};

const WITHIN: Duration = Duration::from_secs(60);
const SMALL: [&str; 5] = ["serve", "--players", "1", "--npcs", "0"];

/// A server with rules to read again, and `text` in `[server]` of its settings.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn new(name: &str, text: &str) -> Self {
        let folder = folder(name);
        let rules = folder.join("rules.toml");
        fs::write(&rules, "").expect("a folder of ours");
        let text = format!("[server]\n{text}\n[recorder]\nrules = \"{}\"\n", rules.display());
        fs::write(folder.join("throng.toml"), text).expect("a folder of ours");
        Self { folder }
    }

    fn write_private(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.join(name);
        fs::write(&path, text).expect("a folder of ours");
        set_mode(&path, 0o600);
        path
    }

    /// `throng`, with this place as the user's runtime folder.
    fn throng(&self, arguments: &[&str]) -> Command {
        let mut command = throng(arguments);
        command.env("XDG_RUNTIME_DIR", &self.folder);
        command
    }

    fn serve(&self, admin_address: &str) -> Command {
        let mut command = self.throng(&SMALL);
        command.args(["--address", "127.0.0.1:0", "--admin-address", admin_address]).env("NO_COLOR", "1");
        command.arg("--config").arg(self.folder.join("throng.toml")).env("THRONG_PRIVATE_KEY", KEY);
        command
    }

    /// A line at the server, typed with these options.
    fn console(&self, server: SocketAddr, options: &[&str], line: &str) -> Finished {
        finish(self.throng(&[&["console", &server.to_string()], options, &[line]].concat()), WITHIN)
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a file of ours");
}

/// A new key: its line, and the key alone.
fn new_key(name: &str, role: &str) -> (String, String) {
    let made = finish(throng(&["admin-key", name, role]), WITHIN);
    assert!(made.status.success(), "{}", made.stderr);
    let key = made.stdout.split_whitespace().last().expect("NAME ROLE KEY").to_owned();
    (made.stdout, key)
}

/// What a program gets that sends a line for the console and shows no key.
fn ask_without_key(server: SocketAddr, line: &str) -> String {
    let mut stream = TcpStream::connect(server).expect("the admin port listens");
    let head =
        format!("POST /console HTTP/1.1\r\nHost: {server}\r\nx-throng: console\r\nContent-Length: {}", line.len());
    stream.write_all(format!("{head}\r\n\r\n{line}").as_bytes()).expect("a request fits");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer that ends");
    answer
}

#[track_caller]
fn check_well(finished: &Finished, part: &str) {
    assert!(finished.status.success() && finished.stdout.contains(part), "{}{}", finished.stdout, finished.stderr);
}

#[test]
fn a_change_without_a_key_is_refused_and_the_servers_own_user_has_one() {
    let place = Place::new("access-local", "");
    let server = Server::start_command(place.serve("127.0.0.1:0"));
    let address = server.admin_address;

    let answer = ask_without_key(address, "rules.reload --by-nobody");
    assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("role operate"), "{answer}");
    let answer = ask_without_key(address, "help");
    assert!(answer.starts_with("HTTP/1.1 200 "), "reading is open: {answer}");
    check_well(&place.console(address, &[], "rules.reload"), "rules.toml is in force");

    let path = place.folder.join(format!("throng/admin-{address}.key"));
    let mode = |path: &Path| fs::metadata(path).expect("it is there while the server runs").mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
    let key = fs::read_to_string(&path).expect("it is ours");
    let key = key.split_whitespace().last().expect("a line with a key").to_owned();
    if is_root()
        && let Some(mut other) = unprivileged("true", &["console", &address.to_string(), "rules.reload"])
    {
        other.env("XDG_RUNTIME_DIR", &place.folder);
        finish(other, WITHIN).check_refused(&["needs a key of the role operate", "--admin-key-file"]);
    }

    let ended = server.stop();
    assert!(ended.status.success());
    assert!(!path.exists(), "it goes with its server");
    let audited = |parts: &[&str]| {
        let mut lines = ended.stderr.lines().filter(|line| line.contains("admin.audit"));
        lines.any(|line| parts.iter().all(|part| line.contains(part)))
    };
    assert!(
        audited(&["refused", "no_key", "who=nobody", "from=127.0.0.1:", "rules.reload --by-nobody"]),
        "{}",
        ended.stderr
    );
    assert!(audited(&["who=local", "from=127.0.0.1:", "console rules.reload", "200 OK"]), "{}", ended.stderr);
    assert!(!ended.stderr.contains(&key), "the log shows the key");
}

#[test]
fn keys_of_a_file_allow_what_their_roles_say() {
    let place = Place::new("access-file", "admin_keys_file = \"admin.keys\"");
    let ((alice, key_of_alice), (watcher, _)) = (new_key("alice", "operate"), new_key("watcher", "observe"));
    let keys = place.write_private("admin.keys", &format!("# who may what\n{alice}{watcher}"));
    let alice = place.write_private("alice.key", &key_of_alice).display().to_string();
    let watcher = place.write_private("watcher.key", &watcher).display().to_string();

    set_mode(&keys, 0o644);
    let refused = finish(place.serve("127.0.0.1:0"), WITHIN);
    refused.check_refused(&["admin.keys: others may read it (mode 644)", "chmod 600"]);
    set_mode(&keys, 0o600);

    let server = Server::start_command(place.serve("0.0.0.0:0"));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.admin_address.port()));
    assert!(get(address, "/health").0.starts_with("HTTP/1.1 200 "));
    assert!(get(address, "/metrics").0.starts_with("HTTP/1.1 401 "), "others can reach it");
    place.console(address, &[], "help").check_refused(&["needs a key of the role observe"]);
    check_well(&place.console(address, &["--admin-key-file", &watcher], "help"), "this list");
    let refused = place.console(address, &["--admin-key-file", &watcher], "rules.reload");
    refused.check_refused(&["`watcher` may not do this", "role operate"]);
    check_well(&place.console(address, &["--admin-key-file", &alice], "rules.reload"), "is in force");

    let by_variable = |key: &str| {
        let mut command = place.throng(&["console", &address.to_string(), "rules.reload"]);
        command.env("THRONG_ADMIN_KEY", key);
        finish(command, WITHIN)
    };
    check_well(&by_variable(&key_of_alice), "is in force");
    by_variable("5e0c").check_refused(&["environment variable THRONG_ADMIN_KEY: the key is not one"]);
    by_variable(&"77".repeat(32)).check_refused(&["no key of this server"]);
    let ended = server.stop();
    assert!(ended.status.success());
    assert!(ended.stderr.contains("who=alice") && !ended.stderr.contains(&key_of_alice), "{}", ended.stderr);
}

#[test]
fn the_key_of_a_killed_server_is_not_shown_to_the_next_one_at_its_port() {
    // Below those that the kernel gives out, so that nobody else takes it between the two.
    let port = 20_000 + std::process::id() % 10_000;
    let (place, next) =
        (Place::new("access-killed", ""), Place::new("access-next", "admin_keys_file = \"admin.keys\""));
    next.write_private("admin.keys", &new_key("alice", "operate").0);
    let killed = Server::start_command(place.serve(&format!("127.0.0.1:{port}")));
    let address = killed.admin_address;
    killed.signal(Signal::SIGKILL);
    drop(killed);
    let left = place.folder.join(format!("throng/admin-{address}.key"));
    assert!(left.exists(), "nobody was there to remove it");

    let mut command = next.serve(&format!("0.0.0.0:{port}"));
    command.env("XDG_RUNTIME_DIR", &place.folder);
    let server = Server::start_command(command);
    place.console(address, &[], "help").check_refused(&["needs a key of the role observe"]);
    assert!(!left.exists());
    assert!(server.stop().status.success());
}

#[test]
fn a_port_that_others_can_reach_needs_keys() {
    let place = Place::new("access-none", "");
    let refused = finish(place.serve("0.0.0.0:0"), WITHIN);
    refused.check_refused(&["0.0.0.0:0", "admin_keys_file", "throng admin-key NAME ROLE"]);
    finish(throng(&["admin-key", "alice", "root"]), WITHIN).check_refused(&["`observe`", "`operate`"]);
    finish(throng(&["admin-key", "a b", "operate"]), WITHIN).check_refused(&["a name has 1 to 32"]);
    let made = finish(throng(&["admin-key", "alice", "operate", "--json"]), WITHIN).json();
    assert_eq!((made["name"].as_str(), made["role"].as_str()), (Some("alice"), Some("operate")));
    assert!(made["line"].as_str().is_some_and(|line| line.starts_with("alice operate ")), "{made}");
}
