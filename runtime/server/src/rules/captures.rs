//! `[captures]`: what all captures together may take on the disk.

use serde::Deserialize;
use throng_profiler::rules::Rules;

use super::triggers::check_disk_budget;
use crate::settings::{Checks, Section};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Captures {
    disk_budget_mb: Option<i64>,
}

impl Captures {
    pub(super) fn apply(&self, rules: &mut Rules) {
        if let Some(mb) = self.disk_budget_mb {
            rules.captures_disk_budget_bytes = (mb as u64) << 20;
        }
    }
}

impl Section for Captures {
    fn check(&self, checks: &mut Checks<'_>) {
        check_disk_budget(self.disk_budget_mb, checks);
    }
}
