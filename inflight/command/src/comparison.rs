//! The comparison: every client runs every task, block by block, in random order.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use climb::outputs::{check_writable, write_json};
use climb::viewing::Viewing;
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::say;
use console::scratch::ScratchFolder;
use console::signals::Interrupt;
use inflight_analysis::{Note, Subject};
use ladder::wording::show_bytes;
use store::{RunHead, Store};

use crate::lines;
use crate::lines::Record;
use crate::member::Member;
use crate::options::Options;
use crate::options::Task;
use crate::runner::{self, Client, How};
use crate::show::page;
use crate::stored::{end, head, stored};
use crate::timeline;

/// Runs every client, prints the table. Exit code 1 when an operation failed, had a wrong value or an unknown outcome.
pub fn run(options: &Options, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let target = options.target().map_err(wrong_usage)?;
    let tasks = options.tasks(target).map_err(wrong_usage)?;
    let clients = options.clients(target).map_err(wrong_usage)?;
    let group = options.group().map_err(wrong_usage)?;
    check_writable("--json", options.json.as_deref()).map_err(wrong_usage)?;
    check_writable("--timeline", options.timeline.as_deref()).map_err(wrong_usage)?;
    if let Some(asked) = &options.profile {
        asked.check(tasks.len() * clients.len()).map_err(wrong_usage)?;
        let each = tasks.iter().flat_map(|task| clients.iter().map(|client| (client.name(), &task.key)));
        asked.check_heaps(each).map_err(wrong_usage)?;
    }
    let file = lines::open(options.lines.as_deref()).map_err(wrong_usage)?;
    let store = Store::open_or_create(&options.store).map_err(climb::stored::no_store)?;
    let beside = Viewing::begin(
        &options.store,
        options.view,
        options.report.as_deref(),
        Arc::new(versus::Replay::default()),
    )?;
    let plan = options.as_json(target, &clients).to_string();
    let head = head(target, u64::from(options.seed), plan).map_err(not_measured)?;
    let head = RunHead { name: options.name.clone(), ..head };
    let writer = store.begin_run(&head, None).map_err(not_measured)?;
    let run = writer.id().clone();
    let mut record = Record::new(&writer, file);
    let bench = Bench {
        options,
        tasks: &tasks,
        clients: &clients,
        member: Member::of(target, options.pid, group),
        interrupt,
    };
    let measured = bench.all_runs(&mut record).and_then(|()| bench.profiles(&mut record));
    drop(record);
    end(writer, &measured, interrupt).map_err(not_measured)?;
    measured.map_err(not_measured)?;
    let report = stored(&store, &run).map_err(not_measured)?;
    if interrupt.is_asked() && report.cells.is_empty() {
        say::err_line!(
            "stepladder: run {run} was interrupted before its first result; there is nothing to show"
        );
        return Ok(Exit::Interrupted);
    }
    let contract = serde_json::to_string_pretty(&report.contract()).map_err(not_measured)?;
    write_json(&contract, options.json.as_deref()).map_err(not_measured)?;
    let timeline = options.timeline.as_deref().filter(|_| !interrupt.is_asked() || timeline::is_in(&report));
    timeline::write(&report, timeline).map_err(not_measured)?;
    let drawn =
        options.profile.as_ref().map(|asked| asked.draw(&report)).transpose().map_err(not_measured)?;
    let mut page = page(&report, &run);
    for path in drawn.iter().flatten() {
        page += &format!("flame graph: {}\n", path.display());
    }
    for path in options.profile.iter().flat_map(|asked| asked.heaps(&report)) {
        let bytes = path.metadata().map_or(0, |file| file.len());
        page += &format!("heap snapshot: {} ({})\n", path.display(), show_bytes(bytes as f64));
    }
    if options.json.as_deref() == Some(Path::new("-")) {
        say::err_text!("{page}");
    } else {
        say::out_text!("{page}");
    }
    let code = match () {
        () if interrupt.is_asked() => Exit::Interrupted,
        () if report.is_clean() => Exit::Met,
        () => Exit::NotMet,
    };
    beside.end(&options.store, &run, interrupt)?;
    Ok(code)
}

/// What is to be done.
struct Bench<'a> {
    options: &'a Options,
    tasks: &'a [Task],
    clients: &'a [Client],
    member: Member,
    interrupt: &'a Interrupt,
}

impl Bench<'_> {
    /// Block by block, each with every client and task once, in random order.
    fn all_runs(&self, record: &mut Record<'_>) -> anyhow::Result<()> {
        let mut random = fastrand::Rng::with_seed(u64::from(self.options.seed));
        let count = self.options.runs as usize * self.tasks.len() * self.clients.len();
        let mut done = 0;
        for block in 0..u64::from(self.options.runs) {
            for row in 0..self.tasks.len() {
                let mut order: Vec<usize> = (0..self.clients.len()).collect();
                random.shuffle(&mut order);
                for at in order {
                    if self.interrupt.is_asked() {
                        return Ok(());
                    }
                    done += 1;
                    let process = self.process(row, at, block, None);
                    runner::progress(done, count, self.clients[at].name(), &self.tasks[row].key.to_string());
                    record.begin(&process)?;
                    let ran = self.clients[at].run(
                        &self.tasks[row].plan,
                        &self.member,
                        record,
                        self.interrupt,
                        How::Plain,
                    );
                    runner::clear_progress();
                    if ran?.is_none() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// One run more of everything, with a profile; its figures do not count.
    fn profiles(&self, record: &mut Record<'_>) -> anyhow::Result<()> {
        let Some(asked) = &self.options.profile else { return Ok(()) };
        let folder = ScratchFolder::new("profile").context("--profile: no temporary folder; check TMPDIR")?;
        let count = self.tasks.len() * self.clients.len();
        for row in 0..self.tasks.len() {
            for (at, client) in self.clients.iter().enumerate() {
                if self.interrupt.is_asked() {
                    return Ok(());
                }
                let process = self.process(row, at, 0, Some(asked.subject));
                let key = &self.tasks[row].key;
                runner::progress(
                    row * self.clients.len() + at + 1,
                    count,
                    client.name(),
                    &format!("{key}, profiled"),
                );
                record.begin(&process)?;
                let how = How::Profiled {
                    subject: asked.subject,
                    folder: folder.path(),
                    heap: &asked.heap_path(client.name(), key),
                };
                let ran = client.run(&self.tasks[row].plan, &self.member, record, self.interrupt, how);
                runner::clear_progress();
                match ran? {
                    None => return Ok(()),
                    Some(ran) => {
                        record.artifact(&ran.folded.unwrap_or_default())?;
                        if let Some(heap) = ran.heap {
                            record.note(&Note::Heap(heap))?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn process(&self, row: usize, at: usize, block: u64, profile: Option<Subject>) -> Note {
        Note::Process {
            cell: (row * self.clients.len() + at) as u64,
            block,
            client: self.clients[at].name().to_owned(),
            plan: self.tasks[row].plan.clone(),
            profile: profile.map(|subject| subject.name().to_owned()),
        }
    }
}
