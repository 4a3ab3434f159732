//! A sample: a reading of a process, a thread or the machine, with every kind of reading declared once.
//!
//! The sampler writes these names, the store keeps their texts, and every reader matches the variant.
//! A text unknown to this version (a newer version wrote it) becomes `Reading::Other`: it is kept and exported
//! unchanged, and readers skip it.
//! Units: a name ends in its unit; a name without one is a count.

use std::collections::BTreeMap;

use strum::EnumMessage;

use crate::seconds::{SECOND_NS, second_at};

/// A reading of a process, of a thread or of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// when it was read
    pub at_ns: u64,
    /// what was read
    pub what: Reading,
    /// the reading
    pub value: f64,
}

impl Sample {
    /// The second that it covers: a reading at the end of a second is about that second.
    pub fn second(&self) -> u32 {
        second_at(self.at_ns.saturating_sub(SECOND_NS / 2))
    }
}

/// How readings of the same thing add up over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverTime {
    /// a total that grows: what was used between two readings is their difference
    Total,
    /// how things stand: over a longer time the largest counts
    Largest,
    /// what happened in the second before
    OfSecond,
}

macro_rules! readings {
    ($(#[$doc:meta])* $names:ident { $($(#[$about:meta])* $variant:ident $text:literal $over_time:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, EnumMessage)]
        pub enum $names { $($(#[$about])* $variant,)* }

        impl $names {
            /// All of them.
            pub const ALL: &[$names] = &[$($names::$variant),*];

            /// Its text in the store.
            pub fn name(self) -> &'static str {
                match self { $($names::$variant => $text,)* }
            }

            /// What it is, with its unit or range: the words above it.
            pub fn about(self) -> &'static str {
                self.get_documentation().unwrap_or_default()
            }

            /// How its readings add up.
            pub fn over_time(self) -> OverTime {
                match self { $($names::$variant => OverTime::$over_time,)* }
            }

            /// The one of that text.
            pub fn named(text: &str) -> Option<$names> {
                $names::ALL.iter().copied().find(|known| known.name() == text)
            }
        }
    };
}

readings! {
    /// What is read of a process.
    ProcessMetric {
        /// CPU time since it began, s
        CpuTime "cpu_s" Total,
        /// memory that it holds
        Rss "rss_bytes" Largest,
        /// threads
        Threads "threads" Largest,
        /// open descriptors
        Fds "fds" Largest,
        /// CPU of threads and processes that ended in the second, cores
        EndedThreads "ended_threads_cores" OfSecond,
        /// cores that it may use
        AllowedCores "allowed_cores" Largest,
        /// the busiest thread's time on a core, in [0, 1]
        CpuShareMax "cpu_share_max" OfSecond,
        /// the most that one thread was runnable and had no core, in [0, 1]
        WaitingShareMax "waiting_share_max" OfSecond,
        /// share of the periods of a CPU quota in which that halted it, in [0, 1]
        ThrottledShare "throttled_share" OfSecond,
        /// descriptors of the process that is nearest to its limit
        FdsOfOne "fds_of_one" Largest,
        /// descriptors that this process may have open
        FdLimit "fd_limit" Largest,
        /// pages that had to be read from a disk
        MajorFaults "major_faults" Total,
        /// how often its threads came to a core
        ContextSwitches "context_switches" OfSecond,
        /// share of the second in which its runtime stopped all of its threads to collect garbage, in [0, 1]
        GcShare "gc_share" OfSecond,
        /// memory that its runtime's garbage collector manages, in use
        HeapUsed "heap_used_bytes" Largest,
        /// connections that wait to be accepted
        AcceptQueue "accept_queue" Largest,
        /// the same as a share of the room in the fullest of its accept queues, in [0, 1]
        AcceptQueueShare "accept_queue_share" Largest,
        /// its open TCP connections, as the kernel lists them
        Connections "connections" Largest,
        /// of these, those with bytes that it has not read
        UnreadConnections "unread_connections" Largest,
        /// these bytes
        UnreadBytes "unread_bytes" Largest,
        /// of its connections, those with bytes that it sent and the other side has not taken
        UnsentConnections "unsent_connections" Largest,
        /// these bytes
        UnsentBytes "unsent_bytes" Largest,
        /// sockets of it that are not of its clients: connections to other services
        OtherSockets "other_sockets" Largest,
        /// games under way, as a server's log tells them
        Games "games" Largest,
        /// players who wait for a game, as a server's log tells them
        Waiting "waiting" Largest,
        /// open connections, as a server's log tells them
        Sockets "sockets" Largest,
    }
}

readings! {
    /// What is read of the machine.
    MachineMetric {
        /// share of all cores' time that the hypervisor gave to others, in [0, 1]
        StealShare "steal_share" OfSecond,
        /// the same of the core that lost most
        StealShareMax "steal_share_max" OfSecond,
        /// share of all cores' time that was used, in [0, 1]
        BusyShare "busy_share" OfSecond,
        /// thermal or power throttle events
        ThrottleEvents "throttle_events" OfSecond,
        /// periods in which a CPU quota halted this process
        QuotaThrottleEvents "quota_throttle_events" OfSecond,
        /// share of the last 10 s in which a task waited for a core, in [0, 1]
        CpuPressure "cpu_pressure_some_avg10" Largest,
        /// load average over a minute
        Load1 "load1" Largest,
        /// of the fastest core
        Frequency "frequency_hz" Largest,
        /// of the hottest zone, °C
        Temperature "temperature_c" Largest,
        /// CPU that programs other than this one and the subject used, cores
        OthersCores "others_cores" OfSecond,
        /// cores of the machine that these programs ran on, where that is not the load generator's
        OthersOfCores "others_of_cores" Largest,
        /// other runs of Stepladder that go on
        OtherRuns "other_runs" Largest,
        /// connections that the kernel refused because an accept queue was full
        ListenOverflows "listen_overflows" OfSecond,
        /// TCP segments that were sent again
        Retransmissions "retransmissions" OfSecond,
        /// UDP datagrams that were dropped because a receive buffer was full
        UdpDrops "udp_drops" OfSecond,
        /// share of the last 10 s in which a task waited for memory, in [0, 1]
        MemoryPressure "memory_pressure_some_avg10" Largest,
        /// share of the last 10 s in which a task waited for a disk, in [0, 1]
        IoPressure "io_pressure_some_avg10" Largest,
        /// by how much the realtime clock was set
        ClockStep "clock_step_ms" OfSecond,
    }
}

readings! {
    /// What is read of the services on this machine that the subject asks, all of them together.
    ServiceMetric {
        /// CPU that they used, cores
        Cores "cores" OfSecond,
        /// their busiest thread's time on a core, in [0, 1]
        CpuShareMax "cpu_share_max" OfSecond,
        /// their active threads that were on a core or waited for one, as of the subject's
        Running "threads_running" OfSecond,
        /// the same of those that waited for a disk
        Disk "threads_disk" OfSecond,
    }
}

readings! {
    /// What an active thread of the subject was doing when it was looked at: how many threads, in the mean over the looks
    /// of a second. A thread is active if it ran in the last seconds.
    ThreadState {
        /// on a core, or waiting for one
        Running "running" OfSecond,
        /// in a call that waits for events: epoll, poll, select, accept
        Events "events" OfSecond,
        /// in a futex: a lock, or work from another thread
        Futex "futex" OfSecond,
        /// waiting for a disk, or in a call that writes one through
        Disk "disk" OfSecond,
        /// in a call that sleeps for a time
        Sleep "sleep" OfSecond,
        /// in a call that reads or writes a socket or a pipe
        Transfer "transfer" OfSecond,
        /// in another call
        OtherCall "other_call" OfSecond,
    }
}

impl ProcessMetric {
    /// What a server's own log tells besides its ticks, under these names.
    pub const GAUGES: [ProcessMetric; 3] =
        [ProcessMetric::Games, ProcessMetric::Waiting, ProcessMetric::Sockets];
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// of the server's process tree
    Subject(ProcessMetric),
    /// of this process
    Worker(ProcessMetric),
    /// of the machine
    Machine(MachineMetric),
    /// CPU of another program of this name (as `plain_name` gives it), cores
    Program(String),
    /// CPU of the subject's busiest thread, which has this name (as `plain_name` gives it), cores
    Thread(String),
    /// CPU of the subject's threads of this name (as `by_kind_of_name` gives it), cores
    ThreadsNamed(String),
    /// active threads of the subject in this state
    Threads(ThreadState),
    /// of the services that the subject asks
    Services(ServiceMetric),
    /// what this version does not know
    Other {
        /// whom it is about
        who: String,
        /// what was read
        name: String,
    },
}

/// A reading of the subject or the machine that has a fixed name: what answers compare between two loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Signal {
    /// of the server's process tree
    Subject(ProcessMetric),
    /// of its active threads
    Threads(ThreadState),
    /// of the machine
    Machine(MachineMetric),
    /// of the services that it asks
    Services(ServiceMetric),
}

impl Signal {
    /// The one that a reading is of; `None` for this process, and for what has no fixed name.
    pub fn of(reading: &Reading) -> Option<Signal> {
        match reading {
            Reading::Subject(metric) => Some(Signal::Subject(*metric)),
            Reading::Threads(state) => Some(Signal::Threads(*state)),
            Reading::Machine(metric) => Some(Signal::Machine(*metric)),
            Reading::Services(metric) => Some(Signal::Services(*metric)),
            Reading::Worker(_)
            | Reading::Program(_)
            | Reading::Thread(_)
            | Reading::ThreadsNamed(_)
            | Reading::Other { .. } => None,
        }
    }

    /// `rss_bytes`, `threads.futex`, `machine.listen_overflows`.
    pub fn name(self) -> String {
        match self {
            Signal::Subject(metric) => metric.name().to_owned(),
            Signal::Threads(state) => format!("{THREADS}.{}", state.name()),
            Signal::Machine(metric) => format!("{MACHINE}.{}", metric.name()),
            Signal::Services(metric) => format!("{SERVICES}.{}", metric.name()),
        }
    }

    /// How its readings add up.
    pub fn over_time(self) -> OverTime {
        match self {
            Signal::Subject(metric) => metric.over_time(),
            Signal::Threads(state) => state.over_time(),
            Signal::Machine(metric) => metric.over_time(),
            Signal::Services(metric) => metric.over_time(),
        }
    }
}

const SUBJECT: &str = "subject";
const WORKER: &str = "worker";
const MACHINE: &str = "machine";
const PROGRAM: &str = "program";
const THREAD: &str = "thread";
const THREADS_NAMED: &str = "threads_named";
const THREADS: &str = "threads";
const SERVICES: &str = "services";

impl Reading {
    /// Its texts in the store: whom it is about, and what was read.
    pub fn texts(&self) -> (&str, &str) {
        match self {
            Reading::Subject(name) => (SUBJECT, name.name()),
            Reading::Worker(name) => (WORKER, name.name()),
            Reading::Machine(name) => (MACHINE, name.name()),
            Reading::Program(name) => (PROGRAM, name),
            Reading::Thread(name) => (THREAD, name),
            Reading::ThreadsNamed(name) => (THREADS_NAMED, name),
            Reading::Threads(state) => (THREADS, state.name()),
            Reading::Services(name) => (SERVICES, name.name()),
            Reading::Other { who, name } => (who, name),
        }
    }

    /// The reading of those texts.
    pub fn of_texts(who: &str, name: &str) -> Reading {
        let known = match who {
            SUBJECT => ProcessMetric::named(name).map(Reading::Subject),
            WORKER => ProcessMetric::named(name).map(Reading::Worker),
            MACHINE => MachineMetric::named(name).map(Reading::Machine),
            PROGRAM => Some(Reading::Program(name.to_owned())),
            THREAD => Some(Reading::Thread(name.to_owned())),
            THREADS_NAMED => Some(Reading::ThreadsNamed(name.to_owned())),
            THREADS => ThreadState::named(name).map(Reading::Threads),
            SERVICES => ServiceMetric::named(name).map(Reading::Services),
            _ => None,
        };
        known.unwrap_or_else(|| Reading::Other { who: who.to_owned(), name: name.to_owned() })
    }
}

/// The longest name of a program or thread that is kept, in characters.
const NAME_CHARS_MAX: usize = 32;

/// The name of a program or thread as it is stored and shown: at most `NAME_CHARS_MAX` characters, without terminal
/// control or text direction characters; `?` when nothing is left. It is text, never markup.
pub fn plain_name(name: &str) -> String {
    plain_text(name, NAME_CHARS_MAX)
}

/// The same for any text, cut to `chars_max` characters.
pub fn plain_text(text: &str, chars_max: usize) -> String {
    let is_mark =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let plain: String = text.chars().filter(|&c| !c.is_control() && !is_mark(c)).take(chars_max).collect();
    match plain.trim() {
        "" => "?".to_owned(),
        plain => plain.to_owned(),
    }
}

/// Sums by the kind of a name: threads whose names differ in numbers only are of one kind, `worker-1` and `worker-2` are `worker-*`. A kind of
/// which only one name is there keeps it: `python3`.
pub fn by_kind_of_name<'a>(named: impl Iterator<Item = (&'a str, f64)>) -> Vec<(String, f64)> {
    let mut kinds: BTreeMap<String, (String, f64)> = BTreeMap::new();
    for (name, value) in named {
        let kind = kind_of_name(name);
        let (shown, sum) = kinds.entry(kind.clone()).or_insert_with(|| (name.to_owned(), 0.0));
        *sum += value;
        if shown != name {
            *shown = kind;
        }
    }
    kinds.into_values().collect()
}

/// What names of one kind have in common: `*` in place of each number.
pub(crate) fn kind_of_name(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter.is_ascii_digit() {
            true if text.ends_with('*') => {}
            true => text.push('*'),
            false => text.push(letter),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_whose_names_differ_in_numbers_only_are_summed() {
        let named = [("worker-1", 0.5), ("python3", 0.1), ("worker-12", 0.25), ("pool-1-thread-7", 1.0)];
        let sums = by_kind_of_name(named.into_iter());
        let expected = [("pool-1-thread-7", 1.0), ("python3", 0.1), ("worker-*", 0.75)];
        assert_eq!(sums, expected.map(|(name, sum)| (name.to_owned(), sum)));
        // What was summed before is summed on.
        let more = by_kind_of_name([("worker-*", 1.0), ("worker-3", 2.0)].into_iter());
        assert_eq!(more, [("worker-*".to_owned(), 3.0)]);
    }

    #[test]
    fn a_programs_name_is_kept_as_short_plain_text() {
        let check = |name: &str, expected: &str| assert_eq!(plain_name(name), expected);
        check("sh", "sh");
        check("a\u{1b}[31mb\n\u{7}\u{202e}c", "a[31mbc");
        check("<b>&amp;", "<b>&amp;");
        check(&"ß".repeat(40), &"ß".repeat(32));
        check("\0\r ", "?");
    }

    #[test]
    fn every_reading_comes_back_from_its_texts_and_an_unknown_one_keeps_them() {
        let processes =
            ProcessMetric::ALL.iter().flat_map(|&name| [Reading::Subject(name), Reading::Worker(name)]);
        let machines = MachineMetric::ALL.iter().map(|&name| Reading::Machine(name));
        let states = ThreadState::ALL.iter().map(|&state| Reading::Threads(state));
        let services = ServiceMetric::ALL.iter().map(|&name| Reading::Services(name));
        for reading in processes.chain(machines).chain(states).chain(services) {
            let (who, name) = reading.texts();
            assert_eq!(Reading::of_texts(who, name), reading);
        }
        for (who, name) in [("subject", "gpu_share"), ("machine", "cpu_s"), ("gpu", "busy_share")] {
            let other = Reading::of_texts(who, name);
            assert_eq!(other, Reading::Other { who: who.to_owned(), name: name.to_owned() });
            assert_eq!(other.texts(), (who, name));
        }
    }
}
