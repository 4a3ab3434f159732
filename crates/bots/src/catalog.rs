//! The registry of bots: from a plan's settings to the type that carries them out, chosen in one place.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use drivers::{Http1, Http2, Tcp, tcp};
use engine::Bots;
use engine::thread::{Setup, spawn};
use measure::Vocabulary;
use plan::{Dialect, HttpVersion, Scheme, WorkerPlan, WorkloadSettings as _};

use crate::chat::{Chat, Irc, Lines, Mqtt, Nats};
use crate::http::Requests;
use crate::{Arena, Echo};

/// What can be asked of bots without their type.
struct Kind {
    vocabulary: fn(&plan::Bots) -> Option<Arc<Vocabulary>>,
    paths: fn(&WorkerPlan) -> Vec<String>,
    start: fn(Setup) -> io::Result<JoinHandle<()>>,
}

fn kind<B: Bots>() -> Kind {
    Kind { vocabulary: |bots| B::Settings::of(bots).map(B::vocabulary), paths: B::paths, start: spawn::<B> }
}

/// Errors: these bots do not speak the protocol.
fn kind_of(bots: &plan::Bots, scheme: Scheme) -> io::Result<Kind> {
    Ok(match (bots, scheme) {
        (plan::Bots::Arena(_), _) => kind::<Arena>(),
        (plan::Bots::Echo(_), Scheme::Ws | Scheme::Wss) => kind::<Echo>(),
        (plan::Bots::Echo(_), Scheme::Tcp | Scheme::Irc | Scheme::Nats | Scheme::Mqtt) => {
            kind::<Echo<Tcp<tcp::Lines>, crate::echo::Lines>>()
        }
        (plan::Bots::Echo(_), Scheme::Http | Scheme::Https) => {
            return Err(io::Error::other(format!("no echo clients speak {} yet", scheme.name())));
        }
        (plan::Bots::Chat(chat), _) => match chat.dialect {
            Dialect::Lines => kind::<Chat<Lines>>(),
            Dialect::Irc => kind::<Chat<Irc>>(),
            Dialect::Nats => kind::<Chat<Nats>>(),
            Dialect::Mqtt => kind::<Chat<Mqtt, Tcp<tcp::Packets>>>(),
        },
        (plan::Bots::Http(http), _) => match http.version {
            HttpVersion::One => kind::<Requests<Http1>>(),
            HttpVersion::Two => kind::<Requests<Http2>>(),
        },
    })
}

/// The names of what these bots count. Errors: they do not speak the protocol of this scheme.
pub fn vocabulary(bots: &plan::Bots, scheme: Scheme) -> io::Result<Arc<Vocabulary>> {
    let names = (kind_of(bots, scheme)?.vocabulary)(bots);
    names.ok_or_else(|| io::Error::other("the registry gives these bots another's settings"))
}

/// The paths they connect to. Errors: as `vocabulary`.
pub fn paths(plan: &WorkerPlan) -> io::Result<Vec<String>> {
    Ok((kind_of(&plan.bots, plan.target.scheme)?.paths)(plan))
}

/// Starts one worker. Errors: as `vocabulary`; the thread cannot be started.
pub fn start(setup: Setup) -> io::Result<JoinHandle<()>> {
    (kind_of(&setup.plan.bots, setup.plan.target.scheme)?.start)(setup)
}
