//! `[object_store]`: the S3-compatible store that folders of a server go to.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Checks, Section};

/// What may go to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Uploaded {
    /// Captures of bad frames.
    Captures,
    /// Reports of deaths.
    Crashes,
    /// Files of analytics events.
    Analytics,
    /// Reports of load runs.
    Reports,
}

impl Uploaded {
    /// As it is called in the settings, and in the store.
    pub const fn name(self) -> &'static str {
        match self {
            Uploaded::Captures => "captures",
            Uploaded::Crashes => "crashes",
            Uploaded::Analytics => "analytics",
            Uploaded::Reports => "reports",
        }
    }
}

/// `[object_store]`: see docs/object-store.md.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct ObjectStoreSettings {
    /// Where the store is, `http://` or `https://`, with a port if it is another one. Default none: nothing leaves the host.
    pub endpoint: Option<String>,
    /// The bucket, which must be there.
    pub bucket: Option<String>,
    /// What all keys begin with. Default "".
    pub prefix: String,
    /// The region that requests are signed for. Default "us-east-1", which most stores but Amazon's take.
    pub region: String,
    /// The bucket is the first part of the path, and not of the host's name. Default true. Amazon's own wants false.
    pub path_style: bool,
    /// A file with the key's id and its secret, a line each, relative to this file; or AWS_ACCESS_KEY_ID,
    /// AWS_SECRET_ACCESS_KEY and, where there is one, AWS_SESSION_TOKEN in the environment, which go before it.
    pub key_file: Option<PathBuf>,
    /// What is uploaded: any of "captures", "crashes" and "analytics", by a server while it runs, and "reports", by a load run
    /// at its end. Default all. `throng serve` and `throng load` follow it.
    pub upload: Vec<Uploaded>,
    /// What this server's folder in the store is called. Default: the host's name and the port.
    /// The same for two servers → their files are in one folder, and equal names replace each other.
    pub name: Option<String>,
    /// Keep files on the host after they are in the store. Default true: their own bounds remove them. False → a file of
    /// captures or events is removed once it is stored; reports of deaths stay.
    pub keep_local: bool,
    /// How often the folders are looked through [s, 1 to 3,600]. Default 30.
    pub period_s: u32,
}

impl Default for ObjectStoreSettings {
    fn default() -> Self {
        Self {
            endpoint: None,
            bucket: None,
            prefix: String::new(),
            region: "us-east-1".to_owned(),
            path_style: true,
            key_file: None,
            upload: vec![Uploaded::Captures, Uploaded::Crashes, Uploaded::Analytics, Uploaded::Reports],
            name: None,
            keep_local: true,
            period_s: 30,
        }
    }
}

impl ObjectStoreSettings {
    pub(super) fn lie_in(&mut self, folder: &Path) {
        if let Some(file) = &mut self.key_file {
            *file = folder.join(&*file);
        }
    }
}

impl Section for ObjectStoreSettings {
    fn check(&self, checks: &mut Checks<'_>) {
        checks.range("period_s", self.period_s, 1..=3_600, "s");
        match (&self.endpoint, &self.bucket) {
            (Some(endpoint), _) if !(endpoint.starts_with("http://") || endpoint.starts_with("https://")) => {
                checks.mistake("endpoint", "is no address of a store; write \"https://HOST\"");
            }
            (Some(_), None) => checks.mistake("endpoint", "needs a bucket; name one that is there in `bucket`"),
            (None, Some(_)) => checks.mistake("bucket", "does nothing without `endpoint`; write where the store is"),
            _ => {}
        }
        if self.bucket.as_ref().is_some_and(|bucket| bucket.is_empty() || bucket.contains('/')) {
            checks.mistake("bucket", "is the name of a bucket alone; what comes behind it is the `prefix`");
        }
        if self.prefix.starts_with('/') || self.prefix.split('/').any(|part| part == "..") {
            checks.mistake(
                "prefix",
                "is the beginning of keys, such as \"throng/eu\"; write it without a / in front and without ..",
            );
        }
        if self.name.as_ref().is_some_and(|name| name.is_empty() || name.contains('/')) {
            checks.mistake("name", "is the name of one folder; write it without /, or remove the key");
        }
    }
}
