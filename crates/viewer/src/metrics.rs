//! One text for programs that scrape it, on a loopback port: `GET /metrics`.
//!
//! Any program on this machine may read it, as monitoring expects; a page of another site may not: it would have to
//! name us as its host (`gate`). Connections are anonymous ones, so few and short-lived, on a thread that no
//! measurement waits for (`connections`).

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use crate::connections::Answering;
use crate::gate::Hosts;

/// As OpenMetrics 1.0 asks.
const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
/// A scrape in progress when the run ends may finish.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Builds the text. Errors: in words, for the client.
pub type MakeText = Box<dyn FnMut() -> Result<String, String> + Send>;

/// Answers until it is dropped.
#[derive(Debug)]
pub struct MetricsServer {
    _answering: Answering,
}

struct Shared {
    hosts: Hosts,
    make: Mutex<MakeText>,
}

/// Listens on loopback, on this port and no other. Errors: the system's.
pub fn listen_for_metrics(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Answers with the text, which is made anew for each request. Errors: no thread.
pub fn serve_metrics(listener: TcpListener, make: MakeText) -> io::Result<MetricsServer> {
    let port = listener.local_addr()?.port();
    let shared = Arc::new(Shared { hosts: Hosts::of_port(port), make: Mutex::new(make) });
    let answering = Answering::begin("metrics", listener, router(shared), LAST_WORDS)?;
    Ok(MetricsServer { _answering: answering })
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/metrics", get(text))
        .layer(from_fn_with_state(shared.clone(), of_our_host))
        .with_state(shared)
}

async fn of_our_host(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Response {
    if let Err(why) = shared.hosts.named_by(&uri, &headers) {
        return (StatusCode::FORBIDDEN, format!("{why}\n")).into_response();
    }
    if !matches!(method, Method::GET | Method::HEAD) {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    next.run(request).await
}

async fn text(State(shared): State<Arc<Shared>>) -> Response {
    let made = (shared.make.lock().unwrap_or_else(PoisonError::into_inner))();
    match made {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(why) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n")).into_response(),
    }
}
