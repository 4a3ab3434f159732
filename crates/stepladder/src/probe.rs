//! One unit of load is let in and leaves again, before anything is measured: a target that is no such server is named at
//! once, in the words of its own answer, and not after a ramp in which nobody ever came in.
//!
//! As many connections as one unit has (two for the arena), because a server that pairs its players would give a single
//! one that leaves to the first real one as an opponent.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use anyhow::{Context as _, bail};
use drivers::{Address, Desk, Driver, OpenError, WebSocket};
use plan::Target;
use tokio::time::{sleep, timeout};

use crate::trial::tls;

/// As long as a handshake may take during the climb.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);
/// For the goodbyes; a server that answers none is none of our business here.
const GOODBYE_WITHIN: Duration = Duration::from_secs(1);
/// A server that has just begun to listen may close the first connections.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(500);

/// Opens `connections` WebSockets one after the other and closes them. Errors: what the server did instead.
pub fn handshake(target: &Target, socket: SocketAddr, connections: u64) -> anyhow::Result<()> {
    let address = Address { socket, host: target.authority(), path: target.path.clone(), tls: tls(target)? };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .context("the handshake with the target cannot be tried")?;
    runtime
        .block_on(async {
            for attempt in 1.. {
                match open_and_close(&address, connections).await {
                    Ok(()) => break,
                    Err(OpenError::ClosedEarly | OpenError::Refused) if attempt < TRIES => sleep(PAUSE).await,
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })
        .or_else(|error| refuse(target, error))
}

async fn open_and_close(address: &Address, connections: u64) -> Result<(), OpenError> {
    let mut open = Vec::new();
    for _ in 0..connections {
        let knock = WebSocket::knock(address, None)?;
        open.push(
            timeout(HANDSHAKE_WITHIN, WebSocket::open(knock, address))
                .await
                .unwrap_or(Err(OpenError::Timeout))?,
        );
    }
    let goodbyes = async {
        for socket in &mut open {
            socket.close();
            // It is gone already; then there is nobody to say goodbye to.
            let _ = poll_fn(|cx| socket.poll_flush(cx)).await;
        }
        let mut desk = Desk::new();
        for socket in &mut open {
            until_closed(socket, &mut desk).await;
        }
    };
    let _ = timeout(GOODBYE_WITHIN, pin!(goodbyes)).await;
    Ok(())
}

async fn until_closed(socket: &mut WebSocket, desk: &mut Desk) {
    poll_fn(|cx| {
        while let Poll::Ready(read) = socket.poll_read(cx, desk) {
            if read.is_err() {
                return Poll::Ready(());
            }
            while let Some(heard) = socket.next(desk) {
                if heard.is_err() {
                    return Poll::Ready(());
                }
            }
        }
        Poll::Pending
    })
    .await;
}

fn refuse(target: &Target, error: OpenError) -> anyhow::Result<()> {
    match error {
        OpenError::WrongProtocol { protocol, why } => {
            bail!("{target} is not a {protocol} server: {why}; check its port and path")
        }
        OpenError::Timeout => bail!(
            "{target} accepts connections but did not answer the WebSocket handshake within {} s; check its port, and \
             whether it hangs",
            HANDSHAKE_WITHIN.as_secs()
        ),
        OpenError::ClosedEarly => bail!(
            "{target} closes connections during the WebSocket handshake (tried {TRIES} times); check its port, and \
             whether it wants wss:// or ws://"
        ),
        OpenError::TurnedAway(status) => {
            bail!("{target} turns us away before there is any load: it answered {status}; see why it is full")
        }
        OpenError::Tls(why) => bail!(
            "{target}: no TLS connection ({why}); --ca FILE trusts its authority, --insecure accepts any certificate"
        ),
        other => bail!("{target} cannot be connected to: {other}"),
    }
}
