//! Where the requests of `Requests` come from, and which responses are right.

use std::fmt;
use std::sync::Arc;

use drivers::http::{Answer, Http};
use measure::MetricNames;
use plan::{HttpBots, WorkerPlan, WorkloadSettings};

use super::templates::{CapturedVars, Ready, RequestTemplates};
use super::{counter_roles, errors, with_roles};
use crate::disconnects;

/// A request that was chosen: its operation, and what its source knows it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// index into the names of the operations
    pub op: usize,
    /// means something to the source alone
    pub token: u64,
}

/// What requests are sent and which responses are right. One per worker.
pub trait Source<D: Http>: Sized + 'static {
    /// What the plan says of it.
    type Settings: WorkloadSettings;

    /// When requests are planned, and the connections that they go over.
    fn transport(settings: &Self::Settings) -> &HttpBots;

    /// What connections are opened for: path and query.
    fn connect_path(_: &Self::Settings, plan: &WorkerPlan) -> String {
        plan.target.path.clone()
    }

    /// The names of what is counted. The counters begin with the phases of the server's tick.
    fn metric_names(settings: &Self::Settings) -> Arc<MetricNames>;

    /// For one worker.
    fn new(settings: &Self::Settings, plan: &WorkerPlan) -> Self;

    /// The trial begins; its zero in ns since the epoch, the same for all workers.
    fn begin(&mut self, _realtime_zero_ns: u64) {}

    /// The next request of the load.
    fn choose(&mut self) -> Chosen;

    /// The request in the form in which it is sent. It is sent next, unless its connection takes no more.
    fn ready(&mut self, chosen: Chosen, captured: &CapturedVars) -> Ready<'_, D::Prepared>;

    /// A GET where a redirect of this request points; `None`: it is not followed.
    fn redirected(&mut self, _: Chosen, _captured: &CapturedVars, _path: &str) -> Option<D::Prepared> {
        None
    }

    /// Whether a response is right. `wrong` is called with the cause and the text of what is not.
    fn check(
        &mut self,
        chosen: Chosen,
        answer: &Answer<'_>,
        wrong: impl FnOnce(usize, &dyn fmt::Display),
    ) -> bool;

    /// Keeps what a right response says for later requests of its connection.
    fn learn(&mut self, _: Chosen, _answer: &Answer<'_>, _captured: &mut CapturedVars) {}

    /// A request was chosen or readied, and no response will come.
    fn abandoned(&mut self, _: Chosen) {}

    /// After the load of all workers was answered or given up: the next request that checks what became of it.
    fn audit(&mut self) -> Option<Chosen> {
        None
    }

    /// Whether there is an audit at all.
    fn audits() -> bool {
        false
    }

    /// The trial ends; what has not happened by now is not going to.
    fn end(&mut self) {}

    /// The source's counts since the last call, in the order of its own counters.
    fn take_counts(&mut self, _each: impl FnMut(u64)) {}

    /// The time, in ns since the epoch; told once in a turn.
    fn set_now(&mut self, _unix_ns: u64) {}

    /// Whether a request is a message of the load. One that is not has no flow, no latency and no error of the load.
    fn is_recorded(_: Chosen) -> bool {
        true
    }
}

impl<D: Http> Source<D> for RequestTemplates<D::Prepared> {
    type Settings = HttpBots;

    fn transport(http: &HttpBots) -> &HttpBots {
        http
    }

    fn metric_names(http: &HttpBots) -> Arc<MetricNames> {
        let ops: Vec<&str> = http.requests.iter().map(|request| request.name.as_str()).collect();
        let counters = counter_roles::<D>();
        let names: Vec<&str> = counters.iter().map(|(name, _)| *name).collect();
        disconnects::metric_names(&ops, &errors::CAUSES, &names, &errors::KINDS)
            .with_counter_roles(&with_roles(&counters))
    }

    fn new(http: &HttpBots, plan: &WorkerPlan) -> Self {
        RequestTemplates::of::<D>(plan, http)
    }

    fn choose(&mut self) -> Chosen {
        Chosen { op: self.choose_by_weight(), token: 0 }
    }

    fn ready(&mut self, chosen: Chosen, captured: &CapturedVars) -> Ready<'_, D::Prepared> {
        self.render_or_reuse::<D>(chosen.op, captured)
    }

    fn redirected(&mut self, chosen: Chosen, captured: &CapturedVars, path: &str) -> Option<D::Prepared> {
        Some(self.render_elsewhere::<D>(chosen.op, captured, path))
    }

    fn check(
        &mut self,
        chosen: Chosen,
        answer: &Answer<'_>,
        wrong: impl FnOnce(usize, &dyn fmt::Display),
    ) -> bool {
        let texts = match self.check_response(chosen.op, answer) {
            Ok(texts) => Some(texts),
            Err(found) => {
                wrong(found.cause(), &found);
                None
            }
        };
        let is_right = texts.is_some();
        self.set_captured(texts.unwrap_or_default());
        is_right
    }

    fn learn(&mut self, _: Chosen, _: &Answer<'_>, captured: &mut CapturedVars) {
        self.keep_captured(captured);
    }
}
