//! Settings files and rules files: whatever an operator, or a broken disk, wrote into one.
//!
//! Promise: a file is read or told line by line, with its name in front; it never panics. What rules say goes on top of
//! a game's own.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use serde::Deserialize;
use throng::{
    rules::{RuleNames, ServerRules},
    settings::{Checks, Section, Settings},
};
use throng_replication::ReplicationRules;

/// What a game's rules file may speak of.
static NAMES: LazyLock<RuleNames> = LazyLock::new(|| RuleNames::of(&frontier::schema(), vec!["frontier".to_owned()]));

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wolves {
    wolves: u32,
    speed_m_per_s: f32,
    names: Vec<String>,
}

impl Section for Wolves {
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
            settings.game::<Wolves>().err()
        }
        Err(error) => Some(error),
    };
    if let Some(error) = told {
        assert!(error.to_string().starts_with("throng.toml:"));
    }
    match ServerRules::parse("rules.toml", text, &NAMES) {
        Ok(rules) => {
            let game = rules.replication.complete(ReplicationRules::default());
            assert!(game.catch_up_m >= 1.0 && (0.1..=3_600.0).contains(&game.keepalive_s));
            assert!(game.tiers.is_sorted_by(|near, far| near.to_m < far.to_m));
        }
        Err(error) => assert!(error.to_string().starts_with("rules.toml:")),
    }
});
