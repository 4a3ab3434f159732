//! What a board does when one thread uses it.

use super::super::{
    BulkRefused, Direction, Leaderboard, MAX_MEMBER_BYTES, MAX_METADATA_BYTES, Mode, Options, Record,
    Refused, Score, Snapshot, Standing, TieRule, Update,
};
use super::{Check, Make, Verdict, same};

pub(super) const CHECKS: &[Check] = &[
    ("updates_return_score_and_rank", updates_return_score_and_rank),
    ("ascending_boards_rank_the_lowest_first", ascending_boards_rank_the_lowest_first),
    ("equal_scores_follow_the_tie_rule", equal_scores_follow_the_tie_rule),
    ("scores_of_any_size_are_ranked_exactly", scores_of_any_size_are_ranked_exactly),
    ("a_bulk_is_applied_whole_or_not_at_all", a_bulk_is_applied_whole_or_not_at_all),
    ("bad_names_and_long_metadata_are_refused", bad_names_and_long_metadata_are_refused),
    ("pages_cover_the_board_without_gaps", pages_cover_the_board_without_gaps),
    ("neighbours_surround_a_member", neighbours_surround_a_member),
    ("deleted_members_leave_nothing", deleted_members_leave_nothing),
    ("a_reset_returns_the_season_and_empties_the_board", a_reset_returns_the_season_and_empties_the_board),
    ("a_snapshot_restores_ranks_among_equals", a_snapshot_restores_ranks_among_equals),
    ("taken_ties_are_restored_side_by_side", taken_ties_are_restored_side_by_side),
];

pub(super) fn set(board: &dyn Leaderboard, member: &str, score: i64) -> Result<(), String> {
    apply(board, member, Mode::Replace, score).map(|_| ())
}

fn apply(board: &dyn Leaderboard, member: &str, mode: Mode, score: i64) -> Result<(String, u64), String> {
    let outcome = board.update(member, mode, &score.into()).map_err(|refused| refused.to_string())?;
    Ok((outcome.score.to_string(), outcome.rank))
}

fn names(rows: &[super::super::Row]) -> String {
    rows.iter().map(|row| &*row.member).collect::<Vec<_>>().join(" ")
}

fn text(score: i64, rank: u64) -> (String, u64) {
    (score.to_string(), rank)
}

fn updates_return_score_and_rank(make: Make<'_>) -> Verdict {
    let board = make(Options::default());
    same!(apply(&*board, "ann", Mode::Replace, 10)?, text(10, 1), "the first member");
    same!(apply(&*board, "bob", Mode::Increment, 20)?, text(20, 1), "a new member counts from 0");
    same!(apply(&*board, "ann", Mode::Increment, 15)?, text(25, 1), "an increment");
    same!(apply(&*board, "ann", Mode::Decrement, 30)?, text(-5, 2), "a decrement");
    same!(apply(&*board, "ann", Mode::Best, -7)?, text(-5, 2), "a worse result");
    same!(apply(&*board, "ann", Mode::Best, 21)?, text(21, 1), "a better result");
    same!(apply(&*board, "cid", Mode::Best, -3)?, text(-3, 3), "the first result of a member");
    same!(apply(&*board, "dan", Mode::Decrement, 1)?, text(-1, 3), "a new member's decrement");
    same!(board.get("bob"), Some(Standing { score: 20.into_score(), rank: 2 }), "a member");
    same!(board.get("eve"), None, "no member");
    let several = board.get_many(&["dan", "eve", "ann"]);
    let ranks: Vec<_> = several.iter().map(|each| each.as_ref().map(|standing| standing.rank)).collect();
    same!(ranks, vec![Some(3), None, Some(1)], "several members");
    same!(board.count(), 4, "the count");
    same!(names(&board.top(2).rows), "ann bob", "the first two");
    let next = board.update("ann", Mode::Best, &0_i64.into_score()).map_err(|e| e.to_string())?;
    same!(next.sequence, 9, "updates without an effect count as well");
    Ok(())
}

trait IntoScore {
    fn into_score(self) -> Score;
}

impl IntoScore for i64 {
    fn into_score(self) -> Score {
        self.into()
    }
}

fn ascending_boards_rank_the_lowest_first(make: Make<'_>) -> Verdict {
    let board = make(Options { direction: Direction::Ascending, ..Options::default() });
    for (member, score) in [("ann", 30), ("bob", -10), ("cid", 20)] {
        set(&*board, member, score)?;
    }
    same!(names(&board.top(3).rows), "bob cid ann", "the order");
    same!(apply(&*board, "ann", Mode::Best, 40)?, text(30, 3), "a slower time");
    same!(apply(&*board, "ann", Mode::Best, -20)?, text(-20, 1), "a faster time");
    same!(apply(&*board, "ann", Mode::Increment, 35)?, text(15, 2), "a penalty");
    Ok(())
}

fn equal_scores_follow_the_tie_rule(make: Make<'_>) -> Verdict {
    for direction in [Direction::Ascending, Direction::Descending] {
        for (ties, wanted, again) in
            [(TieRule::First, "ann bob cid", "bob cid ann"), (TieRule::Last, "cid bob ann", "ann cid bob")]
        {
            let board = make(Options { direction, ties, seed: None });
            for member in ["ann", "bob", "cid"] {
                set(&*board, member, 5)?;
            }
            set(&*board, "bob", 5)?;
            apply(&*board, "bob", Mode::Increment, 0)?;
            apply(&*board, "bob", Mode::Best, 5)?;
            same!(names(&board.top(3).rows), wanted, "{ties:?}, with updates that leave the score as it was");
            set(&*board, "ann", 6)?;
            set(&*board, "ann", 5)?;
            same!(names(&board.top(3).rows), again, "{ties:?}, after ann left and came back");
        }
    }
    let board = make(Options { seed: Some(3), ..Options::default() });
    for member in ["ann", "bob"] {
        set(&*board, member, 5)?;
    }
    let mut first = 0;
    const ROUNDS: u32 = 1_000;
    for _ in 0..ROUNDS {
        set(&*board, "ann", 5)?;
        first += u32::from(board.get("ann").is_some_and(|standing| standing.rank == 1));
    }
    // ann draws a number each time and bob keeps his, so the share depends on his; both must happen.
    if first == 0 || first == ROUNDS {
        return Err(format!("of {ROUNDS} updates with an equal score {first} made the member first"));
    }
    Ok(())
}

fn scores_of_any_size_are_ranked_exactly(make: Make<'_>) -> Verdict {
    for direction in [Direction::Descending, Direction::Ascending] {
        let board = make(Options { direction, ties: TieRule::First, seed: None });
        let huge = "1".to_owned() + &"0".repeat(999);
        let texts = [
            format!("-{huge}"),
            i128::MIN.to_string(),
            i64::MIN.to_string(),
            (i128::from(i64::MIN) + 1).to_string(),
            "-1".into(),
            "0".into(),
            i64::MAX.to_string(),
            (i128::from(i64::MAX) + 1).to_string(),
            i128::MAX.to_string(),
            huge.clone(),
            huge[..999].to_owned() + "1",
        ];
        let score = |text: &String| text.parse::<Score>().map_err(|error| error.to_string());
        // Updated out of order, and each through another zone.
        for at in [3, 9, 0, 10, 5, 1, 7, 2, 8, 4, 6] {
            let member = at.to_string();
            for first in [&texts[(at + 4) % 11], &texts[(at + 8) % 11], &texts[at]] {
                board.update(&member, Mode::Replace, &score(first)?).map_err(|error| error.to_string())?;
            }
        }
        let mut wanted: Vec<String> = (0..11).map(|at: u8| at.to_string()).collect();
        if direction == Direction::Descending {
            wanted.reverse();
        }
        same!(names(&board.top(20).rows), wanted.join(" "), "the order, {direction:?}");
        for (rank, member) in (1..).zip(&wanted) {
            let at: usize = member.parse().map_err(|_| "a number")?;
            same!(board.get(member), Some(Standing { score: score(&texts[at])?, rank }), "member {member}");
        }
        let sum = board.update("9", Mode::Increment, &score(&huge)?).map_err(|error| error.to_string())?;
        same!(sum.score.to_string(), "2".to_owned() + &"0".repeat(999), "an exact sum");
        let back = board.update("9", Mode::Decrement, &sum.score).map_err(|error| error.to_string())?;
        same!(back.score, Score::ZERO, "an exact difference");
        same!(names(&board.range(5, 3).rows).split(' ').count(), 3, "a range over the zones");
    }
    Ok(())
}

fn a_bulk_is_applied_whole_or_not_at_all(make: Make<'_>) -> Verdict {
    let board = make(Options { ties: TieRule::First, ..Options::default() });
    let item = |member, score: i64| Update { member, mode: Mode::Increment, score: score.into() };
    set(&*board, "ann", 1)?;
    let long = "x".repeat(MAX_MEMBER_BYTES + 1);
    let refused = board.update_bulk(&[item("ann", 5), item("bob", 3), item(&long, 1), item("", 1)]);
    let cause = Refused::MemberTooLong { bytes: MAX_MEMBER_BYTES + 1 };
    same!(refused, Err(BulkRefused { item: 2, cause }), "a wrong item");
    same!(
        (board.count(), board.get("ann").map(|a| a.score)),
        (1, Some(1.into_score())),
        "nothing was applied"
    );
    // The same member three times, and enough items for several batches.
    let many: Vec<String> = (0..50).map(|number| format!("member {number}")).collect();
    let mut bulk = vec![item("ann", 5), item("bob", 3), item("ann", -10), item("ann", 7)];
    bulk.extend(many.iter().map(|member| item(member, 100)));
    let outcomes = board.update_bulk(&bulk).map_err(|refused| refused.to_string())?;
    let results: Vec<_> = outcomes.iter().take(4).map(|each| (each.score.to_string(), each.rank)).collect();
    same!(results, vec![text(6, 1), text(3, 2), text(-4, 2), text(3, 2)], "results");
    let sequences: Vec<u64> = outcomes.iter().map(|outcome| outcome.sequence).collect();
    same!(sequences, (2..56).collect::<Vec<_>>(), "the numbers of the changes");
    same!((outcomes.len(), board.count()), (54, 52), "all were applied");
    same!(board.update_bulk(&[]), Ok(vec![]), "an empty bulk");
    Ok(())
}

fn bad_names_and_long_metadata_are_refused(make: Make<'_>) -> Verdict {
    let board = make(Options::default());
    let refused = |member: &str| board.update(member, Mode::Replace, &Score::ZERO).err();
    same!(refused(""), Some(Refused::MemberEmpty), "no name");
    let bytes = MAX_MEMBER_BYTES + 1;
    same!(refused(&"x".repeat(bytes)), Some(Refused::MemberTooLong { bytes }), "a long name");
    same!(refused(&"x".repeat(MAX_MEMBER_BYTES)), None, "the longest name");
    set(&*board, "ann", 1)?;
    let bytes = MAX_METADATA_BYTES + 1;
    let long = "x".repeat(bytes);
    same!(board.set_metadata("ann", Some(&long)), Err(Refused::MetadataTooLong { bytes }), "long metadata");
    same!(board.set_metadata("bob", Some("x")), Ok(None), "metadata of no member");
    same!(board.set_metadata("ann", Some("blue")), Ok(Some(3)), "metadata");
    same!(board.row("ann").and_then(|row| row.metadata), Some("blue".into()), "metadata of a member");
    same!(board.top(1).rows[0].metadata, Some("blue".into()), "metadata in a listing");
    set(&*board, "ann", 2)?;
    same!(board.row("ann").and_then(|row| row.metadata), Some("blue".into()), "metadata after an update");
    same!(board.set_metadata("ann", None), Ok(Some(5)), "metadata taken off");
    same!(board.row("ann").and_then(|row| row.metadata), None, "no metadata");
    Ok(())
}

fn pages_cover_the_board_without_gaps(make: Make<'_>) -> Verdict {
    let board = make(Options::default());
    same!((board.top(5).rows.len(), board.range(0, 5).total), (0, 0), "an empty board");
    for number in 0..100 {
        set(&*board, &format!("m{number:02}"), number)?;
    }
    let (mut first, mut seen) = (Some(1), Vec::new());
    while let Some(rank) = first {
        let page = board.range(rank, 7);
        same!(page.total, 100, "the total");
        seen.extend(page.rows.iter().map(|row| (row.rank, row.member.to_string())));
        first = page.next_rank();
    }
    let wanted: Vec<_> = (1..=100_u64).map(|rank| (rank, format!("m{:02}", 100 - rank))).collect();
    same!(seen, wanted, "all pages");
    let mut back = board.range(1, usize::MAX).rows;
    back.reverse();
    same!(board.range_back(1, usize::MAX).rows, back, "from the last to the first");
    same!(board.range_back(4, 7).rows, back[3..10], "a page from the end");
    same!(board.range_back(98, 7).rows, back[97..], "the last page from the end");
    same!(board.range_back(101, 7).rows.len(), 0, "before the first");
    same!(board.range(0, 1).rows[0].rank, 1, "rank 0 counts as 1");
    same!(board.range(101, 5).rows.len(), 0, "beyond the last");
    same!(board.range(u64::MAX, usize::MAX).rows.len(), 0, "far beyond the last");
    same!(board.range(1, 0).rows.len(), 0, "an empty page");
    Ok(())
}

fn neighbours_surround_a_member(make: Make<'_>) -> Verdict {
    let board = make(Options::default());
    for (member, score) in [("a", 5), ("b", 4), ("c", 3), ("d", 2), ("e", 1)] {
        set(&*board, member, score)?;
    }
    for (member, each_side, wanted) in
        [("c", 1, "b c d"), ("a", 2, "a b c"), ("e", 1, "d e"), ("b", 0, "b"), ("c", usize::MAX, "a b c d e")]
    {
        let page = board.around(member, each_side).ok_or("no page")?;
        same!(names(&page.rows), wanted, "{each_side} around {member}");
    }
    same!(board.around("x", 3), None, "around no member");
    Ok(())
}

fn deleted_members_leave_nothing(make: Make<'_>) -> Verdict {
    let board = make(Options { ties: TieRule::First, ..Options::default() });
    for (member, score) in [("ann", 3), ("bob", 2), ("cid", 1)] {
        set(&*board, member, score)?;
        board.set_metadata(member, Some("old")).map_err(|refused| refused.to_string())?;
    }
    let deleted = board.delete("bob").ok_or("bob was there")?;
    same!((deleted.score, deleted.sequence), (2.into_score(), 7), "what was deleted");
    same!((board.delete("bob"), board.get("bob"), board.count()), (None, None, 2), "after it");
    same!(names(&board.top(5).rows), "ann cid", "the rest");
    set(&*board, "dan", 2)?;
    same!(
        board.row("dan").map(|row| (row.rank, row.metadata)),
        Some((2, None)),
        "a new member in the free place"
    );
    same!(apply(&*board, "bob", Mode::Increment, 1)?, text(1, 4), "a deleted member begins anew");
    Ok(())
}

fn a_reset_returns_the_season_and_empties_the_board(make: Make<'_>) -> Verdict {
    let board = make(Options { ties: TieRule::First, ..Options::default() });
    for (member, score) in [("ann", 1), ("bob", 2)] {
        set(&*board, member, score)?;
    }
    board.set_metadata("ann", Some("blue")).map_err(|refused| refused.to_string())?;
    let season = board.reset();
    let record = |member: &str, score: i64, tie, metadata: Option<&str>| Record {
        member: member.into(),
        score: score.into(),
        tie,
        metadata: metadata.map(Into::into),
    };
    let records = vec![record("bob", 2, 2, None), record("ann", 1, 1, Some("blue"))];
    same!(season, Snapshot { sequence: 4, records }, "the season");
    same!((board.count(), board.get("ann"), board.top(3).rows.len()), (0, None, 0), "the board after it");
    let outcome = board.update("ann", Mode::Increment, &5.into_score()).map_err(|e| e.to_string())?;
    same!((outcome.rank, outcome.sequence), (1, 5), "the count of changes goes on");
    same!(board.row("ann").and_then(|row| row.metadata), None, "metadata went with the season");
    Ok(())
}

fn a_snapshot_restores_ranks_among_equals(make: Make<'_>) -> Verdict {
    let (old, new) = (make(Options::default()), make(Options::default()));
    for number in 0..200 {
        set(&*old, &number.to_string(), number % 3)?;
    }
    set(&*new, "7", 1_000)?;
    let snapshot = old.snapshot();
    new.restore(&snapshot).map_err(|refused| refused.to_string())?;
    same!(new.snapshot(), snapshot, "the restored board");
    let outcome = new.update("7", Mode::Replace, &9.into_score()).map_err(|refused| refused.to_string())?;
    same!(outcome.sequence, 201, "the count of changes goes on");
    // A log replays changes one by one.
    let record = Record { member: "7".into(), score: outcome.score, tie: outcome.tie, metadata: None };
    old.restore(&Snapshot { sequence: outcome.sequence, records: vec![record] })
        .map_err(|e| e.to_string())?;
    same!(old.snapshot(), new.snapshot(), "the board that a log brought up to date");
    let mut wrong = snapshot.clone();
    wrong.records[5].member = "".into();
    let empty = make(Options::default());
    let cause = Refused::MemberEmpty;
    same!(empty.restore(&wrong), Err(BulkRefused { item: 5, cause }), "a wrong record");
    same!(empty.count(), 0, "members after a refused restore");
    Ok(())
}

fn taken_ties_are_restored_side_by_side(make: Make<'_>) -> Verdict {
    let board = make(Options::default());
    let record = |number: u64| Record {
        member: format!("m{number}").into(),
        score: if number.is_multiple_of(2) { 5_i128.into() } else { (5 + i128::from(i64::MAX)).into() },
        tie: u64::MAX,
        metadata: None,
    };
    let records: Vec<Record> = (0..300).map(record).collect();
    board.restore(&Snapshot { sequence: 300, records }).map_err(|refused| refused.to_string())?;
    let mut ranks: Vec<u64> = (0..300)
        .filter_map(|number| board.get(&format!("m{number}")))
        .map(|standing| standing.rank)
        .collect();
    ranks.sort_unstable();
    same!(ranks, (1..=300).collect::<Vec<_>>(), "the ranks of equal keys");
    for number in 0..300 {
        board.delete(&format!("m{number}")).ok_or("a member")?;
    }
    same!(board.count(), 0, "the count");
    Ok(())
}
