//! `truth [--short] [ID…]`: computes the oracles and prints their table. Exit code 1 when a row is out of range, 3 when
//! the arguments are wrong. For `bench/truth/run`.

use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use truth::{Form, ORACLES, Row};

fn main() -> ExitCode {
    let mut form = Form::Long;
    let mut wanted = Vec::new();
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--short" => form = Form::Short,
            id if ORACLES.iter().any(|oracle| oracle.id == id) => wanted.push(argument),
            other => {
                let ids: Vec<&str> = ORACLES.iter().map(|oracle| oracle.id).collect();
                eprintln!(
                    "truth: {other:?} is no oracle; known are {}, and the option --short",
                    ids.join(", ")
                );
                return ExitCode::from(3);
            }
        }
    }
    let chosen: Vec<_> =
        ORACLES.iter().filter(|one| wanted.is_empty() || wanted.iter().any(|id| id == one.id)).collect();
    let (next, done) = (Mutex::new(0..chosen.len()), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(at) = next.lock().ok().and_then(|mut next| next.next()) {
                    let began = Instant::now();
                    let rows = (chosen[at].rows)(form);
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
    let rows: Vec<Row> = done.into_iter().flat_map(|(_, rows)| rows).collect();
    println!("| id | what | expected | got | allowed | |\n|---|---|---|---|---|---|");
    for row in &rows {
        let mark = if row.is_ok { "ok" } else { "**not**" };
        println!("| {} | {} | {} | {} | {} | {mark} |", row.id, row.what, row.expected, row.got, row.allowed);
    }
    let wrong = rows.iter().filter(|row| !row.is_ok).count();
    println!("\n{} rows, {wrong} out of range", rows.len());
    ExitCode::from(u8::from(wrong > 0))
}
