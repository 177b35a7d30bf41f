//! An object store that speaks S3: list, put, get, and what its answers mean.
//!
//! Requests are signed in their address (`rusty-s3`), each for as long as it may take. An object carries the SHA-256 of its
//! bytes as metadata, by which a file that is there is known, and one that came back is held against. Blocks; for threads of
//! low priority.

mod error;
mod key;
mod list;

use std::{
    fs::File,
    io::{self, Read, Write},
    path::Path,
    time::Duration,
};

use aws_lc_rs::digest::{Context, SHA256};
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};
use throng::settings::ObjectStoreSettings;
use ureq::{Agent, Body, http::Response};
use url::Url;

pub use error::{Failure, StoreError};
pub use list::Listed;

use crate::client::client;

/// For one request and its answer (s). A file of 1 GiB within it takes 2.4 MB/s.
const REQUEST_S_MAX: u64 = 450;
/// How long a signature holds: as long as its request.
const SIGNED_FOR: Duration = Duration::from_secs(REQUEST_S_MAX);
/// What S3 takes in one request (bytes).
pub const FILE_BYTES_MAX: u64 = 5 << 30;
/// A page of a list, or an error, is no longer than this (bytes).
const ANSWER_BYTES_MAX: u64 = 8 << 20;

const SHA256_HEADER: &str = "x-amz-meta-throng-sha256";

/// A bucket that can be reached with a key.
pub struct Store {
    agent: Agent,
    bucket: Bucket,
    credentials: Credentials,
    endpoint: String,
}

impl Store {
    /// The store that the settings name; none if they name none. Asks the store nothing yet.
    ///
    /// # Errors
    /// If the key cannot be read, or the address is none.
    pub fn of(settings: &ObjectStoreSettings) -> Result<Option<Self>, StoreError> {
        let (Some(endpoint), Some(name)) = (&settings.endpoint, &settings.bucket) else { return Ok(None) };
        let credentials = key::find(settings, |name| std::env::var(name).ok())?;
        let style = if settings.path_style { UrlStyle::Path } else { UrlStyle::VirtualHost };
        let wrong = |cause: String| StoreError::Endpoint { endpoint: endpoint.clone(), cause };
        let url = Url::parse(endpoint).map_err(|cause| wrong(cause.to_string()))?;
        let bucket = Bucket::new(url, style, name.clone(), settings.region.clone());
        let bucket = bucket.map_err(|cause| wrong(cause.to_string()))?;
        let agent =
            client(REQUEST_S_MAX, endpoint.starts_with("https://")).map_err(|cause| wrong(cause.to_string()))?;
        Ok(Some(Self { agent, bucket, credentials, endpoint: endpoint.clone() }))
    }

    /// All objects whose key begins with `prefix`, in the order of their keys.
    pub fn list(&self, prefix: &str) -> Result<Vec<Listed>, StoreError> {
        let mut listed = Vec::new();
        let mut next: Option<String> = None;
        loop {
            // A list is what the bucket itself answers with.
            let mut action = self.bucket.get_object(Some(&self.credentials), "");
            let query = action.query_mut();
            query.insert("list-type", "2");
            query.insert("encoding-type", "url");
            query.insert("prefix", prefix);
            if let Some(token) = &next {
                query.insert("continuation-token", token.as_str());
            }
            let url = action.sign(SIGNED_FOR);
            let mut answer = self.answered("list", prefix, self.agent.get(url.as_str()).call())?;
            let text =
                self.text(&mut answer).map_err(|cause| self.failed("list", prefix, Failure::Unreachable(cause)))?;
            let page = list::read(&text).map_err(|cause| self.failed("list", prefix, Failure::Answer(cause)))?;
            listed.extend(page.objects);
            match page.next {
                Some(token) if next.as_ref() != Some(&token) => next = Some(token),
                _ => return Ok(listed),
            }
        }
    }

    /// The SHA-256 that an object says of itself; `None` if it says none, or is not there.
    pub fn sha256_of(&self, key: &str) -> Result<Option<String>, StoreError> {
        let url = self.bucket.head_object(Some(&self.credentials), key).sign(SIGNED_FOR);
        let answer = self.agent.head(url.as_str()).call();
        match answer {
            Ok(answer) if answer.status().as_u16() == 404 => Ok(None),
            answer => Ok(sha256_in(&self.answered("head", key, answer)?)),
        }
    }

    /// Stores a file under a key, in place of what was there.
    pub fn put(&self, key: &str, file: &File, sha256: &str) -> Result<(), StoreError> {
        let mut action = self.bucket.put_object(Some(&self.credentials), key);
        action.headers_mut().insert(SHA256_HEADER, sha256);
        let url = action.sign(SIGNED_FOR);
        let request = self.agent.put(url.as_str()).header(SHA256_HEADER, sha256);
        let answer = request.header("content-type", "application/octet-stream").send(file);
        let mut answer = self.answered("put", key, answer)?;
        // To its end, so that the connection serves again.
        let _ = self.text(&mut answer);
        Ok(())
    }

    /// Writes an object into `file`. What came is as long as the store said, and has the checksum that it was stored
    /// with; whatever is in the file after an error is of no use.
    pub fn get(&self, key: &str, file: &mut File) -> Result<u64, StoreError> {
        let url = self.bucket.get_object(Some(&self.credentials), key).sign(SIGNED_FOR);
        let answer = self.answered("get", key, self.agent.get(url.as_str()).call())?;
        let (expected, sha256) = (length_in(&answer), sha256_in(&answer));
        let mut body = answer.into_body().into_with_config().limit(FILE_BYTES_MAX + 1).reader();
        let mut hash = Context::new(&SHA256);
        let (mut bytes, mut buffer) = (0, vec![0; 256 << 10]);
        loop {
            let count = body.read(&mut buffer);
            let count = count.map_err(|cause| self.failed("get", key, Failure::Unreachable(cause.to_string())))?;
            if count == 0 {
                break;
            }
            hash.update(&buffer[..count]);
            file.write_all(&buffer[..count]).map_err(|cause| StoreError::Local { path: key.into(), cause })?;
            bytes += count as u64;
        }
        let is_whole = expected.is_none_or(|expected| expected == bytes);
        let is_same = sha256.is_none_or(|sha256| sha256 == hex(hash.finish().as_ref()));
        match is_whole && is_same {
            true => Ok(bytes),
            false => Err(self.failed("get", key, Failure::Damaged { bytes, expected })),
        }
    }

    fn text(&self, answer: &mut Response<Body>) -> Result<String, String> {
        let text = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_string();
        text.map_err(|error| error.to_string())
    }

    /// An answer that is a success; anything else by its name.
    fn answered(
        &self,
        what: &'static str,
        key: &str,
        answer: Result<Response<Body>, ureq::Error>,
    ) -> Result<Response<Body>, StoreError> {
        let mut answer = answer.map_err(|error| self.failed(what, key, Failure::Unreachable(error.to_string())))?;
        let status = answer.status().as_u16();
        if (200..300).contains(&status) {
            return Ok(answer);
        }
        let text = self.text(&mut answer).unwrap_or_default();
        Err(self.failed(what, key, Failure::of(status, &text)))
    }

    fn failed(&self, what: &'static str, key: &str, failure: Failure) -> StoreError {
        StoreError::Refused {
            what,
            key: key.to_owned(),
            endpoint: self.endpoint.clone(),
            bucket: self.bucket.name().to_owned(),
            failure,
        }
    }
}

fn sha256_in(answer: &Response<Body>) -> Option<String> {
    answer.headers().get(SHA256_HEADER)?.to_str().ok().map(str::to_owned)
}

fn length_in(answer: &Response<Body>) -> Option<u64> {
    answer.headers().get("content-length")?.to_str().ok()?.parse().ok()
}

/// The SHA-256 of a file's bytes, as hexadecimal digits.
pub fn sha256_of_file(path: &Path) -> io::Result<String> {
    let (mut file, mut hash) = (File::open(path)?, Context::new(&SHA256));
    let mut buffer = vec![0; 256 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(hash.finish().as_ref())),
            count => hash.update(&buffer[..count]),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
