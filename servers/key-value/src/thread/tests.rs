use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use super::super::keyspace::Expiry;
use super::*;
use servers_shared::testing::flood::{self, Flood};

fn thread(options: &Options) -> Thread<'_> {
    Thread::new(options, 0, Core::new(&flood::common(), BUFFER_BYTES).unwrap())
}

/// A client of a thread that does not run.
struct Asker {
    key: Key,
    stream: UnixStream,
}

impl Asker {
    fn connect(thread: &mut Thread<'_>) -> Asker {
        let (theirs, stream) = UnixStream::pair().unwrap();
        for end in [&theirs, &stream] {
            end.set_nonblocking(true).unwrap();
        }
        thread.greet(theirs.into());
        Asker { key: *thread.core.clients.keys().last().unwrap(), stream }
    }

    /// Sends this and has it read; returns what is answered.
    fn ask(&mut self, thread: &mut Thread<'_>, bytes: &[u8]) -> String {
        // Almost as much as one read takes.
        for piece in bytes.chunks(62_000) {
            self.stream.write_all(piece).unwrap();
            thread.converse(self.key, false);
        }
        self.hear()
    }

    fn hear(&mut self) -> String {
        let mut heard = Vec::new();
        // It ends when nothing more has arrived.
        let _ = self.stream.read_to_end(&mut heard);
        String::from_utf8(heard).unwrap()
    }

    fn kept_bytes(&self, thread: &mut Thread<'_>) -> usize {
        let client = thread.core.clients.get_mut(self.key).unwrap();
        client.input.capacity() + client.parser.kept_bytes()
    }
}

#[test]
fn a_time_to_live_beyond_64_bits_of_nanoseconds_does_not_keep_the_thread_awake() {
    let options = Options::default();
    let mut thread = thread(&options);
    let mut asker = Asker::connect(&mut thread);
    for time in ["PX 18446744073710", "EX 4611686018427387", "PX 4611686018427387902"] {
        assert_eq!(asker.ask(&mut thread, format!("SET k v {time}\r\n").as_bytes()), "+OK\r\n");
        thread.turn();
        assert_eq!(thread.rest(), IDLE_REST_NS, "{time}");
        assert_eq!(asker.ask(&mut thread, b"GETDEL k\r\n"), "$1\r\nv\r\n");
        thread.keys.clear();
        thread.turn();
    }
    // It would have wrapped to an instant in the past.
    thread.keys.set(b"k", b"v", Expiry::AtMs(u64::MAX / MS + 1)).unwrap();
    assert_eq!(thread.rest(), IDLE_REST_NS);
    let refused = "-ERR invalid expire time in 'set' command\r\n";
    assert_eq!(asker.ask(&mut thread, b"SET k v EX 4611686018427388\r\n"), refused);
}

#[test]
fn a_line_that_is_refused_leaves_no_memory_behind() {
    let options = Options::default();
    let mut thread = thread(&options);
    let mut asker = Asker::connect(&mut thread);
    let line = [&b"a ".repeat(32_700)[..], b"\"\r\n"].concat();
    let answer = asker.ask(&mut thread, &line);
    assert_eq!(answer, "-ERR Protocol error: unbalanced quotes in request\r\n");
    assert_eq!((asker.kept_bytes(&mut thread), thread.keys.memory().used_bytes()), (0, 0));
}

#[test]
fn words_of_an_incomplete_command_count_as_memory() {
    let options = Options { memory_bytes: 1_000_000, ..Options::default() };
    let mut thread = thread(&options);
    let mut asker = Asker::connect(&mut thread);
    let array = [&b"*1048576\r\n"[..], &b"$0\r\n\r\n".repeat(40_000)].concat();
    let (front, behind) = array.split_at(array.len() / 2);
    assert_eq!(asker.ask(&mut thread, front), "");
    let kept_bytes = asker.kept_bytes(&mut thread);
    assert!(kept_bytes > 20_000 * 14, "{kept_bytes}");
    // All but what each connection may hold.
    let used_bytes = thread.keys.memory().used_bytes();
    assert_eq!(used_bytes, kept_bytes - 64 * 1024);
    let room = vec![b'x'; 1_000_000 - used_bytes - 50_000];
    thread.keys.set(b"other", &room, Expiry::Never).unwrap();
    // Ten thousand words come with one read and take more than its bytes.
    let mut other = Asker::connect(&mut thread);
    let full = format!("-{}\r\n", commands::FULL);
    assert_eq!(other.ask(&mut thread, &array[..60_000]), full);
    assert_eq!(asker.ask(&mut thread, behind), full);
    assert_eq!((asker.kept_bytes(&mut thread), other.kept_bytes(&mut thread)), (0, 0));
    thread.keys.clear();
    thread.keys.free_cleared(usize::MAX);
    assert_eq!(thread.keys.memory().used_bytes(), 0);
}

#[test]
fn clients_that_do_not_read_a_value_cannot_keep_more_of_it_than_the_memory_allows() {
    let options = Options { memory_bytes: 1_000_000, ..Options::default() };
    let mut thread = thread(&options);
    let mut asker = Asker::connect(&mut thread);
    let set = [&b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$60000\r\n"[..], &[b'x'; 60_000], b"\r\n"].concat();
    let mut late = Vec::new();
    while late.len() < 20 && asker.ask(&mut thread, &set) == "+OK\r\n" {
        let mut one = Asker::connect(&mut thread);
        // More than the socket takes.
        one.stream.write_all(&b"GET k\r\n".repeat(100)).unwrap();
        while thread.core.clients.get_mut(one.key).unwrap().unsent.is_empty() {
            thread.converse(one.key, false);
        }
        late.push(one);
    }
    assert_eq!((late.len(), thread.keys.memory().used_bytes() <= 1_000_000), (16, true));
    late.iter().for_each(|one| thread.part(one.key));
    assert_eq!(asker.ask(&mut thread, &set), "+OK\r\n");
}

#[test]
fn a_question_of_very_many_words_is_refused() {
    let options = Options::default();
    let mut thread = thread(&options);
    let mut asker = Asker::connect(&mut thread);
    let mut ask = |words: &str, count: usize| {
        let words: Vec<&str> = words.split(' ').chain(std::iter::repeat("save")).take(count).collect();
        let strings: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
        asker.ask(&mut thread, format!("*{count}\r\n{strings}").as_bytes())
    };
    assert_eq!(ask("CONFIG GET", 64), "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
    assert_eq!(ask("CONFIG GET", 65), "-ERR wrong number of arguments for 'config|get' command\r\n");
    assert!(ask("INFO memory", 64).contains("# Memory"));
    for words in ["INFO memory", "HELLO 2"] {
        assert_eq!(ask(words, 65), "-ERR syntax error\r\n");
    }
}

/// More than one turn frees, and less than three.
fn fill(thread: &mut Thread<'_>) {
    (0..2_500u64).for_each(|n| thread.keys.set(&n.to_le_bytes(), b"v", Expiry::Never).unwrap());
}

#[test]
fn keys_that_are_flushed_asynchronously_are_freed_in_portions_without_a_rest() {
    let options = Options::default();
    let mut thread = thread(&options);
    let mut asker = Asker::connect(&mut thread);
    fill(&mut thread);
    assert_eq!(asker.ask(&mut thread, b"FLUSHALL ASYNC\r\nDBSIZE\r\n"), "+OK\r\n:0\r\n");
    for _ in 0..2 {
        assert_eq!(thread.rest(), 0);
        thread.turn();
        assert!(thread.keys.memory().used_bytes() > 0);
    }
    thread.turn();
    assert_eq!((thread.keys.memory().used_bytes(), thread.rest()), (0, IDLE_REST_NS));
}

#[test]
fn a_flush_is_answered_when_all_is_freed_and_others_are_served_meanwhile() {
    let options = Options::default();
    let mut thread = thread(&options);
    let (mut asker, mut other) = (Asker::connect(&mut thread), Asker::connect(&mut thread));
    for flush in ["FLUSHALL", "flushdb sync"] {
        fill(&mut thread);
        // Commands before it are answered at once, and commands after it when it is done.
        let asked = format!("PING\r\n{flush}\r\nDBSIZE\r\n");
        assert_eq!(asker.ask(&mut thread, asked.as_bytes()), "+PONG\r\n");
        assert_eq!(asker.ask(&mut thread, b"PING\r\n"), "");
        assert_eq!(other.ask(&mut thread, b"DBSIZE\r\nSET new 1\r\n"), ":0\r\n+OK\r\n");
        assert_eq!(thread.rest(), 0);
        thread.turn();
        assert!(thread.keys.is_freeing());
        // Freed later, and not waited for.
        assert_eq!(other.ask(&mut thread, b"FLUSHALL ASYNC\r\nSET new 2\r\n"), "+OK\r\n+OK\r\n");
        assert_eq!(asker.ask(&mut thread, b""), "");
        thread.turn();
        assert_eq!(asker.hear(), "+OK\r\n:1\r\n+PONG\r\n");
        thread.turn();
        assert_eq!((thread.keys.is_freeing(), thread.flushers.len()), (false, 0));
    }
    // As much as a turn frees is not waited for.
    thread.keys.set(b"few", b"v", Expiry::Never).unwrap();
    assert_eq!(asker.ask(&mut thread, b"FLUSHALL\r\n"), "+OK\r\n");
    assert_eq!(thread.keys.memory().used_bytes(), 0);
}

#[test]
fn a_flush_is_answered_before_the_server_ends_and_hinders_nobody_when_its_client_goes() {
    let options = Options::default();
    let mut thread = thread(&options);
    let (mut asker, mut gone) = (Asker::connect(&mut thread), Asker::connect(&mut thread));
    fill(&mut thread);
    assert_eq!(gone.ask(&mut thread, b"FLUSHALL\r\n"), "");
    gone.stream.shutdown(std::net::Shutdown::Both).unwrap();
    thread.converse(gone.key, true);
    fill(&mut thread);
    assert_eq!(asker.ask(&mut thread, b"FLUSHALL\r\n"), "");
    thread.turn();
    thread.turn();
    assert!(thread.keys.is_freeing());
    assert!(thread.core.clients.get_mut(gone.key).is_none());
    thread.go_down();
    assert_eq!(asker.hear(), "+OK\r\n");
}

#[test]
fn a_flood_of_commands_keeps_nobody_waiting() {
    let options = Options::default();
    let mut thread = Thread::new(&options, 0, flood::core(&flood::common()));
    let request = &|_| b"PING\r\n".to_vec();
    let (admit, answers) = (Thread::greet, |heard: &[u8]| flood::count(heard, b"+PONG\r\n"));
    flood::check(&mut thread, &Flood { admit, opening: b"", request, answers });
}
