//! The picture of an interval: a bar beside the line of no difference.

use maud::{Markup, html};

/// Width of the picture, and of what is drawn in it at least (pixels).
const WIDTH: f64 = 90.0;
const WIDTH_MIN: f64 = 2.0;
/// What the picture reaches to at most (percent): what is farther away ends at its edge.
const DRAWN_MAX: f64 = 15.0;

/// What pictures of one table reach to (percent), so that all of them have one scale: to the farthest of their ends, and to `least`.
pub(super) fn reach(ends: impl Iterator<Item = f64>, least: f64) -> f64 {
    ends.fold(least, |farthest, end| farthest.max(end.abs())).min(DRAWN_MAX)
}

/// From low to high beside 0: to the right is slower. `label`: the same in words.
pub(super) fn drawn(low: f64, high: f64, reach: f64, label: &str) -> Markup {
    let (left, width) = drawn_between(low, high, reach);
    html! {
        svg.interval width=(WIDTH) height="12" role="img" aria-label=(label) {
            rect x=(format!("{left:.1}")) y="3" width=(format!("{width:.1}")) height="6" {}
            line x1=(WIDTH / 2.0) x2=(WIDTH / 2.0) y1="0" y2="12" {}
        }
    }
}

/// Left end and width of the bar (pixels), within the picture and never too thin to be seen.
fn drawn_between(low: f64, high: f64, reach: f64) -> (f64, f64) {
    let x = |percent: f64| WIDTH * (0.5 + 0.5 * (percent / reach).clamp(-1.0, 1.0));
    let left = x(low).min(WIDTH - WIDTH_MIN);
    (left, (x(high) - left).max(WIDTH_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise: an interval is seen wherever it lies.
    #[test]
    fn intervals_are_drawn_within_their_picture() {
        let check = |low, high, expect: (f64, f64)| {
            let (left, width) = drawn_between(low, high, 10.0);
            assert!(
                (left - expect.0).abs() < 1e-9 && (width - expect.1).abs() < 1e-9,
                "{low} to {high}: {left}, {width}"
            );
        };
        check(-5.0, 5.0, (22.5, 45.0));
        check(0.0, 10.0, (45.0, 45.0));
        check(16.0, 18.0, (88.0, 2.0));
        check(-18.0, -16.0, (0.0, 2.0));
        check(-40.0, 60.0, (0.0, 90.0));
        check(1.0, 1.0, (49.5, 2.0));
    }
}
