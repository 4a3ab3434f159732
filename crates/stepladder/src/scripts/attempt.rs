//! `stepladder try`: one bot plays for a moment, and each thing that it does is a line.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use engine::collector::FromWorker;
use engine::thread::Setup;
use engine::{Clock as _, Collector, MonotonicClock, Progress, Shared, Timeline};
use ladder::wording::{show_many, show_ns};
use measure::{Interval, Measure, Phase, Quantile};
use plan::layers::SUBJECT;
use plan::units::duration_ns_within;

use crate::cli::Settings;
use crate::commands::planned;
use crate::exit::{Exit, Failure, not_measured, wrong_usage};
use crate::signals::Interrupt;
use crate::trial::addresses;
use crate::under_test::UnderTest;
use crate::{say, secrets};

/// Longer than any look at one bot.
const TIME_NS_MAX: u64 = 3_600_000_000_000;
/// For replies that are still on their way, and for goodbyes.
const LEAVES_NS: u64 = 3_000_000_000;
const LOOK: Duration = Duration::from_millis(20);

/// Options of `try`.
#[derive(Debug, Args)]
#[command(override_usage = "stepladder try player.ts --target URL [OPTIONS]")]
pub struct TryArgs {
    /// The script
    file: String,
    /// How long the bot plays
    #[arg(long = "for", value_name = "TIME", default_value = "5s")]
    time: String,
    #[command(flatten)]
    settings: Settings<false>,
}

/// Plays one bot. Exit: 0 where nothing went wrong, 1 where something did.
pub fn attempt(args: &TryArgs, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let flags = args.settings.0.clone().with(&SUBJECT, args.file.clone());
    let time_ns = duration_ns_within(&args.time, 1_000_000, TIME_NS_MAX)
        .with_context(|| format!("--for {}", args.time))
        .map_err(wrong_usage)?;
    let (plan, consent) = planned(&flags, false, fastrand::u64(..)).map_err(wrong_usage)?;
    let subject = UnderTest::start(&plan, &consent).map_err(not_measured)?;
    let played = play(&plan, &subject, time_ns, interrupt);
    subject.stop();
    let played = played.map_err(not_measured)?;
    say::out_text!("{}", sum_up(&played));
    let is_fine = played.errors.iter().chain(&played.connections.failed).all(|count| *count == 0);
    Ok(if is_fine { Exit::Met } else { Exit::NotMet })
}

fn play(
    plan: &plan::Plan,
    subject: &UnderTest,
    time_ns: u64,
    interrupt: &Interrupt,
) -> anyhow::Result<Interval> {
    let mut workers = plan::split(plan, 1.0, &subject.target, subject.address, 1, &[]);
    secrets::fill_in(&mut workers)?;
    let worker = workers.into_iter().next().context("the script plays no bot")?;
    let names = bots::catalog::metric_names(&worker.bots, worker.target.scheme)?;
    bots::script::listen(Box::new(|at_ns, words| say::out_line!("{:>9.3} s  {words}", at_ns as f64 / 1e9)));
    let clock = MonotonicClock::starting_now();
    let timeline = Arc::new(Timeline::default());
    timeline.settle_at(0);
    timeline.hold_at(0);
    let (says, hears) = channel();
    let (_collector, ends) = Collector::new(1, &says);
    let to_collector = ends.into_iter().next().context("no collector")?;
    let shared = Shared {
        timeline: timeline.clone(),
        progress: Arc::new(Progress::default()),
        realtime_zero_ns: engine::clock::realtime_ns(),
        ..Shared::default()
    };
    let setup = Setup {
        addresses: addresses(&worker, &subject.target)?,
        plan: worker,
        shared,
        clock,
        to_collector,
        says,
        core: None,
        realtime: false,
        spin_ns: 0,
    };
    timeline.drain_at(time_ns);
    timeline.stop_at(time_ns + LEAVES_NS);
    let thread = bots::catalog::start(setup).context("a worker thread could not be started")?;
    let mut all = Interval::new(&names);
    loop {
        match hears.recv_timeout(LOOK) {
            Ok(FromWorker::Second { interval, .. }) => {
                all.append(&interval).context("the bot's books do not add up")?;
            }
            Ok(FromWorker::Ledger { .. }) => {}
            Ok(FromWorker::Panicked { why, .. } | FromWorker::Broke { why, .. }) => anyhow::bail!("{why}"),
            Ok(FromWorker::Done { .. }) => break,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                if interrupt.is_asked() {
                    timeline.drain_at(clock.now_ns().min(time_ns));
                    timeline.stop_at(clock.now_ns());
                }
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    // Its panic was told through its channel.
    let _ = thread.join();
    Ok(all)
}

/// What was measured, what was left unanswered, and what went wrong.
fn sum_up(all: &Interval) -> String {
    let mut text = "\n".to_owned();
    for (name, phases) in all.metric_names.ops.iter().zip(&all.flows) {
        let flow = &phases[Phase::Hold as usize];
        if flow.offered == 0 {
            continue;
        }
        let told = [
            (flow.answered, "answered"),
            (flow.late, "of these late"),
            (flow.failed, "failed"),
            (flow.lost, "lost with their connection"),
            (flow.not_sent, "not sent"),
            (flow.open_after, "left unanswered"),
        ];
        let told: Vec<String> = told
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", show_many(count)))
            .collect();
        text += &format!("{name}: {} sent", show_many(flow.sent));
        text += &told.iter().map(|one| format!(", {one}")).collect::<String>();
        text.push('\n');
    }
    let response = all.distribution(Measure::Response, true);
    if let (Quantile::Ns(p50), Some(max)) = (response.quantile(0.5, 0), response.max_ns()) {
        text += &format!("response time: p50 {}, longest {}\n", show_ns(p50 as f64), show_ns(max as f64));
    }
    let ticks = &all.ticks;
    let seen = ticks.on_time + ticks.over + ticks.under;
    if seen > 0 {
        text += &format!(
            "ticks: {} on time, {} over, {} under, {} missed\n",
            show_many(ticks.on_time),
            show_many(ticks.over),
            show_many(ticks.under),
            show_many(ticks.missed)
        );
    }
    let names = &all.metric_names;
    let counters = names
        .counters
        .iter()
        .zip(&all.counters)
        .filter(|(name, _)| name.as_str() != measure::names::OPEN_TIME);
    let errors = names.errors.iter().zip(&all.errors);
    let failed = names.connect_failures.iter().zip(&all.connections.failed);
    for (name, count) in counters.filter(|(_, count)| **count > 0) {
        text += &format!("{name}: {}\n", show_many(*count));
    }
    for (name, count) in errors.chain(failed).filter(|(_, count)| **count > 0) {
        text += &format!("error: {name}, {} times\n", show_many(*count));
    }
    for (cause, words) in &all.samples {
        text += &format!("  {}: {words}\n", names.errors[*cause]);
    }
    text
}
