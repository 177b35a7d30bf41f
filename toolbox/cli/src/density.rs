//! `throng density`: how many instances of a command this host holds. The work is the lab's; here its plan is made from
//! the command line.

use std::path::PathBuf;

use clap::Args;
use throng_lab::{
    density::{
        self, Curve, DensityPlan, DensityReport, Form, FrameMetric, FrameSource, LogPattern, Point, Progress,
        Statistic, Unit,
    },
    report,
};
use throng_platform::signals;

use crate::{
    outcome::{CommandResult, Verdict},
    output::{remark, say},
    status_line::StatusLine,
};

#[derive(Args)]
pub struct DensityArguments {
    /// Try up to so many instances.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_096))]
    max: u32,
    /// Frame time that must hold (ms). Without it nine tenths of the period, which is told by how many frames a single
    /// instance runs in a second; --log needs it, as its lines may be of some frames only.
    #[arg(long, value_name = "MS", value_parser = positive)]
    budget_ms: Option<f64>,
    /// By what the frame times of a window are judged, over all frames of all instances.
    #[arg(long, default_value = "mean", value_parser = Statistic::NAMES)]
    statistic: String,
    /// Frames per second that each instance must keep, to 1 %; without it, those of a single one. With --log, lines that it
    /// must write.
    #[arg(long, value_parser = positive)]
    hz: Option<f64>,
    /// Where an instance tells its metrics, in Prometheus' format.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:{metrics_port}/metrics")]
    metrics: String,
    /// Which of them is the time of a frame: a histogram, a summary or a gauge, as NAME or NAME{label="value"}.
    #[arg(long, value_name = "NAME", default_value = "throng_server_frame_seconds")]
    metric: String,
    /// Its unit: s, ms, us or ns. Without it the one that its name ends with.
    #[arg(long)]
    unit: Option<Unit>,
    /// Read frame times from what instances write instead: text as it stands in a line, with {ms}, {us}, {ns} or {s}
    /// where the number is and * for any text, such as 'frame took {ms} ms'.
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["metrics", "metric", "unit"])]
    log: Option<LogPattern>,
    /// Length of the window in which each number of instances is measured (s).
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Wait so long before each window, for what has just started to settle (s).
    #[arg(long, value_name = "S", default_value_t = 3, value_parser = clap::value_parser!(u32).range(0..=3_600))]
    settle_s: u32,
    /// An instance must show its first frame time within so long (s).
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3_600))]
    ready_within_s: u32,
    /// How many numbers of instances are measured, at even steps up to the most; the gap in which the budget fails is
    /// then looked at more closely.
    #[arg(long, value_name = "COUNT", default_value_t = 12, value_parser = clap::value_parser!(u32).range(2..=4_096))]
    points: u32,
    /// End when the instances take half of the cores, and forecast the rest: not of p99.
    #[arg(long)]
    half_load: bool,
    /// Measure one process with so many worlds as well: {worlds} in the command is 1 in each of many instances, and
    /// their number in a single one.
    #[arg(long)]
    worlds: bool,
    /// Let instances run on all memory nodes, where there are several, instead of tying them to these in turns.
    #[arg(long)]
    any_node: bool,
    /// Look for free ports from here on.
    #[arg(long, value_name = "PORT", default_value_t = DensityPlan::FIRST_PORT,
          value_parser = clap::value_parser!(u16).range(1_024..))]
    first_port: u16,
    /// Fail if fewer instances hold; with --half-load, if fewer are forecast.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=16_384))]
    at_least: u32,
    /// Write report.json and report.html into this folder.
    #[arg(long, value_name = "DIR", default_value = "reports/density")]
    report: PathBuf,
    /// Print one JSON object as the last line.
    #[arg(long)]
    json: bool,
    /// The command, behind --. Replaced in it for each instance: {index} (from 1), {port} and {metrics_port} (free for
    /// UDP and TCP), {worlds}.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "write a number above 0".to_owned())
}

pub fn run(arguments: DensityArguments) -> CommandResult {
    let (folder, json) = (arguments.report.clone(), arguments.json);
    let plan = plan(arguments)?;
    plan.check()?;
    report::make_folder(&folder)?;
    let stop = signals::install_stop();
    let line = StatusLine::new();
    let run = density::run(&plan, &stop, &mut |progress| show(&line, &progress));
    line.finish();
    let mut report = run?;
    let html = density::write(&mut report, &folder)?.html;
    tell(&report);
    remark(format_args!("report: {}", html.display()));
    if json {
        say(serde_json::to_string(&report)?)?;
    }
    Ok(if report.passed { Verdict::Fine } else { Verdict::Failed })
}

fn plan(arguments: DensityArguments) -> Result<DensityPlan, Box<dyn std::error::Error>> {
    let DensityArguments { metrics: url, metric, unit, log, .. } = &arguments;
    let source = match log {
        Some(pattern) => FrameSource::Log(pattern.clone()),
        None => FrameSource::Metrics { url: url.clone(), metric: FrameMetric::new(metric, *unit)? },
    };
    Ok(DensityPlan {
        source,
        instances_max: arguments.max,
        statistic: arguments.statistic.parse()?,
        budget_ms: arguments.budget_ms,
        hz: arguments.hz,
        seconds: arguments.seconds,
        settle_s: arguments.settle_s,
        ready_within_s: arguments.ready_within_s,
        points: arguments.points,
        load_share_max: arguments.half_load.then_some(DensityPlan::HALF_LOAD),
        worlds: arguments.worlds,
        spread_over_nodes: !arguments.any_node,
        first_port: arguments.first_port,
        at_least: arguments.at_least,
        command: arguments.command,
        command_line: std::env::args().collect::<Vec<_>>().join(" "),
    })
}

fn show(line: &StatusLine, progress: &Progress) {
    match progress {
        Progress::Starting { form, instances } => {
            line.show(&format!("{instances} {}: starting", form.counted(*instances)));
        }
        Progress::Measuring { form, instances, second, of } => {
            line.show(&format!("{instances} {}: {second} of {of} s", form.counted(*instances)));
        }
        Progress::Measured { form, point } => {
            line.show(&one_line(*form, point));
            // It stays to be read while the next one is measured.
            line.finish();
        }
        Progress::Stopping => line.show("stopping"),
    }
}

fn one_line(form: Form, point: &Point) -> String {
    let optional =
        |value: Option<f64>, unit: &str| value.map_or_else(String::new, |value| format!("  {value:.2}{unit}"));
    format!(
        "{} {}: frame {:.3} ms{}  {:.2} cores ({:.0} % of those there are)  {:.0} MB{}  {}",
        point.instances,
        form.counted(point.instances),
        point.frame_ms,
        optional(point.frames_per_s, " frames/s"),
        point.cores_busy,
        100.0 * point.load_share,
        point.rss_mb,
        optional(point.instructions_per_cycle, " instructions/cycle"),
        if point.holds { "held" } else { "FAILED" }
    )
}

/// The outcome for a person.
fn tell(report: &DensityReport) {
    report.curves.iter().for_each(|curve| remark(format_args!("note {curve}")));
    if let [processes, worlds] = &report.curves[..] {
        let cores_each = |curve: &Curve| {
            let most = curve.points.iter().rfind(|point| point.instances <= curve.instances_held);
            most.map(|point| point.cores_busy / f64::from(point.instances))
        };
        if let (Some(process), Some(world)) = (cores_each(processes), cores_each(worlds)) {
            remark(format_args!("note a process of its own takes {process:.4} cores, and a world in one {world:.4}"));
        }
    }
    if let Some(why) = &report.hardware_counts_missing {
        remark(format_args!("note instructions per cycle and cache misses are missing: {why}"));
    }
    if let Some(why) = &report.ended_early {
        remark(format_args!("FAIL ended early: {why}"));
    }
    if report.interrupted {
        remark("FAIL stopped before its time: the curve is as far as it came");
    }
    let (verdict, by) =
        (if report.passed { "ok  " } else { "FAIL" }, if report.is_forecast_judged { ", forecast" } else { "" });
    let instances = report.instances().map_or_else(|| "none".to_owned(), |instances| instances.to_string());
    remark(format_args!("{verdict} instances{by}: {instances} (at least {})", report.instances_wanted));
}
