//! What differs from one instance to the next, written into the words of its command.

/// The instance's number, from 1.
const INDEX: &str = "{index}";
/// A port for its players, free for UDP and TCP when it starts.
const PORT: &str = "{port}";
/// Another one, for its metrics.
const METRICS_PORT: &str = "{metrics_port}";
/// How many worlds it is to hold: 1, or as many as are tried in one process.
pub(crate) const WORLDS: &str = "{worlds}";

/// An instance's place among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub index: u32,
    pub port: u16,
    pub metrics_port: u16,
    pub worlds: u32,
}

impl Place {
    /// The text with everything of this place written into it. Other braces stay as they are.
    pub fn fill(&self, text: &str) -> String {
        text.replace(INDEX, &self.index.to_string())
            .replace(PORT, &self.port.to_string())
            .replace(METRICS_PORT, &self.metrics_port.to_string())
            .replace(WORLDS, &self.worlds.to_string())
    }
}

/// Which of those that tell instances apart are in the text.
pub(crate) fn apart_in(text: &str) -> impl Iterator<Item = &'static str> {
    [INDEX, PORT, METRICS_PORT].into_iter().filter(move |name| text.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_filled_and_other_braces_stay() {
        let place = Place { index: 3, port: 20_004, metrics_port: 20_005, worlds: 7 };
        let check = |text: &str, expect| assert_eq!(place.fill(text), expect);
        check("--address=0.0.0.0:{port}", "--address=0.0.0.0:20004");
        check("http://127.0.0.1:{metrics_port}/m{index}", "http://127.0.0.1:20005/m3");
        check("{worlds} {index}{index} {\"a\":1} {other} ${x}", "7 33 {\"a\":1} {other} ${x}");
        assert!(apart_in("a {port} {metrics_port}").eq([PORT, METRICS_PORT]));
        assert_eq!(apart_in("{worlds} {ports}").count(), 0);
    }
}
