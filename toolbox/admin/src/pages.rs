//! The pages: what each path answers, and in which format.
//!
//! [`admit`] stands before all of them: it has the [gate](crate::access::gate) judge each request, and whatever may
//! change something audited. A page that is reached is allowed.
//!
//! Each answer closes its connection. A scrape comes every few seconds at most, so keeping connections would only
//! keep places that a newcomer needs.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};

use throng_profiler::scope;

use super::AdminSource;
use super::access::Role;
use super::access::audit::{self, Audited};
use super::access::gate::{CONSOLE, Gate, HEALTH, Refusal, needs};
use super::bounds::{Peer, REQUEST_BYTES_MAX};
use super::client_table;
use super::console::Console;
use super::counter_table;
use super::packet_table;

/// How the server's frame is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Health {
    pub state: HealthState,
    /// Since the end of the last frame (ms).
    pub frame_age_ms: f64,
    /// For how long no worker has finished a tick though each has one (ms).
    pub workers_stuck_ms: f64,
}

/// The verdict that a supervisor acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthState {
    /// Frames come at their rate.
    Running,
    /// Nobody is here and nothing is due: no frame for a while, and that is right.
    Sleeping,
    /// A frame should have come and did not, or frames come and no world ticks in them.
    Stuck,
}

impl HealthState {
    fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Sleeping => "sleeping",
            Self::Stuck => "stuck",
        }
    }
}

/// What the pages show, carry out and are guarded by.
struct Port {
    source: Arc<dyn AdminSource>,
    console: Console,
    gate: Gate,
}

type OfPort = State<Arc<Port>>;

/// The name of the key that a request came with.
#[derive(Clone)]
struct Asker(String);

pub(crate) fn router(source: Arc<dyn AdminSource>, console: Console, gate: Gate) -> Router {
    let (packets, counters, clients) = (source.clone(), source.clone(), source.clone());
    let console = console
        .with("packets", Role::Observe, packet_table::ARGUMENTS, packet_table::HELP, move |call| {
            packet_table::command(call, &packets.packets())
        })
        .with("counters", Role::Observe, counter_table::ARGUMENTS, counter_table::HELP, move |call| {
            counter_table::command(call, &counters.counters())
        })
        .with("clients", Role::Observe, client_table::ARGUMENTS, client_table::HELP, move |call| {
            client_table::command(call, &clients.clients())
        });
    let port = Arc::new(Port { source, console, gate });
    Router::new()
        .route("/metrics", get(metrics))
        .route(HEALTH, get(health))
        .route("/capture", post(capture))
        .route(CONSOLE, post(command))
        .with_state(port.clone())
        .fallback(unknown)
        .layer(from_fn_with_state(port, admit))
        .layer(map_response(close))
}

/// Lets requests through to their pages that may go there, and has a line written for the others and for whatever
/// changes something.
async fn admit(
    State(port): OfPort,
    ConnectInfo(Peer(from)): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let what = path.trim_start_matches('/');
    let caller = match port.gate.admit(from.ip(), &head.method, path, &head.headers) {
        Ok(caller) => caller,
        Err(refusal) => {
            audit::refused(&refusal, from, what);
            return not_let(refusal);
        }
    };
    let Some(role) = needs(&head.method, path).filter(|_| !head.method.is_safe()) else {
        return next.run(Request::from_parts(head, body)).await;
    };
    let Ok(body) = to_bytes(body, REQUEST_BYTES_MAX).await else {
        return error(StatusCode::BAD_REQUEST, "the request's body did not come");
    };
    let text = String::from_utf8_lossy(&body).into_owned();
    let role = if path == CONSOLE { port.console.role_of(&text) } else { role };
    let what = format!("{what} {}", text.trim_end());
    if let Err(refusal) = port.gate.permit(&caller, role) {
        audit::refused(&refusal, from, &what);
        return not_let(refusal);
    }
    let who = caller.who.unwrap_or_else(|| "nobody".to_owned());
    let audited = (role == Role::Operate).then(|| {
        port.gate.note_operated();
        Audited::begin(&who, from, &what)
    });
    let mut request = Request::from_parts(head, Body::from(body));
    request.extensions_mut().insert(Asker(who));
    let response = next.run(request).await;
    if let Some(audited) = audited {
        audited.end(response.status());
    }
    response
}

fn not_let(refusal: Refusal) -> Response {
    let status = refusal.cause.status();
    let mut response = error(status, &refusal.text);
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(seconds) = refusal.retry_after_s {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

async fn metrics(State(port): OfPort) -> Response {
    scope!("admin.metrics");
    let mut text = port.source.metrics_text();
    if let Some(figures) = text.strip_suffix(END_MARK) {
        text = format!("{figures}{}{END_MARK}", port.gate.metrics_text());
    }
    // OpenMetrics demands its end mark, by which a scraper knows that nothing was cut off; the older format has none.
    let format = if text.ends_with(END_MARK) {
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    } else {
        "text/plain; version=0.0.4; charset=utf-8"
    };
    answer(StatusCode::OK, format, text)
}

async fn health(State(port): OfPort) -> Response {
    let Health { state, frame_age_ms, workers_stuck_ms } = port.source.health();
    let status = match state {
        HealthState::Running | HealthState::Sleeping => StatusCode::OK,
        HealthState::Stuck => StatusCode::SERVICE_UNAVAILABLE,
    };
    let state = state.name();
    let body = format!(
        "{{\"state\":\"{state}\",\"frame_age_ms\":{frame_age_ms:.1},\"workers_stuck_ms\":{workers_stuck_ms:.1}}}\n"
    );
    answer(status, JSON, body)
}

/// A note is a sentence; a longer one is cut.
const NOTE_CHARACTERS_MAX: usize = 200;

async fn capture(State(port): OfPort, headers: HeaderMap, note: String) -> Response {
    if !is_meant(&headers, "capture") {
        return refused("send the header `x-throng: capture`, as `throng capture save` does");
    }
    let note: String = note.chars().take(NOTE_CHARACTERS_MAX).collect();
    // Writing waits for the disk, and metrics must be readable meanwhile.
    let saved = tokio::task::spawn_blocking(move || port.source.save_capture(&note)).await;
    match saved {
        Ok(Ok(saved)) => {
            let body = serde_json::json!({ "path": saved.path, "bytes": saved.size_bytes });
            answer(StatusCode::OK, JSON, body.to_string() + "\n")
        }
        Ok(Err(reason)) => error(StatusCode::SERVICE_UNAVAILABLE, &reason),
        Err(panic) => error(StatusCode::INTERNAL_SERVER_ERROR, &panic.to_string()),
    }
}

async fn command(
    State(port): OfPort,
    Extension(Asker(who)): Extension<Asker>,
    headers: HeaderMap,
    line: String,
) -> Response {
    if !is_meant(&headers, "console") {
        return refused("send the header `x-throng: console`, as `throng console` does");
    }
    // A command may read a file, and metrics must be readable meanwhile.
    let done = tokio::task::spawn_blocking(move || port.console.execute(&line, &who)).await;
    match done {
        Ok(Ok(text)) => answer(StatusCode::OK, JSON, serde_json::json!({ "text": text }).to_string() + "\n"),
        Ok(Err(reason)) => error(StatusCode::BAD_REQUEST, &reason),
        Err(panic) => error(StatusCode::INTERNAL_SERVER_ERROR, &panic.to_string()),
    }
}

/// A web page can post here, but not with a header that it would have to ask leave for.
fn is_meant(headers: &HeaderMap, purpose: &str) -> bool {
    headers.get("x-throng").is_some_and(|value| value == purpose)
}

fn refused(how: &str) -> Response {
    error(StatusCode::FORBIDDEN, how)
}

const JSON: &str = "application/json";
/// Of the OpenMetrics format.
const END_MARK: &str = "# EOF\n";

fn error(status: StatusCode, error: &str) -> Response {
    answer(status, JSON, serde_json::json!({ "error": error }).to_string() + "\n")
}

async fn unknown() -> Response {
    let text = "there are GET /metrics, GET /health, POST /capture and POST /console\n";
    answer(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", text.to_owned())
}

fn answer(status: StatusCode, format: &'static str, body: String) -> Response {
    let headers =
        [(CONTENT_TYPE, HeaderValue::from_static(format)), (CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (status, headers, body).into_response()
}

async fn close(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
