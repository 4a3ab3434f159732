//! Additions to a WebSocket handshake beyond the protocol's own: headers and subprotocols.
//!
//! The flag for headers is the one for HTTP requests (`http/settings/requests`): to the user it is the same thing.

use crate::layers::bots::Server;
use crate::layers::reader::Reader;
use crate::mistakes::RequestConfigError;
use crate::plan::Handshake;
use crate::scenario::Node;
use crate::scheme::Transport;
use crate::settings::{Kind, Setting, Shape};
use crate::units::http;
use crate::workloads::http::settings::requests::HEADER;
use crate::workloads::{BotSettings, LeaderboardProtocol, ProtobufOver};

pub(crate) const HEADING: &str = "WebSocket";
const WEBSOCKET: Setting = Setting::of(HEADING, &["arena", "echo", "leaderboard", "protobuf", "script"]);

settings! { pub(super) SETTINGS;
    HEADERS = WEBSOCKET.key("bots.headers", Shape::Map(&Shape::NumberOrText), "{ Authorization: \"Bearer ${TOKEN}\" }")
        .about("WebSocket: headers of the handshake; ${NAME} in a value comes from the environment and is never stored.");
    SUBPROTOCOLS = WEBSOCKET.key("bots.subprotocols", Shape::OneOrMore, "graphql-transport-ws")
        .about("WebSocket: the subprotocols that the handshake offers, in the order of preference.")
        .flag("--subprotocol", "NAME")
        .help("A subprotocol that the WebSocket handshake offers; the server may choose one of them; repeatable")
        .kind(Kind::Repeated);
}

/// The handshake of the plan. Other protocols have none, so settings for one are refused.
pub(super) fn read(reader: &mut Reader, server: &Server<'_>, bots: &BotSettings) -> Handshake {
    let is_websocket = is_websocket(server, bots);
    let in_file = reader.file.at(HEADERS.key).cloned();
    let flags = if is_websocket || is_of_websocket_alone(bots) { reader.in_flags(&HEADER) } else { None };
    if !is_websocket {
        let of_flags = flags.into_iter().flatten().next();
        let of_file = in_file.as_ref().map(|node| reader.at(&HEADERS, node));
        let said = [of_flags, of_file, reader.said(&SUBPROTOCOLS)];
        // Bots that never speak over WebSocket were refused already.
        let takes = WEBSOCKET.bots.contains(&bots.name());
        for said in said.into_iter().flatten().filter(|_| takes) {
            reader.refuse_plainly(said.place, RequestConfigError::OfHandshake);
        }
        return Handshake::default();
    }
    let headers = match flags {
        Some(flags) => reader.read_all(&flags, http::handshake_header),
        None => of_file(reader, in_file.as_ref()),
    };
    let said = reader.all(&SUBPROTOCOLS).unwrap_or_default();
    let mut subprotocols: Vec<String> = Vec::new();
    for name in reader.read_all(&said, http::subprotocol) {
        if !subprotocols.contains(&name) {
            subprotocols.push(name);
        }
    }
    Handshake { headers, subprotocols }
}

fn of_file(reader: &mut Reader, node: Option<&Node>) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for (name, value) in node.map(Node::by_name).unwrap_or_default() {
        let said = reader.at(&HEADERS, value);
        headers.extend(reader.read(&said, |text| http::named_handshake_header(name, text)));
    }
    headers
}

/// Whether these bots open WebSockets to this server.
fn is_websocket(server: &Server<'_>, bots: &BotSettings) -> bool {
    let of_scheme = server.scheme.is_none_or(|scheme| scheme.transport() == Transport::WebSocket);
    match bots {
        BotSettings::Arena(_) | BotSettings::Echo(_) | BotSettings::Script(_) => of_scheme,
        BotSettings::Leaderboard(bots) => bots.protocol == LeaderboardProtocol::WebSocket,
        BotSettings::Protobuf(bots) => matches!(bots.over, ProtobufOver::WebSocket(_)),
        BotSettings::Chat(_) | BotSettings::Http(_) | BotSettings::Grid(_) => false,
    }
}

/// Whether the flag for headers means a handshake to these bots, or nothing.
fn is_of_websocket_alone(bots: &BotSettings) -> bool {
    matches!(
        bots,
        BotSettings::Arena(_) | BotSettings::Echo(_) | BotSettings::Leaderboard(_) | BotSettings::Script(_)
    )
}
