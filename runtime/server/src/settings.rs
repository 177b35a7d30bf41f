//! Settings: what an operator may choose, read from `throng.toml` and checked before anything starts.
//!
//! A server that starts with a misspelt key and a silent default is a fault that shows at the evening peak.
//! So every key is known, typed and ranged, and all mistakes of a file are told at once, each with its line
//! and what to write instead:
//!
//! ```text
//! throng.toml:12: [server] wrokers: unknown key; did you mean `workers`?
//! ```
//!
//! Every setting has a default, so an empty file is a valid one. `[game]` belongs to the game, which reads it into a
//! type of its own with errors of the same quality, told together with the others ([`Settings::find`], [`Section`]).
//! Secrets may come from the environment instead of the file, and are never printed.
//!
//! Runs once at start, on the main thread; cost: one parse of a file of a few kilobytes.

mod analytics;
mod browser;
mod crash_folder;
pub(crate) mod document;
mod long_tasks;
mod mistake;
mod object_store;
mod overload;
mod recorder;
mod recording;
mod saves;
mod secret_key;
mod section;
mod workers;

use std::fmt;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use throng_platform::time::Nanos;
use throng_replication::InterestSettings;
use throng_replication::rules::InterestRadii;

pub use analytics::{ANALYTICS_KEY_VARIABLE, AnalyticsSettings};
pub use browser::BrowserSettings;
pub use crash_folder::CrashFolder;
pub use long_tasks::{LongTaskSettings, LongThreads};
pub use mistake::{Mistake, SettingsError, nearest as nearest_name};
pub use object_store::{ObjectStoreSettings, Uploaded};
pub use overload::OverloadSettings;
pub use recorder::RecorderSettings;
pub use recording::RecordingSettings;
pub use saves::{SaveStore, SavesSettings};
pub use secret_key::{PRIVATE_KEY_VARIABLE, SecretKey};
pub use section::{AnySection, Checks, NoSection, Section};
pub use workers::{ReservedCores, Workers};

use crate::tuning::Tuning;
use document::Document;

/// The file that is read when nobody names another, in the folder that the command is started in.
pub const SETTINGS_FILE: &str = "throng.toml";

/// No settings file is this long; something else was named by mistake.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The sections a file may have; `[game]` is checked by the game.
const SECTIONS: [&str; 11] = [
    "server",
    "replication",
    "overload",
    "long_tasks",
    "saves",
    "recorder",
    "recording",
    "browser",
    "analytics",
    "object_store",
    "game",
];

/// Everything an operator chose, checked; defaults where nothing was said.
#[derive(Clone, Default)]
pub struct Settings {
    pub server: ServerSettings,
    pub replication: ReplicationSettings,
    pub overload: OverloadSettings,
    pub saves: SavesSettings,
    pub long_tasks: LongTaskSettings,
    pub recorder: RecorderSettings,
    pub recording: RecordingSettings,
    pub browser: BrowserSettings,
    pub analytics: AnalyticsSettings,
    pub object_store: ObjectStoreSettings,
    /// Kept so that `[game]` can be read later with lines to point at.
    file: String,
    text: String,
    /// Where the file is; `None` for settings from memory.
    folder: Option<PathBuf>,
}

/// Without the file's text, which may have a private key in it.
impl fmt::Debug for Settings {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            server,
            replication,
            overload,
            long_tasks,
            saves,
            recorder,
            recording,
            browser,
            analytics,
            object_store,
            file,
            text: _,
            folder: _,
        } = self;
        let mut out = out.debug_struct("Settings");
        out.field("server", server).field("replication", replication).field("overload", overload);
        out.field("long_tasks", long_tasks);
        out.field("saves", saves);
        out.field("recorder", recorder).field("recording", recording).field("browser", browser);
        out.field("analytics", analytics).field("object_store", object_store);
        out.field("file", file);
        out.finish_non_exhaustive()
    }
}

impl Settings {
    /// The settings that a command is to take, with the game's own section: those of the file that was `named`, or of
    /// [`SETTINGS_FILE`] in the working folder, or, if there is none, defaults for everything. All mistakes of the file
    /// are in the error, those of `[game]` among them; a file that was named and is not there is one, too.
    ///
    /// ```no_run
    /// use throng::settings::{NoSection, Settings};
    ///
    /// let (settings, NoSection {}) = Settings::find(None)?;
    /// println!("settings: {}", settings.source());
    /// # Ok::<(), throng::settings::SettingsError>(())
    /// ```
    pub fn find<T: Section>(named: Option<&Path>) -> Result<(Self, T), SettingsError> {
        Self::find_in(Path::new(""), named)
    }

    /// As [`find`](Self::find), with the usual file in `folder`.
    fn find_in<T: Section>(folder: &Path, named: Option<&Path>) -> Result<(Self, T), SettingsError> {
        match named {
            Some(path) => Self::load_with(path),
            None => match Self::load_with(&folder.join(SETTINGS_FILE)) {
                Err(SettingsError::Missing { .. }) => Ok((Self::default(), T::default())),
                found => found,
            },
        }
    }

    /// Where they are from, in words for a log.
    pub fn source(&self) -> String {
        match self.file.as_str() {
            "" => format!("defaults, there is no {SETTINGS_FILE} here"),
            file => file.to_owned(),
        }
    }

    /// The file that they are from; `None` if they are defaults, or from a text.
    pub fn file(&self) -> Option<&Path> {
        self.folder.as_ref().map(|_| Path::new(&self.file))
    }

    /// Reads and checks a file. All of its mistakes are in the error, in the order of their lines. Key, rules and
    /// journal that it names lie beside it, unless their path is absolute; captures go to the working folder.
    ///
    /// What `[game]` holds is not looked at: this is for those who know no game.
    pub fn load(path: &Path) -> Result<Self, SettingsError> {
        Self::load_with(path).map(|(settings, AnySection {})| settings)
    }

    fn load_with<T: Section>(path: &Path) -> Result<(Self, T), SettingsError> {
        let text = read_file(path, "with --config PATH")?;
        let (mut settings, game) = Self::parse_with(&path.display().to_string(), &text)?;
        settings.lie_in(path.parent().unwrap_or(Path::new("")));
        Ok((settings, game))
    }

    /// Has relative paths start from the folder of the file, and keeps it.
    fn lie_in(&mut self, folder: &Path) {
        let Self { server, recorder, recording, saves, browser, analytics, object_store, .. } = self;
        analytics.lie_in(folder);
        object_store.lie_in(folder);
        let journal = if let TokenJournalFile::Named(file) = &mut server.token_journal { Some(file) } else { None };
        let files = [server.private_key_file.as_mut(), recorder.rules.as_mut(), saves.folder.as_mut(), journal];
        let files = files.into_iter().chain([recording.folder.as_mut()]);
        let of_browsers = [browser.certificate_file.as_mut(), browser.certificate_key_file.as_mut()];
        for file in files.chain(of_browsers).flatten() {
            *file = folder.join(&*file);
        }
        self.folder = Some(folder.to_owned());
    }

    /// As [`load`](Self::load), from text already in memory; `file` is the name that mistakes show.
    pub fn parse(file: &str, text: &str) -> Result<Self, SettingsError> {
        Self::parse_with(file, text).map(|(settings, AnySection {})| settings)
    }

    /// The same with the game's own section.
    pub fn parse_for<T: Section>(file: &str, text: &str) -> Result<(Self, T), SettingsError> {
        Self::parse_with(file, text)
    }

    fn parse_with<T: Section>(file: &str, text: &str) -> Result<(Self, T), SettingsError> {
        let document = Document::parse(file, text)?;
        let mut mistakes = Vec::new();
        let game: T = document.section("game", &mut mistakes);
        let settings = Self::read(&document, file, text, section::keys_of::<T>(), mistakes)?;
        Ok((settings, game))
    }

    /// All sections but the game's. `mistakes` are those of the game's, which was read before. No type of a game is in
    /// here, so that this is compiled once and not with every game.
    fn read(
        document: &Document<'_>,
        file: &str,
        text: &str,
        keys_of_game: Option<&'static [&'static str]>,
        mut mistakes: Vec<Mistake>,
    ) -> Result<Self, SettingsError> {
        document.check_sections(&SECTIONS, &mut mistakes);
        let settings = Self {
            server: document.section("server", &mut mistakes),
            replication: document.section("replication", &mut mistakes),
            overload: document.section("overload", &mut mistakes),
            saves: document.section("saves", &mut mistakes),
            long_tasks: document.section("long_tasks", &mut mistakes),
            recorder: document.section("recorder", &mut mistakes),
            recording: document.section("recording", &mut mistakes),
            browser: document.section("browser", &mut mistakes),
            analytics: document.section("analytics", &mut mistakes),
            object_store: document.section("object_store", &mut mistakes),
            file: file.to_owned(),
            text: text.to_owned(),
            folder: None,
        };
        document.point_to_right_section(
            &[
                ("server", section::keys_of::<ServerSettings>()),
                ("replication", section::keys_of::<ReplicationSettings>()),
                ("overload", section::keys_of::<OverloadSettings>()),
                ("saves", section::keys_of::<SavesSettings>()),
                ("long_tasks", section::keys_of::<LongTaskSettings>()),
                ("recorder", section::keys_of::<RecorderSettings>()),
                ("recording", section::keys_of::<RecordingSettings>()),
                ("browser", section::keys_of::<BrowserSettings>()),
                ("analytics", section::keys_of::<AnalyticsSettings>()),
                ("object_store", section::keys_of::<ObjectStoreSettings>()),
                ("game", keys_of_game),
            ],
            &mut mistakes,
        );
        SettingsError::unless_empty(mistakes)?;
        Ok(settings)
    }

    /// The settings as a recording keeps them, as TOML: `[game]` whole, and of all other sections the numbers and booleans.
    /// Keys, passwords, addresses and paths are texts, so a setting that is added later is left out unless it is a number.
    /// Each key left out has a default, so the rest can be read again. Empty if the file is no TOML.
    pub fn text_for_recording(&self) -> String {
        let Ok(mut table) = self.text.parse::<toml::Table>() else { return String::new() };
        for (_, section) in table.iter_mut().filter(|(name, _)| *name != "game") {
            if let Some(section) = section.as_table_mut() {
                section.retain(|_, value| value.is_integer() || value.is_float() || value.is_bool());
            }
        }
        toml::to_string(&table).unwrap_or_default()
    }

    /// The folder of the settings file; `None` if they are not from a file.
    pub fn folder(&self) -> Option<PathBuf> {
        self.folder.clone()
    }

    /// Where the keys of the admin port are, if the operator named a file: beside the settings, unless its path is whole.
    pub fn admin_keys_file(&self) -> Option<PathBuf> {
        let named = self.server.admin_keys_file.as_ref()?;
        Some(Path::new(&self.file).parent().unwrap_or(Path::new("")).join(named))
    }

    /// What they say of tunables, and where that can be read again.
    pub(crate) fn tuning(&self) -> Tuning {
        Tuning::new(&self.file, &self.text)
    }

    /// The game's own section, `[game]`, read into the game's type and checked by it.
    pub fn game<T: Section>(&self) -> Result<T, SettingsError> {
        section(&self.file, &self.text, "game")
    }
}

/// These sections of a text, as TOML; empty if it is none.
pub(crate) fn sections_of(text: &str, names: &[&str]) -> String {
    let Ok(mut table) = text.parse::<toml::Table>() else { return String::new() };
    table.retain(|name, _| names.contains(&name));
    toml::to_string(&table).unwrap_or_default()
}

/// A file's text as TOML without comments; empty if it is none.
pub(crate) fn without_comments(text: &str) -> String {
    text.parse::<toml::Table>().ok().and_then(|table| toml::to_string(&table).ok()).unwrap_or_default()
}

/// Reads a file that an operator wrote; `elsewhere` says how to name another one.
pub(crate) fn read_file(path: &Path, elsewhere: &str) -> Result<String, SettingsError> {
    read_at_most(path, FILE_BYTES_MAX).map_err(|cause| SettingsError::unreadable(path, &cause, elsewhere))
}

fn read_at_most(path: &Path, bytes_max: u64) -> std::io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(bytes_max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > bytes_max {
        return Err(std::io::Error::other(format!("longer than {bytes_max} bytes; is this the right file?")));
    }
    Ok(text)
}

/// Reads one section of a settings text with the same care as the server's own: unknown keys, wrong types and
/// what `T::check` finds, all at once, each with its line.
pub fn section<T: Section>(file: &str, text: &str, name: &str) -> Result<T, SettingsError> {
    let mut mistakes = Vec::new();
    let value = Document::parse(file, text)?.section(name, &mut mistakes);
    SettingsError::unless_empty(mistakes)?;
    Ok(value)
}

/// `[server]`: sockets, threads, admission and what one client may ask for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct ServerSettings {
    /// UDP address that players connect to. `IP:PORT`, port 0 = any free one. Default `0.0.0.0:40000`. `[::]` takes IPv6
    /// alone, as `0.0.0.0` takes IPv4 alone.
    /// A loopback address → only this host can play.
    #[serde(deserialize_with = "address")]
    pub address: SocketAddr,
    /// The addresses written into connect tokens, as players see them. 0 to 32 of them; default none = `address`.
    /// Needed behind address translation, where the bound address is not the one players reach.
    #[serde(deserialize_with = "addresses")]
    pub public_addresses: Vec<SocketAddr>,
    /// TCP address of metrics, health and the console, or `"off"`. Default `127.0.0.1:9100`. On a loopback address
    /// whoever is on this host reads without a key. One that other hosts can reach needs `admin_keys_file`; what
    /// travels there is not encrypted.
    #[serde(deserialize_with = "address_or_off")]
    pub admin_address: Option<SocketAddr>,
    /// Names that this port may be asked for by, beside addresses and `localhost`: `["metrics.example"]`. Default none.
    /// A name that is missing → whoever asks by it is told so. One that others may point to this host → web pages from
    /// there can read figures and give orders, through the browser of somebody who reaches the port.
    pub admin_names: Vec<String>,
    /// The keys that this port takes, a line `NAME ROLE KEY` for each, relative to this file. Default none: on a
    /// loopback address the server makes a key at its start, which only its own user can read. Readable by others → the
    /// server does not start.
    pub admin_keys_file: Option<PathBuf>,
    /// Threads that run worlds: `"auto"` or 1 to 256. Default `"auto"` = usable cores less `reserved_cores`.
    /// Too low → ticks start late; more than cores → threads take turns and single ticks come late.
    pub workers: Workers,
    /// Cores that `workers = "auto"` leaves to the frame's thread, to threads of low priority, to the kernel and to
    /// others: `"auto"` or 0 to 255. Default `"auto"` = 0 of up to 4, 1 of up to 15, 2 of more. One worker remains.
    /// Too low → the frame begins late behind a worker; too high → ticks start late on cores that idle.
    pub reserved_cores: ReservedCores,
    /// Watch for stalls: a real-time thread on each core, which no process can delay, notes when it wakes 4 ms late or
    /// more. Default true; takes CAP_SYS_NICE or a limit of real-time priority (RLIMIT_RTPRIO), else there is none. True →
    /// 250 wake-ups a second of each core, 0.1 % of it; false → a core that the host holds up without a record of steal
    /// looks like the server's own fault.
    pub host_heartbeat: bool,
    /// Memory in pages of 2 MiB, where the host has them on request. Default true. `throng serve` follows it; a program
    /// of its own calls `throng_platform::allocator::take_small_pages`, as early as it can.
    /// False → a server of many small worlds takes a fifth less memory and some 6 % more processor time.
    pub huge_pages: bool,
    /// What the process has in memory when it begins to serve, worlds that are there from the start included [MiB, 0 to
    /// 1,048,576]. Default 0: it takes what it needs when it needs it, and keeps that. `throng serve` follows it. The peak
    /// of a load run (`server_rss_mb`, of 1,000,000 bytes) is a good value. Too low → frames in which players come wait for
    /// the kernel, on a fresh virtual machine up to 5 ms for each 2 MiB; too high → other programs lack it, and with more
    /// than the host has free the server does not start. It takes 0.1 to 1 s per GiB.
    pub commit_memory_mb: u32,
    /// The folder for the report of this process's death, or `"off"`. Default `"crashes"` where the server was started;
    /// `throng serve` follows it. The newest 10 deaths are kept, within 256 MiB. Off → a server that died does so again,
    /// and nobody knows of what. On a disk that is full → no report. What is secret is not in them.
    pub crashes: CrashFolder,
    /// When all workers have been stuck in one tick for so long, or all threads for long tasks in tasks that are past their time
    /// (docs/long-tasks.md), the process ends itself with a crash report, for a supervisor to start another [s, 0 to 86,400].
    /// Default 30; 0 = never. Too low → a tick that would have come back ends everybody's; too high → players stand still for longer,
    /// or wait for worlds.
    pub all_workers_stuck_s_max: u32,
    /// Connected clients at most [clients, 1 to 65,535]. Default 4,096.
    /// Too low → players are refused; too high → memory for 64 KB per client may be asked for.
    pub clients_max: u32,
    /// Names the game and its version; clients of another one are refused [any 64-bit number].
    /// Default 0x7468726f_6e670001. Left the same over an incompatible change → old clients connect and misread.
    pub protocol_id: u64,
    /// The secret shared with whoever issues connect tokens: 64 hexadecimal digits. Default none: the
    /// environment's `THRONG_PRIVATE_KEY`, else a key of the server's own that lasts as long as the process.
    pub private_key: Option<SecretKey>,
    /// A file that holds the key instead, so that this one can be shown around; beside this one, unless its path is
    /// absolute. Default none.
    pub private_key_file: Option<PathBuf>,
    /// A file that remembers which connect tokens made a session, made if there is none, or `"off"`. A relative path
    /// counts from the settings file. Default: `tokens-ADDRESS.used`, with a private key that was given, in the folder that
    /// systemd keeps for the service (`STATE_DIRECTORY`); else, with one in the settings, beside their file.
    /// Off, with a key that outlives the process → a token used before a restart could be used once more after it, until
    /// it expires. On a disk that stalls → players wait in line, frames do not.
    pub token_journal: TokenJournalFile,
    /// Send audit samples to clients whose connect token asks for them: exact state, twice a second, for a client that
    /// checks what it is shown, as bots do. Default false.
    /// True → whoever issues tokens can have a client told more precisely than players are, at some microseconds each.
    pub audit_samples: bool,
    /// UDP sockets that share the port [sockets, 1 to 32]. Default 1.
    /// Too low → the kernel drops bursts one socket cannot drain; too high → batches get small and calls costly.
    pub sockets: u16,
    /// Kernel receive buffer of each socket [bytes, 65,536 to 268,435,456]. Default 4 MiB = 2 frames of 60 Hz
    /// for 1,000 clients that all burst 2 packets of 1 KB. Too low → bursts are lost; too high → memory held.
    pub receive_buffer_bytes: usize,
    /// Kernel send buffer of each socket [bytes, 65,536 to 268,435,456]. Default 4 MiB, as for receiving.
    /// Too low → packets of a full frame are dropped and owed again; too high → memory held.
    pub send_buffer_bytes: usize,
    /// A client not heard of for this long is gone [s, 1 to 600]. Default 10. Its connect token may say less.
    /// Too low → a short blackout disconnects; too high → ghosts stand in the world.
    pub timeout_s: u32,
    /// Accept netcode 1.02 clients that know nothing of address cookies. Default false.
    /// True → a flood of requests costs the server one decryption each, up to `openings_per_frame_max`.
    pub plain_netcode: bool,
    /// Connect tokens opened per frame [tokens, 1 to 10,000]. Default 64, about 0.2 ms. For clients that have proven
    /// their address four times as many, of which an address that asks for more than 8 a second gets half at most.
    /// Too low → log-ins queue after a restart; too high → a flood takes the frame's time.
    pub openings_per_frame_max: u32,
    /// Players put into worlds per frame [players, 1 to 10,000]. Default 8 = 480 a second at 60 Hz: while somebody
    /// waits to come in no frame is left out. The others wait in line, in the order in which they came.
    /// Too low → a full server fills slowly; too high → a login storm makes playing clients' ticks late.
    pub joins_per_frame_max: u32,
    /// Clients that may wait in line to come in [clients, 1 to 65,535]. Default 4,096, 1.2 KB each.
    /// Too low → in a rush players are sent away and try again; too high → they wait longer than people do.
    pub join_queue_max: u32,
    /// Clients that may wait at once for worlds that are being made [clients, 1 to 65,535]. Default 1,024. While
    /// there are as many the line stands. Too low → it stands though others' worlds are there; too high → more
    /// worlds are asked for at once.
    pub placements_pending_max: u32,
    /// A client whose world is not ready after this long is refused [s, 1 to 600]. Default 30.
    /// Too low → a busy moment sends players away; too high → they wait for a world that never comes.
    pub placement_timeout_s: u32,
    /// How often a world keeps what it can be made again from if it panics [s, 1 to 600; 0: never]. Default 10. For
    /// kinds of worlds that say what their state is; others begin anew.
    /// Too low → large worlds spend their ticks on it; too high → a world is away for longer after a panic, since all
    /// ticks since are done again, and what its players said since takes memory.
    pub checkpoint_period_s: u32,
    /// Packets accepted from one client [packets/s, 20 to 10,000]. Default 300: 128 Hz twice over and acks.
    /// Too low → honest clients lose input after a lag burst; too high → one attacker costs many players' time.
    pub client_packets_per_s_max: u32,
    /// Bytes accepted from one client [bytes/s, 2,400 to 10,000,000]. Default 131,072. Two full packets at least.
    /// Too low → honest messages are dropped; too high → one attacker fills the receive buffer.
    pub client_bytes_per_s_max: u32,
    /// Messages accepted from one client, inputs among them [messages/s, 20 to 100,000]. Default 1,000: a packet holds up
    /// to 200. Those that the game prices above an input count as so many. Too low → honest clients lose input, or their connection, after a lag burst; too high → one attacker costs
    /// its world's tick.
    pub client_messages_per_s_max: u32,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            address: SocketAddr::from(([0, 0, 0, 0], 40000)),
            public_addresses: Vec::new(),
            admin_address: Some(SocketAddr::from(([127, 0, 0, 1], 9100))),
            admin_names: Vec::new(),
            admin_keys_file: None,
            workers: Workers::Auto,
            reserved_cores: ReservedCores::Auto,
            host_heartbeat: true,
            huge_pages: true,
            commit_memory_mb: 0,
            crashes: CrashFolder::Usual,
            all_workers_stuck_s_max: 30,
            clients_max: 4096,
            protocol_id: 0x7468_726f_6e67_0001,
            private_key: None,
            private_key_file: None,
            token_journal: TokenJournalFile::Implied,
            audit_samples: false,
            sockets: 1,
            receive_buffer_bytes: 4 << 20,
            send_buffer_bytes: 4 << 20,
            timeout_s: 10,
            plain_netcode: false,
            openings_per_frame_max: 64,
            joins_per_frame_max: 8,
            join_queue_max: 4096,
            placements_pending_max: 1024,
            placement_timeout_s: 30,
            checkpoint_period_s: 10,
            client_packets_per_s_max: 300,
            client_bytes_per_s_max: 128 << 10,
            client_messages_per_s_max: 1_000,
        }
    }
}

/// Where used connect tokens are remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenJournalFile {
    /// Where the settings or the service manager let a server keep files, if tokens outlive it.
    Implied,
    Named(PathBuf),
    Off,
}

impl<'de> Deserialize<'de> for TokenJournalFile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Ok(if text == "off" { Self::Off } else { Self::Named(text.into()) })
    }
}

impl ServerSettings {
    /// Public addresses that no datagram for `address` can come in by, because they are of the other family.
    pub(crate) fn public_addresses_of_other_family(&self) -> impl Iterator<Item = SocketAddr> {
        self.public_addresses.iter().copied().filter(|public| public.is_ipv6() != self.address.is_ipv6())
    }

    /// `None`: never.
    pub(crate) fn all_workers_stuck_max(&self) -> Option<Nanos> {
        let stuck_s = self.all_workers_stuck_s_max;
        (stuck_s > 0).then(|| Nanos::from_secs(stuck_s.into()))
    }

    /// The private key that the operator gave: the environment's first, then the file's, then the setting's.
    /// `None` = nobody gave one. `environment` looks a variable up, as `std::env::var(name).ok()` does.
    pub fn private_key(
        &self,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<SecretKey>, SettingsError> {
        if let Some(text) = environment(PRIVATE_KEY_VARIABLE) {
            return SecretKey::from_environment(&text).map(Some);
        }
        match &self.private_key_file {
            Some(path) => SecretKey::from_file(path).map(Some),
            None => Ok(self.private_key.clone()),
        }
    }
}

impl Section for ServerSettings {
    fn check(&self, checks: &mut Checks<'_>) {
        const BUFFER_BYTES: std::ops::RangeInclusive<usize> = 65_536..=268_435_456;
        if let Workers::Count(count) = self.workers {
            checks.range("workers", count, 1..=256, "threads");
            if let ReservedCores::Count(_) = self.reserved_cores {
                checks.mistake(
                    "reserved_cores",
                    format!("does nothing beside workers = {count}; remove it, or write workers = \"auto\""),
                );
            }
        }
        checks.range("commit_memory_mb", self.commit_memory_mb, 0..=1 << 20, "MiB");
        if self.crashes.path().is_some_and(|path| path.as_os_str().is_empty()) {
            checks.mistake("crashes", "names nothing; write a path or \"off\", or remove the key");
        }
        checks.range("all_workers_stuck_s_max", self.all_workers_stuck_s_max, 0..=86_400, "s");
        checks.range("clients_max", self.clients_max, 1..=65_535, "clients");
        checks.range("sockets", self.sockets, 1..=32, "sockets");
        checks.range("receive_buffer_bytes", self.receive_buffer_bytes, BUFFER_BYTES, "bytes");
        checks.range("send_buffer_bytes", self.send_buffer_bytes, BUFFER_BYTES, "bytes");
        checks.range("timeout_s", self.timeout_s, 1..=600, "s");
        checks.range("openings_per_frame_max", self.openings_per_frame_max, 1..=10_000, "tokens");
        checks.range("joins_per_frame_max", self.joins_per_frame_max, 1..=10_000, "players");
        checks.range("join_queue_max", self.join_queue_max, 1..=65_535, "clients");
        checks.range("placements_pending_max", self.placements_pending_max, 1..=65_535, "clients");
        checks.range("placement_timeout_s", self.placement_timeout_s, 1..=600, "s");
        checks.range("checkpoint_period_s", self.checkpoint_period_s, 0..=600, "s");
        checks.range("client_packets_per_s_max", self.client_packets_per_s_max, 20..=10_000, "packets/s");
        checks.range("client_bytes_per_s_max", self.client_bytes_per_s_max, 2_400..=10_000_000, "bytes/s");
        checks.range("client_messages_per_s_max", self.client_messages_per_s_max, 20..=100_000, "messages/s");
        if self.public_addresses.len() > 32 {
            checks.mistake("public_addresses", "a connect token holds at most 32 addresses; remove some");
        }
        if self.public_addresses.iter().any(|address| address.ip().is_unspecified() || address.port() == 0) {
            checks.mistake("public_addresses", "nobody can reach 0.0.0.0 or port 0; write what players connect to");
        }
        if self.private_key.is_some() && self.private_key_file.is_some() {
            checks.mistake("private_key_file", "`private_key` is given too; keep one of them");
        }
        if self.token_journal == TokenJournalFile::Named(PathBuf::new()) {
            checks.mistake("token_journal", "names no file; write a path, or \"off\"");
        }
        if self.admin_keys_file.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
            checks.mistake("admin_keys_file", "names no file; write a path, or remove the key");
        }
        if let (Some(admin), None) = (self.admin_address, &self.admin_keys_file)
            && !admin.ip().to_canonical().is_loopback()
        {
            checks.mistake(
                "admin_address",
                format!(
                    "other hosts can reach {admin}, and there are no keys: name a file of them in `admin_keys_file` \
                     (`throng admin-key NAME ROLE` makes a line of it), or write \"127.0.0.1:{}\"",
                    admin.port()
                ),
            );
        }
        if self.admin_names.iter().any(|name| name.is_empty() || name.contains([':', '/', ' '])) {
            checks.mistake("admin_names", "holds host names alone, without port and path, such as \"metrics.example\"");
        }
        if self.admin_address.is_some_and(|admin| admin.port() != 0 && admin == self.address) {
            checks.mistake("admin_address", "is the same as `address`; give each its own port");
        }
    }
}

/// `[replication]`: how far players hear, and how much they are told.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct ReplicationSettings {
    /// An entity nearer than this becomes relevant to a player [m, 1 to 10,000]. Default: as the game has it, or 60.
    /// Too low → things pop up in view; too high → bytes and time grow with its square.
    pub enter_radius_m: Option<f32>,
    /// A relevant entity stays so up to this distance [m, `enter_radius_m` to 10,000]. Default: as the game has it, or
    /// 70. Too near to `enter_radius_m` → entities on the edge flicker; too high → as above.
    pub leave_radius_m: Option<f32>,
    /// Side of a cell of the interest grid [m, 1 to 1,000]. Default 16.
    /// Too low → many cells to visit; too high → many entities to compare in each.
    pub cell_m: f32,
    /// A player's relevant set is rebuilt once in so many ticks [ticks, 1 to 64]. Default 4 = 0.2 s at 20 Hz.
    /// Too low → time; too high → things come into view late.
    pub period_ticks: u32,
    /// What one player may be sent per tick [bytes, 200 to 65,536]. Default 2,400 = two full packets.
    /// Too low → far entities update seldom; too high → one crowd fills the players' lines.
    pub budget_bytes_per_tick: u32,
}

impl Default for ReplicationSettings {
    fn default() -> Self {
        Self { enter_radius_m: None, leave_radius_m: None, cell_m: 16.0, period_ticks: 4, budget_bytes_per_tick: 2400 }
    }
}

impl ReplicationSettings {
    /// The radii that go before a game's own: if the file says one of them, the other is as usual.
    pub fn radii(&self) -> Option<InterestRadii> {
        let is_said = self.enter_radius_m.is_some() || self.leave_radius_m.is_some();
        is_said.then(|| self.radii_or_usual())
    }

    fn radii_or_usual(&self) -> InterestRadii {
        let usual = InterestSettings::default();
        InterestRadii {
            enter_m: self.enter_radius_m.unwrap_or(usual.enter_radius_m),
            leave_m: self.leave_radius_m.unwrap_or(usual.leave_radius_m),
        }
    }
}

impl Section for ReplicationSettings {
    fn check(&self, checks: &mut Checks<'_>) {
        let InterestRadii { enter_m, leave_m } = self.radii_or_usual();
        let radii_ok = checks.range("enter_radius_m", enter_m, 1.0..=10_000.0, "m")
            & checks.range("leave_radius_m", leave_m, 1.0..=10_000.0, "m");
        if radii_ok && leave_m < enter_m {
            checks.mistake(
                if checks.has("leave_radius_m") { "leave_radius_m" } else { "enter_radius_m" },
                format!(
                    "leave_radius_m is {leave_m} and enter_radius_m is {enter_m}; an entity would leave before it \
                     enters: make leave_radius_m at least enter_radius_m"
                ),
            );
        }
        checks.range("cell_m", self.cell_m, 1.0..=1_000.0, "m");
        checks.range("period_ticks", self.period_ticks, 1..=64, "ticks");
        checks.range("budget_bytes_per_tick", self.budget_bytes_per_tick, 200..=65_536, "bytes");
    }
}

/// Reads `IP:PORT`, with an error that says what is wrong with it. For settings and command lines alike.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| match text.rsplit_once(':') {
        None => format!("\"{text}\" has no port; write IP:PORT, such as \"{text}:40000\""),
        Some((_, port)) if port.parse::<u16>().is_err() => {
            format!("\"{text}\" has port {port}; a port is a number from 0 to 65535")
        }
        Some((host, _)) => {
            format!("\"{host}\" is not an IP address; write numbers, such as \"0.0.0.0:40000\" or \"[::]:40000\"")
        }
    })
}

fn address<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    parse_address(&String::deserialize(from)?).map_err(D::Error::custom)
}

fn addresses<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<SocketAddr>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    texts.iter().map(|text| parse_address(text).map_err(D::Error::custom)).collect()
}

fn address_or_off<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    match String::deserialize(from)?.as_str() {
        "off" => Ok(None),
        text => parse_address(text).map(Some).map_err(D::Error::custom),
    }
}

#[cfg(test)]
mod tests;
