use measure::trial::kind;
use measure::{LateIntervals, ServiceMetric, Summary, TickCounts};

use super::*;
use crate::answers::activity::STALLED_SHARE;
use crate::answers::{Asked, answers, rung};
use crate::contract::{NamedThreadsFigures, RunFacts, ThreadFigures, TickFigures};
use crate::judge::{Criteria, Verdict};
use crate::network::NetworkFigures;
use crate::testing::{TrialBuilder, terms};

/// A load of 100 clients that held at 2 ms, and one of 200 that failed at 80 ms, with 0.3 of 2 cores used.
fn two_rungs(edit: impl Fn(&mut Rung)) -> Climb {
    let held = |load: f64, response_ns: u64| {
        let builder = TrialBuilder { response_ns, ..TrialBuilder::asking(load) };
        let (trial, judgement) = builder.judged(&terms("response.p99 < 50ms"));
        let mut rung = rung(&trial, &judgement);
        let subject = rung.subject.as_mut().unwrap();
        (subject.process.cpu_cores, subject.process.cpu_share) = (0.3, Some(0.15));
        subject.busiest_thread = Some(ThreadFigures { name: "main".to_owned(), cpu_cores: 0.3 });
        rung
    };
    let (good, mut bad) = (held(100.0, 2_000_000), held(200.0, 80_000_000));
    assert_eq!((good.verdict, bad.verdict), (Verdict::Pass, Verdict::Fail));
    edit(&mut bad);
    answers(&RunFacts::default(), None, vec![good, bad], Asked::default())
}

fn set(rung: &mut Rung, signals: &[(&str, f64)]) {
    for &(name, value) in signals {
        let known: Vec<String> = all().map(Signal::name).collect();
        assert!(known.iter().any(|other| other == name), "{name} of {known:?}");
        let level = SignalLevel { mean: value, max: value, half_at_s: Some(0) };
        rung.activity.insert(name.to_owned(), level);
    }
}

fn all() -> impl Iterator<Item = Signal> {
    let processes = ProcessMetric::ALL.iter().map(|metric| Signal::Subject(*metric));
    let machines = MachineMetric::ALL.iter().map(|metric| Signal::Machine(*metric));
    let services = ServiceMetric::ALL.iter().map(|metric| Signal::Services(*metric));
    processes
        .chain(ThreadState::ALL.iter().map(|state| Signal::Threads(*state)))
        .chain(machines)
        .chain(services)
}

fn cause_of(climb: &Climb) -> (String, String) {
    let answer = climb.conclusions.iter().find(|conclusion| conclusion.id == "why_not_more").unwrap();
    let cause = &answer.evidence["cause"];
    let text = |key: &str| cause[key].as_str().unwrap_or_default().to_owned();
    let (words, is_suspected) = (text("text"), text("standing") == "suspected");
    let told = if is_suspected { words.get(1..).unwrap_or_default() } else { &words };
    assert!(answer.text.ends_with(told), "{} ends with {told}", answer.text);
    assert_eq!(answer.text.contains("Suspected: "), is_suspected, "{}", answer.text);
    (text("name"), text("standing"))
}

/// Each row: what is read, and the cause with its standing. Beside every named cause stands a reading that must not name it.
#[test]
fn what_is_read_names_a_cause_only_where_it_is_sufficient() {
    for (read, name, standing) in [
        ("fds_of_one 1024, fd_limit 1024", "descriptor-limit", "named"),
        ("fds_of_one 1023, fd_limit 1024", "descriptor-limit", "named"),
        ("fds_of_one 900, fd_limit 1024", "lock", "suspected"),
        ("fds_of_one 3, fd_limit 0", "lock", "suspected"),
        ("machine.listen_overflows 3, accept_queue_share 1", "accept-queue", "named"),
        ("machine.listen_overflows 3, accept_queue_share 0.99", "accept-queue", "named"),
        ("machine.listen_overflows 0, accept_queue_share 0.99", "lock", "suspected"),
        ("machine.listen_overflows 3, accept_queue_share 0.4", "accept-queue", "suspected"),
        ("machine.listen_overflows 0, accept_queue_share 0.4", "lock", "suspected"),
        ("throttled_share 0.4", "throttled", "named"),
        ("throttled_share 0.05", "throttled", "suspected"),
        ("throttled_share 0", "lock", "suspected"),
        // A p99 needs a hundredth of the answers to be late.
        ("gc_share 0.12", "gc", "named"),
        ("gc_share 0.007", "gc", "suspected"),
        ("gc_share 0.001", "lock", "suspected"),
        ("threads.disk 0.95", "disk", "named"),
        ("threads.disk 0.4", "disk", "suspected"),
        ("threads.disk 0.4, threads.running 0.6", "disk", "named"),
        ("threads.disk 0.4, threads.running 0.3", "disk", "suspected"),
        ("threads.disk 0.4, threads.running 0.6, machine.busy_share 0.97", "disk", "suspected"),
        ("threads.disk 0.12, other_sockets 0", "lock", "suspected"),
        ("services.cores 1, services.cpu_share_max 0.97", "service", "named"),
        ("services.cores 0.6, services.cpu_share_max 0.6", "service", "suspected"),
        (
            "services.cores 0.7, services.cpu_share_max 0.64, services.threads_running 0.95, services.threads_disk 0.05",
            "service",
            "named",
        ),
        // Several threads that work side by side are not full together.
        (
            "services.cores 1.2, services.cpu_share_max 0.6, services.threads_running 1.2",
            "service",
            "suspected",
        ),
        ("services.cores 0.1, services.cpu_share_max 0.1, services.threads_disk 0.9", "service", "named"),
        (
            "services.cores 0.4, services.cpu_share_max 0.4, services.threads_disk 0.4, services.threads_running 0.45",
            "service",
            "named",
        ),
        ("services.cores 0.1, services.cpu_share_max 0.1, services.threads_disk 0", "lock", "suspected"),
        ("threads.disk 0.04, other_sockets 0", "lock", "named"),
        ("threads.disk 0.087, threads.futex 7.1, other_sockets 0", "lock", "suspected"),
        ("threads.futex 12, other_sockets 0", "lock", "named"),
        ("threads.futex 12, other_sockets 4", "lock", "suspected"),
        ("threads.futex 12", "lock", "suspected"),
        ("unread_connections 150, connections 200, other_sockets 0", "lock", "named"),
        ("other_sockets 0", "lock", "named"),
        // The cores are full, but not of the server.
        ("machine.busy_share 0.97, other_sockets 0", "open", "open"),
        ("unsent_connections 90, connections 200, machine.busy_share 0.97", "network", "suspected"),
    ] {
        let signals: Vec<(&str, f64)> = read.split(", ").map(signal).collect();
        let found = cause_of(&two_rungs(|rung| set(rung, &signals)));
        assert_eq!(found, (name.to_owned(), standing.to_owned()), "{read}");
    }
}

/// `threads.disk 0.4`
fn signal(text: &str) -> (&str, f64) {
    let (name, value) = text.split_once(' ').expect("a name and a value");
    (name, value.parse().expect("a number"))
}

#[test]
fn an_emulated_network_that_takes_most_of_a_latency_is_named_and_one_that_takes_little_is_not() {
    let with = |network_ns: u64| {
        cause_of(&two_rungs(|rung| {
            let times = rung.response_ns.clone().map(|times| Summary { p99: Some(network_ns), ..times });
            let figures = NetworkFigures { profiles: Vec::new(), round_trip_ns: times, late_ns: None };
            rung.network = Some(figures);
            set(rung, &[("other_sockets", 0.0)]);
        }))
    };
    assert_eq!(with(78_000_000), ("emulated-network".to_owned(), "named".to_owned()));
    assert_eq!(with(20_000_000).0, "lock");
}

#[test]
fn late_ticks_that_are_near_point_to_timers_and_those_that_catch_up_are_told() {
    let with = |near: u64, caught_up: u64, far: u64, waits: f64, thread: f64| {
        let climb = two_rungs(|rung| {
            rung.signal = Some("ticks.late_share".to_owned());
            rung.response_ns = None;
            rung.subject.as_mut().unwrap().busiest_thread.as_mut().unwrap().cpu_cores = thread;
            let over = near + caught_up + far;
            rung.ticks = Some(TickFigures {
                source: "log".to_owned(),
                period_ns: 16_666_667,
                counts: TickCounts { due: 1_000, on_time: 1_000 - over, over, ..TickCounts::default() },
                late_share: Some(over as f64 / 1e3),
                over_budget_share: None,
                isr: None,
                interval_ns: None,
                late_intervals: LateIntervals { near, caught_up, far },
                busy_ns: None,
            });
            set(rung, &[("waiting_share_max", waits), ("other_sockets", 0.0)]);
        });
        let text = &climb.conclusions.iter().find(|one| one.id == "why_not_more").unwrap().text;
        (
            cause_of(&climb).0,
            text.split_once("Its loop catches up: ").map_or("", |(_, told)| &told[..32]).to_owned(),
        )
    };
    let timers = ("timer".to_owned(), String::new());
    assert_eq!(with(290, 0, 10, 0.01, 0.3), timers);
    assert_eq!(with(230, 0, 70, 0.01, 0.3).0, "open", "most are, others are further off");
    assert_eq!(with(290, 0, 10, 0.4, 0.3).0, "open", "a thread waited for a core");
    assert_eq!(with(290, 0, 10, 0.01, 0.8).0, "open", "its thread was busy");
    let stalled = ("open".to_owned(), "200 of 300 late ticks came within".to_owned()[..32].to_owned());
    assert_eq!(with(80, 200, 20, 0.01, 0.3), stalled);
    assert_eq!(with(270, 20, 10, 0.01, 0.3), timers, "a few of them");
}

#[test]
fn a_full_processor_tells_the_names_whose_threads_used_it_where_there_are_several() {
    let told = |threads: &[(&str, f64)], ended: f64| {
        let climb = two_rungs(|rung| {
            let subject = rung.subject.as_mut().unwrap();
            (subject.process.cpu_cores, subject.process.cpu_share) = (1.9, Some(0.95));
            let figures = |(name, cores): &(&str, f64)| NamedThreadsFigures {
                name: (*name).to_owned(),
                cpu_cores: *cores,
                cpu_cores_max: 2.0,
            };
            subject.threads = threads.iter().map(figures).collect();
            set(rung, &[("ended_threads_cores", ended)]);
        });
        let answer = climb.conclusions.iter().find(|conclusion| conclusion.id == "why_not_more").unwrap();
        answer.evidence["cause"]["text"].as_str().unwrap().split_once("CPU left.").unwrap().1.to_owned()
    };
    assert_eq!(
        told(&[("pool-*", 1.1), ("GC Thread#*", 0.5), ("main", 0.1)], 0.3),
        " By threads: pool-* 1.10, GC Thread#* 0.50, those that ended 0.30 cores."
    );
    assert_eq!(told(&[("node", 1.8), ("V8Worker", 0.1)], 0.0), "", "one has it all");
    assert_eq!(told(&[], 0.0), "");
}

#[test]
fn a_full_processor_or_thread_is_named_and_several_threads_that_share_one_core_are_one() {
    let with = |cores: f64, share: f64, thread: f64, futex: f64| {
        cause_of(&two_rungs(|rung| {
            let subject = rung.subject.as_mut().unwrap();
            (subject.process.cpu_cores, subject.process.cpu_share) = (cores, Some(share));
            subject.busiest_thread.as_mut().unwrap().cpu_cores = thread;
            set(rung, &[("threads.futex", futex), ("machine.busy_share", 0.9)]);
        }))
    };
    let named = |name: &str| (name.to_owned(), "named".to_owned());
    assert_eq!(with(1.9, 0.95, 0.95, 0.0), named("cpu"));
    assert_eq!(with(0.98, 0.49, 0.97, 0.0), named("thread"));
    assert_eq!(with(1.0, 0.5, 0.13, 7.0), named("thread"));
    assert_eq!(with(1.0, 0.5, 0.5, 0.2).0, "open", "two threads that work side by side");
    let crowded = |share: f64, running: f64, generator: f64| {
        cause_of(&two_rungs(|rung| {
            rung.worker.process.cpu_cores = generator;
            let subject = rung.subject.as_mut().unwrap();
            (subject.process.cpu_cores, subject.process.cpu_share) = (2.0 * share, Some(share));
            set(rung, &[("threads.running", running), ("allowed_cores", 2.0), ("machine.busy_share", 0.95)]);
        }))
    };
    assert_eq!(crowded(0.89, 4.5, 0.3), named("cpu"));
    assert_eq!(crowded(0.89, 1.95, 0.08), named("cpu"), "a runtime of two threads");
    assert_ne!(crowded(0.89, 1.8, 0.08).0, "cpu", "no thread waits for a core");
    assert_ne!(crowded(0.89, 2.1, 0.3).0, "cpu", "the generator takes some of the cores");
    assert_ne!(crowded(0.82, 1.95, 0.08).0, "cpu", "cores were left");
    assert_ne!(crowded(0.7, 4.5, 0.08).0, "cpu", "other programs use the cores");
    assert_eq!(with(0.6, 0.3, 0.3, 7.0).0, "open", "threads that wait, and a machine without time");
}

#[test]
fn a_limit_on_connections_is_named_where_their_number_never_moves_below_what_was_asked() {
    let with = |mean: f64, max: f64, signal: &str| {
        cause_of(&two_rungs(|rung| {
            rung.signal = Some(signal.to_owned());
            set(rung, &[("connections", max)]);
            rung.activity.get_mut("connections").unwrap().mean = mean;
        }))
    };
    assert_eq!(with(40.0, 40.0, "errors").0, "connection-limit");
    assert_ne!(with(20.0, 40.0, "errors").0, "connection-limit", "their number changes");
    assert_ne!(with(200.0, 200.0, "errors").0, "connection-limit", "all are open");
    assert_ne!(with(40.0, 40.0, "response.p99").0, "connection-limit", "another failure");
}

/// An arena of one thread beside 6,000 clients on two cores: it accepts too seldom, since it never has the time.
#[test]
fn a_thread_that_is_never_idle_is_named_rather_than_the_queue_behind_it() {
    let with = |waits: f64, running: f64, queue: f64| {
        cause_of(&two_rungs(|rung| {
            rung.signal = Some("connections.open_min".to_owned());
            rung.subject.as_mut().unwrap().busiest_thread.as_mut().unwrap().cpu_cores = 0.61;
            let queues = [("accept_queue_share", queue), ("machine.listen_overflows", 1e3 * queue)];
            let threads = [("waiting_share_max", waits), ("threads.running", running), ("connections", 40.0)];
            set(rung, &[&queues[..], &threads].concat());
        }))
    };
    let named = |name: &str| (name.to_owned(), "named".to_owned());
    assert_eq!(with(0.39, 1.0, 0.998), named("thread"));
    assert_eq!(with(0.39, 1.0, 0.0), named("thread"), "nor a limit on its connections");
    assert_eq!(with(0.1, 0.7, 0.998), named("accept-queue"), "it had time");
    assert_eq!(with(0.39, 2.0, 0.998), named("accept-queue"), "two threads, each of which had time");
    assert_eq!(with(0.1, 0.7, 0.0), named("connection-limit"));
}

#[test]
fn a_server_that_is_gone_or_not_watched_has_no_cause_besides() {
    let none = (String::new(), String::new());
    assert_eq!(cause_of(&two_rungs(|rung| rung.subject = None)), none);
    assert_eq!(cause_of(&two_rungs(|rung| rung.signal = Some("server exited".to_owned()))), none);
}

#[test]
fn half_of_the_answers_in_time_is_no_queue() {
    let cause = cause_of(&two_rungs(|rung| {
        let times = rung.response_ns.as_mut().unwrap();
        (times.p50, times.p99) = (Some(2_000_000), Some(280_000_000));
        // A pool of idle threads.
        set(rung, &[("other_sockets", 0.0), ("threads.futex", 12.0)]);
    }));
    assert_eq!(cause, ("pause".to_owned(), "suspected".to_owned()));
    // One reading of six came in a pause.
    let cause = cause_of(&two_rungs(|rung| {
        let times = rung.response_ns.as_mut().unwrap();
        (times.p50, times.p90, times.p99) = (Some(2_000_000), Some(90_000_000), None);
        set(rung, &[("other_sockets", 0.0), ("connections", 64.0), ("unread_connections", 10.0)]);
        rung.activity.get_mut("unread_connections").unwrap().max = 60.0;
    }));
    assert_eq!(cause, ("pause".to_owned(), "suspected".to_owned()));
}

#[test]
fn few_answers_show_a_queue_by_their_mean_and_none_at_all_by_their_absence() {
    let with = |after_ms: f64, count: u64| {
        let mut climb = two_rungs(|rung| {
            set(rung, &[("other_sockets", 0.0)]);
            let times = rung.response_ns.as_mut().unwrap();
            (times.p50, times.mean, times.count) = (None, Some(after_ms * 1e6), count);
        });
        climb.rungs[0].response_ns.as_mut().unwrap().p50 = None;
        let found = cause(&climb, &climb.rungs[1]).unwrap();
        (found.name, found.standing)
    };
    assert_eq!(with(80.0, 1_000_000), ("lock", Standing::Named));
    assert_ne!(with(3.0, 1_000_000).0, "lock", "no queue");
    assert_eq!(with(3.0, 2), ("lock", Standing::Named), "the others were never answered");
}

#[test]
fn silences_of_all_connections_at_once_are_a_pause_where_they_are_many_and_grew_with_the_load() {
    let with = |share: f64, count: u64, before: f64, waits: f64| {
        let mut climb = two_rungs(|rung| {
            set(rung, &[("other_sockets", 0.0), ("waiting_share_max", waits)]);
            let level = SignalLevel { mean: share, max: share, half_at_s: Some(0) };
            rung.activity.insert(STALLED_SHARE.to_owned(), level);
            rung.stall_ns =
                Some(Summary { count, max: Some(302_000_000), ..rung.response_ns.clone().unwrap() });
        });
        let level = SignalLevel { mean: before, max: before, half_at_s: None };
        climb.rungs[0].activity.insert(STALLED_SHARE.to_owned(), level);
        let found = cause(&climb, &climb.rungs[1]).unwrap();
        (found.name, found.standing)
    };
    // A p99 needs a hundredth of the time.
    assert_eq!(with(0.15, 6, 0.0, 0.0), ("pause", Standing::Named));
    assert_eq!(with(0.15, 6, 0.0, 0.4), ("lock", Standing::Named), "its threads waited for a core");
    assert_eq!(with(0.15, 2, 0.0, 0.0).0, "lock", "two are no habit");
    assert_eq!(with(0.005, 6, 0.0, 0.0).0, "lock", "too short for the late answers");
    assert_eq!(with(0.15, 6, 0.1, 0.0).0, "lock", "it was so under the load that held");
    assert_eq!(with(0.9, 60, 0.0, 0.0).0, "lock", "it answers in rounds");
}

#[test]
fn what_changed_most_stands_first() {
    let with = |signals: &[(&str, f64)]| {
        let mut rung = two_rungs(|_| {}).rungs.remove(1);
        rung.activity.clear();
        set(&mut rung, signals);
        rung
    };
    let good = with(&[("rss_bytes", 1e6), ("threads.futex", 0.0), ("connections", 100.0), ("fds", 120.0)]);
    let bad =
        with(&[("rss_bytes", 1.05e6), ("threads.futex", 3.0), ("connections", 200.0), ("gc_share", 0.1)]);
    let moved = moved(&good, &bad);
    let names: Vec<&str> = moved.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["threads.futex", "connections"]);
    assert_eq!((&moved[1]["held"], &moved[1]["failed"]), (&json!(100.0), &json!(200.0)));
}

/// Readings of a trial reach the rung: levels as they stand, totals by their growth.
#[test]
fn the_readings_of_the_hold_come_to_the_rung_by_their_names() {
    let builder = TrialBuilder::asking(100.0).sampled(|second| {
        vec![
            (measure::Reading::Threads(ThreadState::Futex), f64::from(second % 2) * 4.0),
            (measure::Reading::Subject(ProcessMetric::MajorFaults), f64::from(second) * 10.0),
        ]
    });
    let (trial, judgement) = builder.event(70, kind::INTERRUPTED, "").judged(&Criteria::default());
    let rung = rung(&trial, &judgement);
    let futex = &rung.activity["threads.futex"];
    assert_eq!((futex.mean, futex.max), (2.0, 4.0));
    let faults = &rung.activity["major_faults"];
    assert!((faults.mean - 10.0).abs() < 1e-9 && faults.max <= 20.0, "{faults:?}");
}
