//! StatsD lines: `server.tick:16.7|ms|@0.1|#room:7`, with DogStatsD's several values and its `h` and `d`.
//!
//! Timings of one name are the intervals between ticks, in ms. Other metrics and other types are no ticks.

use super::{Parsed, TimeUnit, Timings, duration_ns};

/// More values in a packet than this are not one server's ticks.
const VALUES_MAX: usize = 10_000;
/// A timing that stands for more than so many others says nothing.
const RATE_LEAST: f64 = 1e-4;

/// Of which metric.
#[derive(Debug)]
pub(super) struct Statsd {
    /// `None` until the first timing has come: its name is taken
    metric: Option<String>,
}

impl Statsd {
    pub(super) fn new(metric: Option<String>) -> Statsd {
        Statsd { metric }
    }

    /// Takes a line apart. Errors: what is wrong with it.
    pub(super) fn parse(&mut self, bytes: &[u8]) -> Result<Parsed<'static>, String> {
        let line = std::str::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())?.trim_end();
        // Events and checks of DogStatsD.
        if line.starts_with("_e{") || line.starts_with("_sc|") {
            return Ok(Parsed::Other);
        }
        let mut parts = line.split('|');
        let (name, values) =
            parts.next().and_then(|part| part.split_once(':')).ok_or("not NAME:VALUE|TYPE")?;
        match parts.next() {
            Some("ms" | "h" | "d") => {}
            Some("c" | "g" | "s") => return Ok(Parsed::Other),
            Some(other) => {
                return Err(format!("{:?} is no type of StatsD", other.chars().take(20).collect::<String>()));
            }
            None => return Err("not NAME:VALUE|TYPE".to_owned()),
        }
        let mut count = 1;
        if let Some(rate) = parts.find_map(|part| part.strip_prefix('@')) {
            let rate: f64 = rate.parse().map_err(|_| "its sample rate is not a number".to_owned())?;
            if !(RATE_LEAST..=1.0).contains(&rate) {
                return Err(format!("its sample rate is {rate}, which is not between {RATE_LEAST} and 1"));
            }
            count = (1.0 / rate).round() as u64;
        }
        let metric = self.metric.get_or_insert_with(|| name.to_owned());
        if metric != name {
            return Ok(Parsed::Other);
        }
        let values = values.split(':').take(VALUES_MAX).map(|value| {
            let value = value.parse().map_err(|_| "its value is not a number".to_owned())?;
            duration_ns(value, TimeUnit::Ms, "its value")
        });
        Ok(Parsed::Timings(Timings { intervals_ns: values.collect::<Result<_, String>>()?, count }))
    }
}
