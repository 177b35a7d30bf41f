//! Student's t: how far a mean of few may be off, for whoever holds two runs against each other.
//!
//! Pure functions of numbers. Cost: some 10 µs, since it is found by bisection.

/// Beyond which value Student's t of so many degrees of freedom [>= 1] lies, on either side, with this probability; by bisection on
/// the closed form for whole degrees (Abramowitz and Stegun 26.7.3 and 26.7.4).
pub fn student_two_sided(probability: f64, degrees: u32) -> f64 {
    let degrees = degrees.max(1);
    let (mut low, mut high) = (0.0_f64, 1e9_f64);
    for _ in 0..200 {
        let middle = if high > 1e3 { (low.max(1.0) * high).sqrt() } else { (low + high) / 2.0 };
        if 1.0 - student_within(middle, degrees) > probability { low = middle } else { high = middle }
    }
    high
}

/// Probability that |t| is at most so much.
fn student_within(t: f64, degrees: u32) -> f64 {
    let angle = (t / f64::from(degrees).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let square = cosine * cosine;
    let is_odd = degrees % 2 == 1;
    let (mut term, mut sum) = if is_odd { (cosine, cosine) } else { (1.0, 1.0) };
    let mut n = if is_odd { 2.0 } else { 1.0 };
    let terms = if is_odd { degrees.saturating_sub(1) / 2 } else { degrees / 2 };
    for _ in 1..terms {
        term *= square * n / (n + 1.0);
        sum += term;
        n += 2.0;
    }
    match (is_odd, degrees) {
        (true, 1) => 2.0 / std::f64::consts::PI * angle,
        (true, _) => 2.0 / std::f64::consts::PI * (angle + sine * sum),
        (false, _) => sine * sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of tables.
    #[test]
    fn students_t_is_that_of_tables() {
        let check = |probability: f64, degrees: u32, expect: f64| {
            let found = student_two_sided(probability, degrees);
            assert!((found / expect - 1.0).abs() < 1e-3, "{probability} {degrees}: {found}, {expect}");
        };
        check(0.05, 1, 12.706);
        check(0.05, 2, 4.3027);
        check(0.05, 9, 2.2622);
        check(0.01, 10, 3.1693);
        check(0.001, 29, 3.6594);
        check(0.001, 3, 12.924);
    }
}
