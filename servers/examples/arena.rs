//! The arena standalone, for trying it out: `cargo run --release -p stepladder-servers --example arena -- [OPTION VALUE]…`
//!
//! Options: listen, threads, tick-rate, ticker (steady, catch-up), tick-log, append, bullet-speed, fire-interval (ms),
//! snapshots, max-connections. The product's own command line is elsewhere.

use std::time::Duration;

use servers::arena::{self, Options, Ticker};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{name} needs a value"));
        match name.as_str() {
            "--append" => options.append = true,
            "--snapshots" => options.snapshots = true,
            "--listen" => options.listen = value()?.parse()?,
            "--threads" => options.threads = Some(value()?.parse()?),
            "--tick-rate" => options.tick_rate = value()?.parse()?,
            "--ticker" => {
                options.ticker = match value()?.as_str() {
                    "steady" => Ticker::Steady,
                    "catch-up" => Ticker::CatchUp,
                    other => return Err(format!("--ticker {other}: steady or catch-up").into()),
                }
            }
            "--tick-log" => options.tick_log = Some(value()?.into()),
            "--bullet-speed" => options.bullet_speed = value()?.parse()?,
            "--fire-interval" => options.fire_interval = Duration::from_millis(value()?.parse()?),
            "--max-connections" => options.max_connections = value()?.parse()?,
            other => return Err(format!("unknown option {other}").into()),
        }
    }
    arena::run(options, |address| println!("arena listening on ws://{address}"), |_| ())?;
    Ok(())
}
