//! `--metrics`: a run's running totals as OpenMetrics text, for programs that scrape them during the run.
//!
//! Each request reads what was committed since the previous one. Workers never wait for it, and it costs nothing
//! without requests. Errors here change no verdict and no exit code.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::Path;

use anyhow::{Context as _, bail};
use console::masks::mask;
use console::say;
use store::export::{RunSums, open_metrics};
use store::{RunId, Store};
use viewer::MetricsServer;

/// A port that is ours before the run begins.
pub struct MetricsPort {
    listener: TcpListener,
    address: SocketAddr,
}

impl MetricsPort {
    /// Takes it. Errors: no address, not of this machine alone, or taken.
    pub fn open(text: &str) -> anyhow::Result<MetricsPort> {
        let address = address(text)?;
        let listener = viewer::listen_for_metrics(address).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                anyhow::anyhow!("--metrics {text}: something listens on {address} already; name another port")
            }
            _ => anyhow::Error::new(error).context(format!("--metrics {text}: cannot listen on {address}")),
        })?;
        let address = listener.local_addr().with_context(|| format!("--metrics {text}"))?;
        Ok(MetricsPort { listener, address })
    }

    /// Begins to answer.
    pub fn tell(self, store: &Path, run: &RunId) -> anyhow::Result<MetricsServer> {
        let mut metrics = RunSums::new(run.clone());
        let path = store.to_owned();
        let mut store = None;
        let make = move || {
            let mut read = || {
                let store = match &mut store {
                    Some(store) => store,
                    none => none.insert(Store::open_to_read(&path)?),
                };
                metrics.read_on(store)
            };
            read().map_err(|error| mask(&error.to_string()).into_owned())?;
            Ok(open_metrics(&metrics.families(&shown)))
        };
        let server = viewer::serve_metrics(self.listener, Box::new(make))?;
        say::err_line!("metrics: http://{}/metrics", self.address);
        Ok(server)
    }
}

/// A name as other programs may see it: without secrets, and without what a terminal would obey.
pub(super) fn shown(name: &str) -> String {
    say::harmless(&mask(name)).into_owned()
}

/// `9464`, `127.0.0.1:9464`, `localhost:9464`, `[::1]:9464`.
fn address(text: &str) -> anyhow::Result<SocketAddr> {
    let named = text.strip_prefix("localhost:").unwrap_or(text);
    let address = match named.parse::<u16>() {
        Ok(port) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        Err(_) => text.parse().map_err(|_| {
            anyhow::anyhow!(
                "--metrics {text:?} is no address; write a port or 127.0.0.1:PORT, for example --metrics 9464"
            )
        })?,
    };
    // Only addresses that a request may use as our host name; 127.0.0.2 is not one.
    if ![IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)].contains(&address.ip()) {
        bail!(
            "--metrics {text}: figures are served to programs of this machine only; write --metrics 127.0.0.1:{}, and forward that \
             port if another machine is to read them",
            address.port()
        );
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_address_is_a_port_of_loopback() {
        for (text, expected) in
            [("9464", "127.0.0.1:9464"), ("localhost:9464", "127.0.0.1:9464"), ("[::1]:9464", "[::1]:9464")]
        {
            assert_eq!(address(text).unwrap().to_string(), expected);
        }
        for (text, words) in [
            ("0.0.0.0:9464", "programs of this machine only"),
            ("[::]:9464", "programs of this machine only"),
            ("192.168.1.2:9464", "--metrics 127.0.0.1:9464, and forward"),
            ("127.0.0.2:9464", "write --metrics 127.0.0.1:9464"),
            ("example.com:9464", "is no address"),
            ("70000", "is no address"),
            ("", "is no address"),
        ] {
            let told = address(text).unwrap_err().to_string();
            assert!(told.contains(words), "{text}: {told}");
        }
    }
}
