use proptest::prelude::*;

use super::*;
use crate::wire::frame::{self, BEGIN_FRAGMENT, END_FRAGMENT, EVENT};

const LIMIT: usize = 300_000;

/// An answer of a type, with frames after its first.
fn answer(message_type: i32, correlation: i64, contents: &[Vec<u8>]) -> Vec<u8> {
    let mut first = message_type.to_le_bytes().to_vec();
    first.extend(correlation.to_le_bytes());
    first.push(0);
    let mut bytes = Vec::new();
    let flags = |at: usize, flags: u16| if at == contents.len() { flags | FINAL } else { flags };
    frame::put(&mut bytes, flags(0, UNFRAGMENTED), &first);
    for (at, content) in contents.iter().enumerate() {
        frame::put(&mut bytes, flags(at + 1, 0), content);
    }
    bytes
}

/// The same message in fragments of `per_fragment` frames each.
fn fragmented(message: &[u8], id: i64, per_fragment: usize) -> Vec<Vec<u8>> {
    let frames: Vec<frame::Frame<'_>> = frame::Frames::new(message).collect();
    let chunks: Vec<_> = frames.chunks(per_fragment).collect();
    let fragment = |(at, chunk): (usize, &&[frame::Frame<'_>])| {
        let mut bytes = Vec::new();
        let begin = if at == 0 { BEGIN_FRAGMENT } else { 0 };
        let end = if at + 1 == chunks.len() { END_FRAGMENT } else { 0 };
        frame::put(&mut bytes, begin | end, &id.to_le_bytes());
        for (at, frame) in chunk.iter().enumerate() {
            let last = if at + 1 == chunk.len() { FINAL } else { 0 };
            frame::put(&mut bytes, frame.flags & !FINAL | last, frame.content);
        }
        bytes
    };
    chunks.iter().enumerate().map(fragment).collect()
}

/// A correlation, negated when the message was too large, and the contents of the frames after the first.
type Came = (i64, Vec<Vec<u8>>);

/// Feeds `bytes` in pieces of the given sizes (the last one repeats); returns what came, and the most that was held.
fn feed(reader: &mut Reader, mut bytes: &[u8], pieces: &[usize]) -> Result<(Vec<Came>, usize), Broken> {
    let mut came = Vec::new();
    let mut held = 0;
    let mut pieces = pieces.iter().copied().chain(std::iter::repeat(pieces.last().copied().unwrap_or(1)));
    loop {
        while let Some(received) = reader.advance()? {
            match received {
                Received::Message(place) => {
                    let message = reader.message(place)?;
                    let mut fields = message.fields();
                    let contents = std::iter::from_fn(|| fields.bytes().ok().map(<[u8]>::to_vec)).collect();
                    came.push((message.correlation(), contents));
                }
                Received::TooLarge { correlation, bytes } => {
                    came.push((-correlation, vec![vec![]; bytes.min(1)]))
                }
            }
        }
        if bytes.is_empty() {
            return Ok((came, held));
        }
        let room = reader.room();
        assert!(!room.is_empty(), "a read without room looks like the end of the stream");
        let count = pieces.next().unwrap_or(1).clamp(1, room.len()).min(bytes.len());
        room[..count].copy_from_slice(&bytes[..count]);
        reader.filled(count);
        held = held.max(reader.held_bytes());
        bytes = &bytes[count..];
    }
}

fn contents() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let size = prop_oneof![8 => 0..40usize, 2 => 0..3000usize, 1 => 0..150_000usize];
    prop::collection::vec((size, any::<u8>()).prop_map(|(size, byte)| vec![byte; size]), 0..4)
}

proptest! {
    /// Messages come out whole and in order, however the stream is split, unfragmented or in fragments.
    #[test]
    fn any_split_gives_the_same_messages(
        messages in prop::collection::vec((contents(), 0..4usize), 1..8),
        pieces in prop::collection::vec(1..70_000usize, 1..20),
    ) {
        let mut stream = Vec::new();
        let mut expected = Vec::new();
        for (at, (contents, per_fragment)) in messages.into_iter().enumerate() {
            let bytes = answer(0x010201, at as i64 + 1, &contents);
            if bytes.len() > LIMIT {
                continue;
            }
            // All frames in one fragment would be an unfragmented message.
            if per_fragment == 0 || per_fragment > contents.len() {
                stream.extend(bytes);
            } else {
                fragmented(&bytes, at as i64, per_fragment).into_iter().for_each(|bytes| stream.extend(bytes));
            }
            expected.push((at as i64 + 1, contents));
        }
        let mut reader = Reader::new(LIMIT);
        let (came, held) = feed(&mut reader, &stream, &pieces).unwrap();
        prop_assert_eq!(came, expected);
        prop_assert!(held <= 4 * LIMIT, "{} bytes held", held);
    }

    /// Garbage: an error or nothing, never a panic, and never more memory than the limit allows.
    #[test]
    fn any_bytes_are_survived_within_bounds(
        bytes in prop::collection::vec(any::<u8>(), 0..3000),
        pieces in prop::collection::vec(1..500usize, 1..20),
    ) {
        let mut reader = Reader::new(LIMIT);
        let mut bytes = bytes;
        let _ = feed(&mut reader, &bytes, &pieces);
        prop_assert!(reader.held_bytes() <= 2 * LIMIT);
        // The same after a valid first frame, so that the frames after it are reached too.
        let mut stream = answer(0x010201, 1, &[vec![]]);
        stream[24] = 0;
        stream.append(&mut bytes);
        let mut reader = Reader::new(LIMIT);
        let _ = feed(&mut reader, &stream, &pieces);
        prop_assert!(reader.held_bytes() <= 2 * LIMIT);
    }

    /// Frames of plausible lengths and arbitrary flags, which reach further than plain garbage.
    #[test]
    fn any_frames_are_survived_within_bounds(
        frames in prop::collection::vec((any::<u16>(), 0..200usize, any::<u8>()), 0..60),
        pieces in prop::collection::vec(1..500usize, 1..5),
    ) {
        let mut stream = Vec::new();
        for (flags, size, byte) in frames {
            frame::put(&mut stream, flags, &vec![byte; size]);
        }
        let mut reader = Reader::new(2000);
        let _ = feed(&mut reader, &stream, &pieces);
        prop_assert!(reader.held_bytes() <= 100_000);
    }
}

#[test]
fn an_answer_beyond_the_limit_is_skipped_and_the_next_one_comes() {
    for pieces in [&[1, 7, 60_000][..], &[65_536], &[13]] {
        let large = answer(0x010201, 1, &[vec![1; 100], vec![2; LIMIT], vec![3; 50]]);
        let small = answer(0x010201, 2, &[vec![4; 3]]);
        let mut reader = Reader::new(LIMIT);
        let (came, held) = feed(&mut reader, &[large, small].concat(), pieces).unwrap();
        assert_eq!(came, [(-1, vec![vec![]]), (2, vec![vec![4; 3]])], "pieces {pieces:?}");
        assert!(held <= LIMIT, "{held} bytes held for an answer that is not kept");
    }
}

#[test]
fn many_small_frames_count_as_well() {
    let large = answer(0x010201, 1, &vec![vec![]; LIMIT / 6]);
    let mut reader = Reader::new(LIMIT);
    let (came, _) = feed(&mut reader, &large, &[4096]).unwrap();
    assert_eq!(came, [(-1, vec![vec![]])]);
}

#[test]
fn other_protocols_are_recognised_by_their_first_bytes() {
    for other in [
        &b"HTTP/1.1 400 Bad Request\r\n"[..],
        b"SSH-2.0-OpenSSH_9.2p1 Debian\r\n",
        b"-ERR unknown command\r\n\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16 and so on",
        &[0; 30],
        &[0xff; 30],
    ] {
        let error = feed(&mut Reader::new(4 << 20), other, &[6, 1]).expect_err("no member begins like this");
        println!("{error}");
    }
}

#[test]
fn fragments_beyond_the_limit_out_of_order_or_too_many_at_once_are_refused() {
    let broken = |fragments: Vec<Vec<u8>>| {
        feed(&mut Reader::new(LIMIT), &fragments.concat(), &[4096]).expect_err("broken")
    };
    let message = answer(0x010201, 1, &vec![vec![1; 100_000]; 4]);
    assert!(matches!(broken(fragmented(&message, 5, 1)), Broken::TooLarge { .. }));
    let small = fragmented(&answer(0x010201, 1, &[vec![1; 10], vec![2; 10]]), 5, 1);
    assert!(matches!(broken(vec![small[1].clone()]), Broken::Malformed(_)));
    assert!(matches!(broken(vec![small[0].clone(), small[0].clone()]), Broken::Malformed(_)));
    let begins =
        (0..100).map(|id| fragmented(&answer(0x010201, 1, &[vec![1], vec![2]]), id, 1)[0].clone()).collect();
    assert!(matches!(broken(begins), Broken::Malformed(_)));
}

/// Receiving must stay linear: what came of a large message is not copied again and again as the rest comes.
#[test]
fn a_large_message_makes_the_buffer_grow_once() {
    let mut reader = Reader::new(64 << 20);
    let bytes = answer(0x010201, 1, &[vec![7; 20 << 20]]);
    let (mut rest, mut growths, mut size) = (&bytes[..], 0, reader.held_bytes());
    while !rest.is_empty() {
        assert_eq!(reader.advance(), Ok(None));
        let room = reader.room();
        let count = room.len().min(50_000).min(rest.len());
        room[..count].copy_from_slice(&rest[..count]);
        reader.filled(count);
        rest = &rest[count..];
        growths += u32::from(reader.held_bytes() != size);
        size = reader.held_bytes();
    }
    assert!(matches!(reader.advance(), Ok(Some(Received::Message(_)))));
    assert_eq!(growths, 1);
    assert!(size < bytes.len() + 100_000, "{size}");
    // And it is released once only small messages arrive.
    let small = answer(0x010201, 1, &[vec![1; 3]]);
    feed(&mut reader, &small.repeat(CALM_READS as usize + 10), &[small.len()]).unwrap();
    assert!(reader.held_bytes() <= 4 * BUFFER_BYTES, "{}", reader.held_bytes());
}

#[test]
fn events_and_their_flags_survive() {
    let mut bytes = answer(0x000302, 7, &[vec![1]]);
    bytes[5] |= EVENT.to_le_bytes()[1];
    let mut reader = Reader::new(LIMIT);
    reader.room()[..bytes.len()].copy_from_slice(&bytes);
    reader.filled(bytes.len());
    let Ok(Some(Received::Message(place))) = reader.advance() else { panic!("a message") };
    let message = reader.message(place).unwrap();
    assert!(message.is_event() && message.correlation() == 7 && message.message_type() == 0x000302);
}
