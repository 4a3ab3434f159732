//! Clients of a leaderboard: which board, how many members, how many updates in a request, how many of them read.

use crate::layers::bots::BotsKind;
use crate::layers::http_sweep;
use crate::layers::ladder::Loads;
use crate::layers::reader::Reader;
use crate::mistakes::RequestConfigError;
use crate::scheme::{Scheme, Transport};
use crate::settings::{Setting, Shape};
use crate::units;
use crate::workloads::http::settings::{Loop, OF_HTTP_ALONE, transport};
use crate::workloads::{HttpBots, HttpModel, HttpRequest, LeaderboardBots, LeaderboardProtocol, SigningKey};

/// How a plan selects these bots.
pub(crate) const KIND: BotsKind = BotsKind {
    name: "leaderboard",
    speaks: |scheme| scheme.is_http() || scheme.transport() == Transport::WebSocket,
    settings: &[SETTINGS],
    read: |reader, server, loads| read(reader, server.scheme, loads).into(),
};

const LEADERBOARD: Setting = Setting::of("Leaderboard", &["leaderboard"]);

settings! { SETTINGS;
    BOARD = LEADERBOARD.key("bots.board", Shape::Text, "main").about("leaderboard: the name of the board.")
        .flag("--board", "NAME").help("The name of the board").default("main");
    MEMBERS = LEADERBOARD.key("bots.members", Shape::Whole("uint32"), "100000")
        .about("leaderboard: members that are updated.")
        .flag("--members", "N").help("Members that are updated").default("100000");
    /// Of several values each makes a cell of the ladder (`layers::axes`).
    pub(crate) BULK = LEADERBOARD.key("bots.bulk", Shape::OneOrMore, "[1, 16, 300]")
        .about("leaderboard: updates in one request. Several values are swept.")
        .flag("--bulk", "LIST").help("Updates in one request; 1: a request for each. Several values are swept")
        .default("1").flag_example("1,16,300");
    READS = LEADERBOARD.key("bots.reads", Shape::NumberOrText, "10%")
        .about("leaderboard: share of the requests that read: the top ten, a member's rank, a member's neighbours.")
        .flag("--reads", "SHARE")
        .help("Share of the requests that read: the top ten, a member's rank, a member's neighbours").default("10%");
    KEY = LEADERBOARD.key("bots.key", Shape::Text, "game=${GAME_KEY}")
        .about("leaderboard: signs the updates: the key's id, and the environment variable with its secret in hexadecimal \
            digits.")
        .flag("--key", "ID=${NAME}")
        .help("Sign the updates: the key's id, and the environment variable with its secret in hexadecimal digits")
        .flag_example("game=${GAME_KEY}");
    CHEATERS = LEADERBOARD.key("bots.cheaters", Shape::NumberOrText, "5%")
        .about("leaderboard: share of the requests that come from cheaters, and must be refused.")
        .flag("--cheaters", "SHARE")
        .help("Share of the requests that come from cheaters: updates with no, false, expired or repeated signatures, \
            which must be refused and change nothing; needs --key").default("0%");
    PROTOCOL = LEADERBOARD.key("bots.protocol", Shape::Text, "websocket")
        .about("leaderboard: what requests go over: http, websocket (protobuf messages) or grpc.")
        .flag("--protocol", "NAME").help("What requests go over: http, websocket (protobuf messages) or grpc")
        .default("http; websocket for ws:// targets").flag_example("websocket");
    pub(crate) IN_FLIGHT = Setting::of("Leaderboard", &["leaderboard", "protobuf"])
        .key("bots.in_flight", Shape::Whole("uint32"), "16")
        .about("leaderboard and protobuf, over websocket or grpc and with a rate: requests at once on one connection.")
        .flag("--in-flight", "N").help("Over WebSocket or gRPC, with a rate: requests at once on one connection")
        .default("16");
}

const IN_FLIGHT_MOST: u64 = 1000;
/// What a WebSocket message of 64 KiB has room for.
const WEBSOCKET_BULK_MOST: u64 = 2000;
const MEMBERS_MOST: u64 = 10_000_000;
/// The kinds of requests; the first updates, the others read in equal shares.
const REQUESTS: [&str; 4] = ["update", "top", "rank", "around"];

/// The clients of the plan; after a mistake, clients that let the other settings be read.
fn read(reader: &mut Reader, scheme: Option<Scheme>, loads: Option<&Loads>) -> LeaderboardBots {
    let board = reader.value_or_default(&BOARD, |text| match text.trim() {
        name if is_plain(name) => Ok(name.to_owned()),
        name => Err(RequestConfigError::BoardName(name.to_owned())),
    });
    let members = reader.value_or_default(&MEMBERS, |text| units::count_within(text, 1, MEMBERS_MOST));
    let bulk = http_sweep::bulk(reader);
    let counts_updates = loads.is_some_and(Loads::is_updates);
    let reads = reader.value_or_default(&READS, units::share);
    if let (Some(said), true) = (reader.said(&READS), counts_updates && reads >= 1.0) {
        reader.refuse_plainly(said.place, RequestConfigError::NoUpdates);
    }
    let key = reader.value(&KEY, signing_key);
    let cheaters = reader.value_or_default(&CHEATERS, units::share);
    if let Some(said) = reader.said(&CHEATERS) {
        let wrong = match cheaters {
            _ if reader.said(&KEY).is_none() && cheaters > 0.0 => {
                Some(RequestConfigError::CheatersWithoutKey)
            }
            cheaters if cheaters >= 1.0 => Some(RequestConfigError::OnlyCheaters),
            _ => None,
        };
        wrong.into_iter().for_each(|wrong| reader.refuse_plainly(said.place.clone(), wrong));
    }
    let request = |(at, name): (usize, &&str)| HttpRequest {
        name: (*name).to_owned(),
        weight: if at == 0 { 1.0 - reads } else { reads / (REQUESTS.len() - 1) as f64 },
        ..HttpRequest::get("/")
    };
    let mut http = transport(reader, loads, Loop::Open);
    http.requests = REQUESTS.iter().enumerate().map(request).collect();
    let protocol = protocol(reader, scheme);
    in_flight(reader, &mut http, protocol);
    if protocol == LeaderboardProtocol::WebSocket {
        http_sweep::refuse_bulks_above(reader, WEBSOCKET_BULK_MOST);
    }
    LeaderboardBots { http, protocol, board, members, bulk, counts_updates, key, cheaters }
}

/// The protocol given, or that of the target's scheme.
fn protocol(reader: &mut Reader, scheme: Option<Scheme>) -> LeaderboardProtocol {
    let is_websocket = scheme.is_some_and(|scheme| scheme.transport() == Transport::WebSocket);
    let said = reader.value(&PROTOCOL, str::parse::<LeaderboardProtocol>);
    if is_websocket
        && said.is_some_and(|said| said != LeaderboardProtocol::WebSocket)
        && let Some(said) = reader.said(&PROTOCOL)
    {
        reader.refuse_plainly(said.place, RequestConfigError::ProtocolOfScheme { asked: said.text });
    }
    let usual = if is_websocket { LeaderboardProtocol::WebSocket } else { LeaderboardProtocol::Http };
    said.unwrap_or(usual)
}

/// A connection that takes several requests at once.
fn in_flight(reader: &mut Reader, http: &mut HttpBots, protocol: LeaderboardProtocol) {
    if protocol == LeaderboardProtocol::Http {
        if let Some(said) = reader.said(&IN_FLIGHT) {
            reader.refuse_plainly(said.place, RequestConfigError::InFlightOverHttp);
        }
        return;
    }
    for setting in OF_HTTP_ALONE {
        if let Some(said) = reader.said(setting) {
            let wrong = RequestConfigError::OfHttpAlone { setting: setting.name() };
            reader.refuse_plainly(said.place, wrong);
        }
    }
    messages_in_flight(reader, http);
}

/// The same where nothing else could be said.
pub(crate) fn messages_in_flight(reader: &mut Reader, http: &mut HttpBots) {
    let count = |text: &str| units::count_within(text, 1, IN_FLIGHT_MOST);
    let in_flight = reader.value_or_default(&IN_FLIGHT, count);
    // A requester waits for its response, and a single-request connection ends with it.
    if http.keep_alive && matches!(http.model, HttpModel::Open { .. }) {
        // At most 1000 by the line above.
        http.streams = in_flight as u32;
    } else if in_flight > 1
        && let Some(said) = reader.said(&IN_FLIGHT)
    {
        reader.refuse_plainly(said.place, RequestConfigError::InFlightWithoutRate);
    }
}

/// `ID=${NAME}`. No message repeats what follows the sign: it may be a secret.
fn signing_key(text: &str) -> Result<SigningKey, RequestConfigError> {
    let (id, secret) = text.trim().split_once('=').ok_or(RequestConfigError::Key)?;
    let (id, secret) = (id.trim(), secret.trim());
    let names = units::http::environment_names("the key", secret)?;
    let is_one = matches!(names.as_slice(), [name] if secret == format!("${{{name}}}"));
    if !is_plain(id) || !is_one {
        return Err(RequestConfigError::Key);
    }
    Ok(SigningKey { id: id.to_owned(), secret: secret.to_owned() })
}

/// Letters that a path takes as they are.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
