//! The handshake alone: opens and closes connections one after the other, and quotes what the server did instead.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use anyhow::{Context as _, bail};
use drivers::tcp::{Lines, lines};
use drivers::{
    Address, Closed, Driver, Hazelcast, Http1, Http2, OpenError, ReadBuffer, Redis, Tcp, WebSocket, shown,
};
use plan::{FirstSign, Paths, REPLY_BYTES, Scheme, Target, Transport, WorkerPlan};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use crate::secrets;
use crate::trial::{tls, upgrade};

/// As long as a handshake may take during the climb.
pub(super) const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);
/// A server that does not want us usually says so at once.
const HANGS_UP_WITHIN: Duration = Duration::from_millis(200);
/// For closing; whether the server answers the close does not matter here.
const GOODBYE_WITHIN: Duration = Duration::from_secs(1);
/// A server that has just begun to listen may close the first connections.
pub(super) const TRIES: u32 = 3;
pub(super) const PAUSE: Duration = Duration::from_millis(500);
/// A server that is busy with something else for some seconds is asked once more.
const TIMEOUTS: u32 = 2;

/// Opens `connections` one after the other and closes them. Errors: what the server did instead.
pub(super) fn handshake(worker: &WorkerPlan, connections: u64) -> anyhow::Result<()> {
    handshake_within(worker, connections, HANGS_UP_WITHIN)
}

fn handshake_within(worker: &WorkerPlan, connections: u64, hangs_up_within: Duration) -> anyhow::Result<()> {
    let (target, address) = (&worker.target, address_of(worker)?);
    runtime()?
        .block_on(async {
            for attempt in 1.. {
                match let_in(target.scheme, &address, connections, hangs_up_within).await {
                    Ok(()) => break,
                    Err(OpenError::ClosedEarly | OpenError::Refused) if attempt < TRIES => sleep(PAUSE).await,
                    Err(OpenError::Timeout) if attempt < TIMEOUTS => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })
        .or_else(|error| refuse(target, error))
}

/// Where the handshake goes.
pub(super) fn address_of(worker: &WorkerPlan) -> anyhow::Result<Address> {
    let target = &worker.target;
    Ok(Address {
        socket: worker.address,
        host: target.authority(),
        login: secrets::of_address(worker.login.as_ref()),
        path: plan::percent::encoded(&target.path).into_owned(),
        tls: tls(target)?,
        reply_bytes_max: REPLY_BYTES,
        upgrade: upgrade(worker),
        speaks: Default::default(),
        network: None,
    })
}

pub(super) fn runtime() -> anyhow::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .context("the handshake with the target cannot be tried")
}

async fn let_in(
    scheme: Scheme,
    address: &Address,
    connections: u64,
    hangs_up_within: Duration,
) -> Result<(), OpenError> {
    match (scheme.transport(), scheme.protocol().first_sign) {
        (Transport::WebSocket, _) => {
            open_and_close(address, connections, async |_: &mut WebSocket, _| Ok(())).await
        }
        (Transport::Http, _) if scheme.is_grpc() => {
            open_and_close(address, connections, async |_: &mut Http2, _| Ok(())).await
        }
        (Transport::Http, _) => open_and_close(address, connections, async |_: &mut Http1, _| Ok(())).await,
        (Transport::Redis, _) => open_and_close(address, connections, async |_: &mut Redis, _| Ok(())).await,
        (Transport::Hazelcast, _) => {
            open_and_close(address, connections, async |_: &mut Hazelcast, _| Ok(())).await
        }
        // Nothing is negotiated before the first datagram.
        (Transport::Udp, _) => Ok(()),
        (Transport::Tcp, FirstSign::Greeting { of, begins_with }) => {
            let greets = async |socket: &mut _, buffer: &mut _| greets(socket, buffer, of, begins_with).await;
            open_and_close(address, connections, greets).await
        }
        (Transport::Tcp, FirstSign::Handshake | FirstSign::StaysOpen) => {
            let stays = async |socket: &mut _, buffer: &mut _| {
                does_not_hang_up(socket, buffer, hangs_up_within).await
            };
            open_and_close(address, connections, stays).await
        }
    }
}

async fn open_and_close<D: Driver>(
    address: &Address,
    connections: u64,
    is_usable: impl AsyncFn(&mut D, &mut ReadBuffer) -> Result<(), OpenError>,
) -> Result<(), OpenError> {
    let (mut open, mut buffer) = (Vec::new(), ReadBuffer::new());
    for _ in 0..connections {
        let begin_connect = D::begin_connect(address, None)?;
        let opens = async {
            let mut socket = D::open(begin_connect, address).await?;
            is_usable(&mut socket, &mut buffer).await?;
            Ok(socket)
        };
        open.push(timeout(HANDSHAKE_WITHIN, opens).await.unwrap_or(Err(OpenError::Timeout))?);
    }
    let goodbyes = async {
        for socket in &mut open {
            socket.close();
            // The peer may be gone already; then no close frame is needed.
            let _ = poll_fn(|cx| socket.poll_flush(cx)).await;
        }
        for socket in &mut open {
            until_closed(socket, &mut buffer).await;
        }
    };
    let _ = timeout(GOODBYE_WITHIN, pin!(goodbyes)).await;
    Ok(())
}

async fn until_closed<D: Driver>(socket: &mut D, buffer: &mut ReadBuffer) {
    poll_fn(|cx| {
        while let Poll::Ready(read) = socket.poll_read(cx, buffer) {
            if read.is_err() {
                return Poll::Ready(());
            }
            while let Some(received) = socket.next(buffer) {
                if received.is_err() {
                    return Poll::Ready(());
                }
            }
        }
        Poll::Pending
    })
    .await;
}

/// Listens for a moment. What a server sends before it closes is its reason.
async fn does_not_hang_up(
    socket: &mut Tcp<Lines>,
    buffer: &mut ReadBuffer,
    within: Duration,
) -> Result<(), OpenError> {
    let mut said = None;
    let hangs_up = async {
        loop {
            match first_line(socket, buffer).await {
                Ok(line) => said = said.take().or(Some(line)),
                Err(why) => return why,
            }
        }
    };
    match (timeout(within, hangs_up).await, said) {
        (Err(_), _) => Ok(()),
        (Ok(OpenError::ClosedEarly), Some(said)) => Err(OpenError::Rejected(said)),
        (Ok(why), _) => Err(why),
    }
}

/// A server that speaks first, and so is known by its words.
async fn greets(
    socket: &mut Tcp<Lines>,
    buffer: &mut ReadBuffer,
    protocol: &'static str,
    begins_with: &str,
) -> Result<(), OpenError> {
    let line = first_line(socket, buffer).await?;
    if line.starts_with(begins_with) {
        return Ok(());
    }
    Err(OpenError::WrongProtocol { protocol, why: format!("it begins with \"{line}\"") })
}

/// The first line of what comes next, fit to be shown.
async fn first_line(socket: &mut Tcp<Lines>, buffer: &mut ReadBuffer) -> Result<String, OpenError> {
    loop {
        match poll_fn(|cx| socket.poll_read(cx, buffer)).await {
            Ok(_) => {}
            Err(Closed::Failed(error)) => return Err(error.into()),
            Err(Closed::ByPeer(_) | Closed::NotOpened(_) | Closed::Broken(_)) => {
                return Err(OpenError::ClosedEarly);
            }
        }
        let mut line = None;
        while let Some(block) = socket.next(buffer) {
            let block = block.map_err(|broken| OpenError::WrongProtocol {
                protocol: "line",
                why: format!("it sent {broken} without an end of line"),
            })?;
            line = line.or_else(|| lines(block).next().map(shown));
        }
        if let Some(line) = line {
            return Ok(line);
        }
    }
}

pub(super) fn refuse(target: &Target, error: OpenError) -> anyhow::Result<()> {
    let within_s = HANDSHAKE_WITHIN.as_secs();
    let (transport, first_sign) = (target.scheme.transport(), target.scheme.protocol().first_sign);
    match (error, transport) {
        (OpenError::WrongProtocol { protocol, why }, _) => {
            let check = if transport.paths() == Paths::Any { "its port and path" } else { "its port" };
            bail!("{target} is not a {protocol} server: {why}; check {check}")
        }
        (OpenError::Timeout, Transport::WebSocket) => bail!(
            "{target} accepts connections but did not answer the WebSocket handshake within {within_s} s (tried {TIMEOUTS} \
             times); check its port, and whether it hangs"
        ),
        (OpenError::Timeout, Transport::Redis | Transport::Hazelcast) => bail!(
            "{target} accepts connections but did not answer as a {} server does within {within_s} s; check its port, and \
             whether it hangs",
            target.scheme.name()
        ),
        (OpenError::Timeout, Transport::Tcp | Transport::Http | Transport::Udp) => match first_sign {
            FirstSign::Greeting { of, begins_with } => bail!(
                "{target} accepts connections but did not greet with {}, as a {of} server does, within {within_s} s; \
                 check its port, and whether it hangs",
                begins_with.trim_end()
            ),
            FirstSign::Handshake | FirstSign::StaysOpen => bail!(
                "{target} did not accept a connection within {within_s} s; check its port, and whether it hangs"
            ),
        },
        (OpenError::ClosedEarly, Transport::Http) => bail!(
            "{target} closes connections before it is asked anything (tried {TRIES} times); check its port, and whether it \
             wants https:// or http://"
        ),
        (OpenError::ClosedEarly, Transport::WebSocket) => bail!(
            "{target} closes connections during the WebSocket handshake (tried {TRIES} times); check its port, and \
             whether it wants wss:// or ws://"
        ),
        (
            OpenError::ClosedEarly,
            Transport::Tcp | Transport::Redis | Transport::Hazelcast | Transport::Udp,
        ) => bail!(
            "{target} closes connections at once, without a word (tried {TRIES} times); check its port, and whether it \
             takes clients from this address"
        ),
        (OpenError::Rejected(words), Transport::WebSocket) if asks_for_credentials(&words) => bail!(
            "{target} asks for credentials: it answered {words}; give them with --header 'Authorization: Bearer ${{TOKEN}}' \
             (the value comes from the environment and is never stored), with --header 'Cookie: ${{COOKIE}}', or as a token \
             in the path{}",
            if words.starts_with("403") { "; some servers refuse by --header 'Origin: URL'" } else { "" }
        ),
        (OpenError::Rejected(words), transport) => {
            let what_to_do = after_rejection(&words, transport);
            bail!("{target} turns us away before there is any load: it answered {words}; {what_to_do}")
        }
        (OpenError::Tls(why), _) => bail!(
            "{target}: no TLS connection ({why}); --ca FILE trusts its authority, --insecure accepts any certificate"
        ),
        (other, _) => bail!("{target} cannot be connected to: {other}"),
    }
}

/// Whether a server that turned down a handshake wants to know who comes.
fn asks_for_credentials(words: &str) -> bool {
    ["401", "403", "407"].iter().any(|status| words.starts_with(status))
}

/// What helps where a server says that it does not take us, by the first word of Redis's errors.
fn after_rejection(words: &str, transport: Transport) -> &'static str {
    match (transport, words.split(' ').next().unwrap_or_default()) {
        (Transport::Redis, "NOAUTH") => {
            "it asks for a password: --password-env VARIABLE (--user NAME where it is a user's)"
        }
        (Transport::Redis, "WRONGPASS") => "check --user and --password-env or --password-file",
        (Transport::Redis, "NOPERM") => {
            "let its user use the keys and commands of the load, or name another with --user"
        }
        (Transport::Redis, "DENIED") => {
            "it lets only some clients in (protected mode): start it with --bind 127.0.0.1, or give it a password"
        }
        (Transport::Redis, _) if words.contains("without any password") => {
            "it asks for no password: leave --password-env or --password-file out"
        }
        (Transport::Redis, "LOADING" | "BUSY" | "MASTERDOWN") => "wait until it is ready, and try again",
        (Transport::Redis, _) if words.contains("DB index") => {
            "name a database that it has, such as redis://HOST:PORT/0"
        }
        (Transport::Redis, _) if words.contains("max number of clients") => "see why it is full",
        (Transport::Redis, _) => "see its log",
        (Transport::Hazelcast, _) => {
            "the URL names the cluster: hazelcast://HOST:PORT/MAP?cluster=NAME; --user and --password-env say who the clients are"
        }
        (Transport::WebSocket | Transport::Http | Transport::Tcp | Transport::Udp, _) => "see why it is full",
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    use plan::EchoBots;

    use super::*;

    /// A server that treats every connection in this way. `silence` is how long it may take to hang up.
    #[track_caller]
    fn check(
        scheme: Scheme,
        silence: Duration,
        treat: impl Fn(TcpStream) + Send + 'static,
        fragments: Result<(), &[&str]>,
    ) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = listener.local_addr().unwrap();
        thread::spawn(move || listener.incoming().flatten().for_each(treat));
        let target = Target::at(scheme, socket);
        let bots = EchoBots { rate_per_s: 1.0, payload_bytes: 1 }.into();
        match (handshake_within(&WorkerPlan::alone(bots, 1, scheme, socket), 2, silence), fragments) {
            (Ok(()), Ok(())) => {}
            (Err(error), Err(fragments)) => {
                let text = format!("{error:#}");
                assert!(text.starts_with(&target.to_string()), "{text}");
                for fragment in fragments {
                    assert!(text.contains(fragment), "{text}");
                }
            }
            (outcome, expected) => panic!("{outcome:?} instead of {expected:?}"),
        }
    }

    fn says(words: &'static str) -> impl Fn(TcpStream) {
        move |mut stream| {
            stream.write_all(words.as_bytes()).unwrap();
            std::mem::forget(stream);
        }
    }

    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(4);

    #[test]
    fn a_server_of_lines_may_be_silent_or_greet() {
        check(Scheme::Tcp, SHORT, std::mem::forget, Ok(()));
        check(Scheme::Tcp, SHORT, says("* welcome\n"), Ok(()));
        check(Scheme::Irc, SHORT, says("NOTICE * :looking you up\r\n"), Ok(()));
    }

    #[test]
    fn a_server_that_hangs_up_is_named_with_its_last_words() {
        let without_a_word: &[&str] = &["closes connections at once, without a word (tried 3 times)"];
        check(Scheme::Tcp, LONG, drop, Err(without_a_word));
        check(Scheme::Nats, LONG, drop, Err(without_a_word));
        let refuses = |mut stream: TcpStream| {
            stream.write_all(b"ERROR :too many\x07 of you\r\nbye\r\n").unwrap();
        };
        check(
            Scheme::Irc,
            LONG,
            refuses,
            Err(&["turns us away", "it answered ERROR :too many\\u{7} of you;"]),
        );
    }

    #[test]
    fn a_redis_that_takes_no_clients_is_named_with_what_helps() {
        let turned_away = |words, fragments: &[&str]| check(Scheme::Redis, LONG, says(words), Err(fragments));
        turned_away(
            "-NOAUTH Authentication required.\r\n",
            &["it answered NOAUTH", "it asks for a password"],
        );
        turned_away("-ERR DB index is out of range\r\n", &["redis://HOST:PORT/0"]);
        turned_away("-ERR max number of clients reached\r\n", &["see why it is full"]);
        turned_away("-LOADING Redis is loading the dataset in memory\r\n", &["wait until it is ready"]);
        check(Scheme::Redis, LONG, says("+OK\r\n"), Ok(()));
    }

    #[test]
    fn a_nats_server_is_known_by_its_greeting() {
        check(Scheme::Nats, SHORT, says("INFO {\"server_id\":\"x\"} \r\n"), Ok(()));
        let other: &[&str] =
            &["is not a NATS server: it begins with \"SSH-2.0-OpenSSH_9.2\"; check its port"];
        check(Scheme::Nats, SHORT, says("SSH-2.0-OpenSSH_9.2\r\n"), Err(other));
        check(Scheme::Nats, SHORT, std::mem::forget, Err(&["did not greet with INFO", "within 5 s"]));
    }
}
