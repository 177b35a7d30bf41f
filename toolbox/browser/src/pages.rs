//! What browsers ask for: the page, the modules that it is made of, a token, the WebSocket.
//!
//! A token is for this server's own page alone: it is asked for with a header that no other page can have a browser send
//! here. It and a WebSocket are for own pages and for those that the settings name ([`own_pages`](crate::own_pages)).

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use throng_net::transport::Refusal;

use crate::carrier::Carrier;
use crate::own_pages::OwnPages;
use crate::shares::Peer;
use crate::socket;
use crate::tokens::{Given, TokenGiver};
use crate::web_transport::{self, Told};

/// The header that a page of ours sends.
const OURS: HeaderName = HeaderName::from_static("x-throng");

/// What a page may do: run what came from here, and speak to servers.
const POLICY: &str = "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data:; connect-src 'self' https: wss: ws:; frame-ancestors 'none'; base-uri 'none'; \
                      form-action 'none'";

/// What is shown.
#[derive(Clone)]
pub struct Pages {
    /// The game's page; `None`: it has none, and that is said.
    pub page: Option<&'static str>,
    /// The module `schema.js`.
    pub schema: String,
}

struct Shown {
    pages: Pages,
    tokens: Option<TokenGiver>,
    carrier: Arc<Carrier>,
    /// Where WebTransport is, if it is.
    web_transport: Option<Arc<Mutex<Told>>>,
    own: Arc<OwnPages>,
}

pub(crate) fn router(
    pages: Pages,
    tokens: Option<TokenGiver>,
    carrier: Arc<Carrier>,
    web_transport: Option<Arc<Mutex<Told>>>,
    own: Arc<OwnPages>,
) -> Router {
    let shown = Arc::new(Shown { pages, tokens, carrier, web_transport, own });
    Router::new()
        .route("/", get(|| async { Redirect::temporary("/play/") }))
        .route("/play", get(|| async { Redirect::temporary("/play/") }))
        .route("/play/", get(page))
        .route("/play/client.js", get(|| async { script(throng_pages::CLIENT) }))
        .route("/play/schema.js", get(schema))
        .route("/play/token", post(token))
        .route("/play/socket", get(web_socket))
        .with_state(shown)
}

async fn page(State(shown): State<Arc<Shown>>) -> Response {
    match shown.pages.page {
        Some(page) => answer("text/html; charset=utf-8", page.to_owned()),
        None => (StatusCode::NOT_FOUND, "this game has no page; give it one with `Game::page`\n").into_response(),
    }
}

async fn schema(State(shown): State<Arc<Shown>>) -> Response {
    script(&shown.pages.schema)
}

async fn token(
    State(shown): State<Arc<Shown>>,
    Extension(Peer(peer)): Extension<Peer>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Response {
    let refuse = |status, why: &'static str| (status, why).into_response();
    let Some(tokens) = &shown.tokens else {
        return refuse(StatusCode::NOT_FOUND, "this server lets nobody in by itself; see [browser] gives_tokens\n");
    };
    if headers.get(OURS).is_none_or(|said| said != "play") {
        return refuse(StatusCode::FORBIDDEN, "a token is for pages of this server: send the header x-throng: play\n");
    }
    if let Err(why) = shown.own.check_page(&headers) {
        return refuse(StatusCode::FORBIDDEN, why);
    }
    let asks_for_audit = query.as_deref() == Some("audit");
    let Some(Given { token, expires_unix_s }) = tokens.give(peer.ip(), asks_for_audit) else {
        return refuse(StatusCode::TOO_MANY_REQUESTS, "too many players come at once: try again in a moment\n");
    };
    let web_transport = shown.web_transport.as_ref().and_then(|told| {
        let told = *told.lock().unwrap_or_else(PoisonError::into_inner);
        Some(serde_json::json!({
            "url": web_transport_url(&told, headers.get(header::HOST))?,
            "certificate_hash": told.certificate_hash.map(|hash| BASE64.encode(hash)),
        }))
    });
    let object = serde_json::json!({
        "token": BASE64.encode(token),
        "expires_unix_s": expires_unix_s,
        "web_socket": "/play/socket",
        "web_transport": web_transport,
    });
    answer("application/json", object.to_string())
}

/// By the name that the page was asked for by, which the certificate has; this host alone has addresses in its own.
fn web_transport_url(told: &Told, host: Option<&HeaderValue>) -> Option<String> {
    let Told { address, certificate_hash } = told;
    if certificate_hash.is_some() {
        return Some(format!("https://{address}{}", web_transport::PATH));
    }
    let authority: axum::http::uri::Authority = host?.to_str().ok()?.parse().ok()?;
    Some(format!("https://{}:{}{}", authority.host(), address.port(), web_transport::PATH))
}

async fn web_socket(
    State(shown): State<Arc<Shown>>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    if let Err(why) = shown.own.check_page(&headers) {
        shown.carrier.turn_away(Refusal::Page);
        return (StatusCode::FORBIDDEN, why).into_response();
    }
    socket::answer(shown.carrier.clone(), peer, upgrade)
}

fn script(text: &str) -> Response {
    answer("text/javascript; charset=utf-8", text.to_owned())
}

fn answer(kind: &'static str, text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_transport_is_where_the_page_is() {
        let check = |told: Told, host: Option<&str>, expect: Option<&str>| {
            let host = host.map(|host| HeaderValue::from_str(host).unwrap());
            assert_eq!(web_transport_url(&told, host.as_ref()).as_deref(), expect, "{told:?} {host:?}");
        };
        let own = Told { address: "127.0.0.1:4433".parse().unwrap(), certificate_hash: Some([7; 32]) };
        check(own, Some("localhost:80"), Some("https://127.0.0.1:4433/play/transport"));
        let named = Told { address: "0.0.0.0:4433".parse().unwrap(), certificate_hash: None };
        check(named, Some("game.example:8443"), Some("https://game.example:4433/play/transport"));
        check(named, Some("[2001:db8::1]:8443"), Some("https://[2001:db8::1]:4433/play/transport"));
        check(named, Some("game.example"), Some("https://game.example:4433/play/transport"));
        check(named, Some("no host"), None);
        check(named, None, None);
    }
}
