//! Async handlers and coroutines: with a simulated clock, and on real sockets with other threads.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shearwater::testing::Tested;
use shearwater::{
    App, Call, CoroutineCall, Limits, Order, Request, Response, StackOptions, Timeouts, offload,
};

use crate::served::{Served, drivers, here};

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
    app.get("/plain", |_: &Request, response: &mut Response| {
        response.text("plain");
    });
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
fn parameters_states_and_bodies_are_there() {
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
fn a_stream_takes_its_time() {
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
fn an_error_and_a_panic_are_a_500() {
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
fn who_goes_away_takes_the_handler_along() {
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
fn a_server_that_ends_takes_its_handlers_along() {
    both(|kind, mut tested, alive| {
        let mut client = tested.connect();
        client.send(format!("GET {kind}/sleep/3600000 HTTP/1.1\r\nHost: a\r\n\r\n"));
        tested.settle();
        assert_eq!(alive.count(), 1);
        drop(tested);
    });
}

#[test]
fn handlers_of_one_worker_wait_side_by_side() {
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
fn the_order_of_the_ready_is_a_setting() {
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
fn work_on_another_thread_is_waited_for() {
    for driver in drivers() {
        for kind in ["/async", "/coroutine"] {
            let served = Served::of(here().driver(driver), app(&Alive::default()));
            let mut client = served.connect();
            for _ in 0..20 {
                let response = client.request("GET", &format!("{kind}/offload"), &[]);
                assert_eq!(response.text(), "Ok(Some(\"offload\"))", "{kind}");
                let response = client.request("GET", &format!("{kind}/offload-panics"), &[]);
                assert_eq!(response.text(), "Err(Panicked)", "{kind}");
                assert_eq!(client.request("GET", &format!("{kind}/sleep/1"), &[]).text(), "slept 1");
            }
            assert_eq!(served.stop().responses_5xx, 0);
        }
    }
}

/// A `HEAD` request gets its response, and no body is produced.
#[test]
fn a_stream_s_handler_is_dropped_behind_the_response_to_head() {
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
fn ten_thousand_that_sleep_hold_nobody_up() {
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
