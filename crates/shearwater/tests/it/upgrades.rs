//! Upgraded connections, on each driver.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use shearwater::{
    App, Call, DriverChoice, HandedOver, Head, Http2Options, Limits, Reading, Request, Response, Status, get,
    later, later_reading,
};
use testkit::http2::Http2Client;
use testkit::{ClientResponse, TIMEOUT, TestClient};

use crate::served::{Served, drivers, here, text};

/// An upgrade request.
const UPGRADE: &str = "GET /up HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
/// Its fields.
const OFFER: [&str; 2] = ["Connection: upgrade", "Upgrade: x"];
/// The greeting of the new protocol.
const GREETING: &str = "handed over\n";
/// Length of the response at `/big`.
const BIG_BYTES: usize = 3_000_000;
/// The client's message in the new protocol.
const REST_BYTES: usize = 300_000;

fn app() -> App {
    let up = |request: &Request, response: &mut Response| {
        response
            .upgrade(request, "x/2", |handed| drop(thread::spawn(|| speak(handed))))
            .field("X-Own", "set");
    };
    let up_later = async |call: &mut Call| {
        call.sleep(Duration::from_millis(1)).await;
        call.response().field("X-Own", "set");
        call.upgrade("x/2", |handed| drop(thread::spawn(|| speak(handed))));
    };
    App::new()
        .route("/plain", get(text("plain")))
        .route("/big", get(|_: &Request, response: &mut Response| _ = response.body(vec![b'b'; BIG_BYTES])))
        .route("/up", get(up).upgrades("x/2"))
        .route("/up-later", get(later(up_later)).upgrades("x/2"))
}

/// Serves the new protocol: sends a greeting, then everything received once the client has closed its side.
fn speak(handed: HandedOver) {
    // Dropped last.
    let _guard = handed.guard;
    let mut stream = TcpStream::from(handed.descriptor);
    stream.set_nonblocking(false).expect("a socket");
    stream.write_all(GREETING.as_bytes()).expect("the client is connected");
    let mut received = handed.unread;
    stream.read_to_end(&mut received).expect("the client ends its side");
    let sum: u64 = received.iter().map(|byte| u64::from(*byte)).sum();
    write!(stream, "{} {sum}", received.len()).expect("the client is connected");
}

fn served(driver: DriverChoice) -> Served {
    Served::of(here().driver(driver), app())
}

/// Upgrades the connection after these requests, with bytes directly after the last one.
fn assert_taken_over(client: &mut TestClient, before: &[&str], with_it: usize) {
    let mut bytes: String =
        before.iter().map(|target| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    bytes += UPGRADE;
    bytes += &"z".repeat(with_it);
    client.send(bytes);
    for target in before {
        let len = client.response("GET").body.len();
        assert_eq!(len, if *target == "/big" { BIG_BYTES } else { 5 }, "{target}");
    }
    let head = client.head();
    let fields =
        ["Connection", "Upgrade", "X-Own", "Server"].map(|name| head.field(name).unwrap_or_default());
    assert_eq!((head.status, fields), (101, ["upgrade", "x/2", "set", "shearwater"]));
    assert_eq!(client.exactly(GREETING.len()), GREETING.as_bytes());
    client.send(vec![b'w'; REST_BYTES]).end_sending();
    let len = with_it + REST_BYTES;
    let sum = with_it * usize::from(b'z') + REST_BYTES * usize::from(b'w');
    let said = String::from_utf8(client.rest()).expect("text");
    assert_eq!(said, format!("{len} {sum}"), "{before:?} {with_it}");
}

#[test]
fn hands_over_a_connection_with_unread_bytes() {
    for driver in drivers() {
        let served = served(driver);
        for with_it in [0, 100, 5000] {
            assert_taken_over(&mut served.connect(), &[], with_it);
        }
        let totals = served.stop();
        assert_eq!(totals.connections_accepted, totals.connections_closed);
    }
}

#[test]
fn sends_earlier_responses_before_the_101() {
    for driver in drivers() {
        let served = served(driver);
        for with_it in [0, 100, 5000] {
            assert_taken_over(&mut served.connect(), &["/plain"], with_it);
            assert_taken_over(&mut served.connect(), &["/plain", "/big", "/plain"], with_it);
        }
    }
}

/// An app that passes upgraded connections to the test.
fn sent() -> (App, Receiver<HandedOver>) {
    let (sender, handed) = sync_channel(1);
    let sender = Mutex::new(sender);
    let sender = move || SyncSender::clone(&sender.lock().expect("nothing panics with it"));
    let app = App::new().route(
        "/kept",
        get(move |request: &Request, response: &mut Response| {
            let sender = sender();
            response.upgrade(request, "x", move |handed| sender.send(handed).expect("the test receives"));
        }),
    );
    (app, handed)
}

#[test]
fn counts_an_upgraded_connection_until_its_guard_is_dropped() {
    for driver in drivers() {
        let (app, handed) = sent();
        let limits = Limits { connections_per_address_max: 1, ..Limits::default() };
        let served = Served::of(here().driver(driver).limits(limits), app);
        let mut client = served.connect();
        client.ask("GET", "/kept", &OFFER);
        assert_eq!(client.head().status, 101);
        let HandedOver { descriptor, guard, .. } = handed.recv_timeout(TIMEOUT).expect("it is handed over");
        let totals = served.control.totals();
        assert_eq!((totals.connections_upgraded, totals.connections_open()), (1, 1));
        let second = TcpStream::connect(served.address).and_then(|mut stream| stream.read(&mut [0]));
        assert_eq!(second.expect_err("no end in order").kind(), ErrorKind::ConnectionReset);
        drop(descriptor);
        client.is_ended();
        drop(guard);
        while served.control.totals().connections_open() > 0 {
            thread::yield_now();
        }
        assert_eq!(served.connect().get("/none").status, 404);
    }
}

#[test]
fn closes_an_upgraded_connection_whose_closure_panics() {
    for driver in drivers() {
        let app = App::new().route(
            "/panics",
            get(|request: &Request, response: &mut Response| {
                response.upgrade(request, "x", |_| panic!("as the test wants it"));
            }),
        );
        let served = Served::of(here().driver(driver), app);
        let mut client = served.connect();
        client.ask("GET", "/panics", &OFFER);
        assert_eq!(client.head().status, 101);
        client.is_ended();
        while served.control.totals().connections_open() > 0 {
            thread::yield_now();
        }
        assert_eq!(served.stop().handler_panics, 1);
    }
}

#[test]
fn ends_without_waiting_for_upgraded_connections() {
    for driver in drivers() {
        for ends in [|served: &Served| served.control.drain(60_000), |served: &Served| served.control.stop()]
        {
            let (app, handed) = sent();
            let served = Served::of(here().driver(driver), app);
            let mut client = served.connect();
            client.ask("GET", "/kept", &OFFER);
            assert_eq!(client.head().status, 101);
            let handed = handed.recv_timeout(TIMEOUT).expect("it is handed over");
            ends(&served);
            let totals = served.wait();
            assert_eq!((totals.connections_upgraded, totals.connections_open()), (1, 0));
            let mut stream = TcpStream::from(handed.descriptor);
            if testkit::tls::is_on() {
                // Nobody is left to encrypt it.
                let error = stream.write_all(b"after the server").expect_err("the tunnel has ended");
                assert_eq!((error.kind(), client.rest()), (ErrorKind::BrokenPipe, Vec::new()));
                continue;
            }
            stream.write_all(b"after the server").expect("the client is connected");
            drop((stream, handed.guard));
            assert_eq!(client.rest(), b"after the server");
        }
    }
}

#[test]
fn responds_500_to_an_impossible_upgrade() {
    for driver in drivers() {
        let app = App::new()
            .route(
                "/sync",
                get(|request: &Request, response: &mut Response| {
                    response.upgrade(request, "x", |_| unreachable!("it can't be"));
                }),
            )
            .route(
                "/later",
                get(later(async |call: &mut Call| {
                    call.sleep(Duration::from_millis(1)).await;
                    call.upgrade("x", |_| unreachable!("it can't be"));
                })),
            )
            .route(
                "/streams",
                get(later(async |call: &mut Call| {
                    call.upgrade("x", |_| unreachable!("it can't be"));
                    let mut body = call.begin(Head::new(Status::OK));
                    body.send(b"a stream").await.expect("the client is connected");
                })),
            )
            .route(
                "/odd",
                get(|request: &Request, response: &mut Response| {
                    response.upgrade(request, "x\r\nY: z", |_| unreachable!("it can't be"));
                }),
            );
        let served = Served::of(here().driver(driver), app);
        for target in ["/sync", "/later"] {
            for fields in
                ["", "Connection: upgrade\r\n", "Upgrade: x\r\n", "Connection: upgrade\r\nUpgrade: y\r\n"]
            {
                let mut client = served.connect();
                client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
                assert_eq!(client.response("GET").status, 500, "{target} {fields:?}");
            }
            let mut client = served.connect();
            client.send(UPGRADE.replace("/up", target).replace("1.1", "1.0"));
            assert_eq!(client.response("GET").status, 500, "{target} in HTTP/1.0");
            let mut client = served.connect();
            client.send(UPGRADE.replace("/up", target).replace("Host", "Content-Length: 4\r\nHost") + "body");
            assert_eq!(client.response("GET").status, 500, "{target} with a body");
        }
        for target in ["/streams", "/odd"] {
            assert_eq!(served.connect().request("GET", target, &OFFER).status, 500, "{target}");
        }
        assert_eq!(served.stop().connections_upgraded, 0);
    }
}

#[test]
fn upgrades_from_async_handlers_and_with_a_length_of_0() {
    for driver in drivers() {
        let app = App::new().route(
            "/up",
            get(later(async |call: &mut Call| {
                call.sleep(Duration::from_millis(1)).await;
                call.upgrade("x/2", |handed| drop(thread::spawn(|| speak(handed))));
                call.response().field("X-Own", "set");
            })),
        );
        let served = Served::of(here().driver(driver), app);
        for with_it in [0, 100, 5000] {
            assert_taken_over(&mut served.connect(), &[], with_it);
        }
        let mut client = served.connect();
        client.ask("GET", "/up", &[&OFFER[..], &["Content-Length: 0"]].concat());
        assert_eq!(client.head().status, 101);
    }
}

#[test]
fn upgrades_a_request_with_a_length_of_0_whose_body_is_read() {
    for driver in drivers() {
        for waits in [false, true] {
            let app = App::new().route(
                "/up",
                get(later_reading(async move |call: &mut Call<(), Reading>| {
                    if waits {
                        call.sleep(Duration::from_millis(1)).await;
                    }
                    assert!(call.read().await.is_none());
                    call.upgrade("x/2", |handed| drop(thread::spawn(|| speak(handed))));
                    call.response().field("X-Own", "set");
                })),
            );
            let served = Served::of(here().driver(driver), app);
            let mut client = served.connect();
            client.send(UPGRADE.replace("Host", "Content-Length: 0\r\nHost") + "with it");
            assert_eq!(client.head().status, 101, "waits: {waits}");
            let sum: u32 = b"with it".iter().map(|byte| u32::from(*byte)).sum();
            client.end_sending();
            assert_eq!(client.rest(), format!("{GREETING}7 {sum}").as_bytes());
            assert_eq!(served.stop().connections_upgraded, 1);
        }
    }
}

/// RFC 9110 section 7.8, with and without a request body.
#[test]
fn sends_100_before_101_to_a_client_that_expects_it() {
    for driver in drivers() {
        let app = app()
            .route(
                "/later",
                get(later(async |call: &mut Call| {
                    call.sleep(Duration::from_millis(1)).await;
                    call.upgrade("x/2", |handed| drop(thread::spawn(|| speak(handed))));
                })),
            )
            .route(
                "/refuses",
                get(|request: &Request, response: &mut Response| {
                    response.upgrade(request, "y", |_| unreachable!("it isn't offered"));
                }),
            );
        let served = Served::of(here().driver(driver), app);
        for (target, length) in [("/up", ""), ("/up", "Content-Length: 0\r\n"), ("/later", "")] {
            let mut client = served.connect();
            let expecting = format!("{length}Expect: 100-continue\r\nHost");
            client.send(UPGRADE.replace("/up", target).replace("Host", &expecting));
            assert_eq!(client.head().status, 100, "{target} {length:?}");
            assert_eq!(client.head().status, 101, "{target} {length:?}");
        }
        let mut client = served.connect();
        client.send(UPGRADE.replace("/up", "/refuses").replace("Host", "Expect: 100-continue\r\nHost"));
        assert_eq!(client.response("GET").status, 500, "no 100 without a 101");
    }
}

/// RFC 9110 section 7.8.
#[test]
fn adds_the_connection_option_to_an_upgrade_header() {
    if testkit::http2::skips("it has no field Connection") {
        return;
    }
    for driver in drivers() {
        let app = App::new().route(
            "/",
            get(|request: &Request, response: &mut Response| {
                response.status(426).field("UPGRADE", "x/2").field_once("UPGRADE", "x/2");
                if request.query_raw() == Some("close") {
                    response.close();
                }
            }),
        );
        let served = Served::of(here().driver(driver), app);
        let mut client = served.connect();
        let options = |response: &ClientResponse| {
            let is_option = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("Connection");
            response.fields.iter().filter(is_option).map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        for (target, expected) in [("/", &["upgrade"][..]), ("/?close", &["close", "upgrade"])] {
            let response = client.get(target);
            assert_eq!((response.status, response.field("Upgrade")), (426, Some("x/2")));
            assert_eq!(options(&response), expected, "{target}");
        }
    }
}

/// Queues an extended CONNECT (RFC 8441).
fn extended_connect(client: &mut Http2Client<TcpStream>, path: &str) -> u32 {
    client.session().begin(&[
        (":method", "CONNECT"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "a"),
        (":protocol", "x"),
    ])
}

/// The same handlers as for HTTP/1.1, which don't see the difference.
#[test]
fn upgrades_streams_of_http2_by_the_same_handlers() {
    if testkit::tls::skips("its client needs HTTP/2 in clear") {
        return;
    }
    let http2 = Http2Options { prior_knowledge: true, ..Http2Options::default() };
    for driver in drivers() {
        let served = Served::of(here().driver(driver).http2(http2), app());
        let stream = TcpStream::connect(served.address).expect("it listens");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a socket");
        let mut client = Http2Client::in_clear(stream).expect("it serves HTTP/2");
        for path in ["/up", "/up-later"] {
            let stream = extended_connect(&mut client, path);
            client.flush().expect("it is sent");
            let head = client.head(stream).expect("a head");
            assert_eq!((head.status, head.field("x-own"), head.field("upgrade")), (200, Some("set"), None));
            let plain = client.send("GET", "/plain", &[], b"").expect("it is sent");
            assert_eq!(client.response(plain).expect("a response").text(), "plain");
            client.session().send_data(stream, &[b'w'; REST_BYTES], true);
            let mut said = Vec::new();
            loop {
                client.flush().expect("it is sent");
                let piece = client.data(stream).expect("content");
                if piece.is_empty() {
                    break;
                }
                said.extend(piece);
            }
            let said = String::from_utf8(said).expect("text");
            let sum = REST_BYTES * usize::from(b'w');
            assert_eq!(said, format!("{GREETING}{REST_BYTES} {sum}"), "{path}");
        }
        let [ordinary, unknown] = ["/plain", "/none"].map(|path| extended_connect(&mut client, path));
        client.flush().expect("it is sent");
        let response = client.response(ordinary).expect("a response");
        assert_eq!((response.status, response.field("allow")), (405, Some("GET, HEAD, OPTIONS")));
        assert_eq!(client.response(unknown).expect("a response").status, 404);
        drop(client);
        let totals = served.stop();
        assert_eq!((totals.connections_upgraded, totals.connections_closed), (2, 1));
    }
}
