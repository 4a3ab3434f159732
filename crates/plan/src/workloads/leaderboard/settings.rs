//! Clients of a leaderboard: which board, how many members, how many updates in a request, how many of them read.

use crate::layers::axes;
use crate::layers::bots::BotsKind;
use crate::layers::ladder::Loads;
use crate::layers::reader::Reader;
use crate::mistakes::RequestConfigError;
use crate::scheme::Transport;
use crate::settings::{Setting, Shape};
use crate::units;
use crate::workloads::http::settings::{Loop, transport};
use crate::workloads::{HttpCheck, HttpRequest, LeaderboardBots, SigningKey};

/// How a plan comes to these bots.
pub(crate) const KIND: BotsKind = BotsKind {
    name: "leaderboard",
    speaks: |scheme| scheme.transport() == Transport::Http,
    settings: &[SETTINGS],
    read: |reader, _, loads| read(reader, loads).into(),
};

const SETTINGS: &[&Setting] = &[&BOARD, &MEMBERS, axes::OF_LEADERBOARD, &READS, &KEY, &CHEATERS];
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
static READS: Setting = LEADERBOARD
    .key("bots.reads", Shape::NumberOrText, "10%")
    .about(
        "leaderboard: share of the requests that read: the top ten, a member's rank, a member's neighbours.",
    )
    .flag("--reads", "SHARE")
    .help("Share of the requests that read: the top ten, a member's rank, a member's neighbours")
    .default("10%");

static KEY: Setting = LEADERBOARD
    .key("bots.key", Shape::Text, "game=${GAME_KEY}")
    .about("leaderboard: signs the updates: the key's id, and the environment variable with its secret in hexadecimal digits.")
    .flag("--key", "ID=${NAME}")
    .help("Sign the updates: the key's id, and the environment variable with its secret in hexadecimal digits")
    .flag_example("game=${GAME_KEY}");
static CHEATERS: Setting = LEADERBOARD
    .key("bots.cheaters", Shape::NumberOrText, "5%")
    .about("leaderboard: share of the requests that come from cheaters, and must be refused.")
    .flag("--cheaters", "SHARE")
    .help(
        "Share of the requests that come from cheaters: updates with no, false, expired or repeated signatures, which must \
         be refused and change nothing; needs --key",
    )
    .default("0%");

const MEMBERS_MOST: u64 = 10_000_000;
/// The kinds of requests; the first updates, the others read in equal shares.
const REQUESTS: [&str; 4] = ["update", "top", "rank", "around"];

/// The clients of the plan; after a mistake, clients that let the other settings be read.
fn read(reader: &mut Reader, loads: Option<&Loads>) -> LeaderboardBots {
    let board = reader.value_or_default(&BOARD, |text| match text.trim() {
        name if is_plain(name) => Ok(name.to_owned()),
        name => Err(RequestConfigError::BoardName(name.to_owned())),
    });
    let members = reader.value_or_default(&MEMBERS, |text| units::whole_within(text, 1, MEMBERS_MOST));
    let bulk = axes::bulk(reader);
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
        method: "GET".to_owned(),
        path: "/".to_owned(),
        headers: Vec::new(),
        body: String::new(),
        check: HttpCheck::default(),
        capture: Vec::new(),
    };
    let mut http = transport(reader, loads, Loop::Open);
    http.requests = REQUESTS.iter().enumerate().map(request).collect();
    LeaderboardBots { http, board, members, bulk, counts_updates, key, cheaters }
}

/// `ID=${NAME}`. No message repeats what stands behind the sign: it may be a secret.
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
