//! `[[listen]]`: addresses and modes of sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use super::{SITE, folder, start_on_a_port};
use crate::process::{Serving, drivers, just};

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
pub(super) fn address() {
    let ips = own_addresses();
    let (not_listened_at, listened_at) = ips.split_first().expect("an address");
    for driver in drivers() {
        let listens = |port: u16| {
            let mut at: Vec<String> = listened_at.iter().map(|ip| format!("{ip}:{port}")).collect();
            at.push("unix:here.sock".to_owned());
            at.iter().map(|address| format!("[[listen]]\naddress = \"{address}\"\n")).collect::<String>()
                + SITE
        };
        let (folder, serving, port) = start_on_a_port(listens, driver);
        for ip in listened_at {
            let address: SocketAddr = format!("{ip}:{port}").parse().expect("an address");
            assert!(is_served(&get(TcpStream::connect(address).expect("it listens"))), "{address}");
            assert!(serving.banner.contains(&format!("http://{address}/")), "{}", serving.banner);
        }
        let other =
            TcpStream::connect(format!("{not_listened_at}:{port}")).expect_err("nobody listens there");
        assert_eq!(other.kind(), ErrorKind::ConnectionRefused);
        let socket = folder.path().join("here.sock");
        assert_eq!(serving.line("socket"), socket.to_str());
        assert!(is_served(&get(UnixStream::connect(&socket).expect("it listens"))));
    }
}

#[test]
pub(super) fn mode() {
    for driver in drivers() {
        for (said, mode) in [("", 0o660), ("mode = \"0600\"\n", 0o600), ("mode = \"666\"\n", 0o666)] {
            let folder = folder(&format!("[[listen]]\naddress = \"unix:here.sock\"\n{said}{SITE}"));
            let _serving =
                Serving::of(&mut just(folder.path(), &["--config", "site.toml", "--driver", driver]));
            let socket = folder.path().join("here.sock");
            let found = socket.metadata().expect("it is there").permissions().mode();
            assert_eq!(found & 0o777, mode, "{said}");
            assert!(is_served(&get(UnixStream::connect(&socket).expect("it listens"))));
        }
    }
}
