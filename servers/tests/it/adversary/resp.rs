//! Attacks on a server that speaks Redis's protocol.

use super::{CUT_AFTER, Case, Evil};

/// A command that puts a value of 1 MB at `large`.
fn put_large() -> Vec<u8> {
    [&b"*3\r\n$3\r\nSET\r\n$5\r\nlarge\r\n$1000000\r\n"[..], &[b'x'; 1_000_000], b"\r\n"].concat()
}

/// What is cut only after its time.
pub fn slow() -> Vec<Case> {
    let drip = |name, front: &'static [u8], drip: &'static [u8]| {
        Case::new(name, move |address| {
            let mut evil = Evil::connect(address);
            evil.send(front);
            std::thread::sleep(CUT_AFTER / 2);
            evil.is_cut_while_it_sends(drip);
        })
    };
    vec![
        drip("a string that never ends", b"*2\r\n$3\r\nGET\r\n$1000000\r\n", b"x"),
        drip("a line that never ends", b"GET ", b"x"),
        drip("an array whose strings come one by one", b"*1000000\r\n", b"$1\r\nx\r\n"),
        drip("a length that never ends", b"*2\r\n$0", b""),
        drip("a count that never ends", b"*", b""),
    ]
}

pub fn cases() -> Vec<Case> {
    let refused = |name, bytes: &'static [u8], words: &'static str| {
        Case::new(name, move |address| {
            let mut evil = Evil::connect(address);
            evil.send(b"PING\r\n");
            evil.send(bytes);
            let heard = evil.read_out();
            let heard = String::from_utf8_lossy(&heard);
            assert!(heard.starts_with("+PONG\r\n-ERR Protocol error: "), "{heard}");
            assert!(heard.contains(words), "{heard}");
        })
    };
    let mut cases = vec![
        refused("a billion strings", b"*1000000000\r\n", "invalid multibulk length"),
        refused(
            "more strings than a number holds",
            b"*99999999999999999999999\r\n",
            "invalid multibulk length",
        ),
        refused("an array of letters", b"*abc\r\n", "invalid multibulk length"),
        refused("a string of a petabyte", b"*1\r\n$1000000000000000\r\n", "invalid bulk length"),
        refused("a string of 2^63 bytes", b"*1\r\n$9223372036854775808\r\n", "invalid bulk length"),
        refused("a string of less than nothing", b"*1\r\n$-1\r\n", "invalid bulk length"),
        refused("a string that is longer than it says", b"*1\r\n$1\r\nabcdef\r\n", "does not end"),
        refused("an array in an array", b"*1\r\n*1\r\n*1\r\n*1\r\n", "expected '$'"),
        refused("a number where a string belongs", b"*1\r\n:1\r\n", "expected '$'"),
        refused("a map of RESP 3", b"*1\r\n%1\r\n", "expected '$'"),
        refused("quotes that do not end", b"GET \"k\r\n", "unbalanced quotes"),
        Case::new("a line of a megabyte", |address| {
            let mut evil = Evil::connect(address);
            evil.send(&[b'x'; 1_000_000]);
            let heard = evil.read_out();
            assert!(heard.starts_with(b"-ERR Protocol error: too big inline request"), "{heard:?}");
        }),
        Case::new("arrays of nothing without end", |address| {
            let mut evil = Evil::connect(address);
            (0..100).for_each(|_| evil.send(&b"*0\r\n*-1\r\n\r\n".repeat(1_000)));
            evil.reset();
        }),
        Case::new("a request of a browser", |address| {
            let mut evil = Evil::connect(address);
            evil.send(b"POST / HTTP/1.1\r\nHost: x\r\n\r\nSET k v\r\n");
            assert_eq!(evil.read_out(), b"");
        }),
        Case::new("a hundred announced strings of 64 MB that do not come", |address| {
            let mut held: Vec<Evil> = (0..100).map(|_| Evil::connect(address)).collect();
            held.iter_mut().for_each(|evil| evil.send(b"*2\r\n$4\r\nECHO\r\n$67108864\r\nabc"));
            std::thread::sleep(CUT_AFTER / 2);
        }),
        Case::new("twenty strings of which 4 MB come", |address| {
            let part = vec![b'x'; 4_000_000];
            let mut held: Vec<Evil> = (0..20).map(|_| Evil::connect(address)).collect();
            for evil in &mut held {
                evil.send(b"*2\r\n$4\r\nECHO\r\n$67108864\r\n");
                evil.send(&part);
            }
        }),
        Case::new("large values asked for without end and not read", |address| {
            let mut evil = Evil::connect(address);
            evil.stream.set_write_timeout(None).unwrap();
            evil.send(&put_large());
            let gets = b"*2\r\n$3\r\nGET\r\n$5\r\nlarge\r\n".repeat(1_000);
            let mut held: Vec<Evil> = (0..50).map(|_| Evil::with_little_room(address)).collect();
            held.iter_mut().for_each(|evil| evil.send(&gets));
            // Each has requested a gigabyte.
            std::thread::sleep(CUT_AFTER);
            held.iter_mut().for_each(Evil::reset);
        }),
        Case::new("many values in one reply that is not read", |address| {
            let mut evil = Evil::connect(address);
            evil.stream.set_write_timeout(None).unwrap();
            evil.send(&put_large());
            let mut mget = b"*1001\r\n$4\r\nMGET\r\n".to_vec();
            mget.extend(b"$5\r\nlarge\r\n".repeat(1_000));
            evil.send(&mget);
            let refused = "+OK\r\n-ERR the values are more than 64 MiB";
            assert!(evil.read_until(refused).contains(refused));
        }),
        Case::new("keys without end up to the memory", |address| {
            let mut evil = Evil::connect(address);
            for n in 0..20_000 {
                evil.send(format!("SET evil-{n} v PX 1\r\n").as_bytes());
            }
            evil.reset();
        }),
        Case::new("lines whose last quote stays open", |address| {
            let line = [&b"a ".repeat(32_700)[..], b"\"\r\n"].concat();
            let mut held: Vec<Evil> = (0..300).map(|_| Evil::connect(address)).collect();
            held.iter_mut().for_each(|evil| evil.send(&line));
            let refused = "-ERR Protocol error: unbalanced quotes";
            held.iter_mut().for_each(|evil| assert!(evil.read_until(refused).contains(refused)));
        }),
        Case::new("arrays of empty strings that never end", |address| {
            let array = [&b"*1048576\r\n"[..], &b"$0\r\n\r\n".repeat(100_000)].concat();
            let mut held: Vec<Evil> = (0..50).map(|_| Evil::connect(address)).collect();
            held.iter_mut().for_each(|evil| evil.send(&array));
        }),
        Case::new("questions of a hundred thousand words", |address| {
            for name in ["INFO", "HELLO"] {
                // While the server still has what the connections of other cases left, it may cut this one off for their memory.
                let is_answered = (0..5).any(|_| {
                    let mut evil = Evil::connect(address);
                    evil.stream.set_write_timeout(None).unwrap();
                    evil.send(format!("*100001\r\n${}\r\n{name}\r\n", name.len()).as_bytes());
                    evil.send(&b"$1\r\nx\r\n".repeat(100_000));
                    evil.read_until("-ERR syntax error\r\n").contains("-ERR syntax error\r\n")
                });
                assert!(is_answered, "{name}");
            }
        }),
        Case::new("unknown commands with long names", |address| {
            let mut evil = Evil::connect(address);
            (0..50).for_each(|_| evil.send(&[&b"x".repeat(60_000)[..], b" y\r\n"].concat()));
            evil.reset();
        }),
    ];
    cases.push(Case::new("commands cut at each byte", |address| {
        let whole = b"*3\r\n$3\r\nSET\r\n$4\r\nevil\r\n$3\r\nabc\r\n";
        for end in 1..whole.len() {
            let mut evil = Evil::connect(address);
            evil.send(&whole[..end]);
            evil.reset();
        }
    }));
    cases
}
