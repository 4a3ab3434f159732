//! A proxy that terminates TLS and forwards the plain bytes to a server, as stunnel does.

use std::net::{SocketAddr, TcpListener as StdListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// Of the test authority beside it, for `localhost` and 127.0.0.1.
pub const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../drivers/tests/data/localhost.pem");
/// Its key.
pub const KEY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../drivers/tests/data/localhost.key");
/// What signed it.
pub const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../drivers/tests/data/ca.pem");

/// One that goes on until the tests end.
pub struct Proxy {
    /// where it listens
    pub address: SocketAddr,
    opened: Arc<AtomicUsize>,
}

impl Proxy {
    /// How many TLS connections it has opened to the server.
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }
}

/// Starts one before the server of a URL, `redis://127.0.0.1:6379`.
pub fn before_url(url: &str) -> Proxy {
    let (_, address) = url.split_once("://").expect("a URL");
    before(address.trim_end_matches('/').parse().expect("an address"))
}

/// Starts one on a free port of 127.0.0.1. The server need not listen yet.
pub fn before(server: SocketAddr) -> Proxy {
    let listener = StdListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a listener for tokio");
    let address = listener.local_addr().expect("its address");
    let opened = Arc::new(AtomicUsize::new(0));
    let counter = opened.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        let tasks = tokio::task::LocalSet::new();
        tasks.block_on(&runtime, serve(listener, server, counter));
    });
    Proxy { address, opened }
}

async fn serve(listener: StdListener, server: SocketAddr, opened: Arc<AtomicUsize>) {
    let certificate = CertificateDer::from_pem_file(CERTIFICATE).expect("the certificate");
    let key = PrivateKeyDer::from_pem_file(KEY).expect("its key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(vec![certificate], key))
        .expect("settings of a TLS server");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::from_std(listener).expect("a listener");
    while let Ok((near, _)) = listener.accept().await {
        let (acceptor, opened) = (acceptor.clone(), opened.clone());
        tokio::task::spawn_local(async move {
            // A client that does not trust the certificate ends here.
            let Ok(mut near) = acceptor.accept(near).await else { return };
            let Ok(mut far) = TcpStream::connect(server).await else { return };
            opened.fetch_add(1, Ordering::Relaxed);
            let _ = copy_bidirectional(&mut near, &mut far).await;
            let _ = near.shutdown().await;
        });
    }
}
