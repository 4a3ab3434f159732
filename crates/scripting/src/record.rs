//! `stepladder record`: a reverse proxy for one real client that records both directions.

mod http;
mod proxy;
mod recorder;
mod upstream;
mod websocket;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use climb::{certificates, lookup};
use console::exit::{Exit, Failure, not_measured, wrong_usage};
use console::say;
use console::signals::Interrupt;
use plan::units::duration_ns_within;
use plan::{Scheme, Target, Transport};
use recording::Frames;

use self::recorder::{KEPT_BYTES_MAX, Recorder};
use self::upstream::Upstream;
use crate::written::{check_free, write_recorded};

/// Longer than any client is watched.
const TIME_NS_MAX: u64 = 24 * 3_600_000_000_000;
/// Options of `record`.
#[derive(Debug, Args)]
#[command(override_usage = "stepladder record [FILE] --to URL [OPTIONS]")]
pub struct RecordArgs {
    /// The bot to write
    #[arg(default_value = "recorded.ts")]
    file: PathBuf,
    /// The server: ws://, wss://, http://, https:// or tcp://HOST:PORT
    #[arg(long, value_name = "URL")]
    to: String,
    /// Where the client connects instead, without TLS
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9000")]
    listen: SocketAddr,
    /// How long the client is watched [default: until it leaves, or Ctrl-C]
    #[arg(long = "for", value_name = "TIME")]
    time: Option<String>,
    /// Of tcp://: where a message ends (lines, u8, u16be, u16le, u32be, u32le, until 0xNN, raw) [default: what fits]
    #[arg(long, value_name = "FRAMES")]
    frames: Option<Frames>,
    /// Trust the certificates of this authority too (PEM)
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Accept any certificate of the server
    #[arg(long)]
    insecure: bool,
}

/// Records one client, and writes its bot.
pub fn record(args: &RecordArgs, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let (target, time) = checked(args).map_err(wrong_usage)?;
    let upstream = upstream(args, &target).map_err(wrong_usage)?;
    let recorder = std::sync::Arc::new(Recorder::new());
    let listener = TcpListener::bind(args.listen)
        .with_context(|| format!("cannot listen on {}; give another address with --listen", args.listen))
        .map_err(not_measured)?;
    let address = listener.local_addr().map_err(not_measured)?;
    say::out_line!(
        "listening on {}://{address}, in front of {}",
        plain_scheme(target.scheme),
        args.to.trim_end_matches('/')
    );
    say::out_line!("connect one client there; the bot is written when it has left, or with Ctrl-C");
    proxy::run(listener, upstream, &recorder, interrupt, time).map_err(not_measured)?;
    if recorder.is_full() {
        say::out_line!(
            "note: the client and its server said more than {} MiB; the rest is not in the recording",
            KEPT_BYTES_MAX >> 20
        );
    }
    let origin = format!("{}://{}", target.scheme.name(), target.authority());
    let session = recorder.session(origin);
    if target.scheme.transport() != Transport::Tcp {
        return write_recorded(&session, &args.file, Frames::Raw);
    }
    let (session, frames) = recording::framed(&session, args.frames);
    if args.frames.is_none() {
        say::out_line!(
            "note: the messages fit the frames {}; where they are others, record again with --frames",
            frames.name()
        );
    }
    write_recorded(&session, &args.file, frames)
}

fn checked(args: &RecordArgs) -> anyhow::Result<(Target, Option<Duration>)> {
    check_free(&args.file)?;
    let target: Target = args.to.parse().with_context(|| format!("--to {}", args.to))?;
    if !matches!(target.scheme, Scheme::Ws | Scheme::Wss | Scheme::Http | Scheme::Https | Scheme::Tcp) {
        bail!("--to {}: it takes ws://, wss://, http://, https:// or tcp://", args.to);
    }
    if args.frames.is_some() && target.scheme != Scheme::Tcp {
        bail!("--frames is for tcp://; messages over {}:// have ends of their own", target.scheme.name());
    }
    let time = args.time.as_ref().map(|time| {
        duration_ns_within(time, 1_000_000, TIME_NS_MAX).with_context(|| format!("--for {time}"))
    });
    Ok((target, time.transpose()?.map(Duration::from_nanos)))
}

fn upstream(args: &RecordArgs, target: &Target) -> anyhow::Result<Upstream> {
    let tls = if target.scheme.protocol().is_tls {
        Some(certificates::trusting(&target.host, args.ca.as_deref(), args.insecure)?)
    } else {
        None
    };
    Ok(Upstream {
        addresses: lookup::addresses_of(target)?,
        authority: target.authority(),
        tls,
        speaks_http: target.scheme.transport() != Transport::Tcp,
    })
}

fn plain_scheme(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Wss => "ws",
        Scheme::Https => "http",
        other => other.name(),
    }
}
