//! A report of made-up data has all its parts, and stands on its own.

use serde_json::{Value, json};
use throng_crash::deaths::DeathGroup;

use super::*;
use crate::load_report::tests::object;
use crate::load_report::{FromOutside, LoadReport};
use crate::seconds::Second;
use crate::settling::Settling;

fn made_up_run(ticks_missed: u64) -> LoadRun {
    let server = json!({
        "game": "precinct <b>", "worlds": 1002, "tick_hz": 30, "seconds": 60.0, "ticks": 1_202_400, "ticks_missed": ticks_missed,
        "tick_hz_by_kind": {"dark <zone>": 30, "hideout": 20, "hub": 30},
        "frame_ms": {"p50": 3.1, "p99": 6.2, "p999": 8.9, "max": 12.5}, "frame_budget_ms": 16.666, "workers": 2,
        "tick_lateness_ms": {"p50": 0.0, "p99": 0.0, "max": 3.25}, "server_cpu_cores": 0.62, "server_rss_mb": 143.6,
        "game_gauges": {"npcs": 20000}, "packets_out_per_s": 20040.0, "npc_load_levels": {"full": 500, "far": 19500},
        "tick_time_us": {"game": 30.0, "engine": 15.0, "kernel": 5.0}, "scopes_us_per_tick": {"ai": 12.5, "net.<in>": 37.5},
        "categories_us_per_tick": {"gameplay": 12.5, "network": 37.5}, "tick_ms_mean_by_kind": {"hideout": 0.05},
        "packets": [
            {"kind": "pose", "cause": "change", "world": 1, "packets_per_s": 20_000.0, "bytes_per_s": 300_000.0, "updates_per_s": 90_000.0},
            {"kind": "chat.say", "cause": "<i>", "world": 1, "packets_per_s": 7.5, "bytes_per_s": 100_000.0, "updates_per_s": 7.5},
        ],
    });
    let bots = json!({
        "players_connected": 1000, "disconnects": 0, "state_errors": 0, "state_checks": 31_000, "cpu_cores": 0.41,
        "input_to_update_ms": {"p50": 41.0, "p99": 78.0},
    });
    let mut report = LoadReport::merge(object(server), object(bots), FromOutside::default()).unwrap();
    report.scenario = "dark-zone".to_owned();
    (report.version, report.commit) = ("9.8.7".to_owned(), "0123456789ab-modified".to_owned());
    report.settling = Some(Settling { is_settled: true, after_s: 33.0, ..Settling::default() });
    report.players_by_kind = [("hide<out>".to_owned(), 1000.0)].into();
    report.deaths = vec![DeathGroup { signature: "SIGABRT <b>".to_owned(), count: 3, ..DeathGroup::default() }];
    report.capture_files = vec!["reports/load/captures/scope/<1>.capture".to_owned()];
    report.judge(1000);
    let seconds = (0..80_u64).map(|second| Second {
        second,
        players: (second * 100).min(1000),
        players_by_kind: [("hide<out>".to_owned(), (second * 100).min(1000)), ("hub".to_owned(), 0)].into(),
        worlds: 1002,
        worlds_awake: (second * 100).min(1002),
        frame_ms_p50: 3.0 + (second % 5) as f64 * 0.1,
        frame_ms_max: 6.0 + (second * second % 23) as f64 * 0.3,
        frame_budget_ms: 16.666,
        packets_in: (second * 2_000).min(20_000),
        packets_out: (second * 2_000).min(20_040),
        cpu_cores: 0.6 + (second % 7) as f64 * 0.01,
        ..Second::default()
    });
    LoadRun {
        report,
        command: "throng load --game precinct --players 1000 --seconds 60".to_owned(),
        seconds: seconds.collect(),
        window: 14..74,
    }
}

/// Writes the run's report and reads both files.
fn written(test: &str, mut run: LoadRun) -> (Value, String) {
    // Other tests' reports are no neighbours.
    let place = std::env::temp_dir().join(format!("throng-report-{test}-{}", std::process::id()));
    let files = write(&mut run, &place.join("load")).unwrap();
    let json = std::fs::read_to_string(&files.json).unwrap();
    let html = std::fs::read_to_string(&files.html).unwrap();
    assert_eq!(run.report.report, Some(files.html.display().to_string()));
    std::fs::remove_dir_all(&place).unwrap();
    (serde_json::from_str(&json).unwrap(), html)
}

#[test]
fn the_page_has_every_part() {
    let (_, html) = written("parts", made_up_run(0));
    for part in [
        "<title>Load run passed: precinct &lt;b&gt;, dark-zone: 1,000 players in 1,002 worlds</title>",
        "<span class=\"verdict passed\">passed</span>",
        "20,000 NPCs · dark &lt;zone&gt; and hub at 30 Hz, hideout at 20 Hz · steady for 60 s · settled 33 s after the last bot was in",
        "<b>3.25 ms</b>",
        "<b>0.620 cores</b>",
        "<code>tick_lateness_ms.max</code></td><td class=\"n\">3.25</td><td>at most 50</td><td>passed</td>",
        "<b>Frame time</b>",
        "<b>Distribution of frame times</b>",
        "<b>Packets</b>",
        "<b>Players and worlds</b>",
        "<b>Players by kind of world</b>",
        "hide&lt;out&gt;",
        "<b>Memory</b>",
        "<code>reports/load/captures/scope/&lt;1&gt;.capture</code>",
        "<td class=\"n\">3</td><td><code>SIGABRT &lt;b&gt;</code></td>",
        "<td><code>game</code></td><td class=\"n\">30</td><td class=\"n\">60.0 %</td>",
        "<td><code>net.&lt;in&gt;</code></td><td class=\"n\">37.5</td><td class=\"n\">75.0 %</td></tr><tr><td><code>ai</code>",
        "<tr><th>Category</th><th class=\"n\">µs per tick</th>",
        "<td><code>network</code></td><td class=\"n\">37.5</td><td class=\"n\">75.0 %</td></tr><tr><td><code>gameplay</code>",
        "<code>tick_ms_mean_by_kind.hideout</code><span>0.050</span>",
        "<td><code>pose</code></td><td>change</td><td class=\"n\">20,000</td>",
        "<td>&lt;i&gt;</td><td class=\"n\">7.50</td><td class=\"n\">7.50</td><td class=\"n\">100,000</td><td class=\"n\">25.0 %</td>",
        "<code>npc_load_levels.full</code><span>500</span>",
        "<code>throng load --game precinct --players 1000 --seconds 60</code>",
        "usable cores",
        "<tr><th>Server</th><td>version 9.8.7, commit 0123456789ab-modified</td></tr>",
    ] {
        assert!(html.contains(part), "lacks {part:?}");
    }
    assert_eq!(html.matches("<svg ").count(), 7);
    assert!(!html.contains("precinct <b>"), "a name came in as markup");
}

/// The second report of a folder is drawn beside the first, which it replaces.
#[test]
fn a_run_is_held_against_the_one_before_it() {
    let place = std::env::temp_dir().join(format!("throng-report-twice-{}", std::process::id()));
    let mut before = made_up_run(0);
    before.report.commit = "fedcba987654".to_owned();
    let page_of = |mut run: LoadRun| {
        let files = write(&mut run, &place.join("load")).unwrap();
        std::fs::read_to_string(files.html).unwrap()
    };
    assert!(!page_of(before).contains("Beside earlier runs"), "there is none");
    let html = page_of(made_up_run(0));
    std::fs::remove_dir_all(&place).unwrap();
    for part in ["<h2>Beside earlier runs</h2>", "<b>All of a tick</b>", "<b>network</b>", "fedcba9", "0123456"] {
        assert!(html.contains(part), "lacks {part:?}");
    }
    // The whole, two categories and two subsystems.
    assert_eq!(html.matches("<svg ").count(), 7 + 5);
}

#[test]
fn the_page_fetches_nothing() {
    let (_, html) = written("alone", made_up_run(0));
    for outside in ["src=", "href=", "@import", "url(", "<script"] {
        assert!(!html.contains(outside), "{outside}");
    }
    // The only address is the name of SVG itself.
    assert_eq!(html.matches("http").count(), html.matches("xmlns=\"http://www.w3.org/2000/svg\"").count());
}

#[test]
fn a_failed_bar_is_named() {
    let (json, html) = written("failed", made_up_run(7));
    assert!(html.contains("<span class=\"verdict failed\">failed</span>"));
    assert!(html.contains("<tr class=\"failed\"><td><code>ticks_missed_ours</code></td><td class=\"n\">7</td>"));
    assert_eq!(json["passed"], false);
}

#[test]
fn what_the_server_used_is_told_from_both_sides_with_what_is_not_known() {
    let (_, html) = written("without-accounts", made_up_run(0));
    assert!(!html.contains("Inside and outside"), "a server that told nothing");
    let mut run = made_up_run(0);
    let accounts = json!({"inside.cpu_cores": 0.61, "outside.group_cpu_cores": 1.07});
    run.report.more.insert("accounts".into(), accounts);
    run.report.more.insert("accounts_missing".into(), json!(["<nobody> tells"]));
    let (json, html) = written("accounts", run);
    assert_eq!(json["accounts"]["outside.group_cpu_cores"], 1.07);
    for part in [
        "<h2>Inside and outside</h2>",
        "<td><code>cpu_cores</code></td><td class=\"n\">0.610</td>",
        "<td><code>group_cpu_cores</code></td><td class=\"n\">1.07</td>",
        "Not known: &lt;nobody&gt; tells.",
    ] {
        assert!(html.contains(part), "lacks {part:?}");
    }
}

#[test]
fn ticks_that_the_host_took_are_told_and_fail_no_bar() {
    let mut run = made_up_run(7);
    run.report.ticks_missed_host = 7;
    (run.seconds[17].ticks_missed_host, run.seconds[17].host_took_ms_max) = (7, 240.0);
    run.report.judge(1000);
    let (json, html) = written("host", run);
    assert_eq!(
        (&json["passed"], &json["ticks_missed"], &json["ticks_missed_host"]),
        (&json!(true), &json!(7), &json!(7))
    );
    assert!(html.contains("<b>7</b><span>of 1,202,400, 7 the host's</span>"));
    assert!(
        html.contains("<p>ticks_missed: 7, of these the host's: 7, since it took a core for 240 ms at second 17</p>")
    );
}

#[test]
fn the_json_has_the_figures_the_seconds_and_the_surroundings() {
    let (json, _) = written("json", made_up_run(0));
    assert_eq!(json["passed"], true);
    assert_eq!(json["frame_ms"]["p999"], 8.9);
    assert_eq!(json["workers"], 2);
    assert_eq!(json["bots"]["state_checks"], 31_000);
    assert_eq!(json["by_second"].as_array().unwrap().len(), 80);
    assert_eq!((&json["settling"]["after_s"], &json["players_by_kind"]["hide<out>"]), (&json!(33.0), &json!(1000.0)));
    assert_eq!(json["by_second"][5]["players_by_kind"]["hide<out>"], 500);
    assert_eq!(json["window"], json!({"begin": 14, "end": 74}));
    assert_eq!(json["command"], "throng load --game precinct --players 1000 --seconds 60");
    assert_eq!(json["commit"], "0123456789ab-modified");
    assert!(json["machine"]["cores"].as_u64().unwrap() >= 1);
    assert!(json["report"].as_str().unwrap().ends_with("report.html"));
}

#[test]
fn a_run_without_seconds_still_has_a_page() {
    let mut run = made_up_run(0);
    run.seconds.clear();
    run.window = 0..0;
    let (_, html) = written("empty", run);
    assert_eq!(html.matches("<svg ").count(), 7);
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let mut run = made_up_run(0);
    let error = write(&mut run, Path::new("/proc/no/report")).unwrap_err().to_string();
    assert_eq!(run.report.report, None, "it leads to no page that is not there");
    assert!(error.starts_with("the report cannot be written to /proc/no/report: "), "{error}");
    assert!(error.ends_with("name a folder that can be with --report"), "{error}");
}
