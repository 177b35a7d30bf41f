//! Dark ground: what each colour of a chart or a picture is where the reader wants pages dark.
//!
//! The charts know nothing of themes: they are coloured anew by the attributes that the drawing library wrote.

use plotters::style::RGBColor;

use crate::charts::{self, hex};

pub(crate) const GROUND: RGBColor = RGBColor(255, 255, 255);
pub(crate) const INK: RGBColor = RGBColor(34, 36, 31);
pub(crate) const SOFT: RGBColor = charts::LABEL;
/// Of what is not ours and only there to be compared with.
pub(crate) const NEUTRAL: RGBColor = RGBColor(188, 193, 188);
pub(crate) const GOOD: RGBColor = RGBColor(29, 111, 66);

/// Every colour, and what it is on dark ground.
const DARK: [(RGBColor, RGBColor); 13] = [
    (GROUND, RGBColor(13, 17, 23)),
    (INK, RGBColor(230, 232, 228)),
    (SOFT, RGBColor(150, 156, 160)),
    (NEUTRAL, RGBColor(82, 90, 98)),
    (GOOD, RGBColor(46, 140, 88)),
    (charts::RULE, RGBColor(48, 54, 61)),
    (charts::SHADE, RGBColor(25, 35, 36)),
    (charts::TEAL, RGBColor(57, 184, 170)),
    (charts::ORANGE, RGBColor(240, 138, 75)),
    (charts::BLUE, RGBColor(112, 164, 240)),
    (charts::RED, RGBColor(240, 112, 128)),
    (charts::PURPLE, RGBColor(186, 150, 226)),
    (charts::OLIVE, RGBColor(190, 187, 84)),
];

/// Rules of style for what is drawn, to stand where dark ground is asked for.
pub(crate) fn rules() -> String {
    let rule = |(light, dark): &(RGBColor, RGBColor)| {
        let (light, dark) = (hex(*light), hex(*dark));
        format!("  [fill=\"{light}\"] {{ fill: {dark}; }} [stroke=\"{light}\"] {{ stroke: {dark}; }}\n")
    };
    DARK.iter().map(rule).collect()
}

/// The same for marks of legends, whose colour is the background of an element.
pub(crate) fn rules_of_legends() -> String {
    let rule = |(light, dark): &(RGBColor, RGBColor)| {
        format!("  [style*=\"{}\"] {{ background: {} !important; }}\n", hex(*light), hex(*dark))
    };
    DARK.iter().map(rule).collect()
}
