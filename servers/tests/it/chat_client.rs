//! A minimal chat client: blocking, one line at a time.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use servers::chat::{self, News, Options, Report, Totals};
use servers::{ServeError, Shutdown as End};

/// How long a test waits for what must come. Long, because the machine may be busy; nothing waits in vain.
const PATIENCE: Duration = Duration::from_secs(20);

/// A chat on a thread of its own.
pub struct Chat {
    pub address: SocketAddr,
    pub metrics: Option<SocketAddr>,
    pub reports: mpsc::Receiver<Report>,
    /// What it says of the other nodes.
    pub said: mpsc::Receiver<String>,
    end: End,
    thread: JoinHandle<Result<Totals, ServeError>>,
}

impl Chat {
    /// On a free port, with two threads unless `options` want it otherwise.
    pub fn start(options: Options) -> Chat {
        let end = End::new().unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let threads = options.threads.or(Some(2));
        let options = Options { listen, threads, shutdown: Some(end.clone()), ..options };
        let (tell, told) = mpsc::channel();
        let (report, reports) = mpsc::channel();
        let (say, said) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            chat::run(options, |news| match news {
                News::Listening { address, metrics } => tell.send((address, metrics)).unwrap(),
                // The receiver may be gone.
                News::Report(one) => drop(report.send(one)),
                News::Nodes(sentence) => drop(say.send(sentence)),
            })
        });
        let (address, metrics) = told.recv_timeout(PATIENCE).expect("the chat listens");
        Chat { address, metrics, reports, said, end, thread }
    }

    /// Ends the chat and returns its books, which must be balanced.
    pub fn end(self) -> Totals {
        self.end.trigger();
        let totals = self.thread.join().unwrap().unwrap();
        assert_eq!(totals.residual(), 0, "{totals:?}");
        assert_eq!((totals.clients, totals.waiting), (0, 0));
        totals
    }

    /// Tells the chat to end and does not wait.
    pub fn tell_the_end(&self) {
        self.end.trigger();
    }
}

pub struct Talker {
    pub stream: TcpStream,
    heard: Vec<u8>,
}

impl Talker {
    /// Connected and welcomed.
    pub fn new(chat: &Chat) -> Talker {
        let mut talker = Talker::connect(chat);
        let welcome = talker.hear();
        assert!(welcome.starts_with("* welcome to lobby, "), "{welcome}");
        talker
    }

    pub fn connect(chat: &Chat) -> Talker {
        let stream = TcpStream::connect(chat.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Talker { stream, heard: Vec::new() }
    }

    /// Connected to this address and welcomed.
    pub fn at(address: SocketAddr) -> Talker {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut talker = Talker { stream, heard: Vec::new() };
        talker.hear();
        talker
    }

    /// Welcomed, with so small a receive buffer that it is soon full when nothing is read.
    pub fn with_little_room(chat: &Chat) -> Talker {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(1024).unwrap();
        socket.connect(&chat.address.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut talker = Talker { stream, heard: Vec::new() };
        talker.hear();
        talker
    }

    /// Ends `with_little_room`: otherwise what was queued would trickle in, a window of some bytes per 200 ms.
    pub fn make_room(&self) {
        socket2::SockRef::from(&self.stream).set_recv_buffer_size(1 << 20).unwrap();
    }

    pub fn say(&mut self, line: &str) {
        self.write(format!("{line}\n").as_bytes());
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next line without its end, whatever it takes; empty at the end of the stream.
    pub fn hear(&mut self) -> String {
        loop {
            if let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8(self.heard[..end].to_vec()).unwrap();
                self.heard.drain(..=end);
                return line;
            }
            if !self.read_more() {
                assert!(self.heard.is_empty(), "the stream ended within a line");
                return String::new();
            }
        }
    }

    /// All lines until one begins so, and that one.
    pub fn hear_until(&mut self, beginning: &str) -> (Vec<String>, String) {
        let mut lines = Vec::new();
        loop {
            let line = self.hear();
            assert!(!line.is_empty(), "the stream ended before {beginning:?} came");
            if line.starts_with(beginning) {
                return (lines, line);
            }
            lines.push(line);
        }
    }

    /// All lines until the end of the stream.
    pub fn hear_out(&mut self) -> Vec<String> {
        while self.read_more() {}
        let text = String::from_utf8(std::mem::take(&mut self.heard)).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// What came before the answer, and the answer's owed, delivered, dropped, waiting.
    pub fn books(&mut self) -> (Vec<String>, [u64; 4]) {
        self.say("/books");
        let (lines, answer) = self.hear_until("* books ");
        (lines, figures(&answer))
    }

    pub fn finish_sending(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    fn read_more(&mut self) -> bool {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.heard.extend_from_slice(&buffer[..count]);
                true
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => false,
            Err(error) => panic!("nothing came: {error}"),
        }
    }
}

/// The numbers of an answer: owed, delivered, dropped, waiting.
pub fn figures(answer: &str) -> [u64; 4] {
    let words: Vec<&str> = answer.split(' ').collect();
    assert_eq!(
        [words[2], words[4], words[6], words[8]],
        ["owed", "delivered", "dropped", "waiting"],
        "{answer}"
    );
    [3, 5, 7, 9].map(|i| words[i].parse().unwrap())
}

impl Talker {
    /// How many are in the room.
    pub fn hear_who(&mut self) -> u32 {
        self.say("/who");
        let (_, answer) = self.hear_until("* ");
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }
}
