//! `[analytics]`: where events of the game go.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;
use throng_analytics::{file_sink::FileSettings, post_sink::PostSettings};

use super::{Checks, Section};

/// Where the receiver's key may be, instead of in `key_file`.
pub const ANALYTICS_KEY_VARIABLE: &str = "THRONG_ANALYTICS_KEY";

const MIB: u64 = 1 << 20;

/// `[analytics]`: see docs/guide/analytics.md.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct AnalyticsSettings {
    /// The folder for files of events, relative to this file; made if it is not there. Default none: no files. Each server has
    /// one of its own. `throng serve` follows it, as it does all of this section.
    pub folder: Option<PathBuf>,
    /// A file ends at this size [MiB, 1 to 4,096]. Default 64.
    /// Too low → many files; too high → what is not on the disk yet when the host dies, and what is fetched late.
    pub file_mb: u32,
    /// And at this age [s, 1 to 86,400]. Default 600. What is in it is then on the disk for sure.
    pub file_s: u32,
    /// All files together; the oldest go [MiB, 2 x `file_mb` to 1,048,576]. Default 1,024.
    /// Too low → events are gone before anybody fetches them; too high → the disk is full.
    pub folder_mb: u32,
    /// Where events are posted as JSON lines, `http://` or `https://`. Default none.
    pub url: Option<String>,
    /// A file with the key that the receiver asks for (`Authorization: Bearer KEY`), relative to this file; or
    /// THRONG_ANALYTICS_KEY in the environment. Default none.
    pub key_file: Option<PathBuf>,
    /// The folder where events wait while the receiver does not take them, relative to this file. Default: `spool` in
    /// `folder`; needed where there is none.
    pub spool: Option<PathBuf>,
    /// What may wait there [MiB, 1 to 1,048,576]. Default 256.
    /// Too low → a receiver that is away for an hour misses events; too high → the disk is full.
    pub spool_mb: u32,
    /// Events of one request [KiB before gzip, 16 to 65,536]. Default 512. Too high → the receiver answers 413, and they are
    /// dropped.
    pub post_kb: u32,
    /// How long an event waits for others, to be posted together [s, 1 to 600]. Default 5.
    pub post_period_s: u32,
    /// Pack requests with gzip. Default true.
    pub gzip: bool,
    /// What may wait between the ticks and the exporter [KiB, 64 to 1,048,576]. Default 4,096: some 60,000 events.
    /// Too low → bursts are dropped; too high → memory.
    pub queue_kb: u32,
    /// What this server calls itself in events. Default: the host's name and the port.
    pub server: Option<String>,
}

impl Default for AnalyticsSettings {
    fn default() -> Self {
        Self {
            folder: None,
            file_mb: 64,
            file_s: 600,
            folder_mb: 1_024,
            url: None,
            key_file: None,
            spool: None,
            spool_mb: 256,
            post_kb: 512,
            post_period_s: 5,
            gzip: true,
            queue_kb: 4_096,
            server: None,
        }
    }
}

impl AnalyticsSettings {
    /// What the file sink is told; none without a folder.
    pub fn file(&self) -> Option<FileSettings> {
        Some(FileSettings {
            folder: self.folder.clone()?,
            file_bytes_max: u64::from(self.file_mb) * MIB,
            file_age_max: Duration::from_secs(self.file_s.into()),
            total_bytes_max: u64::from(self.folder_mb) * MIB,
        })
    }

    /// What the post sink is told; none without an address.
    pub fn post(&self) -> Option<PostSettings> {
        self.url.as_ref()?;
        Some(PostSettings {
            spool: self.spool.clone().or_else(|| Some(self.folder.as_ref()?.join("spool")))?,
            spool_bytes_max: u64::from(self.spool_mb) * MIB,
            post_bytes_max: self.post_kb as usize * 1_024,
            period: Duration::from_secs(self.post_period_s.into()),
            gzip: self.gzip,
        })
    }

    pub fn queue_bytes(&self) -> usize {
        self.queue_kb as usize * 1_024
    }

    /// Paths are relative to the settings' own folder.
    pub(super) fn lie_in(&mut self, folder: &Path) {
        for path in [&mut self.folder, &mut self.key_file, &mut self.spool].into_iter().flatten() {
            *path = folder.join(&*path);
        }
    }
}

impl Section for AnalyticsSettings {
    fn check(&self, checks: &mut Checks<'_>) {
        checks.range("file_mb", self.file_mb, 1..=4_096, "MiB");
        checks.range("file_s", self.file_s, 1..=86_400, "s");
        checks.range("folder_mb", self.folder_mb, 2..=1_048_576, "MiB");
        checks.range("spool_mb", self.spool_mb, 1..=1_048_576, "MiB");
        checks.range("post_kb", self.post_kb, 16..=65_536, "KiB");
        checks.range("post_period_s", self.post_period_s, 1..=600, "s");
        checks.range("queue_kb", self.queue_kb, 64..=1_048_576, "KiB");
        if self.folder_mb < 2 * self.file_mb {
            checks.mistake(
                "folder_mb",
                format!("has no room for two files of file_mb = {}; write {} or more", self.file_mb, 2 * self.file_mb),
            );
        }
        if let Some(url) = &self.url
            && !(url.starts_with("http://") || url.starts_with("https://"))
        {
            checks.mistake("url", "is no address of a receiver; write \"https://HOST/PATH\"");
        }
        if self.url.is_some() && self.spool.is_none() && self.folder.is_none() {
            checks
                .mistake("url", "has no place where events wait while the receiver is away; name a folder in `spool`");
        }
        if self.url.is_none() && self.key_file.is_some() {
            checks.mistake("key_file", "does nothing without `url`; write that, or remove it");
        }
        let folders = [("folder", &self.folder), ("spool", &self.spool), ("key_file", &self.key_file)];
        for (key, path) in folders {
            if path.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
                checks.mistake(key, "names nothing; write a path, or remove the key");
            }
        }
    }
}
