//! Redaction: a capture for strangers.
//!
//! Names of scopes, threads and files come from the game's makers and stay; log texts and notes may hold what a player
//! wrote, where they play from, and keys, and pass the filter of [`throng_redact`].

use throng_redact::{free_text, visible};

use crate::model::Capture;

impl Capture {
    /// The capture with its free text cleaned (see [`crate::redact`]), and saying so in
    /// [`crate::model::About::has_free_text`].
    pub fn without_free_text(mut self) -> Capture {
        for line in &mut self.logs {
            line.level = visible(&line.level).into_owned();
            line.target = visible(&line.target).into_owned();
            line.text = free_text(&line.text);
        }
        let trigger = &mut self.about.trigger;
        trigger.note = free_text(&trigger.note);
        trigger.name = visible(&trigger.name).into_owned();
        // Shown, not judged: these name code and programs.
        let about = &mut self.about;
        let about = [&mut about.build, &mut about.game, &mut about.switches_why_not].into_iter();
        let host_threads = self.host_threads.iter_mut().flat_map(|thread| [&mut thread.name, &mut thread.process]);
        let sites = self
            .sites
            .iter_mut()
            .flat_map(|site| [&mut site.name, &mut site.subsystem, &mut site.category, &mut site.file]);
        let names = about
            .chain(sites)
            .chain(self.threads.iter_mut().map(|thread| &mut thread.name))
            .chain(self.worlds.iter_mut().map(|world| &mut world.name))
            .chain(self.locks.iter_mut().map(|lock| &mut lock.name))
            .chain(self.counters.iter_mut().map(|counter| &mut counter.name))
            .chain(self.processes.iter_mut().map(|process| &mut process.name))
            .chain(host_threads);
        names.for_each(|name| *name = visible(name).into_owned());
        self.about.has_free_text = false;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_capture_for_strangers_has_no_free_text() {
        let mut capture = sample::hostile();
        capture.logs[0].text = "\"Mallory\" at 203.0.113.9:4000\u{1b}[31m".to_owned();
        capture.about.trigger.note = "asked by 2001:db8::7".to_owned();
        capture.host_threads[1].process.push_str("\u{1b}[2J");
        let clean = capture.clone().without_free_text();
        assert!(!clean.about.has_free_text);
        assert_eq!(clean.logs[0].text, "<text> at <address>\\u{1b}[31m");
        assert_eq!(clean.about.trigger.note, "asked by <address>");
        assert_eq!(clean.processes, sample::small().processes);
        assert_eq!(clean.host_threads[1].process, "backup\\u{1b}[2J", "names of programs stay, made visible");
        assert_eq!(clean.threads[0].events, capture.threads[0].events);
        check_visible(&serde_json::to_value(&clean).unwrap());
    }

    fn check_visible(value: &serde_json::Value) {
        match value {
            serde_json::Value::String(text) => assert_eq!(visible(text), text.as_str()),
            serde_json::Value::Array(values) => values.iter().for_each(check_visible),
            serde_json::Value::Object(fields) => fields.values().for_each(check_visible),
            _ => {}
        }
    }
}
