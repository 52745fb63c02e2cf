//! `[[listen]]`: where connections come in.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;

use super::{SITE, folder, start_on_a_port};
use crate::drivers::drivers;
use crate::process::{Serving, just};

/// What comes on a stream for a request.
fn get(mut stream: impl Read + Write) -> String {
    stream.write_all(b"GET /f.txt HTTP/1.0\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("answered");
    answer
}

fn is_served(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\ncontent")
}

/// Several at once, of each kind that there is.
#[test]
pub(super) fn address() {
    let has_ipv6 = TcpListener::bind("[::1]:0").is_ok();
    for driver in drivers() {
        let listens = |port: u16| {
            let mut at =
                vec![format!("127.0.0.1:{port}"), format!("127.0.0.2:{port}"), "unix:here.sock".to_owned()];
            at.extend(has_ipv6.then(|| format!("[::1]:{port}")));
            at.iter().map(|address| format!("[[listen]]\naddress = \"{address}\"\n")).collect::<String>()
                + SITE
        };
        let (folder, serving, port) = start_on_a_port(listens, driver);
        let mut ips = vec!["127.0.0.1", "127.0.0.2"];
        ips.extend(has_ipv6.then_some("[::1]"));
        for ip in ips {
            let address: SocketAddr = format!("{ip}:{port}").parse().expect("an address");
            assert!(is_served(&get(TcpStream::connect(address).expect("it listens"))), "{address}");
            assert!(serving.banner.contains(&format!("http://{address}/")), "{}", serving.banner);
        }
        let other = TcpStream::connect(("127.0.0.3", port)).expect_err("nobody listens there");
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
