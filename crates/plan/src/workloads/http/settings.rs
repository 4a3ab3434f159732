//! HTTP clients: when they send requests, over which connections, and which ones.
//!
//! A rate makes an open model: requests are planned by a clock, and connections are kept open for them. Requesters make
//! a closed one: each has a connection and waits for its answer.

use crate::layers::bots::{BotsKind, Server};
use crate::layers::http_sweep;
use crate::layers::ladder::Loads;
use crate::layers::reader::{RawValue, Reader, default_of};
use crate::mistakes::{Place, RequestConfigError};
use crate::settings::{Kind, Setting, Shape};
use crate::units::{self, http};
use crate::workloads::{HttpBots, HttpModel, HttpVersion};

pub(crate) mod requests;
pub(crate) mod variables;

/// How a plan selects these bots.
pub(crate) const KIND: BotsKind = BotsKind {
    name: "http",
    speaks: |scheme| scheme.is_http(),
    settings: &[requests::SETTINGS, variables::SETTINGS, SETTINGS, http_sweep::SETTINGS],
    read: |reader, server, loads| read(reader, server, loads).into(),
};

const HTTP: Setting = Setting::of("HTTP", &["http"]);
/// A path with its query, a header or what is expected of a body: more than servers take in a head.
const PART_BYTES_MAX: usize = 64 << 10;
/// A body is sent as it is, so it may be as large as a value of a grid.
const BODY_BYTES_MAX: usize = 16 << 20;
/// What requests over HTTP and messages of a schema have in common.
const REQUEST: Setting = Setting::of("HTTP", &["http", "protobuf"]).at_most(PART_BYTES_MAX);
/// What leaves a choice to requests over HTTP alone.
const OF_VERSION: Setting = Setting::of("HTTP", &["http", "leaderboard"]);
/// What every kind of bots that sends requests takes.
pub(crate) const TRANSPORT: Setting = Setting::of("HTTP", &["http", "leaderboard", "protobuf"]);

settings! { SETTINGS;
    pub(crate) CONNECTIONS = Setting::of("HTTP", &["http", "leaderboard", "protobuf", "grid"])
        .key("bots.connections", Shape::Whole("uint32"), "256")
        .about("http, with a rate: connections opened before the hold; grid: connections that share the operations, 1 \
            unless said.")
        .flag("--connections", "N")
        .help("With a rate: connections opened before the hold; a request that finds all busy waits. Grid: connections \
            that share the operations (default: 1)").default("256");
    CONNECTIONS_MAX = TRANSPORT.key("bots.connections_max", Shape::Whole("uint32"), "512")
        .about("http, with a rate: more are opened up to this many when all are busy.")
        .flag("--connections-max", "N")
        .help("With a rate: more connections are opened, up to this many, when all are busy").default("none");
    THINK = TRANSPORT.key("bots.think", Shape::Text, "100ms")
        .about("http, with requesters: between an answer and the next request.")
        .flag("--think", "TIME").help("With requesters: between an answer and the next request").default("0s");
    pub(crate) VERSION = Setting::of("HTTP", &["http", "leaderboard", "script"]).key("bots.http", Shape::NumberOrText, "2")
        .about("http: the version of the protocol, 1.1 or 2; script: where it says none, that of its server behind TLS, \
            else 1.1.")
        .flag("--http", "VERSION")
        .help("The version of HTTP: 1.1 or 2. Scripts, unless said: what the server chooses behind TLS, else 1.1")
        .default("1.1");
    // The default is the minimum that RFC 9113 recommends for servers.
    STREAMS = OF_VERSION.key("bots.streams", Shape::Whole("uint32"), "100")
        .about("http: most requests at once on one connection of HTTP/2, with a rate.")
        .flag("--streams", "N").help("HTTP/2 with a rate: requests at once on one connection").default("100");
    KEEP_ALIVE = TRANSPORT.key("bots.keep_alive", Shape::Switch, "false")
        .about("http: connections stay for further requests; otherwise each request has one of its own.")
        .switch(Kind::SwitchOff, "--no-keep-alive").help("A connection of its own for each request");
    TIMEOUT = TRANSPORT.key("bots.timeout", Shape::Text, "30s")
        .about("http: a request without its whole answer after this is given up, and its connection with it.")
        .flag("--timeout", "TIME")
        .help("A request without its whole answer after this is given up, and its connection with it").default("30s");
    REDIRECTS = HTTP.key("bots.redirects", Shape::Whole("uint32"), "5")
        .about("http: how many redirects are followed, to the same host.")
        .flag("--redirects", "N").help("How many redirects are followed, to the same host").default("0");
    BODY_MAX = HTTP.key("bots.body_max", Shape::NumberOrText, "64MiB").about("http: an answer's body may be so long.")
        .flag("--body-max", "BYTES")
        .help("An answer's body may be so long; at most 4MiB where it is looked at. Bodies that are looked at and have not \
            ended may take 16MiB together over all connections, unless this sets less than 4MiB: then each may be so long")
        .default("64MiB");
}

/// What messages over WebSocket or gRPC leave no choice of.
pub(crate) const OF_HTTP_ALONE: [&Setting; 2] = [&VERSION, &STREAMS];

/// More connections than that are a slip of the keyboard.
const CONNECTIONS_MOST: u64 = 1_000_000;
/// More requests at once than any server allows on one connection.
const STREAMS_MOST: u64 = 1000;
const REDIRECTS_MOST: u64 = 50;
/// A body that is looked at is kept whole, for each connection.
const KEPT_BODY_BYTES_MAX: u64 = 4 << 20;
const MS: u64 = 1_000_000;
const HOUR: u64 = 3_600_000_000_000;

/// When requests are planned unless the loads say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loop {
    /// at a rate
    Open,
    /// each after the answer to the last
    Closed,
}

/// When requests are planned, and the connections that they go over; no requests yet.
pub(crate) fn transport(reader: &mut Reader, loads: Option<&Loads>, usual: Loop) -> HttpBots {
    let version = reader.value_or_default(&VERSION, str::parse::<HttpVersion>);
    let keep_alive = reader.value(&KEEP_ALIVE, units::boolean).unwrap_or(true);
    let model = model(reader, loads, usual);
    let streams = streams(reader, &model, version, keep_alive);
    let visit = http_sweep::visit(reader, keep_alive);
    let timeout_ns = reader.value_or_default(&TIMEOUT, |text| units::duration_ns_within(text, MS, HOUR));
    let redirects = reader.value_or_default(&REDIRECTS, |text| units::whole_within(text, 0, REDIRECTS_MOST));
    HttpBots {
        model,
        version,
        keep_alive,
        streams,
        visit,
        requests: Vec::new(),
        variables: Vec::new(),
        timeout_ns,
        // At most 50 by the line above.
        redirects_max: redirects as u32,
        body_bytes_max: default_of(&BODY_MAX, http::bytes),
    }
}

/// The clients of the plan; after a mistake, clients that let the other settings be read.
fn read(reader: &mut Reader, server: &Server<'_>, loads: Option<&Loads>) -> HttpBots {
    let transport = transport(reader, loads, Loop::Closed);
    let body_max = reader.value(&BODY_MAX, http::bytes);
    let requests = requests::read(reader, server);
    let variables = variables::read(reader, &requests);
    let looks_at_bodies =
        requests.iter().any(|(request, _)| request.check.reads_body() || !request.capture.is_empty());
    if let (Some(said), Some(asked)) = (reader.said(&BODY_MAX), body_max)
        && looks_at_bodies
        && asked > KEPT_BODY_BYTES_MAX
    {
        let wrong = RequestConfigError::KeptBody { asked: said.text, most: "4MiB".into() };
        reader.refuse_plainly(said.place, wrong);
    }
    let usual = if looks_at_bodies { KEPT_BODY_BYTES_MAX } else { default_of(&BODY_MAX, http::bytes) };
    HttpBots {
        requests: requests.into_iter().map(|(request, _)| request).collect(),
        variables,
        body_bytes_max: body_max.unwrap_or(usual),
        ..transport
    }
}

fn model(reader: &mut Reader, loads: Option<&Loads>, usual: Loop) -> HttpModel {
    let is_open = loads.map_or(usual == Loop::Open, |loads| loads.is_rate());
    // If the command line chooses the model, the file's settings of the other model were not meant for it.
    let is_meant =
        |said: &RawValue| matches!(said.place, Place::Flag(_)) || !loads.is_some_and(|loads| loads.in_flags);
    if !is_open {
        for setting in [&CONNECTIONS, &CONNECTIONS_MAX] {
            if let Some(said) = reader.said(setting).filter(is_meant) {
                reader.refuse_plainly(said.place, RequestConfigError::OfRate { setting: setting.name() });
            }
        }
        let think_ns = reader.value_or_default(&THINK, |text| units::duration_ns_within(text, 0, HOUR));
        return HttpModel::Closed { think_ns };
    }
    if let Some(said) = reader.said(&THINK).filter(is_meant) {
        reader.refuse_plainly(said.place, RequestConfigError::OfRequesters { setting: THINK.name() });
    }
    let count = |text: &str| units::whole_within(text, 1, CONNECTIONS_MOST);
    let connections = reader.value_or_default(&CONNECTIONS, count);
    let most = reader.value(&CONNECTIONS_MAX, count);
    if let (Some(said), Some(most)) = (reader.said(&CONNECTIONS_MAX), most)
        && most < connections
    {
        reader.refuse_plainly(said.place, RequestConfigError::FewerAtMost { connections, most });
    }
    HttpModel::Open { connections, connections_max: most.unwrap_or(connections).max(connections) }
}

/// A connection of HTTP/1.1 has one request at once; so has a requester, and a connection that ends with its answer.
fn streams(reader: &mut Reader, model: &HttpModel, version: HttpVersion, keep_alive: bool) -> u32 {
    let count = |text: &str| units::whole_within(text, 1, STREAMS_MOST);
    if version == HttpVersion::Two && matches!(model, HttpModel::Open { .. }) && keep_alive {
        // At most 1000 by the line above.
        return reader.value_or_default(&STREAMS, count) as u32;
    }
    if reader.value(&STREAMS, count).is_some_and(|asked| asked > 1)
        && let Some(said) = reader.said(&STREAMS)
    {
        reader.refuse_plainly(said.place, RequestConfigError::NoStreams);
    }
    1
}
