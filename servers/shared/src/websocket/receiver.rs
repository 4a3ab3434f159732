//! From a stream of bytes, split anywhere, to whole messages.
//!
//! Costs eight bytes per connection while no frame is partial: whole frames are read in place, from the buffer that all
//! connections of a thread share. Only an unfinished frame or message is copied and kept, and the length of both is
//! bounded by `message_bytes_max`.

use super::frame::{self, Header, Opcode};

/// One event from a client. Payloads are unmasked, and texts are valid UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// UTF-8
    Text(&'a [u8]),
    /// bytes
    Binary(&'a [u8]),
    /// and what a pong has to carry
    Ping(&'a [u8]),
    /// no answer
    Pong,
    /// The client's close code, None where it gave none.
    Close(Option<u16>),
}

/// Why a connection must be failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// 1002
    Protocol,
    /// text that is no UTF-8
    Utf8,
    /// larger than allowed
    TooBig,
}

impl Violation {
    /// The code of the close frame that says so.
    #[inline]
    pub fn close_code(self) -> u16 {
        match self {
            Violation::Protocol => frame::close_code::PROTOCOL,
            Violation::Utf8 => frame::close_code::BAD_PAYLOAD,
            Violation::TooBig => frame::close_code::TOO_BIG,
        }
    }
}

/// Reads a client's frames from the pieces in which they come.
#[derive(Default)]
pub struct Receiver {
    unfinished: Option<Box<Unfinished>>,
}

#[derive(Default)]
struct Unfinished {
    /// The beginning of a frame, still masked.
    frame: Vec<u8>,
    /// The fragments so far, unmasked, and what they began as.
    message: Vec<u8>,
    kind: Option<Opcode>,
    /// Bytes of the message that are known to be UTF-8, if it is to be text.
    checked: usize,
}

impl Unfinished {
    /// Errors: text that no further fragment can make valid. Found with each fragment, not with the last one only.
    #[inline]
    fn check_text(&mut self) -> Result<(), Violation> {
        if self.kind != Some(Opcode::Text) {
            return Ok(());
        }
        match std::str::from_utf8(&self.message[self.checked..]) {
            Ok(_) => self.checked = self.message.len(),
            Err(error) if error.error_len().is_some() => return Err(Violation::Utf8),
            // A character that is split by the fragment's end.
            Err(error) => self.checked += error.valid_up_to(),
        }
        Ok(())
    }
}

/// A frame that came in parts, still masked.
struct Whole {
    header: Header,
    bytes: Vec<u8>,
}

impl Receiver {
    /// Takes what was read and tells what it completes, in order. `hear` returns false to stop listening.
    ///
    /// The input is scribbled on. After a violation the receiver must not be used again.
    #[inline]
    pub fn feed(
        &mut self,
        input: &mut [u8],
        message_bytes_max: usize,
        hear: impl FnMut(Heard) -> bool,
    ) -> Result<(), Violation> {
        self.feed_until(input, message_bytes_max, hear).map(drop)
    }

    /// The same, and returns how many bytes were taken: all, unless `hear` stopped listening. What was not taken is as
    /// it was.
    pub fn feed_until(
        &mut self,
        input: &mut [u8],
        message_bytes_max: usize,
        mut hear: impl FnMut(Heard) -> bool,
    ) -> Result<usize, Violation> {
        let all = input.len();
        let mut input = input;
        while !input.is_empty() {
            // An unfinished frame is completed first, with no more bytes than it needs.
            if self.unfinished.as_ref().is_some_and(|unfinished| !unfinished.frame.is_empty()) {
                let (taken, complete) = self.complete(input, message_bytes_max)?;
                input = &mut std::mem::take(&mut input)[taken..];
                if let Some(Whole { header, mut bytes }) = complete {
                    let payload = &mut bytes[header.header_bytes..];
                    frame::unmask(payload, header.mask);
                    if !self.deliver(header, payload, message_bytes_max, &mut hear)? {
                        return Ok(all - input.len());
                    }
                }
                continue;
            }
            let header = frame::header(input).map_err(|_| Violation::Protocol)?;
            let whole = match header {
                Some(header) => Some((header, self.frame_bytes(header, message_bytes_max)?)),
                None => None,
            };
            let Some((header, frame_bytes)) = whole.filter(|(_, bytes)| *bytes <= input.len()) else {
                self.unfinished.get_or_insert_default().frame.extend_from_slice(input);
                return Ok(all);
            };
            let (this, rest) = std::mem::take(&mut input).split_at_mut(frame_bytes);
            input = rest;
            let payload = &mut this[header.header_bytes..];
            frame::unmask(payload, header.mask);
            if !self.deliver(header, payload, message_bytes_max, &mut hear)? {
                return Ok(all - input.len());
            }
        }
        Ok(all)
    }

    /// A frame or message has begun and not ended.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.unfinished.is_some()
    }

    /// Memory of that.
    #[inline]
    pub fn waiting_bytes(&self) -> usize {
        self.unfinished.as_ref().map_or(0, |part| part.frame.capacity() + part.message.capacity())
    }

    /// Moves bytes to the unfinished frame. Returns how many, and the frame when that completes it.
    fn complete(
        &mut self,
        input: &[u8],
        message_bytes_max: usize,
    ) -> Result<(usize, Option<Whole>), Violation> {
        let Some(unfinished) = &mut self.unfinished else { return Ok((0, None)) };
        let mut bytes = std::mem::take(&mut unfinished.frame);
        let before = bytes.len();
        // Up to the header's end first: only it gives the frame's length.
        let mut header = frame::header(&bytes).map_err(|_| Violation::Protocol)?;
        let mut taken = 0;
        while header.is_none() && taken < input.len() && bytes.len() < frame::HEADER_MAX {
            bytes.push(input[taken]);
            taken += 1;
            header = frame::header(&bytes).map_err(|_| Violation::Protocol)?;
        }
        let Some(header) = header else {
            self.keep(bytes);
            return Ok((taken, None));
        };
        let frame_bytes = self.frame_bytes(header, message_bytes_max)?;
        debug_assert!(before <= frame_bytes);
        let more = (frame_bytes - bytes.len()).min(input.len() - taken);
        bytes.extend_from_slice(&input[taken..taken + more]);
        taken += more;
        if bytes.len() < frame_bytes {
            self.keep(bytes);
            return Ok((taken, None));
        }
        if let Some(unfinished) = &self.unfinished
            && unfinished.kind.is_none()
        {
            self.unfinished = None;
        }
        Ok((taken, Some(Whole { header, bytes })))
    }

    #[inline]
    fn keep(&mut self, bytes: Vec<u8>) {
        self.unfinished.get_or_insert_default().frame = bytes;
    }

    /// The length of the whole frame, refused as soon as the header announces too much.
    #[inline]
    fn frame_bytes(&self, header: Header, message_bytes_max: usize) -> Result<usize, Violation> {
        let before = match (&self.unfinished, header.opcode) {
            (Some(unfinished), Opcode::Continuation) => unfinished.message.len() as u64,
            _ => 0,
        };
        if header.payload_bytes.saturating_add(before) > message_bytes_max as u64 {
            return Err(Violation::TooBig);
        }
        Ok(header.header_bytes + header.payload_bytes as usize)
    }

    /// Passes on one whole frame, or adds it to its message. False when the receiver wants no more.
    fn deliver(
        &mut self,
        header: Header,
        payload: &[u8],
        message_bytes_max: usize,
        hear: &mut impl FnMut(Heard) -> bool,
    ) -> Result<bool, Violation> {
        let fragments_pending = self.unfinished.as_ref().is_some_and(|unfinished| unfinished.kind.is_some());
        match header.opcode {
            Opcode::Ping => Ok(hear(Heard::Ping(payload))),
            Opcode::Pong => Ok(hear(Heard::Pong)),
            Opcode::Close => Ok(hear(Heard::Close(closing(payload)?))),
            Opcode::Text | Opcode::Binary if fragments_pending => Err(Violation::Protocol),
            Opcode::Continuation if !fragments_pending => Err(Violation::Protocol),
            Opcode::Text | Opcode::Binary if header.last => message(header.opcode, payload, hear),
            opcode => {
                let unfinished = self.unfinished.get_or_insert_default();
                // Many empty fragments add nothing; an endless message ends at its limit.
                if unfinished.message.len() + payload.len() > message_bytes_max {
                    return Err(Violation::TooBig);
                }
                unfinished.message.extend_from_slice(payload);
                let kind = *unfinished.kind.get_or_insert(opcode);
                if !header.last {
                    return unfinished.check_text().map(|()| true);
                }
                let whole = std::mem::take(&mut unfinished.message);
                self.unfinished = None;
                message(kind, &whole, hear)
            }
        }
    }
}

#[inline]
fn message(kind: Opcode, payload: &[u8], hear: &mut impl FnMut(Heard) -> bool) -> Result<bool, Violation> {
    if kind == Opcode::Binary {
        return Ok(hear(Heard::Binary(payload)));
    }
    if !payload.is_ascii() && std::str::from_utf8(payload).is_err() {
        return Err(Violation::Utf8);
    }
    Ok(hear(Heard::Text(payload)))
}

/// A close frame's payload: empty, or a valid code and a reason in UTF-8.
#[inline]
fn closing(payload: &[u8]) -> Result<Option<u16>, Violation> {
    let [high, low, reason @ ..] = payload else {
        return if payload.is_empty() { Ok(None) } else { Err(Violation::Protocol) };
    };
    let code = u16::from_be_bytes([*high, *low]);
    if !matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999) {
        return Err(Violation::Protocol);
    }
    std::str::from_utf8(reason).map_err(|_| Violation::Utf8)?;
    Ok(Some(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::client_frame;
    use proptest::prelude::*;

    #[derive(Clone, Debug, PartialEq, Eq)]
    enum Said {
        Text(Vec<u8>),
        Binary(Vec<u8>),
        Ping(Vec<u8>),
        Pong,
        Close(Option<u16>),
    }

    fn said(heard: Heard) -> Said {
        match heard {
            Heard::Text(text) => Said::Text(text.to_vec()),
            Heard::Binary(bytes) => Said::Binary(bytes.to_vec()),
            Heard::Ping(bytes) => Said::Ping(bytes.to_vec()),
            Heard::Pong => Said::Pong,
            Heard::Close(code) => Said::Close(code),
        }
    }

    fn listen(bytes: &[u8], cuts: &[usize], max: usize) -> (Vec<Said>, Result<(), Violation>) {
        let mut receiver = Receiver::default();
        let mut heard = Vec::new();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        for pair in cuts.windows(2) {
            let mut part = bytes[pair[0]..pair[1]].to_vec();
            let result = receiver.feed(&mut part, max, |one| {
                heard.push(said(one));
                true
            });
            if result.is_err() {
                return (heard, result);
            }
        }
        assert!(receiver.unfinished.is_none(), "nothing is kept when nothing is pending");
        (heard, Ok(()))
    }

    #[track_caller]
    fn check_violation(frames: &[Vec<u8>], violation: Violation) {
        let bytes = frames.concat();
        assert_eq!(listen(&bytes, &[], 4096).1, Err(violation));
        let every_byte: Vec<usize> = (0..bytes.len()).collect();
        assert_eq!(listen(&bytes, &every_byte, 4096).1, Err(violation));
    }

    const MASK: [u8; 4] = [1, 2, 3, 250];

    #[test]
    fn violations_have_their_codes_however_the_bytes_are_cut() {
        let frame = |last, opcode, payload: &[u8]| client_frame(last, opcode, payload, MASK);
        check_violation(&[frame(true, 0, b"x")], Violation::Protocol);
        check_violation(&[frame(false, 1, b"x"), frame(true, 1, b"y")], Violation::Protocol);
        check_violation(&[frame(true, 8, b"x")], Violation::Protocol);
        check_violation(&[frame(true, 8, &1005u16.to_be_bytes())], Violation::Protocol);
        check_violation(&[frame(true, 8, &[0x03, 0xe8, 0xff])], Violation::Utf8);
        check_violation(&[frame(true, 1, &[0xc3, 0x28])], Violation::Utf8);
        check_violation(&[frame(false, 1, &[0xc3]), frame(true, 0, &[0x28])], Violation::Utf8);
        check_violation(&[frame(true, 1, &[b'a'; 4097])], Violation::TooBig);
        check_violation(&[frame(false, 2, &[0; 4000]), frame(true, 0, &[0; 97])], Violation::TooBig);
        assert_eq!(Violation::Protocol.close_code(), 1002);
        assert_eq!(Violation::Utf8.close_code(), 1007);
        assert_eq!(Violation::TooBig.close_code(), 1009);
    }

    #[test]
    fn an_announced_giant_is_refused_before_it_is_sent() {
        let mut start = vec![0x82, 0xff, 0, 0, 0, 255, 0, 0, 0, 0];
        start.extend(MASK);
        assert_eq!(Receiver::default().feed(&mut start, 65_536, |_| true), Err(Violation::TooBig));
    }

    #[test]
    fn a_character_may_be_cut_between_fragments_and_a_ping_may_come_between_them() {
        let bytes = [
            client_frame(false, 1, &[0xe2, 0x82], MASK),
            client_frame(true, 9, b"ping", MASK),
            client_frame(false, 0, b"", MASK),
            client_frame(true, 0, &[0xac], MASK),
        ]
        .concat();
        let (heard, result) = listen(&bytes, &[3, 4, 11], 4096);
        assert_eq!(result, Ok(()));
        assert_eq!(heard, [Said::Ping(b"ping".to_vec()), Said::Text("€".into())]);
    }

    fn any_said() -> impl Strategy<Value = (Said, Vec<usize>)> {
        let cuts = prop::collection::vec(0usize..3000, 0..3);
        let code = prop_oneof![Just(None), Just(Some(1000u16)), Just(Some(4999u16))];
        let short = prop::collection::vec(any::<u8>(), 0..=125);
        let said = prop_oneof![
            4 => ".{0,60}".prop_map(|text| Said::Text(text.into_bytes())),
            4 => prop::collection::vec(any::<u8>(), 0..3000).prop_map(Said::Binary),
            1 => short.prop_map(Said::Ping),
            1 => Just(Said::Pong),
            1 => code.prop_map(Said::Close),
        ];
        (said, cuts)
    }

    fn encode(said: &Said, cuts: &[usize], mask: [u8; 4]) -> Vec<u8> {
        let (opcode, payload) = match said {
            Said::Text(text) => (1, text),
            Said::Binary(bytes) => (2, bytes),
            Said::Ping(bytes) => return client_frame(true, 9, bytes, mask),
            Said::Pong => return client_frame(true, 10, b"any", mask),
            Said::Close(code) => {
                return client_frame(true, 8, &code.map_or(vec![], |code| code.to_be_bytes().to_vec()), mask);
            }
        };
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (payload.len() + 1)).collect();
        cuts.extend([0, payload.len()]);
        cuts.sort_unstable();
        let parts: Vec<&[u8]> = cuts.windows(2).map(|pair| &payload[pair[0]..pair[1]]).collect();
        let fragment = |(i, part): (usize, &&[u8])| {
            client_frame(i + 1 == parts.len(), if i == 0 { opcode } else { 0 }, part, mask)
        };
        parts.iter().enumerate().flat_map(fragment).collect()
    }

    proptest! {
        #[test]
        fn every_message_is_heard_once_and_in_order_however_frames_and_bytes_are_cut(
            messages in prop::collection::vec(any_said(), 0..8),
            cuts in prop::collection::vec(any::<usize>(), 0..20),
            mask: [u8; 4],
        ) {
            let bytes: Vec<u8> = messages.iter().flat_map(|(said, parts)| encode(said, parts, mask)).collect();
            let expected: Vec<Said> = messages.into_iter().map(|(said, _)| said).collect();
            let (heard, result) = listen(&bytes, &cuts, 4096);
            prop_assert_eq!(result, Ok(()));
            prop_assert_eq!(heard, expected);
        }

        #[test]
        fn noise_ends_the_same_way_however_it_is_cut(
            noise in prop::collection::vec(any::<u8>(), 0..300),
            cuts in prop::collection::vec(any::<usize>(), 0..20),
        ) {
            let outcome = |cuts: &[usize]| {
                let mut receiver = Receiver::default();
                let mut heard = Vec::new();
                let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (noise.len() + 1)).collect();
                cuts.extend([0, noise.len()]);
                cuts.sort_unstable();
                for pair in cuts.windows(2) {
                    let mut part = noise[pair[0]..pair[1]].to_vec();
                    if let Err(why) = receiver.feed(&mut part, 128, |one| { heard.push(said(one)); true }) {
                        return (heard, Err(why));
                    }
                }
                (heard, Ok(()))
            };
            prop_assert_eq!(outcome(&[]), outcome(&cuts));
        }
    }
}
