//! The requests: the single one of a URL and its flags, the list of a scenario, or the services of poll-loop.

use super::{BODY_BYTES_MAX, HTTP, PART_BYTES_MAX, REQUEST};
use crate::built_in::BuiltIn;
use crate::layers::bots::Server;
use crate::layers::reader::Reader;
use crate::layers::{poll_loop_sweep, settings};
use crate::mistakes::{Place, RequestConfigError};
use crate::scenario::{Content, Node};
use crate::settings::{Kind, Setting, Shape};
use crate::units::{self, http};
use crate::workloads::{HttpCheck, HttpRequest};

/// Within an entry of the list; it is refused with the list for other bots.
const ENTRY: Setting = Setting::of("", &[]).at_most(PART_BYTES_MAX);

settings! { pub(super) SETTINGS;
    pub(crate) REQUESTS = REQUEST
        .key("bots.requests", Shape::List(&Shape::Keys("RequestKeys", "One kind of request.")), "[{ get: /todos }]")
        .about("http and protobuf: what is asked; a GET of the target's path, or the call of its path, otherwise.");
    NAME = ENTRY.key("bots.requests.name", Shape::Text, "list")
        .about("As it is called in tables; method and path otherwise.");
    WEIGHT = ENTRY.key("bots.requests.weight", Shape::Number, "3")
        .about("How often it is chosen, relative to the others; 1 otherwise.");
    GET = ENTRY.key("bots.requests.get", Shape::Text, "/todos/{id}").about("A GET of this path.");
    POST = ENTRY.key("bots.requests.post", Shape::Text, "/todos").about("A POST to this path.");
    PUT = ENTRY.key("bots.requests.put", Shape::Text, "/todos/{id}").about("A PUT to this path.");
    PATCH = ENTRY.key("bots.requests.patch", Shape::Text, "/todos/{id}").about("A PATCH of this path.");
    DELETE = ENTRY.key("bots.requests.delete", Shape::Text, "/todos/{id}").about("A DELETE of this path.");
    HEAD = ENTRY.key("bots.requests.head", Shape::Text, "/todos").about("A HEAD of this path.");
    METHOD = HTTP.key("bots.requests.method", Shape::Text, "OPTIONS").about("Another method, for the path below.")
        .flag("--method", "NAME").help("The method").default("GET, or POST with a body").flag_example("POST");
    PATH = ENTRY.key("bots.requests.path", Shape::Text, "/todos?page=1").about("Path and query, with a method of its own.");
    pub(crate) CALL = ENTRY.key("bots.requests.call", Shape::Text, "package.Service/Method")
        .about("protobuf, over gRPC: the call that is made.");
    /// Over WebSocket it is one of the handshake (`layers::handshake`).
    pub(crate) HEADER = Setting::of("HTTP", &["http", "protobuf", "arena", "echo", "leaderboard"]).at_most(PART_BYTES_MAX)
        .key("bots.requests.headers", Shape::Map(&Shape::NumberOrText), "{ Accept: application/json }")
        .about("Headers; a value may hold {variable}, and ${NAME} of the environment, which is never stored.")
        .flag("--header", "'NAME: VALUE'")
        .help("A header of each request, or of the WebSocket handshake; ${NAME} in it comes from the environment and is \
            never stored; repeatable").kind(Kind::Repeated).flag_example("Accept: application/json");
    /// The caller may have read it from a file.
    pub BODY = REQUEST.at_most(BODY_BYTES_MAX).key("bots.requests.body", Shape::Text, "a=1&b={id}")
        .about("The body as text; it may hold {variable}.")
        .flag("--body", "TEXT").help("The body of each request").kind(Kind::Hyphenated).flag_example("a=1&b=2");
    pub(crate) JSON_BODY = ENTRY.key("bots.requests.json", Shape::Anything, "{ title: \"todo {n}\" }")
        .about("The body as JSON, sent as application/json; its texts may hold {variable}.");
    pub(crate) CHECK = ENTRY
        .key("bots.requests.check", Shape::Keys("CheckKeys", "What a right answer is."), "{ status: 200, json: { /ok: true } }")
        .about("What a right answer is; a status from 200 to 399 otherwise.");
    EXPECT_STATUS = REQUEST.key("bots.requests.check.status", Shape::OneOrMore, "200..299")
        .about("A status, a range of them, or a list.")
        .flag("--expect-status", "STATUS")
        .help("A right answer has such a status: 200, 200..299 or a list; of gRPC a code: OK, NOT_FOUND")
        .default("200..399");
    EXPECT_TEXT = REQUEST.key("bots.requests.check.contains", Shape::Text, "hello").about("The body holds this text.")
        .flag("--expect-text", "TEXT").help("A right answer holds this text");
    pub(crate) EXPECT_JSON = ENTRY.key("bots.requests.check.json", Shape::Map(&Shape::Anything), "{ /ok: true }")
        .about("The body is JSON with these values at these pointers; without a value anything may stand there.");
    EXPECT_BYTES = ENTRY.key("bots.requests.check.bytes", Shape::NumberOrText, "1..100")
        .about("The length of the body in bytes: a number or a range.");
    pub(crate) CAPTURE = ENTRY.key("bots.requests.capture", Shape::Map(&Shape::Text), "{ id: /id }")
        .about("What is kept of an answer for later requests of the same connection: variable and JSON pointer.");
}

const WEIGHT_LEAST: f64 = 0.000_001;
const WEIGHT_MOST: f64 = 1_000_000.0;
/// Followed redirects have a separate line in the tables.
const REDIRECT: &str = "redirect";

/// The requests, each with its place. Never empty.
pub(super) fn read(reader: &mut Reader, server: &Server<'_>) -> Vec<(HttpRequest, Place)> {
    let has_services = server.built_in.and_then(BuiltIn::named).is_some_and(|server| server.has_axes);
    let list = reader.file.at(REQUESTS.key).cloned();
    if list.is_some() || has_services {
        refuse_flags_of_one(reader);
    }
    let list = match &list {
        Some(Node { content: Content::List(list), .. }) => list,
        None if has_services => {
            let place = Place::Flag("climb");
            return poll_loop_sweep::services().into_iter().map(|request| (request, place.clone())).collect();
        }
        _ => return vec![one(reader, server.path.as_deref().unwrap_or("/"))],
    };
    let whole = reader.in_whole_file(&REQUESTS);
    if list.is_empty() {
        reader.refuse(&whole, RequestConfigError::NoRequests.into());
    }
    if let (Some(path), Some(first)) = (server.path.as_deref(), list.first())
        && path != "/"
    {
        let place = reader.at(&REQUESTS, first).place;
        reader.refuse_plainly(place, RequestConfigError::TwoPaths(path.into()));
    }
    let mut requests: Vec<(HttpRequest, Place)> = Vec::new();
    for written in list {
        let (request, place) = (listed(reader, written), reader.at(&REQUESTS, written).place);
        if written.get(CALL.name()).is_some() {
            reader.refuse_plainly(place.clone(), RequestConfigError::CallOverHttp);
        }
        if requests.iter().any(|(other, _)| other.name == request.name) {
            reader.refuse_plainly(place.clone(), RequestConfigError::TwoOfAName(request.name.clone()));
        }
        if request.name == REDIRECT {
            reader.refuse_plainly(place.clone(), RequestConfigError::NameTaken(REDIRECT));
        }
        requests.push((request, place));
    }
    if requests.is_empty() { vec![(HttpRequest::get("/"), whole.place)] } else { requests }
}

/// The request of a URL, as the flags describe it.
fn one(reader: &mut Reader, path: &str) -> (HttpRequest, Place) {
    let place = Place::Flag("climb");
    let path = match http::path(path) {
        Ok(path) => path,
        Err(wrong) => {
            reader.refuse_plainly(place.clone(), wrong);
            "/".into()
        }
    };
    let usual = if reader.flags.text(&BODY).is_some() { "POST" } else { "GET" };
    let method = reader.value(&METHOD, http::method).unwrap_or_else(|| usual.into());
    let name = format!("{method} {path}");
    let request = HttpRequest { method, name, ..HttpRequest::get(path) };
    (of_flags(reader, request, http::status), place)
}

/// The flags of the single request besides its path; `status` parses the statuses of right answers.
pub(crate) fn of_flags(
    reader: &mut Reader,
    usual: HttpRequest,
    status: fn(&str) -> Result<(u16, u16), RequestConfigError>,
) -> HttpRequest {
    let body = reader.flags.text(&BODY).map(str::to_owned);
    let headers = reader.in_flags(&HEADER).unwrap_or_default();
    let headers = reader.read_all(&headers, http::header);
    let said = reader.in_flags(&EXPECT_STATUS).unwrap_or_default();
    let status = reader.read_all(&said, status);
    let contains = reader.value(&EXPECT_TEXT, some_text);
    let check = HttpCheck { status, contains, ..HttpCheck::default() };
    HttpRequest { headers, body: body.unwrap_or_default(), check, ..usual }
}

/// One entry of the scenario's list.
fn listed(reader: &mut Reader, written: &Node) -> HttpRequest {
    let (method, path) = method_and_path(reader, written);
    let name = format!("{method} {path}");
    let request = HttpRequest { method, name, ..HttpRequest::get(path) };
    let mut request = entry(reader, written, request, http::status);
    let has_type = |(name, _): &(String, String)| name.eq_ignore_ascii_case("content-type");
    if written.get(JSON_BODY.name()).is_some() && !request.headers.iter().any(has_type) {
        request.headers.push(("Content-Type".into(), "application/json".into()));
    }
    request
}

/// What an entry of the list says besides what it asks for; `status` reads the statuses of right answers.
pub(crate) fn entry(
    reader: &mut Reader,
    written: &Node,
    usual: HttpRequest,
    status: fn(&str) -> Result<(u16, u16), RequestConfigError>,
) -> HttpRequest {
    let name = reader.value_inside(written, &NAME, units::not_blank);
    let weight =
        reader.value_inside(written, &WEIGHT, |text| units::number_within(text, WEIGHT_LEAST, WEIGHT_MOST));
    let mut headers = Vec::new();
    for (name, value) in written.get(HEADER.name()).map(Node::by_name).unwrap_or_default() {
        let said = reader.at(&HEADER, value);
        headers.extend(reader.read(&said, |text| http::named_header(name, text)));
    }
    let body = match (written.get(BODY.name()), written.get(JSON_BODY.name())) {
        (Some(text), Some(_)) => {
            let place = reader.at(&BODY, text).place;
            reader.refuse_plainly(place, RequestConfigError::TwoBodies);
            String::new()
        }
        (Some(text), None) => text.text().to_owned(),
        (None, Some(json)) => json.to_json().to_string(),
        (None, None) => String::new(),
    };
    let mut capture = Vec::new();
    for (name, pointer) in written.get(CAPTURE.name()).map(Node::by_name).unwrap_or_default() {
        let said = reader.at(&CAPTURE, pointer);
        if pointer.is_nothing() {
            reader.refuse(&said, units::UnitError::Empty.into());
            continue;
        }
        let read = reader.read(&said, |text| {
            Ok::<_, RequestConfigError>((http::variable_name(name)?, http::pointer(text.trim())?))
        });
        capture.extend(read);
    }
    HttpRequest {
        name: name.unwrap_or(usual.name),
        weight: weight.unwrap_or(1.0),
        headers,
        body,
        check: written.get(CHECK.name()).map(|check| checks(reader, check, status)).unwrap_or_default(),
        capture,
        ..usual
    }
}

fn paths() -> impl Iterator<Item = &'static Setting> {
    [&GET, &POST, &PUT, &PATCH, &DELETE, &HEAD, &PATH].into_iter()
}

/// Whether an entry says method or path.
pub(crate) fn names_path(written: &Node) -> bool {
    paths().chain([&METHOD]).any(|setting| written.get(setting.name()).is_some())
}

fn method_and_path(reader: &mut Reader, written: &Node) -> (String, String) {
    let method = reader.value_inside(written, &METHOD, http::method);
    let is_plain = [&METHOD, &PATH].iter().all(|setting| written.get(setting.name()).is_none());
    let paths: Vec<&Setting> = paths().collect();
    let named: Vec<&Setting> =
        paths.into_iter().filter(|setting| written.get(setting.name()).is_some()).collect();
    let setting = match named.as_slice() {
        [one] if is_plain || one.key == PATH.key => *one,
        _ => {
            let place = reader.at(&REQUESTS, written).place;
            reader.refuse_plainly(place, RequestConfigError::NoPath);
            return ("GET".into(), "/".into());
        }
    };
    let path = reader.value_inside(written, setting, http::path).unwrap_or_else(|| "/".into());
    let verb = if is_plain { setting.name().to_uppercase() } else { "GET".into() };
    (method.unwrap_or(verb), path)
}

fn checks(
    reader: &mut Reader,
    written: &Node,
    status: fn(&str) -> Result<(u16, u16), RequestConfigError>,
) -> HttpCheck {
    let said = reader.inside(written, &EXPECT_STATUS).unwrap_or_default();
    let status = reader.read_all(&said, status);
    let mut json = Vec::new();
    for (pointer, wanted) in written.get(EXPECT_JSON.name()).map(Node::by_name).unwrap_or_default() {
        let mut said = reader.at(&EXPECT_JSON, wanted);
        said.text = pointer.to_owned();
        let wanted = (!wanted.is_nothing()).then(|| wanted.to_json());
        json.extend(reader.read(&said, http::pointer).map(|pointer| (pointer, wanted)));
    }
    HttpCheck {
        status,
        contains: reader.value_inside(written, &EXPECT_TEXT, some_text),
        json,
        body_bytes: reader.value_inside(written, &EXPECT_BYTES, http::body_range),
    }
}

/// Any text holds the empty one, which would check nothing.
fn some_text(text: &str) -> Result<String, units::UnitError> {
    if text.is_empty() { Err(units::UnitError::Empty) } else { Ok(text.to_owned()) }
}

/// Flags that describe the one request of a URL, where there is a list.
pub(crate) fn refuse_flags_of_one(reader: &mut Reader) {
    for setting in settings().filter(|setting| setting.key.starts_with("bots.requests.")) {
        if !reader.flags.all(setting).is_empty() {
            reader.refuse_plainly(Place::Flag(setting.flag), RequestConfigError::OfOneRequest);
        }
    }
}
