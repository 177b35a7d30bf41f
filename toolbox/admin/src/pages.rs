//! The pages: what each path answers, and in which format.
//!
//! [`admit`] stands before all of them: it has the [gate](crate::access::gate) judge each request, and whatever may
//! change something audited. A page that is reached is allowed.
//!
//! Each answer closes its connection. A scrape comes every few seconds at most, so keeping connections would only
//! keep places that a newcomer needs.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, Path, RawQuery, Request, State};
use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONNECTION, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    REFERRER_POLICY, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};

use throng_profiler::scope;
use tokio::sync::Semaphore;

use super::AdminSource;
use super::access::Role;
use super::access::audit::{self, Audited};
use super::access::changes::Changes;
use super::access::gate::{CAPTURES, CONSOLE, CONSOLE_PAGE, Caller, Gate, HEALTH, Refusal, VIEWER_PAGE, needs};
use super::bounds::{Peer, REQUEST_BYTES_MAX};
use super::capture_links;
use super::captures::{self, Captures};
use super::change_table;
use super::client_table;
use super::console::Console;
use super::counter_table;
use super::formats::MetricsFormat;
use super::metrics_page::MetricsPages;
use super::packet_table;
use super::watch::document::Hello;
use super::watch::{WatchPace, Watchers};

/// How the server's frame is doing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Health {
    pub state: HealthState,
    /// Since the end of the last frame (ms).
    pub frame_age_ms: f64,
    /// For how long no worker has finished a tick though each has one (ms).
    pub workers_stuck_ms: f64,
    /// The store of the saves has failed, or takes nothing. Play goes on: no reason to start another server.
    pub are_saves_away: bool,
    /// Analytics events cannot be written, or their receiver takes none. No reason either.
    pub are_analytics_away: bool,
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
    /// As `/health` says it.
    pub fn name(self) -> &'static str {
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
    changes: Arc<Changes>,
    watchers: Arc<Watchers>,
    captures: Captures,
    metrics_pages: MetricsPages,
    /// Places of commands that are being carried out.
    commands: Arc<Semaphore>,
}

/// Each waits on a thread of its own, up to some seconds if the frame or a world does not answer.
pub(crate) const COMMANDS_MAX: usize = 8;

type OfPort = State<Arc<Port>>;

/// The name of the key that a request came with.
#[derive(Clone)]
struct Asker(String);

pub(crate) fn router(source: Arc<dyn AdminSource>, console: Console, gate: Gate, pace: WatchPace) -> Router {
    let changes = Arc::<Changes>::default();
    let listed = changes.clone();
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
        })
        .with("changes", Role::Observe, "", change_table::HELP, move |call| {
            change_table::command(call, &listed.last())
        });
    let watchers = Watchers::new(source.clone(), changes.clone(), pace);
    let commands = Arc::new(Semaphore::new(COMMANDS_MAX));
    let (captures, metrics_pages) = (Captures::new(), MetricsPages::default());
    let port = Arc::new(Port { source, console, gate, changes, watchers, captures, metrics_pages, commands });
    Router::new()
        .route(CONSOLE_PAGE, get(|| async { page(throng_pages::CONSOLE) }))
        .route(VIEWER_PAGE, get(|| async { page(throng_pages::VIEWER) }))
        .route("/metrics", get(metrics))
        .route(HEALTH, get(health))
        .route("/api/watch", get(watch))
        .route("/api/captures", get(list_captures))
        .route("/api/captures/{*path}", get(capture_bytes))
        .route("/api/stories/{*path}", get(capture_story))
        .route("/capture", post(capture))
        .route(CAPTURES, get(linked_captures))
        .route(&format!("{CAPTURES}/{{name}}"), get(linked_capture))
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
    ConnectInfo(Peer { address: from, .. }): ConnectInfo<Peer>,
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
        let mut request = Request::from_parts(head, body);
        request.extensions_mut().insert(caller);
        return next.run(request).await;
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
        Audited::begin(&who, from, &what, &port.changes)
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

async fn metrics(State(port): OfPort, headers: HeaderMap) -> Response {
    scope!("admin.metrics");
    let format = MetricsFormat::asked_for(&headers);
    let body = port.metrics_pages.page(format, Instant::now(), || {
        let counters = port.gate.counters().into_iter().chain(port.watchers.counters()).collect();
        port.source.metrics(format, counters)
    });
    // OpenMetrics ends with a mark, by which a scraper knows that nothing was cut off. Before the first second there is
    // nothing, the mark included: the older format has none.
    let content_type = match format {
        MetricsFormat::Text if body.is_empty() => "text/plain; version=0.0.4; charset=utf-8",
        format => format.content_type(),
    };
    answer(StatusCode::OK, content_type, body)
}

async fn health(State(port): OfPort) -> Response {
    let Health { state, frame_age_ms, workers_stuck_ms, are_saves_away, are_analytics_away } = port.source.health();
    let status = match state {
        HealthState::Running | HealthState::Sleeping => StatusCode::OK,
        HealthState::Stuck => StatusCode::SERVICE_UNAVAILABLE,
    };
    let state = state.name();
    let body = format!(
        "{{\"state\":\"{state}\",\"frame_age_ms\":{frame_age_ms:.1},\"workers_stuck_ms\":{workers_stuck_ms:.1},\
         \"saves_away\":{are_saves_away},\"analytics_away\":{are_analytics_away}}}\n"
    );
    answer(status, JSON, body)
}

/// Lines for as long as the asker reads them.
async fn watch(
    State(port): OfPort,
    ConnectInfo(Peer { life, .. }): ConnectInfo<Peer>,
    Extension(caller): Extension<Caller>,
) -> Response {
    let Some(place) = port.watchers.place() else {
        return error(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many watch this server already; one of them has to go first",
        );
    };
    let role = caller.may.unwrap_or(Role::Observe).name().to_owned();
    let hello = Hello { version: env!("CARGO_PKG_VERSION").to_owned(), role, who: caller.who };
    stream("application/x-ndjson", port.watchers.begin(hello, &life, place))
}

async fn list_captures(State(port): OfPort) -> Response {
    let Some(folder) = port.source.captures_folder() else { return no_captures() };
    let turn = port.captures.turn().await;
    let listed = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        captures::list(&folder)
    });
    match listed.await {
        Ok(Ok(listed)) => answer(StatusCode::OK, JSON, serde_json::json!({ "captures": listed }).to_string() + "\n"),
        Ok(Err(cause)) => error(StatusCode::SERVICE_UNAVAILABLE, &format!("the folder of captures: {cause}")),
        Err(panic) => error(StatusCode::INTERNAL_SERVER_ERROR, &panic.to_string()),
    }
}

async fn capture_bytes(
    State(port): OfPort,
    ConnectInfo(Peer { life, .. }): ConnectInfo<Peer>,
    Path(path): Path<String>,
) -> Response {
    let Some(folder) = port.source.captures_folder() else { return no_captures() };
    let Some(place) = port.captures.place() else { return busy() };
    match tokio::task::spawn_blocking(move || captures::bytes(&folder, |found| found.path == path, &life, place)).await
    {
        Ok(Ok(file)) => download(file),
        Ok(Err(cause)) => error(status_of(&cause), &cause.to_string()),
        Err(panic) => error(StatusCode::INTERNAL_SERVER_ERROR, &panic.to_string()),
    }
}

async fn capture_story(State(port): OfPort, Path(path): Path<String>) -> Response {
    let Some(folder) = port.source.captures_folder() else { return no_captures() };
    let Some(place) = port.captures.place() else { return busy() };
    let told = tokio::task::spawn_blocking(move || {
        let _place = place;
        captures::tell(&folder, &path)
    });
    match told.await {
        Ok(Ok(story)) => answer(StatusCode::OK, JSON, story + "\n"),
        Ok(Err(cause)) => error(status_of(&cause), &cause.to_string()),
        Err(panic) => error(StatusCode::INTERNAL_SERVER_ERROR, &panic.to_string()),
    }
}

/// For whoever comes by a link, as a page or as JSON.
async fn linked_captures(State(port): OfPort, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let Some(folder) = port.source.captures_folder() else { return no_captures() };
    let at_ms = capture_links::moment_in(query.as_deref());
    let turn = port.captures.turn().await;
    let linked = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        capture_links::list(&folder, at_ms)
    });
    let linked = match linked.await {
        Ok(Ok(linked)) => linked,
        Ok(Err(cause)) => return error(StatusCode::SERVICE_UNAVAILABLE, &format!("the folder of captures: {cause}")),
        Err(panic) => return error(StatusCode::INTERNAL_SERVER_ERROR, &panic.to_string()),
    };
    let is_browser =
        headers.get(ACCEPT).and_then(|value| value.to_str().ok()).is_some_and(|text| text.contains("text/html"));
    if !is_browser {
        return answer(StatusCode::OK, JSON, serde_json::json!({ "captures": linked }).to_string() + "\n");
    }
    let mut response = answer(StatusCode::OK, "text/html; charset=utf-8", capture_links::page(&linked, at_ms));
    let policy = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; base-uri 'none'");
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response
}

async fn linked_capture(
    State(port): OfPort,
    ConnectInfo(Peer { life, .. }): ConnectInfo<Peer>,
    Path(name): Path<String>,
) -> Response {
    let Some(folder) = port.source.captures_folder() else { return no_captures() };
    let Some(place) = port.captures.place() else { return busy() };
    let asked = name.clone();
    let read = move || captures::bytes(&folder, |found| capture_links::is_called(found, &asked), &life, place);
    let mut response = match tokio::task::spawn_blocking(read).await {
        Ok(Ok(file)) => download(file),
        Ok(Err(cause)) => return error(status_of(&cause), &cause.to_string()),
        Err(panic) => return error(StatusCode::INTERNAL_SERVER_ERROR, &panic.to_string()),
    };
    // It was found, so it is a plain file's name; one with other letters is saved under a name of the browser's own.
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}.capture\"")) {
        response.headers_mut().insert(CONTENT_DISPOSITION, value);
    }
    response
}

fn no_captures() -> Response {
    error(
        StatusCode::NOT_FOUND,
        "this server keeps no captures: set [recorder] captures, or start it with --captures DIR",
    )
}

fn busy() -> Response {
    error(StatusCode::SERVICE_UNAVAILABLE, "too many captures are on their way; ask again when one is there")
}

fn status_of(cause: &io::Error) -> StatusCode {
    match cause.kind() {
        io::ErrorKind::NotFound => StatusCode::NOT_FOUND,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// A note is a sentence; a longer one is cut.
pub(crate) const NOTE_CHARACTERS_MAX: usize = 200;

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
    let Ok(place) = port.commands.clone().try_acquire_owned() else {
        return error(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many commands are being carried out; ask again when one is done",
        );
    };
    // A command may read a file, and metrics must be readable meanwhile. It goes on when the asker has left, and keeps its
    // place.
    let done = tokio::task::spawn_blocking(move || {
        let _place = place;
        port.console.execute(&line, &who)
    });
    match done.await {
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

fn error(status: StatusCode, error: &str) -> Response {
    answer(status, JSON, serde_json::json!({ "error": error }).to_string() + "\n")
}

async fn unknown() -> Response {
    let text = "there are GET / and /viewer for browsers, GET /metrics, GET /health, GET /captures, GET /api/watch, GET /api/captures, POST /capture \
                and POST /console\n";
    answer(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", text.to_owned())
}

fn answer(status: StatusCode, format: &'static str, body: impl Into<Body>) -> Response {
    let headers =
        [(CONTENT_TYPE, HeaderValue::from_static(format)), (CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (status, headers, body.into()).into_response()
}

/// A page of ours. Its own policy is inside; that nobody may show it in a frame can be said here only.
fn page(html: &'static str) -> Response {
    let mut response = answer(StatusCode::OK, "text/html; charset=utf-8", html.to_owned());
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("frame-ancestors 'none'"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// An answer whose end nobody knows yet.
fn stream(format: &'static str, body: Body) -> Response {
    let headers =
        [(CONTENT_TYPE, HeaderValue::from_static(format)), (CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (StatusCode::OK, headers, body).into_response()
}

/// A file whose length is known, so that whoever takes it sees if it was cut off.
fn download((body, length): (Body, u64)) -> Response {
    let mut response = stream("application/octet-stream", body);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    response
}

async fn close(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
