//! The leaderboard service over gRPC, called through an HTTP/2 client that can break every rule above it.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use serde_json::{Value, json};
use servers::leaderboard_service::Options;

use crate::client::Running;
use crate::leaderboard_client::{Player, at, options, start};
use crate::leaderboard_signed::{SECRET, hex, hmac_bytes, now_s};
use crate::leaderboard_websocket::{decoded, encoded};

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let patience = std::time::Duration::from_secs(20);
    tokio::task::LocalSet::new().block_on(&runtime, async {
        tokio::time::timeout(patience, future).await.expect("the service answers")
    })
}

pub async fn connect(address: SocketAddr) -> SendRequest<Bytes> {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (requests, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::task::spawn_local(async move { drop(connection.await) });
    requests.ready().await.unwrap()
}

const SERVICE: &str = "stepladder.leaderboard.v1.Leaderboard";

pub fn head(method: &str, metadata: &[(&str, &str)]) -> Request<()> {
    let uri = format!("http://localhost/{SERVICE}/{method}");
    let mut request = Request::post(uri).header("content-type", "application/grpc").header("te", "trailers");
    for (name, value) in metadata {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap()
}

pub fn framed(message: &[u8]) -> Bytes {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat().into()
}

/// The messages and the status of an answer.
#[derive(Debug, PartialEq)]
pub struct Told {
    pub messages: Vec<Vec<u8>>,
    pub status: u16,
    pub text: String,
}

async fn told(response: Response<RecvStream>) -> Told {
    let (head, mut body) = response.into_parts();
    assert_eq!(head.status, 200);
    assert_eq!(head.headers["content-type"], "application/grpc");
    let mut bytes = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        bytes.extend_from_slice(&data);
    }
    let fields = body.trailers().await.unwrap().unwrap_or(head.headers);
    let mut messages = Vec::new();
    let mut rest = &bytes[..];
    while let [0, a, b, c, d, behind @ ..] = rest {
        let (message, behind) = behind.split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
        messages.push(message.to_vec());
        rest = behind;
    }
    assert!(rest.is_empty());
    let text = fields.get("grpc-message").map_or("", |text| text.to_str().unwrap()).to_owned();
    Told { messages, status: fields["grpc-status"].to_str().unwrap().parse().unwrap(), text }
}

/// A call with these bytes as its body.
pub async fn call_with(
    requests: &mut SendRequest<Bytes>,
    method: &str,
    metadata: &[(&str, &str)],
    body: Bytes,
) -> Told {
    let (response, mut stream) = requests.send_request(head(method, metadata), false).unwrap();
    stream.send_data(body, true).unwrap();
    told(response.await.unwrap()).await
}

/// A call of one message, which is carried out.
async fn call(requests: &mut SendRequest<Bytes>, method: &str, reply: &str, message: Value) -> Value {
    let body = framed(&encoded(method, &message));
    let told = call_with(requests, method, &[], body).await;
    assert_eq!((told.status, told.messages.len()), (0, 1), "{message}: {told:?}");
    decoded(reply, &told.messages[0])
}

pub fn increment(member: &str, by: i64) -> Value {
    json!({"board": "main", "member": member, "mode": "MODE_INCREMENT", "number": by})
}

#[test]
fn every_call_gives_what_http_gives() {
    let running = start(options());
    block_on(async {
        let mut requests = connect(running.address).await;
        let standing = |number: &str, rank: &str| json!({"number": number, "rank": rank});
        assert_eq!(call(&mut requests, "Update", "Standing", increment("ann", 5)).await, standing("5", "1"));
        assert_eq!(call(&mut requests, "Update", "Standing", increment("bob", 7)).await, standing("7", "1"));
        let ann = json!({"board": "main", "member": "ann"});
        assert_eq!(call(&mut requests, "Get", "Standing", ann).await, standing("5", "2"));
        let ranks = json!({"board": "main", "members": ["x", "bob"]});
        let standings = json!({"standings": [{}, standing("7", "1")]});
        assert_eq!(call(&mut requests, "Ranks", "Standings", ranks).await, standings);
        let row = json!({"member": "bob", "number": "7", "rank": "1"});
        let page = json!({"members": "2", "rows": [row], "next": "2"});
        let top = json!({"board": "main", "limit": 1});
        assert_eq!(call(&mut requests, "Top", "Page", top).await, page);
        let range = json!({"board": "main", "first": 1, "limit": 1});
        assert_eq!(call(&mut requests, "Range", "Page", range).await, page);
        let around = json!({"board": "main", "member": "bob", "eachSide": 0});
        assert_eq!(call(&mut requests, "Around", "Page", around).await, page);
    });
    let metrics = Player::of(&running).ask("GET", "/metrics", "").body;
    let counted = r#"leaderboard_messages_total{channel="grpc",operation="update",status="200"} 2"#;
    assert!(metrics.contains(counted), "{metrics}");
    running.end().unwrap();
}

fn bulk(member: &str, by: i64) -> Bytes {
    let item = json!({"member": member, "mode": "MODE_INCREMENT", "number": by});
    framed(&encoded("Bulk", &json!({"parts": [{"board": "main", "items": [item]}]})))
}

async fn next_done(body: &mut RecvStream, store: &mut Vec<u8>) -> Value {
    loop {
        if let [0, a, b, c, d, rest @ ..] = &store[..] {
            let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
            if rest.len() >= length {
                let message = decoded("BulkDone", &rest[..length]);
                store.drain(..5 + length);
                return message;
            }
        }
        let data = body.data().await.unwrap().unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        store.extend_from_slice(&data);
    }
}

async fn send(stream: &mut SendStream<Bytes>, bytes: Bytes, is_last: bool) {
    stream.send_data(bytes, is_last).unwrap();
}

#[test]
fn bulks_of_a_stream_are_answered_one_by_one_and_a_refused_one_does_not_end_it() {
    let running = start(options());
    block_on(async {
        let mut requests = connect(running.address).await;
        let (response, mut stream) = requests.send_request(head("Bulk", &[]), false).unwrap();
        send(&mut stream, bulk("ann", 5), false).await;
        let mut body = response.await.unwrap().into_body();
        let mut store = Vec::new();
        let done = |number: &str| json!({"parts": [{"standings": [{"number": number, "rank": "1"}]}]});
        assert_eq!(next_done(&mut body, &mut store).await, done("5"));
        // One that is refused, and one that arrives in pieces.
        send(&mut stream, framed(&encoded("Bulk", &json!({"parts": [{"board": "x"}]}))), false).await;
        let refused = next_done(&mut body, &mut store).await;
        assert_eq!(
            (&refused["error"]["code"], &refused["error"]["part"]),
            (&json!(404), &json!(0)),
            "{refused}"
        );
        let bytes = bulk("ann", 2);
        for at in 0..bytes.len() {
            send(&mut stream, bytes.slice(at..=at), at + 1 == bytes.len()).await;
        }
        assert_eq!(next_done(&mut body, &mut store).await, done("7"));
        assert!(body.data().await.is_none());
        assert_eq!(body.trailers().await.unwrap().unwrap()["grpc-status"], "0");
    });
    running.end().unwrap();
}

#[test]
fn a_stream_whose_answers_are_longer_than_any_window_is_answered_whole() {
    let running = start(options());
    block_on(async {
        let mut requests = connect(running.address).await;
        let (response, mut stream) = requests.send_request(head("Bulk", &[]), false).unwrap();
        let items: Vec<Value> = (0..1000)
            .map(|member| json!({"member": format!("m{member}"), "mode": "MODE_INCREMENT", "number": 1}))
            .collect();
        let message = framed(&encoded("Bulk", &json!({"parts": [{"board": "main", "items": items}]})));
        const BULKS: usize = 40;
        tokio::task::spawn_local(async move {
            for number in 1..=BULKS {
                let mut rest = message.clone();
                while !rest.is_empty() {
                    stream.reserve_capacity(rest.len());
                    let room = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
                    let part = rest.split_to(room.unwrap().unwrap().min(rest.len()));
                    let is_last = number == BULKS && rest.is_empty();
                    stream.send_data(part, is_last).unwrap();
                }
            }
        });
        let mut body = response.await.unwrap().into_body();
        let mut store = Vec::new();
        for number in 1..=BULKS {
            let done = next_done(&mut body, &mut store).await;
            let standings = done["parts"][0]["standings"].as_array().unwrap();
            assert_eq!((standings.len(), &standings[999]["number"]), (1000, &json!(number.to_string())));
        }
        assert!(body.data().await.is_none());
        assert_eq!(body.trailers().await.unwrap().unwrap()["grpc-status"], "0");
    });
    running.end().unwrap();
}

#[test]
fn what_is_wrong_with_a_call_decides_its_status() {
    let running = start(Options { body_max: 1000, ..options() });
    block_on(async {
        let mut requests = connect(running.address).await;
        let update = |value: Value| framed(&encoded("Update", &value));
        let right = update(increment("ann", 1));
        let cases: [(&str, Bytes, u16, &str); 12] = [
            (
                "Update",
                update(json!({"board": "x", "member": "a", "mode": 1, "number": 1})),
                5,
                "called \"x\"",
            ),
            ("Update", update(json!({"board": "main", "member": "a", "number": 1})), 3, "no mode"),
            ("Get", framed(&encoded("Get", &json!({"board": "main", "member": "x"}))), 5, "called \"x\""),
            ("Missing", right.clone(), 12, "there is no call"),
            ("Update", Bytes::new(), 3, "no message"),
            ("Update", Bytes::from_static(&[0, 0, 0, 0, 9, 1]), 3, "cut off"),
            ("Update", [&right[..], &right[..]].concat().into(), 3, "one message"),
            ("Update", [&[1][..], &right[1..]].concat().into(), 12, "not compressed"),
            ("Update", framed(&[0x0a, 9]), 3, "the message: the message is cut off"),
            ("Update", framed(&[0x08, 9]), 3, "field 1 has another wire type"),
            ("Update", framed(&vec![0; 1001]), 8, "at most 1000 bytes"),
            ("Bulk", Bytes::from_static(&[0, 0xff, 0xff, 0xff, 0xff]), 8, "at most 1000 bytes"),
        ];
        for (method, body, status, text) in cases {
            let told = call_with(&mut requests, method, &[], body.clone()).await;
            assert_eq!((told.status, told.messages.len()), (status, 0), "{method} {body:02x?}: {told:?}");
            assert!(told.text.contains(text), "{told:?}");
        }
        // Refused calls have changed nothing, and the connection stays open.
        let standing = call(&mut requests, "Update", "Standing", increment("ann", 1)).await;
        assert_eq!(standing, json!({"number": "1", "rank": "1"}));
        let mut plain = Request::get("http://localhost/healthz").body(()).unwrap();
        *plain.version_mut() = http::Version::HTTP_2;
        let (response, _) = requests.send_request(plain, true).unwrap();
        assert_eq!(response.await.unwrap().status(), 415);
    });
    running.end().unwrap();
}

#[test]
fn a_call_that_is_reset_or_a_connection_that_breaks_harms_no_other() {
    let running = start(options());
    block_on(async {
        let mut requests = connect(running.address).await;
        let (_, mut stream) = requests.send_request(head("Update", &[]), false).unwrap();
        stream.send_data(Bytes::from_static(&[0, 0, 0]), false).unwrap();
        stream.send_reset(h2::Reason::CANCEL);
        let standing = call(&mut requests, "Update", "Standing", increment("ann", 1)).await;
        assert_eq!(standing["number"], "1");
        for broken in
            [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff"[..], b"PRI * HTTP/3.0\r\n\r\n", b"PRI"]
        {
            let mut client = crate::client::Client::silent(running.address);
            client.write(broken);
        }
        assert_eq!(call(&mut requests, "Update", "Standing", increment("ann", 1)).await["number"], "2");
    });
    running.end().unwrap();
}

#[test]
fn where_changes_have_to_be_signed_each_is_made_once() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("game {}\n", hex(&SECRET))).unwrap();
    let running = start(Options { keys: Some(file.path().to_owned()), ..options() });
    block_on(async {
        let mut requests = connect(running.address).await;
        let message = encoded("Update", &increment("ann", 1));
        let expires = (now_s() + 60).to_string();
        let text = format!("PROTOBUF\nupdate\ngame\nn1\n{expires}\n\n");
        let signature = hex(&hmac_bytes(&[text.as_bytes(), &message].concat()));
        let metadata = [
            ("stepladder-key", "game"),
            ("stepladder-nonce", "n1"),
            ("stepladder-expires", expires.as_str()),
            ("stepladder-signature", signature.as_str()),
        ];
        let mut statuses = Vec::new();
        for metadata in [&metadata[..], &metadata, &[], &metadata[..3]] {
            statuses.push(call_with(&mut requests, "Update", metadata, framed(&message)).await.status);
        }
        assert_eq!(statuses, [0, 16, 16, 16]);
    });
    assert_eq!(Player::of(&running).standing("ann"), at(1, 1));
    running.end().unwrap();
}

#[test]
fn an_end_of_the_server_answers_what_was_whole_and_refuses_the_rest() {
    let running = start(options());
    let shutdown = running.shutdown.clone();
    block_on(async {
        let mut requests = connect(running.address).await;
        assert_eq!(call(&mut requests, "Update", "Standing", increment("ann", 1)).await["number"], "1");
        let (response, mut stream) = requests.send_request(head("Bulk", &[]), false).unwrap();
        send(&mut stream, bulk("ann", 1), false).await;
        let mut body = response.await.unwrap().into_body();
        next_done(&mut body, &mut Vec::new()).await;
        shutdown.trigger();
        assert!(body.data().await.is_none_or(|data| data.is_err()));
        let status = body.trailers().await.ok().flatten().map(|fields| fields["grpc-status"].clone());
        assert_eq!(status.unwrap(), "14");
    });
    running.end().unwrap();
}

#[test]
fn an_acknowledged_update_is_there_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let keeping = || Options { data: Some(directory.path().to_owned()), ..options() };
    let running: Running = start(keeping());
    block_on(async {
        let mut requests = connect(running.address).await;
        for number in 1..=20 {
            let standing = call(&mut requests, "Update", "Standing", increment("ann", 1)).await;
            assert_eq!(standing["number"], number.to_string());
        }
    });
    running.end().unwrap();
    let running = start(keeping());
    assert_eq!(Player::of(&running).standing("ann"), at(20, 1));
    running.end().unwrap();
}
