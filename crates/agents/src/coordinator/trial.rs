//! One trial with agents: clocks are compared, shares are handed out, all begin at one instant, and the phases are announced.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use climb::trial::{Counts, Load, Start, TrialSpec};
use engine::Collector;
use futures_util::future::join_all;
use measure::trial::kind;
use measure::{AgentFacts, Entry, Event, ProcessMetric, Reading, Sample};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::intake::{Intake, Part};
use super::{ANSWERS_WITHIN, Inner, Member, READY_WITHIN, asked, bundle, compare_clocks, lock, reason};
use crate::clocks::{Offset, bound_between};
use crate::merge::Samples;
use crate::messages::{Announcement, Answer, Ask, Begin, Order, announcements_of, to_json};
use crate::share::{bots_of, shares, units_of};
use crate::{BROKER_GONE_NS, GONE_NS};

/// Between the word that all are ready and the zero of the clock.
const LEAD_NS: u64 = 500_000_000;
/// Instants are announced so long ahead: a message through the broker takes a millisecond or a few, and may be lost once.
const AHEAD_NS: u64 = 600_000_000;
/// How often it is looked whether there is something to announce, and how often it is said again.
const LOOKS_EVERY: Duration = Duration::from_millis(10);
const SAID_EVERY: Duration = Duration::from_millis(100);
/// How long an agent that must end may take.
const ENDS_WITHIN: Duration = Duration::from_secs(4);
/// Of how an agent calls its link.
const LINK_CHARS: usize = 60;
/// A turn of pairing that takes longer is over: its agent is gone or stuck.
const PAIRS_WITHIN: Duration = Duration::from_secs(5);

/// The load of one trial, made by agents.
pub(super) struct AgentsLoad {
    inner: Arc<Inner>,
    runtime: Handle,
    trial: u32,
    /// numbers of the agents that take part, with their clocks
    agents: Vec<(usize, Offset, AgentFacts)>,
    names: Arc<measure::MetricNames>,
    bots: u32,
    /// of agents on this machine
    pids: Vec<u32>,
    /// our own machine carries a part of the load, or the subject
    is_machine_of_ours: bool,
    in_turns: bool,
    tasks: Vec<JoinHandle<()>>,
    has_ended: bool,
    /// what was known of the agents at the end
    facts: Vec<AgentFacts>,
}

impl AgentsLoad {
    pub(super) async fn prepare(
        inner: Arc<Inner>,
        runtime: &Handle,
        spec: &TrialSpec<'_>,
    ) -> anyhow::Result<AgentsLoad> {
        inner.replace_lost().await;
        let (members, left) = (inner.members(), inner.left());
        if left.is_empty() {
            let why = members.iter().filter_map(|member| {
                let lost = lock(&member.lost).clone()?;
                Some(format!("{}: {lost}", member.hello.name))
            });
            bail!("no agent is left ({})", why.collect::<Vec<_>>().join("; "));
        }
        let workers = spec.workers.len();
        let weights: Vec<u32> = left.iter().map(|number| members[*number].hello.cores).collect();
        let dealt: Vec<_> =
            left.into_iter().zip(shares(workers, &weights)).filter(|(_, range)| !range.is_empty()).collect();
        let name = inner.link.put_bundle(&bundle(&spec.plan)?).await?;
        let first = spec.workers.first().context("a load without workers")?;
        let address = first.address;
        let here = &inner.place;
        if address.ip().is_loopback() && spec.null.is_none() {
            let hellos = dealt.iter().map(|(number, _)| &members[*number].hello);
            if let Some(other) =
                hellos.into_iter().find(|hello| (&hello.boot, &hello.net) != (&here.boot, &here.net))
            {
                bail!(
                    "{} listens at {address}, which agent {} on {} cannot reach; let it listen at an address of this machine's network \
                     (for a built-in server: -- --listen ADDRESS:0)",
                    spec.target,
                    other.name,
                    other.host
                );
            }
        }
        let compared =
            join_all(dealt.iter().map(|(number, _)| compare_clocks(&inner.link, &members[*number].hello)));
        let mut offsets = Vec::new();
        for ((number, _), offset) in dealt.iter().zip(compared.await) {
            match offset {
                Ok(offset) => offsets.push(offset),
                Err(error) => inner.lose(&mut lock(&inner.intake), *number, &error.to_string()),
            }
        }
        if offsets.len() < dealt.len() {
            // It ended between two loads: those that are left, or others, make this one.
            return Box::pin(AgentsLoad::prepare(inner, runtime, spec)).await;
        }
        let trial = inner.trials.fetch_add(1, Relaxed);
        // Processes of the agents that are where `boot` and `pids` say.
        let pids_at = |boot: &str, pids: &str| -> Vec<u32> {
            let hellos = dealt.iter().map(|(number, _)| &members[*number].hello);
            hellos.filter(|hello| hello.boot == boot && hello.pids == pids).map(|hello| hello.pid).collect()
        };
        let (pids, mut seen) = (pids_at(&here.boot, &here.pids), vec![here.boot.clone()]);
        let in_turns = dealt.len() > 1 && spec.plan.bots.pairs_by_arrival();
        let mut orders = Vec::new();
        for (number, range) in &dealt {
            let hello = &members[*number].hello;
            // One agent reads each machine; ours is read here.
            let reads_machine = !seen.contains(&hello.boot);
            seen.push(hello.boot.clone());
            let mut load_pids = pids_at(&hello.boot, &hello.pids);
            load_pids.retain(|pid| *pid != hello.pid);
            load_pids.extend(inner.watched_pids(&hello.boot, &hello.pids));
            orders.push(Order {
                trial,
                bundle: name.clone(),
                load: spec.load,
                target: spec.target.clone(),
                address,
                members: first.members.clone(),
                request: first.request,
                recovery_share: first.recovery_share,
                null: spec.null,
                workers,
                first: range.start,
                count: range.len(),
                clock_bound_ns: bound_between(&offsets),
                reads_machine,
                load_pids,
                in_turns,
            });
        }
        let units = spec.plan.bots.units(spec.load);
        let ready = join_all(dealt.iter().zip(orders).map(|((number, _), order)| {
            let (inner, hello) = (&inner, &members[*number].hello);
            async move { asked(&inner.link, hello, &Ask::Prepare(Box::new(order)), READY_WITHIN).await }
        }));
        let mut agents = Vec::new();
        for (((number, range), offset), answer) in dealt.iter().zip(offsets).zip(ready.await) {
            let Member { hello, has_played, .. } = &*members[*number];
            let why = match answer {
                Ok(Answer::Ready(link)) => Ok(link),
                Ok(other) if trial > 0 && !has_played.load(Relaxed) => Err(reason(other)),
                Ok(other) => bail!("agent {}: {}", hello.name, reason(other)),
                Err(error) => Err(error.to_string()),
            };
            let link = match why {
                Ok(link) => link,
                Err(why) => {
                    // One that ended, or that came later and cannot play this: others make the load.
                    inner.lose(&mut lock(&inner.intake), *number, &why);
                    continue;
                }
            };
            let facts = AgentFacts {
                name: hello.name.clone(),
                bots: bots_of(spec.head.bots, units_of(range, units, workers), units),
                workers: range.len() as u32,
                clock_bound_ns: offset.bound_ns,
                clock_offset_ns: offset.offset_ns,
                round_trip_ns: offset.round_trip_ns,
                link: measure::plain_text(&link, LINK_CHARS),
                ..AgentFacts::default()
            };
            agents.push((*number, offset, facts));
        }
        if agents.len() < dealt.len() {
            return Box::pin(AgentsLoad::prepare(inner, runtime, spec)).await;
        }
        dealt.iter().for_each(|(number, _)| members[*number].has_played.store(true, Relaxed));
        let is_machine_of_ours = spec.is_here || !pids.is_empty();
        let (runtime, names) = (runtime.clone(), spec.head.metric_names.clone());
        Ok(AgentsLoad {
            inner,
            runtime,
            trial,
            agents,
            names,
            bots: u32::try_from(spec.head.bots.max(first.units_total)).unwrap_or(u32::MAX),
            pids,
            is_machine_of_ours,
            in_turns,
            tasks: Vec::new(),
            has_ended: false,
            facts: Vec::new(),
        })
    }

    /// Reads and changes what came up; `None` once the trial has ended.
    fn intake<T>(&self, with: impl FnOnce(&mut Intake) -> T) -> Option<T> {
        lock(&self.inner.intake).as_mut().map(with)
    }
}

impl Load for AgentsLoad {
    fn lead_ns(&self) -> u64 {
        LEAD_NS
    }

    fn ahead_ns(&self) -> u64 {
        AHEAD_NS
    }

    fn can_announce(&self) -> bool {
        self.inner.link.is_up()
    }

    fn begin(&mut self, start: Start) -> anyhow::Result<Collector> {
        let Start { clock, realtime_zero_ns, timeline, says } = start;
        let (collector, _) = Collector::new(self.agents.len(), &says);
        // The buffers of seconds that came from elsewhere are not given back.
        let agents = self.agents.iter().enumerate();
        let agents =
            agents.map(|(part, (number, _, facts))| (*number, Part::new(part, facts.clone()))).collect();
        *lock(&self.inner.intake) = Some(Intake {
            trial: self.trial,
            bots: self.bots,
            senders: None,
            names: self.names.clone(),
            says,
            timeline,
            agents,
            samples: Samples::new(self.agents.len() + usize::from(self.is_machine_of_ours)),
            entries: Vec::new(),
        });
        if self.in_turns {
            self.tasks.push(self.runtime.spawn(pair_in_turns(self.inner.clone())));
        }
        let inner = self.inner.clone();
        let begins = self.agents.iter().map(|(number, offset, _)| {
            let (trial, zero_ns) = (self.trial, offset.theirs(clock.origin_ns()));
            let begin = Begin { trial, zero_ns, realtime_zero_ns };
            let (number, inner) = (*number, &inner);
            async move {
                let member = inner.member(number);
                (number, asked(&inner.link, &member.hello, &Ask::Begin(begin), ANSWERS_WITHIN).await)
            }
        });
        for (number, answer) in self.runtime.block_on(join_all(begins)) {
            let why = match answer {
                Ok(Answer::Done) => continue,
                Ok(other) => reason(other),
                Err(error) => error.to_string(),
            };
            self.inner.lose(&mut lock(&self.inner.intake), number, &why);
        }
        Ok(collector)
    }

    fn counts(&self) -> Counts {
        self.intake(|intake| intake.counts()).unwrap_or_default()
    }

    fn pids(&self) -> Vec<u32> {
        self.pids.clone()
    }

    fn merge(&mut self, sampled: Vec<Entry>) -> Vec<Entry> {
        let (own, mut entries): (Vec<Entry>, Vec<Entry>) = sampled
            .into_iter()
            .partition(|entry| matches!(entry, Entry::Sample(sample) if is_of_generator(&sample.what)));
        // This process makes no load; how many cores there are is the same for agents beside it.
        let of_machine = |entry| match entry {
            Entry::Sample(sample) if sample.what == Reading::Worker(ProcessMetric::AllowedCores) => {
                Some(sample).filter(|_| !self.pids.is_empty())
            }
            Entry::Sample(sample) if !matches!(sample.what, Reading::Worker(_)) => Some(sample),
            _ => None,
        };
        let own: Vec<Sample> =
            own.into_iter().filter_map(of_machine).filter(|_| self.is_machine_of_ours).collect();
        let source = self.agents.len();
        let has_ended = self.has_ended;
        let merged = self.intake(|intake| {
            intake.samples.take(source, own);
            let samples = if has_ended { intake.samples.rest() } else { intake.samples.ready() };
            let mut merged: Vec<Entry> = samples.into_iter().map(Entry::Sample).collect();
            merged.append(&mut intake.entries);
            merged
        });
        entries.extend(merged.into_iter().flatten());
        if has_ended && !self.facts.is_empty() {
            let facts = std::mem::take(&mut self.facts);
            if let Ok(text) = serde_json::to_string(&facts) {
                entries.push(Entry::Event(Event { at_ns: 0, kind: kind::AGENTS.to_owned(), text }));
            }
            *lock(&self.inner.intake) = None;
        }
        entries
    }

    fn end(&mut self) {
        let began = Instant::now();
        while began.elapsed() < ENDS_WITHIN && self.intake(|intake| intake.is_done()) == Some(false) {
            std::thread::sleep(LOOKS_EVERY);
        }
        for task in self.tasks.drain(..) {
            task.abort();
        }
        self.facts = self.intake(|intake| intake.facts()).unwrap_or_default();
        self.has_ended = true;
    }
}

fn is_of_generator(what: &Reading) -> bool {
    matches!(what, Reading::Worker(_) | Reading::Machine(_) | Reading::Program(_))
}

/// Says what was decided, at once and again and again; notices who is not heard of any more.
pub(super) async fn announce(inner: Arc<Inner>) {
    let subject = announcements_of(&inner.session);
    let (mut said, mut last, mut away) = (Announcement::default(), Instant::now(), None);
    loop {
        tokio::time::sleep(LOOKS_EVERY).await;
        let announcement =
            lock(&inner.intake).as_ref().map_or_else(Announcement::default, Intake::announcement);
        let is_urgent = announcement.instants != said.instants;
        if is_urgent || last.elapsed() >= SAID_EVERY {
            let _ = inner.link.client.publish(subject.clone(), to_json(&announcement).into()).await;
            let _ = inner.link.client.flush().await;
            (said, last) = (announcement, Instant::now());
        }
        look_for_lost(&inner, &mut away);
    }
}

fn look_for_lost(inner: &Inner, away: &mut Option<Instant>) {
    let mut intake = lock(&inner.intake);
    let Some(agents) = intake.as_mut().map(|intake| &mut intake.agents) else { return };
    let now = Instant::now();
    if !inner.link.is_up() {
        let since = *away.get_or_insert(now);
        // No agent can be heard while the broker is away.
        agents.values_mut().for_each(|part| part.heard = now);
        if now.duration_since(since).as_nanos() > u128::from(BROKER_GONE_NS) {
            let all: Vec<usize> = agents.keys().copied().collect();
            all.into_iter()
                .for_each(|number| inner.lose(&mut intake, number, "the broker has been away for a minute"));
        }
        return;
    }
    *away = None;
    let is_silent =
        |part: &Part| !part.is_done && now.duration_since(part.heard).as_nanos() > u128::from(GONE_NS);
    let silent = agents.iter().filter(|(_, part)| is_silent(part)).map(|(number, _)| *number);
    for number in silent.collect::<Vec<usize>>() {
        inner.lose(&mut intake, number, "nothing was heard of it for 5 s");
    }
}

/// Lets one agent pair at a time, in turn, as long as any wants to.
async fn pair_in_turns(inner: Arc<Inner>) {
    let (mut is_in_step, mut last) = (false, None);
    loop {
        let wanting: Vec<usize> = match lock(&inner.intake).as_ref() {
            Some(intake) => {
                let wants =
                    intake.agents.iter().filter(|(_, part)| part.state.wants_to_pair && !part.is_done);
                wants.map(|(number, _)| *number).collect()
            }
            None => return,
        };
        let after = |number: &&usize| last.is_none_or(|last| **number > last);
        let Some(number) = wanting.iter().find(after).or(wanting.first()).copied() else {
            tokio::time::sleep(LOOKS_EVERY / 5).await;
            continue;
        };
        last = Some(number);
        let hello = &inner.member(number).hello;
        is_in_step = match asked(&inner.link, hello, &Ask::Pair { is_in_step }, PAIRS_WITHIN).await {
            Ok(Answer::Paired(is_in_step)) => {
                if let Some(part) =
                    lock(&inner.intake).as_mut().and_then(|intake| intake.agents.get_mut(&number))
                {
                    part.state.wants_to_pair = false;
                }
                is_in_step
            }
            // It may have left half of a pair behind.
            _ => false,
        };
    }
}
