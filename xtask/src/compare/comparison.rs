//! Every request to every server, and what the answers differ in.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use super::case::Case;
use super::causes::{self, Cause};
use super::exchange::{Answer, exchange};
use super::outcome::{Difference, Outcome};
use super::sites::Site;
use crate::harness::trouble::{self, During};

/// A server that this one is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Peer {
    Nginx,
    StaticWebServer,
}

impl Peer {
    pub(super) const ALL: [Self; 2] = [Self::Nginx, Self::StaticWebServer];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::StaticWebServer => "static-web-server",
        }
    }
}

/// Where a server listens for each site.
pub(super) type Addresses = BTreeMap<Site, SocketAddr>;

/// What one server answers to every request.
pub(super) fn outcomes(cases: &[Case], addresses: &Addresses) -> trouble::Outcome<Vec<Outcome>> {
    cases.iter().map(|case| outcome(case, addresses[&case.site])).collect()
}

fn outcome(case: &Case, address: SocketAddr) -> trouble::Outcome<Outcome> {
    let ask = |request: &[u8]| -> trouble::Outcome<Option<Answer>> {
        exchange(request, address).during(&format!("asking {address} for {}", case.name))
    };
    let known = match case.before() {
        Some(before) => ask(before)?,
        None => None,
    };
    Ok(Outcome::of(ask(&case.request(known.as_ref()))?.as_ref(), case.site == Site::List))
}

/// A difference of one answer, with the server that it is to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Found {
    pub(super) difference: Difference,
    pub(super) peer: Peer,
    /// The request's number.
    pub(super) request: usize,
}

/// What the answers come to.
pub(super) struct Comparison {
    pub(super) cases: Vec<Case>,
    pub(super) ours: Vec<Outcome>,
    pub(super) theirs: BTreeMap<Peer, Vec<Outcome>>,
    /// Differences by the place of what is said for them.
    pub(super) argued: BTreeMap<usize, Vec<Found>>,
    pub(super) unlisted: Vec<Found>,
    /// What is said of differences that there are none of.
    pub(super) stale: Vec<String>,
}

impl Comparison {
    pub(super) fn new(cases: Vec<Case>, ours: Vec<Outcome>, theirs: BTreeMap<Peer, Vec<Outcome>>) -> Self {
        let (argued, unlisted, stale) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut comparison = Self { cases, ours, theirs, argued, unlisted, stale };
        comparison.sort_out(&causes::all());
        comparison
    }

    /// Finds for each difference the first cause that covers it.
    fn sort_out(&mut self, causes: &[&Cause]) {
        let mut used: Vec<Vec<bool>> = causes.iter().map(|cause| vec![false; cause.covers.len()]).collect();
        for (&peer, theirs) in &self.theirs {
            for (request, (ours, theirs)) in self.ours.iter().zip(theirs).enumerate() {
                for difference in ours.differences(theirs) {
                    let case = &self.cases[request];
                    let covered = causes.iter().enumerate().find_map(|(number, cause)| {
                        cause.cover_of(case, peer, &difference).map(|cover| (number, cover))
                    });
                    let found = Found { difference, peer, request };
                    match covered {
                        Some((cause, cover)) => {
                            used[cause][cover] = true;
                            self.argued.entry(cause).or_default().push(found);
                        }
                        None => self.unlisted.push(found),
                    }
                }
            }
        }
        for (cause, used) in causes.iter().zip(used) {
            let unused = cause.covers.iter().zip(used).filter(|(_, used)| !used);
            self.stale.extend(unused.map(|(cover, _)| format!("{}: {cover:?}", cause.title)));
        }
    }

    /// Prints what keeps it from passing.
    pub(super) fn print(&self) {
        for Found { difference: Difference { aspect, ours, theirs }, peer, request } in &self.unlisted {
            let case = &self.cases[*request];
            let place = format!("{}: {}", case.site.name(), case.name);
            println!("NOT LISTED: {place}: {aspect}: ours {ours}, {} {theirs}", peer.name());
        }
        for stale in &self.stale {
            println!("LISTED, BUT DID NOT SHOW: {stale}");
        }
    }
}
