//! Fit: by how much what bots are told has to be more or less, for them to be like recorded players.
//!
//! A game says which of its bots' options makes more of which measure. Each is taken for proportional, by itself; it is a step, and
//! with the next recording of bots the next one can be taken. What is within a tenth stays as it is.

use serde::Serialize;

use crate::{
    comparison::{Comparison, Row},
    profile::Sort,
    verdict::Verdict,
};

/// How an option of bots is to be changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fit {
    pub option: String,
    pub measure: String,
    /// Times what these bots were given. `None` where they never do it: then it is more than none, and a step shows how much.
    pub factor: Option<f64>,
    /// What it is to be, where that follows from the players alone.
    pub value: Option<f64>,
}

/// The option of every game's bots that says how often they send an input.
const HZ: &str = "hz";
const INPUTS: &str = "inputs";

impl Comparison {
    /// What bots (`b`) would have to be told to be like the players (`a`). `options`: name and measure of each that the game's bots
    /// have. Those of which too little was played are left as they are.
    pub fn fit<'o>(&self, options: impl IntoIterator<Item = (&'o str, &'o str)>) -> Vec<Fit> {
        fitted(options).filter_map(|(option, measure)| self.fit_one(option, measure)).collect()
    }

    /// Measures of these options of which too little was played to say whether they are to be changed.
    pub fn unfitted<'o>(&self, options: impl IntoIterator<Item = (&'o str, &'o str)>) -> Vec<&'o str> {
        let is_unclear = |measure: &str| self.row(measure).is_none_or(|row| row.verdict == Verdict::Unclear);
        fitted(options).map(|(_, measure)| measure).filter(|measure| is_unclear(measure)).collect()
    }

    /// None of what neither side did, or could be told of neither.
    fn row(&self, measure: &str) -> Option<&Row> {
        self.rows.iter().find(|row| *row.measure.name == *measure && row.measure.sort != Sort::Times)
    }

    fn fit_one(&self, option: &str, measure: &str) -> Option<Fit> {
        let row = self.row(measure)?;
        let (a, b) = (row.a?, row.b?);
        let value = (option == HZ).then(|| a.round().clamp(1.0, 1_000.0));
        let factor = (b > 0.0).then(|| a / b);
        row.verdict.is_named().then(|| Fit { option: option.to_owned(), measure: measure.to_owned(), factor, value })
    }
}

/// The options of a game's bots, and before them that of every game's.
fn fitted<'o>(options: impl IntoIterator<Item = (&'o str, &'o str)>) -> impl Iterator<Item = (&'o str, &'o str)> {
    [(HZ, INPUTS)].into_iter().chain(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{comparison::Side, profile::Measure};

    #[test]
    fn what_differs_is_fitted_and_the_rest_stays() {
        let row = |name: &str, a: f64, b: f64, verdict| Row {
            measure: Measure::new(Sort::Packets, name),
            verdict,
            a: Some(a),
            b: Some(b),
            difference_percent: None,
            low_percent: None,
            high_percent: None,
            in_pairs: false,
        };
        let side = Side { length_s: 1.0, players: 1, played_s: 1.0, players_at_a_time: 1.0, shared_share: 0.0 };
        let rows = vec![
            row("inputs", 59.7, 20.0, Verdict::Less),
            row("metres", 2.0, 2.5, Verdict::More),
            row("shots", 1.0, 1.05, Verdict::Within),
            row("deaths", 1.0, 3.0, Verdict::Unclear),
            row("jumps", 0.4, 0.0, Verdict::Less),
            row("waves", 0.0, 0.4, Verdict::More),
        ];
        let comparison = Comparison {
            a: side.clone(),
            b: side,
            rows,
            places: None,
            named: vec![],
            remarks: vec![],
            lacking: vec![],
        };
        let options = [
            ("pace", "metres"),
            ("shots", "shots"),
            ("risk", "deaths"),
            ("none", "nothing of that name"),
            ("hops", "jumps"),
            ("manners", "waves"),
        ];
        let fits = comparison.fit(options);
        let told: Vec<_> = fits.iter().map(|fit| (fit.option.as_str(), fit.value)).collect();
        assert_eq!(told, [("hz", Some(60.0)), ("pace", None), ("hops", None), ("manners", None)]);
        assert_eq!(comparison.unfitted(options), ["deaths", "nothing of that name"]);
        let factors: Vec<_> = fits[1..].iter().map(|fit| fit.factor).collect();
        // What bots never do no factor brings about, and it is the largest difference of all.
        assert_eq!(factors, [Some(0.8), None, Some(0.0)]);
    }
}
