//! `[browser]`: players whose client is a web page.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use super::{Checks, Section};

/// `[browser]`: where pages find this server, and who lets them in.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default)]
pub struct BrowserSettings {
    /// TCP address of pages and their WebSockets, `IP:PORT`, or `"off"`. Default `"off"`. One that other hosts can reach needs a certificate. `throng serve` follows it.
    #[serde(deserialize_with = "super::address_or_off")]
    pub address: Option<SocketAddr>,
    /// UDP address of WebTransport, `IP:PORT`, or `"off"`. Default `"off"`: browsers play over WebSockets. Beyond loopback it needs the certificate. `throng serve` follows it.
    #[serde(deserialize_with = "super::address_or_off")]
    pub web_transport_address: Option<SocketAddr>,
    /// Give a connect token to whoever opens the page. Default false: tokens come from the game's own login service.
    /// True → everybody who reaches the page plays, each time as somebody else.
    pub gives_tokens: bool,
    /// Pages elsewhere whose browsers may play here, each as `SCHEME://HOST`, with the port if it has one. Default none: this
    /// server's own alone. For pages of a login service, and for the name of a proxy before this server.
    pub origins: Vec<String>,
    /// The certificate chain (PEM) by which browsers know the server, relative to this file. Default none: loopback only.
    pub certificate_file: Option<PathBuf>,
    /// The key of the certificate (PEM), relative to this file.
    pub certificate_key_file: Option<PathBuf>,
    /// Browsers that may be connected at once [clients, 1 to 65,535]. Default 1,024, and one address has an eighth of them.
    /// Too low → players are refused; too high → strangers may take 50 KB each, until they are found to be none.
    pub clients_max: u32,
}

impl Default for BrowserSettings {
    fn default() -> Self {
        Self {
            address: None,
            web_transport_address: None,
            gives_tokens: false,
            origins: Vec::new(),
            certificate_file: None,
            certificate_key_file: None,
            clients_max: 1_024,
        }
    }
}

impl BrowserSettings {
    /// What is wrong with the address, if it is, and no certificate makes it right.
    pub fn refuse_address(&self) -> Option<String> {
        self.refuse_without_certificate(self.address)
    }

    /// The same of WebTransport's.
    pub fn refuse_web_transport_address(&self) -> Option<String> {
        self.refuse_without_certificate(self.web_transport_address)
    }

    fn refuse_without_certificate(&self, address: Option<SocketAddr>) -> Option<String> {
        let address = address.filter(|address| !address.ip().to_canonical().is_loopback())?;
        self.certificate_file.is_none().then(|| {
            format!(
                "other hosts can reach {address}, and what travels there would not be encrypted: name a certificate in \
                 `certificate_file` and its key in `certificate_key_file`, or write \"127.0.0.1:{}\"",
                address.port()
            )
        })
    }
}

impl Section for BrowserSettings {
    fn check(&self, checks: &mut Checks<'_>) {
        checks.range("clients_max", self.clients_max, 1..=65_535, "clients");
        if let Some(wrong) = self.refuse_address() {
            checks.mistake("address", wrong);
        }
        if let Some(wrong) = self.refuse_web_transport_address() {
            checks.mistake("web_transport_address", wrong);
        }
        if self.origins.iter().any(|origin| !is_origin(origin)) {
            checks.mistake("origins", "holds where pages are, without a path, such as \"https://game.example\"");
        }
        if self.web_transport_address.is_some() && self.address.is_none() {
            checks.mistake(
                "web_transport_address",
                "a page has to be there that plays over it: name its `address`, or write \"off\"",
            );
        }
        match (&self.certificate_file, &self.certificate_key_file) {
            (Some(_), None) => {
                checks.mistake("certificate_file", "its key is missing; name it in `certificate_key_file`")
            }
            (None, Some(_)) => {
                checks.mistake("certificate_key_file", "its certificate is missing; name it in `certificate_file`")
            }
            _ => {}
        }
    }
}

/// As browsers write it in the header `Origin`.
fn is_origin(text: &str) -> bool {
    let host = text.split_once("://").filter(|(scheme, _)| !scheme.is_empty()).map(|(_, host)| host);
    host.is_some_and(|host| !host.is_empty() && !host.contains(['/', ' ', '*', '?', '#', '@']))
}
