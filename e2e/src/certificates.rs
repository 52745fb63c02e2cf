//! Group `certificates`: orders and renewals of crate `shearwater-acme` at Pebble, a CA for tests.
//!
//! The example `instance` of the crate is a server that serves nothing but challenges. Cases of [`program`] use the built program.

pub(crate) mod program;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use testkit::{Program, free_address};

use crate::context::CaseContext;
use crate::report::CaseReport;
use crate::runner::build_release;

const INSTALL: &str = "is it installed? `go install github.com/letsencrypt/pebble/v2/cmd/...@latest`";
/// More than an order takes whose every request is sent ten times.
const DEADLINE: Duration = Duration::from_secs(90);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// More than the time for which the CA's suggestion can't renew a new certificate.
const LATER_SECONDS: &str = "25000";
/// Key of a customer, as base64url.
const CUSTOMER: &str = "customer-1:zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

/// A CA with its DNS server, which has every name on this machine.
struct Authority {
    pebble: Program,
    _dns: Program,
    folder: PathBuf,
    management: String,
    http: String,
    tls: String,
}

impl Authority {
    /// Starts one that rejects a share of all nonces, in percent.
    fn start(context: &CaseContext<'_>, rejected_nonces: u32, needs_customers: bool) -> Result<Self> {
        let folder = context.folder.to_owned();
        let key = rcgen::KeyPair::generate()?;
        let names = vec!["127.0.0.1".to_owned()];
        let certificate = rcgen::CertificateParams::new(names)?.self_signed(&key)?;
        let certificate_file = context.write_file("ca.pem", certificate.pem().as_bytes())?;
        let key_file = context.write_file("ca.key", key.serialize_pem().as_bytes())?;
        let (listen, management, dns, dns_management) =
            (free_address()?, free_address()?, free_address()?, free_address()?);
        let (http, tls) = (free_address()?.port(), free_address()?.port());
        let (kid, hmac) = CUSTOMER.split_once(':').context("a key")?;
        let configuration = serde_json::json!({ "pebble": {
            "listenAddress": listen.to_string(), "managementListenAddress": management.to_string(),
            "certificate": certificate_file, "privateKey": key_file, "httpPort": http, "tlsPort": tls,
            "keyAlgorithm": "ecdsa", "retryAfter": { "authz": 1, "order": 1 },
            "externalAccountBindingRequired": needs_customers, "externalAccountMACKeys": { kid: hmac },
        }});
        let file = context.write_file("pebble.json", configuration.to_string().as_bytes())?;
        let mut command = Command::new("pebble-challtestsrv");
        command.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-defaultIPv6", ""]);
        command.args(["-dnsserver", &dns.to_string(), "-management", &dns_management.to_string()]);
        let dns_server = Program::start(command, dns_management, &folder.join("dns.log"))
            .with_context(|| format!("pebble-challtestsrv: {INSTALL}"))?;
        let mut command = Command::new("pebble");
        command.arg("-config").arg(file).args(["-dnsserver", &dns.to_string()]);
        command.env("PEBBLE_WFE_NONCEREJECT", rejected_nonces.to_string()).env("PEBBLE_VA_NOSLEEP", "1");
        // Each order verifies its names: none is valid from an earlier one.
        command.env("PEBBLE_AUTHZREUSE", "0");
        let pebble = Program::start(command, listen, &folder.join("pebble.log"))
            .with_context(|| format!("pebble: {INSTALL}"))?;
        Ok(Self {
            pebble,
            _dns: dns_server,
            folder,
            management: management.to_string(),
            http: http.to_string(),
            tls: tls.to_string(),
        })
    }

    /// Returns how often its log has a text.
    fn count(&self, text: &str) -> usize {
        self.pebble.log().matches(text).count()
    }

    fn orders(&self) -> usize {
        self.count("Added order ")
    }

    /// Starts a server with a storage.
    fn instance(&self, program: &Path, storage: &str, arguments: &[&str]) -> Result<Instance> {
        let log = self.folder.join(format!("instance-{}.log", free_address()?.port()));
        let mut command = Command::new(program);
        command.arg("--storage").arg(self.folder.join(storage)).arg("--ca").arg(self.folder.join("ca.pem"));
        command.args(["--directory", &format!("https://{}/dir", self.pebble.address())]).args(arguments);
        let output = File::create(&log)?;
        let child = command.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output).spawn()?;
        Ok(Instance { child, log })
    }

    /// Makes the CA suggest to renew a certificate at once.
    fn suggest_renewal(&self, pem: &str) -> Result<()> {
        let window = serde_json::json!({ "suggestedWindow": {
            "start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z",
        }});
        let request = serde_json::json!({ "certificate": pem, "ariResponse": window.to_string() });
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--fail", "--noproxy", "*", "--data-binary"]);
        command.arg(request.to_string()).arg("--cacert").arg(self.folder.join("ca.pem"));
        let status = command.arg(format!("https://{}/set-renewal-info/", self.management)).status()?;
        if status.success() { Ok(()) } else { bail!("curl: {status}") }
    }
}

/// A running server. Dropping it kills it.
struct Instance {
    child: Child,
    log: PathBuf,
}

impl Instance {
    fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until a line begins with a text, and returns it.
    fn line(&self, begin: &str) -> Result<String> {
        let find = || self.log().lines().find(|line| line.starts_with(begin)).map(str::to_owned);
        until(&format!("a line {begin:?}"), find).with_context(|| self.log())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until there is a result.
fn until<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> Result<T> {
    let begin = Instant::now();
    while begin.elapsed() < DEADLINE {
        if let Some(found) = find() {
            return Ok(found);
        }
        thread::sleep(POLL_INTERVAL);
    }
    bail!("no {what} within {} s", DEADLINE.as_secs())
}

fn program(context: &CaseContext<'_>) -> Result<PathBuf> {
    match &context.args.instance_bin {
        Some(path) => path.canonicalize().with_context(|| path.display().to_string()),
        None => build_release("examples/instance", &["shearwater-acme", "--example", "instance"]),
    }
}

/// Orders by both challenges, at a CA that rejects nine of ten nonces.
pub(crate) fn challenges(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let program = program(context)?;
    let ca = Authority::start(context, 90, false)?;
    for (storage, option, port) in [("by-http", "--http", &ca.http), ("by-tls", "--tls", &ca.tls)] {
        let names = ["a.example,www.a.example", "b.example"];
        let instance = ca.instance(&program, storage, &[&[option, port], &names[..]].concat())?;
        for name in names {
            let line = instance.line(&format!("certificate {name} serial "))?;
            report.check(format!("{option}, {name}"), line.len(), "a serial number", line.len() > 30);
        }
        report.equal(format!("{option}: errors"), instance.log().matches("error: ").count(), 0);
    }
    report.equal("orders", ca.orders(), 4);
    report.equal("accounts", ca.count("accounts in memory"), 2);
    Ok(())
}

/// Starts two instances at once that share a folder, of which one alone is reached by the CA.
pub(crate) fn shared(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let program = program(context)?;
    for (kind, option) in [("http-01", "--http"), ("tls-alpn-01", "--tls")] {
        let ca = Authority::start(context, 0, false)?;
        let port = if option == "--http" { &ca.http } else { &ca.tls };
        let begin = "certificate shared.example serial ";
        let other = ca.instance(&program, kind, &["--challenge", kind, "shared.example"])?;
        let reached = ca.instance(&program, kind, &[option, port, "shared.example"])?;
        let (first, second) = (other.line(begin)?, reached.line(begin)?);
        report.check(format!("{kind}: both have"), &first, &second, first == second);
        report.equal(format!("{kind}: orders"), ca.orders(), 1);
    }
    Ok(())
}

/// Kills an instance at each step of an order, and starts it again.
pub(crate) fn killed(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let program = program(context)?;
    let ca = Authority::start(context, 0, false)?;
    let names = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .find(|name| !name.starts_with('.'))
    };
    for step in ["account", "key", "order", "challenge", "issued"] {
        let name = format!("{step}.example");
        let storage = ca.folder.join(step).join("acme");
        let (orders, issued) = (ca.orders(), ca.count("Issued certificate serial"));
        let accounts = ca.count("accounts in memory");
        let arguments = ["--http", &ca.http, &name];
        let instance = ca.instance(&program, step, &arguments)?;
        let certificates = storage.join("certificates");
        let order = || fs::read_to_string(certificates.join(format!("{name}.order"))).unwrap_or_default();
        let is_reached = || match step {
            "account" => names(storage.join("account")).is_some(),
            "key" => !order().is_empty(),
            "order" => order().contains("\"url\":\""),
            "challenge" => names(storage.join("challenges")).is_some(),
            _ => ca.count("Issued certificate serial") > issued,
        };
        until(step, || is_reached().then_some(()))?;
        drop(instance);
        let is_stored = certificates.join(format!("{name}.pem")).exists();
        report.check(format!("{step}: killed before the end"), is_stored, "= false", !is_stored);
        let instance = ca.instance(&program, step, &arguments)?;
        instance.line(&format!("certificate {name} serial "))?;
        let orders = ca.orders() - orders;
        // Before the order is recorded, it is unknown to the next start.
        let most = if matches!(step, "account" | "key") { 2 } else { 1 };
        report.within(format!("{step}: orders"), orders as u64, 1..=most);
        report.equal(format!("{step}: accounts"), ca.count("accounts in memory") - accounts, 1);
    }
    Ok(())
}

/// Orders at a CA that requires an external account.
pub(crate) fn customer(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let program = program(context)?;
    let ca = Authority::start(context, 0, true)?;
    let unknown = ca.instance(&program, "unknown", &["--http", &ca.http, "a.example"])?;
    let line = unknown.line("error: ")?;
    report.check(
        "without",
        &line,
        "requires an external account",
        line.contains("requires an external account"),
    );
    drop(unknown);
    let known = ca.instance(&program, "known", &["--eab", CUSTOMER, "--http", &ca.http, "a.example"])?;
    known.line("certificate a.example serial ")?;
    report.equal("accounts", ca.count("Successful newAccount Binding"), 1);
    Ok(())
}

/// Renews by the operator's command and by the CA's suggestion.
pub(crate) fn renewed(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let program = program(context)?;
    let ca = Authority::start(context, 0, false)?;
    let begin = "certificate a.example serial ";
    let file = ca.folder.join("storage/acme/certificates/a.example.pem");
    let arguments = ["--http", &ca.http, "a.example"];
    let first = ca.instance(&program, "storage", &arguments)?.line(begin)?;

    let kept = ca.instance(&program, "storage", &arguments)?;
    report.check("kept by a restart", kept.line(begin)?, &first, kept.line(begin)? == first);
    drop(kept);
    report.equal("orders until then", ca.orders(), 1);

    let changed = |instance: &Instance, known: &str| {
        let new = || {
            instance.log().lines().find(|line| line.starts_with(begin) && *line != known).map(str::to_owned)
        };
        until("a new certificate", new).with_context(|| instance.log())
    };
    let instance = ca.instance(&program, "storage", &[&["--renew", "a.example"], &arguments[..]].concat())?;
    let second = changed(&instance, &first)?;
    drop(instance);
    report.equal("orders by command", ca.orders(), 2);

    ca.suggest_renewal(&fs::read_to_string(&file)?)?;
    let later = ["--clock-ahead", LATER_SECONDS];
    let instance = ca.instance(&program, "storage", &[&later, &arguments[..]].concat())?;
    changed(&instance, &second)?;
    report.equal("orders by suggestion", ca.orders(), 3);
    report.equal("orders that name the old certificate", ca.count("is a replacement of"), 2);
    Ok(())
}

/// Orders a name that doesn't reach the server on port 80, but on port 443.
pub(crate) fn unreachable(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let program = program(context)?;
    let ca = Authority::start(context, 0, false)?;
    let arguments = ["--challenge", "http-01", "--tls", &ca.tls, "a.example"];
    let instance = ca.instance(&program, "storage", &arguments)?;
    let error = instance.line("error: ")?;
    let expected = "error: no certificate for a.example: the CA could not reach http://a.example/.well-known/acme-challenge/";
    report.check("error", &error, expected, error.starts_with(expected));
    let help = instance.line("  help: ")?;
    report.check("help", &help, "port 80", help.contains("port 80 of this name must reach this server"));
    drop(instance);
    // The next attempt takes the other challenge.
    let instance = ca.instance(&program, "storage", &[&["--renew", "a.example"], &arguments[..]].concat())?;
    instance.line("certificate a.example serial ")?;
    report.equal("orders", ca.orders(), 2);
    Ok(())
}

/// A small file system of its own. Dropping it unmounts it.
struct Mount(PathBuf);

impl Mount {
    /// Mounts it; `None` if this user can't.
    fn new(folder: PathBuf) -> Result<Option<Self>> {
        fs::create_dir_all(&folder)?;
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&folder);
        let is_mounted = command.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        Ok(is_mounted.then_some(Self(folder)))
    }

    fn remount(&self, option: &str) -> Result<()> {
        let status =
            Command::new("mount").args(["-o", &format!("remount,{option}")]).arg(&self.0).status()?;
        if status.success() { Ok(()) } else { bail!("mount: {status}") }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // The folder is temporary: nothing else can be done about it.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Starts with a storage that is read-only, then full: the certificate is used, and one error names the remedy.
pub(crate) fn storage(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let program = program(context)?;
    let Some(mount) = Mount::new(context.folder.join("storage"))? else {
        report.check("skipped: only root can mount a file system", "skipped", "skipped", true);
        return Ok(());
    };
    let ca = Authority::start(context, 0, false)?;
    let arguments = ["--http", &ca.http, "a.example"];
    let line = ca.instance(&program, "storage", &arguments)?.line("certificate a.example serial ")?;
    let renewal = [&["--renew", "a.example"], &arguments[..]].concat();
    let mut check = |state: &str, error: &str, remedy: &str| -> Result<()> {
        let instance = ca.instance(&program, "storage", &renewal)?;
        report.check(
            format!("{state}: used"),
            instance.line("certificate ")?,
            &line,
            instance.log().contains(&line),
        );
        let (found, help) = (instance.line("error: ")?, instance.line("  help: ")?);
        report.check(format!("{state}: error"), &found, error, found.contains(error));
        report.check(format!("{state}: help"), &help, remedy, help.contains(remedy));
        report.equal(format!("{state}: errors"), instance.log().matches("error: ").count(), 1);
        report.equal(format!("{state}: orders"), ca.orders(), 1);
        Ok(())
    };
    mount.remount("ro")?;
    check("read-only", "Read-only file system", "mount it writable")?;
    mount.remount("rw")?;
    // It ends when the space does.
    let _ = fs::write(mount.0.join("fill"), vec![0; 1 << 20]);
    check("full", "No space left on device", "free some space")?;
    drop(ca);
    Ok(())
}
