//! The operator's page, `docs/metrics.md`: made of the declarations, so that it has all there is and says what the code
//! says.

use std::fmt::Write;

use throng_metrics::{Counter, Counters, Merge};
use throng_platform::accounts::FIGURES as ACCOUNTS;

use super::*;
use crate::{
    accounts::CAP, client_report::FIGURES as CLIENTS, long_tasks::FIGURES as LONG_TASKS,
    packet_report::FIGURES as PACKETS,
};

const INTRODUCTION: &str = "\
# Metrics

What a server counts, what it says, and what to do when it grows. This page is made of the declarations in the code; after a change of
one, `UPDATE_EXPECT=1 cargo test -p throng --lib metrics` writes it anew.

The same counters are read in four places:

- Prometheus: `http://ADMIN_ADDRESS/metrics`, as text or, for who asks for it, protobuf with native histograms; what is ready to use of
  rules, alerts and dashboards is in [monitoring](monitoring.md). Names have `throng_` in front, underscores for dots, and `_total` behind where they are
  sums: `net.packets_in` is `throng_net_packets_in_total`, best read as `rate(throng_net_packets_in_total[1m])`.
- The console: `throng console --connect HOST:PORT counters` tells each with its value, its rate in the last second and what it says;
  `counters net.` those whose names begin so.
- The report that a server gives at its end (`throng load --json`, `throng demo`): the map `counters`, of the steady window.
- This page.

A figure whose name ends with `_window_max` is the largest of the last five minutes. No scrape resets it, so a single bad frame is
seen by everybody who looks within that time.

`promtool check metrics` has two complaints that are no mistakes. It reads the format before OpenMetrics, where `_total` is part of a
counter's family, so it finds no help for counters; scrapers ask for OpenMetrics and get it. And it wants seconds where names end with
`_us` and `_ms`: these are whole numbers as the server counts them, under the names that they have in reports, rules and the console.

## Where to look first

| players say | look at |
|---|---|
| it stutters, for all | `server.ticks_missed` and what of it is the host's (`server.ticks_missed_host`, `host.stalls`), `throng_server_frame_us_window_max`, then `throng_subsystem_frame_us_window_max` |
| it stutters, for some | `net.packets_lost`, `net.send_dropped`, `replication.postponed` |
| they cannot get in | `throng_server_join_queue`, `throng_server_admission_closed`, `throng_server_admission_waits`, `server.refused_by_game`, `net.refused_by_handshake` |
| they are thrown out | `server.disconnects`, `server.worlds_parked`, `net.on_reserve`, `net.over_allowance` |
| they see things that are not so | `replication.clamped`, `replication.poisoned`, `replication.spawns_refused` |

";

/// Counted by the admin port itself, whose tests hold this to it.
const ADMIN: &str = "\
## The admin port

| in Prometheus | what it says | when it grows |
|---|---|---|
| `throng_admin_refused_total` | Requests to the admin port that were refused. Label `cause`: `origin` (another server's page, or a foreign name), `no_key`, `wrong_key`, `role`, `back_off` (too many wrong keys came from there). | The log has a line for each in `admin.audit`, with the address. `wrong_key`: a program has an old key, or somebody guesses. |
| `throng_admin_operated_total` | Requests to the admin port that change something and were let through. | Each has a line in the log, in `admin.audit`: who, from where, what, and what came of it. |
| `throng_admin_watch_lines_dropped_total` | Lines that watchers of the admin port were too slow for. | Somebody watches over a slow line, and misses some. The server is not slower for it. |
| `throng_admin_watchers_stalled_total` | Watchers that were cut off since they took nothing any more. | A page on a host that sleeps, or somebody who holds the port up: the log tells when. |
| `throng_admin_watchers_refused_total` | Watchers that found no place. | Eight watch already: close pages that nobody looks at. |

";

const GAME: &str = "\
## What the game counts

A game counts in one line anywhere in its code: `throng::count!(\"casts\", 3)`, `throng::gauge!(\"players\", n)`. A name appears when it is
first used. Inputs and requests of clients that are no value of their kind are counted so, too: `refused.pick_up` for a `PickUp`.

| of a counter `NAME` | |
|---|---|
| `throng_game_NAME_total` | since the start, over all worlds |
| `throng_game_NAME_frame_window_max` | the most that it counted in one frame of the last five minutes |
| report: `game_per_s`, `game_frame_max` | its rate in the steady window, and the most in one frame of it |

A mean is two counters: `throng::sample!(\"round.seconds\", s)` adds to `NAME`, and one to `NAME.samples`. Their rates, the one by the
other, are the mean in a dashboard; the report has it as `game_mean`.

| of a gauge `NAME` | |
|---|---|
| `throng_game_NAME` | as it stands, summed over worlds that are awake: one in which nobody is may sleep, and counts for nothing then |
| `throng_game_NAME_window_max` | the highest of the last five minutes, at the end of any frame |
| report: `game_gauges`, `game_gauges_max` | as it stood at the end of the steady window, and the highest in it |

The console's `counters game.` tells them all.
";

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let all = Totals::declared();
    for (subsystem, title) in [
        ("server", "The server"),
        ("host", "The host"),
        ("net", "The network"),
        ("browser", "Browsers"),
        ("world", "Worlds"),
        ("replication", "What clients are told"),
        ("saves", "Saves"),
        ("recording", "Recordings"),
        ("analytics", "Analytics events"),
        ("object_store", "The object store"),
    ] {
        let _ = writeln!(page, "## {title}\n\n| counter | unit | what it says | when it grows |\n|---|---|---|---|");
        for counter in all.iter().filter(|counter| subsystem_of(counter) == subsystem) {
            let Counter { name, unit, help, advice, merge } = counter;
            let most = if *merge == Merge::Max { " (`_window_max`)" } else { "" };
            let _ = writeln!(page, "| `{name}`{most} | {unit} | {help} | {advice} |");
        }
        page.push('\n');
    }
    page.push_str(
        "## Figures that are no counters\n\n| in Prometheus | what it says | when it grows |\n|---|---|---|\n",
    );
    let mut row = |figure: &Figure, suffix: &str| row_of(&mut page, figure, suffix);
    row(&FRAME, "_seconds");
    row(&FRAME_MAX, "_window_max");
    row(&LATENESS_MAX, "_window_max");
    row(&REFUSED, "_total");
    GAUGES.iter().for_each(|figure| row(figure, ""));
    row(&WORLDS_STUCK, "");
    row(&LONG_TASKS_STUCK, "");
    row(&SAVES_AWAY, "");
    row(&ANALYTICS_AWAY, "");
    row(&BUILD, "");
    page.push_str("\n## Time by kind of world\n\n| in Prometheus | what it says | when it grows |\n|---|---|---|\n");
    world_kinds::FIGURES.iter().for_each(|(figure, suffix)| row_of(&mut page, figure, suffix));
    page.push_str(
        "\nA histogram, `throng_server_frame_seconds` or one of these, has `_bucket`, `_sum` and `_count`, and a maximum of its \
         own, such as `throng_server_frame_seconds_window_max`. A Prometheus that takes native histograms is given those, too: \
         buckets of 4.4 %, without a bound chosen beforehand.\n\
         `throng_metrics_samples_dropped_total` counts samples of histograms that no frame took in time.\n",
    );
    page.push_str(
        "\n## Time by subsystem, and the recorder\n\n| in Prometheus | what it says | when it grows |\n|---|---|---|\n",
    );
    let mut row = |figure: &Figure, suffix: &str| row_of(&mut page, figure, suffix);
    row(&CAPTURE_AT, "");
    subsystems::FIGURES.iter().for_each(|(figure, suffix)| row(figure, suffix));
    subsystems::RECORDER.iter().for_each(|(figure, _)| row(figure, "_total"));
    page.push('\n');
    page.push_str(ADMIN);
    page.push_str("## What goes to the clients, by kind\n\nGauges of the last second with the labels `kind`, `cause` and `world`; the console's `packets` tells the same. A series that was there once stays, at 0, until another world has its world's place.\n\n| in Prometheus | what it says |\n|---|---|\n");
    for (name, help, _) in &PACKETS {
        let _ = writeln!(page, "| `throng_{}` | {help}. |", name.replace('.', "_"));
    }
    page.push_str(
        "\nThe kind `message` are the game's own messages; `transport` is what nobody counted by kind: acknowledgements, sealing, \
         control, and what was sent again.\n\n",
    );
    page.push_str("## Long tasks, by kind\n\nSince the start, with the label `kind`; the console's `tasks` tells the same, and what waits now.\n\n| in Prometheus | what it says |\n|---|---|\n");
    for (name, help, _) in &LONG_TASKS {
        let _ = writeln!(page, "| `throng_{}` | {help}. |", name.replace('.', "_"));
    }
    page.push('\n');
    page.push_str("## What the server uses, from inside and from outside\n\nGauges of the last second. The first ones are the process's own word; those of the group, the host and the network are others', with all that is in them beside the server. An account that the host does not show has no value, and the log says at the start which are missing. A load report and the report at a server's end have the same names in `accounts`, for the steady window; captures have them as counters; `throng host measure` tells them without a server.\n\n| in Prometheus | what it says | when it grows |\n|---|---|---|\n");
    let of_accounts = ACCOUNTS.iter().map(|figure| (figure.name, figure.help, figure.advice)).chain([CAP]);
    for (name, help, advice) in of_accounts {
        let _ = writeln!(page, "| `throng_{}` | {help} | {advice} |", name.replace('.', "_"));
    }
    page.push('\n');
    page.push_str("## Which client takes most\n\nGauges of the last second, each of the client that has most of it; the console's `clients` says who that is.\n\n| in Prometheus | what it says |\n|---|---|\n");
    for (name, help, _) in &CLIENTS {
        let _ = writeln!(page, "| `throng_{}` | {help}. |", name.replace('.', "_"));
    }
    page.push_str(
        "\nWork is in units of what an ordinary input costs its world; what a message costs is the game's to say. More than \
         `client_messages_per_s_max` of it a second no client gets.\n\n",
    );
    page + GAME
}

fn row_of(page: &mut String, figure: &Figure, suffix: &str) {
    let name = figure.name.replace('.', "_");
    let _ = writeln!(page, "| `throng_{name}{suffix}` | {} | {} |", figure.help, figure.advice);
}

fn subsystem_of(counter: &Counter) -> &'static str {
    counter.name.split('.').next().unwrap_or_default()
}

/// Promise: the page is what the declarations say.
#[test]
fn the_metrics_page_is_made_of_the_declarations() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let expect = page();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &expect).expect("the page is writable");
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expect,
        "docs/metrics.md is not what the code says: UPDATE_EXPECT=1 cargo test -p throng --lib metrics"
    );
}

/// Promise: nothing is exposed that the page does not explain.
#[test]
fn every_family_that_is_exposed_is_on_the_page() {
    let mut metrics = ServerMetrics::new();
    metrics.subsystems(&FrameFigures::default());
    metrics.tell_build(&Build::default());
    metrics.tell_kinds(&["hub".into()]);
    let snapshot = metrics.registry.snapshot();
    let mut gauges = packet_report::gauges(&[]);
    gauges.extend(client_report::gauges(&[]));
    gauges.extend(accounts::gauges(None));
    gauges.push(stuck_gauge(&WORLDS_STUCK, 0));
    gauges.push(stuck_gauge(&LONG_TASKS_STUCK, 0));
    gauges.push(stuck_gauge(&SAVES_AWAY, 0));
    gauges.push(stuck_gauge(&ANALYTICS_AWAY, 0));
    gauges.push(capture_gauge(&[]));
    let text = snapshot.to_prometheus_text_with(Beside { gauges, ..Beside::default() });
    let page = page();
    let families = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let dotted: Vec<String> = Totals::declared().iter().map(|counter| counter.name.replace('.', "_")).collect();
    let mut count = 0;
    for family in families {
        let plain = family.trim_start_matches("throng_").trim_end_matches("_window_max");
        let is_declared = dotted.iter().any(|name| name == plain);
        // A histogram's maximum is explained with it.
        let explained = family.strip_suffix("_window_max").filter(|histogram| histogram.ends_with("_seconds"));
        assert!(is_declared || page.contains(explained.unwrap_or(family)), "`{family}` is not on the page");
        count += 1;
    }
    assert!(count > dotted.len() + 20, "{text}");
    for counter in Totals::declared() {
        assert!(page.contains(&format!("| `{}`", counter.name)), "`{}` is not on the page", counter.name);
    }
}
