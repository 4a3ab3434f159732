//! Which options `climb -h` and `climb --help` show: `-h` the usual ones, `--help` those of every subject by topic, and
//! after a subject's name (`climb chat --help`) that subject's options too.

use std::ffi::OsString;

use clap::{Command, CommandFactory, FromArgMatches};
use plan::Setting;
use plan::layers::settings;

use crate::cli::Cli;

/// The options of `climb -h`, by their names in clap.
const USUAL: [&str; 11] = [
    "--rungs",
    "--rate",
    "--search",
    "--hold",
    "--target",
    "--start",
    "--ticks",
    "--objective",
    "--gate",
    "json",
    "view",
];

/// Reads the command line. Errors: clap's, help and version among them.
pub fn parsed() -> Result<Cli, clap::Error> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let mut command = shaped(Cli::command(), &words);
    let mut matches = command.try_get_matches_from_mut(words)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Without the options that the help has no need of. All of them are still understood.
fn shaped(command: Command, words: &[OsString]) -> Command {
    // Headings would take a third of a short help.
    let is_short = words.iter().any(|word| word == "-h");
    let is_asked = is_short || words.iter().any(|word| word == "--help");
    if !is_asked || words.get(1).is_none_or(|word| word != "climb") {
        return command;
    }
    let bots = words.iter().skip(2).filter_map(|word| word.to_str()).find_map(plan::bots_meant);
    command.mut_subcommand("climb", |climb| {
        climb.mut_args(|arg| {
            let setting =
                settings().find(|setting| setting.is_option() && setting.flag == arg.get_id().as_str());
            let is_shown = setting.is_none_or(|setting| is_shown(setting, bots));
            let is_usual = arg.is_positional() || USUAL.contains(&arg.get_id().as_str());
            let arg = arg.hide(!is_shown).hide_short_help(!is_usual);
            if is_short { arg.help_heading(None::<&str>) } else { arg }
        })
    })
}

/// Whether the help of these bots has it; without bots, that of all subjects.
fn is_shown(setting: &Setting, bots: Option<&str>) -> bool {
    match bots {
        Some(bots) => setting.bots.is_empty() || setting.bots.contains(&bots),
        None => setting.bots.is_empty() || setting.heading == "What",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(words: &str) -> String {
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        shaped(Cli::command(), &words).try_get_matches_from(words).unwrap_err().to_string()
    }

    #[test]
    fn the_short_help_fits_a_screen_and_the_long_one_has_what_its_subject_takes() {
        let short = help("stepladder climb -h");
        assert!(short.lines().count() <= 40, "{} lines:\n{short}", short.lines().count());
        for (words, has, has_not) in [
            ("stepladder climb -h", "--rungs", "--talkers"),
            ("stepladder climb --help", "--seed", "--talkers"),
            ("stepladder climb chat --help", "--talkers", "--bulk"),
            ("stepladder climb --help leaderboard", "--bulk", "--talkers"),
            ("stepladder climb poll-loop --help", "--header", "--talkers"),
            ("stepladder climb player.ts --help", "--http", "--bulk"),
            ("stepladder climb grpc://127.0.0.1:1/a.B/C --help", "--proto", "--bulk"),
            ("stepladder climb --rungs 5 --help", "--seed", "--talkers"),
        ] {
            let said = help(words);
            assert!(said.contains(has) && !said.contains(has_not), "{words}:\n{said}");
        }
    }

    #[test]
    fn every_usual_option_is_one() {
        let mut command = Cli::command();
        let climb = command.find_subcommand_mut("climb").unwrap();
        for name in USUAL {
            assert!(climb.get_arguments().any(|arg| arg.get_id() == name), "{name}");
        }
    }
}
