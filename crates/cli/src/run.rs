//! From arguments to a server that serves, and to its end.

use std::io::Write;

use shearwater::{Server, Summary};

use crate::args::Args;
use crate::banner;
use crate::failure::Failure;
use crate::site::Site;

/// Serves until it is told to end.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let site = Site::open(args.dir.as_deref())?;
    let server = Server::new(args.listen.as_str())
        .workers(usize::from(args.workers))
        .driver(args.driver.into())
        .accept_mode(args.accept.into())
        .pin(args.pin)
        .drain_ms(u64::from(args.drain) * 1000)
        .handle_signals();
    let served = site.clone();
    let running = server.start(move |_| served.service())?;
    say(&banner::start(&site, running.start_report()));
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

/// Prints to standard output. A closed one is no reason not to serve.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}
