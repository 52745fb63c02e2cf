//! Connections that were handed over: how many there may be, and how they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// What connections that were handed over are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Serve,
    /// To end behind the request at hand.
    Drain,
    /// To end now.
    Stop,
}

/// All connections of a server that were handed over.
#[derive(Debug)]
pub(crate) struct Upgrades {
    orders: watch::Sender<Order>,
    open: AtomicUsize,
    open_max: usize,
}

impl Upgrades {
    pub(crate) fn new(open_max: usize) -> Arc<Self> {
        Arc::new(Self { orders: watch::Sender::new(Order::Serve), open: AtomicUsize::new(0), open_max })
    }

    /// Leave for one more, unless there are as many as there may be.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Permit> {
        let one_more = |open: usize| (open < self.open_max).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some(Permit { upgrades: Arc::clone(self) })
    }

    /// Where a connection hears what it is to do. While it listens it is waited for.
    pub(crate) fn orders(&self) -> watch::Receiver<Order> {
        self.orders.subscribe()
    }

    /// How many there are: those that speak HTTP no more are among them.
    #[cfg(test)]
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Lets those that speak HTTP end behind the request at hand, until `patience` is over.
    pub(crate) fn drain(&self) {
        self.orders.send_replace(Order::Drain);
    }

    /// Waits until none speaks HTTP any more, which they are told to after `patience` at the latest. What a service does with a
    /// connection that was upgraded is not waited for.
    pub(crate) async fn end(&self, patience: Duration) {
        self.drain();
        if tokio::time::timeout(patience, self.orders.closed()).await.is_err() {
            self.orders.send_replace(Order::Stop);
            self.orders.closed().await;
        }
    }
}

/// A connection's place among those that were handed over, for as long as its socket is open.
#[derive(Debug)]
pub(crate) struct Permit {
    upgrades: Arc<Upgrades>,
}

impl Permit {
    pub(crate) fn orders(&self) -> watch::Receiver<Order> {
        self.upgrades.orders()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.upgrades.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Order, Upgrades};

    #[test]
    fn there_are_no_more_than_there_may_be() {
        let upgrades = Upgrades::new(2);
        let (first, second) = (upgrades.enter(), upgrades.enter());
        assert!(first.is_some() && second.is_some());
        assert!(upgrades.enter().is_none());
        drop(first);
        assert_eq!(upgrades.open(), 1);
        assert!(upgrades.enter().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_end_is_told_to() {
        let upgrades = Upgrades::new(1);
        let mut orders = upgrades.orders();
        let stubborn = tokio::spawn(async move {
            drop(orders.wait_for(|order| *order == Order::Drain).await.expect("it is said"));
            let begun = tokio::time::Instant::now();
            drop(orders.wait_for(|order| *order == Order::Stop).await.expect("it is said"));
            begun.elapsed()
        });
        upgrades.end(Duration::from_secs(7)).await;
        assert_eq!(stubborn.await.expect("it ends"), Duration::from_secs(7));
    }

    #[tokio::test]
    async fn where_there_is_nobody_nothing_is_waited_for() {
        Upgrades::new(1).end(Duration::MAX).await;
    }
}
