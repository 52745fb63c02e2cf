//! Figures for the README: what the lab's summary says, between markers, so that no figure is typed.
//!
//! `<!-- figures: Steps -->` is followed by that table of the summary, and `<!-- figures: rung buffered -->` by the rung's
//! own figures, each up to `<!-- end -->`. `<!-- figures: report -->` links the page and says where it was measured.

const START: &str = "<!-- figures: ";
const START_END: &str = " -->\n";
const END: &str = "<!-- end -->";
/// The page, from the README.
const PAGE: &str = "../lab/results/ladder/report.html";
/// Names of rungs in the lab begin with it.
const PREFIX: &str = "ladder-";
/// Columns with a load's CPU time begin with it.
const TIME: &str = "µs CPU a response, ";

/// A table in Markdown.
struct MarkdownTable<'a> {
    lines: Vec<&'a str>,
}

/// Returns the README with the figures of a summary.
pub(crate) fn fill(readme: &str, summary: &str) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = readme;
    while let Some((before, after)) = rest.split_once(START) {
        let (name, old) = after.split_once(START_END).ok_or("ladder/README.md: a marker has no end")?;
        let (_, after) = old
            .split_once(END)
            .ok_or_else(|| format!("ladder/README.md: nothing ends `{START}{name}`\nhelp: add `{END}`"))?;
        let text = match (name, name.strip_prefix("rung ")) {
            ("report", _) => origin(summary),
            (_, Some(rung)) => measured(summary, rung),
            _ => table(summary, name).map(|table| table.lines.join("\n").replace(PREFIX, "")),
        };
        let text =
            text.ok_or_else(|| format!("the summary has nothing on `{name}`\nhelp: cargo ladder measure"))?;
        filled.push_str(&format!("{before}{START}{name}{START_END}\n{text}\n\n{END}"));
        rest = after;
    }
    Ok(filled + rest)
}

/// Links the page, with the commit and the machine of the first result.
fn origin(summary: &str) -> Option<String> {
    let result = summary.lines().find_map(|line| line.strip_prefix("- <code>"))?;
    let measured = result.split_once("</code>: ")?.1.split(": <code>").next()?;
    Some(format!("[All figures, with charts]({PAGE}): {measured}."))
}

/// Finds the table below a heading.
fn table<'a>(summary: &'a str, heading: &str) -> Option<MarkdownTable<'a>> {
    let mut lines = summary.lines().skip_while(|line| line.strip_prefix("## ") != Some(heading));
    lines.next()?;
    let lines = lines.take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with('|'));
    let lines: Vec<&str> = lines.collect();
    (lines.len() > 2).then_some(MarkdownTable { lines })
}

impl<'a> MarkdownTable<'a> {
    /// Returns the row whose first cell is this, each cell with the title of its column.
    fn row(&self, first: &str) -> Option<Vec<(&'a str, &'a str)>> {
        let cells = |line: &'a str| line.trim_matches('|').split('|').map(str::trim);
        let line = self.lines[2..].iter().find(|line| cells(line).next() == Some(first))?;
        Some(cells(self.lines[0]).zip(cells(line)).collect())
    }
}

/// Returns a table of what a rung costs under each load and against the one before, and a sentence with its counts.
fn measured(summary: &str, rung: &str) -> Option<String> {
    let (step, server) = match rung {
        "guided" => (rung.to_owned(), format!("{PREFIX}io-uring@guided")),
        _ => (format!("{PREFIX}{rung}"), format!("{PREFIX}{rung}")),
    };
    let step = table(summary, "Steps")?.row(&step)?;
    let costs = table(summary, "Costs")?.row(&server)?;
    let before = step.get(1).and_then(|(_, before)| before.strip_prefix(PREFIX));
    let cost =
        |load: &str| costs.iter().find(|(name, _)| *name == format!("{TIME}{load}")).map(|(_, cell)| *cell);
    let loads = step.iter().skip(2).filter(|(load, _)| cost(load).is_some_and(|cell| cell != "–"));
    let loads: Vec<_> = loads.collect();
    let line = |title: &str, cells: &mut dyn Iterator<Item = &str>| {
        format!("| {title} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let mut text = line("measured", &mut loads.iter().map(|(load, _)| *load));
    text += &line("---", &mut loads.iter().map(|_| "---"));
    text += &line("µs of CPU a response", &mut loads.iter().filter_map(|(load, _)| cost(load)));
    if let Some(before) = before {
        text += &line(&format!("against {before}"), &mut loads.iter().map(|(_, cell)| *cell));
    }
    let counts = costs.iter().skip(1).filter(|(name, cell)| !name.starts_with('µ') && *cell != "–");
    let counts: Vec<_> = counts.map(|(name, cell)| format!("{name}: {cell}")).collect();
    if !counts.is_empty() {
        text += &format!("\nCounted: {}.", counts.join("; "));
    }
    Some(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMARY: &str = "# Report\n\n## Steps\n\n| step | made from | kept | close |\n|---|---|---|---|\n\
        | ladder-naive | – | 45.1 µs | 44.0 µs |\n\n| ladder-views | ladder-naive | 2.31 × less (2.28–2.35) | – |\n\n\
        ## Costs\n\n| server | µs CPU a response, kept | calls, counts |\n|---|---|---|\n\
        | ladder-naive | 45.1 | – |\n| ladder-views | 20.0 | 4.00 |\n\n## Other\n| ladder-x |\n\
        - <code>01-kept.json</code>: commit 0123, Some CPU, 2 cores, Linux 6.18: <code>cargo lab suite ladder</code>\n";

    #[test]
    fn figures_replace_what_is_between_markers_and_nothing_else() {
        let readme = "a\n<!-- figures: rung views -->\nold\n<!-- end -->\nb\n<!-- figures: Steps -->\n<!-- end -->\nc\n";
        let filled = fill(readme, SUMMARY).expect("it has both");
        let said = "| measured | kept |\n| --- | --- |\n| µs of CPU a response | 20.0 |\n\
            | against naive | 2.31 × less (2.28–2.35) |\n\nCounted: calls, counts: 4.00.";
        assert!(
            filled.starts_with(&format!("a\n<!-- figures: rung views -->\n\n{said}\n\n<!-- end -->\nb\n")),
            "{filled}"
        );
        assert!(
            filled.contains("|---|---|---|---|\n| naive | – | 45.1 µs | 44.0 µs |\n| views | naive |"),
            "{filled}"
        );
        assert!(filled.ends_with("<!-- end -->\nc\n") && !filled.contains("old"));
        assert_eq!(fill(&filled, SUMMARY).as_ref(), Ok(&filled), "a second time nothing changes");
        let linked = fill("<!-- figures: report -->\n<!-- end -->", SUMMARY).expect("it has a result");
        assert!(linked.contains("report.html): commit 0123, Some CPU, 2 cores, Linux 6.18.\n"), "{linked}");
        let first = measured(SUMMARY, "naive").expect("it is there");
        assert_eq!(first, "| measured | kept |\n| --- | --- |\n| µs of CPU a response | 45.1 |");
    }

    #[test]
    fn a_missing_rung_and_an_open_marker_are_reported() {
        let error = |readme: &str| fill(readme, SUMMARY).expect_err("it is wrong");
        assert!(
            error("<!-- figures: rung cores -->\n<!-- end -->").contains("nothing on `rung cores`\nhelp: ")
        );
        assert!(error("<!-- figures: Steps -->\n").contains("help: add `<!-- end -->`"));
    }
}
