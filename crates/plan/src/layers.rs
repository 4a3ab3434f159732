//! Layers: flags over a scenario file over defaults become one `Plan`, or all mistakes at once.
//!
//! Flags come as raw text, so that a value on the command line and the same value in a file are read by the same code
//! and refused in the same words. Pure: the caller reads the file, resolves names and draws the seed's entropy.
//! Not here: what a value looks like (`units`, `target`), the file's keys (`scenario`), the flags' help (the command line).

use crate::mistakes::{Mistakes, Place, Wrong};
use crate::plan::{Arrivals, Bots, Generator, HttpBots, HttpModel, Plan, Subject, SubjectSource, TickSource};
use crate::scenario::{self, Scenario, ScenarioText, Text};
use crate::units;

mod bots;
mod cells;
mod chat;
mod http;
mod ladder;
mod objectives;
mod reader;
mod subject;

use reader::{Reader, Setting, setting};
use subject::Found;

/// What the command line may say, as raw text; `None` and empty lists mean "not said".
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    /// the positional word: built-in server, scenario file or URL
    pub subject: Option<String>,
    /// what followed `--`: options of a built-in server
    pub server_options: Vec<String>,
    /// `--bots arena`
    pub bots: Option<String>,
    /// `--fast 110ms`: player 1 of the arena fires every so often
    pub fast: Option<String>,
    /// `--slow 200ms`: player 2
    pub slow: Option<String>,
    /// `--pairing pipelined|strict`
    pub pairing: Option<String>,
    /// `--snapshots 1%`: share of the games that ask for snapshots
    pub snapshots: Option<String>,
    /// `--gap 500ms..1s`: a chatter says a line every so often
    pub gap: Option<String>,
    /// `--line 15..58`: bytes of a chatter's line
    pub line: Option<String>,
    /// `--talkers 100`: so many chatters speak
    pub talkers: Option<String>,
    /// `--room lobby`
    pub room: Option<String>,
    /// `--echoes`: the chat sends each line to its sender too
    pub echoes: Option<bool>,
    /// `--misbehave KIND=SHARE`, repeated; replaces the scenario's
    pub misbehave: Vec<String>,
    /// what HTTP clients ask, and over which connections
    pub http: HttpFlags,
    /// `--rungs 500,1000,2000`
    pub rungs: Option<String>,
    /// `--rate 1000,2000`: requests per second
    pub rate: Option<String>,
    /// `--requesters 1..20`
    pub requesters: Option<String>,
    /// `--services all`: which of poll-loop's services are swept
    pub services: Option<String>,
    /// `--views background,foreground`
    pub views: Option<String>,
    /// `--priorities normal,below-normal`
    pub priorities: Option<String>,
    /// `--localities none,moderate,high`
    pub localities: Option<String>,
    /// `--hold 60s|2Mticks|1000games`
    pub hold: Option<String>,
    /// `--ramp 2ms|5000/s|60s/all|0s`
    pub ramp: Option<String>,
    /// `--settle 2s`
    pub settle: Option<String>,
    /// `--restart-per-rung`
    pub restart_per_rung: Option<bool>,
    /// `--arrivals poisson|even|burst|closed`
    pub arrivals: Option<String>,
    /// `--seed N`
    pub seed: Option<String>,
    /// `--patience 1s`
    pub patience: Option<String>,
    /// `--objective 'EXPR'`, repeated; replaces the scenario's
    pub objective: Vec<String>,
    /// `--start 'COMMAND'`
    pub start: Option<String>,
    /// `--pid N`
    pub pid: Option<String>,
    /// `--ticks log=FILE|client|none`
    pub ticks: Option<String>,
    /// `--tick-rate 60`
    pub tick_rate: Option<String>,
    /// `--i-may-load HOST`, repeated; adds to the scenario's
    pub i_may_load: Vec<String>,
    /// `--ca FILE`
    pub ca: Option<String>,
    /// `--insecure`
    pub insecure: Option<bool>,
    /// `--name master`
    pub name: Option<String>,
    /// `--note TEXT`
    pub note: Option<String>,
    /// `--workers 2`
    pub workers: Option<String>,
    /// `--realtime`
    pub realtime: Option<bool>,
    /// `--spin 20us`
    pub spin: Option<String>,
    /// `--open-attempts 10`
    pub open_attempts: Option<String>,
    /// `--no-calibration` is `Some(false)`
    pub calibrate: Option<bool>,
}

/// What the command line may say of HTTP, as raw text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HttpFlags {
    /// `--connections 256`
    pub connections: Option<String>,
    /// `--connections-max 512`
    pub connections_max: Option<String>,
    /// `--think 100ms`
    pub think: Option<String>,
    /// `--http 2`
    pub version: Option<String>,
    /// `--streams 100`
    pub streams: Option<String>,
    /// `--no-keep-alive`
    pub keep_alive: Option<bool>,
    /// `--timeout 30s`
    pub timeout: Option<String>,
    /// `--redirects 5`
    pub redirects: Option<String>,
    /// `--body-max 64MiB`
    pub body_max: Option<String>,
    /// `--method POST`
    pub method: Option<String>,
    /// `--header 'Name: value'`, repeated
    pub header: Vec<String>,
    /// `--body TEXT`, or what the caller read from `--body-file`
    pub body: Option<String>,
    /// `--expect-status 200..299`
    pub expect_status: Option<String>,
    /// `--expect-text TEXT`
    pub expect_text: Option<String>,
}

/// Values that hold when neither flags nor scenario say otherwise.
pub mod defaults {
    /// games or clients: three rungs tell more than one, and a first climb ends within minutes
    pub const RUNGS: [f64; 3] = [500.0, 1000.0, 2000.0];
    /// chatters: the pace grows with their square, so steps are smaller
    pub const CHAT_RUNGS: [f64; 4] = [128.0, 256.0, 512.0, 1024.0];
    /// HTTP clients that wait for their answers; nobody knows what the server is
    pub const REQUESTERS: [f64; 4] = [1.0, 4.0, 16.0, 64.0];
    /// of poll-loop: beyond its queue, so that the first failures are seen
    pub const POLL_LOOP_REQUESTERS: u32 = 20;
    /// of poll-loop: 60 ticks; a sweep holds more than a hundred loads
    pub const POLL_LOOP_HOLD_NS: u64 = 2_000_000_000;
    /// of poll-loop: its queue is full or not after a few ticks
    pub const POLL_LOOP_SETTLE_NS: u64 = 500_000_000;
    /// about three games after each other
    pub const HOLD_NS: u64 = 30_000_000_000;
    /// one game or client after another
    pub const RAMP_NS: u64 = 2_000_000;
    /// chatters: a server that tells a room of everyone who joins does so n² times
    pub const CHAT_RAMP_PER_S: f64 = 2000.0;
    /// after the ramp
    pub const SETTLE_NS: u64 = 2_000_000_000;
    /// an answer after this is late
    pub const PATIENCE_NS: u64 = 1_000_000_000;
    /// player 1
    pub const FAST_NS: u64 = 110_000_000;
    /// player 2
    pub const SLOW_NS: u64 = 200_000_000;
    /// of the built-in server's games; other servers do not know snapshots
    pub const SNAPSHOTS: f64 = 0.01;
    /// five times what a game lasts
    pub const LONGEST_GAME_NS: u64 = 60_000_000_000;
    /// of the arena
    pub const TICK_RATE_HZ: f64 = 60.0;
    /// of poll-loop
    pub const POLL_LOOP_TICK_RATE_HZ: f64 = 30.0;
    /// of a rate of HTTP requests; as many as stand before the hold
    pub const CONNECTIONS: u64 = 256;
    /// of a connection of HTTP/2: what RFC 9113 asks of servers at least
    pub const STREAMS: u32 = 100;
    /// of a request that is not answered
    pub const TIMEOUT_NS: u64 = 30_000_000_000;
    /// of an answer's body
    pub const BODY_BYTES_MAX: u64 = 64 << 20;
    /// before a bot gives up
    pub const OPEN_ATTEMPTS: u32 = 10;
    /// of an echo client
    pub const ECHO_RATE_PER_S: f64 = 10.0;
    /// of an echo client
    pub const ECHO_PAYLOAD_BYTES: usize = 64;
    /// between two lines of a chatter: the published pace, 0.75 s in the mean
    pub const GAP_NS: (u64, u64) = (500_000_000, 1_000_000_000);
    /// of a chatter
    pub const LINE_BYTES: (usize, usize) = (15, 58);
    /// of a chat; the one in which our own server puts whoever comes
    pub const ROOM: &str = "lobby";
}

const ARRIVALS: Setting = setting("--arrivals", "arrivals", "even");
const SEED: Setting = setting("--seed", "seed", "42");
const PATIENCE: Setting = setting("--patience", "patience", "1s");
const NAME: Setting = setting("--name", "name", "master");
const NOTE: Setting = setting("--note", "note", "after the new allocator");
const WORKERS: Setting = setting("--workers", "generator.workers", "2");
const REALTIME: Setting = setting("--realtime", "generator.realtime", "true");
const SPIN: Setting = setting("--spin", "generator.spin", "20us");
const OPEN_ATTEMPTS: Setting = setting("--open-attempts", "generator.open_attempts", "10");
const CALIBRATE: Setting = setting("--no-calibration", "generator.calibrate", "false");

/// Longest busy wait: beyond it a worker would only burn its core.
const SPIN_NS_MAX: u64 = 50_000;
/// Below it, lateness would be the clock's and not the server's.
const PATIENCE_NS_MIN: u64 = 1_000_000;

/// Whether the word behind `climb` is a scenario file, which the caller must read before `resolve`.
pub fn is_scenario_file(subject: &str) -> bool {
    let subject = subject.trim().to_lowercase();
    !subject.contains("://") && (subject.ends_with(".yaml") || subject.ends_with(".yml"))
}

/// Flags over scenario over defaults.
///
/// `entropy_seed` seeds the run when nobody named a seed; it is cut to 53 bits, so that every reader of the run's JSON
/// gets the same number back. Literal addresses are checked here; names are resolved by the caller, who then asks
/// `target::may_load` for each address.
/// Errors: every mistake of the author; those of the file by line, then those of the command line.
pub fn resolve(flags: &Flags, scenario: Option<ScenarioText>, entropy_seed: u64) -> Result<Plan, Mistakes> {
    let path = scenario.as_ref().map(|scenario| scenario.path.clone());
    let (file, mistakes) = match &scenario {
        Some(scenario) => scenario::read(scenario),
        None => (Some(Scenario::default()), Vec::new()),
    };
    let is_file_readable = file.is_some();
    let file = file.unwrap_or_default();
    let mut reader = Reader::new(path.clone().unwrap_or_default(), mistakes);

    let may_load = subject::may_load(&mut reader, flags, &file);
    let mut found = subject::find(&mut reader, flags, &file, is_file_readable, &may_load);
    let ticks_said = subject::ticks_said(&mut reader, flags, &file);
    let (echoes, echoes_said) = subject::echoes(&mut reader, flags, &file, found.as_mut());
    let server = bots::Server {
        built_in: match found.as_ref().map(|found| &found.source) {
            Some(SubjectSource::BuiltIn { server, .. }) => Some(server),
            _ => None,
        },
        scheme: found.as_ref().and_then(Found::scheme),
        path: found.as_ref().and_then(Found::path).map(str::to_owned),
        is_seen_by_clients: ticks_said.as_ref().is_some_and(|said| said.source == TickSource::Client),
        echoes,
        echoes_said,
    };
    let loads = ladder::loads(&mut reader, flags, &file);
    let bots = bots::read(&mut reader, flags, &file, &server, loads.as_ref());
    let (ticks, tick_rate_hz) = subject::ticks(&mut reader, flags, &file, found.as_mut(), &bots, ticks_said);
    let ladder = ladder::read(&mut reader, flags, &file, &bots, loads.as_ref(), &ticks, found.as_ref());
    let objectives = objectives::read(&mut reader, flags, &file, &bots, &ticks, found.as_ref());
    let arrivals = arrivals_of(&mut reader, flags, &file, &bots);
    let patience_ns = reader
        .value(PATIENCE, flags.patience.as_deref(), file.patience.as_ref(), |text| {
            units::duration_ns_within(text, PATIENCE_NS_MIN, units::DURATION_NS_MAX)
        })
        .unwrap_or(defaults::PATIENCE_NS);
    let seed = reader
        .value(SEED, flags.seed.as_deref(), file.seed.as_ref(), |text| units::whole_within(text, 0, u64::MAX))
        .unwrap_or(entropy_seed & ((1 << 53) - 1));
    let generator = generator_of(&mut reader, flags, &file);
    let name = words(&mut reader, NAME, flags.name.as_deref(), file.name.as_ref());
    let note = words(&mut reader, NOTE, flags.note.as_deref(), file.note.as_ref());

    match found {
        Some(found) if reader.mistakes.is_empty() => Ok(Plan {
            subject: Subject { name: found.name, source: found.source, ticks, tick_rate_hz },
            bots,
            ladder,
            objectives,
            arrivals,
            patience_ns,
            seed,
            generator,
            name,
            note,
            scenario: path,
            may_load,
        }),
        _ => {
            // The file from top to bottom, then the command line.
            reader.mistakes.sort_by_key(|mistake| match mistake.place {
                Place::Line { line, .. } => (0, line),
                Place::Flag(_) => (1, 0),
            });
            Err(Mistakes(reader.mistakes))
        }
    }
}

/// Free text; blanks only would be a name that cannot be found again.
fn words(reader: &mut Reader, setting: Setting, flag: Option<&str>, file: Option<&Text>) -> Option<String> {
    reader.value(setting, flag, file, |text| match text.trim() {
        "" => Err(units::UnitError::Empty),
        text => Ok(text.to_owned()),
    })
}

/// A switch: the command line can only turn it on or off, the file spells it.
fn switch(reader: &mut Reader, setting: Setting, flag: Option<bool>, file: Option<&Text>) -> bool {
    match flag {
        Some(on) => on,
        None => reader.value(setting, None, file, units::boolean).unwrap_or(false),
    }
}

/// A switch that is on unless it is turned off.
fn switch_off(reader: &mut Reader, setting: Setting, flag: Option<bool>, file: Option<&Text>) -> bool {
    flag.unwrap_or_else(|| reader.value(setting, None, file, units::boolean).unwrap_or(true))
}

fn unit_of(bots: &Bots) -> &'static str {
    match bots {
        Bots::Arena(_) => "games",
        Bots::Echo(_) | Bots::Chat(_) => "clients",
        Bots::Http(http) => match http.model {
            HttpModel::Open { .. } => "req/s",
            HttpModel::Closed { .. } => "requesters",
        },
    }
}

fn name_of(bots: &Bots) -> &'static str {
    match bots {
        Bots::Arena(_) => "arena",
        Bots::Echo(_) => "echo",
        Bots::Chat(_) => "chat",
        Bots::Http(_) => "http",
    }
}

fn arrivals_of(reader: &mut Reader, flags: &Flags, file: &Scenario, bots: &Bots) -> Arrivals {
    let (possible, why): (&[Arrivals], _) = match bots {
        Bots::Arena(_) => (
            &[Arrivals::Even],
            "players fire by a clock of their own, each with a phase of its own (even); --ramp says how they come",
        ),
        Bots::Echo(echo) if echo.rate_per_s == 0.0 => {
            (&[Arrivals::Closed], "without a rate each answer starts the next message (closed)")
        }
        Bots::Echo(_) => (
            &[Arrivals::Even, Arrivals::Poisson],
            "clients with a rate send at equal gaps (even) or at random ones (poisson)",
        ),
        Bots::Http(HttpBots { model: HttpModel::Closed { .. }, .. }) => {
            (&[Arrivals::Closed], "without a rate each answer starts the next request (closed)")
        }
        Bots::Http(_) => (
            &[Arrivals::Poisson, Arrivals::Even, Arrivals::Burst],
            "requests with a rate are planned by a clock (poisson, even, burst)",
        ),
        Bots::Chat(_) => (
            &[Arrivals::Even, Arrivals::Poisson],
            "people speak by a clock of their own (even) or at random (poisson); --ramp says how they come",
        ),
    };
    let said = reader.said(ARRIVALS, flags.arrivals.as_deref(), file.arrivals.as_ref());
    let asked = said.as_ref().and_then(|said| reader.read(said, str::parse::<Arrivals>));
    if let (Some(said), Some(asked)) = (&said, asked)
        && !possible.contains(&asked)
    {
        let wrong = Wrong::ArrivalsNotOfBots { bots: name_of(bots), arrivals: asked.to_string(), why };
        reader.refuse_plainly(said.place.clone(), wrong);
    }
    asked.unwrap_or(possible[0])
}

fn generator_of(reader: &mut Reader, flags: &Flags, file: &Scenario) -> Generator {
    let empty = scenario::GeneratorKeys::default();
    let keys = file.generator.as_ref().unwrap_or(&empty);
    let workers = reader.value(WORKERS, flags.workers.as_deref(), keys.workers.as_ref(), |text| {
        units::whole_within(text, 1, 1024)
    });
    let spin_ns = reader.value(SPIN, flags.spin.as_deref(), keys.spin.as_ref(), |text| {
        units::duration_ns_within(text, 0, SPIN_NS_MAX)
    });
    let attempts =
        reader.value(OPEN_ATTEMPTS, flags.open_attempts.as_deref(), keys.open_attempts.as_ref(), |text| {
            units::whole_within(text, 1, 1000)
        });
    Generator {
        workers: workers.map(|count| count as usize),
        realtime: switch(reader, REALTIME, flags.realtime, keys.realtime.as_ref()),
        spin_ns: spin_ns.unwrap_or(0),
        // At most 1000 by the line above.
        open_attempts: attempts.map_or(defaults::OPEN_ATTEMPTS, |count| count as u32),
        calibrate: switch_off(reader, CALIBRATE, flags.calibrate, keys.calibrate.as_ref()),
    }
}

#[cfg(test)]
mod tests;
