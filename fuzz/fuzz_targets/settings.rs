//! Settings files: whatever an operator, or a broken disk, wrote into one.
//!
//! Promise: a file is read or told line by line, with its name in front; it never panics.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde::Deserialize;
use throng::settings::{Checks, Section, Settings};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rules {
    wolves: u32,
    speed_m_per_s: f32,
    names: Vec<String>,
}

impl Section for Rules {
    fn check(&self, checks: &mut Checks<'_>) {
        checks.range("wolves", self.wolves, 0..=1_000, "wolves");
        checks.range("speed_m_per_s", self.speed_m_per_s, 0.1..=20.0, "m/s");
        if self.names.len() > 3 {
            checks.mistake("names", "are too many; remove some");
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let told = match Settings::parse("throng.toml", text) {
        Ok(settings) => {
            assert!((1..=65_535).contains(&settings.server.clients_max));
            assert!(settings.replication.radii().is_none_or(|radii| radii.leave_m >= radii.enter_m));
            settings.game::<Rules>().err()
        }
        Err(error) => Some(error),
    };
    if let Some(error) = told {
        assert!(error.to_string().starts_with("throng.toml:"));
    }
});
