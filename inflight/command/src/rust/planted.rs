//! A client with a known fault, for testing sweeps and profiles.

use std::hint::black_box;
use std::time::Duration;

use inflight::{Operations, Outcome, Token, Workload};

/// Faults that `bench runner --fault` plants into the target `null:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// values arrive in pieces, and with each piece everything that came before is copied again
    CopiesAgain,
}

/// What arrives at once, bytes.
const PIECE: usize = 1024;

/// Its time grows with the square of the value's length.
pub struct CopiesAgain<'w> {
    workload: &'w Workload,
    open: Vec<(Token, u64)>,
}

impl<'w> CopiesAgain<'w> {
    pub fn new(workload: &'w Workload) -> CopiesAgain<'w> {
        CopiesAgain { workload, open: Vec::new() }
    }
}

impl Operations for CopiesAgain<'_> {
    fn start(&mut self, token: Token, i: u64) {
        self.open.push((token, i));
    }

    fn poll(&mut self, _wait: Duration, mut ended: impl FnMut(Token, Outcome)) -> Result<(), String> {
        for (token, i) in self.open.drain(..) {
            let key = self.workload.key(i);
            let received = receive_in_pieces(self.workload.value(key));
            ended(token, self.workload.check(key, Some(&received)));
        }
        Ok(())
    }
}

fn receive_in_pieces(value: &[u8]) -> Vec<u8> {
    value.chunks(PIECE).fold(Vec::new(), |before, piece| copy_everything_again(&before, piece))
}

#[inline(never)]
fn copy_everything_again(before: &[u8], piece: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(before.len() + piece.len());
    all.extend_from_slice(black_box(before));
    all.extend_from_slice(piece);
    black_box(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_received_in_pieces_is_what_was_sent() {
        for length in [1, PIECE - 1, PIECE, PIECE + 1, 10 * PIECE + 7] {
            let value: Vec<u8> = (0..length).map(|at| at as u8).collect();
            assert_eq!(receive_in_pieces(&value), value);
        }
    }
}
