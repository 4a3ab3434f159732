//! Which members a cluster has, asked of one of them before any load: a smart client has a connection to each.

use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context as _, bail};
use hazelcast::Config;
use hazelcast::reactor::Reactor;
use plan::Target;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// More than any cluster has; each is reached before the climb.
const MEMBERS_MAX: usize = 500;
const REACH_WITHIN: Duration = Duration::from_secs(2);

/// The members that hold data, where there is more than one; else none, and `socket` is all there is. Before anything is
/// sent to an address that the cluster named, `may_load` is asked about it.
///
/// Errors: the cluster does not tell; what `may_load` says; a member that cannot be reached from here.
pub fn members(
    target: &Target,
    socket: SocketAddr,
    may_load: impl Fn(SocketAddr) -> anyhow::Result<()>,
) -> anyhow::Result<Vec<SocketAddr>> {
    let (_, cluster) = drivers::hazelcast::map_and_cluster(&target.path);
    let config = Config {
        cluster_name: cluster.to_owned(),
        client_name: "stepladder".to_owned(),
        connect_timeout: CONNECT_WITHIN,
        may_connect: |_| false,
        ..Config::at(socket.to_string())
    };
    let reactor =
        Reactor::<()>::connect(config).with_context(|| format!("{target} does not tell its members"))?;
    let all = reactor.members();
    if all.len() < 2 {
        return Ok(Vec::new());
    }
    if all.len() > MEMBERS_MAX {
        bail!("{target} names {} members; a climb connects to {MEMBERS_MAX} at most", all.len());
    }
    let mut members = Vec::with_capacity(all.len());
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
        members.push(address);
    }
    Ok(members)
}
