//! `[triggers.…]`: one section per kind. They differ in the key of their threshold, which says its unit.

use serde::Deserialize;
use throng_capture::model::{TriggerKind, Unit};
use throng_profiler::rules::{HISTORY_S, Rules, TriggerRule};

use crate::settings::document::Document;
use crate::settings::{Checks, Mistake, Section};

/// What is read of every kind's section.
trait TriggerSection: Section {
    fn apply(&self, rule: &mut TriggerRule);
}

/// Puts what the file says into the rules.
pub(super) fn read(document: &Document<'_>, rules: &mut Rules, mistakes: &mut Vec<Mistake>) {
    for kind in TriggerKind::ALL {
        let read = match kind {
            // What these allow is said under `[budgets]`, by name.
            TriggerKind::Subsystem | TriggerKind::Scope => read_as::<WithoutThreshold>,
            TriggerKind::Leak => read_as::<OverSlowRate>,
            TriggerKind::Manual => read_as::<ByHand>,
            TriggerKind::Crash => read_as::<OfDeath>,
            TriggerKind::StuckTick => read_as::<WhileItIs>,
            _ => match kind.unit() {
                Unit::Nanoseconds => read_as::<OverTime>,
                Unit::BytesPerSecond => read_as::<OverRate>,
                Unit::Bytes => read_as::<OverSize>,
                Unit::Percent => read_as::<OverShare>,
                Unit::None => read_as::<WithoutThreshold>,
            },
        };
        read(document, kind, rules.trigger_mut(kind), mistakes);
    }
}

fn read_as<T: TriggerSection>(
    document: &Document<'_>,
    kind: TriggerKind,
    rule: &mut TriggerRule,
    mistakes: &mut Vec<Mistake>,
) {
    document.section::<T>(&format!("triggers.{}", kind.name()), mistakes).apply(rule);
}

const KB: f64 = 1024.0;
const MB: f64 = 1024.0 * KB;

/// A section of these keys; `threshold` is the kind's own, with its range, its unit and how much of the rule's unit it
/// stands for.
macro_rules! trigger_section {
    ($Name:ident $(, $threshold:ident, $range:expr, $unit:literal, $scale:expr)?) => {
        #[derive(Debug, Default, Deserialize)]
        #[serde(default)]
        struct $Name {
            on: Option<bool>,
            $($threshold: Option<f64>,)?
            cooldown_s: Option<f32>,
            pre_roll_s: Option<f32>,
            post_roll_s: Option<f32>,
            disk_budget_mb: Option<i64>,
        }

        impl Section for $Name {
            fn check(&self, checks: &mut Checks<'_>) {
                $(if let Some(value) = self.$threshold {
                    checks.range(stringify!($threshold), value, $range, $unit);
                })?
                check_cooldown(self.cooldown_s, checks);
                if let Some(value) = self.post_roll_s {
                    // Until then the pre-roll must not be written over.
                    checks.range("post_roll_s", value, 0.0..=HISTORY_S / 2.0, "s");
                }
                check_pre_roll(self.pre_roll_s, checks);
                check_disk_budget(self.disk_budget_mb, checks);
            }
        }

        impl TriggerSection for $Name {
            fn apply(&self, rule: &mut TriggerRule) {
                rule.is_on = self.on.unwrap_or(rule.is_on);
                $(if let Some(value) = self.$threshold {
                    // What was set holds at every rate.
                    (rule.threshold, rule.fits_rate) = ((value * $scale).round() as u64, false);
                })?
                rule.cooldown_s = self.cooldown_s.unwrap_or(rule.cooldown_s);
                rule.pre_roll_s = self.pre_roll_s.unwrap_or(rule.pre_roll_s);
                rule.post_roll_s = self.post_roll_s.unwrap_or(rule.post_roll_s);
                rule.disk_budget_bytes = self.disk_budget_mb.map_or(rule.disk_budget_bytes, |mb| (mb as u64) << 20);
            }
        }
    };
}

/// A capture by hand is saved at once, and always.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ByHand {
    pre_roll_s: Option<f32>,
    disk_budget_mb: Option<i64>,
}

impl Section for ByHand {
    fn check(&self, checks: &mut Checks<'_>) {
        check_pre_roll(self.pre_roll_s, checks);
        check_disk_budget(self.disk_budget_mb, checks);
    }
}

impl TriggerSection for ByHand {
    fn apply(&self, rule: &mut TriggerRule) {
        rule.pre_roll_s = self.pre_roll_s.unwrap_or(rule.pre_roll_s);
        rule.disk_budget_bytes = self.disk_budget_mb.map_or(rule.disk_budget_bytes, |mb| (mb as u64) << 20);
    }
}

/// What is saved while it is so has nothing after it yet.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WhileItIs {
    on: Option<bool>,
    cooldown_s: Option<f32>,
    pre_roll_s: Option<f32>,
    disk_budget_mb: Option<i64>,
}

impl Section for WhileItIs {
    fn check(&self, checks: &mut Checks<'_>) {
        check_cooldown(self.cooldown_s, checks);
        check_pre_roll(self.pre_roll_s, checks);
        check_disk_budget(self.disk_budget_mb, checks);
    }
}

impl TriggerSection for WhileItIs {
    fn apply(&self, rule: &mut TriggerRule) {
        rule.is_on = self.on.unwrap_or(rule.is_on);
        rule.cooldown_s = self.cooldown_s.unwrap_or(rule.cooldown_s);
        rule.pre_roll_s = self.pre_roll_s.unwrap_or(rule.pre_roll_s);
        rule.disk_budget_bytes = self.disk_budget_mb.map_or(rule.disk_budget_bytes, |mb| (mb as u64) << 20);
    }
}

/// The capture of a death lies beside its report, with which it comes and goes.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OfDeath {
    pre_roll_s: Option<f32>,
}

impl Section for OfDeath {
    fn check(&self, checks: &mut Checks<'_>) {
        check_pre_roll(self.pre_roll_s, checks);
    }
}

impl TriggerSection for OfDeath {
    fn apply(&self, rule: &mut TriggerRule) {
        rule.pre_roll_s = self.pre_roll_s.unwrap_or(rule.pre_roll_s);
    }
}

fn check_cooldown(value: Option<f32>, checks: &mut Checks<'_>) {
    if let Some(value) = value {
        checks.range("cooldown_s", value, 0.0..=86_400.0, "s");
    }
}

fn check_pre_roll(value: Option<f32>, checks: &mut Checks<'_>) {
    if let Some(value) = value {
        checks.range("pre_roll_s", value, 0.0..=HISTORY_S, "s");
    }
}

pub(super) fn check_disk_budget(value: Option<i64>, checks: &mut Checks<'_>) {
    if let Some(value) = value {
        checks.range("disk_budget_mb", value, 1..=1_048_576, "MiB");
    }
}

trigger_section!(OverTime, over_ms, 0.001..=60_000.0, "ms", 1e6);
trigger_section!(OverRate, over_mb_per_s, 0.001..=1_048_576.0, "MiB/s", MB);
trigger_section!(OverSlowRate, over_kb_per_s, 0.001..=1_073_741_824.0, "KiB/s", KB);
trigger_section!(OverSize, over_kb, 1.0..=1_073_741_824.0, "KiB", KB);
trigger_section!(OverShare, over_percent, 1.0..=99.0, "%", 1.0);
trigger_section!(WithoutThreshold);
