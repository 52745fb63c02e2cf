//! The server that `cargo e2e` and the tests put under load: routes that echo, count, panic and wait, beneath `/sync`, `/async` and
//! `/coroutine` with every [fault](faults) that a handler can have, and such as [wait for each other](suspended).
//!
//! Set up by environment: `SHEARWATER_LISTEN` (127.0.0.1:8080), `SHEARWATER_WORKERS`, `SHEARWATER_DRIVER` (auto, epoll,
//! uring, kqueue), `SHEARWATER_DRAIN_MS`, `SHEARWATER_WATCHDOG_MS`,
//! `SHEARWATER_HEADER_TIMEOUT_MS`, `SHEARWATER_IDLE_TIMEOUT_MS`, `SHEARWATER_BODY_MAX` (bytes).

mod faults;
mod suspended;

use std::time::Duration;

use shearwater::{App, DriverChoice, Limits, Request, Response, Server, Timeouts};

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
    Server::new(listen)
        .workers(number("SHEARWATER_WORKERS", 0))
        .driver(driver())
        .drain_ms(number("SHEARWATER_DRAIN_MS", 30_000))
        .watchdog_ms(number("SHEARWATER_WATCHDOG_MS", 1000))
        .limits(limits)
        .timeouts(timeouts)
        .run_app(app())
}

fn app() -> App {
    let mut app = App::new();
    app.get("/", |_: &Request, response: &mut Response| {
        response.text("Hello, world\n");
    });
    app.post("/echo", |request: &Request, response: &mut Response| {
        response.content_type("application/octet-stream").body(request.body());
    })
    .buffer(ECHO_BYTES_MAX);
    app.post("/count", |request: &Request, response: &mut Response| {
        response.text(request.head().method_name());
    });
    // What is kept of many bodies at once is the worker's own bound to hold (`buffered_bytes_max`).
    app.post("/keep", |request: &Request, response: &mut Response| {
        response.text(if request.body().is_empty() { "nothing\n" } else { "kept\n" });
    })
    .buffer(KEPT_BYTES_MAX);
    app.get("/panic", |_: &Request, _: &mut Response| panic!("asked to"));
    app.get("/slow", |request: &Request, response: &mut Response| {
        let wanted = request.query().and_then(|query| query.strip_prefix("ms="));
        // It stands for a handler that computes for long: what the worker does meanwhile is part of the trial.
        std::thread::sleep(Duration::from_millis(wanted.and_then(|ms| ms.parse().ok()).unwrap_or(100)));
        response.text("slow\n");
    });
    faults::add(&mut app, &faults::Alive::default());
    suspended::add(&mut app);
    app
}

fn driver() -> DriverChoice {
    match std::env::var("SHEARWATER_DRIVER").as_deref() {
        Ok("epoll") => DriverChoice::Epoll,
        Ok("uring") => DriverChoice::Uring,
        Ok("kqueue") => DriverChoice::Kqueue,
        Ok(_) | Err(_) => DriverChoice::Auto,
    }
}

/// A figure from the environment; one that can't be read is told and left out.
fn number<T: std::str::FromStr>(name: &str, default: T) -> T {
    let Ok(text) = std::env::var(name) else { return default };
    text.parse().unwrap_or_else(|_| {
        eprintln!("trial_server: {name}={text:?} is no number; the default holds");
        default
    })
}
