//! Group `panic`: a panicking handler costs its own request and nothing else.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use testkit::Error;

use crate::context::{CaseContext, KeptClient, Usage, in_threads};
use crate::report::{CaseReport, shown};

/// Growth of resident memory after the warm-up, KiB.
const GROWTH_MAX_KIB: f64 = 1024.0;
/// Time that the server has to notice the last clients' ends.
const SETTLE: Duration = Duration::from_secs(5);
const CLIENTS: u64 = 4;

/// Alternates panicking and good requests, then compares memory and descriptors.
pub(crate) fn panics(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let mut server = context.example(&[])?;
    let at_start = Usage::of(&server);
    let panics = context.amount.count(2_000, 100_000);
    let warm_up = provoke(server.address(), context.amount.count(500, 5_000));
    let before = Usage::settled(&server, at_start, SETTLE);
    let errors = provoke(server.address(), panics);
    let after = Usage::settled(&server, before, SETTLE);
    report.note("panicking requests, and as many good ones", panics);
    report.none("wrong responses", &[warm_up, errors].concat());
    report.growth("descriptors, growth", before.descriptors, after.descriptors, 0.0, "");
    report.note("resident after, KiB", shown(after.rss_kib));
    report.growth("resident, growth", before.rss_kib, after.rss_kib, GROWTH_MAX_KIB, "KiB");
    report.stop(&mut server);
    Ok(())
}

/// Sends `panics` requests to the panicking route, each followed by a good one. Returns the errors.
fn provoke(address: SocketAddr, panics: u64) -> Vec<String> {
    let next = AtomicU64::new(0);
    let errors = in_threads(CLIENTS, |_| {
        let mut errors = Vec::new();
        let (mut panicking, mut good) = (KeptClient::new(address), KeptClient::new(address));
        while next.fetch_add(1, Ordering::Relaxed) < panics && errors.len() < 100 {
            match panicking.request("GET", "/panic", &[]) {
                Ok(response) if response.status() == 500 => {}
                // The worker has reported and closed before the response could be queued.
                Err(Error::Closed) => {}
                Ok(response) => errors.push(format!("/panic: status {}", response.status())),
                Err(error) => errors.push(format!("/panic: {error}")),
            }
            match good.request("GET", "/", &[]) {
                Ok(response) if response.status() == 200 && response.body == b"Hello, world\n" => {}
                Ok(response) => errors.push(format!("/: {:?}", response.head.text())),
                Err(error) => errors.push(format!("/: {error}")),
            }
        }
        errors
    });
    errors.concat()
}
