//! Operations on a data grid: what they do, on which keys, with how large values, over how many connections.

use crate::layers::bots::BotsKind;
use crate::layers::reader::Reader;
use crate::scheme::Transport;
use crate::settings::{Setting, Shape};
use crate::units::{self, grid};
use crate::workloads::GridBots;
use crate::workloads::http::settings::CONNECTIONS;

/// How a plan comes to these bots.
pub(crate) const KIND: BotsKind = BotsKind {
    name: "grid",
    speaks: |scheme| matches!(scheme.transport(), Transport::Redis | Transport::Hazelcast),
    settings: &[SETTINGS],
    read: |reader, _, _| read(reader).into(),
};

const SETTINGS: &[&Setting] = &[&OP, &VALUE, &KEYS];
const GRID: Setting = Setting::of("Grid", &["grid"]);

static OP: Setting = GRID
    .key("bots.op", Shape::Text, "mix")
    .about(
        "grid: what operations do: get, set, mix (40 % get, 40 % set, 20 % delete), or gets to sets, such as 9:1.",
    )
    .flag("--op", "KIND")
    .help("What operations do: get, set, mix (40 % get, 40 % set, 20 % delete), or gets to sets, such as 9:1")
    .default("get");
static VALUE: Setting = GRID
    .key("bots.value", Shape::NumberOrText, "1KiB")
    .about("grid: length of each value.")
    .flag("--value", "BYTES")
    .help("Length of each value, at most 16MiB")
    .default("3");
static KEYS: Setting = GRID
    .key("bots.keys", Shape::Text, "zipf:1000")
    .about("grid: which keys: one, uniform:N, or zipf:N (the j-th in proportion to j^-0.99).")
    .flag("--keys", "PATTERN")
    .help("Which keys: one, uniform:N, or zipf:N (the j-th in proportion to j^-0.99)")
    .default("one");

/// What client libraries have: one connection, which all operations share.
const CONNECTIONS_USUAL: u64 = 1;
const CONNECTIONS_MOST: u64 = 10_000;

fn read(reader: &mut Reader) -> GridBots {
    let op = reader.value_or_default(&OP, grid::op);
    let value_bytes = reader.value_or_default(&VALUE, grid::value_bytes);
    let keys = reader.value_or_default(&KEYS, grid::keys);
    let connections = reader.value(&CONNECTIONS, |text| units::whole_within(text, 1, CONNECTIONS_MOST));
    GridBots { op, value_bytes, keys, connections: connections.unwrap_or(CONNECTIONS_USUAL) }
}
