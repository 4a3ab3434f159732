//! Before there is any load, one unit of it (a client; in the arena a pair of players) connects exactly as it will in
//! the climb.
//!
//! The workload's own bots run over their driver, so anything that a server demands of a client, such as a login, shows
//! with the first one. If the server closes its connection or refuses it, no load would say anything about capacity:
//! the climb ends here and quotes the server. Mistakes that a server makes while the client stays connected are not
//! checked here; the load finds them and the judge decides.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bots::disconnects;
use drivers::websocket::Received;
use drivers::{Closed, Driver, ReadBuffer, WebSocket};
use engine::collector::FromWorker;
use engine::thread::Setup;
use engine::{Clock as _, Collector, MonotonicClock, Progress, Shared, Timeline};
use measure::{ErrorKind, Interval};
use plan::{
    ChatBots, GridBots, HttpModel, Plan, ScriptBots, Target, Transport, WorkerPlan, WorkloadSettings as _,
    needs,
};
use tokio::time::timeout;

use super::handshake::{HANDSHAKE_WITHIN, PAUSE, TRIES, address_of, handshake, runtime};
use crate::trial::addresses;

/// A client that has been in for so long has not been turned away.
const STAYS_NS: u64 = 250_000_000;
/// After this the bare handshake is tried beside the client, to find out whether a server of this protocol is there at
/// all.
const WONDERS_NS: u64 = 1_000_000_000;
/// Bots wait for their admission no longer.
const IN_WITHIN_NS: u64 = 10_000_000_000;
/// Those of scripts wait longer.
const SCRIPT_IN_WITHIN_NS: u64 = 16_000_000_000;
/// For closing connections.
const LEAVES_NS: u64 = 300_000_000;
/// A worker looks every 10 ms whether its time is up.
const ENDS_WITHIN: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(5);
/// A server that wants something of a client says so soon.
const LISTENS: Duration = Duration::from_secs(1);
/// Of the server's words, the last are its reason.
const WORDS_MAX: usize = 3;

/// The plan of the single client; `None` for bots whose driver checks everything while a connection opens (a data
/// grid), and for those that send one request instead (HTTP).
pub fn worker_of(plan: &Plan, target: &Target, address: std::net::SocketAddr) -> Option<(WorkerPlan, u64)> {
    let mut plan = plan.clone();
    if GridBots::of(&plan.bots).is_some() || plan::HttpBots::of(&plan.bots).is_some() {
        return None;
    }
    if let Some(HttpModel::Open { connections, connections_max }) =
        plan.bots.http_mut().map(|http| &mut http.model)
    {
        (*connections, *connections_max) = (1, 1);
    }
    let worker = plan::split(&plan, 1.0, target, address, 1, &[]).into_iter().next()?;
    let worker = if ScriptBots::of(&plan.bots).is_some() { worker.of_bots(1) } else { worker };
    // A bot that is thrown out does not reconnect by itself: a separate attempt starts later.
    Some((WorkerPlan { open_attempts: 1, stop: None, ..worker }, needs(&plan, 1.0).connections))
}

/// What became of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// it came in and stayed
    Stayed,
    /// a connection that it needs did not open
    NotOpened,
    /// its connection opened, and the server ended it
    ThrownOut,
    /// it was neither accepted nor refused
    Waits,
}

/// Runs the client, and again if it was turned away. Errors: the server accepts none, with its own message.
pub fn come_in(worker: &WorkerPlan, connections: u64) -> anyhow::Result<()> {
    let target = &worker.target;
    for attempt in 1..=TRIES {
        let (outcome, words) = play(worker, connections)?;
        let because = if words.is_empty() { String::new() } else { format!(": {words}") };
        let what_helps = what_helps(target);
        match outcome {
            Outcome::Stayed => return Ok(()),
            Outcome::NotOpened => handshake(worker, connections)?,
            // A server that closes connections before any message may give a reason, and the handshake probe can quote
            // it.
            Outcome::ThrownOut if attempt == 1 => handshake(worker, connections)?,
            Outcome::ThrownOut => {}
            Outcome::Waits => bail!(
                "{target} takes the connection of a client and has not let it in after {} s{because}; {what_helps}, and \
                 whether it hangs",
                IN_WITHIN_NS / 1_000_000_000
            ),
        }
        if attempt < TRIES {
            thread::sleep(PAUSE);
        } else if outcome == Outcome::ThrownOut {
            bail!(
                "{target} ends the connection of the first client before there is any load (tried {TRIES} times){because}; \
                 {what_helps}"
            )
        } else {
            bail!(
                "{target} lets some connections in and the first client not (tried {TRIES} times){because}; see its log"
            )
        }
    }
    Ok(())
}

/// Plays the first bot of a script until it is in. Errors: it does not come in, in the words of the server or the script.
pub fn script_comes_in(worker: &WorkerPlan) -> anyhow::Result<()> {
    let (outcome, words) = play(worker, 0)?;
    let because = if words.is_empty() { String::new() } else { format!(": {words}") };
    match outcome {
        Outcome::Stayed => Ok(()),
        Outcome::Waits | Outcome::NotOpened | Outcome::ThrownOut => bail!(
            "the first bot did not come in, before there is any load{because}; see what it says and hears: stepladder try {} \
             --target {}",
            ScriptBots::of(&worker.bots).map_or("", |script| &script.file),
            worker.target
        ),
    }
}

/// What a user can do about a server that does not take its clients.
fn what_helps(target: &Target) -> &'static str {
    match target.scheme.transport() {
        Transport::WebSocket => {
            "if it wants credentials, give them (--header 'Authorization: Bearer ${TOKEN}', --header 'Cookie: ${COOKIE}', or a \
             token in the path); check path and --subprotocol too"
        }
        Transport::Http => "check its port and path, and what it asks of a client",
        Transport::Tcp | Transport::Redis | Transport::Hazelcast | Transport::Udp => {
            "check its port, and whether it asks clients for a name, a password or TLS"
        }
    }
}

/// Runs the client once. Returns the outcome, and any message.
fn play(worker: &WorkerPlan, connections: u64) -> anyhow::Result<(Outcome, String)> {
    let clock = MonotonicClock::starting_now();
    let timeline = Arc::new(Timeline::default());
    let progress = Arc::new(Progress::default());
    let (says, hears) = channel();
    let (_collector, ends) = Collector::new(1, &says);
    let Some(to_collector) = ends.into_iter().next() else { return Ok((Outcome::Stayed, String::new())) };
    let met = Shared::default().met;
    let shared = Shared {
        met: met.clone(),
        timeline: timeline.clone(),
        progress: progress.clone(),
        realtime_zero_ns: engine::clock::realtime_ns(),
        ..Shared::default()
    };
    let setup = Setup {
        plan: worker.clone(),
        addresses: addresses(worker, &worker.target)?,
        shared,
        clock,
        to_collector,
        says,
        core: None,
        realtime: false,
        spin_ns: 0,
    };
    let thread = bots::catalog::start(setup).context("a worker thread could not be started")?;
    let mut seen = Seen::default();
    let client = Client { worker, connections, progress: &progress, joined: &met[..] };
    let watched = client.watch(&clock, &hears, &mut seen);
    // Members of a room count as in once they have joined, however soon they are thrown out.
    let was_in = client.has_come();
    let now_ns = clock.now_ns();
    timeline.drain_at(now_ns);
    timeline.stop_at(now_ns + LEAVES_NS);
    while !seen.is_over && clock.now_ns() < now_ns + ENDS_WITHIN.as_nanos() as u64 {
        seen.hear(&hears, LOOK);
    }
    // If it does not end it is abandoned; what it has reported is enough.
    if seen.is_over {
        // Its panic was reported through its channel, and the trial will hit it again and report it.
        let _ = thread.join();
    }
    match watched? {
        outcome if ScriptBots::of(&worker.bots).is_some() => {
            // A client that we stopped waiting for is not in.
            let outcome = if seen.not_admitted > 0 { Outcome::Waits } else { outcome };
            Ok((outcome, seen.words()))
        }
        // Server errors while the client is in, and whatever the client ends itself, are found by the load.
        Outcome::ThrownOut if seen.ended == 0 && (was_in || seen.broken == 0) => {
            let words = last_words(worker)?;
            Ok(words.map_or((Outcome::Stayed, String::new()), |words| (Outcome::ThrownOut, words)))
        }
        outcome => Ok((outcome, seen.words())),
    }
}

/// The client while it is played.
struct Client<'a> {
    worker: &'a WorkerPlan,
    connections: u64,
    progress: &'a Progress,
    /// by `BotContext::meet`; the members of a room meet when they have joined
    joined: &'a [AtomicU64],
}

impl Client<'_> {
    /// Whether it came in, if only for a moment.
    fn has_come(&self) -> bool {
        match ChatBots::of(&self.worker.bots) {
            Some(_) => self.joined.first().is_some_and(|joined| joined.load(Relaxed) >= self.worker.units),
            None => self.progress.opened.load(Relaxed) >= self.connections,
        }
    }

    /// Watches it until it is known what becomes of it. Errors: no server of this protocol is there.
    fn watch(
        &self,
        clock: &MonotonicClock,
        hears: &Receiver<FromWorker>,
        seen: &mut Seen,
    ) -> anyhow::Result<Outcome> {
        if ScriptBots::of(&self.worker.bots).is_some() {
            return Ok(self.watch_script(clock, hears, seen));
        }
        let (mut in_since_ns, mut has_wondered, mut missing) = (None, false, 0);
        loop {
            seen.hear(hears, LOOK);
            let now_ns = clock.now_ns();
            let Progress { joined, open, opened, failed } = self.progress;
            let [joined, open, opened, failed] =
                [joined, open, opened, failed].map(|count| count.load(Relaxed));
            if failed > 0 && !self.has_come() {
                return Ok(Outcome::NotOpened);
            }
            // Clients with a connection per request keep none open. The two counts are not read at the same moment.
            missing = if self.connections > 0 && open < opened { missing + 1 } else { 0 };
            if failed > 0 || seen.is_over || missing > 1 {
                return Ok(Outcome::ThrownOut);
            }
            if in_since_ns.is_none() && joined >= self.worker.units && self.has_come() {
                in_since_ns = Some(now_ns);
            }
            match in_since_ns {
                Some(since_ns) if now_ns >= since_ns + STAYS_NS => return Ok(Outcome::Stayed),
                Some(_) => {}
                None if now_ns >= IN_WITHIN_NS => return Ok(Outcome::Waits),
                None if now_ns >= WONDERS_NS && !has_wondered => {
                    has_wondered = true;
                    let is_there = handshake(self.worker, self.connections);
                    if !self.has_come() {
                        is_there?;
                    }
                }
                None => {}
            }
        }
    }
}

impl Client<'_> {
    /// The same of a script, which opens and closes what it likes and says itself when it is in.
    fn watch_script(&self, clock: &MonotonicClock, hears: &Receiver<FromWorker>, seen: &mut Seen) -> Outcome {
        let mut in_since_ns = None;
        loop {
            seen.hear(hears, LOOK);
            let now_ns = clock.now_ns();
            if in_since_ns.is_none() && self.progress.joined.load(Relaxed) >= self.worker.units {
                in_since_ns = Some(now_ns);
            }
            match in_since_ns {
                _ if seen.is_over => return Outcome::ThrownOut,
                Some(since_ns) if now_ns >= since_ns + STAYS_NS => return Outcome::Stayed,
                None if now_ns >= SCRIPT_IN_WITHIN_NS => return Outcome::Waits,
                _ => {}
            }
        }
    }
}

/// What the client's worker told.
#[derive(Default)]
struct Seen {
    /// connections that the server closed, or refused with a message
    ended: u64,
    /// and those on which it broke the protocol
    broken: u64,
    /// bots of a script that never were in
    not_admitted: u64,
    /// the first of each cause, in the order of their seconds
    words: Vec<String>,
    /// causes without words, with their counts
    causes: BTreeMap<String, u64>,
    is_over: bool,
}

impl Seen {
    /// Waits for what the worker says next.
    fn hear(&mut self, hears: &Receiver<FromWorker>, within: Duration) {
        match hears.recv_timeout(within) {
            Ok(FromWorker::Second { interval, .. }) => self.count(&interval),
            Ok(FromWorker::Ledger { .. }) | Err(RecvTimeoutError::Timeout) => {}
            Ok(_) | Err(RecvTimeoutError::Disconnected) => self.is_over = true,
        }
    }

    fn count(&mut self, second: &Interval) {
        let names = &second.metric_names;
        let errors = names.errors.iter().zip(&second.errors);
        let failed = names.connect_failures.iter().zip(&second.connections.failed);
        for (cause, count) in errors.chain(failed).filter(|(_, count)| **count > 0) {
            if cause.as_str() == disconnects::CAUSES[disconnects::BROKEN] {
                self.broken += count;
            } else if matches!(names.kind_of(cause), Some(ErrorKind::BrokenConnection | ErrorKind::Refused)) {
                self.ended += count;
            }
            if names.kind_of(cause) == Some(ErrorKind::NotAdmitted) {
                self.not_admitted += count;
            }
            *self.causes.entry(cause.to_string()).or_default() += count;
        }
        for (cause, words) in &second.samples {
            let words = if words.is_empty() { names.errors[*cause].to_string() } else { words.clone() };
            if !self.words.contains(&words) {
                self.words.push(words);
            }
        }
    }

    /// In one line, the last of them.
    fn words(&self) -> String {
        if self.words.is_empty() {
            return self.causes.keys().cloned().collect::<Vec<_>>().join(", ");
        }
        self.words[self.words.len().saturating_sub(WORDS_MAX)..].join("; ")
    }
}

/// How a server ends a connection without requests, in its own words; `None` if it does not, or gives no reason.
/// Clients that ask for something open another connection then, and count no error.
fn last_words(worker: &WorkerPlan) -> anyhow::Result<Option<String>> {
    if worker.target.scheme.transport() != Transport::WebSocket {
        return Ok(None);
    }
    let address = address_of(worker)?;
    let listens = async {
        let opens = async { WebSocket::open(WebSocket::begin_connect(&address, None)?, &address).await };
        let Ok(Ok(mut socket)) = timeout(HANDSHAKE_WITHIN, opens).await else { return None };
        let (mut said, mut buffer) = (None, ReadBuffer::new());
        let until_it_ends = async {
            loop {
                match poll_fn(|cx| socket.poll_read(cx, &mut buffer)).await {
                    Ok(_) => {
                        while let Some(received) = socket.next(&mut buffer) {
                            match received {
                                Ok(Received::Text(bytes) | Received::Binary(bytes)) => {
                                    said = Some(format!("\"{}\"", drivers::shown(bytes)));
                                }
                                Err(broken) => return Closed::Broken(broken),
                            }
                        }
                    }
                    Err(why) => return why,
                }
            }
        };
        match timeout(LISTENS, until_it_ends).await {
            Ok(why @ Closed::ByPeer(Some(_))) => {
                Some(said.into_iter().chain([disconnects::words(&why, "")]).collect::<Vec<_>>().join("; "))
            }
            Ok(Closed::ByPeer(None) | Closed::Failed(_)) => said,
            Ok(Closed::Broken(_) | Closed::NotOpened(_)) | Err(_) => None,
        }
    };
    Ok(runtime()?.block_on(listens))
}
