//! The runner of the Rust clients: one plan in, lines of JSON out (`inflight/clients/README.md`), like the runners of
//! other languages.

mod hazelcast;
mod planted;
mod redis;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::anyhow;
use climb::certificates::trusting;
use console::exit::{Exit, Failure};
use console::signals::Interrupt;
use drivers::TlsSettings;
use inflight::{
    Client, End, Fake, Kind, Null, Operations, Options, Outcome, Overhead, Plan, Token, Workload, benchmark,
    error_line,
};

use self::planted::CopiesAgain;
pub use self::planted::Fault;
use crate::options::is_tls;

/// What connections of a plan over TLS to `host` need; `None` without TLS. Errors: a file without a certificate, a host that
/// cannot be in one.
fn tls(plan: &Plan, host: &str) -> Result<Option<TlsSettings>, String> {
    if !is_tls(&plan.target) {
        return Ok(None);
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let settings = trusting(host, plan.ca.as_deref().map(Path::new), plan.insecure);
    settings.map(Some).map_err(|error| format!("{error:#}"))
}

/// What helps where TLS fails.
const TRUST: &str = "--ca FILE trusts its authority, --insecure accepts any certificate";

/// A store that carries out gets, sets and deletes.
trait Store: Sized {
    /// Puts an operation into the output: on the ticket's key, or on one that practically never exists. It ends in
    /// `poll` in any case.
    fn submit(&mut self, ticket: Ticket, kind: Kind, unrounded: Option<&str>, workload: &Workload);

    /// Sends, waits at most `wait`, and hands over what ended. Errors: what makes going on impossible.
    fn poll(&mut self, wait: Duration, ended: impl FnMut(Ticket, Reply<'_>)) -> Result<(), String>;
}

/// How it ended.
#[derive(Debug)]
enum Reply<'a> {
    /// a set or a delete is done
    Done,
    /// what a get found
    Value(Option<&'a [u8]>),
    Failed {
        cause: &'static str,
        text: String,
    },
    /// it may have been executed or not
    Unknown {
        cause: &'static str,
        text: String,
    },
}

/// By what an operation is recognised, and what its reply is compared with.
#[derive(Clone, Copy, Debug)]
struct Ticket {
    token: Option<Token>,
    key: usize,
}

/// The operations of a plan on a store.
struct OnStore<'w, S> {
    store: S,
    workload: &'w Workload,
    /// gets ask for keys that are practically never there
    is_unlimited: bool,
}

impl<S: Store> Operations for OnStore<'_, S> {
    fn start(&mut self, token: Token, i: u64) {
        let ticket = Ticket { token: Some(token), key: self.workload.key(i) };
        let unrounded = self.is_unlimited.then(|| self.workload.unrounded_key(i));
        self.store.submit(ticket, self.workload.kind(i), unrounded.as_deref(), self.workload);
    }

    fn poll(&mut self, wait: Duration, mut ended: impl FnMut(Token, Outcome)) -> Result<(), String> {
        let workload = self.workload;
        self.store.poll(wait, |ticket, reply| {
            let outcome = match reply {
                Reply::Done => Outcome::Ok,
                Reply::Value(value) => workload.check(ticket.key, value),
                Reply::Failed { cause, text } => Outcome::Failed { cause, text },
                Reply::Unknown { cause, text } => Outcome::Unknown { cause, text },
            };
            if let Some(token) = ticket.token {
                ended(token, outcome);
            }
        })
    }
}

/// How many values are put at once before the run.
const PRELOAD_IN_FLIGHT: usize = 100;

impl<S: Store> OnStore<'_, S> {
    /// Puts every value that a get can hit. Errors: one could not be put.
    fn preload(&mut self) -> Result<(), String> {
        let (mut next, mut open) = (0, 0);
        while next < self.workload.keys() || open > 0 {
            while next < self.workload.keys() && open < PRELOAD_IN_FLIGHT {
                self.store.submit(Ticket { token: None, key: next }, Kind::Set, None, self.workload);
                (next, open) = (next + 1, open + 1);
            }
            let mut failed = None;
            self.store.poll(Duration::from_secs(1), |_, reply| {
                open -= 1;
                if let Reply::Failed { text, .. } | Reply::Unknown { text, .. } = reply {
                    failed = Some(text);
                }
            })?;
            if let Some(text) = failed {
                return Err(text);
            }
        }
        Ok(())
    }
}

/// Carries out a plan. Exit codes are those that inflight/clients/README.md gives runners: 2 for a bad plan, 3 when it cannot
/// connect.
pub fn run(plan: &str, fault: Option<Fault>, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let plan = match Plan::read(plan) {
        Ok(plan) => plan,
        Err(bad) => {
            say(&error_line(&bad.to_string()));
            return Err((Exit::NotMeasured, anyhow!("{bad}")));
        }
    };
    let workload = Workload::new(&plan);
    let options = |client: Client, member_version: Option<String>| Options {
        total: plan.total,
        warmup: Some(plan.warmup),
        in_flight: plan.in_flight,
        timeout: Duration::from_millis(plan.timeout_ms),
        memory_cap_bytes: plan.memory_cap_bytes,
        plan: plan.as_json(),
        member_version,
        ..Options::new(client)
    };
    let own = env!("CARGO_PKG_VERSION");
    let ended = if plan.target == "fake:" {
        let mut fake = Fake::new();
        let options = Options { clock: Some(fake.clock()), ..options(Client::new("fake", "1"), None) };
        benchmark(&mut fake, &options, None, &mut say)
    } else if plan.target == "null:" {
        let options = options(Client::new("null", own), None);
        match fault {
            None => measure(Null::new(&workload), &options, &workload, interrupt),
            Some(Fault::CopiesAgain) => measure(CopiesAgain::new(&workload), &options, &workload, interrupt),
        }
    } else if plan.target.starts_with("redis") {
        redis::Redis::connect(&plan).and_then(|store| {
            let options = options(Client::new("stepladder redis", own), store.version());
            on(store, &plan, &options, &workload, interrupt)
        })
    } else {
        hazelcast::Hazelcast::connect(&plan).and_then(|store| {
            let options = options(Client::new("stepladder hazelcast", own), store.version());
            on(store, &plan, &options, &workload, interrupt)
        })
    };
    match ended {
        Ok(end) if end.stopped == Some("signal") => Ok(Exit::Interrupted),
        Ok(_) => Ok(Exit::Met),
        Err(message) => {
            say(&error_line(&message));
            Err((Exit::WrongUsage, anyhow!("{message}")))
        }
    }
}

fn on<S: Store>(
    store: S,
    plan: &Plan,
    options: &Options,
    workload: &Workload,
    interrupt: &Interrupt,
) -> Result<End, String> {
    let is_unlimited = plan.in_flight.is_none();
    let mut operations = OnStore { store, workload, is_unlimited };
    if plan.op != "set" && !is_unlimited {
        operations
            .preload()
            .map_err(|text| format!("cannot put the first values into {}: {text}", plan.target))?;
    }
    measure(operations, options, workload, interrupt)
}

fn measure(
    mut operations: impl Operations,
    options: &Options,
    workload: &Workload,
    interrupt: &Interrupt,
) -> Result<End, String> {
    let (interrupt, stop) = (interrupt.clone(), options.stop.clone());
    std::thread::spawn(move || {
        while !interrupt.is_asked() {
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.ask();
    });
    let mut null = |options: &Options| Overhead::of(&mut Null::new(workload), options);
    benchmark(&mut operations, options, Some(&mut null), &mut say)
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // This fails when the reader of the lines is gone; then the rest is not needed.
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(Exit::NotMeasured as i32);
    }
}
