//! Trusted proxies on real sockets: PROXY headers, headers of requests, Unix-domain sockets, and what attackers send.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use shearwater::{
    AcceptMode, App, Call, ClientHeader, DriverChoice, Error, Limits, Request, Response, Server, StartError,
    Timeouts, Totals, TrustedProxies, Verbosity, get, later,
};
use testkit::{TIMEOUT, TestClient};

use crate::served::{Served, connect_unix, drivers, here};

const LINE: &[u8] = b"PROXY TCP4 192.0.2.7 198.51.100.2 4711 80\r\n";
const BINARY: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0F\xC0\0\x02\x08\xC6\x33\x64\x02\x12\x67\0\x50\x04\0\0";

/// Responds with the client's address and the peer's kind.
fn app() -> App {
    App::new()
        .route(
            "/",
            get(|request: &Request, response: &mut Response| {
                response.text(&format!("{:?} {}", request.client(), request.peer().is_some()));
            }),
        )
        .route(
            "/later",
            get(later(async |call: &mut Call| {
                call.sleep(Duration::from_millis(1)).await;
                let text = format!("{:?} {}", call.client(), call.peer().is_some());
                call.response().text(&text);
            })),
        )
}

fn trusting(driver: DriverChoice, proxies: &[&str]) -> Server {
    here()
        .driver(driver)
        .verbosity(Verbosity::Off)
        .trusted_proxies(TrustedProxies::new(proxies).expect("addresses"))
}

/// Sends bytes on a new connection, and returns all that is received until it ends, and whether it was reset.
fn exchange(mut stream: impl Read + Write, bytes: &[u8]) -> (String, bool) {
    // A reset may come while the client sends.
    let is_cut = stream.write_all(bytes).is_err();
    let mut received = Vec::new();
    let end = stream.read_to_end(&mut received);
    let is_reset =
        |error: std::io::Error| matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
    (String::from_utf8_lossy(&received).into_owned(), is_cut || end.is_err_and(is_reset))
}

fn connect(served: &Served) -> TcpStream {
    let stream = TcpStream::connect(served.address).expect("connects");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream.set_nodelay(true).expect("no delay");
    stream
}

#[test]
fn serves_requests_behind_a_header() {
    if testkit::tls::skips("its client sends the header of a proxy in front of everything") {
        return;
    }
    for driver in drivers() {
        for mode in [AcceptMode::Reuseport, AcceptMode::Dispatch] {
            let server = trusting(driver, &["127.0.0.1"]).proxy_protocol(true).accept_mode(mode);
            let served = Served::of(server, app());
            for (header, client) in [
                (LINE, "Some(192.0.2.7:4711) true"),
                (BINARY, "Some(192.0.2.8:4711) true"),
                (b"PROXY TCP6 2001:db8::1 ::1 9 80\r\n", "Some([2001:db8::1]:9) true"),
            ] {
                // With the header, after it, and in single bytes.
                let first = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
                let mut together = TestClient::over(connect(&served));
                together.send([header, first].concat());
                assert_eq!(together.response("GET").text(), client, "{driver:?}");
                let mut apart = TestClient::over(connect(&served));
                apart.send(header);
                let mut slow = TestClient::over(connect(&served));
                for byte in header.iter().chain(first) {
                    slow.send([*byte]);
                }
                assert_eq!(slow.response("GET").text(), client, "{driver:?}");
                for client_of in [&mut together, &mut apart, &mut slow] {
                    assert_eq!(client_of.get("/later").text(), client, "{driver:?}");
                    assert_eq!(client_of.get("/").text(), client, "{driver:?}");
                }
            }
            let totals = served.stop();
            assert_eq!((totals.proxy_headers_rejected, totals.connections_reset), (0, 0));
        }
    }
}

/// The proxy's own connections (`LOCAL`), and clients that it doesn't know.
#[test]
fn keeps_the_peers_address_without_one_in_the_header() {
    if testkit::tls::skips("its client sends the header of a proxy in front of everything") {
        return;
    }
    for driver in drivers() {
        let served = Served::of(trusting(driver, &["127.0.0.1"]).proxy_protocol(true), app());
        for header in
            [&b"PROXY UNKNOWN\r\n"[..], b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0", b"\r\n\r\n\0\r\nQUIT\n\x21\0\0\0"]
        {
            let mut client = TestClient::over(connect(&served));
            let own = client.stream().local_addr().expect("an address");
            client.send(header);
            assert_eq!(client.get("/").text(), format!("{:?} true", Some(own)), "{driver:?}");
        }
    }
}

/// Asserts that each input on a new connection is answered by a reset and nothing else.
fn assert_resets(server: Server, inputs: &[&[u8]]) -> Totals {
    let served = Served::of(server, app());
    for input in inputs {
        let (response, is_reset) = exchange(connect(&served), input);
        assert!(response.is_empty() && is_reset, "{}: {response}", input.escape_ascii());
    }
    let totals = served.stop();
    assert_eq!(totals.proxy_headers_rejected, inputs.len() as u64);
    assert_eq!((totals.connections_reset, totals.responses()), (inputs.len() as u64, 0));
    totals
}

#[test]
fn resets_connections_without_a_valid_header_of_a_trusted_proxy() {
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let endless = [b"PROXY TCP4 ", &[b'1'; 5000][..]].concat();
    let lying = [b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xFF\xFF", &[0; 5000][..]].concat();
    let smuggled = [b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n", LINE, request].concat();
    for driver in drivers() {
        let inputs = [
            &request[..],
            &endless,
            &lying,
            &smuggled,
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1 1\n",
            b"\r\n\r\n\0\r\nQUIT\n\x11",
        ];
        let totals = assert_resets(trusting(driver, &["127.0.0.1"]).proxy_protocol(true), &inputs);
        assert_eq!(totals.hit_proxy_header_bytes, 2);
        // Not even a valid header helps another peer.
        let whole = [LINE, request].concat();
        assert_resets(trusting(driver, &["10.0.0.0/8", "unix"]).proxy_protocol(true), &[&whole]);
    }
}

#[test]
fn a_second_header_is_a_malformed_request() {
    for driver in drivers() {
        let served = Served::of(trusting(driver, &["127.0.0.1"]).proxy_protocol(true), app());
        for second in [LINE, BINARY] {
            let bytes = [LINE, second, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"].concat();
            let (response, _) = exchange(connect(&served), &bytes);
            assert!(
                response.starts_with("HTTP/1.1 400 ") || response.starts_with("HTTP/1.1 505 "),
                "{response}"
            );
            assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{response}");
        }
    }
}

#[test]
fn a_slow_header_ends_with_the_time_of_the_first_head() {
    if testkit::tls::skips("its client sends the header of a proxy in front of everything") {
        return;
    }
    let timeouts = Timeouts { first_head_ms: 400, ..Timeouts::default() };
    for driver in drivers() {
        let served =
            Served::of(trusting(driver, &["127.0.0.1"]).proxy_protocol(true).timeouts(timeouts), app());
        let mut slow = connect(&served);
        let mut silent = TestClient::over(connect(&served));
        let mut after = TestClient::over(connect(&served));
        after.send(LINE);
        let start = Instant::now();
        // A byte each 20 ms would take 2 s for the longest line.
        slow.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
        let ended = format!("PROXY UNKNOWN {:80}", "").bytes().any(|byte| {
            // A wait with a timeout may be interrupted by a signal to the process.
            let is_wait =
                |error: io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted);
            let is_open = slow.read(&mut [0]).is_err_and(is_wait);
            !is_open || slow.write_all(&[byte]).is_err()
        });
        assert!(ended && start.elapsed() < Duration::from_millis(1600), "{:?}", start.elapsed());
        silent.is_ended();
        after.is_ended();
        assert_eq!(served.stop().hit_first_head_ms, 3, "{driver:?}");
    }
}

#[test]
fn connections_count_for_the_client_of_their_header() {
    if testkit::tls::skips("its client sends the header of a proxy in front of everything") {
        return;
    }
    let limits = Limits { connections_per_address_max: 2, ..Limits::default() };
    for driver in drivers() {
        let served = Served::of(trusting(driver, &["127.0.0.1"]).proxy_protocol(true).limits(limits), app());
        let from = |client: u8| {
            let mut connection = TestClient::over(connect(&served));
            connection.send(format!("PROXY TCP4 192.0.2.{client} 1.1.1.1 1 1\r\n"));
            connection
        };
        let mut held: Vec<_> = (1..=5).flat_map(|client| [from(client), from(client)]).collect();
        held.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
        let line = b"PROXY TCP4 192.0.2.3 1.1.1.1 1 1\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let (response, is_reset) = exchange(connect(&served), line);
        assert!(response.is_empty() && is_reset, "{response}");
        assert_eq!(served.stop().connections_refused, 1, "{driver:?}");
    }
}

#[test]
fn a_proxys_own_connections_are_not_limited() {
    let limits = Limits { connections_per_address_max: 1, ..Limits::default() };
    for driver in drivers() {
        let server =
            trusting(driver, &["127.0.0.1"]).client_header(ClientHeader::XForwardedFor).limits(limits);
        let served = Served::of(server, app());
        let mut held: Vec<_> = (0..5).map(|_| served.connect()).collect();
        for client in &mut held {
            let response = client.request("GET", "/", &["X-Forwarded-For: 6.6.6.6, 192.0.2.9"]);
            assert_eq!(response.text(), "Some(192.0.2.9:0) true", "{driver:?}");
        }
        assert_eq!(served.stop().connections_refused, 0);
    }
}

#[test]
fn headers_of_untrusted_clients_are_ignored() {
    let fields = [
        "X-Forwarded-For: 6.6.6.6",
        "Forwarded: for=6.6.6.6",
        "X-Real-IP: 6.6.6.6",
        "X-Forwarded-For: 127.0.0.1",
    ];
    for driver in drivers() {
        for header in [ClientHeader::XForwardedFor, ClientHeader::Forwarded] {
            let served = Served::of(trusting(driver, &["10.0.0.0/8", "unix"]).client_header(header), app());
            for target in ["/", "/later"] {
                let mut client = served.connect();
                let own = client.stream().local_addr().expect("an address");
                assert_eq!(client.request("GET", target, &fields).text(), format!("{:?} true", Some(own)));
            }
        }
    }
}

#[test]
fn trusts_unix_sockets_only_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("socket");
    for driver in drivers() {
        for (proxies, client) in [("unix", "Some(192.0.2.9:0) false"), ("127.0.0.1", "None false")] {
            let server = trusting(driver, &[proxies]).client_header(ClientHeader::XForwardedFor);
            let _served = Served::of(server.listen(format!("unix:{}", path.display())), app());
            let response = connect_unix(&path).request("GET", "/", &["X-Forwarded-For: 6.6.6.6, 192.0.2.9"]);
            assert_eq!(response.text(), client, "{driver:?}");
        }
        let server = trusting(driver, &["unix"]).proxy_protocol(true);
        let served = Served::of(server.listen(format!("unix:{}", path.display())), app());
        for (header, expected) in [
            (LINE, "Some(192.0.2.7:4711) false"),
            (BINARY, "Some(192.0.2.8:4711) false"),
            (b"PROXY UNKNOWN\r\n", "None false"),
        ] {
            let mut client = connect_unix(&path);
            client.send(header);
            assert_eq!(client.get("/later").text(), expected, "{driver:?}");
            assert_eq!(client.get("/").text(), expected, "{driver:?}");
        }
        let (response, _) =
            exchange(UnixStream::connect(&path).expect("connects"), b"GET / HTTP/1.1\r\n\r\n");
        assert_eq!(response, "");
        // The same server's TCP port is no trusted proxy.
        let (response, is_reset) = exchange(connect(&served), LINE);
        assert!(response.is_empty() && is_reset, "{response}");
        assert_eq!(served.stop().proxy_headers_rejected, 2);
    }
}

#[test]
fn does_not_start_without_a_proxy_that_could_send_headers() {
    let error = here().proxy_protocol(true).start(app()).expect_err("nothing is trusted");
    assert!(matches!(error, Error::Start(StartError::NoTrustedProxy)), "{error}");
    assert!(error.to_string().contains("name the trusted proxies"), "{error}");
}
