//! From the server to the dashboard with the real Prometheus: what is shipped in `deploy/` is scraped, evaluated and fired
//! by the program that operators run.
//!
//! ```text
//! server under bots <- two Prometheus, one with classic and one with native histograms <- promtool: panels, alerts
//! ```

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use serde_json::Value;

use crate::{
    child::{PATIENCE, Server, alone, finish, folder, throng, wait_until},
    crowd::Crowd,
    lifecycle::get,
    recorder::quiet,
};
use instance::{Histograms, Prometheus, deploy, encoded, promtool};

mod instance;
mod slow_readers;
mod spikes;

/// A few scrapes of the test's Prometheus.
const RATE_INTERVAL: &str = "10s";

/// A query of a panel, as Grafana asks it when all servers are chosen.
struct Asked {
    /// Dashboard, panel and letter.
    name: String,
    expr: String,
    /// The panel says what stands there when there is nothing.
    may_be_empty: bool,
}

fn json_files(folder: &Path) -> Vec<(String, Value)> {
    let mut files: Vec<_> = fs::read_dir(folder).expect("it is shipped").flatten().map(|entry| entry.path()).collect();
    files.sort();
    let read = |path: &Path| serde_json::from_str(&fs::read_to_string(path).expect("a file")).expect("JSON");
    files.iter().map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), read(path))).collect()
}

fn dashboards() -> Vec<(String, Value)> {
    json_files(&deploy("grafana/dashboards"))
}

fn asked(dashboard: &Value) -> Vec<Asked> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let uid = dashboard["uid"].as_str().expect("a fixed one");
    let expr_of = |value: &Value| {
        let text = value["expr"].as_str().expect("a query");
        let expr = text.replace("$instance", ".*").replace("$__rate_interval", RATE_INTERVAL);
        assert!(!expr.contains('$'), "what Grafana puts in for this is not known here: {expr}");
        expr
    };
    let mut all = Vec::new();
    for panel in list(&dashboard["panels"]) {
        let title = panel["title"].as_str().expect("a title");
        let may_be_empty = panel["fieldConfig"]["defaults"]["noValue"].is_string();
        for target in list(&panel["targets"]) {
            let letter = target["refId"].as_str().expect("a letter");
            all.push(Asked { name: format!("{uid}: {title}: {letter}"), expr: expr_of(&target), may_be_empty });
        }
    }
    for annotation in list(&dashboard["annotations"]["list"]) {
        let name = format!("{uid}: annotation {}", annotation["name"]);
        all.push(Asked { name, expr: expr_of(&annotation), may_be_empty: false });
    }
    all
}

/// Has promtool evaluate queries, all in one call, and returns how many rows each has. A name is its place.
#[track_caller]
fn rows_of(prometheus: &Prometheus, queries: &[&str]) -> BTreeMap<usize, f64> {
    let counted =
        |(place, expr): (usize, &&str)| format!("label_replace(count({expr}), \"place\", \"{place}\", \"\", \"\")");
    let all: Vec<String> = queries.iter().enumerate().map(counted).collect();
    let said = prometheus.promtool_query(&all.join("\nor "));
    let row = |line: &str| {
        let (labels, value) = line.split_once(" => ")?;
        let place = labels.strip_prefix("{place=\"")?.strip_suffix("\"}")?.parse().ok()?;
        Some((place, value.split(' ').next()?.parse().ok()?))
    };
    said.lines().filter_map(row).collect()
}

/// Promise: every panel of every dashboard and every alert is asked of a real Prometheus that scrapes a server on which
/// bots play, and each panel has something to show, whichever form of histograms is kept. A spike's capture is led to.
#[test]
fn every_panel_and_every_alert_is_evaluated_on_what_a_server_tells() {
    let _alone = alone();
    let captures = folder("prometheus-captures");
    let captures = captures.to_str().expect("a plain path");
    let server = Server::start(&["--players", "20", "--npcs", "200", "--captures", captures]);
    let crowd = Crowd::start(server.address, 20);
    let both = [("classic", Histograms::Classic), ("native", Histograms::Native)];
    let both = both.map(|(name, of)| (of, Prometheus::with_shipped_settings(name, server.admin_address, of)));
    let admin = server.admin_address.to_string();
    let saved = finish(throng(&["capture", "save", "--connect", &admin, "--json"]), Duration::from_secs(60));
    let saved: Value = saved.json();

    let dashboards: Vec<Asked> = dashboards().iter().flat_map(|(_, dashboard)| asked(dashboard)).collect();
    let exprs: Vec<&str> = dashboards.iter().map(|asked| asked.expr.as_str()).collect();
    for (histograms, prometheus) in &both {
        prometheus.wait_for("rate(throng_server_frames_total[5s])");
        prometheus.wait_for("throng:tick_seconds:p99_1m > 0");
        prometheus.wait_for("throng_profiler_capture_at_ms{trigger=\"manual\"}");
        let classic = prometheus.query("throng_server_frame_seconds_bucket");
        let native = prometheus.query("histogram_count(throng_server_frame_seconds)");
        assert_eq!(
            (classic.is_empty(), native.is_empty()),
            match histograms {
                Histograms::Classic => (false, true),
                Histograms::Native => (true, false),
            }
        );

        let rows = rows_of(prometheus, &exprs);
        let empty: Vec<&str> = (dashboards.iter().enumerate())
            .filter(|(place, asked)| !asked.may_be_empty && !rows.contains_key(place))
            .map(|(_, asked)| asked.name.as_str())
            .collect();
        assert!(empty.is_empty(), "{histograms:?}: nothing is shown by {empty:#?}");
        println!("{histograms:?}: {} queries of panels, {} with rows", exprs.len(), rows.len());

        let rules = prometheus.api("rules");
        let groups = rules["groups"].as_array().expect("groups");
        let rules: Vec<&Value> = groups.iter().flat_map(|group| group["rules"].as_array().expect("rules")).collect();
        for rule in &rules {
            assert_eq!(rule["health"], "ok", "{rule}");
        }
        check_rules_have_rows(prometheus, &rules, &server);
    }
    check_links(&server, &both[0].1, &saved);
    crowd.finish();
    assert!(server.stop().status.success());
}

/// As old as figures are when rules are asked.
const PAST: &str = "5s";

/// Whatever its limit, each rule has something to say of this server: an alert on what is not told, or by a label that nothing
/// has, would never fire.
#[track_caller]
fn check_rules_have_rows(prometheus: &Prometheus, rules: &[&Value], server: &Server) {
    let limitless: Vec<String> =
        rules.iter().map(|rule| without_limits(rule["query"].as_str().expect("PromQL"))).collect();
    let exprs: Vec<&str> = limitless.iter().map(String::as_str).collect();
    prometheus.wait_for(&format!("throng_process_rss_bytes offset {PAST}"));
    let rows = rows_of(prometheus, &exprs);
    let (_, text) = get(server.admin_address, "/metrics");
    // What a host does not show has its help and no value.
    let is_hidden = |figure: &String| {
        let has_value = |line: &str| line.strip_prefix(figure).is_some_and(|rest| rest.starts_with([' ', '{']));
        text.contains(&format!("# TYPE {figure} gauge")) && !text.lines().any(has_value)
    };
    let silent: Vec<&str> = (exprs.iter().enumerate())
        .filter(|(place, expr)| !rows.contains_key(place) && !figures_in(expr).iter().any(is_hidden))
        .map(|(_, expr)| *expr)
        .collect();
    assert!(silent.is_empty(), "these have nothing to say, whatever the limit: {silent:#?}");
    println!("{} rules, {} with rows", exprs.len(), rows.len());
}

/// The query with comparisons that say 0 or 1 where they left rows out, and with no older past than [`PAST`].
fn without_limits(expr: &str) -> String {
    assert!(!expr.contains("bool"), "{expr}");
    let words = expr.split_whitespace().map(|word| match word {
        "==" | "!=" | "<" | "<=" | ">" | ">=" => format!("{word} bool"),
        word => word.replace("30m", PAST),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The names of the server's figures in a query.
fn figures_in(expr: &str) -> Vec<String> {
    let words = expr.split(|letter: char| !(letter.is_ascii_alphanumeric() || "_:".contains(letter)));
    words.filter(|word| word.starts_with("throng_")).map(str::to_owned).collect()
}

/// From the metrics to the file: the annotation and the exemplar name the capture, and the server gives it by that name.
#[track_caller]
fn check_links(server: &Server, prometheus: &Prometheus, saved: &Value) {
    let path = Path::new(saved["path"].as_str().expect("it was saved"));
    let name = path.file_stem().unwrap().to_str().unwrap();
    let rows = prometheus.wait_for(&format!("throng_profiler_capture_at_ms{{capture=\"{name}\", trigger=\"manual\"}}"));
    let at_ms: f64 = rows[0]["value"][1].as_str().and_then(|text| text.parse().ok()).expect("a moment");
    let exemplars =
        format!("query_exemplars?query={}&start=0&end=9999999999", encoded("throng_server_frame_seconds_bucket"));
    let exemplars = prometheus.api(&exemplars).to_string();
    let (head, list) = get(server.admin_address, &format!("/captures?at={at_ms}"));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let list: Value = serde_json::from_str(&list).expect("a list");
    // What the machine made slow at that moment was captured, too.
    let listed = list["captures"].as_array().expect("captures");
    assert!(listed.iter().any(|capture| capture["name"] == name), "{list}");
    // One of them is the latest in its second: that is what the exemplar names.
    let is_named = |capture: &Value| exemplars.contains(&format!("\"capture\":{}", capture["name"]));
    assert!(listed.iter().any(is_named), "none of {list} is in {exemplars}");
    let (head, _) = get_bytes(server, &format!("/captures/{name}"));
    let length = format!("content-length: {}", saved["bytes"]);
    assert!(head.starts_with("HTTP/1.1 200") && head.contains(&length), "{head}");
}

fn get_bytes(server: &Server, path: &str) -> (String, Vec<u8>) {
    use std::io::{Read, Write};
    let admin = server.admin_address;
    let mut stream = std::net::TcpStream::connect(admin).expect("the admin port listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {admin}\r\n\r\n").expect("a request fits");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer that ends");
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    (String::from_utf8_lossy(&answer[..head]).into_owned(), answer[head + 4..].to_vec())
}

/// Promise: a tick that a world made slow is led from to the capture that was saved of it: by an exemplar of the frames' times, and
/// by the moment at which it stands.
#[test]
fn a_slow_worlds_spike_leads_to_its_capture() {
    let _alone = alone();
    // Not the folder of the Prometheus below, which begins with an empty one.
    let place = folder("slow-worlds-spike");
    let captures = place.join("captures");
    fs::create_dir(&captures).expect("a folder of ours");
    // No other capture of the same frame stands in the exemplar's place.
    let rules = place.join("rules.toml");
    fs::write(&rules, quiet().replace("[triggers.scope]\non = false\n", "")).expect("a folder of ours");
    let settings = place.join("throng.toml");
    fs::write(&settings, format!("[recorder]\ncaptures = {captures:?}\nrules = {rules:?}\n"))
        .expect("a folder of ours");
    let settings = settings.to_str().expect("a plain path");
    let slow = ["--players", "4", "--npcs", "40", "--all-awake", "--inject", "slow-world", "--config", settings];
    let server = Server::start(&slow);
    let crowd = Crowd::start(server.address, 4);
    let prometheus = Prometheus::with_shipped_settings("spike", server.admin_address, Histograms::Classic);
    let query =
        format!("query_exemplars?query={}&start=0&end=9999999999", encoded("throng_server_frame_seconds_bucket"));
    let spike = wait_until(PATIENCE, || {
        let marks = prometheus.query("throng_profiler_capture_at_ms{trigger=\"scope\"}");
        let all = prometheus.api(&query);
        let exemplars = all.as_array()?.iter().filter_map(|series| series["exemplars"].as_array()).flatten();
        let is_marked = |capture: &Value| marks.iter().any(|mark| mark["metric"]["capture"] == *capture);
        let of_ours = |exemplar: &&Value| is_marked(&exemplar["labels"]["capture"]);
        exemplars.filter(of_ours).find_map(|exemplar| exemplar["labels"]["capture"].as_str().map(str::to_owned))
    });
    let name = spike.unwrap_or_else(|| panic!("no exemplar names its capture: {}", prometheus.api(&query)));

    let (head, bytes) = get_bytes(&server, &format!("/captures/{name}"));
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let capture = throng_capture::format::read(&bytes).expect("a capture");
    assert_eq!(capture.about.trigger.name, "world.tick", "{:?}", capture.about.trigger);
    crowd.finish();
    assert!(server.stop().status.success());
}

/// Promise: each alert is silent while its server is well, fires when it is not, and says what to do.
#[test]
fn alerts_are_silent_first_fire_then_and_say_what_to_do() {
    let rules: Vec<String> = ["recording", "ticks", "worlds", "host"]
        .iter()
        .map(|name| deploy(&format!("prometheus/rules/{name}.yml")).display().to_string())
        .collect();
    let shipped = fs::read_dir(deploy("prometheus/rules")).expect("it is shipped").count();
    assert_eq!(shipped, rules.len(), "a file of rules that is not tried here");
    let names: Vec<&str> = rules.iter().map(String::as_str).collect();
    promtool(&[&["check", "rules"], names.as_slice()].concat());
    promtool(&["check", "config", &deploy("prometheus/prometheus.yml").display().to_string()]);
    let tests = deploy("prometheus/tests/alerts.yml");
    let tests = tests.to_str().expect("a plain path");
    promtool(&["test", "rules", tests]);

    let tried = fs::read_to_string(tests).expect("a file");
    let texts = rules.iter().map(|path| fs::read_to_string(path).expect("a file"));
    let mut count = 0;
    for alert in texts.flat_map(|text| text.split("- alert: ").skip(1).map(str::to_owned).collect::<Vec<_>>()) {
        let name = alert.lines().next().unwrap_or_default();
        for part in ["severity: ", "summary: ", "description: "] {
            assert!(alert.contains(part), "{name} has no {part}");
        }
        for value in [0, 1] {
            let is_tried = |line: &str| {
                line.contains(&format!("alertname=\"{name}\"")) && line.contains(&format!("value: {value} }}]"))
            };
            assert!(tried.lines().any(is_tried), "{name}: no test where {value} of it fires");
        }
        count += 1;
    }
    assert!(count >= 30, "{count} alerts");
}

/// Promise: links to dashboards stay good, and Grafana finds what is shipped.
#[test]
fn dashboards_have_ids_of_their_own_and_a_source_that_is_provided() {
    let expect = ["density", "host", "network", "recorder", "server", "worlds"];
    let all = dashboards();
    assert_eq!(all.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), expect);
    for (name, dashboard) in &all {
        assert_eq!(dashboard["uid"], format!("throng-{name}"));
        let source = &dashboard["templating"]["list"][0];
        assert_eq!((&source["name"], &source["query"]), (&"datasource".into(), &"prometheus".into()));
        for panel in dashboard["panels"].as_array().expect("panels") {
            let place = &panel["gridPos"];
            let right = place["x"].as_u64().unwrap() + place["w"].as_u64().unwrap();
            assert!(right <= 24 && panel["datasource"]["uid"] == "${datasource}", "{panel}");
        }
    }
    let sources = fs::read_to_string(deploy("grafana/provisioning/datasources/throng.yml")).expect("it is shipped");
    assert!(sources.contains("type: prometheus") && sources.contains("name: capture"), "{sources}");
}
