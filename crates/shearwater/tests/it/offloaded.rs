//! Apps under test with offloaded work.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use shearwater::testing::Tested;
use shearwater::{App, Call, CoroutineCall, Gone, Offloaded, offload};

/// Maximum wait before a test fails.
const WAIT_MAX: Duration = Duration::from_secs(20);

/// Work that lasts until the test releases it.
fn gated() -> (SyncSender<u32>, impl Fn() -> u32 + Clone + Send + Sync + 'static) {
    let (open, gate) = sync_channel::<u32>(1);
    let gate: Arc<Mutex<Receiver<u32>>> = Arc::new(Mutex::new(gate));
    (open, move || gate.lock().expect("nobody panics").recv_timeout(WAIT_MAX).expect("the gate opens"))
}

fn tested(app: App) -> Tested {
    Tested::new(app).expect("the routes are right")
}

#[test]
fn an_response_waits_for_work_on_another_thread_and_no_time_passes() {
    let mut app = App::new();
    app.get_async("/async", async |call: &mut Call| -> Result<(), Offloaded> {
        let there = offload(|| thread::current().id()).await?;
        let (first, second) = (offload(|| 6), offload(|| 7));
        let product = first.await? * second.await?;
        call.response().text(&format!("{product} {}", there == thread::current().id()));
        Ok(())
    });
    app.get_coroutine("/line", |line: &mut CoroutineCall| -> Result<(), Offloaded> {
        let number = (0..100).try_fold(0, |sum, one| Ok(sum + line.offload(move || one)?))?;
        line.response().text(&number.to_string());
        Ok(())
    });
    let mut tested = tested(app);
    assert_eq!(tested.get("/async").text(), "42 false");
    assert_eq!(tested.get("/line").text(), "4950");
    assert_eq!(tested.now_ms(), 0, "nobody slept");
}

#[test]
fn work_and_sleep_take_turns() {
    let mut app = App::new();
    app.get_async("/", async |call: &mut Call| -> Result<(), Offloaded> {
        for _ in 0..5 {
            offload(|| ()).await?;
            call.sleep(Duration::from_secs(1)).await;
        }
        call.response().text("done");
        Ok(())
    });
    let mut tested = tested(app);
    assert_eq!(tested.get("/").text(), "done");
    assert_eq!(tested.now_ms(), 5000);
}

#[test]
fn a_panic_on_another_thread_is_an_response_too() {
    let mut app = App::new();
    app.get_async("/", async |_: &mut Call| -> Result<(), Offloaded> {
        // Without a message on standard error.
        offload(|| std::panic::resume_unwind(Box::new("on purpose"))).await
    });
    assert_eq!(tested(app).get("/").status, 500);
}

#[test]
fn what_is_sent_before_the_work_is_there_before() {
    let (open, work) = gated();
    let mut app = App::new();
    app.get_async("/", async move |call: &mut Call| -> Result<(), Gone> {
        call.send(b"at once ").await?;
        let number = offload(work.clone()).await.expect("it is done");
        call.send(number.to_string().as_bytes()).await
    });
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
fn nobody_waits_for_work_whose_handler_is_gone() {
    let (open, work) = gated();
    let mut app = App::new();
    let never = work.clone();
    app.get_async("/", async move |_: &mut Call| -> Result<(), Offloaded> {
        offload(never.clone()).await.map(drop)
    });
    app.get_async("/in-time", async move |call: &mut Call| {
        let mut work = pin!(offload(work.clone()));
        let mut late = pin!(call.sleep(Duration::from_secs(5)));
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(()),
            Poll::Pending => late.as_mut().poll(cx),
        })
        .await;
        call.response().status(504).text("too late");
    });
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
