//! The flight recorder of `throng serve`: started by the settings, with rules that are read again when their file
//! changes.

use std::{fs, io, path::Path, sync::Arc};

use throng::{
    Server,
    rules::{RangeCaps, ReplicationFileRules, RuleNames, RulesFile, ServerRules},
    settings::Settings,
};
use throng_profiler::{Recorder, RecorderControl, RecorderSettings, log, log_category, log_warn};

use crate::rules::FollowedRules;

log_category!(RECORDER = "profiler.recorder");
log_category!(RULES = "server.rules");

/// Puts the rules file into force and follows it, starts the recorder that the settings ask for and gives it to the
/// server. `captures` comes before the settings' folder. Returns the rules if there is a file of them.
pub fn start(
    settings: &Settings,
    captures: Option<&Path>,
    build: String,
    server: &mut Server,
) -> Result<Option<Arc<FollowedRules>>, Box<dyn std::error::Error>> {
    let chosen = &settings.recorder;
    let (file, rules) = match &chosen.rules {
        Some(path) => {
            let names = RuleNames::of(server.schema(), server.world_kind_names().map(str::to_owned).collect());
            RulesFile::open(path, names).map(|(file, rules)| (Some(file), rules))?
        }
        None => (None, ServerRules::default()),
    };
    log::set_levels(&rules.log_levels);
    let (control, of_game) = (server.control(), server.replication_rules().clone());
    let caps = RangeCaps::of(server);
    warn_of_ranges(&caps, &rules.replication);
    server.set_replication_rules(rules.replication.complete(of_game.clone()));
    let recorder = if chosen.on { Some(start_recorder(settings, captures, build, rules, server)?) } else { None };
    let suggested = server.suggested_budgets().clone();
    let follow = |file| {
        FollowedRules::follow(file, move |rules| {
            log::set_levels(&rules.log_levels);
            warn_of_ranges(&caps, &rules.replication);
            control.set_replication_rules(rules.replication.complete(of_game.clone()));
            if let Some(recorder) = &recorder {
                recorder.set_rules(suggested.complete(rules.recorder));
            }
        })
    };
    Ok(file.map(follow).transpose()?)
}

/// Says which ranges reach less far than they say.
fn warn_of_ranges(caps: &RangeCaps, rules: &ReplicationFileRules) {
    for warning in caps.warnings(rules) {
        log_warn!(RULES, %warning, "a rule does less than it says");
    }
}

fn start_recorder(
    settings: &Settings,
    captures: Option<&Path>,
    build: String,
    rules: ServerRules,
    server: &mut Server,
) -> Result<RecorderControl, Box<dyn std::error::Error>> {
    let chosen = &settings.recorder;
    let captures = captures.map(Path::to_path_buf).or_else(|| chosen.captures.clone());
    if let Some(folder) = &captures {
        // Now, not with the first bad frame of the night.
        make_writable_folder(folder).map_err(|cause| {
            format!(
                "captures cannot go to {}: {cause}; set [recorder] captures or --captures to another folder",
                folder.display()
            )
        })?;
    }
    let mut recorder = Recorder::start(RecorderSettings {
        memory_bytes: chosen.memory_mb as usize * MIB,
        captures,
        rules: server.suggested_budgets().complete(rules.recorder),
        build,
        game: server.game().into(),
        free_text: chosen.free_text,
        context_switches: chosen.context_switches,
    })?;
    if let (source, Some(reason)) = recorder.switch_source() {
        log_warn!(RECORDER, ?source, %reason, "context switches are not recorded one by one");
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
