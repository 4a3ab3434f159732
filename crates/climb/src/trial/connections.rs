//! Where a worker's connections go, and what they need.

use drivers::{Address, TlsSettings, Upgrade};
use plan::{Handshake, Target, WorkerPlan};

use crate::certificates::trusting;
use crate::secrets;

/// Where the connections of a worker lead, one for each of its sockets. Errors: no certificate, or a request that cannot be sent.
pub fn addresses(plan: &WorkerPlan, target: &Target) -> anyhow::Result<Vec<Address>> {
    let tls = tls(target)?;
    // Of several nodes each by its own name, and the members of a cluster by that of the target.
    let hosts: Vec<String> = target.nodes().map(|node| node.authority()).collect();
    let reply_bytes_max = plan.bots.reply_bytes_max();
    let of_path = |path: String| {
        let (tls, hosts) = (&tls, &hosts);
        plan.sockets().iter().enumerate().map(move |(at, &socket)| Address {
            socket,
            host: hosts.get(at).unwrap_or(&hosts[0]).clone(),
            login: secrets::of_address(plan.login.as_ref()),
            path: plan::percent::encoded(&path).into_owned(),
            // Another member of a cluster presents the certificate of its own address.
            tls: tls
                .as_ref()
                .map(|tls| if socket == plan.address { tls.clone() } else { tls.of(socket.ip()) }),
            reply_bytes_max,
            upgrade: upgrade(plan),
            speaks: Default::default(),
            network: None,
        })
    };
    Ok(bots::catalog::paths(plan)?.into_iter().flat_map(of_path).collect())
}

/// What the bots' WebSocket handshakes say besides.
pub fn upgrade(plan: &WorkerPlan) -> Upgrade {
    let Handshake { headers, subprotocols } = plan.handshake.clone();
    Upgrade { headers, subprotocols, redirects_to: plan.target.redirects_to.clone() }
}

/// What a target's TLS needs, where it speaks it.
pub fn tls(target: &Target) -> anyhow::Result<Option<TlsSettings>> {
    let settings = || trusting(&target.host, target.ca.as_deref(), target.insecure);
    Ok(if target.scheme.is_tls() { Some(settings()?) } else { None })
}
