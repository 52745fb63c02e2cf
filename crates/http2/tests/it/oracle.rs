//! Whole conversations with the client of the crate `h2`, over a pipe in memory.

use bytes::Bytes;
use http::{HeaderMap, Request};
use shearwater_http2::{Connection, HeadBuffer, ResponseHead, StreamEvent, StreamId, limits::Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// Requests of a conversation, all at once.
const REQUESTS: usize = 30;

/// A request that is being received, then echoed.
struct Echo {
    stream: StreamId,
    content: Vec<u8>,
    sent: usize,
    is_complete: bool,
}

/// Serves a connection until the client closes it: each response has the request's content, and a trailer.
async fn serve(mut pipe: DuplexStream) {
    let limits = Limits::default();
    let (mut head, mut out) = (HeadBuffer::new(limits.head), Vec::new());
    let mut server = Connection::new(limits, 0, &mut out);
    let (mut input, mut buffer, mut echoes) = (Vec::new(), vec![0; 5_000], Vec::<Echo>::new());
    loop {
        pipe.write_all(&out).await.expect("the client reads");
        out.clear();
        server.output_sent();
        let len = pipe.read(&mut buffer).await.expect("a pipe in memory");
        if len == 0 {
            return;
        }
        input.extend_from_slice(&buffer[..len]);
        let mut at = 0;
        loop {
            let step = server.receive(&input[at..], &mut head, &mut out).expect("the client is correct");
            at += step.consumed;
            let find = |stream| move |echo: &&mut Echo| echo.stream == stream;
            match step.event {
                StreamEvent::More => break,
                StreamEvent::Request { stream, ends } => {
                    let path = head.head().path().to_owned();
                    let line = format!("X-Path: {path}\r\nServer: test\r\n");
                    let response =
                        ResponseHead { status: 200, lines: &[line.as_bytes()], ..ResponseHead::default() };
                    assert!(server.respond(stream, &response, false, &mut out));
                    echoes.push(Echo { stream, content: Vec::new(), sent: 0, is_complete: ends });
                }
                StreamEvent::Data { stream, content, ends } => {
                    let echo = echoes.iter_mut().find(find(stream)).expect("it has begun");
                    echo.content.extend_from_slice(content);
                    echo.is_complete |= ends;
                    server.consumed(stream, content.len(), &mut out);
                }
                StreamEvent::Trailers { stream } => {
                    assert_eq!(head.trailers().next().map(|field| field.name), Some("x-sum"));
                    echoes.iter_mut().find(find(stream)).expect("it has begun").is_complete = true;
                }
                other => panic!("{other:?}"),
            }
        }
        input.drain(..at);
        send(&mut server, &mut echoes, &mut out);
    }
}

/// Sends what the windows allow, in the scheduler's order.
fn send(server: &mut Connection, echoes: &mut Vec<Echo>, out: &mut Vec<u8>) {
    for echo in &*echoes {
        server.set_available(echo.stream, (echo.content.len() - echo.sent) as u64);
    }
    while let Some((stream, len)) = server.next_data(10_000) {
        let echo = echoes.iter_mut().find(|echo| echo.stream == stream).expect("it has content");
        assert!(server.data(stream, &echo.content[echo.sent..echo.sent + len], false, out));
        echo.sent += len;
    }
    echoes.retain(|echo| {
        let is_done = echo.is_complete && echo.sent == echo.content.len();
        assert!(!is_done || server.trailers(echo.stream, b"X-Sum: 1\r\n", out));
        !is_done
    });
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
