//! The totals of a run as OpenMetrics text, for programs that scrape them.
//!
//! Source: OpenMetrics 1.0.0, <https://prometheus.io/docs/specs/om/open_metrics_spec/>.
//! Not here: masks, connections (`stepladder`, `viewer`).

use std::fmt::Write as _;

use super::sums::{Family, Kind, Point, Value};

/// The text, ended by `# EOF`. Label values are escaped.
pub fn open_metrics(families: &[Family]) -> String {
    let mut text = String::new();
    for family in families {
        let Family { name, kind, unit, help, points } = family;
        let _ = writeln!(text, "# TYPE {name} {}", word(*kind));
        if !unit.is_empty() {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(text, "# HELP {name} {}", escaped(help));
        points.iter().for_each(|point| lines(&mut text, family, point));
    }
    text.push_str("# EOF\n");
    text
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Info => "info",
        Kind::Gauge => "gauge",
        Kind::Counter => "counter",
        Kind::StateSet => "stateset",
        Kind::Histogram => "histogram",
    }
}

fn lines(text: &mut String, family: &Family, Point { labels, value }: &Point) {
    let suffix = match family.kind {
        Kind::Info => "_info",
        Kind::Counter => "_total",
        Kind::Gauge | Kind::StateSet | Kind::Histogram => "",
    };
    let labels: Vec<(&str, &str)> = labels.iter().map(|(label, text)| (*label, text.as_str())).collect();
    let mut line = |suffix: &str, labels: &[(&str, &str)], value: &Value| {
        sample(text, &format!("{}{suffix}", family.name), labels, value);
    };
    let Value::Durations { up_to, count, sum_s } = value else { return line(suffix, &labels, value) };
    let mut bucket = |bound: &str, below: u64| {
        line("_bucket", &[&labels[..], &[("le", bound)]].concat(), &Value::Count(below));
    };
    up_to.iter().for_each(|(bound_s, below)| bucket(&format!("{bound_s:?}"), *below));
    bucket("+Inf", *count);
    line("_count", &labels, &Value::Count(*count));
    line("_sum", &labels, &Value::Number(*sum_s));
}

fn sample(text: &mut String, name: &str, labels: &[(&str, &str)], value: &Value) {
    text.push_str(name);
    for (at, (label, value)) in labels.iter().enumerate() {
        let opening = if at == 0 { '{' } else { ',' };
        let _ = write!(text, "{opening}{label}=\"{}\"", escaped(value));
    }
    if !labels.is_empty() {
        text.push('}');
    }
    let _ = match value {
        Value::Count(count) => writeln!(text, " {count}"),
        Value::Number(value) if value.fract() == 0.0 && value.abs() < 1e15 => writeln!(text, " {value:.0}"),
        Value::Number(value) if value.is_finite() => writeln!(text, " {value:?}"),
        // What is no number was not measured.
        Value::Number(_) | Value::Durations { .. } => writeln!(text, " NaN"),
    };
}

/// As label values and help texts are escaped.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
