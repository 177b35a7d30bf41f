//! A run that is looked at through the dashboards: `throng load` plays, a Prometheus with what is shipped scrapes its
//! server, and every panel is drawn from what Prometheus has kept.
//!
//! Where there is a Grafana nobody needs this. It shows what Grafana would, without one: the same queries over the same
//! time, asked of the same Prometheus.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::draw::{self, DrawnPanel, Series};
use super::{Kind, chosen, dashboards};
use crate::error::XtaskError;
use crate::step;

/// For the last scrape to be in.
const AFTERWARDS: Duration = Duration::from_secs(3);
const READY_WITHIN: Duration = Duration::from_secs(30);
/// As one looks for a cause; others follow.
const ORDER: [&str; 3] = ["server", "worlds", "recorder"];
/// Points of a panel at most.
const POINTS_MAX: f64 = 300.0;

pub(super) fn run(html: &Path, executable: &Path, load: &[String]) -> Result<(), XtaskError> {
    let root = step::root();
    let place = step::target_folder().join("dashboards");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).map_err(|cause| usage(format!("{}: {cause}", place.display())))?;
    let admin = free_port()?;
    let prometheus = Prometheus::start(&root, &place, admin)?;

    let report = place.join("report");
    let mut command = Command::new(root.join(executable));
    command.arg("load").args(load).args(["--admin-address", &admin.to_string(), "--report"]).arg(&report);
    let begin = now_s();
    // A run that fails is one that wants to be looked at.
    let status = command.status().map_err(|cause| XtaskError::Start {
        program: executable.display().to_string(),
        cause,
        next: "build it: cargo build --release -p throng-shipped".to_owned(),
    })?;
    std::thread::sleep(AFTERWARDS);
    let end = now_s();
    eprintln!("dashboards: the run ended with {status}; drawing");

    let step_s = ((end - begin) / POINTS_MAX).ceil().max(1.0);
    let mut drawn = Vec::new();
    let mut dashboards = dashboards(&root)?;
    dashboards.sort_by_key(|(name, _)| ORDER.iter().position(|first| first == name).unwrap_or(ORDER.len()));
    for (_, dashboard) in dashboards {
        let mut panels = Vec::new();
        for panel in &dashboard.panels {
            let mut series = Vec::new();
            for query in &panel.queries {
                let expr = chosen(&query.expr).replace("$instance", ".*").replace("$__rate_interval", "10s");
                series.extend(prometheus.range(&expr, &query.legend, begin, end, step_s)?);
            }
            panels.push(DrawnPanel {
                title: panel.title.clone(),
                description: panel.description.clone(),
                unit: panel.unit,
                empty: panel.no_value.clone().unwrap_or_else(|| "no data".to_owned()),
                is_table: panel.kind == Kind::Table,
                series,
            });
        }
        drawn.push((dashboard.title.clone(), dashboard.description.clone(), panels));
    }
    if drawn.iter().all(|(_, _, panels)| panels.iter().all(|panel: &DrawnPanel| panel.series.is_empty())) {
        return Err(usage(format!("nothing was scraped from the server at {admin}; what `throng load` said is above")));
    }
    let captures = prometheus.captures(begin, end)?;
    let page = draw::page(&load.join(" "), &drawn, &captures, begin..end)?;
    fs::write(html, page).map_err(|cause| usage(format!("{}: {cause}", html.display())))?;
    println!("{}", html.display());
    Ok(())
}

fn usage(text: String) -> XtaskError {
    XtaskError::Usage(text)
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// One that was free a moment ago.
fn free_port() -> Result<SocketAddr, XtaskError> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map_err(|cause| usage(format!("no port is free: {cause}")))
}

struct Prometheus {
    child: Child,
    address: SocketAddr,
}

impl Prometheus {
    /// With what is shipped, but for the server's address and scrapes every second.
    fn start(root: &Path, place: &Path, server: SocketAddr) -> Result<Self, XtaskError> {
        let shipped = root.join("deploy/prometheus/prometheus.yml");
        let text = fs::read_to_string(&shipped).map_err(|cause| usage(format!("{}: {cause}", shipped.display())))?;
        let rules = root.join("deploy/prometheus/rules/*.yml");
        let text = text
            .replace("127.0.0.1:9100", &server.to_string())
            .replace("scrape_interval: 5s", "scrape_interval: 1s")
            .replace("scrape_timeout: 4s", "scrape_timeout: 1s")
            .replace("- rules/*.yml", &format!("- {}", rules.display()));
        let settings = place.join("prometheus.yml");
        fs::write(&settings, text).map_err(|cause| usage(format!("{}: {cause}", settings.display())))?;
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", settings.display()))
            .arg(format!("--storage.tsdb.path={}", place.join("data").display()))
            .args(["--enable-feature=exemplar-storage,native-histograms", "--web.listen-address=127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|cause| XtaskError::Start {
            program: "prometheus".to_owned(),
            cause,
            next: "`cargo xtask setup` installs it".to_owned(),
        })?;
        let mut log = BufReader::new(child.stderr.take().expect("a pipe was asked for")).lines().map_while(Result::ok);
        let address = log.find_map(|line| line.split_once("\"Listening on\" address=")?.1.trim().parse().ok());
        // Reads on to the end, so that the log never holds it up.
        std::thread::spawn(move || log.for_each(drop));
        let mut prometheus = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        prometheus.address = address.ok_or_else(|| usage("prometheus ended before it listened".to_owned()))?;
        let give_up_at = Instant::now() + READY_WITHIN;
        while prometheus.get("/-/ready").is_none() && Instant::now() < give_up_at {
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(prometheus)
    }

    /// The body of an answer that is fine.
    fn get(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        (head.split(' ').nth(1)? == "200").then(|| body.to_owned())
    }

    fn rows(&self, expr: &str, begin: f64, end: f64, step_s: f64) -> Result<Vec<Value>, XtaskError> {
        let query: String = expr.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let path = format!("/api/v1/query_range?query={query}&start={begin}&end={end}&step={step_s}");
        let body = self.get(&path).ok_or_else(|| usage(format!("prometheus does not evaluate {expr}")))?;
        let mut answer: Value = serde_json::from_str(&body).map_err(|error| usage(format!("{expr}: {error}")))?;
        Ok(serde_json::from_value(answer["data"]["result"].take()).unwrap_or_default())
    }

    fn range(&self, expr: &str, legend: &str, begin: f64, end: f64, step_s: f64) -> Result<Vec<Series>, XtaskError> {
        let series = |row: Value| {
            let points = row["values"].as_array().into_iter().flatten();
            let points = points.filter_map(|point| Some((point[0].as_f64()?, number(&point[1])?)));
            Series { name: named(legend, &row["metric"]), points: points.collect() }
        };
        Ok(self.rows(expr, begin, end, step_s)?.into_iter().map(series).collect())
    }

    /// When what captures show happened, and what that was.
    fn captures(&self, begin: f64, end: f64) -> Result<Vec<(f64, String)>, XtaskError> {
        let mut captures: Vec<(f64, String)> = Vec::new();
        for row in self.rows("throng_profiler_capture_at_ms", begin, end, 1.0)? {
            let at_ms = row["values"].as_array().and_then(|points| number(&points.first()?[1]));
            let text = named("{{trigger}} {{cause}} {{kind}} ({{capture}})", &row["metric"]);
            captures.extend(at_ms.map(|at_ms| (at_ms / 1e3, text)));
        }
        captures.sort_by(|a, b| a.0.total_cmp(&b.0));
        captures.dedup();
        Ok(captures)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_str()?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// A legend with the labels put in.
fn named(legend: &str, labels: &Value) -> String {
    let mut name = legend.to_owned();
    for (key, value) in labels.as_object().into_iter().flatten() {
        name = name.replace(&format!("{{{{{key}}}}}"), value.as_str().unwrap_or_default());
    }
    // A label that is empty is none to Prometheus.
    while let Some((begin, length)) = name.find("{{").and_then(|at| Some((at, name[at..].find("}}")? + 2))) {
        name.replace_range(begin..begin + length, "");
    }
    name
}
