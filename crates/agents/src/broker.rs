//! A broker for trying agents out: nats-server with JetStream, on this machine, until Ctrl-C.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use console::exit::{Exit, Failure, not_measured};
use console::say;
use console::signals::Interrupt;
use watch::Started;

/// Options of `up`.
#[derive(Clone, Debug, Args)]
pub struct UpArgs {
    /// Where the broker listens. Anyone who reaches it can use the agents: beyond loopback give it credentials of its own
    /// (nats-server --config)
    #[arg(long, value_name = "ADDRESS", default_value_t = SocketAddr::from(([127, 0, 0, 1], 4222)))]
    listen: SocketAddr,
    /// Where it keeps what agents measured until a climb has read it [default: a temporary folder]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

const PROGRAM: &str = "nats-server";
const TAKEN_WITHIN: Duration = Duration::from_millis(500);
const READY_WITHIN: Duration = Duration::from_secs(10);

/// `stepladder up`
pub fn up(args: &UpArgs, interrupt: &Interrupt) -> Result<Exit, Failure> {
    serve(args, interrupt).map_err(not_measured)
}

fn serve(args: &UpArgs, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let temporary = match &args.folder {
        Some(_) => None,
        None => Some(tempfile::tempdir().context("no temporary folder; check TMPDIR, or give --folder")?),
    };
    let folder = args.folder.as_deref().or(temporary.as_ref().map(tempfile::TempDir::path));
    let folder = folder.context("no folder")?;
    if TcpStream::connect_timeout(&args.listen, TAKEN_WITHIN).is_ok() {
        bail!(
            "something listens at {} already; if it is a broker use it (--nats nats://{0}), else give another --listen",
            args.listen
        );
    }
    // Debian's is where only root looks.
    let elsewhere = Path::new("/usr/sbin").join(PROGRAM);
    let mut command = Command::new(if elsewhere.exists() { elsewhere } else { PROGRAM.into() });
    command.args(["--addr", &args.listen.ip().to_string(), "--port", &args.listen.port().to_string()]);
    command.arg("--jetstream").arg("--store_dir").arg(folder).stdin(Stdio::null());
    let started = Started::start(command, PROGRAM).with_context(|| {
        format!(
            "{PROGRAM} cannot be started; install it (Debian: apt-get install nats-server; Go: go install \
             github.com/nats-io/nats-server/v2@latest)"
        )
    })?;
    started.wait_until_listening(&[args.listen], watch::Listens::Stream, READY_WITHIN)?;
    let url = format!("nats://{}", args.listen);
    say::err_line!(
        "a broker listens at {url} until Ctrl-C. In other terminals, or on other machines that reach it:"
    );
    say::err_line!("  stepladder agent --nats {url} --name a");
    say::err_line!("  stepladder agent --nats {url} --name b");
    say::err_line!("  stepladder climb arena --nats {url} --agents 2");
    let exit = started.exit_watch();
    while !interrupt.is_asked() {
        if let Some(exit) = exit.peek() {
            let output = started.last_output().unwrap_or_default();
            bail!("the broker ended ({exit}): {}", output.trim());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(started);
    Ok(Exit::Met)
}
