//! One listening socket, shared by all threads of a server.
//!
//! Every accepted socket inherits its options (no delay, keep-alive, buffer sizes) from the listener, which saves four
//! system calls per connection. Keep-alive and the user timeout reap half-open peers by themselves: 30 s of silence,
//! then three probes; 30 s for unacknowledged bytes.
//! Each thread has its own descriptor for the same socket, by the same number (see `thread_table`).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{SocketFlags, acceptfrom_with};
use socket2::{Domain, Protocol, Socket, TcpKeepalive, Type};

use crate::fault::Faults;
use crate::{clock, stream};

/// Asked for, and cut down by the kernel to net.core.somaxconn.
const BACKLOG: i32 = 65_535;

/// A slow reader can hold this much kernel memory, not the default's 4 MB.
const SEND_BUFFER_BYTES: usize = 64 * 1024;

/// A socket that accepts, with its planted faults.
pub struct Listener {
    socket: Socket,
    faults: Option<Arc<Faults>>,
}

/// Why no connection was taken.
#[derive(Debug, PartialEq, Eq)]
pub enum NotAccepted {
    /// No connection is waiting.
    Nobody,
    /// This one failed before it was taken, or a planted fault has reset it; the next may be fine.
    Failed,
    /// Descriptors or memory have run out: back off, or the loop would spin on the same connection.
    Exhausted,
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// When a connection is given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// At once: the client may want to listen and never speak.
    Connected,
    /// With its first bytes, in the order of these.
    FirstBytes,
}

impl Listener {
    /// Errors: the address is in use or not of this machine.
    pub fn bind(address: SocketAddr, readiness: Readiness) -> io::Result<Listener> {
        let socket =
            Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
        socket.set_tcp_keepalive(
            &TcpKeepalive::new()
                .with_time(Duration::from_secs(30))
                .with_interval(Duration::from_secs(5))
                .with_retries(3),
        )?;
        socket.set_tcp_user_timeout(Some(Duration::from_secs(30)))?;
        if readiness == Readiness::FirstBytes {
            defer_accept(&socket)?;
        }
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(Listener { socket, faults: None })
    }

    /// Begins the time of these faults with the first connection, and resets connections when they say so.
    pub fn with_faults(self, faults: Option<Arc<Faults>>) -> Listener {
        Listener { faults, ..self }
    }

    /// The address it is bound to.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()?.as_socket().ok_or_else(|| io::Error::other("not an internet address"))
    }

    /// How much of what is sent the kernel holds for a connection that is taken from now on, instead of
    /// `SEND_BUFFER_BYTES`. The kernel cuts it down to net.core.wmem_max.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        self.socket.set_send_buffer_size(bytes)
    }

    /// Its descriptor, to keep it in a thread's own table.
    pub fn raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Refuses new connections from here on, on every thread's descriptor at once.
    pub fn refuse(&self) {
        // The socket may be closed already; then it refuses connections anyway.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    /// Takes the oldest waiting connection, non-blocking, on the calling thread's table.
    pub fn accept(&self) -> Result<(OwnedFd, SocketAddr), NotAccepted> {
        let accepted = acceptfrom_with(&self.socket, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC);
        let (fd, peer) = accepted.map_err(|error| match error {
            Errno::AGAIN | Errno::INVAL | Errno::BADF => NotAccepted::Nobody,
            Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM => NotAccepted::Exhausted,
            _ => NotAccepted::Failed,
        })?;
        if self.faults.as_ref().is_some_and(|faults| faults.refuse_connection(clock::now_ns())) {
            stream::reset_on_close(&fd);
            return Err(NotAccepted::Failed);
        }
        // The peer of an internet socket has an internet address.
        let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok()).ok_or(NotAccepted::Failed)?;
        Ok((fd, peer))
    }
}

/// Connections are given out when their first bytes are there, in the order of these.
///
/// Without this, 2 to 5 % of the clients that write right after connecting were taken in the microseconds
/// between, and those behind them, whose request was there, overtook them. Silent clients are given out after
/// about a second, so that the handshake's timeout cuts them, too.
fn defer_accept(socket: &Socket) -> io::Result<()> {
    let seconds: libc::c_int = 1;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    let value = (&raw const seconds).cast();
    // SAFETY: `seconds` is an int of the length that is said.
    match unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, value, length)
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpStream;

    #[test]
    fn accepts_name_their_peer_and_come_in_the_order_of_their_first_bytes() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Readiness::FirstBytes).unwrap();
        let address = listener.address().unwrap();
        let mut clients: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(address).unwrap()).collect();
        assert_eq!(listener.accept().unwrap_err(), NotAccepted::Nobody);
        clients.rotate_left(2);
        clients.iter_mut().for_each(|client| client.write_all(b"x").unwrap());
        for client in &clients {
            let (_, peer) = listener.accept().unwrap();
            assert_eq!(peer, client.local_addr().unwrap());
        }
        assert_eq!(listener.accept().unwrap_err(), NotAccepted::Nobody);
    }

    #[test]
    fn a_client_that_says_nothing_is_given_out_where_it_may_listen() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Readiness::Connected).unwrap();
        let client = TcpStream::connect(listener.address().unwrap()).unwrap();
        let (_, peer) = listener.accept().unwrap();
        assert_eq!(peer, client.local_addr().unwrap());
    }

    #[test]
    fn a_refusing_listener_takes_nobody() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Readiness::FirstBytes).unwrap();
        let address = listener.address().unwrap();
        listener.refuse();
        assert!(TcpStream::connect(address).is_err());
        assert_eq!(listener.accept().unwrap_err(), NotAccepted::Nobody);
    }
}
