//! Messages of any protobuf schema: gRPC calls, or messages in WebSocket frames.

pub(crate) mod settings;

use ladder::{Allowed, Conclusion, LoadUnit, Rung};
use serde::{Deserialize, Serialize};

use super::http::planned_as_http;
use super::{Demand, HttpBots, HttpCheck, LoadKind, Workload};
use crate::plan::{Arrivals, Ramp};
use crate::schema::ProtoFiles;

/// The names of gRPC's codes, from 0 on.
pub const GRPC_CODES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

/// Clients of a service with a protobuf schema.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProtobufBots {
    /// when requests are planned, and the connections that they go over. Of its requests the path is `/package.Service/Method`
    /// (gRPC) or means nothing (WebSocket), the body the message as JSON, and pointers lead into the reply as JSON
    pub http: HttpBots,
    /// what they go over
    pub over: ProtobufOver,
    /// the schema
    pub proto: ProtoFiles,
}

/// What messages go over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProtobufOver {
    /// a call each. Statuses of checks are codes; without one only OK is right
    Grpc,
    /// a binary frame each
    WebSocket(WebSocketFrames),
}

/// What the frames of a WebSocket hold. Fields are named by their way from the outermost message: `header.id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebSocketFrames {
    /// type of all requests
    pub request: String,
    /// type of all replies
    pub reply: String,
    /// where a request and its reply carry the number of the request; `None`: replies come in the order of the requests
    pub id: Option<(String, String)>,
    /// absent, 0 or empty in a reply that is right; a number else is its status
    pub error: Option<String>,
}

impl ProtobufOver {
    /// Whether a check takes a code of gRPC, or the status of a message over WebSocket, for right.
    pub fn allows(&self, check: &HttpCheck, status: u16) -> bool {
        match (self, check.status.as_slice()) {
            (ProtobufOver::Grpc, []) => status == 0,
            (ProtobufOver::Grpc, codes) => {
                codes.iter().any(|&(first, last)| (first..=last).contains(&status))
            }
            (ProtobufOver::WebSocket(_), _) => check.allows(status),
        }
    }
}

/// All that is planned is planned as requests over HTTP are.
impl Workload for ProtobufBots {
    planned_as_http!();

    // A capture that finds nothing leaves later requests with an old value, so they are not the intended ones.
    fn forbidden(&self) -> &'static [(Allowed, Option<&'static str>)] {
        &[(Allowed::MissingCaptures, None)]
    }

    fn load_unit(&self) -> LoadUnit {
        self.http.load_unit()
    }

    fn default_loads(&self) -> &'static [f64] {
        self.http.default_loads()
    }

    fn demand(&self, load: f64) -> Demand {
        self.http.demand(load)
    }

    fn rate_per_s(&self, load: f64) -> f64 {
        self.http.rate_per_s(load)
    }

    fn intended_per_s(&self, load: f64) -> Option<f64> {
        self.http.intended_per_s(load)
    }
}
