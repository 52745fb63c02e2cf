//! `docs/compare.md`: made of a comparison, and compared with one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::causes::{Comparison, FoundDifference};
use super::outcome::{ComparedResponse, Difference};
use super::requests::ComparedRequest;
use super::servers::Peer;
use crate::runner::workspace;

/// Start of the line with the compared versions.
const VERSIONS: &str = "Compared with ";
/// Requests named in one row; more are listed by their numbers.
const NAMED_MAX: usize = 4;

const START: &str = "# Compared

How a static site responds, request by request: Shearwater beside nginx and static-web-server, over the same files and with configurations as alike as they
can be. Every difference in status, headers, content, and in what happens to the connection is listed with its cause. `cargo e2e peers --write` writes
this page, and `cargo e2e peers` fails if a difference isn't in it, or the other way round; `cargo e2e compare` fails if a response of Shearwater's has changed.

Not compared are values of each server's own: the date, the name of the server, the text of a tag (but whether it is strong), the words of errors and lists.
Where the status differs, headers are not compared: they follow from it. Section numbers are those of RFC 9110 unless another is named.

`plain`, `spa`, `clean`, `list` and `parts` are sites: files with an error page, a redirect, rules on caching and headers; a single-page application; pages
without their extension; listed folders; ranges of files, without static-web-server. Files and configurations are in `e2e/data/compare/sites.conf`. A
request is one of HTTP/1.1 with a `Host`, or `raw` bytes, with dots for line ends. `TAG` and `DATE` are what the server said of the file before. “–” is a
missing header. More than four requests are listed by their numbers in the [table of requests](#requests).

";

/// The page's path.
pub(super) fn path() -> PathBuf {
    workspace().join("docs/compare.md")
}

/// Reads the page.
pub(super) fn read() -> Result<String> {
    std::fs::read_to_string(path()).context("reading docs/compare.md")
}

/// Returns true if two pages say the same, apart from the versions.
pub(super) fn says_the_same(page: &str, other: &str) -> bool {
    let lines = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with(VERSIONS));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    lines(page) == lines(other)
}

/// Returns the page of a comparison.
pub(super) fn text(comparison: &Comparison, versions: &BTreeMap<Peer, String>) -> String {
    let names: Vec<String> =
        versions.iter().map(|(peer, version)| format!("{} {version}", peer.name())).collect();
    let mut text = format!("{START}{VERSIONS}{}, on Linux.\n\n{}", names.join(" and "), summary(comparison));
    text.push_str("\n## Differences\n");
    for (&cause, found) in &comparison.caused {
        let cause = &comparison.causes[cause];
        text.push_str(&format!("\n### {}\n\n{}\n\n{}", cause.title, cause.why, table(comparison, found)));
    }
    text.push_str(
        "\n## Requests\n\n| | request | Shearwater | nginx | static-web-server |\n|---|---|---|---|---|\n",
    );
    for (number, request) in comparison.requests.iter().enumerate() {
        text.push_str(&start_of_row(number, request, comparison.ours[number].as_ref()));
        let status = |peer| comparison.theirs.get(&peer).and_then(|theirs| theirs[number].as_ref());
        let statuses = Peer::ALL.map(|peer| status(peer).map_or("–", |outcome| &outcome.status));
        text.push_str(&format!(" {} | {} |\n", statuses[0], statuses[1]));
    }
    text
}

fn summary(comparison: &Comparison) -> String {
    let is_small = |difference: &Difference| matches!(difference.aspect.as_str(), "Connection" | "server");
    let mut text =
        "| | the same status | the same in everything but `Connection` and `Server` |\n|---|---|---|\n"
            .to_owned();
    for (peer, theirs) in &comparison.theirs {
        let pairs = || {
            comparison.ours.iter().zip(theirs).filter_map(|(ours, theirs)| ours.as_ref().zip(theirs.as_ref()))
        };
        let same_status = pairs().filter(|(ours, theirs)| ours.status == theirs.status).count();
        let same = pairs().filter(|(ours, theirs)| ours.differences(theirs).iter().all(is_small)).count();
        let all = pairs().count();
        text.push_str(&format!("| {} | {same_status} of {all} requests | {same} |\n", peer.name()));
    }
    text
}

/// A table of differences, those that are alike in one row.
fn table(comparison: &Comparison, found: &[FoundDifference]) -> String {
    let mut rows: BTreeMap<(&Difference, Peer), BTreeSet<usize>> = BTreeMap::new();
    for FoundDifference { difference, peer, request } in found {
        rows.entry((difference, *peer)).or_default().insert(*request);
    }
    // Peers that differ in the same way share a row.
    let mut shared: BTreeMap<(BTreeSet<usize>, &Difference), Vec<&str>> = BTreeMap::new();
    for ((difference, peer), requests) in rows {
        shared.entry((requests, difference)).or_default().push(peer.name());
    }
    let mut text = "| request | what | Shearwater | the other | |\n|---|---|---|---|---|\n".to_owned();
    for ((requests, Difference { aspect, ours, theirs }), peers) in shared {
        let cells = [aspect, ours, theirs, &peers.join(", ")].map(|cell| escaped(cell)).join(" | ");
        text.push_str(&format!("| {} | {cells} |\n", named(comparison, &requests)));
    }
    text
}

/// Names a few requests, or lists their numbers.
fn named(comparison: &Comparison, requests: &BTreeSet<usize>) -> String {
    if requests.len() <= NAMED_MAX {
        let names = requests.iter().map(|&request| shown(&comparison.requests[request]));
        return names.collect::<Vec<_>>().join("<br>");
    }
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for number in requests.iter().map(|request| request + 1) {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let run = |&(first, last): &(usize, usize)| {
        if first == last { first.to_string() } else { format!("{first}–{last}") }
    };
    format!("{} requests: {}", requests.len(), runs.iter().map(run).collect::<Vec<_>>().join(", "))
}

fn shown(request: &ComparedRequest) -> String {
    format!("{}: `{}`", request.site, escaped(&request.name))
}

/// Escapes text in a cell of a table.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Begins a row with a digest of our whole response, which readers don't see.
fn start_of_row(number: usize, request: &ComparedRequest, ours: Option<&ComparedResponse>) -> String {
    let (digest, status) = ours.map_or((0, "–"), |ours| (ours.digest(), &ours.status));
    format!("| {}<!-- {digest:08x} --> | {} | {status} |", number + 1, shown(request))
}

/// Returns our responses that differ from those that the page was made of.
pub(super) fn different(
    page: &str,
    requests: &[ComparedRequest],
    ours: &[Option<ComparedResponse>],
) -> Vec<String> {
    let rows: Vec<&str> = page.lines().collect();
    let mut different = Vec::new();
    for (number, (request, ours)) in requests.iter().zip(ours).enumerate() {
        let start = start_of_row(number, request, ours.as_ref());
        if !rows.iter().any(|row| row.starts_with(&start)) {
            let response = ours.as_ref().map_or(String::new(), ComparedResponse::shown);
            different.push(format!("{}: {}: {response}", number + 1, shown(request)));
        }
    }
    different
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{different, says_the_same, text};
    use crate::compare::causes::Comparison;
    use crate::compare::outcome::ComparedResponse;
    use crate::compare::requests::{ComparedRequest, all};
    use crate::compare::servers::Peer;

    fn request() -> ComparedRequest {
        all().unwrap().into_iter().find(|request| request.name == "GET /bare/").unwrap()
    }

    fn outcome(status: u16) -> Option<ComparedResponse> {
        Some(ComparedResponse { status: status.to_string(), aspects: Vec::new() })
    }

    /// Returns the page if nginx responds so to `/bare/`, and the number of differences without a cause.
    fn page(nginx: u16, version: &str) -> (String, usize) {
        let theirs = [(Peer::Nginx, vec![outcome(nginx)]), (Peer::StaticWebServer, vec![outcome(404)])];
        let comparison = Comparison::new(vec![request()], vec![outcome(404)], theirs.into()).unwrap();
        let versions = BTreeMap::from([(Peer::Nginx, version.to_owned())]);
        (text(&comparison, &versions), comparison.unlisted().len())
    }

    #[test]
    fn the_page_has_every_difference() {
        let (known, unlisted) = page(403, "1");
        assert_eq!(unlisted, 0);
        assert!(known.contains("| plain: `GET /bare/` | status | 404 | 403 | nginx |"), "{known}");
        assert!(known.contains(" --> | plain: `GET /bare/` | 404 | 403 | 404 |"), "{known}");
        assert!(says_the_same(&known, &page(403, "2").0));
        assert!(!says_the_same(&known, &page(404, "1").0));
        assert_eq!(page(200, "1").1, 1, "no cause");
    }

    #[test]
    fn the_page_knows_our_responses() {
        let (page, _) = page(403, "1");
        assert_eq!(different(&page, &[request()], &[outcome(404)]), Vec::<String>::new());
        assert_eq!(different(&page, &[request()], &[outcome(403)]).len(), 1);
    }
}
