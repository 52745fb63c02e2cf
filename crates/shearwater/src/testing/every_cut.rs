//! A request sent again and again, each time by a client that leaves at another moment.

use std::fmt;
use std::time::Duration;

use super::{OFFLOADED_WAIT_MAX, STEP, Tested};
use crate::handlers::offload::Waited;

/// Time within which a request ends, and after a client has left: longer than all timeouts of the server.
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A moment at which the client leaves, and how.
#[derive(Clone, Copy, Debug)]
struct Cut {
    after: After,
    /// The client resets its connection, instead of closing it.
    resets: bool,
    /// The client reads what it gets.
    reads: bool,
}

#[derive(Clone, Copy, Debug)]
enum After {
    /// Bytes of the request.
    Bytes(usize),
    /// Polls of its handler, and of other tasks.
    Polls(u64),
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = if self.resets { "resets" } else { "closes" };
        write!(f, "the client {way} its connection after ")?;
        match self.after {
            After::Bytes(bytes) => write!(f, "{bytes} bytes of its request")?,
            After::Polls(polls) => write!(f, "{polls} polls of its handler")?,
        }
        if self.reads { Ok(()) } else { f.write_str(", and has not read") }
    }
}

/// Names the cut if the check panics.
struct Named(Cut);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("every_cut: {}", self.0);
        }
    }
}

impl<S> Tested<S> {
    /// Sends a request many times, by clients that leave at every moment: after each byte of it, and each time that its
    /// handler has been polled. Calls `check` after each, when the server is done with the client.
    ///
    /// A client resets its connection or closes it, and reads until then or doesn't. The moments are found by counting, not
    /// at random, so each is tested, in each run. Handlers that [offload](crate::offload()) work are waited for, so moments
    /// within it are not. If `check` panics, the moment is printed. Returns the number of moments.
    ///
    /// ```should_panic
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use std::time::Duration;
    /// use shearwater::testing::Tested;
    /// use shearwater::{App, Call, get, later};
    ///
    /// let present = Arc::new(AtomicU64::new(0));
    /// let counted = Arc::clone(&present);
    /// let handler = async move |call: &mut Call| {
    ///     counted.fetch_add(1, Ordering::Relaxed);
    ///     call.sleep(Duration::from_secs(1)).await;
    ///     // Never reached if the client leaves meanwhile.
    ///     counted.fetch_sub(1, Ordering::Relaxed);
    /// };
    /// let app = App::new().route("/", get(later(handler)));
    /// let request = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";
    /// Tested::new(app).unwrap().every_cut(request, |_| assert_eq!(present.load(Ordering::Relaxed), 0));
    /// ```
    ///
    /// # Panics
    /// If a request whose client stays takes longer than a day; and as [`settle_offloaded`](Self::settle_offloaded).
    pub fn every_cut(&mut self, request: impl AsRef<[u8]>, mut check: impl FnMut(&mut Self)) -> usize {
        let request = request.as_ref();
        let mut count = 0;
        for (resets, reads) in [(true, true), (false, true), (true, false), (false, false)] {
            let mut cut_after = |tested: &mut Self, after| {
                let cut = Cut { after, resets, reads };
                let reached = tested.cut(request, cut)?;
                let _named = Named(cut);
                check(tested);
                count += 1;
                Some(reached)
            };
            for bytes in 0..=if reads { request.len() } else { 0 } {
                cut_after(self, After::Bytes(bytes));
            }
            let mut polls = 0;
            while let Some(reached) = cut_after(self, After::Polls(polls + 1)) {
                polls = reached;
            }
        }
        count
    }

    /// Sends the request once. Returns the number of polls when the client left, or nothing if that was over before.
    fn cut(&mut self, request: &[u8], cut: Cut) -> Option<u64> {
        let closed_before = self.totals().connections_closed;
        let mut client = self.connect();
        client.set_reading(cut.reads);
        let (sent, polls_max) = match cut.after {
            After::Bytes(bytes) => (&request[..bytes], None),
            After::Polls(polls) => (request, Some(polls)),
        };
        client.send(sent);
        let reached = match polls_max {
            None => {
                self.settle_offloaded();
                Some(0)
            }
            // A client that hasn't read sees neither the response nor the end.
            Some(polls_max) => self.polled(polls_max, |tested| {
                let is_closed = tested.totals().connections_closed > closed_before;
                is_closed || cut.reads && client.response().is_some()
            }),
        };
        match cut.resets {
            true => client.reset(),
            false => client.close(),
        }
        self.settle_offloaded();
        self.jump(DAY);
        reached
    }

    /// Runs until tasks were polled so many times; returns how many it has become. Nothing if that doesn't happen until the end.
    fn polled(&mut self, polls_max: u64, mut is_over: impl FnMut(&Self) -> bool) -> Option<u64> {
        let (before, end_ms) = (self.totals().tasks_ready, self.now_ms() + DAY.as_millis() as u64);
        loop {
            let polls = self.totals().tasks_ready - before;
            if polls >= polls_max {
                return Some(polls);
            }
            if is_over(self) {
                return None;
            }
            assert!(self.now_ms() < end_ms, "the request isn't over within a day");
            let seen = self.outstanding.finished();
            if self.is_idle() {
                match self.outstanding.wait(seen, OFFLOADED_WAIT_MAX) {
                    Waited::Nothing => self.advance(STEP),
                    Waited::Finished => {}
                    Waited::TimedOut => panic!("offloaded work didn't finish"),
                }
            }
            self.turn();
        }
    }

    /// Advances the clock at once.
    fn jump(&mut self, duration: Duration) {
        self.advance(duration);
        self.settle_offloaded();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;
    use crate::{
        App, Call, Gone, Head, Line, MethodTable, Reading, Sent, get, later, later_reading, line, offload,
        post,
    };

    const GET: &str = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";

    /// Counts itself while it exists.
    struct Present(Arc<AtomicI64>);

    impl Present {
        fn new(count: &Arc<AtomicI64>) -> Self {
            count.fetch_add(1, Ordering::Relaxed);
            Self(Arc::clone(count))
        }
    }

    impl Drop for Present {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Returns the cuts after which something was left, and all cuts.
    fn left_after_cuts(table: impl FnOnce(Arc<AtomicI64>) -> MethodTable, request: &str) -> (usize, usize) {
        let (count, mut left) = (Arc::new(AtomicI64::new(0)), 0);
        let app = App::new().route("/", table(Arc::clone(&count)));
        let mut tested = Tested::new(app).expect("one route");
        let cuts = tested.every_cut(request, |_| left += usize::from(count.swap(0, Ordering::Relaxed) != 0));
        (left, cuts)
    }

    #[test]
    fn finds_a_count_that_is_not_taken_back_between_two_awaits() {
        let leaks = |count: Arc<AtomicI64>| {
            get(later(async move |call: &mut Call| {
                for _ in 0..3 {
                    call.sleep(Duration::from_millis(50)).await;
                }
                count.fetch_add(1, Ordering::Relaxed);
                call.sleep(Duration::from_millis(50)).await;
                count.fetch_sub(1, Ordering::Relaxed);
                "done"
            }))
        };
        let (left, cuts) = left_after_cuts(leaks, GET);
        // At one of its five polls, by each of four clients; each byte of the request by two.
        assert_eq!(left, 4, "of {cuts}");
        assert!(cuts >= 2 * GET.len() + 4 * 4, "{cuts}");
    }

    #[test]
    fn nothing_is_left_of_handlers_that_drop_what_they_hold() {
        let streams = |count: Arc<AtomicI64>| {
            post(later_reading(async move |call: &mut Call<(), Reading>| -> Result<Sent, Gone> {
                let _present = Present::new(&count);
                while call.read().await.is_some() {
                    call.sleep(Duration::from_millis(20)).await;
                }
                let mut body = call.begin(Head::ok("text/plain"));
                for _ in 0..20 {
                    // Beyond what the simulated socket holds, for clients that don't read.
                    body.send([b'x'; 64 * 1024]).await?;
                }
                Ok(body.end())
            }))
        };
        let request = "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello";
        let (left, cuts) = left_after_cuts(streams, request);
        assert_eq!(left, 0, "of {cuts}");
        assert!(cuts > 150, "{cuts}");
    }

    #[test]
    fn coroutines_and_offloaded_work_are_cut_too() {
        let waits = |count: Arc<AtomicI64>| {
            get(line(move |line: &mut Line| {
                let _present = Present::new(&count);
                line.sleep(Duration::from_millis(50));
                "done"
            }))
        };
        let (left, cuts) = left_after_cuts(waits, GET);
        assert_eq!(left, 0, "of {cuts}");
        let offloads = |count: Arc<AtomicI64>| {
            get(later(async move |_: &mut Call| {
                let _present = Present::new(&count);
                offload(|| "done").await
            }))
        };
        assert_eq!(left_after_cuts(offloads, GET).0, 0);
    }

    #[test]
    fn the_moment_is_named() {
        let cut = Cut { after: After::Polls(2), resets: false, reads: false };
        let text = "the client closes its connection after 2 polls of its handler, and has not read";
        assert_eq!(cut.to_string(), text);
        let seen = Rc::new(Cell::new(0));
        let mut tested = Tested::new(App::new().fallback("")).expect("one route");
        let cuts = tested.every_cut(GET, |_| seen.set(seen.get() + 1));
        assert_eq!(cuts, seen.get());
    }
}
