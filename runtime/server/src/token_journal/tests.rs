//! Promise: a token that made a session makes no second one, though the server was restarted in between and its
//! journal damaged, as long as the token's own record is intact. Damage never panics, and strangers' files are left
//! as they are.

use std::{
    fs,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
};

use rand::{Rng, RngCore, SeedableRng};
use rand_chacha::ChaCha20Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use throng_net::protocol::{
    ClientHandshake, ClientHandshakeSettings, ClientId, ConnectToken, PrivateKey, ProtocolId, Reply, ServerHandshake,
    ServerHandshakeSettings, TokenRequest,
};
use throng_platform::{clock::ManualClock, time::Nanos};

use super::*;

const KEY: PrivateKey = PrivateKey::new([7; 32]);
const PROTOCOL: ProtocolId = ProtocolId(1);
const UNIX_S: u64 = 1_800_000_000;
const TOKEN_LIFE_S: u64 = 30;
const NOW: Nanos = Nanos::from_secs(1);

/// A folder of its own for each test, gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("throng-tokens-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("tokens.used")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn clock() -> (ManualClock, Arc<dyn Clock>) {
    let clock = ManualClock::new();
    clock.set_unix_at_start(UNIX_S);
    (clock.clone(), Arc::new(clock))
}

fn open(path: &Path) -> OpenedTokenJournal {
    FileTokenJournal::open(path, clock().1).unwrap()
}

fn server_address() -> SocketAddr {
    SocketAddr::from(([203, 0, 113, 5], 40_000))
}

fn handshake_settings() -> ServerHandshakeSettings {
    ServerHandshakeSettings::new(PROTOCOL, KEY, vec![server_address()], 64)
}

/// The handshake of a server that has just started with the journal in `path`.
fn server_handshake(path: &Path, run: u8) -> ServerHandshake {
    let opened = open(path);
    let mut server_handshake =
        ServerHandshake::with_journal(handshake_settings(), [run; 32], opened.used, Box::new(opened.journal));
    server_handshake.begin_frame(NOW, UNIX_S);
    server_handshake
}

fn token(client: u64) -> ConnectToken {
    token_of(client, TOKEN_LIFE_S)
}

fn token_of(client: u64, life_s: u64) -> ConnectToken {
    let request = TokenRequest {
        protocol_id: PROTOCOL,
        client_id: ClientId(client),
        server_addresses: vec![server_address()],
        created_unix_s: UNIX_S,
        expires_unix_s: UNIX_S + life_s,
        timeout_s: 10,
        user_data: [0; 256],
    };
    ConnectToken::generate(&request, &KEY, &mut ChaCha20Rng::seed_from_u64(client << 32 | life_s)).unwrap()
}

/// Whether a client that shows this token gets in; leaves again at once.
fn gets_in(server_handshake: &mut ServerHandshake, token: &ConnectToken) -> bool {
    let address = SocketAddr::from(([10, 0, 0, 1], 10_000));
    let mut client = ClientHandshake::new(token.clone(), ClientHandshakeSettings::default(), NOW, [9; 32]);
    let (mut out, mut reply) = ([0; 1400], Reply::new());
    while let Some((_, len)) = client.poll(NOW, UNIX_S, &mut out) {
        if let Some(admitted) = server_handshake.handle_and_admit(address, &mut out[..len], &mut reply) {
            server_handshake.disconnected(admitted.address);
            return true;
        }
        client.handle(NOW, &mut reply.bytes().to_vec());
    }
    false
}

/// Records as a handshake makes them, for `count` tokens that expire after `life_s`.
pub(super) fn records(count: u64, life_s: u64) -> Vec<UsedToken> {
    #[derive(Clone, Default)]
    struct Listener(Arc<Mutex<Vec<UsedToken>>>);
    impl TokenJournal for Listener {
        fn record(&mut self, used: &UsedToken) -> Result<Recorded, JournalError> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(*used);
            Ok(Recorded::Now)
        }
    }
    let listener = Listener::default();
    let mut server_handshake =
        ServerHandshake::with_journal(handshake_settings(), [1; 32], [], Box::new(listener.clone()));
    for client in 0..count {
        server_handshake.begin_frame(NOW, UNIX_S);
        assert!(gets_in(&mut server_handshake, &token_of(client, life_s)));
    }
    drop(server_handshake);
    let records = listener.0.lock().unwrap_or_else(PoisonError::into_inner);
    records.clone()
}

/// What a journal with these records looks like on the disk.
fn file_of(records: &[UsedToken]) -> Vec<u8> {
    let mut bytes = HEADING.to_vec();
    records.iter().for_each(|record| bytes.extend(record.to_bytes()));
    bytes
}

#[test]
fn a_token_used_before_a_restart_is_refused_after_it() {
    let folder = Folder::new("restart");
    let mut first = server_handshake(&folder.file(), 1);
    assert!(gets_in(&mut first, &token(1)));
    drop(first);
    for run in 2..5 {
        let mut later = server_handshake(&folder.file(), run);
        assert!(!gets_in(&mut later, &token(1)), "run {run}");
        assert!(gets_in(&mut later, &token(u64::from(run))), "a fresh token in run {run}");
    }
    assert_eq!(open(&folder.file()).used.len(), 4);

    let mut forgetful = ServerHandshake::new(handshake_settings(), [9; 32]);
    forgetful.begin_frame(NOW, UNIX_S);
    assert!(gets_in(&mut forgetful, &token(1)), "without a journal nobody could know");
}

/// Flipped, cut, overwritten or lengthened; the records that it leaves whole stay where they are.
fn damage(bytes: &mut Vec<u8>, rng: &mut Xoshiro256PlusPlus) {
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..bytes.len().max(1));
        match rng.random_range(0..4) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << rng.random_range(0..8),
            1 => bytes.truncate(at),
            2 => {
                let end = (at + rng.random_range(0..100)).min(bytes.len());
                rng.fill_bytes(&mut bytes[at.min(end)..end]);
            }
            _ => bytes.extend((0..rng.random_range(1..70)).map(|_| rng.random::<u8>())),
        }
    }
}

fn intact(damaged: &[u8], records: &[UsedToken]) -> Vec<UsedToken> {
    let body = damaged.get(HEADING_BYTES..).unwrap_or_default();
    let places = body.chunks_exact(UsedToken::BYTES).zip(records);
    places.filter(|(place, record)| **place == record.to_bytes()).map(|(_, record)| *record).collect()
}

#[test]
fn a_hundred_thousand_damaged_journals_give_back_exactly_what_is_intact() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let records = records(20, TOKEN_LIFE_S);
    let sound = file_of(&records);
    let (mut losses, mut foreign) = (0, 0);
    for round in 0..100_000 {
        let mut bytes = sound.clone();
        damage(&mut bytes, &mut rng);
        let expect = intact(&bytes, &records);
        let Some(table) = Table::read(&bytes) else {
            assert!(expect.is_empty(), "round {round}: refused, though {} records are intact", expect.len());
            foreign += 1;
            continue;
        };
        let found: Vec<UsedToken> = table.slots.iter().flatten().copied().collect();
        assert_eq!(found, expect, "round {round}");
        losses += usize::from(table.damaged_count() > 0);
    }
    assert!(losses > 10_000 && foreign > 100, "{losses} with losses, {foreign} not to be recognised");
}

#[test]
fn a_handshake_with_a_damaged_journal_refuses_whatever_is_intact_and_goes_on_recording() {
    let folder = Folder::new("damage");
    let path = folder.file();
    let mut first = server_handshake(&path, 1);
    let tokens: Vec<ConnectToken> = (0..20).map(token).collect();
    assert!(tokens.iter().all(|token| gets_in(&mut first, token)));
    drop(first);
    let sound = fs::read(&path).unwrap();
    let records = open(&path).used;
    assert_eq!(sound, file_of(&records));

    let mut rng = Xoshiro256PlusPlus::seed_from_u64(6);
    for round in 0..200 {
        let mut bytes = sound.clone();
        damage(&mut bytes, &mut rng);
        let intact = intact(&bytes, &records);
        fs::write(&path, &bytes).unwrap();
        if intact.is_empty() {
            continue;
        }
        let mut later = server_handshake(&path, 2);
        for (record, token) in records.iter().zip(&tokens) {
            let admitted = gets_in(&mut later, token);
            assert_eq!(admitted, !intact.contains(record), "round {round}");
        }
        drop(later);
        // Those whose records were lost are on record again.
        let mut last = server_handshake(&path, 3);
        assert!(!tokens.iter().any(|token| gets_in(&mut last, token)), "round {round}");
    }
}

#[test]
fn a_torn_tail_is_counted_and_written_over() {
    let folder = Folder::new("torn");
    let path = folder.file();
    let records = records(3, TOKEN_LIFE_S);
    for torn_bytes in 1..UsedToken::BYTES {
        let sound = file_of(&records[..2]);
        fs::write(&path, [&sound[..], &records[2].to_bytes()[..torn_bytes]].concat()).unwrap();
        let mut opened = open(&path);
        assert_eq!((&opened.used[..], opened.damaged_count), (&records[..2], 1));
        opened.journal.record(&records[2]).unwrap();
        drop(opened);
        assert_eq!(fs::read(&path).unwrap(), file_of(&records));
    }
}

#[test]
fn expired_records_make_room_so_the_file_does_not_grow() {
    let folder = Folder::new("room");
    let path = folder.file();
    let (hands, clock) = clock();
    let (early, late) = (records(100, TOKEN_LIFE_S), records(101, TOKEN_LIFE_S + 1_000));
    let mut journal = FileTokenJournal::open(&path, clock.clone()).unwrap().journal;
    early.iter().for_each(|record| _ = journal.record(record).unwrap());
    hands.advance(Nanos::from_secs(TOKEN_LIFE_S + KEPT_AFTER_EXPIRY_S));
    journal.record(&late[0]).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), file_of(&late).len() as u64, "the early ones are still kept");
    hands.advance(Nanos::from_secs(1));
    drop(journal);

    let mut journal = FileTokenJournal::open(&path, clock).unwrap().journal;
    late[1..].iter().for_each(|record| _ = journal.record(record).unwrap());
    assert_eq!(fs::metadata(&path).unwrap().len(), file_of(&late).len() as u64);
    drop(journal);
    let used = open(&path).used;
    assert!(used.len() == late.len() && late.iter().all(|record| used.contains(record)));
}

#[test]
fn a_full_table_denies_rather_than_forget() {
    let folder = Folder::new("full");
    let mut journal = open(&folder.file()).journal;
    let records = records(2, TOKEN_LIFE_S);
    journal.records_count = RECORDS_MAX as u32 - 1;
    assert_eq!(journal.record(&records[0]), Ok(Recorded::Now));
    assert_eq!(journal.record(&records[1]), Err(JournalError));
    assert_eq!(fs::metadata(folder.file()).unwrap().len(), FILE_BYTES_MAX as u64);
}

#[test]
fn a_write_that_fails_denies_and_leaves_the_place_to_the_next() {
    let folder = Folder::new("fails");
    let path = folder.file();
    let records = records(2, TOKEN_LIFE_S);
    let mut journal = open(&path).journal;
    let writable = std::mem::replace(&mut journal.file, File::open(&path).unwrap());
    assert_eq!(journal.record(&records[0]), Err(JournalError));
    journal.file = writable;
    assert_eq!(journal.record(&records[1]), Ok(Recorded::Now));
    assert_eq!(fs::read(&path).unwrap(), file_of(&records[1..]));
}

#[test]
fn what_is_not_ours_is_left_as_it_is() {
    let folder = Folder::new("foreign");
    let check = |path: &Path, expect: &str| {
        let error = FileTokenJournal::open(path, clock().1).err().expect(expect).to_string();
        assert!(error.starts_with(&path.display().to_string()) && error.contains(expect), "{error}");
        assert!(error.contains("[server] token_journal"), "{error}");
    };
    let path = folder.0.join("notes.txt");
    for text in ["no", "a line that somebody wrote\n", &"many lines\n".repeat(1_000)] {
        fs::write(&path, text).unwrap();
        check(&path, "is not a token journal");
        assert_eq!(fs::read_to_string(&path).unwrap().len(), text.len());
    }
    check(&folder.0, "cannot be used as the token journal: Is a directory");
    check(Path::new("/dev/null"), "is not a token journal");
    check(&folder.0.join("no/such/folder"), "cannot be used as the token journal: No such file");

    let running = open(&folder.file());
    check(&folder.file(), "of another server that runs");
    drop(running);
    open(&folder.file());
}

#[test]
fn the_limits_agree_with_the_gates() {
    let defaults = handshake_settings();
    assert!(KEPT_AFTER_EXPIRY_S >= 2 * defaults.clock_skew_s, "no token is forgotten that the handshake still takes");
    let clients_max = 65_535;
    assert!(
        RECORDS_MAX >= clients_max * defaults.used_tokens_per_slot,
        "the handshake's memory is full before the file"
    );
}
