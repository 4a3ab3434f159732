//! Which certificates a TLS connection accepts.

use std::path::Path;

use anyhow::Context as _;
use drivers::{Authority, TlsSettings};
use watch::files::{self, Accepts};

/// All public authorities together take a quarter of a megabyte.
const BYTES_MAX: u64 = 4 << 20;

/// What connections to `host` accept: certificates of public authorities and of the PEM file `ca`, or any with `insecure`.
///
/// Errors: the file cannot be read or holds no certificate; the host cannot be the name in one.
pub fn trusting(host: &str, ca: Option<&Path>, insecure: bool) -> anyhow::Result<TlsSettings> {
    let Some(path) = ca else { return Ok(TlsSettings::new(host, None, insecure)?) };
    let name = path.display().to_string();
    // A scenario may name this file, so only a regular file is read.
    let pem = files::read(path, Accepts::Files, BYTES_MAX)
        .with_context(|| format!("cannot read the certificate authority {name}"))?;
    Ok(TlsSettings::new(host, Some(Authority { name: &name, pem: &pem }), insecure)?)
}
