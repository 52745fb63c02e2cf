//! Memory of servers that have little to do: a fresh one, and one that holds idle connections.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::binaries::Binaries;
use crate::block::{self, Order};
use crate::memory;
use crate::process::{Server, free_address};
use crate::scenario;
use crate::server::{Place, ServerKind};
use crate::site::Site;

/// Connections held, each after one answered request.
pub const CONNECTIONS: u32 = 15_000;
/// Workers of a fresh server.
pub const FRESH_WORKERS: u32 = 2;
/// The load of both.
const SCENARIO: &str = "plaintext";
/// How long one answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// RSS in MiB of a fresh server that has answered once.
///
/// # Errors
/// It does not run.
pub fn fresh_mib(server: &ServerKind, binaries: &Binaries) -> Result<f64, String> {
    started(server, binaries, FRESH_WORKERS, |server, _, _| Ok(resident_kib(server) as f64 / 1024.0))
}

/// Growth of RSS in bytes per idle connection, over a server of one worker that has answered once.
///
/// # Errors
/// It does not run, or does not answer on every connection.
pub fn bytes_per_connection(server: &ServerKind, binaries: &Binaries) -> Result<f64, String> {
    raise_descriptor_limit();
    started(server, binaries, 1, |server, address, answer_bytes| {
        let before_kib = resident_kib(server);
        let held: Result<Vec<TcpStream>, String> = (1..=CONNECTIONS)
            .map(|number| {
                answered(address, answer_bytes).map_err(|error| format!("connection {number}: {error}"))
            })
            .collect();
        let held = held?;
        let grown_kib = resident_kib(server).saturating_sub(before_kib);
        Ok(grown_kib as f64 * 1024.0 / held.len() as f64)
    })
}

fn started(
    server: &ServerKind,
    binaries: &Binaries,
    workers: u32,
    measure: impl FnOnce(&Server, SocketAddr, usize) -> Result<f64, String>,
) -> Result<f64, String> {
    let site = Site::create().map_err(|error| format!("the site's folder: {error}"))?;
    let address = free_address(&mut 0)?;
    // A null server's answer need not be as long as ours here.
    let null_bytes = 150;
    let place = Place { binaries, site: &site, address, null_bytes, workers };
    let scenario = scenario::find(SCENARIO)?;
    let order = Order { server, scenario, place, seconds: 1, wait_percent_max: 100.0 };
    let (_, running) = block::start(&order)?;
    let answer = block::checked_probe(&order)?;
    let answer_bytes = usize::try_from(answer.bytes).map_err(|error| error.to_string())?;
    measure(&running, address, answer_bytes)
}

/// A connection on which one request has been answered.
fn answered(address: SocketAddr, answer_bytes: usize) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.write_all(b"GET /plaintext HTTP/1.1\r\nHost: lab\r\n\r\n")?;
    let mut answer = vec![0; answer_bytes];
    stream.read_exact(&mut answer)?;
    if answer.starts_with(b"HTTP/1.1 200") { Ok(stream) } else { Err(std::io::Error::other("not a 200")) }
}

fn resident_kib(server: &Server) -> u64 {
    memory::of_processes(server.ids()).now_kib
}

/// As many descriptors as the kernel allows; what is still too few shows as a refused connection.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
