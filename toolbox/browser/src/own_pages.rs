//! Own pages: whose page may have a browser play here.
//!
//! A browser opens a WebSocket or a WebTransport session to this host for whatever page a person looks at, so a stranger's
//! page could take the places of a server that this host alone reaches. In `Origin` a browser says where the page is; a
//! program that is no browser says nothing, and is let in. A page can get round that by making the name that it came from
//! mean this host's address (DNS rebinding). Where there is no certificate, which would know the name, `Host` has to be
//! an address, `localhost`, or a name that the operator gave.
//!
//! The admin port asks more (`throng-admin`, its origin check): what it tells a page is worth something by itself.

use std::net::IpAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName};

const FOREIGN_HOST: &str = "ask for this page by an address, by localhost, or by a name of [browser] origins\n";
const FOREIGN_PAGE: &str = "pages of other servers do not play here; name them in [browser] origins\n";

pub(crate) struct OwnPages {
    /// As the operator gave them, beside this server's own.
    given: Vec<String>,
    is_encrypted: bool,
}

impl OwnPages {
    pub fn new(given: &[String], is_encrypted: bool) -> Self {
        Self { given: given.to_vec(), is_encrypted }
    }

    /// Whether a request asks for this server by a name that is its own; else what it is answered.
    fn check_host(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        let is_own = |host: &str| is_this_host(name_of(host)) || self.given.iter().any(|page| is_named(page, host));
        let are_own = headers.contains_key(HOST) && texts(headers, HOST).all(is_own);
        (self.is_encrypted || are_own).then_some(()).ok_or(FOREIGN_HOST)
    }

    /// Whether a token or a WebSocket is asked for by a page of this server, by one that the operator gave, or by a program.
    pub fn check_page(&self, headers: &HeaderMap) -> Result<(), &'static str> {
        self.check_host(headers)?;
        let scheme = if self.is_encrypted { "https" } else { "http" };
        let is_here =
            |page: &str| texts(headers, HOST).any(|host| page.eq_ignore_ascii_case(&format!("{scheme}://{host}")));
        self.check_pages(headers, is_here)
    }

    /// The same of a WebTransport session with `host`, whose port is not that of the pages.
    pub fn check_session(&self, headers: &HeaderMap, host: &str) -> Result<(), &'static str> {
        // A page by the name `localhost` is told the address.
        let is_here = |page: &str| match page.strip_prefix("http://") {
            Some(page) => !self.is_encrypted && is_this_host(name_of(page)),
            None => self.is_encrypted && page.starts_with("https://") && is_named(page, host),
        };
        self.check_pages(headers, is_here)
    }

    fn check_pages(&self, headers: &HeaderMap, is_here: impl Fn(&str) -> bool) -> Result<(), &'static str> {
        let is_given = |page: &str| self.given.iter().any(|given| given.eq_ignore_ascii_case(page));
        texts(headers, ORIGIN).all(|page| is_here(page) || is_given(page)).then_some(()).ok_or(FOREIGN_PAGE)
    }
}

fn texts(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("\u{fffd}"))
}

/// Whether the page at `origin` has this host's name, whatever the ports.
fn is_named(origin: &str, host: &str) -> bool {
    origin.split_once("://").is_some_and(|(_, own)| name_of(own).eq_ignore_ascii_case(name_of(host)))
}

/// An address or `localhost`: no name that somebody else may have point here.
fn is_this_host(name: &str) -> bool {
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

/// Without the port.
fn name_of(host: &str) -> &str {
    host.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, text)| (name.clone(), HeaderValue::from_str(text).unwrap())).collect()
    }

    fn loopback() -> OwnPages {
        OwnPages::new(&["https://game.example".to_owned()], false)
    }

    fn public() -> OwnPages {
        OwnPages::new(&["https://login.example".to_owned()], true)
    }

    #[test]
    fn a_name_that_may_be_somebody_elses_is_none_of_ours() {
        for (host, is_own) in [
            ("127.0.0.1:8080", true),
            ("127.0.0.1", true),
            ("[::1]:8080", true),
            ("[::1]", true),
            ("localhost:8080", true),
            ("LocalHost", true),
            ("game.example", true),
            ("game.example:443", true),
            ("evil.example:8080", false),
            ("127.0.0.1.evil.example", false),
            ("", false),
        ] {
            assert_eq!(loopback().check_host(&headers(&[(HOST, host)])).is_ok(), is_own, "{host}");
        }
        assert!(loopback().check_host(&HeaderMap::new()).is_err());
        assert!(loopback().check_host(&headers(&[(HOST, "localhost"), (HOST, "evil.example")])).is_err());
        assert!(public().check_host(&headers(&[(HOST, "a.name.with.a.certificate")])).is_ok());
    }

    #[test]
    fn tokens_and_web_sockets_are_for_own_pages_and_programs() {
        let check = |own: OwnPages, host, origin: Option<&str>, expect| {
            let mut pairs = vec![(HOST, host)];
            pairs.extend(origin.map(|origin| (ORIGIN, origin)));
            assert_eq!(own.check_page(&headers(&pairs)).is_ok(), expect, "{host} {origin:?}");
        };
        check(loopback(), "127.0.0.1:8080", None, true);
        check(loopback(), "127.0.0.1:8080", Some("http://127.0.0.1:8080"), true);
        check(loopback(), "game.example", Some("https://game.example"), true);
        check(loopback(), "127.0.0.1:8080", Some("https://game.example"), true);
        for origin in ["http://evil.example", "http://127.0.0.1:8081", "https://127.0.0.1:8080", "null", "", "http://"]
        {
            check(loopback(), "127.0.0.1:8080", Some(origin), false);
        }
        check(loopback(), "evil.example", Some("http://evil.example"), false);
        check(loopback(), "evil.example", None, false);
        check(public(), "game.example:8443", Some("https://game.example:8443"), true);
        check(public(), "game.example:8443", Some("https://login.example"), true);
        check(public(), "game.example:8443", Some("http://game.example:8443"), false);
        check(public(), "game.example:8443", Some("https://evil.example"), false);
    }

    #[test]
    fn sessions_are_for_own_pages_and_programs() {
        let check = |own: OwnPages, host, origin, expect| {
            assert_eq!(own.check_session(&headers(&[(ORIGIN, origin)]), host).is_ok(), expect, "{host} {origin}");
        };
        assert!(loopback().check_session(&HeaderMap::new(), "127.0.0.1").is_ok());
        check(loopback(), "127.0.0.1", "http://localhost:8080", true);
        check(loopback(), "127.0.0.1", "http://[::1]:8080", true);
        check(loopback(), "127.0.0.1", "http://evil.example:8080", false);
        check(loopback(), "127.0.0.1", "https://127.0.0.1", false);
        check(public(), "game.example", "https://game.example:8443", true);
        check(public(), "[2001:db8::1]", "https://[2001:db8::1]:8443", true);
        check(public(), "game.example", "https://login.example", true);
        for origin in ["https://evil.example", "http://game.example", "https://game.example.evil.example", "null"] {
            check(public(), "game.example", origin, false);
        }
    }
}
