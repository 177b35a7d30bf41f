//! Origin check: no web page of another server gets anything out of this port, or anything done.
//!
//! A browser sends a page's requests wherever the page says, to this port, too. It says so in the header `Origin` of
//! requests that change something, in `Sec-Fetch-Site` of all of them (browsers since 2023), and lets the page set no
//! header of its own. Of an answer to a plain request without either, such as an old browser's for an image, the page
//! learns nothing. A page can get round all that by making the name that it came from mean this host's address (DNS
//! rebinding): to the browser this port is then the page's own server. The header `Host` still has that name. So a
//! request must ask for an address, for `localhost` or for a name that the operator gave, and a page's origin must be
//! this port itself.
//!
//! Some pages are there to be linked to, from a dashboard's spike to its capture: a person who follows a link to one is
//! answered, wherever the link stood. The page with the link learns nothing of the answer, which no frame may show.

use std::net::IpAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName};

/// What the page that a request comes from is to this port: `none`, where a person typed the address, `same-origin`, or
/// a stranger.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// `navigate` to a `document`: a window goes there, because somebody followed a link.
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The names that this port goes by, beside addresses and `localhost`.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnNames(Vec<String>);

impl OwnNames {
    pub fn new(names: &[String]) -> Self {
        Self(names.to_vec())
    }

    /// Why a request with these headers is not answered, if it is not. `may_be_linked`: it reads, and what it reads may be
    /// linked to from anywhere.
    pub fn refuse(&self, headers: &HeaderMap, may_be_linked: bool) -> Result<(), String> {
        let texts = |name: HeaderName| headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("\u{fffd}"));
        // Programs of the old kind send none; browsers always do.
        let hosts: Vec<&str> = texts(HOST).collect();
        if let Some(foreign) = hosts.iter().find(|host| !self.is_own(name_of(host))) {
            return Err(format!(
                "this port does not go by the name {:?}: ask it by its address, or add the name to [server] admin_names",
                name_of(foreign)
            ));
        }
        // A page of a proxy that speaks TLS for this port has a name, which the operator gave.
        let is_own_page = |origin: &str| match (origin.strip_prefix("http://"), origin.strip_prefix("https://")) {
            (Some(own), _) => hosts.contains(&own),
            (_, Some(own)) => hosts.contains(&own) && self.is_given(name_of(own)),
            _ => false,
        };
        let is_foreign = |site: &str| matches!(site, "cross-site" | "same-site");
        let is_always =
            |name: HeaderName, wanted: &str| headers.contains_key(&name) && texts(name).all(|text| text == wanted);
        let is_followed =
            may_be_linked && is_always(SEC_FETCH_MODE, "navigate") && is_always(SEC_FETCH_DEST, "document");
        let is_strangers = texts(SEC_FETCH_SITE).any(is_foreign) && !is_followed;
        if texts(ORIGIN).any(|origin| !is_own_page(origin)) || is_strangers {
            return Err("web pages of other servers are not answered".to_owned());
        }
        Ok(())
    }

    fn is_own(&self, name: &str) -> bool {
        let is_address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok();
        is_address || name.eq_ignore_ascii_case("localhost") || self.is_given(name)
    }

    fn is_given(&self, name: &str) -> bool {
        self.0.iter().any(|own| own.eq_ignore_ascii_case(name))
    }
}

/// Without the port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn is_answered(headers: &[(&HeaderName, &str)]) -> bool {
        let pairs = headers.iter().map(|(name, text)| ((*name).clone(), HeaderValue::from_str(text).unwrap()));
        OwnNames::new(&["metrics.example".to_owned()]).refuse(&pairs.collect(), false).is_ok()
    }

    #[test]
    fn a_link_is_followed_by_a_person_only_and_only_to_what_may_be_linked() {
        let check = |host, mode, dest, may_be_linked, expect| {
            let pairs =
                [(&HOST, host), (&SEC_FETCH_SITE, "cross-site"), (&SEC_FETCH_MODE, mode), (&SEC_FETCH_DEST, dest)];
            let headers = pairs.map(|(name, text)| (name.clone(), HeaderValue::from_static(text)));
            let refused = OwnNames::default().refuse(&HeaderMap::from_iter(headers), may_be_linked);
            assert_eq!(refused.is_ok(), expect, "{pairs:?} {may_be_linked}: {refused:?}");
        };
        check("127.0.0.1:9100", "navigate", "document", true, true);
        check("127.0.0.1:9100", "navigate", "document", false, false);
        check("evil.example:9100", "navigate", "document", true, false);
        for (mode, dest) in
            [("navigate", "iframe"), ("no-cors", "image"), ("cors", "empty"), ("", ""), ("no-cors", "document")]
        {
            check("127.0.0.1:9100", mode, dest, true, false);
        }
        assert!(!is_answered(&[(&SEC_FETCH_SITE, "cross-site")]));
    }

    #[test]
    fn addresses_localhost_and_given_names_are_own() {
        for host in
            ["127.0.0.1:9100", "127.0.0.1", "[::1]:9100", "[::1]", "10.1.2.3:80", "localhost:9100", "Metrics.Example"]
        {
            assert!(is_answered(&[(&HOST, host)]), "{host}");
        }
        assert!(is_answered(&[]), "a program of the old kind");
        for host in ["evil.example", "evil.example:9100", "127.0.0.1.evil.example", "", ":9100", "localhost.evil:1"] {
            assert!(!is_answered(&[(&HOST, host)]), "{host}");
        }
        assert!(!is_answered(&[(&HOST, "localhost"), (&HOST, "evil.example")]), "whichever of them is believed");
    }

    #[test]
    fn only_this_ports_own_pages_are_answered() {
        let host = (&HOST, "127.0.0.1:9100");
        assert!(is_answered(&[host, (&ORIGIN, "http://127.0.0.1:9100")]));
        for origin in ["http://evil.example", "http://127.0.0.1:9101", "https://127.0.0.1:9100", "null"] {
            assert!(!is_answered(&[host, (&ORIGIN, origin)]), "{origin}");
        }
        // Through a proxy that speaks TLS, by a name that the operator gave.
        let named = (&HOST, "metrics.example");
        assert!(is_answered(&[named, (&ORIGIN, "https://metrics.example")]));
        for origin in ["https://evil.example", "https://metrics.example:444", "https://"] {
            assert!(!is_answered(&[named, (&ORIGIN, origin)]), "{origin}");
        }
        for (site, is_own) in [("none", true), ("same-origin", true), ("same-site", false), ("cross-site", false)] {
            assert_eq!(is_answered(&[host, (&SEC_FETCH_SITE, site)]), is_own, "{site}");
        }
    }
}
