//! Operations on a data grid: when they are planned, what they do, on which keys, with what value sizes and expiry,
//! over how many connections.

use crate::layers::bots::BotsKind;
use crate::layers::ladder::Loads;
use crate::layers::reader::Reader;
use crate::mistakes::RequestConfigError;
use crate::scheme::Transport;
use crate::settings::{Setting, Shape};
use crate::units::{self, grid};
use crate::workloads::http::settings::CONNECTIONS;
use crate::workloads::{GridBots, GridModel, GridOp};

/// How a plan selects these bots.
pub(crate) const KIND: BotsKind = BotsKind {
    name: "grid",
    speaks: |scheme| matches!(scheme.transport(), Transport::Redis | Transport::Hazelcast),
    settings: &[SETTINGS],
    read: |reader, _, loads| read(reader, loads).into(),
};

const GRID: Setting = Setting::of("Grid", &["grid"]);

settings! { SETTINGS;
    OP = GRID.key("bots.op", Shape::Text, "mix")
        .about("grid: what operations do: get, set, mix (40 % get, 40 % set, 20 % delete), or gets to sets, such as 9:1.")
        .flag("--op", "KIND")
        .help("What operations do: get, set, mix (40 % get, 40 % set, 20 % delete), or gets to sets, such as 9:1")
        .default("get");
    READ_WRITE = GRID.key("bots.read_write", Shape::Text, "9:1")
        .about("grid: instead of op: so many gets to so many sets.")
        .flag("--read-write", "GETS:SETS").help("Instead of --op: so many gets to so many sets, such as 9:1");
    VALUE = GRID.key("bots.value", Shape::NumberOrText, "1KiB").about("grid: length of each value.")
        .flag("--value", "BYTES").help("Length of each value, at most 16MiB").default("3");
    KEYS = GRID.key("bots.keys", Shape::Text, "zipf:1000")
        .about("grid: which keys: one, uniform:N, or zipf:N (the j-th in proportion to j^-0.99).")
        .flag("--keys", "PATTERN").help("Which keys: one, uniform:N, or zipf:N (the j-th in proportion to j^-0.99)")
        .default("one");
    TTL = GRID.key("bots.ttl", Shape::Text, "10s")
        .about("grid: a value expires so long after it was set; a get that finds none is a miss then, and no error.")
        .flag("--ttl", "TIME")
        .help("A value expires so long after it was set; a get that finds none is a miss then, and no error")
        .default("values stay");
}

/// What client libraries have: one connection, which all operations share.
const CONNECTIONS_USUAL: u64 = 1;
const CONNECTIONS_MOST: u64 = 10_000;

const MS: u64 = 1_000_000;
/// What members and servers keep as a time to live without rounding it away.
const TTL_NS_MOST: u64 = 24 * 3_600_000_000_000;

fn read(reader: &mut Reader, loads: Option<&Loads>) -> GridBots {
    let op = reader.value_or_default(&OP, grid::op);
    let shares = reader.value(&READ_WRITE, grid::shares);
    if let (Some(_), Some(second)) = (reader.said(&OP), reader.said(&READ_WRITE)) {
        let wrong = RequestConfigError::TwoOfOne { first: OP.name(), second: READ_WRITE.name() };
        reader.refuse_plainly(second.place, wrong);
    }
    let value_bytes = reader.value_or_default(&VALUE, grid::value_bytes);
    let keys = reader.value_or_default(&KEYS, grid::keys);
    let ttl_ns = reader.value(&TTL, |text| units::duration_ns_within(text, MS, TTL_NS_MOST));
    let connections = reader.value(&CONNECTIONS, |text| units::whole_within(text, 1, CONNECTIONS_MOST));
    GridBots {
        op: shares.map_or(op, |(gets, sets)| GridOp::Shares { gets, sets }),
        value_bytes,
        keys,
        connections: connections.unwrap_or(CONNECTIONS_USUAL),
        model: if loads.is_some_and(Loads::is_rate) { GridModel::Open } else { GridModel::Closed },
        ttl_ms: ttl_ns.map(|ns| ns / MS),
    }
}
