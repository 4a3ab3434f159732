//! The subject of a run: started or already running, its address, and its tick log.

mod ticks;

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Parser as _;
use console::say;
use plan::{BuiltIn, Plan, Scheme, SubjectSource, Target, TickSource, Transport};
use rustix::io::{FdFlags, fcntl_setfd};
use servers::Server;
use watch::{ControlGroup, ExitWatch, LinkKind, Listens, NetworkLink, Started, TickFeed, TickFeeds, TickLog};

use crate::consent::Consent;
use crate::probe::Asked;
use crate::trial::{Elsewhere, Generator, Sought, ThisProcess};
use crate::{lookup, probe, secrets};

pub use ticks::{follow_running, tick_names};

use ticks::{TicksFrom, follow, follow_file, named};

const READY_WITHIN: Duration = Duration::from_secs(20);

/// A subject that can be loaded.
pub struct RunningSubject {
    /// as written, or where the built-in server came to listen
    pub target: Target,
    /// the same, resolved and pinned
    pub address: SocketAddr,
    /// of a cluster of several members, all of them; else empty
    pub members: Vec<SocketAddr>,
    /// its process, where it is known
    pub pid: Option<u32>,
    /// its control group, where that was named
    pub group: Option<ControlGroup>,
    /// tells of its end
    pub exit: Option<ExitWatch>,
    /// where its ticks are read, at the places up to which they were
    pub ticks: TickFeeds,
    /// how often it ticks, where that was to be found
    pub found_rate: FoundRate,
    /// what watches its process on another machine
    pub elsewhere: Option<Arc<dyn Elsewhere>>,
    started: Option<Started>,
    /// options of a built-in server, after those of the plan: its cell's
    cell_options: Vec<String>,
    consent: Consent,
}

impl RunningSubject {
    /// Starts the subject where the plan says so, with the options of the first cell, and waits until it can be reached.
    pub fn start(plan: &Plan, consent: &Consent) -> anyhow::Result<Self> {
        Self::start_watched(plan, consent, &ThisProcess)
    }

    /// The same; what watches it elsewhere is the generator's.
    pub fn start_watched(plan: &Plan, consent: &Consent, generator: &dyn Generator) -> anyhow::Result<Self> {
        let cell_options = plan.ladder.cells.first().map(|cell| cell.options.clone()).unwrap_or_default();
        let started = Self::start_with(plan, consent, cell_options, TicksFrom::Nothing, generator)?;
        Ok(RunningSubject { consent: consent.clone(), ..started })
    }

    /// The same, without probing with a client first: the next one is checked closely anyway.
    pub fn start_unasked(plan: &Plan, consent: &Consent) -> anyhow::Result<Self> {
        Self::start_with(plan, consent, Vec::new(), TicksFrom::Present, &ThisProcess)
    }

    fn start_with(
        plan: &Plan,
        consent: &Consent,
        cell_options: Vec<String>,
        ticks_from: TicksFrom,
        generator: &dyn Generator,
    ) -> anyhow::Result<Self> {
        let watched_here = Some("it is started here");
        match &plan.subject.source {
            SubjectSource::BuiltIn { server, options } => {
                let options = [options.as_slice(), &cell_options].concat();
                let started = Self::start_built_in(plan, server, &options, ticks_from)?;
                let (address, listens) = (started.address, listens(&started.target));
                generator.watch(&Sought { plan, address, listens, watched_here })?;
                Ok(RunningSubject { cell_options, ..started })
            }
            SubjectSource::Started { command, target } => {
                let addresses = lookup::resolve(target, &plan.may_load, consent)?;
                let ticks = follow(plan, consent, ticks_from, None)?;
                let listens = listens(target);
                addresses.iter().try_for_each(|address| watch::refuse_taken(*address, listens))?;
                let started = Started::start(watch::shell(command), command)?;
                let address = started.wait_until_listening(&addresses, listens, READY_WITHIN)?;
                generator.watch(&Sought { plan, address, listens, watched_here })?;
                if ticks_from == TicksFrom::Nothing {
                    tell_which(target, &addresses, address);
                }
                let target = lookup::with_redirects(target, &plan.may_load, consent);
                let mut subject = Self::of_started(started, target, address, ticks);
                subject.probe(plan, ticks_from)?;
                subject.members = subject.find_members(plan, consent, ticks_from)?;
                Ok(subject)
            }
            SubjectSource::Running { target, pid, cgroup } => {
                let addresses = lookup::resolve(target, &plan.may_load, consent)?;
                let group =
                    cgroup.as_deref().map(ControlGroup::open).transpose().context("--watch-cgroup")?;
                let start_with = target.scheme.start_with(addresses[0]);
                let address =
                    watch::preflight::reach(&addresses, listens(target), &target.to_string(), &start_with)?;
                tell_which(target, &addresses, address);
                let exit = match pid {
                    Some(pid) => Some(
                        ExitWatch::of_running(*pid)
                            .with_context(|| format!("--pid {pid}: no such process can be watched"))?,
                    ),
                    None => None,
                };
                let watched_here = match (pid, cgroup) {
                    (Some(_), _) => Some("--pid names its process on this machine"),
                    (None, Some(_)) => Some("--watch-cgroup names its group on this machine"),
                    (None, None) => None,
                };
                let elsewhere =
                    generator.watch(&Sought { plan, address, listens: listens(target), watched_here })?;
                let ticks = follow(plan, consent, TicksFrom::Present, elsewhere.as_deref())?;
                let mut subject = RunningSubject {
                    target: lookup::with_redirects(target, &plan.may_load, consent),
                    address,
                    members: Vec::new(),
                    pid: *pid,
                    group,
                    exit,
                    ticks,
                    found_rate: FoundRate::NotYet,
                    elsewhere,
                    started: None,
                    cell_options,
                    consent: consent.clone(),
                };
                subject.probe(plan, ticks_from)?;
                subject.members = subject.find_members(plan, consent, ticks_from)?;
                Ok(subject)
            }
        }
    }

    /// All members of the cluster that the target belongs to, or all nodes that it names: each must be one that may be
    /// loaded. Empty where it is one alone.
    fn find_members(
        &self,
        plan: &Plan,
        consent: &Consent,
        ticks_from: TicksFrom,
    ) -> anyhow::Result<Vec<SocketAddr>> {
        if !self.target.others.is_empty() {
            return self.find_nodes(plan, consent, ticks_from);
        }
        if self.target.scheme.transport() != Transport::Hazelcast {
            return Ok(Vec::new());
        }
        probe::cluster::members(&self.target, self.address, |member| {
            lookup::check_may_load(member.ip(), &member.ip().to_string(), &plan.may_load, consent)
        })
    }

    /// The nodes that the target names, the first of which is known. Each lets a bot in.
    fn find_nodes(
        &self,
        plan: &Plan,
        consent: &Consent,
        ticks_from: TicksFrom,
    ) -> anyhow::Result<Vec<SocketAddr>> {
        let mut nodes = vec![self.address];
        for node in self.target.nodes().skip(1) {
            let addresses = lookup::resolve(&node, &plan.may_load, consent)?;
            let start_with = node.scheme.start_with(addresses[0]);
            let address =
                watch::preflight::reach(&addresses, listens(&node), &node.to_string(), &start_with)?;
            if nodes.contains(&address) {
                bail!("{}: {address} is named twice; name each node once", self.target);
            }
            probe::lets_in(plan, &node, address, asked(ticks_from)).with_context(|| node.to_string())?;
            nodes.push(address);
        }
        if ticks_from == TicksFrom::Nothing {
            say::err_line!("stepladder: {} nodes, to which bots go in turn: {}", nodes.len(), self.target);
        }
        Ok(nodes)
    }

    /// A reference server as a separate process on a free loopback port.
    fn start_built_in(
        plan: &Plan,
        server: &str,
        options: &[String],
        ticks_from: TicksFrom,
    ) -> anyhow::Result<Self> {
        let mut command = own_command()?;
        let server = served_as(server);
        command.arg("serve").arg(server);
        let has = |name: &str| {
            options.iter().any(|option| option == name || option.starts_with(&format!("{name}=")))
        };
        if !has("--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let ticks_from = if has("--append") { TicksFrom::Present } else { ticks_from };
        let (mut is_own, mut tick_log) = (false, None);
        let log = plan.subject.tick_sources().enumerate().find_map(|(at, source)| match source {
            TickSource::Log(named) => Some((at, named)),
            _ => None,
        });
        if let Some((_, named)) = log {
            let rate_hz = plan.subject.tick_rate_hz;
            let chosen = value_of(options, "--tick-log").map(PathBuf::from);
            if let Some(path) = named.as_ref().or(chosen.as_ref()) {
                if chosen.is_none() {
                    command.arg("--tick-log").arg(path);
                }
                tick_log = Some(follow_file(path, rate_hz, ticks_from)?);
            } else {
                // An unnamed file: nothing is left behind, however this ends.
                let file = tempfile::tempfile()
                    .context("no temporary file for the server's tick log; check TMPDIR")?;
                let path = handed_on(&file, &mut command)?;
                command.arg("--tick-log").arg(path);
                let followed = TickLog::of_unnamed(file, rate_hz);
                tick_log = Some(followed.context("the server's tick log cannot be read")?);
                is_own = true;
            }
        }
        let is_there = ticks_from == TicksFrom::Present || is_own;
        // A server without ticks has no such option.
        if tick_log.is_some() && is_there && !has("--append") {
            command.arg("--append");
        }
        command.args(secrets::of_options(options)?);
        let shown =
            std::iter::once(format!("serve {server}")).chain(options.iter().cloned()).collect::<Vec<_>>();
        let started = Started::start(command, &format!("stepladder {}", shown.join(" ")))?;
        let (target, address) = announced(&started)?;
        let names = tick_names(plan);
        let feeds = tick_log.zip(log).map(|(file, (at, _))| named(&names, at, file.into()));
        let ticks = TickFeeds { feeds: feeds.into_iter().collect(), names };
        Ok(Self::of_started(started, target, address, ticks))
    }

    /// The null server that speaks as a subject of `scheme` does below its own words, for calibration.
    pub fn start_null(scheme: Scheme) -> anyhow::Result<Self> {
        let protocol = scheme.transport().null_protocol();
        let mut command = own_command()?;
        command.args(["serve", "null", "--protocol", protocol, "--listen", "127.0.0.1:0"]);
        let started = Started::start(command, &format!("stepladder serve null --protocol {protocol}"))?;
        let (target, address) = announced(&started)?;
        Ok(Self::of_started(started, target, address, TickFeeds::default()))
    }

    fn of_started(started: Started, target: Target, address: SocketAddr, ticks: TickFeeds) -> Self {
        RunningSubject {
            target,
            address,
            members: Vec::new(),
            pid: Some(started.pid()),
            group: None,
            exit: Some(started.exit_watch()),
            ticks,
            found_rate: FoundRate::NotYet,
            elsewhere: None,
            started: Some(started),
            cell_options: Vec::new(),
            consent: Consent::Own,
        }
    }

    /// After the first load, the lowest: keeps the tick rate that its ticks showed, and says so. Where they showed none its ticks are
    /// not read further, because a server that is slow under a higher load would be measured by its own slowness.
    pub fn keep_rate(&mut self, plan: &Plan) -> Option<String> {
        if !plan.subject.finds_tick_rate() || self.found_rate != FoundRate::NotYet {
            return None;
        }
        let there = self.elsewhere.as_ref().and_then(|elsewhere| elsewhere.tick_rate_hz());
        if let Some(hz) = self.ticks.judged().and_then(TickFeed::rate_hz).or(there) {
            self.found_rate = FoundRate::Hz(hz);
            return Some(format!(
                "tick rate {} Hz, found from the intervals at the lowest load and kept; --tick-rate says another",
                (hz * 1e3).round() / 1e3
            ));
        }
        (self.found_rate, self.ticks) = (FoundRate::None, TickFeeds::default());
        self.elsewhere.iter().for_each(|elsewhere| elsewhere.forget_ticks());
        Some(
            "the lowest load showed no tick rate, so no ticks are read; say it, as with --tick-rate 30"
                .to_owned(),
        )
    }

    /// What was found of its ticks in an earlier run.
    pub(crate) fn found_before(&mut self, found: FoundRate) {
        self.found_rate = found;
        if found == FoundRate::None {
            self.ticks = TickFeeds::default();
            self.elsewhere.iter().for_each(|elsewhere| elsewhere.forget_ticks());
        }
    }

    /// Whether it runs on this machine, as far as that can be known.
    pub fn is_here(&self) -> bool {
        let link = NetworkLink::to(self.address);
        self.pid.is_some() || self.group.is_some() || link.is_ok_and(|link| link.kind == LinkKind::Loopback)
    }

    /// Whether its CPU could be that of a program of this machine, unless its process is watched here.
    pub fn is_hidden_here(&self) -> bool {
        match &self.elsewhere {
            // Where it is watched on this machine all the same, its process is known (`Load::pids`).
            Some(elsewhere) => elsewhere.is_hidden_here(),
            // If no route can be found, assume that it is here; other programs are then not blamed.
            None => NetworkLink::to(self.address).map_or(true, |link| link.kind == LinkKind::Loopback),
        }
    }

    /// True when its process has ended.
    pub fn has_ended(&self) -> bool {
        self.exit.as_ref().is_some_and(|exit| exit.peek().is_some())
            || self.elsewhere.as_ref().is_some_and(|elsewhere| elsewhere.has_ended())
    }

    /// What it printed last, once it has ended; `None` for one that we did not start, whose output we do not see.
    pub fn last_output(&self) -> Option<String> {
        self.started.as_ref().and_then(Started::last_output)
    }

    /// A fresh subject in place of this one, with the same options; one that we did not start goes on.
    pub fn restart(&mut self, plan: &Plan) -> anyhow::Result<()> {
        let cell_options = std::mem::take(&mut self.cell_options);
        self.restart_with(plan, cell_options)
    }

    /// A fresh subject with a cell's options after those of the plan; one that we did not start keeps running.
    pub fn restart_with(&mut self, plan: &Plan, cell_options: Vec<String>) -> anyhow::Result<()> {
        if self.started.is_some() {
            self.end();
            // Its address is needed again.
            self.ticks = TickFeeds::default();
            let (consent, found_rate) = (self.consent.clone(), self.found_rate);
            let mut plan = plan.clone();
            self.found_rate.put_into(&mut plan);
            let plan = &plan;
            let started =
                RunningSubject::start_with(plan, &consent, cell_options, TicksFrom::Present, &ThisProcess)?;
            *self = RunningSubject { consent, found_rate, ..started };
            if self.found_rate == FoundRate::None {
                self.ticks = TickFeeds::default();
            }
        }
        Ok(())
    }

    /// Asks what was started to end (SIGTERM), and does not wait for it.
    pub fn tell_to_end(&self) {
        if let Some(started) = &self.started {
            started.tell_to_end();
        }
    }

    /// How it has ended; `None` while it runs.
    pub fn ended(&self) -> Option<watch::Exit> {
        self.exit.as_ref()?.peek()
    }

    /// The same subject again, where it listened before; it has ended.
    pub fn start_again(&mut self, plan: &Plan) -> anyhow::Result<()> {
        let cell_options = std::mem::take(&mut self.cell_options);
        let is_built_in = matches!(plan.subject.source, SubjectSource::BuiltIn { .. });
        let listen =
            if is_built_in { vec!["--listen".to_owned(), self.address.to_string()] } else { Vec::new() };
        self.restart_with(plan, [cell_options.as_slice(), &listen].concat())?;
        self.cell_options = cell_options;
        Ok(())
    }

    /// Whether this subject runs with a cell's options, so that it need not be started anew for it.
    pub fn has_options(&self, cell_options: &[String]) -> bool {
        self.cell_options == cell_options
    }

    /// Whether it lets bots in at all, and answers them. Our own servers do.
    fn probe(&self, plan: &Plan, ticks_from: TicksFrom) -> anyhow::Result<()> {
        let lets_in = probe::lets_in(plan, &self.target, self.address, asked(ticks_from));
        lets_in.map_err(|error| match self.ended() {
            Some(exit) => {
                let output = self.last_output().filter(|output| !output.is_empty());
                let output = output.map_or(String::new(), |output| format!("; its last output: {output}"));
                error.context(format!("the server ended before there was any load ({exit}{output})"))
            }
            None => error,
        })
    }

    /// Whether it was started here.
    pub fn is_started(&self) -> bool {
        self.started.is_some()
    }

    /// Ends what was started, and says whether it was; what ran before goes on.
    pub fn end_if_started(&mut self) -> bool {
        let is_started = self.is_started();
        self.end();
        is_started
    }

    /// Stops what was started; what ran before goes on.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(trouble) = self.started.take().and_then(|started| started.stop().trouble()) {
            say::err_line!("stepladder: {trouble}");
        }
    }
}

/// A tick rate that the plan does not say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FoundRate {
    /// no load was held yet
    NotYet,
    /// at the lowest load, Hz
    Hz(f64),
    /// not at the lowest load, and a higher one would not tell it
    None,
}

impl FoundRate {
    /// The plan says it from now on.
    pub fn put_into(self, plan: &mut Plan) {
        if let (FoundRate::Hz(hz), true) = (self, plan.subject.finds_tick_rate()) {
            plan.subject.tick_rate_hz = hz;
        }
    }
}

fn asked(ticks_from: TicksFrom) -> Asked {
    if ticks_from == TicksFrom::Nothing { Asked::Fresh } else { Asked::Again }
}

/// How this server shows that it is there.
fn listens(target: &Target) -> Listens {
    if target.scheme.transport() == Transport::Udp { Listens::Datagrams } else { Listens::Stream }
}

fn tell_which(target: &Target, addresses: &[SocketAddr], taken: SocketAddr) {
    if let Some(words) = lookup::which_was_taken(target, addresses, taken) {
        say::err_line!("stepladder: {words}");
    }
}

/// Where one of our servers says that it listens, in the first line it prints; the URL's scheme says what it speaks.
fn announced(started: &Started) -> anyhow::Result<(Target, SocketAddr)> {
    let url = started.wait_for_url(READY_WITHIN)?;
    let said = || format!("the server says that it listens on `{url}`");
    let target: Target = url.trim_end_matches('/').parse().with_context(said)?;
    let ip = target.literal_address().with_context(said)?;
    let address = SocketAddr::new(ip, target.port);
    Ok((target, address))
}

fn own_command() -> anyhow::Result<Command> {
    Ok(Command::new(std::env::current_exe().context("the path of this program is not known")?))
}

/// Lets a command inherit an open file; returns the path by which it can open it. Errors: no more descriptors.
fn handed_on(file: &File, command: &mut Command) -> anyhow::Result<String> {
    let descriptor = file.try_clone().context("the server's tick log cannot be handed on")?;
    let path = format!("/proc/self/fd/{}", descriptor.as_raw_fd());
    // SAFETY: between fork and exec, a system call on a descriptor that the closure owns; it takes no lock and no memory.
    unsafe { command.pre_exec(move || Ok(fcntl_setfd(&descriptor, FdFlags::empty())?)) };
    Ok(path)
}

/// Reads the options of a built-in server as the server itself will, before anything is started.
pub fn check_options(plan: &Plan) -> anyhow::Result<()> {
    let SubjectSource::BuiltIn { server, options } = &plan.subject.source else { return Ok(()) };
    let server = served_as(server);
    let whole = std::iter::once(options.clone());
    let of_cells = plan.ladder.cells.iter().map(|cell| [options.as_slice(), &cell.options].concat());
    // The common options first, so that a cell's are not blamed for them.
    for options in whole.chain(of_cells) {
        let options = secrets::of_options(&options)?;
        let words = ["serve", server].into_iter().chain(options.iter().map(String::as_str));
        let Err(error) = Serve::try_parse_from(words) else { continue };
        let text = error.to_string();
        let first = text.split("\n\n").next().unwrap_or_default().trim();
        let why = first.strip_prefix("error: ").unwrap_or("they ask for help");
        bail!("options after --: {why}; all of them: stepladder serve {server} --help")
    }
    Ok(())
}

/// What a server that `serve` starts would read.
#[derive(clap::Parser)]
struct Serve {
    #[command(subcommand)]
    _server: Server,
}

/// What `stepladder serve` calls it.
fn served_as(server: &str) -> &str {
    BuiltIn::named(server).map_or(server, |built_in| built_in.served_as)
}

fn value_of<'a>(options: &'a [String], name: &str) -> Option<&'a str> {
    let mut options = options.iter();
    while let Some(option) = options.next() {
        match option.strip_prefix(name) {
            Some("") => return options.next().map(String::as_str),
            Some(rest) if rest.starts_with('=') => return Some(&rest[1..]),
            _ => {}
        }
    }
    None
}
