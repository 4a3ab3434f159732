//! Broadcast chat: clients in a room where each line goes to all others.

pub(crate) mod settings;

use ladder::{Allowed, LoadUnit};
use serde::{Deserialize, Serialize};

use super::{Broadcast, Workload};
use crate::plan::{Arrivals, Ramp};
use crate::scheme::Scheme;

/// A server that tells a room of every client that joins does so n² times.
const RAMP_PER_S: f64 = 2000.0;

/// People in a room.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatBots {
    /// how the subject is spoken to
    pub dialect: ChatDialect,
    /// shortest time between two lines of one bot, ns; > 0
    pub gap_min_ns: u64,
    /// longest, ns; gaps are uniform in between, or exponential with their mean where arrivals are `poisson`
    pub gap_max_ns: u64,
    /// shortest line in bytes, its end included; at least `LINE_BYTES_MIN`
    pub line_min_bytes: usize,
    /// longest line in bytes, its end included
    pub line_max_bytes: usize,
    /// so many of the bots speak, the first ones; `None`: all
    pub talkers: Option<u64>,
    /// the room, channel or subject, in letters that every dialect allows; the bots put IRC's `#` in front
    pub room: String,
    /// the subject sends each line back to its sender too
    pub echoes: bool,
    /// shares of the crowd that behave badly; they are judged separately. The shares add up to at most 1
    pub misbehave: Vec<FaultSpec>,
}

/// A line carries who sent it, which of its lines it is, when it was planned, and a check: 14 characters and its end.
pub const LINE_BYTES_MIN: usize = 15;

impl ChatBots {
    /// Mean time between two lines of one bot, ns.
    pub fn gap_mean_ns(&self) -> f64 {
        (self.gap_min_ns as f64 + self.gap_max_ns as f64) / 2.0
    }

    /// How the bot number `unit` of the whole crowd behaves badly, if it does.
    ///
    /// Kinds are spread evenly over the crowd (a golden-ratio sequence), so that shares hold in any part of it.
    pub fn fault_of(&self, unit: u64) -> Option<&FaultSpec> {
        const GOLDEN: f64 = 0.618_033_988_749_894_9;
        let place = ((unit + 1) as f64 * GOLDEN).fract();
        let mut end = 0.0;
        self.misbehave.iter().find(|fault| {
            end += fault.share;
            place < end
        })
    }

    /// Whether the bot number `unit` speaks. Those that send nothing sensible do not.
    pub fn speaks(&self, unit: u64) -> bool {
        let is_mute = |fault: &FaultSpec| matches!(fault.kind, FaultKind::HalfOpen | FaultKind::Malformed);
        self.talkers.is_none_or(|talkers| unit < talkers) && !self.fault_of(unit).is_some_and(is_mute)
    }

    /// How many of a crowd of `units` speak.
    pub fn speaker_count(&self, units: u64) -> u64 {
        (0..units).filter(|&unit| self.speaks(unit)).count() as u64
    }
}

/// An IRC message, its end included (RFC 2812, section 2.3); servers cut off what is longer.
const IRC_MESSAGE_BYTES: usize = 512;
/// `:nick!user@host ` as servers put it in front: nicknames of 9, users of 20, hosts of 63 bytes at most.
const IRC_PREFIX_BYTES: usize = 1 + 9 + 1 + 20 + 1 + 63 + 1;

impl ChatDialect {
    /// All of them.
    pub const ALL: &[ChatDialect] =
        &[ChatDialect::Lines, ChatDialect::Irc, ChatDialect::Nats, ChatDialect::Mqtt];

    /// The scheme of a target that is spoken to so.
    pub fn scheme(self) -> Scheme {
        match self {
            ChatDialect::Lines => Scheme::Tcp,
            ChatDialect::Irc => Scheme::Irc,
            ChatDialect::Nats => Scheme::Nats,
            ChatDialect::Mqtt => Scheme::Mqtt,
        }
    }

    /// Bytes that are left for a line and its end in a room; `None`: the protocol sets no limit that matters here.
    pub fn line_bytes_most(self, room: &str) -> Option<usize> {
        match self {
            ChatDialect::Lines | ChatDialect::Nats | ChatDialect::Mqtt => None,
            // The line ending counts as one byte wherever it is sent; IRC's has two.
            ChatDialect::Irc => {
                let around =
                    IRC_PREFIX_BYTES + "PRIVMSG #".len() + room.len() + " :".len() + "\r\n".len() - 1;
                Some(IRC_MESSAGE_BYTES.saturating_sub(around))
            }
        }
    }
}

/// How a chat is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatDialect {
    /// bare lines: our own chat server, and whatever netcat could talk to
    Lines,
    /// RFC 2812: register, join, PRIVMSG, PING
    Irc,
    /// the NATS client protocol: SUB, PUB, MSG
    Nats,
    /// MQTT 3.1.1 at QoS 0: SUBSCRIBE, PUBLISH; a publisher that subscribes gets its own messages too
    Mqtt,
}

/// A kind of bad behaviour and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultSpec {
    /// what they do
    pub kind: FaultKind,
    /// of the crowd, in (0, 1]
    pub share: f64,
    /// ns between two storms; 0 for all other kinds
    pub period_ns: u64,
}

/// What some clients do to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum FaultKind {
    /// reads 1 KB per second
    SlowReader,
    /// stops reading once it has joined
    Stalled,
    /// shuts its sending side and goes on listening
    HalfOpen,
    /// all of them cut their connections and come back at once, every period
    ReconnectStorm,
    /// sends what the protocol does not allow
    Malformed,
}

impl Workload for ChatBots {
    fn load_unit(&self) -> LoadUnit {
        LoadUnit::Clients
    }

    fn unit_names(&self) -> (&'static str, &'static str) {
        ("client", "clients")
    }

    fn arrivals(&self) -> (&'static [Arrivals], &'static str) {
        (
            &[Arrivals::Even, Arrivals::Poisson],
            "people speak by a clock of their own (even) or at random (poisson); --ramp says how they come",
        )
    }

    fn default_ramp(&self) -> Ramp {
        Ramp::PerSecond(RAMP_PER_S)
    }

    fn default_objectives(&self) -> &'static [&'static str] {
        &["deliveries.lost == 0", "deliveries.latency.p99 < 50ms"]
    }

    // A server that delivers twice, or answers valid input with errors, fails at its purpose.
    fn forbidden(&self) -> &'static [(Allowed, Option<&'static str>)] {
        &[(Allowed::Duplicates, Some("deliveries.duplicated == 0")), (Allowed::Errors, Some("refused == 0"))]
    }

    // Deliveries grow with the square of the clients, so steps are smaller.
    fn default_loads(&self) -> &'static [f64] {
        &[128.0, 256.0, 512.0, 1024.0]
    }

    fn lacks_delivery_figure(&self, figure: &str) -> Option<&'static str> {
        if self.misbehave.iter().map(|one| one.share).sum::<f64>() > 0.999_999 {
            return Some("the whole crowd misbehaves, and only the others are judged");
        }
        (figure == "deliveries.dropped" && self.dialect != ChatDialect::Lines)
            .then_some("servers of this protocol do not report what they dropped; deliveries.lost holds it")
    }

    fn intended_per_s(&self, load: f64) -> Option<f64> {
        Some(self.speaker_count(self.units(load)) as f64 * 1e9 / self.gap_mean_ns())
    }

    fn broadcast(&self, load: f64) -> Option<Broadcast> {
        let clients = self.units(load);
        let senders = self.talkers.unwrap_or(clients).min(clients);
        Some(Broadcast { senders, gap_mean_ns: self.gap_mean_ns() })
    }
}
