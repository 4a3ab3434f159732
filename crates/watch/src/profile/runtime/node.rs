//! Node.js by its inspector: what keeps its event loop from running, allocations, and CPU where `perf` is not permitted.
//!
//! The inspector is open already, or is opened by the signal that Node.js has for it and closed again. It listens on loopback, and
//! it is asked only on ports that are the process's own.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use measure::{Callback, Stops};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::{Value, json};

use super::inspector::Inspector;
use super::{Asked, Seen, Window, check_owner, listening, v8};
use crate::profile::NoProfile;

/// The default port of the inspector of Node.js.
const PORT: u16 = 9229;
/// How long it may take to open or close it.
const OPENS_WITHIN: Duration = Duration::from_secs(3);
/// A process that is overloaded is slow, and a profile is some MB.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two samples of CPU, µs.
const SAMPLES_EVERY_US: u64 = 2000;
/// A sample for so many bytes, on average.
const SAMPLED_BYTES: u64 = 32 << 10;
/// From here on all connections feel a callback.
const LONG_CALLBACK_NS: u64 = 20_000_000;
/// Closes it from within, once this connection is gone: it waits for every connection.
const CLOSE: &str = "setTimeout(require('node:inspector').close, 100), 0";

/// What it runs for the hold: an object with `begin` and `end`.
const STOPS: &str = include_str!("node/stops.js");

/// What `end` of `STOPS` returns, in ms.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
    gc_ms: f64,
    gc_max_ms: f64,
    /// p99 and worst
    delay_ms: [f64; 2],
    /// from and to, readings of CLOCK_MONOTONIC, the longest first
    longest: Vec<[f64; 2]>,
    /// callbacks that took 20 ms or longer
    long: u64,
}

/// The result of a command that evaluates something to a `T`.
#[derive(Debug, Deserialize)]
struct Evaluated<T> {
    result: Returned<T>,
}

#[derive(Debug, Deserialize)]
struct Returned<T> {
    value: Option<T>,
}

/// Whether a process is one.
pub(super) fn is_one(pid: u32) -> bool {
    matches!(super::program(pid).as_str(), "node" | "nodejs")
}

/// A process whose inspector is open. Dropped, what was opened here is closed.
#[derive(Debug)]
pub(super) struct Inspected {
    pid: u32,
    port: u16,
    inspector: Option<Inspector>,
    was_opened: bool,
    asked: Asked,
    /// the object that `STOPS` is
    stops: Option<String>,
    /// numbers of the commands that end profiles
    ended: Option<u64>,
    cpu: Option<u64>,
    heap: Option<u64>,
    failed: Option<String>,
}

impl Inspected {
    /// `origin`: where the server answers its users. Errors: why its inspector cannot be had.
    pub(super) fn start(pid: u32, origin: Option<SocketAddr>, asked: Asked) -> Result<Inspected, NoProfile> {
        check_owner(pid)?;
        let failed = |said: String| NoProfile::Tool { name: "the inspector of Node.js", said };
        let before = listening::ports_of(pid);
        let own = origin.map(|origin| origin.port());
        let open = before.iter().filter(|port| Some(**port) != own).find_map(|port| {
            let inspector = Inspector::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, *port))).ok()?;
            Some((*port, inspector))
        });
        let was_opened = open.is_none();
        let (port, inspector) = match open {
            Some((port, inspector)) => (port, Ok(inspector)),
            None => {
                let port = opened(pid, &before)?;
                (port, Inspector::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
            }
        };
        // From here on what was opened is closed again.
        let mut inspected = Inspected::at(pid, port, was_opened, asked);
        inspected.inspector = Some(inspector.map_err(failed)?);
        inspected.prepare().map_err(failed)?;
        Ok(inspected)
    }

    fn at(pid: u32, port: u16, was_opened: bool, asked: Asked) -> Inspected {
        Inspected {
            pid,
            port,
            inspector: None,
            was_opened,
            asked,
            stops: None,
            ended: None,
            cpu: None,
            heap: None,
            failed: None,
        }
    }

    fn prepare(&mut self) -> Result<(), String> {
        let Some(inspector) = &mut self.inspector else { return Ok(()) };
        // Always: it names the function that held the event loop.
        inspector.call("Profiler.enable", &json!({}), PATIENCE)?;
        let interval = json!({ "interval": SAMPLES_EVERY_US });
        inspector.call("Profiler.setSamplingInterval", &interval, PATIENCE)?;
        // Before the load: of what V8 compiles from here on it keeps which functions it put into others.
        inspector.call("Profiler.start", &json!({}), PATIENCE)?;
        if self.asked.allocations {
            inspector.call("HeapProfiler.enable", &json!({}), PATIENCE)?;
        }
        let evaluate = json!({ "expression": STOPS, "includeCommandLineAPI": true });
        let stops = inspector.call("Runtime.evaluate", &evaluate, PATIENCE)?;
        self.stops = stops["result"]["objectId"].as_str().map(str::to_owned);
        Ok(())
    }

    /// The other profiles begin, of a hold of this length. That they do not is an error of their end.
    pub(super) fn hold_begins(&mut self, length: Duration) {
        if self.asked.allocations {
            let options = json!({
                "samplingInterval": SAMPLED_BYTES,
                "includeObjectsCollectedByMajorGC": true,
                "includeObjectsCollectedByMinorGC": true,
            });
            self.send("HeapProfiler.startSampling", &options);
        }
        self.call_stops(&format!("function() {{ this.begin({}) }}", length.as_millis()));
    }

    /// Profiles end; they are fetched later.
    pub(super) fn hold_ends(&mut self) {
        // First: ending a profile holds the event loop.
        self.ended = self.call_stops("function() { return this.end() }");
        if self.asked.allocations {
            self.heap = self.send("HeapProfiler.stopSampling", &json!({}));
        }
        self.cpu = self.send("Profiler.stop", &json!({}));
    }

    fn call_stops(&mut self, function: &str) -> Option<u64> {
        let call = json!({ "functionDeclaration": function, "objectId": self.stops.as_ref()?, "returnByValue": true });
        self.send("Runtime.callFunctionOn", &call)
    }

    fn send(&mut self, method: &str, params: &Value) -> Option<u64> {
        match self.inspector.as_mut()?.send(method, params) {
            Ok(id) => Some(id),
            Err(error) => {
                self.failed.get_or_insert(error);
                None
            }
        }
    }

    /// What it saw, and that the inspector stays open where it does. Errors: there is no profile.
    pub(super) fn end(mut self: Box<Self>, window: Window) -> Result<(Seen, Option<String>), NoProfile> {
        let seen = self.fetch(window);
        let note = self.close();
        if seen.is_err() && !is_one(self.pid) {
            return Err(NoProfile::Gone);
        }
        let seen = seen.map_err(|said| NoProfile::Tool { name: "the inspector of Node.js", said })?;
        Ok((seen, note))
    }

    fn fetch(&mut self, window: Window) -> Result<Seen, String> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let inspector = self.inspector.as_mut().ok_or("it was never reached")?;
        let mut seen = Seen::default();
        // In the order in which they were ended.
        let ended: Option<Evaluated<Ended>> =
            self.ended.map(|id| inspector.result(id, PATIENCE)).transpose()?;
        if self.asked.allocations {
            let id = self.heap.ok_or("the hold never ended")?;
            let heap: v8::Heap = inspector.result(id, PATIENCE)?;
            seen.allocations = Some(heap.allocations());
        }
        let cpu: v8::Cpu = inspector.result(self.cpu.ok_or("the hold never ended")?, PATIENCE)?;
        if self.asked.cpu {
            seen.cpu = Some(cpu.samples(window.monotonic_ns, 1e6 / SAMPLES_EVERY_US as f64));
        }
        seen.stops = ended.and_then(|ended| ended.result.value).map(|ended| stops(&ended, &cpu, window));
        Ok(seen)
    }

    /// Closes what was opened here; `Some`: it stays open.
    fn close(&mut self) -> Option<String> {
        let mut inspector = self.inspector.take()?;
        if self.ended.is_none()
            && let Some(object) = &self.stops
        {
            let end = json!({ "functionDeclaration": "function() { this.end() }", "objectId": object });
            let _ = inspector.send("Runtime.callFunctionOn", &end);
        }
        if !self.was_opened {
            inspector.close();
            return None;
        }
        // `require` is there for the one who inspects, whatever kind of module the program is.
        let evaluate = json!({ "expression": CLOSE, "includeCommandLineAPI": true });
        let _ = inspector.call("Runtime.evaluate", &evaluate, OPENS_WITHIN);
        inspector.close();
        let is_closed =
            within(OPENS_WITHIN, || (!listening::ports_of(self.pid).contains(&self.port)).then_some(()));
        is_closed.is_none().then(|| {
            format!(
                "the inspector of process {} stays open on 127.0.0.1:{}; restart the server to close it",
                self.pid, self.port
            )
        })
    }
}

/// As shares and ns. The callback is the longest whose function the samples in it name: a longer one was away from the CPU.
fn stops(ended: &Ended, cpu: &v8::Cpu, window: Window) -> Stops {
    let ns = |ms: f64| (ms * 1e6).max(0.0) as u64;
    let (from_ns, to_ns) = window.monotonic_ns;
    let callbacks = ended.longest.iter().map(|times| times.map(ns)).filter(|[from, to]| to > from);
    let callbacks: Vec<Callback> = callbacks
        .map(|[from, to]| Callback {
            ns: to - from,
            function: cpu.function_of_most((from, to), SAMPLES_EVERY_US * 1000),
            long: ended.long,
        })
        .collect();
    let named = callbacks.iter().find(|one| one.function.is_some() && one.ns >= LONG_CALLBACK_NS);
    Stops {
        gc_share: Some((ended.gc_ms * 1e6 / to_ns.saturating_sub(from_ns).max(1) as f64).clamp(0.0, 1.0)),
        gc_max_ns: Some(ns(ended.gc_max_ms)),
        loop_delay_ns: Some(ended.delay_ms.map(ns)),
        callback: named.or(callbacks.first()).cloned(),
        ..Stops::default()
    }
}

impl Drop for Inspected {
    fn drop(&mut self) {
        self.close();
    }
}

/// Opens it by the signal; returns its port. Errors: it does not open.
fn opened(pid: u32, before: &BTreeSet<u16>) -> Result<u16, NoProfile> {
    // Without a handler the signal would end the process.
    if !takes_signal(pid) {
        let said = format!("process {pid} does not open it when asked; start it with --inspect=127.0.0.1:0");
        return Err(NoProfile::Tool { name: "the inspector of Node.js", said });
    }
    let was_taken = listening::is_taken(pid, PORT);
    let target = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(NoProfile::Gone)?;
    kill_process(target, Signal::USR1).map_err(|_| NoProfile::Gone)?;
    let port = within(OPENS_WITHIN, || listening::ports_of(pid).difference(before).next().copied());
    port.ok_or(if was_taken {
        NoProfile::PortTaken { port: PORT, pid }
    } else {
        NoProfile::Tool { name: "the inspector of Node.js", said: format!("process {pid} did not open it") }
    })
}

/// Whether a process has a handler for SIGUSR1.
fn takes_signal(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    caught & 1 << (libc::SIGUSR1 - 1) != 0
}

/// What `look` finds in time.
fn within<T>(patience: Duration, look: impl Fn() -> Option<T>) -> Option<T> {
    let until = Instant::now() + patience;
    loop {
        let found = look();
        if found.is_some() || Instant::now() >= until {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    /// Twelve samples of 2 ms in a callback of 25 ms; a longer one has none.
    const CPU: &str = r#"{"profile":{"startTime":1000000,"samples":[2,2,2,2,2,2,2,2,2,2,2,2],
        "timeDeltas":[2000,2000,2000,2000,2000,2000,2000,2000,2000,2000,2000,2000],
        "nodes":[{"id":1,"callFrame":{"functionName":"(root)","url":"","lineNumber":-1},"children":[2]},
                 {"id":2,"callFrame":{"functionName":"render","url":"file:///srv/a.js","lineNumber":6}}]}}"#;
    const ENDED: &str = r#"{"result":{"type":"object","value":{"gcMs":50.5,"gcMaxMs":4.25,"delayMs":[1.5,23],
        "longest":[[900,990],[1000,1025],[1026,1027]],"long":3}}}"#;

    /// Answers as Node.js does, with an event before each answer; returns the commands that it got.
    fn serve(listener: TcpListener, heap: &'static str) -> Vec<String> {
        let address = listener.local_addr().unwrap();
        let (mut list, _) = listener.accept().unwrap();
        let _ = list.read(&mut [0; 1024]).unwrap();
        let body =
            format!(r#"[{{"type":"node","webSocketDebuggerUrl":"ws://localhost:{}/abc"}}]"#, address.port());
        write!(list, "HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut socket = tungstenite::accept(listener.accept().unwrap().0).unwrap();
        let mut commands = Vec::new();
        while let Ok(message) = socket.read() {
            let Ok(text) = message.to_text() else { continue };
            let Ok(command) = serde_json::from_str::<Value>(text) else { continue };
            let method = command["method"].as_str().unwrap().to_owned();
            let result = match method.as_str() {
                "HeapProfiler.stopSampling" => heap,
                "Profiler.stop" => CPU,
                "Runtime.evaluate" => r#"{"result":{"type":"object","objectId":"7"}}"#,
                "Runtime.callFunctionOn" => ENDED,
                _ => "{}",
            };
            for answer in [
                r#"{"method":"Debugger.x"}"#.to_owned(),
                format!(r#"{{"id":{},"result":{result}}}"#, command["id"]),
            ] {
                socket.send(tungstenite::Message::text(answer)).unwrap();
            }
            commands.push(method);
        }
        commands
    }

    #[test]
    fn an_inspector_is_asked_for_the_hold_and_one_that_was_open_stays_so() {
        const HEAP: &str = r#"{"profile":{"head":{"callFrame":{"functionName":"grow","url":"/a.js","lineNumber":1},
            "selfSize":64,"id":1,"children":[]},"samples":[{"nodeId":1}]}}"#;
        for (heap, expected) in
            [(HEAP, Ok("user:grow (a.js:2) 64\n")), (r#"{"profile":{"#, Err("cannot be read"))]
        {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || serve(listener, heap));
            let asked = Asked { allocations: true, ..Asked::default() };
            let mut inspected = Box::new(Inspected::at(std::process::id(), address.port(), false, asked));
            inspected.inspector = Some(Inspector::connect(address).unwrap());
            inspected.prepare().unwrap();
            inspected.hold_begins(Duration::from_secs(10));
            inspected.hold_ends();
            let seen = inspected.fetch(Window { monotonic_ns: (0, 2_000_000_000), realtime_ns: (0, 1) });
            assert_eq!(inspected.close(), None);
            let commands = server.join().unwrap();
            assert_eq!(
                commands,
                [
                    "Profiler.enable",
                    "Profiler.setSamplingInterval",
                    "Profiler.start",
                    "HeapProfiler.enable",
                    "Runtime.evaluate",
                    "HeapProfiler.startSampling",
                    "Runtime.callFunctionOn",
                    "Runtime.callFunctionOn",
                    "HeapProfiler.stopSampling",
                    "Profiler.stop",
                ]
            );
            match expected {
                Ok(folded) => {
                    let seen = seen.unwrap();
                    assert_eq!(seen.allocations.unwrap().folded(), folded);
                    let callback =
                        Callback { ns: 25_000_000, function: Some("render (a.js:7)".to_owned()), long: 3 };
                    let expected = Stops {
                        gc_share: Some(0.025_25),
                        gc_max_ns: Some(4_250_000),
                        loop_delay_ns: Some([1_500_000, 23_000_000]),
                        callback: Some(callback),
                        ..Stops::default()
                    };
                    assert_eq!(seen.stops, Some(expected));
                    assert!(seen.cpu.is_none(), "perf samples it");
                }
                Err(why) => assert!(seen.as_ref().is_err_and(|error| error.contains(why)), "{seen:?}"),
            }
        }
    }

    /// What runs in the server's process, run in one: one callback of 60 ms among short ones, and many short ones alone.
    #[test]
    fn the_longest_callback_is_told_and_ends_when_it_is_asked() {
        let long = "setTimeout(() => { const until = performance.now() + 60; while (performance.now() < until); }, 50);";
        for (planted, expected) in [(long, 60.0..1e9), ("", 0.0..60.0)] {
            let program = format!(
                "const stops = {STOPS}; stops.begin(1000);
                 const short = setInterval(() => JSON.stringify(Array(1000).fill(0)), 1); {planted}
                 setTimeout(() => {{ clearInterval(short); console.log(JSON.stringify(stops.end())); }}, 300);"
            );
            let node =
                std::process::Command::new("node").args(["--input-type=commonjs", "-e", &program]).output();
            let Ok(node) = node else {
                println!("NOT RUN: node is not on PATH");
                return;
            };
            let ended: Ended = serde_json::from_slice(&node.stdout).unwrap_or_else(|_| panic!("{node:?}"));
            let longest = ended.longest[0][1] - ended.longest[0][0];
            if planted.is_empty() && longest >= 20.0 {
                println!("NOT RUN: a machine so busy that a short callback took {longest} ms");
                return;
            }
            assert!(expected.contains(&longest), "{ended:?}");
            assert_eq!(ended.long > 0, !planted.is_empty(), "{ended:?}");
            assert!(planted.is_empty() || ended.delay_ms[1] >= 50.0, "{ended:?}");
        }
    }

    #[test]
    fn a_process_without_a_handler_is_never_signalled() {
        let mut sleeper = std::process::Command::new("sleep").arg("30").spawn().unwrap();
        let refused = opened(sleeper.id(), &BTreeSet::new());
        let still_runs = sleeper.try_wait().unwrap().is_none();
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert!(refused.is_err_and(|why| why.to_string().contains("--inspect=127.0.0.1:0")));
        assert!(still_runs);
    }
}
