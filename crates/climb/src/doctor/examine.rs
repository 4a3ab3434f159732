//! What is examined, and the thresholds beyond which it is poor.

use std::path::Path;
use std::time::Duration;
use std::{env, fs, thread};

use console::layout::grouped;
use procfs::Current;
use serde_json::json;
use watch::{AllowedCores, Machine, OtherPrograms, Ports};

use super::finding::{Finding, Grade};
use super::timing::{clock_cost_ns, stalls, timer_lateness};

/// A generator and a server on one core measure each other.
const FEWEST_CORES: f64 = 2.0;
const LEAST_MEMORY_BYTES: u64 = 2 << 30;
/// One table of this size carries 2,000 games with some air.
const FEWEST_DESCRIPTORS: u64 = 4_500;
const FEWEST_PORTS: u64 = 20_000;
/// A reading is made for every message; beyond this the clock itself costs a tenth of a core at 500,000 messages/s.
const DEAREST_CLOCK_NS: f64 = 200.0;
const LATEST_TIMER_P99_NS: u64 = 1_000_000;
/// A quarter of a tick at 60 Hz, lost at once.
const LONGEST_STALL_NS: u64 = 4_000_000;
const MOST_LOST: f64 = 0.05;
/// As for a hold: more steal than this disturbs it.
const MOST_STEAL: f64 = 0.02;
const MOST_PRESSURE: f64 = 0.10;
/// A tracked connection counts on both ends of loopback.
const FEWEST_TRACKED: u64 = 131_072;
/// 127.0.0.10 to 127.0.0.254.
const LOOPBACK_SOURCES: u64 = 245;

/// Everything about this machine that a climb depends on; takes about a second.
pub fn examine() -> Vec<Finding> {
    let mut machine = Machine::new();
    machine.read();
    let own_tables = has_own_tables();
    let mut findings = vec![system(), cores(), memory()];
    findings.extend([descriptors(own_tables), tables(own_tables), ports()]);
    findings.extend(tracking());
    findings.push(clock());
    findings.extend(timers());
    findings.push(stalled());
    // Last, so that its second is the one in which the other findings were made.
    let (noise, tells_steal) = noise(&mut machine);
    findings.extend([noise, seen(OtherPrograms::new().sees_all(), tells_waiting(), tells_steal)]);
    findings.extend([throttling(&machine), realtime()]);
    findings.extend(tools());
    findings
}

fn system() -> Finding {
    let kernel = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = watch::machine::cpu_model().unwrap_or_else(|| "an unknown processor".to_owned());
    let guest = watch::machine::virtual_machine();
    let (grade, text) = match &guest {
        None => (Grade::Good, format!("Linux {kernel}, {model}")),
        Some(host) => {
            let by = if host == "yes" { String::new() } else { format!(" ({host})") };
            (Grade::Note, format!("Linux {kernel}, {model}, a virtual machine{by}: its host may stall it"))
        }
    };
    Finding::new(
        "system",
        grade,
        text,
        json!({ "kernel": kernel, "cpu_model": model, "virtual_machine": guest }),
    )
}

fn cores() -> Finding {
    let (allowed, online) = (AllowedCores::own(), watch::machine::online_cores());
    let mut text = format!("{} of {online} may be used", allowed.affinity);
    if let Some(quota) = allowed.quota {
        text += &format!(", with a quota of {quota:.1} cores' time");
    }
    let figures = json!({ "online": online, "allowed": allowed.affinity, "quota": allowed.quota });
    let finding = Finding::new("cores", Grade::Good, text, figures);
    if allowed.quota.is_some_and(|quota| quota < allowed.affinity as f64) {
        // A quota stops all threads at once for the rest of its period, in the middle of a tick.
        return finding.with_remedy(
            "a CPU quota halts everything for tens of ms at a time; give the control group whole cores (cpuset) \
             instead",
        );
    }
    finding.poor_if(
        allowed.cores() < FEWEST_CORES,
        "bots and server share one core and measure each other; allow two, or run the server elsewhere",
    )
}

fn memory() -> Finding {
    let Ok(memory) = procfs::Meminfo::current() else {
        return Finding::new("memory", Grade::Note, "cannot be read".to_owned(), json!({}));
    };
    let available = memory.mem_available.unwrap_or(memory.mem_free);
    let text = format!("{} available of {}", gigabytes(available), gigabytes(memory.mem_total));
    let figures = json!({ "available_bytes": available, "total_bytes": memory.mem_total });
    Finding::new("memory", Grade::Good, text, figures).poor_if(
        available < LEAST_MEMORY_BYTES,
        "thousands of connections and the delivery ledger may not fit; free some before a large climb",
    )
}

fn descriptors(own_tables: bool) -> Finding {
    let inherited = watch::Inherited::remember();
    let now = watch::raise_descriptors().ok().flatten();
    let soft = inherited.descriptors_soft.map_or("unlimited".to_owned(), grouped);
    let hard = now.map_or("unlimited".to_owned(), grouped);
    let raised =
        if inherited.descriptors_soft == now { String::new() } else { format!(" (raised from {soft})") };
    let each = if own_tables { "; each worker thread has as many of its own" } else { "" };
    let text = format!("{hard} per table{raised}{each}");
    let figures = json!({
        "soft": inherited.descriptors_soft, "hard": inherited.descriptors_hard, "per_table": now,
    });
    Finding::new("descriptors", Grade::Good, text, figures).poor_if(
        now.is_some_and(|count| count < FEWEST_DESCRIPTORS),
        "raise the hard limit: `* hard nofile 1048576` in /etc/security/limits.conf, or LimitNOFILE= of the service",
    )
}

fn tables(own_tables: bool) -> Finding {
    let text = if own_tables {
        "threads may have descriptor tables of their own, so one process can exceed the limit"
    } else {
        "threads cannot have descriptor tables of their own, so the limit holds for all workers together"
    };
    Finding::new("tables", Grade::Good, text.to_owned(), json!({ "own_tables": own_tables })).poor_if(
        !own_tables,
        "needs Linux 5.9 and a sandbox that allows close_range; else raise the hard limit of descriptors",
    )
}

fn ports() -> Finding {
    let ports = Ports::read();
    let has_sources = watch::preflight::has_loopback_sources();
    let on_loopback = ports.count() * if has_sources { LOOPBACK_SOURCES } else { 1 };
    let text = format!(
        "{}–{}: {} connections to one target, {} to one on loopback{}",
        ports.from,
        ports.to,
        grouped(ports.count()),
        grouped(on_loopback),
        if has_sources { " (from 127.0.0.10 and up)" } else { "" }
    );
    let figures = json!({
        "from": ports.from, "to": ports.to, "per_source": ports.count(), "on_loopback": on_loopback,
        "tcp_tw_reuse": ports.reuse, "tcp_max_tw_buckets": ports.time_wait_most,
    });
    Finding::new("ports", Grade::Good, text, figures).poor_if(
        ports.count() < FEWEST_PORTS,
        "widen the range: sysctl net.ipv4.ip_local_port_range=\"10240 65535\"",
    )
}

/// Connection tracking drops new connections in silence once its table is full.
fn tracking() -> Option<Finding> {
    let most: u64 = read("/proc/sys/net/netfilter/nf_conntrack_max")?.parse().ok()?;
    let now: u64 = read("/proc/sys/net/netfilter/nf_conntrack_count")?.parse().ok()?;
    let text = format!("the firewall can track {} connections, {} now", grouped(most), grouped(now));
    let figures = json!({ "most": most, "now": now });
    Some(Finding::new("tracking", Grade::Good, text, figures).poor_if(
        most < FEWEST_TRACKED,
        "beyond that new connections vanish: sysctl net.netfilter.nf_conntrack_max=262144",
    ))
}

fn clock() -> Finding {
    let source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let cost_ns = clock_cost_ns();
    let named = source.clone().unwrap_or_else(|| "an unknown source".to_owned());
    let text = format!("{named}, {cost_ns:.0} ns per reading");
    Finding::new("clock", Grade::Good, text, json!({ "source": source, "reading_ns": cost_ns.round() }))
        .poor_if(
            cost_ns > DEAREST_CLOCK_NS,
            "every reading is a system call; look for `tsc` in \
         /sys/devices/system/clocksource/clocksource0/available_clocksource and choose it",
        )
}

fn timers() -> Option<Finding> {
    let late = timer_lateness()?;
    let text = format!(
        "wake {} late, p99 {}, at most {}",
        short(late.p50_ns),
        short(late.p99_ns),
        short(late.max_ns)
    );
    let figures = json!({ "p50_ns": late.p50_ns, "p99_ns": late.p99_ns, "max_ns": late.max_ns });
    Some(Finding::new("timers", Grade::Good, text, figures).poor_if(
        late.p99_ns > LATEST_TIMER_P99_NS,
        "sends leave late by as much; quieten the machine, or let workers spin and run with realtime priority",
    ))
}

fn stalled() -> Finding {
    let stalls = stalls(Duration::from_millis(250));
    let text = match stalls.longest_ns {
        0 => format!("none on a busy core in {}", short(stalls.looked_ns)),
        longest_ns => format!(
            "a busy core lost {:.1} % of {}, at most {} at once",
            stalls.lost_share * 100.0,
            short(stalls.looked_ns),
            short(longest_ns)
        ),
    };
    let figures = json!({
        "lost_share": stalls.lost_share, "longest_ns": stalls.longest_ns, "looked_ns": stalls.looked_ns,
    });
    Finding::new("stalls", Grade::Good, text, figures).poor_if(
        stalls.longest_ns > LONGEST_STALL_NS || stalls.lost_share > MOST_LOST,
        "others take this core's time; stop them, or measure where the cores are your own, and judge medians of \
         several runs",
    )
}

fn noise(machine: &mut Machine) -> (Finding, bool) {
    let reading = machine.read();
    let tells_steal = reading.steal_share.is_some();
    let percent =
        |share: Option<f64>| share.map_or("—".to_owned(), |share| format!("{:.1} %", share * 100.0));
    let text = format!(
        "steal {}, CPU pressure {} over 10 s, load {}",
        percent(reading.steal_share),
        percent(reading.cpu_pressure_some_avg10),
        reading.load1.map_or("—".to_owned(), |load| format!("{load:.2}"))
    );
    let figures = json!({
        "steal_share": reading.steal_share, "cpu_pressure_some_avg10": reading.cpu_pressure_some_avg10,
        "load1": reading.load1,
    });
    let finding = Finding::new("noise", Grade::Good, text, figures);
    let finding = if reading.steal_share.is_some_and(|share| share > MOST_STEAL) {
        finding.with_remedy("the host gives this machine's time to others; measure at another hour or place")
    } else {
        finding.poor_if(
            reading.cpu_pressure_some_avg10.is_some_and(|share| share > MOST_PRESSURE),
            "other work waits for the cores; stop it before a climb",
        )
    };
    (finding, tells_steal)
}

/// What of a second's disturbances can be read here.
fn seen(sees_all: bool, tells_waiting: bool, tells_steal: bool) -> Finding {
    let mut parts = vec![if sees_all {
        "CPU of other programs is read, by name"
    } else {
        "processes outside this container or of other users cannot be seen, so the CPU of other programs is known \
         only roughly (0.2 cores)"
    }];
    parts.push(if tells_waiting {
        "threads' waiting for a core is read"
    } else {
        "threads' waiting for a core cannot be read (no /proc/self/schedstat)"
    });
    parts.push(if tells_steal { "steal is read" } else { "steal cannot be read" });
    let grade = if sees_all && tells_waiting && tells_steal { Grade::Good } else { Grade::Note };
    let figures =
        json!({ "others_cores": sees_all, "waiting_share": tells_waiting, "steal_share": tells_steal });
    Finding::new("disturbance", grade, parts.join("; "), figures)
}

/// Whether the kernel reports how long a thread waited for a core.
fn tells_waiting() -> bool {
    read("/proc/self/schedstat").is_some_and(|times| times.split_whitespace().count() >= 2)
}

fn throttling(machine: &Machine) -> Finding {
    let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let figures = json!({ "told": machine.tells_throttling(), "governor": governor });
    let told = if machine.tells_throttling() {
        "thermal throttling would be seen"
    } else {
        "this machine does not report thermal throttling"
    };
    let text = match &governor {
        Some(governor) => format!("{told}; frequency governor `{governor}`"),
        None => told.to_owned(),
    };
    let grade = if machine.tells_throttling() { Grade::Good } else { Grade::Note };
    Finding::new("throttling", grade, text, figures).poor_if(
        governor.as_deref() == Some("powersave")
            && !Path::new("/sys/devices/system/cpu/intel_pstate").exists(),
        "the governor holds the cores at their lowest frequency: cpupower frequency-set -g performance",
    )
}

fn realtime() -> Finding {
    // Only that thread changes, and it ends at once.
    let is_permitted = thread::spawn(|| engine::thread::be_realtime(1).is_ok()).join().unwrap_or(false);
    let text = if is_permitted {
        "realtime priority is permitted (workers use it only when asked to)"
    } else {
        "realtime priority is not permitted; workers do without (ulimit -r, or CAP_SYS_NICE)"
    };
    let grade = if is_permitted { Grade::Good } else { Grade::Note };
    Finding::new("realtime", grade, text.to_owned(), json!({ "permitted": is_permitted }))
}

fn tools() -> Vec<Finding> {
    let perf = in_path(&["perf"]);
    let paranoid: Option<i64> =
        read("/proc/sys/kernel/perf_event_paranoid").and_then(|text| text.parse().ok());
    // SAFETY: no arguments, no failure.
    let is_root = unsafe { libc::geteuid() } == 0;
    let may = is_root || paranoid.is_some_and(|level| level <= 1);
    let (grade, text) = match (&perf, may) {
        (Some(_), true) => (Grade::Good, "found; profiles of the subject can be taken"),
        (Some(_), false) => (
            Grade::Note,
            "found, but kernel.perf_event_paranoid keeps it from the kernel's share of a profile (sysctl \
             kernel.perf_event_paranoid=1)",
        ),
        (None, _) => {
            (Grade::Note, "not found; without it there are no profiles of native servers (linux-perf)")
        }
    };
    let figures = json!({ "found": perf.is_some(), "perf_event_paranoid": paranoid });
    let perf = Finding::new("perf", grade, text.to_owned(), figures);
    let browser = in_path(&["chromium", "chromium-browser", "google-chrome"]);
    let (grade, text) = match &browser {
        Some(name) => (Grade::Good, format!("{name} found; the viewer's own tests can use it")),
        None => (
            Grade::Note,
            "no Chromium found; any browser shows reports, only the viewer's own tests need it".into(),
        ),
    };
    vec![perf, Finding::new("browser", grade, text, json!({ "found": browser.is_some() }))]
}

/// Whether a thread may have its own descriptor table: tried on one that exits right after.
fn has_own_tables() -> bool {
    let tried = thread::spawn(|| {
        // SAFETY: plain numbers. It closes only in this thread's new table, and the thread uses no descriptor.
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_UNSHARE) == 0 }
    });
    tried.join().unwrap_or(false)
}

fn in_path(names: &[&str]) -> Option<String> {
    let path = env::var_os("PATH")?;
    let folders: Vec<_> = env::split_paths(&path).collect();
    names
        .iter()
        .find(|name| folders.iter().any(|folder| folder.join(name).is_file()))
        .map(|&name| name.to_owned())
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

fn short(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.0} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_here_is_said() {
        let all = seen(true, true, true);
        assert_eq!((all.grade, all.text.contains("cannot")), (Grade::Good, false));
        let none = seen(false, false, false);
        assert_eq!((none.grade, none.text.matches("cannot").count()), (Grade::Note, 3), "{}", none.text);
    }
}
