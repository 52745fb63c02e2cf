//! Deferred services: readiness, tokio in handlers, cancellation and wake-ups.

use std::io::Error;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::{Request, Response};
use axum::routing::get;
use http_body_util::Full;
use shearwater_tower::Body;
use testkit::{TIMEOUT, TestClient};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tower::Service;

use tokio::runtime::Builder;

use crate::local::http2;
use crate::served::{Served, drivers, here, runtime, surrounding};

async fn spawned() -> String {
    let task = tokio::spawn(async { std::thread::current().name().unwrap_or_default().to_owned() });
    format!("on {}", task.await.expect("it ends"))
}

async fn blocking() -> String {
    tokio::task::spawn_blocking(|| "blocked".to_owned()).await.expect("it ends")
}

async fn slept() -> String {
    tokio::time::sleep(Duration::from_millis(20)).await;
    let here = std::thread::current().name().unwrap_or_default().to_owned();
    match tokio::time::timeout(Duration::from_millis(10), std::future::pending::<()>()).await {
        Ok(()) => unreachable!("it never ends"),
        Err(_) => format!("slept on {here}"),
    }
}

fn router() -> Router {
    Router::new()
        .route("/spawned", get(spawned))
        .route("/blocking", get(blocking))
        .route("/slept", get(slept))
}

fn asked(served: &Served, thread: &str) {
    let mut client = served.connect();
    assert_eq!(client.get("/spawned").text(), format!("on {thread}"));
    assert_eq!(client.get("/blocking").text(), "blocked");
    assert_eq!(client.get("/slept").text(), "slept on worker-0");
}

#[test]
fn uses_the_surrounding_runtime_or_its_own() {
    let thread = surrounding().map_or("worker-0", |_| "tokio of the test");
    for driver in drivers() {
        asked(&Served::on(driver, router()), thread);
    }
}

#[test]
fn runs_tokio_sockets_in_handlers() {
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("its address");
    let router = Router::new().route(
        "/",
        get(move || async move {
            let mut stream = tokio::net::TcpStream::connect(address).await.expect("connects");
            stream.write_all(b"question").await.expect("writes");
            let mut response = String::new();
            stream.read_to_string(&mut response).await.expect("reads");
            response
        }),
    );
    for driver in drivers() {
        let served = Served::on(driver, router.clone());
        let mut client = served.connect();
        client.ask("GET", "/", &[]);
        let (mut stream, _) = other.accept().expect("the handler connects");
        let mut question = [0; 8];
        std::io::Read::read_exact(&mut stream, &mut question).expect("the question");
        std::io::Write::write_all(&mut stream, b"answer").expect("a response");
        drop(stream);
        assert_eq!((question, client.response("GET").text()), (*b"question", "answer"));
    }
}

/// Reports its drop from a task that it spawns, as connections of pools do.
struct Dropped(SyncSender<()>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let sender = self.0.clone();
        tokio::spawn(async move { sender.send(()) });
    }
}

/// A router whose handler never ends. Returns it with the notices that the handler has begun and that it was dropped.
fn endless() -> (Router, Receiver<()>, Receiver<()>) {
    let ((begun, has_begun), (ended, has_ended)) = (sync_channel(1), sync_channel(1));
    let wait = move || {
        let (begun, dropped) = (begun.clone(), Dropped(ended.clone()));
        async move {
            begun.send(()).expect("the test receives");
            std::future::pending::<()>().await;
            drop(dropped);
        }
    };
    (Router::new().route("/", get(wait)), has_begun, has_ended)
}

/// Holds for upgrade requests too.
#[test]
fn drops_the_handler_of_a_closed_client() {
    for driver in drivers() {
        for fields in [&[][..], &["Connection: upgrade", "Upgrade: websocket"]] {
            let (router, has_begun, has_ended) = endless();
            let served = Served::on(driver, router);
            let mut client = served.connect();
            client.ask("GET", "/", fields);
            has_begun.recv_timeout(TIMEOUT).expect("it is called");
            assert!(has_ended.try_recv().is_err(), "it waits");
            drop(client);
            has_ended.recv_timeout(TIMEOUT).expect("it is dropped");
        }
    }
}

#[test]
fn drops_handlers_within_their_runtime_at_the_end() {
    for driver in drivers() {
        let around = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let (router, has_begun, has_ended) = endless();
        let entered = around.enter();
        let served = Served::on(driver, router);
        drop(entered);
        let mut client = served.connect();
        client.ask("GET", "/", &[]);
        has_begun.recv_timeout(TIMEOUT).expect("it is called");
        drop(served);
        has_ended.recv_timeout(TIMEOUT).expect("it is dropped, and can spawn");
    }
}

#[test]
fn responds_to_a_half_closed_client() {
    for driver in drivers() {
        let served = Served::on(driver, Router::new().route("/", get(|| async { "served" })));
        let mut client = served.connect();
        client.ask("GET", "/", &[]).end_sending();
        assert_eq!(client.response("GET").text(), "served");
        client.is_ended();
    }
}

#[test]
fn serves_others_while_handlers_wait() {
    let (release, released) = tokio::sync::watch::channel(false);
    let wait = move || {
        let mut released = released.clone();
        async move {
            drop(released.wait_for(|released| *released).await.expect("the test receives"));
            "waited"
        }
    };
    let served = Served::new(Router::new().route("/wait", get(wait)).route("/", get(|| async { "served" })));
    let mut waiting: Vec<_> = (0..100).map(|_| served.connect()).collect();
    for client in &mut waiting {
        client.ask("GET", "/wait", &[]);
    }
    assert_eq!(served.connect().get("/").text(), "served");
    release.send(true).expect("they wait");
    for client in &mut waiting {
        assert_eq!(client.response("GET").text(), "waited");
    }
}

/// Wakes with the waker of its first poll, which is wrong but happens, and counts its polls.
struct KeepsFirst {
    woken: Arc<AtomicBool>,
    polls: usize,
}

impl Future for KeepsFirst {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<usize> {
        self.polls += 1;
        if self.woken.load(Ordering::Acquire) {
            return Poll::Ready(self.polls);
        }
        if self.polls == 1 {
            let (woken, waker) = (Arc::clone(&self.woken), cx.waker().clone());
            std::thread::spawn(move || {
                woken.store(true, Ordering::Release);
                waker.wake();
            });
        }
        Poll::Pending
    }
}

#[test]
fn polls_a_handler_once_per_wake() {
    let handler = || async { KeepsFirst { woken: Arc::default(), polls: 0 }.await.to_string() };
    for driver in drivers() {
        let served = Served::on(driver, Router::new().route("/", get(handler)));
        let mut client = served.connect();
        for _ in 0..100 {
            assert_eq!(client.get("/").text(), "2", "once, and once it was woken");
        }
    }
}

async fn panics() -> &'static str {
    panic!("as the test wants it")
}

async fn panics_late() -> &'static str {
    tokio::task::yield_now().await;
    panic!("as the test wants it")
}

#[test]
fn panic_costs_only_its_own_request() {
    let router = Router::new()
        .route("/panics", get(panics))
        .route("/late", get(panics_late))
        .route("/", get(|| async { "served" }));
    let served = Served::new(router);
    for target in ["/panics", "/late"] {
        let mut client = served.connect();
        let response = client.request("GET", target, &[]);
        assert_eq!(response.status, 500);
        client.ends_after(&response);
    }
    assert_eq!(served.connect().get("/").text(), "served");
    assert_eq!(served.totals().handler_panics, 2);
}

#[test]
fn serves_within_the_awaiting_runtime() {
    if testkit::tls::skips("a socket that the program gives is in clear") {
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = std::thread::spawn(move || {
        runtime().block_on(async {
            let listener = {
                listener.set_nonblocking(true).expect("it can");
                tokio::net::TcpListener::from_std(listener).expect("it listens")
            };
            let serve = shearwater_tower::serve(listener, router()).server(|server| server.http2(http2()));
            serve.with_graceful_shutdown(async { drop(stopped.await) }).await
        })
    });
    let mut client = TestClient::connect(address);
    assert_eq!(client.get("/blocking").text(), "blocked");
    stop.send(()).expect("it serves");
    serving.join().expect("no panic").expect("ends normally");
}

/// A service that is ready after a number of polls, or never.
#[derive(Clone)]
struct Reluctant {
    asked: usize,
    ready_at: Option<usize>,
}

impl Service<Request<Body>> for Reluctant {
    type Response = Response<Full<Bytes>>;
    type Error = Error;
    type Future = std::future::Ready<Result<Self::Response, Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let Some(ready_at) = self.ready_at else {
            return Poll::Ready(Err(Error::other("as the test wants it")));
        };
        self.asked += 1;
        if self.asked < ready_at {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        assert!(Some(self.asked) >= self.ready_at, "it is called though it isn't ready");
        std::future::ready(Ok(Response::new(Full::new(Bytes::from(self.asked.to_string())))))
    }
}

#[test]
fn waits_until_the_service_is_ready() {
    for ready_at in [1, 2, 5] {
        let service = Reluctant { asked: 0, ready_at: Some(ready_at) };
        let served = Served::of(here(service));
        let mut client = served.connect();
        for _ in 0..3 {
            assert_eq!(client.get("/").text(), ready_at.to_string());
            assert_eq!(client.send_body("POST", "/", &[], b"a body").text(), ready_at.to_string());
        }
    }
}

#[test]
fn responds_500_if_the_service_is_never_ready() {
    let served = Served::of(here(Reluctant { asked: 0, ready_at: None }));
    assert_eq!(served.connect().get("/").status, 500);
    assert_eq!(served.connect().send_body("POST", "/", &[], b"a body").status, 500);
    assert_eq!(served.totals().handler_errors, 2);
}
