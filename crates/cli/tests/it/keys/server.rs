//! `[server]` and `[[listen]]`.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use rustix::process::Signal;
use testkit::TIMEOUT;

use super::{SITE, folder, on_each_driver, on_each_driver_verbosely, start_on_a_port};
use crate::process::{Server, Socket, State, Thread, drivers, has_proc, program, sockets, threads};

/// Returns the threads of workers.
fn workers_of(server: &Server) -> Vec<Thread> {
    let threads = threads(server.pid()).into_iter();
    threads.filter(|thread| thread.name.starts_with("worker-")).collect()
}

#[test]
pub(crate) fn workers() {
    for count in [1, 3] {
        on_each_driver_verbosely(&format!("[server]\nworkers = {count}\n"), |_, server| {
            assert_eq!(server.line("workers"), Some(count.to_string().as_str()));
            if has_proc() {
                assert_eq!(workers_of(&server).len(), count, "{:?}", workers_of(&server));
            }
        });
    }
}

#[test]
pub(crate) fn http_port() {
    let config = |port| format!("[server]\nhttp_port = {port}\n{SITE}");
    for driver in drivers() {
        let (_folder, server, port) = start_on_a_port(config, driver);
        let mut reached = Vec::new();
        for ip in ["127.0.0.1", "[::1]"] {
            let address: SocketAddr = format!("{ip}:{port}").parse().expect("an address");
            match TcpStream::connect(address) {
                Ok(_) => reached.push(ip),
                // A machine without IPv6.
                Err(error) => {
                    assert!(ip == "[::1]" && error.kind() == ErrorKind::AddrNotAvailable, "{error}");
                }
            }
        }
        assert!(reached.contains(&"127.0.0.1"), "{reached:?}");
        assert!(server.banner.contains("all addresses of this machine"), "{}", server.banner);
        // Port 0 picks a free one.
        let folder = folder(&config(0));
        let server = Server::of(&mut program(&folder, &["site.toml", "--driver", driver]));
        let (url, _) = server.line("URL").and_then(|url| url.split_once("  ")).expect("a URL and a note");
        let port = url.trim_end_matches('/').rsplit(':').next().expect("a port");
        assert_ne!(port.parse::<u16>().expect("a number"), 0, "{url}");
        assert!(TcpStream::connect(format!("127.0.0.1:{port}")).is_ok(), "{url}");
    }
}

#[test]
pub(crate) fn driver() {
    for driver in drivers() {
        let folder = folder(&format!("[server]\nworkers = 1\ndriver = \"{driver}\"\n{SITE}"));
        let server = Server::start(&folder, &["site.toml", "-v"]);
        assert_eq!(server.line("driver"), Some(format!("{driver} (as asked)").as_str()));
        assert_eq!(server.connect().request("GET", "/f.txt", &[]).text(), "content");
        if has_proc() {
            let pid = server.pid().as_raw_nonzero().get().unsigned_abs();
            assert_eq!(testkit::process::uses_io_uring(pid), *driver == "uring");
        }
    }
}

#[test]
pub(crate) fn accept() {
    for (mode, listeners) in [("reuseport", 3), ("dispatch", 1)] {
        on_each_driver_verbosely(&format!("[server]\naccept = \"{mode}\"\nworkers = 3\n"), |_, server| {
            assert_eq!(server.line("accept"), Some(mode));
            assert_eq!(server.connect().request("GET", "/f.txt", &[]).text(), "content");
            if !has_proc() {
                return;
            }
            let port = server.address().port();
            let listens = |socket: &&Socket| socket.port == port && socket.state == State::Listen;
            assert_eq!(sockets().iter().filter(listens).count(), listeners);
            let threads = threads(server.pid());
            let has_acceptor = threads.iter().any(|thread| thread.name == "acceptor");
            assert_eq!(has_acceptor, mode == "dispatch", "{threads:?}");
        });
    }
}

/// Clients can't observe the order within a turn; `crates/engine/tests/it/limits.rs` tests it.
#[test]
pub(crate) fn order() {
    for order in ["fifo", "lifo"] {
        on_each_driver_verbosely(&format!("[server]\norder = \"{order}\"\n"), |_, server| {
            assert_eq!(server.line("scheduling"), Some(order));
            let mut clients = [server.connect(), server.connect()];
            for client in &mut clients {
                for _ in 0..200 {
                    client.ask("GET", "/f.txt", &[]);
                }
            }
            for client in &mut clients {
                (0..200).for_each(|_| assert_eq!(client.response("GET").text(), "content"));
            }
        });
    }
}

#[test]
pub(crate) fn trusted_proxies() {
    if testkit::tls::skips("a proxy that ends TLS is in clear") {
        return;
    }
    for (proxies, status) in [("", 421), ("\"10.0.0.0/8\", \"::1\"", 421), ("\"127.0.0.0/8\"", 200)] {
        on_each_driver(&format!("[server]\ntrusted_proxies = [{proxies}]\n"), |_, server| {
            for (target, status) in [
                ("https://a/f.txt", status),
                ("ftp://a/f.txt", 421),
                ("http://a/f.txt", 200),
                ("/f.txt", 200),
            ] {
                assert_eq!(server.connect().request("GET", target, &[]).status, status, "{target}");
            }
        });
    }
}

/// Sends a request after these bytes, and returns the response until the connection closes.
fn proxied(server: &Server, header: &[u8]) -> String {
    let mut client = server.connect();
    client.try_send(header).try_send("GET /f.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let mut received = Vec::new();
    // A reset is no response.
    drop(client.stream().read_to_end(&mut received));
    String::from_utf8(received).expect("text")
}

#[test]
pub(crate) fn proxy_protocol() {
    if testkit::tls::skips("it sends requests in clear") {
        return;
    }
    let line = &b"PROXY TCP4 192.0.2.7 127.0.0.1 4711 80\r\n"[..];
    let binary = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0C\xC0\0\x02\x08\x7F\0\0\x01\x12\x67\0\x50";
    let keys = "[log]\naccess = \"a.log\"\nformat = \"$remote_addr $remote_port $realip_remote_addr $status\"\n\
                [server]\nworkers = 1\ntrusted_proxies = [\"127.0.0.1\"]\n";
    on_each_driver(&format!("{keys}proxy_protocol = \"required\"\n"), |folder, mut server| {
        assert!(proxied(&server, line).ends_with("\r\n\r\ncontent"));
        assert!(proxied(&server, binary).ends_with("\r\n\r\ncontent"));
        assert_eq!(proxied(&server, b""), "");
        let said = server.next_line();
        assert!(
            said.contains("reset a connection from 127.0.0.1: it doesn't begin with a PROXY header; help: "),
            "{said}"
        );
        server.stop();
        let expected = ["192.0.2.7 4711 127.0.0.1 200", "192.0.2.8 4711 127.0.0.1 200"];
        assert_eq!(crate::access_log::lines_of(&folder.at("a.log")), expected);
    });
    on_each_driver(&format!("{keys}proxy_protocol = \"off\"\n"), |_, server| {
        assert!(proxied(&server, line).starts_with("HTTP/1.1 4"));
        assert!(proxied(&server, b"").ends_with("\r\n\r\ncontent"));
    });
}

#[test]
pub(crate) fn client_header() {
    let fields = [
        "X-Forwarded-For: 6.6.6.6, 192.0.2.7, 127.0.0.2",
        "Forwarded: for=6.6.6.6, for=192.0.2.8;proto=https",
    ];
    for (trusted, header, client) in [
        ("127.0.0.0/8", "none", "127.0.0.1"),
        ("127.0.0.0/8", "x-forwarded-for", "192.0.2.7"),
        ("127.0.0.0/8", "forwarded", "192.0.2.8"),
        ("10.0.0.0/8", "x-forwarded-for", "127.0.0.1"),
    ] {
        let keys = format!(
            "[log]\naccess = \"a.log\"\nformat = \"$remote_addr $realip_remote_addr\"\n\
             [server]\ntrusted_proxies = [\"{trusted}\"]\nclient_header = \"{header}\"\n"
        );
        on_each_driver(&keys, |folder, server| {
            assert_eq!(server.connect().request("GET", "/f.txt", &fields).status, 200);
            server.stop();
            assert_eq!(
                crate::access_log::lines_of(&folder.at("a.log")),
                [format!("{client} 127.0.0.1")],
                "{header}"
            );
        });
    }
}

/// The preface of HTTP/2 and an empty SETTINGS frame (RFC 9113 section 3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[test]
pub(crate) fn http2_prior_knowledge() {
    if testkit::tls::skips("the protocol is negotiated") {
        return;
    }
    for (is_on, type_of_frame) in [(false, None), (true, Some(4))] {
        on_each_driver(&format!("[server]\nhttp2_prior_knowledge = {is_on}\n"), |_, server| {
            let received = server.connect().send(PREFACE).exactly(9);
            let settings = (!received.starts_with(b"HTTP/1.1 ")).then(|| received[3]);
            assert_eq!(settings, type_of_frame, "{received:?}");
            assert_eq!(server.connect().get("/f.txt").text(), "content");
        });
    }
}

#[test]
pub(crate) fn pin() {
    if !has_proc() {
        return;
    }
    for is_pinned in [false, true] {
        on_each_driver(&format!("[server]\nworkers = 2\npin = {is_pinned}\n"), |_, server| {
            let threads = threads(server.pid());
            let main =
                threads.iter().find(|thread| !thread.name.starts_with("worker-")).expect("a first thread");
            let workers = workers_of(&server);
            assert_eq!(workers.len(), 2);
            for worker in &workers {
                let expected = if is_pinned { 1 } else { main.cores.len() };
                assert_eq!(worker.cores.len(), expected, "{threads:?}");
            }
            let share = workers[0].cores == workers[1].cores;
            assert_eq!(share, !is_pinned || main.cores.len() == 1, "{threads:?}");
        });
    }
}

#[test]
pub(crate) fn drain_timeout() {
    if testkit::tls::skips("a connection that is cut off has no close_notify") {
        return;
    }
    const LARGE_BYTES: usize = 64 * 1024 * 1024;
    for (drain_timeout, is_waited_for) in [(0, false), (86_400, true)] {
        on_each_driver(
            &format!("[server]\nworkers = 1\ndrain_timeout = {drain_timeout}\n"),
            |folder, server| {
                folder.file("www/large.bin", vec![b'x'; LARGE_BYTES]);
                let mut client = server.connect();
                client.ask("GET", "/large.bin", &[]).head();
                server.signal(Signal::TERM);
                if is_waited_for {
                    assert_eq!(client.rest().len(), LARGE_BYTES);
                    assert_eq!(server.end().0, Some(0));
                } else {
                    assert_eq!(server.end().0, Some(0));
                    assert!(client.rest().len() < LARGE_BYTES);
                }
            },
        );
    }
}

/// Waits until the machine's sockets are as they are to be.
#[track_caller]
fn until(what: &str, holds: impl Fn(&[Socket]) -> bool) {
    let start = Instant::now();
    loop {
        let sockets = sockets();
        if holds(&sockets) {
            return;
        }
        assert!(start.elapsed() < TIMEOUT, "waits for {what}");
        thread::yield_now();
    }
}

#[test]
pub(crate) fn tcp_keepalive() {
    if !has_proc() {
        return;
    }
    for is_on in [false, true] {
        on_each_driver(&format!("[server]\ntcp_keepalive = {is_on}\n"), |_, server| {
            let mut client = server.connect();
            let own = client.stream().local_addr().expect("an address").port();
            assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
            let port = server.address().port();
            let is_servers = |socket: &Socket| socket.port == port && socket.remote_port == own;
            until("the timer", |sockets| {
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
pub(crate) fn tcp_nodelay() {
    for (is_on, expected) in [(true, "[True]"), (false, "[False]")] {
        on_each_driver(&format!("[server]\ntcp_nodelay = {is_on}\n"), |_, server| {
            let mut client = server.connect();
            assert_eq!(client.request("GET", "/f.txt", &[]).status, 200);
            let (pid, port) =
                (server.pid().as_raw_nonzero().to_string(), server.address().port().to_string());
            let Ok(output) = Command::new("python3").args(["-c", NODELAY, &pid, &port]).output() else {
                println!("skipped: there is no python3");
                return;
            };
            let stderr = String::from_utf8_lossy(&output.stderr);
            if stderr.starts_with("skipped: ") {
                println!("{stderr}");
                return;
            }
            assert!(output.status.success(), "{stderr}");
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), expected);
        });
    }
}

/// With a worker that accepts no more, Linux holds one connection more than the backlog, and doesn't respond to further ones.
#[test]
pub(crate) fn backlog() {
    if testkit::tls::skips("a handshake waits until its connection is accepted") {
        return;
    }
    const CLIENTS: usize = 12;
    if !has_proc() {
        return;
    }
    for (backlog, held) in [(3, 4), (64, CLIENTS)] {
        let settings =
            format!("[server]\nworkers = 1\nbacklog = {backlog}\n[performance]\nmax_connections = 1\n");
        on_each_driver(&settings, |_, server: Server| {
            let mut first = server.connect();
            assert_eq!(first.request("GET", "/f.txt", &[]).status, 200);
            // An idle one would make room.
            first.send("GET /f.txt HTTP/1.1\r\nHost: a\r\n");
            let address = server.address();
            let waiting: Vec<_> = (0..held).map(|_| server.connect()).collect();
            until("a full queue", |sockets| {
                let listens =
                    |socket: &&Socket| socket.port == address.port() && socket.state == State::Listen;
                sockets.iter().find(listens).expect("a listener").waiting as usize == waiting.len()
            });
            let pending: Vec<_> = (held..CLIENTS).map(|_| connect_later(address)).collect();
            until("further clients to be left out", |sockets| {
                let connects =
                    |socket: &&Socket| socket.remote_port == address.port() && socket.state == State::SynSent;
                sockets.iter().filter(connects).count() == pending.len()
            });
            drop(server);
            for pending in pending {
                pending.join().expect("it does not panic");
            }
        });
    }
}

/// Connects on another thread; fails once the server is gone.
fn connect_later(address: SocketAddr) -> JoinHandle<Option<TcpStream>> {
    thread::spawn(move || TcpStream::connect_timeout(&address, TIMEOUT).ok())
}

/// Sends a request on a stream and returns the response.
fn get(mut stream: impl Read + Write) -> String {
    stream.write_all(b"GET /f.txt HTTP/1.0\r\n\r\n").expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("answered");
    response
}

fn is_served(response: &str) -> bool {
    response.starts_with("HTTP/1.1 200 OK\r\n") && response.ends_with("\r\n\r\ncontent")
}

/// Returns the loopback addresses of the machine.
fn own_addresses() -> Vec<&'static str> {
    let is_there = |ip: &&str| TcpListener::bind(format!("{ip}:0")).is_ok();
    ["127.0.0.1", "127.0.0.2", "[::1]"].into_iter().filter(is_there).collect()
}

#[test]
pub(crate) fn address() {
    let ips = own_addresses();
    let (unused, used) = ips.split_first().expect("an address");
    for driver in drivers() {
        let listens = |port: u16| {
            let mut at: Vec<String> = used.iter().map(|ip| format!("{ip}:{port}")).collect();
            at.push("unix:here.sock".to_owned());
            at.iter().map(|address| format!("[[listen]]\naddress = \"{address}\"\n")).collect::<String>()
                + SITE
        };
        let (folder, server, port) = start_on_a_port(listens, driver);
        for ip in used {
            let address: SocketAddr = format!("{ip}:{port}").parse().expect("an address");
            assert!(is_served(&get(TcpStream::connect(address).expect("it listens"))), "{address}");
            assert!(server.banner.contains(&format!("http://{address}/")), "{}", server.banner);
        }
        let other = TcpStream::connect(format!("{unused}:{port}")).expect_err("nobody listens there");
        assert_eq!(other.kind(), ErrorKind::ConnectionRefused);
        let socket = folder.at("here.sock");
        assert_eq!(server.line("socket"), socket.to_str());
        assert!(is_served(&get(UnixStream::connect(&socket).expect("it listens"))));
    }
}

#[test]
pub(crate) fn mode() {
    for driver in drivers() {
        for (line, mode) in [("", 0o660), ("mode = \"0600\"\n", 0o600), ("mode = \"666\"\n", 0o666)] {
            let folder = folder(&format!("[[listen]]\naddress = \"unix:here.sock\"\n{line}{SITE}"));
            let _server = Server::of(&mut program(&folder, &["site.toml", "--driver", driver]));
            let socket = folder.at("here.sock");
            let found = socket.metadata().expect("it is there").permissions().mode();
            assert_eq!(found & 0o777, mode, "{line}");
            assert!(is_served(&get(UnixStream::connect(&socket).expect("it listens"))));
        }
    }
}
