//! Lines on one plane from zero: the figures of seconds, and those of numbers of instances.

use std::ops::Range;

use plotters::prelude::*;

use super::{Chart, ChartError, SHADE, configure, draw, hex, text};

/// A line of a chart: points by ascending `x`.
pub(crate) struct Line {
    pub name: String,
    pub colour: RGBColor,
    pub stroke: Stroke,
    pub points: Vec<(f64, f64)>,
}

/// How a line is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stroke {
    Solid,
    /// What nobody measured: a budget, a forecast.
    Dashed,
    /// With a dot at each point, where there are few.
    Dotted,
}

/// A chart without its lines.
pub(crate) struct LineChart<'a> {
    pub title: &'a str,
    pub note: &'a str,
    pub size: (u32, u32),
    pub x: Range<f64>,
    pub x_label: &'a dyn Fn(&f64) -> String,
    /// What is beyond runs along the edge.
    pub top: f64,
    /// From one `x` to another.
    pub shade: Option<(f64, f64)>,
}

impl LineChart<'_> {
    /// Draws it for one of two in a row; who has the row to itself says so.
    pub fn draw(self, lines: &[Line]) -> Result<Chart, ChartError> {
        let Self { title, note, size, x, x_label, top, shade } = self;
        let svg = draw(title, size, |area| {
            let mut chart = ChartBuilder::on(area)
                .margin_top(8)
                .margin_right(14)
                .x_label_area_size(24)
                .y_label_area_size(52)
                .build_cartesian_2d(x, 0.0..top)
                .map_err(text)?;
            if let Some((begin, end)) = shade {
                chart.draw_series([Rectangle::new([(begin, 0.0), (end, top)], SHADE.filled())]).map_err(text)?;
            }
            configure(&mut chart, x_label)?;
            for line in lines {
                let points: Vec<(f64, f64)> = line.points.iter().map(|&(x, y)| (x, y.min(top))).collect();
                let style = line.colour.stroke_width(2);
                if line.stroke == Stroke::Dashed {
                    chart.draw_series(DashedLineSeries::new(points, 7, 5, style)).map_err(text)?;
                    continue;
                }
                chart.draw_series(LineSeries::new(points.iter().copied(), style)).map_err(text)?;
                if line.stroke == Stroke::Dotted {
                    let dots = points.iter().map(|point| Circle::new(*point, 3, line.colour.filled()));
                    chart.draw_series(dots).map_err(text)?;
                }
            }
            Ok(())
        })?;
        let legend = lines.iter().map(|line| (line.name.clone(), hex(line.colour))).collect();
        Ok(Chart { title: title.to_owned(), note: note.to_owned(), legend, wide: false, svg })
    }
}
