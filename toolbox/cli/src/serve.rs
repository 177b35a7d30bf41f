//! `serve`: a game server in this process.

use std::{
    io::BufRead,
    path::PathBuf,
    sync::mpsc::{SyncSender, sync_channel},
    thread::JoinHandle,
    time::Instant,
};

use clap::Args;
use throng::{
    Server,
    report::ServerStatus,
    server::ServerControl,
    settings::{CrashFolder, PRIVATE_KEY_VARIABLE, SaveStore, SavesSettings, Settings, parse_address},
};
use throng_admin::{
    AdminServer,
    access::{Access, AccessKeys},
    console::Console,
};
use throng_crash::CrashGuard;
use throng_net::protocol::PrivateKey;
use throng_platform::{
    allocator::{self, LargeFrees},
    limits, process, random,
    signals::{self, StopFlag},
    threads::{Priority, spawn_named},
};

use crate::{
    browser::{self, BrowserArguments},
    crash_state,
    executable::Executable,
    key,
    outcome::{CommandResult, Verdict},
    output::{OutputArguments, Reader, remark, say},
    played::Played,
    service_manager::{ServiceManager, Telling},
    status_line::{SAVES_ARE_AWAY, StatusLine},
    supervisor::{self, Role, SupervisionArguments},
    uploads,
};

/// Sockets, files and pipes that a server needs beside none per client: UDP is one socket for all.
const OPEN_FILES_WANTED: u64 = 256;

#[derive(Args)]
pub struct ServeArguments {
    /// Settings. Without it `throng.toml` in the folder that the command is started in; without that, defaults for
    /// everything. The log's first line says which.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Use this UDP address instead of the settings'.
    #[arg(long)]
    address: Option<std::net::SocketAddr>,
    /// Use this admin address instead of the settings'; port 0 = any free one; "off" = none.
    #[arg(long, value_name = "IP:PORT", value_parser = off_or_address)]
    admin_address: Option<OffOr<std::net::SocketAddr>>,
    #[command(flatten)]
    browser: BrowserArguments,
    /// Threads that run worlds, instead of the settings'.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
    /// Save captures of bad frames into this folder, instead of the settings'.
    #[arg(long, value_name = "DIR")]
    captures: Option<PathBuf>,
    /// Leave a report of this process's death in this folder, instead of the settings': stacks, open scopes, the worlds
    /// that were being ticked. "off" = none.
    #[arg(long, value_name = "DIR")]
    crashes: Option<CrashFolder>,
    /// Save players and worlds into a file in this folder, whatever the settings say. "none" = nothing is saved.
    #[arg(long, value_name = "DIR")]
    saves: Option<PathBuf>,
    /// Record all that enters the worlds into this folder, whatever the settings say, for `replay`.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Send audit samples to clients whose token asks for them, whatever the settings say.
    #[arg(long)]
    audit_samples: bool,
    /// Start without the flight recorder, whatever the settings say: to see what it costs.
    #[arg(long)]
    no_recorder: bool,
    /// Let the flight recorder run in every other third of a second only, and report what it costs (`recorder_cpu_share`).
    #[arg(long)]
    recorder_turns: bool,
    /// Take equally urgent worlds in any order instead of the costliest first, to see what the estimate is worth.
    #[arg(long)]
    ignore_cost_estimates: bool,
    #[command(flatten)]
    supervision: SupervisionArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// Larger blocks that a world gives up in its tick are freed by another thread, as with a recorder (bytes).
const DEFERRED_ABOVE_BYTES: usize = 256 << 10;

/// `None`: off.
#[derive(Clone, Copy)]
pub struct OffOr<T>(pub Option<T>);

pub fn off_or_address(text: &str) -> Result<OffOr<std::net::SocketAddr>, String> {
    match text {
        "off" => Ok(OffOr(None)),
        text => parse_address(text).map(|address| OffOr(Some(address))),
    }
}

pub fn run(arguments: ServeArguments, played: &Played<'_>, executable: Executable) -> CommandResult {
    let stop = signals::install_stop();
    match arguments.supervision.role()? {
        Role::Supervisor(supervised) => return supervisor::run(supervised, &stop),
        Role::Orphan => return Err("the supervisor that started this server is gone".into()),
        Role::Server => {}
    }
    limits::raise_open_files(OPEN_FILES_WANTED)?;
    let (mut settings, build_worlds) = played.game.find_settings(arguments.config.as_deref())?;
    tracing::info!(from = %settings.source(), "settings");
    if let Some(address) = arguments.address {
        settings.server.address = address;
    }
    arguments.browser.tell(&mut settings);
    if let Some(OffOr(address)) = arguments.admin_address {
        settings.server.admin_address = address;
    }
    if let Some(workers) = arguments.workers {
        settings.server.workers = throng::settings::Workers::Count(workers);
    }
    if let Some(crashes) = arguments.crashes {
        settings.server.crashes = crashes;
    }
    if let Some(saves) = arguments.saves {
        save_into(saves, &mut settings.saves)?;
    }
    if let Some(folder) = arguments.record {
        (settings.recording.folder, settings.recording.at_start) = (Some(folder), true);
    }
    settings.recorder.on &= !arguments.no_recorder;
    settings.server.audit_samples |= arguments.audit_samples;
    if !settings.server.huge_pages && !throng_platform::allocator::take_small_pages() {
        tracing::warn!("huge_pages = false has no effect: the kernel does not take it");
    }
    let admin_keys = settings.server.admin_address.and(settings.admin_keys_file());
    let admin_keys = admin_keys.map(|path| AccessKeys::load(&path)).transpose()?;
    let key = private_key(&settings)?;
    let mut server = Server::bind(&settings, played.game.schema(), key.clone())?;
    server.set_build(executable.build());
    server.set_game(played.game.name());
    server.set_arguments(played.to_words());
    let _crash_guard = install_crash_reports(&settings.server.crashes, &mut server, executable)?;
    if let Some(crashes) = settings.server.crashes.path() {
        arguments.supervision.wait_for_report(crashes);
        let culprits = crash_state::culprits(crashes, server.game());
        server.park_culprits(culprits);
    }
    // A level takes more memory while it is made than it has afterwards.
    throng_platform::allocator::hand_memory_back(|| build_worlds(&mut server, &played.arguments))?;
    commit_memory(settings.server.commit_memory_mb)?;
    // With a recorder it is that one's thread which frees what worlds give up.
    let _large_frees = if settings.recorder.on { None } else { Some(LargeFrees::start(DEFERRED_ABOVE_BYTES)?) };
    if arguments.recorder_turns {
        server.take_recorder_turns();
    }
    server.use_cost_estimates(!arguments.ignore_cost_estimates);
    let rules = server.start_recorder(&settings, arguments.captures.as_deref(), executable.full_name())?;
    let receiver = throng_upload::receiver(&settings.analytics)?;
    server.start_analytics(&settings.analytics, receiver, &own_name(&server))?;
    let uploader = uploads::start(&settings, &server, &own_name(&server))?;
    server.start_watchdog(&settings.server, Some(crash_state::stacks))?;
    let admin = match settings.server.admin_address {
        Some(address) => {
            let access = Access { names: settings.server.admin_names.clone(), keys: admin_keys };
            let control = server.control();
            let console = Console::new().with_rules(rules).with_server(&server).with_long_tasks(&control);
            let console = console.with_parking(control);
            Some(AdminServer::start(address, access, server.control().published(), console)?)
        }
        None => None,
    };
    let admin_address = admin.as_ref().map(|admin| admin.local_addr());
    let shown = browser::show(&settings, &server, key, played)?;
    let play_url = shown.as_ref().map(browser::url);
    let reader = arguments.output.reader();
    if reader == Reader::Parent {
        say(serde_json::json!({"ready": {
            "address": server.local_addr(),
            "admin_address": admin_address,
            "play_url": play_url,
            "version": executable.version,
            "commit": executable.commit,
        }}))?;
        obey_parent(server.control())?;
    } else {
        remark(format_args!(
            "{} on {}: {} worlds, {} workers{}{}",
            played.game.name(),
            server.local_addr(),
            server.worlds_count(),
            server.workers_count(),
            admin_address.map_or_else(String::new, |address| format!(", its console on http://{address}/")),
            play_url.map_or_else(String::new, |url| format!(", to be played at {url}"))
        ));
    }
    // A supervisor is not to be woken.
    let manager = tell_service_manager(&server, &stop, !arguments.supervision.is_supervised())?;
    let (statuses, teller) = tell_statuses(reader, manager)?;
    // A reader that is slow loses a second's line; the frame never waits for it.
    let report = server.run(&stop, &mut |status| drop(statuses.try_send(status.clone())))?;
    if let Some(uploader) = uploader {
        let left = server.ends_by().map(|end| end.saturating_duration_since(Instant::now()));
        uploader.finish(left.unwrap_or_default().min(uploads::LAST_FILE_MAX));
    }
    drop(statuses);
    teller.join().map_err(|_| "the thread that tells the status panicked")?;
    reader.tell_report(&report)?;
    if report.saves_missing {
        return Err("the server has ended, and not everything could be saved: the log says why; what is missing is as at the save \
                    before"
            .into());
    }
    Ok(Verdict::Fine)
}

/// What this server is called where nobody gave it a name.
fn own_name(server: &Server) -> String {
    let host = process::host_name().unwrap_or_else(|| "localhost".to_owned());
    format!("{host}:{}", server.local_addr().port())
}

/// The word of `--saves` that is no folder.
pub const NO_SAVES: &str = "none";

fn save_into(folder: PathBuf, saves: &mut SavesSettings) -> Result<(), String> {
    (saves.store, saves.folder, saves.postgres) = (SaveStore::None, None, None);
    if folder.as_os_str() == NO_SAVES {
        return Ok(());
    }
    let made = std::fs::create_dir_all(&folder);
    made.map_err(|cause| {
        format!("--saves {}: cannot be made: {cause}; name a folder that this user may write", folder.display())
    })?;
    (saves.store, saves.folder) = (SaveStore::Embedded, Some(folder));
    Ok(())
}

/// Takes from the kernel what the process lacks to so much in memory. After the worlds are made, since what that leaves
/// goes back.
fn commit_memory(total_mb: u32) -> Result<(), Box<dyn std::error::Error>> {
    let lacking = (u64::from(total_mb) << 20).saturating_sub(process::rss_bytes());
    if let Some(available) = process::available_memory_bytes().filter(|&available| available < lacking) {
        return Err(format!(
            "[server] commit_memory_mb = {total_mb}: the host has {} MiB free, and {} are needed; write less",
            available >> 20,
            lacking >> 20
        )
        .into());
    }
    let got = allocator::commit_memory(lacking);
    if got < lacking {
        tracing::warn!(
            lacking_mb = (lacking - got) >> 20,
            "the kernel did not give all of commit_memory_mb; the rest is taken when it is needed"
        );
    }
    Ok(())
}

/// Nobody asked for the usual folder: where it cannot be, a server without reports is better than none.
fn install_crash_reports(
    folder: &CrashFolder,
    server: &mut Server,
    executable: Executable,
) -> Result<Option<CrashGuard>, Box<dyn std::error::Error>> {
    let Some(path) = folder.path() else { return Ok(None) };
    match crash_state::install(path, server, executable) {
        Err(error) if *folder == CrashFolder::Usual => {
            tracing::warn!(%error, "a death of this server will not be reported; name a folder with --crashes or [server] crashes, or say off");
            Ok(None)
        }
        installed => installed.map(Some),
    }
}

/// Seconds of status that may wait for whoever reads them.
const STATUSES_WAITING_MAX: usize = 4;

/// A thread that writes statuses down: no text is formatted and no pipe waited for on the frame thread.
fn tell_statuses(
    reader: Reader,
    manager: Option<Telling>,
) -> std::io::Result<(SyncSender<ServerStatus>, JoinHandle<()>)> {
    let (sender, statuses) = sync_channel::<ServerStatus>(STATUSES_WAITING_MAX);
    let teller = spawn_named("status", Priority::Low, move || {
        let line = StatusLine::new();
        for status in statuses {
            manager.iter().for_each(|manager| manager.status(|| in_brief(&status)));
            if reader == Reader::Parent {
                // A parent that is gone says so by the end of stdin, too.
                let _ = say(serde_json::json!({ "status": status }));
            } else {
                line.show(&one_line(&status));
            }
        }
        line.finish();
    })?;
    Ok((sender, teller))
}

/// Whoever runs this server as a service is told of it; an address that cannot be spoken to is told and keeps nobody from
/// playing.
fn tell_service_manager(server: &Server, stop: &StopFlag, wants_status: bool) -> std::io::Result<Option<Telling>> {
    let found = ServiceManager::find(|name| std::env::var_os(name));
    let manager = found.unwrap_or_else(|error| {
        tracing::warn!(error, "the service manager is not told of this server");
        None
    });
    let tell = |manager| Telling::start(manager, server.control().published(), stop.clone(), wants_status);
    manager.map(tell).transpose()
}

fn in_brief(status: &ServerStatus) -> String {
    let ServerStatus { players, worlds, worlds_awake, ticks_missed, saves_are_away, .. } = status;
    let saves = if *saves_are_away { SAVES_ARE_AWAY } else { "" };
    format!(
        "{players} players, {worlds_awake} of {worlds} worlds awake, {ticks_missed} ticks missed in the last second{saves}"
    )
}

fn one_line(status: &ServerStatus) -> String {
    let throttled = match (status.group_throttled_share, status.group_quota_cores) {
        (Some(share), Some(quota)) if share > 0.0 => {
            format!("  throttled in {:.0} % of periods by a limit of {quota:.1} cores", share * 100.0)
        }
        _ => String::new(),
    };
    let slowed = match status.worlds_slowed {
        0 => String::new(),
        worlds => format!("  time slowed in {worlds}, to {:.0} % at worst", status.time_factor_min * 100.0),
    };
    let parked = match status.plans_parked {
        0 => String::new(),
        plans => format!("  {plans} plans parked"),
    };
    let starved = match status.starvation_level {
        0 => String::new(),
        level => format!("  {level} workers less for {:.0} ms of long tasks", status.long_tasks_ms),
    };
    let saves = if status.saves_are_away { SAVES_ARE_AWAY } else { "" };
    let admission = if status.admission_waits { "  newcomers wait for worlds to be dropped" } else { "" };
    format!(
        "{:>5} s  {} players  {} of {} worlds awake{parked}{slowed}{starved}{admission}{saves}  frame {:.1} ms max of {:.1}  missed {} ({} the host's)  {} packets/s in, {} out  {:.2} cores  \
         {:.0} MB{throttled}",
        status.second,
        status.players,
        status.worlds_awake,
        status.worlds,
        status.frame_ms_max,
        status.frame_budget_ms,
        status.ticks_missed,
        status.ticks_missed_host,
        status.packets_in,
        status.packets_out,
        status.cpu_cores,
        status.rss_mb,
    )
}

fn private_key(settings: &Settings) -> Result<PrivateKey, Box<dyn std::error::Error>> {
    if let Some(key) = key::given(settings)? {
        return Ok(key.to_private_key());
    }
    tracing::warn!(
        "no private key given: nobody outside this process can make connect tokens for it; set {PRIVATE_KEY_VARIABLE} or \
         [server] private_key_file"
    );
    Ok(PrivateKey::new(random::seed()))
}

/// Follows a parent's orders from stdin; the parent's end is an order to stop.
fn obey_parent(control: ServerControl) -> std::io::Result<()> {
    spawn_named("parent", Priority::Low, move || {
        for line in std::io::stdin().lock().lines() {
            match line.as_deref() {
                Ok("measure begin") => control.measure_begin(),
                Ok("measure end") => control.measure_end(),
                Ok(other) => tracing::warn!(order = other, "unknown order from the parent process"),
                Err(_) => break,
            }
        }
        control.stop();
    })?;
    Ok(())
}
