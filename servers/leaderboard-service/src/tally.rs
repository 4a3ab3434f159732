//! One thread's counters, and the metrics built from those of all threads.
//!
//! Each thread writes only its own counters, so that counting never moves a cache line between cores.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Shared;
use super::messages::OPERATIONS;
use super::routes::ROUTES;

/// All statuses that the service gives.
const STATUSES: [u16; 19] =
    [200, 201, 204, 400, 401, 404, 405, 408, 409, 411, 413, 415, 422, 429, 431, 501, 503, 505, 507];

/// Boards that have their own metrics.
const BOARDS_MAX: usize = 100;

/// What messages of `proto/leaderboard.proto` come over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    WebSocket,
    Grpc,
}

const CHANNELS: [(Channel, &str); 2] = [(Channel::WebSocket, "websocket"), (Channel::Grpc, "grpc")];

pub(super) struct Tally {
    /// By the route's number, and by place in `STATUSES`. The last row: requests without a route.
    requests: Vec<[AtomicU64; STATUSES.len()]>,
    /// By channel, by operation, and by place in `STATUSES`. The last row: messages without an operation.
    messages: [[[AtomicU64; STATUSES.len()]; OPERATIONS.len() + 1]; CHANNELS.len()],
    updates: AtomicU64,
}

impl Tally {
    pub(super) fn new() -> Tally {
        Tally {
            requests: (0..=ROUTES.len()).map(|_| Default::default()).collect(),
            messages: Default::default(),
            updates: AtomicU64::new(0),
        }
    }

    /// Only the thread that owns the tally counts.
    pub(super) fn count_request(&self, route: Option<usize>, status: u16) {
        if let Some(place) = STATUSES.iter().position(|each| *each == status) {
            add(&self.requests[route.unwrap_or(ROUTES.len())][place], 1);
        }
    }

    /// Only the thread that owns the tally counts. `operation` is a place in `OPERATIONS`.
    pub(super) fn count_message(&self, channel: Channel, operation: Option<usize>, status: u16) {
        if let Some(place) = STATUSES.iter().position(|each| *each == status) {
            add(&self.messages[channel as usize][operation.unwrap_or(OPERATIONS.len())][place], 1);
        }
    }

    pub(super) fn count_updates(&self, count: u64) {
        add(&self.updates, count);
    }
}

/// For a counter with one writer.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// The reason phrase of a status.
pub(super) fn reason(status: u16) -> &'static str {
    http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("")
}

/// All counters as OpenMetrics text.
pub(super) fn metrics(shared: &Shared) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_metrics(&mut out, shared);
    out
}

fn write_metrics(out: &mut String, shared: &Shared) -> std::fmt::Result {
    let sum = |counter: &dyn Fn(&Tally) -> &AtomicU64| -> u64 {
        shared.tallies.iter().map(|tally| counter(tally).load(Ordering::Relaxed)).sum()
    };
    writeln!(
        out,
        "# TYPE leaderboard_updates counter\n# HELP leaderboard_updates Scores that were updated."
    )?;
    writeln!(out, "leaderboard_updates_total {}", sum(&|tally| &tally.updates))?;
    writeln!(out, "# TYPE leaderboard_requests counter\n# HELP leaderboard_requests Requests answered.")?;
    for row in 0..=ROUTES.len() {
        let (method, path) = ROUTES.get(row).map_or(("", "none".to_owned()), |r| (r.method, r.path()));
        for (place, status) in STATUSES.iter().enumerate() {
            let count = sum(&|tally| &tally.requests[row][place]);
            if count > 0 {
                let labels = format!("method=\"{method}\",path=\"{path}\",status=\"{status}\"");
                writeln!(out, "leaderboard_requests_total{{{labels}}} {count}")?;
            }
        }
    }
    writeln!(out, "# TYPE leaderboard_messages counter\n# HELP leaderboard_messages Messages answered.")?;
    for (channel, channel_name) in CHANNELS {
        for row in 0..=OPERATIONS.len() {
            let operation = OPERATIONS.get(row).copied().unwrap_or("none");
            for (place, status) in STATUSES.iter().enumerate() {
                let count = sum(&|tally| &tally.messages[channel as usize][row][place]);
                if count > 0 {
                    let labels = format!("channel=\"{channel_name}\",operation=\"{operation}\"");
                    writeln!(out, "leaderboard_messages_total{{{labels},status=\"{status}\"}} {count}")?;
                }
            }
        }
    }
    let connections = shared.connections.load(Ordering::Relaxed);
    writeln!(out, "# TYPE leaderboard_connections gauge\nleaderboard_connections {connections}")?;
    let is_full = shared.log.as_ref().is_some_and(|log| log.is_full());
    writeln!(out, "# TYPE leaderboard_disk_full gauge\nleaderboard_disk_full {}", u8::from(is_full))?;
    let pending = shared.pending.load(Ordering::Relaxed);
    writeln!(out, "# TYPE leaderboard_pending_answers gauge\nleaderboard_pending_answers {pending}")?;
    if let Some(store) = &shared.store {
        store.write_metrics(out)?;
    }
    let boards = shared.boards.list(None, BOARDS_MAX);
    let boards: Vec<_> = boards.iter().map(|board| (label(&board.name), &board.leaderboard)).collect();
    writeln!(out, "# TYPE leaderboard_members gauge")?;
    for (name, board) in &boards {
        writeln!(out, "leaderboard_members{{leaderboard=\"{name}\"}} {}", board.count())?;
    }
    writeln!(out, "# TYPE leaderboard_lock_waits counter")?;
    for (name, board) in &boards {
        writeln!(out, "leaderboard_lock_waits_total{{leaderboard=\"{name}\"}} {}", board.lock_waits().count)?;
    }
    writeln!(
        out,
        "# TYPE leaderboard_lock_wait_seconds counter\n# UNIT leaderboard_lock_wait_seconds seconds"
    )?;
    for (name, board) in &boards {
        let waited_s = board.lock_waits().total_ns as f64 / 1e9;
        writeln!(out, "leaderboard_lock_wait_seconds_total{{leaderboard=\"{name}\"}} {waited_s}")?;
    }
    writeln!(out, "# EOF")
}

fn label(name: &str) -> String {
    name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
