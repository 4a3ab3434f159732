//! Where a client's time goes: a flame graph, shares by kind, the most expensive functions.
//!
//! A profile is taken in a separate run after the measured ones, and its figures do not count, because profiling costs
//! time. It yields folded stacks (`inflight/clients/README.md`, "Profile"), stored as an artifact of the run; table and
//! picture are made from them. `perf` records clients that do not profile themselves.

mod perf;
mod picture;

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use inferno::flamegraph;
use inferno::flamegraph::color::{MultiPalette, Palette};
use inflight_analysis::{CellKey, Heap, HeapBy, HeapError, Kind, Profile, Report, Stacks, Subject};
use ladder::wording::show_bytes;

pub use self::perf::Perf;

/// What `--profile` asks for: `PATH`, `alloc` or `alloc:PATH`.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    pub subject: Subject,
    /// a folder, or one file that ends in `.svg`
    to: PathBuf,
}

impl std::str::FromStr for Asked {
    type Err = String;

    fn from_str(text: &str) -> Result<Asked, String> {
        let asked = |subject, to: &str| Asked { subject, to: to.into() };
        match text.split_once(':') {
            _ if text.is_empty() => Err("name a folder or a file that ends in .svg".to_owned()),
            None if text == "alloc" => Ok(asked(Subject::Alloc, "profile-alloc")),
            Some(("alloc", to)) if !to.is_empty() => Ok(asked(Subject::Alloc, to)),
            _ => Ok(asked(Subject::Cpu, text)),
        }
    }
}

impl Asked {
    fn is_file(&self) -> bool {
        self.to.extension().is_some_and(|extension| extension == "svg")
    }

    /// Errors: one file for several pictures, or a folder that cannot be made.
    pub fn check(&self, pictures: usize) -> anyhow::Result<()> {
        let shown = self.to.display();
        if self.is_file() && pictures > 1 {
            bail!("--profile {shown}: {pictures} profiles do not fit one file; name a folder");
        }
        let folder = if self.is_file() { self.to.parent().unwrap_or(Path::new("")) } else { &self.to };
        if folder.as_os_str().is_empty() {
            return Ok(());
        }
        std::fs::create_dir_all(folder)
            .with_context(|| format!("--profile {shown}: no folder can be made there"))
    }

    fn path_of(&self, client: &str, key: &CellKey) -> PathBuf {
        if self.is_file() {
            return self.to.clone();
        }
        let name =
            format!("{}-{}-{}-{}-{}", client, key.op, key.value_bytes, key.in_flight, self.subject.name());
        let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
        // A command is a client's name too, and file names have a length limit.
        let name: String =
            name.chars().map(plain).rev().take(120).collect::<Vec<_>>().into_iter().rev().collect();
        self.to.join(name + ".svg")
    }

    /// Where the heap of a client at a task goes, without the ending that tells its format.
    pub fn heap_path(&self, client: &str, key: &CellKey) -> PathBuf {
        self.path_of(client, key).with_extension("")
    }

    /// The files of heaps that are kept of a report's clients.
    pub fn heaps(&self, report: &Report) -> Vec<PathBuf> {
        let with_heap = report.profiles.iter().filter(|profile| profile.heap.is_some());
        with_heap
            .flat_map(|profile| {
                HeapFormat::ALL.map(|format| format.of(&self.heap_path(&profile.client, &profile.key)))
            })
            .filter(|path| path.is_file())
            .collect()
    }

    /// Errors: a heap would replace a file, or another one of this run.
    pub fn check_heaps<'k>(
        &self,
        profiled: impl Iterator<Item = (&'k str, &'k CellKey)>,
    ) -> anyhow::Result<()> {
        let mut paths = HashSet::new();
        for (client, key) in profiled.filter(|_| self.subject == Subject::Alloc) {
            for path in HeapFormat::ALL.map(|format| format.of(&self.heap_path(client, key))) {
                let shown = path.display();
                if path.symlink_metadata().is_ok() {
                    bail!(
                        "--profile alloc: {shown} is there already, and heap snapshots replace nothing; move it, or name another folder"
                    );
                }
                if !paths.insert(path.clone()) {
                    bail!(
                        "--profile alloc: the heap snapshots of two clients would both be {shown}; profile them one by one, in two folders"
                    );
                }
            }
        }
        Ok(())
    }

    /// Draws every profile of the report, and says where.
    pub fn draw(&self, report: &Report) -> anyhow::Result<Vec<PathBuf>> {
        let mut drawn = Vec::new();
        for profile in &report.profiles {
            let path = self.path_of(&profile.client, &profile.key);
            let svg = flame_graph(profile)?;
            std::fs::write(&path, svg)
                .with_context(|| format!("--profile {}: cannot be written", path.display()))?;
            drawn.push(path);
        }
        Ok(drawn)
    }
}

/// Where `perf` records.
pub fn recording(folder: &Path) -> PathBuf {
    folder.join("perf.data")
}

/// Where a client writes its stacks.
pub fn folded(folder: &Path) -> PathBuf {
    folder.join("stacks.folded")
}

/// In which formats a client may tell what is alive (`inflight/clients/README.md`, "Profile").
#[derive(Clone, Copy, Debug)]
enum HeapFormat {
    /// of V8's inspector
    Snapshot,
    /// bytes, objects and names
    Table,
}

impl HeapFormat {
    const ALL: [HeapFormat; 2] = [HeapFormat::Snapshot, HeapFormat::Table];

    /// The file of this format that belongs to `path`.
    fn of(self, path: &Path) -> PathBuf {
        let ending = match self {
            HeapFormat::Snapshot => ".heapsnapshot",
            HeapFormat::Table => ".heap.txt",
        };
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        name.into()
    }

    fn read(self, file: BufReader<File>) -> Result<Heap, HeapError> {
        match self {
            HeapFormat::Snapshot => Heap::read_snapshot(file),
            HeapFormat::Table => Heap::read_table(file),
        }
    }
}

/// What a client told in `folder` of what is alive, in either format; the file is moved to `to`. `None`: it told nothing.
///
/// Errors: it is damaged, or there is a file already, or none can be written.
pub fn take_heap(folder: &Path, to: &Path) -> anyhow::Result<Option<Heap>> {
    let stacks = folded(folder);
    for format in HeapFormat::ALL {
        let (written, to) = (format.of(&stacks), format.of(to));
        let Ok(file) = File::open(&written) else { continue };
        let heap = format.read(BufReader::new(file)).context("its heap snapshot cannot be read")?;
        let cannot = || format!("its heap snapshot cannot be kept as {}", to.display());
        // The temporary folder may be on another file system: copied under another name and renamed, it appears
        // complete.
        let mut part = tempfile::NamedTempFile::new_in(folder_of(&to)).with_context(cannot)?;
        std::io::copy(&mut File::open(&written)?, &mut part).with_context(cannot)?;
        part.persist_noclobber(&to).with_context(cannot)?;
        std::fs::remove_file(&written)
            .context("its heap snapshot cannot be removed from the temporary folder")?;
        return Ok(Some(heap));
    }
    Ok(None)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn flame_graph(profile: &Profile) -> anyhow::Result<Vec<u8>> {
    let mut options = flamegraph::Options::default();
    options.title = format!(
        "{}: {}, {}",
        profile.client,
        profile.key,
        match profile.subject {
            Subject::Cpu => "CPU time",
            Subject::Alloc => "bytes allocated",
        }
    );
    options.subtitle = Some(
        "green: user code, aqua: garbage collection, orange: kernel, other colours: runtime and native"
            .to_owned(),
    );
    options.count_name = profile.subject.unit().to_owned();
    options.colors = Palette::Multi(MultiPalette::Java);
    picture::svg(options, &for_colours(&profile.stacks))
        .with_context(|| format!("the profile of client {} cannot be drawn", profile.client))
}

/// As inferno reads them, in the colours of their kinds.
fn for_colours(stacks: &Stacks) -> Vec<String> {
    let line = |(frames, weight): (&[(Kind, String)], u64)| {
        let frames: Vec<String> = frames.iter().map(|(kind, name)| name.clone() + colour(*kind)).collect();
        format!("{} {weight}", frames.join(";"))
    };
    stacks.each().map(line).collect()
}

/// What inferno's palette tells colours by: green, none, aqua, orange.
fn colour(kind: Kind) -> &'static str {
    match kind {
        Kind::User => "_[j]",
        Kind::Runtime => "",
        Kind::Gc => "_[i]",
        Kind::Kernel => "_[k]",
    }
}

/// A profile as a table.
pub struct Costs<'p>(pub &'p Profile);

impl fmt::Display for Costs<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Costs(profile) = self;
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let what = match profile.subject {
            Subject::Cpu => "CPU time",
            Subject::Alloc => "bytes allocated",
        };
        writeln!(out, "{}, {}: {what} by kind", profile.client, profile.key)?;
        let shares: Vec<String> = profile
            .shares()
            .into_iter()
            .filter(|(_, share)| *share > 0.0)
            .map(|(name, share)| format!("{name} {}", percent(share)))
            .collect();
        writeln!(out, "  {}", shares.join(" · "))?;
        writeln!(
            out,
            "  {:>8} {:>8}  function (with what it calls outside user code; alone)",
            "with", "alone"
        )?;
        for one in profile.top() {
            writeln!(
                out,
                "  {:>8} {:>8}  {}{}",
                percent(profile.share(one.own)),
                percent(profile.share(one.leaf)),
                one.function.chars().take(90).collect::<String>(),
                if one.kind == Kind::User { String::new() } else { format!(" ({})", one.kind.name()) },
            )?;
        }
        let Some(heap) = &profile.heap else { return Ok(()) };
        let total = show_bytes(heap.bytes as f64);
        writeln!(out, "  alive behind the measured part: {total} in {} objects", heap.objects)?;
        writeln!(
            out,
            "  {:>8} {:>11} {:>9}  {}",
            "share",
            "bytes",
            "objects",
            match heap.by {
                HeapBy::Type => "type (without what its objects refer to)",
                HeapBy::Function => "function that allocated them (estimated from samples)",
            }
        )?;
        for one in &heap.types {
            let share = percent(one.bytes as f64 / heap.bytes.max(1) as f64);
            writeln!(out, "  {share:>8} {:>11} {:>9}  {}", one.bytes, one.objects, one.name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use inflight_analysis::Run;
    use inflight_analysis::testing::cell;

    use super::*;

    fn profile(subject: Subject, folded: &str, cpu_s: f64) -> Profile {
        let cell = cell("planted", &[1000.0]);
        let run = Run { cpu_s, ..(*cell.runs[0].1).clone() };
        Profile::read(subject, "planted", cell.key, folded, &run).unwrap()
    }

    const FOLDED: &str =
        "user:main;user:decode;runtime:memmove 600000\nuser:main;user:encode 200000\ngc:sweep 100000\n";

    #[test]
    fn the_table_names_the_function_that_calls_what_costs() {
        let text = Costs(&profile(Subject::Cpu, FOLDED, 1.0)).to_string();
        let first = text.lines().nth(3).unwrap();
        assert!(first.contains("60.0 %") && first.contains("decode"), "{text}");
    }

    #[test]
    fn the_picture_holds_no_script_and_nothing_from_elsewhere() {
        let svg = String::from_utf8(flame_graph(&profile(Subject::Alloc, FOLDED, 1.0)).unwrap()).unwrap();
        assert!(svg.contains("decode") && svg.contains("planted: get 3 B"), "{svg}");
        for what in ["<script", "onload", "href=", "src=", "url(http"] {
            assert!(!svg.contains(what), "{what} in {svg}");
        }
    }

    #[test]
    fn what_is_asked_for_is_read() {
        let asked = |text: &str| text.parse::<Asked>().unwrap();
        assert_eq!(asked("out"), Asked { subject: Subject::Cpu, to: "out".into() });
        assert_eq!(asked("alloc").subject, Subject::Alloc);
        assert_eq!(asked("alloc:out/a.svg"), Asked { subject: Subject::Alloc, to: "out/a.svg".into() });
        assert!("".parse::<Asked>().is_err());
        assert!(asked("a.svg").check(2).unwrap_err().to_string().contains("2 profiles do not fit one file"));
    }
}
