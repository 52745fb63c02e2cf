//! Counters of a worker. Only the worker writes them, anyone may read: no locked instruction on the way of a request.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// What one worker has counted since it started.
        #[derive(Debug, Default)]
        #[repr(align(64))]
        pub struct Counters {
            $($(#[$doc])* pub(crate) $name: Counter,)*
        }

        /// Counters read at one moment, of one worker or summed over several.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        pub struct Totals {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Totals {
            /// Adds what `counters` say now.
            pub fn add(&mut self, counters: &Counters) {
                $(self.$name += counters.$name.get();)*
            }

            /// Each counter's name and figure, in a fixed order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counters! {
    /// Connections accepted.
    connections_accepted,
    /// Connections closed.
    connections_closed,
    /// Connections reset at once because their address holds too many.
    connections_refused,
    /// Times accepting paused because descriptors, slots or memory had run out.
    accept_pauses,
    /// Complete requests that were given to a handler.
    requests,
    /// Requests answered by the server itself (`4xx` or `5xx`, then a close). With `requests`: all final answers.
    requests_refused,
    /// Handlers that panicked.
    handler_panics,
    /// Responses that a handler built wrongly (a bad field), sent as `500`.
    handler_errors,
    /// Connections closed because a head or body took too long (`408`).
    timeouts_request,
    /// Connections closed because they were idle too long.
    timeouts_idle,
    /// Connections reset because the client took no bytes.
    timeouts_write,
    /// Connections broken by the peer or the network.
    connections_broken,
    /// Answers cut short because a file was shorter than it had been, or could not be read.
    files_failed,
    /// Requests refused because the worker's buffers were full (`503`).
    buffers_full,
    /// Bytes received.
    bytes_received,
    /// Bytes of the sends that ended well; of one that broke off, what the kernel had taken doesn't count.
    bytes_sent,
    /// Notices to the operator that nobody read.
    notices_dropped,
}

/// One counter: a single writer, so a load and a store do.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
