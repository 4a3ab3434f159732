//! `stepladder`: parses the command line, calls the command, and turns errors into a message and an exit code.

use std::process::ExitCode;

use console::exit::{Exit, Failure, not_measured};
use console::{say, signals};
use servers::leaderboard::bench::CountingAllocator;
use stepladder::cli::{Command, unknown_option};
use stepladder::{bench, commands, help, mark, report, serve, view};
use versus::bisect;

/// Counts only while `stepladder bench` runs.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    watch::Inherited::remember();
    // A file that reaches the limit of its size (ulimit -f) is then an error like a full disk, and not this process's end.
    // SAFETY: no handler is installed, and no other thread exists yet.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let cli = match help::parsed() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, not errors.
            let code = if error.use_stderr() { Exit::WrongUsage } else { Exit::Met };
            match unknown_option(&error) {
                Some(said) => say::error(&said),
                None => say::usage(&error),
            }
            return say::end_of(Ok(code)).into();
        }
    };
    let outcome = match cli.command {
        Command::Serve { server } => serve::run(server).map(|()| Exit::Met).map_err(not_measured),
        Command::Climb(args) => interrupt().and_then(|interrupt| commands::climb(&args, &interrupt)),
        Command::New(args) => scripting::new(&args),
        Command::Try(args) => interrupt().and_then(|interrupt| scripting::attempt(&args, &interrupt)),
        Command::Record(args) => interrupt().and_then(|interrupt| scripting::record(&args, &interrupt)),
        Command::Import(args) => scripting::import(&args),
        Command::Duel(args) => interrupt().and_then(|interrupt| commands::duel(&args, &interrupt)),
        Command::Bisect(args) => interrupt().and_then(|interrupt| bisect::bisect(&args, &interrupt)),
        Command::Agent(args) => interrupt().and_then(|interrupt| agents::run(&args, &interrupt)),
        Command::Up(args) => interrupt().and_then(|interrupt| agents::up(&args, &interrupt)),
        Command::Again(args) => interrupt().and_then(|interrupt| commands::again(&args, &interrupt)),
        Command::Ticks(args) => commands::ticks(&args),
        Command::Runs(args) => commands::runs(&args),
        Command::Show(args) => commands::show(&args),
        Command::Compare(args) => commands::compare(&args),
        Command::View(args) => interrupt().and_then(|interrupt| view::view(&args, &interrupt)),
        Command::Report(args) => report::report(&args),
        Command::Mark(args) => mark::mark(&args),
        Command::Export(args) => commands::export(&args),
        Command::Doctor(args) => commands::doctor(&args),
        Command::Bench(options) => bench::run(&options),
        Command::Selftest(args) if args.hog => selftest::hog(),
        Command::Selftest(args) => interrupt().and_then(|interrupt| commands::selftest(&args, &interrupt)),
        Command::Completions { shell } => commands::completions(shell),
        Command::Man { command } => commands::man(command.as_deref()),
    };
    say::end_of(outcome).into()
}

fn interrupt() -> Result<signals::Interrupt, Failure> {
    signals::Interrupt::take().map_err(not_measured)
}
