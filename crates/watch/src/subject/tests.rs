use std::net::TcpListener;

use super::*;

const LONG: Duration = Duration::from_secs(20);

fn start(line: &str) -> Started {
    Started::start(shell(line), line).unwrap()
}

fn exit_of(started: &Started) -> Exit {
    let begin = Instant::now();
    loop {
        if let Some(exit) = started.try_exit() {
            return exit;
        }
        assert!(begin.elapsed() < LONG);
        std::thread::sleep(POLL);
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn how_it_ended_is_said_in_words() {
    let check = |line: &str, expected: &str| {
        let started = start(line);
        assert_eq!(exit_of(&started).to_string(), expected);
        assert_eq!(exit_of(&started).to_string(), expected, "looking does not reap");
        let stopped = started.stop();
        assert!(stopped.by_itself && !stopped.killed);
        assert_eq!(stopped.exit.to_string(), expected);
    };
    check("exit 0", "exit code 0");
    check("exit 3", "exit code 3");
    check("nosuchcommand_at_all", "exit code 127 (command not found)");
    check("kill -SEGV $$", "killed by SIGSEGV, a bad memory access");
    check(
        "sh -c 'kill -KILL $$'; exit $?",
        "exit code 137 (its shell reports SIGKILL, by a user or by the kernel when memory ran out)",
    );
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let error = Started::start(Command::new("/no/such/server"), "/no/such/server --fast").unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("cannot start `/no/such/server --fast` (No such file"), "{text}");
}

#[test]
fn the_first_url_on_standard_output_is_found() {
    let started =
        start("echo warming up; echo error ws://wrong >&2; echo listening on ws://127.0.0.1:9/x; sleep 60");
    assert_eq!(started.wait_for_url(LONG).unwrap(), "ws://127.0.0.1:9/x");
    let stopped = started.stop();
    assert_eq!(stopped.exit, Exit { code: None, signal: Some(libc::SIGTERM) });
    assert!(!stopped.by_itself && !stopped.killed);
}

#[test]
fn what_ended_and_is_reaped_by_nobody_is_not_waited_for() {
    use std::os::unix::process::CommandExt as _;
    let started = start("echo ws://127.0.0.1:9/; exec sleep 60");
    started.wait_for_url(LONG).unwrap();
    // A member of the group that only we could reap, and do not.
    let group = started.group.as_raw_nonzero().get();
    let mut unreaped = Command::new("true").process_group(group).spawn().unwrap();
    let stopped = started.stop();
    assert!(!stopped.killed && !stopped.is_left, "{stopped:?}");
    unreaped.wait().unwrap();
}

#[test]
fn a_server_that_ends_before_it_listens_is_quoted() {
    let started = start("echo starting; echo 'address in use' >&2; exit 98");
    let text =
        started.wait_until_listening(&[free_address()], Listens::Stream, LONG).unwrap_err().to_string();
    assert!(text.contains("ended before it was ready: exit code 98; its last lines:"), "{text}");
    assert!(text.contains("\n  address in use") && text.contains("\n  starting"), "{text}");
    let text = start("exit 1").wait_for_url(LONG).unwrap_err().to_string();
    assert_eq!(text, "`exit 1` ended before it was ready: exit code 1; it printed nothing");
}

#[test]
fn a_server_that_never_listens_is_given_up() {
    let started = start("echo hello; exec sleep 60");
    let text = started
        .wait_until_listening(&[free_address()], Listens::Stream, Duration::from_millis(300))
        .unwrap_err()
        .to_string();
    assert!(text.contains("runs but does not accept connections on 127.0.0.1:"), "{text}");
    let text = started.wait_for_url(Duration::from_millis(50)).unwrap_err().to_string();
    assert!(text.ends_with("did not print a URL within 0 s; its last lines:\n  hello"), "{text}");
}

#[test]
fn it_is_ready_when_its_address_accepts_connections() {
    let address = free_address();
    assert!(refuse_taken(address, Listens::Stream).is_ok());
    let started = start("exec sleep 60");
    let listener = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        TcpListener::bind(address).unwrap()
    });
    started.wait_until_listening(&[address], Listens::Stream, LONG).unwrap();
    let _listener = listener.join().unwrap();
    let text = refuse_taken(address, Listens::Stream).unwrap_err().to_string();
    assert!(text.starts_with(&format!("something listens on {address} already")), "{text}");
}

#[test]
fn its_whole_group_is_stopped() {
    let started = start("sleep 71 & sleep 72 & echo at tcp://ready; wait");
    started.wait_for_url(LONG).unwrap();
    let group = started.group;
    let stopped = started.stop();
    assert!(!stopped.killed);
    assert!(!escaped::is_anybody_in(group), "no process of the group is left");
}

#[test]
fn a_server_that_does_not_want_to_end_is_killed() {
    let mut started = start("trap '' TERM; echo at tcp://ready; while :; do sleep 0.05; done");
    started.wait_for_url(LONG).unwrap();
    let stopped = started.stop_within(Duration::from_millis(200));
    assert!(stopped.killed);
    assert_eq!(stopped.exit.signal, Some(libc::SIGKILL));
}

#[test]
fn a_halted_server_can_be_stopped() {
    let started = start("echo at tcp://ready; exec sleep 60");
    started.wait_for_url(LONG).unwrap();
    kill_process_group(started.group, Signal::STOP).unwrap();
    assert!(!started.stop().killed);
}

#[test]
fn what_had_to_be_done_to_stop_it_is_told() {
    let check = |by_itself, killed, is_left, expected: Option<&str>| {
        let trouble = Stopped { exit: Exit::UNKNOWN, by_itself, killed, is_left, escaped_count: 0 }.trouble();
        match expected {
            Some(words) => {
                assert!(trouble.as_deref().is_some_and(|text| text.contains(words)), "{trouble:?}")
            }
            None => assert_eq!(trouble, None),
        }
    };
    check(false, false, false, None);
    check(true, false, false, None);
    check(false, true, false, Some("did not end within 5 s of SIGTERM, so it was killed"));
    check(true, true, false, Some("processes it started did not end"));
    check(false, true, true, Some("it is left running"));
}

#[test]
fn a_halted_server_that_ignores_its_end_is_killed_and_nothing_is_left() {
    let mut started = start("trap '' TERM; echo at tcp://ready; while :; do sleep 0.05; done");
    started.wait_for_url(LONG).unwrap();
    kill_process_group(started.group, Signal::STOP).unwrap();
    let group = started.group;
    let stopped = started.stop_within(Duration::from_millis(200));
    assert!(stopped.killed && !stopped.is_left);
    assert!(!escaped::is_anybody_in(group), "nothing of its group is left");
}

#[test]
fn its_last_output_is_a_few_plain_lines() {
    // The two streams are read concurrently, so their lines may come in any order.
    let script = "for i in 1 2 3 4; do echo line $i; done; printf '\\033[31mfatal: %0300d\\n' 7 >&2; exit 3";
    let started = start(script);
    exit_of(&started);
    let output = started.last_output().unwrap();
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), 5, "{output}");
    let talkative = start("for i in 1 2 3 4 5 6 7; do echo line $i; done; exit 3");
    exit_of(&talkative);
    assert_eq!(talkative.last_output().unwrap(), "line 3\nline 4\nline 5\nline 6\nline 7");
    let fatal =
        lines.iter().find(|line| line.starts_with("fatal: 000")).expect("standard error is there too");
    assert_eq!((fatal.chars().count(), fatal.chars().last()), (201, Some('…')));
    let silent = start("exit 3");
    exit_of(&silent);
    assert_eq!(silent.last_output(), None);
}

#[test]
fn a_dropped_subject_does_not_live_on() {
    let started = start("sleep 60 & echo at tcp://ready; wait");
    started.wait_for_url(LONG).unwrap();
    let group = started.group;
    drop(started);
    assert!(!escaped::is_anybody_in(group));
}

#[test]
fn a_server_that_prints_without_end_never_waits_for_us() {
    let started = start("head -c 30000000 /dev/zero | tr '\\0' 'x'; echo; echo the end");
    assert_eq!(exit_of(&started).code, Some(0));
    started.output.wait_until_closed(LONG);
    assert_eq!(started.last_lines(1), ["the end"]);
}

#[test]
fn it_gets_a_group_and_signals_of_its_own_and_the_limits_we_were_given() {
    let expected =
        Inherited::remember().descriptors_soft.map_or("unlimited".to_owned(), |soft| soft.to_string());
    let thread = std::thread::spawn(|| {
        // SAFETY: a local set, and the mask of this thread only.
        unsafe {
            let mut all = std::mem::zeroed();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        }
        let started = start(
            "ulimit -Sn; grep SigBlk /proc/self/status; ps -o pgid= -p $$ 2>/dev/null || echo $$; echo $$",
        );
        exit_of(&started);
        started.output.wait_until_closed(LONG);
        (started.pid().to_string(), started.last_lines(9))
    });
    let (pid, lines) = thread.join().unwrap();
    assert_eq!(lines[0], expected);
    assert_eq!(lines[1], "SigBlk: 0000000000000000");
    assert_eq!((lines[2].trim(), lines[3].as_str()), (pid.as_str(), pid.as_str()));
}

#[test]
fn somebody_elses_process_is_only_watched() {
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let watch = ExitWatch::of_running(child.id()).unwrap();
    assert_eq!(watch.peek(), None);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(watch.peek(), Some(Exit::UNKNOWN));
    assert!(ExitWatch::of_running(u32::MAX >> 1).is_err());
}

fn is_alive(pid: i32) -> bool {
    let stat = procfs::process::Process::new(pid).and_then(|process| process.stat());
    stat.is_ok_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// The number that the subject printed as its only line.
fn printed_pid(started: &Started) -> i32 {
    let begin = Instant::now();
    loop {
        if let Some(pid) = started.last_lines(1).first().and_then(|line| line.trim().parse().ok()) {
            return pid;
        }
        assert!(begin.elapsed() < LONG);
        std::thread::sleep(POLL);
    }
}

#[test]
fn what_left_the_group_is_ended_too_and_said() {
    // Its own session, and its parent has ended: only the environment shows whose it is.
    let started = start("setsid sh -c 'echo $$; exec sleep 300' & exec sleep 300");
    let pid = printed_pid(&started);
    assert!(is_alive(pid));
    let stopped = started.stop();
    assert!(!is_alive(pid), "{stopped:?}");
    assert_eq!((stopped.escaped_count, stopped.is_left), (1, false));
    let said = stopped.trouble().unwrap();
    assert!(said.starts_with("a process that the server had started left its process group"), "{said}");
}

#[test]
fn a_daemon_is_ended_even_when_its_starter_has_ended() {
    let started = start("(setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 300; done' &)");
    let pid = printed_pid(&started);
    exit_of(&started);
    assert!(is_alive(pid));
    let mut started = started;
    let stopped = started.stop_within(Duration::from_millis(300));
    assert!(!is_alive(pid), "{stopped:?}");
    assert!(stopped.escaped_count >= 1 && stopped.killed && !stopped.is_left, "{stopped:?}");
}

#[test]
fn a_subject_that_starts_nothing_else_left_nothing() {
    let stopped = start("exec sleep 300").stop();
    assert_eq!((stopped.escaped_count, stopped.trouble()), (0, None));
}
