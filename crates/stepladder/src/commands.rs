//! The commands, one function each: what to do, what to print, which exit code.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use agents::Coordinator;
use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;
use climb::consent::Consent;
use climb::judging::JudgedRun;
use climb::options::{AgentsArgs, ClimbArgs};
use climb::outputs::{self, Outputs, ResultFiles};
use climb::planned;
use climb::resume::Resumed;
use climb::trial::ThisProcess;
use climb::viewing::Viewing;
use climb::{doctor, lookup, page};
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::signals::Interrupt;
use console::{layout, say};
use plan::{Flags, Plan, Target, permissions};
use serde_json::json;
use store::{RunId, RunKind, RunState, Store, StoreError};
use versus::Replay;
use versus::duel::{self, DuelArgs};

use crate::cli::{
    AgainArgs, Cli, CompareArgs, DoctorArgs, ExportArgs, RunsArgs, SelftestArgs, ShowArgs, TicksArgs,
};
use crate::{browse, show, ticks};

type Answer = Result<Exit, Failure>;

/// `stepladder climb`
pub fn climb(args: &ClimbArgs, interrupt: &Interrupt) -> Answer {
    let flags = args.flags().map_err(wrong_usage)?;
    let (plan, consent) = planned(&flags, args.allow_start, fastrand::u64(..)).map_err(wrong_usage)?;
    let outputs = Outputs {
        store: args.store.clone(),
        results: args.results.clone(),
        followed: args.followed.clone(),
        // The page shows more than the view in the terminal, which would hide its address.
        plain: args.plain || args.view,
    };
    args.wait.enter(|| interrupt.is_asked())?;
    let beside = Viewing::begin(&args.store, args.view, args.report.as_deref(), Arc::new(Replay::default()))?;
    let (run, code) = climb_with(&args.agents, (&plan, None), &consent, &outputs, interrupt)?;
    beside.end(&args.store, &run, interrupt)?;
    Ok(code)
}

/// Climbs with agents, where they were asked for: they make the load, or watch the server.
fn climb_with(
    args: &AgentsArgs,
    (plan, resumed): (&Plan, Option<&Resumed>),
    consent: &Consent,
    outputs: &Outputs,
    interrupt: &Interrupt,
) -> Result<(RunId, Exit), Failure> {
    let Some(coordinator) = Coordinator::gather(args, interrupt).map_err(not_measured)? else {
        return climb::climb(plan, resumed, consent, outputs, interrupt, &ThisProcess);
    };
    let outcome = coordinator.check(plan).map_err(not_measured);
    let generator = coordinator.generator();
    let outcome = outcome.and_then(|()| climb::climb(plan, resumed, consent, outputs, interrupt, &generator));
    coordinator.end();
    outcome
}

/// `stepladder duel`
pub fn duel(args: &DuelArgs, interrupt: &Interrupt) -> Answer {
    let Some(asked) = args.of_libraries().map_err(wrong_usage)? else { return duel::duel(args, interrupt) };
    args.wait.enter(|| interrupt.is_asked())?;
    inflight_command::duel(asked, interrupt)
}

/// `stepladder again`
pub fn again(args: &AgainArgs, interrupt: &Interrupt) -> Answer {
    let store = Store::open(&args.store).map_err(climb::stored::no_store)?;
    let old = store.find_run(&args.run).map_err(wrong_usage)?;
    let record = store.run(&old).map_err(not_measured)?;
    if record.head.kind == RunKind::Bench {
        return Err(wrong_usage(anyhow::anyhow!(
            "run {old} compared client libraries; run its command again, then stepladder compare: {}",
            record.head.command
        )));
    }
    if record.head.kind == RunKind::Duel {
        return Err(wrong_usage(anyhow::anyhow!(
            "run {old} was a duel; run its command again: {}",
            record.head.command
        )));
    }
    let resumed = if args.resume { Some(Resumed::of(&store, &old).map_err(not_measured)?) } else { None };
    let mut plan: Plan = serde_json::from_str(&record.head.plan)
        .with_context(|| {
            format!("the plan of run {old} is of another version of Stepladder and cannot be repeated")
        })
        .map_err(not_measured)?;
    let file = format!("run {old} of {}", args.store.display());
    let permissions = permissions(&plan, &Flags::default());
    plan.may_load.extend(args.i_may_load.iter().cloned());
    let consent = Consent::obtain(&file, permissions, args.allow_start, args.i_may_load.clone());
    let consent = consent.map_err(wrong_usage)?;
    plan.profile = args.profile.unwrap_or(plan.profile);
    plan.name = args.name.clone().or(plan.name);
    plan.note = args
        .note
        .clone()
        .or_else(|| Some(format!("{} {old}", if args.resume { "resumes" } else { "again" })));
    let outputs = Outputs {
        store: args.store.clone(),
        results: args.results.clone(),
        followed: args.followed.clone(),
        plain: args.plain,
    };
    args.wait.enter(|| interrupt.is_asked())?;
    let made = (&plan, resumed.as_ref());
    let (new, code) = climb_with(&args.agents, made, &consent, &outputs, interrupt)?;
    if resumed.is_some() {
        return Ok(code);
    }
    // The page overlays it on the run that it repeats.
    store.set_label(&new, "again", Some(old.as_str())).map_err(not_measured)?;
    let table = show::figures(&store, &old, &new).map_err(not_measured)?;
    let compared = show::old_against_new(table).map_err(not_measured)?;
    if outputs.take_stdout() {
        say::err_own_text!("{compared}");
    } else {
        print(&compared)?;
    }
    Ok(code)
}

/// `stepladder ticks`
pub fn ticks(args: &TicksArgs) -> Answer {
    let options =
        ticks::Options { files: args.files.clone(), json: args.json.clone(), tick_rate_hz: args.tick_rate };
    let mut out = say::stdout();
    let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    ticks::run(&options, &mut out, layout::width(), colour).map_err(not_measured)
}

/// `stepladder runs`
pub fn runs(args: &RunsArgs) -> Answer {
    let store = Store::open(&args.store).map_err(climb::stored::no_store)?;
    let list = store.runs().map_err(not_measured)?;
    if args.browse {
        return browse::browse(&store, list.runs, false);
    }
    print(&show::runs(&store, &list.runs, layout::columns()))?;
    for error in &list.damaged {
        say::err_line!("stepladder: {error}");
    }
    Ok(if list.damaged.is_empty() { Exit::Met } else { Exit::NotMeasured })
}

/// `stepladder show`
pub fn show(args: &ShowArgs) -> Answer {
    let store = Store::open(&args.store).map_err(climb::stored::no_store)?;
    let run = store.find_run(&args.run).map_err(wrong_usage)?;
    let record = store.run(&run).map_err(not_measured)?;
    if let RunState::CutOff(cut_off) = &record.state {
        say::err_line!("stepladder: {}: {cut_off}", args.store.display());
    }
    if record.head.kind == RunKind::Duel || inflight_command::is_duel(&record) {
        let answer = match record.head.kind {
            RunKind::Bench => inflight_command::stored_duel(&store, &record),
            RunKind::Climb | RunKind::Duel => duel::stored_answer(&store, &record),
        };
        return duel::show(answer, &record, &args.results);
    }
    if record.head.kind == RunKind::Bench {
        args.results.only_json("a comparison of client libraries").map_err(wrong_usage)?;
        return inflight_command::show(&store, &record, args.results.json.as_deref());
    }
    if args.browse {
        return browse::browse(&store, vec![record], true);
    }
    let ended_early = climb::stored::ended_early(&record.state);
    let judged = JudgedRun::whole(&store, &run).and_then(|run| run.answers(ended_early.as_deref()));
    let climb = judged.map_err(not_measured)?;
    let Some(climb) = climb else {
        say::err_line!("stepladder: run {run} holds no rung yet");
        return Ok(Exit::NotMeasured);
    };
    args.results.prepare().map_err(wrong_usage)?;
    args.results.write(&climb).map_err(not_measured)?;
    if !args.results.take_stdout() {
        let columns = layout::columns().filter(|_| !args.wide);
        let is_all = args.all || args.wide;
        print(&if is_all { page::results(&climb, columns) } else { page::summary(&climb, columns, None) })?;
    }
    Ok(Exit::Met)
}

/// `stepladder compare`
pub fn compare(args: &CompareArgs) -> Answer {
    let store = Store::open(&args.store).map_err(climb::stored::no_store)?;
    let record = |text: &str| {
        let run = store.find_run(text).map_err(wrong_usage)?;
        store.run(&run).map_err(not_measured)
    };
    let (old, new) = (record(&args.old)?, record(&args.new)?);
    if old.head.kind != new.head.kind {
        return Err(wrong_usage(anyhow::anyhow!(
            "{} is a {} and {} a {}: they have no figures in common",
            old.id,
            old.head.kind.name(),
            new.id,
            new.head.kind.name()
        )));
    }
    if old.head.kind == RunKind::Duel {
        return Err(wrong_usage(anyhow::anyhow!(
            "{} and {} are duels, and each compares two servers itself; stepladder show {}",
            old.id,
            new.id,
            new.id
        )));
    }
    let files =
        ResultFiles { json: args.json.clone(), markdown: args.markdown.clone(), ..ResultFiles::default() };
    if old.head.kind == RunKind::Bench {
        files.only_json("a comparison of client libraries").map_err(wrong_usage)?;
    }
    files.prepare().map_err(wrong_usage)?;
    let (differences, figures, contract) = match old.head.kind {
        RunKind::Climb | RunKind::Duel => {
            let differences =
                ladder::differing::differences(&viewer::origin(&old.head), &viewer::origin(&new.head));
            let contract = json!({
                "schema": 1, "old": old.id.as_str(), "new": new.id.as_str(), "differs": differences, "cells": null,
            });
            let table = show::figures(&store, &old.id, &new.id).map_err(not_measured)?;
            if args.markdown.is_some() {
                let differs: Vec<String> = differences.iter().map(console::comparing::as_text).collect();
                let ids = (old.id.as_str(), new.id.as_str());
                let page = outputs::page_of_comparison(ids, &differs, table.as_ref(), show::CAUTION);
                outputs::write_text("--markdown", &page, args.markdown.as_deref()).map_err(not_measured)?;
            }
            (differences, show::old_against_new(table).map_err(not_measured)?, contract)
        }
        RunKind::Bench => {
            let both = viewer::beside(&store, &old.id, &new.id).map_err(not_measured)?;
            let contract = serde_json::to_value(&both).map_err(not_measured)?;
            (both.differs.clone(), inflight_command::compared(&both), contract)
        }
    };
    outputs::write_json(&format!("{contract:#}"), args.json.as_deref()).map_err(not_measured)?;
    if !files.take_stdout() {
        print(&show::differing(&old.id, &new.id, &differences))?;
        print(&figures)?;
    }
    Ok(Exit::Met)
}

/// `stepladder export`
pub fn export(args: &ExportArgs) -> Answer {
    let store = Store::open(&args.store).map_err(climb::stored::no_store)?;
    let run = store.find_run(&args.run).map_err(wrong_usage)?;
    if let Some(folder) = &args.csv {
        store::export::csv(&store, &run, folder).map_err(not_measured)?;
        return Ok(Exit::Met);
    }
    if let Some(folder) = &args.hdr {
        store::export::hdr(&store, &run, folder).map_err(not_measured)?;
        return Ok(Exit::Met);
    }
    if let Some(path) = &args.ndjson {
        // Masked and sanitised in a file too, like the lines of a run that is followed.
        if path.as_path() == Path::new("-") {
            return exported(store::export::seconds(&store, &run, &mut say::stdout()));
        }
        outputs::check_writable("--ndjson", Some(path)).map_err(wrong_usage)?;
        let written = outputs::write_whole(path, |out| {
            Ok(store::export::seconds(&store, &run, &mut say::Harmless::new(out))?)
        });
        return written.map(|()| Exit::Met).map_err(not_measured);
    }
    match &args.output {
        Some(path) => {
            outputs::check_writable("--output", Some(path)).map_err(wrong_usage)?;
            let written = outputs::write_whole(path, |out| Ok(store::export::ndjson(&store, &run, out)?));
            written.map_err(not_measured)?;
        }
        None => return exported(store::export::ndjson(&store, &run, &mut say::stdout())),
    }
    Ok(Exit::Met)
}

/// What became of an export on standard output, which ends early where its reader has enough.
fn exported(outcome: Result<(), StoreError>) -> Answer {
    match outcome {
        Err(_) if say::has_reader_left() => Ok(Exit::Met),
        outcome => outcome.map(|()| Exit::Met).map_err(not_measured),
    }
}

/// `stepladder doctor`
pub fn doctor(args: &DoctorArgs) -> Answer {
    let mut out = say::stdout();
    let colour = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let target = args.target.as_deref().map(address_of).transpose().map_err(wrong_usage)?;
    if !args.grid {
        args.wait.enter(|| false)?;
    }
    let scope = if args.grid { doctor::Scope::Grid } else { doctor::Scope::Machine };
    doctor::report(&mut out, args.json, layout::width(), colour, (scope, target)).map_err(not_measured)?;
    Ok(Exit::Met)
}

/// `stepladder selftest`
pub fn selftest(args: &SelftestArgs, interrupt: &Interrupt) -> Answer {
    let (quick, only, json) = (args.quick, args.only.clone(), args.json.clone());
    let options = selftest::Options { quick, long: args.long || args.list && !quick, only, json };
    let cases = options.cases();
    if cases.is_empty() {
        let only = args.only.as_deref().unwrap_or_default();
        let long = selftest::Options { long: true, ..options.clone() }.cases();
        let remedy = if long.is_empty() {
            "no case contains this; stepladder selftest --list shows all"
        } else {
            "only cases of five minutes contain this; add --long"
        };
        return Err(wrong_usage(anyhow::anyhow!("--only {only}: {remedy}")));
    }
    if args.list {
        print(&selftest::plain(&cases))?;
        return Ok(Exit::Met);
    }
    args.wait.enter(|| interrupt.is_asked())?;
    selftest::run(&options, interrupt).map_err(not_measured)
}

/// `stepladder completions`
pub fn completions(shell: Shell) -> Answer {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "stepladder", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Met)
}

/// `stepladder man`
pub fn man(name: Option<&str>) -> Answer {
    let mut all = Cli::command();
    // Fills in the prefixes of the commands' names.
    all.build();
    let command = match name {
        None => all,
        Some(name) => all.find_subcommand(name).cloned().ok_or_else(|| {
            wrong_usage(anyhow::anyhow!("there is no command {name}; stepladder --help lists them"))
        })?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text).map_err(not_measured)?;
    print(&String::from_utf8_lossy(&text))?;
    Ok(Exit::Met)
}

/// Where a URL leads to; nothing is sent there.
fn address_of(url: &str) -> anyhow::Result<SocketAddr> {
    // A refused URL may contain a password, so it is not repeated.
    let target: Target = url.parse().context("--target")?;
    let addresses = lookup::addresses_of(&target).context("--target")?;
    Ok(addresses[0])
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = say::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // `stepladder runs | head` closes the pipe, which is no error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let what = "not everything could be printed on standard output";
            Err(not_measured(anyhow::Error::new(error).context(what)))
        }
        _ => Ok(()),
    }
}
