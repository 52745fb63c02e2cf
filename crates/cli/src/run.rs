//! From arguments to a server that serves, and to its end.

use std::io::Write;

use shearwater::Summary;

use crate::args::Serve;
use crate::configured::{self, Plan};
use crate::failure::Failure;
use crate::{banner, say, unused_siblings};

/// Serves until it is told to end.
pub(crate) fn run(serve: &Serve) -> Result<(), Failure> {
    let serve = &serve.understood()?;
    let Plan { server, site, cache, replaced, warnings, .. } = configured::plan(serve)?;
    // With standard error closed there is nobody to warn.
    drop(write!(std::io::stderr(), "{warnings}"));
    let served = site.clone();
    let running = server
        .handle_signals()
        .at_rest(shearwater_allocator::give_back)
        .start(move |_| served.service(cache))?;
    say(&banner::start(&site, running.start_report(), &replaced));
    unused_siblings::warn_in_background(site.roots());
    let summary = running.wait()?;
    say(&farewell(&summary));
    Ok(())
}

fn farewell(summary: &Summary) -> String {
    let totals = &summary.totals;
    let (requests, connections) =
        (banner::grouped(totals.requests), banner::grouped(totals.connections_accepted));
    let refused = banner::grouped(totals.requests_refused);
    format!("Ended: {requests} requests answered and {refused} refused on {connections} connections.\n")
}
