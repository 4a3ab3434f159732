//! A chat bot's text: a stamp of 14 characters and filler, as long as the plan asks for.
//!
//! The stamp carries the sender (20 bits), its message number (24 bits), the planned time (34 bits of 10 µs: two days),
//! and a check over all of it and the text length (6 bits). A text that was truncated, mixed or made up is not credited
//! to a sender, and neither is one whose filler differs from what was sent. It is written in 64 consecutive printable
//! characters, `0` to `o`, so that eight of them are decoded with a handful of operations: at twelve million deliveries
//! a second this is the hot loop.
//! Lowest digit first. No text contains a line ending.

/// Characters of a stamp.
pub const STAMP_BYTES: usize = 14;
/// Senders are below this.
pub const SENDER_END: u32 = 1 << 20;

const UNIT_NS: u64 = 10_000;
const FIRST: u8 = b'0';
const DIGIT_BITS: u32 = 6;
const PLANNED_BITS: u32 = 34;
/// Bits of the planned time in the first eight characters; the other thirty are in the last six.
const PLANNED_HIGH_BITS: u32 = 4;
const PLANNED_LOW_BITS: u32 = PLANNED_BITS - PLANNED_HIGH_BITS;
const ALL_FIRST: u64 = 0x3030_3030_3030_3030;
const NO_DIGIT: u64 = 0xc0c0_c0c0_c0c0_c0c0;

/// The filler is a piece of this.
const FILLER: &[u8] = b" how many clients does it hold, what gives first, and can the answer be trusted?";
/// The same several times, so that the filler of a usual text is compared in one piece.
const REPEATED: [u8; 4 * FILLER.len()] = {
    let (mut all, mut at) = ([0; 4 * FILLER.len()], 0);
    while at < all.len() {
        all[at] = FILLER[at % FILLER.len()];
        at += 1;
    }
    all
};

/// Who said it, which of its messages it is, and when it was planned, ns since the start of the trial, to 10 µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// below `SENDER_END`
    pub sender: u32,
    /// below 2²⁴
    pub seq: u32,
    /// rounded down to 10 µs
    pub planned_ns: u64,
}

/// Appends a text of `length` bytes (at least `STAMP_BYTES`).
pub fn write(out: &mut Vec<u8>, stamp: Stamp, length: usize) {
    debug_assert!(stamp.sender < SENDER_END && stamp.seq < 1 << 24 && length >= STAMP_BYTES);
    let planned = (stamp.planned_ns / UNIT_NS) & ((1 << PLANNED_BITS) - 1);
    let front = u64::from(stamp.sender) | u64::from(stamp.seq) << 20 | (planned >> PLANNED_LOW_BITS) << 44;
    let low = planned & ((1 << PLANNED_LOW_BITS) - 1);
    let back = low | check(front, low, length) << PLANNED_LOW_BITS;
    out.extend((0..8).map(|at| digit(front, at)));
    out.extend((0..6).map(|at| digit(back, at)));
    let mut left = length - STAMP_BYTES;
    while left > 0 {
        let piece = left.min(FILLER.len());
        out.extend_from_slice(&FILLER[..piece]);
        left -= piece;
    }
    if let Some(last) = out.last_mut() {
        *last = as_last(*last);
    }
}

/// Some servers strip trailing blanks (ngircd does), and a text must arrive as it was sent.
#[inline]
fn as_last(character: u8) -> u8 {
    if character == b' ' { b'.' } else { character }
}

/// Whether this is what follows a stamp in a text.
///
/// All of it is compared: it was searched for the line's end a moment before, so it is in the cache, and `memcmp` of the 40
/// characters of a usual line takes a few ns.
#[inline]
fn is_filler(text: &[u8]) -> bool {
    let Some((last, mut rest)) = text.split_last() else { return true };
    while let Some((piece, more)) = rest.split_first_chunk() {
        if *piece != REPEATED {
            return false;
        }
        rest = more;
    }
    rest == &REPEATED[..rest.len()] && *last == as_last(REPEATED[rest.len()])
}

/// The stamp of a text; `None` when it is not our text, or was altered.
#[inline]
pub fn read(text: &[u8]) -> Option<Stamp> {
    let (first, second) = (text.first_chunk::<8>()?, text.get(6..STAMP_BYTES)?.first_chunk::<8>()?);
    let front = digits(u64::from_le_bytes(*first))?;
    let back = digits(u64::from_le_bytes(*second))? >> (2 * DIGIT_BITS);
    let low = back & ((1 << PLANNED_LOW_BITS) - 1);
    if back >> PLANNED_LOW_BITS != check(front, low, text.len()) || !is_filler(&text[STAMP_BYTES..]) {
        return None;
    }
    Some(Stamp {
        sender: (front & 0xf_ffff) as u32,
        seq: (front >> 20 & 0xff_ffff) as u32,
        planned_ns: (front >> 44 << PLANNED_LOW_BITS | low) * UNIT_NS,
    })
}

fn digit(number: u64, at: u32) -> u8 {
    FIRST + (number >> (DIGIT_BITS * at) & 0x3f) as u8
}

/// Eight characters as a number of 48 bits; `None` when one of them is no digit.
#[inline]
fn digits(characters: u64) -> Option<u64> {
    // A character below the first borrows from its neighbour, but leaves its own high bits set, so it is detected.
    let each = characters.wrapping_sub(ALL_FIRST);
    if each & NO_DIGIT != 0 {
        return None;
    }
    let pairs = each & 0x003f_003f_003f_003f | (each & 0x3f00_3f00_3f00_3f00) >> 2;
    let fours = pairs & 0x0000_0fff_0000_0fff | (pairs & 0x0fff_0000_0fff_0000) >> 4;
    Some(fours & 0x00ff_ffff | (fours & 0x00ff_ffff_0000_0000) >> 8)
}

/// Six bits over everything that a stamp says.
#[inline]
fn check(front: u64, low: u64, length: usize) -> u64 {
    let mixed =
        (front ^ low.rotate_left(23) ^ (length as u64).rotate_left(47)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> (64 - DIGIT_BITS)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stamp() -> impl Strategy<Value = Stamp> {
        (0..SENDER_END, 0u32..1 << 24, 0u64..1 << PLANNED_BITS).prop_map(|(sender, seq, planned)| Stamp {
            sender,
            seq,
            planned_ns: planned * UNIT_NS,
        })
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(stamp in stamp(), length in STAMP_BYTES..600) {
            let mut text = Vec::new();
            write(&mut text, stamp, length);
            prop_assert_eq!(text.len(), length);
            prop_assert_eq!(text.trim_ascii_end().len(), length);
            prop_assert!(text.iter().all(|&byte| byte == b' ' || byte.is_ascii_graphic()));
            prop_assert_eq!(read(&text), Some(stamp));
        }

        #[test]
        fn any_text_is_read_without_harm(text in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = read(&text);
        }
    }

    #[test]
    fn a_text_that_was_cut_or_changed_is_nearly_always_noticed() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut noticed = 0;
        for _ in 0..10_000 {
            let mut text = Vec::new();
            let stamp = Stamp {
                sender: random.u32(0..SENDER_END),
                seq: random.u32(0..1 << 24),
                planned_ns: random.u64(0..1 << 40),
            };
            write(&mut text, stamp, 40);
            if random.bool() {
                text.truncate(random.usize(STAMP_BYTES..40));
            } else {
                let at = random.usize(0..STAMP_BYTES);
                text[at] = FIRST + (text[at] - FIRST + random.u8(1..64)) % 64;
            }
            noticed += u32::from(read(&text).is_none());
        }
        // Six bits let one in 64 through: 156 of 10,000.
        assert!((9_800..9_880).contains(&noticed), "{noticed}");
    }

    #[test]
    fn a_text_whose_filler_was_changed_is_always_noticed() {
        let stamp = Stamp { sender: 3, seq: 9, planned_ns: 1_000_000 };
        // The piece of filler has 79 characters, and what is compared in one piece four of these.
        for length in [14, 15, 16, 40, 57, 92, 93, 94, 329, 330, 331, 332, 700, 4_000] {
            let mut text = Vec::new();
            write(&mut text, stamp, length);
            assert_eq!(read(&text), Some(stamp), "{length}");
            for at in STAMP_BYTES..length {
                let said = std::mem::replace(&mut text[at], b'X');
                assert_eq!(read(&text), None, "{length}, {at}");
                text[at] = said;
            }
            if length > STAMP_BYTES {
                text[STAMP_BYTES..].fill(b'X');
                assert_eq!(read(&text), None, "{length}");
            }
        }
    }

    #[test]
    fn other_lines_are_no_texts() {
        for line in [
            "PING",
            "* joined lobby",
            "* books owed 12 delivered 12 dropped 0 waiting 0",
            "",
            "0000000000000",
        ] {
            assert_eq!(read(line.as_bytes()), None, "{line}");
        }
    }
}
