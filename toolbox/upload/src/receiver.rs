//! The receiver of analytics events: `POST URL`, JSON lines, and what its answers mean.
//!
//! | answer | meaning |
//! |---|---|
//! | 2xx | it has them |
//! | 400, 413, 415, 422 | it will never take these lines: they are dropped and counted |
//! | all others, and none | they are sent again later |

use std::{fs, io, path::PathBuf};

use throng::{
    analytics::{Post, PostError},
    settings::{ANALYTICS_KEY_VARIABLE, AnalyticsSettings},
};
use ureq::Agent;

use crate::client::{ClientError, client};

/// A request and its answer, together (s). What waits for one when a server is told to stop is in the spool, or with the
/// receiver, before the server ends: within 14 s.
const REQUEST_S_MAX: u64 = 8;

/// How much of an answer's body is told (bytes).
const ANSWER_BYTES_MAX: u64 = 200;

/// Why events cannot be posted. The texts name the setting to change.
#[derive(Debug, thiserror::Error)]
pub enum ReceiverError {
    #[error("[analytics] key_file: {file} cannot be read: {cause}", file = .file.display())]
    Key { file: PathBuf, cause: io::Error },
    #[error("[analytics] {0}: the key must be one line of printable characters")]
    KeyText(String),
    #[error("[analytics] url: {0}")]
    Client(#[from] ClientError),
}

/// Posts to one address.
pub struct Receiver {
    agent: Agent,
    url: String,
    /// What is written into the header; never printed.
    authorization: Option<String>,
}

/// The receiver that the settings name; none if they name none.
///
/// # Errors
/// If its key cannot be read, or nobody's certificate can be trusted.
pub fn receiver(settings: &AnalyticsSettings) -> Result<Option<Box<dyn Post>>, ReceiverError> {
    let Some(url) = &settings.url else { return Ok(None) };
    let key = match (std::env::var(ANALYTICS_KEY_VARIABLE), &settings.key_file) {
        (Ok(key), _) => Some((ANALYTICS_KEY_VARIABLE.to_owned(), key)),
        (Err(_), Some(file)) => {
            let key = fs::read_to_string(file).map_err(|cause| ReceiverError::Key { file: file.clone(), cause })?;
            Some((format!("key_file {}", file.display()), key))
        }
        (Err(_), None) => None,
    };
    let authorization =
        key.map(|(source, key)| bearer(key.trim()).ok_or(ReceiverError::KeyText(source))).transpose()?;
    let agent = client(REQUEST_S_MAX, url.starts_with("https://"))?;
    Ok(Some(Box::new(Receiver { agent, url: url.clone(), authorization })))
}

fn bearer(key: &str) -> Option<String> {
    (!key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic())).then(|| format!("Bearer {key}"))
}

impl Post for Receiver {
    fn post(&mut self, body: &[u8], is_gzip: bool) -> Result<(), PostError> {
        let mut request = self.agent.post(&self.url).header("content-type", "application/x-ndjson");
        if is_gzip {
            request = request.header("content-encoding", "gzip");
        }
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let mut answer = request.send(body).map_err(|error| PostError::Later(format!("{}: {error}", self.url)))?;
        let status = answer.status().as_u16();
        // Read to its end, so that the connection serves again.
        let said = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string().unwrap_or_default();
        let told = || format!("{} answers {status} {}", self.url, said.trim());
        match status {
            200..300 => Ok(()),
            400 | 413 | 415 | 422 => Err(PostError::Never(told())),
            401 | 403 => {
                Err(PostError::Later(format!("{}; [analytics] key_file has the wrong key, or there is none", told())))
            }
            404 => Err(PostError::Later(format!("{}; [analytics] url names no receiver there", told()))),
            _ => Err(PostError::Later(told())),
        }
    }
}
