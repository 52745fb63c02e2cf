//! Offloaded work of async handlers and coroutines, with a simulated clock.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use shearwater::testing::Tested;
use shearwater::{App, Call, Gone, Head, Line, Offloaded, Sent, Status, get, later, line, offload};
use testkit::TIMEOUT;

/// Work that lasts until the test releases it.
fn gated() -> (SyncSender<u32>, impl Fn() -> u32 + Clone + Send + Sync + 'static) {
    let (open, gate) = sync_channel::<u32>(1);
    let gate: Arc<Mutex<Receiver<u32>>> = Arc::new(Mutex::new(gate));
    (open, move || gate.lock().expect("nobody panics").recv_timeout(TIMEOUT).expect("the gate opens"))
}

fn tested(app: App) -> Tested {
    Tested::new(app).expect("the routes are right")
}

#[test]
fn waits_for_offloaded_work_without_simulated_time() {
    let app = App::new()
        .route(
            "/async",
            get(later(async |call: &mut Call| -> Result<(), Offloaded> {
                let there = offload(|| thread::current().id()).await?;
                let (first, second) = (offload(|| 6), offload(|| 7));
                let product = first.await? * second.await?;
                call.response().text(&format!("{product} {}", there == thread::current().id()));
                Ok(())
            })),
        )
        .route(
            "/line",
            get(line(|line: &mut Line| -> Result<(), Offloaded> {
                let number = (0..100).try_fold(0, |sum, one| Ok(sum + line.offload(move || one)?))?;
                line.response().text(&number.to_string());
                Ok(())
            })),
        );
    let mut tested = tested(app);
    assert_eq!(tested.get("/async").text(), "42 false");
    assert_eq!(tested.get("/line").text(), "4950");
    assert_eq!(tested.now_ms(), 0, "nobody slept");
}

#[test]
fn alternates_offloaded_work_and_sleep() {
    let app = App::new().route(
        "/",
        get(later(async |call: &mut Call| -> Result<(), Offloaded> {
            for _ in 0..5 {
                offload(|| ()).await?;
                call.sleep(Duration::from_secs(1)).await;
            }
            call.response().text("done");
            Ok(())
        })),
    );
    let mut tested = tested(app);
    assert_eq!(tested.get("/").text(), "done");
    assert_eq!(tested.now_ms(), 5000);
}

#[test]
fn sends_pieces_before_offloaded_work_is_done() {
    let (open, work) = gated();
    let app = App::new().route(
        "/",
        get(later(async move |call: &mut Call| -> Result<Sent, Gone> {
            let mut body = call.begin(Head::new(Status::OK));
            body.send(b"at once ").await?;
            let number = offload(work.clone()).await.expect("it is done");
            body.send(number.to_string()).await?;
            Ok(body.end())
        })),
    );
    let mut tested = tested(app);
    let mut client = tested.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    tested.settle();
    let first = String::from_utf8_lossy(client.unread()).into_owned();
    assert!(first.contains("at once") && client.response().is_none(), "{first}");
    open.send(42).expect("the work waits for it");
    tested.settle_offloaded();
    assert_eq!(client.response().expect("the work is done").text(), "at once 42");
}

#[test]
fn does_not_wait_for_abandoned_work() {
    let (open, work) = gated();
    let never = work.clone();
    let app = App::new()
        .route(
            "/",
            get(later(async move |_: &mut Call| -> Result<(), Offloaded> {
                offload(never.clone()).await.map(drop)
            })),
        )
        .route(
            "/in-time",
            get(later(async move |call: &mut Call| {
                let mut work = pin!(offload(work.clone()));
                let mut late = pin!(call.sleep(Duration::from_secs(5)));
                poll_fn(|cx| match work.as_mut().poll(cx) {
                    Poll::Ready(_) => Poll::Ready(()),
                    Poll::Pending => late.as_mut().poll(cx),
                })
                .await;
                call.response().status(504).text("too late");
            })),
        );
    let mut tested = tested(app);
    let mut client = tested.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    tested.settle();
    client.reset();
    tested.settle_offloaded();
    let mut client = tested.connect();
    client.send("GET /in-time HTTP/1.1\r\nHost: test\r\n\r\n");
    tested.pass(Duration::from_secs(5));
    assert_eq!(client.response().expect("its time is over").status, 504);
    tested.settle_offloaded();
    for _ in 0..2 {
        open.send(0).expect("the work waits for it");
    }
}
