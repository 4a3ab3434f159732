//! Which members there are, which of them to connect to, and when. Pure: instants and randomness are arguments.
//!
//! It starts with the configured addresses. Once a member has reported the cluster's members, it connects to those; the
//! configured addresses are tried again only when no member is left.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::outcome::{ConnectError, Down, DownCause};
use crate::wire::{Authentication, Member, MembersView, Uuid};

/// Pauses between attempts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backoff {
    pub least_ns: u64,
    pub most_ns: u64,
}

impl Backoff {
    /// The pause after so many failures in a row; `jitter` in [0, 1) takes up to half of it.
    fn pause_ns(&self, failures: u32, jitter: f64) -> u64 {
        let doubled = self.least_ns.saturating_mul(1 << failures.saturating_sub(1).min(30));
        let pause_ns = doubled.min(self.most_ns.max(self.least_ns));
        pause_ns - (pause_ns as f64 / 2.0 * jitter) as u64
    }
}

/// An address that may be connected to.
#[derive(Debug)]
struct Target {
    address: SocketAddr,
    is_seed: bool,
    /// the member there, as far as known
    member: Option<Uuid>,
    connection: Option<usize>,
    /// whether the member has let us in
    is_admitted: bool,
    failures: u32,
    due_ns: u64,
    is_hopeless: bool,
}

/// Members and addresses.
#[derive(Debug)]
pub(super) struct Cluster {
    targets: Vec<Target>,
    members: Vec<Member>,
    id: Option<Uuid>,
    server_version: Option<String>,
    backoff: Backoff,
    last_down: Option<Arc<Down>>,
    tries: u32,
}

impl Cluster {
    pub fn new(seeds: Vec<SocketAddr>, backoff: Backoff) -> Self {
        let targets = seeds.into_iter().map(|address| Target::new(address, true)).collect();
        Cluster {
            targets,
            members: Vec::new(),
            id: None,
            server_version: None,
            backoff,
            last_down: None,
            tries: 0,
        }
    }

    pub fn members(&self) -> &[Member] {
        &self.members
    }

    pub fn server_version(&self) -> Option<&str> {
        self.server_version.as_deref()
    }

    pub fn last_down(&self) -> Option<&Arc<Down>> {
        self.last_down.as_ref()
    }

    fn is_wanted(&self, target: &Target) -> bool {
        if target.connection.is_some() {
            return false;
        }
        let mut admitted = self.targets.iter().filter(|other| other.is_admitted);
        match target.member {
            Some(member) => !admitted.any(|other| other.member == Some(member)),
            // An address without a known member helps only while no member can list the others.
            None => admitted.next().is_none(),
        }
    }

    /// An address to connect to now; `opened` or `failed` must follow.
    pub fn due(&self, now_ns: u64) -> Option<SocketAddr> {
        let due = |target: &&Target| target.due_ns <= now_ns && self.is_wanted(target);
        self.targets.iter().find(due).map(|target| target.address)
    }

    /// When an address will be due; `u64::MAX` if none will.
    pub fn wake_ns(&self) -> u64 {
        let wanted = self.targets.iter().filter(|target| self.is_wanted(target));
        wanted.map(|target| target.due_ns).min().unwrap_or(u64::MAX)
    }

    fn target(&mut self, address: SocketAddr) -> Option<&mut Target> {
        self.targets.iter_mut().find(|target| target.address == address)
    }

    /// A connection to this address is on its way.
    pub fn opened(&mut self, address: SocketAddr, connection: usize) {
        self.tries += 1;
        if let Some(target) = self.target(address) {
            target.connection = Some(connection);
        }
    }

    /// A member accepts us. Refused if it belongs to another cluster than connected members; if all of those are gone
    /// it is a restarted cluster. Returns whether it is the cluster as before.
    pub fn admit(&mut self, address: SocketAddr, who: &Authentication) -> Result<bool, DownCause> {
        let admitted = |target: &&Target| target.is_admitted;
        if self.targets.iter().filter(admitted).any(|target| target.member == Some(who.member)) {
            // So that this address is not tried again while the other one is valid.
            if let Some(target) = self.target(address) {
                target.member = Some(who.member);
            }
            return Err(DownCause::Double);
        }
        let is_same = self.id == Some(who.cluster);
        if !is_same && self.targets.iter().any(|target| target.is_admitted) {
            return Err(DownCause::OtherCluster);
        }
        self.id = Some(who.cluster);
        self.server_version = Some(who.server_version.clone());
        if let Some(target) = self.target(address) {
            target.member = Some(who.member);
            target.is_admitted = true;
            target.failures = 0;
            target.is_hopeless = false;
        }
        Ok(is_same)
    }

    /// The connection to this address ended, or never opened.
    pub fn failed(&mut self, down: Arc<Down>, now_ns: u64, jitter: f64) {
        let backoff = self.backoff;
        let is_listed = |member: Option<Uuid>, members: &[Member]| {
            member.is_some_and(|uuid| members.iter().any(|listed| listed.uuid == uuid))
        };
        if let Some(at) = self.targets.iter().position(|target| target.address == down.address) {
            let keeps = self.targets[at].is_seed || is_listed(self.targets[at].member, &self.members);
            let target = &mut self.targets[at];
            target.connection = None;
            target.is_admitted = false;
            if !matches!(down.cause, DownCause::Double) {
                target.failures = target.failures.saturating_add(1);
                target.is_hopeless = down.cause.is_hopeless();
            }
            target.due_ns = now_ns.saturating_add(backoff.pause_ns(target.failures, jitter));
            if !keeps {
                self.targets.swap_remove(at);
            }
        }
        if !matches!(down.cause, DownCause::Double | DownCause::Left) {
            self.last_down = Some(down);
        }
    }

    /// The members, as one of them says. `resolve` finds the address of a host and port.
    pub fn take_members(
        &mut self,
        view: MembersView,
        now_ns: u64,
        mut resolve: impl FnMut(&str, u16) -> Option<SocketAddr>,
    ) {
        self.members = view.members;
        let mut listed = Vec::with_capacity(self.members.len());
        for member in &self.members {
            if let Some(target) =
                self.targets.iter().find(|target| target.is_admitted && target.member == Some(member.uuid))
            {
                // Connected, maybe through another address than the one it reports.
                listed.push(target.address);
                continue;
            }
            let Some(address) = resolve(&member.host, member.port) else { continue };
            listed.push(address);
            if !self.targets.iter().any(|target| target.address == address) {
                self.targets.push(Target::new(address, false));
            }
            let Some(target) = self.targets.iter_mut().find(|target| target.address == address) else {
                continue;
            };
            if target.member != Some(member.uuid) && !target.is_admitted {
                target.member = Some(member.uuid);
                target.failures = 0;
                target.due_ns = now_ns;
            }
        }
        for target in &mut self.targets {
            if !listed.contains(&target.address) && !target.is_admitted {
                target.member = None;
            }
        }
        self.targets.retain(|target| {
            target.is_seed || target.connection.is_some() || listed.contains(&target.address)
        });
    }

    /// Whether the cluster, as it last said, has this member.
    pub fn has(&self, member: Uuid) -> bool {
        self.members.iter().any(|listed| listed.uuid == member)
    }

    /// Whether every address has been tried and cannot be a way in.
    pub fn is_hopeless(&self) -> bool {
        self.targets.iter().all(|target| target.is_hopeless && target.connection.is_none())
    }

    /// Why no member let us in.
    pub fn connect_error(&self, cluster: &str, elapsed_ns: u64) -> ConnectError {
        let addresses: Vec<String> = self.targets.iter().map(|target| target.address.to_string()).collect();
        let last = self.last_down.as_ref();
        if let Some(Down { address, cause: DownCause::Tls(why) }) = last.map(Arc::as_ref) {
            return ConnectError::Tls { address: *address, why: why.to_string() };
        }
        ConnectError::NoMember {
            cluster: cluster.to_owned(),
            addresses: addresses.join(", "),
            why: last.map_or_else(|| "no answer in time".to_owned(), |down| down.cause.to_string()),
            tries: self.tries,
            elapsed: Duration::from_nanos(elapsed_ns),
        }
    }
}

impl Target {
    fn new(address: SocketAddr, is_seed: bool) -> Self {
        Target {
            address,
            is_seed,
            member: None,
            connection: None,
            is_admitted: false,
            failures: 0,
            due_ns: 0,
            is_hopeless: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::SessionError;

    const BACKOFF: Backoff = Backoff { least_ns: 100, most_ns: 1000 };

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    fn uuid(n: u64) -> Uuid {
        Uuid::from_halves(0, n)
    }

    fn who(member: u64, cluster: u64) -> Authentication {
        let server_version = "5.5.0".to_owned();
        Authentication { member: uuid(member), cluster: uuid(cluster), partition_count: 271, server_version }
    }

    /// Members by number and port.
    fn view(members: &[(u64, u16)]) -> MembersView {
        let member = |&(n, port): &(u64, u16)| Member {
            uuid: uuid(n),
            host: "127.0.0.1".to_owned(),
            port,
            is_lite: false,
        };
        MembersView { version: 1, members: members.iter().map(member).collect() }
    }

    fn take(cluster: &mut Cluster, members: &[(u64, u16)], now_ns: u64) {
        cluster.take_members(view(members), now_ns, |host, port| {
            Some((host.parse::<std::net::IpAddr>().ok()?, port).into())
        });
    }

    /// Connects to everything due, in order; returns the ports.
    fn open_all(cluster: &mut Cluster, now_ns: u64) -> Vec<u16> {
        let mut ports = Vec::new();
        while let Some(address) = cluster.due(now_ns) {
            cluster.opened(address, ports.len());
            ports.push(address.port());
        }
        ports
    }

    fn lose(cluster: &mut Cluster, port: u16, cause: DownCause, now_ns: u64) {
        cluster.failed(Arc::new(Down { address: address(port), cause }), now_ns, 0.0);
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_jitter_halves_them_at_most() {
        let pauses: Vec<u64> = (1..7).map(|failures| BACKOFF.pause_ns(failures, 0.0)).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(BACKOFF.pause_ns(u32::MAX, 0.999_999), 501);
    }

    #[test]
    fn one_member_tells_of_the_others_and_each_is_connected_once() {
        let mut cluster = Cluster::new(vec![address(1), address(9)], BACKOFF);
        assert_eq!(open_all(&mut cluster, 0), [1, 9]);
        assert!(cluster.admit(address(1), &who(1, 7)).is_ok_and(|is_same| !is_same));
        lose(&mut cluster, 9, io_error().into(), 0);
        // The member reports its own address as 127.0.0.1:11; it is already connected through another one.
        take(&mut cluster, &[(1, 11), (2, 2), (3, 3)], 5);
        assert_eq!(open_all(&mut cluster, 5), [2, 3]);
        assert!(cluster.admit(address(2), &who(2, 7)).is_ok_and(|is_same| is_same));
        assert!(matches!(cluster.admit(address(3), &who(2, 7)), Err(DownCause::Double)));
        assert!(matches!(cluster.admit(address(3), &who(3, 8)), Err(DownCause::OtherCluster)));
        assert_eq!(
            cluster.wake_ns(),
            u64::MAX,
            "the configured address where nobody is does not matter any more"
        );
    }

    #[test]
    fn a_lost_member_is_tried_with_pauses_and_forgotten_when_it_leaves() {
        let mut cluster = Cluster::new(vec![address(1)], BACKOFF);
        open_all(&mut cluster, 0);
        cluster.admit(address(1), &who(1, 7)).expect("the first");
        take(&mut cluster, &[(1, 1), (2, 2)], 0);
        open_all(&mut cluster, 0);
        cluster.admit(address(2), &who(2, 7)).expect("the same cluster");
        lose(&mut cluster, 2, DownCause::ClosedByMember, 1000);
        assert_eq!(cluster.wake_ns(), 1100);
        assert_eq!(open_all(&mut cluster, 1100), [2]);
        lose(&mut cluster, 2, io_error().into(), 1100);
        assert_eq!(cluster.wake_ns(), 1300);
        take(&mut cluster, &[(1, 1)], 1200);
        assert_eq!(cluster.wake_ns(), u64::MAX);
        // Back at the same address, as another member.
        take(&mut cluster, &[(1, 1), (5, 2)], 1250);
        assert_eq!(open_all(&mut cluster, 1250), [2]);
    }

    #[test]
    fn without_any_member_all_known_addresses_are_tried_and_a_restarted_cluster_is_taken() {
        let mut cluster = Cluster::new(vec![address(1)], BACKOFF);
        open_all(&mut cluster, 0);
        cluster.admit(address(1), &who(1, 7)).expect("the first");
        take(&mut cluster, &[(1, 1), (2, 2)], 0);
        lose(&mut cluster, 1, DownCause::ClosedByMember, 0);
        assert_eq!(open_all(&mut cluster, 10_000), [1, 2]);
        assert!(
            cluster.admit(address(2), &who(8, 70)).is_ok_and(|is_same| !is_same),
            "another cluster than before"
        );
    }

    #[test]
    fn only_addresses_that_refused_for_good_are_hopeless() {
        let mut cluster = Cluster::new(vec![address(1), address(2)], BACKOFF);
        open_all(&mut cluster, 0);
        lose(&mut cluster, 1, SessionError::Rejected(crate::wire::views::Rejected::Credentials).into(), 0);
        assert!(!cluster.is_hopeless());
        lose(&mut cluster, 2, io_error().into(), 0);
        assert!(!cluster.is_hopeless(), "a member may be about to listen there");
        open_all(&mut cluster, 10_000);
        lose(&mut cluster, 2, SessionError::Broken(crate::wire::Broken::FrameLength(0)).into(), 0);
        lose(&mut cluster, 1, SessionError::Rejected(crate::wire::views::Rejected::Credentials).into(), 0);
        assert!(cluster.is_hopeless());
        let message = cluster.connect_error("prod", 2_000_000_000).to_string();
        assert_eq!(
            message,
            "cannot connect to cluster \"prod\" at 127.0.0.1:1, 127.0.0.1:2 (the member refused the credentials; check \
             the cluster name, and user and password where it asks for them; tried 4 times in 2.0 s); start a member \
             there, or check addresses and cluster name"
        );
    }

    fn io_error() -> std::io::Error {
        std::io::ErrorKind::ConnectionRefused.into()
    }
}
