//! Flame graphs: one SVG each, without a script and without anything from elsewhere.

use anyhow::Context as _;
use inferno::flamegraph::{self, Options};

/// Draws folded lines, `STACK WEIGHT`.
pub(super) fn svg(mut options: Options<'_>, lines: &[String]) -> anyhow::Result<Vec<u8>> {
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
