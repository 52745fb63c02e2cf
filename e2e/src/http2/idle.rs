//! Case `http2/idle-connections`: memory of thousands of idle connections over TLS, each after a request.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use testkit::http2::Http2Client;
use testkit::{Error, Stream, process};

use super::{Origins, client_tls};
use crate::context::CaseContext;
use crate::report::{CaseReport, shown};
use crate::usage::{Usage, core_percent};

const PAGE: &[u8] = b"the same page for every connection\n";
const WARM_UP: u64 = 200;
/// Time after which an idle connection keeps only what it needs, with a margin.
const TRIMMED_AFTER: Duration = Duration::from_secs(4);
const CPU_WINDOW: Duration = Duration::from_secs(2);
/// Resident memory of an idle connection with its TLS session, bytes.
const IDLE_BYTES_MAX: f64 = 8.0 * 1024.0;
/// CPU of a server with idle connections only, per cent of a core.
const IDLE_CPU_MAX: f64 = 1.0;
const SETTLE: Duration = Duration::from_secs(20);

fn request(client: &mut Http2Client<Stream>) -> Result<(), Error> {
    let stream = client.send("GET", "/page.txt", &[], b"")?;
    let response = client.response(stream)?;
    if response.status == 200 && response.body == PAGE {
        return Ok(());
    }
    Err(Error::Malformed(format!("{response:?}")))
}

fn open(origins: Origins, count: u64) -> Result<Vec<Http2Client<Stream>>, Error> {
    let tls = client_tls()?;
    let open = |_| {
        let mut client = origins.connect_by_tls(&tls)?;
        request(&mut client)?;
        Ok(client)
    };
    (0..count).map(open).collect()
}

/// Opens the connections, leaves them idle, requests once more on each, and closes them.
pub(crate) fn run(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    context.write_file("public/page.txt", PAGE)?;
    let origins = Origins::new()?;
    let mut server = origins.serve(context, "")?;
    let cold = Usage::of(&server);
    drop(open(origins, WARM_UP)?);
    Usage::settled(&server, cold, SETTLE);
    thread::sleep(TRIMMED_AFTER);
    let before = Usage::of(&server);

    let count = context.count(2_000, 10_000);
    let opening = Instant::now();
    let mut clients = open(origins, count)?;
    report.note("seconds to open them", format!("{:.1}", opening.elapsed().as_secs_f64()));
    thread::sleep(TRIMMED_AFTER);
    let (cpu, slept) = (process::cpu_ns(server.pid()), Instant::now());
    thread::sleep(CPU_WINDOW);
    let cpu = core_percent(cpu, process::cpu_ns(server.pid()), slept.elapsed());
    let idle = Usage::of(&server);
    let errors: Vec<Error> = clients.iter_mut().filter_map(|client| request(client).err()).collect();
    drop(clients);
    let after = Usage::settled(&server, before, SETTLE);

    ensure!(count > 0, "no connections");
    report.none(format!("{count} connections, two requests each: errors"), &errors);
    report.note("resident before, KiB", shown(before.rss_kib));
    report.note("resident while all are idle, KiB", shown(idle.rss_kib));
    let bytes = |usage: Usage| usage.rss_kib.map(|kib| kib * 1024 / count);
    report.growth("resident for each", bytes(before), bytes(idle), IDLE_BYTES_MAX, "bytes");
    report.at_most("CPU while all are idle", cpu, IDLE_CPU_MAX, "% of a core");
    report.growth("descriptors, growth", before.descriptors, after.descriptors, 0.0, "");
    report.stop(&mut server);
    Ok(())
}
