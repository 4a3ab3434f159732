//! `--browse`: stored runs in the terminal, their list and each load by load (`terminal::browse`).

use climb::judging::{JudgedRun, judged_trial};
use climb::page;
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::signals::Interrupt;
use ladder::{Climb, run_summary};
use store::{Place, RunKind, RunRecord, Store};
use terminal::{Screen, State, Stored};

use crate::show;

/// Seconds of a trial that are read at once.
const PIECE: u32 = 256;

/// Lets the user look through these runs, or at the only one of them. Errors: there is no terminal, or it shows nothing of that one.
pub fn browse(store: &Store, records: Vec<RunRecord>, one: bool) -> Result<Exit, Failure> {
    if !Screen::is_possible() {
        return Err(wrong_usage(anyhow::anyhow!(
            "--browse needs a terminal; without it the same is printed"
        )));
    }
    let interrupt = Interrupt::take().map_err(not_measured)?;
    let rows = records.iter().map(|run| show::row(store, run)).collect();
    let mut runs = StoredRuns { store, records, rows, open: None };
    terminal::browse(&mut runs, one, || interrupt.is_asked()).map_err(not_measured)?;
    Ok(Exit::Met)
}

struct StoredRuns<'a> {
    store: &'a Store,
    records: Vec<RunRecord>,
    rows: Vec<[String; 5]>,
    open: Option<(JudgedRun, Climb)>,
}

impl StoredRuns<'_> {
    fn opened(&mut self, run: usize) -> anyhow::Result<State> {
        let record = &self.records[run];
        let id = &record.id;
        if record.head.kind != RunKind::Climb {
            anyhow::bail!(
                "{id} is a {} and has no loads; stepladder show {id} prints it",
                record.head.kind.name()
            );
        }
        let judged = JudgedRun::whole(self.store, id)?;
        let ended_early = climb::stored::ended_early(&record.state);
        let Some(climb) = judged.answers(ended_early.as_deref())? else {
            anyhow::bail!("run {id} holds no load yet");
        };
        let mut state = State::new(&format!("{} · run {id}", record.head.subject), &judged.plan().objectives);
        let answers = run_summary(&climb).answers;
        for rung in &climb.rungs {
            state.judged(rung, &page::words(rung), answers.clone());
        }
        self.open = Some((judged, climb));
        Ok(state)
    }

    fn read(&self, state: &mut State, load: usize) -> anyhow::Result<()> {
        let Some((judged, climb)) = &self.open else { return Ok(()) };
        let (rung, id) = (&climb.rungs[load], judged.id());
        let marks = self.store.trial_marks(id)?;
        let Some(mark) = marks.into_iter().find(|mark| mark.head.seq == rung.seq) else { return Ok(()) };
        state.begin(&mark.head);
        // In the order in which they came: a second is whole when the next one begins.
        let mut place = Place::default();
        loop {
            let piece = self.store.entries_behind(id, &mark.head, &mut place, PIECE)?;
            if piece.is_empty() {
                break;
            }
            state.committed(mark.head.seq, &piece);
        }
        let terms = judged.terms(mark.head.load, &mark.head.cell);
        let (trial, _) = judged_trial(self.store, id, mark.head.seq, &terms)?;
        state.whole(load, &trial);
        Ok(())
    }
}

impl Stored for StoredRuns<'_> {
    fn runs(&self) -> &[[String; 5]] {
        &self.rows
    }

    fn open(&mut self, run: usize) -> Result<State, String> {
        self.opened(run).map_err(|error| format!("{error:#}"))
    }

    fn look_at(&mut self, state: &mut State, load: usize) -> Result<(), String> {
        self.read(state, load).map_err(|error| format!("{error:#}"))
    }
}
