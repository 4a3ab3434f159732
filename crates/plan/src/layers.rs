//! Layers: flags over a scenario file over defaults become one `Plan`, or all mistakes at once.
//!
//! Flags arrive as raw text, so that a value on the command line and the same value in a file are parsed by the same
//! code and refused with the same message. Each file below declares its settings and reads them; `settings` lists them
//! all. Pure: the caller reads the file, resolves names and draws the seed's entropy.
//! Not here: value syntax (`units`, `target`), what a declaration is (`settings`).

use std::io;
use std::path::Path;

use crate::flags::Flags;
use crate::mistakes::{ConfigError, Mistake, Mistakes, Place};
use crate::plan::{Arrivals, Plan, Profile, Subject, SubjectSource, TickSource};
use crate::scenario::{self, Node, ScenarioText};
use crate::scheme::Scheme;
use crate::settings::{Kind, Setting, Shape};
use crate::units;
use crate::vocabulary;
use crate::workloads::script::settings as script;
use crate::workloads::{BotSettings, KINDS, is_script_file};

pub(crate) mod bots;
mod credentials;
mod generator;
mod handshake;
pub(crate) mod http_sweep;
pub(crate) mod ladder;
mod network;
mod objectives;
pub(crate) mod poll_loop_sweep;
pub(crate) mod reader;
pub(crate) mod search;
mod stop;
mod subject;

use reader::Reader;
use subject::ResolvedTarget;

pub use crate::workloads::http::settings::requests::BODY;
pub use bots::bots_meant;
pub(crate) use credentials::{PASSWORD_FILE, TOKEN_FILE};
pub use search::{around_ns, search_sentence};
pub(crate) use subject::TICKS;
pub use subject::{I_MAY_LOAD, OPTIONS, START, SUBJECT};

/// All settings, file by file; those of one file in the order of their help.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    let of_workloads = KINDS.iter().flat_map(|kind| kind.settings).copied();
    let others = [
        ladder::SETTINGS,
        search::SETTINGS,
        stop::SETTINGS,
        poll_loop_sweep::SETTINGS,
        objectives::SETTINGS,
        SETTINGS,
        network::SETTINGS,
        generator::SETTINGS,
    ];
    [subject::SETTINGS, credentials::SETTINGS, bots::SETTINGS, handshake::SETTINGS]
        .into_iter()
        .chain(of_workloads)
        .chain(others)
        .flatten()
        .copied()
}

/// The groups of the help, in its order.
pub fn headings() -> Vec<&'static str> {
    let of_workloads = KINDS.iter().flat_map(|kind| kind.settings).copied().flatten();
    let of_workloads = of_workloads.map(|setting| setting.heading);
    let last = [handshake::HEADING, poll_loop_sweep::HEADING, "Judged by", "Subject", "Output"];
    let mut headings = vec!["What", "How"];
    for heading in of_workloads.chain(last) {
        if !heading.is_empty() && !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    headings
}

settings! { SETTINGS;
    ARRIVALS = Setting::of("How", &[]).key("arrivals", Shape::Text, "even")
        .about("The law of arrivals: poisson, even, burst or closed.")
        .flag("--arrivals", "LAW")
        .help("The law of arrivals: poisson, even or burst (HTTP with a rate), poisson or even (scripts with sessions/s), \
            even or poisson (chat, and echo with a rate), closed (requesters, and echo without a rate)");
    SEED = Setting::of("How", &[]).key("seed", Shape::Whole("uint64"), "42")
        .about("Random seed; a new one each time otherwise.")
        .flag("--seed", "N").help("Random seed");
    PATIENCE = Setting::of("How", &[]).key("patience", Shape::Text, "1s").about("An answer after this is late.")
        .flag("--patience", "TIME").help("An answer after this is late").default("1s");
    PROFILE = Setting::of("How", &[]).key("profile", Shape::Text, "cpu")
        .about("What of the server is profiled behind the climb, at the last load that held and the first that failed.")
        .flag("--profile", "WHAT")
        .help("Behind the climb, hold the last load that held and the first that failed once more with a profiler, and say which \
            functions of the server took the time (cpu), or the memory that is allocated (alloc)")
        .kind(Kind::Optional("cpu")).one_of(Profile::NAMES).of_climbs();
    PPROF = Setting::of("How", &[]).key("pprof", Shape::Text, "http://127.0.0.1:6060/debug/pprof/")
        .about("Where a Go server serves net/http/pprof, for its profile; looked for on its own ports otherwise.")
        .flag("--pprof", "URL")
        .help("With --profile: where a Go server serves net/http/pprof; by default it is looked for where the server answers, and \
            on its ports of 127.0.0.1").of_climbs();
    NAME = Setting::of("Output", &[]).at_most(NAME_BYTES_MAX).key("name", Shape::Text, "master")
        .about("The name of the run, to find it again.")
        .flag("--name", "NAME").help("The run's name");
    NOTE = Setting::of("Output", &[]).key("note", Shape::Text, "after the new allocator")
        .about("Free text kept with the run.")
        .flag("--note", "TEXT").help("Free text kept with the run");
}

/// A name is a column of tables and part of the names of files.
const NAME_BYTES_MAX: usize = 200;
/// Below it, lateness would be the clock's and not the server's.
const PATIENCE_NS_MIN: u64 = 1_000_000;

/// What may follow `climb`, for its help.
pub fn subject_help() -> String {
    format!(
        "A built-in server ({}), a scenario file (*.yaml), a script (*.ts, with --target URL) or a URL (http://HOST:PORT/PATH; schemes: {})",
        vocabulary::listed(vocabulary::SUBJECTS),
        vocabulary::listed(Scheme::NAMES),
    )
}

/// Whether the word after `climb` is a scenario file, which the caller must read before `resolve`.
pub fn is_scenario_file(subject: &str) -> bool {
    let subject = subject.trim().to_lowercase();
    !subject.contains("://") && (subject.ends_with(".yaml") || subject.ends_with(".yml"))
}

/// Flags over scenario over defaults.
///
/// `entropy_seed` seeds the run when no seed is named; it is cut to 53 bits, so that every reader of the
/// run's JSON gets the same number back. Literal addresses are checked here; names are resolved by the
/// caller, who then asks `target::may_load` for each address.
/// Errors: every mistake of the author; those of the file by line, then those of the command line.
pub fn resolve(flags: &Flags, scenario: Option<ScenarioText>, entropy_seed: u64) -> Result<Plan, Mistakes> {
    let unread = |_: &Path| Err(io::Error::other("files were not read"));
    resolve_with(flags, scenario, entropy_seed, &unread)
}

/// As `resolve`, with the caller's way to read the files that settings name (`--proto`).
pub fn resolve_with(
    flags: &Flags,
    scenario: Option<ScenarioText>,
    entropy_seed: u64,
    read_file: &dyn Fn(&Path) -> io::Result<String>,
) -> Result<Plan, Mistakes> {
    let path = scenario.as_ref().map(|scenario| scenario.path.clone());
    let (file, mistakes) =
        scenario.as_ref().map_or_else(|| (Some(Node::default()), Vec::new()), scenario::read);
    let is_file_readable = file.is_some();
    let mut file = file.unwrap_or_default();
    let script = script::named(flags, &bots::BOTS, &file).map(str::to_owned);
    let loaded = script.as_deref().map(|name| script::load(name, read_file, &mut file)).transpose();
    let path = path.or_else(|| flags.subject().filter(|subject| is_script_file(subject)).map(str::to_owned));
    let mut reader = Reader::new(flags, read_file, path.clone().unwrap_or_default(), file, mistakes);
    reader.script_name = script.unwrap_or_default();
    match loaded {
        Ok(loaded) => reader.script = loaded,
        Err(refusal) => {
            let (place, wrong) = *refusal;
            reader.has_unreadable_script = true;
            reader.refuse_plainly(place, wrong);
        }
    }
    reader.refuse_long_flags();
    if reader.mistakes.iter().any(|mistake| matches!(mistake.wrong, ConfigError::TooLong { .. })) {
        // Stop here, so that no further message repeats the text.
        return Err(sorted(reader.mistakes));
    }
    bots::forget_other_bots(&mut reader);

    let may_load = subject::may_load(&mut reader);
    let mut found = subject::find(&mut reader, is_file_readable, &may_load);
    let ticks_said = subject::ticks_said(&mut reader, &may_load);
    let (echoes, echoes_said) = subject::echoes(&mut reader, found.as_mut());
    let server = bots::Server {
        built_in: match found.as_ref().map(|found| &found.source) {
            Some(SubjectSource::BuiltIn { server, .. }) => Some(server),
            _ => None,
        },
        scheme: found.as_ref().and_then(ResolvedTarget::scheme),
        path: found.as_ref().and_then(ResolvedTarget::path).map(str::to_owned),
        is_seen_by_clients: ticks_said.iter().any(|said| said.source == TickSource::Client),
        echoes,
        echoes_said,
    };
    let loads = ladder::loads(&mut reader);
    let bots = bots::read(&mut reader, &server, loads.as_ref());
    subject::check_nodes(&mut reader, found.as_ref(), &bots);
    let handshake = handshake::read(&mut reader, &server, &bots);
    credentials::read(&mut reader, found.as_mut(), &bots);
    let (ticks, compared_ticks, tick_rate_hz) =
        subject::ticks(&mut reader, found.as_mut(), &bots, ticks_said);
    let mut ladder = ladder::read(&mut reader, &bots, loads.as_ref(), &ticks, found.as_ref());
    let allowed = objectives::allowed(&mut reader, &bots);
    let networks = network::read(&mut reader, ladder.hold);
    let objectives = objectives::read(&mut reader, &bots, &ticks, found.as_ref(), &networks, &allowed);
    ladder.stop = stop::read(&mut reader, found.as_mut(), &bots, ladder.hold, &objectives);
    let is_ours = found.as_ref().is_some_and(|found| !matches!(found.source, SubjectSource::Running { .. }));
    let goals = objectives::goals(&mut reader, &objectives, (&bots, &ticks, found.as_ref()), &allowed);
    search::read(&mut reader, &mut ladder, loads.as_ref(), &bots, (&objectives, goals), is_ours);
    subject::rate_for_search(&mut reader, &ladder, &ticks, tick_rate_hz);
    ladder::lengthen(&reader, &mut ladder, &bots, &objectives);
    let gates = objectives::gates(&mut reader, &ladder, &bots, &ticks, found.as_ref());
    let arrivals = arrivals_of(&mut reader, &bots);
    let patience_ns = reader.value_or_default(&PATIENCE, |text| {
        units::duration_ns_within(text, PATIENCE_NS_MIN, units::DURATION_NS_MAX)
    });
    let seed = reader.value(&SEED, |text| units::whole_within(text, 0, u64::MAX));
    let generator = generator::read(&mut reader);
    let profile = reader.value(&PROFILE, str::parse::<Profile>);
    let pprof = reader.value(&PPROF, units::pprof);
    let name = reader.value(&NAME, units::not_blank);
    let note = reader.value(&NOTE, units::not_blank);

    match found {
        Some(found) if reader.mistakes.is_empty() => Ok(Plan {
            subject: Subject { name: found.name, source: found.source, ticks, compared_ticks, tick_rate_hz },
            bots,
            handshake,
            ladder,
            objectives,
            gates,
            allowed,
            arrivals,
            patience_ns,
            seed: seed.unwrap_or(entropy_seed & ((1 << 53) - 1)),
            generator,
            networks,
            name,
            note,
            scenario: path,
            may_load,
            profile: profile.unwrap_or_default(),
            pprof: pprof.map(Box::new),
        }),
        _ => Err(sorted(reader.mistakes)),
    }
}

/// The file from top to bottom, then the command line.
fn sorted(mut mistakes: Vec<Mistake>) -> Mistakes {
    mistakes.sort_by_key(|mistake| match mistake.place {
        Place::Line { line, .. } => (0, line),
        Place::Script => (0, 0),
        Place::Flag(_) => (1, 0),
    });
    Mistakes(mistakes)
}

fn arrivals_of(reader: &mut Reader, bots: &BotSettings) -> Arrivals {
    let (possible, why) = bots.arrivals();
    let said = reader.said(&ARRIVALS);
    let asked = said.as_ref().and_then(|said| reader.read(said, str::parse::<Arrivals>));
    if let (Some(said), Some(asked)) = (&said, asked)
        && !possible.contains(&asked)
    {
        let wrong = ConfigError::ArrivalsNotOfBots { bots: bots.name(), arrivals: asked.to_string(), why };
        reader.refuse_plainly(said.place.clone(), wrong);
    }
    asked.unwrap_or(possible[0])
}

#[cfg(test)]
mod tests;
