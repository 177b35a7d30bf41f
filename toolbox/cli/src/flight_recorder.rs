//! The flight recorder of `throng serve`: started by the settings, with rules that are read again when their file changes.

use std::path::Path;
use std::time::Duration;

use throng::{
    Server,
    flight_recorder::SuggestedBudgets,
    rules::{RulesFile, ServerRules},
    settings::Settings,
};
use throng_platform::threads::{Priority, spawn_named};
use throng_profiler::{Recorder, RecorderControl, RecorderSettings, log, log_category, log_info, log_warn};

log_category!(RECORDER = "profiler.recorder");

/// How often the rules file is looked at.
const LOOK_AT_RULES_EVERY: Duration = Duration::from_secs(1);

/// Puts the rules file into force, starts the recorder that the settings ask for and gives it to the server. `captures` comes before the settings' folder.
pub fn start(
    settings: &Settings,
    captures: Option<&Path>,
    build: String,
    server: &mut Server,
) -> Result<(), Box<dyn std::error::Error>> {
    let chosen = &settings.recorder;
    let (file, rules) = match &chosen.rules {
        Some(path) => RulesFile::open(path).map(|(file, rules)| (Some(file), rules))?,
        None => (None, ServerRules::default()),
    };
    log::set_levels(&rules.log_levels);
    if !chosen.on {
        return Ok(());
    }
    let captures = captures.map(Path::to_path_buf).or_else(|| chosen.captures.clone());
    if let Some(folder) = &captures {
        // Now, not with the first bad frame of the night.
        std::fs::create_dir_all(folder).map_err(|cause| {
            format!(
                "captures cannot go to {}: {cause}; set [recorder] captures or --captures to another folder",
                folder.display()
            )
        })?;
    }
    let suggested = server.suggested_budgets().clone();
    let mut recorder = Recorder::start(RecorderSettings {
        memory_bytes: chosen.memory_mb as usize * MIB,
        captures,
        rules: suggested.complete(rules.recorder),
        build,
        game: server.game().into(),
        free_text: chosen.free_text,
        context_switches: chosen.context_switches,
    })?;
    if let (source, Some(reason)) = recorder.switch_source() {
        log_warn!(RECORDER, ?source, %reason, "context switches are not recorded one by one");
    }
    if let Some(file) = file {
        follow(file, recorder.control(), suggested)?;
    }
    server.set_recorder(recorder);
    Ok(())
}

const MIB: usize = 1 << 20;

/// A thread that puts changed rules into force.
fn follow(mut file: RulesFile, recorder: RecorderControl, suggested: SuggestedBudgets) -> std::io::Result<()> {
    spawn_named("rules", Priority::Low, move || {
        loop {
            std::thread::sleep(LOOK_AT_RULES_EVERY);
            // What is wrong with a file has been logged where it was read; the rules before stay.
            if let Some(Ok(rules)) = file.changed() {
                log::set_levels(&rules.log_levels);
                recorder.set_rules(suggested.complete(rules.recorder));
                log_info!(RECORDER, "new rules are in force");
            }
        }
    })?;
    Ok(())
}
