//! A client library's process: how it is found, started, read and stopped.

use std::io::{BufRead, BufReader, IsTerminal};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use console::say;
use console::signals::Interrupt;
use inflight_analysis::{Heap, Line, Note, Run, Subject};
use rustix::process::{Pid, Signal, getpid, getppid, kill_process_group, set_parent_process_death_signal};
use serde_json::Value;
use watch::ExitGuard;

use crate::lines::Record;
use crate::member::Member;
use crate::profile::{self, Perf};

/// Runners of other languages: `inflight/clients/run NAME PLAN`.
const LANGUAGES: [&str; 4] = ["node", "java", "go", "python"];
const RUST: &str = "rust";
/// A runner that writes no line for so long hangs; one comes every second.
const SILENT: Duration = Duration::from_secs(30);
/// How long one that was asked to end may take.
const GRACE: Duration = Duration::from_secs(5);
/// How long one may take to its last line after an interruption: operations in flight have a second, by
/// inflight/clients/README.md.
const LAST_LINE: Duration = Duration::from_secs(2);

/// Of these the runners write a profile themselves.
const SELF_PROFILING: [&str; 3] = ["node", "java", "go"];
/// The variable that requests a profile.
const PROFILE: &str = "INFLIGHT_PROFILE";

/// With or without a profile.
#[derive(Clone, Copy, Debug)]
pub enum How<'f> {
    Plain,
    /// `folder` is for what comes up meanwhile
    Profiled {
        subject: Subject,
        folder: &'f Path,
        /// where a heap goes, if the client writes one, without the ending that tells its format
        heap: &'f Path,
    },
}

impl How<'_> {
    /// The stacks that the client wrote, else those of `perf`. Errors: neither, though they were requested.
    fn folded(self, perf: Option<&Perf>) -> anyhow::Result<Option<String>> {
        let How::Profiled { subject, folder, .. } = self else { return Ok(None) };
        let path = profile::folded(folder);
        let written = std::fs::read_to_string(&path);
        // The next client's must not be mistaken for this one's.
        let _ = std::fs::remove_file(&path);
        match (written, perf) {
            (Ok(written), _) => Ok(Some(written)),
            (Err(_), Some(perf)) => perf.folded().map(Some),
            (Err(_), None) => {
                bail!("it wrote no {} profile (inflight/clients/README.md, \"Profile\")", subject.name())
            }
        }
    }

    /// What the heap snapshot tells that the client wrote, and moves it to its place. Errors: it is none, or there is a file
    /// already.
    fn heap(self) -> anyhow::Result<Option<Heap>> {
        match self {
            How::Plain | How::Profiled { subject: Subject::Cpu, .. } => Ok(None),
            How::Profiled { subject: Subject::Alloc, folder, heap } => profile::take_heap(folder, heap),
        }
    }
}

/// A run that came to its end.
#[derive(Debug)]
pub struct Ran {
    /// what it measured
    pub run: Run,
    /// the stacks of its profile, if one was requested
    pub folded: Option<String>,
    /// what was alive, where it told that
    pub heap: Option<Heap>,
}

/// What a command has that is more than a program and its arguments.
const OF_SHELLS: [char; 21] = [
    '"', '\'', '$', '`', ';', '&', '|', '<', '>', '(', ')', '{', '}', '[', ']', '*', '?', '#', '~', '=', '\\',
];

/// A client library under test.
#[derive(Clone, Debug)]
pub struct Client {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
}

impl Client {
    /// Whether a text names one of ours.
    pub fn is_name(text: &str) -> bool {
        text == RUST || LANGUAGES.contains(&text)
    }

    /// Errors: a runner that is not there, with what to do.
    pub fn find(text: &str) -> anyhow::Result<Client> {
        let client = |program: PathBuf, arguments: &[&str]| Client {
            name: text.to_owned(),
            program,
            arguments: arguments.iter().map(|each| (*each).to_owned()).collect(),
        };
        if text == RUST {
            let own = std::env::current_exe().context("this program does not find itself")?;
            return Ok(client(own, &["bench", "runner"]));
        }
        if LANGUAGES.contains(&text) {
            let run = runners()?.join("run");
            return Ok(client(run, &[text]));
        }
        if text.trim().is_empty() {
            bail!("--client is empty; name rust, {} or a command", LANGUAGES.join(", "));
        }
        // Without a shell in between, `perf` can follow the program's stacks.
        if !text.contains(OF_SHELLS)
            && let [program, arguments @ ..] = text.split_ascii_whitespace().collect::<Vec<_>>().as_slice()
        {
            return Ok(client(program.into(), arguments));
        }
        // The plan is the command's last argument, whatever a shell would make of its quotes.
        Ok(client("/bin/sh".into(), &["-c", &format!("{text} \"$1\""), "sh"]))
    }

    /// Whether the library has what a target needs. Errors: it has not; which ones have.
    pub fn check_speaks(&self, target: &str) -> anyhow::Result<()> {
        if target.starts_with("hazelcasts:") && self.name == "java" {
            bail!(
                "--client java: Hazelcast's open-source client for Java has no TLS, so it cannot speak to {target}; rust, \
                 node, go and python can"
            );
        }
        Ok(())
    }

    fn profiles_itself(&self) -> bool {
        SELF_PROFILING.contains(&self.name.as_str())
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Carries out a plan. `None`: interrupted; what came until then, its last line if that came in time too, is recorded.
    ///
    /// Errors: it cannot be profiled, did not start, wrote what is none of the lines, hung, or ended without its last line.
    pub fn run(
        &self,
        plan: &Value,
        member: &Member,
        record: &mut Record<'_>,
        interrupt: &Interrupt,
        how: How<'_>,
    ) -> anyhow::Result<Option<Ran>> {
        let mut perf = match how {
            How::Profiled { subject: Subject::Cpu, folder, .. } if !self.profiles_itself() => {
                Some(Perf::new(profile::recording(folder))?)
            }
            _ => None,
        };
        let mut process = Process::start(self, plan, how, perf.as_ref())?;
        let heard = self.hear(&mut process, member, record, interrupt, &mut perf);
        let status = process.end(heard.is_err());
        // An error in a client that was told to stop is no finding about it.
        if process.is_told && interrupt.is_asked() {
            return Ok(None);
        }
        let run = heard.with_context(|| format!("client {}", self.name))?;
        // Only a client that failed to start exits differently from what it reports.
        match status {
            Some(status) if status.success() => {
                let folded = how.folded(perf.as_ref()).with_context(|| format!("client {}", self.name))?;
                let heap = how.heap().with_context(|| format!("client {}", self.name))?;
                Ok(Some(Ran { run, folded, heap }))
            }
            status => {
                let how = status.map_or("did not end".to_owned(), |status| status.to_string());
                bail!("client {}: it wrote its last line, but {how}", self.name)
            }
        }
    }

    fn hear(
        &self,
        process: &mut Process,
        member: &Member,
        record: &mut Record<'_>,
        interrupt: &Interrupt,
        perf: &mut Option<Perf>,
    ) -> anyhow::Result<Run> {
        let mut start: Option<Value> = None;
        let mut heard = Instant::now();
        let mut until = None;
        loop {
            if interrupt.is_asked() && until.is_none() {
                process.tell_to_end();
                until = Some(Instant::now() + LAST_LINE);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                bail!("it did not write its last line when it was interrupted");
            }
            match process.lines.recv_timeout(Duration::from_millis(100)) {
                Ok(text) => {
                    heard = Instant::now();
                    let line = Line::read(&text).with_context(|| {
                        format!(
                            "it wrote a line that is none of inflight/clients/README.md: {:?}",
                            excerpt(&text)
                        )
                    })?;
                    record.line(&text)?;
                    match line {
                        Line::Start(value) => {
                            check_format(&value)?;
                            start = Some(value);
                            note_usage(member, record, false)?;
                        }
                        // The last of them is the end of the warm-up.
                        Line::Second { is_warmup: true, .. } => {
                            note_usage(member, record, false)?;
                            perf.iter_mut().for_each(Perf::begins_now);
                        }
                        Line::Second { is_warmup: false, .. } | Line::Timeline(_) | Line::Other => {}
                        Line::End(end) => {
                            let start = start.ok_or_else(|| anyhow!("it ended before it had started"))?;
                            note_usage(member, record, true)?;
                            perf.iter_mut().for_each(Perf::ends_now);
                            // Impossible values are refused at once.
                            return Ok(Run::read(&start, &end)?);
                        }
                        Line::Error(message) => bail!("{message}"),
                    }
                }
                Err(RecvTimeoutError::Timeout) if heard.elapsed() > SILENT => {
                    bail!("it wrote nothing for {} s and was stopped", SILENT.as_secs())
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("it ended without its last line; what it said stands above")
                }
            }
        }
    }
}

/// Notes what the server has used so far, where that is known.
fn note_usage(member: &Member, record: &mut Record<'_>, is_end: bool) -> anyhow::Result<()> {
    match member.usage() {
        Some(usage) => record.note(&Note::Server { is_end, usage }),
        None => Ok(()),
    }
}

fn check_format(start: &Value) -> anyhow::Result<()> {
    match start["format"].as_u64() {
        Some(1) => Ok(()),
        _ => bail!("its lines have format {}, and only format 1 is known", start["format"]),
    }
}

fn excerpt(text: &str) -> String {
    text.chars().take(120).collect()
}

/// The folder `inflight/clients`: beside us, above us, or above this program.
fn runners() -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let own = std::env::current_exe().unwrap_or_default();
    let candidates = here.ancestors().chain(own.ancestors());
    let found =
        candidates.map(|folder| folder.join("inflight/clients")).find(|folder| folder.join("run").is_file());
    found.context(
        "the runners of other languages are not here: run this in the project's folder, where inflight/clients/setup builds them",
    )
}

struct Process {
    child: Child,
    /// a shell's programs are not reached by its death signal
    _last_will: Option<ExitGuard>,
    lines: Receiver<String>,
    /// it was asked to end
    is_told: bool,
}

impl Process {
    fn start(client: &Client, plan: &Value, how: How<'_>, perf: Option<&Perf>) -> anyhow::Result<Process> {
        let mut command = match perf {
            None => Command::new(&client.program),
            Some(perf) => {
                let mut command = Command::new("perf");
                command.args(perf.words()).arg(&client.program);
                command
            }
        };
        if let How::Profiled { subject, folder, .. } = how {
            command.env(PROFILE, format!("{}:{}", subject.name(), profile::folded(folder).display()));
        }
        command.args(&client.arguments).arg(plan.to_string()).stdin(Stdio::null()).stdout(Stdio::piped());
        // A Ctrl-C on the terminal reaches this process only, which passes it on and waits for the last line.
        command.process_group(0);
        let parent = getpid();
        // SAFETY: only system calls between fork and exec, no allocation and no lock.
        unsafe {
            command.pre_exec(move || {
                set_parent_process_death_signal(Some(Signal::TERM))?;
                if getppid() != Some(parent) {
                    // The parent ended in between, so the signal will never come.
                    return Err(std::io::ErrorKind::Interrupted.into());
                }
                // This process blocks what ends it (`signals`), and a child would inherit that.
                let mut none = std::mem::zeroed();
                libc::sigemptyset(&mut none);
                libc::sigprocmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
                Ok(())
            });
        }
        let mut child = command.spawn().with_context(|| {
            format!("client {}: {} cannot be started", client.name, client.program.display())
        })?;
        let (tell, lines) = channel();
        if let Some(output) = child.stdout.take() {
            // It ends with the process's output; a maximum line length bounds what a runner can make us buffer.
            std::thread::spawn(move || {
                let mut reader = BufReader::new(output);
                let mut line = Vec::new();
                while let Ok(1..) =
                    std::io::Read::take(&mut reader, LONGEST_LINE).read_until(b'\n', &mut line)
                {
                    if tell.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                        return;
                    }
                    line.clear();
                }
            });
        }
        let exit_guard = ExitGuard::end_group(Pid::from_child(&child)).ok();
        Ok(Process { child, _last_will: exit_guard, lines, is_told: false })
    }

    /// Once, since runners exit at once when they are told again. A shell in between has children that must be told.
    fn tell_to_end(&mut self) {
        if !std::mem::replace(&mut self.is_told, true) {
            // It may have ended just now.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::TERM);
        }
    }

    /// Waits for its end, and brings it about when it failed or takes too long.
    fn end(&mut self, is_broken: bool) -> Option<std::process::ExitStatus> {
        let begun = Instant::now();
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if is_broken || begun.elapsed() > GRACE {
                self.tell_to_end();
            }
            if begun.elapsed() > GRACE * 2 {
                return self.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn kill(&mut self) -> Option<std::process::ExitStatus> {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        self.child.wait().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.kill();
        }
    }
}

/// No line of a runner is longer: the histogram of the longest range takes about 100 KB.
const LONGEST_LINE: u64 = 4 << 20;

/// Says on a terminal what is running.
pub fn progress(done: usize, count: usize, client: &str, task: &str) {
    if std::io::stderr().is_terminal() {
        say::in_place(&format!("run {done} of {count}: {client}, {task}"));
    }
}

/// Takes it back.
pub fn clear_progress() {
    if std::io::stderr().is_terminal() {
        say::in_place("");
    }
}
