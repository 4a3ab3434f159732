//! The thread around a worker: sleeps, polls sockets and calls the worker, nothing else.
//!
//! A tokio current-thread runtime with IO only: no time driver (its timers are 1 ms late), no blocking pool. With many
//! connections each worker has its own descriptor table. Nothing outside may wake it then, because a waker is a
//! descriptor *number* and would be a different socket here. So control comes in as instants that are checked each
//! turn, and results go out through a std channel.
//! A panic in any of a worker's tasks ends that worker and is reported. The runtime by itself would silently drop the
//! task, and the trial would go on with a hole in its numbers.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::task::Poll;
use std::thread::JoinHandle;

use drivers::{Address, Driver};
use plan::{WorkerPlan, WorkloadSettings as _};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::{LocalSet, spawn_local, unconstrained};

use crate::bots::Bots;
use crate::clock::{Clock, MonotonicClock};
use crate::collector::{FromWorker, ToCollector};
use crate::ids::ConnectionId;
use crate::network;
use crate::state::{Destination, Opening, Shared};
use crate::timer::Timer;
use crate::worker::Worker;

/// Everything a worker's thread needs.
pub struct Setup {
    /// what it does
    pub plan: WorkerPlan,
    /// one per path of the bots
    pub addresses: Vec<Address>,
    /// what it shares
    pub shared: Shared,
    /// the trial's clock
    pub clock: MonotonicClock,
    /// its end of the channel to the collector
    pub to_collector: ToCollector,
    /// where it says that it is done
    pub says: Sender<FromWorker>,
    /// core to stay on
    pub core: Option<usize>,
    /// SCHED_FIFO
    pub realtime: bool,
    /// busy wait before a planned instant, ns
    pub spin_ns: u64,
}

/// Starts a worker.
pub fn spawn<B: Bots>(setup: Setup) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(format!("worker-{}", setup.plan.worker)).spawn(move || {
        let (worker, says) = (setup.plan.worker, setup.says.clone());
        let ended = catch_unwind(AssertUnwindSafe(|| run::<B>(setup)))
            .unwrap_or_else(|panic| Err(Failure::Panic(panic_text(&*panic))));
        let _ = says.send(match ended {
            Ok(()) => FromWorker::Done { worker },
            Err(Failure::Io(error)) => {
                FromWorker::Broke { worker, why: format!("worker {worker} broke down: {error}") }
            }
            Err(Failure::Panic(why)) => {
                FromWorker::Panicked { worker, why: format!("worker {worker} panicked: {why}") }
            }
        });
    })
}

/// Why a worker ended before its time.
enum Failure {
    /// the machine refused something
    Io(io::Error),
    /// the message of a panic
    Panic(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Io(error)
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

thread_local! {
    static SLEEP: Sleep = const { Sleep { since_ns: Cell::new(0), until_ns: Cell::new(0), slept_ns: Cell::new(0) } };
}

/// The thread's last sleep in `epoll_wait`, as readings of CLOCK_MONOTONIC.
struct Sleep {
    since_ns: Cell<u64>,
    /// when it ended: which connections have something to read is known from here on
    until_ns: Cell<u64>,
    /// how long the thread has slept since it was last asked
    slept_ns: Cell<u64>,
}

struct Shell<B: Bots> {
    worker: RefCell<Worker<B>>,
    clock: MonotonicClock,
    timer: AsyncFd<Timer>,
    armed_ns: Cell<u64>,
    awake_since_ns: Cell<u64>,
    spin_ns: u64,
    density: Density,
    addresses: Vec<Address>,
    /// the message of the first panic of a connection's task
    panic: RefCell<Option<String>>,
}

/// How densely items fall due, and so how far apart the timer may fire.
///
/// Setting a timer costs 2–3 µs on a virtual machine and waking up as much again: at 28,000 shots a second and worker
/// this was a third of the bots' CPU. Beyond 12,000 a second the timer fires at most every 100 µs and serves what has
/// gathered; the lateness this makes is in the send lag like any other.
#[derive(Default)]
struct Density {
    window_from_ns: Cell<u64>,
    served_before: Cell<u64>,
    gap_ns: Cell<u64>,
}

const DENSITY_WINDOW_NS: u64 = 20_000_000;
const DENSE_PER_S: u64 = 12_000;
const DENSE_GAP_NS: u64 = 100_000;

impl Density {
    /// The least time until the timer fires again, ns.
    fn gap_ns(&self, now_ns: u64, served: u64) -> u64 {
        let elapsed_ns = now_ns.saturating_sub(self.window_from_ns.get());
        if elapsed_ns >= DENSITY_WINDOW_NS {
            let per_s = (served - self.served_before.get()) * 1_000_000_000 / elapsed_ns;
            self.gap_ns.set(if per_s > DENSE_PER_S { DENSE_GAP_NS } else { 0 });
            self.window_from_ns.set(now_ns);
            self.served_before.set(served);
        }
        self.gap_ns.get()
    }
}

fn run<B: Bots>(setup: Setup) -> Result<(), Failure> {
    prepare_thread(&setup)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .event_interval(1024)
        .on_thread_park(|| SLEEP.with(|sleep| sleep.since_ns.set(crate::clock::monotonic_ns())))
        .on_thread_unpark(|| {
            SLEEP.with(|sleep| {
                let now_ns = crate::clock::monotonic_ns();
                let slept_ns = now_ns.saturating_sub(sleep.since_ns.get());
                sleep.slept_ns.set(sleep.slept_ns.get() + slept_ns);
                sleep.until_ns.set(now_ns);
            });
        })
        .build()?;
    let local = LocalSet::new();
    let Some(settings) = B::Settings::of(&setup.plan.bots) else {
        return Err(io::Error::other("the plan is one of other bots").into());
    };
    let addresses = network::behind(&setup.addresses, &setup.plan);
    let worker = Worker::new(
        settings,
        &setup.plan,
        addresses.clone(),
        setup.shared.clone(),
        Box::new(setup.to_collector),
    );
    let shell = {
        let _inside = runtime.enter();
        // SAFETY: the timer owns its descriptor and is not replaced while it is registered.
        let timer = unsafe { AsyncFd::register_with_interest(Timer::new()?, Interest::READABLE) }
            .map_err(io::Error::from)?;
        Rc::new(Shell::<B> {
            worker: RefCell::new(worker),
            clock: setup.clock,
            timer,
            armed_ns: Cell::new(u64::MAX),
            awake_since_ns: Cell::new(crate::clock::monotonic_ns()),
            spin_ns: setup.spin_ns,
            density: Density::default(),
            addresses,
            panic: RefCell::new(None),
        })
    };
    local.block_on(&runtime, unconstrained(keep_time(shell.clone())))?;
    // Dropping the tasks closes what is still open; after this only the shell's worker is needed.
    drop(local);
    drop(runtime);
    let Ok(shell) = Rc::try_unwrap(shell).map_err(|_| ()) else {
        return Err(Failure::Panic("a task of a worker outlived it".to_owned()));
    };
    shell.worker.into_inner().finish(&setup.clock);
    Ok(())
}

/// Calls the worker whenever something is due, until it is done.
async fn keep_time<B: Bots>(shell: Rc<Shell<B>>) -> Result<(), Failure> {
    loop {
        // Checked at least every 10 ms, like all external input.
        if let Some(why) = shell.panic.take() {
            return Err(Failure::Panic(why));
        }
        shell.spin();
        let is_done = shell.turn(|worker, clock| {
            worker.due(clock);
            worker.is_done()
        });
        if is_done {
            return Ok(());
        }
        shell.arm(true)?;
        let mut fired = shell.timer.readable().await?;
        // Another wake-up of the runtime may have served what was due; then the timer has simply not fired yet.
        let _ = fired.get_inner().acknowledge();
        fired.clear_ready();
        shell.armed_ns.set(u64::MAX);
    }
}

/// Polls a connection's task, and notes its panic. Where one has panicked none goes on: they share the worker, whose
/// state may contradict itself now.
async fn guard<B: Bots>(shell: Rc<Shell<B>>, task: impl Future<Output = ()>) {
    let mut task = pin!(task);
    poll_fn(|cx| {
        if shell.panic.borrow().is_some() {
            return Poll::Pending;
        }
        catch_unwind(AssertUnwindSafe(|| task.as_mut().poll(cx))).unwrap_or_else(|panic| {
            shell.panic.replace(Some(panic_text(&*panic)));
            Poll::Ready(())
        })
    })
    .await;
}

/// One connection from its connect to its end.
async fn keep_connection<B: Bots>(shell: Rc<Shell<B>>, opening: Opening<B::Driver>) {
    let Opening { connection, begin_connect, to } = opening;
    let outcome = {
        // Boxed, so that an idle connection does not keep the memory of its handshake.
        let address = match &to {
            Destination::Known(path) => &shell.addresses[*path as usize],
            Destination::Own(address) => address,
        };
        let mut open = Box::pin(B::Driver::open(begin_connect, address));
        poll_fn(|cx| {
            if !shell.worker.borrow_mut().awaits(connection, cx) {
                return Poll::Ready(None);
            }
            let opened = open.as_mut().poll(cx).map(Some);
            // Behind an emulated network it waits for an instant, which no turn follows.
            let _ = shell.arm(false);
            opened
        })
        .await
    };
    let Some(outcome) = outcome else { return };
    shell.turn(|worker, clock| worker.opened(connection, outcome, clock));
    listen(&shell, connection).await;
}

async fn listen<B: Bots>(shell: &Rc<Shell<B>>, connection: ConnectionId) {
    poll_fn(|cx| shell.turn(|worker, clock| worker.poll_connection(connection, cx, clock))).await;
}

impl<B: Bots> Shell<B> {
    /// Calls the worker, then starts what it opened and updates the timer.
    fn turn<T>(self: &Rc<Self>, call: impl FnOnce(&mut Worker<B>, &MonotonicClock) -> T) -> T {
        let mut worker = self.worker.borrow_mut();
        let (slept_ns, woke_ns) = SLEEP.with(|sleep| (sleep.slept_ns.take(), sleep.until_ns.get()));
        let now_ns = crate::clock::monotonic_ns();
        let awake_ns = now_ns.saturating_sub(self.awake_since_ns.replace(now_ns)).saturating_sub(slept_ns);
        worker.add_busy(awake_ns, now_ns.saturating_sub(self.clock.origin_ns()));
        worker.readable_since(woke_ns.saturating_sub(self.clock.origin_ns()));
        drivers::network::wake_due(now_ns);
        let outcome = call(&mut worker, &self.clock);
        for opening in worker.take_openings() {
            spawn_local(unconstrained(guard(self.clone(), keep_connection(self.clone(), opening))));
        }
        drop(worker);
        // If the timer cannot be armed, `keep_time`, which also arms it, reports the error.
        let _ = self.arm(false);
        outcome
    }

    /// Arms the timer for what is due next, if that is earlier than it is armed for.
    fn arm(&self, always: bool) -> io::Result<()> {
        let worker = self.worker.borrow();
        let now_ns = worker.now_ns();
        let next_ns = self.due_ns(&worker).max(now_ns + self.density.gap_ns(now_ns, worker.served()));
        if always || next_ns < self.armed_ns.get() {
            self.armed_ns.set(next_ns);
            let wake_ns = next_ns.saturating_sub(self.spin_ns);
            self.timer.get_ref().arm(self.clock.origin_ns() + wake_ns)?;
        }
        Ok(())
    }

    /// When the worker or an emulated network wants the next turn.
    fn due_ns(&self, worker: &Worker<B>) -> u64 {
        let network_ns = drivers::network::next_ns().saturating_sub(self.clock.origin_ns());
        worker.next_due_ns().min(network_ns)
    }

    fn spin(&self) {
        if self.spin_ns == 0 {
            return;
        }
        let next_ns = self.due_ns(&self.worker.borrow());
        let mut now_ns = self.clock.now_ns();
        if next_ns.saturating_sub(now_ns) <= self.spin_ns {
            while now_ns < next_ns {
                std::hint::spin_loop();
                now_ns = self.clock.now_ns();
            }
        }
    }
}

fn prepare_thread(setup: &Setup) -> io::Result<()> {
    // SAFETY: plain system calls without pointers; the range 3.. holds no descriptor that this thread uses, since a
    // fresh table is made for it first and what other threads hold stays open in theirs.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_UNSHARE) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
    if let Some(core) = setup.core {
        pin_to(core)?;
    }
    if setup.realtime {
        be_realtime(10).map_err(|error| {
            let text = format!("--realtime: {error}; it needs CAP_SYS_NICE or a real-time limit (ulimit -r)");
            io::Error::new(error.kind(), text)
        })?;
    }
    Ok(())
}

/// Gives this thread a realtime priority (`SCHED_FIFO`). Errors: it is not permitted.
pub fn be_realtime(priority: libc::c_int) -> io::Result<()> {
    // The C library musl has the function and refuses it.
    // SAFETY: the kernel reads one integer of ours; 0 means this thread.
    let done =
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const priority) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn pin_to(core: usize) -> io::Result<()> {
    // SAFETY: the set is ours, zeroed before use, and its size is passed.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}
