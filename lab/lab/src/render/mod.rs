//! The report of runs: one page of HTML that needs nothing else, and a summary in Markdown.

mod chart;
mod climb;
mod input;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Value};
use serde_json::json;

use crate::change_points::change_points;
use crate::experiment::Experiment;
use crate::format::number;
use crate::programs::root;
use input::{CurvePoint, GateRecord, ResultFile};

const TEMPLATES: [(&str, &str); 5] = [
    (PAGE, include_str!("../../templates/report.html")),
    ("charts.html", include_str!("../../templates/charts.html")),
    ("report.css", include_str!("../../templates/report.css")),
    (SUMMARY, include_str!("../../templates/summary.md")),
    (VERDICTS, include_str!("../../templates/verdicts.txt")),
];
const PAGE: &str = "report.html";
const SUMMARY: &str = "summary.md";
const VERDICTS: &str = "verdicts.txt";
/// Colours and marks that the style sheet has.
const STYLES: usize = 8;

/// Results to render.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Result files, or folders with such files; of the same measurement the newest counts [default: lab/results]
    #[arg(value_name = "RESULT")]
    pub(crate) results: Vec<PathBuf>,
    /// Folder for report.html and summary.md [default: the folder of the first result]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print instead the verdicts that differ between two runs, such as folders of one suite; exits with 1 if two are opposite
    #[arg(long, num_args = 2, value_names = ["BEFORE", "AFTER"], conflicts_with_all = ["results", "out"])]
    pub(crate) compare: Vec<PathBuf>,
}

/// Renders results, and prints the verdicts.
pub(crate) fn run(args: &ReportArgs) -> Result<bool, String> {
    if let [before, after] = args.compare.as_slice() {
        let [before, after] = [before, after].map(|path| input::read(std::slice::from_ref(path)));
        return compare(&verdicts(&before?), &verdicts(&after?));
    }
    let default = [root().join("lab/results")];
    let results = if args.results.is_empty() { &default[..] } else { &args.results };
    let files = input::read(results)?;
    let records = input::read_records(&root().join("lab/records"))?;
    let [page, summary, verdicts] = render(&files, &records, |values| change_points(values, 1))?;
    let first = &results[0];
    let beside = if first.is_dir() { first } else { first.parent().unwrap_or(Path::new("")) };
    let folder = args.out.as_deref().unwrap_or(beside);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (name, text) in [(PAGE, page), (SUMMARY, summary)] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        crate::progress(&format!("written to {}", path.display()));
    }
    crate::print(&verdicts)
}

/// Returns the verdicts of files in words, by what they are of, each with its class.
fn verdicts(files: &[ResultFile]) -> BTreeMap<String, (String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let mut found = BTreeMap::new();
    for file in files {
        let step = file.others.get("step").map(|step| text(&step["name"])).unwrap_or_default();
        for it in file.series.iter().flat_map(verdict::verdicts) {
            let of =
                format!("{step} {}, {} and {}", text(&it["scenario"]), text(&it["ours"]), text(&it["peer"]));
            found.insert(of.trim().to_owned(), (text(&it["outcome"]), text(&it["words"])));
        }
        let phases = file.phases.iter().map(|it| (format!("{}, {}", it.name, it.server), &it.verdict));
        let rows = file.rows.iter().map(|it| (it.row.clone(), &it.verdict));
        for (of, words) in phases.chain(rows) {
            found.insert(of, (verdict::outcome(words).to_owned(), words.clone()));
        }
    }
    found
}

/// Prints the verdicts that differ. Returns false if two are opposite, both beyond noise.
fn compare(
    before: &BTreeMap<String, (String, String)>,
    after: &BTreeMap<String, (String, String)>,
) -> Result<bool, String> {
    let both = before.iter().filter_map(|(of, before)| Some((of, before, after.get(of)?)));
    let differing: Vec<_> = both.clone().filter(|(_, before, after)| before.0 != after.0).collect();
    let is_sure = |outcome: &str| ["good", "bad"].contains(&outcome);
    let mut opposite = 0;
    for (of, before, after) in &differing {
        let is_opposite = is_sure(&before.0) && is_sure(&after.0);
        opposite += usize::from(is_opposite);
        let mark = if is_opposite { "OPPOSITE" } else { "differs" };
        println!("{mark}: {of}\n  before: {}\n  after:  {}", before.1, after.1);
    }
    println!("{} of {} verdicts differ, {opposite} are opposite", differing.len(), both.count());
    Ok(opposite == 0)
}

/// Renders the page, the summary, and the verdicts as plain text.
fn render(
    files: &[ResultFile],
    records: &BTreeMap<String, Vec<GateRecord>>,
    change_points: fn(&[f64]) -> Vec<usize>,
) -> Result<[String; 3], String> {
    let series = input::newest(
        files,
        |file| &file.series,
        |it| {
            let labels: Vec<&str> = it.servers.iter().map(|server| &*server.label).collect();
            format!("{:?} {} {labels:?}", it.experiment, it.scenario)
        },
    );
    // A share of the capacity that was measured then, or a rate.
    let key = |it: &CurvePoint| match it.figures.get("percent") {
        Some(percent) => format!("{} {} {percent} %", it.server, it.scenario),
        None => format!("{} {} {}", it.server, it.scenario, it.offered_per_s),
    };
    let curve = input::newest(files, |file| &file.curve, key);
    let commits: BTreeSet<&str> =
        files.iter().map(|file| &*file.commit).filter(|it| !it.is_empty()).collect();
    let kernels = files.iter().filter_map(|file| Some(file.others.get("machine")?["kernel"].to_string()));
    let servers: Vec<_> = files.iter().flat_map(|file| &file.series).flat_map(|it| &it.servers).collect();
    let names = servers.iter().map(|server| &*server.label).chain(curve.iter().map(|it| &*it.server));
    let names = names.chain(files.iter().map(|file| &*file.server));
    let failed = |error: minijinja::Error| format!("{error:#}");
    // The newest of each server and count.
    let held = files.iter().filter(|file| file.findings.is_some());
    let memory: BTreeMap<_, _> = held.map(|file| ((&file.server, file.connections()), file)).collect();
    let environment = environment(styles(names)).map_err(failed)?;
    let context = Value::from(Serde(json!({
        "files": files,
        "verdicts": series.iter().flat_map(|series| verdict::verdicts(series)).collect::<Vec<_>>(),
        "forest": verdict::forest(&series),
        "series": series,
        "servers": servers,
        "rows": input::newest(files, |file| &file.rows, |row| row.row.clone()),
        "phases": input::newest(files, |file| &file.phases, |it| format!("{} {}", it.server, it.name)),
        "climb": climb::climb(files),
        "latencies": latencies(files),
        "curve": curve,
        "memory": memory.into_values().collect::<Vec<_>>(),
        "records": flat_records(records, change_points),
        "commits": commits,
        "kernels": kernels.collect::<BTreeSet<_>>(),
        "now": httpdate::fmt_http_date(SystemTime::now()),
    })));
    let text = |name| environment.get_template(name)?.render(&context);
    Ok([text(PAGE).map_err(failed)?, text(SUMMARY).map_err(failed)?, text(VERDICTS).map_err(failed)?])
}

/// Returns the style of each server, the same in all charts, ours first; null servers have none of their own.
fn styles<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, String> {
    let shown = names.filter(|name| !name.is_empty() && ["ours", "peer"].contains(&verdict::role(name)));
    let sorted: BTreeSet<_> = shown.map(|name| (verdict::role(name) != "ours", name)).collect();
    // Beyond the last one the styles of peers repeat.
    let style = |at: usize| if at < STYLES { at } else { 2 + (at - 2) % (STYLES - 2) };
    sorted.into_iter().enumerate().map(|(at, (_, name))| (name, format!("s{}", style(at)))).collect()
}

/// Returns the templates with their filters; everything that they print is escaped.
fn environment(styles: BTreeMap<&str, String>) -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|name| match name {
        SUMMARY => AutoEscape::Custom("markdown".into()),
        VERDICTS => AutoEscape::None,
        _ => AutoEscape::Html,
    });
    environment.set_formatter(|out, state, value| match state.auto_escape() {
        AutoEscape::Custom(_) if !value.is_safe() => Ok(out.write_str(&markdown(&value.to_string()))?),
        AutoEscape::Custom(_) => Ok(write!(out, "{value}")?),
        _ => minijinja::escape_formatter(out, state, value),
    });
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_global("styles", Value::from(Serde(styles)));
    environment.add_filter("number", shown);
    environment.add_filter("outcome", verdict::outcome);
    environment.add_filter("date", |unix_s: u64| {
        httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(unix_s))
    });
    environment.add_filter("title", |experiment: &str, figure: &str| {
        let experiment: Option<Experiment> = serde_json::from_value(json!(experiment)).ok();
        experiment.map_or("", |experiment| experiment.title(figure))
    });
    environment.add_function("chart", |items: Vec<Value>, fields: Vec<String>, scales: Vec<String>| {
        let scale = |at: usize| serde_json::from_value(json!(scales.get(at))).ok();
        Value::from(Serde(chart::chart(&items, [&fields[0], &fields[1]], [scale(0), scale(1)])))
    });
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    Ok(environment)
}

/// Formats a number, or a median with its interval: three numbers, or the fields of an estimate.
fn shown(value: &Value) -> String {
    let float = |value: Value| f64::try_from(value).ok();
    let part = |at, name| {
        value.get_attr(name).ok().and_then(float).or_else(|| float(value.get_item_by_index(at).ok()?))
    };
    match (float(value.clone()).or_else(|| part(0, "median")), part(1, "low"), part(2, "high")) {
        (None, ..) => "–".to_owned(),
        (Some(whole), None, None) if value.is_integer() && whole < 100.0 => value.to_string(),
        (Some(median), Some(low), Some(high)) => {
            format!("{} ({}–{})", number(median), number(low), number(high))
        }
        (Some(median), ..) => number(median),
    }
}

/// Escapes everything that Markdown or a table of it gives a meaning.
fn markdown(text: &str) -> String {
    let escape = |letter| match letter {
        '\n' | '\r' => " ".to_owned(),
        '<' => "&lt;".to_owned(),
        '&' => "&amp;".to_owned(),
        '|' | '`' | '*' | '[' | '\\' => format!("\\{letter}"),
        _ => String::from(letter),
    };
    text.chars().map(escape).collect()
}

/// Returns latencies at quantiles of single loads.
fn latencies(files: &[ResultFile]) -> Vec<serde_json::Value> {
    let loads = files.iter().filter_map(|file| Some((&file.server, file.latency.as_ref()?)));
    let points = loads.flat_map(|(server, latency)| {
        let point = move |(quantile, ns): &(f64, f64)| json!({ "title": "Single loads", "server": server, "quantile": quantile, "ms": ns / 1e6 });
        latency.quantiles_ns.iter().map(point)
    });
    points.collect()
}

/// Returns each figure of each run of the records, in order of time, and whether it changed there.
fn flat_records(
    records: &BTreeMap<String, Vec<GateRecord>>,
    change_points: fn(&[f64]) -> Vec<usize>,
) -> Vec<serde_json::Value> {
    let mut flat = Vec::new();
    for (record, runs) in records {
        let names = runs.iter().flat_map(|run| run.figures.keys().map(|name| (name, &run.cpu)));
        for (name, cpu) in names.collect::<BTreeSet<_>>() {
            let alike = || runs.iter().filter(|run| run.cpu == *cpu);
            let found = || alike().filter_map(|run| Some((&run.commit, *run.figures.get(name)?)));
            let changes = change_points(&found().map(|(_, value)| value).collect::<Vec<_>>());
            let title = format!("{record}: {name} {cpu}");
            flat.extend(found().enumerate().map(|(at, (commit, value))| {
                json!({ "title": title, "server": record, "commit": commit, "value": value, "run": at + 1, "changed": changes.contains(&at) })
            }));
        }
    }
    flat
}
