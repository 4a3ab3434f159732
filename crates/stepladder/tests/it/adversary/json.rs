//! JSON over HTTP, from which the clients check and capture a value: documents that are large, deep or full of
//! unrequested data.

use std::io;

use super::http1::{answers, later};
use super::peer::Peer;
use super::{Fails, Load, Passes, Row, check, long, row};

/// Captures a value of each answer, which may be checked too.
fn scenario(port: u16, check: &str, objective: &str) -> Vec<(&'static str, String)> {
    let scenario = format!(
        "subject: {{ target: 'http://127.0.0.1:{port}' }}
bots:
  kind: http
  variables: {{ id: {{ before: 1 }} }}
  requests:
    - get: '/x?{{id}}'
      capture: {{ id: /id }}
{check}ladder: {{ requesters: [4] }}
objectives: [ {objective} ]
"
    );
    vec![("json.yaml", scenario)]
}

const LOAD: Load = Load::new("JSON, captured", "json.yaml --timeout 2s")
    .with_files(|port| scenario(port, "      check: { json: { /id: 1 } }\n", "errors == 0"));

/// Nothing but the capture reads what comes.
const CAPTURED: Load = Load::new("JSON, captured and not checked", "json.yaml")
    .with_files(|port| scenario(port, "", "not_sent == 0"));

fn capturing() -> Vec<Row> {
    const NOTHING: &str = "capture id: nothing at /id";
    const NO_JSON: &str = "capture id: the body is not JSON";
    vec![
        row("answers, as it should", Passes, "", always(r#"{"id":"a"}"#)),
        row("answers without what is captured", Fails, NOTHING, always("{}")),
        row("answers what is no JSON", Fails, NO_JSON, always("<html>")),
        row("answers what is no JSON, as it is allowed to", Passes, "", always("<html>"))
            .with(&["--allow", "missing-captures"]),
        long("answers nothing", Fails, NO_JSON, always("")),
        long("cuts a document", Fails, NO_JSON, always(r#"{"id":1"#)),
    ]
}

fn answer(body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// Answers every request of the load with this document; the probe is given a small one.
fn always(document: impl Into<Vec<u8>>) -> impl Fn(&mut Peer) -> io::Result<()> {
    let bytes = answer(&document.into());
    move |peer| {
        if peer.is_probe() {
            return answers(peer, |_| answer(br#"{"id":1}"#));
        }
        answers(peer, |_| bytes.clone())
    }
}

fn rows() -> Vec<Row> {
    /// Some take so long to read that none is answered within the hold on a busy machine.
    const WRONG: &str = "wrong json|stopped replying";
    vec![
        row("answers, as it should", Passes, "", always(r#"{"id":1}"#)),
        long(
            "puts 4 MB of numbers beside the value, as it may",
            Passes,
            "",
            always(format!(r#"{{"id":1,"a":[{}0]}}"#, "0,".repeat(2_000_000))),
        ),
        long(
            "puts 350,000 keys beside the value, as it may",
            Passes,
            "",
            always(format!(
                r#"{{"id":1,{}"z":0}}"#,
                (0..350_000).map(|at| format!("\"{at:x}\":0,")).collect::<String>()
            )),
        ),
        long(
            "sends a value of 4 MB",
            Fails,
            WRONG,
            always(format!(r#"{{"id":"{}"}}"#, "a".repeat(4_000_000))),
        ),
        row(
            "sends a value of 200 kB",
            Fails,
            WRONG,
            always(format!(r#"{{"id":"{}"}}"#, "a".repeat(200_000))),
        ),
        long(
            "sends an array of 2,000,000 as the value",
            Fails,
            WRONG,
            always(format!(r#"{{"id":[{}0]}}"#, "0,".repeat(2_000_000))),
        ),
        long(
            "sends arrays in each other, 2,000,000 deep",
            Fails,
            WRONG,
            always(format!(r#"{{"a":{}"#, "[".repeat(2_000_000))),
        ),
        long(
            "sends arrays in each other as the value",
            Fails,
            WRONG,
            always(format!(r#"{{"id":{}"#, "[".repeat(100_000))),
        ),
        long(
            "sends the value 500,000 times",
            Fails,
            WRONG,
            always(format!(r#"{{{}"id":[]}}"#, r#""id":1,"#.repeat(500_000))),
        ),
        long(
            "cuts a document of 4 MB",
            Fails,
            WRONG,
            always(format!(r#"{{"id":1,"a":"{}"#, "a".repeat(4_000_000))),
        ),
        long(
            "stalls within a document of 4 MB",
            Fails,
            "answer never ended|too many unfinished|stopped replying",
            later(|peer| {
                peer.say("HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n{\"id\":1,\"a\":[")?;
                peer.say_last("0,".repeat(1_900_000))
            }),
        ),
    ]
}

#[test]
fn hostile_json_does_not_pass_nor_fill_the_memory() {
    check(&LOAD, &rows());
    check(&CAPTURED, &capturing());
}
