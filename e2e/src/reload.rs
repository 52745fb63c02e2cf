//! Group `reload`: a hundred reloads by `SIGHUP` under load at a fixed rate cost no request, no descriptor and no memory.
//!
//! Every reload changes the folder of the site, which shows at once on new connections. Clients at a fixed rate request a file of a
//! route that every configuration has, and downloads that began before the first reload end after the last one. Configurations with
//! errors and missing folders in between are refused, and change nothing.

use std::fmt::Display;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use testkit::{Client, Program, Signal};

use crate::context::CaseContext;
use crate::expected::ExactResponse;
use crate::normal::NormalClients;
use crate::report::CaseReport;
use crate::usage::{Usage, wait_until};

/// Reloads before the first measurement of memory.
const WARM_UP: u64 = 10;
/// One reload in so many is preceded by one that must be refused.
const REFUSED_EVERY: u64 = 5;
/// Clients, each with a request per [`INTERVAL`]: 500 requests a second.
const CLIENTS: u32 = 10;
const INTERVAL: Duration = Duration::from_millis(20);
/// Downloads at once, so that every worker has some. A worker keeps a descriptor from its first long download on (inotify).
const DOWNLOADS: usize = 12;
/// Bytes of each, more than sockets hold.
const LARGE_BYTES: usize = 16 * 1024 * 1024;
/// Time for a reload, and for what it leaves to be freed.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Time for clients' connections to be closed.
const SETTLE: Duration = Duration::from_secs(2);
/// Growth of resident memory over all reloads, KiB.
const GROWTH_MAX_KIB: f64 = 4.0 * 1024.0;
/// Requested by the clients.
const TARGET: &str = "/shared/page.txt";
/// Its folder's number is in it.
const NUMBER: &str = "/number.txt";

pub(crate) const RELOADED: &str = "shearwater: reloaded ";
pub(crate) const REFUSED: &str = "shearwater: not reloaded: ";

/// Returns a configuration that serves a folder.
fn config(folder: impl Display) -> String {
    format!(
        "[[site]]\nroot = \"folder-{folder}\"\n\n[[site.route]]\npath = \"/shared/*\"\nroot = \"common\"\n"
    )
}

/// A server whose configuration file is rewritten.
pub(crate) struct Reloaded<'a> {
    pub(crate) context: &'a CaseContext<'a>,
    pub(crate) server: Program,
    /// Requests that got a wrong response, or none.
    pub(crate) errors: Vec<String>,
}

impl Reloaded<'_> {
    /// Reloads, and waits until the log says how that ended.
    pub(crate) fn reload(&mut self, text: &str, expected: &str) -> Result<()> {
        // A reload must not see half a file.
        self.context.write_file("site.new", text.as_bytes())?;
        fs::rename(self.context.folder.join("site.new"), self.context.folder.join("site.toml"))?;
        let ends = |log: &str| {
            log.lines().filter(|line| line.starts_with(RELOADED) || line.starts_with(REFUSED)).count()
        };
        let before = ends(&self.server.log());
        self.server.signal(Signal::HUP)?;
        if !wait_until(TIMEOUT, || ends(&self.server.log()) > before) {
            return Err(anyhow!("no reload within {} s", TIMEOUT.as_secs()));
        }
        let log = self.server.log();
        if !log.lines().next_back().is_some_and(|line| line.starts_with(expected)) {
            self.errors
                .push(format!("expected {expected:?}: {}", log.lines().next_back().unwrap_or_default()));
        }
        Ok(())
    }

    /// Notes an error unless a new connection gets a file of this folder.
    fn expect(&mut self, folder: u64) {
        let got = Client::connect(self.server.address()).and_then(|mut client| client.get(NUMBER));
        match got {
            Ok(response) if response.status() == 200 && response.text() == folder.to_string() => {}
            other => self.errors.push(format!("folder {folder}: {other:?}")),
        }
    }

    /// Reloads so many times, every time another folder.
    fn reload_often(&mut self, count: u64) -> Result<()> {
        for number in 1..=count {
            if number % REFUSED_EVERY == 0 {
                let bad = if number % 2 == 0 { config("none") } else { "[server]\nwokers = 1\n".to_owned() };
                self.reload(&bad, REFUSED)?;
                self.expect((number - 1) % 2);
            }
            self.reload(&config(number % 2), RELOADED)?;
            self.expect(number % 2);
        }
        Ok(())
    }
}

/// Begins downloads, and reads no more than their heads.
fn begin_downloads(address: SocketAddr) -> Result<Vec<Client>> {
    let begin = || {
        let mut client = Client::connect(address)?;
        client.send(testkit::request("GET", "/shared/large.bin", &[]))?;
        let head = client.head("GET")?;
        anyhow::ensure!(head.status == 200, "a download: {:?}", head.text());
        Ok(client)
    };
    (0..DOWNLOADS).map(|_| begin()).collect()
}

/// Reads the rest of downloads. Returns the bytes of all of them.
fn finish(downloads: Vec<Client>) -> Result<usize> {
    let mut received = 0;
    for mut client in downloads {
        while let length @ 1.. = client.data(usize::MAX, &mut |_| ()).context("a download")? {
            received += length;
        }
    }
    Ok(received)
}

/// Reloads a hundred times beside clients at a fixed rate and downloads.
pub(crate) fn under_load(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    for folder in ["0", "1"] {
        context.write_file(&format!("folder-{folder}{NUMBER}"), folder.as_bytes())?;
    }
    context.write_file(&format!("common{TARGET}"), b"the same in every configuration\n")?;
    context.write_file("common/shared/large.bin", &vec![b'x'; LARGE_BYTES])?;
    let file = context.write_file("site.toml", config(0).as_bytes())?;
    let mut command = Command::new(&context.programs.server);
    command.arg("--config").arg(&file);
    let server = context.start_server(command)?;
    let address = server.address();
    let expected = ExactResponse::new(&Client::connect(address)?.get(TARGET)?).map_err(io::Error::other)?;
    let at_start = Usage::of(&server);
    let count = context.count(100, 1000);
    let mut reloaded = Reloaded { context, server, errors: Vec::new() };
    let clients = NormalClients {
        count: CLIENTS,
        interval: INTERVAL,
        address,
        target: TARGET,
        expected: &expected,
        also: None,
    };
    let downloads = begin_downloads(address)?;
    let (warmed_up, _) = clients.beside(|| reloaded.reload_often(WARM_UP));
    warmed_up?;
    finish(downloads)?;
    let before = Usage::settled(&reloaded.server, at_start, SETTLE);

    let downloads = begin_downloads(address)?;
    let (done, seen) = clients.beside(|| reloaded.reload_often(count));
    done?;
    let received = finish(downloads)?;
    let after = Usage::settled(&reloaded.server, before, TIMEOUT);

    report.note("reloads", count);
    report.note("requests at a fixed rate meanwhile", seen.samples.len());
    report.none("wrong responses to them, and broken connections", &seen.errors);
    report.none("wrong results of reloads", &reloaded.errors);
    report.equal(format!("bytes of {DOWNLOADS} downloads"), received, DOWNLOADS * LARGE_BYTES);
    report.left("afterwards", before, after, GROWTH_MAX_KIB);
    report.stop(&mut reloaded.server);
    let logged = reloaded.server.log().contains(&format!("; reloads {}", WARM_UP + count));
    report.check("reloads in the totals", logged, "true", logged);
    Ok(())
}
