//! The page of metrics, made once for all who ask at about the same time.
//!
//! Metrics change once a second, and a page takes the admin thread some 1.3 ms to make: 40 scrapers who ask as fast as they
//! are answered would take half a core for pages that say the same. Kept for [`LIFE`], four pages of each format are made a
//! second at most, 5 ms.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;

use super::formats::MetricsFormat;

/// For how long a page is given to others. Longer → what is known between two seconds, such as a world that is stuck, is
/// told late; shorter → more pages are made.
const LIFE: Duration = Duration::from_millis(250);

/// The last page of each format.
#[derive(Default)]
pub(crate) struct MetricsPages {
    text: Mutex<Option<Page>>,
    protobuf: Mutex<Option<Page>>,
}

struct Page {
    made: Instant,
    bytes: Bytes,
}

impl MetricsPages {
    /// The last page if that is young enough at `now`, or what `make` returns. An empty one is not kept, since the first
    /// second may be over at any moment.
    pub fn page(&self, format: MetricsFormat, now: Instant, make: impl FnOnce() -> Vec<u8>) -> Bytes {
        let kept = match format {
            MetricsFormat::Text => &self.text,
            MetricsFormat::Protobuf => &self.protobuf,
        };
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = kept.as_ref().filter(|page| now.saturating_duration_since(page.made) < LIFE) {
            return page.bytes.clone();
        }
        let bytes = Bytes::from(make());
        *kept = (!bytes.is_empty()).then(|| Page { made: now, bytes: bytes.clone() });
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_made_once_for_all_who_ask_within_its_life() {
        let (pages, begin) = (MetricsPages::default(), Instant::now());
        let check = |format, after_ms, would_be: &str, expect: &str| {
            let page = pages.page(format, begin + Duration::from_millis(after_ms), || would_be.as_bytes().to_vec());
            assert_eq!(page, expect, "after {after_ms} ms");
        };
        check(MetricsFormat::Text, 0, "", "");
        check(MetricsFormat::Text, 1, "first", "first");
        check(MetricsFormat::Protobuf, 2, "families", "families");
        check(MetricsFormat::Text, 250, "second", "first");
        check(MetricsFormat::Text, 251, "second", "second");
        check(MetricsFormat::Protobuf, 251, "later", "families");
    }
}
