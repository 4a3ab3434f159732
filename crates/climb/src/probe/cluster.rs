//! Asks one cluster member for all the others before any load: a smart client connects to each.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context as _, bail};
use console::say;
use hazelcast::Config;
use hazelcast::reactor::{Reactor, Tls};
use plan::Target;

use crate::secrets;
use crate::trial::tls;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// More than any cluster has; each is reached before the climb.
const MEMBERS_MAX: usize = 500;
const REACH_WITHIN: Duration = Duration::from_secs(2);

/// The members that hold data, where there is more than one; else none, and `socket` is all there is. Before anything is
/// sent to an address that the cluster named, `may_load` is asked about it.
///
/// Over TLS the members' own addresses are spoken to over TLS too, as the official clients do. Where none of them speaks it,
/// a proxy in front of the cluster does, and `socket` is all there is.
///
/// Errors: the cluster does not tell; what `may_load` says; a member that cannot be reached from here.
pub fn members(
    target: &Target,
    socket: SocketAddr,
    may_load: impl Fn(SocketAddr) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<SocketAddr>> {
    let (_, cluster) = drivers::hazelcast::map_and_cluster(&target.path);
    let tls = tls(target)?.map(|settings| Tls { config: settings.config, host: Some(target.host.clone()) });
    let login = secrets::of_address(secrets::login(target)?.as_ref());
    let config = Config {
        cluster_name: cluster.to_owned(),
        username: login.as_ref().and_then(|login| login.user.clone()),
        password: login.map(|login| login.password),
        client_name: "stepladder".to_owned(),
        connect_timeout: CONNECT_WITHIN,
        may_connect: |_| false,
        tls,
        ..Config::at(socket.to_string())
    };
    let reactor = Reactor::<()>::connect(config.clone())
        .with_context(|| format!("{target} does not tell its members"))?;
    let all = reactor.members();
    if all.len() < 2 {
        return Ok(Vec::new());
    }
    if all.len() > MEMBERS_MAX {
        bail!("{target} names {} members; a climb connects to {MEMBERS_MAX} at most", all.len());
    }
    let mut members = Vec::with_capacity(all.len());
    let mut without_tls = Vec::new();
    for member in all.iter().filter(|member| !member.is_lite) {
        let (host, port) = (member.host.as_str(), member.port);
        let address = (host, port).to_socket_addrs().ok().and_then(|mut found| found.next());
        let Some(address) = address else {
            bail!(
                "{target}: its member {host}:{port} is not known here; give the members addresses that clients can reach"
            )
        };
        may_load(address).with_context(|| format!("{target} names {host}:{port} as its member"))?;
        TcpStream::connect_timeout(&address, REACH_WITHIN).with_context(|| {
            format!(
                "{target}: its member {host}:{port} cannot be reached; a smart client needs all members: start it, or let \
                 it call itself by an address that clients can reach"
            )
        })?;
        if config.tls.is_some() && address != socket {
            without_tls.extend(why_without_tls(&config, address));
        }
        members.push(address);
    }
    let Some(why) = without_tls.first() else { return Ok(members) };
    if without_tls.len() == members.iter().filter(|member| **member != socket).count() {
        // Members report their own addresses, not that of the proxy which terminates TLS for all of them.
        say::err_line!(
            "{target}: its {} members speak no TLS at the addresses that they call themselves by, so all operations go \
             through {socket}",
            members.len()
        );
        return Ok(Vec::new());
    }
    bail!(
        "{target}: a member of it speaks no TLS that is trusted here ({why}); let each member call itself by an address \
         at which TLS is spoken with a certificate for that address, or give --insecure where only the certificate is wrong"
    )
}

/// Why a member cannot be let in to over TLS at its own address, if it cannot.
fn why_without_tls(config: &Config, address: SocketAddr) -> Option<String> {
    let tls = config.tls.clone().map(|tls| Tls { host: None, ..tls });
    let config = Config { tls, connect_timeout: REACH_WITHIN, ..config.clone() };
    let config = Config { addresses: vec![address.to_string()], ..config };
    Reactor::<()>::connect(config).err().map(|error| error.to_string())
}
