//! Where threads wait: from leaving the CPU to being back on it, by the stack with which they left.
//!
//! `perf` writes a stack for each switch and a line when a thread leaves and comes back. A thread that was preempted does not wait.
//! A wait that began before the time asked for, or lasts longer, counts with its part within. Where the end was lost, so is the
//! wait. Stacks are unwound by debug information (`recording`), so those of functions that a runtime compiled end at these.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{NoProfile, SCRIPT_BYTES_MAX, maps, names};

/// What a thread waited for, as the kernel's functions tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum On {
    /// another thread: a lock, a condition, a queue
    Thread,
    /// time
    Timer,
    /// a disk
    Disk,
    /// what others send, or take: sockets, pipes, epoll. A server without work waits here
    Events,
    /// anything else
    Other,
}

/// Waits with one stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// from the outermost function inwards, `KIND:FUNCTION;…`
    pub stack: String,
    /// what for
    pub on: On,
    /// of all of them together
    pub ns: u64,
    /// how many
    pub count: u64,
}

impl Wait {
    /// The innermost function of the server's own code.
    pub fn own_function(&self) -> Option<&str> {
        names::own_function(&self.stack)
    }
}

/// What was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// those with a function of the server's own code
    pub each: Vec<Wait>,
    /// what others waited for locks, by the stack with which these were freed
    pub holders: Vec<Wait>,
    /// the part of the time asked for that the recording covers
    pub covered_ns: u64,
}

impl Waits {
    /// Those of other processes as well, which cover the whole of the time asked for: what these do not cover is scaled.
    pub fn and(mut self, others: Waits) -> Waits {
        let times = others.covered_ns as f64 / self.covered_ns.max(1) as f64;
        for one in &mut self.each {
            one.ns = (one.ns as f64 * times) as u64;
            one.count = (one.count as f64 * times) as u64;
        }
        self.each.extend(others.each);
        self.holders.extend(others.holders);
        Waits { covered_ns: others.covered_ns, ..self }
    }

    /// As folded stacks, in µs: of the holders where only these are known.
    pub fn folded(&self) -> String {
        let each = if self.each.is_empty() { &self.holders } else { &self.each };
        let lines = each.iter().filter(|one| one.ns >= 1000);
        lines.map(|one| format!("{} {}\n", one.stack, one.ns / 1000)).collect()
    }
}

/// What a recording of waits holds between two readings of CLOCK_MONOTONIC.
///
/// Errors: `perf script` cannot be started or fails.
pub fn waits(file: &Path, during_ns: (u64, u64)) -> Result<Waits, NoProfile> {
    let options = ["--show-switch-events", "-F", "comm,pid,tid,time,event,ip,sym,dso"];
    super::script(file, &options, |output| read(output, during_ns))
}

/// A thread that is off the CPU.
struct Away {
    since_ns: u64,
    stack: String,
}

/// The lines of `perf script --show-switch-events`.
fn read(script: impl Read, (from_ns, to_ns): (u64, u64)) -> io::Result<Waits> {
    let lines = BufReader::new(maps::Renamed::of(BufReader::new(script.take(SCRIPT_BYTES_MAX))));
    let mut sum: HashMap<String, (u64, u64)> = HashMap::new();
    let mut stacks = Stacks::default();
    let mut away: HashMap<u64, Away> = HashMap::new();
    // perf may begin late on a busy machine, and ends early at its largest file.
    let (mut first_ns, mut last_ns) = (u64::MAX, from_ns);
    let mut add = |gone: Away, until_ns: u64| {
        let ns = until_ns.min(to_ns).saturating_sub(gone.since_ns.max(from_ns));
        if ns > 0 && !gone.stack.is_empty() {
            let (all_ns, count) = sum.entry(gone.stack).or_default();
            *all_ns += ns;
            *count += 1;
        }
    };
    for line in lines.split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if line.starts_with([' ', '\t']) {
            stacks.frame(&line);
            continue;
        }
        stacks.close();
        let Some((thread, at_ns, event)) = head(&line) else { continue };
        (first_ns, last_ns) = (first_ns.min(at_ns), last_ns.max(at_ns));
        if event.starts_with("PERF_RECORD_SWITCH IN") {
            if let Some(gone) = away.remove(&thread) {
                add(gone, at_ns);
            }
        } else if event.starts_with("PERF_RECORD_SWITCH OUT") {
            let stack = stacks.of.remove(&thread).unwrap_or_default();
            if event.contains("preempt") {
                away.remove(&thread);
            } else {
                away.insert(thread, Away { since_ns: at_ns, stack });
            }
        } else {
            stacks.open = Some((thread, Vec::new()));
        }
    }
    let end_ns = last_ns.min(to_ns);
    away.into_values().for_each(|gone| add(gone, end_ns));
    // One order, whatever the hash.
    let sum: BTreeMap<String, (u64, u64)> = sum.into_iter().collect();
    let each = sum.into_iter().map(|(stack, (ns, count))| Wait { on: on(&stack), stack, ns, count });
    Ok(Waits {
        each: each.collect(),
        holders: Vec::new(),
        covered_ns: end_ns.saturating_sub(first_ns.max(from_ns)),
    })
}

/// `COMM PID/TID SECONDS: EVENT`, where the name of a thread may hold anything.
fn head(line: &str) -> Option<(u64, u64, &str)> {
    line.match_indices('/').find_map(|(slash, _)| {
        let pid = line[..slash].rsplit(' ').next()?;
        let (tid, rest) = line[slash + 1..].split_once(' ')?;
        let (seconds, event) = rest.trim_start().split_once(": ")?;
        let (whole, part) = seconds.split_once('.')?;
        pid.parse::<u64>().ok()?;
        let part_ns = part
            .parse::<u64>()
            .ok()?
            .checked_mul(10_u64.checked_pow(9_u32.checked_sub(part.len() as u32)?)?)?;
        let at_ns = whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(part_ns)?;
        Some((tid.parse().ok()?, at_ns, event.trim()))
    })
}

/// The stacks that threads left with, as they are read.
#[derive(Default)]
struct Stacks {
    /// by thread: only those with a function of the server's own code
    of: HashMap<u64, String>,
    /// the thread and its frames so far, innermost first
    open: Option<(u64, Vec<String>)>,
}

impl Stacks {
    /// `ADDRESS FUNCTION (OBJECT)`
    fn frame(&mut self, line: &str) {
        let Some((_, frames)) = &mut self.open else { return };
        let Some((_, rest)) = line.trim().split_once(' ') else { return };
        let Some((name, object)) = rest.strip_suffix(')').and_then(|rest| rest.rsplit_once(" (")) else {
            return;
        };
        let name = without_hash(name).replace(';', ":");
        if name == "[unknown]" {
            return;
        }
        let is_map = object.starts_with("/tmp/perf-") && object.ends_with(".map");
        let is_kernel = object.starts_with("[kernel") || object.ends_with(".ko");
        let mark = if is_kernel {
            "_[k]"
        } else if is_map {
            "_[j]"
        } else {
            ""
        };
        // Its C++ looks like a program's own.
        let is_runtime = object.ends_with("/libjvm.so");
        frames.push(names::frame(&format!("{name}{mark}"), is_runtime));
    }

    fn close(&mut self) {
        let Some((thread, mut frames)) = self.open.take() else { return };
        if frames.iter().any(|frame| frame.starts_with(names::OWN)) {
            frames.reverse();
            self.of.insert(thread, frames.join(";"));
        }
    }
}

/// A name of Rust's without the hash that its compiler put behind it.
fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((bare, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => bare,
        _ => name,
    }
}

/// By the kernel's functions: a disk first, since what waits for it may hold a lock of the kernel.
fn on(stack: &str) -> On {
    let has = |words: &[&str]| {
        stack
            .split(';')
            .filter_map(|frame| frame.strip_prefix("kernel:"))
            .any(|name| words.iter().any(|word| name.contains(word)))
    };
    if has(&["io_schedule", "fsync", "fdatasync", "jbd2", "sync_file", "filemap", "blk_mq"]) {
        On::Disk
    } else if has(&["futex"]) {
        On::Thread
    } else if has(&["nanosleep"]) {
        On::Timer
    } else if has(&[
        "poll", "select", "accept", "recv", "send", "sk_wait", "sock", "pipe", "eventfd", "unix_",
    ]) {
        On::Events
    } else {
        On::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUTEX: &str =
        "\tffffffff82 schedule ([kernel.kallsyms])\n\tffffffff81 futex_wait ([kernel.kallsyms])\n";

    fn seen(script: &str) -> Vec<(String, On, u64, u64)> {
        seen_and_covered(script).0
    }

    fn seen_and_covered(script: &str) -> (Vec<(String, On, u64, u64)>, u64) {
        let waits = read(script.as_bytes(), (10_000_000_000, 20_000_000_000)).unwrap();
        let covered_ns = waits.covered_ns;
        let each = waits.each.into_iter().map(|one| (one.stack, one.on, one.ns, one.count));
        (each.collect(), covered_ns)
    }

    #[test]
    fn a_recording_covers_what_lies_between_its_first_and_last_line() {
        let line = |at: &str| format!("a 7/9 {at}: PERF_RECORD_SWITCH IN\n");
        for (lines, expected_ns) in [
            (line("9.0") + &line("21.0"), 10_000_000_000),
            (line("12.5") + &line("19.0"), 6_500_000_000),
            (line("8.0") + &line("9.0"), 0),
            (String::new(), 0),
        ] {
            assert_eq!(seen_and_covered(&lines).1, expected_ns, "{lines}");
        }
    }

    #[test]
    fn a_wait_lasts_from_leaving_the_cpu_to_coming_back_and_counts_where_it_was_asked_for() {
        let left = |at: &str| {
            format!(
                "pool-1/2 a 7/9 {at}: cs/period=1/: \n{FUTEX}\t7f01 __futex (/lib/libc.so.6)\n\
                 \t7f02 shop::cart::hold::h0123456789abcdef (/srv/shop)\n\t7f03 main (/srv/shop)\n\n\
                 pool-1/2 a 7/9 {at}: PERF_RECORD_SWITCH OUT        \n"
            )
        };
        let back = |at: &str| format!("pool-1/2 a 7/9 {at}: PERF_RECORD_SWITCH IN         \n");
        let stack = "runtime:main;user:shop::cart::hold;runtime:__futex;kernel:futex_wait;kernel:schedule";
        for (script, expected) in [
            (left("11.000") + &back("11.500"), Some((500_000_000, 1))),
            (left("11.0") + &back("11.5") + &left("12.000000") + &back("12.000001"), Some((500_001_000, 2))),
            // Only its part in the hold.
            (left("9.0") + &back("10.25"), Some((250_000_000, 1))),
            (left("19.0") + &back("25.0"), Some((1_000_000_000, 1))),
            (left("8.0") + &back("9.0"), None),
            // Until the end of what was recorded.
            (left("12.0") + "other 8/8 15.0: PERF_RECORD_SWITCH IN\n", Some((3_000_000_000, 1))),
            // The end was lost: only the second one is known.
            (left("12.0") + &left("14.0") + &back("14.5"), Some((500_000_000, 1))),
            (back("12.0"), None),
            (left("12.0").replace("OUT ", "OUT preempt") + &back("13.0"), None),
        ] {
            let expected = expected.map(|(ns, count)| (stack.to_owned(), On::Thread, ns, count));
            assert_eq!(seen(&script), expected.into_iter().collect::<Vec<_>>(), "{script}");
        }
    }

    #[test]
    fn a_stack_without_a_function_of_the_servers_own_code_tells_nothing() {
        let switch = "py 7/7 11.0: PERF_RECORD_SWITCH OUT\npy 7/7 12.0: PERF_RECORD_SWITCH IN\n";
        for (frames, expected) in [
            (
                "\t7f02 py::work:/srv/app.py (/tmp/perf-4194305.map)\n",
                Some("runtime:take;user:work (app.py);kernel:futex_wait"),
            ),
            ("\t7f02 py::get:/usr/lib/python3.12/queue.py (/tmp/perf-4194305.map)\n", None),
            ("\t7f02 [unknown] ([unknown])\n\t7f03 cond_wait (/lib/libc.so.6)\n", None),
            ("\t7f02 Parker::park (/usr/lib/jvm/lib/server/libjvm.so)\n", None),
            ("", None),
        ] {
            let script = format!(
                "py 7/7 11.0: cs/period=1/: \n{FUTEX}{frames}\t7f09 take (/lib/libpython.so)\n\n{switch}"
            );
            let found = seen(&script);
            assert_eq!(found.len(), usize::from(expected.is_some()), "{script}");
            let waits = read(script.as_bytes(), (10_000_000_000, 20_000_000_000)).unwrap().each;
            assert_eq!(waits.first().and_then(Wait::own_function), expected.map(|_| "work (app.py)"));
            assert!(expected.is_none_or(|stack| found[0].0.starts_with(stack)), "{found:?}");
        }
    }

    #[test]
    fn the_kernels_functions_tell_what_is_waited_for() {
        for (frames, expected) in [
            ("kernel:__x64_sys_futex;kernel:schedule", On::Thread),
            ("kernel:hrtimer_nanosleep;kernel:do_nanosleep", On::Timer),
            ("kernel:__x64_sys_fsync;kernel:jbd2_log_wait_commit", On::Disk),
            ("kernel:do_epoll_wait;kernel:schedule_hrtimeout", On::Events),
            ("kernel:tcp_recvmsg;kernel:sk_wait_data", On::Events),
            ("kernel:inet_csk_accept", On::Events),
            ("user:futex_of_mine;kernel:do_wait", On::Other),
        ] {
            assert_eq!(on(frames), expected, "{frames}");
        }
    }
}
