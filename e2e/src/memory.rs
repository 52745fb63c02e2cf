//! Group `memory`: idle connections, waiting requests and panics cost little.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow};
use testkit::{Client, Error, Program, Response, process, request};

use crate::context::{CaseContext, KeptClient, Usage, core_percent, in_threads, wait_until};
use crate::report::{CaseReport, shown};

/// Connections before the first measurement.
const WARM_UP: u64 = 100;
/// Reading stops after so many errors: each may take a timeout.
const ERRORS_MAX: usize = 3;
const CONNECTIONS: u64 = 15_000;
const REQUESTS: u64 = 10_000;
/// Resident memory of an idle connection, bytes.
const IDLE_BYTES_MAX: f64 = 96.0;
/// CPU of a server with idle connections only, per cent of a core.
const IDLE_CPU_MAX: f64 = 1.0;
const IDLE: Duration = Duration::from_secs(2);
/// Resident memory of a request whose handler waits, by the kind of handler, bytes.
const WAITING_BYTES_MAX: [(&str, f64); 2] = [("async", 3072.0), ("coroutine", 8192.0)];
/// Clients that provoke panics.
const CLIENTS: u64 = 4;
/// Growth of resident memory by panics, KiB.
const PANICS_KIB_MAX: f64 = 1024.0;
/// Time that the server has to notice the last clients' ends.
const SETTLE: Duration = Duration::from_secs(5);
/// Timeouts that don't close a connection during the case, milliseconds.
const LONG_TIMEOUT_MS: u64 = 120_000;
const TIMEOUT: Duration = Duration::from_secs(20);

fn connect(server: &Program, count: u64) -> Result<Vec<Client>> {
    (0..count).map(|_| Client::connect(server.address())).collect::<Result<_, Error>>().context("connecting")
}

/// Sends the same request on every connection before it reads the first response. Returns the errors.
fn round(clients: &mut [Client], bytes: &[u8], body: &[u8]) -> Vec<Error> {
    let mut errors: Vec<Error> = clients.iter_mut().filter_map(|client| client.send(bytes).err()).collect();
    errors.extend(read(clients, body));
    errors
}

fn read(clients: &mut [Client], body: &[u8]) -> Vec<Error> {
    let wrong = |client: &mut Client| match client.response() {
        Ok(response) if response.status() == 200 && response.body == body => None,
        Ok(response) => Some(Error::Malformed(response.head.text().to_owned())),
        Err(error) => Some(error),
    };
    clients.iter_mut().filter_map(wrong).take(ERRORS_MAX).collect()
}

fn report_each(
    report: &mut CaseReport,
    what: &str,
    [before, during]: [Usage; 2],
    count: u64,
    bytes_max: f64,
) {
    report.note(format!("{what}: resident before, KiB"), shown(before.rss_kib));
    report.note(format!("{what}: resident during, KiB"), shown(during.rss_kib));
    let bytes = |usage: Usage| usage.rss_kib.map(|kib| kib * 1024 / count);
    report.growth(format!("{what}: resident for each"), bytes(before), bytes(during), bytes_max, "bytes");
}

/// Opens thousands of keep-alive connections, leaves them idle between two rounds of requests, and closes them.
pub(crate) fn idle_connections(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    const PAGE: &[u8] = b"the same page for every connection\n";
    context.write_file("public/page.txt", PAGE)?;
    let mut server = context.serve(&context.folder.join("public"))?;
    let bytes = request("GET", "/page.txt", &[]);
    let cold = Usage::of(&server);
    round(&mut connect(&server, WARM_UP)?, &bytes, PAGE);
    let before = Usage::settled(&server, cold, Duration::from_secs(1));

    let count = CONNECTIONS;
    let mut clients = connect(&server, count)?;
    let mut errors = round(&mut clients, &bytes, PAGE);
    let (cpu, slept) = (process::cpu_ns(server.pid()), Instant::now());
    thread::sleep(IDLE);
    let cpu = core_percent(cpu, process::cpu_ns(server.pid()), slept.elapsed());
    let idle = Usage::of(&server);
    errors.extend(round(&mut clients, &bytes, PAGE));
    drop(clients);
    let after = Usage::settled(&server, before, TIMEOUT);

    report.none(format!("{count} connections, two requests each: errors"), &errors);
    report.at_most("CPU while all are idle", cpu, IDLE_CPU_MAX, "% of a core");
    report_each(report, "idle connections", [before, idle], count, IDLE_BYTES_MAX);
    report.growth("descriptors, growth", before.descriptors, after.descriptors, 0.0, "");
    report.stop(&mut server);
    Ok(())
}

/// Sends thousands of requests whose handlers wait at once, and then lets all respond.
pub(crate) fn waiting_requests(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let context = context.with_one_worker();
    let count = REQUESTS;
    for (kind, bytes_max) in WAITING_BYTES_MAX {
        let timeouts = ["SHEARWATER_HEADER_TIMEOUT_MS", "SHEARWATER_IDLE_TIMEOUT_MS"];
        let mut server = context.example(&timeouts.map(|name| (name, LONG_TIMEOUT_MS)))?;
        let bytes = request("GET", &format!("/{kind}/held"), &[]);
        let cold = Usage::of(&server);
        wait_and_release(&server, connect(&server, WARM_UP)?, &bytes, WARM_UP)?;
        let at_start = Usage::settled(&server, cold, Duration::from_secs(1));
        let clients = connect(&server, count)?;
        // The last connection is accepted once a later one has a response.
        number(&server, "/held")?;
        let before = Usage::of(&server);
        let (waiting, during, errors) = wait_and_release(&server, clients, &bytes, count)?;
        let after = Usage::settled(&server, at_start, TIMEOUT);

        report.equal(format!("{kind}: requests that wait at once"), waiting, count);
        report.none(format!("{kind}: errors"), &errors);
        report_each(report, kind, [before, during], count, bytes_max);
        let what = format!("{kind}: descriptors, growth");
        report.growth(what, at_start.descriptors, after.descriptors, 0.0, "");
        report.stop(&mut server);
    }
    Ok(())
}

/// Returns how many requests waited at once, the memory at that moment, and the errors.
fn wait_and_release(
    server: &Program,
    mut clients: Vec<Client>,
    bytes: &[u8],
    count: u64,
) -> Result<(u64, Usage, Vec<Error>)> {
    clients.iter_mut().try_for_each(|client| client.send(bytes)).context("sending")?;
    wait_until(TIMEOUT, || number(server, "/held").is_ok_and(|waiting| waiting >= count));
    let (waiting, during) = (number(server, "/held")?, Usage::of(server));
    number(server, "/release")?;
    Ok((waiting, during, read(&mut clients, b"held\n")))
}

/// Requests a number.
fn number(server: &Program, target: &str) -> Result<u64> {
    let text = Client::connect(server.address())?.get(target)?.text();
    text.parse().map_err(|_| anyhow!("{target}: {text:?} is no number"))
}

/// Alternates panicking and good requests, then compares memory and descriptors.
pub(crate) fn panics(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let mut server = context.example(&[])?;
    let at_start = Usage::of(&server);
    let count = context.amount.count(2_000, 100_000);
    let warm_up = provoke(&server, context.amount.count(500, 5_000));
    let before = Usage::settled(&server, at_start, SETTLE);
    let errors = provoke(&server, count);
    let after = Usage::settled(&server, before, SETTLE);
    report.note("panicking requests, and as many good ones", count);
    report.none("wrong responses", &[warm_up, errors].concat());
    report.left("afterwards", before, after, PANICS_KIB_MAX);
    report.stop(&mut server);
    Ok(())
}

/// Sends requests to the panicking route, each followed by a good one. Returns the errors.
fn provoke(server: &Program, count: u64) -> Vec<String> {
    let next = AtomicU64::new(0);
    let errors = in_threads(CLIENTS, |_| {
        let mut errors = Vec::new();
        let [mut panicking, mut good] = [(); 2].map(|()| KeptClient::new(server.address()));
        let mut expect = |target: &str, response: Result<Response, Error>, status| match response {
            Ok(response) if response.status() == status => {}
            // The worker has reported and closed before the response could be queued.
            Err(Error::Closed) if status == 500 => {}
            other => errors.push(format!("{target}: {other:?}")),
        };
        while next.fetch_add(1, Ordering::Relaxed) < count {
            expect("/panic", panicking.request("GET", "/panic", &[]), 500);
            expect("/", good.request("GET", "/", &[]), 200);
        }
        errors
    });
    errors.concat()
}
