//! What a trial saw against what was promised, as an aligned table or as JSON.

use std::io::Write as _;

/// Whether a line's bound held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    Fail,
    /// A figure without a bound, or one that this system does not offer.
    Info,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail => "FAIL",
            Self::Info => "info",
        }
    }
}

#[derive(Debug)]
struct Line {
    what: String,
    measured: String,
    bound: String,
    verdict: Verdict,
}

/// What stands in one cell of a report: text, or a count.
#[derive(Debug)]
pub(crate) struct Cell(String);

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self(count.to_string())
    }
}

/// A count that only some systems offer.
impl From<Option<u64>> for Cell {
    fn from(count: Option<u64>) -> Self {
        Self(count.map_or("not measured".to_owned(), |count| count.to_string()))
    }
}

/// The lines of one trial.
#[derive(Debug, Default)]
pub(crate) struct Report {
    lines: Vec<Line>,
}

impl Report {
    /// An empty report; it has not passed before a bound was checked.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// A figure without a bound.
    pub(crate) fn note(&mut self, what: &str, measured: impl Into<Cell>) {
        self.push(what, measured.into(), String::new().into(), Verdict::Info);
    }

    /// A promise that `held` or did not.
    pub(crate) fn check(
        &mut self,
        what: &str,
        measured: impl Into<Cell>,
        bound: impl Into<Cell>,
        held: bool,
    ) {
        let verdict = if held { Verdict::Pass } else { Verdict::Fail };
        self.push(what, measured.into(), bound.into(), verdict);
    }

    /// A count that has to be exactly `expected`.
    pub(crate) fn equal(&mut self, what: &str, measured: u64, expected: u64) {
        self.check(what, measured, format!("= {expected}"), measured == expected);
    }

    /// A figure of at most `bound`, printed with `decimals` and its unit.
    pub(crate) fn at_most(&mut self, what: &str, measured: f64, bound: f64, decimals: usize, unit: &str) {
        let print = |figure: f64| format!("{figure:.decimals$} {unit}");
        self.check(what, print(measured), format!("<= {}", print(bound)), measured <= bound);
    }

    /// Like [`Report::at_most`], for a figure that only some systems offer: elsewhere it says so and decides nothing.
    pub(crate) fn at_most_if_measured(
        &mut self,
        what: &str,
        measured: Option<f64>,
        bound: f64,
        decimals: usize,
        unit: &str,
    ) {
        match measured {
            Some(figure) => self.at_most(what, figure, bound, decimals, unit),
            None => self.note(what, "not measured"),
        }
    }

    /// A count that has to be back where it was, on systems that offer it.
    pub(crate) fn back_at(&mut self, what: &str, measured: Option<u64>, before: Option<u64>) {
        match (measured, before) {
            (Some(count), Some(bound)) => self.equal(what, count, bound),
            _ => self.note(what, "not measured"),
        }
    }

    /// Examples of what went wrong, equal ones counted, at most [`EXAMPLES_MAX`] different ones.
    pub(crate) fn examples(&mut self, what: &str, examples: &[String]) {
        let mut counted: Vec<(&str, u64)> = Vec::new();
        for example in examples {
            match counted.iter().position(|(text, _)| text == example) {
                Some(known) => counted[known].1 += 1,
                None if counted.len() < EXAMPLES_MAX => counted.push((example, 1)),
                None => {}
            }
        }
        for (text, count) in &counted {
            let shown: String = text.chars().take(EXAMPLE_LENGTH_MAX).collect();
            self.note(what, format!("{count} x {shown}"));
        }
        let shown: u64 = counted.iter().map(|(_, count)| count).sum();
        if shown < examples.len() as u64 {
            self.note(what, format!("... and {} more", examples.len() as u64 - shown));
        }
    }

    /// True if at least one bound was checked and every one held.
    pub(crate) fn passed(&self) -> bool {
        let failed = self.lines.iter().any(|line| line.verdict == Verdict::Fail);
        let checked = self.lines.iter().any(|line| line.verdict == Verdict::Pass);
        checked && !failed
    }

    /// Prints the report on standard output.
    pub(crate) fn print(&self, trial: &str, json: bool) {
        let text = if json { self.json(trial) } else { self.table(trial) };
        // A reader that has gone needs no report.
        let _ = writeln!(std::io::stdout(), "{text}");
    }

    fn push(&mut self, what: &str, measured: Cell, bound: Cell, verdict: Verdict) {
        self.lines.push(Line { what: what.to_owned(), measured: measured.0, bound: bound.0, verdict });
    }

    fn table(&self, trial: &str) -> String {
        let width_of = |column: fn(&Line) -> &str| {
            let widths = self.lines.iter().map(|line| column(line).chars().count());
            widths.max().unwrap_or(0).min(COLUMN_WIDTH_MAX)
        };
        let what_width = width_of(|line| &line.what);
        let measured_width = width_of(|line| &line.measured);
        let bound_width = width_of(|line| &line.bound);
        let mut text = format!("trial {trial}\n");
        for Line { what, measured, bound, verdict } in &self.lines {
            let word = verdict.word();
            let row =
                format!("  {word}  {what:what_width$}  {measured:>measured_width$}  {bound:<bound_width$}");
            text.push_str(row.trim_end());
            text.push('\n');
        }
        let word = if self.passed() { "PASS" } else { "FAIL" };
        text.push_str(&format!("{word}  trial {trial}"));
        text
    }

    fn json(&self, trial: &str) -> String {
        let lines: Vec<String> = self.lines.iter().map(Line::json).collect();
        let (trial, passed, lines) = (quoted(trial), self.passed(), lines.join(","));
        format!("{{\"trial\":{trial},\"passed\":{passed},\"lines\":[{lines}]}}")
    }
}

impl Line {
    fn json(&self) -> String {
        let verdict = quoted(&self.verdict.word().to_lowercase());
        let (what, measured, bound) = (quoted(&self.what), quoted(&self.measured), quoted(&self.bound));
        format!("{{\"what\":{what},\"measured\":{measured},\"bound\":{bound},\"verdict\":{verdict}}}")
    }
}

/// Writes named reports into a file, as one JSON object.
pub(crate) fn write_json(path: &std::path::Path, reports: &[(String, Report)]) -> std::io::Result<()> {
    let all = reports.iter().map(|(name, report)| report.json(name)).collect::<Vec<_>>().join(",\n");
    let passed = reports.iter().all(|(_, report)| report.passed());
    std::fs::write(path, format!("{{\"passed\":{passed},\"reports\":[\n{all}\n]}}\n"))
}

/// How many different examples of one kind a report shows.
const EXAMPLES_MAX: usize = 20;

/// How many characters of an example a report shows.
const EXAMPLE_LENGTH_MAX: usize = 300;

/// A cell longer than this does not widen its column.
const COLUMN_WIDTH_MAX: usize = 64;

/// A JSON string (RFC 8259 section 7).
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control.is_control() => {
                out.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::{Report, quoted};

    #[test]
    fn a_report_passes_only_if_something_was_checked_and_all_held() {
        let mut report = Report::new();
        report.note("figure", 3_u64);
        assert!(!report.passed());
        report.equal("count", 4, 4);
        assert!(report.passed());
        report.at_most("ratio", 1.6, 1.5, 2, "x");
        assert!(!report.passed());
    }

    #[test]
    fn table_and_json_show_every_line() {
        let mut report = Report::new();
        report.equal("a \"quoted\" count", 1, 1);
        report.at_most_if_measured("memory", None, 1.0, 1, "MiB");
        let table = report.table("t");
        assert!(table.contains("PASS  a \"quoted\" count"), "{table}");
        assert!(table.contains("not measured"), "{table}");
        let json = report.json("t");
        assert!(json.contains(r#""what":"a \"quoted\" count""#), "{json}");
        assert!(json.starts_with(r#"{"trial":"t","passed":true"#), "{json}");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(quoted("a\n\u{1}\\"), r#""a\u000a\u0001\\""#);
    }
}
