//! Connections: keep-alive, pipelining, split requests, disconnects, graceful shutdown.

use std::future::pending;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Path, Request, State};
use axum::http::header;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::{StreamExt, stream};
use socket2::SockRef;
use testkit::TestClient;
use tokio::sync::{Semaphore, mpsc};

use crate::serve::{Served, serve, serve_at};

const PIPELINED: usize = 64;
const REQUESTS: usize = 1000;

fn plain_served() -> Served {
    let slow = async |Path(number): Path<u32>| {
        // Later requests complete first, and their responses must wait.
        for _ in number..8 {
            tokio::task::yield_now().await;
        }
        number.to_string()
    };
    let app = Router::new()
        .route("/", get(async || "hello"))
        .route("/number/{n}", get(slow))
        .route("/close", get(async || ([(header::CONNECTION, "close")], "the last one")))
        .route("/ignore", post(async || "not read"))
        .route("/count", post(async |body: Bytes| body.len().to_string()));
    serve(app)
}

#[test]
fn serves_many_requests_per_connection() {
    let server = plain_served();
    let mut client = server.connect();
    for _ in 0..REQUESTS {
        let response = client.get("/");
        assert_eq!((response.status, response.text()), (200, "hello"));
        assert_eq!(response.content_length(), Some(5));
        assert_eq!(response.all("date").len(), 1);
    }
}

#[test]
fn responds_to_pipelined_requests_in_order() {
    let server = plain_served();
    let mut client = server.connect();
    let request = |number: usize| format!("GET /number/{number} HTTP/1.1\r\nHost: test\r\n\r\n");
    client.send((0..PIPELINED).map(request).collect::<String>());
    for number in 0..PIPELINED {
        assert_eq!(client.response("GET").text(), number.to_string());
    }
}

#[test]
fn closes_on_request_of_either_side() {
    let server = plain_served();
    let mut client = server.connect();
    let last = client.request("GET", "/", &["Connection: close"]);
    assert_eq!((last.text(), last.field("connection")), ("hello", Some("close")));
    client.is_ended();

    let mut client = server.connect();
    let last = client.get("/close");
    assert_eq!((last.text(), last.field("connection")), ("the last one", Some("close")));
    client.is_ended();
}

#[test]
fn reads_requests_however_split() {
    let server = plain_served();
    let mut client = server.connect();
    let request = b"POST /count HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    for cut in 1..request.len() {
        client.send(&request[..cut]);
        client.send(&request[cut..]);
        assert_eq!(client.response("POST").text(), "5", "cut at {cut}");
    }
}

/// The next request directly follows a body that the handler didn't read.
#[test]
fn skips_a_small_body_that_is_not_read() {
    let server = plain_served();
    let mut client = server.connect();
    for _ in 0..10 {
        client.send("POST /ignore HTTP/1.1\r\nHost: test\r\nContent-Length: 9\r\n\r\nignore meGET / HTTP/1.1\r\nHost: test\r\n\r\n");
        assert_eq!(client.response("POST").text(), "not read");
        assert_eq!(client.response("GET").text(), "hello");
    }
}

#[test]
fn rejects_malformed_requests() {
    let server = plain_served();
    for bytes in [
        "nonsense\r\n\r\n",
        "GET / HTTP/1.1\r\nNo Colon\r\n\r\n",
        "POST /count HTTP/1.1\r\nHost: t\r\nContent-Length: x\r\n\r\n",
    ] {
        let mut client = server.connect();
        client.send(bytes);
        assert_eq!(client.response("GET").status, 400, "{bytes}");
        client.is_ended();
    }
    assert_eq!(server.get("/").text(), "hello");
}

async fn tag(ConnectInfo(peer): ConnectInfo<SocketAddr>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    response.headers_mut().insert("x-peer", peer.to_string().parse().unwrap());
    response
}

#[test]
fn passes_each_connections_address() {
    let show = async |ConnectInfo(peer): ConnectInfo<SocketAddr>| peer.to_string();
    let server = serve(Router::new().route("/", get(show)).layer(middleware::from_fn(tag)));
    let mut clients: Vec<TestClient> = (0..10).map(|_| server.connect()).collect();
    for _ in 0..2 {
        for client in &mut clients {
            let local = client.stream().local_addr().unwrap().to_string();
            let response = client.get("/");
            assert_eq!((response.text(), response.field("x-peer")), (local.as_str(), Some(local.as_str())));
        }
    }
}

const WAIT_MAX: Duration = Duration::from_secs(20);

#[derive(Debug, PartialEq, Eq)]
enum Told {
    Entered,
    Dropped,
}

/// Reports its creation and its drop.
struct Guard(SyncSender<Told>);

impl Guard {
    fn new(teller: &Arc<SyncSender<Told>>) -> Self {
        teller.send(Told::Entered).unwrap();
        Self(SyncSender::clone(teller))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.send(Told::Dropped));
    }
}

async fn guard_wait(State(teller): State<Arc<SyncSender<Told>>>) {
    let _guard = Guard::new(&teller);
    pending::<()>().await;
}

async fn stream_for_ever(State(teller): State<Arc<SyncSender<Told>>>) -> Body {
    let guard = Guard::new(&teller);
    Body::from_stream(stream::repeat_with(move || {
        let _held = &guard;
        Ok::<_, std::io::Error>("again and again ")
    }))
}

/// Dropped with the body.
async fn read_to_end(State(teller): State<Arc<SyncSender<Told>>>, body: Body) -> &'static str {
    let _guard = Guard::new(&teller);
    let mut pieces = body.into_data_stream();
    while let Some(Ok(_)) = pieces.next().await {}
    "read"
}

fn guard_served() -> (Served, Receiver<Told>) {
    let (teller, told) = sync_channel(16);
    let app = Router::new()
        .route("/", get(async || "served"))
        .route("/wait", get(guard_wait))
        .route("/stream", get(stream_for_ever))
        .route("/read", post(read_to_end))
        .with_state(Arc::new(teller));
    (serve(app), told)
}

/// Drops the handler when its client disconnects.
fn check(server: &Served, told: &Receiver<Told>, request: &str, with_reset: bool) {
    let mut client = server.connect();
    client.send(request);
    assert_eq!(told.recv_timeout(WAIT_MAX), Ok(Told::Entered));
    if with_reset {
        SockRef::from(client.stream()).set_linger(Some(Duration::ZERO)).unwrap();
    }
    drop(client);
    assert_eq!(told.recv_timeout(WAIT_MAX), Ok(Told::Dropped));
    assert_eq!(server.get("/").text(), "served");
}

const WAIT: &str = "GET /wait HTTP/1.1\r\nHost: test\r\n\r\n";
const STREAM: &str = "GET /stream HTTP/1.1\r\nHost: test\r\n\r\n";
const READ: &str = "POST /read HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\nthe beginning";

#[test]
fn drops_a_waiting_handler_on_a_close() {
    let (server, told) = guard_served();
    check(&server, &told, WAIT, false);
}

#[test]
fn drops_a_waiting_handler_on_a_reset() {
    let (server, told) = guard_served();
    check(&server, &told, WAIT, true);
}

#[test]
fn drops_a_stream_without_a_reader() {
    let (server, told) = guard_served();
    check(&server, &told, STREAM, false);
    check(&server, &told, STREAM, true);
}

#[test]
fn ends_the_body_of_a_closed_client() {
    let (server, told) = guard_served();
    check(&server, &told, READ, false);
    check(&server, &told, READ, true);
}

/// The test's view of its application.
struct Held {
    server: Served,
    /// Holds the handlers until it is closed.
    gate: Arc<Semaphore>,
    entered: mpsc::Receiver<()>,
}

type App = (Arc<Semaphore>, mpsc::Sender<()>);

async fn held_wait(State((gate, entered)): State<App>) -> &'static str {
    entered.send(()).await.unwrap();
    drop(gate.acquire().await);
    "answered"
}

async fn in_two(State((gate, entered)): State<App>) -> Body {
    let pieces = stream::unfold(0, move |at| {
        let (gate, entered) = (Arc::clone(&gate), entered.clone());
        async move {
            match at {
                0 => Some((Ok::<_, std::io::Error>("first, "), 1)),
                1 => {
                    entered.send(()).await.unwrap();
                    drop(gate.acquire().await);
                    Some((Ok("last"), 2))
                }
                _ => None,
            }
        }
    });
    Body::from_stream(pieces)
}

/// An address that no other test binds or connects from, so that nothing listens there afterwards.
const OWN_ADDRESS: &str = "127.66.0.1:0";

fn held() -> Held {
    let (gate, (sender, entered)) = (Arc::new(Semaphore::new(0)), mpsc::channel(4));
    let app = Router::new()
        .route("/", get(async || "hello"))
        .route("/wait", get(held_wait))
        .route("/in-two", get(in_two))
        .with_state((Arc::clone(&gate), sender));
    let server = serve_at(OWN_ADDRESS, async { app });
    Held { server, gate, entered }
}

fn asked(server: &Served, path: &str) -> TestClient {
    let mut client = server.connect();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
    client
}

#[test]
fn completes_requests_in_flight() {
    let Held { mut server, gate, mut entered } = held();
    let mut waiting = asked(&server, "/wait");
    let mut streaming = asked(&server, "/in-two");
    entered.blocking_recv().unwrap();
    entered.blocking_recv().unwrap();

    server.begin_shutdown();
    gate.close();
    let response = waiting.response("GET");
    assert_eq!((response.status, response.text()), (200, "answered"));
    waiting.is_ended();
    assert_eq!(streaming.response("GET").text(), "first, last");
    streaming.is_ended();
    // A server may linger until clients close too, so that its last bytes arrive.
    drop((waiting, streaming));
    server.shutdown();
}

#[test]
fn closes_idle_connections() {
    let mut server = held().server;
    let mut idle = server.connect();
    assert_eq!(idle.request("GET", "/", &[]).text(), "hello");
    server.begin_shutdown();
    idle.is_ended();
    drop(idle);
    server.shutdown();
}

#[test]
fn refuses_connections_after_the_end() {
    let server = held().server;
    let addr = server.addr;
    assert_eq!(server.get("/").text(), "hello");
    server.shutdown();
    TcpStream::connect_timeout(&addr, Duration::from_secs(20)).expect_err("nobody listens any more");
}

/// `shutdown` returns only after the last response.
#[test]
fn ends_after_the_last_response() {
    let Held { mut server, gate, mut entered } = held();
    let mut idle = server.connect();
    assert_eq!(idle.request("GET", "/", &[]).text(), "hello");
    let mut waiting = asked(&server, "/wait");
    entered.blocking_recv().unwrap();
    server.begin_shutdown();
    idle.is_ended();
    assert!(!server.has_ended(), "it ended with an answer to give");
    gate.close();
    assert_eq!(waiting.response("GET").text(), "answered");
    drop((idle, waiting));
    server.shutdown();
}
