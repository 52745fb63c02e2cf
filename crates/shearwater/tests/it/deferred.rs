//! Async handlers and coroutines: with a simulated clock, offloaded work, and on real sockets with other threads.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use shearwater::testing::Tested;
use shearwater::{App, Call, CoroutineCall, Gone, Limits, Offloaded, Order, StackOptions, Timeouts, offload};
use testkit::TIMEOUT;

use crate::served::{Served, drivers, here, text};

/// Counts values on handlers' stacks and in their futures.
#[derive(Clone, Default)]
struct Alive(Arc<AtomicUsize>);

struct Guard(Arc<AtomicUsize>);

impl Alive {
    fn guard(&self) -> Guard {
        self.0.fetch_add(1, Ordering::Relaxed);
        Guard(Arc::clone(&self.0))
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Panics without a message on standard error.
fn give_up() {
    std::panic::resume_unwind(Box::new("on purpose"));
}

/// Adds the same routes under `/async` and `/coroutine`.
fn app(alive: &Alive) -> App {
    let mut app = App::new();
    app.state("shared".to_owned());
    app.local(|_| Cell::new(0u32));
    app.scope("/async", |app| async_routes(app, alive));
    app.scope("/coroutine", |app| coroutine_routes(app, alive));
    app.get("/plain", text("plain"));
    app
}

fn async_routes(app: &mut App, alive: &Alive) {
    let guarded = alive.clone();
    app.get_async("/sleep/{ms}", async move |call: &mut Call| {
        let _guard = guarded.guard();
        let ms = call.param("ms").and_then(|ms| ms.parse().ok()).unwrap_or(0);
        call.sleep(Duration::from_millis(ms)).await;
        let text = format!("slept {ms}");
        call.response().text(&text);
    });
    app.get_async("/state", async |call: &mut Call| {
        let count: &Cell<u32> = call.local();
        count.set(count.get() + 1);
        let text = format!("{} {}", call.state::<String>(), count.get());
        call.response().text(&text);
    });
    app.post_async("/digest", async |call: &mut Call| {
        let mut sum = 0u64;
        while let Some(piece) = call.read().await {
            sum += piece.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        }
        call.response().text(&sum.to_string());
    })
    .read();
    app.post_async("/kept", async |call: &mut Call| {
        let text = String::from_utf8_lossy(call.body()).to_uppercase();
        call.response().text(&text);
    })
    .buffer(100);
    app.get_async("/count", async |call: &mut Call| {
        for number in 0..3 {
            call.sleep(Duration::from_secs(1)).await;
            call.send(format!("{number}\n").as_bytes()).await?;
        }
        Ok::<(), shearwater::Gone>(())
    });
    app.get_async("/fails", async |_: &mut Call| Err::<(), _>("on purpose"));
    let guarded = alive.clone();
    app.get_async("/panics", async move |call: &mut Call| {
        let _guard = guarded.guard();
        call.sleep(Duration::from_secs(1)).await;
        give_up();
    });
    app.get_async("/offload", async |call: &mut Call| {
        let found = offload(|| std::thread::current().name().map(str::to_owned)).await;
        let text = format!("{found:?}");
        call.response().text(&text);
    });
    app.get_async("/offload-panics", async |call: &mut Call| {
        let found = offload(give_up).await;
        let text = format!("{found:?}");
        call.response().text(&text);
    });
}

fn coroutine_routes(app: &mut App, alive: &Alive) {
    let guarded = alive.clone();
    app.get_coroutine("/sleep/{ms}", move |line: &mut CoroutineCall| {
        let _guard = guarded.guard();
        let ms = line.param("ms").and_then(|ms| ms.parse().ok()).unwrap_or(0);
        line.sleep(Duration::from_millis(ms));
        let text = format!("slept {ms}");
        line.response().text(&text);
    });
    app.get_coroutine("/state", |line: &mut CoroutineCall| {
        let count: &Cell<u32> = line.local();
        count.set(count.get() + 1);
        let text = format!("{} {}", line.state::<String>(), count.get());
        line.response().text(&text);
    });
    app.post_coroutine("/digest", |line: &mut CoroutineCall| {
        let mut sum = 0u64;
        while let Some(piece) = line.read() {
            sum += piece.iter().map(|byte| u64::from(*byte)).sum::<u64>();
        }
        line.response().text(&sum.to_string());
    })
    .read();
    app.post_coroutine("/kept", |line: &mut CoroutineCall| {
        let text = String::from_utf8_lossy(line.body()).to_uppercase();
        line.response().text(&text);
    })
    .buffer(100);
    app.get_coroutine("/count", |line: &mut CoroutineCall| {
        for number in 0..3 {
            line.sleep(Duration::from_secs(1));
            line.send(format!("{number}\n").as_bytes())?;
        }
        Ok::<(), shearwater::Gone>(())
    });
    app.get_coroutine("/fails", |_: &mut CoroutineCall| Err::<(), _>("on purpose"));
    let guarded = alive.clone();
    app.get_coroutine("/panics", move |line: &mut CoroutineCall| {
        let _guard = guarded.guard();
        line.sleep(Duration::from_secs(1));
        give_up();
    });
    app.get_coroutine("/offload", |line: &mut CoroutineCall| {
        let found = line.offload(|| std::thread::current().name().map(str::to_owned));
        let text = format!("{found:?}");
        line.response().text(&text);
    });
    app.get_coroutine("/offload-panics", |line: &mut CoroutineCall| {
        let found = line.offload(give_up);
        let text = format!("{found:?}");
        line.response().text(&text);
    });
}

/// Calls `check` for both kinds of handler, each with a new app.
fn both(check: impl Fn(&str, Tested, &Alive)) {
    for kind in ["/async", "/coroutine"] {
        let alive = Alive::default();
        let tested = Tested::new(app(&alive)).expect("its routes are right");
        check(kind, tested, &alive);
        assert_eq!(alive.count(), 0, "{kind}: a handler leaked");
    }
}

#[test]
fn deferred_handlers_see_parameters_state_and_bodies() {
    both(|kind, mut tested, _| {
        assert_eq!(tested.get(&format!("{kind}/sleep/7")).text(), "slept 7");
        assert_eq!(tested.get(&format!("{kind}/state")).text(), "shared 1");
        assert_eq!(tested.get(&format!("{kind}/state")).text(), "shared 2");
        assert_eq!(tested.post(&format!("{kind}/kept"), "kept").text(), "KEPT");
        assert_eq!(tested.post(&format!("{kind}/kept"), [b'x'; 101]).status, 413);
        let body = vec![3; 1_000_000];
        assert_eq!(tested.post(&format!("{kind}/digest"), body).text(), "3000000");
        assert_eq!(tested.post(&format!("{kind}/digest"), "").text(), "0");
        let response = tested.ask(format!("DELETE {kind}/state HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!((response.status, response.field("Allow")), (405, Some("GET, HEAD, OPTIONS")));
    });
}

#[test]
fn streams_with_pauses() {
    both(|kind, mut tested, _| {
        let mut client = tested.connect();
        client.send(format!("GET {kind}/count HTTP/1.1\r\nHost: a\r\n\r\n"));
        tested.settle();
        for number in 0..3 {
            tested.pass(Duration::from_secs(1));
            let wanted = format!("\r\n2\r\n{number}\n\r\n");
            assert!(String::from_utf8_lossy(client.unread()).contains(&wanted), "{kind} {number}");
        }
        assert_eq!(client.response().expect("it is whole").text(), "0\n1\n2\n");
    });
}

#[test]
fn responds_500_to_errors_and_panics() {
    both(|kind, mut tested, alive| {
        for (path, count) in [("/fails", 1), ("/panics", 2)] {
            let response = tested.get(&format!("{kind}{path}"));
            assert_eq!((response.status, response.text()), (500, "Internal Server Error\n"), "{kind}{path}");
            assert_eq!(alive.count(), 0);
            let totals = tested.totals();
            assert_eq!(totals.handler_errors + totals.handler_panics, count);
        }
    });
}

#[test]
fn drops_handlers_of_reset_clients() {
    both(|kind, mut tested, alive| {
        let mut clients: Vec<_> = (0..20)
            .map(|_| {
                let mut client = tested.connect();
                client.send(format!("GET {kind}/sleep/3600000 HTTP/1.1\r\nHost: a\r\n\r\n"));
                client
            })
            .collect();
        tested.settle();
        assert_eq!(alive.count(), 20);
        clients.iter_mut().for_each(|client| client.reset());
        tested.pass(Duration::from_secs(1));
        assert_eq!(alive.count(), 0);
        assert_eq!(tested.get("/plain").text(), "plain");
    });
}

#[test]
fn drops_handlers_with_the_server() {
    both(|kind, mut tested, alive| {
        let mut client = tested.connect();
        client.send(format!("GET {kind}/sleep/3600000 HTTP/1.1\r\nHost: a\r\n\r\n"));
        tested.settle();
        assert_eq!(alive.count(), 1);
        drop(tested);
    });
}

#[test]
fn handlers_of_one_worker_wait_concurrently() {
    both(|kind, mut tested, _| {
        let mut clients: Vec<_> = (0..100)
            .map(|number| {
                let mut client = tested.connect();
                client.send(format!("GET {kind}/sleep/{} HTTP/1.1\r\nHost: a\r\n\r\n", 1000 - number));
                client
            })
            .collect();
        tested.settle();
        tested.pass(Duration::from_millis(1010));
        for (number, client) in clients.iter_mut().enumerate() {
            let response = client.response().expect("all have slept at the same time");
            assert_eq!(response.text(), format!("slept {}", 1000 - number));
        }
    });
}

/// Ready tasks run in the configured order, and none starves.
#[test]
fn runs_ready_tasks_in_the_configured_order() {
    for (order, wanted) in [(Order::Fifo, [0, 1, 2]), (Order::Lifo, [2, 1, 0])] {
        let mut app = App::new();
        app.local(|_| Cell::new(0usize));
        app.get_async("/", async |call: &mut Call| {
            call.sleep(Duration::from_secs(1)).await;
            let count: &Cell<usize> = call.local();
            let text = count.get().to_string();
            count.set(count.get() + 1);
            call.response().text(&text);
        });
        let mut tested = Tested::with(app, Limits::default(), Timeouts::default(), order).expect("routes");
        let mut clients: Vec<_> = (0..3)
            .map(|_| {
                let mut client = tested.connect();
                client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
                tested.settle();
                client
            })
            .collect();
        tested.pass(Duration::from_secs(1));
        let got = clients.iter_mut().map(|client| client.response().expect("it has slept").text().to_owned());
        assert_eq!(got.collect::<Vec<_>>(), wanted.map(|number| number.to_string()), "{order:?}");
    }
}

/// Another thread wakes the worker on a real kernel.
#[test]
fn waits_for_offloaded_work_on_each_driver() {
    for driver in drivers() {
        for kind in ["/async", "/coroutine"] {
            let served = Served::of(here().driver(driver), app(&Alive::default()));
            let mut client = served.connect();
            for _ in 0..20 {
                let response = client.get(&format!("{kind}/offload"));
                assert_eq!(response.text(), "Ok(Some(\"offload\"))", "{kind}");
                let response = client.get(&format!("{kind}/offload-panics"));
                assert_eq!(response.text(), "Err(Panicked)", "{kind}");
                assert_eq!(client.get(&format!("{kind}/sleep/1")).text(), "slept 1");
            }
            assert_eq!(served.stop().responses_5xx, 0);
        }
    }
}

/// A `HEAD` request gets its response, and no body is produced.
#[test]
fn drops_a_streaming_handler_after_the_head() {
    for pause_ms in [0, 1000] {
        let alive = Alive::default();
        let guarded = alive.clone();
        let mut app = App::new();
        app.get_async("/", async move |call: &mut Call| {
            let _guard = guarded.guard();
            while call.send(&[b'0'; 10_000]).await.is_ok() {
                call.sleep(Duration::from_millis(pause_ms)).await;
            }
        });
        let mut tested = Tested::new(app).expect("one route");
        let mut client = tested.connect();
        client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET /other HTTP/1.1\r\nHost: a\r\n\r\n");
        tested.pass(Duration::from_secs(1));
        let got = String::from_utf8_lossy(client.unread()).into_owned();
        assert!(got.starts_with("HTTP/1.1 200 OK\r\n"), "{got:?}");
        assert!(got.contains("\r\n\r\nHTTP/1.1 404 Not Found\r\n"), "the connection stays open: {got:?}");
        assert_eq!(alive.count(), 0);
    }
}

/// With thousands of sleeping handlers, a request is served in the turn after it arrives; all others complete too.
#[test]
fn ten_thousand_sleeping_handlers_delay_nobody() {
    const SLEEPING: usize = 10_000;
    for kind in ["async", "coroutine"] {
        let alive = Alive::default();
        let mut app = app(&alive);
        app.stacks(StackOptions { stacks_max: SLEEPING, ..StackOptions::default() });
        let mut tested = Tested::new(app).expect("the routes don't contradict each other");
        let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n");
        let mut sleepers: Vec<_> = (0..SLEEPING).map(|_| tested.connect()).collect();
        sleepers.iter_mut().for_each(|client| client.send(get(&format!("/{kind}/sleep/5000"))));
        let mut quick = tested.connect();
        tested.settle();
        assert_eq!(alive.count(), SLEEPING, "{kind}");
        for _ in 0..10 {
            quick.send(get("/plain"));
            // No extra turn: it would sleep until the first timer.
            let response = (0..2).find_map(|_| {
                tested.turn();
                quick.response()
            });
            assert_eq!(response.expect("answered by the next turn").text(), "plain", "{kind}");
        }
        assert_eq!((alive.count(), tested.now_ms() < 5000), (SLEEPING, true), "{kind}: they still sleep");
        tested.pass(Duration::from_millis(5100));
        let texts = sleepers.iter_mut().filter_map(|client| client.response());
        assert_eq!(texts.filter(|response| response.text() == "slept 5000").count(), SLEEPING, "{kind}");
        assert_eq!(alive.count(), 0);
    }
}

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
fn alternates_offloaded_work_and_sleep() {
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
fn sends_pieces_before_offloaded_work_is_done() {
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
fn does_not_wait_for_abandoned_work() {
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
