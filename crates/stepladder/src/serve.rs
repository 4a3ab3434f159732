//! `stepladder serve`: runs a reference server standalone. Its settings are documented at its own options.

use std::io::Write;
use std::net::SocketAddr;

use servers::{
    ServeError, Server, arena, arena_lobby, chat, leaderboard_service, limited, null, oracle, poll_loop,
    redis,
};

/// Serves until SIGTERM or Ctrl-C.
pub fn run(server: Server) -> Result<(), ServeError> {
    match server {
        Server::Arena(options) => arena::run(options, |address| announce("arena", "ws", address), say_it),
        Server::ArenaLobby(options) => {
            arena_lobby::run(options, |address| announce("arena-lobby", "ws", address), say_it)
        }
        Server::Chat(options) => {
            let window = options.window;
            let totals = chat::run(options, |news| match news {
                chat::News::Listening { address, metrics } => {
                    announce("chat", "tcp", address);
                    if let Some(metrics) = metrics {
                        say(format_args!("metrics at http://{metrics}/metrics"));
                    }
                    say(format_args!("{window}"));
                }
                chat::News::Report(report) => say(format_args!("{report}")),
                chat::News::Nodes(sentence) => say(format_args!("{sentence}")),
            })?;
            say(format_args!(
                "books: owed {} delivered {} dropped {} in flight {} residual {}",
                totals.owed,
                totals.delivered,
                totals.dropped,
                totals.in_flight_at_close,
                totals.residual()
            ));
            Ok(())
        }
        Server::PollLoop(options) => {
            let about = options.to_string();
            poll_loop::run(options, |address| {
                announce("poll-loop", "http", address);
                say(format_args!("{about}"));
            })
        }
        Server::Leaderboard(options) => leaderboard_service::run(options, |started| {
            announce("leaderboard", "http", started.address);
            if let Some(recovered) = started.recovered {
                say(format_args!("{recovered}"));
            }
        }),
        Server::Redis(options) => redis::run(options, |address| announce("redis", "redis", address)),
        Server::Null(options) => {
            let scheme = match options.protocol {
                null::Protocol::WebSocket => "ws",
                null::Protocol::Lines => "tcp",
                null::Protocol::Http => "http",
            };
            null::run(options, |address| announce("null", scheme, address))
        }
        Server::Limited(options) => limited::run(options, |address| announce("limited", "http", address)),
        Server::Oracle(options) => {
            let law = options.to_string();
            oracle::run(options, |address| {
                announce("oracle", "http", address);
                say(format_args!("{law}"));
            })
        }
    }
}

/// The first line of a server's output: people read it, and a climb takes the address from it.
fn announce(name: &str, scheme: &str, address: SocketAddr) {
    say(format_args!("{name} listening on {scheme}://{address}"));
}

fn say_it(sentence: String) {
    say(format_args!("{sentence}"));
}

fn say(line: std::fmt::Arguments<'_>) {
    let mut out = std::io::stdout();
    // A closed stdout does not stop the server.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
