//! Deferred services: tokio in handlers, cancellation and wake-ups.

use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use testkit::TIMEOUT;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::served::{Served, drivers, here, runtime};

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

fn asked(served: &Served) {
    let mut client = served.connect();
    assert!(client.request("GET", "/spawned", &[]).text().starts_with("on tokio"));
    assert_eq!(client.request("GET", "/blocking", &[]).text(), "blocked");
    assert_eq!(client.request("GET", "/slept", &[]).text(), "slept on worker-0");
}

#[test]
fn without_a_runtime_around_it_a_small_one_is_there() {
    for driver in drivers() {
        asked(&Served::on(driver, router()));
    }
}

#[test]
fn within_a_runtime_that_one_is_used() {
    let mut around = tokio::runtime::Builder::new_multi_thread();
    let around = around.worker_threads(1).enable_all().thread_name("tokio of the test");
    let around = around.build().expect("a runtime");
    let entered = around.enter();
    let served = Served::of(here(router()));
    drop(entered);
    asked(&served);
    assert_eq!(served.connect().request("GET", "/spawned", &[]).text(), "on tokio of the test");
}

#[test]
fn sockets_of_tokio_work_in_handlers() {
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

/// Reports its drop.
struct Told(SyncSender<()>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.send(());
    }
}

#[test]
fn a_handler_is_dropped_when_its_client_goes() {
    for driver in drivers() {
        let (begun, has_begun) = sync_channel(1);
        let (ended, has_ended) = sync_channel(1);
        let wait = move || {
            let (begun, told) = (begun.clone(), Told(ended.clone()));
            async move {
                begun.send(()).expect("the test receives");
                std::future::pending::<()>().await;
                drop(told);
            }
        };
        let served = Served::on(driver, Router::new().route("/", get(wait)));
        let mut client = served.connect();
        client.ask("GET", "/", &[]);
        has_begun.recv_timeout(TIMEOUT).expect("it is called");
        assert!(has_ended.try_recv().is_err(), "it waits");
        drop(client);
        has_ended.recv_timeout(TIMEOUT).expect("it is dropped");
    }
}

/// Spawns a task when dropped, as connections of pools do.
struct Returned(SyncSender<()>);

impl Drop for Returned {
    fn drop(&mut self) {
        let told = self.0.clone();
        tokio::spawn(async move { told.send(()) });
    }
}

#[test]
fn what_is_dropped_at_the_end_finds_its_runtime() {
    for driver in drivers() {
        let mut around = tokio::runtime::Builder::new_multi_thread();
        let around = around.worker_threads(1).enable_all().build().expect("a runtime");
        let (begun, has_begun) = sync_channel(1);
        let (ended, has_ended) = sync_channel(1);
        let wait = move || {
            let (begun, returned) = (begun.clone(), Returned(ended.clone()));
            async move {
                begun.send(()).expect("the test receives");
                std::future::pending::<()>().await;
                drop(returned);
            }
        };
        let entered = around.enter();
        let served = Served::on(driver, Router::new().route("/", get(wait)));
        drop(entered);
        let mut client = served.connect();
        client.ask("GET", "/", &[]);
        has_begun.recv_timeout(TIMEOUT).expect("it is called");
        drop(served);
        has_ended.recv_timeout(TIMEOUT).expect("it is dropped, and can spawn");
    }
}

#[test]
fn who_has_said_all_gets_an_response_that_is_there_at_once() {
    for driver in drivers() {
        let served = Served::on(driver, Router::new().route("/", get(|| async { "served" })));
        let mut client = served.connect();
        client.ask("GET", "/", &[]).end_sending();
        assert_eq!(client.response("GET").text(), "served");
        client.is_ended();
    }
}

#[test]
fn others_are_served_while_one_waits() {
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
    assert_eq!(served.connect().request("GET", "/", &[]).text(), "served");
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
fn a_handler_is_polled_with_one_waker_and_when_it_is_woken() {
    let handler = || async { KeepsFirst { woken: Arc::default(), polls: 0 }.await.to_string() };
    for driver in drivers() {
        let served = Served::on(driver, Router::new().route("/", get(handler)));
        let mut client = served.connect();
        for _ in 0..100 {
            assert_eq!(client.request("GET", "/", &[]).text(), "2", "once, and once it was woken");
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
fn a_panic_costs_its_own_request() {
    let router = Router::new()
        .route("/panics", get(panics))
        .route("/late", get(panics_late))
        .route("/", get(|| async { "served" }));
    let served = Served::new(router);
    for target in ["/panics", "/late"] {
        let mut client = served.connect();
        let response = client.request("GET", target, &[]);
        assert_eq!((response.status, response.field("connection")), (500, Some("close")));
        client.is_ended();
    }
    assert_eq!(served.connect().request("GET", "/", &[]).text(), "served");
    assert_eq!(served.totals().handler_panics, 2);
}

#[test]
fn it_is_served_where_it_is_awaited() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = std::thread::spawn(move || {
        runtime().block_on(async {
            let listener = {
                listener.set_nonblocking(true).expect("it can");
                tokio::net::TcpListener::from_std(listener).expect("it listens")
            };
            let serve = shearwater_tower::serve(listener, router());
            serve.with_graceful_shutdown(async { drop(stopped.await) }).await
        })
    });
    let mut client = testkit::TestClient::connect(address);
    assert_eq!(client.request("GET", "/blocking", &[]).text(), "blocked");
    stop.send(()).expect("it serves");
    serving.join().expect("no panic").expect("ends normally");
}
