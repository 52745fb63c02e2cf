//! Connections that were handed over: how many there may be, and how they end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;

/// All connections of a server that were handed over.
#[derive(Debug)]
pub(crate) struct Upgrades {
    /// Whether those that speak HTTP are to end now.
    stop: watch::Sender<bool>,
    open: AtomicUsize,
    open_max: usize,
}

impl Upgrades {
    pub(crate) fn new(open_max: usize) -> Arc<Self> {
        Arc::new(Self { stop: watch::Sender::new(false), open: AtomicUsize::new(0), open_max })
    }

    /// Leave for one more, unless there are as many as there may be, and where it hears that it is to end now: while it listens it is
    /// waited for, from now on.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<(Permit, watch::Receiver<bool>)> {
        let one_more = |open: usize| (open < self.open_max).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        Some((Permit { upgrades: Arc::clone(self) }, self.stop.subscribe()))
    }

    /// How many there are: those that speak HTTP no more are among them.
    #[cfg(test)]
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// How many speak HTTP.
    pub(crate) fn speaking(&self) -> usize {
        self.stop.receiver_count()
    }

    /// Tells those that speak HTTP to end now.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until none speaks HTTP any more: each does for one request. What a service does with a connection that was upgraded is not
    /// waited for.
    pub(crate) async fn closed(&self) {
        self.stop.closed().await;
    }
}

/// A connection's place among those that were handed over, for as long as its socket is open.
#[derive(Debug)]
pub(crate) struct Permit {
    upgrades: Arc<Upgrades>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.upgrades.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::Upgrades;

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

    /// Before it listens too.
    #[tokio::test]
    async fn who_has_entered_is_waited_for() {
        let upgrades = Upgrades::new(1);
        let (permit, mut stop) = upgrades.enter().expect("there is room");
        assert_eq!(upgrades.speaking(), 1);
        upgrades.stop();
        assert!(*stop.wait_for(|stop| *stop).await.expect("it is said"));
        drop(stop);
        upgrades.closed().await;
        assert_eq!(upgrades.open(), 1, "it speaks something else");
        drop(permit);
        assert_eq!(upgrades.open(), 0);
    }
}
