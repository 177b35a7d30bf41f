//! What went wrong with a store, in words that say what to change.

use std::{fmt, io, path::PathBuf};

/// Why something is not in the store, or did not come back.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("[object_store] endpoint {endpoint}: {cause}")]
    Endpoint { endpoint: String, cause: String },
    #[error(
        "[object_store] has no key: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment, or name a file with both, \
         a line each, in key_file"
    )]
    NoKey,
    #[error("[object_store] key_file {file}: {cause}", file = .file.display())]
    KeyFile { file: PathBuf, cause: String },
    #[error("{path}: {cause}", path = .path.display())]
    Local { path: PathBuf, cause: io::Error },
    #[error("{path}: has {size_bytes} bytes, and a store takes no more than {max} at once", path = .path.display(), max = super::FILE_BYTES_MAX)]
    TooLarge { path: PathBuf, size_bytes: u64 },
    #[error("{key}: is no name of a file below a folder, and is left where it is")]
    UnsafeKey { key: String },
    #[error("{what} {key:?} in bucket {bucket} of {endpoint}: {failure}")]
    Refused { what: &'static str, key: String, endpoint: String, bucket: String, failure: Failure },
}

impl StoreError {
    /// Whether trying again later may help without anybody changing anything.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            StoreError::Refused { failure: Failure::Unreachable(_) | Failure::Busy(_) | Failure::Damaged { .. }, .. }
        )
    }
}

/// What a store's answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    NoBucket,
    /// The key's id is unknown, or its secret is another one.
    WrongKey(String),
    /// The key is right and may not do this.
    NotAllowed(String),
    ClockSkew,
    /// Signed for another region.
    WrongRegion(String),
    NotFound,
    /// Overloaded, or broken on its side.
    Busy(String),
    /// No answer, or half of one.
    Unreachable(String),
    /// What came is not what was stored.
    Damaged {
        bytes: u64,
        expected: Option<u64>,
    },
    /// Anything else.
    Answer(String),
}

impl Failure {
    /// By the status and the error's code.
    pub(super) fn of(status: u16, text: &str) -> Self {
        let code = between(text, "Code").unwrap_or_default();
        let said = || {
            let message = between(text, "Message").unwrap_or_default();
            format!("{status} {code} {message}").trim().to_owned()
        };
        match (code, status) {
            ("NoSuchBucket", _) => Failure::NoBucket,
            (
                "InvalidAccessKeyId" | "XAdminUserNotFound" | "SignatureDoesNotMatch" | "InvalidToken" | "ExpiredToken",
                _,
            ) => Failure::WrongKey(said()),
            ("RequestTimeTooSkewed" | "RequestExpired", _) => Failure::ClockSkew,
            ("AccessDenied", _) if text.contains("expired") => Failure::ClockSkew,
            ("AuthorizationHeaderMalformed" | "PermanentRedirect" | "IllegalLocationConstraintException", _)
            | (_, 301 | 307) => Failure::WrongRegion(said()),
            ("AccessDenied", _) | (_, 401 | 403) => Failure::NotAllowed(said()),
            ("" | "NoSuchKey", 404) => Failure::NotFound,
            (_, 408 | 429 | 500..600) => Failure::Busy(said()),
            _ => Failure::Answer(said()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::NoBucket => {
                write!(out, "there is no such bucket; make it, or name another one in [object_store] bucket")
            }
            Failure::WrongKey(said) => write!(
                out,
                "the key is wrong ({said}); put it right in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in [object_store] key_file"
            ),
            Failure::NotAllowed(said) => {
                write!(out, "the key may not do that ({said}); let it list, read and write objects of the bucket")
            }
            Failure::ClockSkew => {
                write!(out, "the store's clock and this host's differ too much; set this host's by NTP")
            }
            Failure::WrongRegion(said) => {
                write!(
                    out,
                    "the bucket is somewhere else ({said}); name its region in [object_store] region, and its endpoint"
                )
            }
            Failure::NotFound => write!(out, "it is not there"),
            Failure::Busy(said) => write!(out, "the store does not take it now ({said})"),
            Failure::Unreachable(cause) => write!(out, "no answer, or not all of it: {cause}"),
            Failure::Damaged { bytes, expected: Some(expected) } if bytes != expected => {
                write!(out, "{bytes} of {expected} bytes came")
            }
            Failure::Damaged { .. } => write!(out, "what came is not what was stored: its checksum differs"),
            Failure::Answer(said) => write!(out, "{said}"),
        }
    }
}

/// What stands between `<tag>` and `</tag>`, the first time.
fn between<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    Some(rest.split_once(&format!("</{tag}>"))?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, code: &str, message: &str, expect: &str) {
        let text = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{message}</Message></Error>");
        let told = Failure::of(status, &text).to_string();
        assert!(told.contains(expect), "{told}");
    }

    #[test]
    fn an_operators_mistake_is_told_by_its_name() {
        check(404, "NoSuchBucket", "", "[object_store] bucket");
        check(403, "SignatureDoesNotMatch", "", "the key is wrong (403 SignatureDoesNotMatch)");
        check(403, "InvalidAccessKeyId", "", "the key is wrong");
        check(403, "RequestTimeTooSkewed", "", "this host's by NTP");
        check(403, "AccessDenied", "Request has expired", "this host's by NTP");
        check(403, "AccessDenied", "Access Denied", "may not do that");
        check(400, "AuthorizationHeaderMalformed", "expecting 'eu-west-1'", "expecting 'eu-west-1'");
        check(
            503,
            "SlowDown",
            "Reduce your request rate",
            "does not take it now (503 SlowDown Reduce your request rate)",
        );
        check(404, "NoSuchThing", "of a kind", "404 NoSuchThing of a kind");
        assert_eq!(Failure::of(404, ""), Failure::NotFound);
        assert_eq!(Failure::of(502, "<html>"), Failure::Busy("502".into()));
    }
}
