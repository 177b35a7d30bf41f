//! Quantile: medians and percentiles of what was measured.

/// The value below which a `share` [0 to 1] of all lie: one of them, the nearest by rank, of two that are equally near
/// the larger. 0 if there is none. Sorts.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len().saturating_sub(1) as f64 * share).round() as usize;
    values.get(rank).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let check = |values: &[f64], share, expect| assert_eq!(quantile(&mut values.to_vec(), share), expect);
        check(&[3.0, 1.0, 2.0], 0.5, 2.0);
        check(&[4.0, 3.0, 1.0, 2.0], 0.5, 3.0);
        check(&[3.0, 1.0, 2.0], 0.0, 1.0);
        check(&[3.0, 1.0, 2.0], 1.0, 3.0);
        check(&[], 0.5, 0.0);
    }
}
