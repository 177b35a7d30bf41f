//! Curves: what something costs at several sizes. Each is labelled where it ends, so that no legend is looked up.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Chart, ChartError, configure, draw, short, text, top_above};

/// Room for a letter of a label, and between a curve's end and its label (px).
const LETTER_PX: u32 = 7;
const LABEL_GAP_PX: u32 = 10;

/// One curve: `(size, cost)`, the smallest size first.
pub(crate) struct CurveLine {
    /// What it is, and where it ends, with its unit.
    pub label: String,
    pub colour: RGBColor,
    pub points: Vec<(f64, f64)>,
}

pub(crate) fn draw_curve(title: &str, note: &str, size: (u32, u32), lines: &[CurveLine]) -> Result<Chart, ChartError> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let largest = points().map(|(size, _)| *size).fold(1.0, f64::max);
    let top = top_above(points().map(|(_, cost)| *cost));
    let letters = lines.iter().map(|line| line.label.chars().count()).max().unwrap_or(0) as u32;
    let svg = draw(title, size, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin_top(8)
            .margin_right(LABEL_GAP_PX + letters * LETTER_PX)
            .x_label_area_size(24)
            .y_label_area_size(36)
            .build_cartesian_2d(0.0..largest, 0.0..top)
            .map_err(text)?;
        configure(&mut chart, &short)?;
        for CurveLine { label, colour, points } in lines {
            chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2))).map_err(text)?;
            chart.draw_series(points.iter().map(|point| Circle::new(*point, 3, colour.filled()))).map_err(text)?;
            let font = ("sans-serif", 15).into_font();
            let style = TextStyle::from(font).color(colour).pos(Pos::new(HPos::Left, VPos::Center));
            let end = points
                .last()
                .map(|end| EmptyElement::at(*end) + Text::new(label.clone(), (LABEL_GAP_PX as i32, 0), style));
            chart.draw_series(end).map_err(text)?;
        }
        Ok(())
    })?;
    Ok(Chart { title: title.to_owned(), note: note.to_owned(), legend: Vec::new(), wide: false, svg })
}

#[cfg(test)]
mod tests {
    use super::super::{BLUE, TEAL};
    use super::*;

    #[test]
    fn a_curve_says_what_it_is_where_it_ends() {
        let line = |label: &str, colour, cost| CurveLine {
            label: label.to_owned(),
            colour,
            points: vec![(500.0, cost / 4.0), (2_000.0, cost)],
        };
        let lines = [line("5 ms in memory", TEAL, 5.0), line("11 ms over UDP", BLUE, 11.0)];
        let svg = draw_curve("Time", "ms", (400, 200), &lines).unwrap().svg;
        let labels = ["5 ms in memory", "11 ms over UDP"].map(|label| svg.matches(label).count());
        let (points, curves) = (svg.matches("<circle").count(), svg.matches("stroke-width=\"2\"").count());
        assert_eq!((labels, points, curves), ([1, 1], 4, 2), "{svg}");
    }

    #[test]
    fn nothing_measured_is_drawn_as_nothing() {
        assert!(draw_curve("Time", "ms", (400, 200), &[]).unwrap().svg.contains("<svg "));
    }
}
