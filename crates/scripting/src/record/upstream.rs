//! The recorded client's server, and connections to it.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use drivers::TlsSettings;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The server.
#[derive(Clone, Debug)]
pub(super) struct Upstream {
    pub addresses: Vec<SocketAddr>,
    /// as it goes into the Host header
    pub authority: String,
    pub tls: Option<TlsSettings>,
    pub speaks_http: bool,
}

/// A connection to the server, plain or over TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl Upstream {
    pub async fn connect(&self) -> anyhow::Result<BufReader<Box<dyn Stream>>> {
        let connect = async {
            let stream = TcpStream::connect(self.addresses.as_slice()).await?;
            stream.set_nodelay(true)?;
            Ok::<Box<dyn Stream>, std::io::Error>(match &self.tls {
                None => Box::new(stream),
                Some(tls) => {
                    let config = if self.speaks_http { tls.config_http1.clone() } else { tls.config.clone() };
                    Box::new(TlsConnector::from(config).connect(tls.name.clone(), stream).await?)
                }
            })
        };
        let connected = tokio::time::timeout(CONNECT_LIMIT, connect).await;
        let stream = connected
            .context("the server did not answer in 10 s")?
            .context("the server cannot be reached")?;
        Ok(BufReader::new(stream))
    }
}
