//! TCP sockets as the kernel lists them over netlink (`NETLINK_SOCK_DIAG`): ports, states and queues, without a file of text.
//!
//! One dump of 10,000 sockets takes a few milliseconds, so the kernel filters by the local port. It lists the network namespace of
//! this process.
//! Source: linux/inet_diag.h, man 7 sock_diag. Bytes come from the kernel; lengths are checked all the same.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_DONE: u16 = 3;
const NLMSG_ERROR: u16 = 2;
const HEADER: usize = 16;
/// `struct inet_diag_msg`
const MESSAGE: usize = 72;
const INET_DIAG_REQ_BYTECODE: u16 = 1;
const BC_S_GE: u8 = 2;
const BC_S_LE: u8 = 3;

/// States of a connection, as bits of a request.
pub(crate) const ESTABLISHED: u32 = 1 << 1;
/// The other side has closed.
pub(crate) const CLOSE_WAIT: u32 = 1 << 8;
/// Of a socket that accepts.
pub(crate) const LISTEN: u32 = 1 << 10;

/// A TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Socket {
    pub local_port: u16,
    pub remote_port: u16,
    /// the other end is on this machine
    pub is_here: bool,
    /// as a bit of a request
    pub state: u32,
    /// bytes that were not read; of a listening socket connections that wait to be accepted
    pub receive_queue: u32,
    /// bytes that the other side has not acknowledged; of a listening socket the room of its accept queue
    pub send_queue: u32,
    pub inode: u32,
}

/// A netlink socket.
#[derive(Debug)]
pub(crate) struct SockDiag {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl SockDiag {
    /// Errors: the kernel or a sandbox has no such netlink family.
    pub(crate) fn open() -> io::Result<SockDiag> {
        // SAFETY: plain numbers; the descriptor is checked and owned from here on.
        let socket = unsafe {
            let fd =
                libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_SOCK_DIAG);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        let patience = libc::timeval { tv_sec: 0, tv_usec: 200_000 };
        // SAFETY: the option is a timeval of this size.
        unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVTIMEO,
                (&raw const patience).cast(),
                size_of::<libc::timeval>() as libc::socklen_t,
            );
        }
        Ok(SockDiag { socket, buffer: vec![0; 64 * 1024] })
    }

    /// All TCP sockets in these states, of both families; with a port only those on it. Errors: the kernel refuses, or does not answer
    /// within 0.2 s.
    pub(crate) fn list(&mut self, states: u32, local_port: Option<u16>) -> io::Result<Vec<Socket>> {
        let mut found = Vec::new();
        for family in [libc::AF_INET, libc::AF_INET6] {
            let request = request(family as u8, states, local_port);
            // SAFETY: the buffer is as long as is said.
            let sent =
                unsafe { libc::send(self.socket.as_raw_fd(), request.as_ptr().cast(), request.len(), 0) };
            if sent < 0 {
                return Err(io::Error::last_os_error());
            }
            loop {
                let buffer = &mut self.buffer;
                // SAFETY: the buffer is as long as is said.
                let count = unsafe {
                    libc::recv(self.socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0)
                };
                if count <= 0 {
                    return Err(io::Error::last_os_error());
                }
                if take(&buffer[..count as usize], &mut found)? {
                    break;
                }
            }
        }
        Ok(found)
    }
}

/// A request for a dump: header, `struct inet_diag_req_v2`, and a program that compares the local port.
fn request(family: u8, states: u32, local_port: Option<u16>) -> Vec<u8> {
    const FLAGS: u16 = libc::NLM_F_REQUEST as u16 | libc::NLM_F_DUMP as u16;
    let mut body = vec![family, libc::IPPROTO_TCP as u8, 0, 0];
    body.extend(states.to_ne_bytes());
    body.extend([0; 48]);
    if let Some(port) = local_port {
        // Two comparisons, each an operation and its port; a failed one jumps behind the end.
        let program = [op(BC_S_GE, 8, 20), op(0, 0, port), op(BC_S_LE, 8, 12), op(0, 0, port)];
        body.extend(((4 + 16) as u16).to_ne_bytes());
        body.extend(INET_DIAG_REQ_BYTECODE.to_ne_bytes());
        program.iter().for_each(|bytes| body.extend(bytes));
    }
    let mut request = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    request.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend(FLAGS.to_ne_bytes());
    request.extend([0; 8]);
    request.extend(body);
    request
}

/// `struct inet_diag_bc_op`
fn op(code: u8, yes: u8, no: u16) -> [u8; 4] {
    let no = no.to_ne_bytes();
    [code, yes, no[0], no[1]]
}

/// Takes the sockets of one datagram; `true` when it was the last. Errors: the kernel says that it failed, or its lengths are wrong.
pub(crate) fn take(mut bytes: &[u8], found: &mut Vec<Socket>) -> io::Result<bool> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidData, "a message of the kernel has a wrong length");
    while bytes.len() >= HEADER {
        let length = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize;
        let kind = u16::from_ne_bytes([bytes[4], bytes[5]]);
        if length < HEADER || length > bytes.len() {
            return Err(wrong());
        }
        let body = &bytes[HEADER..length];
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code = body.first_chunk::<4>().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
                return Err(io::Error::from_raw_os_error(code.checked_neg().unwrap_or(0)));
            }
            SOCK_DIAG_BY_FAMILY => found.push(socket(body).ok_or_else(wrong)?),
            _ => {}
        }
        bytes = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    }
    Ok(false)
}

fn socket(body: &[u8]) -> Option<Socket> {
    if body.len() < MESSAGE {
        return None;
    }
    let number = |at: usize| u32::from_ne_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
    Some(Socket {
        local_port: u16::from_be_bytes([body[4], body[5]]),
        remote_port: u16::from_be_bytes([body[6], body[7]]),
        // Who asks an address of its own machine has it too; of IPv4 all of 127 is this machine.
        is_here: body[8..24] == body[24..40] || (i32::from(body[0]) == libc::AF_INET && body[24] == 127),
        state: 1 << body[1].min(31),
        receive_queue: number(56),
        send_queue: number(60),
        inode: number(68),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn unread_bytes_and_connections_that_wait_are_seen_on_the_servers_side_only() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (_server, _) = listener.accept().unwrap();
        let _waits = TcpStream::connect(("127.0.0.1", port)).unwrap();
        client.write_all(b"hello").unwrap();
        let mut diag = SockDiag::open().unwrap();
        let begin = Instant::now();
        loop {
            let open = diag.list(ESTABLISHED | CLOSE_WAIT, Some(port)).unwrap();
            let listening = diag.list(LISTEN, Some(port)).unwrap();
            assert!(open.iter().chain(&listening).all(|socket| socket.local_port == port));
            assert!(open.iter().all(|socket| socket.state == ESTABLISHED));
            let unread: u32 = open.iter().map(|socket| socket.receive_queue).sum();
            let waiting: u32 = listening.iter().map(|socket| socket.receive_queue).sum();
            // The one that waits has an end at the server already.
            if (open.len(), listening.len(), unread, waiting) == (2, 1, 5, 1) {
                assert!(
                    listening[0].state == LISTEN && listening[0].send_queue >= 1 && listening[0].inode > 0
                );
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(10), "{open:?} {listening:?}");
        }
        assert!(diag.list(LISTEN, None).unwrap().iter().any(|socket| socket.local_port == port));
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused_whatever_they_say() {
        let mut whole = request(2, LISTEN, Some(80));
        assert_eq!(whole.len(), 16 + 56 + 20);
        let mut found = Vec::new();
        whole.truncate(16 + 56);
        assert!(take(&whole, &mut found).is_err(), "longer than what is there");
        for length in [0u32, 15, 16, 87, u32::MAX] {
            let mut bytes = length.to_ne_bytes().to_vec();
            bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
            bytes.extend([0; 80]);
            assert!(take(&bytes, &mut found).is_err(), "{length}");
        }
        assert!(found.is_empty() && !take(&[1, 2, 3], &mut found).unwrap());
    }
}
