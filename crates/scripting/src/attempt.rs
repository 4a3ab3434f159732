//! `stepladder try`: runs one or a few bots briefly and prints a line for everything they do.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use climb::addresses;
use climb::options::Settings;
use climb::planned;
use climb::secrets;
use climb::subject::RunningSubject;
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::say;
use console::signals::Interrupt;
use engine::collector::FromWorker;
use engine::thread::Setup;
use engine::{Clock as _, Collector, MonotonicClock, Progress, Shared, Timeline};
use ladder::wording::{show_many, show_ns, show_number};
use measure::{Books, Interval, Measure, Phase, Quantile, ValueSummary};
use plan::layers::SUBJECT;
use plan::units::duration_ns_within;

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
    /// How many bots play, 20 at most: two or more show whether they hear each other (bot.room)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=20))]
    count: u64,
    #[command(flatten)]
    settings: Settings<false>,
}

/// Plays the bots. Exit: 0 where nothing went wrong, 1 where something did.
pub fn attempt(args: &TryArgs, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let flags = args.settings.0.clone().with(&SUBJECT, args.file.clone());
    let time_ns = duration_ns_within(&args.time, 1_000_000, TIME_NS_MAX)
        .with_context(|| format!("--for {}", args.time))
        .map_err(wrong_usage)?;
    let (plan, consent) = planned(&flags, false, fastrand::u64(..)).map_err(wrong_usage)?;
    let subject = RunningSubject::start_unasked(&plan, &consent).map_err(not_measured)?;
    let played = play(&plan, &subject, args.count, time_ns, interrupt);
    subject.stop();
    let (played, books) = played.map_err(not_measured)?;
    say::out_text!("{}{}", sum_up(&played), books.as_ref().map_or(String::new(), sum_up_rooms));
    let is_fine = played.errors.iter().chain(&played.connections.failed).all(|count| *count == 0);
    Ok(if is_fine { Exit::Met } else { Exit::NotMet })
}

fn play(
    plan: &plan::Plan,
    subject: &RunningSubject,
    count: u64,
    time_ns: u64,
    interrupt: &Interrupt,
) -> anyhow::Result<(Interval, Option<Books>)> {
    let workers = plan::split(plan, count as f64, &subject.target, subject.address, 1, &[]);
    let mut worker = [workers.into_iter().next().context("the script plays no bot")?.of_bots(count)];
    secrets::fill_in(&mut worker)?;
    let [worker] = worker;
    let names = bots::catalog::metric_names(&worker.bots, worker.target.scheme)?;
    bots::script::listen(Box::new(move |bot, at_ns, words| {
        let who = if count > 1 { format!("bot {bot}: ") } else { String::new() };
        say::out_line!("{:>9.3} s  {who}{words}", at_ns as f64 / 1e9);
    }));
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
    let (mut all, mut books) = (Interval::new(&names), None);
    loop {
        match hears.recv_timeout(LOOK) {
            Ok(FromWorker::Second { interval, .. }) => {
                all.append(&interval).context("the bot's books do not add up")?;
            }
            Ok(FromWorker::Ledger { part }) => books = Some(measure::ledger::close(&[*part])),
            Ok(
                FromWorker::Panicked { why, .. }
                | FromWorker::Broke { why, .. }
                | FromWorker::Lost { why, .. },
            ) => anyhow::bail!("{why}"),
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
    // Its panic was reported through its channel.
    let _ = thread.join();
    Ok((all, books))
}

/// Who received what was sent in rooms.
fn sum_up_rooms(books: &Books) -> String {
    let sum = &books.judged;
    let strange = match books.unknown_messages {
        0 => String::new(),
        count => format!(", {} that nobody sent", show_many(count)),
    };
    format!(
        "rooms: {} messages sent, {} deliveries owed, {} came, {} lost, {} twice, {} not owed{strange}\n",
        show_many(books.sent),
        show_many(sum.owed()),
        show_many(sum.delivered),
        show_many(sum.missing()),
        show_many(sum.duplicated),
        show_many(sum.unowed),
    )
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
    for (value, name) in all.metric_names.values.iter().enumerate() {
        if let Some(ValueSummary { p50, mean, max, count, .. }) = all.value(value).value_summary() {
            let shown = [("p50", p50), ("mean", mean), ("largest", max)]
                .into_iter()
                .filter_map(|(what, value)| Some(format!(", {what} {}", show_number(value?))));
            text += &format!("{name}: {} values{}\n", show_many(count), shown.collect::<String>());
        }
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
