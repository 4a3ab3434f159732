//! The revisions of a user's repository: their order, and working trees for two of them at a time.
//!
//! The user's own working tree is never touched. Trees are created by `git worktree` and removed on drop. One tree
//! moves from revision to revision, so that build artifacts are reused.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use console::signals::Interrupt;
use rustix::process::Pid;
use serde::Serialize;
use tempfile::TempDir;
use watch::ExitGuard;

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Revision {
    /// all 40 digits
    pub hash: String,
    /// the first line of its message
    pub subject: String,
    /// its author's name
    pub author: String,
    /// when it was written, as ISO 8601
    pub date: String,
}

impl Revision {
    /// As people name it.
    pub fn short(&self) -> &str {
        self.hash.get(..10).unwrap_or(&self.hash)
    }
}

/// A repository.
#[derive(Debug)]
pub struct Repository {
    root: PathBuf,
}

/// Between the fields of a revision; no name holds it.
const FIELD: char = '\u{1f}';

impl Repository {
    /// The repository that `folder` is in. Errors: it is in none, or there is no git.
    pub fn of(folder: &Path) -> anyhow::Result<Repository> {
        let root = git(folder, &["rev-parse", "--show-toplevel"]).with_context(|| {
            format!("{}: this is no folder of a git repository (--repo)", folder.display())
        })?;
        Ok(Repository { root: PathBuf::from(root) })
    }

    /// The revisions from `good` to `bad`, both included, the oldest first; of merges the first parent.
    ///
    /// Errors: one of them is unknown; `bad` does not come after `good`.
    pub fn history(&self, good: &str, bad: &str) -> anyhow::Result<Vec<Revision>> {
        let commit = |name: &str, option: &str| {
            // A leading hyphen would make it an option of git.
            let is_name = !name.is_empty() && !name.starts_with('-');
            let found = is_name
                .then(|| self.git(&["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")]));
            match found {
                Some(Ok(hash)) if !hash.is_empty() => Ok(hash),
                _ => bail!("{option} {name}: the repository {} has no such revision", self.root.display()),
            }
        };
        let (from, to) = (commit(good, "--good")?, commit(bad, "--bad")?);
        if from == to {
            bail!("--good {good} and --bad {bad} are the same revision; name an older one with --good");
        }
        let range = format!("{from}..{to}");
        let listed = self.git(&["rev-list", "--first-parent", "--reverse", &range])?;
        let parent_of_first =
            |hash: &str| self.git(&["rev-parse", "--verify", "--quiet", &format!("{hash}^")]).ok();
        let hashes: Vec<&str> = listed.lines().collect();
        if hashes.first().and_then(|first| parent_of_first(first)).as_deref() != Some(from.as_str()) {
            bail!(
                "--bad {bad} does not come after --good {good} along its first parents; name a revision before it with --good"
            );
        }
        std::iter::once(from.as_str()).chain(hashes).map(|hash| self.revision(hash)).collect()
    }

    fn revision(&self, hash: &str) -> anyhow::Result<Revision> {
        let format = format!("--format=%H{FIELD}%s{FIELD}%an{FIELD}%aI");
        let text = self.git(&["show", "--no-patch", "--no-show-signature", &format, hash])?;
        let mut fields = text.splitn(4, FIELD).map(|field| field.trim().to_owned());
        let mut next = || fields.next().with_context(|| format!("git does not tell about {hash}"));
        Ok(Revision { hash: next()?, subject: next()?, author: next()?, date: next()? })
    }

    /// Gives back all trees in `folder`, and takes it away, when this process is killed; what ran there then has 5 s to end.
    pub fn give_back_when_killed(&self, folder: &Path) -> Option<ExitGuard> {
        let line = "sleep 6; for tree in \"$2\"/*; do git -C \"$1\" worktree remove -f -f \"$tree\"; done; rm -rf -- \"$2\"";
        // Without a shell the next search does it.
        ExitGuard::run(line, [self.root.as_path(), folder]).ok()
    }

    /// Gives back the trees of earlier searches that were killed together with what should have given them back.
    pub fn give_back_left(&self) {
        let listed = self.git(&["worktree", "list", "--porcelain"]).unwrap_or_default();
        let trees = listed.lines().filter_map(|line| line.strip_prefix("worktree "));
        let mut folders = Vec::new();
        for tree in trees {
            let Some(folder) = Path::new(tree).parent().filter(|folder| is_left(folder)) else { continue };
            let _ = self.remove(tree);
            folders.push(folder);
        }
        for folder in folders {
            // Only if nothing else is in it. Of two trees the second finds it gone.
            let _ = fs::remove_file(folder.join(OWNED)).and_then(|()| fs::remove_dir(folder));
        }
    }

    /// A tree in any state: one that git was still creating is locked, which a single `-f` respects.
    fn remove(&self, tree: &str) -> anyhow::Result<String> {
        self.git(&["worktree", "remove", "-f", "-f", tree])
    }

    fn git(&self, arguments: &[&str]) -> anyhow::Result<String> {
        git(&self.root, arguments)
    }
}

/// Names of folders with the trees of one search begin with it.
const FOLDER: &str = "stepladder-bisect-";
/// A file in such a folder, locked as long as the search goes on. Hidden, so that it is not taken for a tree.
const OWNED: &str = ".in-use";

/// A folder for the trees of one search, which goes when it is dropped.
#[derive(Debug)]
pub struct Trees {
    folder: TempDir,
    _owned: File,
}

impl Trees {
    /// Errors: TMPDIR takes no folder.
    pub fn new() -> io::Result<Trees> {
        let folder = tempfile::Builder::new().prefix(FOLDER).tempdir()?;
        let owned = File::create_new(folder.path().join(OWNED))?;
        owned.lock()?;
        Ok(Trees { folder, _owned: owned })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Whether this is the folder of a search that has ended, or was.
fn is_left(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(FOLDER)
        && match File::open(folder.join(OWNED)) {
            Ok(owned) => owned.try_lock().is_ok(),
            Err(_) => !folder.exists(),
        }
}

/// What git says. Errors: its own words.
fn git(folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .context("git cannot be started; install it")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "git {}: {}",
            arguments.first().unwrap_or(&""),
            said.lines().next().unwrap_or("it failed").trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// A separate working tree, which is removed in the end.
#[derive(Debug)]
pub struct Tree<'a> {
    repository: &'a Repository,
    path: PathBuf,
    /// what it holds, and that was built
    ready: Option<String>,
}

/// Why a revision cannot be compared; the run goes on without it.
#[derive(Debug)]
pub struct NotBuilt(pub String);

/// How often a build is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// After SIGTERM a build has this long.
const BUILD_GRACE: Duration = Duration::from_secs(3);
/// How many of a build's last lines are shown.
const LINES_TOLD: usize = 5;

impl<'a> Tree<'a> {
    /// A tree at `path`, which must not exist, with `revision` in it.
    pub fn add(repository: &'a Repository, path: PathBuf, revision: &Revision) -> anyhow::Result<Tree<'a>> {
        let text = path.to_string_lossy().into_owned();
        repository.git(&["worktree", "add", "--quiet", "--detach", &text, &revision.hash])?;
        Ok(Tree { repository, path, ready: None })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Brings it to a revision and builds it, where it is not that already. What builds leave and git ignores stays.
    ///
    /// Errors: git's. Inside: why it does not build, also when an interruption ended the build.
    pub fn build(
        &mut self,
        revision: &Revision,
        command: Option<&str>,
        interrupt: &Interrupt,
    ) -> anyhow::Result<Result<(), NotBuilt>> {
        if self.ready.as_deref() == Some(&revision.hash) {
            return Ok(Ok(()));
        }
        self.ready = None;
        git(&self.path, &["checkout", "--quiet", "--force", "--detach", &revision.hash])?;
        git(&self.path, &["clean", "--quiet", "-f", "-d"])?;
        if let Some(command) = command {
            let mut output = tempfile::tempfile().context("the output of the build cannot be kept")?;
            if let Err(how) = run(command, &self.path, &output, interrupt)? {
                let mut text = Vec::new();
                // Unreadable output is not reported; that the command failed is.
                let _ = output.rewind().and_then(|()| output.read_to_end(&mut text));
                let text = String::from_utf8_lossy(&text);
                let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
                let last = lines[lines.len().saturating_sub(LINES_TOLD)..].join(" | ");
                return Ok(Err(NotBuilt(format!("it does not build ({how}): {last}"))));
            }
        }
        self.ready = Some(revision.hash.clone());
        Ok(Ok(()))
    }
}

/// Runs a build to its end, which an interruption brings. Errors inside: how it failed.
fn run(
    command: &str,
    folder: &Path,
    output: &File,
    interrupt: &Interrupt,
) -> anyhow::Result<Result<(), String>> {
    let mut child = Command::new("/bin/sh")
        .arg("-c")
        .arg(command)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?)
        .process_group(0)
        .spawn()
        .context("the build cannot be started")?;
    // A build that outlived this process would go on in a deleted tree.
    let _last_will = ExitGuard::end_group(Pid::from_child(&child)).ok();
    let group = -(child.id() as i32);
    let mut told = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(if status.success() { Ok(()) } else { Err(status.to_string()) });
        }
        if interrupt.is_asked() {
            let is_late = told.get_or_insert_with(Instant::now).elapsed() > BUILD_GRACE;
            let signal = if is_late { libc::SIGKILL } else { libc::SIGTERM };
            // SAFETY: the call takes no pointer; the group is that of our child, which was not waited for yet.
            unsafe { libc::kill(group, signal) };
        }
        std::thread::sleep(LOOK);
    }
}

impl Drop for Tree<'_> {
    fn drop(&mut self) {
        let path = self.path.to_string_lossy().into_owned();
        // What cannot be removed now is removed by the next search; its folder goes with the temporary one.
        let _ = self.repository.remove(&path);
    }
}
