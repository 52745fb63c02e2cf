//! Serving until a signal ends it.

use std::io::Write;

use crate::args::Serve;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::{print_if_open, report, unused_siblings};

/// Starts the server, prints the start report, and serves until it is stopped.
pub(crate) fn serve(serve: &Serve) -> Result<(), Failure> {
    let plan = Plan::new(&serve.expanded()?)?;
    // A closed standard error is no reason not to start.
    drop(write!(std::io::stderr(), "{}", plan.warnings()));
    let Plan { server, site, overridden, .. } = plan;
    // The configuration as parsed takes ten times the memory of the sites that were made of it.
    shearwater_allocator::give_back();
    let sites = site.sites.clone();
    let running =
        server.handle_signals().at_rest(shearwater_allocator::give_back).start(move |_| sites.service())?;
    print_if_open(&report::start(&site, running.start_report(), &overridden));
    unused_siblings::warn_in_background(site.roots);
    let summary = running.wait()?;
    print_if_open(&report::end(&summary));
    Ok(())
}
