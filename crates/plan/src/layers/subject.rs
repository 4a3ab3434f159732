//! Which server, how it comes to run, where its ticks are told, and whether it may be loaded.

use std::net::IpAddr;

use crate::known;
use crate::layers::chat::ECHOES;
use crate::layers::reader::{Reader, Said, Setting, setting};
use crate::layers::{Flags, bots, defaults, is_scenario_file, switch};
use crate::mistakes::{Place, Wrong};
use crate::plan::{Bots, SubjectSource, TickSource};
use crate::scenario::{NameOr, Scenario, SubjectKeys, Text};
use crate::target::{self, Scheme, Target, TargetError};
use crate::units::{self, UnitError};

const SUBJECT: Setting = Setting {
    flag: "climb",
    key: "subject.target",
    example: "arena",
    example_in_file: "ws://127.0.0.1:42069",
};
const START: Setting = setting("--start", "subject.start", "node server.js");
const PID: Setting = setting("--pid", "subject.pid", "4711");
const TICKS: Setting = Setting {
    flag: "--ticks",
    key: "subject.ticks",
    example: "log=game.log",
    example_in_file: "{ log: game.log }",
};
const TICK_RATE: Setting = setting("--tick-rate", "subject.tick_rate", "60");
const OPTIONS: Setting = Setting {
    flag: "options after --",
    key: "subject.options",
    example: "climb arena -- --tick-rate 30",
    example_in_file: "[--tick-rate, 30]",
};
const I_MAY_LOAD: Setting = Setting {
    flag: "--i-may-load",
    key: "i_may_load",
    example: "game.example.org",
    example_in_file: "[game.example.org]",
};
const CA: Setting = setting("--ca", "tls.ca", "ca.pem");
const INSECURE: Setting = setting("--insecure", "tls.insecure", "true");

/// The HTTP service that lives inside a simulation loop.
pub(super) const POLL_LOOP: &str = "poll-loop";
/// The option of our servers that says how often they tick.
const TICK_RATE_OPTION: &str = "--tick-rate";
const TICK_RATE_HZ_MAX: f64 = 1000.0;
/// The option of our chat that sends lines back to their senders.
const ECHO_OPTION: &str = "--echo";

/// A server that can be climbed.
#[derive(Debug)]
pub(super) struct Found {
    pub name: String,
    pub source: SubjectSource,
}

impl Found {
    pub fn is_built_in(&self) -> bool {
        matches!(self.source, SubjectSource::BuiltIn { .. })
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

    /// Whether it is the built-in server whose services are swept.
    pub fn is_poll_loop(&self) -> bool {
        matches!(&self.source, SubjectSource::BuiltIn { server, .. } if server == POLL_LOOP)
    }

    /// The name of a built-in server that has no ticks.
    fn tickless(&self) -> Option<&str> {
        match &self.source {
            SubjectSource::BuiltIn { server, .. } if !matches!(server.as_str(), "arena" | POLL_LOOP) => {
                Some(server)
            }
            _ => None,
        }
    }

    /// Ticks per second where nobody says otherwise.
    fn usual_tick_rate_hz(&self) -> f64 {
        if self.is_poll_loop() { defaults::POLL_LOOP_TICK_RATE_HZ } else { defaults::TICK_RATE_HZ }
    }
}

enum Named {
    BuiltIn(String),
    Foreign(Target),
}

/// The scenario's own keys; a subject of one word has none.
fn keys_of(file: &Scenario) -> SubjectKeys {
    match &file.subject {
        Some(NameOr::Keys(keys)) => keys.clone(),
        _ => SubjectKeys::default(),
    }
}

/// Hosts that the user vouches for, on the command line or in the scenario.
pub(super) fn may_load(reader: &mut Reader, flags: &Flags, file: &Scenario) -> Vec<String> {
    let flags = flags.i_may_load.iter().map(|host| reader.in_flag(I_MAY_LOAD, host));
    let texts = file.i_may_load.iter().flatten().map(|host| reader.in_file(I_MAY_LOAD, host));
    let said: Vec<Said> = flags.chain(texts).collect();
    let parse = |text: &str| {
        let host = text.trim().trim_start_matches('[').trim_end_matches(']');
        let is_name = host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'));
        match host {
            "" => Err(Wrong::from(UnitError::Empty)),
            _ if host.contains('@') => Err(TargetError::Credentials.into()),
            _ if is_name || host.parse::<IpAddr>().is_ok() => Ok(host.to_owned()),
            _ => Err(Wrong::NotAHost(host.into())),
        }
    };
    said.iter().filter_map(|one| reader.read(one, parse)).collect()
}

/// The server under test; `None` after a mistake that leaves it unknown.
pub(super) fn find(
    reader: &mut Reader,
    flags: &Flags,
    file: &Scenario,
    is_file_readable: bool,
    may_load: &[String],
) -> Option<Found> {
    let keys = keys_of(file);
    let word = flags.subject.as_deref().filter(|text| !is_scenario_file(text) && !text.trim().is_empty());
    let written = match &file.subject {
        Some(NameOr::Name(text)) => Some(text),
        _ => keys.target.as_ref(),
    };
    let Some(said) = reader.said(SUBJECT, word, written) else {
        if is_file_readable {
            no_subject(reader, flags);
        }
        return None;
    };
    let named = named_server(reader, &said)?;
    let options = options(reader, flags, &keys);
    let start = reader.said(START, flags.start.as_deref(), keys.start.as_ref());
    let pid = reader.said(PID, flags.pid.as_deref(), keys.pid.as_ref());
    let tls = file.tls.clone().unwrap_or_default();
    let ca = reader.said(CA, flags.ca.as_deref(), tls.ca.as_ref());
    let insecure = switch(reader, INSECURE, flags.insecure, tls.insecure.as_ref());
    let insecure = insecure.then(|| {
        let text = tls.insecure.as_ref().filter(|_| flags.insecure.is_none());
        text.map_or_else(|| reader.in_flag(INSECURE, ""), |text| reader.in_file(INSECURE, text))
    });
    let name = said.text.trim().to_owned();
    match named {
        Named::BuiltIn(server) => {
            for (setting, said) in [("start", start), ("pid", pid), ("ca", ca), ("insecure", insecure)] {
                if let Some(said) = said {
                    reader
                        .refuse_plainly(said.place, Wrong::NotForBuiltIn { setting, server: server.clone() });
                }
            }
            let options = options.into_iter().map(|said| said.text).collect();
            Some(Found { name, source: SubjectSource::BuiltIn { server, options } })
        }
        Named::Foreign(mut target) => {
            if let Some(first) = options.first() {
                let all: Vec<&str> = options.iter().map(|said| said.text.as_str()).collect();
                reader.refuse_plainly(first.place.clone(), Wrong::OptionsForForeign(all.join(" ")));
            }
            if let Some(address) = target.literal_address()
                && let Err(refused) = target::may_load(address, &target.host, may_load)
            {
                reader.refuse_plainly(said.place.clone(), refused.into());
            }
            certificates(reader, &mut target, ca, insecure);
            Some(Found { name, source: how_it_runs(reader, target, start, pid) })
        }
    }
}

fn no_subject(reader: &mut Reader, flags: &Flags) {
    let is_unread = flags.subject.as_deref().is_some_and(is_scenario_file) && !reader.has_file();
    if is_unread {
        reader.refuse_plainly(Place::Flag(SUBJECT.flag), Wrong::ScenarioNotRead);
    } else {
        let said =
            if reader.has_file() { reader.in_whole_file(SUBJECT) } else { reader.in_flag(SUBJECT, "") };
        reader.refuse(&said, Wrong::NoSubject);
    }
}

fn named_server(reader: &mut Reader, said: &Said) -> Option<Named> {
    let text = said.text.trim();
    if text.contains("://") || text.contains('@') {
        return reader.read(said, str::parse::<Target>).map(Named::Foreign);
    }
    if known::SUBJECTS.contains(&text) {
        return Some(Named::BuiltIn(text.into()));
    }
    if known::SUBJECTS_TO_COME.contains(&text) {
        reader.refuse(said, Wrong::SubjectNotBuilt(text.into()));
        return None;
    }
    let all = known::SUBJECTS.iter().chain(known::SUBJECTS_TO_COME).copied();
    let nearest = known::nearest(text, all).map(str::to_owned);
    // `127.0.0.1:42069` is a server without its scheme; some ports tell which.
    let with_scheme = || {
        let target = format!("ws://{text}").parse::<Target>().ok().filter(|_| text.contains(':'))?;
        let named = [Scheme::Tcp, Scheme::Irc, Scheme::Nats, Scheme::Mqtt, Scheme::Http, Scheme::Https];
        let named = named.into_iter().find(|scheme| scheme.default_port() == target.port);
        Some(Target { scheme: named.unwrap_or(target.scheme), ..target })
    };
    let nearest = nearest.or_else(|| with_scheme().map(|target| target.to_string()));
    reader.refuse_with(said, Wrong::UnknownSubject(text.into()), nearest);
    None
}

/// The built-in server's own options; the command line's replace the scenario's.
fn options(reader: &Reader, flags: &Flags, keys: &SubjectKeys) -> Vec<Said> {
    if flags.server_options.is_empty() {
        keys.options.iter().flatten().map(|text| reader.in_file(OPTIONS, text)).collect()
    } else {
        flags.server_options.iter().map(|text| reader.in_flag(OPTIONS, text)).collect()
    }
}

fn certificates(reader: &mut Reader, target: &mut Target, ca: Option<Said>, insecure: Option<Said>) {
    if !target.scheme.is_tls() {
        for (setting, said) in [("ca", &ca), ("insecure", &insecure)] {
            if let Some(said) = said {
                reader.refuse_plainly(said.place.clone(), Wrong::CertificateWithoutTls(setting));
            }
        }
    } else if let (Some(_), Some(insecure)) = (&ca, &insecure) {
        reader.refuse_plainly(insecure.place.clone(), Wrong::CaAndInsecure);
    }
    target.insecure = insecure.is_some();
    target.ca = ca.and_then(|said| reader.read(&said, not_blank)).map(Into::into);
}

fn how_it_runs(reader: &mut Reader, target: Target, start: Option<Said>, pid: Option<Said>) -> SubjectSource {
    if let (Some(start), Some(_)) = (&start, &pid) {
        reader.refuse_plainly(start.place.clone(), Wrong::StartAndPid);
    }
    let command = start.and_then(|said| reader.read(&said, not_blank));
    let pid = pid.and_then(|said| reader.read(&said, |text| units::whole_within(text, 1, 4_194_304)));
    match command {
        Some(command) => SubjectSource::Started { command, target },
        // Linux counts processes up to 2^22, so the number fits.
        None => SubjectSource::Running { target, pid: pid.map(|pid| pid as u32) },
    }
}

fn not_blank(text: &str) -> Result<String, UnitError> {
    match text.trim() {
        "" => Err(UnitError::Empty),
        text => Ok(text.to_owned()),
    }
}

/// Where somebody said that ticks are told.
pub(super) struct TicksSaid {
    said: Said,
    pub source: TickSource,
}

/// What was said about ticks; statsd and OpenMetrics are refused here.
pub(super) fn ticks_said(reader: &mut Reader, flags: &Flags, file: &Scenario) -> Option<TicksSaid> {
    let in_file = |reader: &Reader, word: &str, text: &Text| {
        let mut said = reader.in_file(TICKS, text);
        said.text = format!("{word}={}", text.value);
        said
    };
    let said: Vec<Said> = match (&flags.ticks, &keys_of(file).ticks) {
        (Some(text), _) => vec![reader.in_flag(TICKS, text)],
        (None, Some(NameOr::Name(text))) => vec![reader.in_file(TICKS, text)],
        (None, Some(NameOr::Keys(keys))) => {
            [("log", &keys.log), ("statsd", &keys.statsd), ("openmetrics", &keys.openmetrics)]
                .into_iter()
                .filter_map(|(word, text)| text.as_ref().map(|text| in_file(reader, word, text)))
                .collect()
        }
        (None, None) => Vec::new(),
    };
    let mut read = said.into_iter().filter_map(|said| {
        let source = reader.read(&said, str::parse::<TickSource>)?;
        Some(TicksSaid { said, source })
    });
    let first = read.next();
    // Whoever comes after is read for its mistakes.
    read.for_each(drop);
    first
}

/// Where ticks are told, and how many there are per second.
pub(super) fn ticks(
    reader: &mut Reader,
    flags: &Flags,
    file: &Scenario,
    found: Option<&mut Found>,
    bots: &Bots,
    said: Option<TicksSaid>,
) -> (TickSource, f64) {
    let Some(found) = found else {
        // An unknown server was refused already; a second complaint about its ticks would only be noise.
        return (TickSource::Log(None), defaults::TICK_RATE_HZ);
    };
    let snapshots = matches!(bots, Bots::Arena(arena) if arena.snapshots > 0.0);
    if let Some(server) = found.tickless().map(str::to_owned) {
        let rate = reader.said(TICK_RATE, flags.tick_rate.as_deref(), keys_of(file).tick_rate.as_ref());
        // No ticks is what it has, so that may be said.
        let said = said.filter(|said| said.source != TickSource::None).map(|said| said.said);
        for (setting, said) in [("ticks", said), ("tick_rate", rate)] {
            if let Some(said) = said {
                let wrong = Wrong::ServerWithoutTicks { setting, server: server.clone() };
                reader.refuse_plainly(said.place, wrong);
            }
        }
        return (TickSource::None, 0.0);
    }
    let source = match &said {
        Some(said) => said.source.clone(),
        None if found.is_built_in() => TickSource::Log(None),
        None if snapshots => TickSource::Client,
        None => TickSource::None,
    };
    match (&said, &source) {
        (Some(said), TickSource::Log(None)) if !found.is_built_in() => {
            reader.refuse(&said.said, Wrong::LogWithoutFile);
        }
        (Some(said), TickSource::Client) if !snapshots => {
            reader
                .refuse_plainly(said.said.place.clone(), Wrong::NoTicks { what: "the clients' view".into() });
        }
        _ => {}
    }
    let tick_rate_hz = tick_rate(reader, flags, file, found);
    let has_ticks = matches!(bots, Bots::Arena(_)) || source != TickSource::None;
    let usual_hz = if has_ticks { found.usual_tick_rate_hz() } else { 0.0 };
    (source, tick_rate_hz.unwrap_or(usual_hz))
}

/// A built-in server hears its tick rate among its own options, whichever way it was said.
fn tick_rate(reader: &mut Reader, flags: &Flags, file: &Scenario, found: &mut Found) -> Option<f64> {
    let keys = keys_of(file);
    let parse = |text: &str| units::number_within(text, 1.0, TICK_RATE_HZ_MAX);
    let said = reader.said(TICK_RATE, flags.tick_rate.as_deref(), keys.tick_rate.as_ref());
    let here = said.as_ref().and_then(|said| reader.read(said, parse));
    let SubjectSource::BuiltIn { options, .. } = &mut found.source else { return here };
    let written = option_value(options, TICK_RATE_OPTION).map(str::to_owned);
    let there = written.and_then(|text| {
        let place = keys.options.iter().flatten().find(|_| flags.server_options.is_empty());
        let mut said =
            place.map_or_else(|| reader.in_flag(OPTIONS, ""), |place| reader.in_file(OPTIONS, place));
        said.text = text;
        reader.read(&said, parse)
    });
    match (&said, here, there) {
        (Some(said), Some(here), Some(there)) if here != there => {
            reader.refuse_plainly(said.place.clone(), Wrong::TickRateTwice { here, there });
        }
        (_, Some(here), None) => options.extend([TICK_RATE_OPTION.to_owned(), here.to_string()]),
        _ => {}
    }
    here.or(there)
}

/// Whether the subject sends each line back to its sender, and where somebody said so.
///
/// Our own chat hears it among its own options, whichever way it was said.
pub(super) fn echoes(
    reader: &mut Reader,
    flags: &Flags,
    file: &Scenario,
    found: Option<&mut Found>,
) -> (bool, Option<Place>) {
    let written = bots::in_file(flags, file).1.echoes;
    let (here, place) = match (flags.echoes, &written) {
        (Some(here), _) => (Some(here), Some(Place::Flag(ECHOES.flag))),
        (None, Some(text)) => {
            let said = reader.in_file(ECHOES, text);
            (reader.read(&said, units::boolean), Some(said.place))
        }
        (None, None) => (None, None),
    };
    let Some(Found { source: SubjectSource::BuiltIn { server, options }, .. }) = found else {
        return (here.unwrap_or(false), place);
    };
    if server != "chat" {
        return (false, place);
    }
    let there = options.iter().any(|option| option == ECHO_OPTION);
    match (here, &place) {
        (Some(false), Some(place)) if there => reader.refuse_plainly(place.clone(), Wrong::EchoesTwice),
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
