//! tokio's cooperative budget, for futures that workers poll themselves.
//!
//! tokio's channels, timers and sockets report "not ready" once a task has used up its budget of one poll. Outside of
//! tokio's own tasks there is no budget, and a loop over a channel that always has an item would never yield.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::task::coop::{RestoreOnPending, poll_proceed, unconstrained};

/// A worker's source of budgets: each poll gets as much as a task of tokio's.
pub(crate) struct Budget {
    /// Restores a full budget when dropped.
    full: Cell<Option<RestoreOnPending>>,
}

impl Budget {
    /// Takes the full budget from a future that tokio polls. Must not be called by a future of tokio's.
    pub(crate) fn new(runtime: &Handle) -> Self {
        Self { full: Cell::new(Some(runtime.block_on(poll_fn(poll_proceed)))) }
    }

    /// Calls `poll` with a full budget. Later code on the thread has the budget that it had before.
    #[inline]
    pub(crate) fn scope<T>(
        &self,
        cx: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        // `unconstrained` puts back the thread's budget, after a panic too.
        let scope = unconstrained(poll_fn(|cx| {
            drop(self.full.take());
            if let Poll::Ready(full) = poll_proceed(cx) {
                self.full.set(Some(full));
            }
            poll(cx)
        }));
        pin!(scope).poll(cx)
    }
}

impl Drop for Budget {
    /// Keeps the budget from being restored, which would bound everything else on the thread.
    fn drop(&mut self) {
        if let Some(full) = self.full.take() {
            full.made_progress();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use tokio::runtime::Builder;
    use tokio::task::coop::consume_budget;

    use super::Budget;

    /// Items that one poll would take without a budget.
    const ITEMS: usize = 100_000;

    /// Counts the items that a loop takes in one poll.
    fn taken(poll: impl FnOnce(Pin<&mut dyn Future<Output = ()>>, &mut Context<'_>)) -> usize {
        let taken = Cell::new(0);
        let looping = pin!(async {
            while taken.get() < ITEMS {
                consume_budget().await;
                taken.set(taken.get() + 1);
            }
        });
        poll(looping, &mut Context::from_waker(Waker::noop()));
        taken.get()
    }

    #[test]
    fn bounds_each_poll_and_nothing_else_on_the_thread() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let budget = Budget::new(runtime.handle());
        let mut bounded = Vec::new();
        for _ in 0..3 {
            bounded.push(taken(|mut looping, cx| {
                assert!(budget.scope(cx, |cx| looping.as_mut().poll(cx)).is_pending());
            }));
        }
        assert!((1..1000).contains(&bounded[0]), "{bounded:?}");
        assert!(bounded.iter().all(|count| *count == bounded[0]), "{bounded:?}");
        let outside = || taken(|looping, cx| assert!(looping.poll(cx).is_ready()));
        assert_eq!(outside(), ITEMS);
        let panicking = catch_unwind(AssertUnwindSafe(|| {
            let mut cx = Context::from_waker(Waker::noop());
            budget.scope(&mut cx, |_| -> Poll<()> { panic!("planned") })
        }));
        assert!(panicking.is_err());
        assert_eq!(outside(), ITEMS, "after a panic");
        drop(budget);
        assert_eq!(outside(), ITEMS, "after the budget's end");
    }
}
