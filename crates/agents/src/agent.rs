//! An agent: waits at the broker, joins the session of the coordinator that holds the lease, and plays its share of each trial.

mod outbox;
mod playing;
mod prepare;
mod watching;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::{Message, Subscriber};
use clap::Args;
use climb::options::LinkArgs;
use climb::preflight::Machine;
use console::exit::{Exit, Failure, not_measured};
use console::say;
use console::signals::Interrupt;
use futures_util::StreamExt as _;
use tokio::sync::mpsc::UnboundedSender;

use crate::limits::Limits;
use crate::link::{Link, runtime};
use crate::messages::{
    Announcement, Answer, Ask, Begin, Hello, Order, State, VERSION, WHO, WIRE, What, announcements_of,
    ask_of, from_json, random_id, state_of, to_json, watchers_of,
};
use crate::{BROKER_GONE_NS, GONE_NS};

use playing::Playing;
use prepare::{Prepared, prepare};
use watching::Watching;

/// Options of `agent`.
#[derive(Clone, Debug, Args)]
pub struct AgentArgs {
    #[command(flatten)]
    link: LinkArgs,
    /// What it is called in results [default: the machine's name]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Most bots that it plays at once; a load with a larger share is refused
    #[arg(long, value_name = "N")]
    max_bots: Option<u64>,
    /// Most messages per second that it sends: a load whose plan says more is refused, and a second with more ends its part. Its own
    /// null server, of the calibration, is excepted
    #[arg(long, value_name = "N")]
    max_rate: Option<u64>,
    /// Cores that it counts as: how its share compares with those of others [default: as many as it may use]
    #[arg(long, value_name = "N")]
    cores: Option<u32>,
    /// Allow targets beyond loopback and private addresses
    #[arg(long, value_name = "HOST")]
    i_may_load: Vec<String>,
    /// Make no load: watch the server that runs on this machine, for climbs whose bots are elsewhere
    #[arg(long, conflicts_with_all = ["max_bots", "max_rate", "cores", "i_may_load"])]
    watch_only: bool,
    /// Let climbs profile the server (`climb --profile`), with perf and the profiler of its runtime, behind their loads
    #[arg(long, requires = "watch_only")]
    allow_profiles: bool,
    /// Process of the server [default: the one that listens where the bots go]
    #[arg(long, value_name = "N", requires = "watch_only")]
    pid: Option<u32>,
}

impl AgentArgs {
    fn limits(&self) -> Limits {
        Limits { bots_most: self.max_bots, rate_most: self.max_rate }
    }
}

/// How often it looks whether there is something to do.
const TURN: Duration = Duration::from_millis(20);
/// How often it tells how things stand.
const STATE_EVERY: Duration = Duration::from_millis(100);

/// `stepladder agent`
pub fn run(args: &AgentArgs, interrupt: &Interrupt) -> Result<Exit, Failure> {
    let runtime = runtime("agent").map_err(not_measured)?;
    runtime.block_on(serve(args, interrupt)).map_err(not_measured)
}

/// Of the machine and its user.
fn hello(args: &AgentArgs) -> anyhow::Result<Hello> {
    let machine = Machine::prepare()?;
    let place = Place::here();
    Ok(Hello {
        version: VERSION.to_owned(),
        wire: WIRE,
        name: args.name.clone().unwrap_or_else(|| place.host.clone()),
        id: random_id(),
        host: place.host,
        boot: place.boot,
        net: place.net,
        pids: place.pids,
        pid: std::process::id(),
        arch: std::env::consts::ARCH.to_owned(),
        cores: args.cores.unwrap_or(machine.cores.len() as u32).max(1),
        descriptors: machine.descriptors,
        ports: machine.ports,
        limits: args.limits(),
        session: None,
        watches: args.watch_only,
        profiles: args.allow_profiles,
    })
}

/// Which machine this is.
pub(crate) struct Place {
    pub(crate) host: String,
    pub(crate) boot: String,
    pub(crate) net: String,
    pub(crate) pids: String,
}

impl Place {
    pub(crate) fn here() -> Place {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let link = |path: &str| {
            std::fs::read_link(path).map_or(String::new(), |link| link.to_string_lossy().into_owned())
        };
        Place {
            host: measure::plain_name(&text("/proc/sys/kernel/hostname")),
            boot: text("/proc/sys/kernel/random/boot_id"),
            net: link("/proc/self/ns/net"),
            pids: link("/proc/self/ns/pid"),
        }
    }
}

async fn serve(args: &AgentArgs, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let hello = hello(args)?;
    let watching = args.watch_only.then(|| Watching::new(args.pid, args.allow_profiles)).transpose()?;
    let link = Link::connect(&args.link, &format!("stepladder agent {}", hello.name)).await?;
    let mut who = link.client.subscribe(WHO).await?;
    let mut asks = link.client.subscribe(ask_of(&hello.id)).await?;
    link.client.flush().await?;
    if args.watch_only {
        say::err_line!(
            "agent {} waits at {} to watch the server of a climb (--nats {1}); Ctrl-C ends it",
            hello.name,
            link.shown
        );
    } else {
        say::err_line!(
            "agent {} waits at {} for a climb (--nats {1} --agents N): {} cores, {} descriptors; Ctrl-C ends it",
            hello.name,
            link.shown,
            hello.cores,
            hello.descriptors
        );
    }
    let mut agent = Agent { args: args.clone(), link, hello, watching, session: None };
    loop {
        tokio::select! {
            Some(asked) = who.next() => agent.introduce(&asked).await,
            Some(asked) = asks.next() => agent.answer(asked).await,
            Some(announcement) = next_announcement(&mut agent.session) => agent.learn(&announcement),
            () = tokio::time::sleep(TURN) => {}
        }
        agent.look_around().await;
        if interrupt.is_asked() {
            agent.leave("its user ended it").await;
            return Ok(Exit::Met);
        }
    }
}

async fn next_announcement(session: &mut Option<Session>) -> Option<Message> {
    match session {
        Some(session) => session.announcements.next().await,
        None => std::future::pending().await,
    }
}

struct Agent {
    args: AgentArgs,
    link: Link,
    hello: Hello,
    /// it makes no load and does this instead
    watching: Option<Watching>,
    session: Option<Session>,
}

/// As the agent of a coordinator.
struct Session {
    name: String,
    /// under which it is numbered
    channel: String,
    number: usize,
    announcements: Subscriber,
    /// when the coordinator was heard of last, or the broker came back
    heard: Instant,
    /// since when the broker is away
    away: Option<Instant>,
    told: Instant,
    state: State,
    prepared: Arc<Mutex<Option<Prepared>>>,
    playing: Option<Arc<Playing>>,
    outbox: UnboundedSender<(u32, What)>,
}

impl Agent {
    async fn introduce(&self, asked: &Message) {
        let Some(reply) = asked.reply.clone() else { return };
        let session = self.session.as_ref().map(|session| session.name.clone());
        let hello = Hello { session, ..self.hello.clone() };
        // Who did not hear it asks again.
        let _ = self.link.client.publish(reply, to_json(&hello).into()).await;
    }

    async fn answer(&mut self, asked: Message) {
        let Some(reply) = asked.reply.clone() else { return };
        let answer = match from_json::<Ask>(&asked.payload) {
            Err(error) => Some(Answer::Refused(format!("{error:#}"))),
            Ok(Ask::Time) => Some(Answer::Time(engine::clock::monotonic_ns())),
            Ok(Ask::Join { session, number }) => Some(self.join(session, number).await),
            Ok(Ask::Leave) => {
                self.end_session("the climb has ended");
                Some(Answer::Done)
            }
            Ok(ask) if self.watching.is_some() => {
                self.watch(ask, reply.clone());
                None
            }
            Ok(Ask::Prepare(order)) => {
                self.prepare(*order, reply.clone());
                None
            }
            Ok(Ask::Begin(begin)) => Some(self.begin(&begin)),
            Ok(Ask::Pair { is_in_step }) => {
                self.pair(is_in_step, reply.clone());
                None
            }
            Ok(Ask::Find(_) | Ask::Follow(_) | Ask::Watch(_) | Ask::EndWatch | Ask::Profile(_)) => {
                Some(Answer::Refused("it makes load and watches no server".to_owned()))
            }
        };
        if let Some(answer) = answer {
            let _ = self.link.client.publish(reply, to_json(&answer).into()).await;
        }
    }

    async fn join(&mut self, session: String, number: usize) -> Answer {
        if let Some(own) = self.session.as_ref().filter(|own| own.name != session) {
            return Answer::Refused(format!("it plays for another climb (session {})", own.name));
        }
        let holds = match self.link.lease().await {
            Ok(lease) => lease.is_some_and(|lease| lease.session == session),
            Err(error) => return Answer::Refused(format!("{error:#}")),
        };
        if !holds {
            return Answer::Refused("who asked does not hold the lease of this broker's agents".to_owned());
        }
        let announcements = match self.link.client.subscribe(announcements_of(&session)).await {
            Ok(announcements) => announcements,
            Err(error) => return Answer::Refused(error.to_string()),
        };
        let channel = if self.watching.is_some() {
            say::err_line!("agent {}: joined a climb, whose server it watches", self.hello.name);
            watchers_of(&session)
        } else {
            say::err_line!("agent {}: joined a climb as its agent {}", self.hello.name, number + 1);
            session.clone()
        };
        let outbox = outbox::start(self.link.clone(), channel.clone(), number);
        let now = Instant::now();
        self.session = Some(Session {
            name: session,
            channel,
            number,
            announcements,
            heard: now,
            away: None,
            told: now,
            state: State::default(),
            prepared: Arc::default(),
            playing: None,
            outbox,
        });
        Answer::Done
    }

    fn prepare(&self, order: Order, reply: async_nats::Subject) {
        let Some(session) = &self.session else { return };
        let (link, args, slot) = (self.link.clone(), self.args.clone(), session.prepared.clone());
        tokio::spawn(async move {
            let bundle = link.bundle(&order.bundle).await;
            let ready = match bundle {
                Ok(bundle) => {
                    let ready = tokio::task::spawn_blocking(move || {
                        prepare(order, &bundle, args.limits(), &args.i_may_load)
                    });
                    ready.await.unwrap_or_else(|error| Err(anyhow::anyhow!("{error}")))
                }
                Err(error) => Err(error),
            };
            let answer = match ready {
                Ok(ready) => {
                    let link = ready.link.clone();
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(ready);
                    Answer::Ready(link)
                }
                Err(error) => Answer::Refused(format!("{error:#}")),
            };
            let _ = link.client.publish(reply, to_json(&answer).into()).await;
        });
    }

    fn watch(&self, ask: Ask, reply: async_nats::Subject) {
        let Some(watching) = self.watching.clone() else { return };
        let link = self.link.clone();
        let outbox = self.session.as_ref().map(|session| session.outbox.clone());
        tokio::spawn(async move {
            let refused = |error: anyhow::Error| Answer::Refused(format!("{error:#}"));
            let answered = tokio::task::spawn_blocking(move || match ask {
                Ask::Profile(step) => watching.profile(step).map(|seen| (Answer::Done, seen)),
                ask => Ok((watching.answer(ask, outbox), None)),
            });
            let answer = match answered.await {
                Err(error) => Answer::Refused(error.to_string()),
                Ok(Err(error)) => refused(error),
                Ok(Ok((answer, None))) => answer,
                Ok(Ok((_, Some(seen)))) => {
                    link.put_profile(&seen).await.map_or_else(refused, Answer::Profiled)
                }
            };
            let _ = link.client.publish(reply, to_json(&answer).into()).await;
        });
    }

    fn begin(&mut self, begin: &Begin) -> Answer {
        let Some(session) = &mut self.session else {
            return Answer::Refused("it belongs to no climb".to_owned());
        };
        let ready = session.prepared.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(ready) = ready.filter(|ready| ready.order.trial == begin.trial) else {
            return Answer::Refused(format!("it is not ready for trial {}", begin.trial));
        };
        say::err_line!("agent {}: {}", self.hello.name, ready.words());
        match Playing::begin(ready, begin, session.outbox.clone()) {
            Ok(playing) => {
                session.state = State { trial: Some(begin.trial), ..State::default() };
                session.playing = Some(Arc::new(playing));
                Answer::Done
            }
            Err(error) => Answer::Refused(format!("{error:#}")),
        }
    }

    fn pair(&self, is_in_step: bool, reply: async_nats::Subject) {
        let playing = self.session.as_ref().and_then(|session| session.playing.clone());
        let client = self.link.client.clone();
        tokio::spawn(async move {
            let is_in_step = match playing {
                Some(playing) => playing.pair(is_in_step).await,
                None => is_in_step,
            };
            let _ = client.publish(reply, to_json(&Answer::Paired(is_in_step)).into()).await;
        });
    }

    fn learn(&mut self, message: &Message) {
        let Some(session) = &mut self.session else { return };
        let Ok(announcement) = from_json::<Announcement>(&message.payload) else { return };
        session.heard = Instant::now();
        if let Some(playing) =
            session.playing.as_ref().filter(|playing| Some(playing.trial()) == announcement.trial)
        {
            let late_ns = playing.learn(&announcement);
            session.state.late_ns = session.state.late_ns.max(late_ns);
        }
    }

    /// Tells how things stand, and notices that the coordinator or the broker is gone.
    async fn look_around(&mut self) {
        let is_up = self.link.is_up();
        let Some(session) = &mut self.session else { return };
        let now = Instant::now();
        if !is_up {
            let since = *session.away.get_or_insert(now);
            session.heard = now;
            if now.duration_since(since).as_nanos() > u128::from(BROKER_GONE_NS) {
                self.end_session("the broker has been away for a minute");
            }
            return;
        }
        session.away = None;
        if now.duration_since(session.heard).as_nanos() > u128::from(GONE_NS) {
            self.end_session("nothing was heard of the coordinator for 5 s");
            return;
        }
        if session.playing.as_ref().is_some_and(|playing| playing.is_over()) {
            session.playing = None;
            session.state.trial = None;
        }
        let before = session.state.clone();
        if let Some(playing) = &session.playing {
            playing.tell(&mut session.state);
        }
        let is_news = session.state != before;
        let since = now.duration_since(session.told);
        if since >= STATE_EVERY || (is_news && since >= TURN) {
            session.told = now;
            let subject = state_of(&session.channel, session.number);
            let _ = self.link.client.publish(subject, to_json(&session.state).into()).await;
        }
    }

    /// Whatever it plays ends now.
    fn end_session(&mut self, why: &str) {
        if let Some(session) = self.session.take() {
            if let Some(playing) = &session.playing {
                playing.stop();
            }
            if let Some(watching) = &self.watching {
                watching.forget();
            }
            say::err_line!("agent {}: {why}; it waits for the next climb", self.hello.name);
        }
    }

    async fn leave(&mut self, why: &str) {
        let Some(session) = &self.session else { return };
        if let Some(playing) = &session.playing {
            let _ = session.outbox.send((playing.trial(), What::Lost(why.to_owned())));
            playing.stop();
        }
        if let Some(trial) = self.watching.as_ref().and_then(Watching::trial) {
            let _ = session.outbox.send((trial, What::Lost(why.to_owned())));
        }
        // What is on its way to the broker.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let _ = self.link.client.flush().await;
    }
}
