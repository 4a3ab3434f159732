//! Our own Hazelcast client as a store. Values are strings, like those of the runners of other languages.

use std::time::Duration;

use ::hazelcast::reactor::{Config, ConnectError, Failure, Outcome, Reactor, Tls};
use ::hazelcast::wire::request::TTL_OF_THE_MAP;
use ::hazelcast::wire::{Answer, Data, Key, MapName, Request, data};
use inflight::{Kind, Plan, Workload};

use super::{Reply, Store, TRUST, Ticket, tls};

/// A map of a cluster.
pub struct Hazelcast {
    reactor: Reactor<Ticket>,
    map: MapName,
    /// by their number, each serialised when it is first used
    keys: Vec<Option<Key>>,
    /// by their variant
    values: Vec<Option<Data>>,
}

impl Hazelcast {
    /// Errors: no member let us in.
    pub fn connect(plan: &Plan) -> Result<Hazelcast, String> {
        let rest = plan.target.split_once("://").map_or("", |(_, rest)| rest);
        let (members, map) = rest.split_once('/').unwrap_or((rest, "stepladder"));
        // The reactor asks for each member's own name.
        let tls = tls(plan, "localhost")?.map(|settings| Tls { config: settings.config, host: None });
        let config = Config {
            addresses: members.split(',').map(str::to_owned).collect(),
            cluster_name: plan.cluster.clone(),
            invocation_timeout: Duration::from_millis(plan.timeout_ms),
            client_name: "stepladder".to_owned(),
            // Like the target itself, whatever addresses its members report.
            may_connect: |ip| ip.is_loopback(),
            tls,
            ..Config::default()
        };
        let reactor = Reactor::connect(config).map_err(|error| match error {
            ConnectError::Tls { .. } => format!("{error}; {TRUST}"),
            _ => error.to_string(),
        })?;
        Ok(Hazelcast { reactor, map: map.into(), keys: Vec::new(), values: Vec::new() })
    }

    pub fn version(&self) -> Option<String> {
        self.reactor.server_version().map(str::to_owned)
    }

    fn key(&mut self, number: usize, workload: &Workload) -> Key {
        if self.keys.len() < workload.keys() {
            self.keys.resize(workload.keys(), None);
        }
        self.keys[number].get_or_insert_with(|| Key::of(workload.name(number))).clone()
    }

    fn value(&mut self, number: usize, workload: &Workload) -> Data {
        let variant = workload.variant(number);
        if self.values.len() <= variant {
            self.values.resize(variant + 1, None);
        }
        let text = || String::from_utf8_lossy(workload.value(number)).into_owned();
        self.values[variant].get_or_insert_with(|| Data::of(&text())).clone()
    }
}

impl Store for Hazelcast {
    fn submit(&mut self, ticket: Ticket, kind: Kind, unrounded: Option<&str>, workload: &Workload) {
        let map = self.map.clone();
        let key = match unrounded {
            Some(name) => Key::of(name),
            None => self.key(ticket.key, workload),
        };
        let request = match kind {
            Kind::Get => Request::Get { map, key },
            Kind::Set => {
                Request::Set { map, key, value: self.value(ticket.key, workload), ttl_ms: TTL_OF_THE_MAP }
            }
            Kind::Delete => Request::Delete { map, key },
        };
        self.reactor.submit(request, ticket);
    }

    fn poll(&mut self, wait: Duration, mut ended: impl FnMut(Ticket, Reply<'_>)) -> Result<(), String> {
        let polled = self.reactor.poll(Some(wait), |ticket, outcome| match outcome {
            Outcome::Ok(Answer::Value(None)) => ended(ticket, Reply::Value(None)),
            Outcome::Ok(Answer::Value(Some(bytes))) => ended(ticket, found(bytes)),
            Outcome::Ok(_) => ended(ticket, Reply::Done),
            Outcome::Failed(failure) => {
                ended(ticket, Reply::Failed { cause: cause(&failure), text: failure.to_string() });
            }
            Outcome::Unknown(failure) => {
                ended(ticket, Reply::Unknown { cause: cause(&failure), text: failure.to_string() });
            }
        });
        polled.map(drop).map_err(|error| format!("waiting for answers failed: {error}"))
    }
}

/// What a get found.
fn found(bytes: &[u8]) -> Reply<'_> {
    match data::text(bytes) {
        Some(text) => Reply::Value(Some(text)),
        None => {
            Reply::Failed { cause: "wrong type", text: format!("{} bytes that are no string", bytes.len()) }
        }
    }
}

fn cause(failure: &Failure) -> &'static str {
    match failure {
        Failure::Server(_) => "refused by the member",
        Failure::ConnectionLost(_) => "connection lost",
        Failure::Timeout(_) => "timeout",
        Failure::NotConnected(_) => "not connected",
        Failure::AnswerTooLarge { .. } => "answer too large",
        Failure::Refused(_) => "limit reached",
        Failure::Data(_) => "wrong type",
        Failure::Closed => "closed",
        Failure::Internal(_) => "internal",
    }
}
