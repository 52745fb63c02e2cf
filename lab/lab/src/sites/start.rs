//! How soon a server answers after its start, and what it holds then.

use std::time::Instant;

use super::{Sites, Stage};
use crate::process::{Server, free_address};
use crate::{memory, probe};

/// A start.
pub(super) struct Started {
    /// To its first answer.
    pub(super) seconds: f64,
    /// Resident then, and at most until then.
    pub(super) now_mib: f64,
    pub(super) peak_mib: f64,
}

pub(super) fn measure(stage: &Stage<'_>, sites: Sites) -> Result<Started, String> {
    let address = free_address(&mut 0)?;
    let launch = stage.launch(sites, address)?;
    let begun = Instant::now();
    let server = Server::start(&launch, address, &stage.site.folder().join("start.log"))?;
    let answer = probe::get_from(address, &sites.host(0), &format!("/{}", super::FILE))?;
    let seconds = begun.elapsed().as_secs_f64();
    if answer.status != 200 {
        return Err(format!("{sites}: the first answer is a {}", answer.status));
    }
    let held = memory::of_processes(server.ids());
    let mib = |kib: u64| kib as f64 / 1024.0;
    Ok(Started { seconds, now_mib: mib(held.now_kib), peak_mib: mib(held.peak_kib) })
}
