//! One connection: its input not yet executed, and its output not yet sent.

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use super::commands::Session;
use super::keyspace::{Full, Large, Memory};
use super::request::Parser;
use servers_shared::deadlines::Due;
use servers_shared::stream;

/// Bytes of a connection's buffers that are not counted as memory, and are kept while it is idle.
const KEPT_BYTES_MAX: usize = 64 * 1024;

pub(super) struct Client {
    pub(super) fd: OwnedFd,
    pub(super) session: Session,
    pub(super) parser: Parser,
    /// The beginning of a command, or what follows a full portion of answers.
    pub(super) input: Vec<u8>,
    /// There may be whole commands in `input`.
    pub(super) has_more: bool,
    /// While there is any, nothing is executed.
    pub(super) unsent: Unsent,
    /// The answer to a flush is due, and nothing more is executed before it.
    pub(super) awaits_freed: bool,
    /// When a command, or the end, must be complete.
    pub(super) due: Due,
    /// The last answer is sent or queued; further input is discarded.
    pub(super) is_ending: bool,
    /// An injected fault delays this reply until after the next.
    pub(super) held: Option<Vec<u8>>,
    /// What its buffers are counted as.
    counted_bytes: usize,
}

/// An answer that the socket did not take whole.
#[derive(Default)]
pub(super) struct Unsent {
    head: Vec<u8>,
    /// Sent after it, with a line ending.
    value: Option<Rc<Large>>,
    /// Bytes of both that have left.
    sent: usize,
}

impl Client {
    pub(super) fn new(fd: OwnedFd, id: u64) -> Client {
        Client {
            fd,
            session: Session { id, ..Session::default() },
            parser: Parser::default(),
            input: Vec::new(),
            has_more: false,
            unsent: Unsent::default(),
            awaits_freed: false,
            due: Due::default(),
            is_ending: false,
            held: None,
            counted_bytes: 0,
        }
    }

    /// Counts what its buffers and its parser take now. `input_bytes` is what its input, which may be elsewhere, takes.
    ///
    /// Errors: the memory of the server does not allow it.
    pub(super) fn count(&mut self, input_bytes: usize, memory: &Memory) -> Result<(), Full> {
        let bytes = input_bytes + self.parser.kept_bytes() + self.unsent.head.capacity();
        let bytes = bytes.saturating_sub(KEPT_BYTES_MAX);
        if bytes != self.counted_bytes {
            memory.try_change(self.counted_bytes, bytes)?;
            self.counted_bytes = bytes;
        }
        Ok(())
    }

    /// Before it is dropped.
    pub(super) fn uncount(&mut self, memory: &Memory) {
        memory.change(std::mem::take(&mut self.counted_bytes), 0);
    }

    /// Takes back the buffer of its input; a large one that is empty is freed.
    pub(super) fn keep_input(&mut self, mut input: Vec<u8>) {
        if input.is_empty() && input.capacity() > KEPT_BYTES_MAX {
            input = Vec::new();
        }
        self.input = input;
    }

    /// Writes an answer, followed by a value. What the socket does not take is unsent; true when everything was sent.
    pub(super) fn write(&mut self, answer: &[u8], value: Option<Rc<Large>>) -> Result<bool, ()> {
        let sent = write(&self.fd, answer, value.as_deref(), 0)?;
        if sent == answer.len() + value_bytes(value.as_deref()) {
            return Ok(true);
        }
        self.unsent.head.clear();
        self.unsent.head.extend_from_slice(&answer[sent.min(answer.len())..]);
        self.unsent.sent = sent.saturating_sub(answer.len());
        self.unsent.value = value;
        Ok(false)
    }

    /// Writes an answer behind what may be unsent, which must end with no large value: so it is with planted faults, and before a
    /// flush, as nothing is carried out behind a large value that has not left.
    pub(super) fn write_behind(&mut self, answer: Vec<u8>) -> Result<bool, ()> {
        if self.unsent.is_empty() {
            return self.write(&answer, None);
        }
        self.unsent.head.extend_from_slice(&answer);
        Ok(false)
    }

    /// Writes on; true when all has left.
    pub(super) fn flush(&mut self) -> Result<bool, ()> {
        if self.unsent.is_empty() {
            return Ok(true);
        }
        let Unsent { head, value, sent } = &mut self.unsent;
        *sent += write(&self.fd, head, value.as_deref(), *sent)?;
        if *sent < head.len() + value_bytes(value.as_deref()) {
            return Ok(false);
        }
        self.unsent = Unsent::default();
        Ok(true)
    }
}

impl Unsent {
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.value.is_none()
    }
}

fn value_bytes(value: Option<&Large>) -> usize {
    value.map_or(0, |value| value.bytes().len() + 2)
}

/// Writes what follows the first `skip` bytes of everything. The value stays in place; only the kernel copies it.
fn write(fd: &OwnedFd, head: &[u8], value: Option<&Large>, mut skip: usize) -> Result<usize, ()> {
    let Some(value) = value else { return stream::write(fd, &head[skip..]) };
    let mut slices = [IoSlice::new(&[]); 3];
    let mut count = 0;
    for part in [head, value.bytes(), b"\r\n"] {
        let skipped = skip.min(part.len());
        skip -= skipped;
        if skipped < part.len() {
            slices[count] = IoSlice::new(&part[skipped..]);
            count += 1;
        }
    }
    stream::write_vectored(fd, &slices[..count])
}
