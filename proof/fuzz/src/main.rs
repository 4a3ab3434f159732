//! `fuzz list`, `fuzz one TARGET FILE…`, `fuzz search TARGET SECONDS [SEED]`; for `bench/fuzz/run` also `unpack TARGET FOLDER`
//! (seeds, corpus and regressions as files), `words TARGET` (a dictionary of libFuzzer) and `pack TARGET FOLDER` (files become
//! the corpus).

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fuzz::{TARGETS, Target, corpus};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["list"] => TARGETS.iter().for_each(|target| println!("{}", target.name)),
        ["one", name, ref files @ ..] => {
            let target = target(name)?;
            for file in files {
                target.execute(&std::fs::read(file).with_context(|| format!("cannot read {file}"))?);
                println!("{file}: nothing found");
            }
        }
        ["search", name, seconds, ref seed @ ..] => {
            let target = target(name)?;
            let seconds: u64 = seconds.parse().context("SECONDS is no number")?;
            let seed = seed.first().map_or(Ok(1), |seed| seed.parse()).context("SEED is no number")?;
            let begin = Instant::now();
            let executions = fuzz::search(target, seed, Duration::from_secs(seconds), u64::MAX);
            println!("{name}: {executions} inputs in {:.1} s", begin.elapsed().as_secs_f64());
        }
        ["words", name] => {
            for word in target(name)?.words {
                let hex: String = word.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
                println!("\"{hex}\"");
            }
        }
        ["unpack", name, folder] => {
            let target = target(name)?;
            let kept = corpus::regressions(name).into_iter().map(|(_, input)| input);
            let inputs = (target.seeds)().into_iter().chain(corpus::read(name)).chain(kept);
            for (index, input) in inputs.enumerate() {
                let file = Path::new(folder).join(format!("kept-{index:04}"));
                std::fs::write(&file, input).with_context(|| format!("cannot write {}", file.display()))?;
            }
        }
        ["pack", name, folder] => {
            let target = target(name)?;
            let mut inputs = Vec::new();
            for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {folder}"))? {
                inputs.push(std::fs::read(entry?.path())?);
            }
            let seeds = (target.seeds)();
            inputs.retain(|input| !seeds.contains(input) && input.len() <= target.bytes_max);
            std::fs::write(corpus::file(name), corpus::text(inputs))?;
        }
        _ => bail!(
            "usage: fuzz list | one TARGET FILE… | search TARGET SECONDS [SEED] | words TARGET | unpack TARGET FOLDER | pack TARGET FOLDER"
        ),
    }
    Ok(())
}

fn target(name: &str) -> Result<&'static Target> {
    Target::named(name).with_context(|| format!("{name:?} is no target; `fuzz list` names them"))
}
