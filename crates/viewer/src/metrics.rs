//! One text for programs that ask for it again and again, on a port of loopback: `GET /metrics`.
//!
//! Whoever is on this machine may read it, as monitoring expects; a page of another site may not: it would have to name us as its host
//! (`gate`). Connections are those of strangers, so few and short (`connections`). The thread yields to everything else,
//! and nothing that measures waits for it.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tokio::sync::oneshot;

use crate::connections;
use crate::gate::Hosts;
use crate::server::yield_to_others;

/// As OpenMetrics 1.0 asks.
const CONTENT_TYPE: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
/// A scrape that is under way when the run ends may come to its end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Makes the text. Errors: in words, for whoever asked.
pub type MakeText = Box<dyn FnMut() -> Result<String, String> + Send>;

/// Answers until it is dropped.
#[derive(Debug)]
pub struct MetricsServer {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
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
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let (stop, stopped) = oneshot::channel();
    let work = move || {
        yield_to_others();
        runtime.block_on(async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            let (tell_closing, closing) = oneshot::channel::<()>();
            let until_stopped = async move {
                let _ = stopped.await;
                let _ = tell_closing.send(());
            };
            let too_long = async move {
                let _ = closing.await;
                tokio::time::sleep(LAST_WORDS).await;
            };
            tokio::select! {
                () = connections::answer(listener, router(shared), until_stopped) => {}
                () = too_long => {}
            }
        });
        runtime.shutdown_timeout(LAST_WORDS);
    };
    let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(work)?;
    Ok(MetricsServer { stop: Some(stop), thread: Some(thread) })
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
