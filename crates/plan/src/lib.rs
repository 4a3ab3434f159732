//! What to do, fully decided: layers (flags over a scenario file over defaults) become one `Plan`.
//!
//! Everything that can be refused is refused here, before any load, with a message that names the place, the nearest
//! known word and an example. The plan has no behaviour: the engine, the watch and the ladder read it.
//! A plan is stored with its run; `again` takes it from there.

#[macro_use]
mod settings;

mod built_in;
mod credentials;
mod decidable;
mod flags;
pub mod layers;
mod mistakes;
mod network;
pub mod percent;
mod permissions;
mod plan;
pub mod ramp;
pub mod scenario;
pub mod schema;
mod scheme;
mod target;
pub mod units;
mod vocabulary;
mod worker_plan;
mod workloads;

pub use built_in::BuiltIn;
pub use credentials::{CredentialForm, Credentials, Login, SecretSource};
pub use decidable::decidable_sentence;
pub use flags::Flags;
pub use ladder::Allowed;
pub use layers::{around_ns, bots_meant, is_scenario_file, resolve, resolve_with, search_sentence};
pub use mistakes::{
    ConfigError, CredentialsError, Mistake, Mistakes, Place, RequestConfigError, Seen, StopError,
};
pub use network::{Network, Networks, TURNS};
pub use permissions::{Permission, may_load_for_file, permissions};
pub use plan::{
    Arrivals, Axis, Cell, Generator, Handshake, HoldLength, Ladder, Plan, Profile, Ramp, RampRule, Subject,
    SubjectSource, SubjectStop, TickSource,
};
pub use ramp::ramp_sentence;
pub use scenario::{ScenarioText, scenario_schema};
pub use scheme::{FirstSign, Paths, Protocol, Scheme, Transport};
pub use settings::{Kind, Setting};
pub use target::{HostPort, Target, TargetError, TargetRefused, may_load};
pub use vocabulary::nearest;
pub use worker_plan::{
    CLOSING_NS, DRAIN_NS, Needs, WorkerPlan, bots_total, loopback_sources, needs, sources_for, split,
    workers_for,
};
pub use workloads::*;
