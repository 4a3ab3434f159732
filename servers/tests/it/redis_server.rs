//! A Redis or Valkey server for one test: on a free loopback port, with nothing kept on disk, shut down by its handle.
//!
//! Also used by the unit tests of the service's store.

#![allow(dead_code, clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub struct RedisServer {
    child: Child,
    pub port: u16,
    directory: tempfile::TempDir,
}

impl RedisServer {
    /// None, and a line that says so, where neither server is installed.
    pub fn start() -> Option<RedisServer> {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let server = RedisServer::start_on(port);
        if server.is_none() {
            eprintln!(
                "NOT RUN: there is no redis-server and no valkey-server (Debian: apt-get install redis-server)"
            );
        }
        server
    }

    pub fn start_on(port: u16) -> Option<RedisServer> {
        let directory = tempfile::tempdir().unwrap();
        let start = |program: &str| {
            let arguments =
                ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()];
            let mut command = Command::new(program);
            command.args(arguments).arg("--dir").arg(directory.path());
            command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().ok()
        };
        let child = start("redis-server").or_else(|| start("valkey-server"))?;
        let server = RedisServer { child, port, directory };
        let by = Instant::now() + Duration::from_secs(20);
        while server.try_ask("PING").is_none_or(|answer| answer != "+PONG\r\n") {
            assert!(Instant::now() < by, "the server does not start on port {port}");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(server)
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The answer to one line, up to what one read gives.
    #[track_caller]
    pub fn ask(&self, line: &str) -> String {
        self.try_ask(line).expect("the server answers")
    }

    fn try_ask(&self, line: &str) -> Option<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
        stream.write_all(format!("{line}\r\n").as_bytes()).ok()?;
        let mut buffer = [0; 64 * 1024];
        let count = stream.read(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..count]).into_owned())
    }

    /// Stops the process (SIGSTOP), or lets it go on: it is there, and silent.
    pub fn signal(&self, signal: i32) {
        // SAFETY: a plain call; the process is our child and not reaped yet.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // It may have been killed before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
