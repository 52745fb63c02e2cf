//! Upgraded connections: WebSocket and other protocols, limits, rejected upgrades.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::ws::{Message, WebSocketUpgrade};
use axum::extract::{ConnectInfo, Request};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures_util::stream;
use hyper_util::rt::TokioIo;
use shearwater::{App, DriverChoice, Limits, Timeouts, Verbosity, after};
use shearwater_tower::Serve;
use testkit::tls::ClientTls;
use testkit::{ClientResponse, TIMEOUT, TestClient, until_refused};
use tokio::io::AsyncWriteExt;

use crate::local::server_by_tls;
use crate::served::{Served, drivers, here, runtime, started, surrounding};

/// A WebSocket that sends the client's address and then echoes.
async fn echo(ConnectInfo(peer): ConnectInfo<SocketAddr>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(async move |mut socket| {
        socket.send(Message::text(peer.to_string())).await.expect("the client is connected");
        while let Some(Ok(message)) = socket.recv().await {
            if let Message::Text(text) = message {
                socket.send(Message::Text(text)).await.expect("the client is connected");
            }
        }
    })
}

fn router() -> Router {
    Router::new()
        .route("/ws", get(echo))
        .route("/", get(|| async { "served" }))
        .route("/soon", get(soon))
        .route(
            "/stream",
            get(|| async { Body::from_stream(stream::iter(["a ", "stream"].map(Ok::<_, String>))) }),
        )
        .route(
            "/endless",
            get(|| async { Body::from_stream(stream::repeat_with(|| Ok::<_, String>(vec![b'x'; 65_536]))) }),
        )
}

async fn soon() -> &'static str {
    tokio::task::yield_now().await;
    "served soon"
}

/// Serves the router behind middleware that sets a header field.
fn websockets(driver: DriverChoice) -> Serve<Router> {
    let app = App::new().with(after(|_: &shearwater::Request, response: &mut shearwater::Response| {
        response.field("X-After", "yes");
    }));
    here(router()).driver(driver).connect_info().fast(app)
}

const HANDSHAKE: [&str; 4] = [
    "Connection: keep-alive, Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/// Upgrades a connection, checks the response, and returns the first message.
fn shake_hands(client: &mut TestClient) -> Vec<u8> {
    client.ask("GET", "/ws", &HANDSHAKE);
    let response = client.head();
    assert_eq!(response.status, 101, "{response:?}");
    for (name, value) in [
        ("Upgrade", Some("websocket")),
        ("Connection", Some("upgrade")),
        ("Sec-WebSocket-Accept", Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")),
        ("Server", Some("shearwater")),
        ("X-After", Some("yes")),
        ("Content-Length", None),
    ] {
        assert_eq!(response.field(name), value, "{response:?}");
    }
    assert!(response.field("Date").is_some(), "{response:?}");
    message(client)
}

/// Sends a text frame, masked with zeros.
fn say(client: &mut TestClient, text: &str) {
    let mut frame = vec![0x81, 0x80 | text.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(text.as_bytes());
    client.send(frame);
}

/// Reads a text frame.
fn message(client: &mut TestClient) -> Vec<u8> {
    let head = client.exactly(2);
    assert_eq!(head[0], 0x81, "a whole text");
    client.exactly(usize::from(head[1]))
}

#[test]
fn serves_axums_web_sockets() {
    if testkit::http2::skips("it has no upgrades") {
        return;
    }
    for driver in drivers() {
        let served = Served::of(websockets(driver));
        let mut client = served.connect();
        assert_eq!(client.get("/").text(), "served", "an ordinary request goes before it");
        let own = client.stream().local_addr().expect("an address").to_string();
        assert_eq!(shake_hands(&mut client), own.as_bytes());
        for number in 0..100 {
            let text = format!("said {number}");
            say(&mut client, &text);
            assert_eq!(message(&mut client), text.as_bytes());
        }
        assert_eq!(served.connect().get("/").text(), "served");
    }
}

/// Returns a frame of a client, masked with zeros.
fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let len = u64::try_from(payload.len()).expect("small").to_be_bytes();
    [&[0x80 | opcode, 0x80 | 127], &len[..], &[0; 4], payload].concat()
}

/// Reads a frame; returns its opcode and payload.
fn read_frame(client: &mut TestClient) -> (u8, Vec<u8>) {
    let head = client.exactly(2);
    let len_bytes = match head[1] {
        126 => 2,
        127 => 8,
        short => return (head[0] & 15, client.exactly(usize::from(short))),
    };
    let len = client.exactly(len_bytes).iter().fold(0, |len, byte| len << 8 | usize::from(*byte));
    (head[0] & 15, client.exactly(len))
}

/// Echoes messages; closes after a text.
async fn echo_until_text(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(async |mut socket| {
        while let Some(Ok(message)) = socket.recv().await {
            match message {
                Message::Text(_) => return drop(socket.send(Message::Close(None)).await),
                // The next `recv` responds to it.
                Message::Close(_) => {}
                message => socket.send(message).await.expect("the client is connected"),
            }
        }
    })
}

/// `wss`, in each run of the suite.
#[test]
fn serves_axums_web_sockets_by_tls() {
    const BINARY: u8 = 2;
    for driver in drivers() {
        for server_closes in [false, true] {
            let serve = here(Router::new().route("/ws", any(echo_until_text)));
            let serve = serve.server(|_| server_by_tls().workers(1).verbosity(Verbosity::Off));
            let served = Served::of(serve.driver(driver));
            let mut client = TestClient::connect_by_tls(served.address, &ClientTls::any("localhost"));
            let fields: String = HANDSHAKE.iter().map(|field| format!("{field}\r\n")).collect();
            let head = format!("GET /ws HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
            client.send([head.as_bytes(), &frame(BINARY, b"early")].concat());
            assert_eq!(client.head().status, 101);
            assert_eq!(read_frame(&mut client), (BINARY, b"early".to_vec()));
            for number in 0..20 {
                let message: Vec<u8> = (0..65_536_u32).map(|at| (at / 251 + number) as u8).collect();
                client.send(frame(BINARY, &message));
                assert!(read_frame(&mut client) == (BINARY, message), "{number}");
            }
            assert_eq!(served.totals().connections_open(), 1);
            client.send(if server_closes { frame(1, b"the last") } else { frame(8, &[]) });
            assert_eq!(read_frame(&mut client).0, 8, "a close frame");
            client.is_ended();
            drop(client);
            until("nothing is left", || served.totals().connections_open() == 0);
            assert_eq!(served.totals().connections_broken, 0);
        }
    }
}

#[test]
fn keeps_bytes_sent_after_the_handshake() {
    for driver in drivers() {
        let served = Served::of(websockets(driver));
        let mut client = served.connect();
        let fields: String = HANDSHAKE.iter().map(|field| format!("{field}\r\n")).collect();
        let mut all = format!("GET /ws HTTP/1.1\r\nHost: h\r\n{fields}\r\n").into_bytes();
        all.extend_from_slice(&[0x81, 0x85, 0, 0, 0, 0]);
        all.extend_from_slice(b"early");
        client.send(all);
        assert_eq!(client.head().status, 101);
        message(&mut client);
        assert_eq!(message(&mut client), b"early");
    }
}

#[test]
fn limits_upgraded_connections() {
    let served = Served::of(websockets(DriverChoice::Auto).upgrades_max(2));
    let mut first = served.connect();
    let mut second = served.connect();
    shake_hands(&mut first);
    shake_hands(&mut second);
    let mut third = served.connect();
    assert_eq!(third.request("GET", "/ws", &HANDSHAKE).status, 426, "axum finds no upgrade");
    assert_eq!(third.request("GET", "/", &HANDSHAKE).text(), "served", "an upgrade isn't needed here");
    // A closed connection makes room, at a moment the client can't know.
    drop(first);
    loop {
        let mut client = served.connect();
        client.ask("GET", "/ws", &HANDSHAKE);
        match client.head() {
            ClientResponse { status: 101, .. } => break,
            response => assert_eq!(response.status, 426),
        }
    }
    say(&mut second, "still here");
    assert_eq!(message(&mut second), b"still here");
}

/// In a worker's own runtime, upgraded connections are tasks like others. The worker ends those that it copies for TLS.
#[test]
fn drain_waits_for_upgraded_connections_only_in_own_runtimes() {
    for driver in drivers() {
        let running = started(websockets(driver).drain_ms(86_400_000)).expect("starts");
        let mut client = TestClient::connect(running.address());
        shake_hands(&mut client);
        running.drain();
        if surrounding().is_none() && !testkit::tls::is_on() {
            until_refused(running.address());
            say(&mut client, "still here");
            assert_eq!(message(&mut client), b"still here");
            drop(client);
        }
        runtime().block_on(running.ended()).expect("ends normally");
    }
}

#[test]
fn ignores_upgrades_that_cannot_be() {
    let router = Router::new().route("/", axum::routing::post(|body: String| async { body }));
    let served = Served::new(router);
    let response =
        served.connect().send_body("POST", "/", &["Connection: upgrade", "Upgrade: other/1"], b"a body");
    assert_eq!((response.status, response.text()), (200, "a body"));
    let mut client = served.connect();
    client.send("GET /none HTTP/1.0\r\nConnection: upgrade, keep-alive\r\nUpgrade: other/1\r\n\r\n");
    assert_eq!(client.response("GET").field("connection"), Some("keep-alive"), "HTTP/1.0 has none");
}

/// Returns a response without its `Date`.
fn undated(mut response: ClientResponse) -> ClientResponse {
    response.fields.retain(|(name, _)| !name.eq_ignore_ascii_case("date"));
    response
}

#[test]
fn offers_do_not_change_other_responses() {
    if testkit::http2::skips("it has no upgrades") {
        return;
    }
    let offers: [&[&str]; 5] = [
        &HANDSHAKE,
        &["Connection: Upgrade", "Upgrade: x"],
        &["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"],
        &["Connection: keep-alive", "Upgrade: websocket"],
        &["Connection: Upgrade", "Upgrade: \"odd, x/1,, websocket/"],
    ];
    for driver in drivers() {
        let served = Served::of(websockets(driver));
        let mut client = served.connect();
        for target in ["/", "/soon", "/stream", "/none"] {
            for method in ["GET", "HEAD", "DELETE"] {
                let plain = undated(client.request(method, target, &[]));
                for offer in offers {
                    let response = undated(client.request(method, target, offer));
                    assert_eq!(response, plain, "{method} {target} {offer:?}");
                }
            }
        }
    }
}

#[test]
fn resets_a_client_that_offers_an_upgrade_and_never_reads() {
    let timeouts = Timeouts { write_ms: 200, ..Timeouts::default() };
    for driver in drivers() {
        let served = Served::of(websockets(driver).timeouts(timeouts));
        let clients: Vec<_> = [&HANDSHAKE[..], &["Connection: upgrade", "Upgrade: x"]]
            .into_iter()
            .cycle()
            .take(20)
            .map(|offer| {
                let mut client = served.connect();
                client.ask("GET", "/endless", offer);
                client
            })
            .collect();
        until("they are reset", || served.totals().connections_reset == 20);
        drop(clients);
    }
}

#[test]
fn responds_to_requests_pipelined_after_an_offer() {
    for driver in drivers() {
        let served = Served::of(websockets(driver));
        let mut client = served.connect();
        let offer: String = HANDSHAKE.iter().map(|field| format!("{field}\r\n")).collect();
        let targets = ["/", "/soon", "/none", "/stream"];
        let requests = targets.map(|target| format!("GET {target} HTTP/1.1\r\nHost: h\r\n{offer}\r\n"));
        client.send(requests.concat() + "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        for (status, text) in
            [(200, "served"), (200, "served soon"), (404, ""), (200, "a stream"), (200, "served")]
        {
            let response = client.response("GET");
            assert_eq!((response.status, response.text()), (status, text));
        }
    }
}

#[test]
fn counts_upgraded_connections_per_address() {
    for driver in drivers() {
        let limits = Limits { connections_per_address_max: 2, ..Limits::default() };
        let served = Served::of(websockets(driver).limits(limits));
        let mut lines = [served.connect(), served.connect()];
        lines.iter_mut().for_each(|client| drop(shake_hands(client)));
        assert_eq!(served.totals().connections_open(), 2);
        let third = TcpStream::connect(served.address).and_then(|mut stream| stream.read(&mut [0]));
        assert_eq!(third.expect_err("no end in order").kind(), ErrorKind::ConnectionReset);
        let [first, _second] = lines;
        drop(first);
        until("the first has ended", || served.totals().connections_open() == 1);
        assert_eq!(served.connect().get("/").text(), "served");
    }
}

#[test]
fn counts_upgraded_connections_in_the_total() {
    if testkit::tls::skips("its third client is to wait after its handshake") {
        return;
    }
    for driver in drivers() {
        let served = Served::of(websockets(driver).server(|server| server.connections_max(2)));
        let mut lines = [served.connect(), served.connect()];
        lines.iter_mut().for_each(|client| drop(shake_hands(client)));
        let mut third = served.connect();
        third.ask("GET", "/", &[]);
        until("accepting pauses", || served.totals().hit_connections > 0);
        assert_eq!(served.totals().connections_accepted, 2);
        let [first, second] = lines;
        drop(first);
        assert_eq!(third.response("GET").text(), "served");
        drop(second);
    }
}

/// Polls until a condition holds.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < TIMEOUT, "not in time: {what}");
        std::thread::yield_now();
    }
}

/// Responds with this status and `Upgrade` field, reports the result of the upgrade to the test, and echoes.
fn switching(status: StatusCode, upgrade: Option<&'static str>) -> (Router, Receiver<Result<(), String>>) {
    let (sender, ends) = sync_channel(1);
    let switch = move |mut request: Request| {
        let (on_upgrade, sender) = (hyper::upgrade::on(&mut request), sender.clone());
        tokio::spawn(async move {
            let upgraded = on_upgrade.await;
            sender.send(upgraded.as_ref().map(drop).map_err(ToString::to_string)).expect("the test receives");
            let Ok(upgraded) = upgraded else { return };
            let (mut read, mut write) = tokio::io::split(TokioIo::new(upgraded));
            tokio::io::copy(&mut read, &mut write).await.expect("the client is connected");
            write.shutdown().await.expect("the client is connected");
        });
        let mut response = status.into_response();
        response
            .headers_mut()
            .extend(upgrade.map(|value| (header::UPGRADE, HeaderValue::from_static(value))));
        async { response }
    };
    (Router::new().route("/", any(switch)), ends)
}

#[test]
fn passes_all_bytes_of_a_registered_protocol() {
    const LENGTH: usize = 300_000;
    for driver in drivers() {
        let (router, ends) = switching(StatusCode::SWITCHING_PROTOCOLS, Some("Tide-Way/2"));
        let served = Served::of(here(router).driver(driver).upgrades(["websocket", "tide-WAY/1"]));
        for offer in ["Tide-Way", "h2c, TIDE-way/2", "tide-way/2\r\nUpgrade: other"] {
            let mut client = served.connect();
            let head =
                format!("GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: {offer}\r\n\r\n");
            // Bytes that look like another request belong to the new protocol.
            let behind = "GET /none HTTP/1.1\r\nHost: h\r\n\r\n".repeat(100);
            client.send(head + &behind);
            let response = client.head();
            assert_eq!((response.status, response.field("Upgrade")), (101, Some("Tide-Way/2")), "{offer}");
            ends.recv_timeout(TIMEOUT).expect("it is notified").expect("it is upgraded");
            let sent: Vec<u8> = (0..LENGTH).map(|at| u8::try_from(at % 251).expect("small")).collect();
            client.send(&sent).end_sending();
            assert!(client.rest() == [behind.as_bytes(), &sent].concat(), "{offer}");
        }
        assert_eq!(served.totals().connections_upgraded, 3);
    }
}

#[test]
fn ends_the_upgrade_without_a_101() {
    for driver in drivers() {
        for offer in ["websocket", "x"] {
            let (router, ends) = switching(StatusCode::OK, Some("websocket"));
            let served = Served::of(here(router).driver(driver));
            let mut client = served.connect();
            let response = client.request("GET", "/", &["Connection: upgrade", &format!("Upgrade: {offer}")]);
            assert_eq!((response.status, response.field("Connection")), (200, Some("upgrade")));
            ends.recv_timeout(TIMEOUT).expect("it is notified").expect_err("it is not upgraded");
            assert_eq!(client.get("/").status, 200, "the connection stays");
        }
    }
}

#[test]
fn replaces_an_impossible_101_with_500() {
    for driver in drivers() {
        for (upgrade, offer) in [
            (None, "Upgrade: websocket"),
            (Some("other"), "Upgrade: websocket"),
            (Some("other"), "Upgrade: other"),
            (Some("other"), "Upgrade: websocket, other"),
            (Some("other/2"), "Upgrade: other/2\r\nUpgrade: websocket"),
            (Some("websocket"), "Upgrade: websocket\r\nContent-Length: 1"),
            (Some("websocket"), "X: websocket"),
        ] {
            let (router, ends) = switching(StatusCode::SWITCHING_PROTOCOLS, upgrade);
            let served = Served::of(here(router).driver(driver));
            let mut client = served.connect();
            client.send(format!("GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\n{offer}\r\n\r\nx"));
            assert_eq!(client.response("GET").status, 500, "{upgrade:?} {offer}");
            ends.recv_timeout(TIMEOUT).expect("it is notified").expect_err("it is not upgraded");
            assert_eq!(served.totals().connections_upgraded, 0);
        }
    }
}

#[test]
fn rejects_invalid_protocols_at_startup() {
    for protocol in ["", "web socket", "/1", "x/", "x/1/2", "a,b"] {
        let Err(error) = here(Router::new()).upgrades([protocol]).start() else {
            panic!("it starts with {protocol:?}")
        };
        let told = error.to_string();
        assert!(told.contains(&format!("invalid protocol {protocol:?}")), "{told}");
    }
}
