//! Promise: a recording is read as it was written, up to where it was written whole, and never as anything else; what the
//! disk does not take is a gap, and no more.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use throng_net::protocol::PrivateKey;
use throng_pack::Reader;
use throng_platform::clock::{Clock, ManualClock};
use throng_profiler::rules::Rules;
use throng_replication::SchemaBuilder;
use throng_world::{
    ids::{WorldId, WorldKindId},
    world_kind::Hertz,
};

use super::{
    RecordingControl, RecordingError, RecordingFiles, SegmentFile,
    blocks::{self, About, Block, CheckpointReason, EndReason, RecordedTicks, WorldPlan},
    queue::{Message, RecordingQueue},
    segment::{SegmentFault, SegmentHeading, SegmentReader, write_group},
    segments_in,
    writer::{Disk, Files, Order, SegmentWrite, Writer},
};
use crate::{
    lifecycle::NewWorld,
    rules::{RuleNames, ServerRules},
    server::Server,
    settings::{RecordingSettings, Settings},
    testing::{TestKind, environment},
};

const SPEC: &str = include_str!("../../../../docs/spec/recording.md");

fn about() -> About {
    About {
        game: "dots".into(),
        version: "1".into(),
        commit: "c".into(),
        schema: 0x1122_3344_5566_7788,
        unix_s: 1_700_000_000,
        settings: "[game]\n".into(),
        arguments: vec!["--players".into(), "2".into()],
        tunables: vec!["walk".into()],
        kinds: vec!["dots".into()],
        draws: vec![5, u64::MAX],
        rules: vec!["[captures]\n".into()],
        has_store: Some(true),
    }
}

fn plan() -> WorldPlan {
    WorldPlan {
        kind: "dots".into(),
        rate_hz: 20,
        seed: 7,
        parameters: Some(vec![1, 2]),
        is_saved: true,
        saves_world: false,
    }
}

/// As builds wrote it that did not say whether there is a store.
fn about_without_store() -> About {
    let About { game, version, commit, schema, unix_s, .. } = about();
    About { game, version, commit, schema, unix_s, ..About::default() }
}

fn saved_plan() -> WorldPlan {
    WorldPlan { parameters: None, is_saved: false, saves_world: true, ..plan() }
}

const CHECKPOINTS: [CheckpointReason; 4] = [
    CheckpointReason::Regular,
    CheckpointReason::Begin { after: None },
    CheckpointReason::Begin { after: Some(6) },
    CheckpointReason::Changed,
];
const ENDS: [EndReason; 3] = [EndReason::Ended, EndReason::Panicked, EndReason::NotRecorded];

/// Tick 9, in which nothing came.
const TICK: &[u8] = &[9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFE, 0xFC, 0x7C, 0xE6];

/// A block of every kind, with every reason.
fn every_block() -> Vec<u8> {
    let mut out = Vec::new();
    blocks::write_about(&about(), &mut out);
    blocks::write_about(&about_without_store(), &mut out);
    blocks::write_world(WorldId::new(3, 1), &plan(), &mut out);
    blocks::write_world(WorldId::new(4, 0), &saved_plan(), &mut out);
    blocks::write_part(WorldId::new(3, 1), 9, &mut out);
    blocks::write_built(&mut out);
    CHECKPOINTS.iter().for_each(|why| blocks::write_checkpoint(*why, 8, b"state", &mut out));
    let begin = blocks::begin_ticks(&mut out);
    out.extend_from_slice(TICK);
    blocks::end_block(begin, &mut out);
    blocks::write_hash((9, 0x0102_0304, 5), &[0xAA, 1 << 32], [(0, 7), (300, 9)].into_iter(), &mut out);
    ENDS.iter().for_each(|why| blocks::write_ended(*why, &mut out));
    [false, true].iter().for_each(|is_last| blocks::write_closed(*is_last, &mut out));
    out
}

/// Asserts that these are the blocks of [`every_block`].
fn check_every_block(found: &[Block<'_>]) {
    let hash = found.iter().find_map(|block| if let Block::Hash(hash) = block { Some(*hash) } else { None }).unwrap();
    assert_eq!((hash.ticks, hash.whole, hash.random), (9, 0x0102_0304, 5));
    assert_eq!(hash.columns().collect::<Vec<_>>(), [0xAA, 1]);
    assert_eq!(hash.entities().collect::<Vec<_>>(), [(0, 7), (300, 9)]);
    let checkpoints = CHECKPOINTS.map(|why| Block::Checkpoint { why, ticks: 8, bytes: b"state" });
    let mut expected = vec![
        Block::About(Box::new(about())),
        Block::About(Box::new(about_without_store())),
        Block::World(WorldId::new(3, 1), plan()),
        Block::World(WorldId::new(4, 0), saved_plan()),
        Block::Part { world: WorldId::new(3, 1), number: 9 },
        Block::Built,
    ];
    expected.extend(checkpoints);
    expected.extend([Block::Ticks(RecordedTicks(TICK)), Block::Hash(hash)]);
    expected.extend(ENDS.map(Block::Ended));
    expected.extend([false, true].map(|is_last| Block::Closed { is_last }));
    assert_eq!(found, expected);
}

fn segment_of(groups: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    SegmentHeading { number: 2, recording_id: 0xABCD }.write(&mut bytes);
    groups.iter().for_each(|group| write_group(group, 1_500, &mut bytes));
    bytes
}

/// Each block as text, and the fault at the end.
fn read(bytes: &[u8]) -> (Vec<String>, Option<SegmentFault>) {
    let mut found = Vec::new();
    let reader = match SegmentReader::new(bytes) {
        Ok(reader) => reader,
        Err(fault) => return (found, Some(fault)),
    };
    for group in reader {
        let group = match group {
            Ok(group) => group,
            Err(fault) => return (found, Some(fault)),
        };
        for block in group.blocks() {
            match block {
                Ok(block) => found.push(format!("{block:?}")),
                Err(fault) => return (found, Some(fault)),
            }
        }
    }
    (found, None)
}

#[test]
fn every_block_is_read_as_it_was_written() {
    let bytes = segment_of(&[&every_block()]);
    let mut reader = SegmentReader::new(&bytes).unwrap();
    assert_eq!(reader.heading(), SegmentHeading { number: 2, recording_id: 0xABCD });
    let group = reader.next().unwrap().unwrap();
    assert_eq!(group.at_ms, 1_500);
    let found: Vec<Block<'_>> = group.blocks().map(Result::unwrap).collect();
    check_every_block(&found);
    let Block::Ticks(ticks) = found[10] else { panic!("{:?}", found[10]) };
    assert_eq!((ticks.first_tick(), ticks.read(Hertz(20)).filter(Result::is_ok).count()), (Some(9), 1));
    assert!(reader.next().is_none());
}

/// Promise: what earlier builds did not say of themselves is missing, and nothing else.
#[test]
fn what_earlier_builds_wrote_is_read() {
    let before_store = About { has_store: None, ..about() };
    let before_rules = About { rules: Vec::new(), ..before_store.clone() };
    let written = |about: &About| {
        let mut bytes = Vec::new();
        blocks::write_about(about, &mut bytes);
        bytes
    };
    let mut without_rules = written(&before_rules);
    without_rules.pop();
    blocks::end_block(0, &mut without_rules);
    for (about, bytes) in [(before_store.clone(), written(&before_store)), (before_rules, without_rules)] {
        assert_eq!(read(&segment_of(&[&bytes])), (vec![format!("{:?}", Block::About(Box::new(about)))], None));
    }
}

/// Bytes that the document draws.
fn drawn(name: &str) -> Vec<u8> {
    let (_, block) = SPEC.split_once(&format!("```hex {name}\n")).unwrap_or_else(|| panic!("no block {name}"));
    let (block, _) = block.split_once("```").unwrap();
    block.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn the_bytes_are_those_of_the_drawing() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    let [heading, group, all] = ["heading", "group", "blocks"].map(drawn);
    assert_eq!(hex(&every_block()), hex(&all));
    // So few bytes are as they are in any LZ4.
    let mut closed = Vec::new();
    blocks::write_closed(true, &mut closed);
    assert_eq!(hex(&segment_of(&[&closed])), hex(&[heading, group].concat()));
}

/// Promise: a recording that exists goes on being read as what it is, whatever its writer does by now.
#[test]
fn the_drawing_is_read_as_what_it_says() {
    let bytes = drawn("blocks");
    let mut from = Reader::new(&bytes);
    let found: Vec<Block<'_>> = std::iter::from_fn(|| blocks::read(&mut from)).map(Result::unwrap).collect();
    check_every_block(&found);
    let segment = [drawn("heading"), drawn("group")].concat();
    let mut reader = SegmentReader::new(&segment).unwrap();
    assert_eq!(reader.heading(), SegmentHeading { number: 2, recording_id: 0xABCD });
    let group = reader.next().unwrap().unwrap();
    assert_eq!((group.at_ms, group.at), (1_500, 28));
    assert_eq!(group.blocks().collect::<Vec<_>>(), [Ok(Block::Closed { is_last: true })]);
    assert!(reader.next().is_none());
}

/// Whichever bit is wrong, it is found, and the groups before it are as they were.
#[test]
fn damage_at_each_bit_is_found() {
    let good = segment_of(&[&every_block(), &every_block()]);
    let whole = read(&good).0;
    let first_group = 28;
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let (blocks, fault) = read(&bytes);
        match fault {
            Some(SegmentFault::Damaged { at }) => assert!(at >= first_group && at <= bit / 8, "bit {bit}"),
            Some(SegmentFault::NoRecording) => assert!(bit / 8 < 8, "bit {bit}"),
            fault => {
                assert!(bit / 8 < first_group && fault == Some(SegmentFault::HeadingDamaged), "bit {bit}: {fault:?}")
            }
        }
        assert!(blocks.len() < whole.len() && whole.starts_with(&blocks), "bit {bit}");
    }
}

#[test]
fn a_torn_tail_is_read_up_to_its_last_whole_group() {
    let good = segment_of(&[&every_block(), &every_block()]);
    let (first, whole) = (segment_of(&[&every_block()]).len(), read(&good).0);
    for length in first..good.len() {
        let (blocks, fault) = read(&good[..length]);
        assert_eq!(blocks, whole[..whole.len() / 2], "cut at {length}");
        assert_eq!(fault, (length > first).then_some(SegmentFault::Torn { at: first }), "cut at {length}");
    }
    let mut grown = good[..first].to_vec();
    grown.resize(first + 4_096, 0);
    assert_eq!(read(&grown).1, Some(SegmentFault::Torn { at: first }));
    let mut later = good;
    later[8] = 2;
    let crc = crc32fast::hash(&later[..24]);
    later[24..28].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(read(&later).1, Some(SegmentFault::UnknownVersion { got: 2 }));
}

/// A group that says that it holds more than its bytes can is not believed.
#[test]
fn a_length_that_cannot_be_is_refused_before_memory_is_taken() {
    let mut bytes = segment_of(&[b"x"]);
    let at = 28;
    bytes[at..at + 4].copy_from_slice(&(100_u32 << 20).to_le_bytes());
    let crc = crc32fast::hash(&bytes[at..at + 16]);
    bytes[at + 16..at + 20].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(read(&bytes).1, Some(SegmentFault::Damaged { at }));
}

/// A folder that is gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("throng-recording-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn order(folder: &Path, bytes_max: u64) -> Order {
    Order {
        folder: folder.to_owned(),
        bytes_max,
        segment_s: 3_600,
        about: about(),
        rules: Arc::new(Mutex::new(about().rules)),
        recording_id: 5,
    }
}

/// A part of bytes that cannot be made smaller.
fn part(number: u32) -> Message {
    let mut bytes = Vec::new();
    let noise: Vec<u8> = (0..4_000_u64).map(|at| ((at * at * 2_654_435_761 + u64::from(number)) >> 13) as u8).collect();
    blocks::write_checkpoint(CheckpointReason::Regular, number, &noise, &mut bytes);
    Message::Part { world: WorldId::new(1, 0), number, bytes }
}

#[test]
fn segments_stay_within_their_bytes_and_each_says_what_it_is_of() {
    let (folder, queue) = (Folder::new("rotation"), Arc::new(RecordingQueue::new(1 << 20, 5)));
    let bytes_max = 100_000;
    let mut writer = Writer::new(queue.clone(), order(&folder.0, bytes_max), Files);
    writer.take(Message::World(WorldId::new(1, 0), Box::new(plan())));
    for number in 0..200 {
        writer.take(part(number));
        writer.write_group();
        writer.rotate_if_due();
        let bytes: u64 = segments_in(&folder.0).unwrap().iter().map(|segment| segment.bytes).sum();
        assert!(bytes <= bytes_max + 10_000, "{bytes} bytes after part {number}");
    }
    queue.end();
    Writer::run(&Mutex::new(writer));
    let segments = segments_in(&folder.0).unwrap();
    assert!(segments.len() >= 5 && segments[0].number > 1, "{segments:?}");
    assert!(queue.counts.segments_dropped.load(Ordering::Relaxed) > 10);
    let mut numbers = Vec::new();
    for segment in &segments {
        let bytes = fs::read(&segment.path).unwrap();
        let groups: Vec<_> = SegmentReader::new(&bytes).unwrap().map(Result::unwrap).collect();
        let blocks: Vec<Block<'_>> = groups.iter().flat_map(|group| group.blocks().map(Result::unwrap)).collect();
        assert!(matches!(blocks[..2], [Block::About(_), Block::World(..)]), "{:?}", &blocks[..2]);
        assert!(matches!(blocks.last(), Some(Block::Closed { .. })));
        numbers.extend(blocks.iter().filter_map(|block| match block {
            Block::Part { number, .. } => Some(*number),
            _ => None,
        }));
    }
    assert!(numbers.is_sorted() && numbers.last() == Some(&199));
    assert_eq!(numbers.len() as u32, 200 - numbers[0], "none is missing between them");
}

/// Promise: the last part of an earlier recording, which comes when another one is on, is not in that one.
#[test]
fn a_part_of_a_world_that_nothing_describes_is_not_written() {
    let (folder, queue) = (Folder::new("undescribed"), Arc::new(RecordingQueue::new(1 << 20, 5)));
    let mut writer = Writer::new(queue.clone(), order(&folder.0, 1 << 30), Files);
    writer.take(part(56));
    writer.take(Message::Forget(WorldId::new(1, 0)));
    writer.take(Message::World(WorldId::new(1, 0), Box::new(plan())));
    writer.take(part(0));
    queue.end();
    Writer::run(&Mutex::new(writer));
    let [segment] = &segments_in(&folder.0).unwrap()[..] else { panic!("one is enough") };
    let (blocks, fault) = read(&fs::read(&segment.path).unwrap());
    let parts: Vec<&String> = blocks.iter().filter(|block| block.starts_with("Part")).collect();
    assert_eq!((parts, fault), (vec![&format!("{:?}", Block::Part { world: WorldId::new(1, 0), number: 0 })], None));
    assert_eq!(queue.counts.parts_lost.load(Ordering::Relaxed), 1);
}

/// Promise: the last segment of a recording says that it is the last, however old it is.
#[test]
fn the_end_is_written_though_the_segment_is_old() {
    let (folder, queue) = (Folder::new("end"), Arc::new(RecordingQueue::new(1 << 20, 5)));
    let order = Order { segment_s: 0, ..order(&folder.0, 1 << 30) };
    let mut writer = Writer::new(queue.clone(), order, Files);
    writer.take(Message::World(WorldId::new(1, 0), Box::new(plan())));
    writer.take(part(0));
    queue.end();
    Writer::run(&Mutex::new(writer));
    let [segment] = &segments_in(&folder.0).unwrap()[..] else { panic!("one is enough") };
    let (blocks, _) = read(&fs::read(&segment.path).unwrap());
    assert_eq!(blocks.last(), Some(&format!("{:?}", Block::Closed { is_last: true })));
}

/// Promise: each segment has the rules that are in force when it begins.
#[test]
fn a_later_segment_has_the_rules_that_have_changed() {
    let (folder, queue) = (Folder::new("later-rules"), Arc::new(RecordingQueue::new(1 << 20, 5)));
    let order = order(&folder.0, 100_000);
    let rules = order.rules.clone();
    let mut writer = Writer::new(queue.clone(), order, Files);
    writer.take(Message::World(WorldId::new(1, 0), Box::new(plan())));
    let said = "[replication]\nkeepalive_s = 4\n".to_owned();
    for number in 0..20 {
        if number == 10 {
            rules.lock().unwrap().push(said.clone());
        }
        writer.take(part(number));
        writer.write_group();
        writer.rotate_if_due();
    }
    queue.end();
    Writer::run(&Mutex::new(writer));
    let rules_of = |segment: &SegmentFile| {
        let bytes = fs::read(&segment.path).unwrap();
        let group = SegmentReader::new(&bytes).unwrap().next().unwrap().unwrap();
        let Some(Ok(Block::About(about))) = group.blocks().next() else { panic!("it begins with that") };
        about.rules
    };
    let rules: Vec<Vec<String>> = segments_in(&folder.0).unwrap().iter().map(rules_of).collect();
    let [before, after] = [about().rules, [about().rules, vec![said]].concat()];
    assert_eq!((rules.first(), rules.last()), (Some(&before), Some(&after)), "{rules:?}");
}

/// Settings in which every text that may be secret, or say where somebody is, has one of [`MARKS`] in it.
const SECRETIVE: &str = r#"
[server]
address = "127.0.0.1:40000" # hunter2
public_addresses = ["203.0.113.7:40000"]
admin_names = ["hunter2.example"]
admin_keys_file = "hunter2.keys"
private_key = "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"
token_journal = "hunter2.used"
[saves]
store = "postgres"
postgres = "host=203.0.113.7 user=throng password=hunter2"
[recorder]
rules = "hunter2.toml"
[recording]
segment_s = 7
[browser]
origins = ["https://hunter2.example"]
certificate_file = "hunter2.pem"
certificate_key_file = "hunter2.pem"
[analytics]
url = "https://somebody:hunter2@203.0.113.7/?token=hunter2"
key_file = "hunter2.key"
spool = "hunter2"
server = "hunter2"
[object_store]
endpoint = "https://hunter2@203.0.113.7"
bucket = "hunter2"
prefix = "hunter2"
region = "hunter2"
key_file = "hunter2.key"
name = "hunter2"
[game]
greeting = "good evening"
"#;

/// The last two are keys as bytes: that of the settings, and one from elsewhere.
const MARKS: [&[u8]; 5] = [b"hunter2", b"203.0.113.7", b"5e5e5e5e", &[0x5E; 32], &[0xA7; 32]];

/// Promise: no key, password, address or file's name of the server's own settings is in any segment, whatever it is for; nor is
/// the key that tokens are made with, if it is from elsewhere.
#[test]
fn no_secret_of_the_settings_is_in_a_segment() {
    let folder = Folder::new("secrets");
    let mut settings = Settings::parse("throng.toml", SECRETIVE).unwrap();
    settings.recording.folder = Some(folder.0.clone());
    let clock = ManualClock::new();
    let mut environment = environment(Arc::new(clock.clone()));
    environment.private_key = PrivateKey::new([0xA7; 32]);
    let mut server = Server::with_environment(&settings, SchemaBuilder::new().build(), environment);
    server.add_kind(TestKind::new("dots", Hertz(20), |_| {})).unwrap();
    server.create_world_as(NewWorld::new(WorldKindId(0), 7)).unwrap();
    server.prepare(clock.now()).unwrap();
    for frame in 0..30 {
        clock.set(server.start_of_frame(frame));
        server.frame(frame);
    }
    server.end_recording();
    let mut unpacked = Vec::new();
    for segment in segments_in(&folder.0).unwrap() {
        let bytes = fs::read(&segment.path).unwrap();
        SegmentReader::new(&bytes).unwrap().for_each(|group| unpacked.extend(group.unwrap().raw));
    }
    let has = |mark: &[u8]| unpacked.windows(mark.len()).any(|bytes| bytes == mark);
    assert!([&b"segment_s = 7"[..], b"good evening", b"dots"].into_iter().all(has), "this is what was recorded");
    for mark in MARKS {
        assert!(!has(mark), "{:?} is in a segment", String::from_utf8_lossy(mark));
    }
}

/// Promise: a recording has the rules of its server, those of the file and what was said since, as they are when a segment begins; the
/// recorder of a replay goes by them, or is told what this build does not know of them.
#[test]
fn rules_of_a_server_are_those_of_its_replay() {
    let folder = Folder::new("rules");
    fs::create_dir_all(&folder.0).unwrap();
    let path = folder.0.join("rules.toml");
    let text = "[replication] # hunter2\ncatch_up_m = 3.5\n[triggers.frame]\nover_ms = 77\n";
    fs::write(&path, text).unwrap();
    let mut settings = Settings::default();
    settings.recording.folder = Some(folder.0.clone());
    (settings.recorder.on, settings.recorder.rules) = (false, Some(path));
    let schema = SchemaBuilder::new().build();
    let server = |settings: &Settings| {
        let mut server = Server::with_environment(settings, schema.clone(), environment(Arc::new(ManualClock::new())));
        server.add_kind(TestKind::new("dots", Hertz(20), |_| {})).unwrap();
        server
    };
    let recorded = |said: Option<&str>| {
        let mut server = server(&settings);
        server.create_world_as(NewWorld::new(WorldKindId(0), 7)).unwrap();
        let rules = server.start_recorder(&settings, None, String::new()).unwrap().unwrap();
        said.into_iter().for_each(|value| rules.set("replication.keepalive_s", value, "somebody").unwrap());
        server.prepare(ManualClock::new().now()).unwrap();
        server.end_recording();
        let newest = segments_in(&folder.0).unwrap().pop().unwrap();
        RecordingFiles::open(&newest.path).unwrap().about().clone()
    };
    let of_file = "[replication]\ncatch_up_m = 3.5\n\n[triggers.frame]\nover_ms = 77\n";
    let (file_alone, with_said) = (recorded(None), recorded(Some("4")));
    assert_eq!(file_alone.rules, [of_file]);
    assert_eq!(with_said.rules, [of_file, "[replication]\nkeepalive_s = 4\n"]);
    let of_text = ServerRules::parse("", text, &RuleNames::default()).unwrap().recorder;
    // A name that this build does not know takes nothing away from what a replay uses.
    let renamed = About { rules: vec![format!("{of_file}[components.shield]\nrange_m = 3.0\n")], ..file_alone.clone() };
    for about in [&file_alone, &with_said, &renamed] {
        assert_eq!(server(&Settings::default()).recorded_rules(about).unwrap(), of_text);
    }
    let none = About { rules: Vec::new(), ..file_alone.clone() };
    assert_eq!(server(&Settings::default()).recorded_rules(&none).unwrap(), Rules::default());
    let other = About { rules: vec!["[triggers.sideways]\non = true\n".into()], ..file_alone };
    let error = server(&Settings::default()).recorded_rules(&other).unwrap_err().to_string();
    assert!(error.contains("the recording's rules") && error.contains("sideways"), "{error}");
}

/// Promise: a server does not record into the folder of another that runs, whose segments it would drop; when that has ended, it does.
#[test]
fn a_folder_has_one_server_at_a_time() {
    let folder = Folder::new("one");
    let settings =
        RecordingSettings { folder: Some(folder.0.clone()), at_start: false, ..RecordingSettings::default() };
    let [one, other] = [(); 2].map(|()| RecordingControl::new(&settings));
    for control in [&one, &other] {
        control.introduce(about()).unwrap();
    }
    one.start().unwrap();
    let error = other.start().unwrap_err();
    assert!(error.to_string().contains("another server records there"), "{error}");
    assert!(matches!(one.start(), Err(RecordingError::IsOn)) && !other.status().is_on);
    let at_start = RecordingControl::new(&RecordingSettings { at_start: true, ..settings });
    assert!(matches!(at_start.introduce(about()), Err(RecordingError::FolderInUse(_))));
    one.stop().unwrap();
    other.start().unwrap();
    other.close();
    one.start().unwrap();
    one.close();
}

/// Promise: what could not be read is not written.
#[test]
fn a_server_with_too_many_names_is_told_before_it_is_recorded() {
    let folder = Folder::new("names");
    let settings = RecordingSettings { folder: Some(folder.0.clone()), ..RecordingSettings::default() };
    let many = About { tunables: vec![String::new(); 4_097], ..about() };
    let error = RecordingControl::new(&settings).introduce(many).unwrap_err().to_string();
    assert!(error.contains("4097 tunables") && error.contains("4096 at most"), "{error}");
    assert!(segments_in(&folder.0).unwrap().is_empty());
}

/// Takes bytes until it is full, as a disk does: some of what it is given last, and then an error.
#[derive(Clone, Default)]
struct SmallDisk {
    is_full: Arc<AtomicBool>,
    files: Arc<Mutex<Vec<Vec<u8>>>>,
}

struct SmallFile(SmallDisk, usize);

impl Disk for SmallDisk {
    type File = SmallFile;

    fn create(&mut self, _: &Path) -> io::Result<SmallFile> {
        let mut files = self.files.lock().unwrap();
        files.push(Vec::new());
        Ok(SmallFile(self.clone(), files.len() - 1))
    }
}

impl SegmentWrite for SmallFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let is_full = self.0.is_full.load(Ordering::Relaxed);
        let taken = if is_full { bytes.len() / 2 } else { bytes.len() };
        self.0.files.lock().unwrap()[self.1].extend_from_slice(&bytes[..taken]);
        if is_full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.0.files.lock().unwrap()[self.1].truncate(bytes as usize);
        Ok(())
    }
}

#[test]
fn a_full_disk_costs_a_gap_and_what_was_written_stays_good() {
    let (folder, queue, disk) = (Folder::new("full"), Arc::new(RecordingQueue::new(1 << 20, 5)), SmallDisk::default());
    let mut writer = Writer::new(queue.clone(), order(&folder.0, 1 << 30), disk.clone());
    writer.take(Message::World(WorldId::new(1, 0), Box::new(plan())));
    writer.take(part(0));
    writer.write_group();
    let breaks = queue.breaks();
    disk.is_full.store(true, Ordering::Relaxed);
    writer.take(part(1));
    writer.take(part(2));
    writer.write_group();
    assert_ne!(queue.breaks(), breaks, "worlds are told to begin again");
    writer.take(part(3));
    let lost = || queue.counts.parts_lost.load(Ordering::Relaxed);
    assert_eq!(lost(), 3, "two in a group, and one while nothing is tried");
    disk.is_full.store(false, Ordering::Relaxed);
    writer.try_again_now();
    writer.take(part(4));
    queue.end();
    Writer::run(&Mutex::new(writer));
    let files = disk.files.lock().unwrap();
    let parts: Vec<Vec<String>> = files
        .iter()
        .map(|file| {
            let (blocks, fault) = read(file);
            assert_eq!(fault, None);
            blocks.into_iter().filter(|block| block.starts_with("Part")).collect()
        })
        .collect();
    let named = |number: u32| format!("{:?}", Block::Part { world: WorldId::new(1, 0), number });
    assert_eq!(parts, [vec![named(0)], vec![named(4)]]);
    assert_eq!(lost(), 3);
}
