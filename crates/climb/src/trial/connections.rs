//! Where a worker's connections go, and what they need.

use drivers::{Address, TlsSettings, Upgrade};
use plan::{Handshake, Target, WorkerPlan};

use crate::certificates::trusting;
use crate::secrets;

/// Where the connections of a worker lead, one for each of its sockets. Errors: no certificate, or a request that cannot be sent.
pub fn addresses(plan: &WorkerPlan, target: &Target) -> anyhow::Result<Vec<Address>> {
    let (tls, host) = (tls(target)?, target.authority());
    let reply_bytes_max = plan.bots.reply_bytes_max();
    let of_path = |path: String| {
        let (tls, host) = (&tls, &host);
        plan.sockets().iter().map(move |&socket| Address {
            socket,
            host: host.clone(),
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
    Upgrade { headers, subprotocols }
}

/// What a target's TLS needs, where it speaks it.
pub fn tls(target: &Target) -> anyhow::Result<Option<TlsSettings>> {
    let settings = || trusting(&target.host, target.ca.as_deref(), target.insecure);
    Ok(if target.scheme.is_tls() { Some(settings()?) } else { None })
}
