//! A connection without its socket: how much it executes in a turn, and how much it buffers.

use std::sync::Arc;

use super::super::{Options, Shared, changes};
use super::*;
use crate::protobuf::{put_bytes, put_whole};
use leaderboard::{self, Mode};

/// Names and scores of the longest kind, so that a page is more than a portion.
const ROWS: u64 = 100;

/// Of one connection.
const UNFINISHED_BYTES_MAX: usize = 200_000;

struct Rig {
    grpc: Grpc,
    caller: Caller,
    faults: ThreadFaults,
    /// All that was answered.
    heard: Vec<u8>,
}

pub(in super::super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A text of HPACK, not coded; its length is below 127.
fn text(text: &str) -> Vec<u8> {
    [&[text.len() as u8], text.as_bytes()].concat()
}

/// The head of a call: POST, http, its path, `content-type`.
pub(in super::super) fn head(stream: u32, method: &str) -> Vec<u8> {
    let path = text(&format!("/stepladder.leaderboard.v1.Leaderboard/{method}"));
    let content_type = text("application/grpc");
    frame(1, 4, stream, &[&[0x83, 0x86, 0x04][..], &path, &[0x0f, 0x10], &content_type].concat())
}

pub(in super::super) fn message(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut message = Vec::new();
    put(&mut message);
    [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat()
}

fn top(stream: u32) -> Vec<u8> {
    let asked = message(|out| {
        put_bytes(out, 1, b"main");
        put_whole(out, 2, ROWS);
    });
    [head(stream, "Top"), frame(0, 1, stream, &asked)].concat()
}

/// The streams of as many calls as may be open at once.
fn streams() -> impl Iterator<Item = u32> {
    (0..CALLS_MAX).map(|call| 2 * call + 1)
}

/// Settings of a client, whose windows are so large.
fn opening(window: u32) -> Vec<u8> {
    let setting = [&[0, 4][..], &window.to_be_bytes()].concat();
    [PREFACE.to_vec(), frame(4, 0, 0, &setting)].concat()
}

impl Rig {
    fn new() -> Rig {
        let options = Options { total_unfinished: 16 * UNFINISHED_BYTES_MAX, ..Options::default() };
        let shared = Arc::new(Shared::in_memory(Options { body_max: 100_000, ..options }));
        let board = changes::create_board(&shared, Some("main"), leaderboard::Options::default()).unwrap();
        for member in 0..ROWS {
            let (name, score) = (format!("{member:0>250}"), format!("{}{member}", "9".repeat(900)));
            board.leaderboard.update(&name, Mode::Replace, &score.parse().unwrap()).unwrap();
        }
        let caller = Caller::new(&shared, 0);
        Rig { grpc: Grpc::default(), caller, faults: ThreadFaults::default(), heard: Vec::new() }
    }

    fn turn(&mut self, bytes: &[u8]) -> Turn {
        self.grpc.answer(bytes, &self.caller, &mut self.faults, &mut self.heard)
    }

    /// How many turns what was sent takes, and how many messages are answered then.
    fn run_to_the_end(&mut self, bytes: &[u8]) -> (usize, usize) {
        let mut turn = self.turn(bytes);
        let (mut turns, mut answered) = (1, turn.answered);
        while turn.has_more {
            turn = self.turn(&[]);
            turns += 1;
            answered += turn.answered;
        }
        (turns, answered)
    }

    fn ended(&self) -> Vec<u32> {
        ended(&self.heard)
    }
}

/// Streams that the server has ended.
pub(in super::super) fn ended(heard: &[u8]) -> Vec<u32> {
    let (mut rest, mut ended) = (heard, Vec::new());
    while let [a, b, c, kind, flags, d, e, f, g, behind @ ..] = rest {
        if matches!(kind, 0 | 1) && flags & 1 != 0 {
            ended.push(u32::from_be_bytes([*d, *e, *f, *g]));
        }
        rest = &behind[u32::from_be_bytes([0, *a, *b, *c]) as usize..];
    }
    ended
}

const WIDE: u32 = i32::MAX as u32;

/// Makes the window of the connection as wide as that of its streams.
fn widen() -> Vec<u8> {
    frame(8, 0, 0, &(WIDE - 65_535).to_be_bytes())
}

#[test]
fn calls_that_come_together_are_carried_out_a_portion_in_a_turn_and_all_in_the_end() {
    let mut rig = Rig::new();
    let calls: Vec<u8> = streams().flat_map(top).collect();
    let turn = rig.turn(&[opening(WIDE), widen(), calls].concat());
    assert_eq!((turn.answered, turn.has_more), (1, true), "one page is more than a portion of bytes");
    assert_eq!(rig.ended(), [1], "what was answered is sent at once");
    let (turns, answered) = rig.run_to_the_end(&[]);
    assert_eq!((turns, answered), (CALLS_MAX as usize - 1, CALLS_MAX as usize - 1));
    assert_eq!(rig.ended(), streams().collect::<Vec<_>>(), "in the order in which they came");

    // Small answers are counted.
    let get = message(|out| {
        put_bytes(out, 1, b"main");
        put_bytes(out, 2, format!("{:0>250}", 0).as_bytes());
    });
    let later = |stream| stream + 2 * CALLS_MAX;
    let calls =
        streams().map(later).flat_map(|stream| [head(stream, "Get"), frame(0, 1, stream, &get)].concat());
    let turn = rig.turn(&calls.collect::<Vec<_>>());
    assert_eq!((turn.answered, turn.has_more), (PORTION_ANSWERS, true));
    assert_eq!(rig.run_to_the_end(&[]).1, CALLS_MAX as usize - PORTION_ANSWERS);
}

#[test]
fn a_stream_of_bulks_that_fills_its_portions_keeps_no_other_call_of_its_connection_waiting() {
    let mut rig = Rig::new();
    rig.turn(&[opening(WIDE), widen()].concat());
    let bulks = message(|_| ()).repeat(10 * PORTION_ANSWERS);
    rig.turn(&[head(1, "Bulk"), frame(0, 0, 1, &bulks), top(3)].concat());
    assert_eq!(rig.ended(), Vec::<u32>::new());
    rig.turn(&[]);
    assert_eq!(rig.ended(), [3]);
}

#[test]
fn while_answers_wait_for_room_no_further_call_is_carried_out() {
    let mut rig = Rig::new();
    let calls: Vec<u8> = streams().flat_map(top).collect();
    let (_, answered) = rig.run_to_the_end(&[opening(0), widen(), calls].concat());
    let page = rig.grpc.held_bytes() / answered;
    assert!(page > PORTION_BYTES, "{page}");
    assert!((HELD_BYTES_MAX..HELD_BYTES_MAX + page).contains(&rig.grpc.held_bytes()), "{answered}");
    assert!(rig.grpc.untaken_since_ns().is_some() && rig.grpc.incomplete_since_ns().is_none());

    // A window that opens for the first of them lets one more be executed, and so on.
    let mut more = 0;
    for stream in streams().take(answered) {
        more += rig.run_to_the_end(&frame(8, 0, stream, &WIDE.to_be_bytes())).1;
    }
    assert_eq!(more, answered.min(CALLS_MAX as usize - answered));
    let every_window = frame(4, 0, 0, &[&[0, 4][..], &1_000_000_u32.to_be_bytes()].concat());
    more += rig.run_to_the_end(&every_window).1;
    assert_eq!((answered + more, rig.grpc.held_bytes()), (CALLS_MAX as usize, 0));
    assert_eq!(rig.ended().len(), CALLS_MAX as usize);
    assert_eq!(rig.grpc.untaken_since_ns(), None);
}

#[test]
fn a_call_that_is_reset_holds_nothing_any_more() {
    let mut rig = Rig::new();
    rig.run_to_the_end(&[opening(0), widen(), top(1), top(3)].concat());
    assert!(rig.grpc.held_bytes() > 0);
    rig.run_to_the_end(&[frame(3, 0, 1, &[0, 0, 0, 8]), frame(3, 0, 3, &[0, 0, 0, 8])].concat());
    assert_eq!((rig.grpc.held_bytes(), rig.grpc.untaken_since_ns()), (0, None));
}

/// The beginning of a call whose message is announced to be so long, with its first bytes.
fn half(stream: u32, bytes: u32) -> Vec<u8> {
    let begun = [&[0][..], &bytes.to_be_bytes(), &[0; 10_000]].concat();
    [head(stream, "Bulk"), frame(0, 0, stream, &begun)].concat()
}

#[test]
fn messages_that_are_not_whole_take_bounded_memory_together_and_the_call_beyond_it_is_refused() {
    let mut rig = Rig::new();
    rig.turn(&[opening(WIDE), widen()].concat());
    for stream in streams() {
        rig.turn(&half(stream, 50_000));
        let bytes = rig.grpc.unfinished_bytes();
        assert!((1..=UNFINISHED_BYTES_MAX).contains(&bytes), "{bytes} bytes after call {stream}");
    }
    let begun = CALLS_MAX as usize - rig.ended().len();
    assert!((15..=20).contains(&begun), "{begun} calls go on");
    assert_eq!(rig.ended(), streams().skip(begun).collect::<Vec<_>>(), "those that came later are refused");
    // The others are not blocked, and make room for more.
    rig.run_to_the_end(&frame(3, 0, 1, &[0, 0, 0, 8]));
    rig.turn(&half(2 * CALLS_MAX + 1, 50_000));
    assert_eq!(rig.ended().len(), CALLS_MAX as usize - begun);
    for stream in streams().take(begun).skip(1).chain([2 * CALLS_MAX + 1]) {
        rig.run_to_the_end(&frame(3, 0, stream, &[0, 0, 0, 8]));
    }
    assert_eq!(rig.grpc.unfinished_bytes(), 0);
}

#[test]
fn a_stream_that_rests_behind_a_long_message_keeps_none_of_its_memory() {
    let mut rig = Rig::new();
    rig.turn(&[opening(WIDE), widen(), half(1, 90_000)].concat());
    for _ in 0..8 {
        rig.turn(&frame(0, 0, 1, &[0; 10_000]));
    }
    assert_eq!((rig.grpc.calls.len(), rig.grpc.unfinished_bytes()), (1, 0));
}
