//! A NATS server for one test: on a free loopback port, ended with its handle.

use std::io::Read as _;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub struct NatsServer {
    child: Child,
    pub port: u16,
}

impl NatsServer {
    /// None, and a line that says so, where it is not installed.
    pub fn start(words: &[&str]) -> Option<NatsServer> {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let server = NatsServer::start_on(port, words);
        if server.is_none() {
            eprintln!("NOT RUN: there is no nats-server (Debian: apt-get install nats-server)");
        }
        server
    }

    pub fn start_on(port: u16, words: &[&str]) -> Option<NatsServer> {
        let mut command = Command::new("nats-server");
        command.args(["-a", "127.0.0.1", "-p", &port.to_string()]).args(words);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let by = Instant::now() + Duration::from_secs(20);
        let greets = || {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
            stream.read_exact(&mut [0; 4]).ok()
        };
        while greets().is_none() {
            assert!(Instant::now() < by, "the NATS server does not start on port {port}");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(NatsServer { child, port })
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Stops the process (SIGSTOP), or lets it go on: it is there, and silent.
    pub fn signal(&self, signal: i32) {
        // SAFETY: a plain call; the process is our child and not reaped yet.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
