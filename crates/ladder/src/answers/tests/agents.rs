//! What the answers say of the agents that made a load: one, a few, or many of them.

use measure::AgentFacts;

use super::*;
use crate::agents::AgentRows;

fn agent(number: u64) -> AgentFacts {
    AgentFacts {
        name: format!("m{number}"),
        bots: 250,
        workers: 2,
        send_lag_p99_ns: Some(100_000 + number * 1_000),
        busy_share_max: Some(0.01 * number as f64),
        cpu_cores: Some(0.5),
        clock_bound_ns: 80_000 + number,
        clock_offset_ns: -7,
        round_trip_ns: 160_000,
        link: "eth0, 10000 Mbit/s".to_owned(),
        lost: None,
    }
}

fn made_by(agents: &[AgentFacts]) -> Climb {
    let told = serde_json::to_string(agents).unwrap();
    climb_of(&[judged(&TrialBuilder::arena(500.0).event(20, kind::AGENTS, &told), TICKS)])
}

#[test]
fn of_agents_what_is_the_same_for_all_is_said_once_and_the_rest_stands_in_rows() {
    let all = |count: u64| (0..count).map(agent).collect::<Vec<_>>();
    let unlike = vec![agent(0), AgentFacts { bots: 10, workers: 1, link: "lo".to_owned(), ..agent(1) }];
    let worst = "m99 m98 m97 m96 m95 m94 m93 m92";
    let every = "agent bots workers lag p99 busiest CPU clock ± round trip link";
    let own = "agent lag p99 busiest CPU clock ± round trip";
    for (agents, sentence, title, header, names, below) in [
        (
            all(1),
            "1 agent made the load of 500 games: 250 bots, 2 workers, over eth0, 10000 Mbit/s, send lag p99 100 µs, busiest \
             worker 0 %, clock within 80 µs.",
            "Agents under 500 games",
            every,
            "m0",
            None,
        ),
        (
            all(2),
            "2 agents made the load of 500 games: 250 bots each, 2 workers each, over eth0, 10000 Mbit/s, send lag p99 up to \
             101 µs (m1), busiest worker up to 1 % (m1), clock within 80 µs (m1).",
            "Agents under 500 games",
            own,
            "m0 m1",
            None,
        ),
        (
            unlike,
            "2 agents made the load of 500 games: send lag p99 up to 101 µs (m1), busiest worker up to 1 % (m1), clock within \
             80 µs (m1).",
            "Agents under 500 games",
            every,
            "m0 m1",
            None,
        ),
        (
            all(8),
            "8 agents made the load of 500 games: 250 bots each, 2 workers each, over eth0, 10000 Mbit/s, send lag p99 up to \
             107 µs (m7), busiest worker up to 7 % (m7), clock within 80 µs (m7).",
            "Agents under 500 games",
            own,
            "m0 m1 m2 m3 m4 m5 m6 m7",
            None,
        ),
        (
            all(100),
            "100 agents made the load of 500 games: 250 bots each, 2 workers each, over eth0, 10000 Mbit/s, send lag p99 up to \
             199 µs (m99), busiest worker up to 99 % (m99), clock within 80.1 µs (m99).",
            "Agents under 500 games, the 8 worst",
            own,
            worst,
            Some("… 92 more agents: "),
        ),
    ] {
        let climb = made_by(&agents);
        check_contract(&climb);
        assert_eq!(text_of(&climb, "agents"), sentence);
        let AgentRows { table, below: said } = results_page(&climb).agents.unwrap();
        assert_eq!((table.title.as_deref(), table.header.join(" ").as_str()), (Some(title), header));
        let first: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(first.join(" "), names);
        assert_eq!(said.len(), below.iter().len(), "{said:?}");
        assert!(said.iter().zip(below).all(|(line, begins)| line.starts_with(begins)), "{said:?}");
        assert!(results_page(&climb).to_string().contains(&table.to_string()), "a pipe gets it too");
    }
    assert_eq!(results_page(&climb_of(&[arena(500.0, 0.02)])).agents, None, "this process made the load");
}

#[test]
fn agents_that_were_lost_come_first_of_many_and_are_said_with_why() {
    let why = "nothing was heard of it for 5 s";
    let lost =
        |number: u64| AgentFacts { lost: Some(why.to_owned()), send_lag_p99_ns: None, ..agent(number) };
    let climb = made_by(&[agent(0), lost(1)]);
    check_text(&climb, "agents", &format!("…m1 was lost: {why}."));
    let AgentRows { table, below } = results_page(&climb).agents.unwrap();
    assert_eq!((table.rows[1][0].as_str(), table.rows[1][1].as_str()), ("m1 (lost)", "—"));
    assert!(below.is_empty(), "the conclusion has said it: {below:?}");
    let many: Vec<AgentFacts> =
        (0..12).map(|number| if number < 2 { lost(number) } else { agent(number) }).collect();
    let climb = made_by(&many);
    check_text(&climb, "agents", &format!("…2 of 12 agents were lost, of them m0: {why}."));
    let AgentRows { table, below } = results_page(&climb).agents.unwrap();
    let first: Vec<&str> = table.rows.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(first[..3], ["m1 (lost)", "m0 (lost)", "m11"]);
    assert_eq!(below.len(), 3, "{below:?}");
    assert_eq!(climb.rungs[0].agents, many, "the data has all of them");
}

#[test]
fn a_narrow_terminal_keeps_of_each_agent_what_says_most() {
    let table = results_page(&made_by(&[agent(0), AgentFacts { bots: 9, ..agent(1) }])).agents.unwrap().table;
    for (most, header) in [
        (80, "agent bots lag p99 busiest CPU clock ± round trip"),
        (40, "agent bots lag p99 busiest clock ±"),
    ] {
        assert_eq!(table.within(most).0.header.join(" "), header, "in {most} columns");
    }
}
