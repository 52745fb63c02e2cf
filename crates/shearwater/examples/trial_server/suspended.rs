//! Requests that wait for others: `/async/held` and `/coroutine/held` respond once `/release` is requested; `/held`
//! returns how many wait.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use shearwater::tasks::StackOptions;
use shearwater::{App, Call, CoroutineCall, Request, Response};

/// Maximum number of requests that a worker holds.
const STACKS_MAX: usize = 16 * 1024;

/// The queue of waiting requests of all workers.
#[derive(Default)]
struct Gate(Mutex<State>);

#[derive(Default)]
struct State {
    opened: u64,
    waiting: Vec<Waker>,
}

impl Gate {
    fn state(&self) -> MutexGuard<'_, State> {
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

async fn held(call: &Call) {
    let mut came = None;
    poll_fn(|cx| call.state::<Gate>().poll(&mut came, cx)).await;
}

/// Adds the routes to an app.
pub(crate) fn add(app: &mut App) {
    app.state(Gate::default());
    app.stacks(StackOptions { stacks_max: STACKS_MAX, ..StackOptions::default() });
    app.get_async("/async/held", async |call: &mut Call| {
        held(call).await;
        call.response().text("held\n");
    });
    app.get_coroutine("/coroutine/held", |line: &mut CoroutineCall| {
        line.wait(held(line));
        line.response().text("held\n");
    });
    app.get("/held", |request: &Request, response: &mut Response| {
        let count = request.state::<Gate>().state().waiting.len();
        response.text(&count.to_string());
    });
    app.get("/release", |request: &Request, response: &mut Response| {
        let count = request.state::<Gate>().open();
        response.text(&count.to_string());
    });
}
