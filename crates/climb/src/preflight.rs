//! Before any load: does this machine have the descriptors, ports, addresses and memory that the ladder needs?

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context as _, bail};
use ladder::SearchSchedule;
use ladder::wording::show_bytes;
use plan::{Plan, WorkerPlan, loopback_sources, needs, sources_for, workers_for};
use procfs::{Current as _, Meminfo};
use watch::{LinkKind, NetworkLink};

use crate::secrets;

/// Descriptors of one table that are not bots' sockets.
const SPARE_DESCRIPTORS: u64 = 200;
/// How long the kernel keeps the port of a connection that we closed.
const TIME_WAIT_S: f64 = 60.0;
/// More than any worker is given where the system sets no limit.
const UNLIMITED_DESCRIPTORS: u64 = 1_000_000;

/// The ledger may take this part of the memory that is available: server, kernel buffers and bots want theirs too.
const LEDGER_PART: u64 = 3;

/// What the machine gives.
#[derive(Clone, Debug)]
pub struct Machine {
    /// descriptors per table, after the soft limit was raised
    pub descriptors: u64,
    /// cores this process may use
    pub cores: Vec<usize>,
    /// ephemeral ports per source address and target
    pub ports: u64,
    /// memory that can be taken without swapping, bytes; `None` where the system does not tell
    pub memory_bytes: Option<u64>,
}

impl Machine {
    /// Raises the soft limit of descriptors to the hard one and looks around.
    pub fn prepare() -> anyhow::Result<Self> {
        let descriptors = watch::preflight::raise_descriptors()
            .context("the descriptor limit cannot be raised")?
            .unwrap_or(UNLIMITED_DESCRIPTORS);
        Ok(Machine {
            descriptors,
            cores: watch::cores::of_this_thread().context("the allowed cores cannot be read")?,
            ports: watch::preflight::Ports::read().count(),
            memory_bytes: Meminfo::current().ok().and_then(|memory| memory.mem_available),
        })
    }

    /// How many worker threads carry `load` units. Errors: the plan's own number is too small for the descriptors.
    pub fn workers(&self, plan: &Plan, load: f64) -> anyhow::Result<usize> {
        let needs = needs(plan, load);
        let Some(workers) = plan.generator.workers else {
            return Ok(workers_for(needs.connections_most, self.cores.len(), self.descriptors));
        };
        let each = needs.descriptors.div_ceil(workers.max(1) as u64) + SPARE_DESCRIPTORS;
        if each > self.descriptors {
            bail!(
                "rung {load}: {} connections over {workers} workers need {each} descriptors each, and this process may \
                 have {} per table; use --workers {} or raise the hard limit (ulimit -Hn)",
                needs.connections_most,
                self.descriptors,
                workers_for(needs.connections_most, 1, self.descriptors)
            );
        }
        Ok(workers)
    }

    /// Source addresses for `load` units. Errors: too few ports, and the target is not on loopback.
    pub fn sources(&self, plan: &Plan, load: f64, to: SocketAddr) -> anyhow::Result<Vec<IpAddr>> {
        let needs = needs(plan, load);
        let count = sources_for(needs.connections_most, needs.opens_per_s, self.ports);
        let is_v4_loopback = matches!(to.ip(), IpAddr::V4(address) if address.is_loopback());
        if !is_v4_loopback && needs.connections_most > self.ports {
            bail!(
                "rung {load}: {} connections to {to} need more than the {} local ports of one source address; \
                 lower the rung, or widen net.ipv4.ip_local_port_range",
                needs.connections_most,
                self.ports
            );
        }
        // Closed connections keep their port for a minute (TIME_WAIT), so a climb uses a few more than it needs at
        // once.
        Ok(loopback_sources(if is_v4_loopback { count.max(4) * 2 } else { 1 }, to.ip()))
    }

    /// Errors: the deliveries of `load` clients cannot be kept in memory.
    pub fn ledger(&self, plan: &Plan, load: f64) -> anyhow::Result<()> {
        let (Some(available), Some(broadcast)) = (self.memory_bytes, plan.bots.broadcast(load)) else {
            return Ok(());
        };
        let (needed, allowed) = (needs(plan, load).ledger_bytes, available / LEDGER_PART);
        if needed <= allowed {
            return Ok(());
        }
        let talkers = broadcast.senders;
        bail!(
            "rung {load}: who got what of {talkers} talkers to {load} clients takes {} of memory, and of the {} that are \
             available the ledger may take {}; take fewer clients, or let fewer of them talk (--talkers N)",
            show_bytes(needed as f64),
            show_bytes(available as f64),
            show_bytes(allowed as f64)
        )
    }

    /// The plan; a search in it goes no further than descriptors and memory of this machine do.
    pub fn within_reach(&self, plan: &Plan) -> Plan {
        let mut plan = plan.clone();
        let Some(search) = plan.ladder.search.clone() else { return plan };
        let is_possible = |load: f64| self.workers(&plan, load).is_ok() && self.ledger(&plan, load).is_ok();
        // If the start is out of reach, `check` reports why.
        if is_possible(search.most) || !is_possible(search.start) {
            return plan;
        }
        let (mut most, mut beyond) = (search.start, search.most);
        while beyond / most > 1.01 {
            let middle = (most * beyond).sqrt();
            let bound = if is_possible(middle) { &mut most } else { &mut beyond };
            *bound = middle;
        }
        plan.ladder.search = Some(SearchSchedule { most: most.floor().max(search.start), ..search });
        plan
    }

    /// Checks every rung before the first one is climbed.
    pub fn check(&self, plan: &Plan, to: Option<SocketAddr>) -> anyhow::Result<()> {
        secrets::check(plan)?;
        for &load in &plan.ladder.rungs {
            self.load(plan, load, to)?;
        }
        let Some((factor, base, load)) = ladder::highest_overload(&plan.ladder.rungs, &plan.ladder.overload)
        else {
            return Ok(());
        };
        self.load(plan, load, to).with_context(|| {
            format!("--overload {factor} would hold {load} if {base} held, and this machine cannot; take a smaller factor")
        })
    }

    fn load(&self, plan: &Plan, load: f64, to: Option<SocketAddr>) -> anyhow::Result<()> {
        self.workers(plan, load)?;
        self.ledger(plan, load)?;
        to.map_or(Ok(()), |to| self.sources(plan, load, to).map(drop))
    }

    /// The plan of every worker for one load, with what the environment fills in.
    pub fn split(
        &self,
        plan: &Plan,
        load: f64,
        to: (&plan::Target, SocketAddr),
    ) -> anyhow::Result<Vec<WorkerPlan>> {
        let (workers, sources) = (self.workers(plan, load)?, self.sources(plan, load, to.1)?);
        let mut workers = plan::split(plan, load, to.0, to.1, workers, &sources);
        secrets::fill_in(&mut workers)?;
        Ok(workers)
    }
}

/// What is worth knowing before the first rung: the link, where it is not loopback, and ports that may run out on it.
pub fn warnings(plan: &Plan, to: SocketAddr) -> Vec<String> {
    let mut warnings = Vec::new();
    let Ok(link) = NetworkLink::to(to) else { return warnings };
    if link.kind == LinkKind::Loopback {
        return warnings;
    }
    warnings.push(match link.kind {
        LinkKind::Wireless => format!(
            "{to} is reached by {link}: radio changes its speed and its latency by itself, and rungs will differ for it"
        ),
        _ => format!("{to} is reached by {link}"),
    });
    let ports = watch::preflight::Ports::read().count();
    // If each request has its own connection, none is kept open.
    let needs =
        plan.ladder.rungs.iter().map(|&load| needs(plan, load)).filter(|needs| needs.connections == 0);
    let most = needs.map(|needs| needs.opens_per_s).fold(0.0, f64::max);
    // The side that closes a connection keeps its port for a minute. Servers often close after each answer, but not
    // always.
    let kept_per_s = ports as f64 / TIME_WAIT_S;
    if most > kept_per_s {
        warnings.push(format!(
            "a connection for each request: where this side ends them, {ports} local ports last for {kept_per_s:.0} \
             connections/s; keep connections, or watch for \"no ports\" among the errors"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use plan::{Flags, resolve};

    use super::*;

    /// What the ledger of a climb of the chat is refused with, on a machine with 3 GB to spare.
    fn refusal(line: &str) -> Option<String> {
        let plan = resolve(&Flags::of(line), None, 1).expect("a plan");
        let memory_bytes = Some(3_000_000_000);
        let machine = Machine { descriptors: 1_000_000, cores: vec![0, 1], ports: 28_232, memory_bytes };
        machine.check(&plan, None).err().map(|error| format!("{error:#}"))
    }

    #[test]
    fn a_ledger_that_does_not_fit_is_refused_with_both_figures_and_a_remedy() {
        assert_eq!(refusal("chat --rungs 1000,10000"), None);
        assert_eq!(
            refusal("chat --rungs 1000,20000").as_deref(),
            Some(
                "rung 20000: who got what of 20000 talkers to 20000 clients takes 3.22 GB of memory, and of the 3 GB that \
                 are available the ledger may take 1 GB; take fewer clients, or let fewer of them talk (--talkers N)"
            )
        );
        assert_eq!(refusal("chat --rungs 1000,20000 --talkers 1000"), None);
    }

    #[test]
    fn a_multiple_of_the_capacity_that_this_machine_cannot_hold_is_refused_before_the_first_rung() {
        assert_eq!(refusal("chat --rungs 6000,10000 --overload 1.5"), None, "9000 at most");
        let said = refusal("chat --rungs 6000,10000 --overload 1.5,3").expect("a refusal");
        assert!(
            said.starts_with(
                "--overload 3 would hold 18000 if 6000 held, and this machine cannot; take a smaller factor: \
                 rung 18000: who got what"
            ),
            "{said}"
        );
        // With one rung no load can hold below one that failed.
        assert_eq!(refusal("chat --rungs 6000 --overload 3"), None);
    }

    #[test]
    fn nothing_is_said_of_loopback() {
        let plan = resolve(&Flags::of("http://127.0.0.1:1 --no-keep-alive"), None, 1).expect("a plan");
        assert_eq!(warnings(&plan, ([127, 0, 0, 1], 1).into()), Vec::<String>::new());
    }

    #[test]
    fn a_connection_for_each_request_gets_source_addresses_and_every_core() {
        let flags = Flags::of("http://127.0.0.1:1 --no-keep-alive --rate 5000");
        let plan = resolve(&flags, None, 1).expect("a plan");
        let machine =
            Machine { descriptors: 1_000_000, cores: vec![0, 1], ports: 28_232, memory_bytes: None };
        assert_eq!(machine.workers(&plan, 5000.0).expect("workers"), 2);
        let sources = machine.sources(&plan, 5000.0, ([127, 0, 0, 1], 1).into()).expect("sources");
        assert_eq!(sources.len(), 22, "11 for the ports of a minute, and as many again");
    }

    #[test]
    fn this_machine_tells_how_much_memory_it_has() {
        let machine = Machine::prepare().expect("a machine");
        assert!(machine.memory_bytes > Some(10_000_000), "{machine:?}");
    }
}
