//! The causes of differences, of `causes.toml`.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::outcome::{ComparedResponse, Difference};
use super::requests::ComparedRequest;
use super::servers::Peer;

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

#[cfg(test)]
mod tests {
    use super::{CAUSES, Causes, Cover, Difference};
    use crate::compare::requests::all;
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
}
