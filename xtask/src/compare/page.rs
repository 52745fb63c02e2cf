//! `docs/compare.md`: written out of a comparison, and held against one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::case::Case;
use super::causes;
use super::comparison::{Comparison, Found, Peer};
use super::outcome::{Difference, Outcome};
use crate::harness::trouble::{self, During};

/// How the line begins that says which versions were asked.
const VERSIONS: &str = "Asked were ";

/// So many requests are named in a row; more are told by their numbers.
const NAMED_MAX: usize = 4;

const START: &str = "# Compared

What a static site answers, request by request: Shearwater beside nginx and static-web-server, over the same files and with configurations as alike as they
can be. Every difference in status, fields, content, and in what becomes of the connection is listed and argued. This page is written by `cargo xtask compare
--write`; `cargo xtask compare` fails where an answer differs and this page doesn't say so, or says so and it doesn't.

Not compared are values that are each server's own: the date, the name of the server, the text of a tag (but whether it is strong), the words of
errors and lists. Where the status differs, fields are not compared: they follow from it. Section numbers are those of RFC 9110 unless another is named.

How to read it: `plain`, `spa`, `clean` and `list` are sites (files with an error page, a redirect, rules on caching and fields; a program of one page; clean
addresses; lists of folders), whose files are in `xtask/src/compare/sites.rs` and whose configurations are beside it. A request is one of HTTP/1.1 with a `Host`, or
`raw` bytes, with dots for ends of lines. `TAG` and `DATE` are what the server at hand has said of the file before. “–” is a field that isn't there. Several
requests are told by their numbers in the [table of all](#requests).

";

/// Where it is.
pub(super) fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/compare.md")
}

/// The page as it is.
pub(super) fn read() -> trouble::Outcome<String> {
    std::fs::read_to_string(path()).during("reading docs/compare.md")
}

/// Whether both say the same, whatever versions were asked.
pub(super) fn says_the_same(page: &str, other: &str) -> bool {
    let lines =
        |text: &str| text.lines().filter(|line| !line.starts_with(VERSIONS)).map(str::to_owned).collect();
    let (page, other): (Vec<String>, Vec<String>) = (lines(page), lines(other));
    page == other
}

/// The page of a comparison.
pub(super) fn text(comparison: &Comparison, versions: &BTreeMap<Peer, String>) -> String {
    let mut text = START.to_owned();
    let names: Vec<String> =
        versions.iter().map(|(peer, version)| format!("{} {version}", peer.name())).collect();
    text.push_str(&format!("{VERSIONS}{}, on Linux.\n\n", names.join(" and ")));
    text.push_str(&summary(comparison));
    text.push_str("\n## Differences\n");
    let causes = causes::all();
    for (&cause, found) in &comparison.argued {
        let cause = causes[cause];
        text.push_str(&format!("\n### {}\n\n{}\n\n{}", cause.title, cause.why, table(comparison, found)));
    }
    text.push_str(&requests(comparison));
    text
}

fn summary(comparison: &Comparison) -> String {
    let mut text =
        "| | the same status | the same in everything but `Connection` and `Server` |\n|---|---|---|\n"
            .to_owned();
    for (peer, theirs) in &comparison.theirs {
        let pairs = || comparison.ours.iter().zip(theirs);
        let same_status = pairs().filter(|(ours, theirs)| ours.status == theirs.status).count();
        let same = pairs().filter(|(ours, theirs)| ours.differences(theirs).iter().all(is_small)).count();
        let all = comparison.cases.len();
        text.push_str(&format!("| {} | {same_status} of {all} requests | {same} |\n", peer.name()));
    }
    text
}

/// What nobody would miss.
fn is_small(difference: &Difference) -> bool {
    matches!(difference.aspect.as_str(), "Connection" | "server")
}

/// Differences of the same kind in one row.
fn table(comparison: &Comparison, found: &[Found]) -> String {
    let mut rows: BTreeMap<(&Difference, Peer), BTreeSet<usize>> = BTreeMap::new();
    for Found { difference, peer, request } in found {
        rows.entry((difference, *peer)).or_default().insert(*request);
    }
    // Where they differ from us in the same way, they share a row.
    let mut shared: BTreeMap<(BTreeSet<usize>, &Difference), Vec<&str>> = BTreeMap::new();
    for ((difference, peer), requests) in rows {
        shared.entry((requests, difference)).or_default().push(peer.name());
    }
    let mut text = "| request | what | Shearwater | the other | |\n|---|---|---|---|---|\n".to_owned();
    for ((requests, difference), peers) in shared {
        let Difference { aspect, ours, theirs } = difference;
        let named = named(comparison, &requests);
        let cells = [aspect.as_str(), ours, theirs, &peers.join(", ")].map(escaped).join(" | ");
        text.push_str(&format!("| {named} | {cells} |\n"));
    }
    text
}

/// A few requests by their names, more by their numbers.
fn named(comparison: &Comparison, requests: &BTreeSet<usize>) -> String {
    if requests.len() <= NAMED_MAX {
        let names = requests.iter().map(|&request| shown(&comparison.cases[request]));
        return names.collect::<Vec<_>>().join("<br>");
    }
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in requests.iter().map(|request| request + 1) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let runs = runs.iter().map(|&(first, last)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}–{last}"),
    });
    format!("{} requests: {}", requests.len(), runs.collect::<Vec<_>>().join(", "))
}

fn shown(case: &Case) -> String {
    format!("{}: `{}`", case.site.name(), escaped(&case.name))
}

/// Text in a cell of a table.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Every request with the status of each answer.
fn requests(comparison: &Comparison) -> String {
    let mut text =
        "\n## Requests\n\n| | request | Shearwater | nginx | static-web-server |\n|---|---|---|---|---|\n"
            .to_owned();
    for (number, case) in comparison.cases.iter().enumerate() {
        text.push_str(&start_of_row(number, case, &comparison.ours[number]));
        for peer in Peer::ALL {
            text.push_str(&format!(" {} |", comparison.theirs[&peer][number].status));
        }
        text.push('\n');
    }
    text
}

/// It has a digest of this server's whole answer, which readers don't see.
fn start_of_row(number: usize, case: &Case, ours: &Outcome) -> String {
    format!("| {}<!-- {:08x} --> | {} | {} |", number + 1, ours.digest(), shown(case), ours.status)
}

/// Where this server answers otherwise than when the page was written: request and answer.
pub(super) fn wrong_of_ours(page: &str, cases: &[Case], ours: &[Outcome]) -> Vec<String> {
    let rows: Vec<&str> = page.lines().collect();
    let is_wrong = |(number, (case, ours)): &(usize, (&Case, &Outcome))| {
        let start = start_of_row(*number, case, ours);
        !rows.iter().any(|row| row.starts_with(&start))
    };
    let wrong = cases.iter().zip(ours).enumerate().filter(is_wrong);
    wrong.map(|(number, (case, ours))| format!("{}: {}: {}", number + 1, shown(case), ours.shown())).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Case, Comparison, Outcome, Peer, says_the_same, text, wrong_of_ours};
    use crate::compare::exchange::{After, Answer};
    use crate::compare::sites::Site;

    fn outcome(status: u16) -> Outcome {
        let (fields, body, interim) = (Vec::new(), Vec::new(), Vec::new());
        let version = Some("HTTP/1.1".to_owned());
        Outcome::of(Some(&Answer { version, status, fields, body, interim, after: After::Closes }), false)
    }

    /// `/bare/`, answered so by nginx.
    fn page(nginx: u16, version: &str) -> (String, usize) {
        let cases = vec![Case::usual(Site::Plain, "GET", "/bare/", "")];
        let theirs = [(Peer::Nginx, vec![outcome(nginx)]), (Peer::StaticWebServer, vec![outcome(404)])];
        let comparison = Comparison::new(cases, vec![outcome(404)], theirs.into());
        let versions = BTreeMap::from([(Peer::Nginx, version.to_owned())]);
        (text(&comparison, &versions), comparison.unlisted.len())
    }

    #[test]
    fn what_differs_is_in_the_page() {
        let (known, unlisted) = page(403, "1");
        assert_eq!(unlisted, 0);
        assert!(known.contains("| plain: `GET /bare/` | status | 404 | 403 | nginx |"), "{known}");
        assert!(known.contains(" --> | plain: `GET /bare/` | 404 | 403 | 404 |"), "{known}");
        assert!(says_the_same(&known, &page(403, "2").0));
        assert!(!says_the_same(&known, &page(404, "1").0));
        assert_eq!(page(200, "1").1, 1, "not listed");
    }

    #[test]
    fn the_page_holds_this_server_alone() {
        let cases = [Case::usual(Site::Plain, "GET", "/bare/", "")];
        let (page, _) = page(403, "1");
        assert_eq!(wrong_of_ours(&page, &cases, &[outcome(404)]), Vec::<String>::new());
        assert_eq!(wrong_of_ours(&page, &cases, &[outcome(403)]).len(), 1);
    }
}
