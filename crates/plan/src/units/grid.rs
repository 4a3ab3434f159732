//! Values of a data grid: what operations do, how long values are, which keys there are.

use super::{UnitError, http, whole_within};
use crate::vocabulary;
use crate::workloads::{GridKeys, GridOp};

/// The longest value, bytes.
pub const VALUE_BYTES_MAX: u64 = 16 << 20;
/// Keys are kept in memory, with their encoded form.
const KEYS_MAX: u64 = 1_000_000;
const SHARE_MAX: u64 = 1_000_000;

const OPS: [&str; 3] = ["get", "set", "mix"];
const PATTERNS: [&str; 3] = ["one", "uniform", "zipf"];

/// `get`, `set`, `mix`, or `9:1` for nine gets to a set.
pub fn op(text: &str) -> Result<GridOp, UnitError> {
    let text = text.trim();
    if text.contains(':') {
        let (gets, sets) = shares(text)?;
        return Ok(GridOp::Shares { gets, sets });
    }
    match text {
        "get" => Ok(GridOp::Get),
        "set" => Ok(GridOp::Set),
        "mix" => Ok(GridOp::Mix),
        "" => Err(UnitError::Empty),
        other => Err(UnitError::UnknownWord {
            text: other.to_owned(),
            known: "get, set, mix, GETS:SETS",
            nearest: vocabulary::nearest(other, OPS),
        }),
    }
}

/// `9:1`: nine gets to a set.
pub fn shares(text: &str) -> Result<(u32, u32), UnitError> {
    let text = text.trim();
    let Some((gets, sets)) = text.split_once(':') else {
        return Err(if text.is_empty() {
            UnitError::Empty
        } else {
            UnitError::UnknownWord { text: text.to_owned(), known: "GETS:SETS, such as 9:1", nearest: None }
        });
    };
    let share = |text: &str| whole_within(text.trim(), 1, SHARE_MAX);
    // At most a million each.
    Ok((share(gets)? as u32, share(sets)? as u32))
}

/// `1024`, `1KiB`
pub fn value_bytes(text: &str) -> Result<usize, UnitError> {
    match http::bytes(text)? {
        // It fits, since a plan is made on machines of 64 bits.
        bytes @ 1..=VALUE_BYTES_MAX => Ok(bytes as usize),
        _ => Err(UnitError::OutOfRange {
            text: text.trim().to_owned(),
            least: "1".to_owned(),
            most: "16MiB".to_owned(),
        }),
    }
}

/// `one`, `uniform:1000`, `zipf:1000`
pub fn keys(text: &str) -> Result<GridKeys, UnitError> {
    let text = text.trim();
    let (pattern, count) =
        text.split_once(':').map_or((text, None), |(pattern, count)| (pattern, Some(count)));
    let count = |usual: &str| whole_within(count.unwrap_or(usual).trim(), 1, KEYS_MAX);
    match pattern.trim() {
        "one" if text == "one" => Ok(GridKeys::One),
        "uniform" => Ok(GridKeys::Uniform(count("")?)),
        "zipf" => Ok(GridKeys::Zipf(count("")?)),
        "" => Err(UnitError::Empty),
        other => Err(UnitError::UnknownWord {
            text: text.to_owned(),
            known: "one, uniform:N, zipf:N",
            nearest: vocabulary::nearest(other, PATTERNS).filter(|near| *near != text),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_and_keys_are_read_as_they_are_written() {
        assert_eq!(op(" mix "), Ok(GridOp::Mix));
        assert_eq!(op("9:1"), Ok(GridOp::Shares { gets: 9, sets: 1 }));
        assert_eq!(keys("one"), Ok(GridKeys::One));
        assert_eq!(keys("uniform:1000"), Ok(GridKeys::Uniform(1000)));
        assert_eq!(keys("zipf: 5"), Ok(GridKeys::Zipf(5)));
        assert_eq!(value_bytes("100KiB"), Ok(102_400));
    }

    #[test]
    fn what_makes_no_operation_is_refused() {
        let check = |wrong: String, expected: &str| assert_eq!(wrong, expected);
        let of_op = |text| op(text).unwrap_err().to_string();
        check(of_op("put"), "\"put\" is unknown; known: get, set, mix, GETS:SETS");
        check(of_op("9:0"), "must be between 1 and 1000000, got 0");
        check(of_op(""), "nothing is written");
        check(shares("9").unwrap_err().to_string(), "\"9\" is unknown; known: GETS:SETS, such as 9:1");
        let of_keys = |text| keys(text).unwrap_err().to_string();
        check(of_keys("uniform"), "nothing is written");
        check(of_keys("one:3"), "\"one:3\" is unknown; known: one, uniform:N, zipf:N");
        check(of_keys("zipf:0"), "must be between 1 and 1000000, got 0");
        check(value_bytes("17MiB").unwrap_err().to_string(), "must be between 1 and 16MiB, got 17MiB");
    }
}
