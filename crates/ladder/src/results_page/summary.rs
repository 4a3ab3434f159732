//! What a run comes to on one screen: its verdict, one table, the three answers in at most three sentences each.
//!
//! Nothing is worded here that the whole page does not word; how much fits is for the caller to say.

use super::{NOT_STATED, ResultsPage, Table, heading, headline, question, results_page};
use crate::answers::{hint_at_confidence, in_brief};
use crate::capacity::CellCapacity;
use crate::contract::{Climb, Conclusion, Rung};
use crate::gate::GateResult;
use crate::growth;
use crate::wording::{show_cell, show_number};

/// Columns of the table that stay although all rows have the same in it.
const ALWAYS_TOLD: usize = 2;

/// The summary of a run in parts, for callers that lay it out.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// `arena: PASS`
    pub headline: String,
    /// the meaning of a mark in the table
    pub marks: Vec<String>,
    /// each gate, and whether it was met; those that were not come first
    pub gates: Vec<String>,
    /// question and answer
    pub answers: Vec<(String, String)>,
    /// heading and words of what the run was asked besides, without its profile
    pub others: Vec<(String, String)>,
    /// what would tell more, with the option that does
    pub hints: Vec<String>,
    /// what else the whole page has: `books of deliveries`
    pub also: Vec<&'static str>,
    table: Table,
    /// of each row how far it is from the capacity
    distances: Vec<f64>,
}

/// The summary of a run.
pub fn run_summary(climb: &Climb) -> RunSummary {
    let ResultsPage { tables, marks, books, notes, agents, .. } = results_page(climb);
    let is_told = |(id, text): (String, String)| Some((question(&id)?.to_owned(), text));
    let (table, distances) = if climb.capacity.cells.is_empty() {
        let distances = climb.rungs.iter().map(|rung| distance(climb, rung)).collect();
        (tables.into_iter().next().unwrap_or_else(Table::empty), distances)
    } else {
        of_cells(climb)
    };
    let more = [
        (!climb.capacity.cells.is_empty(), "the table of each cell"),
        (!books.is_empty(), "the books of deliveries"),
        (!notes.is_empty(), "remarks"),
        (agents.is_some(), "the agents"),
        (climb.conclusions.iter().any(is_profile), "the profile"),
    ];
    let others = climb.conclusions.iter().filter(|one| question(&one.id).is_none() && !is_profile(one));
    let mut gates: Vec<&GateResult> = climb.gates.iter().collect();
    gates.sort_by_key(|gate| gate.met == Some(true));
    RunSummary {
        headline: headline(climb),
        marks,
        gates: gates.into_iter().map(super::gate).collect(),
        answers: in_brief(climb).into_iter().filter_map(is_told).collect(),
        others: others.map(|one| (heading(&one.id), one.text.clone())).collect(),
        hints: hint_at_confidence(&climb.capacity).into_iter().collect(),
        also: more.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name).collect(),
        table,
        distances,
    }
}

fn is_profile(part: &Conclusion) -> bool {
    part.id == growth::PROFILE
}

/// How far a load is from the capacity, as a ratio's logarithm; without any bound the largest loads are nearest.
fn distance(climb: &Climb, rung: &Rung) -> f64 {
    let bounds = [climb.capacity.lower_bound, climb.capacity.upper_bound];
    let of_bound = |bound: f64| (rung.load / bound).ln().abs();
    bounds.into_iter().flatten().map(of_bound).min_by(f64::total_cmp).unwrap_or(-rung.load)
}

/// Of a sweep: what each cell held and what it did not.
fn of_cells(climb: &Climb) -> (Table, Vec<f64>) {
    let bound = |load: Option<f64>| load.map_or_else(|| NOT_STATED.to_owned(), show_number);
    let cells = &climb.capacity.cells;
    let row = |one: &CellCapacity| {
        vec![show_cell(&one.cell), bound(one.capacity.lower_bound), bound(one.capacity.upper_bound)]
    };
    let unit = climb.capacity.unit;
    let header = vec!["cell".to_owned(), format!("{unit} held"), "not held".to_owned()];
    let smallest_first = |one: &CellCapacity| one.capacity.lower_bound.unwrap_or(0.0);
    let table = Table { header, rows: cells.iter().map(row).collect(), ..Table::empty() };
    (table, cells.iter().map(smallest_first).collect())
}

impl RunSummary {
    /// Its table in at most so many columns of a terminal and so many rows, the rows that are nearest to the capacity; and how
    /// many rows were left out. Columns that are alike in all rows say nothing and are left out too.
    pub fn table(&self, columns: usize, rows: usize) -> (Table, usize) {
        let mut nearest: Vec<usize> = (0..self.table.rows.len()).collect();
        nearest.sort_by(|a, b| self.distances[*a].total_cmp(&self.distances[*b]));
        nearest.truncate(rows);
        nearest.sort_unstable();
        let mut table = self.table.clone();
        for at in (ALWAYS_TOLD..table.header.len()).rev().filter(|at| self.is_alike(*at)) {
            table.remove_column(at);
        }
        table.rows = nearest.iter().map(|row| table.rows[*row].clone()).collect();
        table.rungs = nearest.iter().filter_map(|row| self.table.rungs.get(*row).copied()).collect();
        (table.within(columns).0, self.table.rows.len() - nearest.len())
    }

    /// Whether all rows have the same in a column, or all the connections that they asked for.
    fn is_alike(&self, at: usize) -> bool {
        let mut cells = self.table.rows.iter().map(|row| row[at].as_str());
        let is_full = |cell: &str| cell.split_once('/').is_some_and(|(open, asked)| open == asked);
        cells.clone().all(is_full)
            || self.table.rows.len() > 1 && cells.next().is_some_and(|first| cells.all(|cell| cell == first))
    }

    /// What the whole page has besides, with all but so many of `others`.
    pub fn rest(&self, shown: usize) -> Vec<String> {
        let headings = self.others[shown..].iter().map(|(heading, _)| heading.to_lowercase());
        headings.chain(self.also.iter().map(|name| (*name).to_owned())).collect()
    }
}
