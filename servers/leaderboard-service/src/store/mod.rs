//! The leaderboards in Redis or Valkey (`--store`), for several services over the same boards.
//!
//! A request is one call of one script, which is one atomic step of the store (`commands`, `scripts`, `replies`). Each
//! thread has its own connection (`link`): the commands of a turn are sent together, and a request is answered when its
//! reply is there (`remote`); meanwhile the thread serves others. `Caller` blocks on replies instead, for startup.
//! A change is acknowledged only when the store has confirmed it. If no reply came, the answer (503) says that it is
//! unknown whether the change was made; with an idempotency key it can be repeated safely, since the store keeps the
//! key with the change, in one step.
//! Limits: scores of 53 bits, no metadata, no seasons, HTTP only; one server, no cluster. All tie rules are supported.

mod address;
mod awaited;
#[cfg(test)]
mod board;
mod commands;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod link;
mod remote;
mod replies;
mod resp;
mod scripts;

use std::fmt::Write;
use std::net::ToSocketAddrs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::problem::Problem;
pub use address::{StoreAddress, StoreAddressError};
use commands::Guard;
use link::{End, Fate, Link, Lost, Target};
pub(super) use remote::Remote;
use replies::{Fields, Refused, Unexpected};
use scripts::Script;
use servers_shared::fault::{Fault, Kind};
use servers_shared::{ServeError, clock};

/// Items of a bulk at most: a script holds up the store's other clients while it runs.
pub(super) const BULK_MAX: usize = 100_000;

/// A store that was there when the service started, and what the threads tell of their connections.
pub(super) struct Store {
    target: Target,
    threads: Vec<Counters>,
}

/// Written by one thread.
#[derive(Default)]
struct Counters {
    is_up: AtomicU64,
    losses: AtomicU64,
    unknown: AtomicU64,
    under_way: AtomicU64,
}

impl Store {
    /// Connects once, and creates the first board unless it is there.
    ///
    /// Errors: an address that is not known, a store that does not answer or refuses its commands.
    pub(super) fn open(
        address: &StoreAddress,
        timeout: Duration,
        threads: usize,
        (board, rules): (&str, leaderboard::Options),
    ) -> Result<Store, ServeError> {
        let failed = |why: String| ServeError::Store { address: address.to_string(), why };
        let sockets = (address.host.as_str(), address.port).to_socket_addrs();
        let sockets: Vec<_> = sockets.map_err(|error| failed(error.to_string()))?.collect();
        if sockets.is_empty() {
            return Err(failed("its name stands for no address".to_owned()));
        }
        let target = Target { address: address.clone(), sockets, timeout };
        let mut caller = Caller::connect(target.clone()).map_err(|lost| failed(lost.to_string()))?;
        let write = |out: &mut Vec<u8>| commands::create_board(out, &Guard::default(), board, rules);
        caller.call(Script::CreateBoard, write, |end| match finished(end, timeout) {
            Ok(_) | Err(NotDone::Refused(Refused::NameTaken)) => Ok(()),
            Err(NotDone::Refused(refused)) => Err(failed(format!("it has refused a board: {refused:?}"))),
            Err(NotDone::Failed(problem)) => Err(failed(problem.detail)),
        })?;
        let threads = (0..threads).map(|_| Counters::default()).collect();
        Ok(Store { target, threads })
    }

    /// Appends the metrics of the connections to the store.
    pub(super) fn write_metrics(&self, out: &mut String) -> std::fmt::Result {
        let sum = |counter: fn(&Counters) -> &AtomicU64| -> u64 {
            self.threads.iter().map(|thread| counter(thread).load(Ordering::Relaxed)).sum()
        };
        let up = sum(|thread| &thread.is_up);
        writeln!(out, "# TYPE leaderboard_store_connections gauge\nleaderboard_store_connections {up}")?;
        let under_way = sum(|thread| &thread.under_way);
        writeln!(out, "# TYPE leaderboard_store_commands gauge\nleaderboard_store_commands {under_way}")?;
        let losses = sum(|thread| &thread.losses);
        writeln!(out, "# TYPE leaderboard_store_losses counter")?;
        writeln!(out, "# HELP leaderboard_store_losses Connections to the store that were lost.")?;
        writeln!(out, "leaderboard_store_losses_total {losses}")?;
        writeln!(out, "# TYPE leaderboard_store_unanswered counter")?;
        writeln!(out, "# HELP leaderboard_store_unanswered Commands that were sent and never answered.")?;
        writeln!(out, "leaderboard_store_unanswered_total {}", sum(|thread| &thread.unknown))
    }
}

/// Refuses planted faults that are not planted in what a store does.
///
/// Errors: the first of them.
pub(super) fn check_faults(faults: &[Fault]) -> Result<(), ServeError> {
    let is_elsewhere = |fault: &&Fault| matches!(fault.kind(), Kind::LoseUpdates(_) | Kind::Twice(_));
    match faults.iter().find(is_elsewhere) {
        None => Ok(()),
        Some(fault) => {
            let value = fault.to_string();
            Err(ServeError::Option {
                option: "fault",
                value,
                range: "with --store updates cannot be falsified",
            })
        }
    }
}

/// Why a command has not done what it was for.
enum NotDone {
    Refused(Refused),
    Failed(Failed),
}

/// A store that could not be asked, or has not done it.
struct Failed {
    detail: String,
    /// Nothing was changed for certain.
    is_certain: bool,
}

impl Failed {
    /// 503. `changes`: the request was a change.
    fn problem(self, changes: bool) -> Problem {
        let Failed { detail, is_certain } = self;
        Problem::new(
            503,
            match (changes, is_certain) {
                (false, _) => detail,
                (true, true) => format!("{detail}; nothing was changed"),
                (true, false) => {
                    format!(
                        "{detail}; it is unknown whether the change was made: ask for the score, or repeat it if it \
                     had an Idempotency-Key"
                    )
                }
            },
        )
    }
}

/// The fields of a reply that says that all was done.
fn finished(end: End<'_>, timeout: Duration) -> Result<Fields<'_>, NotDone> {
    let failed = |detail: String, is_certain| Err(NotDone::Failed(Failed { detail, is_certain }));
    match end {
        End::Done(items) => match Fields::of(items) {
            Ok(fields) => Ok(fields),
            Err(Unexpected::Refused(refused)) => Err(NotDone::Refused(refused)),
            Err(Unexpected::Odd) => Err(odd()),
        },
        End::One(resp::Scalar::Error(text)) => {
            let text = String::from_utf8_lossy(text);
            failed(format!("the store has refused it: {text}"), was_refused_before(&text))
        }
        End::One(_) => Err(odd()),
        End::Lost(Fate::NotSent) => failed("the store could not be reached".to_owned(), true),
        End::Lost(Fate::Unknown) => {
            failed(format!("the store has not answered ({timeout:?} at most)"), false)
        }
    }
}

fn odd() -> NotDone {
    let detail = "the store has answered something that its scripts do not say".to_owned();
    NotDone::Failed(Failed { detail, is_certain: false })
}

/// Whether a store says this before it runs a script, or at its first write, so that nothing was changed.
fn was_refused_before(error: &str) -> bool {
    const BEFORE: [&str; 11] = [
        "NOSCRIPT",
        "LOADING",
        "READONLY",
        "OOM",
        "BUSY",
        "MASTERDOWN",
        "NOAUTH",
        "NOPERM",
        "MISCONF",
        "NOREPLICAS",
        "CLUSTERDOWN",
    ];
    BEFORE.iter().any(|word| error.strip_prefix(word).is_some_and(|rest| rest.starts_with(' ')))
}

/// Asks and waits for the reply, one question at a time.
struct Caller {
    link: Link,
}

impl Caller {
    /// Errors: none of the addresses has a store that answers, and the last one's reason.
    fn connect(target: Target) -> Result<Caller, Lost> {
        let attempts = target.sockets.len();
        let mut link = Link::new(target);
        let mut last = Ok(());
        for _ in 0..attempts {
            last = link.wait_until_up();
            if last.is_ok() {
                return Ok(Caller { link });
            }
        }
        last.map(|()| Caller { link })
    }

    /// Hands what became of the command to `read`, within the time that a reply may take.
    fn call<R>(
        &mut self,
        script: Script,
        write: impl FnOnce(&mut Vec<u8>),
        read: impl FnOnce(End<'_>) -> R,
    ) -> R {
        let (mut read, mut told) = (Some(read), None);
        let mut take = |_: u64, end: End<'_>| {
            if let Some(read) = read.take() {
                told = Some(read(end));
            }
        };
        if !self.link.is_up() && self.link.wait_until_up().is_err() {
            take(0, End::Lost(Fate::NotSent));
        } else {
            self.link.put(0, Some(script), write);
            while self.link.under_way() > 0 {
                if let Err(lost) = self.link.step(&mut take) {
                    self.link.lose(lost, clock::now_ns(), &mut take);
                }
            }
        }
        told.expect("every command ends")
    }
}

impl Link {
    /// Waits for something to happen, and lets it.
    fn step(&mut self, take: impl FnMut(u64, End<'_>)) -> Result<(), Lost> {
        self.turn(clock::now_ns())?;
        self.wait();
        let read = self.read();
        self.take_replies(take)?;
        read.map(drop)
    }

    /// Tries one address. Errors: why it was not to be.
    fn wait_until_up(&mut self) -> Result<(), Lost> {
        self.hurry(clock::now_ns());
        while !self.is_up() {
            if let Err(lost) = self.step(|_, _| ()) {
                self.lose(lost.clone(), clock::now_ns(), |_, _| ());
                return Err(lost);
            }
        }
        Ok(())
    }
}
