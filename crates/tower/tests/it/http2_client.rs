//! Clients of HTTP/2 in clear, and hyper as a server to compare with.

use std::io::{Read, Write};
use std::net::SocketAddr;

use axum::Router;
use axum::body::Bytes;
use axum::http::response::Parts;
use axum::http::{HeaderMap, Request};
use axum::serve::ListenerExt;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use testkit::TIMEOUT;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

use crate::served::runtime;

/// A router served by `axum::serve`, which is hyper.
pub(crate) struct OnHyper {
    pub(crate) address: SocketAddr,
    runtime: Option<Runtime>,
}

impl OnHyper {
    pub(crate) fn new(router: Router) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("its address");
        let listener = listener.tap_io(|socket| socket.set_nodelay(true).expect("an option"));
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self { address, runtime: Some(runtime) }
    }
}

impl Drop for OnHyper {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

/// Runs a test's client.
pub(crate) fn run<T>(client: impl Future<Output = T>) -> T {
    runtime().block_on(async { tokio::time::timeout(TIMEOUT, client).await.expect("ends in time") })
}

/// A connection of the crate `h2`.
pub(crate) struct Client {
    address: SocketAddr,
    requests: SendRequest<Bytes>,
}

/// A response that was received to its end.
pub(crate) struct Received {
    pub(crate) head: Parts,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: HeaderMap,
}

impl Received {
    pub(crate) fn text(&self) -> &str {
        str::from_utf8(&self.body).expect("text")
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name).map(|value| value.to_str().expect("ASCII"))
    }
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).await.expect("connects");
        socket.set_nodelay(true).expect("an option");
        let (requests, connection) = h2::client::handshake(socket).await.expect("HTTP/2");
        // Each request reports the connection's failure.
        tokio::spawn(async { drop(connection.await) });
        Self { address, requests }
    }

    /// Sends the head of a request.
    pub(crate) async fn begin(
        &mut self,
        method: &str,
        target: &str,
        fields: &[(&str, &str)],
        ends: bool,
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let mut request = Request::builder().method(method).uri(format!("http://{}{target}", self.address));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(()).expect("a request");
        self.requests = self.requests.clone().ready().await.expect("a connection");
        self.requests.send_request(request, ends).expect("a stream")
    }

    /// Sends the head of an extended CONNECT to a WebSocket (RFC 8441).
    pub(crate) async fn connect_websocket(&mut self, target: &str) -> (ResponseFuture, SendStream<Bytes>) {
        let mut request = Request::builder()
            .method("CONNECT")
            .uri(format!("http://{}{target}", self.address))
            .header("sec-websocket-version", "13")
            .body(())
            .expect("a request");
        request.extensions_mut().insert(h2::ext::Protocol::from_static("websocket"));
        self.requests = self.requests.clone().ready().await.expect("a connection");
        self.requests.send_request(request, false).expect("a stream")
    }

    /// Returns true if the server's SETTINGS, which have come with a response, enable that.
    pub(crate) fn can_connect_websockets(&self) -> bool {
        self.requests.is_extended_connect_protocol_enabled()
    }

    pub(crate) async fn get(&mut self, target: &str) -> Result<Received, h2::Error> {
        let (response, _) = self.begin("GET", target, &[], true).await;
        receive(response).await
    }

    /// Sends a request with content and trailers.
    pub(crate) async fn post(
        &mut self,
        target: &str,
        fields: &[(&str, &str)],
        body: &[u8],
        trailers: Option<HeaderMap>,
    ) -> Result<Received, h2::Error> {
        let (response, mut stream) = self.begin("POST", target, fields, false).await;
        let send = async {
            send_all(&mut stream, body, trailers.is_none()).await;
            trailers.into_iter().for_each(|trailers| stream.send_trailers(trailers).expect("an open stream"));
        };
        // The response may come first.
        tokio::join!(receive(response), send).0
    }
}

/// Sends content as far as windows allow, until all is sent or the server has reset the stream.
pub(crate) async fn send_all(stream: &mut SendStream<Bytes>, mut body: &[u8], ends: bool) {
    while !body.is_empty() {
        stream.reserve_capacity(body.len());
        let Some(Ok(room)) = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await else { return };
        let (now, later) = body.split_at(room.min(body.len()));
        stream.send_data(Bytes::copy_from_slice(now), ends && later.is_empty()).expect("an open stream");
        body = later;
    }
}

pub(crate) async fn receive(response: ResponseFuture) -> Result<Received, h2::Error> {
    let (head, mut stream) = response.await?.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = piece(&mut stream).await {
        body.extend_from_slice(&piece?);
    }
    let trailers = stream.trailers().await?.unwrap_or_default();
    Ok(Received { head, body, trailers })
}

/// Receives the next piece of a body, without empty ones.
pub(crate) async fn piece(stream: &mut RecvStream) -> Option<Result<Bytes, h2::Error>> {
    loop {
        match stream.data().await? {
            Ok(piece) if piece.is_empty() => {}
            Ok(piece) => return Some(stream.flow_control().release_capacity(piece.len()).map(|()| piece)),
            Err(error) => return Some(Err(error)),
        }
    }
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
/// END_STREAM and END_HEADERS.
const WHOLE: u8 = 5;
const END_STREAM: u8 = 1;

/// Sends a request of these fields as they are, on a new connection, and returns the content of the response.
pub(crate) fn content_of(mut connection: impl Read + Write, fields: &[(&str, &str)]) -> String {
    let mut block = Vec::new();
    for (name, value) in fields {
        // A literal without indexing, and strings of less than 127 bytes.
        block.extend([0, name.len() as u8]);
        block.extend_from_slice(name.as_bytes());
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
    }
    let head = |kind: u8, flags: u8, stream: u8, len: usize| [0, 0, len as u8, kind, flags, 0, 0, 0, stream];
    let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    request.extend(head(SETTINGS, 0, 0, 0));
    request.extend(head(HEADERS, WHOLE, 1, block.len()));
    request.extend(block);
    connection.write_all(&request).expect("the server reads");
    let mut content = Vec::new();
    loop {
        let mut head = [0; 9];
        connection.read_exact(&mut head).expect("a frame");
        let [l0, l1, l2, kind, flags, _, _, _, stream] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, l0, l1, l2]) as usize];
        connection.read_exact(&mut payload).expect("a whole frame");
        if kind == DATA {
            content.extend_from_slice(&payload);
        }
        if stream == 1 && matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            return String::from_utf8(content).expect("text");
        }
        assert!(kind != 3 && kind != 7, "the request is refused: {}", payload.escape_ascii());
    }
}
