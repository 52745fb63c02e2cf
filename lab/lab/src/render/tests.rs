//! The report of the fixtures: parts, figures, escaping, and what it must not load.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::chart::Scale;
use super::*;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/report")
}

fn render_files(names: &[&str]) -> [String; 3] {
    let paths: Vec<PathBuf> = names.iter().map(|name| fixtures().join(name)).collect();
    let records = input::read_records(&fixtures().join("records")).expect("records");
    let records = if names == [""] { records } else { BTreeMap::new() };
    render(&input::read(&paths).expect("fixtures"), &records, |_| vec![7]).expect("a report")
}

/// Returns the error of a report on a file with this text.
fn error_of(text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.json");
    std::fs::write(&path, text).expect("a file");
    input::read(&[path]).expect_err("no result")
}

/// Returns the name of each element, after checking that all are closed in order.
fn elements(html: &str) -> Vec<String> {
    let (mut open, mut all) = (Vec::new(), Vec::new());
    for tag in html.split('<').skip(1).filter(|tag| !tag.starts_with('!')) {
        let (tag, text) = tag.split_once('>').expect("a tag ends");
        assert!(!text.contains('>') || open.contains(&"style"), "{text}");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        match tag {
            end if end.starts_with('/') => assert_eq!(open.pop(), Some(name), "{tag}"),
            empty if empty.ends_with('/') => all.push(name.to_owned()),
            _ => {
                open.push(name);
                all.push(name.to_owned());
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    all
}

#[test]
fn all_parts_are_there_with_their_figures() {
    let [page, ..] = render_files(&[""]);
    for part in ["steps", "verdicts", "cpu", "bar", "curve", "percentiles", "memory", "resilience", "records"]
    {
        assert!(page.contains(&format!("<section id=\"{part}\">")), "{part}");
    }
    for text in [
        "1.60 × less CPU than nginx, 95 % 1.58–1.62",
        "8.00 × less CPU than nginx",
        "no difference beyond noise: lighttpd",
        "shearwater-epoll: less CPU per response than a peer in 2 of 3 comparisons, no difference beyond noise in 1, more in 0; too few rounds for 1 comparison",
        "<span class=\"verdict bad\">MISSED</span>",
        "<span class=\"verdict noise\">met, within noise</span>",
        "<span class=\"verdict missing\">NOT MEASURED: no user namespaces</span>",
        "1,203,456",
        "93.2 % of the offered rate",
        "caddy is not installed",
        "1.093 (0.980–1.210)",
        "2 connections",
        "cargo lab compare --scenario 1k,1k-x16",
        "shearwater $TEMP&#x2f;public --listen 127.0.0.1:1",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn parts_without_results_are_left_out() {
    let [page, summary, _] = render_files(&["bar.json"]);
    assert!(page.contains("<section id=\"bar\">") && summary.contains("## The bar"));
    for part in
        ["steps", "verdicts", "cpu", "curve", "percentiles", "memory", "resilience", "records", "invalid"]
    {
        assert!(!page.contains(&format!("\"{part}\">")), "{part}");
        assert!(!page.contains(&format!("#{part}\"")), "{part}");
    }
    assert!(!page.contains("class=\"warning\""));
}

#[test]
fn a_ladder_is_compared_step_by_step_and_in_both_orders() {
    let [page, summary, _] = render_files(&["climb.json"]);
    for row in [
        "| ladder-naive | – | 40.35 µs |",
        "| ladder-buffered | ladder-naive | 4.01 × less (3.97–4.06) |",
        "| ladder-cores | ladder-buffered | within noise: 0.998 (0.990–1.010) |",
        "| guided | ladder-cores | 1.25 × less (1.24–1.26) |",
        "| shearwater-epoll | ladder-cores | 2.00 × less (1.99–2.02) |",
        "| ladder-cores | ladder-buffered@guided | 1.25 × less (1.23–1.27) |",
        "- ladder-cores under the load kept: ladder-cores within noise: 0.998 (0.990–1.010), ladder-cores@guided 1.25 × less (1.23–1.27)",
        "- guided under the load kept: ladder-buffered@guided within noise",
        "| ladder-naive | 40.4 (40.0–41.0) |",
    ] {
        assert!(summary.contains(row), "{row}\n{summary}");
    }
    // Each step is a bar that begins where the one before ends.
    let bar = "<rect class=\"step good\"";
    assert!(page.contains(bar) && page.contains("The order changes the verdict on ladder-cores"), "{page}");
    elements(&page);
}

/// Appends a text to every string and name of some JSON, but for names of fields and of experiments.
fn poison(value: &mut serde_json::Value, text: &str) {
    match value {
        serde_json::Value::String(string) => string.push_str(text),
        serde_json::Value::Array(items) => items.iter_mut().for_each(|item| poison(item, text)),
        serde_json::Value::Object(fields) => {
            if fields.contains_key("cpu") {
                fields.insert(text.to_owned(), json!(text));
            }
            let fields = fields.iter_mut().filter(|(name, _)| *name != "experiment");
            fields.for_each(|(_, value)| poison(value, text));
        }
        _ => {}
    }
}

#[test]
fn every_text_from_results_is_escaped_and_nothing_is_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    for path in std::fs::read_dir(fixtures()).expect("fixtures").filter_map(|entry| Some(entry.ok()?.path()))
    {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let mut value = serde_json::from_str(&text).expect("a fixture");
        poison(&mut value, "<script src=\"http:'>|\n");
        let name = path.file_name().expect("a name");
        std::fs::write(folder.path().join(name), value.to_string()).expect("a file");
    }
    let files = input::read(&[folder.path().to_owned()]).expect("results");
    let records = input::read_records(&fixtures().join("records")).expect("records");
    let [page, summary, _] = render(&files, &records, |_| Vec::new()).expect("a report");
    let elements = elements(&page);
    for element in ["script", "link", "img", "iframe", "object", "image"] {
        assert!(!elements.iter().any(|name| name == element), "{element}");
    }
    for loaded in ["http://", "https://", "@import", "url(", "src=\""] {
        assert!(!page.contains(loaded), "{loaded}");
    }
    assert!(page.matches("&lt;script").count() > 200, "it is shown as text");
    assert!(!summary.contains("<script"));
    // A table's cell ends at a bare |, its row at the end of the line.
    let rows: Vec<&str> = summary.lines().filter(|line| line.contains("&lt;script")).collect();
    assert!(rows.iter().all(|row| !row.contains("'>|") && (row.ends_with('|') || row.starts_with("- "))));
}

#[test]
fn every_chart_has_a_title_a_unit_and_its_figures_as_a_table() {
    let [page, ..] = render_files(&[""]);
    // Six of the curve, one of percentiles, one of memory, two of records.
    assert_eq!(page.matches("<svg class=\"plot\"").count(), 10);
    assert_eq!(page.matches("The table below has the figures.").count(), 10);
    // Between the seventh and the eighth run, in both charts.
    assert_eq!(page.matches("class=\"change\"").count(), 2);
    assert!(!page.contains("NaN") && !page.contains("inf"), "a place that is no number");
    // Hollow marks of nginx and h2o beyond what they can do, in six charts.
    assert_eq!(page.matches(" invalid\"").count(), 2 * 6);
    assert!(
        page.contains("<td>nginx</td><td class=\"number\">150,000</td><td class=\"number\">110,000</td>")
    );
}

#[test]
fn axes_place_values_in_per_cent() {
    let axis = |scale, values: &[f64]| chart::Axis::over(scale, values.iter().copied());
    let labels = |axis: chart::Axis| -> Vec<String> {
        axis.ticks().iter().filter_map(|tick| Some(tick["label"].as_str()?.to_owned())).collect()
    };
    let nines = axis(Scale::Nines, &[0.0, 0.5, 0.999, 1.0]);
    assert_eq!([0.0, 0.9, 0.99, 0.999].map(|it| nines.at(it)), [0.0, 33.3, 66.7, 100.0]);
    assert_eq!(labels(nines), ["0", "50", "90", "99", "99.9"]);
    assert_eq!(labels(axis(Scale::Linear, &[3.0, 14.0])), ["0", "5", "10"]);
    assert_eq!(labels(axis(Scale::Log, &[500.0, 150_000.0])), ["1,000", "10k", "100k"]);
    assert_eq!(labels(axis(Scale::Log, &[0.98, 1.04])), ["0.98", "1", "1.02", "1.04"]);
    assert_eq!(labels(axis(Scale::Linear, &[])), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
    let shown = [0.0, 0.0451, 1.049, 4.0, 12.34, 123.4, 1_234_567.8].map(number);
    assert_eq!(shown, ["0", "0.0451", "1.049", "4.00", "12.3", "123", "1,234,568"]);
}

#[test]
fn of_the_same_measurement_the_newest_counts_and_runs_are_compared() {
    let row = |time: u64, verdict: &str| {
        let row = json!({ "row": "r", "scenario": "s", "case": "c", "wanted": "≤ 1", "measured": null, "verdict": verdict });
        serde_json::from_value::<ResultFile>(json!({ "unix_seconds": time, "rows": [row] })).expect("a file")
    };
    let files = [row(1, "met"), row(2, "MISSED")];
    let rows = input::newest(&files, |file| &file.rows, |row| row.row.clone());
    assert_eq!(rows.iter().map(|row| &*row.verdict).collect::<Vec<_>>(), ["MISSED"]);
    let is_consistent = |one: &str, other: &str| {
        let [one, other] = [one, other].map(|verdict| verdicts(&[row(1, verdict)]));
        compare(&one, &other).expect("printed")
    };
    assert!(is_consistent("met", "met") && is_consistent("met", "MISSED, within noise"));
    assert!(!is_consistent("met", "MISSED"));
}

#[test]
fn errors_name_the_file_and_the_field() {
    let missing = error_of(
        r#"{"series": [{"experiment": "load", "scenario": "1k", "seed": 1, "servers": [{"label": "x", "version": "1", "figures": {}}]}]}"#,
    );
    assert!(missing.contains("run.json: `series[0].servers[0]`: missing field `rounds`"), "{missing}");
    let wrong =
        error_of(r#"{"curve": [{"server": "a", "scenario": "1k", "offered_per_s": "many", "valid": true}]}"#);
    assert!(
        wrong.contains("`curve[0].offered_per_s`: invalid type: string \"many\", expected f64"),
        "{wrong}"
    );
    assert!(error_of("{}").contains("run.json: no result in it\nhelp: "));
    assert!(error_of("oops").contains("run.json: expected value at line 1 column 1"));
    let nothing = input::read(&[fixtures().join("none.json")]).expect_err("no file");
    assert!(nothing.contains("none.json") && nothing.contains("help: "), "{nothing}");
}
