use measure::ledger::ReceiverBooks;
use measure::trial::kind;
use measure::{Measure, Phase};

use super::super::tests::{check, passes};
use crate::judge::Verdict::{Fail, GeneratorLimited, Inconclusive, Invalid};
use crate::judge::{Criteria, Intended};
use crate::testing::{TrialBuilder, lose, terms};

fn chat_terms() -> Criteria {
    terms("deliveries.lost == 0, deliveries.latency.p99 < 50ms")
}

/// The server of these trials tells nothing.
fn untold(mut builder: TrialBuilder) -> TrialBuilder {
    if let Some(books) = &mut builder.books {
        books.drops_are_told = false;
    }
    builder
}

#[test]
fn a_chat_that_delivers_everything_in_time_passes() {
    passes(&TrialBuilder::chat(100), &chat_terms());
    passes(&untold(TrialBuilder::chat(100)), &chat_terms());
}

#[test]
fn what_the_server_says_it_dropped_is_lost_and_no_contradiction() {
    let builder = TrialBuilder::chat(100).receivers(|one| {
        if one.receiver == 7 {
            lose(one, 12, 10, 2);
        }
    });
    let says = "deliveries.lost was 12 (objective: deliveries.lost == 0)";
    check(&builder, &chat_terms(), Fail, "deliveries.lost", says);
    passes(&builder, &terms("deliveries.latency.p99 < 50ms"));
    check(&builder, &terms("deliveries.dropped < 10"), Fail, "deliveries.dropped", "was 10");
    check(&builder, &terms("deliveries.in_flight < 2"), Fail, "deliveries.in_flight", "was 2");
}

#[test]
fn one_delivery_that_nobody_accounts_for_makes_the_rung_invalid() {
    let one_missing = || {
        TrialBuilder::chat(100).receivers(|one| {
            if one.receiver == 42 {
                lose(one, 3, 2, 0);
            }
        })
    };
    let says = "books do not balance: what the server tells and what the clients received differ by 1 at 1 of 100 receivers … \
                most at receiver 42: 3 lost, but 2 dropped and 0 waiting by the server's word (residual 1)";
    check(&one_missing(), &chat_terms(), Invalid, "deliveries.residual", says);
    // If the server reports nothing, the same three are simply lost.
    check(&untold(one_missing()), &chat_terms(), Fail, "deliveries.lost", "deliveries.lost was 3");
    let why = "does not tell what it drops";
    let asked = terms("deliveries.residual == 0");
    check(&untold(one_missing()), &asked, Inconclusive, "deliveries.residual", why);
}

#[test]
fn a_surplus_at_one_receiver_does_not_hide_a_loss_at_another() {
    let builder = TrialBuilder::chat(100).receivers(|one| match one.receiver {
        3 => lose(one, 5, 1, 0),
        4 => lose(one, 1, 5, 0),
        _ => {}
    });
    assert_eq!(builder.books.as_ref().unwrap().judged.residual, 0);
    check(&builder, &chat_terms(), Invalid, "deliveries.residual", "differ by 8 at 2 of 100");
}

#[test]
fn a_server_whose_own_books_say_otherwise_than_its_clients_makes_the_rung_invalid() {
    let says = "the server's books contradict the clients' at 1 of 100 receivers; first at receiver 9 … but the others sent 5940 and 5940 came";
    let of_nine = |edit: fn(&mut ReceiverBooks)| {
        move |one: &mut ReceiverBooks| {
            if one.receiver == 9 {
                edit(one);
            }
        }
    };
    type Spoil = fn(&mut ReceiverBooks);
    let told: [(&str, Spoil); 4] = [
        ("nothing was owed", |one| one.told_owed = Some(0)),
        ("one more was owed", |one| one.told_owed = one.told_owed.map(|owed| owed + 1)),
        ("nothing was delivered", |one| one.told_delivered = Some(0)),
        ("one more was delivered", |one| one.told_delivered = one.told_delivered.map(|count| count + 1)),
    ];
    for (what, edit) in told {
        let builder = || TrialBuilder::chat(100).told(of_nine(edit));
        check(&builder(), &chat_terms(), Invalid, "deliveries.told", says);
        // Its counts may legitimately differ for misbehaving clients, for one that is not caught up, or that joined
        // while others spoke.
        let beside = builder().told(|one| one.is_excluded |= one.receiver == 50);
        passes(&beside, &chat_terms());
        let backlog = builder().told(|one| one.sum.not_caught_up = u64::from(one.receiver == 50));
        check(&backlog, &chat_terms(), Fail, "backlog", "");
        let came = builder().told(of_nine(|one| one.sum.owed_max += 1));
        passes(&came, &chat_terms());
        assert!(!what.is_empty());
    }
    // A server that sends a message twice may count it once or twice.
    let twice = |told: u64| {
        TrialBuilder::chat(100).told(move |one| {
            (one.sum.duplicated, one.told_delivered) = (2, Some(one.sum.delivered + told));
        })
    };
    passes(&twice(2), &chat_terms());
    check(&twice(3), &chat_terms(), Invalid, "deliveries.told", "");
}

#[test]
fn what_is_judged_apart_makes_no_verdict() {
    let builder = TrialBuilder::chat(100).receivers(|one| {
        if one.receiver < 10 {
            one.is_excluded = true;
            one.sum.not_caught_up = 1;
            lose(one, 500, 20, 30);
        }
    });
    passes(&builder, &chat_terms());
}

#[test]
fn deliveries_that_nobody_owed_make_the_rung_invalid() {
    let builder = TrialBuilder::chat(100).receivers(|one| {
        (one.sum.unowed, one.sum.delivered) = (60, one.sum.delivered + 60);
    });
    let says = "6000 deliveries came that were not owed … to receiver 0 from sender 0 … --echoes";
    check(&builder, &chat_terms(), Invalid, "deliveries.unowed", says);
}

#[test]
fn lines_of_nobody_and_a_server_that_is_not_done_fail_the_rung() {
    let mut strange = TrialBuilder::chat(100);
    if let Some(books) = &mut strange.books {
        books.unknown_messages = 2;
    }
    let says = "2 came with an unknown sender or number";
    check(&strange, &chat_terms(), Fail, "deliveries.unknown_messages", says);

    let waiting = |lost: u64| {
        TrialBuilder::chat(100).receivers(move |one| {
            if one.receiver == 5 {
                one.sum.not_caught_up = 1;
                lose(one, lost, 0, 0);
            }
        })
    };
    check(&waiting(0), &chat_terms(), Fail, "backlog", "backlog: when the drain ended, 1 of 100 receivers");
    // The receiver never got the server's final report, so the accounts do not contradict; what it did not get is lost.
    check(&waiting(9), &chat_terms(), Fail, "deliveries.lost", "was 9");
}

#[test]
fn what_the_bots_had_no_time_to_read_condemns_no_server_and_lets_none_pass() {
    let unread = |lost: u64, has_more: bool| {
        TrialBuilder::chat(100).receivers(move |one| {
            if one.receiver == 5 {
                lose(one, 9 + lost, 9, 0);
                (one.sum.unread, one.sum.lost) = (9, lost);
            }
            if has_more && one.receiver == 6 {
                one.sum.not_caught_up = 1;
            }
        })
    };
    let says = "9 of 594000 deliveries were not read";
    check(&unread(0, false), &chat_terms(), GeneratorLimited, "deliveries.unread", says);
    check(&unread(0, true), &chat_terms(), GeneratorLimited, "deliveries.unread", says);
    // A server that loses messages silently contradicts itself, whatever the bots had time for.
    check(&unread(1, false), &chat_terms(), Invalid, "deliveries.residual", "differ by 1 at");
}

#[test]
fn lost_deliveries_are_infinite_and_not_absent() {
    // 100 × 99 × 60 deliveries, of which more than a hundredth never came: p99 is one of those.
    let builder = TrialBuilder::chat(100).receivers(|one| lose(one, 70, 70, 0));
    let asked = terms("deliveries.latency.p99 < 50ms");
    check(&builder, &asked, Fail, "deliveries.latency.p99", "was never");
    let fewer = TrialBuilder::chat(100).receivers(|one| lose(one, 40, 40, 0));
    passes(&fewer, &asked);
}

#[test]
fn without_books_or_without_anything_owed_nothing_can_be_told() {
    let mut silent = TrialBuilder::chat(100).receivers(|one| {
        (one.sum.owed_min, one.sum.owed_max, one.sum.delivered) = (0, 0, 0);
    });
    silent.deliveries_per_s = 0;
    let asked = terms("deliveries.lost == 0");
    check(&silent, &asked, Inconclusive, "deliveries.lost", "no delivery was owed");
    let mut without = TrialBuilder::chat(100);
    without.books = None;
    check(&without, &asked, Inconclusive, "deliveries.lost", "no books of deliveries");
}

#[test]
fn books_that_contradict_themselves_are_a_bug_of_ours() {
    let mut builder = TrialBuilder::chat(100);
    if let Some(books) = &mut builder.books {
        books.judged.lost += 1;
    }
    let says = "deliveries: the judged receivers do not add up … bug of Stepladder";
    check(&builder, &chat_terms(), Invalid, "bug", says);
}

#[test]
fn a_dead_server_or_an_overworked_generator_is_named_in_its_place() {
    let missing = || TrialBuilder::chat(100).receivers(|one| lose(one, 3, 2, 0));
    let exited = missing().event(12, kind::SUBJECT_EXITED, "signal 9");
    check(&exited, &chat_terms(), Fail, "server exited", "");
    let late = TrialBuilder { send_lag_ns: 9_000_000, ..missing() };
    check(&late, &chat_terms(), Invalid, "deliveries.residual", "");
    let slow = TrialBuilder { send_lag_ns: 9_000_000, delivery_ns: 60_000_000, ..TrialBuilder::chat(1_000) };
    check(&slow, &chat_terms(), GeneratorLimited, "send_lag.p99", "");
    // Latencies count from the planned instant, so what is in time despite a late generator is in time.
    let late = TrialBuilder { send_lag_ns: 9_000_000, ..TrialBuilder::chat(1_000) };
    passes(&late, &chat_terms());
}

#[test]
fn a_crowd_below_its_pace_is_another_load() {
    let mut paced = chat_terms();
    paced.intended = Some(Intended::PerSecond(1_640.0));
    let builder = TrialBuilder::chat(1_000);
    let says = "61 % of the 98400 intended messages were offered";
    check(&builder, &paced, GeneratorLimited, "offered", says);
    // Other messages that keep the conversation going are not lines of theirs.
    let chatty = TrialBuilder::chat(1_000).edit(|_, interval| {
        let keep = interval.flow_mut(2, Phase::Hold);
        (keep.offered, keep.sent, keep.told) = (700, 700, 700);
    });
    check(&chatty, &paced, GeneratorLimited, "offered", says);
    paced.intended = Some(Intended::PerSecond(1_000.0));
    passes(&builder, &paced);
}

#[test]
fn deliveries_that_take_longer_and_longer_are_drifting() {
    let builder = TrialBuilder::chat(100).edit(|at, interval| {
        let latencies = interval.distribution_mut(Measure::Delivery, true);
        latencies.clear();
        latencies.record_many(5_000_000 + u64::from(at) * 600_000, 9_900);
    });
    check(&builder, &chat_terms(), Fail, "drifting", "drifting: the mean delivery latency rose from");
}
