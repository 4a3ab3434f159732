//! The ways in which an input is split into reads, each the same for the same input.

/// Whole; byte by byte; and twice in a few pieces. Under libFuzzer whole and one of the others, which differs from input to
/// input: it searches twice as many inputs by that.
fn splits(input: &[u8]) -> impl Iterator<Item = Vec<&[u8]>> {
    let seed = input
        .iter()
        .fold(input.len() as u64, |sum, byte| sum.wrapping_mul(0x100_0000_01b3) ^ u64::from(*byte));
    let mut rng = fastrand::Rng::with_seed(seed);
    let other = rng.usize(1..4);
    let ways = (0..4).filter(move |way| !cfg!(feature = "coverage") || [0, other].contains(way));
    ways.map(move |way| match way {
        0 => vec![input],
        1 => input.chunks(1).collect(),
        _ => {
            let mut edges: Vec<usize> = (0..3).map(|_| rng.usize(..=input.len())).collect();
            edges.extend([0, input.len()]);
            edges.sort_unstable();
            edges.dedup();
            edges.windows(2).map(|edge| &input[edge[0]..edge[1]]).collect()
        }
    })
}

/// Asserts that `run` says the same of all ways.
pub(crate) fn same_however_split<T: PartialEq + std::fmt::Debug>(
    input: &[u8],
    mut run: impl FnMut(&[&[u8]]) -> T,
) {
    let mut first = None;
    for pieces in splits(input) {
        let told = run(&pieces);
        match &first {
            None => first = Some(told),
            Some(first) => {
                let lengths: Vec<usize> = pieces.iter().map(|piece| piece.len()).collect();
                assert_eq!(&told, first, "in reads of {lengths:?} bytes");
            }
        }
    }
}
