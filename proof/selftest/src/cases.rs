//! The table of cases: what is planted, and what must and must never come of it.
//!
//! Times of faults count from the server's first connection, where the ramp begins. It lasts 0.1 s, the settle time 1 s,
//! and the hold goes from 2 s to 10 s.

use std::path::Path;

use ladder::Verdict;
use ladder::Verdict::{Fail, Invalid, Pass};

use crate::outcome::{Growth, Outcome};

/// The name of the program beside the climb, as verdicts quote it; the kernel keeps 15 bytes.
pub const HOG_NAME: &str = "selftest-hog";
/// How a server says that it cannot put itself under a CPU quota; a test keeps it equal to the servers' own words.
pub const NO_QUOTA: &str = "the fault throttled cannot be planted here: no control group can be made";

/// A reference server, and the load that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// 20 games, 40 players, 280 shots per second
    Arena,
    /// 60 chatters, 4,700 deliveries per second
    Chat,
    /// 5 requesters that each wait for their answer
    PollLoop,
    /// 2,000 requests per second over 2,000 members
    Leaderboard,
    /// 2,000 operations per second on 200 keys
    Grid,
    /// HTTP, two loads, the upper one of which is beyond the planted limit
    Limited,
}

impl Subject {
    /// As after `climb`.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Arena => "arena",
            Subject::Chat => "chat",
            Subject::PollLoop => "poll-loop",
            Subject::Leaderboard => "leaderboard",
            Subject::Grid => "grid",
            Subject::Limited => "limited",
        }
    }

    fn load(self) -> &'static [&'static str] {
        match self {
            Subject::Arena => &["--rungs", "20"],
            // A p99 needs 10,000 deliveries, also when half of the seconds were disturbed.
            Subject::Chat => &["--rungs", "60"],
            Subject::PollLoop => &[
                "--requesters",
                "5",
                "--services",
                "root",
                "--views",
                "foreground",
                "--priorities",
                "normal",
            ],
            // A p99 needs 10,000 responses, also when some of the seconds were disturbed.
            Subject::Leaderboard => &["--rate", "2000", "--members", "2000"],
            Subject::Grid => &["--rate", "2000", "--keys", "uniform:200"],
            Subject::Limited => &["--timeout", "3s"],
        }
    }
}

/// What is done to the machine meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// nothing
    Quiet,
    /// a program of ours uses one core
    Hog,
    /// the climbing process is stopped for 60 ms of every 120 ms of the hold; the server is not
    Throttled,
}

impl Machine {
    /// For programs.
    pub fn name(self) -> &'static str {
        match self {
            Machine::Quiet => "as it is",
            Machine::Hog => "a busy program beside it",
            Machine::Throttled => "a throttled generator",
        }
    }
}

/// With which options a case is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// always, also with `--quick`
    Quick,
    /// without `--quick`
    Else,
    /// with `--long`
    Long,
}

/// One climb and what must come of it.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// the server
    pub subject: Subject,
    /// further options of the climb
    pub arguments: &'static [&'static str],
    /// each as after `--fault`; none: a healthy server
    pub faults: &'static [&'static str],
    /// what is done to the machine
    pub machine: Machine,
    /// what comes on a machine that is not overloaded, one of these
    pub expected: &'static [Outcome],
    /// what is wrong under any condition
    pub never: &'static [Verdict],
    /// further options of the server; `{folder}` stands for a folder that holds its keys (`keys`) and takes its data
    pub server: &'static [&'static str],
    /// with which options it is run
    pub when: When,
    /// words by which the server says that this machine does not permit it; empty: it always does
    pub needs: &'static str,
}

impl Case {
    /// A server without a fault: it may be undecided on a bad machine, but it never fails.
    const fn healthy(subject: Subject) -> Case {
        Case {
            subject,
            arguments: &[],
            faults: &[],
            machine: Machine::Quiet,
            expected: PASSES,
            never: &[Fail, Invalid],
            server: &[],
            when: When::Else,
            needs: "",
        }
    }

    /// A server with a fault that must be seen.
    const fn planted(
        subject: Subject,
        faults: &'static [&'static str],
        expected: &'static [Outcome],
    ) -> Case {
        Case { faults, expected, never: &[Pass], ..Case::healthy(subject) }
    }

    const fn with(self, arguments: &'static [&'static str]) -> Case {
        Case { arguments, ..self }
    }

    const fn served_with(self, server: &'static [&'static str]) -> Case {
        Case { server, ..self }
    }

    const fn on(self, machine: Machine) -> Case {
        Case { machine, ..self }
    }

    const fn expecting(self, expected: &'static [Outcome]) -> Case {
        Case { expected, ..self }
    }

    const fn never(self, never: &'static [Verdict]) -> Case {
        Case { never, ..self }
    }

    const fn quick(self) -> Case {
        Case { when: When::Quick, ..self }
    }

    /// Held for five minutes, which is what trends need.
    const fn long(self) -> Case {
        Case { when: When::Long, ..self }
    }

    /// Length of the hold, s.
    pub fn hold_s(&self) -> u64 {
        if self.when == When::Long { 300 } else { 8 }
    }

    const fn where_permitted(self) -> Case {
        Case { needs: NO_QUOTA, ..self }
    }

    /// What is planted, with the options that matter: `hang@6s`, `healthy, a throttled generator`.
    pub fn what(&self) -> String {
        let mut parts: Vec<String> = self.faults.iter().map(|fault| (*fault).to_owned()).collect();
        if parts.is_empty() {
            parts.push("healthy".to_owned());
        }
        let options = self.arguments.iter().filter(|word| **word != "--objective");
        let options = options.copied().collect::<Vec<_>>().join(" ");
        parts.extend((!options.is_empty()).then_some(options));
        parts.extend((self.machine != Machine::Quiet).then(|| self.machine.name().to_owned()));
        parts.join(", ")
    }

    /// The answer to "why not more" is what is compared.
    pub fn is_about_causes(&self) -> bool {
        self.subject == Subject::Limited && self.when != When::Long
    }

    /// What `--only` looks into.
    pub fn line(&self) -> String {
        let causes = match (self.subject, self.when) {
            (Subject::Limited, When::Long) => " trends",
            (Subject::Limited, _) => " causes",
            _ => "",
        };
        format!("{} {}{causes}", self.subject.name(), self.what())
    }

    /// `FAIL (ticks.silence) or INCONCLUSIVE`.
    pub fn expected_text(&self) -> String {
        self.expected.iter().map(Outcome::text).collect::<Vec<_>>().join(" or ")
    }

    /// The words behind `climb`, without those that say where the results go.
    fn words(&self) -> Vec<&'static str> {
        let mut words = vec![self.subject.name()];
        words.extend(self.subject.load());
        let hold = if self.when == When::Long { "300s" } else { "8s" };
        words.extend(["--hold", hold, "--settle", "1s", "--seed", "7", "--no-calibration"]);
        words.extend(self.arguments);
        words
    }

    fn server_words(&self, folder: &str) -> Vec<String> {
        let faults = self.faults.iter().flat_map(|fault| ["--fault", fault]);
        let options = self.server.iter().map(|word| word.replace("{folder}", folder));
        faults.map(str::to_owned).chain(options).collect()
    }

    /// The words behind `climb`; `results` and `store` say where its results go.
    pub fn climb_arguments(&self, results: &Path, store: &Path) -> Vec<String> {
        let mut words: Vec<String> = self.words().into_iter().map(str::to_owned).collect();
        for (name, path) in [("--json", results), ("--store", store)] {
            words.extend([name.to_owned(), path.display().to_string()]);
        }
        words.push("--".to_owned());
        let folder = store.parent().unwrap_or(Path::new("."));
        words.extend(self.server_words(&folder.display().to_string()));
        words
    }

    /// A command that repeats the climb by hand.
    pub fn command(&self) -> String {
        let mut words = vec!["stepladder".to_owned(), "climb".to_owned()];
        words.extend(self.words().into_iter().map(str::to_owned));
        let server = self.server_words(".");
        if !server.is_empty() {
            words.push("--".to_owned());
            words.extend(server);
        }
        let quoted =
            |word: String| if word.contains([' ', '<', '>', '$']) { format!("'{word}'") } else { word };
        words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
    }
}

use Machine::{Hog, Throttled};
use Subject::{Arena, Chat, Grid, Leaderboard, Limited, PollLoop};

/// Late by less than the arena allows, more than this.
const STRICT_TICKS: &[&str] = &["--objective", "ticks.late_share < 5%"];
/// For the few starts of games, and for the few requests that a frozen server keeps waiting.
const RESPONSE_MAX: &[&str] = &["--objective", "response.max < 150ms"];
const WEBSOCKET: &[&str] = &["--protocol=websocket"];
const GRPC: &[&str] = &["--protocol=grpc"];
const NO_KEEP_ALIVE: &[&str] = &["--no-keep-alive"];
const RESPONSE_P90: &[&str] = &["--objective", "response.p90 < 100ms"];
const LITTLE_MEMORY: &[&str] = &["--objective", "subject.rss_bytes < 100MB"];
/// Read only, so that what was put must be gone after 2 s.
const WITH_EXPIRY: &[&str] = &["--ttl", "2s"];
const MIXED: &[&str] = &["--op", "9:1"];
const SNAPSHOTS: &[&str] = &["--snapshots", "100%"];

const STOP: &[&str] = &["--stop-at", "7s"];
const STOP_SOON: &[&str] = &["--stop-at", "7s", "--grace", "1s"];
const KEPT: &[&str] = &["--data", "{folder}/data"];
/// The secret's variable is set for the climb, and the server's file holds the same.
const CHEATED: &[&str] = &["--key", "selftest=${STEPLADDER_SELFTEST_KEY}", "--cheaters", "20%"];
const CHEATED_WEBSOCKET: &[&str] =
    &["--key", "selftest=${STEPLADDER_SELFTEST_KEY}", "--cheaters", "20%", "--protocol=websocket"];
const CHEATED_GRPC: &[&str] =
    &["--key", "selftest=${STEPLADDER_SELFTEST_KEY}", "--cheaters", "20%", "--protocol=grpc"];
const SIGNED: &[&str] = &["--keys", "{folder}/keys"];

/// A load that holds and one that is twice what the limit allows, or more: only that is told from a slow machine.
const FOR_CPU: &[&str] = &["--rate", "100,2000", "--objective", "response.p90 < 250ms"];
const FOR_LOCK: &[&str] = &["--rate", "50,600", "--objective", "response.p90 < 250ms"];
const FOR_PAUSE: &[&str] = &["--rate", "40,300", "--objective", "response.p90 < 50ms"];
const FOR_DISK: &[&str] = &["--rate", "10,300", "--objective", "response.p90 < 250ms"];
const FOR_QUOTA: &[&str] = &["--rate", "40,400", "--objective", "response.p90 < 250ms"];
/// Many connections that end: 3,000 of them leak 30 MB.
const FOR_LEAKS: &[&str] =
    &["--rate", "10", "--no-keep-alive", "--arrivals", "even", "--objective", "response.p90 < 500ms"];
const FOR_ACCEPT: &[&str] =
    &["--rate", "8,80", "--no-keep-alive", "--arrivals", "even", "--objective", "response.p90 < 500ms"];
const FOR_CONNECTIONS: &[&str] = &["--requesters", "20,60", "--think", "200ms", "--objective", "errors == 0"];
const FOR_DESCRIPTORS: &[&str] =
    &["--requesters", "20,100", "--think", "200ms", "--objective", "errors == 0"];

const PASSES: &[Outcome] = &[Outcome::pass()];
const SILENT: &[Outcome] = &[Outcome::fail("ticks.silence")];
const NOBODY_IN: &[Outcome] = &[Outcome::inconclusive("nobody in")];
/// Some may come in before it.
const HUNG_AT_ONCE: &[Outcome] = &[Outcome::fail("connections.open_min"), Outcome::inconclusive("nobody in")];
const BROKEN: &[Outcome] = &[Outcome::fail("connections.broken"), Outcome::fail("connections.open_min")];
const NO_LINES: &[Outcome] = &[
    Outcome::fail("deliveries.silence"),
    Outcome::fail("deliveries.lost"),
    Outcome::fail("deliveries.latency.p99"),
];
const NO_WELCOME: &[Outcome] = &[
    Outcome::fail("clients.admitted"),
    Outcome::inconclusive("nobody in"),
    Outcome::fail("connections.open_min"),
    Outcome::fail("deliveries.silence"),
    Outcome::fail("deliveries.lost"),
    Outcome::fail("deliveries.latency.p99"),
];
const WRONG_LINES: &[Outcome] = &[Outcome::fail("wrong line"), Outcome::fail("deliveries.unknown_messages")];
/// Ranks that were told with the scores of lost updates are wrong too.
const WRONG_SCORE: &[Outcome] =
    &[Outcome::fail("wrong score"), Outcome::fail("wrong rank"), Outcome::fail("audit")];
const EXITED: &[Outcome] = &[Outcome::fail("server exited")];
const NO_REPLY: &[Outcome] = &[Outcome::fail("stopped replying")];
const LATE_TICKS: &[Outcome] = &[Outcome::fail("ticks.late_share")];
const LATE_LINES: &[Outcome] = &[Outcome::fail("deliveries.latency.p99")];
const ERRORS: &[Outcome] = &[Outcome::fail("errors")];
const RESIDUAL: &[Outcome] = &[Outcome::invalid("deliveries.residual")];
const TWICE: &[Outcome] = &[Outcome::fail("deliveries.duplicated")];
const LATE_RESPONSES: &[Outcome] = &[Outcome::fail("response.p99")];
const WRONG_VALUES: &[Outcome] = &[Outcome::fail("wrong value")];
const NO_VALUES: &[Outcome] = &[Outcome::fail("value not found")];
const STALE_VALUES: &[Outcome] = &[Outcome::fail("stale value")];
/// Of a quick disk a request costs CPU rather than a wait, so that it may only be suspected, at last beside a lock.
const AT_THE_DISK: &[Outcome] =
    &[Outcome::caused("disk"), Outcome::caused("suspected disk"), Outcome::caused("suspected lock")];
const NO_LEAK: &[Outcome] = &[Outcome::growing(&[])];
/// With what the allocator adds to 10,000 bytes, and the width of a slope.
const BOTH_LEAK: &[Outcome] = &[Outcome::growing(&[
    Growth { figure: "subject.fds", per_closed: (0.95, 1.05) },
    Growth { figure: "subject.rss_bytes", per_closed: (9_500.0, 10_500.0) },
])];
/// An operation gets the answer to another one, from then on or once.
const UNPAIRED: &[Outcome] = &[
    Outcome::fail("reply of another kind"),
    Outcome::fail("wrong value"),
    Outcome::fail("stale value"),
    Outcome::fail("errors"),
];
/// The protocol is broken by an answer to nothing, or each operation gets the answer to the one before.
const BROKEN_OR_UNPAIRED: &[Outcome] = &[
    Outcome::fail("reply of another kind"),
    Outcome::fail("wrong value"),
    Outcome::fail("stale value"),
    Outcome::fail("connections.broken"),
    Outcome::fail("errors"),
];
/// A rung beside a busy program, of a server that is healthy.
const IN_SPITE: &[Outcome] =
    &[Outcome::pass(), Outcome::inconclusive(HOG_NAME), Outcome::generator_limited("")];
/// Snapshots that a stopped client reads late contradict the server's log; that accuses neither.
const LIMITED: &[Outcome] =
    &[Outcome::generator_limited("send lag"), Outcome::inconclusive("inconsistent"), Outcome::pass()];

/// Every case, in the order in which they are run.
pub const CASES: &[Case] = &[
    Case::healthy(Arena).quick(),
    Case::healthy(Chat).quick(),
    Case::healthy(PollLoop).quick(),
    Case::planted(Arena, &["hang@0s"], HUNG_AT_ONCE),
    Case::planted(Arena, &["hang@1s"], SILENT),
    Case::planted(Arena, &["hang@3s"], SILENT),
    Case::planted(Arena, &["hang@6s"], SILENT).quick(),
    Case::planted(Arena, &["hang@9s"], SILENT),
    Case::planted(Arena, &["freeze@5s:1s"], PASSES).never(&[Invalid]),
    Case::planted(Arena, &["freeze@5s:1s"], LATE_TICKS).with(STRICT_TICKS),
    Case::planted(Arena, &["exit@6s"], EXITED).quick(),
    Case::planted(Arena, &["drop-all@5s"], BROKEN),
    Case::planted(Arena, &["drop-all@5s", "refuse@5s"], BROKEN),
    Case::planted(Arena, &["refuse@0s"], NOBODY_IN),
    // Nobody new arrives in the hold, so nothing is refused.
    Case::planted(Arena, &["refuse@5s"], PASSES).never(&[Fail, Invalid]),
    // Games of about a second, so that some end also where the machine is slow.
    Case::planted(Arena, &["wrong-answers:10%"], &[Outcome::fail("wrong winner")])
        .served_with(&["--bullet-speed", "1500"])
        .quick(),
    Case::planted(Arena, &["late-answers:400ms"], &[Outcome::fail("response.max")]).with(RESPONSE_MAX),
    Case::planted(Arena, &["stop-ticks@5s"], SILENT),
    Case::planted(Arena, &["stop-answers@5s"], &[Outcome::fail("client_ticks.silence")]).with(SNAPSHOTS),
    Case::planted(Arena, &["leak:30MB"], &[Outcome::fail("subject.rss_bytes")]).with(LITTLE_MEMORY),
    Case::planted(Arena, &["collapse@5s:300ms"], LATE_TICKS),
    Case::planted(Arena, &["late-ticks:40%"], LATE_TICKS).quick(),
    Case::planted(Arena, &["late-ticks:1%"], PASSES).never(&[Fail, Invalid]),
    Case::planted(Arena, &["lie:40%"], &[Outcome::inconclusive("inconsistent")]).with(SNAPSHOTS).quick(),
    Case::planted(Chat, &["hang@0s"], NO_WELCOME),
    Case::planted(Chat, &["hang@6s"], NO_LINES).quick(),
    Case::planted(Chat, &["hang@9s"], NO_LINES),
    Case::planted(Chat, &["freeze@5s:1s"], LATE_LINES),
    Case::planted(Chat, &["exit@6s"], EXITED),
    Case::planted(Chat, &["drop-all@5s"], BROKEN),
    Case::planted(Chat, &["refuse@0s"], NOBODY_IN),
    Case::planted(Chat, &["wrong-answers:1%"], WRONG_LINES),
    Case::planted(Chat, &["late-answers:200ms"], LATE_LINES).quick(),
    Case::planted(Chat, &["lose:1e-3"], RESIDUAL),
    Case::planted(Chat, &["duplicate:1e-3"], TWICE),
    Case::planted(Chat, &["stop-answers@5s"], NO_LINES),
    Case::planted(Chat, &["collapse@5s:300ms"], LATE_LINES),
    Case::planted(PollLoop, &["hang@0s"], SILENT),
    Case::planted(PollLoop, &["hang@6s"], SILENT),
    Case::planted(PollLoop, &["hang@9s"], SILENT),
    Case::planted(PollLoop, &["freeze@5s:1s"], &[Outcome::fail("response.max")]).with(RESPONSE_MAX),
    Case::planted(PollLoop, &["exit@6s"], EXITED),
    Case::planted(PollLoop, &["refuse@0s"], NOBODY_IN),
    Case::planted(PollLoop, &["wrong-answers:5%"], ERRORS).quick(),
    Case::planted(PollLoop, &["late-answers:200ms"], &[Outcome::fail("response.p90")]).with(RESPONSE_P90),
    Case::planted(PollLoop, &["refuse@5s"], ERRORS).with(NO_KEEP_ALIVE),
    // Two or three of 1,200 requests; a larger share would leave all five requesters waiting.
    Case::planted(PollLoop, &["lose:2e-3"], ERRORS),
    Case::planted(PollLoop, &["stop-ticks@5s"], SILENT),
    Case::planted(PollLoop, &["stop-answers@5s"], NO_REPLY),
    Case::healthy(Leaderboard).quick(),
    Case::planted(Leaderboard, &["hang@6s"], NO_REPLY),
    Case::planted(Leaderboard, &["exit@6s"], EXITED),
    Case::planted(Leaderboard, &["late-answers:200ms"], &[Outcome::fail("response.p99")]),
    Case::planted(Leaderboard, &["wrong-rank:5%"], &[Outcome::fail("audit"), Outcome::fail("wrong rank")]),
    Case::planted(Leaderboard, &["lose-updates:0.5%"], WRONG_SCORE).quick(),
    Case::planted(Leaderboard, &["twice:0.5%"], WRONG_SCORE),
    Case::healthy(Leaderboard).with(STOP).served_with(KEPT),
    // So late that many are under way whenever it ends.
    Case::planted(Leaderboard, &["drop-at-stop", "late-answers:200ms"], &[Outcome::fail("shutdown.dropped")])
        .with(STOP),
    Case::planted(Leaderboard, &["stay-at-stop"], &[Outcome::fail("shutdown.grace")]).with(STOP_SOON),
    Case::planted(Leaderboard, &["lose-at-stop"], &[Outcome::fail("audit")]).with(STOP).served_with(KEPT),
    Case::healthy(Leaderboard).with(CHEATED).served_with(SIGNED),
    Case::planted(Leaderboard, &["accept-forged:5%"], &[Outcome::fail("cheat accepted")])
        .with(CHEATED)
        .served_with(SIGNED),
    Case::healthy(Leaderboard).with(CHEATED_WEBSOCKET).served_with(SIGNED),
    Case::planted(Leaderboard, &["accept-forged:5%"], &[Outcome::fail("cheat accepted")])
        .with(CHEATED_WEBSOCKET)
        .served_with(SIGNED),
    Case::planted(Leaderboard, &["accept-forged:5%"], &[Outcome::fail("cheat accepted")])
        .with(CHEATED_GRPC)
        .served_with(SIGNED),
    Case::healthy(Leaderboard).with(WEBSOCKET),
    Case::planted(Leaderboard, &["hang@6s"], NO_REPLY).with(WEBSOCKET),
    Case::planted(Leaderboard, &["lose-updates:0.5%"], WRONG_SCORE).with(WEBSOCKET),
    Case::planted(Leaderboard, &["lose-updates:0.5%"], WRONG_SCORE).with(GRPC),
    Case::healthy(Grid),
    Case::healthy(Grid).with(MIXED).quick(),
    Case::healthy(Grid).with(WITH_EXPIRY),
    Case::planted(Grid, &["lose-updates:5%"], STALE_VALUES).with(MIXED).quick(),
    Case::planted(Grid, &["stale:5%"], STALE_VALUES).with(MIXED),
    Case::planted(Grid, &["wrong-answers:0.5%"], WRONG_VALUES).with(MIXED),
    Case::planted(Grid, &["truncate:0.5%"], WRONG_VALUES),
    Case::planted(Grid, &["miss:0.5%"], NO_VALUES),
    Case::planted(Grid, &["swap:1%"], UNPAIRED).with(MIXED),
    Case::planted(Grid, &["lose:2e-4"], UNPAIRED).with(MIXED),
    Case::planted(Grid, &["duplicate:2e-4"], BROKEN_OR_UNPAIRED).with(MIXED),
    Case::planted(Grid, &["refusals:0.5%"], &[Outcome::fail("operation refused")]),
    Case::planted(Grid, &["ignore-expiry"], &[Outcome::fail("expired value found")]).with(WITH_EXPIRY),
    Case::planted(Grid, &["hang@6s"], NO_REPLY),
    Case::planted(Grid, &["freeze@5s:1s"], LATE_RESPONSES),
    Case::planted(Grid, &["exit@6s"], EXITED),
    Case::planted(Grid, &["late-answers:200ms"], LATE_RESPONSES),
    Case::planted(Grid, &["stop-answers@5s"], NO_REPLY),
    Case::healthy(Limited).with(FOR_LOCK),
    Case::planted(Limited, &["cpu-bound"], &[Outcome::caused("cpu")]).with(FOR_CPU),
    Case::planted(Limited, &["single-thread"], &[Outcome::caused("thread")]).with(FOR_CPU),
    Case::planted(Limited, &["lock"], &[Outcome::caused("lock")]).with(FOR_LOCK),
    Case::planted(Limited, &["gc-like-pause"], &[Outcome::caused("pause")]).with(FOR_PAUSE),
    Case::planted(Limited, &["accept-backlog"], &[Outcome::caused("accept-queue")]).with(FOR_ACCEPT),
    Case::planted(Limited, &["max-connections"], &[Outcome::caused("connection-limit")])
        .with(FOR_CONNECTIONS),
    Case::planted(Limited, &["fd-limit"], &[Outcome::caused("descriptor-limit")]).with(FOR_DESCRIPTORS),
    Case::planted(Limited, &["slow-disk"], AT_THE_DISK).with(FOR_DISK),
    Case::planted(Limited, &["throttled"], &[Outcome::caused("throttled")]).with(FOR_QUOTA).where_permitted(),
    Case::healthy(Limited).with(FOR_LEAKS).expecting(NO_LEAK).long(),
    Case::planted(Limited, &["leak-per-connection:10kB", "leak-descriptors"], BOTH_LEAK)
        .with(FOR_LEAKS)
        .never(&[Fail, Invalid])
        .long(),
    Case::healthy(Arena).on(Hog).expecting(IN_SPITE).quick(),
    Case::healthy(Chat).on(Hog).expecting(IN_SPITE),
    Case::planted(Arena, &["late-ticks:40%"], LATE_TICKS).on(Hog),
    Case::planted(Arena, &["hang@6s"], SILENT).on(Hog),
    Case::healthy(Arena).on(Throttled).expecting(LIMITED).quick(),
    Case::healthy(Chat).on(Throttled).expecting(LIMITED),
];
