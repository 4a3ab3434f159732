//! HTTP clients: when they ask, over which connections, and what.
//!
//! A rate makes an open model: requests are planned by a clock, and connections stand ready for them. Requesters make a
//! closed one: each has a connection and waits for its answer.

use crate::layers::bots::Server;
use crate::layers::ladder::{Kind, Loads};
use crate::layers::reader::{Reader, Said, Setting, setting};
use crate::layers::{Flags, defaults};
use crate::mistakes::{Place, WrongRequest};
use crate::plan::{HttpBots, HttpModel, HttpVersion};
use crate::scenario::{BotsKeys, Text};
use crate::units::{self, http};

mod requests;
mod variables;

const CONNECTIONS: Setting = setting("--connections", "bots.connections", "256");
const CONNECTIONS_MAX: Setting = setting("--connections-max", "bots.connections_max", "512");
const THINK: Setting = setting("--think", "bots.think", "100ms");
const VERSION: Setting = setting("--http", "bots.http", "2");
const STREAMS: Setting = setting("--streams", "bots.streams", "100");
const KEEP_ALIVE: Setting = setting("--no-keep-alive", "bots.keep_alive", "false");
const TIMEOUT: Setting = setting("--timeout", "bots.timeout", "30s");
const REDIRECTS: Setting = setting("--redirects", "bots.redirects", "5");
const BODY_MAX: Setting = setting("--body-max", "bots.body_max", "64MiB");

/// More connections than that are a slip of the keyboard.
const CONNECTIONS_MOST: u64 = 1_000_000;
/// More requests at once than any server allows on one connection.
const STREAMS_MOST: u64 = 1000;
const REDIRECTS_MOST: u64 = 50;
/// A body that is looked at is kept whole, for each connection.
const KEPT_BODY_BYTES_MAX: u64 = 4 << 20;
const MS: u64 = 1_000_000;
const HOUR: u64 = 3_600_000_000_000;

/// The clients of the plan; after a mistake, clients that let the other settings be read.
pub(super) fn read(
    reader: &mut Reader,
    flags: &Flags,
    keys: &BotsKeys,
    server: &Server<'_>,
    loads: Option<&Loads>,
) -> HttpBots {
    let version_said = reader.said(VERSION, flags.http.version.as_deref(), keys.http.as_ref());
    let version = version_said.and_then(|said| reader.read(&said, str::parse::<HttpVersion>));
    let version = version.unwrap_or(HttpVersion::One);
    let keep_alive = match flags.http.keep_alive {
        Some(keep_alive) => keep_alive,
        None => reader.value(KEEP_ALIVE, None, keys.keep_alive.as_ref(), units::boolean).unwrap_or(true),
    };
    let model = model(reader, flags, keys, loads);
    let streams = streams(reader, flags, keys, &model, version, keep_alive);
    let timeout_ns = reader.value(TIMEOUT, flags.http.timeout.as_deref(), keys.timeout.as_ref(), |text| {
        units::duration_ns_within(text, MS, HOUR)
    });
    let redirects =
        reader.value(REDIRECTS, flags.http.redirects.as_deref(), keys.redirects.as_ref(), |text| {
            units::whole_within(text, 0, REDIRECTS_MOST)
        });
    let body_max_said = reader.said(BODY_MAX, flags.http.body_max.as_deref(), keys.body_max.as_ref());
    let body_max = body_max_said.as_ref().and_then(|said| reader.read(said, http::bytes));
    let requests = requests::read(reader, flags, keys, server);
    let variables = variables::read(reader, keys, &requests);
    let looks_at_bodies =
        requests.iter().any(|(request, _)| request.check.reads_body() || !request.capture.is_empty());
    let body_bytes_max =
        body_max.unwrap_or(if looks_at_bodies { KEPT_BODY_BYTES_MAX } else { defaults::BODY_BYTES_MAX });
    if let Some(said) = body_max_said
        && looks_at_bodies
        && body_bytes_max > KEPT_BODY_BYTES_MAX
    {
        let wrong = WrongRequest::KeptBody { asked: said.text.clone(), most: "4MiB".into() };
        reader.refuse_plainly(said.place, wrong.into());
    }
    HttpBots {
        model,
        version,
        keep_alive,
        streams,
        requests: requests.into_iter().map(|(request, _)| request).collect(),
        variables,
        timeout_ns: timeout_ns.unwrap_or(defaults::TIMEOUT_NS),
        // At most 50 by the line above.
        redirects_max: redirects.unwrap_or(0) as u32,
        body_bytes_max,
    }
}

fn model(reader: &mut Reader, flags: &Flags, keys: &BotsKeys, loads: Option<&Loads>) -> HttpModel {
    let is_open = loads.is_some_and(|loads| loads.kind == Kind::Rate);
    // Whoever chooses the model on the command line has no use for what the file says of the other one.
    let is_meant =
        |said: &Said| matches!(said.place, Place::Flag(_)) || !loads.is_some_and(|loads| loads.in_flags);
    let think_said = reader.said(THINK, flags.http.think.as_deref(), keys.think.as_ref());
    let count_said = |reader: &Reader, setting, flag: &Option<String>, text: &Option<Text>| {
        reader.said(setting, flag.as_deref(), text.as_ref())
    };
    let connections_said = count_said(reader, CONNECTIONS, &flags.http.connections, &keys.connections);
    let most_said = count_said(reader, CONNECTIONS_MAX, &flags.http.connections_max, &keys.connections_max);
    if !is_open {
        for (setting, said) in [("connections", connections_said), ("connections_max", most_said)] {
            if let Some(said) = said.filter(is_meant) {
                reader.refuse_plainly(said.place, WrongRequest::OfRate { setting }.into());
            }
        }
        let think =
            think_said.and_then(|said| reader.read(&said, |text| units::duration_ns_within(text, 0, HOUR)));
        return HttpModel::Closed { think_ns: think.unwrap_or(0) };
    }
    if let Some(said) = think_said.filter(is_meant) {
        reader.refuse_plainly(said.place, WrongRequest::OfRequesters { setting: "think" }.into());
    }
    let count = |text: &str| units::whole_within(text, 1, CONNECTIONS_MOST);
    let connections = connections_said.and_then(|said| reader.read(&said, count));
    let most = most_said.as_ref().and_then(|said| reader.read(said, count));
    let connections = connections.unwrap_or(defaults::CONNECTIONS);
    if let (Some(said), Some(most)) = (most_said, most)
        && most < connections
    {
        reader.refuse_plainly(said.place, WrongRequest::FewerAtMost { connections, most }.into());
    }
    HttpModel::Open { connections, connections_max: most.unwrap_or(connections).max(connections) }
}

/// A connection of HTTP/1.1 has one request at once; so has a requester, and a connection that ends with its answer.
fn streams(
    reader: &mut Reader,
    flags: &Flags,
    keys: &BotsKeys,
    model: &HttpModel,
    version: HttpVersion,
    keep_alive: bool,
) -> u32 {
    let said = reader.said(STREAMS, flags.http.streams.as_deref(), keys.streams.as_ref());
    let asked =
        said.as_ref().and_then(|said| reader.read(said, |text| units::whole_within(text, 1, STREAMS_MOST)));
    let has_streams = version == HttpVersion::Two && matches!(model, HttpModel::Open { .. }) && keep_alive;
    match (has_streams, asked, said) {
        (true, Some(asked), _) => asked as u32,
        (true, None, _) => defaults::STREAMS,
        (false, Some(asked), Some(said)) if asked > 1 => {
            reader.refuse_plainly(said.place, WrongRequest::NoStreams.into());
            1
        }
        (false, ..) => 1,
    }
}

/// The settings that only these bots have, as they were said; other bots refuse them.
pub(super) fn said(reader: &Reader, flags: &Flags, keys: &BotsKeys) -> Vec<(Setting, Place)> {
    let http = &flags.http;
    let single = [
        (CONNECTIONS, http.connections.as_deref(), &keys.connections),
        (CONNECTIONS_MAX, http.connections_max.as_deref(), &keys.connections_max),
        (THINK, http.think.as_deref(), &keys.think),
        (VERSION, http.version.as_deref(), &keys.http),
        (STREAMS, http.streams.as_deref(), &keys.streams),
        (KEEP_ALIVE, http.keep_alive.map(|_| ""), &keys.keep_alive),
        (TIMEOUT, http.timeout.as_deref(), &keys.timeout),
        (REDIRECTS, http.redirects.as_deref(), &keys.redirects),
        (BODY_MAX, http.body_max.as_deref(), &keys.body_max),
    ];
    let single = single.into_iter().filter_map(|(setting, flag, text)| {
        reader.said(setting, flag, text.as_ref()).map(|said| (setting, said.place))
    });
    single.chain(requests::said(reader, flags, keys)).chain(variables::said(reader, keys)).collect()
}
