//! Inputs made from others: the same ones for the same seed.

use fastrand::Rng;

/// Numbers at which lengths and counts tend to break.
const NUMBERS: [u64; 16] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 63,
    u64::MAX,
];
const CHANGES_MAX: usize = 6;
const LONGEST_REPEAT: usize = 64;

/// Makes inputs from `inputs` and `words`.
pub(crate) struct Mutator<'a> {
    rng: Rng,
    inputs: &'a [Vec<u8>],
    words: &'a [&'a str],
    bytes_max: usize,
}

impl<'a> Mutator<'a> {
    pub(crate) fn new(seed: u64, inputs: &'a [Vec<u8>], words: &'a [&'a str], bytes_max: usize) -> Self {
        Mutator { rng: Rng::with_seed(seed), inputs, words, bytes_max }
    }

    /// The next input, in place of what `out` holds.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>) {
        out.clear();
        if let Some(base) = self.rng.choice(self.inputs) {
            out.extend_from_slice(base);
        }
        for _ in 0..self.rng.usize(1..=CHANGES_MAX) {
            self.change(out);
        }
        out.truncate(self.bytes_max);
    }

    fn change(&mut self, out: &mut Vec<u8>) {
        let rng = &mut self.rng;
        let at = rng.usize(..=out.len());
        match rng.u8(..10) {
            0..3 => {
                if let Some(byte) = out.get_mut(at) {
                    *byte = match rng.u8(..4) {
                        0 => byte.wrapping_add(1),
                        1 => byte.wrapping_sub(1),
                        2 => *byte ^ 1 << rng.u8(..8),
                        _ => rng.u8(..),
                    };
                }
            }
            3 => {
                let count = rng.usize(1..=8.min(out.len() - at + 1)).min(out.len() - at);
                out.drain(at..at + count);
            }
            4 => {
                let bytes: Vec<u8> = (0..rng.usize(1..=8)).map(|_| rng.u8(..)).collect();
                out.splice(at..at, bytes);
            }
            5 => {
                // A number in one of the widths and orders that formats have, over what stands there.
                let number = NUMBERS[rng.usize(..NUMBERS.len())];
                let width = 1 << rng.u8(..4);
                let bytes = if rng.bool() {
                    number.to_be_bytes()[8 - width..].to_vec()
                } else {
                    number.to_le_bytes()[..width].to_vec()
                };
                let end = (at + width).min(out.len());
                out.splice(at..end, bytes);
            }
            6 => {
                // Digits, for formats that are text.
                let number = NUMBERS[rng.usize(..NUMBERS.len())];
                let text = if rng.bool() { number.to_string() } else { (number as i64).to_string() };
                let end =
                    out[at..].iter().position(|byte| !byte.is_ascii_digit()).map_or(out.len(), |to| at + to);
                out.splice(at..end, text.into_bytes());
            }
            7 => {
                if let Some(word) = rng.choice(self.words) {
                    out.splice(at..at, word.bytes());
                }
            }
            8 => {
                // A part once more, or many times.
                let end = rng.usize(at..=out.len()).min(at + LONGEST_REPEAT);
                let times = if rng.u8(..8) == 0 { rng.usize(1..64) } else { 1 };
                let part = out[at..end].repeat(times);
                out.splice(at..at, part);
            }
            _ => {
                // The end of another input.
                if let Some(other) = rng.choice(self.inputs) {
                    out.truncate(at);
                    out.extend_from_slice(&other[rng.usize(..=other.len())..]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(seed: u64) -> Vec<Vec<u8>> {
        let inputs = [b"+OK\r\n".to_vec(), b"$3\r\nabc\r\n".to_vec(), vec![]];
        let mut mutator = Mutator::new(seed, &inputs, &["word"], 40);
        (0..2000)
            .map(|_| {
                let mut out = Vec::new();
                mutator.next(&mut out);
                out
            })
            .collect()
    }

    #[test]
    fn a_seed_makes_the_same_inputs_and_another_seed_others() {
        assert_eq!(made(7), made(7));
        assert_ne!(made(7), made(8));
    }

    #[test]
    fn inputs_differ_and_keep_to_the_longest() {
        let all = made(1);
        assert!(all.iter().all(|input| input.len() <= 40));
        let different: std::collections::BTreeSet<&Vec<u8>> = all.iter().collect();
        assert!(different.len() > 1500, "{}", different.len());
        assert!(all.iter().any(|input| input.windows(4).any(|part| part == b"word")));
    }
}
