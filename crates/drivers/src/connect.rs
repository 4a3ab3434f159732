//! Non-blocking TCP connects from a chosen source address.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;

use socket2::{Domain, Protocol, Socket, Type};

use crate::driver::OpenError;

/// Begins a connection. On loopback it is established when this returns, since the kernel carries all three packets
/// inline.
pub fn begin(to: SocketAddr, from: Option<IpAddr>) -> Result<Socket, OpenError> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    socket.set_tcp_nodelay(true)?;
    if let Some(source) = from {
        // Without it `bind` reserves the port for every target at once, and 28,000 ports are soon exhausted.
        turn_on(&socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT)?;
        socket.bind(&SocketAddr::new(source, 0).into())?;
    }
    match socket.connect(&to.into()) {
        Ok(()) => Ok(socket),
        Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// Sends what the kernel takes of `bytes` right now; 0 when the connection does not stand yet.
pub fn send_now(socket: &Socket, bytes: &[u8]) -> Result<usize, OpenError> {
    match socket.send_with_flags(bytes, libc::MSG_NOSIGNAL) {
        Ok(count) => Ok(count),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// Turns an option of a socket on.
pub fn turn_on(socket: &Socket, level: libc::c_int, option: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option takes an int, and we pass the address and size of one that outlives the call.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
