//! Memory of servers that have little to do: a fresh one, and one that holds idle connections.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::alone::{Figures, Stage};
use crate::client::source::Sources;
use crate::memory;

/// Connections held, each after one answered request.
pub const CONNECTIONS: u32 = 15_000;
/// How long one answer may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// RSS of a fresh server that has answered once.
///
/// # Errors
/// It is gone.
pub fn fresh(stage: &Stage<'_>) -> Result<Figures, String> {
    Ok(vec![("rss_mib", resident_kib(stage)? as f64 / 1024.0)])
}

/// Growth of RSS per idle connection, over a server that has answered once.
///
/// # Errors
/// It does not answer on every connection, or has closed one.
pub fn connections(stage: &Stage<'_>) -> Result<Figures, String> {
    raise_descriptor_limit();
    let before_kib = resident_kib(stage)?;
    let mut sources = Sources::new();
    let held: Result<Vec<TcpStream>, String> = (1..=CONNECTIONS)
        .map(|number| answered(stage, &mut sources).map_err(|error| format!("connection {number}: {error}")))
        .collect();
    let held = held?;
    let grown_kib = resident_kib(stage)?.saturating_sub(before_kib);
    // One that the server has closed costs it nothing.
    match held.iter().filter(|stream| !is_open(stream)).count() {
        0 => {}
        closed => return Err(format!("{closed} of {CONNECTIONS} connections were closed meanwhile")),
    }
    let per_connection = grown_kib as f64 * 1024.0 / held.len() as f64;
    Ok(vec![("bytes_per_connection", per_connection), ("grown_kib", grown_kib as f64)])
}

/// A connection on which one request has been answered.
fn answered(stage: &Stage<'_>, sources: &mut Sources) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::from(sources.connect(stage.address)?);
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let request = format!("GET {} HTTP/1.1\r\nHost: lab\r\n\r\n", stage.scenario.target(0));
    stream.write_all(request.as_bytes())?;
    let mut answer = vec![0; usize::try_from(stage.answer_bytes).map_err(Error::other)?];
    stream.read_exact(&mut answer)?;
    if answer.starts_with(b"HTTP/1.1 200") { Ok(stream) } else { Err(Error::other("not a 200")) }
}

/// Whether the other side has neither closed it nor sent anything more.
fn is_open(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).is_ok()
        && stream.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

fn resident_kib(stage: &Stage<'_>) -> Result<u64, String> {
    match memory::of_processes(stage.server.ids()).now_kib {
        0 => Err("the server is gone".to_owned()),
        kib => Ok(kib),
    }
}

/// As many descriptors as the kernel allows; what is still too few shows as a refused connection.
pub fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{Shutdown, TcpListener, TcpStream};

    use super::is_open;

    #[test]
    fn a_connection_that_the_server_has_closed_is_not_open() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let held = TcpStream::connect(address).expect("it listens");
        let (server, _) = listener.accept().expect("a client");
        assert!(is_open(&held));
        server.shutdown(Shutdown::Write).expect("it is connected");
        held.set_nonblocking(false).expect("a socket");
        assert_eq!((&held).read(&mut [0; 1]).expect("its end"), 0);
        assert!(!is_open(&held));
    }
}
