//! Real members as child processes: started, killed, and never left behind.
//!
//! Where the jar or Java is absent a test says NOT RUN and passes; `inflight/hazelcast/fetch-member` downloads the jar.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

/// A member may take so long on a busy machine.
const START_LIMIT: Duration = Duration::from_secs(120);

/// The member's jar; `None`, and a line that says so, where the tests cannot run.
pub fn jar(test: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace's root");
    let jar = std::env::var_os("HAZELCAST_JAR")
        .map_or_else(|| root.join("target/hazelcast/hazelcast-5.5.0.jar"), PathBuf::from);
    let has_java =
        || Command::new("java").arg("-version").stderr(Stdio::null()).status().is_ok_and(|s| s.success());
    if jar.is_file() && has_java() {
        return Some(jar);
    }
    println!("NOT RUN: {test}: no Hazelcast member; run inflight/hazelcast/fetch-member and install Java 17");
    None
}

/// Ports that were free a moment ago.
pub fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}

const INTERFACES: &str = r#"<interfaces enabled="true"><interface>127.0.0.1</interface></interfaces>"#;

/// How members find each other at these ports.
fn join(ports: &[u16]) -> String {
    let members: String = ports.iter().map(|port| format!("<member>127.0.0.1:{port}</member>")).collect();
    format!(
        r#"<join>
      <auto-detection enabled="false"/>
      <multicast enabled="false"/>
      <tcp-ip enabled="{}"><member-list>{members}</member-list></tcp-ip>
    </join>"#,
        ports.len() > 1,
    )
}

/// A running member.
pub struct Member {
    child: Child,
    pub port: u16,
    config: PathBuf,
}

impl Member {
    /// Starts a member on the first of `ports`, in one cluster with members on the others, and waits until it is ready.
    pub fn start(jar: &Path, cluster: &str, ports: &[u16]) -> Self {
        Member::launch(jar, cluster, ports).wait()
    }

    /// Starts a member without waiting.
    pub fn launch(jar: &Path, cluster: &str, ports: &[u16]) -> Starting {
        let (port, join) = (ports[0], join(ports));
        let network =
            format!(r#"<network><port auto-increment="false">{port}</port>{join}{INTERFACES}</network>"#);
        Member::launch_with(jar, cluster, port, &network)
    }

    /// Starts a member that reports `public` as its own address, like one behind a proxy, without waiting. Clients
    /// reach it at `client_port`, other members at the first of `ports`.
    #[allow(dead_code, reason = "only the tests of stepladder have proxies")]
    pub fn launch_behind(
        jar: &Path,
        cluster: &str,
        ports: &[u16],
        client_port: u16,
        public: SocketAddr,
    ) -> Starting {
        let (port, join) = (ports[0], join(ports));
        let network = format!(
            r#"<advanced-network enabled="true">
    {join}
    <member-server-socket-endpoint-config><port auto-increment="false">{port}</port>{INTERFACES}</member-server-socket-endpoint-config>
    <client-server-socket-endpoint-config>
      <port auto-increment="false">{client_port}</port><public-address>{public}</public-address>{INTERFACES}
    </client-server-socket-endpoint-config>
  </advanced-network>"#
        );
        Member::launch_with(jar, cluster, client_port, &network)
    }

    /// `port` is where clients reach it, `network` the part of its configuration with that name.
    fn launch_with(jar: &Path, cluster: &str, port: u16, network: &str) -> Starting {
        let text = format!(
            r#"<hazelcast xmlns="http://www.hazelcast.com/schema/config">
  <cluster-name>{cluster}</cluster-name>
  {network}
</hazelcast>"#
        );
        let config = std::env::temp_dir().join(format!("hazelcast-test-{}-{port}.xml", std::process::id()));
        std::fs::write(&config, text).expect("a temporary file");
        let mut command = Command::new("java");
        command
            .args(["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"])
            .args(["-Dhazelcast.phone.home.enabled=false", "-Dhazelcast.socket.bind.any=false"])
            .args(["-Dhazelcast.local.localAddress=127.0.0.1", "-Dhazelcast.wait.seconds.before.join=1"])
            .arg(format!("-Dhazelcast.config={}", config.display()))
            .arg("-cp")
            .arg(jar)
            .arg("com.hazelcast.core.server.HazelcastMemberStarter")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        // SAFETY: prctl is async-signal-safe and touches no memory.
        unsafe {
            // The member must not outlive the tests, even when they are killed.
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            });
        }
        let child = command.spawn().expect("java starts");
        Starting { member: Member { child, port, config } }
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Stops it at any point; its connections stay open. `resume` lets it continue. Returns when each of its threads
    /// has stopped.
    pub fn suspend(&self) {
        self.signal(libc::SIGSTOP);
        let tasks = format!("/proc/{}/task", self.child.id());
        let is_running = |task: std::io::Result<std::fs::DirEntry>| {
            let stat =
                task.and_then(|task| std::fs::read_to_string(task.path().join("stat"))).unwrap_or_default();
            // The state follows the name, which is in brackets and may itself contain some.
            stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['T', 't']))
        };
        while std::fs::read_dir(&tasks).expect("its threads").any(is_running) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the process is our child and has not been waited for, so that its id is its own.
        let sent = unsafe { libc::kill(self.child.id() as i32, signal) };
        assert_eq!(sent, 0);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_file(&self.config);
    }
}

/// A member that may not be ready yet.
pub struct Starting {
    member: Member,
}

impl Starting {
    pub fn wait(mut self) -> Member {
        let log = self.member.child.stderr.take().expect("piped");
        let (sender, lines) = mpsc::channel();
        // Reads to the end, or the member would block on a full pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(log).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let started = Instant::now();
        let mut log = String::new();
        while let Ok(line) = lines.recv_timeout(START_LIMIT.saturating_sub(started.elapsed())) {
            if line.contains("is STARTED") {
                return self.member;
            }
            log.push_str(&line);
            log.push('\n');
        }
        panic!("the member on port {} did not start:\n{log}", self.member.port);
    }
}

/// One member for all tests that only need a healthy one, started by the first of them.
pub fn shared(test: &str) -> Option<String> {
    static SHARED: OnceLock<Mutex<mpsc::Sender<mpsc::Sender<String>>>> = OnceLock::new();
    let jar = jar(test)?;
    let keeper = SHARED.get_or_init(|| {
        let (ask, asked) = mpsc::channel::<mpsc::Sender<String>>();
        // The kernel ends a member with the thread that started it, so that must be one that outlives each test.
        std::thread::spawn(move || {
            let [port] = free_ports();
            let member = Member::start(&jar, "dev", &[port]);
            while let Ok(answer) = asked.recv() {
                let _ = answer.send(member.address());
            }
        });
        Mutex::new(ask)
    });
    let (answer, answered) = mpsc::channel();
    keeper.lock().expect("no test panics with it").send(answer).expect("the shared member started");
    Some(answered.recv().expect("the shared member started"))
}
