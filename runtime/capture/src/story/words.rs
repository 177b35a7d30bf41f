//! Names made safe to print, and figures with their units.

use throng_redact::is_invisible;

/// Longer names are cut: a name that does not fit a table hides what stands beside it.
const NAME_CHARS_MAX: usize = 48;
/// The same for sentences: notes and log lines.
const TEXT_CHARS_MAX: usize = 160;

/// A name as it may be printed: control characters and invisible ones escaped, at most 48 characters; `?` if it is
/// empty.
pub fn name(raw: &str) -> String {
    if raw.is_empty() { "?".into() } else { escape(raw, NAME_CHARS_MAX) }
}

/// The same for sentences, at most 160 characters; may be empty.
pub fn text(raw: &str) -> String {
    escape(raw, TEXT_CHARS_MAX)
}

fn escape(raw: &str, chars_max: usize) -> String {
    let mut escaped = String::new();
    let mut chars = 0;
    for char in raw.chars() {
        let before = escaped.len();
        if is_invisible(char) {
            escaped.extend(char.escape_default())
        } else {
            escaped.push(char)
        }
        chars += escaped[before..].chars().count();
        if chars > chars_max {
            escaped.truncate(before);
            escaped.push('…');
            break;
        }
    }
    escaped
}

/// A time with three figures, such as `41.3 ms`, `1.22 ms`, `50 ms`, `12.0 us`.
pub fn time(ns: u64) -> String {
    match ns {
        0 => "0 ms".into(),
        1..100_000 => format!("{:.1} us", ns as f64 / 1e3),
        100_000..10_000_000 => format!("{:.2} ms", ns as f64 / 1e6),
        10_000_000..10_000_000_000 => format!("{} ms", one_decimal(ns as f64 / 1e6)),
        _ => format!("{} s", one_decimal(ns as f64 / 1e9)),
    }
}

/// Decimal bytes, as rates and live memory are told: `10.2 MB`, `9.3 kB`.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..100_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        100_000..10_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Binary bytes, as single allocations are told: `300 KiB`.
pub fn binary_bytes(bytes: u64) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{} KiB", one_decimal(bytes as f64 / 1_024.0)),
        _ => format!("{} MiB", one_decimal(bytes as f64 / 1_048_576.0)),
    }
}

/// Bytes per second with two decimals below 1 MB/s, so that slow leaks have a figure.
pub fn rate(bytes_per_s: f64) -> String {
    match bytes_per_s {
        ..1e3 => format!("{bytes_per_s:.0} B/s"),
        ..1e5 => format!("{:.1} kB/s", bytes_per_s / 1e3),
        ..1e6 => format!("{:.2} MB/s", bytes_per_s / 1e6),
        _ => format!("{:.1} MB/s", bytes_per_s / 1e6),
    }
}

pub fn percent(part: u64, whole: u64) -> String {
    let percent = if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
    if percent > 0.0 && percent < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// Milliseconds for programs: to the nanosecond.
pub fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// `2026-11-21 05:26:22 UTC`.
pub fn date(unix_s: u64) -> String {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    // Years from March, so that the leap day is the last of a year; 400 years have 146,097 days. Method: Howard
    // Hinnant, civil_from_days.
    let day = days + 719_468;
    let (era, day_of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day_of_month:02} {:02}:{:02}:{:02} UTC",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

fn one_decimal(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_move_the_cursor_or_hide_are_escaped() {
        assert_eq!(name("ai\x1b[2J\nx\u{202e}"), "ai\\u{1b}[2J\\nx\\u{202e}");
        assert_eq!(name(""), "?");
        assert_eq!(name("größe.ok"), "größe.ok");
        let long = name(&"x".repeat(5_000));
        assert_eq!((long.chars().count(), long.chars().last()), (49, Some('…')));
    }

    #[test]
    fn figures_have_their_units() {
        let times = [0, 900, 12_000, 999_000, 1_220_000, 41_300_000, 50_000_000, 61_000_000_000].map(time);
        assert_eq!(times, ["0 ms", "0.9 us", "12.0 us", "1.00 ms", "1.22 ms", "41.3 ms", "50 ms", "61 s"]);
        assert_eq!([300 << 10, 1_500_000].map(binary_bytes), ["300 KiB", "1.4 MiB"]);
        assert_eq!([410_000.0, 10_200_000.0].map(rate), ["0.41 MB/s", "10.2 MB/s"]);
        assert_eq!([(1, 1_000), (22, 100), (0, 0)].map(|(part, whole)| percent(part, whole)), ["0.1 %", "22 %", "0 %"]);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(date(1_795_238_782), "2026-11-21 05:26:22 UTC");
        assert_eq!(date(u64::MAX).len(), "584554051223-11-09 07:00:15 UTC".len());
    }
}
