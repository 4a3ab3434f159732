//! Where a client's time goes: a flame graph, shares by kind, the functions that cost most.
//!
//! A profile is made in a run of its own behind the measured ones, whose figures do not count: profiling costs time. What
//! it leaves are folded stacks (`clients/README.md`, "Profile"), kept as an artifact of the run; table and picture are
//! made of them. `perf` records what does not profile itself.

mod perf;
mod stacks;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use inferno::flamegraph;
use inferno::flamegraph::color::{MultiPalette, Palette};
use serde_json::{Value, json};

pub(super) use self::perf::Perf;
use self::stacks::{Kind, Stacks};
use super::figures::{CellKey, Report, Run};

/// What is profiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// CPU time, µs
    Cpu,
    /// what was allocated, bytes
    Alloc,
}

impl Subject {
    pub(super) fn name(self) -> &'static str {
        match self {
            Subject::Cpu => "cpu",
            Subject::Alloc => "alloc",
        }
    }

    pub(super) fn named(name: &str) -> Option<Subject> {
        [Subject::Cpu, Subject::Alloc].into_iter().find(|subject| subject.name() == name)
    }

    fn unit(self) -> &'static str {
        match self {
            Subject::Cpu => "µs",
            Subject::Alloc => "bytes",
        }
    }
}

/// What `--profile` asks for: `PATH`, `alloc` or `alloc:PATH`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
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
    pub(super) fn check(&self, pictures: usize) -> anyhow::Result<()> {
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

    fn path(&self, profile: &Profile) -> PathBuf {
        if self.is_file() {
            return self.to.clone();
        }
        let key = &profile.key;
        let name = format!(
            "{}-{}-{}-{}-{}",
            profile.client,
            key.op,
            key.value_bytes,
            key.in_flight,
            profile.subject.name()
        );
        let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '_' };
        // A command is a client's name too, and a file's name has a limit.
        let name: String =
            name.chars().map(plain).rev().take(120).collect::<Vec<_>>().into_iter().rev().collect();
        self.to.join(name + ".svg")
    }

    /// Draws every profile of the report, and says where.
    pub(super) fn draw(&self, report: &Report) -> anyhow::Result<Vec<PathBuf>> {
        let mut drawn = Vec::new();
        for profile in &report.profiles {
            let path = self.path(profile);
            let svg = profile.flame_graph()?;
            std::fs::write(&path, svg)
                .with_context(|| format!("--profile {}: cannot be written", path.display()))?;
            drawn.push(path);
        }
        Ok(drawn)
    }
}

/// Where `perf` records.
pub(super) fn recording(folder: &Path) -> PathBuf {
    folder.join("perf.data")
}

/// Where a client writes its stacks.
pub(super) fn folded(folder: &Path) -> PathBuf {
    folder.join("stacks.folded")
}

/// The artifact that keeps the stacks of a process.
pub(super) fn artifact(process: u32) -> String {
    format!("profile-{process}.folded")
}

/// The profile of one client at one task.
#[derive(Debug)]
pub(in crate::bench) struct Profile {
    subject: Subject,
    client: String,
    key: CellKey,
    stacks: Stacks,
    /// the CPU time of the process meanwhile, µs; of allocations nothing else is known
    total: Option<u64>,
}

/// Functions that are listed.
const TOP: usize = 10;

impl Profile {
    /// Errors: its stacks are none of the format.
    pub(super) fn read(
        subject: Subject,
        client: &str,
        key: CellKey,
        folded: &str,
        run: &Run,
    ) -> anyhow::Result<Profile> {
        let stacks = Stacks::read(folded).with_context(|| format!("the profile of client {client}"))?;
        let total = (subject == Subject::Cpu).then_some((run.cpu_s * 1e6) as u64);
        Ok(Profile { subject, client: client.to_owned(), key, stacks, total })
    }

    /// Everything, that which no stack tells of too.
    fn whole(&self) -> u64 {
        self.stacks.sum().max(self.total.unwrap_or(0))
    }

    fn share(&self, weight: u64) -> f64 {
        weight as f64 / self.whole().max(1) as f64
    }

    /// By kind, and what is unaccounted for.
    fn shares(&self) -> Vec<(&'static str, f64)> {
        let by_kind = self.stacks.by_kind();
        let known = by_kind.into_iter().map(|(kind, weight)| (kind.name(), self.share(weight)));
        let rest = self.whole() - self.stacks.sum();
        known.chain([("unaccounted", self.share(rest))]).collect()
    }

    fn flame_graph(&self) -> anyhow::Result<Vec<u8>> {
        let mut options = flamegraph::Options::default();
        options.title = format!(
            "{}: {}, {}",
            self.client,
            self.key,
            match self.subject {
                Subject::Cpu => "CPU time",
                Subject::Alloc => "bytes allocated",
            }
        );
        options.subtitle = Some(
            "green: user code, aqua: garbage collection, orange: kernel, other colours: runtime and native"
                .to_owned(),
        );
        options.count_name = self.subject.unit().to_owned();
        options.colors = Palette::Multi(MultiPalette::Java);
        options.no_javascript = true;
        let lines = self.stacks.for_colours();
        let mut svg = Vec::new();
        flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)
            .with_context(|| format!("the profile of client {} cannot be drawn", self.client))?;
        Ok(without_script(&String::from_utf8_lossy(&svg)).into_bytes())
    }

    pub(super) fn as_json(&self) -> Value {
        let top = self.stacks.top(TOP).into_iter().map(|one| {
            json!({
                "function": one.function, "kind": one.kind.name(), "share": self.share(one.own),
                "share_without_callees": self.share(one.leaf), "weight": one.own,
            })
        });
        let shares: serde_json::Map<String, Value> =
            self.shares().into_iter().map(|(name, share)| (name.to_owned(), json!(share))).collect();
        json!({
            "subject": self.subject.name(), "unit": self.subject.unit(), "client": self.client, "op": self.key.op,
            "value_bytes": self.key.value_bytes, "in_flight": self.key.in_flight, "total": self.whole(),
            "shares": shares, "top": top.collect::<Vec<_>>(),
        })
    }
}

/// inferno leaves a frame of its script, and the call of it, where it was asked for none.
fn without_script(svg: &str) -> String {
    let mut clean = String::with_capacity(svg.len());
    let mut rest = svg;
    while let Some((before, script)) = rest.split_once("<script") {
        clean += before;
        rest = script.split_once("</script>").map_or("", |(_, behind)| behind);
    }
    (clean + rest).replace(r#" onload="init(evt)""#, "")
}

impl fmt::Display for Profile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let what = match self.subject {
            Subject::Cpu => "CPU time",
            Subject::Alloc => "bytes allocated",
        };
        writeln!(out, "{}, {}: {what} by kind", self.client, self.key)?;
        let shares: Vec<String> = self
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
        for one in self.stacks.top(TOP) {
            writeln!(
                out,
                "  {:>8} {:>8}  {}{}",
                percent(self.share(one.own)),
                percent(self.share(one.leaf)),
                one.function.chars().take(90).collect::<String>(),
                if one.kind == Kind::User { String::new() } else { format!(" ({})", one.kind.name()) },
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::cell;
    use super::*;

    fn profile(subject: Subject, folded: &str, cpu_s: f64) -> Profile {
        let cell = cell("planted", &[1000.0]);
        let run = Run { cpu_s, ..cell.runs[0].1.clone() };
        Profile::read(subject, "planted", cell.key, folded, &run).unwrap()
    }

    const FOLDED: &str =
        "user:main;user:decode;runtime:memmove 600000\nuser:main;user:encode 200000\ngc:sweep 100000\n";

    #[test]
    fn shares_add_up_to_the_cpu_of_the_process() {
        let shares = profile(Subject::Cpu, FOLDED, 1.0).shares();
        assert!((shares.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-9);
        let of = |name: &str| shares.iter().find(|(each, _)| *each == name).map(|(_, share)| *share);
        assert_eq!((of("user code"), of("runtime and native"), of("GC")), (Some(0.2), Some(0.6), Some(0.1)));
        assert_eq!(of("unaccounted"), Some(0.1));
    }

    #[test]
    fn the_table_names_the_function_that_calls_what_costs() {
        let text = profile(Subject::Cpu, FOLDED, 1.0).to_string();
        let first = text.lines().nth(3).unwrap();
        assert!(first.contains("60.0 %") && first.contains("decode"), "{text}");
    }

    #[test]
    fn the_picture_holds_no_script_and_nothing_from_elsewhere() {
        let svg = String::from_utf8(profile(Subject::Alloc, FOLDED, 1.0).flame_graph().unwrap()).unwrap();
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
