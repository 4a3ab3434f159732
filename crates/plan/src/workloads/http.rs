//! HTTP requests: at a rate, or each after the answer to the last.

use ladder::{Allowed, Conclusion, LoadUnit, Rung};
use serde::{Deserialize, Serialize};

pub(crate) mod settings;
mod sweep;

use super::{Demand, LoadKind, Workload};
use crate::plan::{Arrivals, Ramp};

/// No server on this machine accepts, answers and closes sooner.
const FASTEST_ANSWER_NS: f64 = 50_000.0;
/// Connections that one machine opens and closes per second.
const FASTEST_OPENS_PER_S: f64 = 30_000.0;

/// Requests over HTTP, and the connections that they go over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HttpBots {
    /// when a request is planned, and what a load counts
    pub model: HttpModel,
    /// 1.1 or 2
    pub version: HttpVersion,
    /// connections stay open for further requests; `false`: each request has its own
    pub keep_alive: bool,
    /// most requests at once on one connection of HTTP/2; 1 for HTTP/1.1
    pub streams: u32,
    /// how long a client stays, and how long it keeps its connection
    #[serde(default)]
    pub visit: Visit,
    /// what is asked; never empty
    pub requests: Vec<HttpRequest>,
    /// the meaning of `{name}` in a path, header or body
    pub variables: Vec<Variable>,
    /// a request that was not answered whole after this is given up, and its connection with it, ns
    pub timeout_ns: u64,
    /// so many redirects are followed, to the same host; 0: a redirect is an answer like any other
    pub redirects_max: u32,
    /// an answer's body may be so long
    pub body_bytes_max: u64,
}

impl HttpBots {
    /// Requests over HTTP/1.1 and connections that stay; no redirect is followed, and a body may have 1 MiB.
    pub fn plain(model: HttpModel, requests: Vec<HttpRequest>, timeout_ns: u64) -> HttpBots {
        HttpBots {
            model,
            version: HttpVersion::One,
            keep_alive: true,
            streams: 1,
            visit: Visit::default(),
            requests,
            variables: Vec::new(),
            timeout_ns,
            redirects_max: 0,
            body_bytes_max: 1 << 20,
        }
    }
}

/// How long a client stays, and how long it keeps its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    /// requests of one client; then it leaves, and another one comes in its place. `None`: it stays
    pub requests: Option<u64>,
    /// requests on one connection; then the client opens another. `None`: it keeps it
    pub reconnect_after: Option<u64>,
}

impl Visit {
    /// Requests on one connection at most, where there is a limit.
    pub fn requests_per_connection(&self) -> Option<u64> {
        self.requests.into_iter().chain(self.reconnect_after).min()
    }
}

/// When a request is planned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpModel {
    /// by a clock: a load is requests per second over all connections. One that finds all busy waits for the first to be
    /// free, and is timed from its plan
    Open {
        /// opened before the hold
        connections: u64,
        /// more are opened up to this many when all are busy; at least `connections`
        connections_max: u64,
    },
    /// each answer starts the next request of its requester: a load is requesters, each with one connection
    Closed {
        /// between an answer and the next request, ns
        think_ns: u64,
    },
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpVersion {
    /// RFC 9112
    #[serde(rename = "1.1")]
    One,
    /// RFC 9113; without TLS by prior knowledge
    #[serde(rename = "2")]
    Two,
}

/// One kind of request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// as it is called in tables; unique
    pub name: String,
    /// how often it is chosen, relative to the others; > 0
    pub weight: f64,
    /// `GET`, `POST` …
    pub method: String,
    /// path and query, beginning with `/`; may hold `{variable}`
    pub path: String,
    /// name and value; values may hold `{variable}`
    pub headers: Vec<(String, String)>,
    /// may hold `{variable}`
    pub body: String,
    /// what a right answer is
    pub check: HttpCheck,
    /// what is kept of an answer for later requests of the same connection: variable and JSON pointer (RFC 6901)
    pub capture: Vec<(String, String)>,
}

impl HttpRequest {
    /// A GET that is right when its status says so, called by what it asks for.
    pub fn get(path: impl Into<String>) -> HttpRequest {
        let path = path.into();
        HttpRequest {
            name: format!("GET {path}"),
            weight: 1.0,
            method: "GET".to_owned(),
            path,
            headers: Vec::new(),
            body: String::new(),
            check: HttpCheck::default(),
            capture: Vec::new(),
        }
    }
}

/// What a right answer is. An answer that is not right fails the rung.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HttpCheck {
    /// first and last status of each range, both included; empty: 200 to 399
    pub status: Vec<(u16, u16)>,
    /// the body holds this text
    pub contains: Option<String>,
    /// the body is JSON, with this value at that pointer (RFC 6901); without a value anything may stand there
    pub json: Vec<(String, Option<serde_json::Value>)>,
    /// shortest and longest body in bytes
    pub body_bytes: Option<(u64, u64)>,
}

impl HttpCheck {
    /// Whether the body must be kept to be checked.
    pub fn reads_body(&self) -> bool {
        self.contains.is_some() || !self.json.is_empty()
    }

    /// Whether a status is right.
    pub fn allows(&self, status: u16) -> bool {
        match self.status.as_slice() {
            [] => (200..=399).contains(&status),
            ranges => ranges.iter().any(|&(first, last)| (first..=last).contains(&status)),
        }
    }
}

/// A variable for changing text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variable {
    /// without its braces
    pub name: String,
    /// how its values are made
    pub law: VariableLaw,
}

/// How the text of a variable is chosen, anew for each request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariableLaw {
    /// a whole number, all equally likely, both ends included
    Whole(i64, i64),
    /// one of these, all equally likely; never empty
    OneOf(Vec<String>),
    /// 1, 2, 3 …, different at every request of the whole trial
    Counter,
    /// what the last answer with a capture of that name held on this connection; this text before there was one
    Captured(String),
}

impl HttpBots {
    /// Connections opened per second where each request has one. How soon requesters are answered is not known, so this
    /// errs on the side of need.
    fn opens_per_s(&self, load: f64) -> f64 {
        match self.model {
            HttpModel::Open { .. } => load,
            HttpModel::Closed { think_ns } => {
                let each_per_s = 1e9 / (think_ns as f64 + FASTEST_ANSWER_NS);
                (load * each_per_s).min(FASTEST_OPENS_PER_S)
            }
        }
    }
}

/// What is planned alike by all whose messages are planned as requests over HTTP: the methods of `Workload` that ask the
/// plan's part of that kind (the field `http`).
macro_rules! planned_as_http {
    () => {
        fn unit_names(&self) -> (&'static str, &'static str) {
            self.http.unit_names()
        }

        fn arrivals(&self) -> (&'static [Arrivals], &'static str) {
            self.http.arrivals()
        }

        fn default_ramp(&self) -> Ramp {
            self.http.default_ramp()
        }

        fn loads(&self) -> LoadKind {
            self.http.loads()
        }

        fn units(&self, load: f64) -> u64 {
            self.http.units(load)
        }

        fn sees_shutdown(&self) -> bool {
            self.http.sees_shutdown()
        }

        fn can_lower_load(&self) -> bool {
            self.http.can_lower_load()
        }

        fn conclusions(&self, rungs: &[Rung]) -> Vec<Conclusion> {
            self.http.conclusions(rungs)
        }
    };
}
pub(super) use planned_as_http;

impl Workload for HttpBots {
    // A capture that finds nothing leaves later requests with an old value, so they are not the intended ones.
    fn forbidden(&self) -> &'static [(Allowed, Option<&'static str>)] {
        &[(Allowed::MissingCaptures, None)]
    }

    fn load_unit(&self) -> LoadUnit {
        match self.model {
            HttpModel::Open { .. } => LoadUnit::Requests,
            HttpModel::Closed { .. } => LoadUnit::Requesters,
        }
    }

    fn unit_names(&self) -> (&'static str, &'static str) {
        match self.model {
            HttpModel::Open { .. } => ("connection", "connections"),
            HttpModel::Closed { .. } => ("requester", "requesters"),
        }
    }

    fn arrivals(&self) -> (&'static [Arrivals], &'static str) {
        match self.model {
            HttpModel::Closed { .. } => {
                (&[Arrivals::Closed], "without a rate each answer starts the next request (closed)")
            }
            HttpModel::Open { .. } => (
                &[Arrivals::Poisson, Arrivals::Even, Arrivals::Burst],
                "requests with a rate are planned by a clock (poisson, even, burst)",
            ),
        }
    }

    fn default_ramp(&self) -> Ramp {
        Ramp::AtOnce
    }

    fn default_loads(&self) -> &'static [f64] {
        &[1.0, 4.0, 16.0, 64.0]
    }

    fn loads(&self) -> LoadKind {
        match self.model {
            HttpModel::Open { .. } => LoadKind::Rate,
            HttpModel::Closed { .. } => LoadKind::Counts,
        }
    }

    fn units(&self, load: f64) -> u64 {
        match self.model {
            HttpModel::Open { connections, .. } => connections,
            HttpModel::Closed { .. } => load.round() as u64,
        }
    }

    fn demand(&self, load: f64) -> Demand {
        let bots = self.units(load);
        // With a connection per request, each is open for as long as its answer takes.
        let per_connection = if self.keep_alive { self.visit.requests_per_connection() } else { Some(1) };
        let (connections, opens_per_s) = match per_connection {
            None => (bots, 0.0),
            Some(requests) => (0, self.opens_per_s(load) / requests as f64),
        };
        let connections_max = match self.model {
            HttpModel::Open { connections_max, .. } => connections_max.max(bots),
            HttpModel::Closed { .. } => bots,
        };
        Demand { bots, connections, connections_max, opens_per_s }
    }

    fn rate_per_s(&self, load: f64) -> f64 {
        match self.model {
            HttpModel::Open { .. } => load,
            HttpModel::Closed { .. } => 0.0,
        }
    }

    fn intended_per_s(&self, load: f64) -> Option<f64> {
        matches!(self.model, HttpModel::Open { .. }).then_some(load)
    }

    fn sees_shutdown(&self) -> bool {
        true
    }

    fn can_lower_load(&self) -> bool {
        true
    }

    fn conclusions(&self, rungs: &[Rung]) -> Vec<Conclusion> {
        [sweep::sweep(rungs), super::request_costs::conclusions(rungs)].concat()
    }
}
