//! Starting the flight recorder as the settings ask for it, with rules that are read again when their file changes.
//!
//! Runs once, on the thread that puts the server together, after its worlds are made: the names that rules may hold are
//! those of the game. Takes some 20 ms.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use throng_profiler::{
    Recorder, RecorderControl, RecorderSettings, log, log_category, log_info, log_warn, rules::Rules,
};

use crate::{
    recording::About,
    rules::{FollowedRules, Force, RangeCaps, ReplicationFileRules, RuleNames, RulesFile, ServerRules},
    server::Server,
    settings::{Settings, SettingsError, sections_of},
};

log_category!(RECORDER = "profiler.recorder");
log_category!(RULES = "server.rules");

/// Recorder or rules could not be started.
#[derive(Debug, thiserror::Error)]
pub enum RecorderStartError {
    #[error(transparent)]
    Rules(#[from] SettingsError),
    #[error(
        "captures cannot go to {}: {cause}; set [recorder] captures or --captures to another folder", folder.display()
    )]
    Captures { folder: PathBuf, cause: io::Error },
    #[error("a thread cannot start: {0}; raise `ulimit -u` or the container's pids limit")]
    Thread(#[from] io::Error),
}

impl Server {
    /// Puts the rules file of the settings into force and follows it, and starts the recorder that they ask for.
    /// `captures` comes before the settings' folder; `build` is what captures say of the executable. To be called when
    /// the worlds are made, once. Returns the rules if there is a file of them: the console reloads them.
    pub fn start_recorder(
        &mut self,
        settings: &Settings,
        captures: Option<&Path>,
        build: String,
    ) -> Result<Option<Arc<FollowedRules>>, RecorderStartError> {
        let chosen = &settings.recorder;
        let (file, rules) = match &chosen.rules {
            Some(path) => RulesFile::open(path, self.rule_names()).map(|(file, rules)| (Some(file), rules))?,
            None => (None, ServerRules::default()),
        };
        log::set_levels(&rules.log_levels);
        let (control, of_game) = (self.control(), self.replication_rules().clone());
        let caps = RangeCaps::of(self);
        warn_of_ranges(&caps, &rules.replication);
        self.set_replication_rules(rules.replication.complete(of_game.clone()));
        let recording = self.recording.clone();
        recording.set_rules(texts([&rules]));
        let recorder =
            if chosen.on { Some(start(self, settings, captures, build, rules.recorder.clone())?) } else { None };
        let suggested = self.suggested_budgets();
        let follow = |file| {
            let game = of_game.clone();
            let levels_and_replication = Box::new(move |in_file: &ServerRules, said: &ServerRules| {
                log::set_levels(&said.log_levels_over(in_file));
                let replication = [&in_file.replication, &said.replication];
                replication.iter().for_each(|rules| warn_of_ranges(&caps, rules));
                let complete = |rules, more: &&ReplicationFileRules| more.complete(rules);
                control.set_replication_rules(replication.iter().fold(of_game.clone(), complete));
                recording.set_rules(texts([in_file, said]));
            });
            let complete = Box::new(move |rules| suggested.complete(rules));
            FollowedRules::follow(file, rules, Force { levels_and_replication, complete, recorder, game })
        };
        Ok(file.map(follow).transpose()?)
    }

    /// What the rules of a recorded server say to the recorder, for [`start_replay_recorder`](Self::start_replay_recorder): budgets,
    /// triggers and captures. A replay has nobody to tell anything, so what they say of components and events is passed over.
    ///
    /// # Errors
    /// If they speak of what this build does not have.
    pub fn recorded_rules(&self, about: &About) -> Result<Rules, SettingsError> {
        let Some(text) = about.rules.first() else { return Ok(Rules::default()) };
        let text = sections_of(text, &["budgets", "triggers", "captures"]);
        Ok(ServerRules::parse("the recording's rules", &text, &self.rule_names())?.recorder)
    }

    fn rule_names(&self) -> RuleNames {
        RuleNames::of(self.schema(), self.world_kind_names().map(str::to_owned).collect())
    }

    /// Starts the recorder of a replay, by these rules and no file's. Otherwise as [`start_recorder`](Self::start_recorder).
    pub fn start_replay_recorder(
        &mut self,
        settings: &Settings,
        captures: Option<&Path>,
        build: String,
        rules: Rules,
    ) -> Result<(), RecorderStartError> {
        start(self, settings, captures, build, rules).map(drop)
    }
}

/// What a recording has of rules that are on top of each other.
fn texts<'r>(rules: impl IntoIterator<Item = &'r ServerRules>) -> Vec<String> {
    rules.into_iter().map(|rules| rules.text.clone()).filter(|text| !text.is_empty()).collect()
}

/// Says which ranges reach less far than they say.
fn warn_of_ranges(caps: &RangeCaps, rules: &ReplicationFileRules) {
    for warning in caps.warnings(rules) {
        log_warn!(RULES, %warning, "a rule does less than it says");
    }
}

fn start(
    server: &mut Server,
    settings: &Settings,
    captures: Option<&Path>,
    build: String,
    rules: Rules,
) -> Result<RecorderControl, RecorderStartError> {
    let chosen = &settings.recorder;
    let captures = captures.map(Path::to_path_buf).or_else(|| chosen.captures.clone());
    if let Some(folder) = &captures {
        // Now, not with the first bad frame of the night.
        let made = make_writable_folder(folder);
        made.map_err(|cause| RecorderStartError::Captures { folder: folder.clone(), cause })?;
    }
    let recorder = Recorder::start(RecorderSettings {
        memory_bytes: chosen.memory_mb as usize * MIB,
        captures,
        rules: server.suggested_budgets().complete(rules),
        build,
        game: server.game().into(),
        free_text: chosen.free_text,
        context_switches: chosen.context_switches,
        core_switches: chosen.core_switches,
        host_stalls: server.stall_log(),
    })?;
    match recorder.switch_source() {
        (_, None) => {}
        (source, Some(reason)) if source.has_each_switch() => {
            log_info!(RECORDER, ?source, %reason, "captures guess which other process had a core");
        }
        (source, Some(reason)) => log_warn!(RECORDER, ?source, %reason, "context switches are not recorded one by one"),
    }
    let control = recorder.control();
    server.set_recorder(recorder);
    Ok(control)
}

/// Makes the folder if there is none, and tries whether files can be made in it.
fn make_writable_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let trial = folder.join(format!("trial-{}.partial", std::process::id()));
    fs::write(&trial, [])?;
    fs::remove_file(&trial)
}

const MIB: usize = 1 << 20;
