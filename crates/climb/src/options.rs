//! The options of `climb`, and those of its settings that other commands share. Their values stay raw text; `plan`
//! parses them, so that a flag and the same key in a scenario file are refused with the same message.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};
use console::other_runs::Wait;
use plan::layers::{BODY, OPTIONS, SUBJECT, headings, settings, subject_help};
use plan::{Flags, Kind, Setting};
use watch::files::{self, Accepts};

use crate::outputs::{Followed, ResultFiles};

mod agents;

pub use agents::{AgentsArgs, LinkArgs};

/// Behind the options of `climb -h`.
const EXAMPLES: &str = "\
Examples:
  stepladder climb arena --rungs 500,1000,2000 --hold 20s
  stepladder climb player.ts --target ws://127.0.0.1:8080 --start 'node server.js'
  stepladder climb http://127.0.0.1:8080/items --rate 1000,2000 --objective 'response.p99 < 50ms'
  stepladder climb arena --search standard --gate 'capacity >= 1000'
  stepladder climb redis://127.0.0.1:6379 --rungs 1,10,100 --view
All options: climb --help; those of one subject: climb arena --help, climb chat --help …";

/// Options of `climb`.
#[derive(Debug, Args)]
#[command(
    override_usage = "stepladder climb SUBJECT|scenario.yaml|URL [OPTIONS] [-- OPTIONS OF THE BUILT-IN SERVER]"
)]
#[command(after_help = EXAMPLES, after_long_help = objectives_help())]
pub struct ClimbArgs {
    #[arg(help = subject_help())]
    subject: Option<String>,
    #[command(flatten)]
    settings: Settings<true>,
    /// The body of each request, from a file of text
    #[arg(long, value_name = "FILE", help_heading = "HTTP", conflicts_with = BODY.flag)]
    body_file: Option<PathBuf>,
    /// Let a scenario start its command, and lead built-in servers to files and addresses
    #[arg(long, help_heading = "Subject")]
    pub allow_start: bool,
    /// the files of its results
    #[command(flatten, next_help_heading = "Output")]
    pub results: ResultFiles,
    /// what is written while it goes on
    #[command(flatten, next_help_heading = "Output")]
    pub followed: Followed,
    /// Write the results here as one HTML file that opens anywhere
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub report: Option<PathBuf>,
    /// Show the climb as a page on 127.0.0.1 while it goes on, opened where there is a desktop; on a terminal
    /// also afterwards, until Ctrl-C
    #[arg(long, help_heading = "Output")]
    pub view: bool,
    /// Lines instead of the live view in the terminal, as a pipe gets them: for screen readers and logs
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub plain: bool,
    /// The project's store
    #[arg(long, value_name = "FILE", default_value = "stepladder.db", help_heading = "Output")]
    pub store: PathBuf,
    /// who makes the load
    #[command(flatten)]
    pub agents: AgentsArgs,
    /// whether it waits for other runs
    #[command(flatten, next_help_heading = "Output")]
    pub wait: Wait,
    /// Options of the built-in server
    #[arg(last = true, value_name = "SERVER OPTIONS", help_heading = None::<&str>)]
    server_options: Vec<String>,
}

impl ClimbArgs {
    /// What the command line says, for `plan::resolve`. Errors: the file of the body cannot be read.
    pub fn flags(&self) -> anyhow::Result<Flags> {
        let mut flags = self.settings.0.clone();
        flags.say(&SUBJECT, self.subject.clone());
        flags.say(&OPTIONS, self.server_options.clone());
        if let Some(path) = &self.body_file {
            let body =
                files::read_text(path, Accepts::FilesAndPipes, BODY.bytes_max as u64).with_context(|| {
                    format!("--body-file {}: it cannot be read as UTF-8 text; check the path", path.display())
                })?;
            flags.say(&BODY, [body]);
        }
        Ok(flags)
    }
}

/// The settings that `plan` declares, as options: `OF_CLIMBS`, all of them; else those that a duel takes for both sides.
#[derive(Clone, Debug)]
pub struct Settings<const OF_CLIMBS: bool>(pub Flags);

impl<const OF_CLIMBS: bool> Settings<OF_CLIMBS> {
    fn taken() -> impl Iterator<Item = &'static Setting> {
        settings().filter(|one| one.is_option() && (OF_CLIMBS || !one.is_of_climbs))
    }
}

impl<const OF_CLIMBS: bool> Args for Settings<OF_CLIMBS> {
    fn augment_args(command: clap::Command) -> clap::Command {
        let of_heading = |heading| Self::taken().filter(move |one| one.heading == heading);
        command.args(headings().into_iter().flat_map(of_heading).map(option))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl<const OF_CLIMBS: bool> FromArgMatches for Settings<OF_CLIMBS> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Flags::default();
        for setting in Self::taken() {
            match setting.kind {
                Kind::Switch if matches.get_flag(setting.flag) => flags.say(setting, ["true".into()]),
                Kind::SwitchOff if matches.get_flag(setting.flag) => flags.say(setting, ["false".into()]),
                Kind::Switch | Kind::SwitchOff => {}
                Kind::One | Kind::Hyphenated | Kind::Optional(_) | Kind::Repeated => {
                    let texts = matches.get_many::<String>(setting.flag);
                    flags.say(setting, texts.into_iter().flatten().cloned());
                }
            }
        }
        Ok(Settings(flags))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn option(setting: &'static Setting) -> Arg {
    let arg = Arg::new(setting.flag)
        .long(setting.flag.trim_start_matches('-'))
        .help(setting.help_text())
        .help_heading(setting.heading);
    let arg = match setting.kind {
        Kind::Switch | Kind::SwitchOff => return arg.action(ArgAction::SetTrue),
        Kind::One | Kind::Hyphenated => arg.action(ArgAction::Set),
        Kind::Optional(alone) => arg.action(ArgAction::Set).num_args(0..=1).default_missing_value(alone),
        Kind::Repeated => arg.action(ArgAction::Append),
    };
    arg.value_name(setting.value_name).allow_hyphen_values(setting.kind == Kind::Hyphenated)
}

fn objectives_help() -> String {
    let mut text = format!(
        "{}\n\nObjectives: NAME OP VALUE [unit] over the figures of a rung, for example\n  \
         ticks.late_share < 25%   response.p99 < 50ms   errors == 0   subject.cpu_share < 90%\n\nNames:\n",
        EXAMPLES
    );
    // One line per distribution: `response.p50: …: p50`, `response.p90: …: p90` and so on are adjacent.
    let mut base = "";
    for figure in ladder::FIGURES {
        let (name, meaning) = match figure.name.rsplit_once('.') {
            Some((distribution, quantile)) if figure.meaning.ends_with(&format!(": {quantile}")) => {
                if distribution == base {
                    continue;
                }
                base = distribution;
                (format!("{distribution}.QUANTILE"), figure.meaning.rsplit_once(':').map_or("", |it| it.0))
            }
            _ => (figure.name.to_owned(), figure.meaning),
        };
        text.push_str(&format!("  {name:<28} {meaning}\n"));
    }
    text.push_str("\nQUANTILE is p50, p90, p95, p99, p999, max or mean.\n");
    text
}
