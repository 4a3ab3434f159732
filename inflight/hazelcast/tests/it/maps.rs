//! Operations on maps of one healthy member.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hazelcast::reactor::{Outcome, Reactor};
use hazelcast::wire::{Answer, Data, Key, Limits, MapName, Request};
use hazelcast::{Client, Config, Failure, IMap, Object};

use crate::member::shared;

fn connect(address: &str) -> Client {
    Client::connect(Config::at(address)).expect("the shared member")
}

#[test]
fn each_operation_does_what_it_says() {
    let Some(address) = shared("maps of one member") else { return };
    let client = connect(&address);
    let map: IMap<String, String> = client.map("each_operation");
    assert_eq!(map.size().wait().unwrap(), 0);
    assert_eq!(map.get("a").wait().unwrap(), None);
    assert_eq!(map.put("a", "1").wait().unwrap(), None);
    assert_eq!(map.put("a", "2").wait().unwrap(), Some("1".to_owned()));
    map.set("b", "3").wait().unwrap();
    assert_eq!(map.get("b").wait().unwrap().as_deref(), Some("3"));
    assert!(map.contains_key("b").wait().unwrap());
    assert!(!map.contains_key("c").wait().unwrap());
    assert_eq!(map.size().wait().unwrap(), 2);
    assert_eq!(map.remove("a").wait().unwrap(), Some("2".to_owned()));
    assert_eq!(map.remove("a").wait().unwrap(), None);
    map.delete("b").wait().unwrap();
    map.delete("b").wait().unwrap();
    assert_eq!(map.size().wait().unwrap(), 0);

    let entries: BTreeMap<String, String> = (0..1000).map(|n| (format!("k{n}"), format!("v{n}"))).collect();
    map.put_all(entries.clone()).wait().unwrap();
    assert_eq!(map.size().wait().unwrap(), 1000);
    let keys = (500..1500).map(|n| format!("k{n}"));
    let got: BTreeMap<String, String> = map.get_all(keys).wait().unwrap().into_iter().collect();
    assert_eq!(got.len(), 500);
    assert!(got.iter().all(|(key, value)| entries.get(key) == Some(value)));
    map.put_all([]).wait().unwrap();
    assert!(map.get_all([]).wait().unwrap().is_empty());
    map.clear().wait().unwrap();
    assert_eq!(map.size().wait().unwrap(), 0);

    let status = client.status().wait().unwrap();
    assert_eq!((status.connected, status.members.len(), status.partition_count), (1, 1, 271));
    assert_eq!(status.server_version.as_deref(), Some("5.5.0"));
}

#[test]
fn every_default_type_comes_back_as_key_and_as_value() {
    let Some(address) = shared("types") else { return };
    let client = connect(&address);
    let map: IMap<Object, Object> = client.map("types");
    let objects = [
        Object::Byte(-2),
        Object::Boolean(true),
        Object::Short(-300),
        Object::Integer(42),
        Object::Long(i64::MIN),
        Object::Float(1.5),
        Object::Double(-3.5),
        Object::String("grün € 🦀".to_owned()),
        Object::ByteArray(vec![1, 2, 255]),
        Object::BooleanArray(vec![true, false]),
        Object::ShortArray(vec![1, -1]),
        Object::IntegerArray(vec![1, -1]),
        Object::LongArray(vec![]),
        Object::FloatArray(vec![0.5]),
        Object::DoubleArray(vec![1.5, -2.0]),
        Object::StringArray(vec!["a".to_owned(), String::new()]),
    ];
    for object in &objects {
        map.set(object, object).wait().unwrap();
        assert_eq!(map.get(object).wait().unwrap().as_ref(), Some(object));
    }
    let all = map.get_all(objects.to_vec()).wait().unwrap();
    assert_eq!(all.len(), objects.len());
    assert!(all.iter().all(|(key, value)| key == value));

    let as_text: IMap<Object, String> = client.map("types");
    let error = as_text.get(&objects[3]).wait().expect_err("not a string");
    assert_eq!(
        error.to_string(),
        "a value of type -7, where a string was expected; read it as that type, as Object or as Data"
    );
    assert!(!error.is_unknown());
}

#[test]
fn an_entry_with_a_time_to_live_disappears_and_one_without_stays() {
    let Some(address) = shared("entries that expire") else { return };
    let map: IMap<String, i64> = connect(&address).map("ttl");
    map.set_with_ttl("short", &1, Duration::from_secs(1)).wait().unwrap();
    map.set("long", &2).wait().unwrap();
    assert_eq!(map.put_with_ttl("put", &3, Duration::from_secs(1)).wait().unwrap(), None);
    let started = Instant::now();
    while map.get("short").wait().unwrap().is_some() || map.get("put").wait().unwrap().is_some() {
        assert!(started.elapsed() < Duration::from_secs(60), "it never expires");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(map.get("long").wait().unwrap(), Some(2));
}

#[test]
fn ten_thousand_operations_in_flight_over_one_connection_all_end_well() {
    let Some(address) = shared("10,000 in flight") else { return };
    const IN_FLIGHT: usize = 10_000;
    let mut reactor: Reactor<usize> = Reactor::connect(Config::at(&address)).unwrap();
    let map: MapName = "in_flight".into();
    let keys: Vec<Key> = (0..IN_FLIGHT).map(|n| Key::of(&(n as i64))).collect();
    for (n, key) in keys.iter().enumerate() {
        let value = Data::of(&format!("value {n}"));
        reactor.submit(Request::Set { map: map.clone(), key: key.clone(), value, ttl_ms: -1 }, n);
    }
    assert_eq!(reactor.in_flight(), IN_FLIGHT);
    let mut ended = vec![0u8; IN_FLIGHT];
    while reactor.in_flight() > 0 {
        reactor
            .poll(None, |n, outcome| {
                assert!(matches!(outcome, Outcome::Ok(Answer::Done)), "{outcome:?}");
                ended[n] += 1;
            })
            .unwrap();
    }
    assert!(ended.iter().all(|count| *count == 1), "each exactly once");
    for (n, key) in keys.iter().enumerate() {
        reactor.submit(Request::Get { map: map.clone(), key: key.clone() }, n);
    }
    while reactor.in_flight() > 0 {
        reactor
            .poll(None, |n, outcome| {
                let Outcome::Ok(answer) = outcome else { panic!("{outcome:?}") };
                assert_eq!(answer.read::<String>().unwrap(), Some(format!("value {n}")));
                ended[n] += 1;
            })
            .unwrap();
    }
    assert!(ended.iter().all(|count| *count == 2));
    assert_eq!(reactor.connected(), 1);
}

#[test]
fn values_of_many_sizes_come_back_unchanged() {
    let Some(address) = shared("large values") else { return };
    let map: IMap<i32, Vec<u8>> = connect(&address).map("sizes");
    let sizes = [0, 1, 4087, 4088, 4096, 65_536, 100_000, 1 << 20, 9_999_999];
    let value = |size: usize| -> Vec<u8> { (0..size).map(|at| (at * 7 + size) as u8).collect() };
    let sets: Vec<_> = sizes.iter().map(|size| map.set(&(*size as i32), &value(*size))).collect();
    sets.into_iter().for_each(|set| set.wait().unwrap());
    let gets: Vec<_> = sizes.iter().map(|size| map.get(&(*size as i32))).collect();
    for (size, get) in sizes.iter().zip(gets) {
        assert!(get.wait().unwrap() == Some(value(*size)), "a value of {size} bytes is another");
    }
}

#[test]
fn values_beyond_the_limits_fail_alone_and_the_connection_stays() {
    let Some(address) = shared("limits") else { return };
    let wide: IMap<i32, Vec<u8>> = connect(&address).map("limits");
    wide.set(&1, &vec![1; 500_000]).wait().unwrap();
    wide.set(&2, &vec![2; 10]).wait().unwrap();
    let limits = Limits { message_bytes: 200_000, request_bytes: 100_000, ..Limits::default() };
    let client = Client::connect(Config { limits, ..Config::at(&address) }).unwrap();
    let map: IMap<i32, Vec<u8>> = client.map("limits");

    let error = map.set(&3, &vec![3; 100_000]).wait().expect_err("a request beyond the limit");
    assert!(matches!(error.failure(), Failure::Refused(_)) && !error.is_unknown(), "{error}");
    assert_eq!(wide.get(&3).wait().unwrap(), None);
    let (large, small) = (map.get(&1), map.get(&2));
    let error = large.wait().expect_err("an answer beyond the limit");
    assert!(matches!(error.failure(), Failure::AnswerTooLarge { bytes, .. } if *bytes > 500_000), "{error}");
    assert!(!error.is_unknown());
    assert_eq!(small.wait().unwrap(), Some(vec![2; 10]));
    let error = map.put(&1, &vec![4; 10]).wait().expect_err("the old value is beyond the limit");
    assert!(error.is_unknown(), "it was carried out: {error}");
    assert_eq!(map.get(&1).wait().unwrap(), Some(vec![4; 10]));
    assert_eq!(client.status().wait().unwrap().connected, 1);
}

#[test]
fn handles_work_from_many_threads_and_in_a_future() {
    let Some(address) = shared("threads") else { return };
    let client = connect(&address);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let map: IMap<String, i64> = client.map("threads");
            std::thread::spawn(move || {
                for n in 0..200 {
                    map.set(&format!("{thread} {n}"), &n).wait().unwrap();
                    assert_eq!(block_on(map.get(&format!("{thread} {n}"))).unwrap(), Some(n));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let map: IMap<String, i64> = client.map("threads");
    assert_eq!(map.size().wait().unwrap(), 800);
    let late = map.size();
    drop((map, client));
    // Its connections are closed with the last handle; operations in flight end one way or the other.
    match late.wait() {
        Ok(size) => assert_eq!(size, 800),
        Err(error) => assert!(matches!(error.failure(), Failure::Closed), "{error}"),
    }
}

/// An executor for one future: a thread that is unparked when there is news.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}
