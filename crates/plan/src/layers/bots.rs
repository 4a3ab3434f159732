//! Which bots, and the settings they do not take.

use crate::built_in::BuiltIn;
use crate::layers::ladder::Loads;
use crate::layers::reader::{RawValue, Reader};
use crate::layers::settings;
use crate::mistakes::{ConfigError, Place};
use crate::scheme::Scheme;
use crate::settings::{Setting, Shape};
use crate::vocabulary;
use crate::workloads::{BotSettings, KINDS, NAMES, is_script_file};

/// Bots that a script plays.
const SCRIPT: &str = "script";

/// A kind of bot: its protocols, and how its settings are read. Each is defined with its workload; `workloads` lists
/// them.
pub(crate) struct BotsKind {
    /// `arena`
    pub name: &'static str,
    /// whether it speaks over a scheme
    pub speaks: fn(Scheme) -> bool,
    /// its settings, file by file
    pub settings: &'static [&'static [&'static Setting]],
    /// its bots; after a mistake, bots that let the other settings be read
    pub read: fn(&mut Reader, &Server<'_>, Option<&Loads>) -> BotSettings,
}

settings! { pub(super) SETTINGS;
    pub(super) BOTS = Setting::of("What", &[]).key("bots", Shape::WordOr("BotsKeys", "Bots with settings."), "arena")
        .about("The simulated clients: a built-in name, or a name with settings.")
        .flag("--bots", "NAME").help("The simulated clients").default("those of the subject");
    KIND = Setting::of("", &[]).key("bots.kind", Shape::Text, "arena").about("Which bots; those of the subject otherwise.")
        .one_of(NAMES);
}

/// What is known of the server when the bots are chosen.
pub(crate) struct Server<'a> {
    /// name of a built-in server
    pub built_in: Option<&'a str>,
    /// how a server that is not built in is spoken to; neither of both: it is not known
    pub scheme: Option<Scheme>,
    /// path and query of a server that is not built in
    pub path: Option<String>,
    /// the clients see its ticks, as a flag or the file says
    pub is_seen_by_clients: bool,
    /// it sends each line back to its sender too
    pub echoes: bool,
    /// where that was set, besides a built-in server's options
    pub echoes_said: Option<Place>,
}

/// The bots of the plan; after a mistake, bots that let the other settings be read.
pub(super) fn read(reader: &mut Reader, server: &Server<'_>, loads: Option<&Loads>) -> BotSettings {
    let said = reader.said(&BOTS).or_else(|| reader.said(&KIND));
    let kind = match &said {
        Some(said) if vocabulary::BOTS.contains(&said.text.trim()) => said.text.trim(),
        Some(said) if is_script_file(&said.text) => SCRIPT,
        Some(said) => {
            // Treated as the nearest known one, so that its settings are checked too.
            unknown(reader, said, said.text.trim());
            let all = vocabulary::BOTS.iter().copied();
            vocabulary::nearest(&said.text, all).unwrap_or_else(|| own_bots(reader, server, loads))
        }
        None => own_bots(reader, server, loads),
    };
    let bots = (kind_named(kind).read)(reader, server, loads);
    for (setting, place) in owned(reader) {
        refuse_if_strange(reader, setting, place, &bots);
    }
    if let Some(said) = said.filter(|said| vocabulary::BOTS.contains(&said.text.trim())) {
        refuse_deaf(reader, &said, bots.name(), server);
    }
    bots
}

/// Only names of the table come here.
fn kind_named(name: &str) -> &'static BotsKind {
    KINDS.iter().find(|kind| kind.name == name).unwrap_or(&KINDS[0])
}

/// Where the command line names other bots than the file, the settings of the file's bots were not meant for
/// them.
pub(super) fn forget_other_bots(reader: &mut Reader) {
    let named = reader.file.at(BOTS.key).map(|bots| bots.get(KIND.name()).unwrap_or(bots).text().trim());
    let other = reader.flags.text(&BOTS).map(str::trim);
    if named.zip(other).is_some_and(|(named, other)| !named.is_empty() && named != other) {
        reader.file.remove(BOTS.key);
    }
}

/// The first that speak over a scheme.
fn bots_over(scheme: Scheme) -> Option<&'static str> {
    KINDS.iter().find(|kind| (kind.speaks)(scheme)).map(|kind| kind.name)
}

/// The bots that a word of the command line means: their own name, that of a built-in server, a script's file or a URL.
pub fn bots_meant(word: &str) -> Option<&'static str> {
    let of_scheme = || bots_over(Scheme::named(word.split_once("://")?.0)?);
    let of_script = || is_script_file(word).then_some(SCRIPT);
    let named = NAMES.iter().find(|name| **name == word).copied();
    named.or_else(|| BuiltIn::named(word).map(|server| server.bots)).or_else(of_script).or_else(of_scheme)
}

/// The settings below `bots` that were said although not all bots take them.
fn owned(reader: &Reader) -> Vec<(&'static Setting, Place)> {
    settings()
        .filter(|setting| !setting.bots.is_empty() && setting.key.starts_with("bots."))
        .filter_map(|setting| Some((setting, reader.said(setting)?.place)))
        .collect()
}

/// A setting that other bots take.
pub(super) fn refuse_if_strange(
    reader: &mut Reader,
    setting: &Setting,
    place: Place,
    bots: &BotSettings,
) -> bool {
    let bots = bots.name();
    let is_strange = !setting.bots.is_empty() && !setting.bots.contains(&bots);
    if is_strange {
        let wrong = ConfigError::NotOfTheseBots { setting: setting.name(), whose: setting.bots[0], bots };
        reader.refuse_plainly(place, wrong);
    }
    is_strange
}

/// The bots that a server is loaded with when none are named.
fn own_bots(reader: &Reader, server: &Server<'_>, loads: Option<&Loads>) -> &'static str {
    let of_built_in = server.built_in.and_then(BuiltIn::named).map(|server| server.bots);
    of_built_in.or_else(|| bots_over(server.scheme?)).unwrap_or_else(|| {
        // The server was refused; the given settings tell which bots were meant.
        let settings = owned(reader).into_iter().map(|(setting, _)| setting);
        let settings = settings.chain(loads.map(|loads| loads.setting));
        let mut others = settings.flat_map(|setting| setting.bots).filter(|bots| **bots != "arena");
        others.next().copied().unwrap_or("arena")
    })
}

/// Bots and server that could not talk to each other.
fn refuse_deaf(reader: &mut Reader, said: &RawValue, bots: &'static str, server: &Server<'_>) {
    let speaks = kind_named(bots).speaks;
    let wrong = match (server.built_in.and_then(BuiltIn::named), server.scheme) {
        (Some(server), _) if server.bots != bots => {
            ConfigError::BotsNotOfServer { bots, server: server.name.into() }
        }
        (_, Some(scheme)) if !speaks(scheme) => {
            let over = schemes_of(bots);
            ConfigError::BotsNotOfScheme { bots, scheme, over }
        }
        _ => return,
    };
    reader.refuse_plainly(said.place.clone(), wrong);
}

/// What bots of that name speak over.
pub(super) fn schemes_of(bots: &str) -> Vec<Scheme> {
    let speaks = kind_named(bots).speaks;
    Scheme::ALL.iter().copied().filter(|scheme| speaks(*scheme)).collect()
}

fn unknown(reader: &mut Reader, said: &RawValue, name: &str) {
    let nearest = vocabulary::nearest(name, vocabulary::BOTS.iter().copied()).map(Into::into);
    reader.refuse_with(said, ConfigError::UnknownBots(name.into()), nearest);
}
