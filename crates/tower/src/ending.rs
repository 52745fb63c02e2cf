//! How connections end that the workers have handed over: by one deadline, whoever asks for it, and told where they are cut off.

use std::io::{self, Write};
use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use shearwater::{Control, End, Verbosity};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::upgrades::Upgrades;

/// The end of a server's connections that were handed over.
#[derive(Debug)]
pub(crate) struct Ending {
    upgrades: Arc<Upgrades>,
    patience: Duration,
    verbosity: Verbosity,
    /// When those that are left are cut off, once it has begun.
    deadline: OnceLock<Instant>,
    cut_off: Once,
}

impl Ending {
    pub(crate) fn new(upgrades: Arc<Upgrades>, patience: Duration, verbosity: Verbosity) -> Self {
        Self { upgrades, patience, verbosity, deadline: OnceLock::new(), cut_off: Once::new() }
    }

    /// How long it may take until connections are cut off.
    pub(crate) fn patience(&self) -> Duration {
        self.patience
    }

    /// Ends them along with the workers: a drain begins their time, a stop ends it.
    pub(crate) fn follow(self: &Arc<Self>, control: &Control, runtime: &Handle) {
        let (ending, runtime) = (Arc::clone(self), runtime.clone());
        control.on_end(move |end| match end {
            End::Drain => {
                let ending = Arc::clone(&ending);
                drop(runtime.spawn(async move { ending.end().await }));
            }
            _ => ending.upgrades.stop(),
        });
    }

    /// Waits until there are none. More may come as long as there are workers: who has waited for those waits here once more. The time
    /// runs from the first call on.
    pub(crate) async fn end(&self) {
        // It is decades from now where that is too long for the clock.
        let deadline = *self.deadline.get_or_init(|| sleep(self.patience).deadline());
        if timeout_at(deadline, self.upgrades.closed()).await.is_err() {
            self.cut_off.call_once(|| self.cut_off());
            self.upgrades.closed().await;
        }
    }

    /// Told first: when they have ended, the program may.
    fn cut_off(&self) {
        if self.verbosity >= Verbosity::Warn {
            let count = self.upgrades.speaking();
            let line = format_args!(
                "shearwater: {count} connections that wanted an upgrade are cut off in the middle of a request or an answer"
            );
            // A closed standard error is no reason to fail.
            drop(writeln!(io::stderr(), "{line}"));
        }
        self.upgrades.stop();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use shearwater::{Control, Verbosity};
    use tokio::runtime::Handle;
    use tokio::time::Instant;

    use super::Ending;
    use crate::upgrades::Upgrades;

    const PATIENCE: Duration = Duration::from_secs(7);

    /// Who drains and who waits for the end both come here: the second gives nobody more time.
    #[tokio::test(start_paused = true)]
    async fn there_is_one_deadline() {
        let upgrades = Upgrades::new(1);
        let ending = Arc::new(Ending::new(Arc::clone(&upgrades), PATIENCE, Verbosity::Off));
        let begun = Instant::now();
        ending.end().await;
        assert_eq!(begun.elapsed(), Duration::ZERO, "there is nobody yet");
        tokio::time::sleep(PATIENCE / 2).await;

        let (_permit, mut stop) = upgrades.enter().expect("there is room");
        let waiting = [(); 2].map(|()| {
            let ending = Arc::clone(&ending);
            tokio::spawn(async move { ending.end().await })
        });
        drop(stop.wait_for(|stop| *stop).await.expect("it is said"));
        assert_eq!(begun.elapsed(), PATIENCE);
        tokio::time::sleep(PATIENCE).await;
        assert!(waiting.iter().all(|waiting| !waiting.is_finished()), "it has not ended yet");
        drop(stop);
        for waiting in waiting {
            waiting.await.expect("it ends");
        }
    }

    /// However it was ordered: by a signal too, behind which the workers may take all of the time.
    #[tokio::test(start_paused = true)]
    async fn its_time_begins_with_the_drain_and_a_stop_ends_it() {
        for is_stopped in [false, true] {
            let upgrades = Upgrades::new(1);
            let ending = Arc::new(Ending::new(Arc::clone(&upgrades), PATIENCE, Verbosity::Off));
            let (control, _notices) = Control::new();
            ending.follow(&control, &Handle::current());
            let (_permit, mut stop) = upgrades.enter().expect("there is room");
            let begun = Instant::now();
            control.drain(1);
            tokio::time::sleep(PATIENCE / 2).await;
            if is_stopped {
                control.stop();
            }
            let stopped = tokio::spawn(async move { drop(stop.wait_for(|stop| *stop).await.expect("said")) });
            ending.end().await;
            assert_eq!(begun.elapsed(), if is_stopped { PATIENCE / 2 } else { PATIENCE });
            stopped.await.expect("it does not panic");
        }
    }

    #[tokio::test]
    async fn where_there_is_nobody_nothing_is_waited_for() {
        Ending::new(Upgrades::new(1), Duration::MAX, Verbosity::Off).end().await;
    }
}
