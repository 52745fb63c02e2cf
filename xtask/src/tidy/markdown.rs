//! Markdown as rules see it: links, code in backticks, headings. Fenced blocks are left out.

/// A word of interest with its line, counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// Lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        fenced ^= is_fence;
        (!fenced && !is_fence).then_some((index + 1, line))
    })
}

/// What stands in backticks.
pub(crate) fn code_spans(text: &str) -> Vec<Mark> {
    let spans = |(line, text): (usize, &str)| -> Vec<Mark> {
        let inside = text.split('`').skip(1).step_by(2);
        inside.map(|span| Mark { line, text: span.to_owned() }).collect()
    };
    prose(text).flat_map(spans).collect()
}

/// Targets of links and images, and of `[name]: target` lines.
pub(crate) fn links(text: &str) -> Vec<Mark> {
    let mut found = Vec::new();
    for (line, text) in prose(text) {
        let plain: Vec<&str> = text.split('`').step_by(2).collect();
        let targets = plain.iter().flat_map(|part| part.split("](").skip(1));
        let inline = targets.filter_map(|rest| rest.split([')', ' ']).next());
        let defined = text.starts_with('[').then(|| text.split_once("]: ").map(|(_, target)| target.trim()));
        found.extend(inline.chain(defined.flatten()).map(|target| Mark { line, text: target.to_owned() }));
    }
    found
}

/// Headings as the anchors that links use.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let heading =
        |(_, line): (usize, &str)| line.starts_with('#').then(|| slug(line.trim_start_matches('#')));
    prose(text).filter_map(heading).collect()
}

fn slug(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        _ if c.is_alphanumeric() => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    heading.trim().chars().filter_map(kept).collect()
}
