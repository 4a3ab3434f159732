//! Clients of a leaderboard: which board, how many members, how many updates in a request, how many of them read.

use crate::layers::bots::BotsKind;
use crate::layers::ladder::Loads;
use crate::layers::reader::Reader;
use crate::mistakes::RequestConfigError;
use crate::scheme::Transport;
use crate::settings::{Setting, Shape};
use crate::units;
use crate::workloads::http::settings::{Loop, transport};
use crate::workloads::{HttpCheck, HttpRequest, LeaderboardBots};

/// How a plan comes to these bots.
pub(crate) const KIND: BotsKind = BotsKind {
    name: "leaderboard",
    speaks: |scheme| scheme.transport() == Transport::Http,
    settings: &[SETTINGS],
    read: |reader, _, loads| read(reader, loads).into(),
};

const SETTINGS: &[&Setting] = &[&BOARD, &MEMBERS, &BULK, &READS];
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

const MEMBERS_MOST: u64 = 10_000_000;
const BULK_MOST: u64 = 10_000;
/// The kinds of requests; the first updates, the others read in equal shares.
const REQUESTS: [&str; 4] = ["update", "top", "rank", "around"];

/// The clients of the plan; after a mistake, clients that let the other settings be read.
fn read(reader: &mut Reader, loads: Option<&Loads>) -> LeaderboardBots {
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
    let mut http = transport(reader, loads, Loop::Open);
    http.requests = REQUESTS.iter().enumerate().map(request).collect();
    LeaderboardBots { http, board, members, bulk }
}

/// Letters that a path takes as they are.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
