//! A server in its own process, so that its descriptors and memory can be measured: this program, started again.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

/// Ends when dropped.
pub struct Process {
    pub address: SocketAddr,
    child: Child,
    /// Held, so that what the server prints has somewhere to go.
    _out: BufReader<ChildStdout>,
}

impl Process {
    /// Starts the ignored test of this name, which prints `listening ADDRESS`, with these variables.
    pub fn start(test: &str, variables: &[(&str, &str)]) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([test, "--exact", "--ignored", "--nocapture"]).stdout(Stdio::piped());
        let mut child = command.envs(variables.iter().copied()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert!(out.read_line(&mut line).unwrap() > 0, "the server listens");
            if let Some((_, address)) = line.trim().split_once("listening ") {
                break address.parse().unwrap();
            }
        };
        Process { address, child, _out: out }
    }

    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
    }

    /// Over all threads: they may have tables of their own.
    pub fn descriptors(&self) -> usize {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let count =
            |task: std::fs::DirEntry| std::fs::read_dir(task.path().join("fd")).map_or(0, Iterator::count);
        tasks.flatten().map(count).sum()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
