use arena_server::nodes::ticket::{Gate, Key};

use super::*;

const WALL_MS: u64 = 1_795_230_436_000;
const S: u64 = SECOND_NS;

/// A node that is as a test says; each has a key and an address of its own.
struct Node {
    state: State,
    gate: Gate,
}

impl Node {
    fn new(number: u64) -> Node {
        let key = Key::from_text(&format!("{number:02x}").repeat(32)).unwrap();
        let state = State {
            node: NodeId(number),
            name: format!("n{number}"),
            address: format!("127.0.0.1:{number}"),
            key: key.clone(),
            free: 100,
            waiting: Vec::new(),
            to_ms: WALL_MS,
            tick_rate: 60,
            ticks: TickTally::new(),
            figures: Vec::new(),
        };
        Node { state, gate: Gate::new(key) }
    }

    /// Tells so many players and games, and ticks of which so many were late or missed.
    fn tells(&mut self, cluster: &mut Cluster, at_ns: u64, players: u64, missed: u64) {
        self.state.figures = vec![("sockets".to_owned(), players), ("games".to_owned(), players / 2)];
        self.state.ticks = TickTally::new();
        self.state.ticks.miss(missed);
        cluster.hear(self.state.written().as_bytes(), at_ns, WALL_MS);
    }
}

fn address(number: u64) -> String {
    format!("127.0.0.1:{number}")
}

/// Places a player, whose ticket must be good at the node that it names and nowhere else.
fn place(cluster: &mut Cluster, nodes: &mut [&mut Node], at_ns: u64) -> (String, Place) {
    let sent = cluster.place(at_ns, WALL_MS).unwrap();
    let let_in = nodes.iter_mut().filter_map(|node| {
        let place = node.gate.admit(&sent.ticket, node.state.to_ms).ok()?;
        Some((node.state.address.clone(), place))
    });
    let let_in: Vec<(String, Place)> = let_in.collect();
    assert_eq!((let_in.len(), &let_in[0].0), (1, &sent.address));
    let_in[0].clone()
}

#[test]
fn games_are_filled_whole_and_go_to_the_node_with_the_fewest_players() {
    let (mut cluster, [mut a, mut b]) = (Cluster::new(u64::MAX), [1, 2].map(Node::new));
    a.tells(&mut cluster, 0, 4, 0);
    b.tells(&mut cluster, 0, 0, 0);
    let mut placed: Vec<(String, u64, Seat)> = Vec::new();
    for _ in 0..12 {
        let (address, Place { game, seat }) = place(&mut cluster, &mut [&mut a, &mut b], S);
        placed.push((address, game, seat));
    }
    for game in placed.chunks(2) {
        assert_eq!((&game[0].0, game[0].1), (&game[1].0, game[1].1), "two players of one game: {game:?}");
        assert_eq!((game[0].2, game[1].2), (Seat::One, Seat::Two));
    }
    // Four players ahead, so b gets two games first; then they take turns.
    let addresses: Vec<&str> = placed.iter().step_by(2).map(|(address, ..)| address.as_str()).collect();
    let [a_at, b_at] = [address(1), address(2)];
    assert_eq!(addresses, [&b_at, &b_at, &a_at, &b_at, &a_at, &b_at]);
    // Those who have arrived are counted once.
    a.tells(&mut cluster, 2 * S, 8, 0);
    b.tells(&mut cluster, 2 * S, 8, 0);
    let next: Vec<String> =
        (0..4).map(|_| place(&mut cluster, &mut [&mut a, &mut b], 2 * S).0).step_by(2).collect();
    assert_eq!(next, [a_at, b_at]);
}

#[test]
fn a_game_in_which_a_player_waits_is_filled_first_and_one_that_nobody_is_in_never() {
    let (mut cluster, mut a) = (Cluster::new(10), Node::new(1));
    a.tells(&mut cluster, 0, 0, 0);
    let next = |a: &mut Node, cluster: &mut Cluster, at_ns| place(cluster, &mut [a], at_ns).1;
    assert_eq!(next(&mut a, &mut cluster, 0), Place { game: 10, seat: Seat::One });
    // The first one waits for long, and its node says so each second.
    for second in 1..20 {
        a.state.waiting = vec![(10, Seat::Two)];
        a.tells(&mut cluster, second * S, 1, 0);
    }
    assert_eq!(next(&mut a, &mut cluster, 20 * S), Place { game: 10, seat: Seat::Two });
    // The second is on the way while the node still says that the first one waits: no third one is sent after them.
    a.tells(&mut cluster, 20 * S, 1, 0);
    assert_eq!(next(&mut a, &mut cluster, 20 * S), Place { game: 11, seat: Seat::One });
    // The second never came; the first of game 11 never came.
    for second in 21..=26 {
        a.tells(&mut cluster, second * S, 1, 0);
    }
    assert_eq!(next(&mut a, &mut cluster, 26 * S), Place { game: 10, seat: Seat::Two });
    assert_eq!(next(&mut a, &mut cluster, 26 * S), Place { game: 12, seat: Seat::One });
}

#[test]
fn a_silent_node_gets_no_players_and_without_a_node_or_room_there_is_no_place() {
    let (mut cluster, [mut a, mut b]) = (Cluster::new(0), [1, 2].map(Node::new));
    assert_eq!(cluster.place(0, WALL_MS), Err(NoPlace::NoNode));
    a.tells(&mut cluster, 0, 0, 0);
    b.tells(&mut cluster, 2 * S, 50, 0);
    // A half game of a node that has died is not filled.
    assert_eq!(place(&mut cluster, &mut [&mut a, &mut b], 2 * S).0, address(1));
    assert_eq!(place(&mut cluster, &mut [&mut a, &mut b], 3 * S).0, address(2));
    assert_eq!(place(&mut cluster, &mut [&mut a, &mut b], 3 * S).0, address(2));
    b.state.free = 1;
    b.tells(&mut cluster, 4 * S, 99, 0);
    assert_eq!(cluster.place(4 * S, WALL_MS), Err(NoPlace::Full));
    b.state.free = 3;
    b.tells(&mut cluster, 5 * S, 97, 0);
    assert!(cluster.place(5 * S, WALL_MS).is_ok() && cluster.place(5 * S, WALL_MS).is_ok());
    assert_eq!(cluster.place(5 * S, WALL_MS), Err(NoPlace::Full), "two are on the way to three seats");
    assert_eq!(cluster.place(8 * S, WALL_MS), Err(NoPlace::NoNode));
}

#[test]
fn a_dead_node_owes_its_ticks_until_it_is_heard_again_or_nobody_plays() {
    let (mut cluster, [mut a, mut b]) = (Cluster::new(0), [1, 2].map(Node::new));
    let mut second = |a: Option<(u64, u64)>, b: Option<(u64, u64)>, at_s: u64, nodes: [&mut Node; 2]| {
        for (node, said) in nodes.into_iter().zip([a, b]) {
            if let Some((players, missed)) = said {
                node.tells(&mut cluster, at_s * S, players, missed);
            }
        }
        let Second { ticks, figures, .. } = cluster.take_second(at_s * S + S / 2);
        let of = |name: &str| figures.get(name).copied();
        (ticks.counts.missed, of("ticks_late@n1"), of("nodes"))
    };
    // 5 games at 60 Hz are 300 ticks a second.
    assert_eq!(second(Some((10, 0)), Some((10, 0)), 0, [&mut a, &mut b]), (0, Some(0), Some(2)));
    assert_eq!(second(None, Some((10, 0)), 1, [&mut a, &mut b]), (0, Some(0), Some(2)));
    assert_eq!(second(None, Some((10, 0)), 2, [&mut a, &mut b]), (0, Some(0), Some(2)));
    assert_eq!(second(None, Some((10, 7)), 3, [&mut a, &mut b]), (907, Some(900), Some(1)));
    assert_eq!(second(None, Some((10, 0)), 4, [&mut a, &mut b]), (300, Some(300), Some(1)));
    // It had only been stopped, and tells of the same ticks and of 20 more.
    assert_eq!(second(Some((10, 1_220)), Some((10, 0)), 5, [&mut a, &mut b]), (20, Some(20), Some(2)));
    assert_eq!(second(Some((10, 0)), Some((10, 0)), 6, [&mut a, &mut b]), (0, Some(0), Some(2)));
    // Dead again, and the run is over.
    for (at_s, missed) in [(7, 0), (8, 0), (9, 900)] {
        assert_eq!(second(None, Some((10, 0)), at_s, [&mut a, &mut b]).0, missed);
    }
    assert_eq!(second(None, Some((0, 0)), 10, [&mut a, &mut b]).0, 300);
    assert_eq!(second(None, Some((0, 0)), 11, [&mut a, &mut b]), (0, None, Some(1)));
    // The last one dies: nobody is left who could say that nobody plays.
    assert_eq!(second(None, None, 14, [&mut a, &mut b]).2, Some(0));
    let said = cluster.take_said().join("\n");
    assert!(said.contains("node n1 was not heard for 3 s and had 10 players"), "{said}");
    assert!(said.contains("node n1 is heard again"), "{said}");
}

#[test]
fn a_node_is_taken_in_once_and_one_that_does_not_fit_is_refused_once_with_the_reason() {
    let mut cluster = Cluster::new(0);
    let mut hear = |node: &mut Node| {
        node.tells(&mut cluster, 0, 0, 0);
        node.tells(&mut cluster, 0, 0, 0);
        (cluster.members.len(), cluster.take_said().join("; "))
    };
    let [mut a, mut again, mut same, mut slow, mut other] = [1, 1, 3, 4, 5].map(Node::new);
    assert_eq!(hear(&mut a), (1, "node n1 is there, at ws://127.0.0.1:1".to_owned()));
    again.state.node = NodeId(2);
    assert_eq!(hear(&mut again), (1, "node n1 is there, at ws://127.0.0.1:1".to_owned()), "started again");
    same.state.name = "n1".to_owned();
    let (members, said) = hear(&mut same);
    assert_eq!(members, 1);
    assert_eq!(said.matches("node n1 at 127.0.0.1:3 gets no players: another node has this name").count(), 1);
    slow.state.tick_rate = 30;
    let refused = "node n4 at 127.0.0.1:4 gets no players: it ticks at 30 Hz and the others at 60 Hz";
    assert_eq!(hear(&mut slow), (1, refused.to_owned()));
    assert_eq!(hear(&mut other).0, 2);
    cluster.hear(b"{\"node\":\"0000000000000002\",\"leaving\":true}", 0, WALL_MS);
    cluster.hear(b"hello", 0, WALL_MS);
    assert_eq!((cluster.members.len(), cluster.take_said()), (1, vec!["node n1 has ended".to_owned()]));
}

#[test]
fn a_ticket_expires_by_the_clock_of_its_node() {
    for ahead_ms in [-3_600_000, 3_600_000] {
        let (mut cluster, mut a) = (Cluster::new(0), Node::new(1));
        a.state.to_ms = WALL_MS.saturating_add_signed(ahead_ms);
        a.tells(&mut cluster, 0, 0, 0);
        place(&mut cluster, &mut [&mut a], 0);
    }
}
