//! What the sampler costs beside a server with so many threads and connections, and what it reads.
//!
//! `cargo run --release -p stepladder-watch --example sampler_cost -- THREADS CONNECTIONS SECONDS`: starts itself as the server, whose
//! threads read what 1,000 connections a second send. Prints the share of a core that sampling took with the server as
//! the subject and without a subject, and the mean of each reading.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use measure::Entry;
use watch::{Sampler, SamplerPlan, raise_descriptors};

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok());
    let (threads, connections, seconds) =
        (number(0).unwrap_or(20), number(1).unwrap_or(2_000), number(2).unwrap_or(30));
    let _ = raise_descriptors();
    if words.get(3).is_some_and(|word| word == "serve") {
        return serve(threads);
    }
    let mut server = Command::new(std::env::current_exe()?)
        .args([threads.to_string(), "0".to_owned(), "0".to_owned(), "serve".to_owned()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut port = String::new();
    BufReader::new(server.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?).read_line(&mut port)?;
    let address = format!("127.0.0.1:{}", port.trim());
    let mut clients =
        (0..connections).map(|_| TcpStream::connect(&address)).collect::<io::Result<Vec<TcpStream>>>()?;
    let (stop, is_stopped) = channel::<()>();
    let sender = thread::spawn(move || {
        for at in 0.. {
            if is_stopped.recv_timeout(Duration::from_millis(1))
                != Err(std::sync::mpsc::RecvTimeoutError::Timeout)
            {
                break;
            }
            let at = at % clients.len().max(1);
            let _ = clients.get_mut(at).map(|client| client.write_all(b"."));
        }
    });
    for subject_pid in [Some(server.id()), None] {
        let (to, from) = channel();
        let begin = Instant::now();
        let plan = SamplerPlan {
            subject_pid,
            subject_group: None,
            load_pids: Vec::new(),
            subject_is_here: true,
            exit: None,
            ticks: Default::default(),
            zero_realtime_ns: 0,
            now_ns: Box::new(move || begin.elapsed().as_nanos() as u64),
            to,
        };
        let sampler = Sampler::start(plan)?;
        thread::sleep(Duration::from_secs(seconds as u64));
        let cost_cpu_s = sampler.stop().cost_cpu_s;
        let share = cost_cpu_s / begin.elapsed().as_secs_f64();
        let subject = if subject_pid.is_some() { "with the server" } else { "without a subject" };
        println!("{subject}: {:.3} % of a core", share * 100.0);
        if subject_pid.is_some() {
            print_means(&from);
        }
    }
    drop(stop);
    server.kill()?;
    server.wait()?;
    let _ = sender.join();
    Ok(())
}

fn print_means(from: &Receiver<Entry>) {
    let mut sums: BTreeMap<String, (f64, u32)> = BTreeMap::new();
    for entry in from.try_iter() {
        if let Entry::Sample(sample) = entry {
            let (who, name) = sample.what.texts();
            let sum = sums.entry(format!("{who}.{name}")).or_default();
            *sum = (sum.0 + sample.value, sum.1 + 1);
        }
    }
    for (name, (sum, count)) in sums {
        println!("  {name:<40} {:>14.3}  of {count}", sum / f64::from(count));
    }
}

/// Each thread accepts for itself and reads what its connections send.
fn serve(threads: usize) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    // It ends with who started it, however that ends.
    thread::spawn(|| {
        let _ = io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    println!("{}", listener.local_addr()?.port());
    thread::scope(|scope| {
        (0..threads).for_each(|_| {
            scope.spawn(|| read_all(&listener));
        });
    });
    Ok(())
}

fn read_all(listener: &TcpListener) {
    let mut connections: Vec<TcpStream> = Vec::new();
    loop {
        let fds = std::iter::once(listener.as_raw_fd()).chain(connections.iter().map(AsRawFd::as_raw_fd));
        let mut polled: Vec<libc::pollfd> =
            fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
        // SAFETY: the list is as long as is said.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) };
        let ready = polled.iter().skip(1).map(|one| one.revents != 0);
        for (connection, _) in connections.iter_mut().zip(ready).filter(|(_, is_ready)| *is_ready) {
            if connection.read(&mut [0; 64]).is_ok_and(|count| count == 0) {
                // What has ended would be ready for ever.
                std::process::exit(0);
            }
        }
        if polled[0].revents != 0
            && let Ok((connection, _)) = listener.accept()
        {
            connections.push(connection);
        }
    }
}
