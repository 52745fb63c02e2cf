//! Groups `compare` and `peers`: the same requests to Shearwater, nginx and static-web-server, configured as alike as they can be.
//!
//! `requests.txt`, `sites.conf` and `causes.toml` in `e2e/data/compare` have the requests, the sites and the cause of each difference.
//! `results.md` beside them is made of them; it has a digest of each of our responses, by which they are held without the other servers.

mod comparison;
mod outcome;
mod requests;
mod servers;

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use self::comparison::Comparison;
use self::outcome::{ComparedResponse, exchange};
use self::requests::ComparedRequest;
use self::servers::{ComparedSites, Peer, Servers};
use crate::context::CaseContext;
use crate::report::CaseReport;

const GET_PEERS: &str =
    "help: nginx: `apt-get install nginx`; static-web-server: `cargo lab setup --build-peers`";

/// Compares our responses with those that `results.md` was made of.
pub(crate) fn ours(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let (sites, requests) = (ComparedSites::lay_out(context)?, requests::all()?);
    let mut servers = Servers::ours(context, &sites)?;
    let outcomes = outcomes(&servers, &sites, &requests)?;
    let wrong = comparison::different(&comparison::read()?, &requests, &outcomes);
    report.note("requests", requests.len());
    report.none("responses other than in e2e/data/compare/results.md", &wrong);
    servers.stop(report);
    Ok(())
}

/// Compares our responses with those of the other servers, and `results.md` with both.
pub(crate) fn peers(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let (sites, requests) = (ComparedSites::lay_out(context)?, requests::all()?);
    let mut servers = Servers::ours(context, &sites)?;
    let ours = outcomes(&servers, &sites, &requests)?;
    let (mut theirs, mut versions) = (BTreeMap::new(), BTreeMap::new());
    for peer in Peer::ALL {
        let version = peer.version();
        ensure!(version.is_some(), "{} is not installed\n{GET_PEERS}", peer.name());
        versions.extend(version.map(|version| (peer, version)));
        let servers = Servers::of(peer, context, &sites)?;
        theirs.insert(peer, outcomes(&servers, &sites, &requests)?);
    }
    let comparison = Comparison::new(requests, ours, theirs)?;
    report.note("requests", comparison.requests.len());
    report.note("differences with a cause", comparison.caused.values().map(Vec::len).sum::<usize>());
    report.none("differences without a cause", &comparison.unlisted());
    report.none("causes of no difference", &comparison.stale);
    let page = comparison::text(&comparison, &versions);
    if context.args.write && report.passed() {
        std::fs::write(comparison::path(), page)?;
        report.note("results.md", "written");
    } else {
        let same = comparison::says_the_same(&comparison::read()?, &page);
        report.check("results.md", if same { "same" } else { "differs, see --write" }, "same", same);
    }
    servers.stop(report);
    Ok(())
}

/// Sends every request to the servers; `None` for sites that they don't have.
fn outcomes(
    servers: &Servers,
    sites: &ComparedSites,
    requests: &[ComparedRequest],
) -> Result<Vec<Option<ComparedResponse>>> {
    let outcome = |request: &ComparedRequest| {
        let Some(address) = servers.address(&request.site) else { return Ok(None) };
        let first = request.first().map(|bytes| exchange(&bytes, address)).transpose()?.flatten();
        let received =
            exchange(&request.bytes(first.and_then(|received| received.response).as_ref()), address)?;
        Ok(Some(ComparedResponse::new(received.as_ref(), request, sites)))
    };
    requests.iter().map(outcome).collect()
}
