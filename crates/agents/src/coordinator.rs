//! The coordinator's side: finds agents, holds their lease, and makes a climb's loads with them.

mod follow;
pub(crate) mod intake;
mod trial;
mod watching;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use async_nats::Message;
use climb::options::{AgentsArgs, LinkArgs};
use climb::preflight::Machine;
use climb::secrets::paths_of_rows;
use climb::trial::{Generator, Load, TrialSpec};
use console::say;
use console::signals::Interrupt;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use plan::{Plan, ScriptBots, WorkloadSettings as _};
use tokio::runtime::Runtime;

use crate::agent::Place;
use crate::clocks::{Exchange, Offset};
use crate::limits::rate_of;
use crate::link::{Held, Link, runtime};
use crate::messages::{
    Answer, Ask, Bundle, Hello, Lease, State, VERSION, WHO, WIRE, What, ask_of, from_json, random_id,
    states_of, to_json, ups_of, watchers_of,
};
use crate::share::{bots_of, share_of, shares, units_of};

use intake::{Intake, WHY_CHARS};
use trial::{AgentsLoad, announce};
use watching::Watchers;
pub use watching::WithWatcher;

/// More is a mistake in writing, or a plan that one coordinator does not carry (docs/scale.md).
const AGENTS_MOST: usize = 1_000;
const ASKED_EVERY: Duration = Duration::from_millis(500);
const RENEWED_EVERY: Duration = Duration::from_secs(3);
/// How many times a clock is compared before a trial.
const EXCHANGES: usize = 16;
/// Of an agent's name.
const NAME_CHARS: usize = 60;
/// One question to an agent.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// To fetch the plan, start a null server and read rows.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Agents that play for one coordinator.
pub struct Coordinator {
    runtime: Runtime,
    inner: Arc<Inner>,
    lease: Arc<tokio::sync::Mutex<Held>>,
    /// agents that watch the server
    watchers: Arc<Watchers>,
}

/// What its tasks share.
struct Inner {
    link: Link,
    /// this machine
    place: Place,
    session: String,
    /// how many play at once
    wanted: usize,
    /// all that ever joined, by their numbers
    members: Mutex<Vec<Arc<Member>>>,
    /// numbers of trials
    trials: AtomicU32,
    /// what comes up goes here
    intake: Mutex<Option<Intake>>,
    /// the lease is another's: no further trial
    is_over: AtomicBool,
    /// what an agent watches, where one does
    watched: Mutex<Option<watching::Place>>,
}

/// One agent.
struct Member {
    hello: Hello,
    /// it took part in a trial
    has_played: AtomicBool,
    /// why it takes no part any more
    lost: Mutex<Option<String>>,
}

impl Member {
    fn of(hello: Hello) -> Arc<Member> {
        Arc::new(Member { hello, has_played: AtomicBool::default(), lost: Mutex::default() })
    }

    fn is_left(&self) -> bool {
        lock(&self.lost).is_none()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Coordinator {
    /// Finds the agents and takes them, and who could watch the server; `None` where none were asked for. Errors: no broker, too few
    /// agents, another version, another climb that uses them.
    pub fn gather(args: &AgentsArgs, interrupt: &Interrupt) -> anyhow::Result<Option<Coordinator>> {
        if args.link.nats.is_none() {
            return Ok(None);
        }
        // Without a number this process makes the load, and the server is watched elsewhere.
        let count = args.agents.unwrap_or(0);
        if args.agents == Some(0) || count > AGENTS_MOST {
            bail!("--agents {count}: from 1 to {AGENTS_MOST}");
        }
        let runtime = runtime("coordinator")?;
        let within = Duration::from_secs(args.agents_within);
        let (inner, lease, watchers) = runtime.block_on(gather(&args.link, count, within, interrupt))?;
        let (inner, lease) = (Arc::new(inner), Arc::new(tokio::sync::Mutex::new(lease)));
        runtime.spawn(renew(inner.clone(), lease.clone()));
        runtime.spawn(hear_states(inner.clone()));
        runtime.spawn(take_up(inner.clone()));
        runtime.spawn(announce(inner.clone()));
        let watchers = Watchers::new(inner.clone(), runtime.handle().clone(), watchers);
        Ok(Some(Coordinator { runtime, inner, lease, watchers }))
    }
}

async fn gather(
    args: &LinkArgs,
    count: usize,
    within: Duration,
    interrupt: &Interrupt,
) -> anyhow::Result<(Inner, Held, Vec<Hello>)> {
    let place = Place::here();
    let link = Link::connect(args, &format!("stepladder climb on {}", place.host)).await?;
    let session = random_id();
    let lease = Lease {
        session: session.clone(),
        host: place.host.clone(),
        pid: std::process::id(),
        version: VERSION.to_owned(),
    };
    let mut held = link.await_lease(lease, interrupt).await?;
    let found = find(&link, count, within, interrupt, &mut held).await;
    let members = match found {
        Ok((found, watchers)) => join(&link, &session, found).await.map(|members| (members, watchers)),
        Err(error) => Err(error),
    };
    let (members, watchers) = match members {
        Ok(members) => members,
        Err(error) => {
            link.give_back(&held).await;
            return Err(error);
        }
    };
    say_who(&members);
    let inner = Inner {
        link,
        place,
        session,
        wanted: count,
        members: Mutex::new(members),
        trials: AtomicU32::new(0),
        intake: Mutex::default(),
        is_over: AtomicBool::default(),
        watched: Mutex::default(),
    };
    Ok((inner, held, watchers))
}

fn say_who(members: &[Arc<Member>]) {
    if members.is_empty() {
        return;
    }
    let each = members.iter().map(|member| format!("{} ({} cores)", member.hello.name, member.hello.cores));
    let each: Vec<String> = each.collect();
    let agents = if members.len() == 1 { "agent" } else { "agents" };
    say::err_line!("stepladder: {} {agents}: {}", members.len(), each.join(", "));
    if let Some(words) = of_kinds(members.iter().map(|member| &member.hello)) {
        say::err_line!("stepladder: {words}");
    }
}

/// That their processors differ, where they do.
fn of_kinds<'a>(hellos: impl Iterator<Item = &'a Hello>) -> Option<String> {
    let kinds: BTreeSet<String> = hellos.map(|hello| measure::plain_name(&hello.arch)).collect();
    let kinds: Vec<String> = kinds.into_iter().collect();
    (kinds.len() > 1).then(|| {
        format!(
            "the agents have different processors ({}): each plays as many workers as it has cores, whatever these can do; \
             agent --cores N weighs one otherwise",
            kinds.join(", ")
        )
    })
}

/// Asks until `count` free agents of this version have answered, or with 0 one that watches. Returns these, and all that watch.
async fn find(
    link: &Link,
    count: usize,
    within: Duration,
    interrupt: &Interrupt,
    held: &mut Held,
) -> anyhow::Result<(Vec<Hello>, Vec<Hello>)> {
    let (began, mut renewed, mut told) = (Instant::now(), Instant::now(), false);
    loop {
        let known = who_is_there(link).await?;
        let free = known.iter().filter(|hello| is_free(hello)).cloned();
        let (watchers, mut free): (Vec<Hello>, Vec<Hello>) = free.partition(|hello| hello.watches);
        if free.len() >= count && (count > 0 || !watchers.is_empty()) {
            free.truncate(count);
            return Ok((free, watchers));
        }
        if interrupt.is_asked() {
            bail!("it was interrupted while it waited for agents");
        }
        if began.elapsed() >= within {
            let known = known.iter();
            return Err(match count {
                0 => watching::none_there(link, free.len(), known),
                _ => too_few(&link.shown, count, free.len(), known),
            });
        }
        if !std::mem::replace(&mut told, true) {
            if count == 0 {
                say::err_line!("stepladder: waiting at {} for an agent that watches the server", link.shown);
            } else {
                say::err_line!(
                    "stepladder: waiting for agents at {}: {} of {count} are there",
                    link.shown,
                    free.len()
                );
            }
        }
        if renewed.elapsed() >= RENEWED_EVERY {
            link.renew(held).await?;
            renewed = Instant::now();
        }
    }
}

fn is_free(hello: &Hello) -> bool {
    hello.is_of_this_version() && hello.session.is_none()
}

/// The agents that answer at once, in the order of their names: the same ones play the same workers each time.
async fn who_is_there(link: &Link) -> anyhow::Result<Vec<Hello>> {
    let inbox = link.client.new_inbox();
    let mut answers = link.client.subscribe(inbox.clone()).await?;
    link.client.publish_with_reply(WHO, inbox, Vec::new().into()).await?;
    let (asked, mut known) = (Instant::now(), BTreeMap::new());
    while let Ok(Some(answer)) =
        tokio::time::timeout(ASKED_EVERY.saturating_sub(asked.elapsed()), answers.next()).await
    {
        if let Ok(mut hello) = from_json::<Hello>(&answer.payload) {
            hello.name = measure::plain_text(&hello.name, NAME_CHARS);
            known.insert((hello.name.clone(), hello.id.clone()), hello);
        }
    }
    Ok(known.into_values().collect())
}

fn too_few<'a>(
    shown: &str,
    count: usize,
    free: usize,
    known: impl Iterator<Item = &'a Hello>,
) -> anyhow::Error {
    let more = why_not_free(known, "plays");
    anyhow!(
        "{free} of {count} agents are there; start more with stepladder agent --nats {shown}, or ask for fewer{more}"
    )
}

/// Of each agent that cannot be taken, why; `does`: what it does for another climb.
fn why_not_free<'a>(known: impl Iterator<Item = &'a Hello>, does: &str) -> String {
    let mut whys = String::new();
    for hello in known {
        let name = &hello.name;
        if !hello.is_of_this_version() {
            whys += &format!(
                "; agent {name} is version {} ({}), and this is {VERSION} ({WIRE}): both must be the same",
                measure::plain_name(&hello.version),
                hello.wire
            );
        } else if hello.session.is_some() {
            whys += &format!("; agent {name} {does} for another climb");
        }
    }
    whys
}

async fn join(link: &Link, session: &str, found: Vec<Hello>) -> anyhow::Result<Vec<Arc<Member>>> {
    for (number, hello) in found.iter().enumerate() {
        join_one(link, session, number, hello).await?;
    }
    Ok(found.into_iter().map(Member::of).collect())
}

async fn join_one(link: &Link, session: &str, number: usize, hello: &Hello) -> anyhow::Result<()> {
    let ask = Ask::Join { session: session.to_owned(), number };
    match asked(link, hello, &ask, ANSWERS_WITHIN * 3).await? {
        Answer::Done => Ok(()),
        other => bail!("agent {} does not join: {}", hello.name, reason(other)),
    }
}

/// Asks an agent. Errors: it does not answer in time.
async fn asked(link: &Link, hello: &Hello, ask: &Ask, within: Duration) -> anyhow::Result<Answer> {
    let request = async_nats::Request::new().payload(to_json(ask).into()).timeout(Some(within));
    let answer = link.client.send_request(ask_of(&hello.id), request).await;
    let answer = answer.map_err(|error| anyhow!("agent {} does not answer ({error})", hello.name))?;
    from_json(&answer.payload)
}

fn reason(answer: Answer) -> String {
    match answer {
        Answer::Refused(why) => why,
        other => format!("it answered {other:?}"),
    }
}

/// How far an agent's clock is from ours.
async fn compare_clocks(link: &Link, hello: &Hello) -> anyhow::Result<Offset> {
    let mut exchanges = Vec::new();
    for _ in 0..EXCHANGES {
        let asked_ns = engine::clock::monotonic_ns();
        let Answer::Time(read_ns) = asked(link, hello, &Ask::Time, ANSWERS_WITHIN).await? else {
            bail!("agent {} does not tell its time", hello.name)
        };
        exchanges.push(Exchange { asked_ns, read_ns, heard_ns: engine::clock::monotonic_ns() });
    }
    Offset::of(&exchanges).context("no clock was compared")
}

async fn renew(inner: Arc<Inner>, lease: Arc<tokio::sync::Mutex<Held>>) {
    loop {
        tokio::time::sleep(RENEWED_EVERY).await;
        if !inner.link.is_up() {
            continue;
        }
        let mut held = lease.lock().await;
        if let Err(error) = inner.link.renew(&mut held).await {
            // It may have run out while the broker was away.
            let again = match inner.link.lease().await {
                Ok(None) => inner.link.take_lease(held.lease()).await,
                _ => Err(error),
            };
            match again {
                Ok(again) => *held = again,
                Err(error) if inner.link.is_up() => {
                    say::err_line!("stepladder: {error:#}; no further load is begun");
                    inner.is_over.store(true, Relaxed);
                    return;
                }
                Err(_) => {}
            }
        }
    }
}

/// The agent whose message it is: the last part of its subject.
fn number_of(message: &Message) -> Option<usize> {
    message.subject.rsplit('.').next()?.parse().ok()
}

/// What agents tell of themselves.
async fn hear_states(inner: Arc<Inner>) {
    let Ok(mut states) = inner.link.client.subscribe(states_of(&inner.session)).await else { return };
    while let Some(message) = states.next().await {
        let (Some(number), Ok(state)) = (number_of(&message), from_json::<State>(&message.payload)) else {
            continue;
        };
        if let Some(intake) = lock(&inner.intake).as_mut() {
            intake.hear(number, state);
        }
    }
}

/// What agents measured, in the order in which the broker has it; again from where it was when the broker was away.
async fn take_up(inner: Arc<Inner>) {
    let mut seen = Seen::default();
    loop {
        let outcome = follow(&inner, &mut seen).await;
        if let Err(error) = outcome
            && inner.link.is_up()
        {
            say::err_line!("stepladder: {error:#}; trying again");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Up to where it was taken.
#[derive(Default)]
struct Seen {
    /// the number of each agent's next message
    next: Vec<u64>,
    /// the number that the broker gave the last one
    at_broker: u64,
}

async fn follow(inner: &Inner, seen: &mut Seen) -> anyhow::Result<()> {
    let Seen { next, at_broker } = seen;
    follow::follow(&inner.link, ups_of(&inner.session), at_broker, &mut |number, up| {
        next.resize(lock(&inner.members).len(), 0);
        let Some(next) = next.get_mut(number) else { return };
        let mut intake = lock(&inner.intake);
        match up {
            // It was taken before.
            Ok(up) if up.seq < *next => {}
            Ok(up) if up.seq > *next => {
                inner.lose(&mut intake, number, "a part of what it measured is missing at the broker");
            }
            Ok(up) => {
                *next += 1;
                match up.what {
                    // It ends by its own word: it would end as soon again, so it is not asked again.
                    What::Lost(why) => {
                        inner.lose(&mut intake, number, &measure::plain_text(&why, WHY_CHARS));
                    }
                    what => {
                        if let Some(intake) = intake.as_mut() {
                            intake.take(number, up.trial, what);
                        }
                    }
                }
            }
            Err(error) => inner.lose(&mut intake, number, &format!("{error:#}")),
        }
    })
    .await
}

impl Inner {
    /// Whether no agent was asked for but one that watches.
    fn makes_no_load(&self) -> bool {
        self.wanted == 0
    }

    fn members(&self) -> Vec<Arc<Member>> {
        lock(&self.members).clone()
    }

    /// The member with a number that was given.
    fn member(&self, number: usize) -> Arc<Member> {
        lock(&self.members)[number].clone()
    }

    /// An agent takes no part any more.
    fn lose(&self, intake: &mut Option<Intake>, number: usize, why: &str) {
        let members = self.members();
        let Some(member) = members.get(number).filter(|member| member.is_left()) else { return };
        *lock(&member.lost) = Some(why.to_owned());
        let words = format!("{} ({} of {} left): {why}", member.hello.name, self.left().len(), self.wanted);
        if let Some(intake) = intake.as_mut() {
            intake.lose(number, why, words);
        }
    }

    /// Numbers of those that take part.
    fn left(&self) -> Vec<usize> {
        let members = self.members();
        (0..members.len()).filter(|number| members[*number].is_left()).collect()
    }

    /// Takes free agents in place of those that were lost.
    async fn replace_lost(&self) {
        let missing = self.wanted.saturating_sub(self.left().len());
        if missing == 0 {
            return;
        }
        // Who cannot be asked now can be at the next load.
        let free = who_is_there(&self.link).await.unwrap_or_default();
        let plays = |hello: &Hello| is_free(hello) && !hello.watches;
        for hello in free.into_iter().filter(plays).take(missing) {
            let number = lock(&self.members).len();
            match join_one(&self.link, &self.session, number, &hello).await {
                Ok(()) => {
                    let name = hello.name.clone();
                    lock(&self.members).push(Member::of(hello));
                    let left = self.left().len();
                    say::err_line!("stepladder: agent {name} has joined: {left} of {} agents", self.wanted);
                }
                Err(error) => say::err_line!("stepladder: {error:#}"),
            }
        }
    }
}

impl Coordinator {
    /// Whether each agent plays as many bots as its share of every rung. Errors: which does not.
    pub fn check(&self, plan: &Plan) -> anyhow::Result<()> {
        let members = self.inner.members();
        if self.inner.makes_no_load() {
            return Ok(());
        }
        let weights: Vec<u32> = members.iter().map(|member| member.hello.cores).collect();
        for &load in &plan.ladder.rungs {
            let workers = self.machine()?.workers(plan, load)?;
            let (units, needs, rate_per_s) =
                (plan.bots.units(load), plan::needs(plan, load), rate_of(plan, load));
            let workers = workers.clamp(1, usize::try_from(units).unwrap_or(usize::MAX).max(1));
            for (member, range) in members.iter().zip(shares(workers, &weights)) {
                let own = units_of(&range, units, workers);
                let rate_per_s = rate_per_s.map(|per_s| share_of(per_s, own, units));
                if let Some(why) = member.hello.limits.refusal(bots_of(needs.bots, own, units), rate_per_s) {
                    let name = &member.hello.name;
                    bail!(
                        "rung {load}: agent {name} {why}; use more agents, lower the rung, or raise its limit"
                    );
                }
            }
        }
        Ok(())
    }

    /// Lets the agents go.
    pub fn end(self) {
        let Coordinator { runtime, inner, lease, watchers } = self;
        runtime.block_on(async {
            let members = inner.members();
            let left = members.iter().filter(|member| member.is_left());
            let leave = left.map(|member| asked(&inner.link, &member.hello, &Ask::Leave, ANSWERS_WITHIN));
            // An agent that does not hear it, or was lost, leaves by itself, for lack of announcements.
            let _ = join_all(leave).await;
            watchers.let_go().await;
            if let Ok(stream) = inner.link.measured().await {
                let _ = stream.purge().filter(ups_of(&inner.session)).await;
                let _ = stream.purge().filter(ups_of(&watchers_of(&inner.session))).await;
            }
            inner.link.give_back(&*lease.lock().await).await;
        });
    }
}

impl Generator for Coordinator {
    fn machine(&self) -> anyhow::Result<Machine> {
        let members = self.inner.members();
        let hellos = || members.iter().filter(|member| member.is_left()).map(|member| &member.hello);
        let cores: u32 = hellos().map(|hello| hello.cores).sum();
        Ok(Machine {
            descriptors: hellos().map(|hello| hello.descriptors).min().unwrap_or(0),
            cores: (0..cores as usize).collect(),
            ports: hellos().map(|hello| hello.ports).sum(),
            // The books are settled here.
            ..Machine::prepare()?
        })
    }

    fn shares_cores(&self, _: SocketAddr, is_here: bool) -> bool {
        let boot = &self.inner.place.boot;
        is_here && self.inner.members().iter().any(|member| member.hello.boot == *boot)
    }

    fn prepare(&self, order: &TrialSpec<'_>) -> anyhow::Result<Box<dyn Load>> {
        if self.inner.is_over.load(Relaxed) {
            bail!("another coordinator holds the agents");
        }
        let load =
            self.runtime.block_on(AgentsLoad::prepare(self.inner.clone(), self.runtime.handle(), order))?;
        Ok(Box::new(load))
    }
}

/// What a plan's workers are made of elsewhere. Errors: a file of rows cannot be read.
fn bundle(plan: &Plan) -> anyhow::Result<Bundle> {
    let mut bots = plan.bots.clone();
    let paths = ScriptBots::of_mut(&mut bots).map_or(Vec::new(), |script| paths_of_rows(script));
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
        anyhow::Ok((path.to_string_lossy().into_owned(), text))
    };
    let files = paths.into_iter().map(read).collect::<anyhow::Result<_>>()?;
    Ok(Bundle { plan: serde_json::to_string(plan)?, files })
}

#[cfg(test)]
mod tests;
