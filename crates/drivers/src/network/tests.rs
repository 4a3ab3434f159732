use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::way::{Piece, Way};
use super::*;
use crate::testing::{block_on, connected, timed};

const MS: u64 = 1_000_000;

fn path(latency_ms: u64, loss: f64, bits_per_s: u64) -> Path {
    Path { latency_ns: latency_ms * MS, loss, rto_ns: 200 * MS, bits_per_s, ..Path::default() }
}

/// When pieces come out that enter as (ms, bytes), ms.
fn releases_ms(path: &Path, entered: &[(u64, usize)]) -> Vec<u64> {
    let (mut way, mut rng) = (Way::default(), fastrand::Rng::with_seed(1));
    let release = |&(at_ms, bytes): &(u64, usize)| way.release_ns(path, at_ms * MS, bytes, &mut rng) / MS;
    entered.iter().map(release).collect()
}

#[test]
fn bytes_come_out_after_half_the_round_trip_and_what_the_bandwidth_takes() {
    // One Mbit/s takes 8 ms for 1000 bytes.
    for (path, entered, expected) in [
        (path(80, 0.0, 0), vec![(0, 1), (1, 100_000), (5, 1)], vec![40, 41, 45]),
        (path(0, 0.0, 0), vec![(0, 1), (1, 1)], vec![0, 1]),
        (path(0, 0.0, 1_000_000), vec![(0, 1000), (0, 1000), (20, 1000)], vec![8, 16, 28]),
        (path(20, 0.0, 1_000_000), vec![(0, 1000), (3, 0), (9, 500)], vec![18, 18, 23]),
    ] {
        assert_eq!(releases_ms(&path, &entered), expected, "{path:?}");
    }
}

#[test]
fn a_lost_segment_is_late_by_its_timeouts_and_holds_up_what_follows() {
    let lossy = path(80, 0.3, 0);
    let entered: Vec<(u64, usize)> = (0..10_000).map(|second| (second * 100_000, 1)).collect();
    let delays: Vec<u64> =
        releases_ms(&lossy, &entered).iter().zip(&entered).map(|(out, (into, _))| out - into).collect();
    // 0.7 are not lost, 0.21 once, 0.063 twice: after 0, 200 and 600 ms.
    let share = |delay_ms| delays.iter().filter(|one| **one == delay_ms).count() as f64 / 10_000.0;
    for (delay_ms, expected) in [(40, 0.7), (240, 0.21), (640, 0.063)] {
        assert!((share(delay_ms) - expected).abs() < 0.015, "{delay_ms} ms: {}", share(delay_ms));
    }
    let close: Vec<(u64, usize)> = (0..1000).map(|ms| (ms, 1)).collect();
    let out = releases_ms(&lossy, &close);
    assert!(out.windows(2).all(|pair| pair[0] <= pair[1]), "order is kept");
    assert!(out.iter().zip(&close).any(|(out, (into, _))| out - into > 240));
}

#[test]
fn jitter_is_uniform_from_none_to_all_of_it() {
    let shaky = Path { jitter_ns: 10 * MS, ..path(80, 0.0, 0) };
    let mut rng = fastrand::Rng::with_seed(7);
    let mut delays: Vec<u64> = (0..10_000).map(|_| shaky.delay_ns(&mut rng)).collect();
    delays.sort_unstable();
    for (quantile, expected_ms) in [(0, 40.0), (2500, 42.5), (5000, 45.0), (9999, 50.0)] {
        let found_ms = delays[quantile] as f64 / MS as f64;
        assert!((found_ms - expected_ms).abs() < 0.3, "{quantile}: {found_ms}");
    }
}

#[test]
fn a_queue_hands_out_what_is_due_and_tells_each_piece_once() {
    let (mut way, mut rng) = (Way::default(), fastrand::Rng::with_seed(1));
    let slow = path(80, 0.0, 0);
    let push = |way: &mut Way, at_ms: u64, bytes: &[u8], room, rng: &mut _| {
        way.push(&slow, at_ms * MS, bytes.chunks(2), room, rng)
    };
    assert_eq!(push(&mut way, 1, b"abcd", 100, &mut rng), 4);
    assert_eq!(push(&mut way, 2, b"efgh", 3, &mut rng), 3, "there is room for so much");
    assert_eq!((way.len(), way.next_ns(), way.due(41 * MS - 1)), (7, Some(41 * MS), &b""[..]));
    assert_eq!(way.due(41 * MS), b"abcd");
    let mut told = Vec::new();
    way.take(3, |piece| told.push(*piece));
    way.take(2, |piece| told.push(*piece));
    assert_eq!(way.due(42 * MS), b"fg");
    way.take(2, |piece| told.push(*piece));
    let piece = |bytes, at_ms| Piece { bytes, entered_ns: at_ms * MS, release_ns: (at_ms + 40) * MS };
    assert_eq!(told, [piece(4, 1), piece(3, 2)]);
    assert!(way.is_empty() && way.next_ns().is_none());
}

#[test]
fn a_large_message_is_as_many_segments_as_it_takes() {
    let (mut way, mut rng) = (Way::default(), fastrand::Rng::with_seed(1));
    // A segment takes 1448 × 8 / 1.448 Mbit/s = 8 ms.
    let narrow = path(0, 0.0, 1_448_000);
    way.push(&narrow, MS, std::iter::once(&[0; 2 * SEGMENT_BYTES + 724][..]), usize::MAX, &mut rng);
    let mut at_ms = Vec::new();
    let all = way.len();
    way.take(all, |piece| at_ms.push((piece.release_ns / MS, piece.bytes)));
    assert_eq!(at_ms, [(9, 1448), (17, 1448), (21, 724)]);
}

#[test]
fn a_message_and_its_answer_take_the_round_trip_and_so_does_the_connect() {
    timed(async {
        let begin = Instant::now();
        let (mut far, near) = connected().await;
        let mut wire = Wire::connect(near, &path(60, 0.0, 0), false).await;
        assert!(begin.elapsed() >= Duration::from_millis(60), "{:?}", begin.elapsed());
        let echo = tokio::spawn(async move {
            let mut room = [0; 100];
            let sent_at = Instant::now();
            let count = far.read(&mut room).await.unwrap();
            far.write_all(&room[..count]).await.unwrap();
            let reached = sent_at.elapsed();
            assert_eq!(far.read(&mut room).await.unwrap(), 0, "our end");
            (reached, Instant::now())
        });
        let sent_at = Instant::now();
        wire.write_all(b"hello").await.unwrap();
        assert!(sent_at.elapsed() < Duration::from_millis(25), "it is taken at once");
        let mut room = [0; 100];
        assert_eq!(wire.read(&mut room).await.unwrap(), 5);
        let took = sent_at.elapsed();
        assert!((60..200).contains(&took.as_millis()), "{took:?}");
        let said_at = Instant::now();
        wire.shutdown().await.unwrap();
        assert_eq!(wire.read(&mut room).await.unwrap(), 0, "its end");
        // The message before went out late by as much as a millisecond, which the way back makes up until the next one goes out.
        assert!(said_at.elapsed() >= Duration::from_millis(59), "{:?}", said_at.elapsed());
        let (reached, ended_at) = echo.await.unwrap();
        assert!(reached >= Duration::from_millis(25), "{reached:?}");
        assert!(ended_at - said_at >= Duration::from_millis(30));
        let mut passed = Passed::default();
        take_passed(&mut passed);
        assert_eq!(passed.round_trips.len(), 1);
        let RoundTrip { asked_ns, applied_ns, .. } = passed.round_trips[0];
        assert_eq!(asked_ns, 60 * MS);
        assert!(applied_ns >= asked_ns && passed.late_ns.len() == 2);
    });
}

#[test]
fn what_answers_bytes_that_left_with_the_connect_comes_two_round_trips_later() {
    timed(async {
        let (mut far, near) = connected().await;
        far.write_all(b"welcome").await.unwrap();
        let begin = Instant::now();
        let mut wire = Wire::connect(near, &path(40, 0.0, 0), true).await;
        assert!(begin.elapsed() < Duration::from_millis(25), "{:?}", begin.elapsed());
        let mut room = [0; 100];
        assert_eq!(wire.read(&mut room).await.unwrap(), 7);
        assert!((80..250).contains(&begin.elapsed().as_millis()), "{:?}", begin.elapsed());
    });
}

#[test]
fn many_bytes_pass_whole_and_in_order_and_a_full_way_holds_the_writer_up() {
    timed(async {
        let (mut far, near) = connected().await;
        let mut wire =
            Wire::connect(near, &Path { jitter_ns: 2 * MS, ..path(10, 0.0, 400_000_000) }, false).await;
        let sent: Vec<u8> = (0..2_000_000_u32).map(|at| (at / 7) as u8).collect();
        let expected = sent.clone();
        let echo = tokio::spawn(async move {
            let mut got = vec![0; expected.len()];
            far.read_exact(&mut got).await.unwrap();
            assert!(got == expected);
            far.write_all(&got).await.unwrap();
        });
        let begin = Instant::now();
        wire.write_all(&sent).await.unwrap();
        // 2 MB less a window of 256 KiB at 400 Mbit/s.
        assert!(begin.elapsed() >= Duration::from_millis(34), "{:?}", begin.elapsed());
        let mut got = vec![0; sent.len()];
        wire.read_exact(&mut got).await.unwrap();
        assert!(got == sent);
        echo.await.unwrap();
    });
}

#[test]
fn an_error_of_the_connection_comes_after_what_was_under_way() {
    timed(async {
        let (mut far, near) = connected().await;
        let mut wire = Wire::connect(near, &path(40, 0.0, 0), false).await;
        far.write_all(b"last").await.unwrap();
        drop(far);
        let mut room = [0; 8];
        let begin = Instant::now();
        assert_eq!(wire.read(&mut room).await.unwrap(), 4);
        assert_eq!(wire.read(&mut room).await.unwrap(), 0);
        assert_eq!(wire.read(&mut room).await.unwrap(), 0, "and stays");
        assert!(begin.elapsed() >= Duration::from_millis(19), "{:?}", begin.elapsed());
    });
}

#[test]
fn without_a_network_nothing_is_delayed_and_a_stream_is_as_small_as_it_was() {
    block_on(async {
        assert_eq!(next_ns(), u64::MAX);
        let plain = size_of::<tokio::net::TcpStream>();
        assert!(size_of::<crate::stream::Stream>() <= plain + 8, "{plain}");
    });
}
