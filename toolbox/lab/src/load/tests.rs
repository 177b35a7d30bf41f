//! Load runs against a stand-in for `throng`: a shell script that speaks the children's protocol.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

/// A good server and good bots; a test replaces one of the two.
const SERVER: &str = r#"
    echo "key has ${#THRONG_PRIVATE_KEY} digits" >&2
    echo '{"ready":{"address":"127.0.0.1:40123","admin_address":null,"version":"9.8.7","commit":"0123456789ab"}}'
    echo '{"status":{"second":1,"players":0,"worlds":7,"frame_ms_p50":1.5,"frame_ms_max":2.5,"frame_budget_ms":16.7}}'
    read order; test "$order" = "measure begin" || exit 3
    echo '{"status":{"second":2,"players":4,"worlds":7,"frame_ms_p50":1.5,"frame_ms_max":3.5,"frame_budget_ms":16.7}}'
    read order; test "$order" = "measure end" || exit 3
    read order && exit 3
    echo '{"report":{"game":"stand-in","worlds":7,"ticks":140,"ticks_missed":0,"seconds":1.0,"tick_hz":20,"workers":2}}'
"#;
const BOTS: &str = r#"
    echo '{"status":{"players_connected":1,"players_joining":3}}'
    echo '{"status":{"players_connected":4,"players_joining":0}}'
    while read order; do :; done
    echo "{\"report\":{\"players_connected\":4,\"disconnects\":0,\"state_errors\":0,\"arguments\":\"$*\"}}"
"#;

/// A server that can be used.
const READY: &str = r#"
    echo '{"ready":{"address":"127.0.0.1:40123","admin_address":null,"version":"9.8.7","commit":"0123456789ab"}}'
"#;

struct StandIn {
    folder: PathBuf,
    plan: LoadPlan,
}

impl StandIn {
    fn new(test: &str, server: &str, bots: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("throng-lab-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let executable = folder.join("throng");
        write_executable(&executable, &format!("#!/bin/sh\ncase $1 in\nserve)\n{server};;\nbots)\n{bots};;\nesac\n"));
        let plan = LoadPlan {
            until_stopped: false,
            executable,
            serve_arguments: vec!["--game".to_owned(), "stand-in".to_owned()],
            bots_arguments: vec!["--behaviour".to_owned(), "still".to_owned()],
            game: "stand-in".to_owned(),
            scenario: "usual".to_owned(),
            conditions: [(condition::SAVES.to_owned(), "none".to_owned())].into(),
            players: 4,
            window_begin: WindowBegin::Settled { s_min: 0, s_max: 0 },
            seconds: 1,
            join_within_s: 2,
            stalled_after_s: 60,
            captures: None,
            crashes: None,
            command: "throng load".to_owned(),
        };
        Self { folder, plan }
    }

    fn run(&self) -> Result<LoadRun, LoadError> {
        run(&self.plan, &StopFlag::new().unwrap(), &mut |_| {})
    }

    #[track_caller]
    fn check_error(&self, expect: &[&str]) {
        let error = self.run().unwrap_err().to_string();
        for part in expect {
            assert!(error.contains(part), "lacks {part:?}:\n{error}");
        }
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Written by a child process, so that no other test's fork holds the file open for writing while we start it.
fn write_executable(path: &Path, text: &str) {
    let draft = path.with_extension("draft");
    std::fs::write(&draft, text).unwrap();
    let copied = std::process::Command::new("cp").arg(&draft).arg(path).status().unwrap();
    assert!(copied.success());
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_run_is_measured_while_steady_and_both_reports_are_merged() {
    let stand_in = StandIn::new("good", SERVER, BOTS);
    let mut seen = Vec::new();
    let run = run(&stand_in.plan, &StopFlag::new().unwrap(), &mut |progress| seen.push(progress)).unwrap();
    assert!(run.report.passed, "{:?}", run.report.bars);
    assert_eq!((run.report.game.as_str(), run.report.ticks), ("stand-in", 140));
    let conditions: Vec<_> = run.report.conditions.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(conditions, [("players", "4"), ("saves", "none"), ("settling", "none"), ("workers", "2")]);
    // The server's own word: this test's folder may be any checkout, or none.
    assert_eq!((run.report.version.as_str(), run.report.commit.as_str()), ("9.8.7", "0123456789ab"));
    assert_eq!(
        run.report.bots["arguments"],
        "bots --behaviour still --connect 127.0.0.1:40123 --players 4 --low-priority --status-json"
    );
    assert_eq!(run.seconds.len(), 2);
    assert!(run.seconds.iter().all(|second| second.heard_unix_s.is_some()), "{:?}", run.seconds);
    assert_eq!(run.window, 1..2);
    assert!(!run.report.interrupted);
    assert_eq!(seen.first(), Some(&Progress::StartingServer));
    assert!(seen.contains(&Progress::Joining { players: 4, of: 4 }));
    assert!(seen.iter().any(|progress| matches!(progress, Progress::Measuring { last, .. } if last.players == 4)));
    assert_eq!(seen.last(), Some(&Progress::Stopping));
}

#[test]
fn a_run_that_is_stopped_in_its_window_has_not_passed() {
    let stand_in = StandIn::new("stopped", SERVER, BOTS);
    let stop = StopFlag::new().unwrap();
    let plan = LoadPlan { seconds: 60, ..stand_in.plan.clone() };
    let run = run(&plan, &stop, &mut |progress| {
        if let Progress::Measuring { .. } = progress {
            stop.request();
        }
    });
    let report = run.unwrap().report;
    assert!(report.bars.iter().all(|bar| bar.passed), "{:?}", report.bars);
    assert_eq!((report.interrupted, report.passed), (true, false));
}

/// A server that tells a second every 0.1 s until its input ends.
const UNSETTLED_SERVER: &str = r#"
    echo '{"ready":{"address":"127.0.0.1:40123","admin_address":null,"version":"9.8.7","commit":"0123456789ab"}}'
    (while sleep 0.1; do echo '{"status":{"second":1,"players":4,"worlds":7}}'; done) &
    while read order; do echo "$order" >&2; done
    kill $!
    echo '{"report":{"game":"stand-in","worlds":7,"ticks":140,"ticks_missed":0,"seconds":1.0,"tick_hz":20}}'
"#;

/// Promise: an interruption is one in every phase, and what was not measured has not passed.
#[test]
fn a_run_that_is_stopped_while_it_settles_has_not_passed_and_has_no_window() {
    let stand_in = StandIn::new("unsettled", UNSETTLED_SERVER, BOTS);
    let stop = StopFlag::new().unwrap();
    let plan =
        LoadPlan { window_begin: WindowBegin::Settled { s_min: 0, s_max: 60 }, seconds: 60, ..stand_in.plan.clone() };
    let mut seen = Vec::new();
    let run = run(&plan, &stop, &mut |progress| {
        if let Progress::Settling { .. } = progress {
            stop.request();
        }
        seen.push(progress);
    });
    let LoadRun { report, seconds, window, .. } = run.unwrap();
    assert_eq!((report.interrupted, report.passed), (true, false));
    assert!(report.settling.is_some_and(|settling| !settling.is_settled && settling.after_s < 60.0));
    assert_eq!((window.is_empty(), seconds.is_empty()), (true, false), "{window:?}");
    assert!(report.not_filled.is_none() && report.ended_early.is_none());
    assert!(!seen.iter().any(|progress| matches!(progress, Progress::Measuring { .. })), "{seen:?}");
    assert_eq!(seen.last(), Some(&Progress::Stopping));
}

#[test]
fn a_missed_tick_fails_the_run_but_still_reports() {
    let server = SERVER.replace(r#""ticks_missed":0"#, r#""ticks_missed":2"#);
    let run = StandIn::new("missed", &server, BOTS).run().unwrap();
    assert!(!run.report.passed);
    assert_eq!(run.report.ticks_missed, 2);
}

#[test]
fn a_tick_that_the_host_took_fails_no_run() {
    let server = SERVER.replace(r#""ticks_missed":0"#, r#""ticks_missed":2,"ticks_missed_host":2"#);
    let run = StandIn::new("missed-host", &server, BOTS).run().unwrap();
    assert!(run.report.passed, "{:?}", run.report.bars);
}

#[test]
fn a_server_that_cannot_start_is_quoted() {
    let server = "echo 'address 0.0.0.0:40000 is in use' >&2; exit 2";
    StandIn::new("used", server, BOTS).check_error(&[
        "`serve` ended early (exit status: 2)",
        "serve --game stand-in --status-json",
        "\n  address 0.0.0.0:40000 is in use",
    ]);
}

/// Promise: the report of such a death is whole when the run is over, for whoever links it.
#[test]
fn the_report_of_a_death_before_it_was_ready_is_waited_for() {
    let server = "(sleep 0.3; mkdir -p $0.d/crash-17-$$; echo 'SIGSEGV: on its way up' > $0.d/crash-17-$$/report.txt) \
                  > /dev/null 2>&1 &\nkill -9 $$";
    let mut stand_in = StandIn::new("dies-first", server, BOTS);
    let crashes = stand_in.folder.join("throng.d");
    stand_in.plan.crashes = Some(crashes.clone());
    stand_in.check_error(&["`serve` ended early (signal: 9"]);
    let deaths: Vec<_> = std::fs::read_dir(&crashes).unwrap().flatten().collect();
    assert!(deaths.len() == 1 && deaths[0].path().join("report.txt").is_file(), "{deaths:?}");
}

/// Promise: a server that dies takes no figures with it.
#[test]
fn a_server_that_dies_while_measured_is_reported_with_what_it_had_said() {
    let server = SERVER.replace(
        "read order; test \"$order\" = \"measure end\"",
        "sleep 0.2; echo 'out of worlds' >&2; mkdir -p $0.d/crash-17-$$; echo 'SIGABRT: of thirst' > $0.d/crash-17-$$/report.txt; \
         kill -9 $$; test",
    );
    let server =
        server.replace(r#""second":2,"#, r#""second":2,"ticks":40,"ticks_missed":3,"players_by_kind":{"hub":4},"#);
    let mut stand_in = StandIn::new("dies", &server, BOTS);
    stand_in.plan.crashes = Some(stand_in.folder.join("throng.d"));
    stand_in.plan.seconds = 60;
    let mut run = stand_in.run().unwrap();
    assert!(!run.report.passed);
    let ended = run.report.ended_early.clone().expect("it was killed");
    assert_eq!((ended.process.as_str(), ended.during.as_str()), ("serve", "measuring"));
    assert!(ended.status.contains("signal: 9") && ended.words.contains("out of worlds"), "{ended:?}");
    assert_eq!(ended.crash_words.as_deref(), Some("SIGABRT: of thirst"));
    assert!(ended.crash_report.unwrap().ends_with("report.txt"));
    let report = &run.report;
    assert_eq!((report.game.as_str(), report.ticks, report.ticks_missed), ("stand-in", 40, 3));
    assert_eq!((report.worlds, report.players_connected), (7, 4), "both sides' words");
    assert_eq!(report.players_by_kind, [("hub".to_owned(), 4.0)].into());
    assert_eq!(run.window, 1..2);
    let files = crate::report::write(&mut run, &stand_in.folder).unwrap();
    let page = std::fs::read_to_string(files.html).unwrap();
    assert!(page.contains("`serve` ended early (signal: 9") && page.contains("out of worlds"), "{page}");
}

#[test]
fn bots_that_die_while_measured_leave_the_servers_report() {
    let bots = BOTS.replace("while read order; do :; done", "read order; echo 'no more room' >&2; exit 101");
    let mut stand_in = StandIn::new("bots-die", &server_without_end_of_window(), &bots);
    stand_in.plan.seconds = 60;
    let run = stand_in.run().unwrap();
    let ended = run.report.ended_early.expect("they ended");
    assert_eq!((ended.process.as_str(), ended.status.as_str()), ("bots", "exit status: 101"));
    assert!(ended.words.contains("no more room"));
    assert_eq!((run.report.passed, run.report.players_connected, run.report.ticks), (false, 4, 140));
}

/// A good server whose window nobody closes, since the bots are gone.
fn server_without_end_of_window() -> String {
    let closes = r#"read order; test "$order" = "measure end" || exit 3"#;
    assert!(SERVER.contains(closes));
    SERVER.replace(closes, "")
}

/// Promise: a server that takes its bots with it is what is told, not they.
#[test]
fn a_server_that_ends_badly_after_its_bots_takes_their_place() {
    let bots = BOTS.replace("while read order; do :; done", "read order; echo 'nobody answers' >&2; exit 1");
    let server = server_without_end_of_window();
    let server = server.replace("read order && exit 3", "read order; echo 'stuck' >&2; kill -9 $$");
    let mut stand_in = StandIn::new("both-end", &server, &bots);
    stand_in.plan.seconds = 60;
    let run = stand_in.run().unwrap();
    let ended = run.report.ended_early.expect("both ended");
    assert_eq!((ended.process.as_str(), ended.during.as_str()), ("serve", "stopping"));
    assert!(ended.status.contains("signal: 9") && ended.words.contains("stuck"), "{ended:?}");
    let words = ended.to_string();
    assert!(words.contains("before that `bots` ended early (exit status: 1) while measuring"), "{words}");
}

/// Promise: a report is not the end: a server that fails after it has not passed, and its figures are there.
#[test]
fn a_server_that_fails_after_its_report_has_not_passed() {
    let server = format!("{SERVER}\n    echo 'not everything could be saved' >&2; exit 2\n");
    let run = StandIn::new("fails-last", &server, BOTS).run().unwrap();
    let report = run.report;
    assert!(report.bars.iter().all(|bar| bar.passed), "{:?}", report.bars);
    assert_eq!((report.passed, report.ticks, run.window), (false, 140, 1..2));
    let ended = report.ended_early.expect("its status says so");
    assert_eq!(
        (ended.process.as_str(), ended.during.as_str(), ended.status.as_str()),
        ("serve", "stopping", "exit status: 2")
    );
    assert!(ended.words.contains("could be saved") && ended.other.is_none(), "{ended:?}");
}

/// What a run says while its players leave home, until second 53: a second of it every 60 ms.
const SECONDS_OF_SETTLING: &str = r#"
    second=3; hub=0
    while test $second -lt 120; do
        echo "{\"status\":{\"second\":$second,\"players\":1000,\"players_by_kind\":{\"hub\":$hub}}}"
        second=$((second + 1)); test $hub -lt 250 && hub=$((hub + 5)); sleep 0.06
    done &
    read order; test "$order" = "measure begin" || exit 3
"#;

/// A run of 1,000 players of whom so many more are in the hub each second.
fn leaving_home(test: &str, hub_per_s: u32, s_max: u32) -> StandIn {
    let seconds = SECONDS_OF_SETTLING.replace("hub + 5", &format!("hub + {hub_per_s}"));
    let server = SERVER.replacen(r#"read order; test "$order" = "measure begin" || exit 3"#, &seconds, 1);
    let bots = BOTS.replace(r#""players_connected":4"#, r#""players_connected":1000"#);
    let mut stand_in = StandIn::new(test, &server, &bots);
    stand_in.plan.players = 1_000;
    stand_in.plan.window_begin = WindowBegin::Settled { s_min: 0, s_max };
    stand_in
}

#[test]
fn the_window_opens_when_nothing_moves_any_more() {
    let run = leaving_home("settles", 5, 60).run().unwrap();
    let settling = run.report.settling.expect("it was waited for");
    assert!(settling.is_settled, "{settling:?}");
    let opened = &run.seconds[run.window.start - 1];
    // At most 2 s of sleep before the first look, at 0.06 s a second.
    assert!((60..115).contains(&opened.second), "all were in the hub from second 53 on: {opened:?}");
}

#[test]
fn a_run_that_does_not_settle_is_measured_all_the_same_and_says_so() {
    let run = leaving_home("restless", 2, 4).run().unwrap();
    let settling = run.report.settling.expect("it was waited for");
    assert!(!settling.is_settled && settling.after_s >= 4.0 && run.report.ended_early.is_none(), "{settling:?}");
    assert_eq!(settling.farthest().map(|(key, _)| key), Some("players_by_kind.hub"));
    assert!(run.report.ticks == 140 && run.window.start > 2, "it was measured");
}

#[test]
fn a_scenario_of_log_ins_is_measured_from_the_first_bot_on() {
    let server = SERVER.replacen(r#"echo '{"status":{"second":1"#, r#"read order; echo '{"status":{"second":1"#, 1);
    let server = server.replace(r#"read order; test "$order" = "measure begin" || exit 3"#, "");
    let mut stand_in = StandIn::new("from-first", &server, BOTS);
    stand_in.plan.window_begin = WindowBegin::FirstBot;
    let run = stand_in.run().unwrap();
    assert_eq!(run.window.start, 0);
    assert!(run.report.settling.is_none() && run.report.passed, "{:?}", run.report.bars);
}

/// Takes no order to measure: the window never opens.
const SERVER_UNFILLED: &str = r#"
    echo "key has ${#THRONG_PRIVATE_KEY} digits" >&2
    echo '{"ready":{"address":"127.0.0.1:40123","admin_address":null}}'
    echo '{"status":{"second":1,"players":0,"worlds":7,"frame_ms_p50":1.5,"frame_ms_max":2.5,"frame_budget_ms":16.7}}'
    read order && exit 3
    echo '{"report":{"game":"stand-in","worlds":7,"ticks":140,"ticks_missed":0,"seconds":1.0,"tick_hz":20}}'
"#;
const STATUS_UNFILLED: &str = concat!(
    r#"{"status":{"players_connected":3,"players_joining":1,"players_queued":1,"#,
    r#""login_retries":5,"login_timeouts":2,"login_refusals":{"queue_full":3}}}"#
);

fn check_unfilled(stand_in: &StandIn) -> NotFilled {
    let mut run = stand_in.run().unwrap();
    let not_filled = run.report.not_filled.clone().expect("one bot is missing");
    assert!(!run.report.passed);
    assert!(run.report.bars.iter().any(|bar| bar.key == "not_filled.players_in" && !bar.passed));
    assert_eq!(
        (run.report.game.as_str(), run.report.ticks),
        ("stand-in", 140),
        "the server's word is there all the same"
    );
    assert_eq!((not_filled.players_in, not_filled.players_wanted), (3, 4));
    assert!(not_filled.server_words.contains("key has 64 digits"));
    assert!(run.window.is_empty());
    let files = crate::report::write(&mut run, &stand_in.folder).unwrap();
    let page = std::fs::read_to_string(files.html).unwrap();
    assert!(page.contains("only 3 of 4 bots were playing"), "the page says so too");
    not_filled
}

#[test]
fn a_run_that_cannot_be_filled_reports_who_is_missing_and_why() {
    let bots = BOTS.replace(r#"{"status":{"players_connected":4,"players_joining":0}}"#, STATUS_UNFILLED);
    let not_filled = check_unfilled(&StandIn::new("not-in", SERVER_UNFILLED, &bots));
    assert_eq!((not_filled.queued, not_filled.retries, not_filled.timeouts), (1, 5, 2));
    let words = not_filled.to_string();
    for part in ["only 3 of 4 bots", "1 in line", "2 had no answer", "3 refused (queue_full)"] {
        assert!(words.contains(part), "lacks {part:?}: {words}");
    }
}

#[test]
fn a_run_in_which_nothing_moves_is_given_up_before_its_time() {
    let bots = BOTS.replace(r#"{"status":{"players_connected":4,"players_joining":0}}"#, STATUS_UNFILLED);
    let mut stand_in = StandIn::new("stalled", SERVER_UNFILLED, &bots);
    (stand_in.plan.join_within_s, stand_in.plan.stalled_after_s) = (86_400, 1);
    assert!(check_unfilled(&stand_in).after_s < 86_400.0);
}

/// Bots of which none is left end by themselves, without a report if none ever got in.
#[test]
fn bots_that_give_up_end_the_wait() {
    let bots = format!("echo '{STATUS_UNFILLED}'; exit 2");
    let mut stand_in = StandIn::new("gave-up", SERVER_UNFILLED, &bots);
    stand_in.plan.join_within_s = 86_400;
    assert_eq!(check_unfilled(&stand_in).queued, 1);
}

#[test]
fn a_report_of_another_shape_is_refused() {
    let server = SERVER.replace(r#""ticks":140"#, r#""ticks":"many""#);
    StandIn::new("shape", &server, BOTS).check_error(&["`serve` reported what cannot be read", "of the same build?"]);
}

#[test]
fn a_missing_executable_is_named() {
    let mut stand_in = StandIn::new("missing", SERVER, BOTS);
    stand_in.plan.executable = "/no/such/throng".into();
    stand_in.check_error(&["`/no/such/throng serve` could not be started"]);
}

/// A server that says goodbye as one does that saves. `READY` or nothing comes before.
fn saves_at_its_end(ready: &str) -> String {
    format!("echo $$ > \"$0.pid\"\n{ready}while read order; do :; done\necho saved > \"$0.saved\"\n")
}

impl StandIn {
    /// Promise: however a run ends, its server is told to stop, and not killed.
    #[track_caller]
    fn check_server_has_ended(&self) {
        let pid = std::fs::read_to_string(self.folder.join("throng.pid")).unwrap();
        assert!(!Path::new("/proc").join(pid.trim()).exists(), "the server outlived the run");
        assert!(self.folder.join("throng.saved").exists(), "the server was killed, and not told to stop");
    }
}

#[test]
fn a_stop_before_the_server_is_ready_ends_it() {
    let stand_in = StandIn::new("stop-at-once", &saves_at_its_end(""), BOTS);
    let stop = StopFlag::new().unwrap();
    let has_begun = || stand_in.folder.join("throng.pid").metadata().is_ok_and(|about| about.len() > 0);
    let error = std::thread::scope(|scope| {
        let run = scope.spawn(|| run(&stand_in.plan, &stop, &mut |_| {}));
        while !has_begun() && !run.is_finished() {
            std::thread::sleep(LISTEN_EVERY);
        }
        stop.request();
        run.join().unwrap()
    });
    assert!(matches!(error, Err(LoadError::Interrupted)));
    stand_in.check_server_has_ended();
}

#[test]
fn bots_that_cannot_be_started_end_the_server() {
    // Nothing can start what is gone.
    let server = format!("rm \"$0\"\n{}", saves_at_its_end(READY));
    let stand_in = StandIn::new("no-bots", &server, BOTS);
    stand_in.check_error(&["bots` could not be started"]);
    stand_in.check_server_has_ended();
}

#[test]
fn a_stop_before_all_are_in_ends_the_run_and_its_children() {
    let stand_in = StandIn::new("stop", &saves_at_its_end(READY), "while read order; do :; done");
    let stop = StopFlag::new().unwrap();
    let error = run(&stand_in.plan, &stop, &mut |progress| {
        if matches!(progress, Progress::Joining { .. }) {
            stop.request();
        }
    });
    assert!(matches!(error, Err(LoadError::Interrupted)));
    stand_in.check_server_has_ended();
}
