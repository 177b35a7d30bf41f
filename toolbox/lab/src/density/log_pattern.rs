//! Frame times out of what a server writes: a pattern that says where in a line the time stands, and in which unit.
//!
//! `frame took {ms} ms` is text as it stands in the line, with one place for the number; `*` stands for any text. Any
//! part of a line may match. Blanks before and after the number do not matter, since logs line up their columns.

use std::str::FromStr;

/// Where a line has a frame's time.
#[derive(Debug, Clone, PartialEq)]
pub struct LogPattern {
    /// Literal parts before the number, in order; the last one stands right before it.
    before: Vec<String>,
    /// The same after it; the first one stands right behind it.
    after: Vec<String>,
    ms_per_unit: f64,
}

/// What is wrong with a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogPatternError {
    #[error(
        "the pattern {0:?} has no place for the time; write {{ms}}, {{us}}, {{ns}} or {{s}} where the number stands, such as 'frame took {{ms}} ms'"
    )]
    NoPlace(String),
    #[error("the pattern {0:?} has more than one place for the time; use * for numbers that are not meant")]
    TwoPlaces(String),
}

const PLACES: [(&str, f64); 4] = [("{s}", 1e3), ("{ms}", 1.0), ("{us}", 1e-3), ("{ns}", 1e-6)];

impl FromStr for LogPattern {
    type Err = LogPatternError;

    fn from_str(text: &str) -> Result<Self, LogPatternError> {
        let mut places = PLACES.iter().flat_map(|(place, ms)| text.match_indices(place).map(move |found| (found, *ms)));
        let ((at, place), ms_per_unit) = places.next().ok_or_else(|| LogPatternError::NoPlace(text.to_owned()))?;
        if places.next().is_some() {
            return Err(LogPatternError::TwoPlaces(text.to_owned()));
        }
        let parts = |text: &str| text.split('*').map(str::to_owned).collect();
        Ok(Self { before: parts(&text[..at]), after: parts(&text[at + place.len()..]), ms_per_unit })
    }
}

impl LogPattern {
    /// The time in a line (ms); the first place that matches counts.
    pub(crate) fn find_ms(&self, line: &str) -> Option<f64> {
        numbers_in(line).find_map(|(start, end, number)| {
            let matches = self.is_before(&line[..start]) && self.is_after(&line[end..]);
            matches.then_some(number * self.ms_per_unit)
        })
    }

    fn is_before(&self, text: &str) -> bool {
        let Some((last, earlier)) = self.before.split_last() else { return true };
        let Some(rest) = text.trim_end().strip_suffix(last.trim_end()) else { return false };
        in_order(earlier, rest)
    }

    fn is_after(&self, text: &str) -> bool {
        let Some((first, later)) = self.after.split_first() else { return true };
        let Some(rest) = text.trim_start().strip_prefix(first.trim_start()) else { return false };
        in_order(later, rest)
    }
}

/// Whether the text has all these parts, one behind the other.
fn in_order(parts: &[String], text: &str) -> bool {
    let behind = |text: &str, part: &String| Some(text.len() - text.find(part.as_str())? - part.len());
    let mut rest = text;
    parts.iter().all(|part| match behind(rest, part) {
        Some(left) => {
            rest = &rest[rest.len() - left..];
            true
        }
        None => false,
    })
}

/// Every number of a line without a sign, with where it begins and ends.
fn numbers_in(line: &str) -> impl Iterator<Item = (usize, usize, f64)> {
    let is_part = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let mut at = 0;
    std::iter::from_fn(move || {
        let bytes = line.as_bytes();
        let start = at + bytes[at..].iter().position(u8::is_ascii_digit)?;
        let mut end = start + bytes[start..].iter().take_while(|&&byte| is_part(byte)).count();
        // A point may end the sentence.
        end -= bytes[start..end].iter().rev().take_while(|&&byte| byte == b'.').count();
        at = end;
        Some((start, end, line[start..end].parse::<f64>().unwrap_or(f64::NAN)))
    })
    .filter(|(_, _, number)| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, line: &str, expect: Option<f64>) {
        let pattern: LogPattern = pattern.parse().unwrap();
        let found = pattern.find_ms(line);
        let is_same = match (found, expect) {
            (Some(found), Some(expect)) => (found - expect).abs() < 1e-9,
            (found, expect) => found == expect,
        };
        assert!(is_same, "{line:?}: {found:?} and not {expect:?}");
    }

    #[test]
    fn the_number_in_its_place_is_found() {
        check("frame took {ms} ms", "12:00:01 INFO frame took 3.25 ms of 7.8", Some(3.25));
        check("frame took {ms} ms", "frame took     3.25 ms", Some(3.25));
        check("frame took {ms} ms", "frame took long", None);
        check("frame took {ms} ms", "tick 4: 3.25 ms", None);
        check("took {us}us", "frame 17 took 1500us", Some(1.5));
        check("{s} s", "frame 7: 0.016 s", Some(16.0));
        check("ns={ns}", "tick=4 ns=2000000", Some(2.0));
        check("frame={ms}", "frame=4.", Some(4.0));
        check("{ms}", "no number", None);
        check("{ms}", "", None);
        check("größe {ms} ms", "größe 2 ms", Some(2.0));
    }

    #[test]
    fn stars_stand_for_what_is_not_meant() {
        check("frame * took {ms} ms", "frame 17 took 5 ms", Some(5.0));
        check("frame *took {ms} ms", "took 5 ms frame 17", None);
        check("players * frame {ms} of *", "players 40 frame 5 of 7.8", Some(5.0));
        check("[{ms} ms]*world 3", "[5 ms] in world 3", Some(5.0));
        check("[{ms} ms]*world 3", "[5 ms] in world 4", None);
        check("*{ms}", "frame 5", Some(5.0));
    }

    #[test]
    fn a_pattern_has_one_place() {
        let error = |pattern: &str| pattern.parse::<LogPattern>().unwrap_err().to_string();
        assert!(error("frame took ms").contains("{ms}, {us}, {ns} or {s}"));
        assert!(error("{ms} of {ms}").contains("more than one place"));
        assert!(error("{ms} or {us}").contains("more than one place"));
    }
}
