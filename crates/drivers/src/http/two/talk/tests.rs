use std::pin::pin;
use std::task::Waker;

use super::*;
use crate::http::Parts;
use crate::unfinished::{FREE_BYTES, UNFINISHED_BYTES_MAX, reserved_bytes};

const GET: Parts<'static> = Parts { authority: "a", keeps_body: true, ..Parts::get("/") };

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn hears(talk: &mut Talk, bytes: &[u8]) {
    talk.channel().pipe().borrow_mut().came(bytes);
    talk.turn();
    let unsent = talk.channel().pipe().borrow().unsent().len();
    talk.channel().pipe().borrow_mut().wrote(unsent);
}

/// A connection with requests open on as many streams, all of whose heads have come.
fn begun(parts: &Parts<'_>, streams: u32) -> Talk {
    let Poll::Ready(Ok(mut talk)) =
        pin!(Talk::begin(Origin::default())).poll(&mut Context::from_waker(Waker::noop()))
    else {
        panic!("its first bytes need no answer");
    };
    hears(&mut talk, &frame(SETTINGS, 0, 0, &[]));
    let request = Rc::new(Request::new(parts));
    for tag in 0..streams {
        assert!(talk.ask(&request, tag));
        // ":status: 200", by its index in the static table.
        hears(&mut talk, &frame(HEADERS, 4, 2 * tag + 1, &[0x88]));
    }
    talk
}

fn held_bytes(talks: &[Talk]) -> usize {
    talks.iter().flat_map(|talk| &talk.asked).map(|asked| asked.store.len()).sum()
}

/// The fault of the connection that was the first to have one, and what is held then.
fn first_fault(
    parts: &Parts<'_>,
    connections: usize,
    streams: u32,
    body_bytes: usize,
) -> (Option<Fault>, usize) {
    let mut talks: Vec<Talk> = (0..connections).map(|_| begun(parts, streams)).collect();
    let data = vec![b'x'; 16_000];
    for _ in 0..body_bytes / data.len() {
        for at in 0..connections {
            for stream in 0..streams {
                hears(&mut talks[at], &frame(0, 0, 2 * stream + 1, &data));
                if let Some((fault, _)) = talks[at].channel.fault {
                    return (Some(fault), held_bytes(&talks));
                }
            }
        }
    }
    (None, held_bytes(&talks))
}

#[test]
fn bodies_that_stall_before_their_last_bytes_share_a_limit() {
    let (fault, held) = first_fault(&GET, 2, 8, 3_900_000);
    assert_eq!(fault, Some(Fault::TooManyUnfinished));
    // Without the one that was too much.
    let least = UNFINISHED_BYTES_MAX / 3;
    assert!((least..=UNFINISHED_BYTES_MAX + 16 * FREE_BYTES).contains(&held), "{held} bytes are held");
    assert_eq!(reserved_bytes(), 0, "it is given back with the connections");
    let (fault, held) = first_fault(&GET, 2, 2, 3_900_000);
    assert_eq!((fault, held > 15_000_000), (None, true));
    let unkept = Parts { keeps_body: false, ..GET };
    assert_eq!(first_fault(&unkept, 2, 8, 3_900_000), (None, 0));
    let said = Parts { body_bytes_max: 3_000_000, ..GET };
    assert_eq!(first_fault(&said, 2, 8, 2_900_000), (None, 16 * 181 * 16_000));
}
