//! Which server, how it is started, where its ticks are reported, and whether it may be loaded.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::built_in::BuiltIn;
use crate::layers::bots::schemes_of;
use crate::layers::is_scenario_file;
use crate::layers::reader::{RawValue, Reader};
use crate::mistakes::{ConfigError, Place};
use crate::plan::{Ladder, SubjectSource, TickSource};
use crate::scenario::Node;
use crate::scheme::Scheme;
use crate::settings::{Kind, Setting, Shape};
use crate::target::{self, Target, TargetError};
use crate::units::{self, UnitError};
use crate::vocabulary;
use crate::workloads::chat::settings::ECHOES;
use crate::workloads::{BotSettings, is_script_file};

const HERE: Setting = Setting::of("Subject", &[]);
/// As long as a path and query of a request over HTTP.
const URL_BYTES_MAX: usize = 64 << 10;

settings! { pub(super) SETTINGS;
    /// The positional word; a scenario file is one too, and then the file names the subject.
    pub SUBJECT = HERE.at_most(URL_BYTES_MAX)
        .key("subject", Shape::WordOr("SubjectKeys", "The server under test."), "{ target: ws://127.0.0.1:42069 }")
        .about("The server under test.").required()
        .word("climb", "arena");
    TARGET = HERE.at_most(URL_BYTES_MAX).key("subject.target", Shape::Text, "ws://127.0.0.1:42069")
        .about("A URL, or the name of a built-in server.").required()
        .flag("--target", "URL").help("The server that a script plays (climb player.ts --target ws://HOST:PORT)");
    /// The command that starts the server.
    pub START = HERE.key("subject.start", Shape::Text, "node server.js")
        .about("The command that starts the server, once confirmed (--allow-start); it is watched, and stopped at the end.")
        .flag("--start", "COMMAND").help("Start the subject with this command, watch it and stop it");
    PID = HERE.key("subject.pid", Shape::Whole("uint32"), "4711").about("The process of a server that runs already.")
        .flag("--pid", "N").help("Watch this process, which runs already");
    CGROUP = HERE.key("subject.cgroup", Shape::Text, "docker/7f3a")
        .about("The control group of a server that runs already, as of its container; its CPU and memory are the server's.")
        .flag("--watch-cgroup", "PATH")
        .help("Watch this control group, as of the container that the subject runs in already");
    pub(crate) TICKS = HERE
        .key("subject.ticks", Shape::Choices("TicksKeys", "Where the server reports its ticks: one key."), "{ log: game.log }")
        .about("Where its ticks are read: client, none, or one of the keys; or a list of these, of which the first is judged and compared with the others.")
        .flag("--ticks", "SOURCE")
        .help("Ticks from log=, jsonl=, csv=, statsd=, openmetrics=, client; repeatable")
        .kind(Kind::Repeated).flag_example("log=game.log");
    TICK_LOG = HERE.key("subject.ticks.log", Shape::Text, "game.log").about("A tick log in the arena's format.");
    TICK_LINES = HERE.key("subject.ticks.jsonl", Shape::Text, "ticks.jsonl").about("A file with a JSON object per tick.");
    TICK_TABLE = HERE.key("subject.ticks.csv", Shape::Text, "frames.csv:FrameTime:ms")
        .about("A table with a row per frame; the column of intervals and its unit behind colons, where the header does not tell.");
    STATSD = HERE.key("subject.ticks.statsd", Shape::Text, "127.0.0.1:8125/server.tick").about("Where to listen for StatsD, and the timing whose values are the intervals between ticks.");
    OPENMETRICS = HERE.key("subject.ticks.openmetrics", Shape::Text, "http://127.0.0.1:9100/metrics#tick_interval_seconds")
        .about("A metrics endpoint, and behind # its histogram of the intervals between ticks; :ms names a unit where the name does not.");
    TICK_RATE = HERE.key("subject.tick_rate", Shape::Number, "60").about("Ticks per second.")
        .flag("--tick-rate", "HZ").help("The subject's tick rate in Hz");
    TICK_PERIOD = HERE.key("subject.tick_period", Shape::Text, "33ms").about("The time between two ticks, in place of tick_rate.")
        .flag("--tick-period", "DURATION").help("The time between two of the subject's ticks, in place of its rate");
    /// What follows `--` on the command line.
    pub OPTIONS = HERE.key("subject.options", Shape::List(&Shape::NumberOrText), "[--tick-rate, 30]")
        .about("Options for a built-in server.")
        .word("options after --", "climb arena -- --tick-rate 30");
    /// Hosts that the user vouches for.
    pub I_MAY_LOAD = HERE.key("i_may_load", Shape::List(&Shape::Text), "[game.example.org]")
        .about("Hosts that are yours to load; they must also be confirmed, with --i-may-load or on a terminal.")
        .flag("--i-may-load", "HOST")
        .help("Allow a target that is neither loopback nor private, or beyond loopback where a file names it")
        .kind(Kind::Repeated).flag_example("game.example.org");
    TLS = HERE.key("tls", Shape::Keys("TlsKeys", "Certificates."), "{ ca: ca.pem }")
        .about("Certificates, for targets over TLS.");
    CA = HERE.key("tls.ca", Shape::Text, "ca.pem")
        .about("A certificate authority to trust besides the usual ones, a PEM file.")
        .flag("--ca", "FILE").help("Trust this certificate authority (PEM) besides the usual ones");
    INSECURE = HERE.key("tls.insecure", Shape::Switch, "true").about("Accept any certificate.")
        .switch(Kind::Switch, "--insecure").help("Accept any certificate");
}

/// The option of our servers that says how often they tick.
const TICK_RATE_OPTION: &str = "--tick-rate";
/// Each source is read by a thread, at a socket or in a file, and a fifth adds no certainty.
const TICK_SOURCES_MAX: usize = 4;
const TICK_RATE_HZ_MAX: f64 = 1000.0;
/// Of a server that is not built in.
const TICK_RATE_HZ: f64 = 60.0;
/// The option of our chat that sends lines back to their senders.
const ECHO_OPTION: &str = "--echo";

/// A server that can be climbed.
#[derive(Debug)]
pub(super) struct ResolvedTarget {
    pub name: String,
    pub source: SubjectSource,
}

impl ResolvedTarget {
    /// What is known of it where it is built in.
    pub fn built_in(&self) -> Option<&'static BuiltIn> {
        match &self.source {
            SubjectSource::BuiltIn { server, .. } => BuiltIn::named(server),
            SubjectSource::Started { .. } | SubjectSource::Running { .. } => None,
        }
    }

    /// How a server that is not built in is spoken to.
    pub fn scheme(&self) -> Option<Scheme> {
        match &self.source {
            SubjectSource::BuiltIn { .. } => None,
            SubjectSource::Started { target, .. } | SubjectSource::Running { target, .. } => {
                Some(target.scheme)
            }
        }
    }

    /// Path and query of a server that is not built in.
    pub fn path(&self) -> Option<&str> {
        match &self.source {
            SubjectSource::BuiltIn { .. } => None,
            SubjectSource::Started { target, .. } | SubjectSource::Running { target, .. } => {
                Some(&target.path)
            }
        }
    }
}

enum Named {
    BuiltIn(String),
    Foreign(Target),
}

/// Hosts that the user vouches for, on the command line and in the scenario.
pub(super) fn may_load(reader: &mut Reader) -> Vec<String> {
    let flags = reader.in_flags(&I_MAY_LOAD).unwrap_or_default();
    let said: Vec<RawValue> =
        flags.into_iter().chain(reader.in_file(&I_MAY_LOAD).unwrap_or_default()).collect();
    let parse = |text: &str| {
        let host = text.trim().trim_start_matches('[').trim_end_matches(']');
        let is_name = host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'));
        match host {
            "" => Err(ConfigError::from(UnitError::Empty)),
            _ if host.contains('@') => Err(TargetError::CREDENTIALS.into()),
            _ if is_name || host.parse::<IpAddr>().is_ok() => Ok(host.to_owned()),
            _ => Err(ConfigError::NotAHost(host.into())),
        }
    };
    reader.read_all(&said, parse)
}

/// The server under test; `None` after a mistake that leaves it unknown.
pub(super) fn find(
    reader: &mut Reader,
    is_file_readable: bool,
    may_load: &[String],
) -> Option<ResolvedTarget> {
    let is_server = |said: &RawValue| {
        !is_scenario_file(&said.text) && !is_script_file(&said.text) && !said.text.trim().is_empty()
    };
    let word = reader.in_flags(&SUBJECT).map(|mut said| said.remove(0)).filter(is_server);
    let word = word.or_else(|| reader.in_flags(&TARGET).map(|mut said| said.remove(0)));
    let in_file = || reader.in_file(&SUBJECT).or_else(|| reader.in_file(&TARGET));
    let Some(said) = word.or_else(|| Some(in_file()?.remove(0))) else {
        if is_file_readable {
            no_subject(reader);
        }
        return None;
    };
    let named = named_server(reader, &said)?;
    let options = reader.all(&OPTIONS).unwrap_or_default();
    let (start, pid, ca) = (reader.said(&START), reader.said(&PID), reader.said(&CA));
    let cgroup = reader.said(&CGROUP);
    let is_insecure = reader.value(&INSECURE, units::boolean).unwrap_or(false);
    let insecure = reader.said(&INSECURE).filter(|_| is_insecure);
    let name = said.text.trim().to_owned();
    match named {
        Named::BuiltIn(server) => {
            let foreign = [(&START, start), (&PID, pid), (&CGROUP, cgroup), (&CA, ca), (&INSECURE, insecure)];
            for (setting, said) in foreign {
                if let Some(said) = said {
                    let wrong =
                        ConfigError::NotForBuiltIn { setting: setting.name(), server: server.clone() };
                    reader.refuse_plainly(said.place, wrong);
                }
            }
            let options = options.into_iter().map(|said| said.text).collect();
            Some(ResolvedTarget { name, source: SubjectSource::BuiltIn { server, options } })
        }
        Named::Foreign(mut target) => {
            if let Some(first) = options.first() {
                let all: Vec<&str> = options.iter().map(|said| said.text.as_str()).collect();
                reader.refuse_plainly(first.place.clone(), ConfigError::OptionsForForeign(all.join(" ")));
            }
            for node in target.nodes() {
                if let Some(address) = node.literal_address()
                    && let Err(refused) = target::may_load(address, &node.host, may_load)
                {
                    reader.refuse_plainly(said.place.clone(), refused);
                }
            }
            certificates(reader, &mut target, ca, insecure);
            Some(ResolvedTarget { name, source: how_it_runs(reader, target, start, pid, cgroup) })
        }
    }
}

/// Bots that go to several nodes are those of the chat and of HTTP.
pub(super) fn check_nodes(reader: &mut Reader, found: Option<&ResolvedTarget>, bots: &BotSettings) {
    let target = match found.map(|found| &found.source) {
        Some(SubjectSource::Started { target, .. } | SubjectSource::Running { target, .. }) => target,
        _ => return,
    };
    if !target.others.is_empty() && !goes_to_several(bots) {
        let place = reader.said(&SUBJECT).or_else(|| reader.said(&TARGET)).map(|said| said.place);
        let wrong = ConfigError::SeveralNodes { bots: bots.name() };
        reader.refuse_plainly(place.unwrap_or(Place::Flag(SUBJECT.flag)), wrong);
    }
}

fn goes_to_several(bots: &BotSettings) -> bool {
    matches!(bots, BotSettings::Chat(_) | BotSettings::Http(_) | BotSettings::Leaderboard(_))
}

fn no_subject(reader: &mut Reader) {
    let is_unread = reader.flags.subject().is_some_and(is_scenario_file) && !reader.has_file();
    if is_unread {
        reader.refuse_plainly(Place::Flag(SUBJECT.flag), ConfigError::ScenarioNotRead);
    } else if reader.file.at(SUBJECT.key).is_none_or(Node::is_mapping) && reader.file.at(TARGET.key).is_none()
    {
        if reader.script.is_some() {
            return reader.refuse_plainly(Place::Flag(TARGET.flag), ConfigError::NoTargetOfScript);
        }
        let said = reader.missing(&TARGET, &SUBJECT);
        reader.refuse(&said, ConfigError::NoSubject);
    }
}

fn named_server(reader: &mut Reader, said: &RawValue) -> Option<Named> {
    let text = said.text.trim();
    if text.contains("://") || text.contains('@') {
        return match text.parse::<Target>() {
            // The message says what to write, and an example would be another server's.
            Err(wrong @ TargetError::Credentials { .. }) => {
                reader.refuse_plainly(said.place.clone(), wrong);
                None
            }
            read => reader.read(said, |_| read).map(Named::Foreign),
        };
    }
    if vocabulary::SUBJECTS.contains(&text) {
        return Some(Named::BuiltIn(text.into()));
    }
    if let Some(bots) = vocabulary::BOTS.iter().copied().find(|bots| *bots == text) {
        reader.refuse_plainly(said.place.clone(), no_server_for(bots));
        return None;
    }
    let nearest = vocabulary::nearest(text, vocabulary::SUBJECTS.iter().copied()).map(str::to_owned);
    if let Some(guess) = without_scheme(text).filter(|_| nearest.is_none()) {
        let (written, guess) = (text.to_owned(), Box::new(guess));
        reader.refuse_plainly(said.place.clone(), ConfigError::NoProtocol { written, guess, seen: None });
        return None;
    }
    reader.refuse_with(said, ConfigError::UnknownSubject(text.into()), nearest);
    None
}

/// `127.0.0.1:42069/path`, a server without its scheme, as a target of the likeliest one.
fn without_scheme(text: &str) -> Option<Target> {
    let target: Target = format!("http://{text}").parse().ok()?;
    let authority = text.split(['/', '?']).next().unwrap_or_default();
    let is_address = target.literal_address().is_some() || target.host == "localhost";
    (is_address || authority.contains(':')).then_some(target)
}

fn no_server_for(bots: &'static str) -> ConfigError {
    let over = schemes_of(bots);
    // All bots have a protocol.
    let scheme = over.first().copied().unwrap_or(Scheme::Ws);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, scheme.protocol().default_port));
    let (url, start_with) = (format!("{}://{address}", scheme.name()), scheme.start_with(address));
    ConfigError::NoServerForBots { bots, over, url, start_with }
}

fn certificates(reader: &mut Reader, target: &mut Target, ca: Option<RawValue>, insecure: Option<RawValue>) {
    if !target.scheme.is_tls() {
        for (setting, said) in [(&CA, &ca), (&INSECURE, &insecure)] {
            if let Some(said) = said {
                reader.refuse_plainly(said.place.clone(), ConfigError::CertificateWithoutTls(setting.name()));
            }
        }
    } else if let (Some(_), Some(insecure)) = (&ca, &insecure) {
        reader.refuse_plainly(insecure.place.clone(), ConfigError::CaAndInsecure);
    }
    target.insecure = insecure.is_some();
    target.ca = ca.and_then(|said| reader.read(&said, units::not_blank)).map(Into::into);
}

fn how_it_runs(
    reader: &mut Reader,
    target: Target,
    start: Option<RawValue>,
    pid: Option<RawValue>,
    cgroup: Option<RawValue>,
) -> SubjectSource {
    if let Some(cgroup) = &cgroup {
        if pid.is_some() {
            reader.refuse_plainly(cgroup.place.clone(), ConfigError::PidAndCgroup);
        }
        if start.is_some() {
            reader.refuse_plainly(cgroup.place.clone(), ConfigError::StartAndCgroup);
        }
    }
    if let (Some(start), Some(_)) = (&start, &pid) {
        reader.refuse_plainly(start.place.clone(), ConfigError::StartAndPid);
    }
    let command = start.and_then(|said| reader.read(&said, units::not_blank));
    let pid = pid.and_then(|said| reader.read(&said, |text| units::whole_within(text, 1, 4_194_304)));
    match command {
        Some(command) => SubjectSource::Started { command, target },
        // Linux counts processes up to 2^22, so the number fits.
        None => {
            let cgroup = cgroup.and_then(|said| reader.read(&said, units::not_blank)).map(Into::into);
            SubjectSource::Running { target, pid: pid.map(|pid| pid as u32), cgroup }
        }
    }
}

/// Where ticks are reported, according to a flag or the file.
pub(super) struct TicksSaid {
    said: RawValue,
    pub source: TickSource,
}

/// The settings for ticks, the judged source first. An endpoint must be one that may be loaded.
pub(super) fn ticks_said(reader: &mut Reader, may_load: &[String]) -> Vec<TicksSaid> {
    let in_file = || {
        let node = reader.file.at(TICKS.key)?;
        let each = if node.items().is_empty() { std::slice::from_ref(node) } else { node.items() };
        Some(each.iter().filter_map(|node| tick_source_at(reader, node)).collect())
    };
    let said = reader.in_flags(&TICKS).or_else(in_file).unwrap_or_default();
    let read = said.into_iter().filter_map(|said| {
        let source = reader.read(&said, str::parse::<TickSource>)?;
        if let TickSource::OpenMetrics { endpoint, .. } = &source
            && let Some(address) = endpoint.literal_address()
            && let Err(refused) = target::may_load(address, &endpoint.host, may_load)
        {
            reader.refuse_plainly(said.place.clone(), refused);
        }
        Some(TicksSaid { said, source })
    });
    read.collect()
}

/// `client`, `{ log: game.log }`: one source in a file, as a flag says it.
fn tick_source_at(reader: &Reader, node: &Node) -> Option<RawValue> {
    let Some(entry) = node.entries().iter().find(|entry| !entry.node.is_nothing()) else {
        return Some(reader.at(&TICKS, node)).filter(|said| !said.text.is_empty());
    };
    let mut said = reader.at(&TICKS, &entry.node);
    said.text = format!("{}={}", entry.name, said.text);
    Some(said)
}

/// Sources that do not go together.
fn refuse_combinations(reader: &mut Reader, is_built_in: bool, said: &[TicksSaid]) {
    let is_log = |source: &TickSource| matches!(source, TickSource::Log(_));
    for (at, one) in said.iter().enumerate() {
        let before = &said[..at];
        // A built-in server writes one log.
        let is_same = |other: &&TicksSaid| {
            other.source.is_at_place_of(&one.source)
                || is_built_in && is_log(&other.source) && is_log(&one.source)
        };
        let is_none = |said: &TicksSaid| said.source == TickSource::None;
        let wrong = if let Some(other) = before.iter().find(is_same) {
            ConfigError::SameTicks(other.source.to_string())
        } else if is_none(one) && at > 0 || at == 1 && is_none(&said[0]) {
            ConfigError::TicksAndNone
        } else if at == TICK_SOURCES_MAX {
            ConfigError::TooManyTicks { most: TICK_SOURCES_MAX }
        } else {
            continue;
        };
        reader.refuse_plainly(one.said.place.clone(), wrong);
    }
}

/// Where ticks are reported, what that is compared with, and how many ticks there are per second.
pub(super) fn ticks(
    reader: &mut Reader,
    found: Option<&mut ResolvedTarget>,
    bots: &BotSettings,
    said: Vec<TicksSaid>,
) -> (TickSource, Vec<TickSource>, f64) {
    let Some(found) = found else {
        // An unknown server was refused already; a second message about its ticks would only be noise.
        return (TickSource::Log(None), Vec::new(), TICK_RATE_HZ);
    };
    let snapshots = bots.asks_for_snapshots();
    let built_in = found.built_in();
    if let Some(server) =
        built_in.filter(|server| server.tick_rate_hz == 0.0).map(|server| server.name.to_owned())
    {
        let (rate, period) = (reader.said(&TICK_RATE), reader.said(&TICK_PERIOD));
        // The server has no ticks, so saying so is allowed.
        let said = said.into_iter().find(|said| said.source != TickSource::None).map(|said| said.said);
        for (setting, said) in [(&TICKS, said), (&TICK_RATE, rate), (&TICK_PERIOD, period)] {
            if let Some(said) = said {
                let wrong =
                    ConfigError::ServerWithoutTicks { setting: setting.name(), server: server.clone() };
                reader.refuse_plainly(said.place, wrong);
            }
        }
        return (TickSource::None, Vec::new(), 0.0);
    }
    refuse_combinations(reader, built_in.is_some(), &said);
    let mut sources = said.iter().map(|said| said.source.clone());
    let source = match sources.next() {
        Some(first) => first,
        None if built_in.is_some() => TickSource::Log(None),
        None if snapshots => TickSource::Client,
        None => TickSource::None,
    };
    let compared: Vec<TickSource> = sources.collect();
    for TicksSaid { said, source } in &said {
        match source {
            TickSource::Log(None) if built_in.is_none() => reader.refuse(said, ConfigError::LogWithoutFile),
            TickSource::Frames(..) | TickSource::Statsd { .. } | TickSource::OpenMetrics { .. }
                if built_in.is_some() =>
            {
                reader.refuse(said, ConfigError::OwnLogForm);
            }
            TickSource::Client if !snapshots => {
                let wrong = ConfigError::NoTicks { what: "the clients' view".into() };
                reader.refuse_plainly(said.place.clone(), wrong);
            }
            _ => {}
        }
    }
    let tick_rate_hz = tick_rate(reader, found);
    let by_metric = said.iter().find(|said| matches!(said.source, TickSource::OpenMetrics { .. }));
    if let (Some(by_metric), None) = (by_metric, tick_rate_hz) {
        reader.refuse_plainly(by_metric.said.place.clone(), ConfigError::NoTickRate);
    }
    // Single ticks tell it, unless the clients must know it before there are any.
    let is_found = !bots.has_ticks() && source.tells_rate();
    if let ([_, second, ..], true, None, None) = (said.as_slice(), is_found, by_metric, tick_rate_hz) {
        reader.refuse_plainly(second.said.place.clone(), ConfigError::NoTickRateForSeveral);
    }
    let has_ticks = bots.has_ticks() || (source != TickSource::None && !is_found);
    let usual_hz = if has_ticks { built_in.map_or(TICK_RATE_HZ, |server| server.tick_rate_hz) } else { 0.0 };
    (source, compared, tick_rate_hz.unwrap_or(usual_hz))
}

/// A rate is found at the lowest load, and a search does not begin there.
pub(super) fn rate_for_search(reader: &mut Reader, ladder: &Ladder, ticks: &TickSource, tick_rate_hz: f64) {
    if ladder.search.is_some() && ticks.tells_rate() && tick_rate_hz == 0.0 {
        let place = reader.said(&TICKS).map_or(Place::Flag(TICKS.flag), |said| said.place);
        reader.refuse_plainly(place, ConfigError::NoTickRateForSearch);
    }
}

/// A built-in server gets its tick rate through its own options, whichever way it was set.
fn tick_rate(reader: &mut Reader, found: &mut ResolvedTarget) -> Option<f64> {
    let parse = |text: &str| units::number_within(text, 1.0, TICK_RATE_HZ_MAX);
    let of_period = |text: &str| {
        units::duration_ns_within(text, (1e9 / TICK_RATE_HZ_MAX) as u64, 1_000_000_000)
            .map(|ns| 1e9 / ns as f64)
    };
    let (rate, period) = (reader.said(&TICK_RATE), reader.said(&TICK_PERIOD));
    if let (Some(_), Some(period)) = (&rate, &period) {
        reader.refuse_plainly(period.place.clone(), ConfigError::RateAndPeriod);
    }
    let here = match &rate {
        Some(said) => reader.read(said, parse),
        None => period.as_ref().and_then(|said| reader.read(said, of_period)),
    };
    let said = rate.or(period);
    let SubjectSource::BuiltIn { options, .. } = &mut found.source else { return here };
    let there = option_value(options, TICK_RATE_OPTION).and_then(|text| {
        let mut said = reader.said(&OPTIONS)?;
        said.text = text.to_owned();
        reader.read(&said, parse)
    });
    match (&said, here, there) {
        (Some(said), Some(here), Some(there)) if here != there => {
            reader.refuse_plainly(said.place.clone(), ConfigError::TickRateTwice { here, there });
        }
        (_, Some(here), None) => options.extend([TICK_RATE_OPTION.to_owned(), here.to_string()]),
        _ => {}
    }
    here.or(there)
}

/// Whether the subject sends each line back to its sender, and where that is said.
///
/// Our own chat hears it among its own options, whichever way it was said.
pub(super) fn echoes(reader: &mut Reader, found: Option<&mut ResolvedTarget>) -> (bool, Option<Place>) {
    let here = reader.value(&ECHOES, units::boolean);
    let place = reader.said(&ECHOES).map(|said| said.place);
    let Some(ResolvedTarget { source: SubjectSource::BuiltIn { server, options }, .. }) = found else {
        return (here.unwrap_or(false), place);
    };
    if server != "chat" {
        return (false, place);
    }
    let there = options.iter().any(|option| option == ECHO_OPTION);
    match (here, &place) {
        (Some(false), Some(place)) if there => reader.refuse_plainly(place.clone(), ConfigError::EchoesTwice),
        (Some(true), _) if !there => options.push(ECHO_OPTION.to_owned()),
        _ => {}
    }
    (there || here == Some(true), place)
}

/// The value of `--name VALUE` or `--name=VALUE`; the last one counts, as it does for the server.
pub(super) fn option_value<'a>(options: &'a [String], name: &str) -> Option<&'a str> {
    let after = |at: usize| options.get(at + 1).map_or("", String::as_str);
    options.iter().enumerate().rev().find_map(|(at, option)| {
        let rest = option.strip_prefix(name)?;
        if rest.is_empty() { Some(after(at)) } else { rest.strip_prefix('=') }
    })
}
