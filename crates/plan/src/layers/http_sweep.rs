//! The axes of HTTP loads: how long a client stays, how long it keeps its connection, how many updates it sends at
//! once.
//!
//! Each is a list; one value is an ordinary setting, and several make each combination a cell of the ladder. The
//! subject is the same in all cells and is not restarted.

use std::collections::BTreeMap;

use crate::layers::reader::{RawValue, Reader, default_of};
use crate::mistakes::RequestConfigError;
use crate::plan::{Axis, Cell};
use crate::settings::{Setting, Shape};
use crate::units::{self, UnitError};
use crate::workloads::Visit;
use crate::workloads::http::settings::TRANSPORT;
use crate::workloads::leaderboard::settings::BULK;

settings! { pub(crate) SETTINGS;
    REQUESTS_PER_BOT = TRANSPORT.key("bots.requests_per_bot", Shape::OneOrMore, "[1, 10, 100]")
        .about("http: requests of one client; then it leaves, and another comes in its place. Several values are swept.")
        .flag("--requests-per-bot", "LIST")
        .help("Requests of one client; then its visit ends, and another client comes in its place. Several values are swept")
        .default("no limit").flag_example("1,10,100");
    RECONNECT_AFTER = TRANSPORT.key("bots.reconnect_after", Shape::OneOrMore, "100")
        .about("http: requests on one connection; then its client opens another. Several values are swept.")
        .flag("--reconnect-after", "LIST")
        .help("Requests on one connection; then its client opens another. Several values are swept").default("no limit")
        .flag_example("100");
}
const REQUESTS_MOST: u64 = 1_000_000_000;
const BULK_MOST: u64 = 10_000;
/// More cells than that are a slip of the keyboard.
const CELLS_MOST: usize = 200;

fn setting_of(axis: Axis) -> (&'static Setting, u64) {
    match axis {
        Axis::Bulk => (&BULK, BULK_MOST),
        Axis::RequestsPerBot => (&REQUESTS_PER_BOT, REQUESTS_MOST),
        Axis::ReconnectAfter => (&RECONNECT_AFTER, REQUESTS_MOST),
    }
}

/// The first values, which hold where nothing is swept; `cells` has the others.
pub(crate) fn visit(reader: &mut Reader, keep_alive: bool) -> Visit {
    let mut first = |axis: Axis| {
        let (setting, most) = setting_of(axis);
        let said = reader.said(setting)?;
        if !keep_alive {
            reader.refuse_plainly(said.place, RequestConfigError::NothingKept { setting: setting.name() });
            return None;
        }
        units::whole_within(&said.text, 1, most).ok()
    };
    Visit { requests: first(Axis::RequestsPerBot), reconnect_after: first(Axis::ReconnectAfter) }
}

/// As `visit`, for the leaderboard.
pub(crate) fn bulk(reader: &Reader) -> u64 {
    let first = reader.said(&BULK).and_then(|said| units::whole_within(&said.text, 1, BULK_MOST).ok());
    first.unwrap_or_else(|| default_of(&BULK, |text| units::whole_within(text, 1, BULK_MOST)))
}

/// Refuses bulks that no message over WebSocket has room for.
pub(crate) fn refuse_bulks_above(reader: &mut Reader, most: u64) {
    for one in reader.all(&BULK).unwrap_or_default() {
        if units::whole_within(&one.text, 1, BULK_MOST).is_ok_and(|bulk| bulk > most) {
            reader.refuse_plainly(one.place, RequestConfigError::BulkOverWebSocket { most });
        }
    }
}

/// Each combination of the axes that have several values; empty if none has. `has_others`: the subject has its own
/// axes, which are not combined with these.
pub(crate) fn cells(reader: &mut Reader, has_others: bool) -> Vec<Cell> {
    let mut cells = vec![Cell::default()];
    for &axis in Axis::ALL {
        let values = values(reader, axis);
        if values.len() < 2 {
            continue;
        }
        if has_others {
            let (setting, _) = setting_of(axis);
            let place = reader.said(setting).map(|said| said.place);
            let wrong = RequestConfigError::AxisBesideOthers { axis: setting.name() };
            place.into_iter().for_each(|place| reader.refuse_plainly(place, wrong.clone()));
            continue;
        }
        let with = |cell: &Cell, value: u64| {
            let name = (axis.name().to_owned(), value.to_string());
            let names: BTreeMap<String, String> = cell.names.clone().into_iter().chain([name]).collect();
            Cell { names, ..cell.clone() }
        };
        cells = cells.iter().flat_map(|cell| values.iter().map(|value| with(cell, *value))).collect();
    }
    if cells.len() > CELLS_MOST
        && let Some(said) = reader.said(&REQUESTS_PER_BOT).or_else(|| reader.said(&BULK))
    {
        let wrong = RequestConfigError::TooManyCells { cells: cells.len(), most: CELLS_MOST };
        reader.refuse_plainly(said.place, wrong);
        cells.truncate(CELLS_MOST);
    }
    cells.retain(|cell| !cell.names.is_empty());
    cells
}

/// The values of an axis, ascending; what cannot be one is refused.
fn values(reader: &mut Reader, axis: Axis) -> Vec<u64> {
    let (setting, most) = setting_of(axis);
    let said: Vec<RawValue> = reader.all(setting).unwrap_or_default();
    let mut values = Vec::new();
    for one in &said {
        let Some(value) = reader.read(one, |text| units::whole_within(text, 1, most)) else { continue };
        if values.contains(&value) {
            reader.refuse(one, UnitError::Duplicate(value as f64).into());
        } else {
            values.push(value);
        }
    }
    values.sort_unstable();
    values
}
