//! HTTPS of the library, on each driver: one case for each kind of handler. `SHEARWATER_TEST_TLS=1` runs the whole suite by TLS.

use std::time::Duration;

use shearwater::{App, Call, Gone, Request, Response, Verbosity};
use testkit::TestClient;
use testkit::tls::ClientTls;

use crate::local::server_by_tls;
use crate::served::{Served, drivers};

/// More than the sockets between both hold, and many records.
const LARGE_BYTES: usize = 8 * 1024 * 1024;

fn app() -> App {
    let mut app = App::new();
    app.get("/scheme", |request: &Request, response: &mut Response| {
        response.text(request.scheme());
    });
    app.post("/kept", |request: &Request, response: &mut Response| {
        response.body(request.body());
    })
    .buffer(1_000_000);
    app.post_async("/echo", async |call: &mut Call| {
        while let Some(piece) = call.read().await.map(<[u8]>::to_vec) {
            call.send(&piece).await?;
        }
        Ok::<(), Gone>(())
    })
    .read();
    app.post_async("/count", async |call: &mut Call| {
        let mut count = 0;
        while let Some(piece) = call.read().await {
            count += piece.len();
        }
        call.response().text(&count.to_string());
    })
    .read();
    app.get_async("/events", async |call: &mut Call| {
        for number in 0..3 {
            call.sleep(Duration::from_millis(20)).await;
            call.send(format!("event {number}\n").as_bytes()).await?;
        }
        Ok::<(), Gone>(())
    });
    app.get_async("/large", async |call: &mut Call| {
        for _ in 0..LARGE_BYTES / 4096 {
            call.send(&[b'x'; 4096]).await?;
        }
        Ok::<(), Gone>(())
    });
    app
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
