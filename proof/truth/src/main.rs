//! `truth [--short | --sockets FOLDER [--at-once N]] [ID…]`: computes the oracles, or measures them over sockets, and prints their
//! table. Exit code 1 when a row is out of range, 2 when something could not be measured, 3 when the arguments are wrong. For
//! `bench/truth/run`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use truth::{Form, ORACLES, Row, sockets};

/// What is asked for.
struct Asked {
    form: Form,
    /// measure over sockets, and keep what is written there
    folder: Option<PathBuf>,
    at_once: usize,
    ids: Vec<String>,
}

impl Asked {
    /// Errors: in words.
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Asked, String> {
        let mut asked = Asked { form: Form::Long, folder: None, at_once: 1, ids: Vec::new() };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(format!("{argument}: its value is missing"));
            match argument.as_str() {
                "--short" => asked.form = Form::Short,
                "--sockets" => asked.folder = Some(value()?.into()),
                "--at-once" => {
                    let count = value()?;
                    asked.at_once = count.parse().map_err(|_| format!("--at-once {count}: no number"))?;
                }
                _ => asked.ids.push(argument),
            }
        }
        let known = match asked.folder {
            Some(_) => sockets::ids(),
            None => ORACLES.iter().map(|oracle| oracle.id).collect(),
        };
        match asked.ids.iter().find(|id| !known.contains(&id.as_str())) {
            None => Ok(asked),
            Some(other) => {
                Err(format!("{other:?} is no oracle of this kind; there are {}", known.join(", ")))
            }
        }
    }

    fn wants(&self, id: &str) -> bool {
        self.ids.is_empty() || self.ids.iter().any(|one| one == id)
    }
}

fn main() -> ExitCode {
    let asked = match Asked::read(std::env::args().skip(1)) {
        Ok(asked) => asked,
        Err(why) => {
            eprintln!("truth: {why}");
            return ExitCode::from(3);
        }
    };
    let rows = match &asked.folder {
        None => computed(&asked),
        Some(folder) => {
            let stepladder = std::env::var_os("STEPLADDER").unwrap_or("stepladder".into());
            match sockets::rows(stepladder.as_ref(), folder, asked.at_once, |id| asked.wants(id)) {
                Ok(rows) => rows,
                Err(why) => {
                    eprintln!("truth: {why}");
                    return ExitCode::from(2);
                }
            }
        }
    };
    print(&rows)
}

/// In virtual time.
fn computed(asked: &Asked) -> Vec<Row> {
    let chosen: Vec<_> = ORACLES.iter().filter(|one| asked.wants(one.id)).collect();
    let (next, done) = (Mutex::new(0..chosen.len()), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(at) = next.lock().ok().and_then(|mut next| next.next()) {
                    let began = Instant::now();
                    let rows = (chosen[at].rows)(asked.form);
                    eprintln!("{} took {:.1} s", chosen[at].id, began.elapsed().as_secs_f64());
                    if let Ok(mut done) = done.lock() {
                        done.push((at, rows));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().flat_map(|(_, rows)| rows).collect()
}

fn print(rows: &[Row]) -> ExitCode {
    println!("| id | what | expected | got | allowed | |\n|---|---|---|---|---|---|");
    for row in rows {
        let mark = if row.is_ok { "ok" } else { "**not**" };
        println!("| {} | {} | {} | {} | {} | {mark} |", row.id, row.what, row.expected, row.got, row.allowed);
    }
    let wrong = rows.iter().filter(|row| !row.is_ok).count();
    println!("\n{} rows, {wrong} out of range", rows.len());
    ExitCode::from(u8::from(wrong > 0))
}
