//! The same CA and the built program: `tls = "auto"` from the first start to an upgrade.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use testkit::{Program, Signal, free_address, process};

use super::{Authority, DEADLINE, POLL_INTERVAL, until};
use crate::context::CaseContext;
use crate::report::CaseReport;

/// Content of the only file.
const CONTENT: &str = "by TLS\n";
/// Exit status of curl after an alert in the handshake.
const CURL_HANDSHAKE_FAILED: i32 = 35;

/// A running program with its files.
struct Site<'a> {
    context: &'a CaseContext<'a>,
    ca: &'a Authority,
    name: &'static str,
    storage: &'static str,
    ports: (String, String),
    program: Option<Program>,
}

impl<'a> Site<'a> {
    /// Prepares a program at the ports that the CA asks for challenges.
    fn new(context: &'a CaseContext<'a>, ca: &'a Authority, name: &'static str) -> Result<Self> {
        context.write_file(&format!("{name}/www/index.html"), CONTENT.as_bytes())?;
        let ports = (ca.http.clone(), ca.tls.clone());
        Ok(Self { context, ca, name, storage: name, ports, program: None })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.context.folder.join(self.name).join(name)
    }

    /// Writes its configuration: the host of each site, and its `tls`.
    fn configure(&self, sites: &[(&str, &str)]) -> Result<()> {
        let (http, tls) = &self.ports;
        let mut text = format!(
            "[[listen]]\naddress = \"127.0.0.1:{http}\"\n\n[[listen]]\naddress = \"127.0.0.1:{tls}\"\ntls = true\n\n\
             [tls]\nstorage = {:?}\n\n[acme]\ndirectory = \"https://{}/dir\"\nca = {:?}\n",
            self.context.folder.join(self.storage).join("storage"),
            self.ca.pebble.address(),
            self.context.folder.join("ca.pem"),
        );
        for (host, tls) in sites {
            text.push_str(&format!("\n[[site]]\nhosts = [\"{host}\"]\nroot = \"www\"\ntls = \"{tls}\"\n"));
        }
        self.context.write_file(&format!("{}/site.toml", self.name), text.as_bytes())?;
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        let mut command = Command::new(&self.context.programs.server);
        command.arg("--config").arg(self.file("site.toml")).arg("--pid-file").arg(self.file("pid"));
        command.args(["--driver", self.context.driver.name()]);
        command.args(["--workers", &self.context.workers.to_string()]);
        let address: SocketAddr = format!("127.0.0.1:{}", self.ports.1).parse()?;
        let program = Program::start(command, address, &self.file("log")).context("shearwater")?;
        until("a PID file", || self.file("pid").exists().then_some(()))?;
        self.program = Some(program);
        Ok(())
    }

    fn log(&self) -> String {
        self.program.as_ref().map(Program::log).unwrap_or_default()
    }

    /// Runs a command of the program on itself.
    fn command(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(&self.context.programs.server);
        command.args(arguments).arg(self.file("pid")).args(["--timeout", "60s"]);
        Ok(command.output()?)
    }

    /// Requests the file by TLS, and verifies the certificate by the CA's root. Returns the exit status.
    fn get(&self, host: &str) -> Result<(i32, String)> {
        let port = &self.ports.1;
        let mut command = Command::new("curl");
        command.args(["--silent", "--noproxy", "*", "--resolve", &format!("{host}:{port}:127.0.0.1")]);
        command.arg("--cacert").arg(self.context.folder.join("root.pem"));
        let output = command.arg(format!("https://{host}:{port}/")).output()?;
        Ok((output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// Waits until a host is served with a certificate of the CA.
    fn wait(&self, host: &str) -> Result<()> {
        let begin = Instant::now();
        while self.get(host)? != (0, CONTENT.to_owned()) {
            if begin.elapsed() > DEADLINE {
                bail!("no certificate for {host}: {}", self.log());
            }
            thread::sleep(10 * POLL_INTERVAL);
        }
        Ok(())
    }

    /// Waits until a challenge of it is stored.
    fn wait_for_challenge(&self) -> Result<()> {
        let folder = self.context.folder.join(self.storage).join("storage/acme/challenges");
        let is_stored = || fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
        until("a challenge", || is_stored().then_some(())).with_context(|| self.log())
    }
}

impl Authority {
    /// Writes the root of its certificates.
    fn write_root(&self) -> Result<()> {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--fail", "--noproxy", "*", "--cacert"]);
        command.arg(self.folder.join("ca.pem")).arg("--output").arg(self.folder.join("root.pem"));
        let status = command.arg(format!("https://{}/roots/0", self.management)).status()?;
        if status.success() { Ok(()) } else { bail!("curl: {status}") }
    }
}

fn start_ca(context: &CaseContext<'_>, rejected_nonces: u32) -> Result<Authority> {
    let ca = Authority::start(context, rejected_nonces, false)?;
    ca.write_root()?;
    Ok(ca)
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Starts without a certificate, gets one, lists it and renews it.
pub(crate) fn ordered(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let ca = start_ca(context, 90)?;
    let mut site = Site::new(context, &ca, "site")?;
    site.configure(&[("a.example", "auto"), ("b.example", "auto")])?;
    site.start()?;
    report.equal("handshake before the first certificate", site.get("a.example")?.0, CURL_HANDSHAKE_FAILED);
    let mut clear = Command::new("curl");
    clear.args(["--silent", "--noproxy", "*", "--output", "/dev/null", "--write-out", "%{redirect_url}"]);
    let location = clear.args(["--header", "Host: a.example"]).arg(format!("http://127.0.0.1:{}/x", ca.http));
    let expected = format!("https://a.example:{}/x", ca.tls);
    report.equal("redirect", &*text(&location.output()?.stdout), &*expected);
    for host in ["a.example", "b.example"] {
        site.wait(host)?;
    }
    let list = site.command(&["certificates"])?;
    let listed = text(&list.stdout).matches(": valid until ").count();
    report.equal("listed", listed, 2);
    report.equal("listed: exit status", code(&list), 0);
    let orders = ca.orders();
    let renewed = site.command(&["certificates", "--renew", "a.example"])?;
    report.equal("renewed: exit status", code(&renewed), 0);
    report.equal("renewed: orders", ca.orders() - orders, 1);
    report.equal("errors", site.log().matches("error: ").count(), 0);
    Ok(())
}

/// Verifies by HTTP-01 where TLS doesn't reach the server, although requests in clear are redirected.
pub(crate) fn by_http(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let ca = start_ca(context, 0)?;
    let mut site = Site::new(context, &ca, "site")?;
    site.ports.1 = free_address()?.port().to_string();
    site.configure(&[("a.example", "auto")])?;
    site.start()?;
    until("an error", || site.log().contains("no certificate for a.example: ").then_some(()))?;
    let renewed = site.command(&["certificates", "--renew", "a.example"])?;
    report.check("renewed", text(&renewed.stdout), "valid until", renewed.status.success());
    site.wait("a.example")?;
    report.equal("orders", ca.orders(), 2);
    Ok(())
}

/// Adds the first site with `tls = "auto"` by a reload, then another one, then removes both.
pub(crate) fn reloaded(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let ca = start_ca(context, 0)?;
    let mut site = Site::new(context, &ca, "site")?;
    let local = ("local.example", "self-signed");
    site.configure(&[local])?;
    site.start()?;
    let mut reload = |step: &str, sites: &[(&str, &str)]| -> Result<()> {
        site.configure(sites)?;
        let output = site.command(&["reload"])?;
        report.check(step, text(&output.stderr), "exit status 0", output.status.success());
        for (host, _) in sites.iter().filter(|(_, tls)| *tls == "auto") {
            site.wait(host)?;
        }
        let list = text(&site.command(&["certificates"])?.stdout);
        let listed = list.lines().filter(|line| line.contains("valid until")).count();
        let expected = sites.iter().filter(|(_, tls)| *tls == "auto").count();
        report.equal(format!("{step}: listed"), listed, expected);
        Ok(())
    };
    reload("the first", &[local, ("a.example", "auto")])?;
    reload("the second", &[local, ("a.example", "auto"), ("b.example", "auto")])?;
    reload("none", &[local])?;
    // Its certificate is in the storage.
    reload("the first again", &[local, ("a.example", "auto")])?;
    report.equal("orders", ca.orders(), 2);
    Ok(())
}

/// Kills the program while the CA verifies a challenge, and starts it again; then upgrades another one at this step.
pub(crate) fn interrupted(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let ca = start_ca(context, 0)?;
    let mut killed = Site::new(context, &ca, "killed")?;
    killed.configure(&[("a.example", "auto")])?;
    killed.start()?;
    killed.wait_for_challenge()?;
    killed.program = None;
    // A killed program leaves it.
    fs::remove_file(killed.file("pid"))?;
    killed.start()?;
    killed.wait("a.example")?;
    report.equal("killed: orders", ca.orders(), 1);
    killed.program = None;

    let mut upgraded = Site::new(context, &ca, "upgraded")?;
    upgraded.configure(&[("b.example", "auto")])?;
    upgraded.start()?;
    upgraded.wait_for_challenge()?;
    let output = upgraded.command(&["upgrade"])?;
    report.check("upgraded", text(&output.stderr), "exit status 0", output.status.success());
    let pid: u32 = fs::read_to_string(upgraded.file("pid"))?.trim().parse()?;
    let served = upgraded.wait("b.example");
    let listed = upgraded.command(&["certificates"])?;
    process::signal(pid, Signal::TERM)?;
    served?;
    report.check(
        "upgraded: listed",
        text(&listed.stdout),
        "valid until",
        text(&listed.stdout).contains("valid until"),
    );
    report.equal("upgraded: orders", ca.orders(), 2);
    Ok(())
}

/// Starts two programs at once that share a folder, of which the CA reaches one.
pub(crate) fn together(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let ca = start_ca(context, 0)?;
    let mut other = Site::new(context, &ca, "other")?;
    (other.storage, other.ports) =
        ("shared", (free_address()?.port().to_string(), free_address()?.port().to_string()));
    let mut reached = Site::new(context, &ca, "reached")?;
    reached.storage = "shared";
    for site in [&mut other, &mut reached] {
        site.configure(&[("a.example", "auto")])?;
        site.start()?;
    }
    for site in [&other, &reached] {
        site.wait("a.example")?;
        report.equal(format!("{}: errors", site.name), site.log().matches("error: ").count(), 0);
    }
    report.equal("orders", ca.orders(), 1);
    Ok(())
}
