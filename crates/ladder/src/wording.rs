//! How figures are formatted for people: three significant digits, a fitting unit, `—` for what may not be stated.

use std::collections::BTreeMap;

use crate::figures::UnitKind;

impl UnitKind {
    /// A value of this kind as people read it; infinite ones read `never`.
    pub fn show(self, value: f64) -> String {
        if value.is_infinite() {
            return "never".to_owned();
        }
        match self {
            UnitKind::Time => show_ns(value),
            UnitKind::Share => show_share(value),
            UnitKind::Count => show_number(value),
            UnitKind::Rate => format!("{}/s", show_number(value)),
            UnitKind::Bytes => show_bytes(value),
            UnitKind::Number => show_number(value),
            UnitKind::Ok => if value > 0.0 { "ok" } else { "wrong" }.to_owned(),
        }
    }
}

/// `17.3 ms`
pub fn show_ns(ns: f64) -> String {
    match ns {
        ns if ns < 999.5 => format!("{ns:.0} ns"),
        ns if ns < 999_500.0 => format!("{} µs", three_digits(ns / 1e3)),
        ns if ns < 999_500_000.0 => format!("{} ms", three_digits(ns / 1e6)),
        ns => format!("{} s", three_digits(ns / 1e9)),
    }
}

/// `31.2 %`
pub fn show_share(share: f64) -> String {
    let percent = share * 100.0;
    // A nonzero share must not be shown as zero, nor an incomplete one as complete.
    if percent > 0.0 && percent < 0.01 {
        return "< 0.01 %".to_owned();
    }
    if percent < 100.0 && percent > 99.99 {
        return "> 99.99 %".to_owned();
    }
    if (99.95..100.0).contains(&percent) {
        return format!("{percent:.2} %");
    }
    format!("{} %", three_digits(percent))
}

/// `1234` or `0.85`
pub fn show_number(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return format!("{number:.0}");
    }
    three_digits(number)
}

/// `object · foreground · normal · moderate`, `bulk 16 · reconnect after 10`: a cell of a sweep, the axes that tell most first
pub fn show_cell(cell: &BTreeMap<String, String>) -> String {
    const FIRST: [&str; 4] = ["service", "view", "priority", "locality"];
    let known = FIRST.iter().filter_map(|axis| cell.get(*axis));
    let others = cell.iter().filter(|(axis, _)| !FIRST.contains(&axis.as_str()));
    // A bare number means nothing to a reader.
    let named = |(axis, value): (&String, &String)| match value.parse::<f64>() {
        Ok(_) => format!("{} {value}", axis.replace('_', " ")),
        Err(_) => value.clone(),
    };
    known.cloned().chain(others.map(named)).collect::<Vec<_>>().join(" · ")
}

/// `84000`, `40.4 M` or `1.23 G`: a count, with three digits from a million on
pub fn show_many(count: u64) -> String {
    match count {
        0..999_500 => count.to_string(),
        999_500..999_500_000 => format!("{} M", three_digits(count as f64 / 1e6)),
        _ => format!("{} G", three_digits(count as f64 / 1e9)),
    }
}

/// `213 MB`
pub fn show_bytes(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 999.5 => format!("{bytes:.0} B"),
        bytes if bytes < 999_500.0 => format!("{} kB", three_digits(bytes / 1e3)),
        bytes if bytes < 999_500_000.0 => format!("{} MB", three_digits(bytes / 1e6)),
        bytes => format!("{} GB", three_digits(bytes / 1e9)),
    }
}

fn three_digits(number: f64) -> String {
    let size = number.abs();
    let text = if size < 9.995 {
        format!("{number:.2}")
    } else if size < 99.95 {
        format!("{number:.1}")
    } else {
        format!("{number:.0}")
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_people_write_them() {
        for (shown, text) in [
            (show_ns(412.0), "412 ns"),
            (show_ns(61_340_000.0), "61.3 ms"),
            (show_ns(999_900_000.0), "1 s"),
            (show_ns(999_999.0), "1 ms"),
            (show_share(0.312), "31.2 %"),
            (show_share(0.0), "0 %"),
            (show_share(0.000001), "< 0.01 %"),
            (show_share(0.9999999), "> 99.99 %"),
            (show_share(0.9997), "99.97 %"),
            (show_share(1.0), "100 %"),
            (show_number(2000.0), "2000"),
            (show_number(1.937), "1.94"),
            (show_bytes(213_400_000.0), "213 MB"),
            (show_many(999_499), "999499"),
            (show_many(999_500), "1 M"),
            (show_many(40_412_345), "40.4 M"),
            (show_many(1_234_567_890), "1.23 G"),
            (UnitKind::Time.show(f64::INFINITY), "never"),
        ] {
            assert_eq!(shown, text);
        }
    }
}
