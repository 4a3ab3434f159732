//! Process-wide faults. Each server here has its own process: this program, started again.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use servers::null::{self, Options, Protocol};

use super::{PATIENCE, faults, wait_for};

const FAULT: &str = "STEPLADDER_TEST_FAULT";
const SERVER: &str = "faults::process::the_server_that_the_other_tests_start";

#[test]
#[ignore = "runs until it is killed; the other tests start it"]
fn the_server_that_the_other_tests_start() {
    let fault = std::env::var(FAULT).expect("the other tests say which fault");
    let listen = "127.0.0.1:0".parse().unwrap();
    let options = Options { listen, protocol: Protocol::Lines, threads: Some(1), ..Options::default() };
    null::run(Options { faults: faults(&[&fault]), ..options }, |address| println!("listening {address}"))
        .unwrap();
}

/// Ends when dropped, also when it is stopped.
struct Process {
    child: Child,
    client: TcpStream,
}

impl Process {
    /// With its first client connected, so that the fault's time runs.
    fn start(fault: &str) -> Process {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([SERVER, "--exact", "--ignored", "--nocapture"])
            .env(FAULT, fault)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let address: SocketAddr = loop {
            let mut line = String::new();
            assert!(out.read_line(&mut line).unwrap() > 0, "the server listens");
            if let Some((_, address)) = line.trim().split_once("listening ") {
                break address.parse().unwrap();
            }
        };
        let client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        Process { child, client }
    }

    fn echoes(&mut self) {
        self.client.write_all(b"hello\n").unwrap();
        let mut heard = [0; 6];
        self.client.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"hello\n");
    }

    /// T: stopped.
    fn state(&self) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // The preceding name may contain anything.
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }

    fn resident_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    /// Processes that it has started and not reaped.
    fn has_children(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        tasks.flatten().any(|task| {
            // A thread may end in between.
            std::fs::read_to_string(task.path().join("children")).is_ok_and(|ids| !ids.trim().is_empty())
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_hanging_process_is_stopped_for_good() {
    let mut process = Process::start("hang@300ms");
    process.echoes();
    wait_for("the stop", || (process.state() == 'T').then_some(()));
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(process.state(), 'T');
}

#[test]
fn a_frozen_process_goes_on_answers_what_came_meanwhile_and_reaps_what_woke_it() {
    let mut process = Process::start("freeze@300ms:1s");
    process.echoes();
    wait_for("the stop", || (process.state() == 'T').then_some(()));
    process.echoes();
    assert_ne!(process.state(), 'T');
    wait_for("the reaping", || (!process.has_children()).then_some(()));
}

#[test]
fn an_exit_has_its_own_code_and_says_that_it_was_planted() {
    let mut process = Process::start("exit@200ms");
    let status = process.child.wait().unwrap();
    let mut said = String::new();
    process.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((status.code(), said.as_str()), (Some(7), "stepladder serve: planted fault: exit\n"));
}

#[test]
fn a_leak_takes_memory_second_by_second_and_the_server_serves_on() {
    let mut process = Process::start("leak:50MB");
    let before_kb = process.resident_kb();
    wait_for("a leak of 40 MB", || (process.resident_kb() >= before_kb + 40_000).then_some(()));
    process.echoes();
}
