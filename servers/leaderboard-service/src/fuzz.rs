//! For `servers::fuzz`: a connection of the service without its socket, as `thread` answers it.

use std::sync::{Arc, LazyLock};

use super::calls::Caller;
pub use super::log::fuzz::{log_frames, log_records, record_seeds};
use super::messages::{Operation, Request};
use super::protobuf::{self, Fields};
use super::responder::Responder;
use super::session::{self, Session, Start};
pub use super::store::fuzz::store_replies;
use super::thread::Turn;
use super::websocket::{self, WebSocket};
use super::{Options, Shared, bodies, changes, routes};
use servers_shared::fault::ThreadFaults;
use servers_shared::http::request::{Front, Limits, front};

/// What a connection begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoken {
    /// requests of HTTP/1.1, which may switch to one of the others
    Http,
    /// frames, the upgrade done
    WebSocket,
    /// frames of HTTP/2, the preface sent
    Grpc,
}

/// All that the service answers to these pieces, with a leaderboard `main` in memory.
pub fn leaderboard(spoken: Spoken, pieces: &[&[u8]]) -> Vec<u8> {
    // Defaults come from the command line's parser, which took longer than everything else here.
    static OPTIONS: LazyLock<Options> =
        LazyLock::new(|| Options { body_max: 4096, bulk_max: 100, ..Options::default() });
    let shared = Arc::new(Shared::in_memory(OPTIONS.clone()));
    let rules = leaderboard::Options { seed: Some(7), ..Default::default() };
    changes::create_board(&shared, Some("main"), rules).expect("the first board");
    let mut connection = Connection {
        responder: Responder::new(&shared, 0),
        caller: Caller::new(&shared, 0),
        faults: ThreadFaults::default(),
        limits: Limits { body_bytes: shared.options.body_max, ..Limits::default() },
        session: (spoken == Spoken::WebSocket).then(|| Session::WebSocket(WebSocket::default())),
        closes: false,
        has_more: false,
    };
    let (mut input, mut out) = (Vec::new(), Vec::new());
    if spoken == Spoken::Grpc {
        input.extend_from_slice(super::grpc::PREFACE);
    }
    for piece in pieces {
        input.extend_from_slice(piece);
        while !connection.closes && (!input.is_empty() || connection.has_more) {
            let taken = connection.answer(&mut input, &mut out);
            input.drain(..taken);
            if taken == 0 && !connection.has_more {
                break;
            }
        }
    }
    out
}

struct Connection {
    responder: Responder,
    caller: Caller,
    faults: ThreadFaults,
    limits: Limits,
    session: Option<Session>,
    closes: bool,
    /// The session has more to answer without further bytes.
    has_more: bool,
}

impl Connection {
    /// Answers what is whole at the front of `bytes`; returns how many of them it took.
    fn answer(&mut self, bytes: &mut [u8], out: &mut Vec<u8>) -> usize {
        if let Some(session) = &mut self.session {
            let mut portion = Vec::new();
            let Turn { taken, closes, has_more, .. } =
                session.answer(bytes, &self.caller, &mut self.faults, &mut portion);
            out.extend_from_slice(&portion);
            (self.closes, self.has_more) = (closes, has_more);
            return taken;
        }
        match session::start(bytes, false) {
            Start::None => {}
            Start::Incomplete => return 0,
            Start::Begun(session, took) => {
                self.session = Some(session);
                return took + self.answer(&mut bytes[took..], out);
            }
        }
        match front(bytes, &self.limits) {
            Front::Incomplete => 0,
            Front::Broken(fault) => {
                self.responder.answer_fault(fault, out);
                self.closes = true;
                bytes.len()
            }
            Front::Whole { request, .. } if websocket::is_upgrade(&request) => {
                match websocket::upgrade(bytes, out) {
                    Ok(took) => {
                        self.session = Some(Session::WebSocket(WebSocket::default()));
                        took
                    }
                    Err(refused) => {
                        out.extend_from_slice(refused.0.as_bytes());
                        self.closes = true;
                        bytes.len()
                    }
                }
            }
            Front::Whole { request, bytes } => {
                self.responder.answer(&request, request.keep_alive, &mut self.faults, out);
                self.closes = !request.keep_alive;
                bytes
            }
        }
    }
}

/// Whether these bytes are a message of `proto/leaderboard.proto`, by either way to it, and a body of the JSON interface.
pub fn leaderboard_message(bytes: &[u8]) -> (bool, bool) {
    let request = Request::read(bytes);
    for index in 0..super::messages::OPERATIONS.len() {
        let _ = Operation::read(index, bytes);
    }
    let is_json = bodies::read::<bodies::NewBoard>(bytes).is_ok_and(|board| board.options().is_ok())
        | bodies::read::<bodies::Metadata<'_>>(bytes).is_ok()
        | bodies::read::<bodies::NewSeason<'_>>(bytes).is_ok()
        | bodies::read::<bodies::NewSchedule>(bytes).is_ok_and(|body| body.schedule().is_ok())
        | bodies::read::<bodies::Members<'_>>(bytes).is_ok()
        | bodies::read::<bodies::Bulk<'_>>(bytes)
            .is_ok_and(|bulk| bulk.leaderboards.iter().all(|part| part.updates().is_ok()));
    (request.is_ok(), is_json)
}

/// One request to each route.
pub fn seeds() -> Vec<Vec<u8>> {
    let filled =
        |path: String| path.replace("{board}", "main").replace("{member}", "ann").replace("{season}", "1");
    let body =
        r#"{"leaderboards":[{"leaderboard":"main","scores":[{"member":"ann","score":5,"mode":"best"}]}]}"#;
    let request = |route: &routes::Route| {
        let body = if route.body.is_some() { body } else { "" };
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        format!(
            "{} {}?score=7&limit=2&first=1&mode=best HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{length}\r\n{body}",
            route.method,
            filled(route.path())
        )
        .into_bytes()
    };
    routes::ROUTES.iter().map(request).collect()
}

/// Numbers of the fields of a protobuf message; `None`: it is none.
pub fn protobuf_fields(bytes: &[u8]) -> Option<Vec<u32>> {
    let mut fields = Fields(bytes);
    let mut numbers = Vec::new();
    while let Some(field) = fields.next().ok()? {
        let _ = (field.whole(), field.signed(), field.text());
        // The client's reader skips groups.
        if field.value != protobuf::Value::Group {
            numbers.push(field.number);
        }
    }
    Some(numbers)
}
