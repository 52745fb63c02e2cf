//! HTTPS of the library, on each driver: one case for each kind of handler. `SHEARWATER_TEST_TLS=1` runs the whole suite by TLS.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use shearwater::{
    App, Call, Gone, HandedOver, Head, Reading, Request, Response, Status, Verbosity, buffered, get, later,
    later_reading, post,
};
use testkit::TestClient;
use testkit::tls::ClientTls;

use crate::local::server_by_tls;
use crate::served::{Served, drivers};

/// More than the sockets between both hold, and many records.
const LARGE_BYTES: usize = 8 * 1024 * 1024;

fn app() -> App {
    App::new()
        .route(
            "/scheme",
            get(|request: &Request, response: &mut Response| {
                response.text(request.scheme());
            }),
        )
        .route(
            "/kept",
            post(buffered(1_000_000, |_: &Request, body: &[u8], response: &mut Response| {
                response.body(body);
            })),
        )
        .route(
            "/echo",
            post(later_reading(async |call: &mut Call<(), Reading>| {
                let mut body = call.begin(Head::new(Status::OK));
                while let Some(piece) = body.read().await.map(<[u8]>::to_vec) {
                    body.send(&piece).await?;
                }
                Ok::<_, Gone>(body.end())
            })),
        )
        .route(
            "/count",
            post(later_reading(async |call: &mut Call<(), Reading>| {
                let mut count = 0;
                while let Some(piece) = call.read().await {
                    count += piece.len();
                }
                call.response().text(&count.to_string());
            })),
        )
        .route(
            "/events",
            get(later(async |call: &mut Call| {
                let mut body = call.begin(Head::new(Status::OK));
                for number in 0..3 {
                    body.sleep(Duration::from_millis(20)).await;
                    body.send(format!("event {number}\n").as_bytes()).await?;
                }
                Ok::<_, Gone>(body.end())
            })),
        )
        .route(
            "/large",
            get(later(async |call: &mut Call| {
                let mut body = call.begin(Head::new(Status::OK));
                for _ in 0..LARGE_BYTES / 4096 {
                    body.send(&[b'x'; 4096]).await?;
                }
                Ok::<_, Gone>(body.end())
            })),
        )
        .route(
            "/up",
            get(|request: &Request, response: &mut Response| {
                response.upgrade(request, "x", |handed| drop(thread::spawn(|| echo(handed))));
            }),
        )
}

/// Echoes what an upgraded connection receives, until its end.
fn echo(handed: HandedOver) {
    let mut socket = UnixStream::from(handed.descriptor);
    socket.set_nonblocking(false).expect("a socket");
    socket.write_all(&handed.unread).expect("the client is connected");
    let mut buffer = vec![0; 10_000];
    loop {
        let count = socket.read(&mut buffer).expect("the client is connected");
        if count == 0 {
            return;
        }
        socket.write_all(&buffer[..count]).expect("the client is connected");
    }
}

fn on_each_driver(check: impl Fn(&mut dyn FnMut() -> TestClient)) {
    for driver in drivers() {
        let server = server_by_tls().workers(1).driver(driver).verbosity(Verbosity::Off);
        let served = Served::of(server, app());
        let tls = ClientTls::any("localhost");
        check(&mut || TestClient::connect_by_tls(served.address, &tls));
        served.stop();
    }
}

#[test]
fn responds_to_immediate_handlers() {
    on_each_driver(|connect| {
        let mut client = connect();
        assert_eq!(client.get("/scheme").text(), "https");
        let body: Vec<u8> = (0..900_000).map(|at| (at / 255) as u8).collect();
        assert!(client.send_body("POST", "/kept", &[], &body).body == body);
        assert_eq!(client.request("HEAD", "/scheme", &[]).text(), "");
        assert_eq!(client.get("/scheme").text(), "https");
    });
}

/// A head whose first bytes are in a part of a record, after another connection's request: it is parsed anew.
#[test]
fn responds_to_the_own_head_after_a_part_of_a_record() {
    on_each_driver(|connect| {
        let (mut first, mut second) = (connect(), connect());
        for length in [20_000, 60_000, 200_000] {
            let body = vec![b'b'; length];
            assert!(first.send_body("POST", "/kept", &[], &body).body == body, "{length}");
            assert_eq!(second.get("/scheme").text(), "https");
        }
    });
}

#[test]
fn reads_and_sends_chunked_bodies() {
    on_each_driver(|connect| {
        let mut client = connect();
        for chunk_bytes in [1, 1000, 40_000] {
            let body: Vec<u8> = (0..chunk_bytes * 20).map(|at| (at / 7) as u8).collect();
            client.ask("POST", "/echo", &["Transfer-Encoding: chunked"]);
            for chunk in body.chunks(chunk_bytes) {
                client.send(format!("{:x}\r\n", chunk.len())).send(chunk).send("\r\n");
            }
            let response = client.send("0\r\n\r\n").response("POST");
            assert_eq!((response.status, response.field("Transfer-Encoding")), (200, Some("chunked")));
            assert!(response.body == body, "chunks of {chunk_bytes}");
        }
    });
}

#[test]
fn takes_uploads_by_async_handlers() {
    on_each_driver(|connect| {
        let mut client = connect();
        let continues = ["Expect: 100-continue", "Content-Length: 5000000"];
        client.ask("POST", "/count", &continues);
        assert_eq!(client.response("POST").status, 100);
        assert_eq!(client.send(vec![b'u'; 5_000_000]).response("POST").text(), "5000000");
        assert_eq!(client.get("/scheme").text(), "https");
    });
}

#[test]
fn streams_piece_by_piece() {
    on_each_driver(|connect| {
        let mut client = connect();
        client.ask("GET", "/events", &[]).head();
        for number in 0..3 {
            assert_eq!(client.data(), format!("event {number}\n").as_bytes());
        }
        assert!(client.data().is_empty());
        assert_eq!(client.get("/large").body.len(), LARGE_BYTES);
    });
}

#[test]
fn tells_truncation_from_an_orderly_end() {
    on_each_driver(|connect| {
        let mut client = connect();
        assert_eq!(client.get("/scheme").text(), "https");
        // The server's own close_notify.
        client.ask("GET", "/scheme", &["Connection: close"]).response("GET");
        client.is_ended();
        // The client's close_notify: what was requested before it still gets a response.
        let mut client = connect();
        client.ask("GET", "/events", &[]).end_sending();
        assert_eq!(client.response("GET").text(), "event 0\nevent 1\nevent 2\n");
        client.is_ended();
    });
}

/// The program gets one end of a socket pair, and the worker copies.
#[test]
fn passes_the_bytes_of_an_upgraded_connection() {
    on_each_driver(|connect| {
        let mut client = connect();
        client.send("GET /up HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nwith it");
        assert_eq!(client.head().status, 101);
        assert_eq!(client.exactly(7), b"with it");
        for number in 0..20 {
            let message: Vec<u8> = (0..65_536_u32).map(|at| (at / 251 + number) as u8).collect();
            client.send(&message);
            assert!(client.exactly(message.len()) == message, "{number}");
        }
        client.send("the last").end_sending();
        assert_eq!(client.rest(), b"the last");
    });
}
