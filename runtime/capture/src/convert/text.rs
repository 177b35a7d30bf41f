//! Text of a length that a format has room for.

/// At most `bytes_max` bytes of it, cut between characters.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut len = text.len().min(bytes_max);
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    &text[..len]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_between_characters() {
        assert_eq!((cut("aé", 2), cut("aé", 3), cut("aé", 9), cut("é", 1)), ("a", "aé", "aé", ""));
    }
}
