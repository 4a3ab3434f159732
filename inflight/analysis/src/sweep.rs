//! Findings of a sweep, in words: the best number in flight, how long a run must be, how time grows with the value.
//!
//! A pure function of the table: whatever was measured at six or more numbers, sizes or totals gets a sentence.

mod growth;

use serde_json::json;

pub use self::growth::SIZES_MIN;
use self::growth::{Growth, Shape};
use super::figures::{Cell, Report, Run, bytes};
use super::statistics::Ratio;
use ladder::Conclusion;

/// A rate of this share of the highest is as good: less is lost than by a busy neighbour.
const AS_GOOD: f64 = 0.95;

/// All that can be said.
pub fn conclusions(report: &Report) -> Vec<Conclusion> {
    let mut all = Vec::new();
    let cells: Vec<&Cell> = report.cells.iter().filter(|cell| !cell.key.is_unlimited()).collect();
    let number = |cell: &Cell| cell.key.in_flight.parse().unwrap_or_default();
    let (value, total) = (|cell: &Cell| cell.key.value_bytes, |cell: &Cell| cell.key.total);
    let who = |cell: &Cell| (cell.client.clone(), cell.key.op.clone());
    for group in groups(&cells, |cell| (who(cell), value(cell)), number) {
        all.extend(best_in_flight(&group));
    }
    for group in groups(&cells, |cell| (who(cell), number(cell)), value) {
        all.extend(growth(&group));
    }
    for group in groups(&cells, |cell| (who(cell), value(cell), number(cell)), total) {
        all.push(long_enough(&group));
    }
    all
}

/// Cells that differ in `axis` alone, at six places or more, in its order. Of several at one place that with the most
/// operations.
fn groups<'c, K: PartialEq>(
    cells: &[&'c Cell],
    same: impl Fn(&Cell) -> K,
    axis: impl Fn(&Cell) -> u64,
) -> Vec<Vec<&'c Cell>> {
    let mut groups: Vec<(K, Vec<&Cell>)> = Vec::new();
    for cell in cells {
        let key = same(cell);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(cell),
            None => groups.push((key, vec![cell])),
        }
    }
    let order = |(_, mut group): (K, Vec<&'c Cell>)| {
        group.sort_by_key(|cell| (axis(cell), std::cmp::Reverse(cell.key.total)));
        group.dedup_by_key(|cell| axis(cell));
        (group.len() >= SIZES_MIN).then_some(group)
    };
    groups.into_iter().filter_map(order).collect()
}

fn p99_ms(cell: &Cell) -> f64 {
    cell.latency().value_at_quantile(0.99) as f64 / 1e6
}

/// The rate of a cell against another's, as percent more or less.
fn more(ratio: Option<Ratio>) -> String {
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    ratio.map_or("unknown".to_owned(), |ratio| {
        format!(
            "{:+.0} % (95 %: {:+.0} to {:+.0})",
            percent(ratio.mean),
            percent(ratio.low),
            percent(ratio.high)
        )
    })
}

fn best_in_flight(group: &[&Cell]) -> Option<Conclusion> {
    let rate = |cell: &Cell| cell.rate_per_s().mean;
    let top = group.iter().max_by(|one, other| rate(one).total_cmp(&rate(other)))?;
    let best = group.iter().find(|cell| rate(cell) >= AS_GOOD * rate(top))?;
    let last = group.last()?;
    let (key, number) = (&best.key, &best.key.in_flight);
    let mut text = format!(
        "{}, {} {}: {number} in flight is best: {:.0} operations/s with a p99 of {:.2} ms",
        best.client,
        key.op,
        bytes(key.value_bytes),
        rate(best),
        p99_ms(best),
    );
    if std::ptr::eq(*best, *last) {
        text += ", and the rate still grows there: the best number may lie above what was measured";
    } else {
        let against = |cell: &Cell| more(cell.ratio_to(best));
        if std::ptr::eq(*best, *top) {
            text +=
                &format!("; {} in flight: {} at {:.2} ms", last.key.in_flight, against(last), p99_ms(last));
        } else {
            text += &format!(
                "; the highest rate, at {} in flight, is {} at {:.2} ms",
                top.key.in_flight,
                against(top),
                p99_ms(top)
            );
        }
    }
    if let Some(first) = group.first().filter(|first| !std::ptr::eq(**first, *best)) {
        text += &format!(
            "; {} in flight reaches {:.0} % of it",
            first.key.in_flight,
            rate(first) / rate(best) * 100.0
        );
    }
    let points = group.iter().map(|cell| {
        json!({
            "in_flight": cell.key.in_flight.parse::<u64>().ok(), "ops_per_s": rate(cell),
            "ops_per_s_stddev": cell.rate_per_s().stddev, "p99_ms": p99_ms(cell),
        })
    });
    let evidence = json!({
        "client": best.client, "op": key.op, "value_bytes": key.value_bytes,
        "best": number.parse::<u64>().ok(), "points": points.collect::<Vec<_>>(),
    });
    Some(Conclusion::new("in_flight", &[text], evidence))
}

/// Geometric mean over the runs, ns.
fn ns_per_op(cell: &Cell) -> f64 {
    let logs: Vec<f64> = cell.runs().map(Run::rate_per_s).map(|rate| (1e9 / rate).ln()).collect();
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

fn growth(group: &[&Cell]) -> Option<Conclusion> {
    let points: Vec<(f64, f64)> =
        group.iter().map(|cell| (cell.key.value_bytes as f64, ns_per_op(cell))).collect();
    let growth = Growth::of(&points)?;
    let (first, last) = (group.first()?, group.last()?);
    let k = growth.exponent;
    let power = format!("exponent {:.2}, 95 %: {:.2} to {:.2}", k.value, k.low, k.high);
    let us = |ns: f64| format!("{:.2}", ns / 1e3);
    let line = format!(
        "{} µs ({}–{}) + {:.3} ns per byte ({:.3}–{:.3})",
        us(growth.fixed_ns.value),
        us(growth.fixed_ns.low),
        us(growth.fixed_ns.high),
        growth.ns_per_byte.value,
        growth.ns_per_byte.low,
        growth.ns_per_byte.high
    );
    let times = format!(
        "{} takes {:.1} times as long as {}, for {:.0} times the bytes",
        bytes(last.key.value_bytes),
        ns_per_op(last) / ns_per_op(first),
        bytes(first.key.value_bytes),
        last.key.value_bytes as f64 / first.key.value_bytes as f64,
    );
    let said = match growth.shape {
        Shape::Flat => format!("time per operation does not grow measurably with the value: {times}"),
        Shape::Linear => format!("time per operation grows linearly with the value: {line} ({power})"),
        Shape::SubLinear => format!(
            "time per operation grows sub-linearly with the value ({power}): {times}; a straight line does not describe it"
        ),
        Shape::SuperLinear => format!(
            "time per operation grows super-linearly with the value ({power}): {times}; a straight line does not describe it"
        ),
        Shape::Unclear => format!(
            "time per operation grows with the value, and these figures leave open whether linearly ({power}): {times}"
        ),
    };
    let estimate = |one: growth::Estimate| json!({ "value": one.value, "low": one.low, "high": one.high });
    let evidence = json!({
        "client": first.client, "op": first.key.op, "in_flight": first.key.in_flight, "shape": growth.shape.name(),
        "exponent": estimate(k), "fixed_ns": estimate(growth.fixed_ns), "ns_per_byte": estimate(growth.ns_per_byte),
        "points": group.iter().zip(&points)
            .map(|(cell, (_, ns))| json!({ "value_bytes": cell.key.value_bytes, "ns_per_op": ns }))
            .collect::<Vec<_>>(),
    });
    let (client, op, number) = (&first.client, &first.key.op, &first.key.in_flight);
    let text = format!("{client}, {op}, {number} in flight: {said}");
    Some(Conclusion::new("value", &[text], evidence))
}

fn long_enough(group: &[&Cell]) -> Conclusion {
    let rate = |cell: &Cell| cell.rate_per_s().mean;
    let last = group[group.len() - 1];
    let is_alike = |cell: &Cell| (rate(cell) / rate(last) - 1.0).abs() <= 1.0 - AS_GOOD;
    // From here on all are alike.
    let from = group.iter().rposition(|cell| !is_alike(cell)).map_or(0, |at| at + 1);
    let cell = group[from];
    let key = &last.key;
    let what = format!("{}, {} {}, {} in flight", last.client, key.op, bytes(key.value_bytes), key.in_flight);
    let text = if std::ptr::eq(cell, last) {
        format!(
            "{what}: the rate still changes with the length of the run at {} operations ({:.0}/s): make runs longer",
            key.total,
            rate(last)
        )
    } else {
        format!(
            "{what}: runs of {} operations and more give the same rate within {:.0} % ({:.0}/s); one of {} gives {:.0}/s",
            cell.key.total,
            (1.0 - AS_GOOD) * 100.0,
            rate(last),
            group[0].key.total,
            rate(group[0]),
        )
    };
    let points = group.iter().map(|cell| json!({ "total": cell.key.total, "ops_per_s": rate(cell) }));
    let evidence = json!({
        "client": last.client, "op": key.op, "value_bytes": key.value_bytes, "in_flight": key.in_flight,
        "long_enough": (!std::ptr::eq(cell, last)).then_some(cell.key.total), "points": points.collect::<Vec<_>>(),
    });
    Conclusion::new("total", &[text], evidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CellKey;
    use crate::testing::cell_of;

    const IN_FLIGHT: [u64; 10] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];
    const VALUES: [u64; 8] = [16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144];

    fn key(value_bytes: u64, in_flight: u64, total: u64) -> CellKey {
        CellKey { op: "get".to_owned(), value_bytes, in_flight: in_flight.to_string(), total }
    }

    fn told(cells: Vec<Cell>) -> Vec<Conclusion> {
        conclusions(&Report { target: "null:".to_owned(), cells, profiles: Vec::new() })
    }

    #[test]
    fn the_best_number_in_flight_is_the_smallest_that_reaches_the_highest_rate() {
        let saturating = |number: u64| 1e5 * number as f64 / (number as f64 + 5.0);
        let cells = IN_FLIGHT.map(|number| {
            let rate = saturating(number);
            cell_of("rust", key(3, number, 1000), &[rate, rate * 1.02, rate * 0.98])
        });
        let all = told(cells.into());
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].evidence["best"], 100);
        assert!(
            all[0].text.starts_with("rust, get 3 B: 100 in flight is best: 95238 operations/s"),
            "{}",
            all[0].text
        );
        assert!(all[0].text.contains("at 1000 in flight, is +4 %"), "{}", all[0].text);
    }

    #[test]
    fn a_rate_that_still_grows_is_no_best_one() {
        let cells = IN_FLIGHT.map(|number| cell_of("go", key(3, number, 1000), &[number as f64; 2]));
        let all = told(cells.into());
        assert!(all[0].text.contains("the best number may lie above what was measured"), "{}", all[0].text);
    }

    #[test]
    fn fewer_than_six_places_say_nothing() {
        let cells: Vec<Cell> =
            VALUES[..5].iter().map(|bytes| cell_of("go", key(*bytes, 100, 1000), &[1e4])).collect();
        assert!(told(cells).is_empty());
    }

    #[test]
    fn values_get_their_sentence_with_both_parts_of_the_line() {
        let ns = |bytes: u64| 10_000.0 + 0.5 * bytes as f64;
        let cells = VALUES.map(|bytes| cell_of("java", key(bytes, 100, 1000), &[1e9 / ns(bytes); 3]));
        let all = told(cells.into());
        assert_eq!((all.len(), all[0].id.as_str()), (1, "value"));
        assert_eq!(all[0].evidence["shape"], "linear");
        let expected = "java, get, 100 in flight: time per operation grows linearly with the value: 10.00 µs (10.00–10.00) + \
                        0.500 ns per byte (0.500–0.500)";
        assert!(all[0].text.starts_with(expected), "{}", all[0].text);
    }

    #[test]
    fn a_run_is_long_enough_from_where_longer_ones_give_the_same() {
        let rates =
            [(1000, 10.0), (2000, 50.0), (4000, 97.0), (8000, 99.0), (16_000, 101.0), (32_000, 100.0)];
        let all = told(rates.map(|(total, rate)| cell_of("node", key(3, 100, total), &[rate; 2])).into());
        assert_eq!(
            (all.len(), all[0].id.as_str(), &all[0].evidence["long_enough"]),
            (1, "total", &json!(4000))
        );
    }
}
