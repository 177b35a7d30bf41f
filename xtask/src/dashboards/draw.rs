//! One page with all panels of all dashboards: for whoever has no Grafana. Without a program: text and pictures.

use std::fmt::Write;
use std::ops::Range;

use plotters::prelude::*;

use super::Unit;
use crate::error::XtaskError;

pub(super) struct Series {
    pub name: String,
    /// Seconds since 1970, value.
    pub points: Vec<(f64, f64)>,
}

pub(super) struct DrawnPanel {
    pub title: String,
    pub description: String,
    pub unit: Unit,
    /// What stands there without a series.
    pub empty: String,
    pub is_table: bool,
    pub series: Vec<Series>,
}

const SIZE: (u32, u32) = (560, 220);
const STYLE: &str = "body{font:14px/1.4 system-ui,sans-serif;margin:1.5rem;color:#222}h2{margin:2rem 0 0}\
    .panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(560px,1fr));gap:1rem}\
    figure{margin:0;border:1px solid #ddd;padding:.5rem}figcaption{font-weight:600}small{color:#666;font-weight:400}\
    .legend span{white-space:nowrap;margin-right:1rem}.swatch{display:inline-block;width:.8em;height:.8em;margin-right:.3em}";
const COLOURS: [RGBColor; 10] = [
    RGBColor(15, 118, 110),
    RGBColor(217, 96, 26),
    RGBColor(52, 98, 171),
    RGBColor(178, 34, 52),
    RGBColor(112, 72, 152),
    RGBColor(124, 122, 30),
    RGBColor(90, 140, 200),
    RGBColor(200, 120, 160),
    RGBColor(90, 90, 90),
    RGBColor(60, 160, 80),
];
const CAPTURE: RGBColor = RGBColor(178, 34, 52);

/// Dashboards: title, what it asks, panels.
type Drawn = (String, String, Vec<DrawnPanel>);

pub(super) fn page(
    what: &str,
    dashboards: &[Drawn],
    captures: &[(f64, String)],
    span: Range<f64>,
) -> Result<String, XtaskError> {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Dashboards</title><style>{STYLE}</style></head>\
         <body><h1>Dashboards of a run</h1><p>throng load {}</p>",
        escaped(what)
    );
    page += "<h2>Captures</h2><p>Red lines in every panel.</p><ul>";
    for (at, text) in captures {
        let _ = write!(page, "<li>{:.1} s: {}</li>", at - span.start, escaped(text));
    }
    page += "</ul>";
    for (title, description, panels) in dashboards {
        let _ = write!(page, "<h2>{}</h2><p>{}</p><div class=\"panels\">", escaped(title), escaped(description));
        for panel in panels {
            let svg = if panel.is_table { None } else { chart(panel, captures, &span)? };
            let unit = panel.unit.in_words();
            let _ = write!(
                page,
                "<figure><figcaption>{} <small>{unit} {}</small></figcaption>{}<div class=\"legend\">",
                escaped(&panel.title),
                escaped(&panel.description),
                svg.unwrap_or_default()
            );
            if panel.series.is_empty() {
                page += &escaped(&panel.empty);
            }
            for (series, RGBColor(red, green, blue)) in panel.series.iter().zip(COLOURS.iter().cycle()) {
                let last = series.points.last().map_or(f64::NAN, |(_, value)| *value);
                let most = series.points.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
                let _ = write!(
                    page,
                    "<span><i class=\"swatch\" style=\"background:rgb({red},{green},{blue})\"></i>{} \
                     <small>at last {}, most {}</small></span>",
                    escaped(&series.name),
                    short(last),
                    short(most)
                );
            }
            page += "</div></figure>";
        }
        page += "</div>";
    }
    Ok(page + "</body></html>\n")
}

/// Nothing without a point.
fn chart(panel: &DrawnPanel, captures: &[(f64, String)], span: &Range<f64>) -> Result<Option<String>, XtaskError> {
    let values = panel.series.iter().flat_map(|series| &series.points).map(|(_, value)| *value);
    let Some(most) = values.max_by(f64::total_cmp) else { return Ok(None) };
    let most = if most > 0.0 { most * 1.05 } else { 1.0 };
    let mut svg = String::new();
    let drawn = draw(panel, captures, span, most, &mut svg);
    drawn.map_err(|reason| XtaskError::Usage(format!("the panel {:?} cannot be drawn: {reason}", panel.title)))?;
    Ok(Some(svg))
}

fn draw(
    panel: &DrawnPanel,
    captures: &[(f64, String)],
    span: &Range<f64>,
    most: f64,
    svg: &mut String,
) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::with_string(svg, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&area)
        .margin(6)
        .x_label_area_size(22)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..span.end - span.start, 0.0..most)?;
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(TRANSPARENT).x_labels(8).y_labels(5);
    mesh.x_label_formatter(&|second| format!("{second:.0} s")).y_label_formatter(&|value| short(*value)).draw()?;
    for (at, _) in captures {
        let at = at - span.start;
        chart.draw_series(LineSeries::new([(at, 0.0), (at, most)], CAPTURE.mix(0.35)))?;
    }
    for (series, colour) in panel.series.iter().zip(COLOURS.iter().cycle()) {
        let points = series.points.iter().map(|(at, value)| (at - span.start, *value));
        chart.draw_series(LineSeries::new(points, colour.stroke_width(2)))?;
    }
    drop(chart);
    area.present()?;
    Ok(())
}

/// Three digits that say something.
fn short(value: f64) -> String {
    let size = value.abs();
    let (divided, suffix) = match size {
        size if size >= 1e9 => (value / 1e9, " G"),
        size if size >= 1e6 => (value / 1e6, " M"),
        size if size >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let digits = if divided == divided.trunc() && divided.abs() >= 1.0 || divided == 0.0 {
        0
    } else if divided.abs() >= 10.0 {
        1
    } else if divided.abs() >= 0.1 {
        2
    } else {
        4
    };
    format!("{divided:.digits$}{suffix}")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
