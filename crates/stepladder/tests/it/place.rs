//! A working folder, the program as a child process, and helpers that inspect the system.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything here takes; a test that waits for this has found a hang.
const PATIENCE: Duration = Duration::from_secs(120);

/// Options of a short climb, uncalibrated: a calibration takes 5 s and both cores, beside other tests.
pub const SHORT: [&str; 5] = ["--no-calibration", "--hold", "2s", "--settle", "200ms"];

pub struct Place {
    folder: TempDir,
}

/// What the program said and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// The program while it runs; killed when a test drops it.
pub struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Place {
    pub fn new() -> Place {
        Place { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The names of all files that end so.
    pub fn files_ending(&self, with: &str) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder can be read").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(with)).collect()
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("a file can be written");
        path
    }

    pub fn json(&self, name: &str) -> Value {
        parse(&fs::read_to_string(self.path(name)).expect("the JSON was written"))
    }

    /// The program with this folder as its own, so that its default store is here.
    pub fn command<I: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = I>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stepladder"));
        command.args(words).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_remove("NO_COLOR").env_remove("GITHUB_STEP_SUMMARY").env("TMPDIR", self.folder.path());
        // Tests run in parallel, and must not count each other as a disturbance.
        command.env_remove("COLUMNS").env("STEPLADDER_LOCK", "");
        command
    }

    pub fn run<I: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = I>) -> Ran {
        self.start(words).finish()
    }

    pub fn start<I: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = I>) -> Running {
        self.start_command(self.command(words))
    }

    pub fn start_command(&self, mut command: Command) -> Running {
        static COUNT: AtomicU16 = AtomicU16::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let (out, err) = (self.path(&format!("{count}.out")), self.path(&format!("{count}.err")));
        let file = |path: &Path| File::create(path).expect("a file for its output");
        let child = command.stdout(file(&out)).stderr(file(&err)).spawn().expect("the program starts");
        Running { child, out, err }
    }

    /// `serve` with these words on a free port, and its URL.
    pub fn serve(&self, what: &str) -> (Running, String) {
        let mut server = self.start(words_of(&format!("serve {what} --listen 127.0.0.1:0")));
        let url = url_of(&server.wait_for_out("listening on"));
        (server, url)
    }

    /// `climb` with short holds, uncalibrated.
    pub fn climb(&self, words: &[&str]) -> Ran {
        self.run(short_climb(words))
    }

    pub fn start_climb(&self, words: &[&str]) -> Running {
        self.start(short_climb(words))
    }
}

/// The first URL in what was said, without a slash at its end.
pub fn url_of(said: &str) -> String {
    let url = said.split_whitespace().find(|word| word.contains("://")).expect("a URL");
    url.trim_end_matches([',', '/']).to_owned()
}

/// The words of a command line; what stands between single quotes is one of them.
pub fn words_of(line: &str) -> Vec<&str> {
    let quoted = |(at, piece)| if at % 2 == 1 { vec![piece] } else { str::split_whitespace(piece).collect() };
    line.split('\'').enumerate().flat_map(quoted).collect()
}

/// Options of the built-in server stay last.
fn short_climb<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let own = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    let mut all = vec!["climb"];
    all.extend(&words[..own]);
    let usual = if words.contains(&"--hold") { &SHORT[..1] } else { &SHORT[..] };
    all.extend(usual.iter().filter(|word| !words.contains(word)));
    all.extend(&words[own..]);
    all
}

impl Ran {
    /// Asserts that this load did not hold. Where the host took the CPU away, what was late may have been this machine; it never passes.
    #[track_caller]
    pub fn failed_or_disturbed(&self, rung: &Value) {
        let found = (rung["verdict"].as_str(), self.code);
        let is_disturbed = found == (Some("INCONCLUSIVE"), 2) && rung["signal"] == "disturbed";
        assert!(found == (Some("FAIL"), 1) || is_disturbed, "{self:#?}");
    }

    /// Asserts the exit code and the messages on standard error, whatever was printed before.
    #[track_caller]
    pub fn fails(&self, code: i32, fragments: &[&str]) {
        assert_eq!(self.code, code, "{self:#?}");
        for fragment in fragments {
            assert!(self.err.contains(fragment), "`{fragment}` is missing in {self:#?}");
        }
    }

    /// Asserts the exit code and the messages on standard error.
    #[track_caller]
    pub fn refused(&self, code: i32, fragments: &[&str]) {
        assert_eq!(self.code, code, "{self:#?}");
        for fragment in fragments {
            assert!(self.err.contains(fragment), "`{fragment}` is missing in {self:#?}");
        }
        assert_eq!(self.out, "", "a refusal belongs on standard error");
        assert!(!self.err.contains("panicked"), "{self:#?}");
    }
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn err(&self) -> String {
        fs::read_to_string(&self.err).unwrap_or_default()
    }

    /// Waits until a text appears on standard error.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |running| running.err().contains(text));
    }

    /// Waits until a text appears on standard output, and returns all of it.
    #[track_caller]
    pub fn wait_for_out(&mut self, text: &str) -> String {
        self.wait_until(text, |running| running.out().contains(text));
        self.out()
    }

    pub fn out(&self) -> String {
        fs::read_to_string(&self.out).unwrap_or_default()
    }

    #[track_caller]
    fn wait_until(&mut self, what: &str, is_so: impl Fn(&Running) -> bool) {
        let begin = Instant::now();
        while !is_so(self) {
            let ended = self.child.try_wait().expect("its status");
            assert!(ended.is_none() || is_so(self), "it ended without `{what}`: {}", self.err());
            assert!(begin.elapsed() < PATIENCE, "`{what}` never came: {}", self.err());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn signal(&self, signal: i32) {
        send(self.pid(), signal);
    }

    #[track_caller]
    pub fn finish(mut self) -> Ran {
        let status = self.wait();
        Ran { code: code_of(status), out: self.out(), err: self.err() }
    }

    /// Interrupted where it takes longer.
    #[track_caller]
    pub fn finish_within(mut self, most: Duration) -> Ran {
        let begin = Instant::now();
        while self.child.try_wait().expect("its status").is_none() {
            if begin.elapsed() > most {
                self.signal(libc::SIGINT);
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        self.finish()
    }

    #[track_caller]
    fn wait(&mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("its status") {
                return status;
            }
            assert!(begin.elapsed() < PATIENCE, "it hangs: {}", self.err());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The server that it started, once it runs.
    #[track_caller]
    pub fn subject(&self) -> u32 {
        let is_subject = |pid: &u32| command_line(*pid).contains("serve arena");
        eventually("a server among its children", || children(self.pid()).into_iter().find(is_subject))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The exit code, or 128 + the signal as a shell says it.
fn code_of(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

#[track_caller]
pub fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in:\n{text}"))
}

#[track_caller]
pub fn eventually<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn send(pid: u32, signal: i32) {
    // SAFETY: a plain system call; the process is one of ours.
    let status = unsafe { libc::kill(pid as libc::pid_t, signal) };
    assert_eq!(status, 0, "process {pid} is there to be signalled");
}

/// True when the process has ended, whether or not it was reaped.
pub fn is_gone(pid: u32) -> bool {
    status_of(pid).is_none_or(|(state, _)| state == 'Z' || state == 'X')
}

pub fn children(pid: u32) -> Vec<u32> {
    processes().filter(|child| status_of(*child).is_some_and(|(_, parent)| parent == pid)).collect()
}

pub fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").expect("/proc can be read").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

pub fn command_line(pid: u32) -> String {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).replace('\0', " ")
}

/// State and parent; the name before them may hold blanks and brackets.
fn status_of(pid: u32) -> Option<(char, u32)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// A port below those that outgoing connections take, free a moment ago, and given out once.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let begin = 15_000 + (std::process::id() % 300) as u16 * 50;
    loop {
        let port = begin + NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// The command line of an arena on a port, for `--start`.
pub fn arena_on(port: u16, options: &str) -> String {
    format!("{} serve arena --listen 127.0.0.1:{port} {options}", env!("CARGO_BIN_EXE_stepladder"))
}
