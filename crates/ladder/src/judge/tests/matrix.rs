//! Every fault on four machines: quiet, a host that steals 7 % of the CPU, one that steals 18 %, and another program on
//! 1.1 of 2 cores.
//!
//! The same matrix as `stepladder selftest`, without a clock. A healthy server passes on all of them and a faulty one
//! on none. What a disturbance can explain may end INCONCLUSIVE there; everything else fails on every machine.

use measure::{Entry, Trial};

use super::disturbed::{beside_cc1, steal, threads};
use super::silent::stops_replying;
use super::*;
use crate::disturbance::{disturbance, least_disturbed};
use crate::testing::{HOLD_FROM_S, lose};

/// Verdict and signal.
type Ends = (Verdict, &'static str);

/// What was planted, what is asked, and how it ends on three of the machines.
struct Row {
    fault: &'static str,
    objectives: &'static str,
    builder: fn() -> TrialBuilder,
    /// entries that the trial lacks
    lacks: fn(&Entry) -> bool,
    quiet: Ends,
    steal: Ends,
    beside: Ends,
}

const ARENA: &str = "ticks.late_share < 25%";
const ASKING: &str = "response.p99 < 50ms, errors == 0";
const CHAT: &str = "deliveries.lost == 0, deliveries.latency.p99 < 50ms";
const NO_ERRORS: &str = "errors == 0";

const PASSES: Ends = (Pass, "");
const EXITED: Ends = (Fail, "server exited");
const SILENT: Ends = (Fail, "ticks.silence");
const LATE: Ends = (Fail, "ticks.late_share");
const NO_REPLY: Ends = (Fail, "stopped replying");
const DISTURBED: Ends = (Inconclusive, "disturbed");

/// A row whose fault ends in the same way on every machine: no disturbance explains it.
const fn certain(
    fault: &'static str,
    objectives: &'static str,
    builder: fn() -> TrialBuilder,
    ends: Ends,
) -> Row {
    Row { fault, objectives, builder, lacks: |_| false, quiet: ends, steal: ends, beside: ends }
}

/// A row whose fault fails on a quiet machine, where nothing else can have caused it.
const fn explainable(
    fault: &'static str,
    objectives: &'static str,
    builder: fn() -> TrialBuilder,
    quiet: Ends,
    others: [Ends; 2],
) -> Row {
    Row { steal: others[0], beside: others[1], ..certain(fault, objectives, builder, quiet) }
}

const fn lacking(row: Row, lacks: fn(&Entry) -> bool) -> Row {
    Row { lacks, ..row }
}

const ROWS: &[Row] = &[
    certain("none, arena", ARENA, arena, PASSES),
    certain("none, requests", ASKING, asking, PASSES),
    certain("none, chat", CHAT, chat, PASSES),
    certain("none, poll-loop", NO_ERRORS, || TrialBuilder::polling(10.0), PASSES),
    lacking(certain("hang early in the hold", ARENA, arena, SILENT), |entry| ends_after(entry, 2)),
    lacking(certain("hang in the middle of the hold", ARENA, arena, SILENT), |entry| ends_after(entry, 30)),
    lacking(certain("hang 2 s before the end", ARENA, arena, SILENT), |entry| ends_after(entry, 58)),
    certain("hang, requests", ASKING, || stops_replying(20), NO_REPLY),
    certain("hang 2 s before the end, requests", NO_ERRORS, || stops_replying(56), NO_REPLY),
    certain("exit", ARENA, || arena().event(20, kind::SUBJECT_EXITED, "exit code 7"), EXITED),
    certain("exit, chat", CHAT, || chat().event(20, kind::SUBJECT_EXITED, "exit code 7"), EXITED),
    certain("drop-all for good", ARENA, || arena().edit(no_connections), (Fail, "connections.open_min")),
    certain("refuse", NO_ERRORS, || asking().rejected(3, "GET /: status 503"), (Fail, "errors")),
    certain("wrong-answers", ARENA, || arena().edit(wrong_winner), (Fail, "wrong winner")),
    certain(
        "wrong-answers, chat, no line any more",
        CHAT,
        || lossy(0).edit(wrong_winner),
        (Fail, "wrong winner"),
    ),
    certain("lets nobody in", CHAT, || chat().not_admitted(100, 11), (Fail, "clients.admitted")),
    explainable(
        "lets 10 % not in",
        CHAT,
        || chat().not_admitted(10, 11),
        (Fail, "clients.admitted"),
        [DISTURBED, DISTURBED],
    ),
    certain("none, chat, 4 % not let in", CHAT, || chat().not_admitted(4, 11), PASSES),
    certain("wrong-answers, chat", CHAT, strange_lines, (Fail, "deliveries.unknown_messages")),
    certain("late-answers", ASKING, || slow_by(1_000), (Fail, "response.p99")),
    explainable(
        "late-answers of 5 %",
        ASKING,
        || slow_by(50),
        (Fail, "response.p99"),
        [DISTURBED, DISTURBED],
    ),
    certain("lose, counted as if it were not", CHAT, || lossy(0), (Invalid, "deliveries.residual")),
    explainable("lose, told", CHAT, || lossy(1), (Fail, "deliveries.lost"), [DISTURBED, DISTURBED]),
    certain("duplicate", "deliveries.duplicated == 0", twice, (Fail, "deliveries.duplicated")),
    certain("leak", "subject.rss_bytes < 40MB", arena, (Fail, "subject.rss_bytes")),
    explainable("late-ticks:40%", ARENA, || arena().late(0.4), LATE, [LATE, DISTURBED]),
    certain("late-ticks:90%", ARENA, || arena().late(0.9), LATE),
    certain("collapse", ARENA, || collapse(20), LATE),
    certain("lie:40%", ARENA, lie, (Inconclusive, "inconsistent")),
];

fn arena() -> TrialBuilder {
    TrialBuilder::arena(500.0)
}

fn asking() -> TrialBuilder {
    TrialBuilder::asking(1000.0)
}

fn chat() -> TrialBuilder {
    TrialBuilder::chat(100)
}

/// Told by the server after this second of the hold.
fn ends_after(entry: &Entry, hold_s: u32) -> bool {
    let end_ns = u64::from(HOLD_FROM_S + hold_s) * SECOND_NS;
    matches!(entry, Entry::Ticks(second) if second.to_ns > end_ns)
}

fn no_connections(at: u32, interval: &mut measure::Interval) {
    if at >= 20 {
        (interval.connections.open_min, interval.connections.open_end) = (0, 0);
    }
}

fn wrong_winner(at: u32, interval: &mut measure::Interval) {
    interval.errors[1] = u64::from(at == 7);
}

/// So many of the thousand answers of each second take 200 ms.
fn slow_by(slow: u64) -> TrialBuilder {
    asking().edit(move |_, interval| {
        let response = interval.distribution_mut(Measure::Response, true);
        response.clear();
        response.record_many(2_000_000, 1_000 - slow);
        response.record_many(200_000_000, slow);
    })
}

/// Twelve deliveries are lost, and the server reports all or none of them.
fn lossy(told: u64) -> TrialBuilder {
    chat().receivers(move |one| {
        if one.receiver == 7 {
            lose(one, 12, 12 * told, 0);
        }
    })
}

fn twice() -> TrialBuilder {
    chat().receivers(|one| one.sum.duplicated = u64::from(one.receiver == 7))
}

fn strange_lines() -> TrialBuilder {
    // Each altered line is also missing under its own name, and the server does not know of it.
    let mut builder = lossy(0);
    if let Some(books) = &mut builder.books {
        books.unknown_messages = 3;
    }
    builder
}

/// Every tick is late from a second of the hold on.
fn collapse(from_s: u32) -> TrialBuilder {
    arena().late_at(move |at| if at >= from_s { 1.0 } else { 0.02 })
}

/// The log tells 3 % of late ticks, the clients see 80 %.
fn lie() -> TrialBuilder {
    arena().edit(|_, interval| see_ticks(interval, 1_000, 800, 23_000_000))
}

/// The server's threads and ours waited this long for a core.
fn waiting(builder: TrialBuilder, share: f64) -> TrialBuilder {
    builder.sampled(move |_| threads(share))
}

fn judged(row: &Row, machine: &str, builder: &TrialBuilder) -> Judgement {
    let head = || builder.build().head;
    let entries: Vec<Entry> = builder.entries().into_iter().filter(|entry| !(row.lacks)(entry)).collect();
    let trial = Trial::from_entries(head(), &entries, 0);
    let terms = terms(row.objectives);
    assert_eq!(disturbance(&trial).any(), machine != "quiet", "{}: {machine}", row.fault);
    let left_out = least_disturbed(&trial, terms.hold_ns).left_out;
    let calmer = (!left_out.is_empty()).then(|| Trial::from_entries_without(head(), &entries, 0, left_out));
    judge(&trial, calmer.as_ref(), &terms)
}

fn check_row(row: &Row, machine: &str, builder: &TrialBuilder, ends: Ends) {
    let judgement = judged(row, machine, builder);
    let found = (judgement.verdict, judgement.signal.as_deref().unwrap_or(""));
    assert_eq!(found, ends, "{} on a machine that is {machine}: {:?}", row.fault, judgement.reason);
    assert_eq!(
        ends.0 == Pass,
        row.fault.starts_with("none"),
        "{}: a healthy server or none passes",
        row.fault
    );
}

#[test]
fn every_fault_is_judged_rightly_on_a_quiet_a_stolen_and_a_shared_machine() {
    for row in ROWS {
        check_row(row, "quiet", &waiting((row.builder)(), 0.0), row.quiet);
        check_row(row, "stolen from", &steal(waiting((row.builder)(), 0.0), 0.07), row.steal);
        check_row(row, "shared", &beside_cc1(waiting((row.builder)(), 0.1), 1.1), row.beside);
    }
}

#[test]
fn a_host_that_steals_much_lets_no_faulty_server_pass_and_no_healthy_one_fail() {
    for row in ROWS {
        let judgement = judged(row, "robbed", &steal(waiting((row.builder)(), 0.0), 0.18));
        let (passes, is_healthy) = (judgement.verdict == Pass, row.fault.starts_with("none"));
        assert_eq!(passes, is_healthy, "{}: {:?}", row.fault, judgement.reason);
    }
}
