//! Input number: which of two came first, where numbers wrap at 65,536.

/// True when `number` is `other` or comes after it. Of all that wait for an answer there are a few hundred, so the shorter
/// way round is the true one.
pub(crate) fn is_at_or_after(number: u16, other: u16) -> bool {
    number.wrapping_sub(other) < 0x8000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_way_round_is_the_true_one() {
        let check = |number, other, expect| assert_eq!(is_at_or_after(number, other), expect, "{number} and {other}");
        check(7, 7, true);
        check(8, 7, true);
        check(7, 8, false);
        check(0, 65_535, true);
        check(65_535, 0, false);
        check(32_767, 0, true);
        check(32_768, 0, false);
    }
}
