//! Group `balancer`: HAProxy in front of three servers, which are restarted one by one under load, and know their clients.
//!
//! The configurations are those of `packaging/haproxy` with free ports.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use testkit::{Program, free_address};

use crate::context::{CaseContext, KeptClient, in_threads};
use crate::report::{CaseReport, exit, success};

const CONFIGURATION: &str = include_str!("../../packaging/haproxy/haproxy.cfg");
const TCP_CONFIGURATION: &str = include_str!("../../packaging/haproxy/haproxy-tcp.cfg");
/// The option of `TCP_CONFIGURATION` for version 2 of the PROXY protocol, and that for version 1.
const SEND_PROXY: [&str; 2] = ["send-proxy-v2", "send-proxy"];
/// Addresses of the configuration: the balancer's, and those of the servers.
const FRONT: &str = "127.0.0.1:8000";
const SERVERS: [&str; 3] = ["127.0.0.1:8081", "127.0.0.1:8082", "127.0.0.1:8083"];

const CLIENTS: u64 = 8;
const DRAIN_DEADLINE: Duration = Duration::from_secs(10);
/// More than the interval of the balancer's health checks, so that it knows a server that has started.
const CHECKED: Duration = Duration::from_millis(1200);

/// Starts the server at an address, which it may have had before.
fn start(context: &CaseContext<'_>, address: SocketAddr, run: usize) -> Result<Program> {
    let mut command = Command::new(&context.programs.server);
    command.arg(context.folder.join("site.toml")).args(["--listen", &address.to_string()]);
    command.args(["--workers", "1", "--driver", context.driver.name(), "--drain", "5s"]);
    let log = context.folder.join(format!("server-{}-{run}.log", address.port()));
    Program::start(command, address, &log).context("shearwater")
}

fn start_balancer(context: &CaseContext<'_>, configuration: &str, servers: &[SocketAddr]) -> Result<Program> {
    let front = free_address()?;
    let mut configuration = configuration.replace(FRONT, &front.to_string());
    for (known, server) in SERVERS.iter().zip(servers) {
        configuration = configuration.replace(known, &server.to_string());
    }
    let file = context.write_file("haproxy.cfg", configuration.as_bytes())?;
    let mut command = Command::new("haproxy");
    command.args([Path::new("-db"), Path::new("-f"), &file]);
    Program::start(command, front, &context.folder.join("haproxy.log")).context("haproxy: is it installed?")
}

/// Sends requests until told to end. Returns the number of responses, and the errors.
fn load(address: SocketAddr, is_over: &AtomicBool) -> (u64, Vec<String>) {
    let (mut responses, mut errors) = (0, Vec::new());
    let mut client = KeptClient::new(address);
    while !is_over.load(Ordering::Relaxed) {
        match client.request("GET", "/", &[]) {
            Ok(response) if response.status() == 200 && response.body == b"hello\n" => responses += 1,
            Ok(response) => errors.push(format!("{} {:?}", response.status(), response.text())),
            Err(error) => {
                errors.push(error.to_string());
                client = KeptClient::new(address);
            }
        }
    }
    (responses, errors)
}

/// Restarts each of three servers behind HAProxy, twice.
pub(crate) fn rolling_restart(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    context.write_file("site/index.html", b"hello\n")?;
    let toml =
        "[[site]]\nroot = \"site\"\n[[site.route]]\npath = \"/health\"\nrespond = { body = \"ok\\n\" }\n";
    context.write_file("site.toml", toml.as_bytes())?;
    let addresses = (0..SERVERS.len()).map(|_| free_address()).collect::<std::io::Result<Vec<_>>>()?;
    let mut servers =
        addresses.iter().map(|&address| start(context, address, 0)).collect::<Result<Vec<_>>>()?;
    let balancer = start_balancer(context, CONFIGURATION, &addresses)?;
    thread::sleep(CHECKED);
    let is_over = AtomicBool::new(false);
    let front = balancer.address();
    let mut restarts = Vec::new();
    thread::scope(|scope| -> Result<()> {
        let load = scope.spawn(|| in_threads(CLIENTS, |_| load(front, &is_over)));
        let restarted: Result<()> = (1..=2).try_for_each(|run| {
            for (server, &address) in servers.iter_mut().zip(&addresses) {
                thread::sleep(CHECKED);
                restarts.push((server.stop(DRAIN_DEADLINE), server.log()));
                *server = start(context, address, run)?;
            }
            Ok(())
        });
        thread::sleep(CHECKED);
        is_over.store(true, Ordering::Relaxed);
        let loads = load.join().unwrap_or_else(|_| vec![(0, vec!["a client panicked".to_owned()])]);
        let responses: u64 = loads.iter().map(|(responses, _)| responses).sum();
        let errors: Vec<String> = loads.into_iter().flat_map(|(_, errors)| errors).collect();
        report.none(format!("{} restarts beneath {CLIENTS} clients: errors", restarts.len()), &errors);
        report.check("responses", responses, ">= 1000".to_owned(), responses >= 1000);
        restarted
    })?;
    for (status, log) in &restarts {
        report.check("exit", exit(*status), "exit status: 0", success(*status));
        report.check("requests cut off", log.contains("cut off"), "= false", !log.contains("cut off"));
    }
    Ok(())
}

/// A site with a health check, and a log of the addresses of its clients.
const LOGGED: &str = "\
[log]
access = \"access.log\"
format = \"$remote_addr $realip_remote_addr $uri $status\"
[[site]]
root = \"site\"
[[site.route]]
path = \"/health\"
respond = { body = \"ok\\n\" }
[server]
trusted_proxies = [\"127.0.0.1\"]
";

/// Addresses of clients, which differ from that of the balancer.
const ADDRESSES: [&str; 3] = ["127.0.0.7", "127.0.0.8", "127.0.0.9"];

/// Requests from several addresses through HAProxy, as HTTP and as TCP with PROXY headers; clients also forge headers.
pub(crate) fn clients(context: &CaseContext<'_>, report: &mut CaseReport) -> Result<()> {
    let without_version_2 = TCP_CONFIGURATION.replace(SEND_PROXY[0], SEND_PROXY[1]);
    for (name, configuration, key) in [
        ("X-Forwarded-For", CONFIGURATION, "client_header = \"x-forwarded-for\""),
        ("PROXY, version 1", &without_version_2, "proxy_protocol = \"required\""),
        ("PROXY, version 2", TCP_CONFIGURATION, "proxy_protocol = \"required\""),
    ] {
        clients_by(context, report, name, configuration, key).with_context(|| name.to_owned())?;
    }
    Ok(())
}

fn clients_by(
    context: &CaseContext<'_>,
    report: &mut CaseReport,
    name: &str,
    configuration: &str,
    key: &str,
) -> Result<()> {
    let log = context.folder.join("access.log");
    drop(std::fs::remove_file(&log));
    context.write_file("site/index.html", b"hello\n")?;
    context.write_file("site.toml", format!("{LOGGED}{key}\n").as_bytes())?;
    let address = free_address()?;
    let mut server = start(context, address, 0)?;
    let balancer = start_balancer(context, configuration, &[address; SERVERS.len()])?;
    thread::sleep(CHECKED);
    let forged = ["X-Forwarded-For: 6.6.6.6", "Forwarded: for=6.6.6.6", "X-Forwarded-For: 127.0.0.1"];
    let mut failed = Vec::new();
    for client in ADDRESSES {
        let mut command = Command::new("curl");
        command.args(["-s", "--max-time", "10", "--interface", client]);
        command.args(forged.iter().flat_map(|field| ["-H", field]));
        let output = command.arg(format!("http://{}/", balancer.address())).output().context("curl")?;
        if output.stdout != b"hello\n" {
            failed.push(format!("{client}: {output:?}"));
        }
    }
    report.none(format!("{name}: failed requests"), &failed);
    // Past the balancer: a forged header of a client that isn't trusted, or no header at all.
    let direct = Command::new("curl")
        .args(["-s", "--max-time", "10", "--interface", ADDRESSES[0], "-H", forged[0], "-o", "/dev/null"])
        .arg(format!("http://{address}/direct"))
        .status()
        .context("curl")?;
    let is_header = key.starts_with("proxy_protocol");
    report.check(
        format!("{name}: a request past the balancer"),
        direct,
        "by the kind",
        direct.success() != is_header,
    );
    report.stop(&mut server);
    let lines = std::fs::read_to_string(&log).unwrap_or_default();
    let mut expected: Vec<String> =
        ADDRESSES.iter().map(|client| format!("{client} 127.0.0.1 / 200")).collect();
    if !is_header {
        expected.push(format!("{0} {0} /direct 404", ADDRESSES[0]));
    }
    let wrong: Vec<String> =
        expected.into_iter().filter(|line| !lines.lines().any(|found| found == line)).collect();
    report.none(format!("{name}: missing lines of the access log"), &wrong);
    report.check(
        format!("{name}: forged addresses"),
        lines.matches("6.6.6.6").count(),
        "= 0",
        !lines.contains("6.6.6.6"),
    );
    let checks = lines.lines().filter(|line| *line == "127.0.0.1 127.0.0.1 /health 200").count();
    report.check(format!("{name}: health checks"), checks, ">= 2", checks >= 2);
    Ok(())
}
