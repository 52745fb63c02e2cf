//! All responses with their differences, the causes of these, of `causes.toml`, and the page `results.md`, which is made of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::outcome::{ComparedResponse, Difference};
use super::requests::ComparedRequest;
use super::servers::Peer;
use crate::runner::workspace;

const CAUSES: &str = include_str!("../../data/compare/causes.toml");

/// Differences with the same cause.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cause {
    pub(super) title: String,
    pub(super) why: String,
    covers: Vec<Cover>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cover {
    peer: Option<Peer>,
    aspect: String,
    ours: String,
    theirs: String,
    #[serde(default)]
    of: Vec<String>,
}

#[derive(Deserialize)]
struct Causes {
    cause: Vec<Cause>,
}

impl Cover {
    fn covers(&self, request: &ComparedRequest, peer: Peer, difference: &Difference) -> bool {
        let matches = |pattern: &str, value: &str| pattern == "*" || pattern == value;
        let name = format!("{}: {}$", request.site, request.name);
        self.peer.is_none_or(|only| only == peer)
            && self.aspect == difference.aspect
            && matches(&self.ours, &difference.ours)
            && matches(&self.theirs, &difference.theirs)
            && (self.of.is_empty() || self.of.iter().any(|part| name.contains(part)))
    }
}

/// A difference, with the peer and the number of the request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FoundDifference {
    pub(super) difference: Difference,
    pub(super) peer: Peer,
    pub(super) request: usize,
}

/// All responses with their differences.
pub(super) struct Comparison {
    pub(super) requests: Vec<ComparedRequest>,
    pub(super) ours: Vec<Option<ComparedResponse>>,
    pub(super) theirs: BTreeMap<Peer, Vec<Option<ComparedResponse>>>,
    pub(super) causes: Vec<Cause>,
    /// Differences by the number of their cause.
    pub(super) caused: BTreeMap<usize, Vec<FoundDifference>>,
    without_cause: Vec<FoundDifference>,
    /// Covers without a difference.
    pub(super) stale: Vec<String>,
}

impl Comparison {
    /// Finds the first cause of each difference.
    pub(super) fn new(
        requests: Vec<ComparedRequest>,
        ours: Vec<Option<ComparedResponse>>,
        theirs: BTreeMap<Peer, Vec<Option<ComparedResponse>>>,
    ) -> Result<Self> {
        let Causes { cause: causes } = toml::from_str(CAUSES).context("causes.toml")?;
        let (mut caused, mut without_cause): (BTreeMap<usize, Vec<FoundDifference>>, _) =
            (BTreeMap::new(), Vec::new());
        let mut used: Vec<Vec<bool>> =
            causes.iter().map(|cause: &Cause| vec![false; cause.covers.len()]).collect();
        for (&peer, theirs) in &theirs {
            for (number, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
                let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
                for difference in ours.differences(theirs) {
                    let place = causes.iter().enumerate().find_map(|(cause, of)| {
                        let covers = |cover: &Cover| cover.covers(&requests[number], peer, &difference);
                        of.covers.iter().position(covers).map(|cover| (cause, cover))
                    });
                    let found = FoundDifference { difference, peer, request: number };
                    match place {
                        Some((cause, cover)) => {
                            used[cause][cover] = true;
                            caused.entry(cause).or_default().push(found);
                        }
                        None => without_cause.push(found),
                    }
                }
            }
        }
        let covers = causes.iter().zip(&used).flat_map(|(cause, used)| {
            cause.covers.iter().zip(used).filter(|(_, used)| !**used).map(move |(cover, _)| (cause, cover))
        });
        let stale = covers.map(|(cause, cover)| format!("{}: {cover:?}", cause.title)).collect();
        Ok(Self { requests, ours, theirs, causes, caused, without_cause, stale })
    }

    /// The differences without a cause, as text.
    pub(super) fn unlisted(&self) -> Vec<String> {
        let shown = |FoundDifference { difference, peer, request }: &FoundDifference| {
            let ComparedRequest { site, name, .. } = &self.requests[*request];
            let Difference { aspect, ours, theirs } = difference;
            format!("{site}: {name}: {aspect}: ours {ours}, {} {theirs}", peer.name())
        };
        self.without_cause.iter().map(shown).collect()
    }
}

/// Start of the line with the compared versions.
const VERSIONS: &str = "Compared with ";
/// Requests named in one row; more are listed by their numbers.
const NAMED_MAX: usize = 4;

const START: &str = include_str!("../../data/compare/results-start.txt");

/// The page's path.
pub(super) fn path() -> PathBuf {
    workspace().join("e2e/data/compare/results.md")
}

/// Reads the page.
pub(super) fn read() -> Result<String> {
    std::fs::read_to_string(path()).context("reading e2e/data/compare/results.md")
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
            different.push(format!("{start} {response}"));
        }
    }
    different
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{CAUSES, Causes, Comparison, Cover, Difference, START, different, read, says_the_same, text};
    use crate::compare::outcome::ComparedResponse;
    use crate::compare::requests::{ComparedRequest, all};
    use crate::compare::servers::Peer;

    #[test]
    fn a_cover_covers_what_it_says() {
        let request = all().unwrap().into_iter().find(|request| request.name == "GET /users/7").unwrap();
        let difference =
            Difference { aspect: "vary".to_owned(), ours: "Accept".to_owned(), theirs: "–".to_owned() };
        let covers = |line: &str| {
            let cover: Cover = toml::from_str(line).unwrap();
            cover.covers(&request, Peer::StaticWebServer, &difference)
        };
        assert!(covers("aspect = 'vary'\nours = 'Accept'\ntheirs = '*'"));
        assert!(covers("aspect = 'vary'\nours = '*'\ntheirs = '–'\nof = ['GET /b', 'spa: GET /users/7$']"));
        assert!(!covers("aspect = 'vary'\nours = '*'\ntheirs = '*'\nof = ['plain: ']"));
        assert!(!covers("aspect = 'vary'\nours = '*'\ntheirs = '*'\npeer = 'nginx'"));
        assert!(!covers("aspect = 'etag'\nours = '*'\ntheirs = '*'"));
        assert!(!covers("aspect = 'vary'\nours = 'Accept'\ntheirs = 'Accept'"));
    }

    #[test]
    fn every_cause_has_a_title_of_its_own() {
        let Causes { cause } = toml::from_str(CAUSES).unwrap();
        let mut titles: Vec<&str> = cause.iter().map(|cause| cause.title.as_str()).collect();
        titles.sort_unstable();
        titles.dedup();
        assert_eq!(titles.len(), cause.len());
        assert!(cause.iter().all(|cause| !cause.covers.is_empty() && cause.why.ends_with(['.', ')'])));
    }

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
    fn the_committed_page_has_the_start_and_every_cause() {
        let page = read().unwrap();
        let Causes { cause } = toml::from_str(CAUSES).unwrap();
        assert!(page.starts_with(START));
        for cause in cause {
            assert!(page.contains(&format!("\n### {}\n\n{}\n", cause.title, cause.why)), "{}", cause.title);
        }
    }

    #[test]
    fn the_page_knows_our_responses() {
        let (page, _) = page(403, "1");
        assert_eq!(different(&page, &[request()], &[outcome(404)]), Vec::<String>::new());
        assert_eq!(different(&page, &[request()], &[outcome(403)]).len(), 1);
    }
}
