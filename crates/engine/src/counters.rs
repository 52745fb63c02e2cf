//! Counters of a worker. Only the worker writes them, anyone may read: no locked instruction on the way of a request.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    (
        counts { $($(#[$doc:meta])* $name:ident),* $(,)? }
        limits { $($(#[$limit_doc:meta])* $limit:ident = $limit_name:literal),* $(,)? }
    ) => {
        /// What one worker has counted since it started.
        #[derive(Debug, Default)]
        #[repr(align(64))]
        pub(crate) struct Counters {
            $($(#[$doc])* pub(crate) $name: Counter,)*
            $($(#[$limit_doc])* pub(crate) $limit: Counter,)*
        }

        /// Counters read at one moment, of one worker or summed over several.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Totals {
            $($(#[$doc])* pub $name: u64,)*
            $($(#[$limit_doc])* pub $limit: u64,)*
        }

        impl Totals {
            /// Adds what `counters` say now.
            pub(crate) fn add(&mut self, counters: &Counters) {
                $(self.$name += counters.$name.get();)*
                $(self.$limit += counters.$limit.get();)*
            }

            /// Each counter's name and figure, in a fixed order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)* $((stringify!($limit), self.$limit),)*].into_iter()
            }

            /// Each limit's name, as it stands in `docs/limits.md`, and how often it was reached.
            pub fn limits(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($limit_name, self.$limit),)*].into_iter()
            }
        }
    };
}

counters! {
    counts {
        /// Connections accepted.
        connections_accepted,
        /// Connections closed.
        connections_closed,
        /// Connections reset at once because their address holds too many (`connections_per_address_max`).
        connections_refused,
        /// Connections reset by this server, for whatever reason.
        connections_reset,
        /// Connections broken by the peer or the network.
        connections_broken,
        /// Connections upgraded to another protocol. Each is open until it has ended, or its worker has.
        connections_upgraded,
        /// Connections closed during a request or response because the server ended.
        connections_cut_off,
        /// Complete requests that were given to a handler.
        requests,
        /// Requests answered by the server itself (`4xx` or `5xx`, then a close). With `requests`: all final answers.
        requests_refused,
        /// Answers that send the client elsewhere or say that it has the thing already (`3xx`).
        answers_3xx,
        /// Answers that put the fault at the client (`4xx`).
        answers_4xx,
        /// Answers that put it at the server (`5xx`).
        answers_5xx,
        /// Handlers that panicked.
        handler_panics,
        /// Responses that a handler built wrongly (a bad field), sent as `500`.
        handler_errors,
        /// Answers cut short because a file was shorter than it had been, or could not be read.
        files_failed,
        /// Turns in which handlers that had waited were ready to go on.
        task_turns,
        /// How many were, in all those turns together.
        tasks_ready,
        /// Bytes received.
        bytes_received,
        /// Bytes sent: those that the kernel has accepted, also of responses that broke off halfway or are in flight. Connections that were
        /// handed over to another owner are not counted any more.
        bytes_sent,
    }
    limits {
        /// Heads refused as too large (`431`).
        hit_head_bytes = "head_bytes_max",
        /// Heads refused for their target (`414`).
        hit_target_bytes = "target_bytes_max",
        /// Heads refused for their number of fields (`431`).
        hit_fields = "fields_max",
        /// Heads refused for their method (`501`).
        hit_method_bytes = "METHOD_BYTES_MAX",
        /// Bodies refused as too large, by the server's bound or the handler's own (`413`).
        hit_body_bytes = "body_bytes_max",
        /// Bodies refused for a chunk's size line (`400`).
        hit_chunk_line_bytes = "chunk_line_bytes_max",
        /// Bodies refused for the size of their trailers (`431`).
        hit_trailer_bytes = "trailer_bytes_max",
        /// Bodies refused for the number of their trailers (`431`).
        hit_trailers = "trailers_max",
        /// Times accepting paused because descriptors, slots or memory had run out.
        hit_connections = "connections_max",
        /// Times the acceptor waited because every worker's inbox was full.
        hit_inbox = "INBOX_MAX",
        /// Connections closed after their last request.
        hit_requests_per_connection = "requests_per_connection_max",
        /// Requests refused because the worker's buffers were full (`503`).
        hit_buffered_bytes = "buffered_bytes_max",
        /// Requests refused because as many were being answered later as may be (`503`).
        hit_calls = "calls_max",
        /// Times pipelined requests waited until the answers so far were sent.
        hit_output_bytes = "output_bytes_max",
        /// Times they waited because of what stands between those answers' bytes.
        hit_output_items = "OUTPUT_ITEMS_MAX",
        /// Times they waited because of the different files among those.
        hit_output_files = "OUTPUT_FILES_MAX",
        /// Times pipelined requests waited for the next turn.
        hit_requests_per_turn = "REQUESTS_PER_TURN_MAX",
        /// Connections reset because they sent too much after their last answer.
        hit_linger_bytes = "linger_bytes_max",
        /// Connections closed, or answered with `408`, because their first head was not complete in time.
        hit_first_head_ms = "first_head_ms",
        /// Later heads that were not complete in time (`408`).
        hit_head_ms = "head_ms",
        /// Bodies of which nothing came for too long (`408`).
        hit_body_ms = "body_ms",
        /// Bodies of which too little came (`408`).
        hit_body_pace = "body_bytes_per_second_min",
        /// Connections closed because they were idle too long.
        hit_idle_ms = "idle_ms",
        /// Connections reset because the client took nothing.
        hit_write_ms = "write_ms",
        /// Connections reset because the client took too little.
        hit_send_pace = "send_bytes_per_second_min",
        /// Connections closed because the client did not end its side after the last answer.
        hit_linger_ms = "linger_ms",
        /// Connections closed because the client had ended its side and its response took too long.
        hit_half_closed_ms = "half_closed_ms",
        /// Idle connections closed while draining.
        hit_drain_idle_ms = "drain_idle_ms",
        /// Turns that left due deadlines to the next one.
        hit_expiries_per_turn = "EXPIRIES_PER_TURN",
        /// Notices to the operator that nobody read, or of more kinds than are reported at once.
        hit_notices = "NOTICES_MAX",
    }
}

impl Counters {
    /// An answer that is no `2xx`: those are what is left of all.
    pub(crate) fn count_class(&self, status: u16) {
        let counter = match status {
            ..400 => &self.answers_3xx,
            400..500 => &self.answers_4xx,
            500.. => &self.answers_5xx,
        };
        counter.add(1);
    }
}

impl Totals {
    /// All final answers.
    #[must_use]
    pub fn answers(&self) -> u64 {
        self.requests + self.requests_refused
    }

    /// Answers that say that all is well (`2xx`, and `101`).
    #[must_use]
    pub fn answers_2xx(&self) -> u64 {
        // Read while it changes, a part may be ahead of the whole.
        self.answers().saturating_sub(self.answers_3xx + self.answers_4xx + self.answers_5xx)
    }

    /// Connections that are open.
    #[must_use]
    pub fn connections_open(&self) -> u64 {
        self.connections_accepted.saturating_sub(self.connections_closed)
    }
}

/// One counter: a single writer, so a load and a store do.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    /// Sets the counter to a total that the driver keeps.
    pub(crate) fn set(&self, count: u64) {
        self.0.store(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
