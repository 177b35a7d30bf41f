//! Formats of metrics: which one a scraper is given, by what it says that it reads.
//!
//! Prometheus asks for protobuf first when it is to keep native histograms, and for OpenMetrics otherwise. Whoever says
//! nothing, or nothing that is known here, is given OpenMetrics, which every scraper reads.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use throng::metrics::{OPEN_METRICS, PROTOBUF};

/// How metrics are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// OpenMetrics text.
    Text,
    /// Prometheus' own, with native histograms.
    Protobuf,
}

impl MetricsFormat {
    /// What is asked for with these headers.
    pub(crate) fn asked_for(headers: &HeaderMap) -> Self {
        let texts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let (mut protobuf, mut text) = (0.0, 0.0_f32);
        for one in texts.flat_map(|text| text.split(',')) {
            let mut parts = one.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let parts: Vec<&str> = parts.collect();
            let has = |wanted: &str| parts.iter().any(|part| part.eq_ignore_ascii_case(wanted));
            let quality = parts.iter().find_map(|part| part.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0_f32);
            if kind.eq_ignore_ascii_case("application/vnd.google.protobuf") {
                if has("proto=io.prometheus.client.MetricFamily") && has("encoding=delimited") {
                    protobuf = quality.max(protobuf);
                }
            } else if kind.eq_ignore_ascii_case("application/openmetrics-text") {
                text = quality.max(text);
            }
        }
        if protobuf > text { Self::Protobuf } else { Self::Text }
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::Text => OPEN_METRICS,
            Self::Protobuf => PROTOBUF,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[track_caller]
    fn check(accept: &[&str], expect: MetricsFormat) {
        let mut headers = HeaderMap::new();
        accept.iter().for_each(|text| _ = headers.append(ACCEPT, HeaderValue::from_str(text).unwrap()));
        assert_eq!(MetricsFormat::asked_for(&headers), expect, "{accept:?}");
    }

    const FAMILIES: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited";

    #[test]
    fn protobuf_is_for_who_would_rather_have_it() {
        let usual = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
        check(&[], MetricsFormat::Text);
        check(&["*/*"], MetricsFormat::Text);
        check(&["text/html, */*"], MetricsFormat::Text);
        check(&[usual], MetricsFormat::Text);
        check(&[&format!("{FAMILIES},{usual}")], MetricsFormat::Protobuf);
        check(
            &[&FAMILIES
                .replace(';', "; ")
                .to_uppercase()
                .replace("IO.PROMETHEUS.CLIENT.METRICFAMILY", "io.prometheus.client.MetricFamily")],
            MetricsFormat::Protobuf,
        );
        check(&[usual, FAMILIES], MetricsFormat::Protobuf);
        check(&[&format!("application/openmetrics-text,{FAMILIES};q=0.9")], MetricsFormat::Text);
        check(&[&format!("application/openmetrics-text,{FAMILIES}")], MetricsFormat::Text);
    }

    #[test]
    fn another_protobuf_is_not_meant() {
        check(&["application/vnd.google.protobuf"], MetricsFormat::Text);
        check(&["application/vnd.google.protobuf;proto=other;encoding=delimited"], MetricsFormat::Text);
        check(&[&FAMILIES.replace("delimited", "text")], MetricsFormat::Text);
        check(&[&format!("{FAMILIES};q=0")], MetricsFormat::Text);
        check(&[&format!("{FAMILIES};q=nonsense")], MetricsFormat::Protobuf);
    }
}
