//! Async handlers and coroutines: with a simulated clock, offloaded work, and on real sockets with other threads.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shearwater::testing::Tested;
use shearwater::{
    App, Call, Failure, Gone, Head, Limits, Line, Order, Reading, StackOptions, Status, Timeouts, get, later,
    later_reading, line, line_reading, offload, post,
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

struct State {
    shared: &'static str,
    count: Cell<u32>,
}

/// Adds the same routes under `/async` and `/coroutine`.
fn app(alive: &Alive) -> App<State> {
    App::with_state(|_| State { shared: "shared", count: Cell::new(0) })
        .scope("/async", |app| async_routes(app, alive))
        .scope("/coroutine", |app| coroutine_routes(app, alive))
        .route("/plain", get("plain"))
}

fn async_routes(app: App<State>, alive: &Alive) -> App<State> {
    let guarded = alive.clone();
    let app = app
        .route(
            "/sleep/{ms}",
            get(later(async move |call: &mut Call<State>| {
                let _guard = guarded.guard();
                let ms = call.param_raw("ms").and_then(|ms| ms.parse().ok()).unwrap_or(0);
                call.sleep(Duration::from_millis(ms)).await;
                format!("slept {ms}")
            })),
        )
        .route(
            "/state",
            get(later(async |call: &mut Call<State>| {
                let State { shared, count } = call.state();
                count.set(count.get() + 1);
                format!("{shared} {}", count.get())
            })),
        )
        .route("/digest", post(later_reading(digest_async)))
        .route(
            "/kept",
            post(later_reading(async |call: &mut Call<State, Reading>| match call.read_to_end(100).await {
                Ok(body) => Ok(String::from_utf8_lossy(&body).to_uppercase()),
                Err(_) => Err(Failure::new(Status::CONTENT_TOO_LARGE, "it is too long")),
            })),
        )
        .route(
            "/count",
            get(later(async |call: &mut Call<State>| {
                let mut body = call.begin(Head::new(Status::OK));
                for number in 0..3 {
                    body.sleep(Duration::from_secs(1)).await;
                    body.send(format!("{number}\n").as_bytes()).await?;
                }
                Ok::<_, Gone>(body.end())
            })),
        )
        .route(
            "/fails",
            get(later(async |_: &mut Call<State>| Err::<(), _>(Failure::internal("on purpose")))),
        );
    let guarded = alive.clone();
    app.route(
        "/panics",
        get(later(async move |call: &mut Call<State>| {
            let _guard = guarded.guard();
            call.sleep(Duration::from_secs(1)).await;
            give_up();
        })),
    )
    .route(
        "/offload",
        get(later(async |_: &mut Call<State>| {
            let found = offload(|| std::thread::current().name().map(str::to_owned)).await;
            format!("{found:?}")
        })),
    )
    .route(
        "/offload-panics",
        get(later(async |_: &mut Call<State>| {
            let found = offload(give_up).await;
            format!("{found:?}")
        })),
    )
}

fn coroutine_routes(app: App<State>, alive: &Alive) -> App<State> {
    let guarded = alive.clone();
    let app = app
        .route(
            "/sleep/{ms}",
            get(line(move |line: &mut Line<State>| {
                let _guard = guarded.guard();
                let ms = line.param_raw("ms").and_then(|ms| ms.parse().ok()).unwrap_or(0);
                line.sleep(Duration::from_millis(ms));
                format!("slept {ms}")
            })),
        )
        .route(
            "/state",
            get(line(|line: &mut Line<State>| {
                let State { shared, count } = line.state();
                count.set(count.get() + 1);
                format!("{shared} {}", count.get())
            })),
        )
        .route("/digest", post(line_reading(digest)))
        .route(
            "/kept",
            post(line_reading(|line: &mut Line<State, Reading>| match line.read_to_end(100) {
                Ok(body) => Ok(String::from_utf8_lossy(&body).to_uppercase()),
                Err(_) => Err(Failure::new(Status::CONTENT_TOO_LARGE, "it is too long")),
            })),
        )
        .route(
            "/count",
            get(line(|line: &mut Line<State>| {
                let mut body = line.begin(Head::new(Status::OK));
                for number in 0..3 {
                    body.sleep(Duration::from_secs(1));
                    body.send(format!("{number}\n").as_bytes())?;
                }
                Ok::<_, Gone>(body.end())
            })),
        )
        .route("/fails", get(line(|_: &mut Line<State>| Err::<(), _>(Failure::internal("on purpose")))));
    let guarded = alive.clone();
    app.route(
        "/panics",
        get(line(move |line: &mut Line<State>| {
            let _guard = guarded.guard();
            line.sleep(Duration::from_secs(1));
            give_up();
        })),
    )
    .route(
        "/offload",
        get(line(|line: &mut Line<State>| {
            let found = line.offload(|| std::thread::current().name().map(str::to_owned));
            format!("{found:?}")
        })),
    )
    .route(
        "/offload-panics",
        get(line(|line: &mut Line<State>| {
            let found = line.offload(give_up);
            format!("{found:?}")
        })),
    )
}

async fn digest_async(call: &mut Call<State, Reading>) -> String {
    let mut sum = 0u64;
    while let Some(piece) = call.read().await {
        sum += piece.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    }
    sum.to_string()
}

fn digest(line: &mut Line<State, Reading>) -> String {
    let mut sum = 0u64;
    while let Some(piece) = line.read() {
        sum += piece.iter().map(|byte| u64::from(*byte)).sum::<u64>();
    }
    sum.to_string()
}

/// Calls `check` for both kinds of handler, each with a new app.
fn both(check: impl Fn(&str, Tested<State>, &Alive)) {
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
        let app = App::with_state(|_| Cell::new(0usize)).route(
            "/",
            get(later(async |call: &mut Call<Cell<usize>>| {
                call.sleep(Duration::from_secs(1)).await;
                let count = call.state();
                count.set(count.get() + 1);
                (count.get() - 1).to_string()
            })),
        );
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
        let app = App::new().route(
            "/",
            get(later(async move |call: &mut Call| {
                let _guard = guarded.guard();
                let mut body = call.begin(Head::new(Status::OK));
                while body.send(&[b'0'; 10_000]).await.is_ok() {
                    body.sleep(Duration::from_millis(pause_ms)).await;
                }
            })),
        );
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
        let app = app(&alive).stacks(StackOptions { stacks_max: SLEEPING, ..StackOptions::default() });
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
