//! Every way in which a connection ends is a separate cause, with words, for every kind of bot.

use bots::chat::{Chat, Irc};
use bots::{Arena, Echo};
use engine::simulation::{Blocks, End, Says, Simulated, SimulatedServer, Times, Wire, simulate};
use plan::{ArenaBots, BotSettings, ChatBots, ChatDialect, EchoBots, Pairing};

use crate::{SECOND_NS, worker_plan};

/// Ends each connection after 1.5 s: both of a pair in the same way, and pair by pair in another.
struct Ending;

impl SimulatedServer for Ending {
    fn opened(&mut self, peer: u64, at_ns: u64, says: &mut Says) {
        let ends = [End::Bare, End::Code(1013), End::Reset, End::Broken(b"\x03rubbish".to_vec())];
        says.end(at_ns + 3 * SECOND_NS / 2, peer, ends[peer as usize / 2 % 4].clone());
    }

    fn received(&mut self, _: u64, _: &[u8], _: u64, _: &mut Says) {}
}

fn check<B: engine::Bots<Driver: Simulated>>(bots: BotSettings) {
    // Longer than the connections last, and too short for a client to reconnect and be disconnected again.
    let times = Times { hold_ns: SECOND_NS, drain_ns: 5 * SECOND_NS / 2, generator_stall: None };
    let mut plan = worker_plan(bots, 20);
    plan.open_attempts = 1;
    let seconds = simulate::<B>(&plan, times, &mut Ending);
    let names = &seconds[0].metric_names.errors;
    let expected = [
        ("connection lost", "the server ended the connection without a close frame or message"),
        ("closed by the server", "the server closed the connection with code 1013 (try again later)"),
        ("connection reset", "Connection reset by peer (os error 104)"),
        ("broken protocol", "protocol error: planted: \"\\u{3}rubbish\""),
    ];
    for (cause, words) in expected {
        let index = names.iter().position(|name| name == cause).unwrap();
        assert!(seconds.iter().map(|second| second.errors[index]).sum::<u64>() >= 4, "{cause}");
        let mut kept = seconds.iter().flat_map(|second| &second.samples).filter(|(kept, _)| *kept == index);
        assert!(kept.all(|(_, kept)| kept == words), "{cause}");
        assert!(seconds.iter().flat_map(|second| &second.samples).any(|(kept, _)| *kept == index), "{cause}");
    }
}

#[test]
fn each_end_of_a_connection_has_its_cause_and_its_words() {
    check::<Echo<Wire>>(BotSettings::Echo(EchoBots { rate_per_s: 5.0, payload_bytes: 8 }));
    check::<Chat<Irc, Wire<Blocks>>>(BotSettings::Chat(ChatBots {
        dialect: ChatDialect::Irc,
        gap_min_ns: SECOND_NS,
        gap_max_ns: SECOND_NS,
        line_min_bytes: 15,
        line_max_bytes: 58,
        talkers: None,
        room: "lobby".to_owned(),
        echoes: false,
        misbehave: Vec::new(),
    }));
    check::<Arena<Wire>>(BotSettings::Arena(ArenaBots {
        fast_ns: SECOND_NS,
        slow_ns: SECOND_NS,
        pairing: Pairing::Pipelined,
        snapshots: 0.0,
        longest_game_ns: 12 * SECOND_NS,
    }));
}
