//! A game as one value, put together part by part.

use std::{path::Path, rc::Rc, sync::Arc};

use throng::{
    Server,
    pack::HasSchema,
    settings::{NoSection, Section, Settings, SettingsError},
};
use throng_bots::{Behaviour, Joins, Scenario, SwarmSettings};
use throng_faults::FaultSwitch;
use throng_replication::Schema;

use crate::{
    arguments::{Arguments, Options},
    option::GameOption,
    saved::{Items, SavedType},
};

/// Why worlds could not be made. [`throng::server::ServerError`] becomes one with `?`.
pub type BuildError = Box<dyn std::error::Error>;

/// Makes a game's worlds in a server, once.
pub type BuildWorlds = Box<dyn FnOnce(&mut Server, &Arguments) -> Result<(), BuildError>>;

/// Makes the behaviour of a swarm's bot with this index, on the thread that drives it.
pub type MakeBehaviour = Box<dyn Fn(usize) -> Box<dyn Behaviour> + Send + Sync>;

type FindSettings = Box<dyn Fn(SettingsFrom<'_>) -> Result<(Settings, BuildWorlds), SettingsError>>;
type LoadBots = Box<dyn Fn(&Options, Scenario) -> MakeBehaviour>;

/// Where settings are read.
#[derive(Clone, Copy)]
enum SettingsFrom<'a> {
    /// In the file that was named, or the usual one.
    File(Option<&'a Path>),
    /// In a text that somebody has kept.
    Text { name: &'a str, text: &'a str },
}

/// How many there are of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Unless somebody says otherwise: what the game is made for.
    pub usual: u32,
    /// More is refused.
    pub max: u32,
}

/// A game that a command can serve, play and measure.
pub struct Game {
    name: &'static str,
    about: &'static str,
    version: &'static str,
    commit: &'static str,
    players: Size,
    demo_bots: Option<u32>,
    npcs: Option<Size>,
    options: Vec<GameOption>,
    scenarios: Vec<Scenario>,
    knows_fault: Option<fn(FaultSwitch) -> bool>,
    saved_types: Vec<SavedType>,
    schema: Box<dyn Fn() -> Arc<Schema>>,
    find_settings: FindSettings,
    load_bots: Option<LoadBots>,
    page: Option<&'static str>,
    bots_hz: u32,
    settles_after_s: u32,
}

/// What is not known of a build.
const UNKNOWN: &str = "unknown";

impl Game {
    /// A game without settings of its own. `name` is what reports, captures and metrics call it: lower case, words
    /// joined by hyphens. `schema` is what server and clients agree on. `build` makes the worlds in a server that is bound
    /// and has no worlds yet; it runs once.
    pub fn new(
        name: &'static str,
        schema: impl Fn() -> Arc<Schema> + 'static,
        build: impl Fn(&mut Server, &Arguments) -> Result<(), BuildError> + 'static,
    ) -> Self {
        Self::with_settings(name, schema, move |server, arguments, _none: &NoSection| build(server, arguments))
    }

    /// A game whose section `[game]` of the settings file is read into a `T`. What is wrong there is told with all other
    /// mistakes of the file, before anything starts.
    pub fn with_settings<T: Section + 'static>(
        name: &'static str,
        schema: impl Fn() -> Arc<Schema> + 'static,
        build: impl Fn(&mut Server, &Arguments, &T) -> Result<(), BuildError> + 'static,
    ) -> Self {
        let build = Rc::new(build);
        let find_settings = move |from: SettingsFrom<'_>| -> Result<(Settings, BuildWorlds), SettingsError> {
            let (settings, own) = match from {
                SettingsFrom::File(named) => Settings::find::<T>(named)?,
                SettingsFrom::Text { name, text } => Settings::parse_for::<T>(name, text)?,
            };
            let build = build.clone();
            let worlds: BuildWorlds =
                Box::new(move |server: &mut Server, arguments: &Arguments| build(server, arguments, &own));
            Ok((settings, worlds))
        };
        let usual = Scenario { name: Scenario::USUAL, about: "as the game's bots play", joins: Joins::InTurn };
        Self {
            name,
            about: "",
            version: UNKNOWN,
            commit: UNKNOWN,
            players: Size { usual: 100, max: 4_000 },
            demo_bots: None,
            npcs: None,
            options: Vec::new(),
            scenarios: vec![usual, Scenario::LOG_IN_AT_ONCE],
            knows_fault: None,
            saved_types: Vec::new(),
            schema: Box::new(schema),
            find_settings: Box::new(find_settings),
            load_bots: None,
            page: None,
            bots_hz: SwarmSettings::TICK_HZ,
            settles_after_s: 0,
        }
    }

    /// What it is, in a line for `--help`.
    #[must_use]
    pub fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    /// The version that `--version`, captures, crash reports, metrics and reports of runs say: `env!("CARGO_PKG_VERSION")`
    /// in the crate of the executable. Default `unknown`.
    #[must_use]
    pub fn version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    /// The commit that they say beside it: `env!("THRONG_COMMIT")`, which `throng_commit::set` in the build script found out. Default
    /// `unknown`: then `throng history` cannot tell one commit's runs from another's.
    #[must_use]
    pub fn commit(mut self, commit: &'static str) -> Self {
        self.commit = commit;
        self
    }

    /// For how many players it is made [1 to `max`], and the most that may be asked for with `--players`. Default 100, at
    /// most 4,000.
    #[must_use]
    pub fn players(mut self, usual: u32, max: u32) -> Self {
        self.players = Size { usual, max };
        self
    }

    /// Bots of a `demo` without `--players` [1 to the most of [`players`](Self::players), which is said before]. Default: the
    /// usual number of players. Too many → a game that seats players in full matches has no free seat for whoever opens its
    /// page; too few → the demo shows little load.
    ///
    /// # Panics
    /// When it is out of its range.
    #[must_use]
    pub fn demo_bots(mut self, bots: u32) -> Self {
        let max = self.players.max;
        assert!((1..=max).contains(&bots), "a demo has 1 to {max} bots, not {bots}");
        self.demo_bots = Some(bots);
        self
    }

    /// How many NPCs there are over all worlds, and the most that may be asked for with `--npcs`. A game that says nothing
    /// of NPCs has no such flag.
    #[must_use]
    pub fn npcs(mut self, usual: u32, max: u32) -> Self {
        self.npcs = Some(Size { usual, max });
        self
    }

    /// Adds an option of the game's own: a flag of `serve`, `load` and `demo`, and of `bots` if it is for these too.
    ///
    /// # Panics
    /// When the game has an option of this name.
    #[must_use]
    pub fn option(mut self, option: GameOption) -> Self {
        let name = option.name();
        assert!(self.options.iter().all(|other| other.name() != name), "two options are called --{name}");
        self.options.push(option);
        self
    }

    /// How its bots can play, the usual way first. Default: the usual way, and everybody logging in at once.
    ///
    /// # Panics
    /// When the first is not called [`Scenario::USUAL`].
    #[must_use]
    pub fn scenarios(mut self, scenarios: &[Scenario]) -> Self {
        let first = scenarios.first().map(|scenario| scenario.name);
        assert_eq!(first, Some(Scenario::USUAL), "the usual way to play comes first");
        self.scenarios = scenarios.to_vec();
        self
    }

    /// Which faults it has a place for, so that `--inject` takes them. Default none.
    #[must_use]
    pub fn faults(mut self, knows_fault: fn(FaultSwitch) -> bool) -> Self {
        self.knows_fault = Some(knows_fault);
        self
    }

    /// Says that values of this type are in its saves, in an envelope, and which items are in one: what the command
    /// `saves` tells records by, and counts. Types that nothing is said of are told by their numbers, and then items
    /// cannot be counted.
    ///
    /// # Panics
    /// When the game has said so of a type of this name.
    #[must_use]
    pub fn saves<T: HasSchema>(mut self, items: impl Fn(&T, Items<'_>) + 'static) -> Self {
        let saved = SavedType::of(items);
        let name = saved.name();
        assert!(self.saved_types.iter().all(|other| other.name() != name), "{name} is saved twice");
        self.saved_types.push(saved);
        self
    }

    /// How its bots play. `load` runs once in a swarm: it loads what all bots share, and returns what makes the behaviour
    /// of the bot with an index, on the thread that drives it. Without bots there is no `demo` and no load run.
    #[must_use]
    pub fn bots<M, B>(mut self, load: impl Fn(&Options, Scenario) -> M + 'static) -> Self
    where
        M: Fn(usize) -> B + Send + Sync + 'static,
        B: Behaviour + 'static,
    {
        self.load_bots = Some(Box::new(move |options: &Options, scenario: Scenario| {
            let make = load(options, scenario);
            let boxed: MakeBehaviour = Box::new(move |bot| -> Box<dyn Behaviour> { Box::new(make(bot)) });
            boxed
        }));
        self
    }

    /// The page by which it is played in a browser, whole: HTML with its script inside, which may import
    /// `/play/client.js` and `/play/schema.js`.
    #[must_use]
    pub fn page(mut self, page: &'static str) -> Self {
        self.page = Some(page);
        self
    }

    /// How often each of its bots thinks and sends an input [Hz, 1 to 1,000; default 20]: as often as the program of a
    /// player. Too low → load runs cost the server less than players would; too high → more.
    ///
    /// # Panics
    /// When it is out of its range.
    #[must_use]
    pub fn bots_at(mut self, hz: u32) -> Self {
        assert!((1..=1_000).contains(&hz), "bots think at 1 to 1,000 Hz, not {hz}");
        self.bots_hz = hz;
        self
    }

    /// How long its players need, when the last of them is in, until what they do no longer follows from when they came
    /// (s). Default 0: nothing but what every load run watches. For a game of rounds some rounds: figures stand still in
    /// the first one, too, while everybody buys. Too low → load runs measure the beginning; too high → they take longer.
    #[must_use]
    pub fn settles_after(mut self, seconds: u32) -> Self {
        self.settles_after_s = seconds;
        self
    }
}

/// What those ask who run it.
impl Game {
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub fn description(&self) -> &'static str {
        self.about
    }

    pub fn version_and_commit(&self) -> (&'static str, &'static str) {
        (self.version, self.commit)
    }

    pub fn players_size(&self) -> Size {
        self.players
    }

    /// Bots of a `demo` without `--players`.
    pub fn usual_demo_bots(&self) -> u32 {
        self.demo_bots.unwrap_or(self.players.usual)
    }

    /// `None`: it says nothing of NPCs.
    pub fn npcs_size(&self) -> Option<Size> {
        self.npcs
    }

    pub fn options(&self) -> &[GameOption] {
        &self.options
    }

    pub fn known_scenarios(&self) -> &[Scenario] {
        &self.scenarios
    }

    /// Those that it has a place for.
    pub fn known_faults(&self) -> Vec<FaultSwitch> {
        let knows = self.knows_fault;
        FaultSwitch::all().filter(|&fault| knows.is_some_and(|knows| knows(fault))).collect()
    }

    /// What it said of its saves.
    pub fn saved_types(&self) -> &[SavedType] {
        &self.saved_types
    }

    pub fn schema(&self) -> Arc<Schema> {
        (self.schema)()
    }

    /// The settings of the file that was named, of `throng.toml` in the working folder, or defaults; and what makes the
    /// worlds by them. All mistakes of the file are in the error.
    pub fn find_settings(&self, named: Option<&Path>) -> Result<(Settings, BuildWorlds), SettingsError> {
        (self.find_settings)(SettingsFrom::File(named))
    }

    /// The same from a text that somebody has kept, such as a recording; `name` is what mistakes say of it. Paths in it are
    /// as they stand there.
    pub fn settings_of(&self, name: &str, text: &str) -> Result<(Settings, BuildWorlds), SettingsError> {
        (self.find_settings)(SettingsFrom::Text { name, text })
    }

    /// See [`page`](Self::page).
    pub fn play_page(&self) -> Option<&'static str> {
        self.page
    }

    /// How often each of its bots thinks and sends an input.
    pub fn bots_hz(&self) -> u32 {
        self.bots_hz
    }

    /// How long a load run waits at least, when the last bot is in (s).
    pub fn settles_after_s(&self) -> u32 {
        self.settles_after_s
    }

    /// Loads what bots share. `None`: it has no bots.
    pub fn load_bots(&self, options: &Options, scenario: Scenario) -> Option<MakeBehaviour> {
        self.load_bots.as_ref().map(|load| load(options, scenario))
    }
}
