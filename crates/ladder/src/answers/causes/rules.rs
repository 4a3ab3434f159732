//! The rules by which a cause is found, in the order in which they are asked: limits on connections, then what makes a server slow.

use measure::{MachineMetric, ProcessMetric, ServiceMetric, Signal, Summary, ThreadState};

use super::{Cause, Seen, Standing};
use crate::answers::activity::STALLED_SHARE;
use crate::contract::Rung;
use crate::wording::{show_ns, show_number, show_share};

/// A server that uses more than this of its cores, or of one, has none left.
const CPU_SHARE_FULL: f64 = 0.9;
/// The same share if, in addition, at least this many threads per core want to run.
const CPU_SHARE_CROWDED: f64 = 0.8;
const RUNNABLE_PER_CORE: f64 = 1.5;
/// The same share, of a runtime that runs no more threads than there are cores: all of them want to, and the generator takes less
/// than this share of the cores.
const CPU_SHARE_OF_ALL: f64 = 0.85;
const RUNNABLE_OF_ALL: f64 = 0.95;
const GENERATOR_SHARE_SMALL: f64 = 0.1;
/// A thread that runs and waits for a core for this share of the time together is never idle …
const NEVER_IDLE_SHARE: f64 = 0.95;
/// … if about as many threads want to run, so that both are of one thread.
const RUNNABLE_ONE: std::ops::Range<f64> = 0.9..1.3;
/// An accept queue this full is full between two readings.
const ACCEPT_QUEUE_FULL: f64 = 0.98;
/// A server that uses less than this of its cores, in all and with its busiest thread, does not lack CPU.
const CPU_SHARE_IDLE: f64 = 0.7;
/// Server and generator that use less of their cores together than this do not take them from each other.
const CPU_SHARE_CONTENDED: f64 = 0.5;
/// A quota that halts a server for this share of the hold is why it is late …
const THROTTLED_SHARE: f64 = 0.1;
/// … and for this share it may be.
const THROTTLED_SHARE_SUSPECTED: f64 = 0.02;
/// Threads that wait for a disk at every moment, in the mean: one always does.
const DISK_THREADS: f64 = 0.7;
/// A lower limit for servers in which one thread at a time works: that thread waits for the disk or runs …
const DISK_THREADS_IN_TURN: f64 = 0.3;
/// … and both together take at least this share of the time.
const DISK_OR_RUNNING: f64 = 0.8;
/// From this mean number of threads on, the disk is suspected.
const DISK_THREADS_SUSPECTED: f64 = 0.15;
/// Threads that wait for a disk less than this are not why others wait.
const DISK_THREADS_NONE: f64 = 0.05;
/// Threads that wait for each other at every moment, in the mean.
const FUTEX_THREADS: f64 = 1.5;
/// A median that grew this many times shows a queue.
const QUEUE_RATIO: f64 = 3.0;
/// This share of the connections with unread bytes, in the mean over the hold, is a queue.
const UNREAD_SHARE: f64 = 0.1;
/// The same of connections whose clients do not take what was sent.
const UNSENT_SHARE: f64 = 0.2;
/// A number whose mean is this share of its largest value hardly moved.
const STEADY_SHARE: f64 = 0.8;
/// Pauses of this share of the hold are worth a word where nothing tells how many answers were late.
const PAUSE_SHARE: f64 = 0.05;
/// Answers whose faster half takes at most this share of the slowest hundredth's time (of few answers, the slowest tenth's) did
/// not queue.
const STALLS_RATIO: f64 = 0.2;

/// Names of threads with at least this share of the server's CPU are told, and at most so many.
const THREADS_TOLD: f64 = 0.1;
const THREADS_TOLD_MAX: usize = 3;

/// A network that takes this share of a latency is what makes it long.
const EMULATED_SHARE: f64 = 0.7;
/// A thread that uses this share of its program's CPU is the one that works.
const ONE_OF_ALL: f64 = 0.8;
/// Stalls are pauses of the server if there are at least this many, …
const STALLS_MIN: u64 = 3;
/// … they take at most this share of the hold (a server that is silent for longer does not merely pause), …
const STALLED_SHARE_MAX: f64 = 0.6;
/// … and they take at least this many times the share that they took under the load that held.
const STALLS_GROWN: f64 = 2.0;
/// A thread that waited for a core for this share of some second stood still for want of it.
const WAITING_SHARE_MAX: f64 = 0.25;

/// Late ticks that are near by this share are those of a timer rather than of a stall.
const NEAR_SHARE: f64 = 0.8;

type Rule = fn(&Seen<'_>) -> Option<Cause>;

/// Limits on connections, asked first: whatever the failure.
const LIMITS: [Rule; 3] = [descriptor_limit, accept_queue, connection_limit];
/// What makes a server slow, asked after them where the failure is one of speed.
const SPEED: [Rule; 13] = [
    emulated,
    throttled,
    collects_garbage,
    disk,
    processor,
    one_thread,
    services,
    stalls,
    lock,
    timers,
    clients,
    shared_cores,
    idle,
];

/// Every cause that fits, in the order in which the rules are asked.
pub(super) fn fitting(seen: &Seen<'_>) -> Vec<Cause> {
    let speed = SPEED.iter().filter(|_| seen.is_about_speed());
    LIMITS.iter().chain(speed).filter_map(|rule| rule(seen)).collect()
}

/// `The server used 0.26 cores (12.8 % of those it may use)`
fn used(seen: &Seen<'_>) -> String {
    format!(
        "The server used {} cores ({} of those it may use)",
        show_cores(seen.cpu_cores),
        show_share(seen.cpu_share)
    )
}

fn show_cores(cores: f64) -> String {
    format!("{cores:.2}")
}

/// Within one of its limit: what is opened next fails.
fn descriptor_limit(seen: &Seen<'_>) -> Option<Cause> {
    let (most, limit) = (seen.max(ProcessMetric::FdsOfOne)?, seen.max(ProcessMetric::FdLimit)?);
    if limit <= 0.0 || most < (0.98 * limit).min(limit - 1.0) {
        return None;
    }
    let text = format!(
        "A process of the server had {} of at most {} descriptors open: it can accept no more connections; raise its limit \
         (ulimit -n).",
        show_number(most),
        show_number(limit)
    );
    Cause::named("descriptor-limit", text)
}

fn accept_queue(seen: &Seen<'_>) -> Option<Cause> {
    let refused = seen.level(Signal::Machine(MachineMetric::ListenOverflows))?;
    let fullest = seen.max(ProcessMetric::AcceptQueueShare);
    let is_full = |share: f64| share >= 1.0 || (share >= ACCEPT_QUEUE_FULL && refused.max > 0.0);
    if (refused.max <= 0.0 && !fullest.is_some_and(is_full)) || has_no_time(seen) {
        return None;
    }
    let text = match fullest {
        Some(share) if is_full(share) => {
            let waiting = seen.max(ProcessMetric::AcceptQueue).unwrap_or_default();
            format!(
                "Its accept queue was full ({} connections waited), and the kernel turned others away: it accepts too \
                 slowly, or its listen backlog is too small.",
                show_number(waiting)
            )
        }
        _ => {
            let text = "The kernel turned connections of this machine away because an accept queue was full; the server's own \
                        was not seen full."
                .to_owned();
            return Cause::suspected("accept-queue", text);
        }
    };
    Cause::named("accept-queue", text)
}

/// The server closes or refuses connections beyond a number, and is at no other limit.
fn connection_limit(seen: &Seen<'_>) -> Option<Cause> {
    if !seen.is_about_connections() || seen.cpu_share > CPU_SHARE_IDLE || has_no_time(seen) {
        return None;
    }
    let level = seen.level(Signal::Subject(ProcessMetric::Connections))?;
    let asked = seen.rung.connections.counts.asked as f64;
    // As many in all seconds of the hold, but for one in which they still came, and fewer than were asked for.
    let is_flat = level.max > 0.0 && level.mean >= STEADY_SHARE * level.max;
    if !is_flat || level.max > 0.95 * asked {
        return None;
    }
    let text = format!(
        "It kept {} of {} connections open throughout and turned the others away, while it used {} of its cores: a limit on \
         its connections.",
        show_number(level.max),
        show_number(asked),
        show_share(seen.cpu_share)
    );
    Cause::named("connection-limit", text)
}

/// It lacks CPU, so that it comes to accepting too seldom; the rules behind say more.
fn has_no_time(seen: &Seen<'_>) -> bool {
    seen.is_about_speed() && [processor, one_thread].iter().any(|rule| rule(seen).is_some())
}

fn throttled(seen: &Seen<'_>) -> Option<Cause> {
    let share = seen.mean(ProcessMetric::ThrottledShare)?;
    let text =
        format!("A CPU quota of its control group halted the server for {} of the hold.", show_share(share));
    match share {
        THROTTLED_SHARE.. => Cause::named("throttled", text),
        THROTTLED_SHARE_SUSPECTED.. => Cause::suspected("throttled", text),
        _ => None,
    }
}

/// The share of answers or ticks that has to be late for the rung to fail by its signal.
fn late_share_needed(seen: &Seen<'_>) -> f64 {
    let signal = seen.signal;
    if signal == "ticks.late_share" {
        return seen.rung.ticks.as_ref().and_then(|ticks| ticks.late_share).unwrap_or(PAUSE_SHARE) / 2.0;
    }
    let quantile = signal.rsplit_once(".p").and_then(|(_, digits)| format!("0.{digits}").parse::<f64>().ok());
    quantile.map_or(PAUSE_SHARE, |quantile| (1.0 - quantile).max(1e-4))
}

fn collects_garbage(seen: &Seen<'_>) -> Option<Cause> {
    let share = seen.mean(ProcessMetric::GcShare)?;
    let longest = seen.max(ProcessMetric::GcShare)?;
    let needed = late_share_needed(seen);
    if share < 0.5 * needed || share <= 0.005 {
        return None;
    }
    let text = format!(
        "Its runtime stopped all of its threads for {} of the hold (at most {} of a second) to collect garbage.",
        show_share(share),
        show_share(longest)
    );
    if share >= needed { Cause::named("gc", text) } else { Cause::suspected("gc", text) }
}

fn disk(seen: &Seen<'_>) -> Option<Cause> {
    let threads = seen.threads(ThreadState::Disk)?;
    if seen.cpu_share > CPU_SHARE_FULL {
        return None;
    }
    let text =
        format!("{}: {} of its threads waited for a disk at any moment.", used(seen), show_threads(threads));
    // A short wait begins and ends with some CPU in the kernel.
    let running = seen.threads(ThreadState::Running).unwrap_or(0.0);
    let has_turns = threads + running >= DISK_OR_RUNNING && is_idle(seen) && waits_for_all(seen);
    match threads {
        DISK_THREADS.. => Cause::named("disk", text),
        DISK_THREADS_IN_TURN.. if has_turns => Cause::named("disk", text),
        DISK_THREADS_SUSPECTED.. => Cause::suspected("disk", text),
        _ => None,
    }
}

/// It has all of its cores, or nearly so while more threads want to run than there are cores.
fn processor(seen: &Seen<'_>) -> Option<Cause> {
    if seen.cpu_share > CPU_SHARE_FULL {
        return Cause::named("cpu", format!("{}: it had no CPU left.{}", used(seen), by_threads(seen)));
    }
    let (running, cores) = (seen.threads(ThreadState::Running)?, seen.mean(ProcessMetric::AllowedCores)?);
    let is_crowded = seen.cpu_share > CPU_SHARE_CROWDED && running >= RUNNABLE_PER_CORE * cores;
    let is_all_wanted = seen.cpu_share > CPU_SHARE_OF_ALL
        && running >= RUNNABLE_OF_ALL * cores
        && together_share(seen) - seen.cpu_share < GENERATOR_SHARE_SMALL;
    if !is_crowded && !is_all_wanted {
        return None;
    }
    let text = format!(
        "{}, and {} of its threads wanted to run at any moment: it had no CPU left.{}",
        used(seen),
        show_threads(running),
        by_threads(seen)
    );
    Cause::named("cpu", text)
}

/// ` By threads: worker-* 1.52, GC Thread#* 0.21 cores.`, of those that used a tenth of it or more; empty where that is one name, or none.
fn by_threads(seen: &Seen<'_>) -> String {
    let threads = seen.rung.subject.as_ref().map_or(&[][..], |subject| &subject.threads[..]);
    let ended = seen.mean(ProcessMetric::EndedThreads).map(|cores| ("those that ended", cores));
    let all = threads.iter().map(|one| (one.name.as_str(), one.cpu_cores)).chain(ended);
    let mut large: Vec<(&str, f64)> =
        all.filter(|(_, cores)| *cores >= THREADS_TOLD * seen.cpu_cores).collect();
    large.sort_by(|a, b| b.1.total_cmp(&a.1));
    if large.len() < 2 {
        return String::new();
    }
    let told =
        large.iter().take(THREADS_TOLD_MAX).map(|(name, cores)| format!("{name} {}", show_cores(*cores)));
    format!(" By threads: {} cores.", told.collect::<Vec<_>>().join(", "))
}

/// One thread has a core full or is never idle, or several share one because only one of them runs at a time.
fn one_thread(seen: &Seen<'_>) -> Option<Cause> {
    if let Some((name, cores)) = seen.busiest_thread()
        && cores > CPU_SHARE_FULL
    {
        let text = format!(
            "{}: thread '{name}' had one core full ({} of it), so more cores do not help it.",
            used(seen),
            show_share(cores.min(1.0)),
        );
        return Cause::named("thread", text);
    }
    // It shares its core with other programs, of which the generator is one.
    if let Some((name, cores)) = seen.busiest_thread()
        && let Some(waits) = seen.mean(ProcessMetric::WaitingShareMax)
        && cores + waits > NEVER_IDLE_SHARE
        && seen.threads(ThreadState::Running).is_some_and(|running| RUNNABLE_ONE.contains(&running))
    {
        let text = format!(
            "{}: thread '{name}' was never idle, {} of the time on a core and {} waiting for one that others used, so more cores do not \
             help it.",
            used(seen),
            show_share(cores.min(1.0)),
            show_share(waits.min(1.0)),
        );
        return Cause::named("thread", text);
    }
    let waiting = seen.threads(ThreadState::Futex)?;
    let is_one_core = (CPU_SHARE_FULL..1.15).contains(&seen.cpu_cores);
    if !is_one_core || waiting < 1.0 {
        return None;
    }
    let text = format!(
        "{}: its threads had one core together while {} of them waited for each other, so one ran at a time (a lock held \
         while computing, such as that of an interpreter); more cores do not help it.",
        used(seen),
        show_threads(waiting),
    );
    Cause::named("thread", text)
}

/// It has CPU left, and a service that it asks has none, or waits for its disk.
fn services(seen: &Seen<'_>) -> Option<Cause> {
    let mean = |metric| Some(seen.level(Signal::Services(metric))?.mean);
    if seen.cpu_share > CPU_SHARE_IDLE || !waits_for_all(seen) {
        return None;
    }
    let (cores, thread) = (mean(ServiceMetric::Cores)?, mean(ServiceMetric::CpuShareMax)?);
    let disk = mean(ServiceMetric::Disk).unwrap_or(0.0);
    let running = mean(ServiceMetric::Running).unwrap_or(0.0);
    let asks = format!("{}. It asks {}", used(seen), seen.rung.services.join(", "));
    let waits_in_turn = disk >= DISK_THREADS_IN_TURN && disk + running >= DISK_OR_RUNNING;
    if thread > CPU_SHARE_FULL {
        let text = format!("{asks}: one thread there had one core full ({} of it).", show_share(thread));
        return Cause::named("service", text);
    }
    if disk >= DISK_THREADS || waits_in_turn {
        let text = format!("{asks}: {} threads there waited for a disk at any moment.", show_threads(disk));
        return Cause::named("service", text);
    }
    // Where one thread does nearly all of it, that one is full when it never waits for work.
    if thread >= ONE_OF_ALL * cores && running + disk > CPU_SHARE_FULL {
        let text = format!(
            "{asks}: one thread there was never idle (on a core for {} of the time, else it waited for one or for a disk).",
            show_share(thread)
        );
        return Cause::named("service", text);
    }
    if thread > CPU_SHARE_CONTENDED || disk >= DISK_THREADS_SUSPECTED {
        let text = format!(
            "{asks}: {} cores were used there, at most {} of a core by one thread.",
            show_cores(cores),
            show_share(thread)
        );
        return Cause::suspected("service", text);
    }
    None
}

/// Its connections fell silent all at once, now and then, for as much of the time as answers had to be late.
fn stalls(seen: &Seen<'_>) -> Option<Cause> {
    let share_of = |rung: &Rung| rung.activity.get(STALLED_SHARE).map_or(0.0, |level| level.mean);
    let (share, before) = (share_of(seen.rung), seen.good.map_or(0.0, share_of));
    let stalls = seen.rung.stall_ns.as_ref()?;
    // A server that answers in rounds is silent between them, and was so under the load that held.
    let is_new = share >= STALLS_GROWN * before;
    if share < late_share_needed(seen) || share > STALLED_SHARE_MAX || stalls.count < STALLS_MIN || !is_new {
        return None;
    }
    let text = format!(
        "All connections fell silent at once {} times, for up to {} and {} of the hold together, while answers were owed: the \
         server stops as a whole, to collect garbage or in a call that everything waits for.",
        show_number(stalls.count as f64),
        show_ns(stalls.max.unwrap_or(0) as f64),
        show_share(share)
    );
    let waits = seen.max(ProcessMetric::WaitingShareMax).unwrap_or(0.0);
    // Threads that waited for a core stood still too.
    if waits > WAITING_SHARE_MAX { Cause::suspected("pause", text) } else { Cause::named("pause", text) }
}

/// CPU is left, no other service is involved, and requests wait: what they wait for is within the server.
fn lock(seen: &Seen<'_>) -> Option<Cause> {
    if !is_idle(seen) {
        return None;
    }
    let threads = |state| seen.threads(state).unwrap_or(0.0);
    let (futex, used) = (threads(ThreadState::Futex), used(seen));
    // In most seconds: after a pause there is a second with many.
    let unread = seen.level(Signal::Subject(ProcessMetric::UnreadConnections));
    let unread = unread
        .filter(|level| level.mean >= 0.5 * level.max)
        .map(|level| level.mean)
        .zip(seen.mean(ProcessMetric::Connections))
        .filter(|(unread, open)| *open > 0.0 && *unread >= UNREAD_SHARE * open);
    let sight = if let Some((unread, open)) = unread {
        let (unread, open) = (show_number(unread.round()), show_number(open.round()));
        format!("{used}, and {unread} of {open} connections had requests that it did not read")
    } else if !waits_for_all(seen) {
        // Idle pools of threads wait for each other too.
        return None;
    } else if futex >= FUTEX_THREADS && futex > threads(ThreadState::Transfer) {
        format!("{used}, and {} of its threads waited for another thread at any moment", show_threads(futex))
    } else {
        format!("{used}, and had read every request that waited")
    };
    let within = "a lock, a timer or a limit on what runs at once";
    if threads(ThreadState::Disk) >= DISK_THREADS_NONE {
        return Cause::suspected("lock", format!("{sight}: {within}, or a disk."));
    }
    match seen.max(ProcessMetric::OtherSockets) {
        Some(0.0) => Cause::named("lock", format!("{sight}: {within}.")),
        Some(count) => {
            let text = format!(
                "{sight}: {within}, or another service ({} sockets lead elsewhere).",
                show_number(count)
            );
            Cause::suspected("lock", text)
        }
        None => Cause::suspected("lock", format!("{sight}: {within}, or another service that it asks.")),
    }
}

/// What is too long is the emulated network rather than the server.
fn emulated(seen: &Seen<'_>) -> Option<Cause> {
    let network = seen.rung.network.as_ref()?.round_trip_ns.as_ref()?;
    let (_, digits) = seen.signal.rsplit_once(".p")?;
    let at = |times: &Summary| match digits {
        "50" => times.p50,
        "90" => times.p90,
        "99" => times.p99,
        _ => times.p999,
    };
    let (_, all) = seen.rung.latency()?;
    let (words, network_ns, all_ns) = match (at(network), at(all)) {
        (Some(network), Some(all)) => (format!("at p{digits}"), network as f64, all as f64),
        // Too few for the percentile, or most were never answered.
        _ => ("in the mean".to_owned(), network.mean?, all.mean?),
    };
    if network_ns < EMULATED_SHARE * all_ns {
        return None;
    }
    let text = format!(
        "That is the emulated network: its round trips took {} {words}, the answers with it {}. An objective has to allow for the \
         network.",
        show_ns(network_ns),
        show_ns(all_ns)
    );
    Cause::named("emulated-network", text)
}

/// Even the faster half of the answers takes several times as long as under the load that held: they queue.
fn waits_for_all(seen: &Seen<'_>) -> bool {
    // Of few answers the mean, which is seldom less.
    let half = |times: &Summary| times.p50.map(|ns| ns as f64).or(times.mean);
    let (Some((_, before)), Some((_, after))) = (seen.good.and_then(Rung::latency), seen.rung.latency())
    else {
        return false;
    };
    let never = after.count < seen.rung.sent / 2;
    half(before).is_some_and(|before| never || half(after).is_some_and(|after| after >= QUEUE_RATIO * before))
}

/// Neither the server nor its busiest thread lacks CPU, and the machine has some left.
fn is_idle(seen: &Seen<'_>) -> bool {
    let thread = seen.busiest_thread().map_or(0.0, |(_, cores)| cores);
    let machine = seen.of_machine(MachineMetric::BusyShare).unwrap_or(0.0);
    [seen.cpu_share, thread, machine].iter().all(|share| *share < CPU_SHARE_IDLE)
}

/// Ticks are hardly early or late, while CPU is left and no thread waits for it.
fn timers(seen: &Seen<'_>) -> Option<Cause> {
    let ticks = seen.rung.ticks.as_ref().filter(|_| seen.signal == "ticks.late_share")?;
    let (near, late) = (ticks.late_intervals.near, ticks.counts.late());
    let waits = seen.max(ProcessMetric::WaitingShareMax)?;
    if !is_idle(seen) || waits > WAITING_SHARE_MAX || (near as f64) < NEAR_SHARE * late as f64 {
        return None;
    }
    let text = format!(
        "{}, and {} of its {} late ticks were at most 2 ms off: its loop sleeps by timers of whole milliseconds, or shares its \
         thread with what takes a millisecond or two.",
        used(seen),
        show_number(near as f64),
        show_number(late as f64)
    );
    Cause::suspected("timer", text)
}

fn clients(seen: &Seen<'_>) -> Option<Cause> {
    let (unsent, open) =
        (seen.mean(ProcessMetric::UnsentConnections)?, seen.mean(ProcessMetric::Connections)?);
    if open <= 0.0 || unsent < UNSENT_SHARE * open {
        return None;
    }
    let text = format!(
        "{} of {} connections had bytes that their clients or the network had not taken: the network, or this generator, may \
         be what is slow.",
        show_number(unsent.round()),
        show_number(open.round())
    );
    Cause::suspected("network", text)
}

/// What server and generator use of the server's cores together.
fn together_share(seen: &Seen<'_>) -> f64 {
    if seen.cpu_cores > 0.0 {
        seen.cpu_share * (seen.cpu_cores + seen.rung.worker.process.cpu_cores) / seen.cpu_cores
    } else {
        0.0
    }
}

fn shared_cores(seen: &Seen<'_>) -> Option<Cause> {
    let is_shared = seen.climb.run.shared_cores && together_share(seen) > CPU_SHARE_CONTENDED;
    if !is_shared {
        return None;
    }
    let ours = show_cores(seen.rung.worker.process.cpu_cores);
    let text = format!(
        "{}, the generator {ours} of the same cores: on a machine of its own the server may hold more.",
        used(seen)
    );
    Cause::suspected("shared-cores", text)
}

/// CPU is left, and what the server waits for is not visible from outside.
fn idle(seen: &Seen<'_>) -> Option<Cause> {
    let unknown = format!("{}: CPU is not what it lacked; look for a lock, a queue or a wait.", used(seen));
    let response = seen.rung.response_ns.as_ref();
    let stalls = response
        // Of few answers only the slowest tenth can be told.
        .and_then(|times| times.p50.zip(times.p99.or(times.p90)))
        .is_some_and(|(half, slowest)| (half as f64) < STALLS_RATIO * slowest as f64);
    if stalls {
        let text = format!(
            "{unknown} Half of the answers came soon and the slowest took over {} times as long: it stops now and then, or \
             some requests take long.",
            (1.0 / STALLS_RATIO) as u32
        );
        return Cause::suspected("pause", text);
    }
    Some(Cause { name: "open", standing: Standing::Open, text: unknown })
}

/// `2.4`, or `1` where it is as good as whole.
fn show_threads(threads: f64) -> String {
    show_number((threads * 10.0).round() / 10.0)
}
