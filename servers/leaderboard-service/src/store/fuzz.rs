//! For `crate::fuzz`.

use super::resp::{Broken, Reply, Scan, read};

/// The replies of a store that come in these pieces, and whether they end in what is none.
pub fn store_replies(pieces: &[&[u8]]) -> (Vec<String>, bool) {
    let mut input = Vec::new();
    let mut scan = Scan::default();
    let mut replies = Vec::new();
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            match scan.whole(&input) {
                Ok(None) => break,
                Err(Broken) => return (replies, true),
                Ok(Some(length)) => {
                    replies.push(match read(&input[..length]) {
                        Reply::One(scalar) => format!("{scalar:?}"),
                        Reply::List(items) => format!("{:?}", items.collect::<Vec<_>>()),
                    });
                    input.drain(..length);
                }
            }
        }
    }
    (replies, false)
}
