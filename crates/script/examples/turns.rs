//! What a script costs per turn, without sockets: a tick of `bot.every` that asks and sends, and a message that answers.
//!
//! `cargo run --release -p stepladder-script --example turns -- [bots]`
//! The bot is `bench/script/echo.ts`: 30 bytes of JSON in and out. Prints µs of CPU, the median and the best of nine rounds,
//! with the commands taken and dropped as the engine does.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use script::{Command, Data, Play, Script};

const ROUNDS: usize = 9;
const TICKS: usize = 100;
const TICK_NS: u64 = 100_000_000;

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What each bot waits for, and what it sent.
struct Bot {
    timer: (u32, u64),
    sent: String,
}

fn main() {
    let count = std::env::args().nth(1).map_or(200, |word| word.parse::<u32>().expect("a number of bots"));
    let text = include_str!("../../../bench/script/echo.ts");
    let bundle = script::bundle(Path::new("echo.ts"), &|_| Ok(text.to_owned())).expect("it is a script");
    let play = Play { target: "ws://127.0.0.1:9".to_owned(), seed: 7, ..Play::default() };
    let mut script = Script::new(&Arc::new(bundle), &play).expect("it can be played");
    let mut bots: Vec<Bot> = (0..count).map(|_| Bot { timer: (0, 0), sent: String::new() }).collect();
    let mut commands = Vec::new();
    for bot in 0..count {
        script.start(bot, u64::from(bot), 0);
        script.opened(bot, 1, "", 0);
        take(&mut script, &mut commands, &mut bots);
    }
    let (mut ticks, mut messages) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (mut in_ticks, mut in_messages) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..TICKS {
            let begin = cpu();
            for bot in 0..count {
                let (id, at_ns) = bots[bot as usize].timer;
                script.timer(bot, id, at_ns, at_ns + 1_000);
                take(&mut script, &mut commands, &mut bots);
            }
            let between = cpu();
            for bot in 0..count {
                let Bot { timer: (_, at_ns), sent } = &bots[bot as usize];
                script.text(bot, 1, sent, at_ns - TICK_NS + 500_000);
                take(&mut script, &mut commands, &mut bots);
            }
            in_ticks += between - begin;
            in_messages += cpu() - between;
        }
        ticks.push(in_ticks);
        messages.push(in_messages);
    }
    let turns = f64::from(count) * TICKS as f64;
    for (name, mut rounds) in [("tick, ask, send", ticks), ("message, answered", messages)] {
        rounds.sort();
        let us = |time: Duration| time.as_secs_f64() * 1e6 / turns;
        println!("{name}: {:.2} µs, best {:.2} µs", us(rounds[ROUNDS / 2]), us(rounds[0]));
    }
}

fn take(script: &mut Script, commands: &mut Vec<(u32, Command)>, bots: &mut [Bot]) {
    script.take_commands(commands);
    for (bot, command) in commands.drain(..) {
        match command {
            Command::Timer { id, at_ns } => bots[bot as usize].timer = (id, at_ns),
            Command::Send { data: Data::Text(text), .. } => bots[bot as usize].sent = text,
            _ => {}
        }
    }
}
