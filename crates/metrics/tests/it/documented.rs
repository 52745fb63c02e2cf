//! `docs/tasks/metrics.md` lists every metric as it is.

use shearwater_metrics::{FAMILIES, Kind};

const PAGE: &str = include_str!("../../../../docs/tasks/metrics.md");

#[test]
fn the_page_lists_every_metric() {
    let rows = FAMILIES.iter().map(|family| {
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            _ => "info",
        };
        let labels: Vec<_> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{}` | {kind} | {} | {} |", family.full_name(), labels.join(", "), family.help)
    });
    let expected: Vec<_> = rows.collect();
    let is_metric =
        |line: &&str| ["| `shearwater_", "| `process_"].iter().any(|start| line.starts_with(start));
    let shown: Vec<_> = PAGE.lines().filter(is_metric).collect();
    assert_eq!(shown, expected, "write these rows:\n{}\n", expected.join("\n"));
}
