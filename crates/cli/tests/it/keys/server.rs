//! `[server]`, except TCP options, which are in `tcp`.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};

use rustix::process::Signal;

use super::{SITE, folder, on_each_driver, start_on_a_port};
use crate::process::{Serving, drivers, just};
use crate::system::{self, State, Thread};

/// Returns the threads of workers.
fn workers_of(serving: &Serving) -> Vec<Thread> {
    let threads = system::threads(serving.pid()).into_iter();
    threads.filter(|thread| thread.name.starts_with("worker-")).collect()
}

#[test]
pub(super) fn workers() {
    for count in [1, 3] {
        on_each_driver(&format!("[server]\nworkers = {count}\n"), |_, serving| {
            assert_eq!(serving.line("workers"), Some(count.to_string().as_str()));
            if system::tells() {
                assert_eq!(workers_of(&serving).len(), count, "{:?}", workers_of(&serving));
            }
        });
    }
}

#[test]
pub(super) fn http_port() {
    let config = |port| format!("[server]\nhttp_port = {port}\n{SITE}");
    for driver in drivers() {
        let (_folder, serving, port) = start_on_a_port(config, driver);
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
        assert!(serving.banner.contains("all addresses of this machine"), "{}", serving.banner);
        // Port 0 picks a free one.
        let folder = folder(&config(0));
        let serving = Serving::of(&mut just(folder.path(), &["--config", "site.toml", "--driver", driver]));
        let (url, _) = serving.line("URL").and_then(|url| url.split_once("  ")).expect("a URL and a note");
        let port = url.trim_end_matches('/').rsplit(':').next().expect("a port");
        assert_ne!(port.parse::<u16>().expect("a number"), 0, "{url}");
        assert!(TcpStream::connect(format!("127.0.0.1:{port}")).is_ok(), "{url}");
    }
}

#[test]
pub(super) fn driver() {
    for driver in drivers() {
        let folder = folder(&format!("[server]\nworkers = 1\ndriver = \"{driver}\"\n{SITE}"));
        let arguments = ["--config", "site.toml", "--listen", "127.0.0.1:0"];
        let serving = Serving::of(&mut just(folder.path(), &arguments));
        assert_eq!(serving.line("driver"), Some(format!("{driver} (as asked)").as_str()));
        assert_eq!(serving.connect().request("GET", "/f.txt", &[]).text(), "content");
        if system::tells() {
            let waits = system::descriptors(serving.pid());
            let has_ring = waits.iter().any(|descriptor| descriptor.contains("io_uring"));
            assert_eq!(has_ring, *driver == "uring", "{waits:?}");
        }
    }
}

#[test]
pub(super) fn accept() {
    for (mode, listeners) in [("reuseport", 3), ("dispatch", 1)] {
        on_each_driver(&format!("[server]\naccept = \"{mode}\"\nworkers = 3\n"), |_, serving| {
            assert_eq!(serving.line("accept"), Some(mode));
            assert_eq!(serving.connect().request("GET", "/f.txt", &[]).text(), "content");
            if !system::tells() {
                return;
            }
            let port = serving.address().port();
            let listens = |socket: &&system::Socket| socket.port == port && socket.state == State::Listen;
            assert_eq!(system::sockets().iter().filter(listens).count(), listeners);
            let threads = system::threads(serving.pid());
            let has_acceptor = threads.iter().any(|thread| thread.name == "acceptor");
            assert_eq!(has_acceptor, mode == "dispatch", "{threads:?}");
        });
    }
}

/// Clients can't observe the order within a turn; `crates/engine/tests/it/limits.rs` tests it.
#[test]
pub(super) fn order() {
    for order in ["fifo", "lifo"] {
        on_each_driver(&format!("[server]\norder = \"{order}\"\n"), |_, serving| {
            assert_eq!(serving.line("order"), Some(order));
            let mut clients = [serving.connect(), serving.connect()];
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
pub(super) fn trusted_gateway() {
    for (is_trusted, status) in [(false, 421), (true, 200)] {
        on_each_driver(&format!("[server]\ntrusted_gateway = {is_trusted}\n"), |_, serving| {
            for (target, status) in [
                ("https://a/f.txt", status),
                ("ftp://a/f.txt", 421),
                ("http://a/f.txt", 200),
                ("/f.txt", 200),
            ] {
                assert_eq!(serving.connect().request("GET", target, &[]).status, status, "{target}");
            }
        });
    }
}

#[test]
pub(super) fn pin() {
    if !system::tells() {
        return;
    }
    for is_pinned in [false, true] {
        on_each_driver(&format!("[server]\nworkers = 2\npin = {is_pinned}\n"), |_, serving| {
            let threads = system::threads(serving.pid());
            let main =
                threads.iter().find(|thread| !thread.name.starts_with("worker-")).expect("a first thread");
            let workers = workers_of(&serving);
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
pub(super) fn drain_timeout() {
    const LARGE_BYTES: usize = 64 * 1024 * 1024;
    for (drain_timeout, is_waited_for) in [(0, false), (86_400, true)] {
        on_each_driver(
            &format!("[server]\nworkers = 1\ndrain_timeout = {drain_timeout}\n"),
            |folder, serving| {
                folder.file("www/large.bin", vec![b'x'; LARGE_BYTES]);
                let mut client = serving.connect();
                client.ask("GET", "/large.bin", &[]).head();
                serving.signal(Signal::TERM);
                if is_waited_for {
                    assert_eq!(client.rest().len(), LARGE_BYTES);
                    assert_eq!(serving.end().0, Some(0));
                } else {
                    assert_eq!(serving.end().0, Some(0));
                    assert!(client.rest().len() < LARGE_BYTES);
                }
            },
        );
    }
}
