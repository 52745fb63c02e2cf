//! Whole conversations with the client of the crate `h2`, over a pipe in memory.

use bytes::Bytes;
use http::{HeaderMap, Request};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::echo::EchoServer;

/// Requests of a conversation, all at once.
const REQUESTS: usize = 30;

/// Serves a connection until the client closes it.
async fn serve(mut pipe: DuplexStream) {
    let (mut server, mut buffer) = (EchoServer::new(), vec![0; 5_000]);
    loop {
        pipe.write_all(&server.take_output()).await.expect("the client reads");
        let len = pipe.read(&mut buffer).await.expect("a pipe in memory");
        if len == 0 {
            return;
        }
        server.receive(&buffer[..len]);
    }
}

/// Sends a request with content and a trailer, and checks its echo.
async fn exchange(mut client: h2::client::SendRequest<Bytes>, number: usize) {
    let content = Bytes::from(vec![number as u8; number * 12_345]);
    std::future::poll_fn(|cx| client.poll_ready(cx)).await.expect("room for a stream");
    let request =
        Request::post(format!("https://a.test/{number}")).header("x-number", number).body(()).unwrap();
    let (response, mut body) = client.send_request(request, false).expect("a request");
    body.reserve_capacity(content.len());
    let mut rest = content.clone();
    let upload = async {
        while !rest.is_empty() {
            body.reserve_capacity(rest.len());
            let capacity = std::future::poll_fn(|cx| body.poll_capacity(cx)).await;
            let room = capacity.expect("an open stream").expect("a window").min(rest.len());
            body.send_data(rest.split_to(room), false).expect("content");
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", "1".parse().unwrap());
        body.send_trailers(trailers).expect("trailers");
    };
    let download = async {
        let response = response.await.expect("a response");
        assert_eq!(response.headers()["x-path"], format!("/{number}"));
        assert_eq!(
            (response.status().as_u16(), &response.headers()["server"]),
            (200, &"test".parse::<http::HeaderValue>().unwrap())
        );
        let mut body = response.into_body();
        let mut received = Vec::new();
        while let Some(piece) = body.data().await {
            let piece = piece.expect("content");
            body.flow_control().release_capacity(piece.len()).expect("a window");
            received.extend_from_slice(&piece);
        }
        let trailers = body.trailers().await.expect("an end").expect("trailers");
        assert_eq!(
            (received, &trailers["x-sum"]),
            (content.to_vec(), &"1".parse::<http::HeaderValue>().unwrap())
        );
    };
    tokio::join!(upload, download);
}

#[test]
fn converses_with_h2() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let (near, far) = tokio::io::duplex(1 << 16);
        let server = tokio::spawn(serve(far));
        let (client, connection) = h2::client::Builder::new()
            .initial_window_size(20_000)
            .header_table_size(300)
            .handshake::<_, Bytes>(near)
            .await
            .expect("a handshake");
        let connection = tokio::spawn(connection);
        let exchanges: Vec<_> =
            (0..REQUESTS).map(|number| tokio::spawn(exchange(client.clone(), number))).collect();
        drop(client);
        for exchange in exchanges {
            exchange.await.expect("an exchange");
        }
        connection.await.expect("no panic").expect("no error");
        server.await.expect("no panic");
    });
}
