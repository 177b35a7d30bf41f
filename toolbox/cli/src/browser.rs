//! Players in browsers, where the build and the settings have them.

use std::net::SocketAddr;

use clap::Args;
use throng::{Server, settings::Settings};
use throng_net::protocol::PrivateKey;

use crate::{played::Played, serve::OffOr};

#[derive(Args)]
pub struct BrowserArguments {
    /// Use this address for pages and players in browsers instead of the settings'; port 0 = any free one; "off" = none.
    #[arg(long, value_name = "IP:PORT", value_parser = crate::serve::off_or_address)]
    browser_address: Option<OffOr<SocketAddr>>,
    /// Use this UDP address for WebTransport instead of the settings'; port 0 = any free one; "off" = WebSockets alone.
    #[arg(long, value_name = "IP:PORT", value_parser = crate::serve::off_or_address)]
    web_transport_address: Option<OffOr<SocketAddr>>,
    /// Let everybody in who opens the page, whatever the settings say.
    #[arg(long)]
    browser_tokens: bool,
}

impl BrowserArguments {
    pub fn tell(&self, settings: &mut Settings) {
        if let Some(OffOr(address)) = self.browser_address {
            settings.browser.address = address;
        }
        if let Some(OffOr(address)) = self.web_transport_address {
            settings.browser.web_transport_address = address;
        }
        settings.browser.gives_tokens |= self.browser_tokens;
    }
}

/// What shows pages until it is dropped.
#[cfg(feature = "browser")]
pub type Shown = throng_browser::Gateway;
#[cfg(not(feature = "browser"))]
pub type Shown = std::convert::Infallible;

/// Shows the game's page where the settings name an address.
#[cfg(feature = "browser")]
pub fn show(
    settings: &Settings,
    server: &Server,
    key: PrivateKey,
    played: &Played<'_>,
) -> Result<Option<Shown>, Box<dyn std::error::Error>> {
    use throng_browser::{Gateway, Pages, TokenGiver};
    use throng_net::protocol::ProtocolId;

    let Some(tunnels) = server.tunnels() else { return Ok(None) };
    let pages = Pages { page: played.game.play_page(), schema: throng_typescript::data_module(&played.game.schema())? };
    let protocol_id = ProtocolId(settings.server.protocol_id);
    let tokens = TokenGiver::new(protocol_id, key, server.token_addresses().to_vec());
    let tokens = settings.browser.gives_tokens.then_some(tokens);
    Ok(Some(Gateway::start(&settings.browser, &settings.server, tunnels, pages, tokens)?))
}

#[cfg(not(feature = "browser"))]
pub fn show(
    settings: &Settings,
    _server: &Server,
    _key: PrivateKey,
    _played: &Played<'_>,
) -> Result<Option<Shown>, Box<dyn std::error::Error>> {
    match settings.browser.address {
        None => Ok(None),
        Some(_) => Err("[browser] address: this build has no part for browsers; build it with the feature `browser`, or write \"off\"".into()),
    }
}

/// What a person on this host writes into a browser.
#[cfg(feature = "browser")]
pub fn url(shown: &Shown) -> String {
    shown.url()
}

#[cfg(not(feature = "browser"))]
pub fn url(shown: &Shown) -> String {
    match *shown {}
}
