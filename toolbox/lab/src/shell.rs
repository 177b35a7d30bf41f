//! Shell: commands that a person copies from a page into a terminal.

/// A word as a POSIX shell reads it back, in quotes where it needs them.
pub fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:,+=@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Promise: whatever a folder is called, the command that a page shows is about it.
    #[test]
    fn a_shell_reads_the_word_that_was_meant() {
        assert_eq!(shell_word("reports/daily/2026-11-26"), "reports/daily/2026-11-26");
        for word in
            ["", "two words", "it's", "''", "$HOME", "a;b", "*", "~", "!", "back\\slash", "d\u{e9}j\u{e0}", "a\nb"]
        {
            let line = format!("printf %s {}", shell_word(word));
            let said = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
            assert_eq!(String::from_utf8(said.stdout).unwrap(), word, "{line}");
        }
    }
}
