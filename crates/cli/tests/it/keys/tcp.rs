//! The options of TCP in `[server]`: what the kernel has of them.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use super::on_each_driver;
use crate::client::WAIT_MAX;
use crate::process::Serving;
use crate::system::{self, Socket, State};

/// Waits until the machine's sockets are as they are to be.
#[track_caller]
fn until(what: &str, is_so: impl Fn(&[Socket]) -> bool) {
    let begun = Instant::now();
    loop {
        let sockets = system::sockets();
        if is_so(&sockets) {
            return;
        }
        assert!(begun.elapsed() < WAIT_MAX, "it never comes to {what}");
        thread::yield_now();
    }
}

#[test]
pub(super) fn tcp_keepalive() {
    if !system::tells() {
        return;
    }
    for is_on in [false, true] {
        on_each_driver(&format!("[server]\ntcp_keepalive = {is_on}\n"), |_, serving| {
            let mut client = serving.connect();
            let own = client.stream.get_ref().local_addr().expect("an address").port();
            assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
            let port = serving.address().port();
            let is_servers = |socket: &Socket| socket.port == port && socket.remote_port == own;
            until("a timer as it was set", |sockets| {
                let server = sockets.iter().find(|socket| is_servers(socket)).expect("its side");
                server.has_keepalive == is_on
            });
        });
    }
}

/// Prints whether the sockets of process `argv[1]` that have port `argv[2]` here send at once. A descriptor is borrowed by `pidfd_getfd`, for
/// which there is no name in Python.
const NODELAY: &str = r#"
import ctypes, os, socket, sys
pid, port = int(sys.argv[1]), int(sys.argv[2])
try:
    process = os.pidfd_open(pid)
except (AttributeError, OSError) as error:
    sys.exit(f"skipped: {error}")
found = []
for name in os.listdir(f"/proc/{pid}/fd"):
    try:
        if not os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
            continue
    except FileNotFoundError:
        continue
    borrowed = ctypes.CDLL(None, use_errno=True).syscall(438, process, int(name), 0)
    if borrowed < 0:
        sys.exit(f"skipped: {os.strerror(ctypes.get_errno())}")
    one = socket.socket(fileno=borrowed)
    if one.family == socket.AF_INET and one.getsockname()[1] == port:
        has_peer = one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 0
        if has_peer:
            found.append(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0)
    one.close()
print(found)
"#;

#[test]
pub(super) fn tcp_nodelay() {
    for (is_on, expected) in [(true, "[True]"), (false, "[False]")] {
        on_each_driver(&format!("[server]\ntcp_nodelay = {is_on}\n"), |_, serving| {
            let mut client = serving.connect();
            assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
            let (pid, port) =
                (serving.pid().as_raw_nonzero().to_string(), serving.address().port().to_string());
            let Ok(output) = Command::new("python3").args(["-c", NODELAY, &pid, &port]).output() else {
                println!("skipped: there is no python3");
                return;
            };
            let said = String::from_utf8_lossy(&output.stderr);
            if said.starts_with("skipped: ") {
                println!("{said}");
                return;
            }
            assert!(output.status.success(), "{said}");
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), expected);
        });
    }
}

/// With a worker that accepts no more, the kernel holds so many connections and one (Linux counts so), and further ones are not
/// even begun.
#[test]
pub(super) fn backlog() {
    const ASKED: usize = 12;
    if !system::tells() {
        return;
    }
    for (backlog, held) in [(3, 4), (64, ASKED)] {
        let settings =
            format!("[server]\nworkers = 1\nbacklog = {backlog}\n[performance]\nmax_connections = 1\n");
        on_each_driver(&settings, |_, serving: Serving| {
            let mut first = serving.connect();
            assert_eq!(first.request("GET", "/f.txt", &[]).status, 200);
            let address = serving.address();
            let waiting: Vec<_> = (0..held).map(|_| serving.connect()).collect();
            until("a queue as long as it was set", |sockets| {
                let listens =
                    |socket: &&Socket| socket.port == address.port() && socket.state == State::Listen;
                sockets.iter().find(listens).expect("a listener").waiting as usize == waiting.len()
            });
            let asked: Vec<_> = (held..ASKED).map(|_| ask_for(address)).collect();
            until("nobody being let in", |sockets| {
                let asks =
                    |socket: &&Socket| socket.remote_port == address.port() && socket.state == State::SynSent;
                sockets.iter().filter(asks).count() == asked.len()
            });
            drop(serving);
            for asked in asked {
                asked.join().expect("it does not panic");
            }
        });
    }
}

/// Asks for a connection; it comes, or is refused when the server is gone.
fn ask_for(address: SocketAddr) -> JoinHandle<Option<TcpStream>> {
    thread::spawn(move || TcpStream::connect_timeout(&address, WAIT_MAX).ok())
}
