//! Writes the seeds that are kept: for each target a few scripts that reach behind its first checks.
//!
//! ```sh
//! cargo run --manifest-path fuzz/Cargo.toml --example seeds
//! ```
//!
//! They are made by the encoders under test, so after a change of format they are made anew. Run it in the root.

use std::{fs, io, path::Path};

use frontier::{
    components::{Pose as FrontierPose, Vitals},
    events::Say,
    protocol::{Ability, Greeting, Input as FrontierInput, Wish},
};
use precinct::protocol::{CallMe, Input, Said, Say as PrecinctSay};
use throng::world::{checkpoint::PlayerEntities, ids::ClientKey};
use throng_capture::{Capture, format, model::*};
use throng_fuzz::{
    components::{Health, Mood, Pose, Purse, Temper, small_schema},
    kept,
    packed::{self, Even, first, list},
};
use throng_net::{
    connection::Channels,
    control::{ENTER_WORLD_BYTES_MAX, EnterWorld, SchemaHash},
    protocol::PAYLOAD_BYTES_MAX,
};
use throng_pack::{Pack, Text, envelope, pack_body};
use throng_platform::time::Nanos;
use throng_replication::{
    EVENT_BYTES_MAX, InterestSettings, NetId, Replicate, Traffic, ViewScratch, WorldReplication, write_event,
};

fn main() -> io::Result<()> {
    datagrams()?;
    connect_tokens()?;
    payloads()?;
    sessions()?;
    snapshots()?;
    inputs()?;
    of_frontier()?;
    controls()?;
    admin()?;
    packed()?;
    checkpoints()?;
    recordings()?;
    replays()?;
    saves()?;
    settings()?;
    histories()?;
    captures()
}

fn keep(target: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
    let folder = Path::new("fuzz/seeds").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}

/// Ten commits of a bench, of which the last five are slower; and the same with lines between them that are no records.
fn histories() -> io::Result<()> {
    let record = |commit: u64| {
        let us = if commit < 5 { 10 } else { 20 };
        format!(
            "{{\"format\":1,\"written_unix_s\":{commit},\"kind\":\"bench\",\"name\":\"b\",\"commit\":\"{commit}\",\"times_us\":{{\"a_us\":{us}}}}}\n"
        )
    };
    let whole: String = (0..10).map(record).collect();
    keep("history", "ten_commits", whole.as_bytes())?;
    let broken = whole.replace("\n", "\n{\"format\":1}\n\n");
    keep("history", "broken_lines", &broken.as_bytes()[..broken.len() - 30])
}

/// A length of 16 bits and the bytes, as scripts hold them.
fn block(bytes: &[u8]) -> Vec<u8> {
    let len = u16::try_from(bytes.len()).expect("seeds are small");
    [&len.to_le_bytes(), bytes].concat()
}

fn datagrams() -> io::Result<()> {
    // Operations 1 to 3 are the honest hello, request and response; 4 and 5 the plain ones.
    keep("datagram", "a_client_comes_in", &[1, 2, 3])?;
    keep("datagram", "a_plain_client_comes_in_twice", &[4, 5, 4, 5])?;
    keep("datagram", "another_address_repeats_it", &[1, 2, 0x42, 0x43, 3])?;
    keep("datagram", "too_late", &[1, 7, 250, 2, 7, 250, 3])?;
    // Operation 15 lets the line move: the client is called and left waiting, turned away, admitted.
    keep("datagram", "it_stands_in_line_and_is_let_in", &[1, 2, 3, 3, 0x2F, 0, 3])?;
    keep("datagram", "it_is_called_and_waits_in_vain", &[1, 2, 3, 0x0F, 10, 3, 7, 100, 7, 100])?;
    keep("datagram", "it_is_turned_away_and_comes_again", &[1, 2, 3, 0x1F, 0, 1, 2, 3, 0x2F, 0])?;
    keep("datagram", "damaged_in_one_place", &[9, 1, 20, 0, 1, 2, 11, 1, 100, 0, 0x80])?;
    keep("datagram", "raw", &[&[0][..], &block(&[7; 40])].concat())
}

/// The byte before the body says whether players are left out.
fn checkpoints() -> io::Result<()> {
    let mut world = kept::world();
    let mut of = |ticks: u32, name: &str, first: u8| {
        world.ticks(ticks);
        let bytes = world.checkpoint(PlayerEntities::Stay).expect("a checkpoint");
        world.arrive(ClientKey(ticks));
        keep("checkpoint", name, &[&[first][..], &bytes[24..]].concat())
    };
    of(0, "just_built", 0)?;
    of(5, "without_players", 0)?;
    of(9, "with_a_player", 0)?;
    of(20, "players_are_left_out", 1)
}

/// What the documents draw: the target seals blocks itself.
fn recordings() -> io::Result<()> {
    let page = include_str!("../../docs/spec/recording.md");
    let drawn = |name: &str| -> Vec<u8> {
        let (_, block) = page.split_once(&format!("```hex {name}\n")).expect("it is drawn");
        let (block, _) = block.split_once("```").expect("it ends");
        block.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal")).collect()
    };
    let blocks = drawn("blocks");
    keep("recording", "blocks", &blocks)?;
    keep("recording", "blocks_twice", &[&blocks[..], &blocks].concat())?;
    keep("recording", "a_heading", &drawn("heading"))?;
    // A tick of an input log, in its block.
    let log = include_str!("../../docs/spec/input-log.md");
    let (_, log) = log.split_once("```hex log\n").expect("it is drawn");
    let (log, _) = log.split_once("```").expect("it ends");
    let log: Vec<u8> = log.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal")).collect();
    let ticks = &log[40..];
    keep("recording", "ticks", &[&[6][..], &(ticks.len() as u32).to_le_bytes(), ticks].concat())
}

/// What a server wrote, behind which the target sets it once more; and the blocks of the document.
fn replays() -> io::Result<()> {
    let blocks = kept::recorded_blocks(&kept::folder("seeds"));
    keep("replay", "once_more", &blocks)?;
    keep("replay", "not_closed", &blocks[..blocks.len() - 12])?;
    keep("replay", "nothing", &[])
}

/// The byte before the record says whose it is.
fn saves() -> io::Result<()> {
    #[derive(Pack)]
    #[pack(name = "fuzz.hero", version = 3)]
    struct Hero {
        #[pack(max = 10_000)]
        gold: u32,
        #[pack(max = 99)]
        silver: u8,
        #[pack(since = 3, default = 1.0, min = 0.0, max = 1.0)]
        health: f32,
    }
    #[derive(Pack)]
    #[pack(name = "fuzz.hero", version = 1)]
    struct OldHero {
        #[pack(max = 1_000_000)]
        coins: u32,
    }
    let (mut hero, mut old) = (Vec::new(), Vec::new());
    envelope::write(&Hero { gold: 12, silver: 34, health: 0.5 }, &mut hero).expect("within limits");
    envelope::write(&OldHero { coins: 1_234 }, &mut old).expect("within limits");
    let player = [&[0, 1, 1][..], &11_u64.to_le_bytes()].concat();
    let world = b"\x01\x01\x06market";
    keep("saves", "a_player", &[&player, &hero[..]].concat())?;
    keep("saves", "a_player_of_an_older_version", &[&player, &old[..]].concat())?;
    keep("saves", "a_player_in_no_world", &[&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &hero].concat())?;
    keep("saves", "a_world", &[&world[..], &hero].concat())?;
    keep("saves", "a_cell", &[&[2][..], &old].concat())
}

fn connect_tokens() -> io::Result<()> {
    keep("connect_token", "the_back_ends_own", &[0])?;
    keep("connect_token", "no_address", &[0, 1, 65, 4])?;
    keep("connect_token", "thirty_three_addresses", &[0, 0x20, 65, 4])?;
    keep("connect_token", "only_a_version", &[&[1][..], b"NETCODE 1.02\0"].concat())
}

fn payloads() -> io::Result<()> {
    let mut peer = Channels::new(Nanos::ZERO);
    let mut write = |reliable: &[u8], unreliable: &[u8]| {
        let mut payload = [0; PAYLOAD_BYTES_MAX];
        if !reliable.is_empty() {
            peer.send_reliable(reliable).expect("a short message");
        }
        let (_, len) = peer.write(Nanos::ZERO, unreliable, &mut payload);
        [&[0][..], &block(&payload[..len])].concat()
    };
    let short = [write(b"first", b"now"), write(b"", b"then"), write(b"second", b"")].concat();
    let fragments = [write(&[9; 500], b""), write(b"", b"")].concat();
    keep("payload", "short_messages", &short)?;
    keep("payload", "fragments", &fragments)?;
    keep("payload", "both_ways", &[&[4, 9, 0, 6, 0, 0, 5, 20, 6, 5, 0][..], &short, &[3, 50, 6, 0, 0]].concat())
}

fn sessions() -> io::Result<()> {
    // 0 = say, 15 = deliver all and let the line move, 9 = pass time; 0x80 = at the server, where 13 = the line moves.
    let come_in = [0, 0, 15, 9, 11, 0, 15, 9, 11, 0, 15];
    let talk = [10, 100, 0, 0x8a, 44, 1, 12, 30, 0x8c, 40, 0, 0x80, 15, 9, 5, 0, 0x80, 15];
    let lossy = [10, 0, 16, 0, 0, 0, 0, 6, 0, 5, 1, 4, 2, 0x84, 1, 9, 60, 13, 0x8d, 7, 0, 0x80, 15];
    keep("session", "comes_in", &come_in)?;
    keep("session", "talks", &[&come_in[..], &talk].concat())?;
    keep("session", "over_a_bad_path", &[&come_in[..], &talk, &lossy, &lossy, &lossy].concat())?;
    keep("session", "goes_and_comes_back", &[&come_in[..], &[14, 15, 0, 15, 9, 250], &come_in[1..]].concat())
}

fn snapshots() -> io::Result<()> {
    let schema = small_schema();
    let mut world = WorldReplication::new(schema.clone(), InterestSettings::default());
    let (mut scratch, mut traffic) = (ViewScratch::default(), Traffic::new(&schema));
    let mut view = world.new_view(1);
    view.look_at([0.0, 0.0]);
    let mut script = vec![0];
    let mut ids = Vec::new();
    for tick in 1..=6_u16 {
        world.begin_tick(tick.into());
        if tick <= 2 {
            ids.push(world.spawn().expect("there is room"));
        }
        for &id in &ids {
            let step = f32::from(tick);
            update(&mut world, id, &Pose { place: [step, 0.0, -step], heading: step });
            update(&mut world, id, &Health { points: 100 - tick, shielded: tick % 2 == 0 });
            update(&mut world, id, &Temper { mood: Mood::Wary, patience: 0.5 });
            update(&mut world, id, &Purse { coins: tick.into(), slots: 3 });
            world.set_place(id, [step, -step]);
        }
        if tick == 5 {
            world.despawn(ids.remove(0));
        }
        world.settle();
        world.refresh(&mut view, &mut scratch);
        let mut message = [0; 400];
        let len = world.write_snapshot(&mut view, &mut traffic, tick, &mut message);
        world.sent(&mut view, tick);
        view.acked(tick);
        script.push(0);
        script.extend(block(&message[..len]));
        let mut sample = Vec::new();
        if world.write_audit_sample(&mut view, &mut traffic, &mut sample) {
            script.push(4);
            script.extend(u32::from(tick).to_le_bytes());
            script.extend(block(&sample));
        }
        script.push(6);
        if tick == 2 {
            keep("snapshot", "two_spawns", &script)?;
        }
    }
    keep("snapshot", "six_ticks_with_audit_samples", &script)
}

fn update<T: Replicate>(world: &mut WorldReplication, id: NetId, value: &T) {
    let kind = world.schema().kind_of::<T>().expect("it is in the schema");
    world.update(kind, id, value);
}

fn inputs() -> io::Result<()> {
    keep("input", "an_input", &bytes_of(&Input::new([0.6, -0.8], 3.0, -0.5, true, false)))?;
    keep("input", "words", &bytes_of(&PrecinctSay::new("zwölf Häuser am Fluß").expect("it is fit to be said")))?;
    keep("input", "a_name", &bytes_of(&CallMe::new("Agent 7").expect("it is a name")))?;
    keep("input", "said", &bytes_of(&Said::new("Agent 7", "all quiet").expect("it is fit to be said")))
}

fn bytes_of(value: &impl Pack) -> Vec<u8> {
    let mut bytes = Vec::new();
    pack_body(value, &mut bytes).expect("it is sound");
    bytes
}

fn of_frontier() -> io::Result<()> {
    let somebody = NetId { slot: 4_321, generation: 7 };
    let input = FrontierInput::new([0.6, -0.8], 3.0).attacking(true).casting(Ability::Bolt);
    keep("frontier", "an_input", &bytes_of(&input))?;
    keep("frontier", "words", &bytes_of(&Wish::say("zwölf Häuser am Fluß").expect("it is fit to be said")))?;
    keep("frontier", "a_name", &bytes_of(&Wish::call_me("Faye").expect("it is a name")))?;
    keep("frontier", "a_target", &bytes_of(&Wish::Target(Some(somebody))))?;
    keep("frontier", "an_emote", &bytes_of(&Wish::Emote(Greeting::Bow)))?;

    let schema = frontier::schema();
    let say = Say {
        speaker: Some(somebody),
        name: Text::new("Faye").expect("it is short"),
        words: Text::new("well met").expect("it is short"),
    };
    let mut out = [0; EVENT_BYTES_MAX];
    let len = write_event(schema.event_of::<Say>().expect("it is in the schema"), &say, &mut out);
    keep("frontier", "an_event", &out[..len])?;

    let mut world = WorldReplication::new(schema.clone(), InterestSettings::default());
    let (mut scratch, mut traffic) = (ViewScratch::default(), Traffic::new(&schema));
    let mut view = world.new_view(1);
    view.look_at([0.0, 0.0]);
    world.begin_tick(1);
    let id = world.spawn().expect("there is room");
    update(&mut world, id, &FrontierPose { x: 3.0, z: -4.0, heading: 1.0 });
    update(&mut world, id, &Vitals::FULL);
    world.set_place(id, [3.0, -4.0]);
    world.settle();
    world.refresh(&mut view, &mut scratch);
    let mut message = [0; 400];
    let len = world.write_snapshot(&mut view, &mut traffic, 1, &mut message);
    keep("frontier", "a_snapshot", &message[..len])
}

fn admin() -> io::Result<()> {
    keep("admin", "a_scrape", b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9100\r\nUser-Agent: Prometheus\r\n\r\n")?;
    let console = "POST /console HTTP/1.1\r\nHost: localhost:9100\r\nx-throng: console\r\n\r\n";
    keep("admin", "a_command", format!("{console}packets --by-world --json").as_bytes())?;
    keep("admin", "counters", format!("{console}counters net.").as_bytes())?;
    let page = "POST /console HTTP/1.1\r\nHost: evil.example:9100\r\nOrigin: http://evil.example:9100\r\n\
                Sec-Fetch-Site: same-origin\r\n\r\nhelp";
    keep("admin", "a_page_of_another_server", page.as_bytes())?;
    keep("admin", "a_line", b"kick  player-7   --json")
}

fn controls() -> io::Result<()> {
    let entered = EnterWorld {
        epoch: 7,
        tick_hz: 20,
        tick: 70_000,
        world: 1_001,
        own_entity: Some((70, 3)),
        has_returned: true,
        is_reactive: true,
        name: "hub",
    };
    let mut out = [0; ENTER_WORLD_BYTES_MAX];
    let len = entered.encode(&mut out);
    keep("control", "with_an_entity", &out[..len])?;
    let len = EnterWorld { own_entity: None, name: "", ..entered }.encode(&mut out);
    keep("control", "without", &out[..len])?;
    keep("control", "schema", &SchemaHash(0x0102_0304_0506_0708).encode())
}

fn packed() -> io::Result<()> {
    let even = Even::try_from(70_000).expect("it is even");
    let text = |text| Text::new(text).expect("it is short");
    let traveller = packed::Traveller {
        name: Text::new("Zoë").expect("it is short"),
        health: 80,
        place: [1.0, -2.5, 512.0],
        exact: Some(0.1),
        items: list(vec![
            packed::Item::Medkit,
            packed::Item::Weapon { kind: 7, rounds: Some(-300), seed: u64::MAX },
            packed::Item::Coins(1_000, -1),
        ]),
        notes: list(vec![text(""), text("Fluß")]),
        scores: list(vec![Some(-7), None, Some(i32::MAX)]),
        bags: list(vec![list(vec![]), list(vec![1, 300, u16::MAX])]),
        known: true,
        seeds: [1, u64::MAX],
        even,
        since: -3,
    };
    let older = first::Traveller {
        name: traveller.name,
        health: 0,
        place: [0.0; 3],
        exact: None,
        items: list(vec![first::Item::Weapon { kind: 1, rounds: None }, first::Item::Medkit]),
        notes: list(vec![]),
        scores: list(vec![]),
        bags: list(vec![list(vec![7])]),
        known: false,
        seeds: [3, 4],
        even,
    };
    let mut bytes = Vec::new();
    envelope::write(&traveller, &mut bytes).map_err(io::Error::other)?;
    keep("pack", "current", &bytes)?;
    bytes.clear();
    pack_body(&traveller, &mut bytes).map_err(io::Error::other)?;
    keep("pack", "without_envelope", &bytes)?;
    bytes.clear();
    envelope::write(&older, &mut bytes).map_err(io::Error::other)?;
    keep("pack", "first_version", &bytes)
}

fn captures() -> io::Result<()> {
    let text = str::to_owned;
    let scope = |site, begin_ns, end_ns| Event::Scope { site, begin_ns, end_ns };
    let holder = Some(Holder { thread: 1, site: Some(0), world: Some(7) });
    let main = vec![
        Event::Switch { at_ns: 1_000, change: Switch::Running { core: 0 } },
        Event::World { at_ns: 1_000, world: Some(7), tick: 42 },
        scope(0, 1_000, 1_100),
        Event::Allocations { count: 3, frees: 1, bytes: 4_096 },
        scope(0, 1_110, 1_150),
        Event::LockWait { lock: 0, begin_ns: 1_200, end_ns: 1_300, holder },
        scope(1, 1_000, 1_400),
        Event::Count { at_ns: 1_500, counter: 0, value: 0.5 },
        Event::OpenScope { site: 1, begin_ns: 1_600 },
    ];
    let worker = vec![
        Event::PageFault { at_ns: 1_200 },
        Event::LargeAllocation { at_ns: 1_200, bytes: 70_000 },
        Event::Switch { at_ns: 1_300, change: Switch::Preempted },
        scope(1, 1_500, 1_400),
    ];
    let thread = |name, events| Thread { name: text(name), events, ..Thread::default() };
    let capture = Capture {
        about: About { begin_ns: 1_000, end_ns: 2_000, switches: SwitchSource::CpuWide, ..About::default() },
        sites: vec![Site { name: text("a.b"), line: 9, budget_ns: Some(300), ..Site::default() }, Site::default()],
        threads: vec![thread("main", main), thread("w", worker)],
        worlds: vec![World { id: 7, name: text("hub"), tick_hz: 20 }],
        locks: vec![Lock { name: text("m") }],
        frames: vec![Frame { end_ns: 9, threads: vec![FrameThread::default()], ..Frame::default() }],
        counters: vec![Counter { name: text("n") }],
        logs: vec![LogLine { text: text("\"Mallory\" at 203.0.113.9:4000"), ..LogLine::default() }],
        memory: Memory { at_ns: vec![1_000, 1_500], by_site: vec![LiveBytes { site: Some(0), bytes: vec![64, 32] }] },
        processes: vec![ProcessShare { pid: 9, name: text("cc"), cores: 1.5 }],
        host_threads: vec![HostThread {
            pid: 9,
            tid: 10,
            owner: Owner::Foreign,
            name: text("as"),
            process: text("cc"),
        }],
        cores: vec![Core {
            number: 0,
            runs: vec![CoreRun { at_ns: 1_300, thread: Some(0) }, CoreRun { at_ns: 1_350, thread: None }],
        }],
        host_stalls: vec![HostStall { core: 0, begin_ns: 1_400, end_ns: 1_500 }],
    };
    for (name, capture) in [("everything", &capture), ("nothing", &Capture::default())] {
        let mut file = Vec::new();
        format::write(capture, &mut file).map_err(io::Error::other)?;
        keep("capture", name, &file)?;
    }
    Ok(())
}

fn settings() -> io::Result<()> {
    keep("settings", "sound.toml", SOUND.as_bytes())?;
    keep("settings", "mistaken.toml", MISTAKEN.as_bytes())?;
    keep("settings", "sound_rules.toml", SOUND_RULES.as_bytes())?;
    keep("settings", "mistaken_rules.toml", MISTAKEN_RULES.as_bytes())
}

const SOUND: &str = r#"[server]
address = "127.0.0.1:0"
public_addresses = ["203.0.113.7:40000"]
admin_address = "off"
workers = "auto"
reserved_cores = 1
huge_pages = false
commit_memory_mb = 10
crashes = "off"
clients_max = 100
protocol_id = 0xff
token_journal = "tokens.used"
[replication]
enter_radius_m = 10
leave_radius_m = 12.5
[game]
wolves = 3
names = ["a"]
"#;

const MISTAKEN: &str = r#"wolves = 2
[sever]
[server]
wrokers = 3
workers = 1.5
timeout_s = 9999
address = "nowhere"
[replication]
cell_m = nan
[[game]]
"#;

const SOUND_RULES: &str = r#"[budgets.scopes_us]
"world.tick" = 10_000
[triggers.frame]
on = false
over_ms = 12.5
disk_budget_mb = 8
[log]
"server.clients" = "debug"
[replication]
catch_up_m = 20
keepalive_s = 2.5
[[replication.tiers]]
to_m = 40
updates_per_s = 20
[[replication.tiers]]
to_m = 120
updates_per_s = 5
[components.pose]
range_m = 200
[events."chat.say"]
range_m = 30
per_s_max = 2
"#;

const MISTAKEN_RULES: &str = r#"[budgets.scope_us]
[triggers.frame]
over_us = 3
cooldown_s = -1
[log]
"server.clients" = "debg"
[replication]
catch_up_m = nan
[[replication.tiers]]
to_m = 40
[[replication.tiers]]
to_m = 30
updates_per_s = 1e9
[components.pase]
[events]
say = 3
"#;
