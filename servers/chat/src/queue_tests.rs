//! Queues against a simple model: what the client reads must agree with the accounts.

use std::io::IoSlice;
use std::sync::Arc;

use proptest::prelude::*;

use super::batch::Batch;
use super::batch::tests::batch;
use super::options::OnFull;
use super::queue::{Account, PIECE_BYTES, Queue};

/// Lines with these numbers as their text, each of a different length.
fn lines(numbers: std::ops::Range<u64>) -> Arc<Batch> {
    let texts: Vec<String> =
        numbers.clone().map(|number| format!("{number}{}", ".".repeat(number as usize % 7))).collect();
    let said: Vec<(u32, &str)> = texts.iter().map(|text| (1, text.as_str())).collect();
    Arc::new(batch(numbers.start, &said))
}

/// The system takes up to so many bytes at most; they are added to `read`.
fn take(queue: &mut Queue, mut bytes: usize, read: &mut Vec<u8>) {
    while bytes > 0 && !queue.is_empty() {
        let mut slices = [IoSlice::new(&[]); 8];
        let count = queue.gather(&mut slices);
        let mut sent = 0;
        for slice in &slices[..count] {
            let count = slice.len().min(bytes - sent);
            read.extend(&slice[..count]);
            sent += count;
        }
        queue.advance(sent);
        bytes -= sent;
    }
}

fn text(read: &[u8]) -> &str {
    std::str::from_utf8(read).unwrap()
}

#[test]
fn the_oldest_lines_go_first_but_for_the_one_that_has_begun() {
    let mut queue = Queue::default();
    let mut read = Vec::new();
    queue.owe(&lines(0..3), 0, 3);
    take(&mut queue, 3, &mut read);
    assert_eq!(text(&read), "0\n1");
    queue.owe(&lines(3..10), 0, 7);
    assert_eq!(queue.trim(4, usize::MAX, OnFull::DropOldest), Some(5));
    queue.owe(&lines(10..12), 0, 2);
    assert_eq!(queue.trim(4, usize::MAX, OnFull::DropOldest), Some(2));
    take(&mut queue, 1000, &mut read);
    assert_eq!(text(&read), "0\n1.\n* missed 7 lines\n9..\n10...\n11....\n");
    assert_eq!(queue.account(), Account { owed: 12, delivered: 5, dropped: 7 });
}

#[test]
fn the_newest_lines_go_when_the_policy_says_so() {
    let mut queue = Queue::default();
    let mut read = Vec::new();
    queue.owe(&lines(0..3), 0, 3);
    queue.owe(&lines(3..6), 0, 3);
    assert_eq!(queue.trim(4, usize::MAX, OnFull::DropNewest), Some(2));
    queue.owe(&lines(6..7), 0, 1);
    assert_eq!(queue.trim(4, usize::MAX, OnFull::DropNewest), Some(1));
    take(&mut queue, 2, &mut read);
    queue.owe(&lines(7..9), 0, 2);
    assert_eq!(queue.trim(4, usize::MAX, OnFull::DropNewest), Some(1));
    take(&mut queue, 1000, &mut read);
    assert_eq!(text(&read), "0\n1.\n2..\n3...\n* missed 3 lines\n7\n* missed 1 line\n");
    assert_eq!(queue.account(), Account { owed: 9, delivered: 5, dropped: 4 });
}

#[test]
fn disconnecting_drops_nothing_and_says_so() {
    let mut queue = Queue::default();
    queue.owe(&lines(0..5), 0, 5);
    assert_eq!(queue.trim(5, usize::MAX, OnFull::Disconnect), Some(0));
    assert_eq!(queue.trim(4, usize::MAX, OnFull::Disconnect), None);
    assert_eq!((queue.waiting(), queue.account().dropped), (5, 0));
}

#[test]
fn answers_tell_the_books_of_their_place() {
    let mut queue = Queue::default();
    let mut read = Vec::new();
    queue.passed(10);
    queue.owe(&lines(0..2), 0, 2);
    queue.ask_books();
    queue.owe(&lines(2..5), 0, 3);
    queue.tell(b"* hello\n");
    queue.say_bye();
    queue.lose_one();
    take(&mut queue, 1000, &mut read);
    assert_eq!(
        text(&read),
        "0\n1.\n* books owed 16 delivered 13 dropped 0 waiting 3\n2..\n3...\n4....\n* hello\n\
         * bye owed 16 delivered 16 dropped 0 waiting 0\n"
    );
    assert_eq!(queue.text_bytes(), 0);
}

/// Lines of 100 bytes each, one after the other.
fn hundreds(count: usize) -> Arc<Batch> {
    let text = "x".repeat(99);
    Arc::new(batch(0, &vec![(1, text.as_str()); count]))
}

#[test]
fn a_share_in_bytes_drops_as_the_policy_says_and_spares_the_begun_line() {
    let share = 500 + PIECE_BYTES;
    for (on_full, dropped) in [(OnFull::DropOldest, 15), (OnFull::DropNewest, 15)] {
        let mut queue = Queue::default();
        queue.owe(&hundreds(20), 0, 20);
        assert_eq!(queue.trim(1000, share, on_full), Some(dropped), "{on_full:?}");
        assert!(queue.held_bytes() <= share + PIECE_BYTES, "the gap is noted");
        assert_eq!(queue.waiting(), 5);
    }
    let mut queue = Queue::default();
    let mut read = Vec::new();
    queue.owe(&hundreds(20), 0, 20);
    take(&mut queue, 150, &mut read);
    assert_eq!(queue.trim(1000, share, OnFull::Disconnect), None);
    queue.trim(1000, 0, OnFull::DropOldest);
    assert_eq!((queue.waiting(), queue.account().dropped), (1, 18));
    take(&mut queue, 1000, &mut read);
    let text = text(&read);
    assert_eq!(text.lines().map(str::len).collect::<Vec<_>>(), [99, 99, "* missed 18 lines".len()]);
}

#[test]
fn few_lines_of_a_large_batch_do_not_keep_it() {
    for on_full in [OnFull::DropOldest, OnFull::DropNewest] {
        let large = hundreds(100);
        let mut queue = Queue::default();
        queue.owe(&large, 0, 100);
        queue.trim(10, usize::MAX, on_full);
        assert_eq!(Arc::strong_count(&large), 1, "{on_full:?}");
        let mut read = Vec::new();
        take(&mut queue, usize::MAX, &mut read);
        assert_eq!(read.len(), 1000 + "* missed 90 lines\n".len());
    }
    let large = hundreds(100);
    let (mut queue, mut read) = (Queue::default(), Vec::new());
    queue.owe(&large, 0, 100);
    take(&mut queue, 9_950, &mut read);
    queue.let_go_of_what_is_read();
    assert_eq!(Arc::strong_count(&large), 1);
    take(&mut queue, usize::MAX, &mut read);
    assert_eq!((read.len(), queue.account().delivered), (10_000, 100));
}

#[derive(Clone, Debug)]
enum Step {
    Owe(u64),
    Take(usize),
    Tell,
    Ask,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (1u64..12).prop_map(Step::Owe),
        4 => (0usize..60).prop_map(Step::Take),
        1 => Just(Step::Tell),
        1 => Just(Step::Ask),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #[test]
    fn what_is_read_is_what_the_books_say(
        steps in steps(),
        cap in 1u64..10,
        share in prop_oneof![Just(usize::MAX), 0usize..300],
        on_full in prop_oneof![Just(OnFull::DropOldest), Just(OnFull::DropNewest)],
    ) {
        let mut queue = Queue::default();
        let (mut read, mut said) = (Vec::new(), 0);
        for step in steps {
            match step {
                Step::Owe(count) => {
                    queue.owe(&lines(said..said + count), 0, count as u32);
                    said += count;
                    queue.trim(cap, share, on_full);
                    prop_assert!(queue.waiting() <= cap);
                }
                Step::Take(bytes) => take(&mut queue, bytes, &mut read),
                Step::Tell => queue.tell(b"* told\n"),
                Step::Ask => queue.ask_books(),
            }
            let Account { owed, delivered, dropped } = queue.account();
            prop_assert_eq!(owed, said);
            prop_assert_eq!(owed, delivered + dropped + queue.waiting());
        }
        take(&mut queue, usize::MAX, &mut read);
        prop_assert_eq!((queue.waiting(), queue.text_bytes()), (0, 0));
        // Every line is complete, in order, and present once; every gap is reported where it is.
        let (mut next, mut delivered, mut dropped) = (0, 0, 0);
        for line in text(&read).lines() {
            if let Some(missed) = line.strip_prefix("* missed ") {
                let count: u64 = missed.split(' ').next().unwrap().parse().unwrap();
                next += count;
                dropped += count;
            } else if let Some(books) = line.strip_prefix("* books owed ") {
                let figures: Vec<u64> = books.split(' ').filter_map(|word| word.parse().ok()).collect();
                prop_assert_eq!(figures[1], delivered, "delivered, at the place of the answer");
                prop_assert_eq!(figures[0], figures[1] + figures[2] + figures[3]);
            } else if line != "* told" {
                let number: u64 = line.trim_end_matches('.').parse().unwrap();
                prop_assert_eq!(number, next);
                prop_assert_eq!(line.len(), next.to_string().len() + next as usize % 7);
                next += 1;
                delivered += 1;
            }
        }
        prop_assert_eq!(next, said);
        let account = queue.account();
        prop_assert_eq!((account.delivered, account.dropped), (delivered, dropped));
    }
}
