//! What of a room's lines goes to the other nodes, as messages of bounded length. Pure.

use std::sync::Arc;

use crate::batch::{Batch, ELSEWHERE};

/// Lines that go out as one message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Portion {
    pub(super) bytes: Vec<u8>,
    pub(super) count: u32,
    /// Lines before these that are longer than a message may be.
    pub(super) too_long: u64,
}

/// The lines of these batches that were said here, in portions of at most `bytes_max` bytes.
pub(super) fn portions(batches: &[Arc<Batch>], bytes_max: usize) -> Vec<Portion> {
    let mut portions = Vec::new();
    let mut portion = Portion::default();
    for batch in batches {
        let mut from = 0;
        while from < batch.line_count() {
            let run = batch.run_of(from, |sender| sender != ELSEWHERE);
            let (to, is_ours) = (run.end, run.is_so);
            let lines = batch.bytes_of(from, to);
            if is_ours && portion.bytes.len() + lines.len() <= bytes_max {
                portion.bytes.extend_from_slice(lines);
                portion.count += to - from;
            } else if is_ours {
                for line in (from..to).map(|i| batch.bytes_of(i, i + 1)) {
                    if portion.bytes.len() + line.len() > bytes_max && portion != Portion::default() {
                        portions.push(std::mem::take(&mut portion));
                    }
                    if line.len() > bytes_max {
                        portion.too_long += 1;
                    } else {
                        portion.bytes.extend_from_slice(line);
                        portion.count += 1;
                    }
                }
            }
            from = to;
        }
    }
    if portion != Portion::default() {
        portions.push(portion);
    }
    portions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::tests::batch;

    #[test]
    fn lines_said_here_go_out_once_and_in_order_and_those_of_others_do_not() {
        let one = Arc::new(batch(0, &[(1, "a"), (ELSEWHERE, "x"), (2, "b"), (2, "c")]));
        let two = Arc::new(batch(4, &[(ELSEWHERE, "y"), (1, "d")]));
        let both = [one, two];
        let whole = portions(&both, 100);
        assert_eq!(whole, [Portion { bytes: b"a\nb\nc\nd\n".to_vec(), count: 4, too_long: 0 }]);
        let pairs = portions(&both, 4);
        assert_eq!(
            pairs.iter().map(|one| (&one.bytes[..], one.count)).collect::<Vec<_>>(),
            [(&b"a\nb\n"[..], 2), (b"c\nd\n", 2)]
        );
        assert_eq!(portions(&[Arc::new(batch(0, &[(ELSEWHERE, "x")]))], 100), []);
    }

    #[test]
    fn a_line_that_no_message_holds_is_counted_where_it_was() {
        let lines = [Arc::new(batch(0, &[(1, "a"), (1, "too long"), (1, "b")]))];
        let found: Vec<(Vec<u8>, u32, u64)> =
            portions(&lines, 4).into_iter().map(|one| (one.bytes, one.count, one.too_long)).collect();
        assert_eq!(found, [(b"a\n".to_vec(), 1, 0), (b"b\n".to_vec(), 1, 1)]);
    }
}
