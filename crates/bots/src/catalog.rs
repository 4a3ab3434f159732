//! From the plan's bots to one monomorphic worker each.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use drivers::{Http1, Http2, Tcp, tcp};
use engine::Bots;
use engine::thread::{Setup, spawn};
use measure::Vocabulary;
use plan::{ChatBots, Dialect, HttpBots, HttpVersion, Scheme, WorkerPlan};

use crate::chat::{Chat, Irc, Lines, Mqtt, Nats};
use crate::http::Requests;

type Arena = crate::Arena;
type Echo = crate::Echo;
type ChatOfLines = Chat<Lines>;
type EchoOfLines = crate::Echo<Tcp<tcp::Lines>, crate::echo::Lines>;

/// The names of what these bots count.
pub fn vocabulary(bots: &plan::Bots) -> Arc<Vocabulary> {
    match bots {
        plan::Bots::Arena(_) => Arena::vocabulary(bots),
        plan::Bots::Echo(_) => Echo::vocabulary(bots),
        plan::Bots::Chat(_) => ChatOfLines::vocabulary(bots),
        plan::Bots::Http(_) => crate::http::vocabulary(bots),
    }
}

/// The paths they connect to.
pub fn paths(plan: &WorkerPlan) -> Vec<String> {
    match plan.bots {
        plan::Bots::Arena(_) => Arena::paths(plan),
        plan::Bots::Echo(_) => Echo::paths(plan),
        plan::Bots::Chat(_) => ChatOfLines::paths(plan),
        plan::Bots::Http(_) => vec![plan.target.path.clone()],
    }
}

/// Starts one worker.
pub fn start(setup: Setup) -> io::Result<JoinHandle<()>> {
    match setup.plan.bots {
        plan::Bots::Arena(_) => spawn::<Arena>(setup),
        plan::Bots::Echo(_) => match setup.plan.target.scheme {
            Scheme::Ws | Scheme::Wss => spawn::<Echo>(setup),
            Scheme::Tcp | Scheme::Irc | Scheme::Nats | Scheme::Mqtt => spawn::<EchoOfLines>(setup),
            scheme @ (Scheme::Http | Scheme::Https) => {
                Err(io::Error::other(format!("no echo clients speak {} yet", scheme.name())))
            }
        },
        plan::Bots::Http(HttpBots { version, .. }) => match version {
            HttpVersion::One => spawn::<Requests<Http1>>(setup),
            HttpVersion::Two => spawn::<Requests<Http2>>(setup),
        },
        plan::Bots::Chat(ChatBots { dialect, .. }) => match dialect {
            Dialect::Lines => spawn::<ChatOfLines>(setup),
            Dialect::Irc => spawn::<Chat<Irc>>(setup),
            Dialect::Nats => spawn::<Chat<Nats>>(setup),
            Dialect::Mqtt => spawn::<Chat<Mqtt, Tcp<tcp::Packets>>>(setup),
        },
    }
}
