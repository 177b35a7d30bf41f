//! Dashboards: `deploy/grafana/dashboards/*.json`, made of `deploy/grafana/panels/*.toml`.
//!
//! A panel is a title, a unit and its queries, and that is what is written by hand and read in a review; where it stands
//! and all that Grafana wants to have said besides is the same for every one, and is said here. Their ids are fixed, so
//! that links to them stay good.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::XtaskError;
use crate::step;

mod draw;
mod run;

#[derive(Args)]
pub(crate) struct DashboardsArguments {
    /// Instead: run `throng load` with what follows `--`, have a Prometheus scrape its server meanwhile, and draw every
    /// panel of every dashboard into this file.
    #[arg(long, value_name = "HTML")]
    draw: Option<PathBuf>,
    /// For `--draw`: the executable that is run.
    #[arg(long, value_name = "FILE", default_value = "target/release/throng")]
    executable: PathBuf,
    /// For `--draw`: what `throng load` is told.
    #[arg(last = true)]
    load: Vec<String>,
}

/// A dashboard as it is written by hand.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dashboard {
    uid: String,
    title: String,
    description: String,
    panels: Vec<Panel>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Panel {
    title: String,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    unit: Unit,
    #[serde(default)]
    description: String,
    /// Of 24.
    width: Option<u32>,
    /// What stands there when there is nothing to show. Without it that is a fault, and a test says so.
    no_value: Option<String>,
    /// Ask for exemplars, too.
    #[serde(default)]
    exemplars: bool,
    /// Its rows are captures: lead to them.
    #[serde(default)]
    links: bool,
    queries: Vec<Query>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Query {
    expr: String,
    legend: String,
}

#[derive(Deserialize, Default, Clone, Copy, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    #[default]
    Timeseries,
    Stat,
    Table,
}

#[derive(Deserialize, Default, Clone, Copy)]
enum Unit {
    #[default]
    #[serde(rename = "")]
    None,
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "B")]
    Bytes,
    #[serde(rename = "B/s")]
    BytesPerSecond,
    #[serde(rename = "per second")]
    PerSecond,
    #[serde(rename = "share")]
    Share,
    #[serde(rename = "cores")]
    Cores,
}

impl Unit {
    /// Grafana's name for it, and what stands at the axis.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Unit::None => ("short", ""),
            Unit::Seconds => ("s", ""),
            Unit::Milliseconds => ("ms", ""),
            Unit::Bytes => ("bytes", ""),
            Unit::BytesPerSecond => ("Bps", ""),
            Unit::PerSecond => ("short", "per second"),
            Unit::Share => ("percentunit", ""),
            Unit::Cores => ("short", "cores"),
        }
    }

    /// As the pages that we draw say it, behind a panel's title.
    fn in_words(self) -> &'static str {
        match self {
            Unit::None => "",
            Unit::Seconds => "(s)",
            Unit::Milliseconds => "(ms)",
            Unit::Bytes => "(bytes)",
            Unit::BytesPerSecond => "(bytes per second)",
            Unit::PerSecond => "(per second)",
            Unit::Share => "(share: 1 is all)",
            Unit::Cores => "(cores)",
        }
    }
}

const PANELS: &str = "deploy/grafana/panels";
const WRITTEN: &str = "deploy/grafana/dashboards";

/// In a query, before what else is chosen: the servers that the reader chose.
const CHOSEN: (&str, &str) = ("{S", "{instance=~\"$instance\"");

const WIDTH: u32 = 24;

pub(crate) fn run(arguments: &DashboardsArguments) -> Result<(), XtaskError> {
    match &arguments.draw {
        Some(html) => run::run(html, &arguments.executable, &arguments.load),
        None => write(&step::root()),
    }
}

fn write(root: &Path) -> Result<(), XtaskError> {
    let folder = root.join(WRITTEN);
    let cannot = |path: &Path, cause: io::Error| XtaskError::Usage(format!("{}: {cause}", path.display()));
    fs::create_dir_all(&folder).map_err(|cause| cannot(&folder, cause))?;
    for (path, text) in written(root)? {
        fs::write(&path, text).map_err(|cause| cannot(&path, cause))?;
        eprintln!("dashboards: {}", path.display());
    }
    Ok(())
}

/// For tidy: whether what Grafana is given is what the panels say.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let expected = match written(root) {
        Ok(expected) => expected,
        Err(error) => return vec![error.to_string()],
    };
    let is_stale = |(path, text): &&(PathBuf, String)| fs::read_to_string(path).unwrap_or_default() != *text;
    let stale = expected
        .iter()
        .filter(is_stale)
        .map(|(path, _)| format!("{}: is not what {PANELS} says; run `cargo xtask dashboards`", path.display()));
    let is_known = |path: &PathBuf| expected.iter().any(|(known, _)| known == path);
    let strays = files(&root.join(WRITTEN)).into_iter().filter(|path| !is_known(path));
    stale.chain(strays.map(|path| format!("{}: is of no file in {PANELS}; remove it", path.display()))).collect()
}

/// What lies in a folder, by name.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Each file that is to be, and its text.
fn written(root: &Path) -> Result<Vec<(PathBuf, String)>, XtaskError> {
    let to_json = |(name, dashboard): (String, Dashboard)| {
        let text = serde_json::to_string_pretty(&grafana(&dashboard)).expect("values of our own");
        (root.join(WRITTEN).join(name).with_extension("json"), text + "\n")
    };
    Ok(dashboards(root)?.into_iter().map(to_json).collect())
}

/// All of them with the names of their files, in the order of these.
fn dashboards(root: &Path) -> Result<Vec<(String, Dashboard)>, XtaskError> {
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).map_err(|cause| cause.to_string());
        let dashboard = text.and_then(|text| toml::from_str(&text).map_err(|error| error.to_string()));
        let dashboard = dashboard.map_err(|cause| XtaskError::Usage(format!("{}: {cause}", path.display())))?;
        Ok((path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), dashboard))
    };
    files(&root.join(PANELS)).into_iter().map(read).collect()
}

fn grafana(dashboard: &Dashboard) -> Value {
    let mut place = Place::default();
    let panels: Vec<Value> =
        dashboard.panels.iter().zip(1..).map(|(panel, id)| panel.grafana(id, &mut place)).collect();
    json!({
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.description,
        "tags": ["throng"],
        "schemaVersion": 39,
        "version": 1,
        "editable": true,
        "graphTooltip": 1,
        "refresh": "5s",
        "time": { "from": "now-30m", "to": "now" },
        "timezone": "browser",
        "links": [{
            "type": "dashboards", "tags": ["throng"], "title": "Throng", "asDropdown": false, "includeVars": true,
            "keepTime": true, "targetBlank": false, "icon": "external link", "tooltip": "", "url": "",
        }],
        "templating": { "list": [
            { "name": "datasource", "label": "Data", "type": "datasource", "query": "prometheus", "hide": 0, "current": {} },
            {
                "name": "instance", "label": "Servers", "type": "query", "datasource": data_source(), "hide": 0,
                "query": { "query": "label_values(throng_build_info, instance)", "refId": "instances" },
                "refresh": 2, "sort": 1, "multi": true, "includeAll": true, "allValue": ".*",
                "current": { "text": "All", "value": "$__all" },
            },
        ] },
        // A capture's value is the moment that it is about: there the line stands, however often is scraped.
        "annotations": { "list": [{
            "name": "Captures", "datasource": data_source(), "enable": true, "iconColor": "red", "step": "5s",
            "expr": chosen("throng_profiler_capture_at_ms{S}"), "useValueForTime": true, "tagKeys": "trigger,kind",
            "titleFormat": "{{trigger}} {{cause}}",
            "textFormat": "<a href=\"http://{{instance}}/captures/{{capture}}\">{{capture}}</a> of {{instance}}",
        }] },
        "panels": panels,
    })
}

fn data_source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

fn chosen(expr: &str) -> String {
    expr.replace(CHOSEN.0, CHOSEN.1)
}

/// Where the next panel stands: from left to right, then in the next row.
#[derive(Default)]
struct Place {
    x: u32,
    y: u32,
    row_height: u32,
}

impl Place {
    fn take(&mut self, width: u32, height: u32) -> Value {
        if self.x + width > WIDTH {
            (self.x, self.y, self.row_height) = (0, self.y + self.row_height, 0);
        }
        let place = json!({ "x": self.x, "y": self.y, "w": width, "h": height });
        self.x += width;
        self.row_height = self.row_height.max(height);
        place
    }
}

impl Panel {
    fn grafana(&self, id: u32, place: &mut Place) -> Value {
        let (name, height, options) = match self.kind {
            Kind::Timeseries => (
                "timeseries",
                8,
                json!({
                    "legend": { "displayMode": "list", "placement": "bottom", "showLegend": true },
                    "tooltip": { "mode": "multi", "sort": "desc" },
                }),
            ),
            Kind::Stat => (
                "stat",
                4,
                json!({
                    "reduceOptions": { "calcs": ["lastNotNull"], "fields": "", "values": false },
                    "colorMode": "value", "graphMode": "area",
                }),
            ),
            Kind::Table => ("table", 8, json!({ "showHeader": true })),
        };
        let (unit, axis) = self.unit.names();
        let mut defaults = json!({ "unit": unit, "min": 0, "links": self.data_links() });
        if self.kind == Kind::Timeseries {
            defaults["custom"] = json!({ "lineWidth": 1, "fillOpacity": 6, "showPoints": "never", "axisLabel": axis });
        }
        if let Some(text) = &self.no_value {
            defaults["noValue"] = json!(text);
        }
        let is_table = self.kind == Kind::Table;
        let target = |(query, letter): (&Query, char)| {
            json!({
                "refId": letter.to_string(), "datasource": data_source(), "expr": chosen(&query.expr),
                "legendFormat": query.legend, "range": !is_table, "instant": is_table, "exemplar": self.exemplars,
                "format": if is_table { "table" } else { "time_series" },
            })
        };
        let targets: Vec<Value> = self.queries.iter().zip('A'..).map(target).collect();
        json!({
            "id": id, "type": name, "title": self.title, "description": self.description,
            "datasource": data_source(), "gridPos": place.take(self.width.unwrap_or(WIDTH / 2), height),
            "fieldConfig": { "defaults": defaults, "overrides": [] }, "options": options, "targets": targets,
        })
    }

    /// From any point of a line to what was captured then: on its server where the line is of one, else to all.
    fn data_links(&self) -> Value {
        let link = |title: &str, url: &str| json!([{ "title": title, "url": url, "targetBlank": true }]);
        let is_of_one = self.queries.iter().any(|query| query.legend.contains("{{instance}}"));
        match self.kind {
            _ if self.links => {
                link("Open the capture", "http://${__data.fields.instance}/captures/${__data.fields.capture}")
            }
            Kind::Timeseries if is_of_one => {
                link("Captures of that moment", "http://${__field.labels.instance}/captures?at=${__value.time}")
            }
            Kind::Timeseries => link("Captures", "/d/throng-recorder?${__url_time_range}&${instance:queryparam}"),
            Kind::Stat | Kind::Table => json!([]),
        }
    }
}
