//! A cluster of three: routing, one of them killed, a new one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use hazelcast::Config;
use hazelcast::reactor::{Outcome, Reactor};
use hazelcast::wire::{Data, Key, MapName, Request, Uuid};

use crate::member::{Member, free_ports, jar};

const KEYS: u64 = 500;

fn until(reactor: &mut Reactor<u64>, what: &str, is_reached: impl Fn(&Reactor<u64>) -> bool) {
    let started = Instant::now();
    while !is_reached(reactor) {
        assert!(started.elapsed() < Duration::from_secs(120), "{what}: {:?}", reactor.last_down());
        reactor
            .poll(Some(Duration::from_millis(100)), |n, outcome| panic!("{n} {outcome:?}"))
            .expect("a poll");
    }
}

fn owners(reactor: &Reactor<u64>) -> BTreeSet<Option<Uuid>> {
    reactor.partition_table().owners().iter().copied().collect()
}

/// Partitions are balanced over so many members.
fn is_balanced(reactor: &Reactor<u64>, members: usize) -> bool {
    let owners = owners(reactor);
    reactor.connected() == members && owners.len() == members && !owners.contains(&None)
}

#[test]
fn operations_go_to_the_owners_and_survive_the_loss_of_one_member() {
    let Some(jar) = jar("a cluster of three members") else { return };
    let ports: [u16; 4] = free_ports();
    let ports_of = |first: usize| -> Vec<u16> { (0..4).map(|at| ports[(first + at) % 4]).collect() };
    let mut members: Vec<Member> = vec![Member::start(&jar, "dev", &ports_of(0))];
    let others = [1, 2].map(|at| Member::launch(&jar, "dev", &ports_of(at)));
    members.extend(others.map(|starting| starting.wait()));

    let config = Config {
        // Only one is known; it tells of the others.
        reconnect_pause: (Duration::from_millis(20), Duration::from_millis(500)),
        invocation_timeout: Duration::from_secs(60),
        ..Config::at(members[0].address())
    };
    // Members may be named, and connected to only where the caller lets them.
    let alone = Config { may_connect: |_| false, ..config.clone() };
    let mut alone: Reactor<u64> = Reactor::connect(alone).unwrap();
    until(&mut alone, "the names of all three", |reactor| reactor.members().len() == 3);
    for _ in 0..20 {
        alone.poll(Some(Duration::from_millis(25)), |_, _| {}).unwrap();
        assert_eq!(alone.connected(), 1, "the others were named, and may not be connected to");
    }
    drop(alone);
    let mut reactor: Reactor<u64> = Reactor::connect(config).unwrap();
    until(&mut reactor, "three connections", |reactor| reactor.connected() == 3);
    let map: MapName = "three".into();
    let keys: Vec<Key> = (0..KEYS).map(|n| Key::of(&(n as i64))).collect();
    let set = |n: u64| Request::Set {
        map: map.clone(),
        key: keys[n as usize].clone(),
        value: Data::of(&(n as i64)),
        ttl_ms: -1,
    };
    let get = |n: u64| Request::Get { map: map.clone(), key: keys[n as usize].clone() };
    for n in 0..KEYS {
        reactor.submit(set(n), n);
    }
    while reactor.in_flight() > 0 {
        reactor
            .poll(None, |n, outcome| assert!(matches!(outcome, Outcome::Ok(_)), "{n}: {outcome:?}"))
            .unwrap();
    }
    until(&mut reactor, "partitions on all three", |reactor| is_balanced(reactor, 3));

    // Every key's owner is connected, so each request goes straight there: no connection gets them all.
    let owner = |reactor: &Reactor<u64>, n: u64| {
        let table = reactor.partition_table();
        table.owner(keys[n as usize].partition(table.partition_count()))
    };
    let mut per_owner: BTreeMap<Option<Uuid>, u64> = BTreeMap::new();
    for n in 0..KEYS {
        *per_owner.entry(owner(&reactor, n)).or_default() += 1;
        reactor.submit(get(n), n);
    }
    let mut sent: Vec<u64> = reactor.in_flight_by_member().map(|(_, count)| count as u64).collect();
    let mut expected: Vec<u64> = per_owner.values().copied().collect();
    sent.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sent, expected, "operations in flight on each connection, and keys of each owner");
    assert_eq!(expected.len(), 3);
    while reactor.in_flight() > 0 {
        reactor
            .poll(None, |n, outcome| {
                let Outcome::Ok(answer) = outcome else { panic!("{n}: {outcome:?}") };
                assert_eq!(answer.read::<i64>().unwrap(), Some(n as i64));
            })
            .unwrap();
    }

    // The third is stopped, so that what it is asked now is surely under way, and then dies.
    let (dying, port) = (2, members[2].port);
    let uuid = reactor.members().iter().find(|member| member.port == port).map(|member| member.uuid);
    members[dying].suspend();
    let (mut to_dying, mut ended) = (0, BTreeMap::new());
    for n in 0..KEYS {
        // Writes for even numbers, reads for odd ones.
        to_dying += u64::from(n % 2 == 0 && owner(&reactor, n) == uuid);
        reactor.submit(if n % 2 == 0 { set(n) } else { get(n) }, n);
    }
    reactor
        .poll(Some(Duration::from_millis(200)), |n, outcome| {
            ended.insert(n, name(&outcome));
        })
        .unwrap();
    members[dying].kill();
    let started = Instant::now();
    while reactor.in_flight() > 0 {
        assert!(started.elapsed() < Duration::from_secs(90), "{} are left", reactor.in_flight());
        reactor
            .poll(Some(Duration::from_millis(100)), |n, outcome| {
                assert!(ended.insert(n, name(&outcome)).is_none(), "{n} ended twice");
            })
            .unwrap();
    }
    assert_eq!(ended.len() as u64, KEYS);
    let unknown: Vec<u64> = ended.iter().filter(|(_, name)| **name == "unknown").map(|(n, _)| *n).collect();
    assert_eq!(ended.values().filter(|name| **name == "failed").count(), 0);
    assert!(unknown.iter().all(|n| n % 2 == 0), "reads are tried again elsewhere");
    // A write to a survivor waits for its backup, which the dying member may have held; so there may be more, not fewer.
    assert!(unknown.len() as u64 >= to_dying && to_dying > 0, "{} of {to_dying}", unknown.len());

    // From the two that are left everything can be read, and everything is written again.
    until(&mut reactor, "partitions on the two left", |reactor| is_balanced(reactor, 2));
    assert!(!owners(&reactor).contains(&uuid));
    let version = reactor.partition_table().version();
    for n in 0..KEYS {
        reactor.submit(set(n), n);
        reactor.submit(get(n), n);
    }
    while reactor.in_flight() > 0 {
        reactor
            .poll(None, |n, outcome| assert!(matches!(outcome, Outcome::Ok(_)), "{n}: {outcome:?}"))
            .unwrap();
    }

    // A new member joins while operations run: partitions move to it, and nothing fails or is unknown.
    let joining = Member::launch(&jar, "dev", &ports_of(3));
    let mut joining = Some(joining);
    let (started, mut next, mut ok) = (Instant::now(), 0, 0u64);
    let mut joined = None;
    while !is_balanced(&reactor, 3) {
        assert!(started.elapsed() < Duration::from_secs(120), "the new member gets no partitions");
        if let Some(starting) = joining.take() {
            joined = Some(std::thread::spawn(move || {
                // Kept alive by the thread that started it: this one only waits for its log.
                starting.wait()
            }));
        }
        while reactor.in_flight() < 50 {
            next = (next + 1) % KEYS;
            reactor.submit(if next % 2 == 0 { set(next) } else { get(next) }, next);
        }
        reactor
            .poll(Some(Duration::from_millis(20)), |n, outcome| {
                assert!(matches!(outcome, Outcome::Ok(_)), "{n}: {outcome:?}");
                ok += 1;
            })
            .unwrap();
    }
    while reactor.in_flight() > 0 {
        reactor
            .poll(None, |n, outcome| assert!(matches!(outcome, Outcome::Ok(_)), "{n}: {outcome:?}"))
            .unwrap();
    }
    assert!(ok > 0);
    assert_ne!(reactor.partition_table().version(), version, "the table has changed");
    members.extend(joined.map(|thread| thread.join().expect("the new member started")));
}

fn name(outcome: &Outcome<'_>) -> &'static str {
    match outcome {
        Outcome::Ok(_) => "ok",
        Outcome::Failed(_) => "failed",
        Outcome::Unknown(_) => "unknown",
    }
}
