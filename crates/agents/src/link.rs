//! The connection to the broker, its credentials, and what is kept there.

use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use async_nats::jetstream::kv::{CreateErrorKind, Store as Keys};
use async_nats::jetstream::object_store::ObjectStore;
use async_nats::jetstream::stream::{Config, DiscardPolicy, Stream};
use async_nats::jetstream::{self, object_store};
use async_nats::rustls::{self, CertificateError};
use async_nats::{Client, ConnectError, ConnectErrorKind, ConnectOptions};
use climb::options::LinkArgs;
use console::signals::Interrupt;
use nkeys::KeyPair;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt as _;
use tokio::runtime::Runtime;
use url::Url;
use watch::profile::Seen;

use crate::messages::{Bundle, Lease, UP, from_json, pack, to_json, unpack};

/// How long one question to the broker may take.
const ASK_WITHIN: Duration = Duration::from_secs(5);
/// The bucket with the lease, and that of bundles.
const KEYS: &str = "stepladder";
const BUNDLES: &str = "stepladder-bundles";
const LEASE: &str = "lease";
/// A lease expires unless it is renewed within this time.
const LEASE_LASTS: Duration = Duration::from_secs(10);
/// How often it is looked whether one has.
const LOOKS_EVERY: Duration = Duration::from_millis(500);
const STREAM: &str = "STEPLADDER";
/// What was measured is kept at the broker for so long at the most.
const STREAM_LASTS: Duration = Duration::from_secs(6 * 3600);
const STREAM_BYTES_MOST: i64 = 2 << 30;
/// No plan with its files and no profile is larger.
const BYTES_MOST: u64 = 256 << 20;
const BUNDLES_LAST: Duration = Duration::from_secs(24 * 3600);

/// A broker that is connected.
#[derive(Clone)]
pub struct Link {
    /// for questions and announcements
    pub client: Client,
    /// for what must not be lost
    pub stream: jetstream::Context,
    /// without password
    pub shown: String,
    keys: Keys,
    bundles: ObjectStore,
}

/// A lease that is held, and its revision.
pub struct Held {
    lease: Lease,
    revision: u64,
}

impl Held {
    /// What is held.
    pub fn lease(&self) -> Lease {
        self.lease.clone()
    }
}

impl Link {
    /// Connects. Errors: no URL; no broker there; wrong credentials; JetStream is off.
    pub async fn connect(args: &LinkArgs, as_whom: &str) -> anyhow::Result<Link> {
        let written =
            args.nats.as_deref().context("--nats URL says where the broker is; stepladder up starts one")?;
        let text = if written.contains("://") { written.to_owned() } else { format!("nats://{written}") };
        let mut url =
            Url::parse(&text).map_err(|error| anyhow!("--nats: {error}; write nats://HOST:4222"))?;
        let scheme = url.scheme().to_owned();
        if !["nats", "tls"].contains(&scheme.as_str()) {
            bail!("--nats: {scheme}:// is no scheme of NATS; write nats://HOST:4222, or tls://HOST:4222");
        }
        let mut options = ConnectOptions::new()
            .name(as_whom)
            .require_tls(scheme == "tls")
            .connection_timeout(ASK_WITHIN)
            .request_timeout(Some(ASK_WITHIN))
            .reconnect_delay_callback(|attempts| Duration::from_millis(100 * attempts.min(5) as u64));
        match (filled(url.username())?, url.password().map(filled).transpose()?) {
            (user, Some(password)) => {
                console::masks::remember(&password);
                options = options.user_and_password(user, password);
            }
            (token, None) if !token.is_empty() => {
                console::masks::remember(&token);
                options = options.token(token);
            }
            _ => {}
        }
        // Neither is shown or logged.
        let _ = (url.set_username(""), url.set_password(None));
        let shown = url.to_string();
        let options = with_files(options, args)?;
        let client = options.connect(shown.as_str()).await;
        let client = client.map_err(|error| refused(&shown, args.nats_ca.as_deref(), &error))?;
        Link::of(client, shown).await
    }
}

/// Adds what stands in files. Errors: which of them cannot be read, or holds something else.
fn with_files(mut options: ConnectOptions, args: &LinkArgs) -> anyhow::Result<ConnectOptions> {
    if let Some((text, named)) = read("--nats-creds", args.nats_creds.as_deref())? {
        options = options.credentials(&text).map_err(|error| {
            anyhow!("{named}: no credentials of NATS ({error}); nsc generate creds writes such a file")
        })?;
    }
    if let Some((text, named)) = read("--nats-nkey", args.nats_nkey.as_deref())? {
        let seed = text.trim();
        if KeyPair::from_seed(seed).is_err() {
            bail!(
                "{named}: no seed of an NKey, which is one line that begins with SU (nk -gen user makes one)"
            );
        }
        options = options.nkey(seed.to_owned());
    }
    if let Some((text, named)) = read("--nats-ca", args.nats_ca.as_deref())? {
        if !text.contains("-----BEGIN CERTIFICATE-----") {
            bail!("{named}: no certificate (PEM) is in it");
        }
        options = options.add_root_certificates(args.nats_ca.clone().unwrap_or_default());
    }
    Ok(options)
}

/// A file's text, and how the option that names it is called in messages.
fn read(option: &str, file: Option<&Path>) -> anyhow::Result<Option<(String, String)>> {
    let Some(file) = file else { return Ok(None) };
    let named = format!("{option} {}", file.display());
    let text = std::fs::read_to_string(file).with_context(|| format!("{named}: it cannot be read"))?;
    Ok(Some((text, named)))
}

/// Threads for the connection to a broker, beside those of the workers. Errors: none could be started.
pub fn runtime(name: &str) -> anyhow::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).thread_name(name).enable_all().build().context("no thread for the broker")
}

/// A part of the URL's credentials, with `${NAME}` filled in from the environment.
fn filled(part: &str) -> anyhow::Result<String> {
    let part = percent_encoding::percent_decode_str(part).decode_utf8_lossy();
    plan::units::http::with_environment(&part, |name| std::env::var(name).ok())
        .map_err(|name| anyhow!("--nats needs the environment variable {name}, which is not set"))
}

/// Why there is no connection, and what to do.
fn refused(shown: &str, authority: Option<&Path>, error: &ConnectError) -> anyhow::Error {
    match tls_error(error) {
        Some(rustls::Error::InvalidCertificate(wrong)) => {
            return anyhow!("{shown}: {}", about_certificate(wrong, authority));
        }
        Some(rustls::Error::InvalidMessage(_)) => {
            return anyhow!("{shown} does not speak TLS; write nats:// instead of tls://");
        }
        _ => {}
    }
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => anyhow!(
            "{shown} refuses these credentials; give those of its configuration (nats://USER:PASSWORD@HOST, --nats-creds or \
             --nats-nkey)"
        ),
        ConnectErrorKind::Tls => {
            anyhow!(
                "{shown}: no TLS connection ({error}); check its certificate, or write nats:// if it has no TLS"
            )
        }
        ConnectErrorKind::Dns => anyhow!("{shown}: its name cannot be looked up; check it"),
        _ => anyhow!(
            "no broker answers at {shown} ({error}); start one there (stepladder up, or nats-server --jetstream)"
        ),
    }
}

/// What went wrong with TLS, where that is why there is no connection: the library calls it an IO error.
fn tls_error(error: &ConnectError) -> Option<&rustls::Error> {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        // An IO error's source is that of what it wraps.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let found = wrapped.and_then(|wrapped| wrapped.downcast_ref()).or_else(|| error.downcast_ref());
        if found.is_some() {
            return found;
        }
        source = error.source();
    }
    None
}

fn about_certificate(wrong: &CertificateError, authority: Option<&Path>) -> String {
    match (wrong, authority) {
        (CertificateError::UnknownIssuer, None) => {
            "this machine does not know who signed its certificate; name the authority with --nats-ca FILE"
                .to_owned()
        }
        (CertificateError::UnknownIssuer, Some(file)) => {
            format!(
                "its certificate was not signed by that of --nats-ca {}; name the one that did",
                file.display()
            )
        }
        (CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }, _) => {
            format!("its certificate is for another name ({wrong}); write that name in --nats")
        }
        (CertificateError::Expired | CertificateError::ExpiredContext { .. }, _) => {
            format!("its certificate has expired ({wrong}); renew it, or set the clock of this machine")
        }
        _ => format!("its certificate is not valid ({wrong})"),
    }
}

/// What a failed question of JetStream means.
fn without_jetstream(shown: &str, error: &dyn std::fmt::Display) -> anyhow::Error {
    anyhow!(
        "{shown} keeps nothing ({error}): JetStream is off there, or these credentials may not use it; start nats-server with \
         --jetstream"
    )
}

impl Link {
    async fn of(client: Client, shown: String) -> anyhow::Result<Link> {
        let stream = jetstream::new(client.clone());
        let off = |error: &dyn std::fmt::Display| without_jetstream(&shown, error);
        stream.get_or_create_stream(of_keys()).await.map_err(|error| off(&error))?;
        let keys = stream.get_key_value(KEYS).await.map_err(|error| off(&error))?;
        let config = object_store::Config {
            bucket: BUNDLES.to_owned(),
            description: Some("Plans and their files, by their SHA-256".to_owned()),
            max_age: BUNDLES_LAST,
            ..Default::default()
        };
        let bundles = match stream.get_object_store(BUNDLES).await {
            Ok(bundles) => bundles,
            Err(_) => stream.create_object_store(config).await.map_err(|error| off(&error))?,
        };
        let config = Config {
            name: STREAM.to_owned(),
            description: Some("What agents of Stepladder measured".to_owned()),
            subjects: vec![format!("{UP}.>")],
            max_age: STREAM_LASTS,
            max_bytes: STREAM_BYTES_MOST,
            ..Default::default()
        };
        stream.get_or_create_stream(config).await.map_err(|error| off(&error))?;
        Ok(Link { client, stream, shown, keys, bundles })
    }

    /// The stream of what is measured. Errors: the broker does not answer.
    pub async fn measured(&self) -> anyhow::Result<Stream> {
        self.stream.get_stream(STREAM).await.map_err(|error| without_jetstream(&self.shown, &error))
    }

    /// True while there is a connection.
    pub fn is_up(&self) -> bool {
        self.client.connection_state() == async_nats::connection::State::Connected
    }

    /// Takes the lease of this broker's agents, also that of a coordinator that is gone, once it has expired. Errors: another
    /// coordinator holds it, and which.
    pub async fn await_lease(&self, lease: Lease, interrupt: &Interrupt) -> anyhow::Result<Held> {
        let mut seen = None;
        loop {
            let refused = match self.take_lease(lease.clone()).await {
                Ok(held) => return Ok(held),
                Err(refused) => refused,
            };
            let entry = self.keys.entry(LEASE).await;
            let revision =
                entry.map_err(|error| without_jetstream(&self.shown, &error))?.map(|it| it.revision);
            let Some(revision) = revision else { continue };
            // A coordinator that is alive has renewed it.
            if *seen.get_or_insert(revision) != revision || interrupt.is_asked() {
                return Err(refused);
            }
            tokio::time::sleep(LOOKS_EVERY).await;
        }
    }

    /// Takes the lease of this broker's agents if nobody holds it. Errors: another coordinator does, and which.
    pub async fn take_lease(&self, lease: Lease) -> anyhow::Result<Held> {
        match self.keys.create(LEASE, to_json(&lease).into()).await {
            Ok(revision) => Ok(Held { lease, revision }),
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => {
                let other = self.lease().await?.unwrap_or_default();
                bail!(
                    "another climb uses the agents of {} (on {}, pid {}); wait for its end",
                    self.shown,
                    other.host,
                    other.pid
                )
            }
            Err(error) => Err(without_jetstream(&self.shown, &error)),
        }
    }

    /// Who holds the agents now.
    pub async fn lease(&self) -> anyhow::Result<Option<Lease>> {
        let kept = self.keys.get(LEASE).await.map_err(|error| without_jetstream(&self.shown, &error))?;
        kept.map(|bytes| from_json(&bytes)).transpose()
    }

    /// Holds it for longer. Errors: it is another's meanwhile.
    pub async fn renew(&self, held: &mut Held) -> anyhow::Result<()> {
        let renewed = self.keys.update(LEASE, to_json(&held.lease).into(), held.revision).await;
        held.revision = renewed.map_err(|error| anyhow!("the lease of the agents is another's ({error})"))?;
        Ok(())
    }

    /// Gives it back.
    pub async fn give_back(&self, held: &Held) {
        // What cannot be given back ends by itself.
        let _ = self.keys.delete_expect_revision(LEASE, Some(held.revision)).await;
    }

    /// Keeps a bundle at the broker; returns its name there. Errors: the broker does not take it.
    pub async fn put_bundle(&self, bundle: &Bundle) -> anyhow::Result<String> {
        self.put("plan", &to_json(bundle)).await
    }

    /// Keeps bytes at the broker; returns their name there. Errors: the broker does not take them.
    async fn put(&self, what: &str, bytes: &[u8]) -> anyhow::Result<String> {
        let name = digest(bytes);
        if self.bundles.info(&name).await.is_err() {
            let put = self.bundles.put(name.as_str(), &mut &*bytes).await;
            put.map_err(|error| {
                anyhow!("{} does not take the {what} of {} bytes ({error})", self.shown, bytes.len())
            })?;
        }
        Ok(name)
    }

    /// Keeps a server's profile at the broker; returns its name there. Errors: the broker does not take it.
    pub async fn put_profile(&self, seen: &Seen) -> anyhow::Result<String> {
        self.put("profile", &pack(seen)).await
    }

    /// The profile of that name, which is taken away. Errors: it is not there; it is another than its name says.
    pub async fn take_profile(&self, name: &str) -> anyhow::Result<Seen> {
        let seen = unpack(&self.bytes("profile", name).await?);
        // If it stays, it ends by itself.
        let _ = self.bundles.delete(name).await;
        seen
    }

    /// The bundle of that name. Errors: it is not there; it is another than its name says.
    pub async fn bundle(&self, name: &str) -> anyhow::Result<Bundle> {
        from_json(&self.bytes("plan", name).await?)
    }

    async fn bytes(&self, what: &str, name: &str) -> anyhow::Result<Vec<u8>> {
        let found = self.bundles.get(name).await;
        let found = found.map_err(|error| anyhow!("the {what} is not at the broker ({error})"))?;
        let mut bytes = Vec::new();
        let read = found.take(BYTES_MOST).read_to_end(&mut bytes).await;
        read.map_err(|error| anyhow!("the {what} at the broker cannot be read ({error})"))?;
        check(what, name, &bytes)?;
        Ok(bytes)
    }
}

/// Errors: these bytes are others than their name says.
fn check(what: &str, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    if digest(bytes) != name {
        bail!(
            "the {what} at the broker is not the one that its name says (SHA-256 {name}), so it is not used"
        );
    }
    Ok(())
}

/// The stream of a key-value bucket, as NATS lays it out (ADR-8). The library makes one only after asking for the account, whose
/// answer it cannot read of a nats-server before 2.10.
fn of_keys() -> Config {
    Config {
        name: format!("KV_{KEYS}"),
        description: Some("Who holds the agents of Stepladder".to_owned()),
        subjects: vec![format!("$KV.{KEYS}.>")],
        max_messages_per_subject: 1,
        max_age: LEASE_LASTS,
        discard: DiscardPolicy::New,
        allow_rollup: true,
        deny_delete: true,
        allow_direct: true,
        num_replicas: 1,
        ..Default::default()
    }
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_that_is_not_what_its_name_says_is_not_played() {
        let bundle = Bundle { plan: "{}".to_owned(), files: vec![("rows.csv".to_owned(), "a,b".to_owned())] };
        let bytes = to_json(&bundle);
        let name = digest(&bytes);
        check("plan", &name, &bytes).expect("it is the one");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let said = check("plan", &name, &changed).expect_err("one bit is another").to_string();
            assert!(said.contains(&format!("not the one that its name says (SHA-256 {name})")), "{said}");
        }
    }
}
