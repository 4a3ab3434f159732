//! The registry of bots: maps a plan's settings to the type that implements them, in one place.

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use drivers::{Grpc, Hazelcast, Http1, Http2, Messages, Redis, Tcp, tcp};
use engine::Bots;
use engine::thread::{Setup, spawn};
use measure::MetricNames;
use plan::{
    ChatDialect, HttpVersion, LeaderboardProtocol, ProtobufOver, Scheme, Transport, WorkerPlan,
    WorkloadSettings as _,
};

use crate::chat::{Chat, Irc, Lines, Mqtt, Nats};
use crate::http::Requests;
use crate::leaderboard::Leaderboard;
use crate::protobuf::Calls;
use crate::script::Scripts;
use crate::{Arena, Echo, Operations};

/// What can be asked of bots without their type.
struct Kind {
    metric_names: fn(&plan::BotSettings) -> Option<Arc<MetricNames>>,
    paths: fn(&WorkerPlan) -> Vec<String>,
    start: fn(Setup) -> io::Result<JoinHandle<()>>,
}

fn kind<B: Bots>() -> Kind {
    Kind {
        metric_names: |bots| B::Settings::of(bots).map(B::metric_names),
        paths: B::paths,
        start: spawn::<B>,
    }
}

/// Errors: these bots do not speak the protocol.
fn kind_of(bots: &plan::BotSettings, scheme: Scheme) -> io::Result<Kind> {
    Ok(match (bots, scheme) {
        (plan::BotSettings::Arena(_), _) => kind::<Arena>(),
        (plan::BotSettings::Echo(_), _) => match scheme.transport() {
            Transport::WebSocket => kind::<Echo>(),
            Transport::Tcp => kind::<Echo<Tcp<tcp::Lines>, crate::echo::Lines>>(),
            Transport::Http | Transport::Redis | Transport::Hazelcast | Transport::Udp => {
                return Err(io::Error::other(format!("no echo clients speak {} yet", scheme.name())));
            }
        },
        (plan::BotSettings::Grid(_), _) => match scheme.transport() {
            Transport::Redis => kind::<Operations<Redis>>(),
            Transport::Hazelcast => kind::<Operations<Hazelcast>>(),
            Transport::WebSocket | Transport::Http | Transport::Tcp | Transport::Udp => {
                return Err(io::Error::other(format!("{} is no protocol of a data grid", scheme.name())));
            }
        },
        (plan::BotSettings::Chat(chat), _) => match chat.dialect {
            ChatDialect::Lines => kind::<Chat<Lines>>(),
            ChatDialect::Irc => kind::<Chat<Irc>>(),
            ChatDialect::Nats => kind::<Chat<Nats>>(),
            ChatDialect::Mqtt => kind::<Chat<Mqtt, Tcp<tcp::Packets>>>(),
        },
        (plan::BotSettings::Leaderboard(bots), _) => match (bots.protocol, bots.http.version) {
            (LeaderboardProtocol::Http, HttpVersion::One) => kind::<Requests<Http1, Leaderboard>>(),
            (LeaderboardProtocol::Http, HttpVersion::Two) => kind::<Requests<Http2, Leaderboard>>(),
            (LeaderboardProtocol::WebSocket, _) => kind::<Requests<Messages, Leaderboard>>(),
            (LeaderboardProtocol::Grpc, _) => kind::<Requests<Grpc, Leaderboard>>(),
        },
        (plan::BotSettings::Protobuf(bots), _) => match bots.over {
            ProtobufOver::WebSocket(_) => kind::<Requests<Messages, Calls<Messages>>>(),
            ProtobufOver::Grpc => kind::<Requests<Grpc, Calls<Grpc>>>(),
        },
        (plan::BotSettings::Script(_), _) => kind::<Scripts>(),
        (plan::BotSettings::Http(http), _) => match http.version {
            HttpVersion::One => kind::<Requests<Http1>>(),
            HttpVersion::Two => kind::<Requests<Http2>>(),
        },
    })
}

/// The names of what these bots count. Errors: they do not speak the protocol of this scheme.
pub fn metric_names(bots: &plan::BotSettings, scheme: Scheme) -> io::Result<Arc<MetricNames>> {
    let names = (kind_of(bots, scheme)?.metric_names)(bots);
    names.ok_or_else(|| io::Error::other("the registry gives these bots another's settings"))
}

/// The paths they connect to. Errors: as `metric_names`.
pub fn paths(plan: &WorkerPlan) -> io::Result<Vec<String>> {
    Ok((kind_of(&plan.bots, plan.target.scheme)?.paths)(plan))
}

/// Starts one worker. Errors: as `metric_names`; the thread cannot be started.
pub fn start(setup: Setup) -> io::Result<JoinHandle<()>> {
    (kind_of(&setup.plan.bots, setup.plan.target.scheme)?.start)(setup)
}
