//! A member that dies, comes back, or hangs.

use std::time::{Duration, Instant};

use hazelcast::reactor::{Outcome, Reactor};
use hazelcast::wire::{Data, Key, MapName, Request};
use hazelcast::{Client, Config, Failure, IMap};

use crate::member::{Member, free_ports, jar};

fn set(map: &MapName, key: &Key, n: u64) -> Request {
    Request::Set { map: map.clone(), key: key.clone(), value: Data::of(&(n as i64)), ttl_ms: -1 }
}

/// What was sent to a member that is killed is unknown, never ok; what comes after waits for the member and succeeds when
/// it is back.
#[test]
fn operations_on_a_killed_member_are_unknown_and_go_on_when_it_is_back() {
    let Some(jar) = jar("a killed and restarted member") else { return };
    let ports: [u16; 1] = free_ports();
    let mut member = Member::start(&jar, "dev", &ports);
    let config = Config {
        reconnect_pause: (Duration::from_millis(20), Duration::from_millis(200)),
        ..Config::at(member.address())
    };
    let mut reactor: Reactor<u64> = Reactor::connect(config).unwrap();
    let (map, key): (MapName, Key) = ("faults".into(), Key::of("k"));
    for n in 0..100 {
        reactor.submit(set(&map, &key, n), n);
    }
    while reactor.in_flight() > 0 {
        reactor.poll(None, |_, outcome| assert!(matches!(outcome, Outcome::Ok(_)), "{outcome:?}")).unwrap();
    }

    // Suspended first, so that what is sent now is certainly not answered.
    member.suspend();
    for n in 0..50 {
        reactor.submit(set(&map, &key, n), n);
    }
    reactor.submit(Request::Get { map: map.clone(), key: key.clone() }, 1000);
    reactor.poll(Some(Duration::from_millis(50)), |n, outcome| panic!("{n} {outcome:?}")).unwrap();
    member.kill();
    let (mut unknown, started) = (0, Instant::now());
    while unknown < 50 {
        assert!(started.elapsed() < Duration::from_secs(30));
        reactor
            .poll(Some(Duration::from_millis(100)), |n, outcome| {
                assert!(matches!(outcome, Outcome::Unknown(Failure::ConnectionLost(_))), "{n}: {outcome:?}");
                unknown += 1;
            })
            .unwrap();
    }
    assert_eq!(
        (reactor.connected(), reactor.in_flight()),
        (0, 1),
        "the get is tried again when there is a member"
    );

    // Submitted while there is no member at all.
    for n in 0..20 {
        reactor.submit(set(&map, &key, n), n);
    }
    drop(member);
    let member = Member::start(&jar, "dev", &ports);
    let (mut ok, started) = (0, Instant::now());
    while reactor.in_flight() > 0 {
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", reactor.last_down());
        reactor
            .poll(Some(Duration::from_millis(100)), |n, outcome| {
                assert!(matches!(outcome, Outcome::Ok(_)), "{n}: {outcome:?}");
                ok += 1;
            })
            .unwrap();
    }
    assert_eq!((ok, reactor.connected()), (21, 1));
    drop(member);
}

#[test]
fn a_member_that_hangs_makes_operations_time_out_as_unknown_and_is_given_up() {
    let Some(jar) = jar("a member that hangs") else { return };
    let ports: [u16; 1] = free_ports();
    let member = Member::start(&jar, "dev", &ports);
    let config = Config {
        invocation_timeout: Duration::from_millis(600),
        heartbeat_interval: Duration::from_millis(300),
        heartbeat_timeout: Duration::from_secs(2),
        reconnect_pause: (Duration::from_millis(20), Duration::from_millis(200)),
        ..Config::at(member.address())
    };
    let client = Client::connect(config).unwrap();
    let map: IMap<String, i64> = client.map("hangs");
    // Attempts may time out on a busy machine; one of them does not.
    let eventually = |what: &str, is_done: &dyn Fn() -> bool| {
        let started = Instant::now();
        while !is_done() {
            assert!(started.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    eventually("it works", &|| map.set("k", &1).wait().is_ok());
    member.suspend();
    let error = map.set("k", &2).wait().expect_err("no answer");
    assert!(error.is_unknown() && matches!(error.failure(), Failure::Timeout(_)), "{error}");
    eventually("it is given up", &|| client.status().wait().unwrap().connected == 0);
    // Nothing can be sent any more, so this one has certainly not been executed.
    let error = map.set("k", &3).wait().expect_err("no member");
    assert!(!error.is_unknown() && matches!(error.failure(), Failure::NotConnected(_)), "{error}");
    member.resume();
    eventually("it comes back", &|| map.set("k", &4).wait().is_ok());
    eventually("and has the value", &|| map.get("k").wait().is_ok_and(|value| value == Some(4)));
}
