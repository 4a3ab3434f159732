//! The link to a target: which interface, its kind, speed and utilisation.
//!
//! A wireless or slow link spoils a run without any sign of it in the latencies. What the interface does not report
//! (virtual ones have no speed) is `None`. Units: bits and bytes per second as the names say.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// What kind of link it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// the target is this machine
    Loopback,
    /// a cable
    Wired,
    /// radio: its latency and speed change by themselves
    Wireless,
    /// an interface without hardware: a bridge, a tunnel, a container's
    Virtual,
    /// the interface could not be found
    Unknown,
}

impl LinkKind {
    /// As it appears in records.
    pub fn name(self) -> &'static str {
        match self {
            LinkKind::Loopback => "loopback",
            LinkKind::Wired => "wired",
            LinkKind::Wireless => "wireless",
            LinkKind::Virtual => "virtual",
            LinkKind::Unknown => "unknown",
        }
    }
}

/// The interface that packets to a target leave by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkLink {
    /// its name, `lo`, `eth0`, …; empty when unknown
    pub interface: String,
    /// of what kind
    pub kind: LinkKind,
    /// its speed, where it tells one
    pub bits_per_s: Option<u64>,
}

impl NetworkLink {
    /// The link to `target`. Sends nothing: the kernel is only asked which way it would go. Errors: there is no way.
    pub fn to(target: SocketAddr) -> io::Result<Self> {
        if target.ip().is_loopback() {
            return Ok(NetworkLink {
                interface: "lo".to_owned(),
                kind: LinkKind::Loopback,
                bits_per_s: None,
            });
        }
        let any: IpAddr =
            if target.is_ipv4() { [0, 0, 0, 0].into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(target)?;
        let local = socket.local_addr()?.ip();
        if local == target.ip() {
            // One of our own addresses: traffic takes loopback whatever interface has it.
            return Ok(NetworkLink {
                interface: "lo".to_owned(),
                kind: LinkKind::Loopback,
                bits_per_s: None,
            });
        }
        Ok(match interface_of(local) {
            Some(name) => Self::named(Path::new("/sys/class/net"), &name),
            None => NetworkLink { interface: String::new(), kind: LinkKind::Unknown, bits_per_s: None },
        })
    }

    fn named(net: &Path, name: &str) -> Self {
        let folder = net.join(name);
        let kind = if name == "lo" {
            LinkKind::Loopback
        } else if folder.join("wireless").exists() || folder.join("phy80211").exists() {
            LinkKind::Wireless
        } else if folder.join("device").exists() {
            LinkKind::Wired
        } else {
            LinkKind::Virtual
        };
        let megabits = number(folder.join("speed")).filter(|&speed| speed > 0);
        NetworkLink {
            interface: name.to_owned(),
            kind,
            bits_per_s: megabits.map(|speed| speed as u64 * 1_000_000),
        }
    }

    /// Bytes received and sent by the interface since it is up; their growth against its speed says how full it is.
    pub fn bytes(&self) -> Option<(u64, u64)> {
        let folder = Path::new("/sys/class/net").join(&self.interface).join("statistics");
        let count = |name: &str| number(folder.join(name)).map(|count| count as u64);
        (!self.interface.is_empty()).then_some(())?;
        Some((count("rx_bytes")?, count("tx_bytes")?))
    }
}

impl fmt::Display for NetworkLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            LinkKind::Loopback => return f.write_str("loopback"),
            LinkKind::Unknown => return f.write_str("an unknown interface"),
            LinkKind::Wired => write!(f, "{}, wired", self.interface)?,
            LinkKind::Wireless => write!(f, "{}, wireless", self.interface)?,
            LinkKind::Virtual => write!(f, "{}, virtual", self.interface)?,
        }
        match self.bits_per_s {
            Some(bits) if bits >= 1_000_000_000 => write!(f, ", {} Gb/s", bits as f64 / 1e9),
            Some(bits) => write!(f, ", {} Mb/s", bits / 1_000_000),
            None => Ok(()),
        }
    }
}

fn number(path: PathBuf) -> Option<i64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The interface that has this address.
fn interface_of(address: IpAddr) -> Option<String> {
    let mut list = std::ptr::null_mut();
    // SAFETY: the call fills `list`; it is walked only until its end and freed once.
    unsafe {
        if libc::getifaddrs(&mut list) != 0 {
            return None;
        }
        let mut found = None;
        let mut entry = list;
        while let Some(interface) = entry.as_ref() {
            if found.is_none() && address_of(interface.ifa_addr) == Some(address) {
                let name = std::ffi::CStr::from_ptr(interface.ifa_name);
                found = Some(name.to_string_lossy().into_owned());
            }
            entry = interface.ifa_next;
        }
        libc::freeifaddrs(list);
        found
    }
}

/// # Safety
/// `address` is null or points to a socket address as long as its family says.
unsafe fn address_of(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: the caller's promise; the kernel aligns each address for its family.
    unsafe {
        match libc::c_int::from(address.as_ref()?.sa_family) {
            libc::AF_INET => {
                let v4 = std::ptr::read_unaligned(address.cast::<libc::sockaddr_in>());
                Some(IpAddr::from(u32::from_be(v4.sin_addr.s_addr).to_be_bytes()))
            }
            libc::AF_INET6 => {
                let v6 = std::ptr::read_unaligned(address.cast::<libc::sockaddr_in6>());
                Some(IpAddr::from(v6.sin6_addr.s6_addr))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_reached_by_loopback() {
        let link = NetworkLink::to("127.0.0.1:1".parse().unwrap()).unwrap();
        assert_eq!((link.kind, link.to_string().as_str()), (LinkKind::Loopback, "loopback"));
        assert_eq!(interface_of([127, 0, 0, 1].into()).as_deref(), Some("lo"));
        assert!(link.bytes().is_some());
    }

    #[test]
    fn kinds_and_speeds_are_told_apart() {
        let net = tempfile::tempdir().unwrap();
        let plant = |name: &str, mark: &str, speed: &str| {
            fs::create_dir_all(net.path().join(name).join(mark)).unwrap();
            fs::write(net.path().join(name).join("speed"), speed).unwrap();
            NetworkLink::named(net.path(), name).to_string()
        };
        assert_eq!(plant("eth0", "device", "2500\n"), "eth0, wired, 2.5 Gb/s");
        assert_eq!(plant("eth1", "device", "100\n"), "eth1, wired, 100 Mb/s");
        assert_eq!(plant("wlan0", "wireless", "-1\n"), "wlan0, wireless");
        assert_eq!(plant("veth0", "queues", ""), "veth0, virtual");
    }
}
