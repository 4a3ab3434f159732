//! Shared helpers for the tests of all protocols.

use tokio::net::{TcpListener, TcpStream};

use crate::network;

/// Runs a test that speaks over sockets, with what it spawns on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, future)
}

/// The same for what waits for emulated networks too: wakes what is due again and again, as an engine's thread does.
pub(crate) fn timed<T>(future: impl Future<Output = T>) -> T {
    block_on(async {
        let mut future = std::pin::pin!(future);
        std::future::poll_fn(|cx| {
            network::wake_due(network::now_ns());
            cx.waker().wake_by_ref();
            future.as_mut().poll(cx)
        })
        .await
    })
}

/// The server's side of a connection over the loopback, and the client's.
pub(crate) async fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (listener.accept().await.unwrap().0, near)
}

/// The pieces of `bytes` between these cuts.
pub(crate) fn split<'b>(bytes: &'b [u8], cuts: &[usize]) -> Vec<&'b [u8]> {
    let mut edges: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    edges.extend([0, bytes.len()]);
    edges.sort_unstable();
    edges.dedup();
    edges.windows(2).map(|edge| &bytes[edge[0]..edge[1]]).collect()
}
