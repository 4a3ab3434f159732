//! What `jfr print` writes of a recording, as folded stacks, waits and allocations.
//!
//! Its JSON has all of a class at every frame (18 times as much), so it is the text that is read, in English and UTC: times of day in
//! ms, durations and sizes with three digits. Events are cut to the hold; one that has no stack counts for the collector only.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};

use measure::{Operation, Stops};

use super::{Allocation, Allocations, Asked, Samples, Seen};
use crate::profile::names;
use crate::profile::waits::{On, Wait, Waits};

/// Frames of a stack that are read, innermost first: as many as the recorder keeps by default.
pub(super) const DEPTH_MAX: usize = 64;
/// A line of a stack has the types of all parameters.
const LINE_BYTES_MAX: u64 = 64 << 10;
const DAY_NS: u64 = 24 * 3600 * 1_000_000_000;

/// The events that are waits, and what for.
pub(super) const WAITS: [(&str, On); 9] = [
    ("jdk.JavaMonitorEnter", On::Thread),
    ("jdk.JavaMonitorWait", On::Thread),
    ("jdk.ThreadPark", On::Thread),
    ("jdk.ThreadSleep", On::Timer),
    ("jdk.FileRead", On::Disk),
    ("jdk.FileWrite", On::Disk),
    ("jdk.FileForce", On::Disk),
    ("jdk.SocketRead", On::Events),
    ("jdk.SocketWrite", On::Events),
];

/// The events in which all threads stand still: for the collector, while the last of them are stopped, for an operation of the JVM.
pub(super) const STOPS: [&str; 3] = [PAUSE, REACHING, OPERATION];
const PAUSE: &str = "jdk.GCPhasePause";
const REACHING: &str = "jdk.SafepointStateSynchronization";
const OPERATION: &str = "jdk.ExecuteVMOperation";

/// All of a recording that lies in the hold.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Recorded {
    /// samples by stack
    cpu: BTreeMap<String, u64>,
    waits: BTreeMap<(String, On), (u64, u64)>,
    /// bytes and samples by stack
    allocations: BTreeMap<String, (u64, u64)>,
    /// the earliest sample of each thread: its bytes are all since the thread began, or since a recording before
    first_of: BTreeMap<String, Event>,
    /// for garbage collection, from and to, ns of the hold
    pauses: Vec<(u64, u64)>,
    /// for operations of the JVM, collections among them, and while threads were being stopped
    stops: Vec<((u64, u64), String)>,
    hold_ns: u64,
}

impl Recorded {
    /// `cpu_s`: CPU time of the Java threads. Each sample is an equal share of it, because the recorder takes fewer samples than it
    /// is asked for, and also samples threads that have no core.
    pub(super) fn seen(self, asked: Asked, cpu_s: f64) -> Seen {
        let samples: u64 = self.cpu.values().sum();
        let per_s = samples.max(1) as f64 / cpu_s.max(1e-3);
        let folded: String = self.cpu.iter().map(|(stack, count)| format!("{stack} {count}\n")).collect();
        let waits = self.waits.into_iter().map(|((stack, on), (ns, count))| Wait { stack, on, ns, count });
        let each = self.allocations.into_iter();
        let each = each.map(|(stack, (bytes, samples))| Allocation { stack, bytes, samples }).collect();
        let stops = stops(self.pauses, self.stops, self.hold_ns);
        Seen {
            cpu: asked.cpu.then_some(Samples { folded, per_s }),
            waits: asked.waits.then(|| Waits {
                each: waits.collect(),
                covered_ns: self.hold_ns,
                ..Waits::default()
            }),
            allocations: asked.allocations.then_some(Allocations { each }),
            stops: Some(stops),
        }
    }

    fn take(&mut self, event: Event) {
        if event.name == "jdk.ObjectAllocationSample" {
            return self.allocated(event);
        }
        let Event { name, from_ns, ns, operation, stops_all, frames, .. } = event;
        let to_ns = from_ns.saturating_add(i64::try_from(ns).unwrap_or(i64::MAX));
        let span = (from_ns.max(0) as u64, to_ns.min(self.hold_ns as i64).max(0) as u64);
        let within_ns = span.1.saturating_sub(span.0);
        let is_within = (0..self.hold_ns as i64).contains(&from_ns);
        if name == PAUSE {
            self.pauses.extend((within_ns > 0).then_some(span));
        } else if name == REACHING {
            self.stops.extend((within_ns > 0).then(|| (span, "waiting for all threads to stop".to_owned())));
        } else if name == OPERATION {
            self.stops.extend((within_ns > 0 && stops_all).then_some((span, operation)));
        } else if frames.is_empty() {
            // Nothing can be said of it.
        } else if name == "jdk.ExecutionSample" {
            if is_within {
                *self.cpu.entry(stack(frames)).or_default() += 1;
            }
        } else if let Some((_, on)) = WAITS.iter().find(|(wait, _)| *wait == name) {
            // An idle thread of a pool has no function of the server's own code.
            if within_ns > 0 && frames.iter().any(|frame| frame.starts_with(names::OWN)) {
                let sum = self.waits.entry((stack(frames), *on)).or_default();
                *sum = (sum.0 + within_ns, sum.1 + 1);
            }
        }
    }

    /// Samples are written in any order.
    fn allocated(&mut self, event: Event) {
        let later = match self.first_of.get_mut(&event.thread) {
            None => {
                self.first_of.insert(event.thread.clone(), event);
                return;
            }
            Some(first) if event.from_ns < first.from_ns => std::mem::replace(first, event),
            Some(_) => event,
        };
        if (0..self.hold_ns as i64).contains(&later.from_ns) && !later.frames.is_empty() {
            let sum = self.allocations.entry(stack(later.frames)).or_default();
            *sum = (sum.0.saturating_add(later.bytes), sum.1 + 1);
        }
    }
}

/// What stopped all threads. An operation in which they were paused for garbage for more than half of the time is a collection, whatever
/// it is called; of any other the pauses in it are no part.
fn stops(mut pauses: Vec<(u64, u64)>, stops: Vec<((u64, u64), String)>, hold_ns: u64) -> Stops {
    pauses.sort_unstable();
    let share = |ns: u64| Some(ns as f64 / hold_ns.max(1) as f64);
    let (mut other_ns, mut other_max) = (0, None);
    for ((from, to), name) in stops {
        let first = pauses.partition_point(|(_, end)| *end <= from);
        let within = pauses[first..].iter().take_while(|(begin, _)| *begin < to);
        let paused: u64 = within.map(|(begin, end)| to.min(*end).saturating_sub(from.max(*begin))).sum();
        let ns = to - from;
        if 2 * paused <= ns {
            other_ns += ns.saturating_sub(paused);
            other_max = other_max.max(Some(Operation { ns, name }));
        }
    }
    let length = |(from, to): &(u64, u64)| to - from;
    Stops {
        gc_share: share(pauses.iter().map(length).sum()),
        gc_max_ns: Some(pauses.iter().map(length).max().unwrap_or(0)),
        other_share: share(other_ns),
        other_max,
        ..Stops::default()
    }
}

/// From the outermost function inwards.
fn stack(mut frames: Vec<String>) -> String {
    frames.reverse();
    frames.join(";")
}

#[derive(Debug, Default, PartialEq)]
struct Event {
    name: String,
    /// since the hold began
    from_ns: i64,
    ns: u64,
    bytes: u64,
    thread: String,
    /// of the JVM
    operation: String,
    /// for which all threads stand still
    stops_all: bool,
    /// innermost first
    frames: Vec<String>,
}

/// The events between two times, ns since 1970. Errors: it cannot be read.
pub(super) fn read(printed: impl Read, (from_ns, to_ns): (u64, u64)) -> io::Result<Recorded> {
    let mut recorded = Recorded { hold_ns: to_ns.saturating_sub(from_ns), ..Recorded::default() };
    let mut printed = BufReader::new(printed);
    let (mut line, mut event, mut is_stack) = (Vec::new(), None::<Event>, false);
    loop {
        line.clear();
        if (&mut printed).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
            // An event that was cut off is left out.
            return Ok(recorded);
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if let Some(name) = text.strip_suffix(" {").filter(|name| !name.starts_with(' ')) {
            (event, is_stack) =
                (Some(Event { name: name.to_owned(), from_ns: i64::MIN, ..Event::default() }), false);
        } else if text == "}" {
            if let Some(event) = event.take().filter(|event| event.from_ns != i64::MIN) {
                recorded.take(event);
            }
        } else if let Some(event) = &mut event {
            match text {
                "  stackTrace = [" => is_stack = true,
                "  ]" => is_stack = false,
                _ if is_stack => event.frames.extend(frame(text).filter(|_| event.frames.len() < DEPTH_MAX)),
                _ => field(event, text, from_ns),
            }
        }
    }
}

/// `  NAME = VALUE`
fn field(event: &mut Event, line: &str, hold_from_ns: u64) {
    let Some((name, value)) = line.trim_start().split_once(" = ") else { return };
    match name {
        "startTime" => {
            let Some(of_day_ns) = time_of_day_ns(value) else { return };
            // The nearest such time of day.
            let since = (of_day_ns + DAY_NS - hold_from_ns % DAY_NS) % DAY_NS;
            event.from_ns = if since > DAY_NS / 2 { since as i64 - DAY_NS as i64 } else { since as i64 };
        }
        "duration" => event.ns = measured(value, &DURATIONS).unwrap_or(0),
        "eventThread" => event.thread = value.to_owned(),
        "operation" => event.operation = value.trim_matches('"').to_owned(),
        "safepoint" => event.stops_all = value == "true",
        "weight" => event.bytes = measured(value, &SIZES).unwrap_or(0),
        _ => {}
    }
}

const DURATIONS: [(&str, f64); 7] =
    [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9), ("d", 86400e9)];
const SIZES: [(&str, f64); 6] = [
    ("byte", 1.0),
    ("bytes", 1.0),
    ("kB", 1024.0),
    ("MB", 1_048_576.0),
    ("GB", 1_073_741_824.0),
    ("TB", 1_099_511_627_776.0),
];

/// `31.3 ms`, `121.5 kB`
fn measured(value: &str, units: &[(&str, f64)]) -> Option<u64> {
    let (number, unit) = value.split_once(' ')?;
    let (_, times) = units.iter().find(|(name, _)| *name == unit)?;
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some((number * times).max(0.0) as u64)
}

/// `18:06:21.560`, with the day behind it from JDK 19 on.
fn time_of_day_ns(value: &str) -> Option<u64> {
    let time = value.split(' ').next()?;
    let mut parts = time.splitn(3, ':');
    let (hours, minutes) = (parts.next()?.parse::<u64>().ok()?, parts.next()?.parse::<u64>().ok()?);
    let seconds: f64 = parts.next()?.parse().ok()?;
    ((0.0..=60.0).contains(&seconds) && hours < 24 && minutes < 60)
        .then_some((hours * 3600 + minutes * 60) * 1_000_000_000 + (seconds * 1e9).round() as u64)
}

/// `    a.b.Class.method(Type, Type) line: 12`; without the types, so that the lines of a function add up.
fn frame(line: &str) -> Option<String> {
    let text = line.trim_start();
    let name = text.split_once('(').map(|(name, _)| name).filter(|name| !name.is_empty())?;
    Some(names::of_java(&name.replace(';', ":")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-28 18:06:20 UTC.
    const FROM_NS: u64 = 1_795_889_180_000_000_000;
    const RECORDED: &str = include_str!("flight/recorded.txt");

    fn of(printed: &str) -> Recorded {
        read(printed.as_bytes(), (FROM_NS, FROM_NS + 10_000_000_000)).unwrap()
    }

    fn event(name: &str, at: &str, fields: &str, frames: &[&str]) -> String {
        let frames: String = frames.iter().map(|frame| format!("    {frame}\n")).collect();
        format!("{name} {{\n  startTime = {at}\n{fields}  stackTrace = [\n{frames}  ]\n}}\n\n")
    }

    #[test]
    fn a_recording_of_a_server_with_a_lock_names_it_and_not_the_pool() {
        let recorded = of(RECORDED);
        let asked = Asked { cpu: true, waits: true, allocations: true, has_perf: true };
        let seen = recorded.seen(asked, 0.01);
        let waits = seen.waits.unwrap();
        let found: Vec<_> =
            waits.each.iter().map(|one| (one.own_function().unwrap(), one.on, one.ns, one.count)).collect();
        // In its order: parked for the lock, and asleep in it. The thread that waited in the JDK's server is none of its own.
        let lock = "Server.lambda$oneLock$0";
        assert_eq!(found, [(lock, On::Timer, 26_400_000, 1), (lock, On::Thread, 22_400_000, 1)]);
        assert_eq!(waits.covered_ns, 10_000_000_000);
        let cpu = seen.cpu.unwrap();
        assert_eq!(cpu.per_s, 100.0, "a sample in 10 ms of CPU time");
        assert!(
            cpu.folded.starts_with("runtime:java.lang.Thread.run;") && cpu.folded.ends_with(" 1\n"),
            "{cpu:?}"
        );
        let allocated = seen.allocations.unwrap();
        assert_eq!(allocated.each, [], "the first sample of its thread");
        let expected = Stops {
            gc_share: Some(0.001_53),
            gc_max_ns: Some(15_300_000),
            other_share: Some(0.0),
            ..Stops::default()
        };
        assert_eq!(seen.stops, Some(expected));
    }

    #[test]
    fn all_threads_stand_for_operations_at_a_safepoint_that_are_no_collections_and_until_they_do() {
        let at = |name: &str, second: &str, duration: &str, fields: &str| {
            format!("{name} {{\n  startTime = 18:06:{second}\n  duration = {duration}\n{fields}}}\n\n")
        };
        let operation = |second: &str, duration: &str, name: &str, stops_all: bool| {
            let fields = format!("  operation = \"{name}\"\n  safepoint = {stops_all}\n  blocking = true\n");
            at(OPERATION, second, duration, &fields)
        };
        let reaching = at(REACHING, "23.000", "40.0 ms", "  safepointId = 7\n");
        let printed = [
            operation("21.000", "60.0 ms", "ThreadDump", true),
            operation("24.000", "90.0 ms", "G1CollectForAllocation", true),
            at(PAUSE, "24.001", "85.0 ms", ""),
            // It collects first.
            operation("25.000", "30.0 ms", "GC_HeapInspection", true),
            at(PAUSE, "25.000", "20.0 ms", ""),
            operation("26.000", "50.0 ms", "Cleanup", true),
            at(PAUSE, "26.010", "10.0 ms", ""),
            operation("27.000", "90.0 ms", "HandshakeAllThreads", false),
        ]
        .concat();
        let stops = |printed: &str| of(printed).seen(Asked::default(), 1.0).stops.unwrap();
        let told = stops(&(printed + &reaching));
        assert_eq!((told.other_share, told.gc_share), (Some(0.014), Some(0.0115)));
        assert_eq!(told.other_max, Some(Operation { ns: 60_000_000, name: "ThreadDump".to_owned() }));
        assert_eq!(told.gc_max_ns, Some(85_000_000));
        assert_eq!(stops(&reaching).other_max.unwrap().name, "waiting for all threads to stop");
    }

    #[test]
    fn events_count_with_their_part_in_the_hold() {
        let park = |at: &str, duration: &str| {
            event("jdk.ThreadPark", at, &format!("  duration = {duration}\n"), &["shop.Cart.hold() line: 3"])
        };
        for (what, printed, expected) in [
            ("within", park("18:06:21.000", "31.3 ms"), 31_300_000),
            ("begun before", park("18:06:19.000", "1.50 s"), 500_000_000),
            ("ended after", park("18:06:29.900", "1.50 s"), 100_000_000),
            ("all of it", park("18:06:10.000", "1.00 m"), 10_000_000_000),
            ("over before", park("18:06:18.000", "500 ms"), 0),
            ("of the day before", park("18:06:31.000", "1 ms"), 0),
            ("with its day", park("18:06:21.000 (2026-11-28)", "12 us"), 12_000),
            ("without a unit", park("18:06:21.000", "12"), 0),
            ("without an end", park("18:06:21.000", "N/A"), 0),
            ("no time", park("soon", "31.3 ms"), 0),
            ("huge", park("18:06:21.000", "1e300 d"), 9_000_000_000),
            ("cut off", park("18:06:21.000", "31.3 ms").trim_end().trim_end_matches('}').to_owned(), 0),
        ] {
            let ns: u64 = of(&printed).waits.values().map(|(ns, _)| ns).sum();
            assert_eq!(ns, expected, "{what}");
        }
        // A hold over midnight.
        let midnight = FROM_NS + (5 * 3600 + 53 * 60 + 35) * 1_000_000_000;
        let recorded = read(park("00:00:01.000", "1.00 s").as_bytes(), (midnight, midnight + 10_000_000_000));
        assert_eq!(recorded.unwrap().waits.values().next(), Some(&(1_000_000_000, 1)));
    }

    #[test]
    fn names_are_cleaned_and_separators_in_them_separate_nothing() {
        let frames =
            ["a;b.\u{1b}[31mEvil.run 9(X) line: 1", "no frame", "java.lang.Thread.run() line: 840", "..."];
        let recorded = of(&event("jdk.ExecutionSample", "18:06:21.000", "", &frames));
        let expected = "runtime:java.lang.Thread.run;user:a:b. [31mEvil.run 9";
        assert_eq!(recorded.cpu, BTreeMap::from([(expected.to_owned(), 1)]));
    }

    #[test]
    fn an_idle_thread_of_a_pool_waits_for_nothing_of_the_servers() {
        let idle = [
            "jdk.internal.misc.Unsafe.park(boolean, long)",
            "java.util.concurrent.ThreadPoolExecutor.getTask() line: 1",
        ];
        let printed = event("jdk.ThreadPark", "18:06:21.000", "  duration = 900 ms\n", &idle);
        assert!(of(&printed).waits.is_empty());
    }

    #[test]
    fn deep_stacks_keep_their_innermost_frames() {
        let frames: Vec<String> = (0..200).map(|at| format!("a.B.f{at}() line: 1")).collect();
        let frames: Vec<&str> = frames.iter().map(String::as_str).collect();
        let recorded = of(&event("jdk.ExecutionSample", "18:06:21.000", "", &frames));
        let (stack, _) = recorded.cpu.first_key_value().unwrap();
        assert!(stack.starts_with("user:a.B.f63;") && stack.ends_with(";user:a.B.f0"), "{stack}");
    }

    /// It has the bytes of all the time before.
    #[test]
    fn the_first_sample_of_each_thread_is_left_out_in_whatever_order_they_are_written() {
        let one = |thread: &str, second: u64, weight: &str| {
            let fields = format!("  weight = {weight}\n  eventThread = \"{thread}\" (javaThreadId = 1)\n");
            event("jdk.ObjectAllocationSample", &format!("18:06:{second}.000"), &fields, &["a.B.f() line: 1"])
        };
        let first = one("x", 15, "80 GB");
        for (what, printed, expected) in [
            ("one alone", one("x", 21, "80 GB"), None),
            ("the second", one("x", 21, "80 GB") + &one("x", 22, "1.5 kB"), Some((1536, 1))),
            ("the other way around", one("x", 22, "1.5 kB") + &one("x", 21, "80 GB"), Some((1536, 1))),
            ("of two threads", one("x", 21, "80 GB") + &one("y", 22, "80 GB"), None),
            ("before", first.clone() + &one("x", 22, "24 bytes") + &one("x", 23, "1 byte"), Some((25, 2))),
            ("behind the hold", first + &one("x", 31, "24 bytes"), None),
        ] {
            assert_eq!(of(&printed).allocations.values().next().copied(), expected, "{what}");
        }
    }
}
