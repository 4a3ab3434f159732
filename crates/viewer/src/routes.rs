//! The viewer's routes.
//!
//! They are behind the token, which `guarded` removes from the path before the lookup, so no route is reachable without
//! it. Everything that queries SQLite runs off the server's thread, so that a page of an hour does not delay live
//! seconds.
//! Errors are `{"error": words}`; without the token there is only a page that says what to do.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, Request, State};
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::Event;
use axum::response::{Html, IntoResponse, Response, Sse};
use axum::routing::{get, put};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use store::{RunId, Store, StoreError};
use tokio::sync::{Semaphore, mpsc};

use crate::archive::{Answers, Archive, Detail, POINTS, SharedJudge};
use crate::bundle;
use crate::comparison::{NotComparable, beside};
use crate::connections::Seat;
use crate::error::ViewError;
use crate::gate::{Gate, Ruling, same};
use crate::live::{END, Follower};
use crate::tick_files::{TickFiles, dropped};

/// Between two looks for something new.
const LOOK: Duration = Duration::from_millis(200);
/// A page that receives nothing for this long checks whether we are alive.
const PING: Duration = Duration::from_secs(10);
/// A tick log may be dropped up to this size: a day of the original format has some 40 MB.
const DROPPED_BYTES: usize = 64 << 20;
const LABELS_BYTES: usize = 64 << 10;
/// Characters of a label's key and of its value.
const LABEL_LENGTHS: (usize, usize) = (64, 10_000);
/// Pages that follow something at once; each has a thread that mostly sleeps.
const FOLLOWERS: usize = 32;
/// A token that is good once is good for so long: a browser that starts takes seconds.
const ONCE: Duration = Duration::from_secs(60);
/// Whose value "true" keeps a run from being deleted.
const PINNED: &str = "pinned";

/// What all requests share.
pub(crate) struct Shared {
    pub store: PathBuf,
    pub judge: SharedJudge,
    pub gate: Gate,
    pub answers: Answers,
    pub ticks: Mutex<TickFiles>,
    pub followers: Arc<Semaphore>,
    /// a token that opens the page once, for the browser that we start ourselves
    pub once: Mutex<Option<Once>>,
    pub is_closing: Arc<AtomicBool>,
    pub policy: HeaderValue,
}

/// A token that opens the page once.
pub(crate) struct Once {
    pub token: String,
    pub since: Instant,
}

impl Shared {
    pub fn followers() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(FOLLOWERS))
    }
}

type App = State<Arc<Shared>>;

pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let routes = Router::new()
        .route("/", get(page))
        .route("/report/{file}", get(report))
        .route("/api/runs", get(runs))
        .route("/api/runs/{id}", get(run).delete(delete))
        .route("/api/runs/{id}/trials/{seq}", get(trial))
        .route("/api/runs/{id}/profile", get(profile))
        .route("/api/beside/{old}/{new}", get(old_beside_new))
        .route("/api/runs/{id}/live", get(live))
        .route("/api/runs/{id}/labels", put(labels).layer(DefaultBodyLimit::max(LABELS_BYTES)))
        .route("/api/ticks", get(ticks).post(drop_ticks).layer(DefaultBodyLimit::max(DROPPED_BYTES)))
        .route("/api/ticks/live", get(ticks_live))
        .fallback(async || Refusal(StatusCode::NOT_FOUND, "there is no such page".to_owned()))
        .method_not_allowed_fallback(async || {
            Refusal(StatusCode::METHOD_NOT_ALLOWED, "this address does not do that".to_owned())
        })
        .with_state(shared.clone());
    // Around the routes and not in each: the path that they see begins after the token.
    Router::new().fallback_service(routes).layer(middleware::from_fn_with_state(shared, guarded))
}

/// A status and why, for people.
struct Refusal(StatusCode, String);

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        json_text(self.0, json!({ "error": self.1 }).to_string())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let status = match &error {
            StoreError::UnknownRun { .. } | StoreError::UnknownTrial { .. } | StoreError::NoStore { .. } => {
                StatusCode::NOT_FOUND
            }
            StoreError::StillRecorded { .. } => StatusCode::CONFLICT,
            StoreError::Busy { .. } => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Refusal(status, error.to_string())
    }
}

fn json_text(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

fn as_json(value: &impl serde::Serialize) -> Result<Response, Refusal> {
    let text = serde_json::to_string(value)
        .map_err(|error| Refusal(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(json_text(StatusCode::OK, text))
}

/// Asks the gate, and puts on every answer what a browser must know of it.
async fn guarded(State(shared): App, mut request: Request, next: Next) -> Response {
    let mut ruling = shared.gate.rule(request.method(), request.uri(), request.headers());
    if ruling == Ruling::AskForToken && shared.takes_once(request.uri()) {
        ruling = Ruling::Enter;
    }
    let seat = request.extensions_mut().remove::<Arc<Seat>>();
    let mut response = match ruling {
        Ruling::Pass if seat.as_ref().is_some_and(|seat| !seat.keep()) => {
            let why = "too many connections are open; close some pages of this viewer".to_owned();
            closing(Refusal(StatusCode::SERVICE_UNAVAILABLE, why))
        }
        Ruling::Pass => {
            if let Some(behind) = behind_token(&shared.gate, request.uri()) {
                *request.uri_mut() = behind;
                next.run(request).await
            } else {
                Refusal(StatusCode::BAD_REQUEST, "this address is damaged".to_owned()).into_response()
            }
        }
        Ruling::Enter => (StatusCode::SEE_OTHER, [(header::LOCATION, shared.gate.root())]).into_response(),
        Ruling::Refuse(status, why) => closing(Refusal(status, why.to_owned())),
        Ruling::AskForToken => closing((StatusCode::UNAUTHORIZED, Html(ASK_FOR_TOKEN))),
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, shared.policy.clone());
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The address as the routes know it.
fn behind_token(gate: &Gate, uri: &Uri) -> Option<Uri> {
    let path = gate.behind_token(uri.path())?;
    let target = uri.query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    Some(Uri::from(PathAndQuery::try_from(target).ok()?))
}

/// An answer to a client without the token, which closes the connection: only the owner's are kept open.
fn closing(answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

const ASK_FOR_TOKEN: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>Stepladder</title></head>\
    <body><h1>This page needs its token</h1><p>Open the address that stepladder printed when it started: the token is \
    what follows the port, <code>http://127.0.0.1:…/TOKEN/</code>. A viewer that was started again has another token.</p>\
    </body></html>";

impl Shared {
    /// True for the one request that brings the token which is good once.
    fn takes_once(&self, uri: &Uri) -> bool {
        let brought = uri.query().and_then(|query| query.strip_prefix("token="));
        let Some(brought) = brought.filter(|_| uri.path() == "/") else { return false };
        let mut once = self.once.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it =
            once.as_ref().is_some_and(|once| same(brought, &once.token) && once.since.elapsed() < ONCE);
        if is_it {
            *once = None;
        }
        is_it
    }

    fn reader(&self) -> Result<Store, StoreError> {
        Store::open_to_read(&self.store)
    }
}

/// Runs disk-bound work off the server's thread.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Refusal(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())))
}

/// The run of exactly that id; a name or the beginning of one is not enough.
fn exactly(store: &Store, id: &str) -> Result<RunId, StoreError> {
    let found = store.find_run(id)?;
    if found.as_str() == id {
        return Ok(found);
    }
    let nearest = vec![found.to_string()];
    Err(StoreError::UnknownRun { path: store.path().to_owned(), text: id.to_owned(), nearest })
}

async fn page() -> Html<&'static str> {
    Html(bundle::PAGE)
}

async fn runs(State(shared): App) -> Result<Response, Refusal> {
    aside(move || {
        let (rows, damaged) = match shared.reader() {
            Ok(store) => Archive::new(&store, &*shared.judge).remembering(&shared.answers).rows()?,
            // No climb has been run yet.
            Err(StoreError::NoStore { .. }) => (Vec::new(), Vec::new()),
            Err(error) => return Err(error.into()),
        };
        as_json(&json!({ "runs": rows, "damaged": damaged }))
    })
    .await
}

async fn run(State(shared): App, Path(id): Path<String>) -> Result<Response, Refusal> {
    aside(move || {
        let store = shared.reader()?;
        as_json(
            &Archive::new(&store, &*shared.judge)
                .remembering(&shared.answers)
                .run_page(&exactly(&store, &id)?, Detail::First)?,
        )
    })
    .await
}

async fn old_beside_new(
    State(shared): App,
    Path((old, new)): Path<(String, String)>,
) -> Result<Response, Refusal> {
    aside(move || {
        let store = shared.reader()?;
        match beside(&store, &exactly(&store, &old)?, &exactly(&store, &new)?) {
            Ok(both) => as_json(&both),
            Err(NotComparable::Store(error)) => Err(error.into()),
            Err(error) => Err(Refusal(StatusCode::CONFLICT, error.to_string())),
        }
    })
    .await
}

#[derive(Deserialize)]
struct Points {
    points: Option<usize>,
}

async fn trial(
    State(shared): App,
    Path((id, seq)): Path<(String, u32)>,
    Query(asked): Query<Points>,
) -> Result<Response, Refusal> {
    aside(move || {
        let store = shared.reader()?;
        let points = asked.points.unwrap_or(POINTS);
        as_json(&Archive::new(&store, &*shared.judge).trial_page(&exactly(&store, &id)?, seq, points)?)
    })
    .await
}

async fn profile(State(shared): App, Path(id): Path<String>) -> Result<Response, Refusal> {
    aside(move || {
        let store = shared.reader()?;
        as_json(&Archive::new(&store, &*shared.judge).profile(&exactly(&store, &id)?)?)
    })
    .await
}

async fn report(State(shared): App, Path(file): Path<String>) -> Result<Response, Refusal> {
    aside(move || {
        let no_report = || Refusal(StatusCode::NOT_FOUND, "a report is /report/RUN.html".to_owned());
        let id = file.strip_suffix(".html").ok_or_else(no_report)?;
        let store = shared.reader()?;
        let run = exactly(&store, id)?;
        let html = crate::report(&store, &run, &*shared.judge).map_err(|error| match error {
            ViewError::Store(error) => error.into(),
            other => Refusal(StatusCode::INTERNAL_SERVER_ERROR, other.to_string()),
        })?;
        // Ids consist of plain letters, so this is a valid header.
        let name = format!("attachment; filename=\"{run}.html\"");
        Ok(([(header::CONTENT_DISPOSITION, name)], Html(html)).into_response())
    })
    .await
}

async fn labels(State(shared): App, Path(id): Path<String>, body: Bytes) -> Result<Response, Refusal> {
    aside(move || {
        let wrong = |why: String| Refusal(StatusCode::UNPROCESSABLE_ENTITY, why);
        let labels: Map<String, Value> = serde_json::from_slice(&body)
            .map_err(|error| wrong(format!("labels are one JSON object of texts ({error})")))?;
        for (key, value) in &labels {
            let length = value.as_str().map_or(0, |text| text.chars().count());
            if key.is_empty() || key.chars().count() > LABEL_LENGTHS.0 || length > LABEL_LENGTHS.1 {
                let (key, value) = LABEL_LENGTHS;
                return Err(wrong(format!(
                    "a label has a key of 1 to {key} characters and at most {value} more"
                )));
            }
            if !value.is_string() && !value.is_null() {
                return Err(wrong(format!("label {key}: its value is no text")));
            }
        }
        let store = Store::open(&shared.store)?;
        let run = exactly(&store, &id)?;
        for (key, value) in &labels {
            store.set_label(&run, key, value.as_str().filter(|text| !text.is_empty()))?;
        }
        as_json(&json!({ "labels": store.run(&run)?.labels }))
    })
    .await
}

#[derive(Deserialize)]
struct Confirmed {
    confirm: Option<String>,
}

async fn delete(
    State(shared): App,
    Path(id): Path<String>,
    Query(asked): Query<Confirmed>,
) -> Result<Response, Refusal> {
    aside(move || {
        let conflict = |why: String| Refusal(StatusCode::CONFLICT, why);
        let store = Store::open(&shared.store)?;
        let run = exactly(&store, &id)?;
        if asked.confirm.as_deref() != Some(run.as_str()) {
            return Err(conflict(format!("say that it is meant: DELETE /api/runs/{run}?confirm={run}")));
        }
        let record = store.run(&run)?;
        if record.labels.get(PINNED).is_some_and(|value| value == "true") {
            return Err(conflict(format!("run {run} is pinned; unpin it first")));
        }
        store.delete_run(&run)?;
        as_json(&json!({}))
    })
    .await
}

/// Messages of a thread that polls regularly, until it has nothing more to send or the receiver is gone.
fn followed(
    shared: Arc<Shared>,
    mut look: impl FnMut() -> Option<Vec<Event>> + Send + 'static,
) -> Result<Response, Refusal> {
    let permit = shared.followers.clone().try_acquire_owned().map_err(|_| {
        Refusal(StatusCode::SERVICE_UNAVAILABLE, format!("{FOLLOWERS} pages follow already; close some"))
    })?;
    let (tell, told) = mpsc::channel::<Event>(64);
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let mut pinged = Instant::now();
        // At once: a browser treats the connection as open when the first bytes arrive.
        let ping = || Event::default().event("ping").data("{}");
        if tell.blocking_send(ping()).is_err() {
            return;
        }
        loop {
            // Read before the step: a climb that ends stops its viewer too, and its end is reported first.
            let is_last = shared.is_closing.load(Ordering::Relaxed);
            let Some(events) = look() else { return };
            for event in events {
                pinged = Instant::now();
                if tell.blocking_send(event).is_err() {
                    return;
                }
            }
            if pinged.elapsed() >= PING {
                pinged = Instant::now();
                if tell.blocking_send(ping()).is_err() {
                    return;
                }
            }
            if is_last || tell.is_closed() {
                return;
            }
            std::thread::sleep(LOOK);
        }
    });
    let events = stream::unfold(told, async |mut told| {
        let event = told.recv().await?;
        Some((Ok::<_, Infallible>(event), told))
    });
    Ok(Sse::new(Box::pin(events)).into_response())
}

async fn live(State(shared): App, Path(id): Path<String>, headers: HeaderMap) -> Result<Response, Refusal> {
    let last_id = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    if last_id.as_deref() == Some(END) {
        // The only status at which a browser does not reconnect.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let asked = shared.clone();
    let mut follower = aside(move || {
        let store = asked.reader()?;
        let run = exactly(&store, &id)?;
        Ok(Follower::new(store, asked.judge.clone(), run, last_id.as_deref()))
    })
    .await?;
    followed(shared, move || {
        if follower.has_ended() {
            return None;
        }
        // The run was deleted or damaged meanwhile: the page asks again and gets the error.
        let messages = follower.step().ok()?;
        let event =
            |message: crate::Message| Event::default().id(message.id).event(message.kind).data(message.data);
        Some(messages.into_iter().map(event).collect())
    })
}

async fn ticks(State(shared): App) -> Result<Response, Refusal> {
    aside(move || {
        let mut ticks = shared.ticks.lock().unwrap_or_else(PoisonError::into_inner);
        ticks.read_on();
        as_json(&json!({ "files": ticks.all() }))
    })
    .await
}

#[derive(Deserialize)]
struct Named {
    name: Option<String>,
}

async fn drop_ticks(Query(asked): Query<Named>, body: Bytes) -> Result<Response, Refusal> {
    aside(move || {
        let name: String = asked.name.unwrap_or_default().chars().take(200).collect();
        let name = if name.is_empty() { "dropped".to_owned() } else { name };
        let file = dropped(&name, &body).map_err(|why| {
            Refusal(StatusCode::UNPROCESSABLE_ENTITY, format!("{name} tells of no ticks: {why}"))
        })?;
        as_json(&file)
    })
    .await
}

async fn ticks_live(State(shared): App) -> Result<Response, Refusal> {
    let asked = shared.clone();
    let mut told = None;
    followed(shared, move || {
        let mut ticks = asked.ticks.lock().unwrap_or_else(PoisonError::into_inner);
        if ticks.is_empty() {
            return Some(Vec::new());
        }
        let revision = ticks.read_on();
        let is_new = told.replace(revision) != Some(revision);
        let event =
            is_new.then(|| Event::default().event("ticks").data(json!({ "files": ticks.all() }).to_string()));
        Some(event.into_iter().collect())
    })
}
