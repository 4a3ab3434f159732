//! One connection, from its first byte to its end, on its own thread.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use servers_shared::http::request::{Front, Limits, front};
use servers_shared::http::response;
use servers_shared::thread::Common;

use crate::leak::Leak;
use crate::limit::Limit;

/// How late a thread notices the end of the server.
const REST: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };
const READ_BYTES: usize = 8 * 1024;
/// A client that takes nothing for so long is left.
const UNSENT_RESTS_MAX: u32 = 40;

/// Answers until the client ends, breaks the protocol, or the server goes down.
pub(super) fn serve(connection: &OwnedFd, limit: &Limit, leak: Leak, common: &Common) {
    let (mut input, mut output) = (Vec::new(), Vec::new());
    loop {
        match front(&input, &Limits::default()) {
            Front::Whole { request, bytes } => {
                limit.work();
                leak.request();
                let is_last = !request.keep_alive;
                output.clear();
                response::write(&mut output, 200, "text/plain", !is_last, b"ok");
                input.drain(..bytes);
                if !send(connection, &output, common) || is_last {
                    return;
                }
            }
            Front::Incomplete => {
                let mut room = [0; READ_BYTES];
                match receive(connection, &mut room, common) {
                    Some(count) if count > 0 => input.extend_from_slice(&room[..count]),
                    _ => return,
                }
            }
            Front::Broken(fault) => {
                output.clear();
                response::write(&mut output, fault.status(), "text/plain", false, b"");
                send(connection, &output, common);
                return;
            }
        }
    }
}

/// Waits for bytes; `None` when the connection has failed or the server goes down, 0 at its end.
fn receive(connection: &OwnedFd, room: &mut [u8], common: &Common) -> Option<usize> {
    while !common.going_down.load(Ordering::Acquire) {
        match rustix::io::read(connection, &mut *room) {
            Ok(count) => return Some(count),
            Err(Errno::AGAIN) => wait(connection, PollFlags::IN),
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    None
}

/// False: the connection has failed, or the client takes nothing.
fn send(connection: &OwnedFd, mut bytes: &[u8], common: &Common) -> bool {
    let mut rests = 0;
    while !bytes.is_empty() {
        match rustix::net::send(connection, bytes, rustix::net::SendFlags::NOSIGNAL) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::AGAIN) if rests < UNSENT_RESTS_MAX && !common.going_down.load(Ordering::Acquire) => {
                rests += 1;
                wait(connection, PollFlags::OUT);
            }
            Err(Errno::INTR) => {}
            Err(_) => return false,
        }
    }
    true
}

fn wait(connection: &OwnedFd, what: PollFlags) {
    let connection = connection.as_fd();
    // Whatever it says, the socket is tried again.
    let _ = poll(&mut [PollFd::new(&connection, what)], Some(&REST));
}
