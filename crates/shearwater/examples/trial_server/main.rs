//! A server for load tests: routes that echo, count, panic and wait, the same [faults](faults) under `/sync`, `/async`
//! and `/coroutine`, and requests that wait for others.
//!
//! Environment: `SHEARWATER_LISTEN` (127.0.0.1:8080), `SHEARWATER_WORKERS`, `SHEARWATER_DRIVER` (auto, epoll, uring,
//! kqueue), `SHEARWATER_DRAIN_MS`, `SHEARWATER_WATCHDOG_MS`, `SHEARWATER_HEADER_TIMEOUT_MS`,
//! `SHEARWATER_IDLE_TIMEOUT_MS`, `SHEARWATER_BODY_MAX` (bytes).

mod faults;

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use shearwater::tasks::StackOptions;
use shearwater::{
    App, Call, DriverChoice, Limits, Line, Request, Response, Server, Timeouts, buffered, get, later, line,
    post,
};

const ECHO_BYTES_MAX: u64 = 1024 * 1024;
const KEPT_BYTES_MAX: u64 = 10 * 1024 * 1024;

fn main() -> Result<(), shearwater::Error> {
    let listen = std::env::var("SHEARWATER_LISTEN").unwrap_or_else(|_| "127.0.0.1:8080".to_owned());
    let defaults = (Limits::default(), Timeouts::default());
    let limits =
        Limits { body_bytes_max: number("SHEARWATER_BODY_MAX", defaults.0.body_bytes_max), ..defaults.0 };
    let timeouts = Timeouts {
        first_head_ms: number("SHEARWATER_HEADER_TIMEOUT_MS", defaults.1.first_head_ms),
        head_ms: number("SHEARWATER_HEADER_TIMEOUT_MS", defaults.1.head_ms),
        idle_ms: number("SHEARWATER_IDLE_TIMEOUT_MS", defaults.1.idle_ms),
        ..defaults.1
    };
    Server::bind(listen)
        .workers(number("SHEARWATER_WORKERS", 0))
        .driver(driver())
        .drain_ms(number("SHEARWATER_DRAIN_MS", 30_000))
        .watchdog_ms(number("SHEARWATER_WATCHDOG_MS", 1000))
        .limits(limits)
        .timeouts(timeouts)
        .run(app())
}

/// The state of each worker, which they share.
#[derive(Clone, Default)]
struct State {
    alive: faults::Alive,
    gate: Arc<Gate>,
}

impl AsRef<faults::Alive> for State {
    fn as_ref(&self) -> &faults::Alive {
        &self.alive
    }
}

fn app() -> App<State> {
    let state = State::default();
    let app = App::with_state(move |_worker| state.clone())
        .route("/", get(|_: &Request<State>| "Hello, world\n"))
        .route(
            "/echo",
            post(buffered(ECHO_BYTES_MAX, |_: &Request<State>, body: &[u8], response: &mut Response| {
                response.content_type("application/octet-stream").body(body);
            })),
        )
        .route(
            "/count",
            post(|request: &Request<State>, response: &mut Response| {
                response.text(request.head().method_name());
            }),
        )
        // All buffered bodies together are limited by the worker (`buffered_bytes_max`).
        .route(
            "/keep",
            post(buffered(KEPT_BYTES_MAX, |_: &Request<State>, body: &[u8], response: &mut Response| {
                response.text(if body.is_empty() { "nothing\n" } else { "kept\n" });
            })),
        )
        .route("/panic", get(|_: &Request<State>, _: &mut Response| panic!("asked to")))
        .route(
            "/slow",
            get(|request: &Request<State>, response: &mut Response| {
                let wanted = request.query_raw().and_then(|query| query.strip_prefix("ms="));
                // Simulates a handler that computes for long and blocks its worker.
                std::thread::sleep(Duration::from_millis(
                    wanted.and_then(|ms| ms.parse().ok()).unwrap_or(100),
                ));
                response.text("slow\n");
            }),
        );
    add_held(faults::add(app))
}

fn driver() -> DriverChoice {
    match std::env::var("SHEARWATER_DRIVER").as_deref() {
        Ok("epoll") => DriverChoice::Epoll,
        Ok("uring") => DriverChoice::Uring,
        Ok("kqueue") => DriverChoice::Kqueue,
        Ok(_) | Err(_) => DriverChoice::Auto,
    }
}

/// Reads a number from the environment; an invalid one is reported and ignored.
fn number<T: std::str::FromStr>(name: &str, default: T) -> T {
    let Ok(text) = std::env::var(name) else { return default };
    text.parse().unwrap_or_else(|_| {
        eprintln!("trial_server: {name}={text:?} is no number; the default holds");
        default
    })
}

/// Maximum number of requests that a worker holds.
const STACKS_MAX: usize = 16 * 1024;

/// The queue of waiting requests of all workers.
#[derive(Default)]
struct Gate(Mutex<GateState>);

#[derive(Default)]
struct GateState {
    opened: u64,
    waiting: Vec<Waker>,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, GateState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> usize {
        let mut state = self.state();
        state.opened += 1;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        let count = waiting.len();
        waiting.into_iter().for_each(Waker::wake);
        count
    }

    /// Waits until it is opened next. `came` is the caller's time of arrival.
    fn poll(&self, came: &mut Option<u64>, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if *came.get_or_insert(state.opened) < state.opened {
            return Poll::Ready(());
        }
        state.waiting.push(cx.waker().clone());
        Poll::Pending
    }
}

async fn held(call: &Call<State>) {
    let mut came = None;
    poll_fn(|cx| call.state().gate.poll(&mut came, cx)).await;
}

/// Adds requests that wait for others: `/async/held` and `/coroutine/held` respond once `/release` is requested; `/held`
/// returns how many wait.
fn add_held(app: App<State>) -> App<State> {
    app.stacks(StackOptions { stacks_max: STACKS_MAX, ..StackOptions::default() })
        .route(
            "/async/held",
            get(later(async |call: &mut Call<State>| {
                held(call).await;
                "held\n"
            })),
        )
        .route(
            "/coroutine/held",
            get(line(|line: &mut Line<State>| {
                line.wait(held(line));
                "held\n"
            })),
        )
        .route(
            "/held",
            get(|request: &Request<State>, response: &mut Response| {
                let count = request.state().gate.state().waiting.len();
                response.text(&count.to_string());
            }),
        )
        .route(
            "/release",
            get(|request: &Request<State>, response: &mut Response| {
                let count = request.state().gate.open();
                response.text(&count.to_string());
            }),
        )
}
