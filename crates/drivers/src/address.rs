//! Where to connect: resolved, pinned, with the names that the protocol repeats.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};

use crate::network::Path;
use crate::protocol::Protocol;

/// A resolved address. Names were looked up once, in the control plane.
#[derive(Clone, Debug)]
pub struct Address {
    /// where to connect
    pub socket: SocketAddr,
    /// as it goes into the Host header, with the port where it is not the usual one
    pub host: String,
    /// what is shown while a connection opens, where the protocol has a place for it (Redis, Hazelcast)
    pub login: Option<Login>,
    /// path and query, beginning with `/`
    pub path: String,
    /// TLS, for schemes over it
    pub tls: Option<TlsSettings>,
    /// the longest accepted reply, bytes: a longer one ends the connection. Drivers whose protocol has a smaller limit
    /// keep that
    pub reply_bytes_max: usize,
    /// what a WebSocket handshake says besides; other protocols have no use for it
    pub upgrade: Upgrade,
    /// what a connection speaks whose driver may be any; the others speak what they are
    pub speaks: Protocol,
    /// the emulated network in between; `None`: the connection is as it is
    pub network: Option<Path>,
}

impl Address {
    /// A server that is asked for `/` without TLS and sends replies of at most 1 MiB.
    pub fn plain(socket: SocketAddr) -> Self {
        Address {
            socket,
            host: "localhost".to_owned(),
            login: None,
            path: "/".to_owned(),
            tls: None,
            reply_bytes_max: 1 << 20,
            upgrade: Upgrade::default(),
            speaks: Protocol::default(),
            network: None,
        }
    }
}

/// What a WebSocket handshake says besides what the protocol asks for.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Upgrade {
    /// name and value, with secrets filled in; none of them is one that the handshake itself sends, but `Host` may be
    pub headers: Vec<(String, String)>,
    /// offered in this order; the server may choose one of them
    pub subprotocols: Vec<String>,
    /// hosts besides this machine and the server's own to which it may redirect, with their addresses
    pub redirects_to: Vec<(String, IpAddr)>,
}

/// Without the values of the headers, which may be secrets.
impl std::fmt::Debug for Upgrade {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Upgrade")
            .field("headers", &names)
            .field("subprotocols", &self.subprotocols)
            .finish_non_exhaustive()
    }
}

/// A password, and whose it is.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// `None`: the server's own
    pub user: Option<String>,
    /// never shown
    pub password: String,
}

/// Without the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// Certificates of an authority to trust besides the usual ones.
#[derive(Clone, Copy, Debug)]
pub struct Authority<'a> {
    /// of the file, for messages
    pub name: &'a str,
    /// one certificate or more
    pub pem: &'a [u8],
}

/// Whom the tests' servers have their certificate from.
#[cfg(test)]
pub(crate) const AUTHORITY: Authority<'_> =
    Authority { name: "ca.pem", pem: include_bytes!("../tests/data/ca.pem") };

/// What a TLS handshake needs; made once, shared by all connections.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// name that the certificate must carry
    pub name: ServerName<'static>,
    /// trust, versions, ciphers; offers no protocol by name
    pub config: Arc<rustls::ClientConfig>,
    /// the same, and offers HTTP/2 and 1.1 by name (ALPN)
    pub config_http: Arc<rustls::ClientConfig>,
    /// the same, and offers HTTP/1.1 by name
    pub config_http1: Arc<rustls::ClientConfig>,
    /// the same, and offers HTTP/2 by name
    pub config_http2: Arc<rustls::ClientConfig>,
}

/// TLS cannot be set up from what the plan says.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// There is no certificate in it; give a PEM file.
    #[error("{name}: no certificate in it ({why}); give a PEM file with --ca")]
    Authority {
        /// as given
        name: String,
        /// what the reader said
        why: String,
    },
    /// The host is neither a name nor an address.
    #[error("`{0}` cannot be the name in a certificate")]
    Name(String),
    /// The library refused the settings.
    #[error("TLS settings: {0}")]
    Settings(#[from] rustls::Error),
}

impl TlsSettings {
    /// Settings for `host`: public authorities, and `authority` besides; `insecure` accepts any certificate.
    pub fn new(host: &str, authority: Option<Authority<'_>>, insecure: bool) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()?;
        let config = if insecure {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(AnyCertificate { provider }))
                .with_no_client_auth()
        } else {
            let mut roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
            if let Some(Authority { name, pem }) = authority {
                let refuse = |why: String| TlsError::Authority { name: name.to_owned(), why };
                let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(pem)
                    .collect::<Result<_, _>>()
                    .map_err(|error| refuse(error.to_string()))?;
                if certificates.is_empty() {
                    return Err(refuse("no section of it is a certificate".to_owned()));
                }
                for certificate in certificates {
                    roots.add(certificate).map_err(|error| refuse(error.to_string()))?;
                }
            }
            builder.with_root_certificates(roots).with_no_client_auth()
        };
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name(host.to_owned()))?;
        let offering = |protocols: &[&[u8]]| {
            let mut config = config.clone();
            config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
            Arc::new(config)
        };
        let config_http = offering(&[b"h2", b"http/1.1"]);
        let (config_http1, config_http2) = (offering(&[b"http/1.1"]), offering(&[b"h2"]));
        Ok(TlsSettings { name, config: Arc::new(config), config_http, config_http1, config_http2 })
    }

    /// The same settings for a server whose certificate must carry this address.
    pub fn of(&self, ip: IpAddr) -> Self {
        TlsSettings { name: ServerName::from(ip), ..self.clone() }
    }
}

/// Accepts every certificate: for tests of servers with self-signed ones, only when the user asked for it.
#[derive(Debug)]
struct AnyCertificate {
    provider: Arc<rustls::crypto::CryptoProvider>,
}

impl rustls::client::danger::ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
