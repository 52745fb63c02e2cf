//! Misbehaving handlers: the same faults under `/sync`, `/async` and `/coroutine`. `docs/guide/handlers.md` lists the
//! response to each; tests verify it.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shearwater::{App, Call, CoroutineCall, Gone, Request, Response};

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

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Adds the routes, and `/alive`, which returns the number of guards.
pub(crate) fn add(app: &mut App, alive: &Alive) {
    app.state(alive.clone());
    app.get("/alive", |request: &Request, response: &mut Response| {
        let count = request.state::<Alive>().count();
        response.text(&count.to_string());
    });
    app.scope("/sync", add_sync);
    app.scope("/async", add_async);
    app.scope("/coroutine", add_coroutines);
}

fn add_sync(app: &mut App) {
    app.get("/panic", |request: &Request, _: &mut Response| {
        let _guard = request.state::<Alive>().guard();
        panic!("asked to");
    });
    app.get("/overflow", |_: &Request, response: &mut Response| {
        response.text(&depth(1).to_string());
    });
    app.post("/unread", |_: &Request, response: &mut Response| {
        response.text("unread");
    });
    app.get("/length", |_: &Request, response: &mut Response| {
        response.text("half done").field("Content-Length", "5");
    });
    app.get("/blocks/{ms}", |request: &Request, response: &mut Response| {
        std::thread::sleep(milliseconds(request.param("ms")));
        response.text("blocked");
    });
}

fn add_async(app: &mut App) {
    app.get_async("/panic", async |call: &mut Call| {
        let _guard = call.state::<Alive>().guard();
        call.sleep(MOMENT).await;
        give_up()
    });
    app.get_async("/panic-behind", async |call: &mut Call| {
        let _guard = call.state::<Alive>().guard();
        call.send(b"begun").await?;
        call.sleep(MOMENT).await;
        give_up()
    });
    app.get_async("/overflow", async |call: &mut Call| {
        call.response().text(&depth(1).to_string());
    });
    app.post_async("/unread", async |call: &mut Call| {
        call.response().text("unread");
    });
    app.post_async("/early", async |call: &mut Call| {
        call.response().text("early");
    })
    .read();
    app.post_async("/ignores", async |call: &mut Call| {
        let _guard = call.state::<Alive>().guard();
        call.sleep(10 * MOMENT).await;
        call.response().text("ignored");
    })
    .read();
    app.get_async("/waits", async |call: &mut Call| {
        let _guard = call.state::<Alive>().guard();
        call.sleep(HOUR).await;
    });
    app.post_async("/waits", async |call: &mut Call| {
        let _guard = call.state::<Alive>().guard();
        while call.read().await.is_some() {}
    })
    .read();
    app.get_async("/streams", async |call: &mut Call| {
        let _guard = call.state::<Alive>().guard();
        while call.send(b"more\n").await.is_ok() {
            call.sleep(MOMENT).await;
        }
    });
    app.get_async("/length/{sent}", async |call: &mut Call| {
        let _guard = call.state::<Alive>().guard();
        let sent = vec![b'x'; number(call.param("sent"))];
        call.begin(Some(ANNOUNCED_BYTES));
        call.send(&sent).await?;
        call.sleep(MOMENT).await;
        Ok::<(), Gone>(())
    });
    app.get_async("/blocks/{ms}", async |call: &mut Call| {
        std::thread::sleep(milliseconds(call.param("ms")));
        call.response().text("blocked");
    });
    app.get_async("/fails", async |_: &mut Call| Err::<(), _>("no luck"));
}

fn add_coroutines(app: &mut App) {
    app.get_coroutine("/panic", |line: &mut CoroutineCall| {
        let _guard = line.state::<Alive>().guard();
        line.sleep(MOMENT);
        give_up()
    });
    app.get_coroutine("/panic-behind", |line: &mut CoroutineCall| {
        let _guard = line.state::<Alive>().guard();
        line.send(b"begun")?;
        line.sleep(MOMENT);
        give_up()
    });
    app.get_coroutine("/overflow", |line: &mut CoroutineCall| {
        line.response().text(&depth(1).to_string());
    });
    app.post_coroutine("/unread", |line: &mut CoroutineCall| {
        line.response().text("unread");
    });
    app.post_coroutine("/early", |line: &mut CoroutineCall| {
        line.response().text("early");
    })
    .read();
    app.post_coroutine("/ignores", |line: &mut CoroutineCall| {
        let _guard = line.state::<Alive>().guard();
        line.sleep(10 * MOMENT);
        line.response().text("ignored");
    })
    .read();
    app.post_coroutine("/waits", |line: &mut CoroutineCall| {
        let _guard = line.state::<Alive>().guard();
        while line.read().is_some() {}
    })
    .read();
    app.get_coroutine("/waits", |line: &mut CoroutineCall| {
        let _guard = line.state::<Alive>().guard();
        line.sleep(HOUR);
    });
    app.get_coroutine("/streams", |line: &mut CoroutineCall| {
        let _guard = line.state::<Alive>().guard();
        while line.send(b"more\n").is_ok() {
            line.sleep(MOMENT);
        }
    });
    app.get_coroutine("/length/{sent}", |line: &mut CoroutineCall| {
        let _guard = line.state::<Alive>().guard();
        let sent = vec![b'x'; number(line.param("sent"))];
        line.begin(Some(ANNOUNCED_BYTES));
        line.send(&sent)?;
        line.sleep(MOMENT);
        Ok::<(), Gone>(())
    });
    app.get_coroutine("/blocks/{ms}", |line: &mut CoroutineCall| {
        std::thread::sleep(milliseconds(line.param("ms")));
        line.response().text("blocked");
    });
    app.get_coroutine("/fails", |_: &mut CoroutineCall| Err::<(), _>("no luck"));
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
