//! The pages: what each path answers, and in which format.
//!
//! Each answer closes its connection. A scrape comes every few seconds at most, so keeping connections would only
//! keep places that a newcomer needs.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use throng_profiler::scope;

use super::AdminSource;
use super::console::Console;
use super::counter_table;
use super::origin_check::OwnNames;
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

type Source = State<Arc<dyn AdminSource>>;

pub(crate) fn router(source: Arc<dyn AdminSource>, console: Console, names: OwnNames) -> Router {
    let (packets, counters) = (source.clone(), source.clone());
    let console = console.with("packets", packet_table::ARGUMENTS, packet_table::HELP, move |call| {
        packet_table::command(call, &packets.packets())
    });
    let console = console.with("counters", counter_table::ARGUMENTS, counter_table::HELP, move |call| {
        counter_table::command(call, &counters.counters())
    });
    let console = Router::new().route("/console", post(command)).with_state(Arc::new(console));
    Router::new()
        .route("/metrics", get(metrics))
        .route("/health", get(health))
        .route("/capture", post(capture))
        .with_state(source)
        .merge(console)
        .fallback(unknown)
        .layer(from_fn_with_state(Arc::new(names), admit))
        .layer(map_response(close))
}

async fn admit(State(names): State<Arc<OwnNames>>, request: Request, next: Next) -> Response {
    match names.refuse(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(reason) => refused(&reason),
    }
}

async fn metrics(State(source): Source) -> Response {
    scope!("admin.metrics");
    let text = source.metrics_text();
    // OpenMetrics demands its end mark, by which a scraper knows that nothing was cut off; the older format has none.
    let format = if text.ends_with("# EOF\n") {
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    } else {
        "text/plain; version=0.0.4; charset=utf-8"
    };
    answer(StatusCode::OK, format, text)
}

async fn health(State(source): Source) -> Response {
    let Health { state, frame_age_ms, workers_stuck_ms } = source.health();
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

async fn capture(State(source): Source, headers: HeaderMap, note: String) -> Response {
    if !is_meant(&headers, "capture") {
        return refused("send the header `x-throng: capture`, as `throng capture save` does");
    }
    let note: String = note.chars().take(NOTE_CHARACTERS_MAX).collect();
    // Writing waits for the disk, and metrics must be readable meanwhile.
    let saved = tokio::task::spawn_blocking(move || source.save_capture(&note)).await;
    match saved {
        Ok(Ok(saved)) => {
            let body = serde_json::json!({ "path": saved.path, "bytes": saved.size_bytes });
            answer(StatusCode::OK, JSON, body.to_string() + "\n")
        }
        Ok(Err(reason)) => error(StatusCode::SERVICE_UNAVAILABLE, &reason),
        Err(panic) => error(StatusCode::INTERNAL_SERVER_ERROR, &panic.to_string()),
    }
}

async fn command(State(console): State<Arc<Console>>, headers: HeaderMap, line: String) -> Response {
    if !is_meant(&headers, "console") {
        return refused("send the header `x-throng: console`, as `throng console` does");
    }
    // A command may read a file, and metrics must be readable meanwhile.
    let done = tokio::task::spawn_blocking(move || console.execute(&line)).await;
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
