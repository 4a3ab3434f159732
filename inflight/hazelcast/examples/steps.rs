//! CPU time of each step of an operation, on a real member: the sum must be the whole, or the figures are worthless.
//!
//! `cargo run --release -p stepladder-hazelcast --example steps -- ADDR get|set VALUE_BYTES TOTAL IN_FLIGHT`
//! The closed loop of `in_flight`, over a `Session` and a blocking socket, so that each step is a separate call. The
//! clock is the thread's CPU time, read between the steps of a turn (all operations that end at once), not of an
//! operation. The first tenth is a warm-up. Exit code 1 when the steps do not add up to the process's own CPU time
//! within 10 %.

mod closed_loop;
mod meter;

use std::io::{IoSlice, Read, Write};
use std::net::TcpStream;
use std::process::ExitCode;

use hazelcast::wire::request::TTL_OF_THE_MAP;
use hazelcast::wire::{
    Answer, Credentials, Data, Event, Key, MapName, Request, Session, Settings, Uuid, data,
};

use closed_loop::Arguments;
use meter::{Meter, process_cpu_ns};

const USAGE: &str = "usage: steps ADDR get|set VALUE_BYTES TOTAL IN_FLIGHT";

const STEPS: [(&str, &str); 6] = [
    ("serialise", "key and value to bytes"),
    ("start", "partition, frames, correlation"),
    ("write", "to the kernel"),
    ("read", "from the kernel, waking up included"),
    ("resolve", "frames to the operation that waits for them"),
    ("deserialise", "bytes to the value, which is compared"),
];

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("steps: {message}");
            ExitCode::from(2)
        }
    }
}

struct Connection {
    socket: TcpStream,
    session: Session<()>,
}

impl Connection {
    fn open(address: &str) -> Result<Connection, String> {
        let socket = TcpStream::connect(address).map_err(|error| format!("{address}: {error}"))?;
        socket.set_nodelay(true).map_err(|error| error.to_string())?;
        let credentials = Credentials {
            cluster_name: "dev".to_owned(),
            username: None,
            password: None,
            client_uuid: Uuid::from_random(0x5eed),
            client_name: "steps".to_owned(),
        };
        let mut connection =
            Connection { socket, session: Session::new(Settings::default(), &credentials, 0) };
        while !connection.session.is_ready() {
            connection.write()?;
            connection.read()?;
            while connection.session.next_event().map_err(|error| error.to_string())?.is_some() {}
        }
        Ok(connection)
    }

    fn write(&mut self) -> Result<(), String> {
        while !self.session.send_buffer().is_empty() {
            let mut slices = [IoSlice::new(&[]); 64];
            let filled = self.session.send_buffer().slices(&mut slices);
            let count = self.socket.write_vectored(&slices[..filled]).map_err(|error| error.to_string())?;
            self.session.sent(count);
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), String> {
        let count = self.socket.read(self.session.room()).map_err(|error| error.to_string())?;
        if count == 0 {
            return Err("the member closed the connection".to_owned());
        }
        self.session.filled(count, 0);
        Ok(())
    }
}

fn run() -> Result<bool, String> {
    let arguments = Arguments::read(USAGE)?;
    let text = arguments.value();
    let Arguments { address, op, value_bytes, total, in_flight } = arguments;
    let is_get = op == "get";
    let map: MapName = "steps".into();
    let set = |map: MapName| Request::Set {
        map,
        key: Key::of("k0"),
        value: Data::of(&text),
        ttl_ms: TTL_OF_THE_MAP,
    };
    let request = |map: MapName| if is_get { Request::Get { map, key: Key::of("k0") } } else { set(map) };

    let mut connection = Connection::open(&address)?;
    let send = |connection: &mut Connection, request: &Request| {
        connection.session.send(request, (), 0, u64::MAX).map_err(|(_, refused)| refused.to_string())
    };
    // The value that gets find.
    send(&mut connection, &set(map.clone()))?;
    let (mut submitted, mut ended, mut wrong) = (0, 0, 0u64);
    let (mut meter, mut turns, mut whole_from_ns) = (Meter::<{ STEPS.len() }>::new(), 0u64, 0);
    let warmup = total / 10;
    let mut pending = Vec::new();
    let mut values: Vec<Vec<u8>> = Vec::new();
    // The first answer is that of the value's set.
    let mut due = in_flight.min(total);
    let mut is_first = true;
    while ended < total {
        pending.extend((0..due).map(|_| request(map.clone())));
        meter.step(0);
        for request in pending.drain(..) {
            send(&mut connection, &request)?;
        }
        submitted += due;
        meter.step(1);
        connection.write()?;
        meter.step(2);
        connection.read()?;
        meter.step(3);
        let (mut count, mut found) = (0, 0);
        while let Some(event) = connection.session.next_event().map_err(|error| error.to_string())? {
            let Event::Answered { answer, .. } = event else { continue };
            count += 1;
            match answer {
                Ok(Answer::Value(Some(bytes))) => {
                    // Kept for the next step, in reused buffers.
                    if values.len() == found {
                        values.push(Vec::new());
                    }
                    values[found].clear();
                    values[found].extend_from_slice(bytes);
                    found += 1;
                }
                Ok(Answer::Done) => {}
                _ => wrong += 1,
            }
        }
        meter.step(4);
        for value in &values[..found] {
            wrong += u64::from(data::text(value) != Some(text.as_bytes()));
        }
        meter.step(5);
        if std::mem::take(&mut is_first) && count > 0 {
            count -= 1;
        }
        if ended < warmup && ended + count >= warmup {
            (meter, turns) = (Meter::new(), 0);
            whole_from_ns = process_cpu_ns();
        }
        ended += count;
        turns += 1;
        due = count.min(total - submitted);
    }
    let whole_ns = process_cpu_ns() - whole_from_ns;
    let done = format!("{op} {value_bytes} B, {in_flight} in flight");
    meter.report(&done, &STEPS, (total - warmup, turns), whole_ns, wrong)
}
