//! Authentication and the cluster view: who the members are, and which partitions each of them owns.
//!
//! Source: Open Binary Client Protocol 2.x, sections 4.3 (authentication), 5.6 (cluster view listener) and 7
//! (Client.Authentication, Client.AddClusterViewListener, Client.Ping).

use super::broken::Broken;
use super::fields::Fields;
use super::message::{ANSWER_FIXED, Message, NO_PARTITION, REQUEST_FIXED, Writer};
use super::settings::Credentials;
use super::uuid::Uuid;

/// What every connection begins with: a client of protocol 2.
pub(super) const PREAMBLE: &[u8] = b"CP2";

pub(super) const AUTHENTICATION: i32 = 0x00_0100;
pub(super) const ADD_CLUSTER_VIEW_LISTENER: i32 = 0x00_0300;
pub(super) const MEMBERS_VIEW: i32 = 0x00_0302;
pub(super) const PARTITIONS_VIEW: i32 = 0x00_0303;
pub(super) const PING: i32 = 0x00_0b00;

/// The only version of serialisation that protocol 2 has.
const SERIALIZATION_VERSION: u8 = 1;
/// A client's type as members show it; theirs are JVM, NJS, GOO, PYH, CPP and CSP.
const CLIENT_TYPE: &str = "RST";
/// More partitions than any cluster is configured with.
const PARTITION_COUNT_MAX: i32 = 1 << 20;

pub(super) fn put_authentication(out: &mut Vec<u8>, correlation: i64, credentials: &Credentials) {
    let mut fixed = [0; 18];
    let (most, least) = credentials.client_uuid.halves();
    fixed[1..9].copy_from_slice(&most.to_le_bytes());
    fixed[9..17].copy_from_slice(&least.to_le_bytes());
    fixed[17] = SERIALIZATION_VERSION;
    let mut writer = Writer::begin(out, AUTHENTICATION, correlation, NO_PARTITION, fixed.len());
    writer.fixed(&fixed);
    writer.string(&credentials.cluster_name);
    writer.optional_string(credentials.username.as_deref());
    writer.optional_string(credentials.password.as_deref());
    writer.string(CLIENT_TYPE);
    writer.string(env!("CARGO_PKG_VERSION"));
    writer.string(&credentials.client_name);
    writer.open();
    writer.close();
    writer.end();
}

/// Requests without any parameter.
pub(super) fn put_bare(out: &mut Vec<u8>, message_type: i32, correlation: i64) {
    Writer::begin(out, message_type, correlation, NO_PARTITION, 0).end();
}

/// What a member says when it lets a client in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authentication {
    /// the member
    pub member: Uuid,
    /// the cluster; another one after all members were restarted
    pub cluster: Uuid,
    /// partitions of all maps, at least 1
    pub partition_count: u32,
    /// the member's version, such as "5.5.0"
    pub server_version: String,
}

/// Why a member does not let a client in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The cluster has another name, or asks for another user or password.
    #[error(
        "the member refused the credentials; check the cluster name, and user and password where it asks for them"
    )]
    Credentials,
    /// The member speaks another version of serialisation.
    #[error("the member's serialisation version is not 1; it is too old or too new for this client")]
    SerializationVersion,
    /// The member refuses this client for good.
    #[error("the member does not allow this client in the cluster")]
    NotAllowed,
    /// The member named a reason that the protocol does not know yet.
    #[error("the member refused the connection for a reason this client does not know ({0})")]
    Other(u8),
}

pub(super) fn read_authentication(message: &Message<'_>) -> Result<Result<Authentication, Rejected>, Broken> {
    const MEMBER: usize = ANSWER_FIXED + 1;
    const PARTITION_COUNT: usize = MEMBER + 17 + 1;
    const CLUSTER: usize = PARTITION_COUNT + 4;
    let fixed = message.fixed();
    match fixed.u8(ANSWER_FIXED)? {
        0 => {}
        1 => return Ok(Err(Rejected::Credentials)),
        2 => return Ok(Err(Rejected::SerializationVersion)),
        3 => return Ok(Err(Rejected::NotAllowed)),
        other => return Ok(Err(Rejected::Other(other))),
    }
    let (Some(member), Some(cluster)) = (fixed.uuid(MEMBER)?, fixed.uuid(CLUSTER)?) else {
        return Err(Broken::Malformed("a member that authenticates a client without saying who it is"));
    };
    let partition_count = fixed.i32(PARTITION_COUNT)?;
    if !(1..=PARTITION_COUNT_MAX).contains(&partition_count) {
        return Err(Broken::Malformed("a number of partitions that no cluster has"));
    }
    let mut fields = message.fields();
    fields.skip()?;
    let server_version = fields.string()?.to_owned();
    Ok(Ok(Authentication { member, cluster, partition_count: partition_count as u32, server_version }))
}

/// A member of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// its id; another one after a restart
    pub uuid: Uuid,
    /// its host, as a name or an address, as the member itself names it
    pub host: String,
    /// its port
    pub port: u16,
    /// it holds no partitions
    pub is_lite: bool,
}

/// The members, at one version of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MembersView {
    /// grows with each change
    pub version: i32,
    /// all of them
    pub members: Vec<Member>,
}

pub(super) fn read_members_view(message: &Message<'_>) -> Result<MembersView, Broken> {
    let version = message.fixed().i32(REQUEST_FIXED)?;
    let mut fields = message.fields();
    let mut members = Vec::new();
    fields.open()?;
    while !fields.closes()? {
        fields.open()?;
        let fixed = fields.fixed()?;
        let uuid = fixed.uuid(0)?.ok_or(Broken::Malformed("a member without an id"))?;
        let is_lite = fixed.bool(17)?;
        let (host, port) = read_address(&mut fields)?;
        // Attributes, version and further addresses.
        fields.close()?;
        members.push(Member { uuid, host, port, is_lite });
    }
    Ok(MembersView { version, members })
}

fn read_address(fields: &mut Fields<'_>) -> Result<(String, u16), Broken> {
    fields.open()?;
    let port = fields.fixed()?.i32(0)?;
    let host = fields.string()?.to_owned();
    fields.close()?;
    let port = u16::try_from(port).map_err(|_| Broken::Malformed("a port that is none"))?;
    Ok((host, port))
}

/// The owners of all partitions, at one version of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionsView {
    /// differs with each change and grows, while the member that says it lives
    pub version: i32,
    /// each member with its partitions
    pub partitions: Vec<(Uuid, Vec<i32>)>,
}

pub(super) fn read_partitions_view(message: &Message<'_>) -> Result<PartitionsView, Broken> {
    const UUID_BYTES: usize = 17;
    let version = message.fixed().i32(REQUEST_FIXED)?;
    let mut fields = message.fields();
    let mut lists = Vec::new();
    fields.open()?;
    while !fields.closes()? {
        let (numbers, _) = fields.bytes()?.as_chunks::<4>();
        lists.push(numbers.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect());
    }
    let uuids = fields.fixed()?;
    let mut partitions = Vec::with_capacity(lists.len());
    for (at, list) in lists.into_iter().enumerate() {
        let uuid =
            uuids.uuid(at * UUID_BYTES)?.ok_or(Broken::Malformed("partitions of a member without an id"))?;
        partitions.push((uuid, list));
    }
    Ok(PartitionsView { version, partitions })
}
