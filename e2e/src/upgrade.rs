//! Group `reload`: ten upgrades under load at a fixed rate cost no request, and every old process ends.
//!
//! The program replaces itself by `shearwater upgrade`. Clients at a fixed rate request a file over TCP, half of them
//! over connections that they keep, and so do clients of a Unix-domain socket; downloads that began before each
//! upgrade end after it, one by HTTP/1.1, and two in streams of one connection by HTTP/2. New processes that can't start, in between, change nothing.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use testkit::http2::Http2Client;
use testkit::{Client, Program, Signal, process};

use crate::context::CaseContext;
use crate::expected::ExactResponse;
use crate::http2::successor::Downloads;
use crate::normal::NormalClients;
use crate::report::CaseReport;
use crate::usage::{Usage, wait_until};

/// One upgrade in so many is preceded by one that must fail.
const FAILING_EVERY: u64 = 3;
/// Clients, each with a request per [`INTERVAL`]: 500 requests a second.
const CLIENTS: u32 = 10;
const INTERVAL: Duration = Duration::from_millis(20);
/// Bytes of a download, more than sockets hold.
const LARGE_BYTES: usize = 16 * 1024 * 1024;
/// Streams of an HTTP/2 connection over each upgrade.
const STREAMS: usize = 2;
/// Limit of a drain, in seconds: downloads that don't end by then are cut off.
const DRAIN_S: u64 = 3;
/// Time for an upgrade, and for an old process to end without downloads.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Time for connections to be closed.
const SETTLE: Duration = Duration::from_secs(2);
/// Growth of resident memory from the first process to the last, KiB.
const GROWTH_MAX_KIB: f64 = 4.0 * 1024.0;
const TARGET: &str = "/page.txt";
const PAGE: &[u8] = b"the same in every process\n";
const NOT_UPGRADED: &str = "shearwater: not upgraded: ";

/// A process of the server by its number, killed when dropped.
struct Process(u32);

impl Drop for Process {
    fn drop(&mut self) {
        if !process::has_ended(self.0) {
            drop(process::signal(self.0, Signal::KILL));
        }
    }
}

/// A server that replaces itself.
struct Upgraded<'a> {
    context: &'a CaseContext<'a>,
    /// The first process. Its log is that of all.
    first: Program,
    /// The process that serves.
    present: Process,
    pid_file: PathBuf,
    config: PathBuf,
    errors: Vec<String>,
    /// Bytes of downloads that began before an upgrade, by HTTP/1.1 and by HTTP/2.
    received: [usize; 2],
}

impl<'a> Upgraded<'a> {
    fn start(context: &'a CaseContext<'a>) -> Result<Self> {
        context.write_file(&format!("www{TARGET}"), PAGE)?;
        context.write_file("www/large.bin", &vec![b'x'; LARGE_BYTES])?;
        let address = testkit::free_address()?;
        let socket = context.folder.join("socket");
        let text = format!(
            "[server]\nhttp2_prior_knowledge = true\n[[listen]]\naddress = \"{address}\"\n\n[[listen]]\n\
             address = \"unix:{}\"\n\n[[site]]\nroot = \"www\"\n",
            socket.display()
        );
        let config = context.write_file("site.toml", text.as_bytes())?;
        let pid_file = context.folder.join("pid");
        let mut command = Command::new(&context.programs.server);
        command.arg(&config).arg("--pid-file").arg(&pid_file);
        command.args(["--workers", &context.workers.to_string(), "--driver", context.driver.name()]);
        command.args(["--drain", &format!("{DRAIN_S}s")]);
        let first = Program::start(command, address, &context.folder.join("server.log"))?;
        let present = Process(first.pid());
        Ok(Self { context, first, present, pid_file, config, errors: Vec::new(), received: [0; 2] })
    }

    /// Replaces the process, and notes an error unless the command says so and the new one has the PID file.
    fn upgrade(&mut self) -> Result<Process> {
        let mut command = Command::new(&self.context.programs.server);
        let output = command.arg("upgrade").arg(&self.pid_file).output()?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let number: u32 = fs::read_to_string(&self.pid_file)?.trim().parse().context("the PID file")?;
        if number == self.present.0 {
            return Err(anyhow!("not upgraded: {output:?}: {}", self.first.log()));
        }
        let old = std::mem::replace(&mut self.present, Process(number));
        if printed != format!("process {number} serves now\n") {
            self.errors.push(format!("upgrade: {output:?}"));
        }
        Ok(old)
    }

    /// Has a new process fail at its configuration.
    fn fail(&mut self) -> Result<()> {
        let text = fs::read(&self.config)?;
        self.context.write_file("site.toml", b"[server]\nwokers = 1\n")?;
        let count = |log: &str| log.lines().filter(|line| line.starts_with(NOT_UPGRADED)).count();
        let before = count(&self.first.log());
        process::signal(self.present.0, Signal::USR2)?;
        if !wait_until(TIMEOUT, || count(&self.first.log()) > before) {
            self.errors.push("a process that can't start isn't reported".to_owned());
        }
        self.context.write_file("site.toml", &text)?;
        Ok(())
    }

    fn begin_download(&self) -> Result<Client> {
        let mut client = Client::connect(self.first.address())?;
        client.send(testkit::request("GET", "/large.bin", &[]))?;
        let head = client.head("GET")?;
        anyhow::ensure!(head.status == 200, "a download: {:?}", head.text());
        Ok(client)
    }

    fn connect_by_http2(&self) -> Result<Http2Client<TcpStream>> {
        let stream = TcpStream::connect(self.first.address())?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Http2Client::in_clear(stream)?)
    }

    /// Requests the page by HTTP/2, of the process that has just begun to serve, and again after the old one has ended.
    fn request_by_http2(&mut self, client: &mut Http2Client<TcpStream>) -> Result<()> {
        let stream = client.send("GET", TARGET, &[], b"")?;
        let response = client.response(stream)?;
        if response.status != 200 || response.body != PAGE {
            self.errors.push(format!("a wrong response by HTTP/2: {response:?}"));
        }
        Ok(())
    }

    /// Upgrades so many times. Every old process must end once its downloads have.
    fn upgrade_often(&mut self, count: u64) -> Result<()> {
        for number in 1..=count {
            if number.is_multiple_of(FAILING_EVERY) {
                self.fail()?;
            }
            let mut download = self.begin_download()?;
            let streams = Downloads::begin(self.connect_by_http2()?, "/large.bin", STREAMS)?;
            let old = self.upgrade()?;
            let mut client = self.connect_by_http2()?;
            self.request_by_http2(&mut client)?;
            while let length @ 1.. = download.data(usize::MAX, &mut |_| ()).context("a download")? {
                self.received[0] += length;
            }
            drop(download);
            let finished = streams.finish(|_, data| data.iter().all(|byte| *byte == b'x'));
            self.received[1] += finished.context("downloads by HTTP/2")?;
            self.must_end(&old);
            self.request_by_http2(&mut client).context("by HTTP/2, of the new process")?;
        }
        Ok(())
    }

    fn must_end(&mut self, old: &Process) {
        let first = &mut self.first;
        // The first is this program's child, and must be asked for its status.
        let has_ended = || (old.0 == first.pid() && !first.is_alive()) || process::has_ended(old.0);
        if !wait_until(TIMEOUT, has_ended) {
            self.errors.push(format!("process {} has not ended", old.0));
        }
    }
}

/// Requests over a Unix-domain socket, a connection each, until it is over. Returns their number and the errors.
fn request_over(socket: &Path, expected: &ExactResponse, is_over: &AtomicBool) -> (u64, Vec<String>) {
    let (mut count, mut errors) = (0, Vec::new());
    while !is_over.load(Ordering::Relaxed) {
        let request = || -> Result<_, testkit::Error> {
            let stream = UnixStream::connect(socket)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            Client::new(stream).get(TARGET)
        };
        match request() {
            Ok(response) if expected.equals(&response) => count += 1,
            Ok(response) => errors.push(format!("a wrong response: {:?}", response.head.text())),
            Err(error) => errors.push(format!("Unix-domain socket: {error}")),
        }
        thread::sleep(INTERVAL);
    }
    (count, errors)
}

/// Upgrades ten times beside clients at a fixed rate and downloads.
pub(crate) fn under_load(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let mut upgraded = Upgraded::start(context)?;
    let address = upgraded.first.address();
    let socket = context.folder.join("socket");
    let expected = ExactResponse::new(&Client::connect(address)?.get(TARGET)?);
    let expected = expected.map_err(io::Error::other)?.or_closing();
    let clients = NormalClients {
        count: CLIENTS,
        interval: INTERVAL,
        address,
        target: TARGET,
        expected: &expected,
        also: None,
    };
    let (warmed_up, _) = clients.beside(|| upgraded.begin_download().map(drop));
    warmed_up?;
    thread::sleep(SETTLE);
    let before = Usage::of(&upgraded.first);

    let count = context.count(10, 100);
    let is_over = AtomicBool::new(false);
    let (done, seen, over_socket) = thread::scope(|scope| {
        let unix = scope.spawn(|| request_over(&socket, &expected, &is_over));
        let (done, seen) = clients.beside(|| upgraded.upgrade_often(count));
        is_over.store(true, Ordering::Relaxed);
        (done, seen, unix.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    done?;
    wait_until(SETTLE, || process::descriptors(upgraded.present.0) <= before.descriptors);
    let after = Usage::of_process(upgraded.present.0);

    // The last upgrade is with a download that doesn't end.
    let held = upgraded.begin_download()?;
    let old = upgraded.upgrade()?;
    upgraded.must_end(&old);
    drop(held);
    let cut_off = upgraded.first.log().contains("has cut off 1 connections");

    report.note("upgrades", count + 1);
    report.note("requests at a fixed rate meanwhile", seen.samples.len());
    report.none("wrong responses to them, and broken connections", &seen.errors);
    report.note("requests over a Unix-domain socket", over_socket.0);
    report.none("wrong responses there", &over_socket.1);
    report.none("wrong results of upgrades, and processes that don't end", &upgraded.errors);
    let [by_http1, by_http2] = upgraded.received;
    report.equal("bytes of a download over each upgrade", by_http1, count as usize * LARGE_BYTES);
    report.equal("the same by HTTP/2, in two streams", by_http2, count as usize * STREAMS * LARGE_BYTES);
    report.left("the last process, compared with the first", before, after, GROWTH_MAX_KIB);
    report.check("a download beyond the drain's limit is cut off and reported", cut_off, "true", cut_off);
    process::signal(upgraded.present.0, Signal::TERM)?;
    let has_ended = wait_until(TIMEOUT, || process::has_ended(upgraded.present.0));
    report.check("the last process ends by SIGTERM", has_ended, "true", has_ended);
    let files = [&socket, &upgraded.pid_file].map(|file| file.exists());
    report.check(
        "its socket and PID files",
        files.iter().any(|exists| *exists),
        "false",
        files == [false; 2],
    );
    Ok(())
}
