//! The report of runs: one page of HTML that needs nothing else, and a summary in Markdown.

mod chart;
mod forest;
mod input;
mod sections;
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

use crate::programs::root;
use chart::{Chart, Scale, number};
use input::{CurvePoint, Record, ResultFile};
use verdict::Role;

const TEMPLATES: [(&str, &str); 4] = [
    ("report.html", include_str!("../../templates/report.html")),
    ("charts.html", include_str!("../../templates/charts.html")),
    ("report.css", include_str!("../../templates/report.css")),
    ("summary.md", include_str!("../../templates/summary.md")),
];
const PAGE: &str = "report.html";
const SUMMARY: &str = "summary.md";
/// Colours and marks that the style sheet has.
const STYLES: usize = 8;

/// Results to render.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Result files, or folders with such files; of the same measurement the newest counts [default: lab/results]
    #[arg(value_name = "RESULT")]
    results: Vec<PathBuf>,
    /// Folder for report.html and summary.md [default: the folder of the first result]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Renders results, and prints the verdicts and where the report is.
pub(crate) fn run(args: &ReportArgs) -> Result<bool, String> {
    let default = [root().join("lab/results")];
    let results = if args.results.is_empty() { &default[..] } else { &args.results };
    let files = input::read(results)?;
    let records = input::read_records(&root().join("lab/records"))?;
    let report = Report::render(&files, &records)?;
    let parent = |path: &PathBuf| path.parent().map(Path::to_owned).unwrap_or_default();
    let beside = if results[0].is_dir() { results[0].clone() } else { parent(&results[0]) };
    let folder = args.out.as_ref().unwrap_or(&beside);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (name, text) in [(PAGE, &report.page), (SUMMARY, &report.summary)] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        crate::progress(&format!("written to {}", path.display()));
    }
    crate::print(&report.headlines)
}

pub(crate) struct Report {
    page: String,
    summary: String,
    /// The verdicts, a line each.
    headlines: String,
}

impl Report {
    fn render(files: &[ResultFile], records: &BTreeMap<String, Vec<Record>>) -> Result<Self, String> {
        let series = input::newest(
            files,
            |file| &file.series,
            |it| {
                let labels: Vec<&str> = it.servers.iter().map(|server| &*server.label).collect();
                format!("{:?} {} {}", it.experiment, it.scenario, labels.join(" "))
            },
        );
        let curve = input::newest(files, |file| &file.curve, CurvePoint::key);
        let verdicts: Vec<_> = series.iter().flat_map(|series| verdict::verdicts(series)).collect();
        let headlines = verdict::headlines(&verdicts);
        let text = verdicts.iter().map(|it| format!("{}, {}: {}\n", it.scenario, it.ours, it.words));
        let text = headlines.iter().map(|line| format!("{line}\n")).chain(text).collect();
        let names = series.iter().flat_map(|it| &it.servers).map(|server| &*server.label);
        let names = names.chain(curve.iter().map(|it| &*it.server)).chain(files.iter().map(|it| &*it.server));
        let environment = environment(styles(names)).map_err(|error| error.to_string())?;
        let runs = || files.iter().filter(|file| !file.commit.is_empty());
        let distinct = |of: fn(&ResultFile) -> String| runs().map(of).collect::<BTreeSet<_>>().len();
        let rows = input::newest(files, |file| &file.rows, |row| row.row.clone());
        let tools: Vec<_> = files.iter().flat_map(|file| &file.tools).collect();
        let mut tool_fields: Vec<_> = tools.iter().flat_map(|tool| tool.iter()).collect();
        // Names before figures.
        tool_fields.sort_by_key(|(name, value)| (!value.is_string(), *name));
        let mut tool_fields: Vec<_> = tool_fields.into_iter().map(|(name, _)| name).collect();
        tool_fields.dedup();
        let context = Value::from(Serde(json!({
            "files": files,
            "verdicts": verdicts,
            "headlines": headlines,
            "curve": curve,
            "tools": tools,
            "tool_fields": tool_fields,
            "forest": forest::forest(&series),
            "outcomes": sections::outcomes(&rows),
            "rows": rows,
            "phases": input::newest(files, |file| &file.phases, |it| format!("{} {}", it.server, it.name)),
            "percentiles": sections::percentiles(files, &curve),
            "memory": files.iter().filter(|file| file.findings.is_some()).collect::<Vec<_>>(),
            "records": sections::records(records, |_| Vec::new()),
            "figures": sections::figures(&series),
            "invalid": sections::invalid(files, &series, &curve),
            "versions": sections::versions(files),
            "commands": sections::commands(&series),
            "commits": distinct(|file| file.commit.clone()),
            "machines": distinct(|file| format!("{:?}", (file.machine.get("cpu"), file.machine.get("kernel")))),
            "is_changed": files.iter().any(|file| file.commit.ends_with("with changes")),
            "now": date(SystemTime::now()),
        })));
        let render = |name| environment.get_template(name)?.render(&context);
        let [page, summary] = [PAGE, SUMMARY].map(render);
        let text_of = |error: minijinja::Error| format!("{error:#}");
        Ok(Self { page: page.map_err(text_of)?, summary: summary.map_err(text_of)?, headlines: text })
    }
}

/// Returns the style of each server, the same in all charts; null servers have none of their own.
fn styles<'a>(names: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let mut found: Vec<&str> = Vec::new();
    for name in names.filter(|name| matches!(Role::of(name), Role::Ours | Role::Peer)) {
        if !name.is_empty() && !found.contains(&name) {
            found.push(name);
        }
    }
    found.sort_by_key(|name| Role::of(name));
    found.iter().enumerate().map(|(at, name)| ((*name).to_owned(), format!("s{}", at % STYLES))).collect()
}

/// Returns the templates with their filters; everything that they print is escaped.
fn environment(styles: BTreeMap<String, String>) -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|name| match name {
        SUMMARY => AutoEscape::Custom("markdown".into()),
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
    environment.add_filter("outcome", |words: &str| Value::from(Serde(verdict::outcome(words))));
    environment.add_filter("date", |unix_s: u64| date(SystemTime::UNIX_EPOCH + Duration::from_secs(unix_s)));
    environment.add_function("chart", |items: Vec<Value>, fields: Vec<String>, scales: Vec<String>| {
        let scale = |at: usize| match scales.get(at).map(String::as_str) {
            Some("nines") => Some(Scale::Nines),
            Some("log") => Some(Scale::Log),
            _ => None,
        };
        Value::from(Serde(Chart::of(&items, [&fields[0], &fields[1]], [scale(0), scale(1)])))
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

/// Escapes all that Markdown or a table of it gives a meaning.
fn markdown(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '\n' | '\r' => escaped.push(' '),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '`' | '*' | '[' | '\\' => escaped.extend(['\\', letter]),
            _ => escaped.push(letter),
        }
    }
    escaped
}

fn date(time: SystemTime) -> String {
    httpdate::fmt_http_date(time)
}
