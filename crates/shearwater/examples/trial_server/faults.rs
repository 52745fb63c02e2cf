//! Misbehaving handlers: the same faults under `/sync`, `/async` and `/coroutine`. `docs/guide/handlers.md` lists the
//! response to each; tests verify it.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shearwater::{
    App, Call, Failure, Gone, Head, Line, Reading, Request, Response, Sent, Status, get, later,
    later_reading, line, line_reading, post,
};

/// Announced length of a stream with a wrong length.
const ANNOUNCED_BYTES: u64 = 10;

/// Long enough for earlier output to be sent.
const MOMENT: Duration = Duration::from_millis(20);

/// Longer than any test.
const HOUR: Duration = Duration::from_secs(3600);

/// Counts values on handlers' stacks and in their futures, none of which may outlive its request.
#[derive(Clone, Default)]
pub(crate) struct Alive(Arc<AtomicUsize>);

struct Guard(Arc<AtomicUsize>);

impl Alive {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn guard(&self) -> Guard {
        self.0.fetch_add(1, Ordering::Relaxed);
        Guard(Arc::clone(&self.0))
    }
}

impl AsRef<Self> for Alive {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Adds the routes, and `/alive`, which returns the number of guards.
pub(crate) fn add<S: AsRef<Alive> + 'static>(app: App<S>) -> App<S> {
    app.route(
        "/alive",
        get(|request: &Request<S>, response: &mut Response| {
            let count = request.state().as_ref().count();
            response.text(&count.to_string());
        }),
    )
    .scope("/sync", add_sync)
    .scope("/async", add_async)
    .scope("/coroutine", add_coroutines)
}

fn add_sync<S: AsRef<Alive> + 'static>(app: App<S>) -> App<S> {
    app.route(
        "/panic",
        get(|request: &Request<S>, _: &mut Response| {
            let _guard = request.state().as_ref().guard();
            panic!("asked to");
        }),
    )
    .route(
        "/overflow",
        get(|_: &Request<S>, response: &mut Response| {
            response.text(&depth(1).to_string());
        }),
    )
    .route("/unread", post(|_: &Request<S>| "unread"))
    .route(
        "/length",
        get(|_: &Request<S>, response: &mut Response| {
            response.text("half done").field("Content-Length", "5");
        }),
    )
    .route(
        "/blocks/{ms}",
        get(|request: &Request<S>, response: &mut Response| {
            std::thread::sleep(milliseconds(request.param_raw("ms")));
            response.text("blocked");
        }),
    )
}

fn add_async<S: AsRef<Alive> + 'static>(app: App<S>) -> App<S> {
    app.route(
        "/panic",
        get(later(async |call: &mut Call<S>| {
            let _guard = call.state().as_ref().guard();
            call.sleep(MOMENT).await;
            give_up()
        })),
    )
    .route(
        "/panic-behind",
        get(later(async |call: &mut Call<S>| {
            let _guard = call.state().as_ref().guard();
            let mut body = call.begin(Head::new(Status::OK));
            body.send(b"begun").await?;
            body.sleep(MOMENT).await;
            give_up()
        })),
    )
    .route("/overflow", get(later(async |_: &mut Call<S>| depth(1).to_string())))
    .route("/unread", post(later(async |_: &mut Call<S>| "unread")))
    .route("/early", post(later_reading(async |_: &mut Call<S, Reading>| "early")))
    .route(
        "/ignores",
        post(later_reading(async |call: &mut Call<S, Reading>| {
            let _guard = call.state().as_ref().guard();
            call.sleep(10 * MOMENT).await;
            "ignored"
        })),
    )
    .route(
        "/waits",
        get(later(async |call: &mut Call<S>| {
            let _guard = call.state().as_ref().guard();
            call.sleep(HOUR).await;
        })),
    )
    .route(
        "/waits",
        post(later_reading(async |call: &mut Call<S, Reading>| {
            let _guard = call.state().as_ref().guard();
            while call.read().await.is_some() {}
        })),
    )
    .route(
        "/streams",
        get(later(async |call: &mut Call<S>| {
            let _guard = call.state().as_ref().guard();
            let mut body = call.begin(Head::new(Status::OK));
            while body.send(b"more\n").await.is_ok() {
                body.sleep(MOMENT).await;
            }
        })),
    )
    .route("/length/{sent}", get(later(send_async)))
    .route(
        "/blocks/{ms}",
        get(later(async |call: &mut Call<S>| {
            std::thread::sleep(milliseconds(call.param_raw("ms")));
            "blocked"
        })),
    )
    .route("/fails", get(later(async |_: &mut Call<S>| Err::<(), _>(Failure::internal("no luck")))))
}

fn add_coroutines<S: AsRef<Alive> + 'static>(app: App<S>) -> App<S> {
    app.route(
        "/panic",
        get(line(|line: &mut Line<S>| {
            let _guard = line.state().as_ref().guard();
            line.sleep(MOMENT);
            give_up()
        })),
    )
    .route(
        "/panic-behind",
        get(line(|line: &mut Line<S>| {
            let _guard = line.state().as_ref().guard();
            let mut body = line.begin(Head::new(Status::OK));
            body.send(b"begun")?;
            body.sleep(MOMENT);
            give_up()
        })),
    )
    .route("/overflow", get(line(|_: &mut Line<S>| depth(1).to_string())))
    .route("/unread", post(line(|_: &mut Line<S>| "unread")))
    .route("/early", post(line_reading(|_: &mut Line<S, Reading>| "early")))
    .route(
        "/ignores",
        post(line_reading(|line: &mut Line<S, Reading>| {
            let _guard = line.state().as_ref().guard();
            line.sleep(10 * MOMENT);
            "ignored"
        })),
    )
    .route(
        "/waits",
        post(line_reading(|line: &mut Line<S, Reading>| {
            let _guard = line.state().as_ref().guard();
            while line.read().is_some() {}
        })),
    )
    .route(
        "/waits",
        get(line(|line: &mut Line<S>| {
            let _guard = line.state().as_ref().guard();
            line.sleep(HOUR);
        })),
    )
    .route(
        "/streams",
        get(line(|line: &mut Line<S>| {
            let _guard = line.state().as_ref().guard();
            let mut body = line.begin(Head::new(Status::OK));
            while body.send(b"more\n").is_ok() {
                body.sleep(MOMENT);
            }
        })),
    )
    .route("/length/{sent}", get(line(send)))
    .route(
        "/blocks/{ms}",
        get(line(|line: &mut Line<S>| {
            std::thread::sleep(milliseconds(line.param_raw("ms")));
            "blocked"
        })),
    )
    .route("/fails", get(line(|_: &mut Line<S>| Err::<(), _>(Failure::internal("no luck")))))
}

async fn send_async<S: AsRef<Alive>>(call: &mut Call<S>) -> Result<Sent, Gone> {
    let _guard = call.state().as_ref().guard();
    let sent = vec![b'x'; number(call.param_raw("sent"))];
    let mut body = call.begin(Head::new(Status::OK).length(ANNOUNCED_BYTES));
    body.send(&sent).await?;
    body.sleep(MOMENT).await;
    Ok(body.end())
}

fn send<S: AsRef<Alive>>(line: &mut Line<S>) -> Result<Sent, Gone> {
    let _guard = line.state().as_ref().guard();
    let sent = vec![b'x'; number(line.param_raw("sent"))];
    let mut body = line.begin(Head::new(Status::OK).length(ANNOUNCED_BYTES));
    body.send(&sent)?;
    body.sleep(MOMENT);
    Ok(body.end())
}

/// Panics. Its return type fits handlers that send first.
fn give_up() -> Result<(), Gone> {
    panic!("asked to");
}

/// Overflows any stack.
fn depth(number: u64) -> u64 {
    let frame = black_box([number; 32]);
    if frame[0] == 0 { 0 } else { depth(frame[1] + 1) + frame[2] }
}

fn number(text: Option<&str>) -> usize {
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn milliseconds(text: Option<&str>) -> Duration {
    Duration::from_millis(number(text) as u64)
}
