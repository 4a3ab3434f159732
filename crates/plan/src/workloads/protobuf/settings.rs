//! Clients of a service with a protobuf schema: its file, their requests, and which replies are right.
//!
//! Requests, variables, checks and captures are those over HTTP (`http/settings`); in addition each is checked against
//! the schema, so that a wrong name or value is reported before there is any load.

use std::path::Path;

use prost_reflect::MessageDescriptor;
use serde_json::Value;

use crate::layers::bots::{BotsKind, Server};
use crate::layers::ladder::Loads;
use crate::layers::reader::{RawValue, Reader};
use crate::mistakes::{Place, RequestConfigError};
use crate::scenario::{Content, Node};
use crate::schema::{self, ProtoFiles, Schema, SchemaError, Spot};
use crate::scheme::{Scheme, Transport};
use crate::settings::{Setting, Shape};
use crate::units::{self, protobuf};
use crate::workloads::http::settings::requests::{
    self, BODY, CALL, CAPTURE, CHECK, EXPECT_JSON, JSON_BODY, REQUESTS,
};
use crate::workloads::http::settings::{Loop, transport, variables};
use crate::workloads::leaderboard::settings::messages_in_flight;
use crate::workloads::{HttpRequest, ProtobufBots, ProtobufOver, Variable, VariableLaw, WebSocketFrames};

/// How a plan selects these bots.
pub(crate) const KIND: BotsKind = BotsKind {
    name: "protobuf",
    speaks: |scheme| scheme.is_grpc() || scheme.transport() == Transport::WebSocket,
    settings: &[SETTINGS],
    read: |reader, server, loads| read(reader, server, loads).into(),
};

const PROTOBUF: Setting = Setting::of("Protobuf", &["protobuf"]);

settings! { SETTINGS;
    PROTO = PROTOBUF.key("bots.proto", Shape::Text, "game.proto")
        .about("protobuf: the file with the schema; files that it imports are looked for beside it.")
        .flag("--proto", "FILE")
        .help("The .proto file with the schema of a service over gRPC or WebSocket; what it imports is looked for beside it");
    REQUEST_MESSAGE = PROTOBUF.key("bots.request_message", Shape::Text, "game.v1.Request")
        .about("protobuf, over WebSocket: the type of all requests.")
        .flag("--request-message", "NAME").help("Over WebSocket: the type of all requests");
    REPLY_MESSAGE = PROTOBUF.key("bots.reply_message", Shape::Text, "game.v1.Response")
        .about("protobuf, over WebSocket: the type of all replies.")
        .flag("--reply-message", "NAME").help("Over WebSocket: the type of all replies");
    ID_FIELD = PROTOBUF.key("bots.id_field", Shape::Text, "header.id")
        .about("protobuf, over WebSocket: the field with the number of a request, which its reply carries too.")
        .flag("--id-field", "PATH")
        .help("Over WebSocket: the field with the number of a request, which its reply carries too, such as header.id")
        .default("none; replies come in the order of the requests");
    REPLY_ID_FIELD = PROTOBUF.key("bots.reply_id_field", Shape::Text, "in_reply_to")
        .about("protobuf, over WebSocket: the field of a reply with the number of its request, where it has another name.")
        .flag("--reply-id-field", "PATH").help("Over WebSocket: the field of a reply with the number of its request")
        .default("as --id-field");
    ERROR_FIELD = PROTOBUF.key("bots.error_field", Shape::Text, "error.code")
        .about("protobuf, over WebSocket: the field of a reply that is absent, 0 or empty when all is well.")
        .flag("--error-field", "PATH")
        .help("Over WebSocket: the field of a reply that is absent, 0 or empty when all is well")
        .default("none; each reply is right if its check says so");
}

/// A request with the places where its mistakes are reported.
struct Written {
    request: HttpRequest,
    place: Place,
    /// of the call or the type, and of the message
    call: RawValue,
    message: RawValue,
    /// pointers of checks and captures, in their order
    checks: Vec<RawValue>,
    captures: Vec<RawValue>,
}

/// The clients of the plan; after a mistake, clients that let the other settings be read.
fn read(reader: &mut Reader, server: &Server<'_>, loads: Option<&Loads>) -> ProtobufBots {
    let mut http = transport(reader, loads, Loop::Closed);
    messages_in_flight(reader, &mut http);
    let is_websocket = server.scheme.is_some_and(|scheme: Scheme| !scheme.is_grpc());
    let over = if is_websocket { frames(reader) } else { grpc(reader) };
    let mut written = requests(reader, server, &over);
    let pairs: Vec<(HttpRequest, Place)> =
        written.iter().map(|one| (one.request.clone(), one.place.clone())).collect();
    http.variables = variables::read(reader, &pairs);
    let proto = files(reader);
    if let Some((proto, said)) = &proto
        && let Some(schema) = reader.read(said, |_| Schema::compile(proto))
    {
        fits(reader, &schema, &over, &mut written, &http.variables);
    }
    http.requests = written.into_iter().map(|one| one.request).collect();
    ProtobufBots { http, over, proto: proto.map(|(files, _)| files).unwrap_or_default() }
}

/// The schema's texts, and where its file is named.
fn files(reader: &mut Reader) -> Option<(ProtoFiles, RawValue)> {
    let Some(said) = reader.said(&PROTO) else {
        let said = reader.missing(&PROTO, &PROTO);
        reader.refuse(&said, RequestConfigError::NoProto.into());
        return None;
    };
    let read_file = reader.read_file;
    let read = |text: &str| ProtoFiles::read(Path::new(text.trim()), read_file);
    reader.read(&said, read).map(|files| (files, said))
}

/// Settings of frames have no meaning with calls.
fn grpc(reader: &mut Reader) -> ProtobufOver {
    for setting in [&REQUEST_MESSAGE, &REPLY_MESSAGE, &ID_FIELD, &REPLY_ID_FIELD, &ERROR_FIELD] {
        if let Some(said) = reader.said(setting) {
            let wrong = RequestConfigError::OfFrames { setting: setting.name() };
            reader.refuse_plainly(said.place, wrong);
        }
    }
    ProtobufOver::Grpc
}

fn frames(reader: &mut Reader) -> ProtobufOver {
    let mut needed = |setting: &Setting| {
        let value = reader.value(setting, units::not_blank);
        if value.is_none() && reader.said(setting).is_none() {
            let said = reader.missing(setting, setting);
            reader.refuse(&said, RequestConfigError::NoMessageType.into());
        }
        value.unwrap_or_default()
    };
    let (request, reply) = (needed(&REQUEST_MESSAGE), needed(&REPLY_MESSAGE));
    let id = reader.value(&ID_FIELD, units::not_blank);
    let reply_id = reader.value(&REPLY_ID_FIELD, units::not_blank);
    if let (None, Some(_), Some(said)) = (&id, &reply_id, reader.said(&REPLY_ID_FIELD)) {
        reader.refuse_plainly(said.place, RequestConfigError::ReplyIdAlone);
    }
    let id = id.map(|id| (id.clone(), reply_id.unwrap_or(id)));
    let error = reader.value(&ERROR_FIELD, units::not_blank);
    ProtobufOver::WebSocket(WebSocketFrames { request, reply, id, error })
}

fn status_of(over: &ProtobufOver) -> fn(&str) -> Result<(u16, u16), RequestConfigError> {
    match over {
        ProtobufOver::Grpc => protobuf::code,
        ProtobufOver::WebSocket(_) => protobuf::status,
    }
}

/// What is asked: the list of a scenario, or the one request of a URL and its flags. Never empty.
fn requests(reader: &mut Reader, server: &Server<'_>, over: &ProtobufOver) -> Vec<Written> {
    let list = reader.file.at(REQUESTS.key).cloned();
    let Some(Node { content: Content::List(list), .. }) = &list else {
        return vec![one(reader, server.path.as_deref().unwrap_or("/"), over)];
    };
    requests::refuse_flags_of_one(reader);
    let whole = reader.in_whole_file(&REQUESTS);
    if list.is_empty() {
        reader.refuse(&whole, RequestConfigError::NoRequests.into());
    }
    if let (ProtobufOver::Grpc, Some(path), Some(first)) = (over, server.path.as_deref(), list.first())
        && path != "/"
    {
        let place = reader.at(&REQUESTS, first).place;
        reader.refuse_plainly(place, RequestConfigError::TwoPaths(path.into()));
    }
    let mut all: Vec<Written> = Vec::new();
    for entry in list {
        let written = listed(reader, entry, over);
        if all.iter().any(|other| other.request.name == written.request.name) {
            let wrong = RequestConfigError::TwoOfAName(written.request.name.clone());
            reader.refuse_plainly(written.place.clone(), wrong);
        }
        all.push(written);
    }
    all
}

/// The request of a URL, as the flags describe it.
fn one(reader: &mut Reader, path: &str, over: &ProtobufOver) -> Written {
    let call = reader.in_flag(&crate::layers::SUBJECT, path);
    if *over == ProtobufOver::Grpc && path == "/" {
        reader.refuse_plainly(call.place.clone(), RequestConfigError::NoCall);
    }
    let mut request = requests::of_flags(reader, usual(path, over), status_of(over));
    if *over != ProtobufOver::Grpc {
        // They belong to the handshake.
        request.headers.clear();
    }
    let message = reader.in_flag(&BODY, &request.body);
    let place = call.place.clone();
    Written { request, place, call, message, checks: Vec::new(), captures: Vec::new() }
}

/// One entry of the scenario's list.
fn listed(reader: &mut Reader, entry: &Node, over: &ProtobufOver) -> Written {
    let place = reader.at(&REQUESTS, entry).place;
    let said = entry.get(CALL.name()).map(|node| reader.at(&CALL, node));
    let wrong = match (over, &said) {
        _ if requests::names_path(entry) => Some(RequestConfigError::PathOfMessage),
        (ProtobufOver::Grpc, None) => Some(RequestConfigError::NoCall),
        (ProtobufOver::WebSocket(_), Some(_)) => Some(RequestConfigError::CallOverWebSocket),
        _ => None,
    };
    if let Some(wrong) = wrong {
        reader.refuse_plainly(place.clone(), wrong);
    }
    let call = said.unwrap_or_else(|| reader.at(&REQUESTS, entry));
    let path = format!("/{}", call.text.trim().trim_start_matches('/'));
    let request = requests::entry(reader, entry, usual(&path, over), status_of(over));
    let message = match (entry.get(JSON_BODY.name()), entry.get(BODY.name())) {
        (Some(json), _) => reader.at(&JSON_BODY, json),
        (None, Some(body)) => reader.at(&BODY, body),
        (None, None) => reader.at(&JSON_BODY, entry),
    };
    let pointers = |node: Option<&Node>, setting: &'static Setting| -> Vec<RawValue> {
        let by_name = node.map(Node::by_name).unwrap_or_default();
        by_name.values().map(|node| reader.at(setting, node)).collect()
    };
    let check = entry.get(CHECK.name()).and_then(|check| check.get(EXPECT_JSON.name()));
    let checks = pointers(check, &EXPECT_JSON);
    let captures = pointers(entry.get(CAPTURE.name()), &CAPTURE);
    Written { request, place, call, message, checks, captures }
}

/// A default request.
fn usual(path: &str, over: &ProtobufOver) -> HttpRequest {
    let path = format!("/{}", path.trim_start_matches('/'));
    let name = match over {
        // `Service/Method` is enough to distinguish calls, except for services with the same name.
        ProtobufOver::Grpc => path.trim_start_matches('/').rsplit('.').next().unwrap_or_default().to_owned(),
        ProtobufOver::WebSocket(_) => "message".to_owned(),
    };
    HttpRequest { name, method: "POST".to_owned(), ..HttpRequest::get(path) }
}

/// Holds everything that is asked and checked against the schema, and writes pointers and values as the schema does.
fn fits(
    reader: &mut Reader,
    schema: &Schema,
    over: &ProtobufOver,
    written: &mut [Written],
    variables: &[Variable],
) {
    let types = match over {
        ProtobufOver::Grpc => None,
        ProtobufOver::WebSocket(frames) => match types_of(reader, schema, frames) {
            Some(types) => Some(types),
            None => return,
        },
    };
    for one in written {
        let types = match &types {
            Some(types) => Some(types.clone()),
            None => {
                let path = one.request.path.clone();
                // Already reported.
                if path == "/" {
                    continue;
                }
                let method = reader.read(&one.call, |_| schema.method(&path));
                method.map(|method| (method.input(), method.output()))
            }
        };
        let Some((asked, told)) = types else { continue };
        let put_later = match over {
            ProtobufOver::Grpc => None,
            ProtobufOver::WebSocket(frames) => frames.id.as_ref().map(|(request, _)| request.as_str()),
        };
        message_fits(reader, one, &asked, put_later, variables);
        let mut places = one.checks.iter();
        for (pointer, wanted) in &mut one.request.check.json {
            let said = places.next().unwrap_or(&one.call).clone();
            let read = reader.read(&said, |_| {
                let spot = Spot::of(&told, pointer)?;
                let wanted = wanted.as_ref().map(|wanted| spot.value(wanted)).transpose()?;
                Ok::<_, SchemaError>((spot.pointer, wanted))
            });
            if let Some(read) = read {
                (*pointer, *wanted) = read;
            }
        }
        let mut places = one.captures.iter();
        for (_, pointer) in &mut one.request.capture {
            let said = places.next().unwrap_or(&one.call).clone();
            if let Some(spot) = reader.read(&said, |_| Spot::of(&told, pointer)) {
                *pointer = spot.pointer;
            }
        }
    }
}

/// The types of requests and replies, if all fields that are named are theirs.
fn types_of(
    reader: &mut Reader,
    schema: &Schema,
    frames: &WebSocketFrames,
) -> Option<(MessageDescriptor, MessageDescriptor)> {
    let mut named = |setting: &Setting| {
        let said = reader.said(setting)?;
        reader.read(&said, |text| schema.message(text.trim()))
    };
    let (request, reply) = (named(&REQUEST_MESSAGE)?, named(&REPLY_MESSAGE)?);
    let mut check = |setting: &Setting, message: &MessageDescriptor, names: Option<&String>, is_id: bool| {
        // The reply's number has the same field name as the request's, unless given separately.
        let said = reader.said(setting).or_else(|| reader.said(&ID_FIELD));
        if let (Some(said), Some(names)) = (said, names) {
            reader.read(&said, |_| schema::path_fits(message, names, is_id));
        }
    };
    let id = frames.id.as_ref();
    check(&ID_FIELD, &request, id.map(|(request, _)| request), true);
    check(&REPLY_ID_FIELD, &reply, id.map(|(_, reply)| reply), true);
    check(&ERROR_FIELD, &reply, frames.error.as_ref(), false);
    Some((request, reply))
}

/// Whether a message is one of its type with every text that its variables may stand for. `put_later`: the field with the
/// number of a request, which each gets when it is sent.
fn message_fits(
    reader: &mut Reader,
    one: &mut Written,
    asked: &MessageDescriptor,
    put_later: Option<&str>,
    variables: &[Variable],
) {
    if one.request.body.trim().is_empty() {
        one.request.body = "{}".to_owned();
    }
    let body = one.request.body.clone();
    reader.read(&one.message, |_| {
        let json: Value = serde_json::from_str(&body)
            .map_err(|error| RequestConfigError::MessageNotJson(error.to_string()))?;
        let texts: Vec<Vec<String>> = variables.iter().map(|variable| texts_of(&variable.law)).collect();
        let firsts: Vec<&str> = texts.iter().map(|texts| texts[0].as_str()).collect();
        let fits = |values: &[&str]| {
            let filled = schema::filled(&json, &|name| {
                variables.iter().position(|variable| variable.name == name).map(|at| values[at].to_owned())
            });
            let message = schema::message_of(asked, &filled);
            let fits = message.and_then(|message| schema::refuse_missing(&message, put_later));
            fits.map_err(RequestConfigError::Schema)
        };
        fits(&firsts)?;
        for (at, texts) in texts.iter().enumerate() {
            for text in &texts[1..] {
                let mut values = firsts.clone();
                values[at] = text;
                fits(&values)?;
            }
        }
        Ok::<(), RequestConfigError>(())
    });
}

/// Texts that a variable may stand for: of a range its ends.
fn texts_of(law: &VariableLaw) -> Vec<String> {
    match law {
        VariableLaw::Whole(from, to) => vec![from.to_string(), to.to_string()],
        VariableLaw::OneOf(words) => words.clone(),
        VariableLaw::Counter => vec!["1".to_owned()],
        VariableLaw::Captured(before) => vec![before.clone()],
    }
}
