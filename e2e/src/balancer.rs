//! Group `balancer`: HAProxy in front of three servers, which are restarted one by one under load.
//!
//! The configuration is `packaging/haproxy/haproxy.cfg` with free ports.

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

fn start_balancer(context: &CaseContext<'_>, servers: &[SocketAddr]) -> Result<Program> {
    let front = free_address()?;
    let mut configuration = CONFIGURATION.replace(FRONT, &front.to_string());
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
    let balancer = start_balancer(context, &addresses)?;
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
