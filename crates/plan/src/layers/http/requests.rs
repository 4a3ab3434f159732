//! What is asked: the one request of a URL and its flags, the list of a scenario, or the services of poll-loop.

use serde_saphyr::Spanned;

use crate::layers::bots::Server;
use crate::layers::reader::{Reader, Setting, setting};
use crate::layers::subject::POLL_LOOP;
use crate::layers::{Flags, cells};
use crate::mistakes::{Place, Wrong, WrongRequest};
use crate::plan::{HttpCheck, HttpRequest};
use crate::scenario::{BotsKeys, CheckKeys, RequestKeys, Text};
use crate::units::{self, http};

const METHOD: Setting = setting("--method", "bots.requests.method", "POST");
const HEADER: Setting = Setting {
    flag: "--header",
    key: "bots.requests.headers",
    example: "Accept: application/json",
    example_in_file: "{ Accept: application/json }",
};
const BODY: Setting = setting("--body", "bots.requests.body", "a=1&b=2");
const EXPECT_STATUS: Setting = setting("--expect-status", "bots.requests.check.status", "200..299");
const EXPECT_TEXT: Setting = setting("--expect-text", "bots.requests.check.contains", "hello");
const REQUESTS: Setting = Setting {
    flag: "bots",
    key: "bots.requests",
    example: "climb rest.yaml",
    example_in_file: "[{ get: /todos }]",
};
const NAME: Setting = setting("", "bots.requests.name", "list");
const WEIGHT: Setting = setting("", "bots.requests.weight", "3");
const PATH: Setting = setting("", "bots.requests.path", "/todos");
const JSON_CHECK: Setting =
    Setting { flag: "", key: "bots.requests.check.json", example: "", example_in_file: "{ /ok: true }" };
const BYTES: Setting = setting("", "bots.requests.check.bytes", "1..100");
const CAPTURE: Setting =
    Setting { flag: "", key: "bots.requests.capture", example: "", example_in_file: "{ id: /id }" };

const WEIGHT_LEAST: f64 = 0.000_001;
const WEIGHT_MOST: f64 = 1_000_000.0;
/// Followed redirects have a line of their own in the tables.
const REDIRECT: &str = "redirect";

/// The requests, each with the place where it stands. Never empty.
pub(super) fn read(
    reader: &mut Reader,
    flags: &Flags,
    keys: &BotsKeys,
    server: &Server<'_>,
) -> Vec<(HttpRequest, Place)> {
    let Some(list) = &keys.requests else {
        if server.built_in == Some(POLL_LOOP) {
            let said = one_said(reader, flags);
            refuse_flags_of_one(reader, said);
            let place = Place::Flag("climb");
            return cells::services().into_iter().map(|request| (request, place.clone())).collect();
        }
        let path = server.path.as_deref().unwrap_or("/");
        return vec![one(reader, flags, path)];
    };
    let said = one_said(reader, flags);
    refuse_flags_of_one(reader, said);
    let whole = reader.in_whole_file(REQUESTS);
    if list.is_empty() {
        reader.refuse(&whole, WrongRequest::NoRequests.into());
    }
    if let (Some(path), Some(first)) = (server.path.as_deref(), list.first())
        && path != "/"
    {
        let place = place_of(reader, first);
        reader.refuse_plainly(place, WrongRequest::TwoPaths(path.into()).into());
    }
    let mut requests: Vec<(HttpRequest, Place)> = Vec::new();
    for written in list {
        let (request, place) = (listed(reader, written), place_of(reader, written));
        if requests.iter().any(|(other, _)| other.name == request.name) {
            reader.refuse_plainly(place.clone(), WrongRequest::TwoOfAName(request.name.clone()).into());
        }
        if request.name == REDIRECT {
            reader.refuse_plainly(place.clone(), WrongRequest::NameTaken(REDIRECT).into());
        }
        requests.push((request, place));
    }
    if requests.is_empty() { vec![(plain("/".into()), whole.place)] } else { requests }
}

/// A GET that is right when its status says so.
fn plain(path: String) -> HttpRequest {
    HttpRequest {
        name: format!("GET {path}"),
        weight: 1.0,
        method: "GET".into(),
        path,
        headers: Vec::new(),
        body: String::new(),
        check: HttpCheck::default(),
        capture: Vec::new(),
    }
}

/// The one request of a URL.
fn one(reader: &mut Reader, flags: &Flags, path: &str) -> (HttpRequest, Place) {
    let http = &flags.http;
    let place = Place::Flag("climb");
    let path = match http::path(path) {
        Ok(path) => path,
        Err(wrong) => {
            reader.refuse_plainly(place.clone(), wrong.into());
            "/".into()
        }
    };
    let usual = if http.body.is_some() { "POST" } else { "GET" };
    let method = reader.value(METHOD, http.method.as_deref(), None, http::method);
    let method = method.unwrap_or_else(|| usual.into());
    let headers =
        http.header.iter().filter_map(|text| reader.value(HEADER, Some(text), None, http::header)).collect();
    let status = http.expect_status.as_deref().map(|text| {
        let said: Vec<_> = text.split(',').map(|one| reader.in_flag(EXPECT_STATUS, one)).collect();
        said.iter().filter_map(|one| reader.read(one, http::status)).collect()
    });
    let contains = reader.value(EXPECT_TEXT, http.expect_text.as_deref(), None, some_text);
    let request = HttpRequest {
        name: format!("{method} {path}"),
        headers,
        body: http.body.clone().unwrap_or_default(),
        check: HttpCheck { status: status.unwrap_or_default(), contains, ..HttpCheck::default() },
        method,
        ..plain(path)
    };
    (request, place)
}

/// One entry of the scenario's list.
fn listed(reader: &mut Reader, written: &Spanned<RequestKeys>) -> HttpRequest {
    let keys = &written.value;
    let (method, path) = method_and_path(reader, written);
    let name = reader.value(NAME, None, keys.name.as_ref(), |text| match text.trim() {
        "" => Err(units::UnitError::Empty),
        text => Ok(text.to_owned()),
    });
    let weight = reader.value(WEIGHT, None, keys.weight.as_ref(), |text| {
        units::number_within(text, WEIGHT_LEAST, WEIGHT_MOST)
    });
    let mut headers = headers(reader, keys);
    let body = match (&keys.body, &keys.json) {
        (Some(text), Some(_)) => {
            let said = reader.in_file(BODY, text);
            reader.refuse_plainly(said.place, WrongRequest::TwoBodies.into());
            String::new()
        }
        (Some(text), None) => text.value.clone(),
        (None, Some(json)) => {
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                headers.push(("Content-Type".into(), "application/json".into()));
            }
            json.value.to_string()
        }
        (None, None) => String::new(),
    };
    let mut capture = Vec::new();
    for (name, pointer) in keys.capture.iter().flatten() {
        let said = reader.in_file(CAPTURE, pointer);
        let read = reader.read(&said, |text| {
            Ok::<_, WrongRequest>((http::variable_name(name)?, http::pointer(text.trim())?))
        });
        capture.extend(read);
    }
    HttpRequest {
        name: name.unwrap_or_else(|| format!("{method} {path}")),
        weight: weight.unwrap_or(1.0),
        headers,
        body,
        check: keys.check.as_ref().map(|check| checks(reader, check)).unwrap_or_default(),
        capture,
        method,
        ..plain(path)
    }
}

fn method_and_path(reader: &mut Reader, written: &Spanned<RequestKeys>) -> (String, String) {
    let keys = &written.value;
    let verbs = [
        ("GET", &keys.get),
        ("POST", &keys.post),
        ("PUT", &keys.put),
        ("PATCH", &keys.patch),
        ("DELETE", &keys.delete),
        ("HEAD", &keys.head),
    ];
    let mut named: Vec<(&str, &Text)> =
        verbs.into_iter().filter_map(|(verb, text)| text.as_ref().map(|text| (verb, text))).collect();
    let method = reader.value(METHOD, None, keys.method.as_ref(), http::method);
    let is_plain = keys.method.is_none() && keys.path.is_none();
    named.extend(keys.path.as_ref().map(|text| ("", text)));
    let (verb, text) = match named.as_slice() {
        [one] if is_plain || one.0.is_empty() => *one,
        _ => {
            let place = place_of(reader, written);
            reader.refuse_plainly(place, WrongRequest::NoPath.into());
            return ("GET".into(), "/".into());
        }
    };
    let said = reader.in_file(PATH, text);
    let path = reader.read(&said, http::path).unwrap_or_else(|| "/".into());
    let usual = if verb.is_empty() { "GET" } else { verb };
    (method.unwrap_or_else(|| usual.into()), path)
}

fn headers(reader: &mut Reader, keys: &RequestKeys) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for (name, text) in keys.headers.iter().flatten() {
        let said = match text {
            Some(text) => reader.in_file(HEADER, text),
            None => reader.in_whole_file(HEADER),
        };
        headers.extend(reader.read(&said, |text| http::named_header(name, text)));
    }
    headers
}

fn checks(reader: &mut Reader, keys: &CheckKeys) -> HttpCheck {
    let status = keys.status.as_ref().map(|status| {
        let said: Vec<_> = status.0.iter().map(|text| reader.in_file(EXPECT_STATUS, text)).collect();
        said.iter().filter_map(|one| reader.read(one, http::status)).collect()
    });
    let mut json = Vec::new();
    for (pointer, wanted) in keys.json.iter().flatten() {
        let place = Text { value: pointer.clone(), referenced: wanted.referenced, defined: wanted.defined };
        let said = reader.in_file(JSON_CHECK, &place);
        let wanted = (!wanted.value.is_null()).then(|| wanted.value.clone());
        json.extend(reader.read(&said, http::pointer).map(|pointer| (pointer, wanted)));
    }
    HttpCheck {
        status: status.unwrap_or_default(),
        contains: reader.value(EXPECT_TEXT, None, keys.contains.as_ref(), some_text),
        json,
        body_bytes: reader.value(BYTES, None, keys.bytes.as_ref(), http::body_range),
    }
}

/// Any text holds the empty one, which would check nothing.
fn some_text(text: &str) -> Result<String, units::UnitError> {
    if text.is_empty() { Err(units::UnitError::Empty) } else { Ok(text.to_owned()) }
}

fn place_of(reader: &Reader, written: &Spanned<RequestKeys>) -> Place {
    let whole = Text { value: String::new(), referenced: written.referenced, defined: written.defined };
    reader.in_file(REQUESTS, &whole).place
}

/// The flags that describe one request, as far as they were said.
fn one_said(reader: &Reader, flags: &Flags) -> Vec<(Setting, Place)> {
    let http = &flags.http;
    [
        (METHOD, http.method.as_deref()),
        (HEADER, http.header.first().map(String::as_str)),
        (BODY, http.body.as_deref()),
        (EXPECT_STATUS, http.expect_status.as_deref()),
        (EXPECT_TEXT, http.expect_text.as_deref()),
    ]
    .into_iter()
    .filter_map(|(setting, text)| text.map(|text| (setting, reader.in_flag(setting, text).place)))
    .collect()
}

fn refuse_flags_of_one(reader: &mut Reader, said: Vec<(Setting, Place)>) {
    for (setting, place) in said {
        reader.refuse_plainly(place, Wrong::from(WrongRequest::OfOneRequest(setting.flag)));
    }
}

/// What was said of requests, in both places.
pub(super) fn said(reader: &Reader, flags: &Flags, keys: &BotsKeys) -> Vec<(Setting, Place)> {
    let mut said = one_said(reader, flags);
    let first = keys.requests.iter().flatten().next();
    said.extend(first.map(|first| (REQUESTS, place_of(reader, first))));
    said
}
