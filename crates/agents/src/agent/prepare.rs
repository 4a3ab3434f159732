//! From an order to workers that can begin: the plan is read, allowed, split, and filled in from this machine's environment.

use std::io;

use anyhow::{Context as _, bail};
use climb::consent::Consent;
use climb::preflight::Machine;
use climb::subject::RunningSubject;
use climb::trial::ThreadOptions;
use climb::{lookup, secrets};
use plan::{Plan, Target, WorkerPlan, needs};
use watch::{LinkKind, NetworkLink};

use crate::limits::{Limits, rate_of};
use crate::messages::{Bundle, Order};
use crate::share::{bots_of, share_of, units_of};

/// Workers that can begin.
pub(super) struct Prepared {
    pub(super) order: Order,
    pub(super) workers: Vec<WorkerPlan>,
    pub(super) target: Target,
    pub(super) options: ThreadOptions,
    /// the way to the subject
    pub(super) link: String,
    /// its own null server, where that is the subject
    pub(super) null: Option<RunningSubject>,
    /// in each second of it
    pub(super) limits: Limits,
    bots: u64,
}

impl Prepared {
    /// `plays 250 bots in 2 threads against ws://10.0.0.1:7000`
    pub(super) fn words(&self) -> String {
        let threads = if self.workers.len() == 1 { "thread" } else { "threads" };
        format!("plays {} bots in {} {threads} against {}", self.bots, self.workers.len(), self.target)
    }
}

/// Errors: it may not load this target, is given more bots than it plays, or lacks something.
pub(super) fn prepare(
    order: Order,
    bundle: &Bundle,
    limits: Limits,
    may_load: &[String],
) -> anyhow::Result<Prepared> {
    let mut plan: Plan = serde_json::from_str(&bundle.plan).context("its plan cannot be read")?;
    plan.generator.workers = Some(order.workers);
    let range = order.first..order.first + order.count;
    let units = plan.bots.units(order.load);
    let own = units_of(&range, units, order.workers);
    let bots = bots_of(needs(&plan, order.load).bots, own, units);
    // The null server of a calibration is its own, so its user's limit of a rate does not apply.
    let limits = if order.null.is_some() { Limits { rate_most: None, ..limits } } else { limits };
    let rate_per_s = rate_of(&plan, order.load).map(|per_s| share_of(per_s, own, units));
    if let Some(why) = limits.refusal(bots, rate_per_s) {
        bail!("it {why}");
    }
    let machine = Machine::prepare()?;
    machine.workers(&plan, order.load)?;
    let null = order.null.map(RunningSubject::start_null).transpose()?;
    let (mut target, address) = match &null {
        Some(null) => (null.target.clone(), null.address),
        None => (order.target.clone(), order.address),
    };
    for address in std::iter::once(&address).chain(&order.members) {
        lookup::check_may_load(address.ip(), &target.host, may_load, &Consent::Own)
            .context("an agent asks its own user (agent --i-may-load HOST)")?;
    }
    target
        .redirects_to
        .retain(|(host, ip)| lookup::check_may_load(*ip, host, may_load, &Consent::Own).is_ok());
    let sources = if address.ip().is_loopback() {
        machine.sources(&plan, order.load, address)?
    } else {
        if bots > machine.ports {
            bail!("its {bots} bots need more than the {} local ports of its address", machine.ports);
        }
        Vec::new()
    };
    let mut workers = plan::split(&plan, order.load, &target, address, order.workers, &sources);
    if workers.len() != order.workers || range.end > workers.len() {
        bail!("its part of the plan is of {} workers and not of {}", workers.len(), order.workers);
    }
    workers = workers.drain(range).collect();
    for worker in &mut workers {
        worker.request = order.request;
        worker.members.clone_from(&order.members);
        worker.recovery_share = order.recovery_share;
        worker.clock_bound_ns = order.clock_bound_ns;
    }
    secrets::fill_in_reading(&mut workers, &|path| {
        let wanted = path.to_string_lossy();
        let file = bundle.files.iter().find(|(name, _)| *name == wanted);
        file.map(|(_, text)| text.clone()).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    })?;
    let options = ThreadOptions::of(&plan, &machine.cores);
    let link = words(&NetworkLink::to(address)?);
    Ok(Prepared { order, workers, target, options, link, null, limits, bots })
}

fn words(link: &NetworkLink) -> String {
    let speed = link.bits_per_s.map_or(String::new(), |bits| format!(", {} Mbit/s", bits / 1_000_000));
    let kind = if link.kind == LinkKind::Wireless { ", wireless" } else { "" };
    format!("{}{speed}{kind}", link.interface)
}
