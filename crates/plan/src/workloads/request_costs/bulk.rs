//! The size of a bulk: which is cheapest, and at which the server's CPU is saturated.

use ladder::wording::{show_ns, show_number, show_share};
use ladder::{Conclusion, LoadUnit};
use serde_json::json;

use super::{FULL_SHARE, NOISE, Step, cells};
use crate::plan::Axis;

/// Two sizes have no shape, so nothing could bear out which of them is cheaper.
const SIZES_LEAST: usize = 3;
/// It takes so many rungs besides the one that crosses the line to say where CPU is full.
const RISING_LEAST: usize = 2;

/// The steps of one load, by the size of their bulks; only those that differ in nothing else.
fn by_size<'s, 'a>(steps: &'s [Step<'a>], load: f64) -> Vec<(u64, &'s Step<'a>)> {
    let at_load = || steps.iter().filter(move |step| step.load == load && step.on(Axis::Bulk).is_some());
    let Some(beside) = at_load().next().map(|step| step.beside(Axis::Bulk)) else { return Vec::new() };
    let alike = at_load().filter(|step| step.beside(Axis::Bulk) == beside);
    let mut sizes: Vec<_> = alike.map(|step| (step.on(Axis::Bulk).unwrap_or(1), step)).collect();
    sizes.sort_by_key(|(size, _)| *size);
    sizes
}

/// Loads at which several sizes were held, the highest first.
fn loads(steps: &[Step<'_>]) -> Vec<f64> {
    // A rate of requests per second is a different number of updates for each size.
    let of_updates = steps.iter().filter(|step| step.rung.load_unit == LoadUnit::Updates);
    let mut loads: Vec<f64> = of_updates.map(|step| step.load).collect();
    loads.sort_by(|a, b| b.total_cmp(a));
    loads.dedup();
    loads
}

/// The size that meets the objectives with the least CPU, at the highest load at which any does.
pub(super) fn cheapest(steps: &[Step<'_>]) -> Option<Conclusion> {
    let is_met = |load: &f64| by_size(steps, *load).iter().any(|(_, step)| step.passes);
    let load = loads(steps).into_iter().find(is_met)?;
    let sizes = by_size(steps, load);
    let met: Vec<(u64, &Step<'_>, f64)> = sizes
        .iter()
        .filter(|(_, step)| step.passes)
        .filter_map(|(size, step)| Some((*size, *step, step.cpu_cores?)))
        .collect();
    if sizes.len() < SIZES_LEAST || met.is_empty() {
        return None;
    }
    let cheapest = met.iter().map(|(.., cores)| *cores).min_by(f64::total_cmp)?;
    // Among those of equal cost, the one with the shortest waits.
    let alike = met.iter().filter(|(.., cores)| *cores <= cheapest * (1.0 + NOISE));
    let wait = |step: &Step<'_>| step.p99_ns.unwrap_or(f64::INFINITY);
    let &(size, step, cores) = alike.min_by(|a, b| wait(a.1).total_cmp(&wait(b.1)))?;
    // The others confirm it if CPU falls towards it and rises from it. One that fails with less CPU did not do the
    // work.
    let did_the_work = |(_, step): &&(u64, &Step<'_>)| step.passes || step.cpu_cores >= Some(cheapest);
    let cpu: Vec<(u64, f64)> =
        sizes.iter().filter(did_the_work).filter_map(|(size, step)| Some((*size, step.cpu_cores?))).collect();
    let goes_one_way = cpu.windows(2).all(|pair| match pair[1].0 <= size {
        true => pair[1].1 <= pair[0].1 * (1.0 + NOISE),
        false => pair[1].1 >= pair[0].1 * (1.0 - NOISE),
    });
    if cpu.len() < SIZES_LEAST || !goes_one_way {
        return None;
    }
    let mut text = format!(
        "At {} updates/s the cheapest bulk that meets the objectives is {size}, of those tried: {cores:.2} cores of the server",
        show_number(load)
    );
    if let Some(ns) = step.p99_ns {
        text += &format!(", p99 {}", show_ns(ns));
    }
    let other = |(size, step): &&(u64, &Step<'_>)| {
        let cores = step.cpu_cores.map_or(String::new(), |cores| format!(" {cores:.2}"));
        format!("{size}{cores}{}", if step.passes { "" } else { " (objectives not met)" })
    };
    let others: Vec<String> =
        sizes.iter().filter(|(other, _)| *other != size).map(|one| other(&one)).collect();
    text += &format!("; the others: {}.", others.join(", "));
    let told = |(_, step): &(u64, &Step<'_>)| step.json();
    let evidence = json!({ "bulk": size, "load": load, "sizes": sizes.iter().map(told).collect::<Vec<_>>() });
    Some(Conclusion::new("cheapest_bulk", &[text], evidence))
}

/// The load at which the server's CPU is full, in the cells whose loads reach it.
pub(super) fn full_by_load(steps: &[Step<'_>]) -> Option<Conclusion> {
    let mut sentences = Vec::new();
    let mut evidence = Vec::new();
    for cell in cells(steps).iter().filter(|cell| cell[0].rung.load_unit != LoadUnit::Requesters) {
        let cpu: Vec<(f64, f64)> =
            cell.iter().filter_map(|step| Some((step.load, step.cpu_share?))).collect();
        let Some(over) = cpu.iter().position(|(_, share)| *share >= FULL_SHARE) else { continue };
        let rises = cpu[..=over].windows(2).all(|pair| pair[1].1 > pair[0].1);
        let stays = cpu[over..].iter().all(|(_, share)| *share >= FULL_SHARE - NOISE);
        if over < RISING_LEAST || !rises || !stays {
            continue;
        }
        // Between two rungs CPU is assumed to rise evenly.
        let ((below, below_share), (above, above_share)) = (cpu[over - 1], cpu[over]);
        let at = below + (above - below) * (FULL_SHARE - below_share) / (above_share - below_share);
        sentences.push(format!(
            "{} of the server's CPU is reached at about {} {}{}.",
            show_share(FULL_SHARE),
            show_number(at.round()),
            cell[0].rung.load_unit,
            cell[0].shown_cell(),
        ));
        evidence.push(json!({ "cell": cell[0].cell(), "at": at, "loads": cpu }));
    }
    (!sentences.is_empty()).then(|| Conclusion::new("cpu_full", &sentences, json!({ "cells": evidence })))
}

/// The size up to which the server's CPU is full, at one load.
pub(super) fn full_by_bulk(steps: &[Step<'_>]) -> Option<Conclusion> {
    let load = loads(steps).into_iter().next()?;
    let sizes = by_size(steps, load);
    let cpu: Vec<(u64, f64)> =
        sizes.iter().filter_map(|(size, step)| Some((*size, step.cpu_share?))).collect();
    let full = cpu.iter().rposition(|(_, share)| *share >= FULL_SHARE)?;
    let next = cpu.get(full + 1)?;
    let is_borne_out = cpu.len() >= SIZES_LEAST
        && cpu[..full].iter().all(|(_, share)| *share >= FULL_SHARE - NOISE)
        && cpu[full..].windows(2).all(|pair| pair[1].1 <= pair[0].1 * (1.0 + NOISE));
    if !is_borne_out {
        return None;
    }
    let text = format!(
        "At {} updates/s {} of the server's CPU is reached with bulks of {} and fewer; {} take {}.",
        show_number(load),
        show_share(FULL_SHARE),
        cpu[full].0,
        next.0,
        show_share(next.1),
    );
    Some(Conclusion::new("cpu_full_by_bulk", &[text], json!({ "load": load, "sizes": cpu })))
}
