//! `compare` on the terminal: what differs between two stored runs besides their figures.

use ladder::Difference;
use serde_json::Value;

use crate::say;

/// One line: what it is, as it was and as it is.
pub fn as_text(difference: &Difference) -> String {
    let shown = |value: &Value| match value {
        Value::Null => "not stated".to_owned(),
        Value::String(text) if text.is_empty() => "not stated".to_owned(),
        Value::String(text) => say::in_line(text),
        other => other.to_string(),
    };
    format!("{}: {} → {}", difference.what, shown(&difference.old), shown(&difference.new))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_one_run_does_not_state_is_said() {
        let check = |old: Value, new: Value, expected: &str| {
            assert_eq!(as_text(&Difference { what: "hold".to_owned(), old, new }), expected);
        };
        check(json!(5), json!(6), "hold: 5 → 6");
        check(json!(true), Value::Null, "hold: true → not stated");
        check(json!(""), json!("x"), "hold: not stated → x");
    }
}
