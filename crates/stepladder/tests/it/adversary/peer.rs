//! One server-side connection that can misbehave in any way.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// An upper limit for everything, whatever the client does.
const AT_MOST: Duration = Duration::from_secs(20);

/// What the connections of one server have in common.
#[derive(Default)]
pub struct Shared {
    members: Mutex<Vec<TcpStream>>,
    pub values: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
}

pub struct Peer {
    reader: BufReader<TcpStream>,
    stream: TcpStream,
    /// of the server's connections; a climb begins with one that says nothing and one of its probe
    pub number: usize,
    pub shared: Arc<Shared>,
}

impl Peer {
    pub fn new(stream: TcpStream, number: usize, shared: Arc<Shared>) -> io::Result<Peer> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(AT_MOST))?;
        stream.set_write_timeout(Some(AT_MOST))?;
        Ok(Peer { reader: BufReader::new(stream.try_clone()?), stream, number, shared })
    }

    /// From now on it gives up a connection on which nothing comes for so long.
    pub fn waits_at_most(&mut self, time: Duration) {
        self.stream.set_read_timeout(Some(time)).expect("the socket is open");
    }

    /// Whether this is before any load.
    pub fn is_probe(&self) -> bool {
        self.number < 2
    }

    /// At which the server listens.
    pub fn port(&self) -> u16 {
        self.stream.local_addr().map_or(0, |address| address.port())
    }

    pub fn say(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// For writing concurrently, in another thread.
    pub fn writer(&self) -> io::Result<TcpStream> {
        self.stream.try_clone()
    }

    /// One byte after the other.
    pub fn say_slowly(&mut self, bytes: impl AsRef<[u8]>, gap: Duration) -> io::Result<()> {
        bytes.as_ref().iter().try_for_each(|byte| {
            thread::sleep(gap);
            self.say([*byte])
        })
    }

    /// Until the client has had enough; 16 MB a second, which no client may keep and which leaves the machine to others.
    pub fn flood(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let (begin, mut block) = (Instant::now(), bytes.as_ref().to_vec());
        while block.len() < 32 << 10 {
            block.extend_from_within(..);
        }
        while begin.elapsed() < AT_MOST {
            self.say(&block)?;
            thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Reads everything and answers nothing.
    pub fn hold(&mut self) -> io::Result<()> {
        io::copy(&mut self.reader, &mut io::sink()).map(|_| ())
    }

    /// Says this, and then nothing more.
    pub fn say_last(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.say(bytes)?;
        self.hold()
    }

    /// Reads nothing and says nothing.
    pub fn read_nothing(&mut self) -> io::Result<()> {
        thread::sleep(AT_MOST);
        Ok(())
    }

    /// Ends what it says and goes on hearing.
    pub fn half_close(&mut self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)?;
        self.hold()
    }

    /// From now on the connection ends with a reset.
    pub fn reset(&mut self) -> io::Result<()> {
        self.set(libc::SO_LINGER, &libc::linger { l_onoff: 1, l_linger: 0 });
        Ok(())
    }

    /// From now on the system takes little for this server that it has not read.
    pub fn take_little(&mut self) {
        let bytes: libc::c_int = 4096;
        self.set(libc::SO_RCVBUF, &bytes);
    }

    fn set<T>(&mut self, option: libc::c_int, value: &T) {
        // SAFETY: the descriptor is open, and the option is as long as is said.
        let status = unsafe {
            libc::setsockopt(
                self.stream.as_raw_fd(),
                libc::SOL_SOCKET,
                option,
                std::ptr::from_ref(value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        };
        assert_eq!(status, 0, "{}", io::Error::last_os_error());
    }

    pub fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    pub fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// The next line, without its end.
    pub fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.pop_if(|byte| *byte == b'\r');
        Ok(line)
    }

    /// An HTTP head, with the empty line after it.
    pub fn head(&mut self) -> io::Result<String> {
        let mut head = String::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                return Ok(head);
            }
            head += &String::from_utf8_lossy(&line);
            head.push('\n');
        }
    }

    /// Makes it a member of the room that all connections share; its place in it.
    pub fn join(&mut self) -> io::Result<usize> {
        let stream = self.stream.try_clone()?;
        let mut members = self.shared.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.push(stream);
        Ok(members.len() - 1)
    }

    /// Says it to the room: to each member as often as `copies` says, by the member's place in the room.
    pub fn tell(&mut self, bytes: &[u8], to_itself: bool, copies: impl Fn(usize) -> usize) {
        let own = self.stream.peer_addr().ok();
        let mut members = self.shared.members.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, member) in members.iter_mut().enumerate() {
            if to_itself || member.peer_addr().ok() != own {
                // A member that has left receives nothing.
                let _ = (0..copies(at)).try_for_each(|_| member.write_all(bytes));
            }
        }
    }
}
