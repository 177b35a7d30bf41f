//! Every mistake an operator can make has its line, its key and the way out.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

/// What the file's mistakes read like, one per line; empty when there are none.
#[track_caller]
fn check(text: &str, expect: &str) {
    let found = match Settings::parse("throng.toml", text) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expect.trim_end(), "\n--- for the file:\n{text}");
}

#[track_caller]
fn accept(text: &str) -> Settings {
    match Settings::parse("throng.toml", text) {
        Ok(settings) => settings,
        Err(error) => panic!("{error}\n--- for the file:\n{text}"),
    }
}

#[test]
fn an_empty_file_is_all_defaults() {
    let settings = accept("");
    assert_eq!(settings.server, ServerSettings::default());
    assert_eq!(settings.replication, ReplicationSettings::default());
    assert_eq!(settings.recorder, RecorderSettings::default());
    assert_eq!(settings.browser, BrowserSettings::default());
}

#[test]
fn every_setting_is_read() {
    let key = "ab".repeat(32);
    let text = format!(
        r#"
[server]
address = "127.0.0.1:0"
public_addresses = ["203.0.113.7:40000", "[2001:db8::7]:40000"]
admin_address = "off"
admin_names = ["metrics.example"]
admin_keys_file = "admin.keys"
workers = 3
reserved_cores = "auto"
host_heartbeat = false
huge_pages = false
commit_memory_mb = 300
crashes = "off"
all_workers_stuck_s_max = 7
clients_max = 100
protocol_id = 0xff
private_key = "{key}"
token_journal = "tokens.used"
audit_samples = true
sockets = 2
receive_buffer_bytes = 100_000
send_buffer_bytes = 200_000
timeout_s = 5
plain_netcode = true
openings_per_frame_max = 1
joins_per_frame_max = 2
join_queue_max = 50
placements_pending_max = 3
placement_timeout_s = 7
checkpoint_period_s = 60
client_packets_per_s_max = 30
client_bytes_per_s_max = 4_000
client_messages_per_s_max = 40
[replication]
enter_radius_m = 10
leave_radius_m = 12.5
cell_m = 4
period_ticks = 2
budget_bytes_per_tick = 1200
[overload]
on = false
busy_share = 1.2
calm_share = 0.4
slowest_time = 0.5
[recorder]
on = false
memory_mb = 8
captures = "captures"
rules = "rules.toml"
free_text = true
context_switches = false
core_switches = false
[recording]
folder = "recordings"
at_start = false
max_mb = 100
segment_s = 30
hash_period_s = 0
queue_mb = 8
"#
    );
    let settings = accept(&text);
    let server = ServerSettings {
        address: "127.0.0.1:0".parse().unwrap(),
        public_addresses: vec!["203.0.113.7:40000".parse().unwrap(), "[2001:db8::7]:40000".parse().unwrap()],
        admin_address: None,
        admin_names: vec!["metrics.example".into()],
        admin_keys_file: Some("admin.keys".into()),
        workers: Workers::Count(3),
        reserved_cores: ReservedCores::Auto,
        host_heartbeat: false,
        huge_pages: false,
        commit_memory_mb: 300,
        crashes: CrashFolder::Off,
        all_workers_stuck_s_max: 7,
        clients_max: 100,
        protocol_id: 255,
        private_key: Some(SecretKey::new([0xab; 32])),
        private_key_file: None,
        token_journal: TokenJournalFile::Named("tokens.used".into()),
        audit_samples: true,
        sockets: 2,
        receive_buffer_bytes: 100_000,
        send_buffer_bytes: 200_000,
        timeout_s: 5,
        plain_netcode: true,
        openings_per_frame_max: 1,
        joins_per_frame_max: 2,
        join_queue_max: 50,
        placements_pending_max: 3,
        placement_timeout_s: 7,
        checkpoint_period_s: 60,
        client_packets_per_s_max: 30,
        client_bytes_per_s_max: 4_000,
        client_messages_per_s_max: 40,
    };
    assert_eq!(settings.server, server);
    let replication = ReplicationSettings {
        enter_radius_m: Some(10.0),
        leave_radius_m: Some(12.5),
        cell_m: 4.0,
        period_ticks: 2,
        budget_bytes_per_tick: 1200,
    };
    assert_eq!(settings.replication, replication);
    assert_eq!(settings.overload, OverloadSettings { on: false, busy_share: 1.2, calm_share: 0.4, slowest_time: 0.5 });
    let recorder = RecorderSettings {
        on: false,
        memory_mb: 8,
        captures: Some("captures".into()),
        rules: Some("rules.toml".into()),
        free_text: true,
        context_switches: false,
        core_switches: false,
    };
    assert_eq!(settings.recorder, recorder);
    let recording = RecordingSettings {
        folder: Some("recordings".into()),
        at_start: false,
        max_mb: 100,
        segment_s: 30,
        hash_period_s: 0,
        queue_mb: 8,
    };
    assert_eq!(settings.recording, recording);
    let spare = accept("[server]\nworkers = \"auto\"\nreserved_cores = 2\n").server;
    assert_eq!((spare.workers, spare.reserved_cores), (Workers::Auto, ReservedCores::Count(2)));
}

#[test]
fn crash_reports_are_on_unless_somebody_says_off() {
    let check = |text: &str, expect: Option<&str>| {
        let crashes = accept(text).server.crashes;
        assert_eq!(crashes.path().and_then(Path::to_str), expect, "{text}");
    };
    check("", Some("crashes"));
    check("[server]\ncrashes = \"off\"\n", None);
    check("[server]\ncrashes = \"/var/crash\"\n", Some("/var/crash"));
    self::check(
        "[server]\ncrashes = \"\"\ncommit_memory_mb = 2_000_000\n",
        "throng.toml:2: [server] crashes: names nothing; write a path or \"off\", or remove the key\n\
         throng.toml:3: [server] commit_memory_mb: 2000000 is too high; it may be 0 to 1048576 MiB",
    );
}

#[test]
fn what_makes_no_sense_together_is_told_where_events_and_files_go() {
    check(
        "[analytics]\nurl = \"events.example\"\nfile_mb = 100\nfolder_mb = 150\nkey_file = \"\"\n",
        "throng.toml:2: [analytics] url: is no address of a receiver; write \"https://HOST/PATH\"\n\
         throng.toml:2: [analytics] url: has no place where events wait while the receiver is away; name a folder in `spool`\n\
         throng.toml:4: [analytics] folder_mb: has no room for two files of file_mb = 100; write 200 or more\n\
         throng.toml:5: [analytics] key_file: names nothing; write a path, or remove the key",
    );
    check(
        "[object_store]\nendpoint = \"s3.example\"\nbucket = \"a/b\"\nprefix = \"/a\"\nname = \"a/b\"\n",
        "throng.toml:2: [object_store] endpoint: is no address of a store; write \"https://HOST\"\n\
         throng.toml:3: [object_store] bucket: is the name of a bucket alone; what comes behind it is the `prefix`\n\
         throng.toml:4: [object_store] prefix: is the beginning of keys, such as \"throng/eu\"; write it without a / in front and without ..\n\
         throng.toml:5: [object_store] name: is the name of one folder; write it without /, or remove the key",
    );
    check(
        "[object_store]\nbucket = \"a\"\n",
        "throng.toml:2: [object_store] bucket: does nothing without `endpoint`; write where the store is",
    );
    check(
        "[object_store]\nupload = [\"captures\", \"saves\"]\n",
        "throng.toml:2: [object_store] upload: unknown variant `saves`, expected one of `captures`, `crashes`, `analytics`, `reports`",
    );
}

#[test]
fn unknown_names_are_told_with_the_nearest_known_one() {
    check("[server]\nwrokers = 3\n", "throng.toml:2: [server] wrokers: unknown key; did you mean `workers`?");
    check("\n[sever]\nworkers = 3\n", "throng.toml:2: [sever] unknown section; did you mean [server]?");
    check(
        "[database]\nurl = ''\n",
        "throng.toml:1: [database] unknown section; there are [server], [replication], [overload], [long_tasks], [saves], [recorder], [recording], [browser], [analytics], [object_store], [game]",
    );
    check(
        "[replication]\ngravity = 9.81\n",
        "throng.toml:2: [replication] gravity: unknown key; known are enter_radius_m, leave_radius_m, cell_m, \
         period_ticks, budget_bytes_per_tick",
    );
    check(
        "[server]\nenter_radius_m = 50\n",
        "throng.toml:2: [server] enter_radius_m: unknown key here; it belongs in [replication]",
    );
    check("workers = 3\n", "throng.toml:1: workers: unknown key here; it belongs in [server]");
    check(
        "speed = 3\n",
        "throng.toml:1: speed: unknown key outside any section; put it below one of [server], [replication], [overload], [long_tasks], [saves], [recorder], [recording], [browser], [analytics], [object_store], [game]",
    );
    check("server = 3\n", "throng.toml:1: server: is a section; write [server]");
}

#[test]
fn wrong_types_are_told_in_words() {
    check(
        "[server]\nclients_max = \"many\"\n",
        "throng.toml:2: [server] clients_max: must be a whole number from 0 to 4294967295, not \"many\"",
    );
    check(
        "[server]\nworkers = \"all\"\n",
        "throng.toml:2: [server] workers: must be \"auto\" or a whole number from 1 to 256, not \"all\"",
    );
    check(
        "[server]\nworkers = 1.5\n",
        "throng.toml:2: [server] workers: must be \"auto\" or a whole number from 1 to 256, not 1.5",
    );
    check(
        "[server]\nreserved_cores = \"some\"\n",
        "throng.toml:2: [server] reserved_cores: must be \"auto\" or a whole number from 0 to 255, not \"some\"",
    );
    check("[server]\nplain_netcode = 1\n", "throng.toml:2: [server] plain_netcode: must be true or false, not 1");
    check("[replication]\ncell_m = [16]\n", "throng.toml:2: [replication] cell_m: must be a number, not a list");
    check("[server]\naddress = 40000\n", "throng.toml:2: [server] address: must be text in quotes, not 40000");
}

#[test]
fn impossible_values_are_told_with_their_range() {
    check("[server]\nworkers = 0\n", "throng.toml:2: [server] workers: 0 is too low; it may be 1 to 256 threads");
    check(
        "[server]\nworkers = -2\n",
        "throng.toml:2: [server] workers: must be \"auto\" or a whole number from 1 to 256, not -2",
    );
    check(
        "[server]\nreserved_cores = 256\n",
        "throng.toml:2: [server] reserved_cores: must be \"auto\" or a whole number from 0 to 255, not 256",
    );
    check(
        "[server]\nreserved_cores = 2\nworkers = 3\n",
        "throng.toml:2: [server] reserved_cores: does nothing beside workers = 3; remove it, or write workers = \"auto\"",
    );
    check(
        "[server]\nclients_max = -1\n",
        "throng.toml:2: [server] clients_max: must be a whole number from 0 to 4294967295, not -1",
    );
    check(
        "[server]\nsockets = 70000\n",
        "throng.toml:2: [server] sockets: must be a whole number from 0 to 65535, not 70000",
    );
    check("[server]\ntimeout_s = 3600\n", "throng.toml:2: [server] timeout_s: 3600 is too high; it may be 1 to 600 s");
    check(
        "[server]\ntoken_journal = \"\"\n",
        "throng.toml:2: [server] token_journal: names no file; write a path, or \"off\"",
    );
    check(
        "[recorder]\nmemory_mb = 0\ncaptures = \"\"\n",
        "throng.toml:2: [recorder] memory_mb: 0 is too low; it may be 1 to 4096 MiB\n\
         throng.toml:3: [recorder] captures: names nothing; write a path, or remove the key",
    );
    check(
        "[replication]\nenter_radius_m = nan\n",
        "throng.toml:2: [replication] enter_radius_m: NaN is not a number; it may be 1 to 10000 m",
    );
    check(
        "[replication]\nleave_radius_m = inf\n",
        "throng.toml:2: [replication] leave_radius_m: inf is too high; it may be 1 to 10000 m",
    );
    check(
        "[replication]\nenter_radius_m = 80\nleave_radius_m = 75\n",
        "throng.toml:3: [replication] leave_radius_m: leave_radius_m is 75 and enter_radius_m is 80; an entity would \
         leave before it enters: make leave_radius_m at least enter_radius_m",
    );
    check(
        "[replication]\nenter_radius_m = 80\n",
        "throng.toml:2: [replication] enter_radius_m: leave_radius_m is 70 and enter_radius_m is 80; an entity would \
         leave before it enters: make leave_radius_m at least enter_radius_m",
    );
}

#[test]
fn addresses_say_which_half_is_wrong() {
    check(
        "[server]\naddress = \"0.0.0.0:99999\"\n",
        "throng.toml:2: [server] address: \"0.0.0.0:99999\" has port 99999; a port is a number from 0 to 65535",
    );
    check(
        "[server]\naddress = \"0.0.0.0\"\n",
        "throng.toml:2: [server] address: \"0.0.0.0\" has no port; write IP:PORT, such as \"0.0.0.0:40000\"",
    );
    check(
        "[server]\nadmin_address = \"localhost:9100\"\n",
        "throng.toml:2: [server] admin_address: \"localhost\" is not an IP address; write numbers, such as \
         \"0.0.0.0:40000\" or \"[::]:40000\"",
    );
    check(
        "[server]\npublic_addresses = [\"0.0.0.0:40000\"]\n",
        "throng.toml:2: [server] public_addresses: nobody can reach 0.0.0.0 or port 0; write what players connect to",
    );
    check(
        "[server]\nadmin_names = [\"metrics.example:9100\"]\n",
        "throng.toml:2: [server] admin_names: holds host names alone, without port and path, such as \"metrics.example\"",
    );
    for origin in ["game.example", "https://game.example/", "https://*.game.example", "https://"] {
        check(
            &format!("[browser]\norigins = [\"{origin}\"]\n"),
            "throng.toml:2: [browser] origins: holds where pages are, without a path, such as \"https://game.example\"",
        );
    }
    let origins = ["https://game.example:8443", "capacitor://localhost", "http://[2001:db8::1]"];
    assert_eq!(accept(&format!("[browser]\norigins = {origins:?}\n")).browser.origins, origins);
    check(
        "[server]\naddress = \"127.0.0.1:9100\"\n",
        "throng.toml:1: [server] admin_address: is the same as `address`; give each its own port",
    );
}

#[test]
fn an_admin_port_that_others_can_reach_needs_keys() {
    for address in ["0.0.0.0:9100", "192.0.2.7:9100", "[::]:9100", "[::ffff:192.0.2.7]:9100"] {
        check(
            &format!("[server]\nadmin_address = \"{address}\"\n"),
            &format!(
                "throng.toml:2: [server] admin_address: other hosts can reach {address}, and there are no keys: name a \
                 file of them in `admin_keys_file` (`throng admin-key NAME ROLE` makes a line of it), or write \
                 \"127.0.0.1:9100\""
            ),
        );
        accept(&format!("[server]\nadmin_address = \"{address}\"\nadmin_keys_file = \"admin.keys\"\n"));
    }
    for address in ["127.0.0.1:9100", "127.9.9.9:1", "[::1]:9100", "[::ffff:127.0.0.1]:9100", "off"] {
        accept(&format!("[server]\nadmin_address = \"{address}\"\n"));
    }
    check(
        "[server]\nadmin_keys_file = \"\"\n",
        "throng.toml:2: [server] admin_keys_file: names no file; write a path, or remove the key",
    );
}

#[test]
fn the_admin_keys_lie_beside_the_settings_unless_their_path_is_whole() {
    let check = |file: &str, named: &str, expect: Option<&str>| {
        let settings = Settings::parse(file, &format!("[server]\nadmin_keys_file = \"{named}\"\n")).unwrap();
        assert_eq!(settings.admin_keys_file().as_deref(), expect.map(Path::new), "{file} {named}");
    };
    check("throng.toml", "admin.keys", Some("admin.keys"));
    check("/etc/throng/throng.toml", "admin.keys", Some("/etc/throng/admin.keys"));
    check("games/throng.toml", "keys/admin.keys", Some("games/keys/admin.keys"));
    check("games/throng.toml", "/run/secrets/admin.keys", Some("/run/secrets/admin.keys"));
    assert_eq!(accept("").admin_keys_file(), None);
}

#[test]
fn a_key_is_read_as_it_is_written() {
    let key = SecretKey::new(std::array::from_fn(|i| i as u8 * 8));
    assert_eq!(SecretKey::from_hex(&key.to_hex()), Ok(key.clone()));
    assert_eq!(SecretKey::from_hex(&key.to_hex().to_uppercase()), Ok(key.clone()));
    assert_eq!(key.to_hex().len(), 64);
}

#[test]
fn a_key_is_checked_and_never_shown() {
    check(
        "[server]\nprivate_key = \"5ec2e7\"\n",
        "throng.toml:2: [server] private_key: has 6 digits; a private key is 64 hexadecimal digits; make one with \
         `openssl rand -hex 32`",
    );
    check(
        "[server]\nprivate_key = \"hunter2\"\n",
        "throng.toml:2: [server] private_key: has characters that are not hexadecimal digits; a private key is 64 \
         hexadecimal digits; make one with `openssl rand -hex 32`",
    );
    let zeros = "0".repeat(64);
    check(
        &format!("[server]\nprivate_key = \"{zeros}\"\n"),
        "throng.toml:2: [server] private_key: is all zeros, which anybody can guess; a private key is 64 hexadecimal \
         digits; make one with `openssl rand -hex 32`",
    );
    let key = "5e".repeat(32);
    let both = format!("[server]\nprivate_key = \"{key}\"\nprivate_key_file = \"key.hex\"\n");
    check(&both, "throng.toml:3: [server] private_key_file: `private_key` is given too; keep one of them");
    let shown = format!("{:?}", accept(&format!("[server]\nprivate_key = \"{key}\"\n")));
    assert!(shown.contains("SecretKey(hidden)") && !shown.contains("5e5e") && !shown.contains("94, 94"));
}

#[test]
fn what_is_not_toml_is_told_with_its_line() {
    check("[server]\nworkers = 3\nworkers = 4\n", "throng.toml:3: `workers` is given twice; remove one of them");
    check("[server]\nworkers 3\n", "throng.toml:2: not TOML: key with no value, expected `=`");
    check("[server\nworkers = 3\n", "throng.toml:1: not TOML: unclosed table, expected `]`");
}

#[test]
fn all_mistakes_of_a_file_come_at_once_in_its_order() {
    check(
        "[replication]\ncell_m = \"big\"\ncel_m = 3\n[server]\nworkers = 0\ntimeout_s = true\nsockets = 0\n",
        "throng.toml:2: [replication] cell_m: must be a number, not \"big\"\n\
         throng.toml:3: [replication] cel_m: unknown key; did you mean `cell_m`?\n\
         throng.toml:5: [server] workers: 0 is too low; it may be 1 to 256 threads\n\
         throng.toml:6: [server] timeout_s: must be a whole number from 0 to 4294967295, not true\n\
         throng.toml:7: [server] sockets: 0 is too low; it may be 1 to 32 sockets",
    );
}

#[test]
fn a_default_is_not_held_against_a_key_whose_partner_is_ill_typed() {
    check(
        "[replication]\nenter_radius_m = 80\nleave_radius_m = \"far\"\n",
        "throng.toml:3: [replication] leave_radius_m: must be a number, not \"far\"",
    );
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let check = |path: &Path, expect: &str| {
        let found = Settings::load(path).unwrap_err().to_string();
        let expect = format!("{}: {expect}", path.display());
        assert_eq!(found, expect);
    };
    check(
        Path::new("no/such/throng.toml"),
        "no such file; create it (every setting has a default, so it may be empty) or name another with --config PATH",
    );
    let folder = std::env::temp_dir().join(format!("throng-settings-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    check(&folder, "is a directory; name the file in it");
    let foreign = folder.join("latin1.toml");
    std::fs::write(&foreign, b"# caf\xe9\n").unwrap();
    check(&foreign, "is not UTF-8 text; save it again as UTF-8");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn files_that_are_read_lie_beside_the_settings() {
    let folder = std::env::temp_dir().join(format!("throng-beside-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("throng.toml");
    let load = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Settings::load(&path).unwrap()
    };
    let beside = load(
        "[server]\nprivate_key_file = \"keys/key.hex\"\ntoken_journal = \"used\"\n\
         [recorder]\nrules = \"rules.toml\"\ncaptures = \"captures\"\n",
    );
    assert_eq!(beside.server.private_key_file, Some(folder.join("keys/key.hex")));
    assert_eq!(beside.recorder.rules, Some(folder.join("rules.toml")));
    assert_eq!(beside.server.token_journal, TokenJournalFile::Named(folder.join("used")));
    assert_eq!(beside.recorder.captures, Some("captures".into()), "captures go to the working folder");
    let absolute = load("[server]\nprivate_key_file = \"/etc/throng/key.hex\"\n");
    assert_eq!(absolute.server.private_key_file, Some("/etc/throng/key.hex".into()));
    assert_eq!(load("").server.private_key_file, None);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn public_addresses_of_the_other_family_are_found() {
    let check = |address: &str, expect: &[&str]| {
        let text = format!(
            "[server]\naddress = \"{address}\"\npublic_addresses = [\"203.0.113.7:40000\", \"[2001:db8::7]:40000\"]\n"
        );
        let found: Vec<String> =
            accept(&text).server.public_addresses_of_other_family().map(|address| address.to_string()).collect();
        assert_eq!(found, expect, "{address}");
    };
    check("[::]:40000", &["203.0.113.7:40000"]);
    check("0.0.0.0:40000", &["[2001:db8::7]:40000"]);
}

#[test]
fn the_key_comes_from_the_environment_then_the_file_then_the_setting() {
    let folder = std::env::temp_dir().join(format!("throng-key-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("key.hex");
    std::fs::write(&path, format!("{}\n", "02".repeat(32))).unwrap();
    let mut server = ServerSettings {
        private_key: Some(SecretKey::new([3; 32])),
        private_key_file: Some(path.clone()),
        ..ServerSettings::default()
    };
    let nothing = |_: &str| None;
    let key = |bytes: [u8; 32]| Ok(Some(SecretKey::new(bytes)));

    let environment = |name: &str| (name == PRIVATE_KEY_VARIABLE).then(|| "01".repeat(32));
    assert_eq!(server.private_key(environment), key([1; 32]));
    assert_eq!(server.private_key(nothing), key([2; 32]));

    std::fs::write(&path, "too short").unwrap();
    let error = server.private_key(nothing).unwrap_err().to_string();
    let expect = format!("private_key_file {}: has characters that are not hexadecimal", path.display());
    assert!(error.starts_with(&expect), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
    let error = server.private_key(nothing).unwrap_err().to_string();
    assert!(error.contains("cannot be read") && error.contains("openssl rand"), "{error}");

    server.private_key_file = None;
    assert_eq!(server.private_key(nothing), key([3; 32]));
    let error = server.private_key(|_| Some("12".to_owned())).unwrap_err().to_string();
    assert!(error.starts_with("environment variable THRONG_PRIVATE_KEY: has 2 digits;"), "{error}");
}

/// A game's section, without `#[serde(default)]`: then every key must be given.
#[derive(Debug, Default, Deserialize)]
struct Rules {
    wolves: u32,
    speed_m_per_s: f32,
}

impl Section for Rules {
    fn check(&self, checks: &mut Checks<'_>) {
        checks.range("wolves", self.wolves, 0..=1_000, "wolves");
        checks.range("speed_m_per_s", self.speed_m_per_s, 0.1..=20.0, "m/s");
    }
}

#[test]
fn a_games_section_is_checked_with_the_same_care() {
    let check = |text: &str, expect: &str| {
        let found = accept(text).game::<Rules>().unwrap_err().to_string();
        assert_eq!(found, expect, "\n--- for the file:\n{text}");
    };
    check(
        "[game]\nwolfs = 3\nwolves = 2\nspeed_m_per_s = 1\n",
        "throng.toml:2: [game] wolfs: unknown key; did you mean `wolves`?",
    );
    check(
        "[game]\nwolves = 2_000\nspeed_m_per_s = 99.5\n",
        "throng.toml:2: [game] wolves: 2000 is too high; it may be 0 to 1000 wolves\n\
         throng.toml:3: [game] speed_m_per_s: 99.5 is too high; it may be 0.1 to 20 m/s",
    );
    check(
        "[game]\nwolves = 'x'\nspeed_m_per_s = 'y'\n",
        "throng.toml:2: [game] wolves: must be a whole number from 0 to 4294967295, not \"x\"\n\
         throng.toml:3: [game] speed_m_per_s: must be a number, not \"y\"",
    );
    check("\n[game]\nwolves = 3\n", "throng.toml:2: [game] missing field `speed_m_per_s`");

    let rules = accept("[game]\nwolves = 3\nspeed_m_per_s = 1.5\n").game::<Rules>().unwrap();
    assert_eq!((rules.wolves, rules.speed_m_per_s), (3, 1.5));
    assert_eq!(accept("").game::<Rules>().unwrap().wolves, 0);
}

#[test]
fn mistakes_of_the_games_section_are_told_with_all_others() {
    let check = |text: &str, expect: &str| {
        let found = Settings::parse_with::<Rules>("throng.toml", text).map(drop).unwrap_err().to_string();
        assert_eq!(found, expect, "\n--- for the file:\n{text}");
    };
    check(
        "[server]\nwrokers = 2\n[game]\nwolves = 2_000\nspeed_m_per_s = 1\n[recorder]\nmemory_mb = 0\n",
        "throng.toml:2: [server] wrokers: unknown key; did you mean `workers`?\n\
         throng.toml:4: [game] wolves: 2000 is too high; it may be 0 to 1000 wolves\n\
         throng.toml:7: [recorder] memory_mb: 0 is too low; it may be 1 to 4096 MiB",
    );
    check("[server]\nwolves = 2\n", "throng.toml:2: [server] wolves: unknown key here; it belongs in [game]");
    let none = Settings::parse_with::<NoSection>("throng.toml", "[game]\nwolves = 2\n").map(drop).unwrap_err();
    assert_eq!(none.to_string(), "throng.toml:2: [game] wolves: unknown key; this section has none; remove it");
    assert!(Settings::parse_with::<NoSection>("throng.toml", "[game]\n").is_ok());
    assert!(Settings::parse("throng.toml", "[game]\nwolves = 2\n").is_ok(), "who knows no game leaves it alone");
}

#[test]
fn the_usual_file_is_read_where_it_is_and_a_named_one_must_be_there() {
    let folder = std::env::temp_dir().join(format!("throng-find-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let usual = folder.join(SETTINGS_FILE);
    let find = |named: Option<&Path>| Settings::find_in::<AnySection>(&folder, named).map(|(settings, _)| settings);

    let without = find(None).unwrap();
    assert_eq!((without.server.timeout_s, without.source()), (10, "defaults, there is no throng.toml here".to_owned()));
    std::fs::write(&usual, "[server]\ntimeout_s = 77\n").unwrap();
    let with = find(None).unwrap();
    assert_eq!((with.server.timeout_s, with.source()), (77, usual.display().to_string()));
    let other = folder.join("other.toml");
    let missing = find(Some(&other)).map(drop).unwrap_err();
    assert!(matches!(&missing, SettingsError::Missing { .. }), "{missing}");
    std::fs::write(&other, "[server]\ntimeout_s = 55\n").unwrap();
    assert_eq!(find(Some(&other)).unwrap().server.timeout_s, 55, "the named one, whatever lies beside it");
    // What is there and of no use is never passed over.
    std::fs::write(&usual, "[server]\ntimeout_s = 0\n").unwrap();
    assert!(find(None).is_err());
    std::fs::remove_dir_all(&folder).unwrap();
}

/// The page that operators read shows every setting with its default; this is what keeps it true.
#[test]
fn the_settings_page_shows_every_key_with_its_default() {
    let page = include_str!("../../../../docs/settings.md");
    let sample = page.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```"));
    let (sample, _) = sample.expect("docs/settings.md has a sample in TOML");
    let settings = accept(sample);
    assert_eq!(settings.server, ServerSettings::default());
    assert_eq!(settings.replication, ReplicationSettings::default());
    assert_eq!(settings.recorder, RecorderSettings::default());
    assert_eq!(settings.recording, RecordingSettings::default());
    assert_eq!(settings.analytics, AnalyticsSettings::default());
    assert_eq!(settings.object_store, ObjectStoreSettings::default());
    let keys = [
        section::keys_of::<RecordingSettings>(),
        section::keys_of::<ServerSettings>(),
        section::keys_of::<ReplicationSettings>(),
        section::keys_of::<RecorderSettings>(),
        section::keys_of::<BrowserSettings>(),
        section::keys_of::<AnalyticsSettings>(),
        section::keys_of::<ObjectStoreSettings>(),
    ];
    for key in keys.into_iter().flatten().flatten() {
        let shown = sample.lines().any(|line| line.trim_start_matches("# ").starts_with(&format!("{key} =")));
        assert!(shown, "docs/settings.md: the sample lacks {key}");
    }
}

/// Promise: of the server's own sections a recording has no text, whatever the key is called; what is left can be read again.
#[test]
fn no_text_of_the_servers_own_sections_is_recorded() {
    let page = include_str!("../../../../docs/settings.md");
    let sample = page.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```"));
    let (sample, _) = sample.expect("docs/settings.md has a sample in TOML");
    let all: String = sample.lines().map(|line| format!("{}\n", line.trim_start_matches("# "))).collect();
    assert!(all.contains("\nprivate_key = \"") && all.contains("\nurl = \"https:"), "{all}");
    let settings = Settings { text: format!("{all}name = \"of the game\"\n"), ..Settings::default() };
    let kept = settings.text_for_recording();
    let texts: Vec<&str> = kept.lines().filter(|line| line.contains(['"', '\''])).collect();
    assert_eq!(texts, ["name = \"of the game\""], "{kept}");
    assert_eq!(accept(&kept).recording, RecordingSettings::default());
    assert!(kept.contains("hash_period_s = 5\n") && kept.contains("at_start = true\n"), "{kept}");
}

/// Promise: a server with any store and any receiver can be made again from what is recorded of its settings.
#[test]
fn what_is_left_of_settings_makes_sense_without_the_rest() {
    let check = |text: &str| accept(&accept(text).text_for_recording());
    assert_eq!(check("[saves]\nstore = \"postgres\"\npostgres = \"password=x\"\nperiod_s = 7\n").saves.period_s, 7);
    check("[analytics]\nurl = \"https://events.example\"\nkey_file = \"a.key\"\nspool = \"spool\"\n");
    check("[object_store]\nendpoint = \"https://store.example\"\nbucket = \"throng\"\n");
    check("[browser]\naddress = \"127.0.0.1:1\"\nweb_transport_address = \"127.0.0.1:2\"\n");
    check("[server]\nadmin_address = \"0.0.0.0:9100\"\nadmin_keys_file = \"admin.keys\"\nworkers = 3\n");
}

/// Promise: whatever a file says, it is read or told line by line; it never panics.
#[test]
fn twenty_thousand_mutated_files_are_read_or_told() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let page = include_str!("../../../../docs/settings.md");
    let sample = page.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```"));
    let (sample, _) = sample.expect("docs/settings.md has a sample in TOML");
    let pieces =
        ["[", "]", "[[", "=", "\"", "\n", "'''", "{", "}", ".", "-1", "1e999", "nan", "\0", "ß", "[game]\n", "#"];
    let (mut read, mut told) = (0, 0);
    for _ in 0..20_000 {
        let mut text = sample.to_owned();
        for _ in 0..rng.random_range(1..4) {
            let at = text.floor_char_boundary(rng.random_range(0..=text.len()));
            let end = text.floor_char_boundary((at + rng.random_range(0..12)).min(text.len()));
            match rng.random_range(0..3) {
                0 => text.replace_range(at..end, ""),
                1 => text.insert_str(at, pieces[rng.random_range(0..pieces.len())]),
                _ => {
                    let again = text[at..end].to_owned();
                    text.insert_str(at, &again);
                }
            }
        }
        match Settings::parse("throng.toml", &text) {
            Ok(settings) => {
                let _ = settings.game::<Rules>();
                read += 1;
            }
            Err(error) => {
                let error = error.to_string();
                assert!(error.starts_with("throng.toml:"), "{error}");
                told += 1;
            }
        }
    }
    assert!(read > 1_000 && told > 1_000, "{read} read, {told} told");
}
