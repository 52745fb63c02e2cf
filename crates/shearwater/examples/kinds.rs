//! A route for each kind of handler, as `cargo lab` requests them (scenarios `kind-*` and `order`): the same 13 bytes by each, and paths of the
//! same length, so that what differs is the kind alone.
//!
//! Environment: `SHEARWATER_LISTEN` (127.0.0.1:8080), `SHEARWATER_WORKERS` (0: one per core), `SHEARWATER_DRIVER`
//! (auto, epoll, uring, kqueue), `SHEARWATER_ORDER` (fifo, lifo).

use std::sync::{Arc, OnceLock};

use serde::Serialize;
use shearwater::tasks::yield_now;
use shearwater::{
    App, Call, Control, DriverChoice, Line, Order, Reading, Request, Response, Server, buffered, get, later,
    later_reading, line, post,
};

const TEXT: &str = "Hello, World!";
/// Maximum length of a body in bytes.
const BODY_BYTES_MAX: u64 = 64 * 1024;
/// Number of yields of `/manyturns`, and bytes that it holds and touches meanwhile.
const TURNS: u8 = 32;
const HELD_BYTES: usize = 2048;

#[derive(Serialize)]
struct Message {
    message: &'static str,
}

fn main() -> Result<(), shearwater::Error> {
    let setting = |name: &str| std::env::var(name).ok();
    let listen = setting("SHEARWATER_LISTEN").unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let workers = setting("SHEARWATER_WORKERS").and_then(|workers| workers.parse().ok()).unwrap_or(0);
    let driver = match setting("SHEARWATER_DRIVER").as_deref() {
        Some("epoll") => DriverChoice::Epoll,
        Some("uring") => DriverChoice::Uring,
        Some("kqueue") => DriverChoice::Kqueue,
        Some(_) | None => DriverChoice::Auto,
    };
    let order = match setting("SHEARWATER_ORDER").as_deref() {
        Some("lifo") => Order::Lifo,
        Some(_) | None => Order::Fifo,
    };
    let control = Arc::new(OnceLock::new());
    let server = Server::bind(listen).workers(workers).driver(driver).order(order).handle_signals();
    let running = server.start(app(Arc::clone(&control)))?;
    // Set here only.
    let _ = control.set(running.control());
    running.wait().map(drop)
}

fn app(control: Arc<OnceLock<Arc<Control>>>) -> App {
    let app = App::new()
        .route(
            "/plaintext",
            get(|_: &Request, response: &mut Response| {
                response.text(TEXT);
            }),
        )
        .route("/fast-text", get(TEXT))
        .route(
            "/json-text",
            get(|_: &Request, response: &mut Response| {
                response.content_type("application/json").body_with(|out| {
                    // Can't fail: all keys are strings, and writing to a `Vec` always succeeds.
                    let _ = serde_json::to_writer(out, &Message { message: TEXT });
                });
            }),
        )
        .route(
            "/counts",
            get(move |_: &Request, response: &mut Response| {
                let totals = control.get().map(|control| control.totals()).unwrap_or_default();
                response.text(&format!("kinds turns={} ready={}\n", totals.task_turns, totals.tasks_ready));
            }),
        );
    add_bodies(add_waiting(app))
}

/// Deferred handlers, with and without yields.
fn add_waiting(app: App) -> App {
    app.route("/asynctext", get(later(async |_: &mut Call| TEXT)))
        .route(
            "/asyncturn",
            get(later(async |_: &mut Call| {
                yield_now().await;
                TEXT
            })),
        )
        .route("/coroutine", get(line(|_: &mut Line| TEXT)))
        .route(
            "/corouturn",
            get(line(|line: &mut Line| {
                line.yield_now();
                TEXT
            })),
        )
        .route(
            "/manyturns",
            get(later(async |_: &mut Call| {
                let mut held = [0_u8; HELD_BYTES];
                for turn in 0..TURNS {
                    held.fill(turn);
                    yield_now().await;
                }
                let all_kept = held.iter().all(|byte| *byte == TURNS - 1);
                if all_kept { TEXT } else { "lost" }
            })),
        )
}

/// Echoes, with a buffered and a streamed body.
fn add_bodies(app: App) -> App {
    app.route(
        "/post-body",
        post(buffered(BODY_BYTES_MAX, |_: &Request, body: &[u8], response: &mut Response| {
            response.content_type("text/plain; charset=utf-8").body(body);
        })),
    )
    .route(
        "/take-body",
        post(later_reading(async |call: &mut Call<(), Reading>| {
            let body = call.read_to_end(BODY_BYTES_MAX as usize).await.unwrap_or_else(|read| read);
            call.response().content_type("text/plain; charset=utf-8").body(body);
        })),
    )
}
