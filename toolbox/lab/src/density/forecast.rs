//! Forecast: how many instances a host will hold, from measurements at no more than half of its load.
//!
//! What is measured at each number of instances is the time of a frame and the processor time that all of them take. Three
//! things make frames longer when there are more instances, and each is taken from what tells of it alone:
//!
//! - Caches and memory are shared, so the same work takes more processor time. A straight line through the processor time
//!   of an instance says how much more each further instance adds: `growth`.
//! - Cores are shared, so a frame that is due finds others at work. With `n` instances that each work for a share `p` of
//!   the time, `k` of the others are at work with the binomial probability, and a frame that needs `d` cores gets
//!   `cores / (k + 1)` of them: its time is stretched by `max(1, d (k + 1) / cores)`, on average the *slowdown*. As frames
//!   are stretched, `p` grows with them, so that the slowdown has no bound as the host fills up.
//! - How sharply a program's frames feel that, is fitted: frame times over growth are `alone + felt (slowdown - 1)`. Theory
//!   says `felt = alone`; where the measurements do not tell, since nobody has waited yet, that is what is taken.
//!
//! Several worlds in one process share its threads instead: there frame time and processor time are straight lines over
//! the number of worlds.
//!
//! That is a theory of means, by which a median is followed well enough. The slowest frames are those that met more others
//! than the mean does, so of instances no p99 is forecast.
//!
//! A host holds no more than its cores can work off, whatever frame times say. A forecast is as good as its measurements
//! are like the rest of the way: a host that others use, or a load that changes, is not.

use serde::Serialize;

/// What was measured with so many instances (or worlds).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured {
    pub instances: u32,
    /// By the chosen statistic.
    pub frame_ms: f64,
    /// Of one instance, where the source counts every frame. Without it a frame is taken to keep one core busy.
    pub frames_per_s: Option<f64>,
    /// Cores that all instances together kept busy.
    pub cores_busy: f64,
}

/// What the numbers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Instances, each a process.
    Processes,
    /// Worlds in one process.
    Worlds,
}

impl Form {
    /// What so many are called; of an unknown number, as 2 are.
    pub fn counted(self, count: u32) -> &'static str {
        match (self, count) {
            (Self::Processes, 1) => "instance",
            (Self::Processes, _) => "instances",
            (Self::Worlds, 1) => "world in one process",
            (Self::Worlds, _) => "worlds in one process",
        }
    }
}

/// The host and the bar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Host {
    pub cores: f64,
    pub budget_ms: f64,
}

/// A forecast and what it rests on.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Forecast {
    /// The most that will hold the budget.
    pub instances: u32,
    /// The least and the most that are forecast when any one measurement is left out; null with fewer than four.
    pub instances_low: Option<u32>,
    pub instances_high: Option<u32>,
    /// Measurements that it was made from, and the highest load among them, as a share of the cores.
    pub points: usize,
    pub load_share: f64,
    /// The time of a frame where nobody else is, and how much more processor time each further instance makes of an
    /// instance's work.
    pub frame_alone_ms: f64,
    pub growth_per_instance: f64,
    /// Frame times that it expects, up to a little beyond that number.
    pub curve: Vec<CurvePoint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CurvePoint {
    pub instances: u32,
    pub frame_ms: f64,
}

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoForecast {
    #[error(
        "a forecast takes {} measurements at no more than half of the host's load, and there are {points}; take smaller steps \
         (--points, --max), or a smaller instance",
        POINTS_MIN
    )]
    TooFew { points: usize },
    #[error("processor time could not be read, so nothing can be said of the host's load")]
    NoLoad,
    #[error("how often frames wait for others tells their mean, not their p99; say --statistic mean")]
    OfSlowest,
}

/// Measurements above this share of the cores are not forecast from.
pub(crate) const LOAD_SHARE_MAX: f64 = 0.5;
const POINTS_MIN: usize = 3;
/// More instances than this are not forecast: their frames are then too short to matter.
const INSTANCES_MAX: u32 = 16_384;
const CURVE_POINTS_MAX: u32 = 64;
/// How much the theory of waiting counts beside the measurements, in measurements that waited as long as they worked.
const THEORY_WEIGHT: f64 = 0.1;

/// Forecasts from those measurements that are at no more than half of the load.
pub(crate) fn forecast(form: Form, measured: &[Measured], host: Host) -> Result<Forecast, NoForecast> {
    let load_share = |one: &Measured| one.cores_busy / host.cores;
    let used: Vec<Measured> = measured.iter().copied().filter(|one| load_share(one) <= LOAD_SHARE_MAX).collect();
    if used.len() < POINTS_MIN {
        return Err(NoForecast::TooFew { points: used.len() });
    }
    if used.iter().any(|one| one.cores_busy <= 0.0) {
        return Err(NoForecast::NoLoad);
    }
    let model = Model::fit(form, &used, host.cores);
    let instances = model.holds(host.budget_ms);
    let without = |left_out: usize| {
        let others: Vec<Measured> =
            used.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, one)| *one).collect();
        Model::fit(form, &others, host.cores).holds(host.budget_ms)
    };
    let spread = (used.len() > POINTS_MIN).then(|| (0..used.len()).map(without).chain([instances]));
    let end = instances.saturating_add(instances / 20 + 1).min(INSTANCES_MAX);
    let steps = end.clamp(1, CURVE_POINTS_MAX);
    let curve = (1..=steps).map(|step| (u64::from(end) * u64::from(step) / u64::from(steps)) as u32);
    Ok(Forecast {
        instances,
        instances_low: spread.clone().and_then(Iterator::min),
        instances_high: spread.and_then(Iterator::max),
        points: used.len(),
        load_share: used.iter().map(load_share).fold(0.0, f64::max),
        frame_alone_ms: model.frame_ms(1),
        growth_per_instance: model.growth,
        curve: curve.map(|instances| CurvePoint { instances, frame_ms: model.frame_ms(instances) }).collect(),
    })
}

/// See the head of the file.
#[derive(Debug, Clone, Copy)]
struct Model {
    form: Form,
    cores: f64,
    /// Cores that nobody's instances take, as the process of many worlds by itself; and what the first one takes.
    cores_base: f64,
    cores_each: f64,
    growth: f64,
    /// Cores that a frame keeps busy while it runs.
    frame_cores: f64,
    alone_ms: f64,
    felt_ms: f64,
}

impl Model {
    /// `used` has at least two measurements, all with some load.
    fn fit(form: Form, used: &[Measured], cores: f64) -> Self {
        let count = |one: &Measured| f64::from(one.instances);
        let mut model = Self {
            form,
            cores,
            cores_base: 0.0,
            cores_each: 0.0,
            growth: 0.0,
            frame_cores: 1.0,
            alone_ms: 0.0,
            felt_ms: 0.0,
        };
        if form == Form::Worlds {
            (model.cores_base, model.cores_each) = line(used.iter().map(|one| (count(one), one.cores_busy, 1.0)), 0.0);
            (model.alone_ms, model.felt_ms) = line(used.iter().map(|one| (count(one), one.frame_ms, 1.0)), 0.0);
            model.felt_ms = model.felt_ms.max(0.0);
            return model;
        }
        // Of many instances the mean is known better than of few.
        let each = used.iter().map(|one| (count(one) - 1.0, one.cores_busy / count(one), count(one)));
        let (first, more) = line(each.clone(), 0.0);
        model.growth = more / first;
        model.cores_each = first;
        if !(first > 0.0 && more > 0.0) {
            // Nobody works less because there are others: that is noise.
            let (busy, instances) =
                each.fold((0.0, 0.0), |(busy, all), (_, cores, weight)| (busy + cores * weight, all + weight));
            (model.growth, model.cores_each) = (0.0, busy / instances);
        }
        let fewest = used.iter().min_by_key(|one| one.instances);
        if let Some((one, frames_per_s)) = fewest.and_then(|one| Some((one, one.frames_per_s?))) {
            let active_share = one.frame_ms / 1e3 * frames_per_s;
            let frame_cores = one.cores_busy / count(one) / active_share;
            // What works beside its frames does not make them wider than the host.
            model.frame_cores = if frame_cores.is_finite() { frame_cores.clamp(0.05, cores) } else { 1.0 };
        }
        let felt = used.iter().map(|one| {
            let grown = 1.0 + model.growth * (count(one) - 1.0);
            (
                slowdown(one.instances, one.cores_busy / count(one), model.frame_cores, cores) - 1.0,
                one.frame_ms / grown,
                1.0,
            )
        });
        (model.alone_ms, model.felt_ms) = line(felt, THEORY_WEIGHT);
        model.felt_ms = model.felt_ms.max(0.0);
        model
    }

    fn grown(&self, instances: u32) -> f64 {
        1.0 + self.growth * f64::from(instances - 1)
    }

    fn load_share(&self, instances: u32) -> f64 {
        let each = self.cores_each * self.grown(instances);
        (self.cores_base + each * f64::from(instances)) / self.cores
    }

    fn frame_ms(&self, instances: u32) -> f64 {
        match self.form {
            Form::Worlds => self.alone_ms + self.felt_ms * f64::from(instances),
            Form::Processes => {
                let each = self.cores_each * self.grown(instances);
                let waited = slowdown(instances, each, self.frame_cores, self.cores) - 1.0;
                self.grown(instances) * (self.alone_ms + self.felt_ms * waited)
            }
        }
    }

    /// The most instances within the budget and within the cores.
    fn holds(&self, budget_ms: f64) -> u32 {
        let is_held = |instances| self.load_share(instances) <= 1.0 && self.frame_ms(instances) <= budget_ms;
        let (mut held, mut failed) = (0, INSTANCES_MAX + 1);
        while failed - held > 1 {
            let between = held + (failed - held) / 2;
            if is_held(between) { held = between } else { failed = between }
        }
        held
    }
}

/// The straight line `a + b x` nearest to weighted points `(x, y, weight)`, with `b = a` as one more point of this weight.
/// Where all `x` are the same and nothing else is known, it is level.
fn line(points: impl Iterator<Item = (f64, f64, f64)>, equal_weight: f64) -> (f64, f64) {
    let w = equal_weight;
    let (mut s, mut sx, mut sxx, mut sy, mut sxy) = (w, -w, w, 0.0, 0.0);
    for (x, y, weight) in points {
        s += weight;
        sx += weight * x;
        sxx += weight * x * x;
        sy += weight * y;
        sxy += weight * x * y;
    }
    let determinant = s * sxx - sx * sx;
    if determinant <= 1e-9 * s * sxx {
        return (sy / s, 0.0);
    }
    ((sy * sxx - sxy * sx) / determinant, (s * sxy - sx * sy) / determinant)
}

/// By how much frames are stretched because other instances are at work: the mean over how many are.
///
/// `cores_each`: what an instance keeps busy on average; `frame_cores`: while it is at work.
fn slowdown(instances: u32, cores_each: f64, frame_cores: f64, cores: f64) -> f64 {
    const ROUNDS_MAX: usize = 500;
    let others = instances - 1;
    let at_work_alone = cores_each / frame_cores;
    let mut stretched = 1.0;
    for _ in 0..ROUNDS_MAX {
        let at_work = (at_work_alone * stretched).min(1.0);
        let stretch = |k: u32| (frame_cores * f64::from(k + 1) / cores).max(1.0);
        let next = mean_of_binomial(others, at_work, stretch);
        // From below, so it grows until it stays.
        if next - stretched < 1e-6 * stretched {
            break;
        }
        stretched = next;
    }
    stretched
}

/// The mean of `value(k)`, where `k` of `n` happen, each with probability `p`.
fn mean_of_binomial(n: u32, p: f64, value: impl Fn(u32) -> f64) -> f64 {
    if p <= 0.0 || n == 0 {
        return value(0);
    }
    if p >= 1.0 {
        return value(n);
    }
    // In logarithms, since none of 2,000 at p = 0.5 is less likely than the smallest number.
    let odds = (p / (1.0 - p)).ln();
    let mut log_probability = f64::from(n) * (1.0 - p).ln();
    let mut mean = 0.0;
    for k in 0..=n {
        mean += log_probability.exp() * value(k);
        log_probability += odds + (f64::from(n - k) / f64::from(k + 1)).ln();
    }
    mean
}

#[cfg(test)]
mod tests;
