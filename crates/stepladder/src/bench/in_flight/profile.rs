//! Where a client's time goes: a flame graph, shares by kind, the functions that cost most.
//!
//! A profile is made in a run of its own behind the measured ones, whose figures do not count: profiling costs time. What
//! it leaves are folded stacks (`clients/README.md`, "Profile"), kept as an artifact of the run; table and picture are
//! made of them. `perf` records what does not profile itself.

mod perf;

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use inferno::flamegraph;
use inferno::flamegraph::color::{MultiPalette, Palette};
use ladder::in_flight::{Kind, Profile, Report, Stacks, Subject};

pub(super) use self::perf::Perf;

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
            let svg = flame_graph(profile)?;
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
    options.no_javascript = true;
    let lines = for_colours(&profile.stacks);
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)
        .with_context(|| format!("the profile of client {} cannot be drawn", profile.client))?;
    Ok(without_script(&String::from_utf8_lossy(&svg)).into_bytes())
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

/// A profile as a table.
pub(super) struct Costs<'p>(pub &'p Profile);

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
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ladder::in_flight::Run;
    use ladder::in_flight::scene::cell;

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
