//! Flame graphs: one SVG each, without a script and without anything from elsewhere.

use std::collections::BTreeMap;

use anyhow::Context as _;
use inferno::flamegraph::{self, Options};
use inflight_analysis::Stacks;

/// Draws folded lines, `STACK WEIGHT` or `STACK BEFORE AFTER`.
pub fn svg(mut options: Options<'_>, lines: &[String]) -> anyhow::Result<Vec<u8>> {
    options.no_javascript = true;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)
        .context("the flame graph cannot be drawn")?;
    Ok(without_script(&String::from_utf8_lossy(&svg)).into_bytes())
}

/// inferno leaves a frame of its script, and the call of it, where it was asked for none.
fn without_script(svg: &str) -> String {
    let mut clean = String::with_capacity(svg.len());
    let mut rest = svg;
    while let Some((before, script)) = rest.split_once("<script") {
        clean += before;
        rest = script.split_once("</script>").map_or("", |(_, behind)| behind);
    }
    (clean + rest).replace(r#" onload="init(evt)""#, "")
}

/// The difference of two profiles, before and after; each with what one of its samples stands for, ns per operation.
pub(super) fn difference(title: &str, both: [(&Stacks, f64); 2]) -> anyhow::Result<Vec<u8>> {
    let mut weights: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    for (at, (stacks, ns)) in both.into_iter().enumerate() {
        for (frames, samples) in stacks.each() {
            let names: Vec<&str> = frames.iter().map(|(_, name)| name.as_str()).collect();
            weights.entry(names.join(";")).or_default()[at] += samples as f64 * ns;
        }
    }
    let lines: Vec<String> =
        weights.iter().map(|(stack, [before, after])| format!("{stack} {before:.0} {after:.0}")).collect();
    let mut options = Options::default();
    options.title = title.to_owned();
    options.subtitle =
        Some("width: the second load; red: more per operation than at the first, blue: less".to_owned());
    options.count_name = "ns per operation".to_owned();
    svg(options, &lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_one_file_without_script_in_which_names_are_text() {
        let stacks = |folded: &str| Stacks::read(folded).unwrap();
        let good = stacks("user:main;user:parse 10\n");
        let bad = stacks("user:main;user:parse 10\nuser:main;user:<script>alert(1)</script> & render 90\n");
        let svg = String::from_utf8(difference("a <b>", [(&good, 2.0), (&bad, 1.0)]).unwrap()).unwrap();
        assert!(
            svg.contains("parse") && svg.contains("&amp; render") && svg.contains("a &lt;b&gt;"),
            "{svg}"
        );
        for what in ["<script", "onload", "href=", "src=", "url(http"] {
            assert!(!svg.contains(what), "{what} in {svg}");
        }
    }
}
