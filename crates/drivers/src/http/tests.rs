//! Both versions on real sockets, against hyper servers and against servers that break the rules.

mod rude;
pub(crate) mod server;

use std::future::poll_fn;
use std::task::{Context, Waker};

use proptest::prelude::*;

use super::*;
use crate::address::{Address, TlsSettings};
use crate::driver::{ANSWER_BYTES_MAX, Broken, Closed, Driver, OpenError};
use crate::read_buffer::{READ_BUFFER_BYTES, ReadBuffer};
use crate::testing::block_on;
use server::{Over, Server};

use crate::address::AUTHORITY;

fn parts<'a>(method: &'a str, path: &'a str) -> Parts<'a> {
    Parts { method, keeps_body: true, body_bytes_max: 64 << 20, ..Parts::get(path) }
}

fn address(socket: std::net::SocketAddr, tls: Option<TlsSettings>) -> Address {
    Address { tls, ..Address::plain(socket) }
}

/// A connection with its own buffer.
struct Client<D> {
    driver: D,
    buffer: ReadBuffer,
    received_bytes: usize,
    /// what ended the connection after answers that are reported first
    ended: Option<Closed>,
    /// tags of the requests that the server's close put off
    put_off: Vec<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    tag: u32,
    status: u16,
    body: Vec<u8>,
    body_bytes: u64,
    location: Option<String>,
    closes: bool,
    began: bool,
}

impl<D: Http> Client<D> {
    async fn open(to: &Address) -> Result<Self, OpenError> {
        let driver = D::open(D::begin_connect(to, None)?, to).await?;
        Ok(Client { driver, buffer: ReadBuffer::new(), received_bytes: 0, ended: None, put_off: Vec::new() })
    }

    async fn send(&mut self, prepared: &D::Prepared, tag: u32) {
        self.driver.send(Outgoing { prepared, tag }).unwrap();
        assert!(self.driver.unsent_bytes() > 0, "it is encoded and not yet written");
        poll_fn(|cx| self.driver.poll_flush(cx)).await.unwrap();
        assert_eq!(self.driver.unsent_bytes(), 0);
    }

    /// The next answers, at least one, in the order in which they are reported.
    async fn receive(&mut self, began: &mut Vec<u32>) -> Result<Vec<Told>, Closed> {
        let mut told = Vec::new();
        if let Some(why) = self.ended.take() {
            return Err(why);
        }
        while told.is_empty() {
            self.received_bytes += poll_fn(|cx| self.driver.poll_read(cx, &mut self.buffer)).await?;
            while let Some(received) = self.driver.next(&mut self.buffer) {
                match received {
                    Err(broken) if told.is_empty() => return Err(Closed::Broken(broken)),
                    Err(broken) => {
                        self.ended = Some(Closed::Broken(broken));
                        return Ok(told);
                    }
                    Ok(Received::Leaving) => {}
                    Ok(Received::PutOff { tag }) => self.put_off.push(tag),
                    Ok(Received::Unpaired { .. }) => unreachable!("answers have requests"),
                    Ok(Received::Began { tag }) => {
                        assert!(!began.contains(&tag), "an answer begins once");
                        began.push(tag);
                    }
                    Ok(Received::Answer(answer)) => told.push(Told {
                        tag: answer.tag,
                        status: answer.status,
                        body: answer.body.to_vec(),
                        body_bytes: answer.body_bytes,
                        location: answer.location.map(str::to_owned),
                        closes: answer.closes,
                        began: began.contains(&answer.tag),
                    }),
                }
            }
            poll_fn(|cx| self.driver.poll_flush(cx)).await.map_err(Closed::Failed)?;
        }
        Ok(told)
    }

    async fn ask(&mut self, parts: &Parts<'_>) -> Result<Told, Closed> {
        self.send(&D::prepare(parts), 5).await;
        let mut told = self.receive(&mut Vec::new()).await?;
        assert_eq!((told.len(), told[0].tag), (1, 5));
        Ok(told.remove(0))
    }

    /// Reads until the connection ends, and says why it did.
    async fn end(&mut self) -> Closed {
        match self.receive(&mut Vec::new()).await {
            Ok(told) => panic!("{told:?}"),
            Err(why) => why,
        }
    }
}

fn trusting() -> TlsSettings {
    TlsSettings::new("localhost", Some(AUTHORITY), false).unwrap()
}

#[derive(Clone, Debug)]
struct Question {
    method: &'static str,
    path: String,
    body: Vec<u8>,
    keeps_body: bool,
}

fn question() -> impl Strategy<Value = Question> {
    let method = proptest::sample::select(vec!["GET", "HEAD", "POST", "DELETE"]);
    let status = proptest::sample::select(vec![200u16, 201, 204, 302, 304, 404, 500]);
    let bytes = prop_oneof![3 => 0usize..100, 2 => 0usize..200_000];
    let path = (status, bytes, 0usize..5)
        .prop_map(|(status, bytes, pieces)| format!("/{status}/{bytes}/{pieces}?a=b"));
    let body = proptest::collection::vec(any::<u8>(), 0..3000);
    (method, path, body, any::<bool>()).prop_map(|(method, path, body, keeps_body)| Question {
        method,
        path,
        body: if method == "POST" { body } else { Vec::new() },
        keeps_body,
    })
}

/// Asks one after the other, and compares with what the server says it would answer.
async fn compare<D: Http>(over: Over, tls: Option<TlsSettings>, questions: &[Question]) {
    let server = Server::start(over, tls.is_some()).await;
    let mut client = Client::<D>::open(&address(server.socket, tls.clone())).await.unwrap();
    assert_eq!(client.driver.tls_ns().is_some(), tls.is_some());
    for question in questions {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let parts = Parts {
            scheme,
            body: &question.body,
            keeps_body: question.keeps_body,
            ..parts(question.method, &question.path)
        };
        let told = client.ask(&parts).await.unwrap();
        let (status, body, location) = server::answer(question.method, &question.path, &question.body);
        let kept = if question.keeps_body { body.clone() } else { Vec::new() };
        assert_eq!(
            (told.status, told.body, told.body_bytes, told.location, told.closes),
            (status, kept, body.len() as u64, location, false),
            "{question:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn an_independent_server_is_understood(questions in proptest::collection::vec(question(), 1..12)) {
        block_on(async {
            compare::<Http1>(Over::One, None, &questions).await;
            compare::<Http1>(Over::One, Some(trusting()), &questions).await;
            compare::<Http2>(Over::Two, None, &questions).await;
            compare::<Http2>(Over::Two, Some(trusting()), &questions).await;
        });
    }

    #[test]
    fn requests_that_are_open_at_once_get_their_own_answers(
        questions in proptest::collection::vec(question(), 1..60),
    ) {
        block_on(async {
            let server = Server::start(Over::Two, false).await;
            let mut client = Client::<Http2>::open(&address(server.socket, None)).await.unwrap();
            for (tag, question) in questions.iter().enumerate() {
                let parts = Parts { body: &question.body, ..parts(question.method, &question.path) };
                client.send(&Http2::prepare(&parts), tag as u32).await;
            }
            let (mut told, mut began) = (Vec::new(), Vec::new());
            while told.len() < questions.len() {
                told.extend(client.receive(&mut began).await.unwrap());
            }
            told.sort_by_key(|told| told.tag);
            for (tag, (told, question)) in told.iter().zip(&questions).enumerate() {
                let (status, body, _) = server::answer(question.method, &question.path, &question.body);
                assert_eq!((told.tag, told.status, &told.body), (tag as u32, status, &body), "{question:?}");
            }
        });
    }
}

/// The name that the server was given in the handshake decides what is spoken.
#[test]
fn each_version_offers_itself_by_name() {
    block_on(async {
        let server = Server::start(Over::Either, true).await;
        let to = address(server.socket, Some(trusting()));
        let parts = Parts { scheme: "https", ..parts("GET", "/version") };
        assert_eq!(Client::<Http1>::open(&to).await.unwrap().ask(&parts).await.unwrap().body, b"HTTP/1.1");
        assert_eq!(Client::<Http2>::open(&to).await.unwrap().ask(&parts).await.unwrap().body, b"HTTP/2.0");
        let only_one = Server::start(Over::One, true).await;
        let error = Client::<Http2>::open(&address(only_one.socket, Some(trusting()))).await.err().unwrap();
        assert!(matches!(error, OpenError::WrongProtocol { .. }), "{error}");
        assert!(error.to_string().contains("does not offer h2"), "{error}");
    });
}

#[test]
fn a_certificate_that_is_not_trusted_ends_the_handshake() {
    block_on(async {
        let server = Server::start(Over::Either, true).await;
        for tls in [
            TlsSettings::new("localhost", None, false).unwrap(),
            TlsSettings::new("other.example", Some(AUTHORITY), false).unwrap(),
        ] {
            let to = address(server.socket, Some(tls));
            assert!(matches!(Client::<Http1>::open(&to).await, Err(OpenError::Tls(_))));
            assert!(matches!(Client::<Http2>::open(&to).await, Err(OpenError::Tls(_))));
        }
        // TLS to a plain-text server, and plain text to a TLS server.
        let plain = Server::start(Over::One, false).await;
        let to = address(plain.socket, Some(trusting()));
        assert!(matches!(Client::<Http1>::open(&to).await, Err(OpenError::Tls(_))));
        let mut client = Client::<Http1>::open(&address(server.socket, None)).await.unwrap();
        let why = client.ask(&parts("GET", "/")).await.unwrap_err();
        assert!(matches!(why, Closed::Broken(Broken::Http(Fault::NotHttp))), "{why:?}");
    });
}

#[test]
fn a_connection_is_kept_or_not_as_the_request_says() {
    block_on(async {
        let server = Server::start(Over::Either, false).await;
        let to = address(server.socket, None);
        let last = Parts { keep_alive: false, ..parts("GET", "/200/10/0") };
        let mut client = Client::<Http1>::open(&to).await.unwrap();
        assert!(!client.ask(&parts("GET", "/200/10/0")).await.unwrap().closes);
        assert!(client.ask(&last).await.unwrap().closes);
        assert!(client.driver.send(Outgoing { prepared: &Http1::prepare(&last), tag: 1 }).is_err());
        assert!(matches!(client.end().await, Closed::ByPeer(None)));
        let mut client = Client::<Http2>::open(&to).await.unwrap();
        assert!(client.ask(&last).await.unwrap().closes);
        assert!(client.driver.send(Outgoing { prepared: &Http2::prepare(&last), tag: 1 }).is_err());
        client.driver.close();
        poll_fn(|cx| client.driver.poll_flush(cx)).await.unwrap();
        assert!(matches!(client.end().await, Closed::ByPeer(None)));
    });
}

#[test]
fn one_request_at_a_time_and_as_many_as_the_server_allows() {
    block_on(async {
        let server = Server::start(Over::Either, false).await;
        let to = address(server.socket, None);
        let mut client = Client::<Http1>::open(&to).await.unwrap();
        let prepared = Http1::prepare(&parts("GET", "/200/10/0"));
        client.driver.send(Outgoing { prepared: &prepared, tag: 0 }).unwrap();
        assert!(client.driver.send(Outgoing { prepared: &prepared, tag: 1 }).is_err());
        let mut client = Client::<Http2>::open(&to).await.unwrap();
        let prepared = Http2::prepare(&parts("GET", "/200/10/0"));
        for tag in 0..server::STREAMS_MAX {
            client.driver.send(Outgoing { prepared: &prepared, tag }).unwrap();
        }
        assert!(client.driver.send(Outgoing { prepared: &prepared, tag: 999 }).is_err());
        poll_fn(|cx| client.driver.poll_flush(cx)).await.unwrap();
        let mut count = 0;
        while count < server::STREAMS_MAX as usize {
            count += client.receive(&mut Vec::new()).await.unwrap().len();
        }
        client.send(&prepared, 1000).await;
        assert_eq!(client.receive(&mut Vec::new()).await.unwrap()[0].tag, 1000);
    });
}

#[test]
fn what_comes_later_is_announced_by_its_first_bytes() {
    block_on(async {
        let server = Server::start(Over::Either, false).await;
        let to = address(server.socket, None);
        let (slow, fast) = (parts("GET", "/slow"), parts("GET", "/200/10/0"));
        let mut client = Client::<Http1>::open(&to).await.unwrap();
        assert!(client.ask(&slow).await.unwrap().began);
        assert!(!client.ask(&fast).await.unwrap().began);
        let mut client = Client::<Http2>::open(&to).await.unwrap();
        assert!(client.ask(&slow).await.unwrap().began);
        assert!(!client.ask(&fast).await.unwrap().began);
    });
}

/// Larger than every window and every buffer on the way.
#[test]
fn a_large_body_comes_whole() {
    block_on(async {
        let server = Server::start(Over::Either, false).await;
        let to = address(server.socket, None);
        let bytes = 30 << 20;
        let path = format!("/200/{bytes}/9");
        let counted = Parts { keeps_body: false, ..parts("GET", &path) };
        let too_large = parts("GET", &path);
        let kept_path = format!("/200/{KEPT_BODY_BYTES_MAX}/9");
        let kept = parts("GET", &kept_path);
        let mut one = Client::<Http1>::open(&to).await.unwrap();
        let mut two = Client::<Http2>::open(&to).await.unwrap();
        assert_eq!(one.ask(&counted).await.unwrap().body_bytes, bytes);
        assert!(one.received_bytes as u64 > bytes);
        assert_eq!(two.ask(&counted).await.unwrap().body_bytes, bytes);
        assert!(two.received_bytes as u64 > bytes);
        let (_, expected, _) = server::answer("GET", &kept_path, b"");
        assert!(one.ask(&kept).await.unwrap().body == expected);
        assert!(two.ask(&kept).await.unwrap().body == expected);
        let why = one.ask(&too_large).await.unwrap_err();
        assert!(matches!(why, Closed::Broken(Broken::Http(Fault::BodyTooLarge))), "{why:?}");
        let why = two.ask(&too_large).await.unwrap_err();
        assert!(matches!(why, Closed::Broken(Broken::Http(Fault::BodyTooLarge))), "{why:?}");
    });
}

#[test]
fn a_large_request_is_sent_whole() {
    block_on(async {
        let server = Server::start(Over::Either, false).await;
        let to = address(server.socket, None);
        let body: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
        let post = Parts { body: &body, ..parts("POST", "/echo") };
        let mut one = Client::<Http1>::open(&to).await.unwrap();
        assert!(one.ask(&post).await.unwrap().body == body);
        let mut two = Client::<Http2>::open(&to).await.unwrap();
        assert!(two.ask(&post).await.unwrap().body == body);
    });
}
