//! The accounts of scripts' rooms against a relay with planted faults.

use bots::Scripts;
use engine::simulation::{Anything, Says, SimulatedServer, Times, Wire, play};
use measure::ledger::{Books, close};
use plan::{ScriptLoad, WorkerPlan};

use crate::script::script;
use crate::{SECOND_NS, worker_plan};

const MEMBER: &str = r#"
export default async function member(bot) {
  const name = "room " + Math.floor(bot.id / 5);
  const ws = await bot.websocket("/");
  const room = bot.room(name);
  ws.onmessage = ({ data }) => {
    const [from, seq] = data.split(" ").map(Number);
    room.received(from, seq);
  };
  ws.send("join " + name);
  room.join();
  bot.ready();
  await bot.at("5s");
  for await (const seq of bot.every("1s")) {
    ws.send(bot.id + " " + seq);
    room.sent(seq);
  }
}"#;

/// What is done to the message with this number, counted over all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// one member does not get it
    Drop,
    /// one member gets it twice
    Double,
    /// it comes as another's
    Forge,
    /// nothing is relayed any more
    Die,
    /// it goes to the members of another room too
    Leak,
}

struct Relay {
    fault: Fault,
    /// the room of each peer
    rooms: Vec<(u64, String)>,
    relayed: u64,
}

impl SimulatedServer for Relay {
    fn opened(&mut self, _: u64, _: u64, _: &mut Says) {}

    fn received(&mut self, peer: u64, message: &[u8], at_ns: u64, says: &mut Says) {
        let text = std::str::from_utf8(message).unwrap();
        if let Some(room) = text.strip_prefix("join ") {
            return self.rooms.push((peer, room.to_owned()));
        }
        self.relayed += 1;
        let is_it = self.relayed == 100;
        if self.fault == Fault::Die && self.relayed >= 100 {
            return;
        }
        let own = self.rooms.iter().find(|(known, _)| *known == peer).map(|(_, room)| room.clone()).unwrap();
        let leaks = is_it && self.fault == Fault::Leak;
        let others = self.rooms.iter().filter(|(known, room)| *known != peer && (*room == own || leaks));
        for (at, (other, _)) in others.enumerate() {
            let text =
                if is_it && self.fault == Fault::Forge { "0 9999".to_owned() } else { text.to_owned() };
            let copies = match self.fault {
                Fault::Drop if is_it && at == 0 => 0,
                Fault::Double if is_it && at == 0 => 2,
                _ => 1,
            };
            (0..copies).for_each(|_| says.message(at_ns + 2_000_000, *other, text.as_str()));
        }
    }
}

fn books(fault: Fault) -> Books {
    let plan = WorkerPlan {
        patience_ns: 3 * SECOND_NS,
        ..worker_plan(script(MEMBER, None, ScriptLoad::default()), 20)
    };
    let times = Times { hold_ns: 10 * SECOND_NS, drain_ns: 40 * SECOND_NS, generator_stall: None };
    let mut relay = Relay { fault, rooms: Vec::new(), relayed: 0 };
    let played = play::<Scripts<Wire<Anything>>>(&plan, times, &mut relay);
    let words: Vec<_> = played.seconds.iter().flat_map(|second| &second.samples).collect();
    assert!(words.is_empty(), "{words:?}");
    let last = played.seconds.last().unwrap().index;
    // Missing messages are waited for as long as the patience lasts.
    assert_eq!(
        last >= 42,
        fault == Fault::Drop || fault == Fault::Die || fault == Fault::Forge,
        "{fault:?}: {last} s"
    );
    let books = close(&[played.ledger.unwrap()]);
    books.balance().unwrap();
    books
}

#[test]
fn rooms_have_exact_books_and_each_planted_fault_stands_in_them() {
    for fault in [Fault::None, Fault::Drop, Fault::Double, Fault::Forge, Fault::Die, Fault::Leak] {
        let books = books(fault);
        let sum = books.judged;
        // Each of 20 speaks once a second for 35 s, to four others.
        assert!((695..=700).contains(&books.sent), "{fault:?}: {}", books.sent);
        assert_eq!(
            (sum.owed_min, sum.owed_max, sum.receivers),
            (4 * books.sent, 4 * books.sent, 20),
            "{fault:?}"
        );
        let found = (sum.lost, sum.duplicated, sum.unowed, books.unknown_messages);
        let expected = match fault {
            Fault::None => (0, 0, 0, 0),
            Fault::Drop => (1, 0, 0, 0),
            Fault::Double => (0, 1, 0, 0),
            // As a message of a bot in each room it is unknown.
            Fault::Forge => (4, 0, found.2, found.3),
            Fault::Die => (4 * (books.sent - 99), 0, 0, 0),
            Fault::Leak => (0, 0, 0, 15),
        };
        assert_eq!(found, expected, "{fault:?}");
        if fault == Fault::Forge {
            assert!(found.2 + found.3 >= 3, "{found:?}");
        }
    }
}
