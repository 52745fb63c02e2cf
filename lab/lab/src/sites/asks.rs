//! The requests, and what each one's answer has to be.

use std::fmt::{self, Display};
use std::net::SocketAddr;

use super::{BROTLI_BYTES, FILE_BYTES, Sites};
use crate::instructions::rounds::{self, CONNECTIONS};
use crate::scenario::file_bytes;

/// Spellings of the file's path: more than a worker remembers ways.
const SPELLINGS: u32 = 1024;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// The file, with the fields that any program sends.
    Plain,
    /// With a browser's fields and conditions that the file doesn't meet; no coding of it is accepted.
    Full,
    /// The same where codings are: its sibling is sent.
    FullCoded,
    /// From as many hosts as there are connections.
    FewWays,
    /// From all hosts, by paths that are spelt differently each time.
    ManyWays,
}

impl Display for Ask {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Plain => "a plain request",
            Self::Full => "with conditions and codings",
            Self::FullCoded => "with conditions, a coding sent",
            Self::FewWays => "32 ways",
            Self::ManyWays => "1,024 ways",
        })
    }
}

impl Ask {
    /// The request with this number.
    fn request(self, sites: Sites, number: u32) -> Vec<u8> {
        let target = match self {
            Self::ManyWays => spelling(number % SPELLINGS),
            _ => format!("/{}", super::FILE),
        };
        let host = match self {
            Self::FewWays => sites.host(number % CONNECTIONS * 31),
            _ => sites.host(number),
        };
        let codings = if self == Self::FullCoded { "gzip, deflate, br" } else { "deflate;q=0.5" };
        let more = match self {
            Self::Full | Self::FullCoded => format!(
                "Accept-Language: en-GB,en;q=0.7\r\nAccept-Encoding: {codings}\r\nIf-None-Match: \"0-0\", W/\"another\"\r\n\
                 If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\nCookie: session=0123456789abcdef\r\n"
            ),
            _ => String::new(),
        };
        format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: lab\r\nAccept: */*\r\n{more}\r\n")
            .into_bytes()
    }
}

/// What every answer has to bring: the file, or its sibling in the coding that is liked best.
fn wanted(ask: Ask) -> Vec<u8> {
    file_bytes(if ask == Ask::FullCoded { BROTLI_BYTES } else { FILE_BYTES })
}

/// The file's path, its letters escaped where the number has a bit.
fn spelling(number: u32) -> String {
    let escaped = |(at, byte): (usize, u8)| match number >> at & 1 {
        1 if at < 10 => format!("%{byte:02x}"),
        _ => char::from(byte).to_string(),
    };
    std::iter::once("/".to_owned()).chain(super::FILE.bytes().enumerate().map(escaped)).collect()
}

/// Sends so many requests, a multiple of 32, and compares each answer's status and content.
pub(super) fn send(address: SocketAddr, sites: Sites, ask: Ask, requests: u32) -> Result<(), String> {
    let request = |number| ask.request(sites, number);
    let sent = rounds::exchange(address, requests, &request, &wanted(ask));
    sent.map_err(|error| format!("{sites}, {ask}: {error}"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::{Ask, CONNECTIONS, SPELLINGS, Sites, send, spelling, wanted};

    /// What comes of a server that answers each connection's first request with these bytes.
    fn answered(ask: Ask, answer: &[u8]) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        thread::scope(|scope| {
            scope.spawn(|| {
                let streams: Vec<_> = listener.incoming().take(CONNECTIONS as usize).flatten().collect();
                for mut stream in streams {
                    let head = stream.read(&mut [0; 4096]).expect("a request, which is sent in one piece");
                    assert!(head > 0);
                    // One that has seen enough has gone.
                    let _ = stream.write_all(answer);
                }
            });
            send(address, Sites::Bare, ask, CONNECTIONS)
        })
    }

    #[test]
    fn only_the_content_asked_for_passes() {
        let ok = |status: &str, body: &[u8]| {
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len());
            [head.as_bytes(), body].concat()
        };
        let (plain, coded) = (wanted(Ask::Full), wanted(Ask::FullCoded));
        assert_eq!(answered(Ask::Full, &ok("200 OK", &plain)), Ok(()));
        assert_eq!(answered(Ask::FullCoded, &ok("200 OK", &coded)), Ok(()));
        assert!(answered(Ask::FullCoded, &ok("200 OK", &plain)).is_err());
        assert!(answered(Ask::Full, &ok("404 Not Found", &plain)).is_err());
        assert!(answered(Ask::Full, &ok("200 OK", &plain[1..])).is_err());
    }

    #[test]
    fn each_spelling_is_another() {
        let all: HashSet<String> = (0..SPELLINGS).map(spelling).collect();
        assert_eq!(all.len(), SPELLINGS as usize);
        assert_eq!((spelling(0).as_str(), spelling(1).as_str()), ("/page-of-1k.html", "/%70age-of-1k.html"));
    }

    #[test]
    fn many_hosts_are_asked() {
        let many = Sites::Many { sites: 1_000, routes: 1 };
        let hosts =
            |ask: Ask| (0..3_000).map(|number| ask.request(many, number)).collect::<HashSet<_>>().len();
        assert_eq!(hosts(Ask::FewWays), 32);
        assert!(hosts(Ask::ManyWays) > 1_024);
    }
}
