//! Clients of a leaderboard: which board, how many members, how many updates in a request, how many of them read.

use crate::layers::http::{self, Loop};
use crate::layers::ladder::Loads;
use crate::layers::reader::Reader;
use crate::mistakes::RequestConfigError;
use crate::settings::{Setting, Shape};
use crate::target::Scheme;
use crate::units;
use crate::workloads::{HttpBots, HttpCheck, HttpModel, HttpRequest, LeaderboardBots, LeaderboardProtocol};

pub(super) const SETTINGS: &[&Setting] = &[&BOARD, &MEMBERS, &BULK, &READS, &PROTOCOL, &IN_FLIGHT];
const LEADERBOARD: Setting = Setting::of("Leaderboard", &["leaderboard"]);

static BOARD: Setting = LEADERBOARD
    .key("bots.board", Shape::Text, "main")
    .about("leaderboard: the name of the board.")
    .flag("--board", "NAME")
    .help("The name of the board")
    .default("main");
static MEMBERS: Setting = LEADERBOARD
    .key("bots.members", Shape::Whole("uint32"), "100000")
    .about("leaderboard: members that are updated.")
    .flag("--members", "N")
    .help("Members that are updated")
    .default("100000");
static BULK: Setting = LEADERBOARD
    .key("bots.bulk", Shape::Whole("uint32"), "16")
    .about("leaderboard: updates in one request.")
    .flag("--bulk", "N")
    .help("Updates in one request; 1: a request for each")
    .default("1");
static READS: Setting = LEADERBOARD
    .key("bots.reads", Shape::NumberOrText, "10%")
    .about(
        "leaderboard: share of the requests that read: the top ten, a member's rank, a member's neighbours.",
    )
    .flag("--reads", "SHARE")
    .help("Share of the requests that read: the top ten, a member's rank, a member's neighbours")
    .default("10%");

static PROTOCOL: Setting = LEADERBOARD
    .key("bots.protocol", Shape::Text, "websocket")
    .about("leaderboard: what requests go over: http, websocket (protobuf messages) or grpc.")
    .flag("--protocol", "NAME")
    .help("What requests go over: http, websocket (protobuf messages) or grpc")
    .default("http; websocket for ws:// targets")
    .flag_example("websocket");
static IN_FLIGHT: Setting = LEADERBOARD
    .key("bots.in_flight", Shape::Whole("uint32"), "16")
    .about("leaderboard, over websocket or grpc and with a rate: requests at once on one connection.")
    .flag("--in-flight", "N")
    .help("Over WebSocket or gRPC, with a rate: requests at once on one connection")
    .default("16");

const IN_FLIGHT_MOST: u64 = 1000;
/// What a WebSocket message of 64 KiB has room for.
const WEBSOCKET_BULK_MOST: u64 = 2000;
const MEMBERS_MOST: u64 = 10_000_000;
const BULK_MOST: u64 = 10_000;
/// The kinds of requests; the first updates, the others read in equal shares.
const REQUESTS: [&str; 4] = ["update", "top", "rank", "around"];

/// The clients of the plan; after a mistake, clients that let the other settings be read.
pub(super) fn read(reader: &mut Reader, scheme: Option<Scheme>, loads: Option<&Loads>) -> LeaderboardBots {
    let board = reader.value_or_default(&BOARD, |text| match text.trim() {
        name if is_plain(name) => Ok(name.to_owned()),
        name => Err(RequestConfigError::BoardName(name.to_owned())),
    });
    let members = reader.value_or_default(&MEMBERS, |text| units::whole_within(text, 1, MEMBERS_MOST));
    let bulk = reader.value_or_default(&BULK, |text| units::whole_within(text, 1, BULK_MOST));
    let reads = reader.value_or_default(&READS, units::share);
    let request = |(at, name): (usize, &&str)| HttpRequest {
        name: (*name).to_owned(),
        weight: if at == 0 { 1.0 - reads } else { reads / (REQUESTS.len() - 1) as f64 },
        method: "GET".to_owned(),
        path: "/".to_owned(),
        headers: Vec::new(),
        body: String::new(),
        check: HttpCheck::default(),
        capture: Vec::new(),
    };
    let mut http = http::transport(reader, loads, Loop::Open);
    http.requests = REQUESTS.iter().enumerate().map(request).collect();
    let protocol = protocol(reader, scheme);
    in_flight(reader, &mut http, protocol);
    if protocol == LeaderboardProtocol::WebSocket
        && bulk > WEBSOCKET_BULK_MOST
        && let Some(said) = reader.said(&BULK)
    {
        let wrong = RequestConfigError::BulkOverWebSocket { most: WEBSOCKET_BULK_MOST };
        reader.refuse_plainly(said.place, wrong);
    }
    LeaderboardBots { http, protocol, board, members, bulk }
}

/// What was said, or what the target's scheme says.
fn protocol(reader: &mut Reader, scheme: Option<Scheme>) -> LeaderboardProtocol {
    let is_websocket = matches!(scheme, Some(Scheme::Ws | Scheme::Wss));
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
    let count = |text: &str| units::whole_within(text, 1, IN_FLIGHT_MOST);
    if protocol == LeaderboardProtocol::Http {
        if let Some(said) = reader.said(&IN_FLIGHT) {
            reader.refuse_plainly(said.place, RequestConfigError::InFlightOverHttp);
        }
        return;
    }
    for setting in http::OF_HTTP_ALONE {
        if let Some(said) = reader.said(setting) {
            let wrong = RequestConfigError::OfHttpAlone { setting: setting.name() };
            reader.refuse_plainly(said.place, wrong);
        }
    }
    let in_flight = reader.value_or_default(&IN_FLIGHT, count);
    // A requester waits for its response, and a connection of one request ends with it.
    if http.keep_alive && matches!(http.model, HttpModel::Open { .. }) {
        // At most 1000 by the line above.
        http.streams = in_flight as u32;
    } else if in_flight > 1
        && let Some(said) = reader.said(&IN_FLIGHT)
    {
        reader.refuse_plainly(said.place, RequestConfigError::InFlightWithoutRate);
    }
}

/// Letters that a path takes as they are.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
